"""The study `seed-parts`: squares in which each part of a seed is drawn by itself, and what each
explains."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
import torch
from level_rows import regions, verdict
from tiny import QUIET

from recombine.analysis.seed_parts import PARTS, shares, squares, start_decides
from recombine.analysis.table import Table
from recombine.pipeline.job import Work
from recombine.plots.seed_parts import figures
from recombine.runs.models import Model, ModelRun
from recombine.runs.recipe import Recipe
from recombine.studies import seed_parts
from recombine.studies.seed_parts import SeedParts

SMOKE = seed_parts.settings("smoke")
Height = Callable[[int, int, int], float]


def cells(height: Height, size: int = 4, noise: float = 0.0) -> list[tuple[dict[str, int], float]]:
    keys = [(i, j, (i + j) % size) for i, j in product(range(size), repeat=2)]
    return [
        (dict(zip(PARTS, key, strict=True)), height(*key) + noise * (key[0] * key[1] % 3))
        for key in keys
    ]


def rows_of(height: Height, squares: int = 5, seen: float = 0.8) -> list[dict]:
    return [
        {"kind": "accuracy", "variant": seed_parts.name_of(**each), "seed": seed, "step": step,
         "probe": probe, "level": level, "composition": str(level), "joint": joint, **each}
        for seed in range(squares)
        for each, value in cells(height, noise=0.01 * seed)
        for step, share in ((1, 0.5), (2, 1.0))
        for level, joint in ((0, seen), (2, share * value))
        for probe in ("paper 0", "paper 1")
    ]  # fmt: skip


def test_in_a_square_every_two_parts_meet_once():
    square = SMOKE.square(2)
    assert len(square) == SMOKE.size**2
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert len({(key[a], key[b]) for key in square}) == SMOKE.size**2
    seeds = {(r.start, r.seed, r.tokenizer.seed) for r in square.values()}
    assert len(seeds) == len(square)
    first = SMOKE.first_seed + 2 * SMOKE.size
    assert {n for three in seeds for n in three} == set(range(first, first + SMOKE.size))
    others = {n for r in SMOKE.square(1).values() for n in (r.start, r.seed, r.tokenizer.seed)}
    assert others == set(range(first - SMOKE.size, first)), "squares share nothing"


def model(recipe: Recipe) -> Model:
    return Model(recipe, Work(ModelRun(recipe), Path(), QUIET))


def test_the_start_sets_the_first_weights_and_nothing_else():
    recipe = seed_parts.calibrated.settings("smoke").variant("dit, dropout")
    recipe = replace(recipe, tokenizer=type(Recipe().tokenizer)(), pool=2)
    one, other, same = (
        model(replace(recipe, seed=seed, start=start)) for seed, start in ((1, 2), (1, 3), (4, 2))
    )
    weights = [torch.cat([p.flatten() for p in m.net.parameters()]) for m in (one, other, same)]
    assert torch.equal(weights[0], weights[2])
    assert not torch.equal(weights[0], weights[1])
    (x, condition, _), (y, given, _), (z, *_) = (m.batch(0) for m in (one, other, same))
    assert torch.equal(x, y)
    assert all(map(torch.equal, condition, given))
    assert not torch.equal(x, z)
    alone = model(replace(recipe, seed=2))
    assert torch.equal(torch.cat([p.flatten() for p in alone.net.parameters()]), weights[0])


def test_each_part_explains_its_own_share():
    assert shares(cells(lambda start, data, codes: 1.0 * start)) == pytest.approx(
        {"start": 1, "data": 0, "codes": 0}
    )
    both = shares(cells(lambda start, data, codes: data + 2.0 * (codes % 2)))
    assert both == pytest.approx({"start": 0, "data": 1.25 / 2.25, "codes": 1 / 2.25})
    with pytest.raises(LookupError, match="the same"):
        shares(cells(lambda *_: 0.5))


def test_by_chance_a_part_explains_one_in_one_more_than_the_side():
    rng = torch.Generator().manual_seed(0)
    drawn = [
        shares(cells(lambda *_: float(torch.rand((), generator=rng))))["start"] for _ in range(400)
    ]
    assert sum(drawn) / len(drawn) == pytest.approx(1 / 5, abs=0.02)


@pytest.mark.parametrize(
    ("height", "seen", "expected"),
    [
        (lambda start, data, codes: 0.6 * (start % 2), 0.8, "supported"),
        (lambda start, data, codes: 0.6 * (data % 2), 0.8, "contradicted"),
        (lambda start, data, codes: 0.3 * (start % 2) + 0.3 * (data % 2), 0.8, "partly supported"),
        (lambda start, data, codes: 0.6 * (start % 2), 0.5, "inconclusive"),
    ],
)
def test_the_start_decides_or_not(height, seen, expected):
    assert verdict(seed_parts.STUDY, "B45", rows_of(height, seen=seen)) == expected


def test_squares_that_lack_cells_are_left_out(tmp_path):
    """As when a command was cut off."""
    rows = rows_of(lambda start, data, codes: 0.1 * start + 0.2 * (data % 2), squares=3)
    cut = [row for row in rows if row["seed"] < 2 or row["start"] < 2]
    assert list(squares(Table(cut))) == [0, 1]
    assert len(figures(Table(cut), tmp_path)) == 2
    with pytest.raises(LookupError, match="whole"):
        squares(Table([row for row in cut if row["seed"] == 2]))


def test_regions_and_what_stands_beside():
    found = start_decides.measure(Table(rows_of(lambda start, *_: 0.2 * start)))
    assert regions(found) == [
        ("share of variance, start", 0.4, 1.0, False),
        ("share of variance, start - data", 0.15, 1.0, False),
        ("share of variance, start - tokenizer", 0.15, 1.0, False),
        ("seen", 0.7, 1.0, True),
    ]
    assert found.measured["share, start of the network"] > 0.9
    with pytest.raises(LookupError, match="no rows of the paper"):
        start_decides.measure(Table([]))


def test_figures_show_every_square(tmp_path):
    made = figures(Table(rows_of(lambda start, *_: 0.2 * start, squares=2)), tmp_path)
    assert [f.name for f in made] == ["squares", "shares"]
    assert "square 1" in (tmp_path / "squares.svg").read_text()
    alike = figures(Table(rows_of(lambda *_: 0.5, squares=1)), tmp_path)
    assert [f.name for f in alike] == ["squares"], (
        "where all cells are the same nothing is explained"
    )


def test_a_square_has_three_rows_or_more():
    with pytest.raises(ValueError, match="three rows"):
        SeedParts(size=2)
