"""What ships under results/ is what the code makes of its rows, and every run folder is named by its config."""

import json
import re
from pathlib import Path

import pytest

from recombine.store import read_config, read_json, read_rows
from recombine.studies import find
from recombine.studies.base import Rows, judge
from recombine.studies.levels import best, curve, late, over_seeds

RESULTS = Path(__file__).parents[1] / "results"
STUDIES = sorted(p.parent for p in RESULTS.glob("*/study.json"))
RUNS = sorted(p.parent for p in RESULTS.glob("runs/*/config.json"))
SECOND = RESULTS / "second-tokenizer"


@pytest.mark.parametrize("folder", STUDIES, ids=lambda p: p.name)
def test_every_verdict_follows_from_the_rows_beside_it(folder):
    rows, facts = Rows(read_rows(folder / "rows.jsonl")), read_json(folder / "study.json")
    made = [judge(c, rows, facts["scale"], len(facts["seeds"]), {}).json(folder.name) for c in find(folder.name).claims]
    keep = ("id", "statement", "expected", "measured", "interval", "verdict", "said", "note", "scale", "seeds")
    shipped = read_json(folder / "claims.json")
    assert [{k: c[k] for k in keep} for c in shipped] == json.loads(json.dumps([{k: c[k] for k in keep} for c in made]))


@pytest.mark.parametrize("folder", [*RUNS, *sorted((SECOND / "runs").iterdir())], ids=lambda p: p.name)
def test_every_run_folder_is_named_by_its_config(folder):
    read_config(folder)


def test_every_run_that_a_study_names_is_there():
    named = {r["digest"] for p in STUDIES for r in read_json(p / "study.json")["runs"]}
    assert named <= {p.name for p in RUNS}


def second(variant: str) -> Rows:
    """The runs that results/second-tokenizer lists for a variant, seed by seed."""
    line = next(x for x in (SECOND / "README.md").read_text().splitlines() if x.startswith(f"| {variant} |"))
    each = enumerate(re.findall(r"`(\w+)`", line))
    return Rows(
        r | {"variant": variant, "seed": i} for i, d in each for r in read_rows(SECOND / "runs" / d / "metrics.jsonl")
    )


QUOTED = {
    ("maskgit", 1, "wary"): (0.73, 0.71, 0.97),
    ("maskgit", 2, "wary"): (0.0, 0.0, 0.52),
    ("maskgit", 2, "linear"): (0.99, 0.24, 0.99),
    ("jepa", 2, "wary"): (0.07, 0.01, 0.0),
    ("jepa, one layer", 2, "wary"): (0.06, 0.0, 0.0),
    ("dit on vae", 2, "wary"): (1.0, 1.0, 1.0),
    ("dit on vae", 2, "read"): (0.83, 0.96, 1.0),
}


@pytest.mark.parametrize(("variant", "level", "probe"), QUOTED)
def test_numbers_quoted_of_the_second_tokenizer_are_those_of_its_rows(variant, level, probe):
    found = over_seeds(second(variant), variant, level, late, probe).values
    assert found == pytest.approx(QUOTED[variant, level, probe], abs=0.0051)


def test_the_auxiliary_loss_rises_early_as_quoted():
    rows = second("jepa")
    assert over_seeds(rows, "jepa", 2, best).mean == pytest.approx(0.31, abs=0.0051)
    for seed in range(3):
        joint = {step: value for step, value in curve(rows, "jepa", seed, 2)}
        assert 473 <= max(joint, key=joint.get) <= 740
