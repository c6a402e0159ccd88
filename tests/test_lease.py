"""Leases: one holder at a time, dead holders are replaced, and a holder that was replaced
notices."""

import json
import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from recombine.config import UsageError
from recombine.files import temporary_path
from recombine.pipeline import lease
from recombine.pipeline.lease import LeaseLost, Watcher, acquire, hold_lease, sweep_leases, whoami


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(lease, "BEAT", 0.05)


def leases(out: Path) -> list[str]:
    return sorted(p.name for p in (out / ".leases").glob("*"))


def test_a_lease_is_held_by_one_and_given_back(tmp_path):
    with hold_lease(tmp_path, "run") as mine:
        assert mine is not None
        assert acquire(tmp_path / ".leases", "run", Watcher()) is None
        assert leases(tmp_path) == ["run.1"]
        with hold_lease(tmp_path, "other") as another:
            assert another is not None
    assert not list(tmp_path.iterdir()), "nothing is left, not even the folder"


def test_the_same_process_may_take_it_again(tmp_path):
    with hold_lease(tmp_path, "run") as mine, hold_lease(tmp_path, "run") as again:
        assert again is mine


def hold(out: Path, ready, seconds: float = 60.0) -> None:
    with hold_lease(out, "run") as mine:
        ready.put(mine is not None)
        time.sleep(seconds)


def start(out: Path, seconds: float = 60.0):
    context = multiprocessing.get_context("fork")
    ready = context.Queue()
    process = context.Process(target=hold, args=(out, ready, seconds))
    process.start()
    assert ready.get(timeout=10)
    return process


def test_a_killed_holder_on_this_machine_is_replaced_at_once(tmp_path):
    process = start(tmp_path)
    with hold_lease(tmp_path, "run") as mine:
        assert mine is None, "it lives"
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    with hold_lease(tmp_path, "run") as mine:
        assert mine is not None
        assert mine.generation == 2
    assert leases(tmp_path) == []


def elsewhere(out: Path, **changes) -> Path:
    """The lease of a holder on another machine, which beats no more."""
    path = out / ".leases" / "run.1"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**lease.whoami(), "host": "another", "token": "x", **changes}))
    return path


def test_a_holder_elsewhere_is_replaced_when_its_heart_stands_still(tmp_path):
    elsewhere(tmp_path)
    watcher = Watcher(timeout=0.2)
    with hold_lease(tmp_path, "run", watcher) as mine:
        assert mine is None, "it was seen just now"
    time.sleep(0.3)
    with hold_lease(tmp_path, "run", watcher) as mine:
        assert mine is not None


def test_a_holder_elsewhere_whose_heart_beats_is_left_alone(tmp_path):
    watcher = Watcher(timeout=0.2)
    for beat in range(4):
        elsewhere(tmp_path, beat=beat)
        with hold_lease(tmp_path, "run", watcher) as mine:
            assert mine is None
        time.sleep(0.1)


def test_clocks_of_other_machines_do_not_matter(tmp_path):
    elsewhere(tmp_path, beat=0.0)
    with hold_lease(tmp_path, "run", Watcher(timeout=5.0)) as mine:
        assert mine is None


def test_who_was_replaced_notices(tmp_path):
    with hold_lease(tmp_path, "run") as mine:
        mine.check()
        (tmp_path / ".leases" / "run.2").write_text("{}")
        time.sleep(0.2)
        with pytest.raises(LeaseLost, match="took over run"):
            mine.check()
    assert leases(tmp_path) == ["run.2"], "the newer lease is not touched"


def count(out: Path, times: int) -> None:
    """Add one to a number in a file, again and again, under a lease: a second holder at the same
    time would lose some."""
    number = out / "number"
    for _ in range(times):
        with hold_lease(out, "run", wait=lambda: True) as mine:
            assert mine is not None
            value = int(number.read_text())
            time.sleep(0.001)
            number.write_text(str(value + 1))


def test_many_processes_never_hold_it_together(tmp_path):
    (tmp_path / "number").write_text("0")
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=count, args=(tmp_path, 10)) for _ in range(4)]
    for p in processes:
        p.start()
    for p in processes:
        p.join(60)
        assert p.exitcode == 0
    assert (tmp_path / "number").read_text() == "40"
    assert leases(tmp_path) == []


def test_a_folder_that_is_removed_while_it_is_made_is_made_again(tmp_path, monkeypatch):
    made, mkdir = [], Path.mkdir

    def gone_at_first(self, *how, **more):
        made.append(self)
        if len(made) == 1:
            raise FileExistsError(17, "File exists")
        mkdir(self, *how, **more)

    monkeypatch.setattr(Path, "mkdir", gone_at_first)
    with hold_lease(tmp_path, "run") as mine:
        assert mine is not None
    assert len(made) == 2
    monkeypatch.undo()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".leases").write_text("")
    with pytest.raises(UsageError, match="File exists"), hold_lease(tmp_path / "other", "run"):
        pass


def test_what_the_dead_left_is_swept_and_nothing_of_the_living(tmp_path):
    gone, lives = elsewhere(tmp_path, host=whoami()["host"], pid=2**22 + 1), start(tmp_path / "on")
    half = temporary_path(gone).name.replace(f".{os.getpid()}.", f".{2**22 + 1}.")
    dead = gone.with_name(half)
    dead.write_text("half")
    sweep_leases(tmp_path)
    assert not gone.exists()
    assert not dead.exists()
    assert not (tmp_path / ".leases").exists()
    sweep_leases(tmp_path / "on")
    assert leases(tmp_path / "on") == ["run.1"]
    lives.kill()
    lives.join()
    sweep_leases(tmp_path / "on")
    assert not (tmp_path / "on" / ".leases").exists()


def test_a_holder_that_was_stopped_looks_before_it_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(lease, "BEAT", 60.0)  # its heart does not beat in this test
    with hold_lease(tmp_path, "run") as mine:
        (tmp_path / ".leases" / "run.2").write_text("{}")
        mine.check()
        mine.looked -= 121
        with pytest.raises(LeaseLost, match="took over run"):
            mine.check()


def test_a_full_disk_leaves_no_half_written_lease(tmp_path, monkeypatch):
    def full(path, text):
        path.touch()
        raise OSError(28, "No space left on device")

    with hold_lease(tmp_path, "other"):
        monkeypatch.setattr(Path, "write_text", full)
        with (
            pytest.raises(UsageError, match=r"cannot write .*: No space left"),
            hold_lease(tmp_path, "x"),
        ):
            pass
        names = [p.name for p in (tmp_path / ".leases").iterdir()]
    assert names == ["other.1"]


def test_garbage_in_a_lease_counts_as_a_holder_that_never_beats(tmp_path):
    path = elsewhere(tmp_path)
    path.write_text("garbage")
    watcher = Watcher(timeout=0.1)
    with hold_lease(tmp_path, "run", watcher) as mine:
        assert mine is None
    time.sleep(0.2)
    with hold_lease(tmp_path, "run", watcher) as mine:
        assert mine is not None
