"""A run that is killed again and again ends like one that was left alone. The kills are real: SIGKILL, at any moment."""

import os
import random
import signal
import time
from dataclasses import replace
from pathlib import Path

from tiny import CONFIG, QUIET, batch, fit, outcome

from recombine.store import RunFolder

KILLS, SECONDS = 20, 1.0
LONG = replace(CONFIG, steps=1500, log_every=7)
AT = tuple(range(0, 1501, 100))


def child(root: Path) -> tuple[int, int]:
    """Another process that trains under `root` and saves all the time: its id, and a pipe that hears of every step. A step
    takes at least a millisecond, so that no machine is so fast that the run ends before its kills."""
    hears, tells = os.pipe()
    if pid := os.fork():
        os.close(tells)
        return pid, hears

    def slow(step: int):
        os.write(tells, b".")
        time.sleep(0.001)
        return batch(step)

    try:
        fit(root, LONG, replace(QUIET, save_seconds=0.002), slow, AT)
    finally:
        os._exit(0)


def kill(root: Path, delay: float, early: bool) -> int:
    """Kill a run `delay` seconds after its first step (early: after its birth); the step it can go on from."""
    pid, hears = child(root)
    if not early:
        os.read(hears, 1)
    time.sleep(delay)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    os.close(hears)
    assert os.WIFSIGNALED(status), "the run ended before it was killed"
    assert os.WTERMSIG(status) == signal.SIGKILL
    saved = RunFolder(root, LONG).load_state()
    return saved[1] if saved else 0


def test_twenty_kills_do_not_change_the_result(tmp_path):
    left_alone = fit(tmp_path / "alone", LONG, observe_at=AT)
    rng = random.Random(7)
    delays = [rng.random() for _ in range(KILLS)]
    steps = [kill(tmp_path / "killed", SECONDS * d / sum(delays), i % 4 == 0) for i, d in enumerate(delays)]
    assert steps == sorted(steps)
    assert len(set(steps)) > KILLS / 2, "most kills should hit a run that has got further"
    assert outcome(fit(tmp_path / "killed", LONG, observe_at=AT)) == outcome(left_alone)
