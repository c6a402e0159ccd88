"""scripts/shorten.py: a run that was cut off is kept as the run of fewer updates that it contains."""

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from recombine.pipeline.executor import is_finished, obtain
from recombine.pipeline.job import digest_of, folder_of
from recombine.runs.models import ModelRun
from recombine.runtime import Runtime
from recombine.studies import repair

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
from shorten import shorten, shortened

QUIET = Runtime(quiet=True)


def task(decay: str = "none") -> ModelRun:
    recipe = repair.settings("smoke").recipes()["jepa"]
    train = replace(recipe.train, steps=6, log_every=1, decay=decay)
    some = {"checkpoints": (2, 4), "samples": 2, "probe_steps": 2, "paper_probes": 1}
    evaluation = replace(recipe.evaluation, **some)
    return ModelRun(replace(recipe, train=train, evaluation=evaluation))


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("long")
    obtain(task(), root, QUIET)
    return root


def cut_off(task: ModelRun, out: Path) -> None:
    """The run as a kill leaves it, in the midst of a row."""
    folder = folder_of(task, out).path
    (folder / "done.json").unlink()
    rows = (folder / "rows.jsonl").read_text().splitlines(keepends=True)
    last = max(i for i, row in enumerate(rows) if json.loads(row)["step"] < 6)
    (folder / "rows.jsonl").write_text("".join(rows[: last + 1]) + rows[-1][:20])


@pytest.mark.slow
def test_the_first_updates_of_a_run_are_a_shorter_run(tmp_path, finished):
    long, short = task(), shortened(task(), 4)
    shutil.copytree(finished, tmp_path / "long")
    obtain(short, tmp_path / "short", QUIET)
    of_finished = shorten(tmp_path / "long", 4, tmp_path / "of finished")
    cut_off(long, tmp_path / "long")
    of_stopped = shorten(tmp_path / "long", 4, tmp_path / "of stopped")
    assert of_finished == of_stopped == [digest_of(short)]
    trained = folder_of(short, tmp_path / "short")
    for made in (tmp_path / "of finished", tmp_path / "of stopped"):
        folder = folder_of(short, made)
        assert folder.rows() == trained.rows()
        assert is_finished(short, made)
        assert folder.facts()["part_of"] == digest_of(long)
        assert all(is_finished(parent, made) for parent in long.parents())
        for name in ("parents", "commit", "device"):
            assert folder.facts()[name] == trained.facts()[name]


def test_a_run_that_went_no_further_is_left_out(tmp_path, finished):
    shutil.copytree(finished, tmp_path / "long")
    path = folder_of(task(), tmp_path / "long").path
    (path / "done.json").unlink()
    rows = (path / "rows.jsonl").read_text().splitlines(keepends=True)
    kept = [row for row in rows if json.loads(row)["step"] <= 4]
    (path / "rows.jsonl").write_text("".join(kept))
    assert shorten(tmp_path / "long", 4, tmp_path / "short") == []
    shutil.rmtree(tmp_path / "short")
    (path / "rows.jsonl").unlink()
    assert shorten(tmp_path / "long", 4, tmp_path / "short") == []


def test_only_at_a_constant_rate_and_at_a_checkpoint():
    with pytest.raises(SystemExit, match="the rate falls"):
        shortened(task("cosine"), 4)
    with pytest.raises(SystemExit, match="no checkpoint at 3 updates"):
        shortened(task(), 3)
