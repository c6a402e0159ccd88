"""The study `operator`: what each model is conditioned on, sums against models alone, its
claims."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from level_rows import regions
from scene_rows import carried_out, detector_rows, note, verdict
from tiny import QUIET

from recombine.analysis.scene_sums import strongest_leakage
from recombine.analysis.table import Table, read_table
from recombine.config import UsageError, from_json, to_json
from recombine.objectives.compose import OneByOne
from recombine.overrides import override
from recombine.pipeline.job import Work, digest_of
from recombine.rng import seeded
from recombine.runs.detectors import DetectorCheck, DetectorRun
from recombine.runs.scene_prompts import Prompts
from recombine.runs.scenes import SceneModel, SceneRun
from recombine.studies.operator import STUDY, Operator, settings
from recombine.studies.scene_settings import settings as scene_settings
from recombine.worlds.layout import Layout

SCALES = ("smoke", "laptop", "full")
MODELS = ("empty", "unconditional", "cluttered")
SMOKE = settings("smoke")
SUMS, LEAKAGE = STUDY.claims


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The whole study at smoke scale."""
    return carried_out(STUDY, SMOKE, tmp_path_factory.mktemp("operator"))


@pytest.fixture(scope="module")
def rows(folder) -> Table:
    return read_table(folder / "rows.parquet")


@pytest.mark.slow
def test_every_sum_is_counted_and_every_figure_plotted(rows, folder):
    numbers = list(SMOKE.recipe.evaluation.locations)
    for variant in (*MODELS, "swapped"):
        assert rows.where(kind="added", variant=variant).column("locations") == numbers
    for variant in MODELS:
        assert rows.where(kind="count", variant=variant).column("locations") == numbers
    for name in ("backgrounds", "at_once", "leakage", "samples"):
        assert (folder / "figures" / f"{name}.svg").stat().st_size > 1000
    assert json.loads((folder / "claims.json").read_text())[0]["verdict"] == "smoke"


@pytest.mark.slow
def test_own_and_others_do_not_depend_on_the_background(rows):
    leaks = {v: rows.where(kind="leakage", variant=v) for v in (*MODELS, "swapped")}
    assert all(
        some.column("t") == list(SMOKE.recipe.evaluation.locality.times) for some in leaks.values()
    )
    for name in ("own", "others"):
        assert leaks["swapped"].column(name) == leaks["unconditional"].column(name)
    assert leaks["swapped"].column("unconditional") == leaks["empty"].column("unconditional")
    for r in (r for some in leaks.values() for r in some):
        assert r["leakage"] == pytest.approx(r["others"] - r["unconditional"], abs=2e-4)


def test_a_sum_of_one_part_is_the_model_itself_and_of_two_is_not():
    made = {n: SceneModel(r, Work(SceneRun(r), Path(), QUIET)) for n, r in SMOKE.models().items()}
    for one in made.values():
        with torch.no_grad():
            for weight in one.net.parameters():
                weight += 0.3 * torch.randn(weight.shape, generator=seeded("weights"))
    model, count = made["unconditional"], SMOKE.recipe.evaluation.samples
    layout, noise = Prompts.of(model.recipe).layout(torch.device("cpu")), model.noise(count)
    alone = model.sample(layout, noise)
    for background in ("unconditional", "empty"):
        both = OneByOne(model.denoiser(), made[background].denoiser())
        pictures = model.sample(layout, noise, both)
        torch.testing.assert_close(pictures[:count], alone[:count], rtol=0, atol=1e-5)
        assert (pictures[count:] - alone[count:]).abs().amax((1, 2, 3)).min() > 1e-4


@pytest.mark.parametrize("scale", SCALES)
def test_models_differ_in_world_and_encoder_and_share_prompts_and_detector(scale):
    s = settings(scale)
    made, own = s.models(), {"world": s.recipe.world, "layout_encoder": s.recipe.layout_encoder}
    assert len({digest_of(SceneRun(r)) for r in made.values()}) == 3
    assert {replace(r, **own) for r in made.values()} == {s.recipe}
    assert len({DetectorCheck.of(r) for r in made.values()}) == 1
    for recipe in made.values():
        recipe.check()
    assert from_json(to_json(s)) == s


@pytest.mark.parametrize("scale", SCALES)
def test_the_detector_is_that_of_length_and_knows_more_objects_than_are_prompted_for(scale):
    own, other = settings(scale).recipe, scene_settings(scale).recipe
    assert DetectorRun.of(own) == DetectorRun.of(other)
    assert scale != "full" or max(own.detector_world.counts) > own.evaluation.most


def test_what_no_condition_means():
    """Without a condition pictures show none, one, or some objects. In all others, one is given."""
    dropped = {}
    for name, recipe in Operator().models().items():
        world = replace(recipe.world, size=16, samples=1, shadows=False, reflections=False)
        rng = seeded(name)
        some = world.sample(512, rng)
        given = recipe.layout_encoder.drop(Layout(some.centres, some.present), rng)
        assert int(given.present.sum(1).max()) == 1
        dropped[name] = some.present.sum(1)[~given.present.any(1)].tolist()
    assert {n: set(d) for n, d in dropped.items()} == {
        "empty": {0},
        "unconditional": {1},
        "cluttered": {1, 2, 3, 4, 5},
    }
    assert all(200 < len(d) < 312 for d in dropped.values()), "as often as scenes are empty"


def test_mismatched_models_differ_in_their_seed_alone():
    assert "mismatched" not in SMOKE.sums(0), "there is no seed before the first"
    parts, background = SMOKE.sums(2)["mismatched"]
    assert parts == SMOKE.sums(2)["empty"][0]
    assert background == SMOKE.sums(1)["empty"][0]
    assert replace(background.recipe, seed=2) == parts.recipe


def test_at_full_scale_locations_keep_a_distance_and_go_beyond_the_clutter():
    e = settings("full").recipe.evaluation
    assert (e.locations, e.spacing) == (tuple(range(1, 9)), 0.2)
    assert max(e.locations) > max(settings("full").clutter)


Reached = dict[str, tuple[int, ...]]
GOOD: Reached = {
    "empty": (4, 4, 4),
    "unconditional": (1, 1, 1),
    "cluttered": (8, 8, 7),
    "swapped": (3, 4, 3),
}


def made_up(reached: Reached, extra: int = 0, exact: dict | None = None) -> list[dict]:
    """Seeds that get so far: full recall up to there, and `extra` numbers further with too many
    objects."""
    made = detector_rows(exact or {})
    for name, seeds in reached.items():
        strict = int(name != "cluttered")
        about = {"strict": strict, "trained": 1 if strict else 5}
        made.append({"kind": "variant", "variant": name, **about})
        further = extra if strict and name != "unconditional" else 0
        for seed, most in enumerate(seeds):
            for k in range(1, 13):
                row = {"variant": name, "seed": seed, "locations": k, "step": 9}
                row["full_recall"] = float(k <= most + further)
                made.append(row | {"kind": "added", "exact_match": float(k <= most)})
                made.append(row | {"kind": "count", "exact_match": float(k < 2)})
    return made


def word(extra: int = 0, **changes: tuple[int, ...]) -> str:
    return verdict(SUMS, Table(made_up(GOOD | changes, extra)))


def test_the_claim_is_supported_only_where_every_part_of_it_is():
    assert word() == "supported"
    assert word(cluttered=(5, 5, 5)) == "partly supported"
    assert word(cluttered=(3, 3, 3)) == "partly supported"
    assert word(empty=(1, 1, 1)) == "partly supported"
    assert word(extra=5) == "partly supported"
    assert word(unconditional=(2, 2, 2)) == "partly supported"
    assert word(unconditional=(0, 0, 0)) == "not measured", "it places no object at all"


def test_what_rows_cannot_say_is_not_measured():
    assert "not reliable" in note(SUMS, Table(made_up(GOOD, exact={9: 0.5})))
    assert "no detector" in note(SUMS, Table([]))
    for tried in (range(2, 13), range(1, 6)):
        some = [r for r in made_up(GOOD) if r.get("kind") != "added" or r["locations"] in tried]
        assert "locations are needed" in note(SUMS, Table(some))


def test_what_was_measured_stands_beside_the_papers():
    shown = SUMS.measure(Table(made_up(GOOD | {"cluttered": (8, 7, 6)}, extra=2))).measured
    assert [shown[n] for n in MODELS] == [4, 1, 7]
    assert [shown[f"paper_{n}"] for n in MODELS] == [4, 1, 8]
    assert [shown[f"{n}, by recall alone"] for n in MODELS] == [6, 1, 7]
    assert shown["empty, at once"] == 1
    assert shown["cluttered, seeds"] == "8, 7, 6"
    assert shown["swapped"] == pytest.approx(10 / 3)


LEAKS = {"unconditional": -0.3, "cluttered": 0.02, "empty": 0.13, "swapped": 0.27}


def leaks(**changes: float) -> list[dict]:
    """Three seeds at three noise levels; the last seed's leakage is a little larger."""
    rows = []
    for variant, leak in (LEAKS | changes).items():
        for seed, scale in enumerate((1.0, 1.0, 1.1)):
            same = {"kind": "leakage", "variant": variant, "seed": seed, "own": 0.9}
            for i, share in enumerate((0.2, 1.0, -0.5)):
                rows.append({**same, "sigma": 0.1 * 2**i, "leakage": leak * share * scale})
    return rows


def test_the_leakage_is_taken_where_it_is_largest():
    assert verdict(LEAKAGE, Table(leaks())) == "supported"
    shown = LEAKAGE.measure(Table(leaks())).measured
    assert shown["empty, leakage"] == pytest.approx(0.13 * 3.1 / 3)
    for change in (
        {"unconditional": -0.1},
        {"cluttered": -0.08},
        {"swapped": 0.12},
        {"empty": 0.04},
    ):
        assert verdict(LEAKAGE, Table(leaks(**change))) == "partly supported"
    alone = [r for r in leaks() if r["variant"] == "empty"]
    assert "no leakage of unconditional" in note(LEAKAGE, Table(alone))


WRONG = ["clutter=[0,1]", "clutter=[1]", "dropout=0", "recipe.layout_encoder.labelled=one",
         "recipe.layout_encoder=null"]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_settings_are_one_line(wrong):
    with pytest.raises(UsageError) as error:
        override(Operator(), wrong)
    assert "\n" not in str(error.value)


def test_regions_are_those_that_were_written_down():
    inf = math.inf
    assert regions(LEAKAGE.measure(Table(leaks()))) == [
        ("leakage, unconditional", -inf, -0.15, False),
        ("leakage, empty", 0.05, inf, False),
        ("half of |empty| less |cluttered|", 0.0, inf, False),
        ("leakage, swapped - empty", 0.0, inf, False),
        ("leakage, cluttered - unconditional", 0.0, inf, False),
        ("leakage, empty - cluttered", 0.0, inf, False),
    ]
    found = regions(SUMS.measure(Table(made_up(GOOD))))
    assert [(low, high) for _, low, high, _ in found] == [
        (0.0, inf), (0.0, inf), (0.0, inf), (0.0, 0.5), (0.0, inf), (0.0, inf),
    ]  # fmt: skip


def test_the_strongest_leakage_is_the_farthest_from_zero():
    rows = [{"kind": "leakage", "variant": "v", "seed": s, "leakage": x}
            for s, x in ((1, 0.1), (1, -0.3), (0, 0.2), (0, 0.1))]  # fmt: skip
    assert strongest_leakage(Table(rows), "v") == {0: 0.2, 1: -0.3}
