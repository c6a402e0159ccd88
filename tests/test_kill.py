"""A run that is killed again and again ends like one that was left alone. The kills are real: SIGKILL, at any moment."""

import os
import random
import signal
import time
from dataclasses import replace
from pathlib import Path

from tiny import CONFIG, QUIET, batch, fit, outcome

from recombine.store import RunFolder

KILLS, SECONDS = 20, 1.2
LONG = replace(CONFIG, steps=1500, log_every=7)
AT = tuple(range(0, 1501, 100))


def slow(step: int):
    """At least a millisecond a step, so that no machine is so fast that the run ends before its kills."""
    time.sleep(0.001)
    return batch(step)


def child(root: Path) -> int:
    """Another process that trains under `root`, saving all the time; its id."""
    if pid := os.fork():
        return pid
    status = 1
    try:
        fit(root, LONG, replace(QUIET, save_seconds=0.002), slow, AT)
        status = 0
    finally:
        os._exit(status)


def test_twenty_kills_do_not_change_the_result(tmp_path):
    rng, steps = random.Random(7), []
    delays = [rng.random() for _ in range(KILLS)]
    for delay in delays:
        pid = child(tmp_path / "killed")
        time.sleep(SECONDS * delay / sum(delays))
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        assert os.WIFSIGNALED(status), "the run ended before it was killed"
        assert os.WTERMSIG(status) == signal.SIGKILL
        saved = RunFolder(tmp_path / "killed", LONG).load_state()
        steps.append(saved[1] if saved else 0)
    assert steps == sorted(steps)
    assert len(set(steps)) > KILLS / 2, "most kills should hit a run that has got further"
    left_alone = fit(tmp_path / "alone", LONG, observe_at=AT)
    assert outcome(fit(tmp_path / "killed", LONG, observe_at=AT)) == outcome(left_alone)
