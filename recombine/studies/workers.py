"""The runs of some studies spread over processes, and over GPUs where there are several. Each process goes through the studies
and trains what no other has taken; when all are through with a study, everything it needs is on disk, and the command judges it
as if it had always been there."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from multiprocessing import connection, get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NamedTuple

from recombine.config import UsageError, override
from recombine.sharing import side_by_side
from recombine.store import lockable
from recombine.studies import find
from recombine.studies.base import Scale

Started = tuple[BaseProcess, Connection]
"""A process, and what it tells."""


class Plan(NamedTuple):
    """What every process is told: plain values, from which it makes its own settings."""

    studies: tuple[str, ...]
    changes: tuple[str, ...]
    scale: Scale
    seeds: int
    device: str
    out: Path
    fresh: bool
    began: float
    workers: int


@contextmanager
def spread(plan: Plan, note: Callable[[str], None]) -> Iterator[Iterator[str]]:
    """Train all runs that the studies need, `plan.workers` at a time. Inside the block: each study, as soon as all processes
    are through with it; they go on with the next meanwhile. A process that fails leaves its runs to this one, which then
    says why."""
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        raise UsageError("--workers gives each run to one process, torchrun gives one run to all; use either")
    if not lockable(plan.out):
        raise UsageError(f"--workers needs locks on files, which {plan.out} does not offer")
    with side_by_side(note) if on_gpu(plan.device) else nullcontext():
        yield from _started(plan, note)


def on_gpu(device: str) -> bool:
    import torch

    return device != "cpu" and torch.cuda.is_available()


def _started(plan: Plan, note: Callable[[str], None]) -> Iterator[Iterator[str]]:
    context, started = get_context("spawn"), []
    try:
        for i in range(plan.workers):
            hears, tells = context.Pipe(duplex=False)
            process = context.Process(target=work, args=(plan, i, tells))
            started.append((process, hears))
            process.start()
            tells.close()
        yield _through(plan, started, note)
        _join(started)
    except BaseException:  # each saves between two steps; a second Ctrl-C does not wait for that
        for process, _ in started:
            if process.pid and process.is_alive():
                os.kill(process.pid, signal.SIGINT)
        _join(started)
        raise
    finally:
        for process, _ in started:
            if process.pid and process.is_alive():
                process.kill()
                process.join()


def _through(plan: Plan, started: list[Started], note: Callable[[str], None]) -> Iterator[str]:
    """Each study when no process has anything left to do for it."""
    here = dict(enumerate(started))
    for name in plan.studies:
        for i, (process, hears) in list(here.items()):
            try:
                hears.recv()
            except EOFError:
                process.join()
                note(f"worker {i} stopped with status {process.exitcode}")
                del here[i]
        yield name


def _join(started: list[Started]) -> None:
    for process, _ in started:
        if process.pid is not None:
            process.join()


def work(plan: Plan, index: int, tells: Connection) -> None:
    """One of the processes; it tells when it is through with a study. Ctrl-C reaches the one that started it, which passes it
    on; without that one it stops."""
    os.setpgrp()
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    import torch

    from recombine.machine import Machine
    from recombine.studies.lab import Lab
    from recombine.train.fit import Diverged

    torch.set_num_threads(max(1, torch.get_num_threads() // plan.workers))
    device = place(plan.device, index, torch.cuda.device_count())
    machine = Machine.find(device, label=f"[{index}] ", tensorboard=str(plan.out / "tensorboard"))
    lab = Lab(machine, plan.out, plan.scale, plan.seeds, plan.fresh, ahead=True, began=plan.began)
    try:
        for name in plan.studies:
            study = find(name)
            if any(c.trained for c in study.claims):
                for _ in study.compute(override(study.settings(plan.scale), *plan.changes), lab):
                    pass
            tells.send(name)
    except KeyboardInterrupt:
        os._exit(130)
    except (UsageError, Diverged) as error:
        machine.note(" ".join(str(error).split()))
        os._exit(1)


def place(device: str, index: int, gpus: int) -> str:
    """The device of a process: in turn, where there are several and none is named."""
    return f"cuda:{index % gpus}" if device in ("auto", "cuda") and gpus > 1 else device


def _stop_with_parent() -> None:
    if parent := parent_process():
        connection.wait([parent.sentinel])
        os._exit(1)
