"""The study `colours`: directions on pictures made by hand, and claims on made-up cosines."""

from dataclasses import replace

import pytest
import torch
from scene_rows import carried_out

from recombine.analysis.claims import assess
from recombine.analysis.table import Table, read_table
from recombine.metrics.colour_differences import cosines, differences
from recombine.rng import seeded
from recombine.studies.colours import COMPOSE, FAIL, STUDY, settings
from recombine.worlds.scenes.scenes import Scenes


def made_up(low: float, high: float, seeds: int = 3) -> Table:
    each = {c: low for c in COMPOSE} | {c: high for c in FAIL}
    return Table(
        {
            "kind": "cosine",
            "color": "yellow",
            "other": c,
            "seed": s,
            "cosine": v + 0.01 * s * (c in FAIL),
        }
        for s in range(seeds)
        for c, v in each.items()
    )


def test_the_claim_is_about_the_gap_between_the_groups():
    claim = STUDY.claims[0]
    words = {gap: assess(claim, made_up(0.5, 0.5 + gap), "laptop").verdict for gap in (0.3, 0.0)}
    assert words == {0.3: "supported", 0.0: "contradicted"}
    assert assess(claim, Table([]), "laptop").verdict == "not measured"


def test_directions_are_those_of_a_colour_over_the_same_floor():
    """An object in its own colour changes as the picture says; a darker scene less."""
    world = Scenes(size=16, counts=(1,), samples=1, shadows=False, reflections=False)
    scene = world.place(torch.ones(3, dtype=torch.long), seeded("colours"))
    (red, blue) = differences(world, scene, ("red", "blue"))
    empty = world.images(scene.without(0))
    own = world.images(scene._replace(color=torch.full_like(scene.color, 1)))
    torch.testing.assert_close(red, (own - empty).mean(0))
    inside = (red.abs() + blue.abs()).sum((1, 2))
    assert (inside > 0).all()
    assert red[0].sum() > blue[0].sum()
    assert red[2].sum() < blue[2].sum()


def test_cosines_are_those_of_directions():
    table = cosines(torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]]))
    half = 2**-0.5
    expected = torch.tensor([[1, 0, half], [0, 1, half], [half, half, 1]], dtype=torch.float64)
    torch.testing.assert_close(table, expected)


def test_a_run_compares_every_pair_of_colours(tmp_path):
    alone = replace(settings("smoke"), recipe=None)
    folder = carried_out(STUDY, alone, tmp_path, seeds=2)
    rows = read_table(folder / "rows.parquet").where(kind="cosine")
    assert len(rows) == 2 * 8 * 7 / 2
    assert all(-1 <= r["cosine"] <= 1 for r in rows)
    assert (folder / "figures" / "cosines.svg").is_file()


def test_the_gap_is_the_least_of_one_group_less_the_most_of_the_other():
    (part,) = STUDY.claims[0].measure(made_up(0.5, 0.8)).parts
    assert (part.name, part.low, part.needed) == ("gap between the two groups", 0.1, False)
    assert part.estimate.values == pytest.approx((0.3, 0.31, 0.32))
    assert (COMPOSE, FAIL) == (("blue", "cyan", "purple"), ("brown", "gray", "green", "red"))
