"""The study `operator`: what each model is told, sums that agree with the model alone, verdicts from rows, runs found again."""

import json
import re
from dataclasses import replace
from pathlib import Path
from time import time

import pytest
import torch
from tiny import QUIET

from recombine.config import UsageError, digest, from_json, override, to_json
from recombine.evaluate.counting import BAR
from recombine.rng import seeded
from recombine.store import read_rows
from recombine.studies.base import Rows, judge
from recombine.studies.lab import Lab, run_study
from recombine.studies.scenes.adding import Adding, Addition
from recombine.studies.scenes.judge import Judge
from recombine.studies.scenes.operator import STUDY, Operator, settings
from recombine.studies.scenes.settings import settings as scenes
from recombine.worlds.layout import Layout

SCALES = ("smoke", "laptop", "full")
MODELS = ("empty", "unconditional", "cluttered")


@pytest.fixture(scope="module")
def lab(tmp_path_factory) -> Lab:
    return Lab(QUIET, tmp_path_factory.mktemp("operator"), "smoke", 1)


@pytest.fixture(scope="module")
def done(lab) -> Rows:
    """The rows of the whole study."""
    return Rows(read_rows(run_study(STUDY, settings("smoke"), lab) / "rows.jsonl"))


def test_rows_are_flat_and_every_figure_is_drawn(done, lab):
    assert json.loads(json.dumps(done, allow_nan=False)) == list(done)
    locations = settings("smoke").recipe.evaluation.locations
    for variant in (*MODELS, "swapped"):
        assert done.where(kind="added", variant=variant, seed=0).column("locations") == list(locations)
    for variant in MODELS:
        assert done.where(kind="count", variant=variant, seed=0).column("locations") == list(locations)
    for name in ("backgrounds", "at_once", "samples"):
        assert (lab.out / "operator" / "figures" / f"{name}.svg").stat().st_size > 1000


def test_each_sum_has_its_echo_on_real_pictures(done):
    """A model and itself, or two: what a part shows of its own object does not depend on the background."""
    rows = {v: done.where(kind="leakage", variant=v) for v in (*MODELS, "swapped")}
    times = list(settings("smoke").recipe.evaluation.locality.times)
    assert {tuple(some.column("t")) for some in rows.values()} == {tuple(times)}
    for name in ("own", "others"):
        assert rows["swapped"].column(name) == rows["unconditional"].column(name)
    assert rows["swapped"].column("unconditional") == rows["empty"].column("unconditional")
    for r in (r for some in rows.values() for r in some):
        assert r["leakage"] == pytest.approx(r["others"] - r["unconditional"], abs=2e-4)


def test_one_mark_is_what_the_model_itself_draws_and_two_are_not(done, lab):
    made = settings("smoke").models()
    recipe, judge, count = made["unconditional"], Judge(made["empty"], lab), made["empty"].evaluation.samples
    locations = judge.asked(count)
    for background in ("unconditional", "empty"):
        added = Addition(Adding(recipe, made[background]), lab, judge)
        with torch.no_grad():
            for weight in added.run.net.parameters():
                weight += 0.3 * torch.randn(weight.shape, generator=seeded("louder"))
        pictures = added.sample(locations)
        alone = added.run.sample(locations, added.run.noise(count))
        torch.testing.assert_close(pictures[:count], alone[:count], rtol=0, atol=1e-5)
        assert (pictures[count:] - alone[count:]).abs().amax((1, 2, 3)).min() > 1e-4


def test_a_finished_study_is_shown_again_without_weights(done, lab):
    for weights in lab.out.glob("runs/*/model.safetensors"):
        weights.rename(weights.with_suffix(".away"))
    try:
        again = [row | {"scale": "smoke"} for row in STUDY.compute(settings("smoke"), lab)]
    finally:
        for weights in lab.out.glob("runs/*/model.away"):
            weights.rename(weights.with_suffix(".safetensors"))
    assert again == list(done)


def test_fresh_measures_again_what_was_measured(done, lab):
    """With models that are on disk: a row that was altered is put right."""
    made = settings("smoke").models()
    judge = Judge(made["empty"], lab)
    right = Addition(Adding(made["empty"], made["empty"]), lab, judge).rows()
    for fresh, rows in ((False, [{"kind": "added", "step": 4}, *right]), (True, right)):
        sum_of = Addition(Adding(made["empty"], made["empty"]), replace(lab, fresh=fresh, began=time() + 1), judge)
        if not fresh:
            sum_of.folder.path.joinpath("metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
        assert sum_of.rows() == rows


@pytest.mark.parametrize("scale", SCALES)
def test_models_differ_in_what_they_see_and_are_told_and_share_their_judge(scale):
    s = settings(scale)
    made = s.models()
    assert len({digest(r) for r in made.values()}) == 3
    assert len({digest(replace(r, world=s.recipe.world, layout_encoder=s.recipe.layout_encoder)) for r in made.values()}) == 1
    assert len({(r.crowd, r.evaluation, r.detector) for r in made.values()}) == 1
    for recipe in made.values():
        recipe.check()
    assert from_json(to_json(s)) == s


def test_what_nothing_told_means():
    """Of the pictures for which nothing is told: none, one, or some objects. Of all others, one is told."""
    unconditional = {}
    for name, recipe in Operator().models().items():
        world, rng = replace(recipe.world, size=16, samples=1, shadows=False, reflections=False), seeded(name)
        drawn = world.sample(512, rng)
        told = recipe.layout_encoder.tell(Layout(drawn.centres, drawn.present), rng)
        assert int(told.present.sum(1).max()) == 1
        unconditional[name] = drawn.present.sum(1)[~told.present.any(1)].tolist()
    assert set(unconditional["empty"]) == {0}
    assert set(unconditional["unconditional"]) == {1}
    assert set(unconditional["cluttered"]) == {1, 2, 3, 4, 5}
    assert 200 < len(unconditional["empty"]) < 312
    assert all(200 < len(unconditional[name]) < 312 for name in ("unconditional", "cluttered")), "as often as scenes are empty"


def test_mismatched_models_differ_in_their_seed_alone():
    s = settings("smoke")
    assert "mismatched" not in s.additions(0), "there is no seed before the first"
    found = s.additions(2)
    assert found["mismatched"].parts == found["empty"].parts == replace(found["mismatched"].background, seed=2)
    assert found["mismatched"].background == s.additions(1)["empty"].parts


def test_at_full_scale_marks_keep_a_distance_and_go_beyond_the_clutter():
    e = settings("full").recipe.evaluation
    assert (e.locations, e.spaced, e.samples) == (tuple(range(1, 9)), 0.2, 128)
    assert max(e.locations) > max(settings("full").clutter)


def rows(reached: dict[str, tuple[int, ...]], extra: int = 0, exact: float = 1.0) -> Rows:
    """Three seeds that get so far: all pictures are complete up to there, and `extra` numbers further with too many objects."""
    made = [{"kind": "detector", "objects": k, "exact": exact} for k in range(13)]
    made += [{"kind": "real", "locations": k} for k in range(1, 13)]
    for name, seeds in reached.items():
        strict = int(name != "cluttered")
        made.append({"kind": "variant", "variant": name, "strict": strict, "trained": 1 if strict else 5})
        for seed, most in enumerate(seeds):
            for k in range(1, 13):
                far = most + (extra if strict and name != "unconditional" else 0)
                row = {
                    "variant": name,
                    "seed": seed,
                    "locations": k,
                    "right": float(k <= most),
                    "complete": float(k <= far),
                }
                made += [row | {"kind": "added", "step": 9}]
                made += [row | {"kind": "count", "step": 9, "right": float(k < 2)}]
    return Rows(made)


def word(empty=(4, 4, 3), unconditional=(1, 1, 1), cluttered=(8, 7, 6), **kwargs) -> str:
    reached = {"empty": empty, "unconditional": unconditional, "cluttered": cluttered, "swapped": (3, 4, 3)}
    return judge(STUDY.claims[0], rows(reached, **kwargs), "full", 3, {}).word


def test_the_claim_holds_only_where_every_part_of_it_does():
    assert word() == "reproduced"
    assert word(cluttered=(8, 7, 5)) == "partly"
    assert word(cluttered=(1, 0, 1)) == "partly"
    assert word(empty=(4, 8, 3)) == "partly"
    assert word(empty=(2, 1, 2)) == "partly"
    assert word(extra=5) == "partly"
    assert word(empty=(2, 1, 2), cluttered=(5, 6, 6)) == "not reproduced"
    assert word(unconditional=(1, 2, 1)) == "not reproduced"
    assert word(unconditional=(1, 0, 1)) == "not reproduced"


def test_what_rows_cannot_say_is_not_judged():
    assert word(exact=BAR[-1][1] - 0.01) == "not measured"
    assert judge(STUDY.claims[0], Rows(), "full", 3, {}).word == "not measured"
    reached = {"empty": (4,), "unconditional": (1,), "cluttered": (8,), "swapped": (3,)}
    for locations in (range(2, 13), range(1, 6)):
        some = Rows(r for r in rows(reached) if r.get("locations", locations[0]) in locations)
        assert judge(STUDY.claims[0], some, "full", 3, {}).word == "not measured"


def test_what_was_measured_stands_beside_the_papers():
    reached = {"empty": (4, 4, 4), "unconditional": (1, 1, 1), "cluttered": (8, 7, 6), "swapped": (3, 3, 3)}
    found = STUDY.claims[0].judge(rows(reached, extra=2))
    said = found.measured
    assert [said[n] for n in MODELS] == [4, 1, 7]
    assert [said[f"paper_{n}"] for n in MODELS] == [4, 1, 8]
    assert [said[f"{n}, lenient"] for n in MODELS] == [6, 1, 7]
    assert said["empty, at once"] == 1
    assert said["cluttered, seeds"] == "8, 7, 6"
    assert said["swapped"] == 3
    assert found.interval[0] < 3 < found.interval[1]


HEARD = {"unconditional": -0.3, "cluttered": 0.02, "empty": 0.13, "swapped": 0.27}


def heard(**changes: float) -> Rows:
    """Three seeds, each heard at three noise levels; the largest leakage is as told, the last seed's a little more so."""
    loudest = HEARD | changes
    return Rows(
        {
            "kind": "leakage",
            "variant": v,
            "seed": s,
            "sigma": 0.1 * 2**i,
            "own": 0.9,
            "leakage": e * share * (1 + 0.1 * (s == 2)),
        }
        for v, e in loudest.items()
        for s in range(3)
        for i, share in enumerate((0.2, 1.0, -0.5))
    )


def test_the_echo_is_judged_where_it_is_largest_and_in_every_seed():
    claim = STUDY.claims[1]
    assert claim.judge(heard()).holds is True
    assert claim.judge(heard()).measured["empty, leakage"] == pytest.approx(0.13 * 3.1 / 3)
    for some in ({"unconditional": -0.1}, {"cluttered": -0.08}, {"swapped": 0.12}, {"empty": 0.04, "cluttered": 0.01}):
        assert claim.judge(heard(**some)).holds == "partly"
    assert claim.judge(heard(cluttered=0.2)).holds is False
    assert judge(claim, Rows(heard().where(variant="empty")), "full", 3, {}).word == "not measured"


@pytest.mark.parametrize(
    "wrong", ["clutter=[0,1]", "clutter=[1]", "dropout=0", "recipe.layout_encoder.labelled=one", "recipe.layout_encoder=null"]
)
def test_nonsense_settings_get_one_clear_line(wrong):
    with pytest.raises(UsageError) as error:
        override(Operator(), wrong)
    assert "\n" not in str(error.value)


def test_the_programs_in_the_docs_work_as_printed(capsys):
    page = (Path(__file__).parents[1] / "docs" / "operator.md").read_text()
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)
    assert names["images"].shape == (1, 3, 32, 32)
    printed = [[float(v) for v in line.split()] for line in capsys.readouterr().out.splitlines()]
    assert len(printed) == 3
    for _, own, others, unconditional, leakage, four in printed:
        assert own == others == unconditional == four, "what is untrained does not listen"
        assert leakage == 0


@pytest.mark.parametrize("scale", SCALES)
def test_the_detector_is_the_one_of_length_and_knows_more_objects_than_are_asked_for(scale):
    own, other = settings(scale).recipe, scenes(scale).recipe
    assert digest(own.detector.config(own.crowd)) == digest(other.detector.config(other.crowd))
    assert scale != "full" or max(own.crowd.counts) > own.evaluation.most
