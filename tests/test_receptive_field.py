"""The study `reach`: what fits into a patch, what differs between its variants, how its rows are judged."""

from dataclasses import replace

import pytest
import torch
from tiny import QUIET

from recombine.config import UsageError, digest, from_json, override, to_json
from recombine.evaluate.patch_fit import fits, hearing, overfull
from recombine.rng import seeded
from recombine.studies import find
from recombine.studies.base import Rows, judge
from recombine.studies.lab import Lab, run_study
from recombine.studies.scenes import reach, reach_figures
from recombine.studies.scenes import settings as scenes
from recombine.worlds.layout import Layout
from recombine.worlds.scenes.scenes import Scenes

PLAIN = Scenes(size=32, counts=(1, 2, 3), samples=1, shadows=False, reflections=False)


def test_the_pixels_that_hear_of_a_place_are_those_whose_patch_holds_it():
    heard = hearing(Layout.of(torch.tensor([[[0.1, 0.6]]])), cells=4, reach=1, size=8)
    assert heard.shape == (1, 1, 8, 8)
    assert heard[0, 0, 2:, :4].all(), "rows of cells 1 to 3, columns 0 and 1"
    assert int(heard.sum()) == 6 * 4


def test_whatever_the_world_shows_fits_into_a_patch_as_large_as_the_picture_and_less_fits_into_less():
    scene = PLAIN.place(torch.tensor([3] * 6), seeded("fit"))
    none, some, more, all_of_it = fits(PLAIN, scene, 16, (0, 1, 3, 15))
    assert none.inside < some.inside < more.inside <= all_of_it.inside == all_of_it.own == all_of_it.touched == 1
    assert none.own < some.own < more.own
    assert all(found.inside <= found.own for found in (none, some, more))


def test_a_shadow_reaches_further_than_its_object_and_without_it_an_object_changes_its_own_pixels_alone():
    scene = PLAIN.place(torch.tensor([1] * 4), seeded("fit"))
    plain, shady = (fits(world, scene, 16, (1,))[0] for world in (PLAIN, replace(PLAIN, shadows=True)))
    assert plain.touched == plain.own == shady.own > shady.touched


def test_patches_are_overfull_when_they_hold_more_marks_than_training_had():
    four = Layout.of(torch.tensor([[[0.1, 0.1], [0.2, 0.1], [0.1, 0.2], [0.9, 0.9]]]))
    assert overfull(four, 16, 15, 3) == 1.0
    assert overfull(four, 16, 15, 4) == 0.0
    assert overfull(four, 4, 0, 2) == pytest.approx(1 / 2), "the cell with three, of two that hold any"


@pytest.mark.parametrize("scale", ["smoke", "laptop", "full"])
def test_variants_differ_in_their_reach_alone_and_one_is_that_of_length(scale):
    chosen = reach.settings(scale)
    assert from_json(to_json(chosen)) == chosen
    made = chosen.variants()
    assert [r.net.reach for r in made.values()] == list(chosen.reaches) * len(chosen.bases)
    for recipe in made.values():
        recipe.check()
    for base in chosen.bases:
        first, *others = (r for name, r in made.items() if name.startswith(base))
        assert all(replace(r, net=replace(r.net, reach=first.net.reach)) == first for r in others)
        length = replace(scenes.settings(scale), experiments=(base,)).variants()[base]
        assert (digest(length) in {digest(r) for r in made.values()}) == (scale != "laptop"), "its run is used again"


def test_two_runs_of_exp_2l_are_those_of_length_and_training_told_of_one_object():
    chosen, length = reach.settings("full"), scenes.settings("full").variants()
    made = chosen.variants()
    assert made["exp2L, reach 2"] == length["exp2L"]
    assert made["exp2L, reach 8"] == length["exp2L, whole"]
    assert [reach.told(made[f"exp{i}L, reach 2"]) for i in (2, 3)] == [1, 3]


@pytest.mark.parametrize(
    "wrong", ["reaches=[1,2]", "reaches=[2,1,3]", "reaches=[1,2,16]", "bases=[]", 'bases=["exp1"]']
)
def test_wrong_reaches_are_one_line(wrong):
    with pytest.raises(UsageError) as told:
        override(reach.settings("smoke"), wrong)
    assert wrong[:4] in str(told.value)
    assert "\n" not in str(told.value)


Lengths = dict[int, tuple[int, ...]]


def made_up(lengths: Lengths, inside: dict[int, float], full: float = 0.0, base: str = "exp3L", most: int = 9) -> Rows:
    """Rows in which every reach gets so far in each seed, by a detector that may judge. `full`: by how much each further cell
    adds to the share of patches too full. Beyond its length a network recall no location."""
    rows = [{"kind": "detector", "objects": k, "exact": 1.0} for k in range(most + 1)]
    rows += [{"kind": "real", "locations": k, "right": 1.0, "complete": 1.0} for k in range(1, most + 1)]
    for r, seeds in lengths.items():
        same = {"variant": reach.name(base, r), "base": base, "reach": r}
        rows.append({"kind": "variant", "variant": same["variant"], "trained": 3, "strict": int(base == "exp3L")})
        rows.append({"kind": "fit", **same, "told": 3, "inside": inside[r], "own": 1.0, "touched": 1.0})
        rows += [{"kind": "overfull", **same, "locations": k, "share": full * r} for k in range(1, most + 1)]
        for seed, far in enumerate(seeds):
            for k in range(1, most + 1):
                good, recall = float(k <= far), min(1.0, far / k)
                told = {"variant": same["variant"], "seed": seed, "step": 9, "run": "none", "locations": k, "n": 4}
                rows.append({"kind": "count", **told, "right": good, "complete": good, "recall": recall, "total": float(k)})
    return Rows(rows)


INSIDE = {1: 0.5, 3: 1.0, 8: 1.0}
CASES = {
    "rises and falls": ({1: (2, 3), 3: (7, 8), 8: (3, 4)}, INSIDE, True),
    "does not fall": ({1: (2, 3), 3: (7, 8), 8: (8, 8)}, INSIDE, False),
    "does not rise": ({1: (7, 7), 3: (7, 7), 8: (3, 4)}, INSIDE, False),
    "at another reach in each seed": (
        {1: (2, 3), 2: (8, 4), 3: (4, 8), 8: (3, 4)},
        INSIDE | {2: 1.0},
        "partly",
    ),
    "in the mean only": ({1: (2, 3), 3: (8, 4), 8: (3, 3)}, INSIDE, "partly"),
    "at a reach into which objects do not fit": ({1: (2, 3), 3: (7, 8), 8: (3, 4)}, INSIDE | {3: 0.9}, "partly"),
}


@pytest.mark.parametrize("case", CASES)
def test_there_is_a_best_reach_if_both_ends_fall_short_of_it_in_every_seed(case):
    lengths, inside, holds = CASES[case]
    assert reach.judge_reach(made_up(lengths, inside)).holds == holds


FALLS = {1: (8, 8), 2: (7, 7), 3: (5, 6), 4: (3, 4)}
EVERY = dict.fromkeys(FALLS, 1.0)


def both(told_all: Lengths, told_one: Lengths) -> Rows:
    """Exp 2L's patches are too full from the start."""
    rest = (r for r in made_up(told_one, EVERY, 0.2, "exp2L") if r["kind"] not in ("detector", "real"))
    return Rows([*made_up(told_all, EVERY, 0.01), *rest])


@pytest.mark.parametrize(
    ("told_all", "told_one", "holds"),
    [
        ({r: (9, 9) for r in FALLS} | {4: (8, 8)}, FALLS, True),
        (FALLS, {r: (9 - r, 9) for r in FALLS}, False),
        ({r: (9, 9) for r in FALLS} | {4: (8, 8)}, {1: (8, 6), 2: (7, 9), 3: (5, 9), 4: (3, 8)}, "partly"),
    ],
)
def test_misses_go_with_full_patches_in_every_seed_or_partly(told_all, told_one, holds):
    found = reach.judge_full(both(told_all, told_one))
    assert found.holds == holds
    assert found.measured["exp2L, reach 4: patches too full"] == pytest.approx(0.8)
    assert found.measured["exp2L, reach 4: missed"] == pytest.approx(sum(1 - k / 9 for k in told_one[4]) / 2)


def test_what_cannot_be_compared_is_not_judged():
    rows = made_up({1: (2, 3), 3: (7, 8), 8: (3,)}, INSIDE)
    assert "some runs are missing" in judge(find("reach").claims[0], rows, "full", 3, {}).note
    blind = Rows({**r, "exact": 0.5} if r["kind"] == "detector" else r for r in rows)
    assert "may not judge" in judge(find("reach").claims[0], blind, "full", 3, {}).note
    law = find("reach").claims[1]
    assert "of both experiments" in judge(law, rows, "full", 3, {}).note
    assert "some runs are missing" in judge(law, both(FALLS, FALLS | {4: (3,)}), "full", 3, {}).note
    alike = dict.fromkeys(FALLS, (9, 9))
    assert "the same" in judge(law, both(alike, alike), "full", 3, {}).note


def test_the_study_runs_and_draws_its_figures(tmp_path):
    short = ("scenes.recipe.train.steps=2", "scenes.recipe.detector.steps=2", 'bases=["exp2L"]')
    chosen = override(reach.settings("smoke"), *short)
    folder = run_study(find("reach"), chosen, Lab(QUIET, tmp_path, "smoke", 1))
    assert {p.stem for p in (folder / "figures").glob("*.png")} == {"reach", "samples"}


def test_figures_are_drawn_from_any_number_of_seeds(tmp_path):
    rows = both({1: (2, 3), 2: (7, 8), 3: (7, 7), 4: (3, 4)}, FALLS)
    assert [f.name for f in reach_figures.draw(rows, tmp_path / "out" / "reach" / "figures")] == ["reach"]
