"""What runs stand on: rows outlive the weights they were measured on, and are measured again when these have changed."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from shutil import copytree, rmtree

import pytest
from tiny import CONFIG, QUIET, fit

from recombine.config import override
from recombine.store import RunFolder, load_tensors, read_json, write_json
from recombine.studies import circuits, objectives, tokenizers
from recombine.studies.base import Rows
from recombine.studies.lab import Lab, Measurement
from recombine.studies.recipe import Recipe
from recombine.studies.runs import Run
from recombine.tokenizers.pixels import Pixels

SHORT = (
    'world.sizes=["large"]',
    "world.size=16",
    "evaluation.samples=2",
    "evaluation.checkpoints=[0]",
    "probe_steps=2",
    "recipe.train.steps=2",
)
LATER = replace(CONFIG, steps=3)


def shake(folder: RunFolder) -> None:
    """As if it had been trained again on a runtime that is not exact to the last bit."""
    tensors, step = load_tensors(folder.path / "model.safetensors", folder.digest)
    facts = read_json(folder.path / "done.json")
    moved = {k: v + 1e-3 if v.is_floating_point() else v for k, v in tensors.items()}
    write_json(folder.path / "done.json", facts | {"weights": folder.save_model(moved, step)})


def without_weights(out: Path) -> None:
    for path in out.glob("runs/*/*.safetensors"):
        path.unlink()


def touched(out: Path) -> dict[Path, int]:
    return {p: p.stat().st_mtime_ns for p in out.glob("runs/*/*.json*")}


# ---- folders


def test_equal_weights_have_equal_fingerprints_and_others_have_others(tmp_path):
    first, again = fit(tmp_path / "a"), fit(tmp_path / "b")
    assert first.fingerprint == again.fingerprint
    assert len(first.fingerprint) == 16
    shake(again)
    assert first.fingerprint != again.fingerprint
    assert RunFolder(tmp_path, LATER).fingerprint == ""


def test_a_folder_is_stale_when_it_was_made_on_other_weights(tmp_path):
    made = RunFolder(tmp_path, CONFIG, "one")
    assert not made.stale
    made.open()
    assert not RunFolder(tmp_path, CONFIG, "one").stale
    assert RunFolder(tmp_path, CONFIG, "two").stale
    assert not RunFolder(tmp_path, CONFIG).stale, "nobody knows of other weights"
    made.erase()
    assert not RunFolder(tmp_path, CONFIG, "two").stale


def test_what_was_made_before_fingerprints_is_stale_once_there_are_some(tmp_path):
    RunFolder(tmp_path, CONFIG).open()
    assert RunFolder(tmp_path, CONFIG, "one").stale


# ---- rows kept beside the run they were measured on


class Counted:
    """Measures the number of times that it was asked to."""

    def __init__(self, lab: Lab, on: RunFolder):
        self.lab, self.on, self.made, self.ready = lab, on, 0, 0

    def rows(self) -> list[dict]:
        return self.lab.measured(Measurement(LATER, (self.on,), self._ready, self._make))

    def _ready(self) -> str:
        self.ready += 1
        return "loaded"

    def _make(self, what: str) -> list[dict]:
        assert what == "loaded"
        self.made += 1
        return [{"kind": "count", "value": self.made}]


@pytest.fixture
def counted(tmp_path):
    return Counted(Lab(QUIET, tmp_path, "smoke", 1), fit(tmp_path))


def test_rows_are_measured_once_and_need_no_weights_then(counted, tmp_path):
    rows = counted.rows()
    without_weights(tmp_path)
    assert counted.rows() == rows
    assert (counted.made, counted.ready) == (1, 1)


def test_rows_are_measured_again_when_the_weights_have_changed(counted):
    first = counted.rows()
    shake(counted.on)
    assert counted.rows() != first
    assert counted.made == 2


def test_a_measurement_that_was_cut_off_is_taken_again(counted, tmp_path):
    RunFolder(tmp_path, LATER, counted.on.fingerprint).open()
    assert [r["value"] for r in counted.rows()] == [1]


def test_fresh_measures_again(counted):
    counted.rows()
    lab = Lab(QUIET, counted.lab.out, "smoke", 1, fresh=True, began=RunFolder(counted.lab.out, LATER).made + 1)
    assert [r["value"] for r in Counted(lab, counted.on).rows()] == [1]


def test_who_works_ahead_measures_what_is_not_there_and_gives_nothing_for_what_is(counted):
    ahead = Counted(Lab(QUIET, counted.lab.out, "smoke", 1, ahead=True), counted.on)
    assert len(ahead.rows()) == 1
    assert ahead.rows() == []
    assert (ahead.made, counted.rows()) == (1, [{"kind": "count", "value": 1}])


HOLD = """
import sys, time
from pathlib import Path
from tiny import CONFIG
from recombine.store import RunFolder
with RunFolder(Path(sys.argv[1]), CONFIG).held():
    print("held", flush=True)
    time.sleep(60)
"""


def test_who_works_ahead_does_not_wait_for_what_another_trains(tmp_path):
    """That one will measure it, too."""
    ahead = Counted(Lab(QUIET, tmp_path, "smoke", 1, ahead=True), RunFolder(tmp_path, CONFIG))
    command, where = [sys.executable, "-c", HOLD, str(tmp_path)], {"PYTHONPATH": ":".join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | where) as other:
        assert other.stdout.readline() == "held\n"
        assert ahead.rows() == []
        other.kill()
    assert (ahead.made, ahead.ready) == (0, 0)


# ---- studies on learned tokenizers


def test_every_seed_has_a_tokenizer_of_its_own():
    recipe = objectives.smoke()
    assert [recipe.with_seed(s).tokenizer.seed for s in (0, 1, 5)] == [0, 1, 5]
    assert [recipe.with_seed(s).seed for s in (0, 1, 5)] == [0, 1, 5]
    assert recipe.with_seed(0) == recipe
    assert Recipe().with_seed(2) == replace(Recipe(), seed=2)
    assert Pixels().with_seed(3) == Pixels()


def families(out: Path, *changes: str) -> Rows:
    settings = override(objectives.settings("smoke"), *SHORT, 'families=["maskgit","dit"]', *changes)
    return Rows(objectives.run(settings, Lab(QUIET, out, "smoke", 1)))


def tokenizer_of(out: Path) -> RunFolder:
    return Run(override(objectives.settings("smoke"), *SHORT).recipe, Lab(QUIET, out, "smoke", 1)).tokenizer


@pytest.fixture(scope="module")
def two_families(tmp_path_factory) -> tuple[Path, Rows]:
    out = tmp_path_factory.mktemp("two")
    return out, families(out)


@pytest.fixture
def trained(two_families, tmp_path) -> tuple[Path, Rows]:
    """A copy of two families on one tokenizer, and their rows."""
    copytree(two_families[0], tmp_path, dirs_exist_ok=True)
    return tmp_path, two_families[1]


def test_finished_runs_are_shown_again_without_any_weights(trained):
    out, rows = trained
    assert {(r["variant"], r["seed"]) for r in rows.where(kind="ceiling")} == {("maskgit", 0), ("dit", 0)}
    without_weights(out)
    before = touched(out)
    assert families(out) == rows
    assert touched(out) == before
    assert not list(out.glob("runs/*/*.safetensors"))


def test_models_are_trained_again_on_a_tokenizer_that_was_trained_again(trained):
    """Otherwise models that are compared would speak of other codes."""
    out, rows = trained
    done = {out / "runs" / r["run"] / "done.json" for r in rows.where(kind="accuracy")}
    shake(tokenizer_of(out))
    when = {path: path.stat().st_mtime_ns for path in done}
    again = families(out)
    assert all(path.stat().st_mtime_ns > when[path] for path in done)
    assert again.where(kind="ceiling").column("mse") != rows.where(kind="ceiling").column("mse")


def test_a_lost_tokenizer_comes_before_the_runs_that_stand_on_it(trained):
    """One family is there, its tokenizer's weights are not; the other family needs them. Trained again they may differ, so
    both families must be of the new ones."""
    out, rows = trained
    tokenizer = tokenizer_of(out)
    facts = read_json(tokenizer.path / "done.json")
    write_json(tokenizer.path / "done.json", facts | {"weights": "those of a GPU"})
    for path in out.glob("runs/*/basis.txt"):
        path.write_text("those of a GPU")
    (tokenizer.path / "model.safetensors").unlink()
    rmtree(out / "runs" / next(r["run"] for r in rows if r["kind"] == "accuracy" and r["variant"] == "dit"))
    again = families(out)
    assert tokenizer.fingerprint == facts["weights"], "trained again; on a CPU that is exact"
    stood = {(out / "runs" / r["run"] / "basis.txt").read_text() for r in again.where(kind="accuracy")}
    assert stood == {facts["weights"]}


def test_opened_models_are_shown_again_without_weights_and_opened_again_when_trained_again(tmp_path):
    settings = override(circuits.settings("smoke"), *SHORT)
    go = lambda: circuits.run(settings, Lab(QUIET, tmp_path, "smoke", 1))  # noqa: E731
    rows = go()
    without_weights(tmp_path)
    before = touched(tmp_path)
    assert go() == rows
    assert touched(tmp_path) == before
    one = RunFolder(tmp_path, circuits.Opened(settings.variants()["jepa"], settings.opening))
    one.erase()
    assert go() == rows, "on a CPU it is trained again to the same weights"
    assert one.done


def test_a_model_is_opened_with_the_tokenizer_it_was_trained_on(tmp_path):
    """Nothing is missing but the tokenizer's weights and what was found inside the models."""
    settings = override(circuits.settings("smoke"), *SHORT)
    go = lambda: circuits.run(settings, Lab(QUIET, tmp_path, "smoke", 1))  # noqa: E731
    rows, tokenizer = go(), tokenizer_of(tmp_path)
    true, other = tokenizer.fingerprint, "those of a GPU"
    write_json(tokenizer.path / "done.json", read_json(tokenizer.path / "done.json") | {"weights": other})
    for path in tmp_path.glob("runs/*/basis.txt"):
        path.write_text(path.read_text().replace(true, other))
    (tokenizer.path / "model.safetensors").unlink()
    for path in tmp_path.glob("runs/*/config.json"):
        if read_json(path)["class"].endswith("Opened"):
            rmtree(path.parent)
    assert go() == rows
    stood = {(tmp_path / "runs" / r["run"] / "basis.txt").read_text() for r in rows if r["kind"] == "accuracy"}
    assert stood == {true} == {tokenizer.fingerprint}
    before = touched(tmp_path)
    assert go() == rows
    assert touched(tmp_path) == before


def test_the_ceilings_of_all_tokenizers_are_kept_and_shared_with_the_models(trained):
    out, _ = trained
    settings = override(tokenizers.settings("smoke"), *SHORT)
    go = lambda: Rows(tokenizers.run(settings, Lab(QUIET, out, "smoke", 1)))  # noqa: E731
    rows = go()
    joint = {v: rows.where(kind="ceiling", variant=v).column("joint") for v in ("vq", "vq, all", "vq, seen")}
    assert joint["vq"] == joint["vq, all"]
    without_weights(out)
    assert go() == rows
    assert not list(out.glob("runs/*/*.safetensors"))


def test_the_probes_of_a_world_are_examined_once(trained):
    out, rows = trained
    exams = [p for p in out.glob("runs/*/config.json") if read_json(p)["class"].endswith("ProbeExam")]
    assert len(exams) == 1
    assert len(rows.where(kind="refused")) == 4
