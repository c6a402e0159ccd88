"""Several processes and one results folder: locks, turns, --workers, and rows that are the same as one process's."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import active_children, get_context
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from tiny import QUIET

from recombine.config import UsageError, override
from recombine.runtime import Runtime
from recombine.store import RunFolder
from recombine.studies import composition, workers
from recombine.studies.lab import Lab
from recombine.studies.runs import in_turn
from recombine.studies.workers import Plan, place, spread
from recombine.train.fit import TrainConfig

HOLD = """
import sys, time
from pathlib import Path
from recombine.store import RunFolder
from recombine.train.fit import TrainConfig
with RunFolder(Path(sys.argv[1]), TrainConfig()).held():
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path, TrainConfig())


@pytest.fixture
def other(folder):
    """Another process that holds the folder."""
    with subprocess.Popen([sys.executable, "-c", HOLD, str(folder.root)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_folder_is_held_by_one_process_and_again_by_the_same(folder):
    with folder.held() as first, folder.held(wait=False) as again:
        assert first
        assert again


def test_who_does_not_wait_is_told_that_another_holds_it_and_a_kill_frees_it(folder, other):
    with folder.held(wait=False) as mine:
        assert not mine
    other.send_signal(signal.SIGKILL)
    other.wait()
    with folder.held(wait=False) as mine:
        assert mine


def test_who_works_ahead_leaves_alone_what_is_done_or_in_other_hands(folder, other):
    ahead, trained = Lab(QUIET, folder.root, "smoke", 1, ahead=True), []
    rows = lambda lab: lab.rows_of(folder, lambda: trained.append(1), "a", 0, "accuracy")  # noqa: E731
    assert rows(ahead) == []
    assert not trained
    other.kill()
    other.wait()
    folder.open()
    folder.append([{"kind": "accuracy", "step": 0}])
    folder.finish({})
    assert rows(ahead) == []
    assert not trained
    assert [r["step"] for r in rows(Lab(QUIET, folder.root, "smoke", 1))] == [0]


def test_fresh_erases_what_was_there_before_and_nothing_since(folder):
    folder.open()
    folder.finish({})
    Lab(QUIET, folder.root, "smoke", 1, fresh=True, began=folder.made - 1).renew(folder)
    assert folder.done
    Lab(QUIET, folder.root, "smoke", 1, fresh=True, began=folder.made + 1).renew(folder)
    assert not folder.done


def test_processes_take_the_gpus_in_turn_unless_one_is_named():
    assert [place("auto", i, 2) for i in range(3)] == ["cuda:0", "cuda:1", "cuda:0"]
    assert {place("auto", 1, 1), place("auto", 1, 0)} == {"auto"}
    assert place("cuda:1", 0, 2) == "cuda:1"
    assert place("cpu", 1, 2) == "cpu"


def plan(out: Path, *changes: str) -> Plan:
    short = ("probe_steps=2", "recipe.train.steps=4", *changes)
    return Plan(("composition",), short, "smoke", 2, "cpu", out, False, 0.0, 2)


def train_all(plan: Plan) -> list[str]:
    with spread(plan, print) as through:
        return list(through)


def rows(out: Path) -> list[dict]:
    settings = override(composition.settings("smoke"), *plan(out).changes)
    return composition.run(settings, Lab(Runtime(), out, "smoke", 2))


def test_two_workers_give_the_rows_of_one(tmp_path, capfd):
    one = list(rows(tmp_path / "one"))
    assert "(on disk)" not in capfd.readouterr().err
    train_all(plan(tmp_path / "two"))
    said = capfd.readouterr().err
    assert list(rows(tmp_path / "two")) == one
    assert capfd.readouterr().err.count("(on disk)") == 2, "nothing is left to train"
    assert "[0] " in said
    assert "[1] " in said
    for digest in {r["run"] for r in one if "run" in r}:
        assert said.count(f"run {digest}\n") == 1, "each run is trained once, by one of them"


def press_ctrl_c_when_both_have_begun(out: Path) -> None:
    until = time.monotonic() + 60
    while len({p.parent for p in out.glob("runs/*/samples/*.png")}) < 2 and time.monotonic() < until:
        time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_stops_all_and_what_was_done_is_saved(tmp_path):
    threading.Thread(target=press_ctrl_c_when_both_have_begun, args=(tmp_path,)).start()
    with pytest.raises(KeyboardInterrupt):
        train_all(plan(tmp_path, "recipe.train.steps=1000000"))
    assert not active_children()
    unfinished = [p.parent for p in tmp_path.glob("runs/*/config.json") if not (p.parent / "done.json").exists()]
    assert len(unfinished) == 2
    assert all((folder / "state.safetensors").exists() for folder in unfinished)


def deaf(plan: Plan, index: int, tells: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    time.sleep(60)


def test_a_second_ctrl_c_does_not_wait(tmp_path, monkeypatch):
    """Processes that do not listen are killed."""
    monkeypatch.setattr(workers, "work", deaf)
    monkeypatch.setattr(workers, "get_context", lambda how: get_context("fork"))
    presses = [threading.Timer(s, os.kill, (os.getpid(), signal.SIGINT)) for s in (0.5, 1.0)]
    for press in presses:
        press.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        train_all(plan(tmp_path))
    assert time.monotonic() - began < 10
    assert not [p for p in active_children() if p.is_alive()]


def test_what_another_command_made_anew_meanwhile_is_not_erased(folder, monkeypatch):
    """It looked old before the lock was there, and is new when it is."""
    folder.open()
    lab = Lab(QUIET, folder.root, "smoke", 1, fresh=True, began=folder.made + 1)
    held = RunFolder.held

    @contextmanager
    def waits(self, wait=True):
        with held(self, wait) as mine:
            os.utime(self.path / "config.json", (folder.made + 5, folder.made + 5))
            self.finish({})
            yield mine

    monkeypatch.setattr(RunFolder, "held", waits)
    lab.renew(folder)
    assert folder.done


def test_where_nothing_can_be_locked_one_process_works_all_the_same(folder, monkeypatch):
    def no_locks(*how):
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr("recombine.store.fcntl.flock", no_locks)
    with folder.held() as mine:
        assert mine
    with pytest.raises(UsageError, match="--workers needs locks on files"):
        train_all(plan(folder.root))


def test_workers_and_torchrun_exclude_each_other(tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="use either"):
        train_all(plan(tmp_path))


def first_is_quick(plan: Plan, index: int, tells: Connection) -> None:
    """Stands in for the work: the second study takes until the first was judged."""
    tells.send(plan.studies[0])
    until = time.monotonic() + 30
    while not (plan.out / "judged").exists() and time.monotonic() < until:
        time.sleep(0.01)
    tells.send(plan.studies[1])


def fails_at_the_second(plan: Plan, index: int, tells: Connection) -> None:
    tells.send(plan.studies[0])
    tells.close()
    os._exit(index)


def test_a_study_is_judged_while_the_next_one_trains(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "work", first_is_quick)
    two = plan(tmp_path)._replace(studies=("composition", "conditioning"))
    with spread(two, print) as through:
        assert next(through) == "composition"
        (tmp_path / "judged").touch()
        assert list(through) == ["conditioning"]


def test_a_worker_that_stops_is_named_and_waited_for_no_more(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "work", fails_at_the_second)
    notes, two = [], plan(tmp_path)._replace(studies=("composition", "conditioning", "jepa"))
    with spread(two, notes.append) as through:
        assert list(through) == list(two.studies)
    assert notes == ["worker 0 stopped with status 0", "worker 1 stopped with status 1"]


def test_workers_stop_when_what_was_done_with_a_study_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "work", first_is_quick)
    two = plan(tmp_path)._replace(studies=("composition", "conditioning"))
    with pytest.raises(ZeroDivisionError), spread(two, print) as through:
        len(next(through)) / 0
    assert not active_children()


def test_workers_take_the_longest_runs_first_and_one_process_takes_them_as_named():
    recipe = composition.settings("smoke").recipe
    long = replace(recipe, train=replace(recipe.train, steps=3 * recipe.train.steps))
    named = {("short", 0): recipe, ("long", 0): long, ("short", 1): recipe.with_seed(1), ("long", 1): long.with_seed(1)}
    assert [name for name, _ in in_turn(named, ahead=True)] == [("long", 0), ("long", 1), ("short", 0), ("short", 1)]
    assert in_turn(named, ahead=False) == list(named.items())
