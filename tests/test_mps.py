"""The multi-process service of a GPU, played by a script that writes down the commands it gets."""

import os
import subprocess
import sys

import pytest

from recombine.pipeline.engines import mps

SCRIPT = """#!/bin/sh
echo "$1 $(cat) $CUDA_MPS_PIPE_DIRECTORY $CUDA_VISIBLE_DEVICES" >> {log}
[ -d "$CUDA_MPS_PIPE_DIRECTORY" ] && exit {status}
"""


@pytest.fixture
def service(tmp_path, monkeypatch):
    """Put a service on the path that ends with a status; the list of the commands it got comes
    back."""
    for name in ("RECOMBINE_MPS", "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(mps, "RUNNING", tmp_path / "none")
    log = tmp_path / "log"

    def install(status: int = 0, trial: str = "raise SystemExit(0)"):
        script = tmp_path / mps.CONTROL
        script.write_text(SCRIPT.format(log=log, status=status))
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        monkeypatch.setattr(mps, "TRIAL", trial)
        return lambda: (
            [line.split() for line in log.read_text().splitlines()] if log.exists() else []
        )

    return install


def seen_by_a_child() -> str:
    show = "import os; print(os.environ.get('CUDA_MPS_PIPE_DIRECTORY', 'none'))"
    return subprocess.run(
        [sys.executable, "-c", show], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_it_runs_for_the_length_of_the_block_in_a_place_of_its_own(service):
    commands = service()
    with mps.side_by_side(pytest.fail) as on:
        place = seen_by_a_child()
        assert on
        assert os.path.isdir(place)
        assert commands() == [["-d", place]]
    assert commands() == [["-d", place], ["quit", place]]
    assert seen_by_a_child() == "none"
    assert not os.path.exists(place)


def test_a_choice_of_gpus_is_for_the_processes_and_not_for_the_service(service, monkeypatch):
    commands = service(
        trial="import os; raise SystemExit(os.environ['CUDA_VISIBLE_DEVICES'] != '1')"
    )
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    with mps.side_by_side(pytest.fail) as on:
        assert on
    assert [len(line) for line in commands()] == [2, 2], (
        "the commands it got and where, and no choice of GPUs"
    )


def test_it_is_stopped_when_the_block_fails(service):
    commands = service()
    with pytest.raises(KeyboardInterrupt), mps.side_by_side(pytest.fail):
        raise KeyboardInterrupt
    assert commands()[-1][0] == "quit"
    assert "CUDA_MPS_PIPE_DIRECTORY" not in os.environ


@pytest.mark.parametrize("broken", [{"status": 1}, {"trial": "raise SystemExit(1)"}])
def test_where_it_does_not_work_all_goes_on_without_it(service, broken):
    commands, notes = service(**broken), []
    with mps.side_by_side(notes.append) as on:
        assert not on
        assert seen_by_a_child() == "none"
    assert commands()[-1][0] == "quit"
    assert len(notes) == 1


def test_it_is_left_alone_where_it_is_not_wanted_or_runs_already(service, monkeypatch, tmp_path):
    commands = service()
    monkeypatch.setenv("RECOMBINE_MPS", "0")
    with mps.side_by_side(pytest.fail) as on:
        assert not on
    monkeypatch.delenv("RECOMBINE_MPS")
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", "elsewhere")
    with mps.side_by_side(pytest.fail) as on:
        assert not on
        assert os.environ["CUDA_MPS_PIPE_DIRECTORY"] == "elsewhere"
    monkeypatch.delenv("CUDA_MPS_PIPE_DIRECTORY")
    monkeypatch.setattr(mps, "RUNNING", tmp_path)
    with mps.side_by_side(pytest.fail) as on:
        assert not on
    assert commands() == []


def test_the_real_trial_fails_without_a_driver():
    if mps.succeeds(
        [sys.executable, "-c", "import ctypes; ctypes.CDLL('libcuda.so.1')"], dict(os.environ)
    ):
        pytest.skip("there is a CUDA driver here")
    assert not mps.succeeds([sys.executable, "-c", mps.TRIAL], dict(os.environ))
