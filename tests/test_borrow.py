"""scripts/borrow.py: runs that two studies share are put back from the one's results for the other."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from recombine.analysis.table import Table, write_table
from recombine.pipeline.job import digest_of
from recombine.runs.models import ModelRun
from recombine.store import RunFolder, write_json
from recombine.studies import label_dropout, labels

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
from borrow import borrow

SHEET = np.full((4, 6, 3), 200, dtype=np.uint8)


def model(name, seed):
    """A run of `label-dropout`, as its results list it."""
    task = ModelRun(label_dropout.settings("smoke").recipes()[name].with_seed(seed))
    entry = {"digest": digest_of(task), "label": f"{name}, seed {seed}", "noun": "model"}
    return entry | {"variant": name, "seed": seed}


@pytest.fixture
def holding(tmp_path):
    """A folder of results as far as it is read here."""
    runs = [model(*one) for one in (("dit", 0), ("dit", 1), ("dit, dropout", 0), ("maskgit", 0))]
    folder = tmp_path / "label-dropout"
    (folder / "samples").mkdir(parents=True)
    Image.fromarray(SHEET).save(folder / "samples" / "sheet.webp", lossless=True)
    sheets = [
        {"run": runs[0]["digest"], "file": "sheet.webp", "name": "step", "step": 8},
        {"run": runs[0]["digest"], "file": "sheet.webp", "name": "maps"},
    ]
    come_from = {"trained": "abc", "device": "GPU", "torch": "2", "python": "3"}
    facts = {"name": "label-dropout", "runs": runs, "sheets": sheets, "provenance": come_from}
    write_json(folder / "study.json", facts)
    rows = [
        {"kind": "accuracy", "step": 8, "joint": 0.5 + run["seed"], "run": run["digest"]}
        | {key: run[key] for key in ("variant", "seed")}
        | {"scale": "full"}
        for run in runs
    ]
    write_table(folder / "rows.parquet", Table([*rows, {"kind": "space", "n": 3}]))
    return folder


def shared_jobs():
    """Runs of `labels` that `label-dropout` may have as well."""
    ours = replace(labels.settings("smoke"), variants=("classes", "classes, dropout", "values"))
    return labels.jobs(ours, 2)


def test_runs_that_another_study_holds_are_put_back(tmp_path, holding):
    out = tmp_path / "out"
    assert borrow(shared_jobs(), holding, out) == [
        *("classes, seed 0", "classes, dropout, seed 0", "classes, seed 1")
    ]
    run = RunFolder(out, model("dit", 1)["digest"])
    assert run.rows() == [{"kind": "accuracy", "step": 8, "joint": 1.5}], "without labels"
    facts = run.facts()
    assert (facts["commit"], facts["borrowed"]) == ("abc", "label-dropout")


def test_sheets_come_along_under_the_names_that_runs_give_them(tmp_path, holding):
    borrow(shared_jobs(), holding, tmp_path / "out")
    first = RunFolder(tmp_path / "out", model("dit", 0)["digest"])
    assert first.files("samples/*.png") == ["samples/maps.png", "samples/step_00000008.png"]
    assert (np.asarray(Image.open(first.path / "samples" / "maps.png")) == SHEET).all()


def test_what_is_there_is_left_alone(tmp_path, holding):
    out = tmp_path / "out"
    borrow(shared_jobs(), holding, out)
    assert borrow(shared_jobs(), holding, out) == []
