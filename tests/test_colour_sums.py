"""Scores of colours added: the encoder, the colour probe, sums of all pairs at smoke scale, and
claims on made-up rows."""

import math
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from level_rows import regions
from scene_rows import carried_out, detector_rows
from tiny import QUIET

from recombine.analysis.claims import assess
from recombine.analysis.colours import COMPOSE
from recombine.analysis.table import Table, read_table
from recombine.config import UsageError, from_json, to_json
from recombine.metrics.colour_probe import (
    NONE,
    PIXELS,
    SIDE,
    ColourNet,
    ColourProbe,
    colour_doubt,
    crops,
    matches,
    placed,
)
from recombine.nets.colour_grid import LEFT_OUT, ColourGrid, by_color
from recombine.overrides import override
from recombine.pipeline.job import Work
from recombine.plots import colours as plots
from recombine.rng import seeded
from recombine.runs.colour_probe import ColourProbeRun
from recombine.runs.colour_sums import ColourModel, ColourModelRun, ColourSums, prompt, samples
from recombine.runs.detectors import DetectorRun
from recombine.runs.scenes import SceneRun
from recombine.studies.colours import STUDY, jobs, settings
from recombine.studies.scene_settings import settings as scene_settings
from recombine.worlds.layout import Layout
from recombine.worlds.scenes.scene import COLORS

SMOKE = settings("smoke")
NAMES = tuple(COLORS)
GAP, SUMS, COSINE, LOCAL = STUDY.claims
CPU = torch.device("cpu")


# ---- the encoder


def random_objects(count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rng = seeded("colours", count)
    at = torch.rand(count, 1, 2, generator=rng)
    present = torch.rand(count, 1, generator=rng) < 0.7
    return at, present, torch.randint(8, (count, 1), generator=rng)


def test_a_code_gives_cell_and_colour_back():
    at, present, color = random_objects(64)
    encoder, layout = ColourGrid(cells=4), by_color(at, present, color)
    code = encoder.code(layout)
    assert code.shape == (64, encoder.size)
    grid, hue = code.split((16, 8), 1)
    there = present[:, 0]
    assert torch.equal(code.sum(1), 2.0 * there)
    assert torch.equal(hue.argmax(1)[there], color[there, 0])
    cell = (at[:, 0] * 4).long()
    assert torch.equal(grid.argmax(1)[there], (4 * cell[:, 1] + cell[:, 0])[there])


def test_without_a_location_the_colour_alone_is_encoded_wherever_the_object_is():
    at, present, color = random_objects(64)
    encoder = ColourGrid(cells=4, anywhere=1.0)
    code = encoder.code(encoder.drop(by_color(at, present, color), seeded("drop")))
    other = encoder.code(encoder.drop(by_color(1 - at, present, color), seeded("other")))
    assert torch.equal(code, other)
    assert not code[:, :16].any()
    assert torch.equal(code[:, 16:].argmax(1)[present[:, 0]], color[present])
    assert not encoder.code(Layout.empty(2, 8)).any()


def test_locations_are_left_out_in_half_of_the_pictures_and_colours_never():
    at, color = torch.rand(2000, 1, 2), torch.zeros(2000, 1, dtype=torch.long)
    layout = by_color(at, torch.ones_like(color).bool(), color)
    given = ColourGrid().drop(layout, seeded("half"))
    assert torch.equal(given.present, layout.present)
    assert abs(float((given.at[:, 0, 0] == LEFT_OUT).double().mean()) - 0.5) < 0.05


def test_patches_hold_colours_of_their_own_locations_and_of_objects_anywhere():
    one = torch.tensor([[3]])
    there = by_color(torch.tensor([[[0.1, 0.1]]]), one > 0, one)
    anywhere = there._replace(at=torch.full_like(there.at, LEFT_OUT))
    for layout, number in ((there, 4), (anywhere, 16)):
        code = ColourGrid(cells=4).patch_code(layout, 4, 1)
        assert code.shape == (1, 16, ColourGrid().patch_size(1))
        assert int(code[..., 9 + 3].sum()) == number
        assert int(code[..., 9:].sum()) == number


# ---- the colour probe


def test_a_crop_is_centred_on_its_location():
    images = torch.zeros(2, 3, 64, 64)
    images[:, :, 20:24, 40:44] = 1.0
    made = crops(images, torch.tensor([[42 / 64, 22 / 64], [0.0, 0.0]]))
    assert made.shape == (2, 3, PIXELS, PIXELS)
    inner = slice(PIXELS // 2 - 2, PIXELS // 2 + 2)
    assert SIDE * 64 == PIXELS
    assert torch.equal(made[0, :, inner, inner], torch.ones(3, 4, 4))
    assert float(made[0].sum()) == 3 * 16
    assert not made[1].any()


class Fixed(ColourNet):
    """Reads the brightest channel: red, green or blue."""

    def forward(self, some):
        red, green, blue = some.mean((2, 3)).unbind(1)
        logits = torch.zeros(len(some), 8)
        for name, value in (("red", red), ("green", green), ("blue", blue)):
            logits[:, NAMES.index(name)] = 50 * value
        return logits


def test_a_probe_reads_every_object_and_rejects_what_no_colour_is_sure_of():
    images = torch.zeros(1, 3, 64, 64)
    images[0, 0, :, :32] = 1.0
    at = torch.tensor([[[0.2, 0.5], [0.8, 0.5], [0.2, 0.2]]])
    objects = Layout(at, torch.tensor([[True, True, False]]))
    found = ColourProbe(Fixed(8))(images, objects)
    assert found.tolist() == [[NAMES.index("red"), NONE, NONE]]


def test_an_exact_match_is_one_object_of_each_colour_and_no_other():
    found = torch.tensor([[1, 2, NONE], [1, 1, 2], [1, NONE, NONE], [2, 1, NONE], [1, 2, 5]])
    present = torch.tensor([[1, 1, 0], [1, 1, 1], [1, 1, 0], [1, 1, 1], [1, 1, 1]]).bool()
    objects = Layout(torch.zeros(5, 3, 2), present)
    exact, every = matches(found, objects, torch.tensor([[1, 2]]).expand(5, -1))
    assert exact.tolist() == [True, False, False, False, False]
    assert every.tolist() == [True, True, False, True, True]


def test_objects_are_placed_where_each_lies_at_the_location_of_its_own_colour():
    at = torch.tensor([[[0.2, 0.2], [0.8, 0.8], [0.5, 0.5]]]).expand(4, -1, -1)
    present = torch.tensor([[1, 1, 0], [1, 1, 0], [1, 1, 1], [1, 1, 0]]).bool()
    found = torch.tensor([[1, 2, NONE], [2, 1, NONE], [1, 2, 5], [1, 2, NONE]])
    wanted = torch.tensor([[1, 2]]).expand(4, -1)
    goal = torch.tensor([[[0.21, 0.2], [0.8, 0.79]]]).repeat(4, 1, 1)
    goal[3, 1, 0] = 0.6
    there = placed(found, Layout(at, present), wanted, goal, 0.08)
    assert there.tolist() == [True, False, False, False]
    assert matches(found, Layout(at, present), wanted)[0].tolist() == [True, True, False, True]


def test_a_probe_that_misreads_a_colour_is_refused():
    rows = [{"kind": "colour probe", "color": n, "accuracy": 0.99} for n in NAMES]
    assert not colour_doubt(rows)
    rows[4]["accuracy"] = 0.94
    assert colour_doubt(rows) == (
        "the colour probe is not reliable: it reads 94.0% of brown objects; 95% are needed"
    )
    assert "no colour probe" in colour_doubt([])


# ---- models and sums


def test_the_detector_and_the_training_are_those_of_length():
    own, other = settings("full").recipe, scene_settings("full").recipe
    assert DetectorRun.of(own) == DetectorRun.of(other)
    names = ("net", "objective", "train", "pool")
    assert [getattr(own, n) for n in names] == [getattr(other, n) for n in names]


@pytest.mark.parametrize("scale", ["smoke", "laptop", "full"])
def test_only_pictures_are_compared_at_laptop_scale(scale):
    chosen = settings(scale)
    assert from_json(to_json(chosen)) == chosen
    made = jobs(chosen, 2)
    for job in made:
        job.task.check()
    kinds = [type(job.task) for job in made]
    trained = (ColourModelRun, ColourSums)
    assert [kinds.count(kind) for kind in trained] == ([0, 0] if scale == "laptop" else [4, 4])
    assert scale != "laptop" or len(made) == 2


def model() -> ColourModel:
    recipe = SMOKE.recipe
    made = ColourModel(recipe, Work(ColourModelRun(recipe), Path(), QUIET))
    with torch.no_grad():
        for weight in made.net.parameters():
            weight += 0.3 * torch.randn(weight.shape, generator=seeded("weights"))
    return made


def test_training_pictures_are_empty_or_hold_one_object_of_the_colour_that_is_given():
    made, recipe = model(), SMOKE.recipe
    images, layout = made.pool
    some = recipe.world.sample(len(images), seeded(recipe.seed, "pool", 0))
    there = some.present[:, 0]
    assert set(there.tolist()) == {False, True}
    assert torch.equal(layout.present.sum(1), some.present.sum(1))
    assert torch.equal(layout.present.long().argmax(1)[there], some.kind[there, 0, 1])
    assert torch.equal(layout.at[layout.present], some.centres[there, 0])
    x, given, _ = made.batch(0)
    assert given.present.shape == (len(x), SMOKE.recipe.slots)


def test_a_sum_of_one_colour_is_the_model_itself_and_does_not_depend_on_the_order_of_colours():
    made, count = model(), SMOKE.recipe.evaluation.samples
    one, pair, swapped = samples(made, [(2,), (2, 7), (7, 2)], "color")
    rng = seeded(made.recipe.seed, "sample", "colours")
    noise = torch.randn(count, *made.recipe.world.image_shape, generator=rng)
    alone = made.sample(prompt(made.recipe, (2,), "color", CPU), noise)
    torch.testing.assert_close(one, alone, rtol=0, atol=1e-5)
    torch.testing.assert_close(pair, swapped, rtol=0, atol=1e-5)
    assert (pair - one).abs().max() > 1e-4


def test_locations_are_given_or_left_out():
    recipe = SMOKE.recipe
    there, nowhere = (prompt(recipe, (2, 7), given, CPU) for given in ("location", "color"))
    assert torch.equal(there.present, nowhere.present)
    assert there.present[0].nonzero().flatten().tolist() == [2, 7]
    at = there.at[:, [2, 7]]
    assert (at >= 0).all()
    apart = (at[:, 0] - at[:, 1]).square().sum(-1).sqrt()
    assert (apart >= recipe.evaluation.spacing).all()
    assert (nowhere.at[:, [2, 7]] == LEFT_OUT).all()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return carried_out(STUDY, SMOKE, tmp_path_factory.mktemp("colours"))


@pytest.mark.slow
def test_every_pair_is_sampled_read_and_plotted(folder):
    rows = read_table(folder / "rows.parquet")
    ways = (("sums", "color"), ("sums", "location"), ("sums, local", "location"))
    assert len(rows.where(kind="pair")) == len(ways) * 28
    for variant, given in ways:
        some = rows.where(variant=variant, given=given)
        pairs = some.where(kind="pair")
        read = [frozenset((r["color"], r["other"])) for r in pairs]
        assert read == [frozenset(p) for p in combinations(NAMES, 2)]
        assert tuple(some.where(kind="single").column("color")) == NAMES
        for r in pairs:
            assert 0 <= r["exact_match"] <= r["all_colors"] <= 1
            assert (r.get("placed") is not None) is (given == "location")
            assert (r.get("placed") or 0) <= r["exact_match"]
            assert r["n"] == SMOKE.recipe.evaluation.samples
    assert tuple(rows.where(kind="colour probe").column("color")) == NAMES
    assert len(rows.where(kind="colours, real")) == 1
    for name in ("sums", "samples", "cosines"):
        assert (folder / "figures" / f"{name}.svg").stat().st_size > 1000


# ---- claims

RIGHT = {c: 0.7 if c in COMPOSE else 0.1 for c in NAMES}


def made_up(
    right: dict[str, float] = RIGHT, single: float = 0.99, probe: float = 0.99, sign: int = -1
) -> Table:
    """Five seeds. Yellow's exact matches are given, the others' follow the cosine; `sign`: -1 where
    a large cosine means few."""
    rows = detector_rows({}) + [
        {"kind": "colour probe", "color": n, "accuracy": probe} for n in NAMES
    ]
    for seed in range(5):
        about = {"seed": seed, "given": "color", "total": 2.0, "all_colors": 1.0, "variant": "sums"}
        for i, (a, b) in enumerate(combinations(NAMES, 2)):
            own = right.get(({a, b} - {"yellow"}).pop(), 0.0) if "yellow" in (a, b) else i / 28
            pair = {"color": a, "other": b}
            share = own + 0.004 * seed
            rows.append({"kind": "pair", **about, **pair, "exact_match": share})
            rows.append({"kind": "cosine", "seed": seed, **pair, "cosine": 0.5 + sign * own / 2})
        rows += [
            {"kind": "single", **about, "color": n, "exact_match": single - 0.002 * seed}
            for n in NAMES
        ]
    return Table(rows)


def word(claim, table: Table) -> str:
    return assess(claim, table, "full", STUDY.run_minutes).verdict


def test_the_partition_is_supported_where_both_parts_are_and_single_colours_are_drawn():
    assert word(SUMS, made_up()) == "supported"
    assert word(SUMS, made_up(dict.fromkeys(NAMES, 0.5))) == "inconclusive"
    assert word(SUMS, made_up(RIGHT | {"brown": 0.8})) == "partly supported"
    assert word(SUMS, made_up(single=0.7)) == "inconclusive"
    shown = SUMS.measure(made_up()).measured
    assert shown["yellow, cyan"] == pytest.approx(0.708)
    assert shown["yellow, cyan, at locations"] is None
    assert shown["real objects, colour of the worst"] == 0.99
    assert shown["real pairs, exact match"] is None


def test_the_cosine_predicts_where_large_ones_mean_few_matches():
    assert word(COSINE, made_up()) == "supported"
    assert word(COSINE, made_up(sign=1)) == "contradicted"
    assert word(COSINE, made_up(single=0.7)) == "inconclusive"
    found = COSINE.measure(made_up())
    assert found.parts[0].estimate.value == pytest.approx(-1)
    assert found.measured["pairs without yellow"] == pytest.approx(-1)
    some = [r for r in made_up() if r["kind"] != "pair" or "yellow" in (r["color"], r["other"])]
    assert COSINE.measure(Table(some)).measured["pairs without yellow"] is None


def at_locations(local: float, whole: float, single: float = 0.99) -> Table:
    """Five seeds of both models, all pairs alike but for yellow and red, which are 0.1 worse."""
    rows = [r for r in made_up() if r["kind"] not in ("pair", "single")]
    for seed in range(5):
        for variant, share in (("sums", whole), ("sums, local", local)):
            about = {"seed": seed, "given": "location", "variant": variant, "total": 2.0}
            rows += [
                {"kind": "pair", **about, "color": a, "other": b}
                | {"exact_match": share + 0.002 * seed - 0.1 * ({a, b} == {"yellow", "red"})}
                for a, b in combinations(NAMES, 2)
            ]
            alone = {"kind": "single", **about, "exact_match": single - 0.002 * seed}
            rows += [alone | {"color": n} for n in NAMES]
    return Table(rows)


def test_locality_separates_where_the_local_model_composes_and_the_global_one_does_not():
    assert word(LOCAL, at_locations(0.8, 0.2)) == "supported"
    assert word(LOCAL, at_locations(0.8, 0.7)) == "partly supported"
    assert word(LOCAL, at_locations(0.4, 0.3)) == "contradicted"
    assert word(LOCAL, at_locations(0.8, 0.2, single=0.5)) == "inconclusive"
    found = LOCAL.measure(at_locations(0.8, 0.2))
    assert regions(found) == [
        ("exact match at locations, local", 0.6, math.inf, False),
        ("exact match at locations, local - global", 0.3, math.inf, False),
        ("exact match of the least of the single colours", 0.8, math.inf, True),
    ]
    expected = (0.804 - 0.1 / 28, 0.6, 0.986)
    assert [p.estimate.value for p in found.parts] == pytest.approx(expected)
    assert "local, each object at its location" not in found.measured
    with_place = at_locations(0.8, 0.2).with_columns(placed=0.5)
    shown = LOCAL.measure(with_place).measured
    assert shown["local, each object at its location"] == pytest.approx(0.5)
    assert found.measured["local, least pair"] == "red, yellow: 0.70"
    assert found.measured["global, mean over pairs"] == pytest.approx(0.204 - 0.1 / 28)


def test_the_local_model_alone_is_assessed_and_plotted(tmp_path):
    """As where it is run later than the global one, and joined afterwards."""
    some = Table(r for r in at_locations(0.8, 0.2) if r.get("variant") != "sums")
    for claim in (SUMS, COSINE, LOCAL):
        assert assess(claim, some, "full").verdict == "not measured"
    (tmp_path / "figures").mkdir()
    assert [f.name for f in STUDY.figures(some, tmp_path / "figures")] == ["cosines"]


def test_samples_of_each_network_come_from_its_own_sheet(tmp_path, monkeypatch):
    kept = {"sums-s0-location.webp", "sums-local-s0-location.webp"}
    for folder in ("figures", "samples"):
        (tmp_path / folder).mkdir()
    for name in kept:
        (tmp_path / "samples" / name).touch()
    taken, picture = [], np.zeros((2, 2, 3))
    monkeypatch.setattr(
        plots, "cut", lambda sheet, *place: taken.append((sheet.name, *place)) or picture
    )
    STUDY.figures(at_locations(0.8, 0.2), tmp_path / "figures")
    assert [name for name, *_ in taken[:: 3 * 7]] == [
        "sums-s0-location.webp",
        "sums-local-s0-location.webp",
    ]
    lines = len(COLORS) + math.comb(len(COLORS), 2)
    assert {(rows, column) for _, rows, _, column in taken} == {(lines, k) for k in range(3)}
    known = [{name} for name in COLORS] + [set(pair) for pair in combinations(COLORS, 2)]
    assert all("yellow" in known[row] and len(known[row]) == 2 for _, _, row, _ in taken)


def test_models_without_a_common_seed_are_not_compared():
    apart = Table(
        r | {"seed": r["seed"] + 5} if r.get("variant") == "sums" else r
        for r in at_locations(0.8, 0.2)
    )
    assert "no seed in common" in assess(LOCAL, apart, "full").note


def test_a_model_that_was_not_run_is_not_measured():
    some = Table(r for r in at_locations(0.8, 0.2) if r.get("variant") != "sums, local")
    assert "no scores of the local model" in assess(LOCAL, some, "full").note
    assert word(SUMS, Table([*made_up(), *at_locations(0.8, 0.2)])) == "supported"


def test_the_local_model_is_that_of_exp_2l_and_always_given_a_location():
    full = settings("full")
    both = full.sums(3)
    other = scene_settings("full").variants()["exp2L"]
    own = both["local"].model.recipe
    assert (own.net, own.objective, own.train) == (other.net, other.objective, other.train)
    assert own.seed == 3
    assert own.layout_encoder.anywhere == 0
    assert both["local"].given == ("location",)
    with pytest.raises(UsageError, match="colours alone were never given"):
        replace(both["local"], given=("color", "location")).check()
    assert list(override(full, 'variants=["local"]').sums(0)) == ["local"]


@pytest.mark.parametrize("claim", [SUMS, COSINE])
def test_what_probes_cannot_read_is_not_measured(claim):
    assert assess(claim, made_up(probe=0.9), "full").note.startswith("the colour probe")
    assert "no scores of colours" in assess(claim, Table([]), "full").note
    for kind, why in (("detector", "no detector"), ("single", "no single colours of seed 0")):
        some = Table(r for r in made_up() if r["kind"] != kind)
        assert why in assess(claim, some, "full").note


# ---- what does not fit


def test_a_colour_grid_is_for_colours_and_colours_need_one():
    recipe = SMOKE.recipe
    with pytest.raises(UsageError, match="conditioned on colours"):
        SceneRun(recipe).check()
    plain = replace(recipe, layout_encoder=scene_settings("smoke").recipe.layout_encoder)
    with pytest.raises(UsageError, match="colour grid"):
        ColourModelRun(plain).check()
    crowded = replace(recipe, world=replace(recipe.world, counts=(0, 1, 2)))
    with pytest.raises(UsageError, match="0 and 1 are needed"):
        ColourModelRun(crowded).check()
    wide = replace(recipe, evaluation=replace(recipe.evaluation, locations=(1, 2, 3)))
    probe = ColourProbeRun.of(wide, SMOKE.probe)
    with pytest.raises(UsageError, match="1 and 2 are needed"):
        ColourSums(ColourModelRun(wide), probe).check()


WRONG = {
    "world.size=32": "must be the same but for their counts",
    "recipe.layout_encoder.anywhere=2": "anywhere 2.0 is not between 0 and 1",
    "recipe.layout_encoder.cells=0": "cells must be positive",
    "real=0": "real must be positive",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_settings_are_one_line(wrong):
    with pytest.raises(UsageError, match=WRONG[wrong]) as error:
        override(SMOKE, wrong)
    assert "\n" not in str(error.value)


def test_regions_are_those_that_were_written_down():
    single = ("exact match of the least of the single colours", 0.8, math.inf, True)
    assert regions(SUMS.measure(made_up())) == [
        ("exact match with yellow, composing - failing", 0.2, math.inf, False),
        ("cross pairs in the paper's order", 0.9, math.inf, False),
        single,
    ]
    assert regions(COSINE.measure(made_up())) == [
        ("rank correlation of exact match and cosine", -1.0, -0.5, False),
        single,
    ]


def test_numbers_of_rows_made_by_hand():
    lead, cross, single = (p.estimate.value for p in SUMS.measure(made_up()).parts)
    assert (lead, cross, single) == pytest.approx((0.6, 1.0, 0.986))
    even = RIGHT | {"brown": 0.7}
    _, cross, _ = (p.estimate.value for p in SUMS.measure(made_up(even)).parts)
    assert cross == pytest.approx(9 / 12), "as many is not more"
    shown = SUMS.measure(made_up()).measured
    assert shown["yellow, cyan, both colours"] == 1.0
    assert shown["yellow, cyan, objects"] == 2.0


@pytest.mark.parametrize(
    ("claim", "left_out", "says"),
    [
        (GAP, lambda r: r["kind"] == "cosine", "no colours were compared"),
        (COSINE, lambda r: r["kind"] == "cosine", "no colours were compared"),
        (
            GAP,
            lambda r: "blue" in (r.get("color"), r.get("other")),
            "no pictures of yellow and blue",
        ),
        (
            SUMS,
            lambda r: "cyan" in (r.get("color"), r.get("other")) and r["kind"] == "pair",
            "no sums of yellow and cyan",
        ),
    ],
)
def test_what_is_missing_is_named(claim, left_out, says):
    rows = [r for r in made_up() if not left_out(r)]
    assert assess(claim, Table(rows), "full").note == says


def test_pairs_that_are_all_the_same_correlate_with_nothing():
    same = [r | ({"cosine": 0.5} if r["kind"] == "cosine" else {}) for r in made_up()]
    note = assess(COSINE, Table(same), "full").note
    assert note == "nothing to correlate: all pairs are the same"
