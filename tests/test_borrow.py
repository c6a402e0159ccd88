"""scripts/borrow.py: runs that two studies share are put back from the one's results for the other."""

import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from recombine.analysis.table import Table, write_table
from recombine.pipeline.executor import is_finished, is_usable
from recombine.pipeline.job import digest_of
from recombine.pipeline.plan import Command, finished_part, make_plans
from recombine.pipeline.run import collect
from recombine.runs.models import ModelRun
from recombine.store import RunFolder, write_json
from recombine.studies import label_dropout
from recombine.studies.summary import provenance

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
from borrow import borrow

GREY = np.arange(48, dtype=np.uint8).reshape(6, 8) * 5
ORIGIN = {"trained": "abc, def", "device": "GPU", "torch": "2", "python": "3"}


def task(name, seed):
    return ModelRun(label_dropout.settings("smoke").recipes()[name].with_seed(seed))


def entry(name, seed):
    """A run of `label-dropout`, as its results list it."""
    made = {"digest": digest_of(task(name, seed)), "label": f"{name}, seed {seed}", "noun": "model"}
    return made | {"variant": name, "seed": seed}


@pytest.fixture
def holding(tmp_path):
    """A folder of results as far as it is read here. The first run serves two variants."""
    runs = [entry(*one) for one in (("dit", 0), ("dit", 1), ("dit, dropout", 0), ("maskgit", 0))]
    runs.append(runs[0] | {"variant": "again", "label": "again, seed 0"})
    folder = tmp_path / "label-dropout"
    (folder / "samples").mkdir(parents=True)
    Image.fromarray(GREY).save(folder / "samples" / "maps.webp", lossless=True)
    Image.fromarray(np.stack([GREY, GREY // 2, GREY], 2)).save(folder / "samples" / "step.webp")
    sheets = [
        {"run": runs[0]["digest"], "file": "step.webp", "name": "step", "step": 8},
        {"run": runs[0]["digest"], "file": "maps.webp", "name": "maps"},
    ]
    facts = {"name": "label-dropout", "runs": runs, "sheets": sheets, "provenance": ORIGIN}
    write_json(folder / "study.json", facts)
    rows = [
        {"kind": "accuracy", "step": step, "joint": 0.5 + run["seed"], "run": run["digest"]}
        | {"variant": run["variant"], "seed": run["seed"], "scale": "full"}
        for run in runs
        for step in (4, 8)
    ]
    write_table(folder / "rows.parquet", Table([*rows, {"kind": "space", "n": 3}]))
    return folder


def of_labels(tmp_path, *, seeds=2, first_seed=0):
    """Runs of `labels` that `label-dropout` has as well, and others."""
    some = 'variants=["classes", "classes, dropout", "values"]'
    out = str(tmp_path / "out")
    return Command(("labels",), "smoke", seeds, (some,), out=out, first_seed=first_seed)


def test_runs_that_another_study_holds_are_put_back(tmp_path, holding):
    taken = borrow(of_labels(tmp_path), holding)
    assert sorted(taken) == ["again, seed 0", "dit, dropout, seed 0", "dit, seed 1"]
    run = RunFolder(tmp_path / "out", digest_of(task("dit", 0)))
    assert run.rows() == [{"kind": "accuracy", "step": k, "joint": 0.5} for k in (4, 8)], (
        "once each, without labels"
    )


def test_only_seeds_that_are_wanted_are_put_back(tmp_path, holding):
    assert borrow(of_labels(tmp_path, seeds=1, first_seed=1), holding) == ["dit, seed 1"]


def test_what_was_put_back_is_assessed_beside_other_runs(tmp_path, holding):
    command = of_labels(tmp_path)
    borrow(command, holding)
    (plan,) = make_plans(command)
    plan = finished_part(plan, tmp_path / "out", print)
    found = {(r["variant"], r["seed"], r["joint"]) for r in collect(plan, tmp_path / "out")}
    assert found == {("classes", 0, 0.5), ("classes, dropout", 0, 0.5), ("classes", 1, 1.5)}
    said = provenance(plan, tmp_path / "out", {})
    assert (said["trained"], said["borrowed"]) == ("abc, def", "label-dropout")
    assert said["seconds"] == 0, "those of borrowed runs are not known"


def test_a_run_that_was_put_back_has_no_weights_to_open(tmp_path, holding):
    borrow(of_labels(tmp_path), holding)
    assert is_finished(task("dit", 0), tmp_path / "out")
    assert not is_usable(task("dit", 0), tmp_path / "out")


def test_sheets_keep_their_names_and_maps_stay_grey(tmp_path, holding):
    borrow(of_labels(tmp_path), holding)
    first = RunFolder(tmp_path / "out", digest_of(task("dit", 0)))
    assert first.files("samples/*.png") == ["samples/maps.png", "samples/step_00000008.png"]
    with Image.open(first.path / "samples" / "maps.png") as maps:
        assert maps.mode == "L"
        assert (np.asarray(maps) == GREY).all()
    with Image.open(first.path / "samples" / "step_00000008.png") as sheet:
        assert sheet.mode == "RGB"


def test_what_is_done_is_left_alone_and_what_was_cut_off_is_replaced(tmp_path, holding):
    mine, cut_off = (RunFolder(tmp_path / "out", digest_of(task("dit", s))) for s in (0, 1))
    for run in (mine, cut_off):
        run.path.mkdir(parents=True)
        (run.path / "config.json").write_text("{}")
        run.append([{"kind": "mine", "step": 1}])
    mine.finish({})
    before = (mine.path / "done.json").read_bytes()
    assert sorted(borrow(of_labels(tmp_path), holding)) == ["dit, dropout, seed 0", "dit, seed 1"]
    assert (mine.path / "done.json").read_bytes() == before
    assert {row["joint"] for row in cut_off.rows()} == {1.5}
