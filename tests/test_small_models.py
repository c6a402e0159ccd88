"""The study `small-models`: what is compared with what, and how it is assessed."""

from dataclasses import replace

import pytest
from level_rows import accuracy_rows, verdict

from recombine.config import UsageError
from recombine.objectives.masked import Masked
from recombine.studies import repair, small_models
from recombine.studies.small_models import STUDY

PAPER = ("paper 0", "paper 1", "oracle")
ORDER = {"maskgit": 0.05, "givt": 0.5, "mar": 0.6, "dit": 0.8}
REPAIRED = {"maskgit, averaged": 0.05, "jepa, averaged": 0.6}


def rows_of(heights: dict, spread: float = 0.5) -> list:
    rows = accuracy_rows(heights, probes=PAPER, seen=0.8)
    about = {
        "kind": "auxiliary loss",
        "variant": "jepa, averaged",
        "seed": 0,
        "step": 1,
        "layer": 1,
    }
    return [*rows, about | {"error": 0.5, "spread": spread, "output_loss": 1.0}]


def test_families_differ_in_objective_network_and_how_labels_enter_alone():
    recipes = small_models.settings("full").recipes()
    for family in ("givt", "mar", "dit"):
        one, other = recipes["maskgit"], recipes[family]
        assert other.train == one.train
        assert other.tokenizer == one.tokenizer
        assert (other.world, other.split, other.pool) == (one.world, one.split, one.pool)
        assert other.net.transformer.depth == one.net.transformer.depth
        assert other.net.transformer.width == one.net.transformer.width


def test_the_auxiliary_loss_is_all_that_differs_between_averaged_models():
    recipes = small_models.settings("full").recipes()
    plain, repaired = recipes["maskgit, averaged"], recipes["jepa, averaged"]
    assert isinstance(repaired.objective, Masked)
    assert repaired.objective.jepa is not None
    without = replace(repaired, objective=replace(repaired.objective, jepa=None))
    assert without == plain


def test_models_with_averaged_weights_are_those_of_repair_at_laptop_scale():
    shared = repair.settings("laptop").recipes()
    mine = small_models.settings("full").recipes()
    assert mine["jepa, averaged"] == shared["jepa, all labels, lr 1e-3"]
    assert mine["maskgit, averaged"] == shared["maskgit, all labels, lr 1e-3"]


def test_at_full_scale_seeds_are_counted_from_the_first_that_was_not_looked_at():
    jobs = small_models.jobs(small_models.settings("full"), 2)
    assert {dict(job.labels)["seed"] for job in jobs if "seed" in dict(job.labels)} == {5, 6}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "supported"),
        ({"mar": 0.02}, "partly supported"),
        ({"dit": 0.05, "mar": 0.05, "givt": 0.05}, "inconclusive"),
    ],
)
def test_every_family_must_lead_maskgit(changed, said):
    assert verdict(STUDY, "G25", rows_of(ORDER | changed)) == said


def test_the_auxiliary_loss_must_raise_level_two_and_must_not_have_collapsed():
    assert verdict(STUDY, "G26", rows_of(REPAIRED)) == "supported"
    assert verdict(STUDY, "G26", rows_of(REPAIRED | {"jepa, averaged": 0.06})) == "inconclusive"
    assert verdict(STUDY, "G26", rows_of(REPAIRED, spread=0.001)) == "not measured"


def test_only_seeds_from_ten_on_say_whether_small_models_differ():
    def late(heights: dict, probes: tuple) -> list:
        rows = accuracy_rows(heights, probes=probes, seen=0.8)
        return [row | {"seed": row["seed"] + 10} for row in rows]

    high = {"maskgit": 0.3, "mar": 0.7, "dit": 0.8}
    known = accuracy_rows(high, probes=(*PAPER, "open-set"), seen=0.8)
    assert verdict(STUDY, "G29", known) == "not measured"
    for by_open_set, said in (
        (high, "supported"),
        (high | {"mar": 0.1}, "partly supported"),
        (high | {"dit": 0.1}, "partly supported"),
    ):
        fresh = [*late(high, PAPER), *late(by_open_set, ("open-set",))]
        assert verdict(STUDY, "G29", [*known, *fresh]) == said
    alike = late(dict.fromkeys(high, 0.5), (*PAPER, "open-set"))
    assert verdict(STUDY, "G29", [*known, *alike]) == "inconclusive"


def test_variants_can_be_chosen_and_misspelled_ones_are_refused():
    full = small_models.settings("full")
    assert list(replace(full, variants=("dit",)).recipes()) == ["dit"]
    with pytest.raises(UsageError, match="'dut' is none of maskgit; givt"):
        replace(full, variants=("dut",)).recipes()


def test_labels_enter_one_model_as_they_enter_another_and_it_is_else_the_same():
    recipes = small_models.settings("full").recipes()
    for changed, usual, alike in (
        ("maskgit, adaln", "maskgit", "dit"),
        ("dit, tokens", "dit", "maskgit"),
    ):
        assert recipes[changed].conditioning == recipes[alike].conditioning
        again = replace(recipes[changed], conditioning=recipes[usual].conditioning)
        assert again == recipes[usual]


@pytest.mark.parametrize(
    ("claim", "low", "high"), [("G31", "maskgit, adaln", "dit"), ("G34", "maskgit", "dit, tokens")]
)
@pytest.mark.parametrize(("height", "said"), [(0.4, "supported"), (0.8, "inconclusive")])
def test_whether_dit_leads_where_labels_enter_alike(claim, low, high, height, said):
    heights = {"maskgit": 0.6, "maskgit, adaln": 0.6, "dit": 0.6, "dit, tokens": 0.6}
    rows = accuracy_rows(heights | {low: height, high: 0.8}, probes=(*PAPER, "open-set"), seen=0.8)
    assert verdict(STUDY, claim, rows) == "not measured"
    assert verdict(STUDY, claim, [row | {"seed": row["seed"] + 10} for row in rows]) == said
