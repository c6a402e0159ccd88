"""scripts/borrow.py: rows of runs that two studies share are taken from the one for the other."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from recombine.analysis.table import Table, read_table, write_table
from recombine.config import from_json, to_json
from recombine.pipeline.job import digest_of
from recombine.runs.models import ModelRun
from recombine.store import read_json, write_json
from recombine.studies import label_dropout, labels

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
from borrow import borrow


def results(folder, study, settings, rows, runs):
    """A folder of results as far as it is read here."""
    folder.mkdir()
    facts = {"name": study, "scale": "smoke", "settings": to_json(settings), "seeds": [0, 1]}
    facts |= {"runs": runs, "sheets": [], "provenance": {"trained": "abc", "runs": []}}
    write_json(folder / "study.json", facts)
    write_table(folder / "rows.parquet", Table(rows))
    return folder


def test_what_a_study_lacks_comes_from_the_runs_of_another(tmp_path):
    ours = replace(labels.settings("smoke"), variants=("values", "classes, dropout"))
    lacking = results(tmp_path / "labels", "labels", ours, [{"kind": "accuracy", "run": "x"}], [])
    theirs = label_dropout.settings("smoke")
    runs, rows = [], []
    for name, seed in (("dit", 0), ("dit", 1), ("dit, dropout", 0), ("maskgit", 0)):
        task = ModelRun(theirs.recipes()[name].with_seed(seed))
        about = {"variant": name, "seed": seed}
        runs.append({"digest": digest_of(task), "label": f"{name}, seed {seed}", **about})
        rows.append({"kind": "accuracy", "joint": 0.5 + seed, "run": digest_of(task), **about})
    holding = results(tmp_path / "held", "label-dropout", theirs, rows, runs)
    made = borrow(lacking, holding, tmp_path / "elsewhere")
    assert made == tmp_path / "elsewhere" / "labels"
    taken = [(r["variant"], r["seed"], r["joint"]) for r in read_table(made / "rows.parquet")]
    assert taken == [("classes", 0, 0.5), ("classes", 1, 1.5)], "dropout is there already"
    facts = read_json(made / "study.json")
    assert from_json(facts["settings"]).variants == ("classes",)
    assert [r["label"] for r in facts["runs"]] == ["classes, seed 0", "classes, seed 1"]
    assert facts["provenance"] == {"trained": "abc", "runs": [r["digest"] for r in runs[:2]]}
    alone = results(tmp_path / "alone", "label-dropout", theirs, rows[3:], runs[3:])
    with pytest.raises(SystemExit, match="holds no run that"):
        borrow(lacking, alone, tmp_path / "nowhere")
