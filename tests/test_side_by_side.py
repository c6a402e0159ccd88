"""scripts/side_by_side.py: queues of commands that run on between two calls, rows brought home."""

import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from recombine.cli import app
from recombine.store import read_json

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "scripts" / "side_by_side.py"
sys.path.insert(0, str(ROOT / "scripts"))
import side_by_side  # noqa: E402

PLAN = """
interactions --scale smoke --set steps=9   # one after another
swing-by --scale nowhere

missing-labels --scale smoke --set 'variants=[]'
"""


def test_a_plan_is_queues_of_commands():
    one, other = side_by_side.queues(PLAN + "\n\n# nothing but a remark\n")
    assert [c[0] for c in one] == ["interactions", "swing-by"]
    assert other == [["missing-labels", "--scale", "smoke", "--set", "variants=[]"]]


def call(folder: Path, minutes: float) -> list[str]:
    """From a folder that is not the repository's."""
    command = [sys.executable, str(SCRIPT), "plan.txt", "out", "packed", "--minutes", str(minutes)]
    env = os.environ | {"RECOMBINE_MPS": "0"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_queues_run_on_and_what_comes_home_is_assessed_like_what_stayed(tmp_path):
    (tmp_path / "plan.txt").write_text(PLAN)
    assert call(tmp_path, 0.0)[-1] == "running", "it returns before the work is done"
    first = (tmp_path / "out" / "conductor.pid").read_text()
    *lines, state = call(tmp_path, 2.0)
    assert state == "finished"
    assert (tmp_path / "out" / "conductor.pid").read_text() == first, "nothing is started twice"
    assert any("--scale nowhere: not one of" in line for line in lines), "why it failed"
    assert "status 2" in lines[-2], "a command that is wrong keeps no other one from running"
    assert "status 0" in lines[-1]
    home = tmp_path / "home"
    for path in (tmp_path / "packed").glob("*.tgz"):
        with tarfile.open(path) as archive:
            archive.extractall(home, filter="data")
    assert not list(home.rglob("*.safetensors"))
    command = "-m recombine run interactions --scale smoke --set steps=9 --finished --out"
    subprocess.run([sys.executable, *command.split(), str(home)], check=True, capture_output=True)
    there, here = (read_json(p / "interactions" / "claims.json") for p in (tmp_path / "out", home))
    assert there == here


def test_archives_stay_small_and_weights_stay_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(side_by_side, "LARGEST", 60_000)
    for number in range(5):
        run = tmp_path / "out" / "runs" / f"{number}"
        (run / "samples").mkdir(parents=True)
        (run / "rows.jsonl").write_text(os.urandom(20_000).hex())
        (run / "model.safetensors").write_bytes(b"weights")
        for name in ("step_00000001", "step_00000002", "color", "location"):
            (run / "samples" / f"{name}.png").write_bytes(os.urandom(500))
    side_by_side.pack(tmp_path / "out", tmp_path / "packed")
    names, archives = [], sorted((tmp_path / "packed").iterdir())
    for path in archives:
        with tarfile.open(path) as archive:
            names += archive.getnames()
    assert len(archives) > 1
    sheets = [f"samples/{name}.png" for name in ("step_00000002", "color", "location")]
    assert names == [f"runs/{n}/{name}" for n in range(5) for name in ("rows.jsonl", *sheets)]


def test_files_that_change_while_they_are_packed(tmp_path, monkeypatch):
    """A run that finishes meanwhile removes progress.json; another one writes a hidden file first."""
    run = tmp_path / "out" / "runs" / "0"
    run.mkdir(parents=True)
    for name in ("progress.json", "rows.jsonl", ".rows.jsonl.here.1.tmp"):
        (run / name).write_text("first\n")
    names = side_by_side.kept(run)
    assert [path.name for path in names] == ["progress.json", "rows.jsonl"]
    (run / "progress.json").unlink()
    monkeypatch.setattr(side_by_side, "kept", lambda run: names)
    side_by_side.pack(tmp_path / "out", tmp_path / "packed")
    with tarfile.open(tmp_path / "packed" / "rows-0.tgz") as archive:
        assert archive.getnames() == ["runs/0/rows.jsonl"]
        assert archive.extractfile("runs/0/rows.jsonl").read() == b"first\n"


def test_why_a_command_failed_is_shown_without_its_progress(tmp_path):
    progress = "\r".join(f"[0] model  {n}/9  loss 1.0  about 3 min left in all" for n in range(3))
    lines = ["$ recombine run a", progress, "Traceback", "  RuntimeError: no", "", "status 1"]
    (tmp_path / "queue-0.log").write_text("\n".join(lines) + "\n$ recombine run b\nstatus 0\n")
    (tmp_path / "queue-1.log").write_text("$ recombine run c\nstatus 0\n")
    said = side_by_side.failures(tmp_path)
    assert said == [f"queue-0: {line}" for line in (lines[0], *lines[2:4], lines[5])]


@pytest.mark.parametrize("alive", [True, False])
def test_a_process_that_has_ended_is_known_to_have_ended(alive):
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    if not alive:
        process.communicate(b"\n")
        time.sleep(0.1)
    assert side_by_side.running(process) is alive
    assert side_by_side.running(process.pid) is alive
    process.kill()
    process.communicate()


PLANS = sorted((ROOT / "scripts" / "plans").glob("*.txt"))
COMMANDS = [c for p in PLANS for some in side_by_side.queues(p.read_text()) for c in some]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_plans_that_come_along_can_be_run(command, tmp_path):
    """Studies, variants and settings by these names are there, and something is to be trained."""
    given = ("run", *command, "--dry-run", "--out", str(tmp_path))
    listed = CliRunner().invoke(app, given, catch_exceptions=False).stdout
    assert f"{command[0]}: " in listed
    assert ", seed " in listed
