"""What ships under results/ is what the code makes of its rows, and every run folder is named by its config."""

import json
from pathlib import Path

import pytest

from recombine.store import read_config, read_json, read_rows
from recombine.studies import find
from recombine.studies.base import Rows, judge

RESULTS = Path(__file__).parents[1] / "results"
STUDIES = sorted(p.parent for p in RESULTS.glob("*/study.json"))
RUNS = sorted(p.parent for p in RESULTS.glob("runs/*/config.json"))


@pytest.mark.parametrize("folder", STUDIES, ids=lambda p: p.name)
def test_every_verdict_follows_from_the_rows_beside_it(folder):
    rows, facts = Rows(read_rows(folder / "rows.jsonl")), read_json(folder / "study.json")
    made = [judge(c, rows, facts["scale"], len(facts["seeds"]), {}).json(folder.name) for c in find(folder.name).claims]
    keep = ("id", "statement", "expected", "measured", "interval", "verdict", "scale", "seeds")
    shipped = read_json(folder / "claims.json")
    assert [{k: c[k] for k in keep} for c in shipped] == json.loads(json.dumps([{k: c[k] for k in keep} for c in made]))


@pytest.mark.parametrize("folder", RUNS, ids=lambda p: p.name)
def test_every_run_folder_is_named_by_its_config(folder):
    read_config(folder)


def test_every_run_that_a_study_names_is_there():
    named = {r["digest"] for p in STUDIES for r in read_json(p / "study.json")["runs"]}
    assert named <= {p.name for p in RUNS}
