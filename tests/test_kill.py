"""A run that is killed again and again ends like one that was left alone. The kills are real:
SIGKILL, at any moment."""

import os
import random
import signal
import time
from dataclasses import replace
from pathlib import Path

from tiny import CONFIG, QUIET, batch, fit, folder_of, outcome

KILLS, MOST = 20, 14
LONG = replace(CONFIG, steps=400, log_every=7)
AT = tuple(range(0, 401, 10))


def child(root: Path) -> tuple[int, int]:
    """Another process that trains under `root` and saves after every step: its id, and a pipe that
    gets a byte at each step."""
    source, writer = os.pipe()
    if pid := os.fork():
        os.close(writer)
        return pid, source

    def reporting(step: int):
        os.write(writer, b".")
        return batch(step)

    try:
        fit(root, LONG, replace(QUIET, save_seconds=0.0), reporting, AT)
    finally:
        os._exit(0)


def kill(root: Path, steps: int, delay: float) -> int:
    """Kill a run `delay` seconds after it began its so-many-eth step; the step it can go on
    from."""
    pid, source = child(root)
    for _ in range(steps):
        os.read(source, 1)
    time.sleep(delay)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    os.close(source)
    assert os.WIFSIGNALED(status), "the run ended before it was killed"
    assert os.WTERMSIG(status) == signal.SIGKILL
    saved = folder_of(root, LONG).load_state()
    return saved[1] if saved else 0


def test_twenty_kills_do_not_change_the_result(tmp_path):
    left_alone = fit(tmp_path / "alone", LONG, observe_at=AT)
    rng, reached = random.Random(7), [0]
    for _ in range(KILLS):
        steps = rng.randrange(MOST)
        reached.append(kill(tmp_path / "killed", steps, rng.uniform(0, 0.01)))
        assert reached[-1] >= reached[-2] + max(0, steps - 1), "every step that was ended is kept"
    assert outcome(fit(tmp_path / "killed", LONG, observe_at=AT)) == outcome(left_alone)
