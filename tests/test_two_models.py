"""The tour's contrast: two worlds that differ in jitter alone, tested on seeds that were not used to
choose it."""

from dataclasses import replace

from recombine.runs.models import ModelRun
from recombine.studies.two_models import STUDY, UNUSED, WITH, WITHOUT


def recipes(scale, seeds):
    jobs = STUDY.jobs(STUDY.settings(scale), seeds)
    return {job.labels: job.task.recipe for job in jobs if isinstance(job.task, ModelRun)}


def test_the_models_differ_in_jitter_alone():
    made = {dict(labels)["variant"]: recipe for labels, recipe in recipes("laptop", 1).items()}
    with_, without = made[WITH], made[WITHOUT]
    assert with_ != without
    assert replace(with_, world=without.world) == without
    assert without.world.color_jitter == without.world.size_jitter == 0


def test_full_scale_is_the_same_recipe_on_seeds_that_had_no_part_in_the_choice():
    full, laptop = recipes("full", 5), recipes("laptop", 5)
    chosen = {recipe.seed for recipe in laptop.values()}
    fresh = {recipe.seed for recipe in full.values()}
    assert fresh == set(range(UNUSED, UNUSED + 5))
    assert not fresh & chosen
    assert {replace(r, seed=0) for r in full.values()} == {
        replace(r, seed=0) for r in laptop.values()
    }
