"""The study `receptive-field`: what fits into a patch, what differs between variants, its
claims."""

import math
from dataclasses import replace

import pytest
import torch
from figure_reader import drawn
from level_rows import regions
from scene_rows import carried_out, detector_rows, note, verdict

from recombine.analysis.receptive_field import many, missed
from recombine.analysis.table import Table, read_table
from recombine.config import UsageError, from_json, to_json
from recombine.metrics.patch_fit import conditioned, fits, overfull
from recombine.overrides import override
from recombine.pipeline.job import digest_of
from recombine.rng import seeded
from recombine.runs.scenes import SceneRun
from recombine.studies import scene_settings
from recombine.studies.receptive_field import STUDY, name, settings
from recombine.worlds.layout import Layout
from recombine.worlds.scenes.scenes import Scenes

PLAIN = Scenes(size=32, counts=(1, 2, 3), samples=1, shadows=False, reflections=False)
BEST, FULL = STUDY.claims


def test_the_pixels_conditioned_on_a_location_are_those_whose_patch_holds_it():
    reached = conditioned(Layout.of(torch.tensor([[[0.1, 0.6]]])), cells=4, reach=1, size=8)
    assert reached.shape == (1, 1, 8, 8)
    assert reached[0, 0, 2:, :4].all(), "rows of cells 1 to 3, columns 0 and 1"
    assert int(reached.sum()) == 6 * 4


def test_less_fits_into_less_and_everything_into_a_patch_as_large_as_the_picture():
    scene = PLAIN.place(torch.tensor([3] * 6), seeded("fit"))
    none, some, more, whole = fits(PLAIN, scene, 16, (0, 1, 3, 15))
    assert none.inside < some.inside < more.inside <= whole.inside
    assert whole.inside == whole.own == whole.touched == 1
    assert none.own < some.own < more.own
    assert all(fit.inside <= fit.own for fit in (none, some, more))


def test_a_shadow_reaches_further_than_its_object():
    scene = PLAIN.place(torch.tensor([1] * 4), seeded("fit"))
    shady = replace(PLAIN, shadows=True)
    plain, shadow = (fits(world, scene, 16, (1,))[0] for world in (PLAIN, shady))
    assert plain.touched == plain.own == shadow.own > shadow.touched


def test_patches_are_overfull_when_they_hold_more_locations_than_training_had():
    four = Layout.of(torch.tensor([[[0.1, 0.1], [0.2, 0.1], [0.1, 0.2], [0.9, 0.9]]]))
    assert overfull(four, 16, 15, 3) == 1.0
    assert overfull(four, 16, 15, 4) == 0.0
    assert overfull(four, 4, 0, 2) == pytest.approx(1 / 2), "the cell with three, of two"


@pytest.mark.parametrize("scale", ["smoke", "laptop", "full"])
def test_variants_differ_in_their_reach_alone_and_one_is_that_of_length(scale):
    chosen = settings(scale)
    assert from_json(to_json(chosen)) == chosen
    made = chosen.variants()
    assert [r.net.reach for r in made.values()] == list(chosen.reaches) * len(chosen.bases)
    for recipe in made.values():
        recipe.check()
    digests = {digest_of(SceneRun(r)) for r in made.values()}
    for base in chosen.bases:
        every = [r for v, r in made.items() if v.startswith(f"{base}, reach")]
        alike = [r for r in every if "patches" not in base or r.net.reach < chosen.scenes.control]
        assert all(replace(r, net=alike[0].net) == alike[0] for r in alike)
        length = replace(scene_settings.settings(scale), experiments=(base,)).variants()[base]
        assert (digest_of(SceneRun(length)) in digests) == (scale != "laptop"), "used again"


def test_two_runs_of_exp_2l_are_those_of_length_which_is_conditioned_on_one_object():
    made, length = settings("full").variants(), scene_settings.settings("full").variants()
    assert made["exp2L, reach 2"] == length["exp2L"]
    assert made["exp2L, reach 8"] == length["exp2L, whole"]
    assert [made[f"exp{i}L, reach 2"].given for i in (2, 3)] == [1, 3]
    assert made["exp2L, patches, reach 8"] == length["exp2L, patches, whole"]
    assert made["exp3L, patches, reach 2"] == length["exp3L, patches"]


WRONG = ["reaches=[1,2]", "reaches=[2,1,3]", "reaches=[1,2,16]", "bases=[]", 'bases=["exp1"]']


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_reaches_are_one_line(wrong):
    with pytest.raises(UsageError) as error:
        override(settings("smoke"), wrong)
    assert wrong[:4] in str(error.value)
    assert "\n" not in str(error.value)


Lengths = dict[int, tuple[int, ...]]


def made_up(lengths: Lengths, inside: dict, full: float = 0.0, base: str = "exp3L") -> list[dict]:
    """Rows in which every reach gets so far in each seed. `full`: by how much each further cell
    adds to the share of patches too full. Beyond its length a network locates no more."""
    rows, numbers = [], range(1, 10)
    for r, seeds in lengths.items():
        variant = name(base, r)
        same = {"variant": variant, "base": base, "reach": r}
        about = {"variant": variant, "trained": 3, "strict": int(base == "exp3L")}
        rows += [{"kind": "variant", **about}, {"kind": "fit", **same, "inside": inside[r]}]
        rows += [{"kind": "overfull", **same, "locations": k, "share": full * r} for k in numbers]
        for seed, far in enumerate(seeds):
            run = {"variant": variant, "seed": seed, "step": 9, "run": "none", "n": 4}
            for k in numbers:
                good = dict.fromkeys(("exact_match", "full_recall"), float(k <= far))
                row = {"kind": "count", **run, "locations": k, **good, "total": float(k)}
                rows.append(row | {"recall": min(1.0, far / k)})
    return rows


def table(*parts: list[dict], exact: dict | None = None) -> Table:
    return Table([*detector_rows(exact or {}, 9), *(row for part in parts for row in part)])


INSIDE = {1: 0.5, 3: 1.0, 8: 1.0}
CASES = {
    "rises and falls": ({1: (2, 3, 2), 3: (8, 9, 8), 8: (3, 4, 3)}, "supported"),
    "does not fall": ({1: (2, 3, 2), 3: (7, 8, 7), 8: (8, 8, 8)}, "contradicted"),
    "does not rise": ({1: (7, 7, 7), 3: (7, 7, 7), 8: (3, 4, 3)}, "contradicted"),
    "in the mean only": ({1: (2, 3, 2), 3: (8, 3, 8), 8: (3, 3, 3)}, "inconclusive"),
}


@pytest.mark.parametrize("case", CASES)
def test_there_is_a_best_reach_if_both_ends_fall_short_of_it(case):
    lengths, word = CASES[case]
    assert verdict(BEST, table(made_up(lengths, INSIDE))) == word


def test_every_experiment_has_a_best_reach_of_its_own():
    one = made_up({1: (2, 3, 2), 2: (9, 9, 9), 3: (8, 8, 8), 8: (3, 4, 3)}, EVERY | {8: 1.0})
    other = made_up(CASES["does not fall"][0], INSIDE, base="exp2L")
    found = BEST.measure(table(one, other))
    assert [part.name.partition(",")[0] for part in found.parts] == ["exp3L", "exp2L"]
    assert [found.measured[f"{base}, best reach"] for base in ("exp3L", "exp2L")] == [2, 3]
    assert verdict(BEST, table(one, other)) == "partly supported"


FALLS = {1: (8, 8, 8), 2: (7, 7, 7), 3: (5, 6, 5), 4: (3, 4, 3)}
FLAT = {r: (9, 9, 9) for r in FALLS} | {4: (8, 8, 8)}
EVERY = dict.fromkeys(FALLS, 1.0)


def both(on_all: Lengths, on_one: Lengths) -> Table:
    """Exp 2L's patches are too full from the start."""
    return table(made_up(on_all, EVERY, 0.01), made_up(on_one, EVERY, 0.2, "exp2L"))


@pytest.mark.parametrize(
    ("on_all", "on_one", "word"),
    [
        (FLAT, FALLS, "supported"),
        (FALLS, {r: (9 - r, 9, 9) for r in FALLS}, "inconclusive"),
        (FALLS, dict(zip(FALLS, reversed(FALLS.values()), strict=True)), "contradicted"),
    ],
)
def test_misses_correlate_with_full_patches(on_all, on_one, word):
    rows = both(on_all, on_one)
    assert verdict(FULL, rows) == word
    shown = FULL.measure(rows).measured
    assert shown["exp2L, reach 4: patches too full"] == pytest.approx(0.8)
    missed = sum(1 - k / 9 for k in on_one[4]) / 3
    assert shown["exp2L, reach 4: missed"] == pytest.approx(missed)


def test_what_cannot_be_compared_is_not_measured():
    rows = made_up({1: (2, 3), 3: (7, 8), 8: (3,)}, INSIDE)
    assert "some runs are missing" in note(BEST, table(rows))
    assert "not reliable" in note(BEST, table(rows, exact={3: 0.5}))
    assert "of two experiments or forms" in note(FULL, table(rows))
    assert "some runs are missing" in note(FULL, both(FALLS, FALLS | {4: (3,)}))
    alike = dict.fromkeys(FALLS, (9, 9))
    assert "the same" in note(FULL, both(alike, alike))


@pytest.mark.slow
def test_the_study_runs_and_plots_its_figures(tmp_path):
    few = ("scenes.recipe.train.steps=2", "scenes.recipe.detector.steps=2", 'bases=["exp2L"]')
    folder = carried_out(STUDY, override(settings("smoke"), *few), tmp_path)
    assert {p.stem for p in (folder / "figures").glob("*.svg")} == {"reach", "samples"}
    fit = read_table(folder / "rows.parquet").where(kind="fit")
    assert fit.column("reach") == [0, 2, 4]
    assert fit.column("given") == [1, 1, 1]


def test_figures_are_plotted_from_any_number_of_seeds():
    rows = both({1: (2, 3), 2: (7, 8), 3: (7, 7), 4: (3, 4)}, FALLS)
    assert list(drawn(STUDY.figures, rows)) == ["reach"]


def test_patches_that_were_prompted_for_fewer_are_shown_and_not_compared_at_many():
    literal = made_up({1: (8, 8), 8: (1, 1)}, {1: 0.9, 8: 1.0}, 0.1, "exp2L, patches")
    fewer = [r for r in literal if r.get("reach") or r["kind"] == "variant" or r["locations"] <= 5
             or "reach 8" not in r["variant"]]  # fmt: skip
    rows = table(made_up(FALLS, EVERY, 0.1), fewer)
    assert name("exp2L, patches", 1) in missed(rows)
    assert name("exp2L, patches", 8) not in missed(rows)
    assert list(drawn(STUDY.figures, rows)) == ["reach"]


def test_regions_and_numbers_of_rows_made_by_hand():
    best = BEST.measure(table(made_up(CASES["rises and falls"][0], INSIDE)))
    (lead,) = best.parts
    assert (lead.name, lead.low, lead.high, lead.needed) == (
        "exp3L, K_max of the best reach less the better end", 2.0, math.inf, False,
    )  # fmt: skip
    assert lead.estimate.values == (5.0, 5.0, 5.0)
    thirds = {"exp3L, reach 1": 7 / 3, "exp3L, reach 3": 25 / 3, "exp3L, reach 8": 10 / 3}
    shown = thirds | {f"{k}, by means": v for k, v in thirds.items()}
    shown |= {f"exp3L, reach {r}, objects that fit": x for r, x in INSIDE.items()}
    assert best.measured == pytest.approx(shown | {"exp3L, best reach": 3})
    full = FULL.measure(both(FLAT, FALLS))
    assert regions(full) == [("rank correlation of misses and full patches", 0.8, 1.0, False)]
    assert (full.measured["networks"], full.measured["locations"]) == (8, 9)


def test_two_reaches_are_too_few():
    few = table(made_up({1: (2, 3), 3: (7, 8)}, INSIDE))
    assert note(BEST, few) == "exp3L: three reaches or more are needed"
    seven = table(
        made_up(FALLS, EVERY, 0.01), made_up({1: (8,), 2: (7,), 3: (5,)}, EVERY, 0.2, "exp2L")
    )
    assert note(FULL, seven) == "8 networks or more are needed, of two experiments or forms"


def test_misses_are_compared_at_nine_locations_or_as_many_as_were_tried():
    rows = [{"kind": "count", "locations": k} for k in (1, 5, 8, 12)]
    assert many(Table(rows)) == 8
    assert many(Table([*rows, {"kind": "count", "locations": 9}])) == 9
