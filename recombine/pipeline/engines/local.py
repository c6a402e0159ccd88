"""Workers as processes of this machine, over all its GPUs."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from recombine.pipeline.engines import EngineError
from recombine.pipeline.engines.mps import side_by_side
from recombine.pipeline.worker import GPU_FAILED, HELD_BACK, known_failures

RETRIES = 3
"""How often a worker that was killed is replaced."""
PAUSE = 2.0
"""Seconds before a worker whose GPU failed is replaced, four times as long after each time: what
serves a GPU to several processes starts anew when all of them have left it."""


class LocalEngine:
    """Every worker is a process in a group of its own: Ctrl-C reaches this one, which passes it
    on."""

    def run(self, plan: Path, workers: int, log: Callable[[str], None]) -> None:
        with side_by_side(log) if _has_gpu() else nullcontext():
            started = {i: start(plan, i) for i in range(workers)}
            try:
                self._watch(plan, started, log)
            except (
                BaseException
            ):  # each saves between two updates; a second Ctrl-C does not wait for that
                stop(started, signal.SIGINT)
                raise
            finally:
                stop(started, signal.SIGKILL, wait=0.0)

    def _watch(
        self, plan: Path, started: dict[int, subprocess.Popen], log: Callable[[str], None]
    ) -> None:
        """Until all workers have nothing left to do. One that was killed is replaced; its run is
        resumed."""
        replaced, due = dict.fromkeys(started, 0), dict.fromkeys(started, 0.0)
        running = set(started)
        while running:
            for i in sorted(running):
                status = started[i].poll()
                if status is None or time.monotonic() < due[i]:
                    continue
                if due[i]:
                    due[i], started[i] = 0.0, start(plan, i)
                    continue
                if status == 130:
                    raise KeyboardInterrupt
                if status in (0, 1):
                    running.discard(i)
                elif replaced[i] < RETRIES:
                    pause = PAUSE * 4 ** replaced[i] if status == GPU_FAILED else 0.0
                    due[i], replaced[i] = time.monotonic() + pause, replaced[i] + 1
                    log(f"worker {i} died ({_reason(status)}) and is replaced")
                else:
                    raise EngineError(
                        f"worker {i} died {RETRIES + 1} times, last {_reason(status)}"
                    )
            time.sleep(0.05)
        crashed = [i for i, p in started.items() if p.returncode == 1]
        if crashed and not known_failures(plan.parent / "failed"):
            raise EngineError(f"worker {crashed[0]} failed; its last lines are above")


def start(plan: Path, index: int) -> subprocess.Popen:
    command = [
        sys.executable,
        "-m",
        "recombine.pipeline.worker",
        str(plan),
        str(index),
        "--with-parent",
    ]
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HELD_BACK)  # until it can meet them
    try:
        environment = os.environ | {"PYTHONUNBUFFERED": "1"}
        return subprocess.Popen(command, start_new_session=True, env=environment)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def stop(started: dict[int, subprocess.Popen], number: int, wait: float | None = None) -> None:
    """Send a signal to the workers that still run, and wait for them."""
    for process in started.values():
        if process.poll() is None:
            process.send_signal(number)
    for process in started.values():
        try:
            process.wait(wait or None)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _reason(status: int) -> str:
    if status == GPU_FAILED:
        return "its GPU failed"
    return f"signal {-status}" if status < 0 else f"status {status}"


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()
