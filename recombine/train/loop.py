"""One training loop that knows no objective. It is given a network, a per-sample loss and a function from step to batch; all
randomness is in that batch, drawn by name, so a resumed run repeats an uninterrupted one bit for bit on the CPU and several
processes see the same global batch as one."""

import gc
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from recombine.machine import Machine
from recombine.store import RunFolder
from recombine.train.fit import Batch, Fit, Loss, TrainConfig


def share(batch: Any, rank: int, processes: int) -> Any:
    """This process's part of a global batch."""
    if isinstance(batch, Tensor):
        return batch.chunk(processes)[rank]
    parts = [share(b, rank, processes) for b in batch]
    return type(batch)(*parts) if hasattr(batch, "_fields") else tuple(parts)


def train(
    net: nn.Module,
    loss: Loss,
    batch: Callable[[int], Batch],
    config: TrainConfig,
    folder: RunFolder,
    machine: Machine,
    observe: Callable[[int], list[dict[str, Any]]] | None = None,
    observe_at: tuple[int, ...] = (),
    taught: bool = False,
) -> nn.Module:
    """Train `net` to the end of `config`, resuming where the folder left off; returns it with its averaged weights. A
    `taught` loss is also handed the moving average of the network, as `teacher`. Where another process is training the same
    run, this one waits for it; a finished run whose weights are gone is trained again, and so is one that stands on others.
    `observe(step)` is called with those weights in place at the steps in `observe_at`; its rows are kept in the folder."""
    with folder.held():
        machine.meet()
        if (folder.hollow or folder.stale) and machine.rank == 0:
            folder.erase()
        machine.meet()
        folder.open()
        if not folder.done:
            fit = Fit(net, loss, config, machine, taught)
            _resume(fit, folder)
            _loop(fit, batch, folder, observe, set(observe_at))
            del fit
            if machine.device.type == "cuda":
                gc.collect()  # a captured update holds itself, and with it all the memory of a run
        weights = folder.load_model()
    params = dict(net.to(machine.device).named_parameters())
    with torch.no_grad():
        for name, tensor in weights.items():
            params[name].copy_(tensor)
            params[name].grad = None
    return net


def _resume(fit: Fit, folder: RunFolder) -> None:
    if saved := folder.load_state():
        fit.load(*saved)
    if fit.machine.rank == 0:
        folder.sweep()
        folder.rewind(fit.step)


class Clock:
    """Seconds that a run has taken, and how many of them went into measuring; of one that was resumed, all together."""

    def __init__(self, spent: dict[str, float]) -> None:
        self.before, self.observing = (spent.get(name, 0.0) for name in ("seconds", "observing"))
        self.began = self.saved = time.perf_counter()

    def spent(self) -> dict[str, float]:
        seconds = self.before + time.perf_counter() - self.began
        return {"seconds": round(seconds, 2), "observing": round(self.observing, 2)}


def _loop(fit: Fit, batch: Callable, folder: RunFolder, observe: Callable | None, observe_at: set[int]) -> None:
    machine, config, clock = fit.machine, fit.config, Clock(folder.spent() if fit.step else {})
    with machine.progress(folder.title, config.steps, fit.step) as bar, patience() as wish:
        while True:
            if wish.count:
                _save(fit, folder, clock)
                raise KeyboardInterrupt
            if observe and fit.step in observe_at:
                _observe(fit, folder, observe, clock, wish)
            if fit.step >= config.steps:
                break
            values = fit.advance(share(batch(fit.step), machine.rank, machine.processes))
            if fit.step % config.log_every == 0 or fit.step == config.steps:
                _log(fit, folder, values, bar)
            if time.perf_counter() - clock.saved > machine.save_seconds:
                _save(fit, folder, clock)
    _finish(fit, folder, clock)
    if wish.count:
        raise KeyboardInterrupt


class Wish:
    """Ctrl-C once is a wish, granted between two steps, where what is saved is whole (half an update would not resume
    exactly), or `at_once` where nothing is changed; twice, it stops and the last save stands."""

    def __init__(self) -> None:
        self.count, self.granted = 0, False

    def __call__(self, number: int, frame: Any) -> None:
        self.count += 1
        if self.count > 1 or self.granted:
            raise KeyboardInterrupt

    @contextmanager
    def at_once(self, allowed: bool) -> Iterator[None]:
        self.granted = allowed
        try:
            yield
        finally:
            self.granted = False


@contextmanager
def patience() -> Iterator[Wish]:
    """Only the main thread receives Ctrl-C."""
    wish = Wish()
    if threading.current_thread() is not threading.main_thread():
        yield wish
        return
    before = signal.signal(signal.SIGINT, wish)
    try:
        yield wish
    finally:
        signal.signal(signal.SIGINT, before)


def _observe(fit: Fit, folder: RunFolder, observe: Callable, clock: Clock, wish: Wish) -> None:
    """Measure with the averaged weights in place. What Ctrl-C cuts short is measured again when the run is resumed."""
    began = time.perf_counter()
    fit.check()
    if fit.machine.rank == 0:
        try:
            with fit.averaged(), wish.at_once(fit.machine.processes == 1):
                rows = observe(fit.step)
        except KeyboardInterrupt:
            if wish.count < 2:  # none, where something that is trained on the way has taken it
                _save(fit, folder, clock)
            raise
        folder.append(rows)
    fit.machine.meet()
    clock.observing += time.perf_counter() - began


def _log(fit: Fit, folder: RunFolder, values: tuple[Tensor, Tensor], bar: Any) -> None:
    fit.check()
    if fit.machine.processes > 1:
        dist.all_reduce(values[0], dist.ReduceOp.SUM)
        values = (values[0] / fit.machine.processes, values[1])
    loss, norm = (float(v) for v in values)
    if fit.machine.rank == 0:
        row = {"kind": "train", "step": fit.step, "loss": loss, "norm": norm, "lr": fit.config.rate(fit.step - 1)}
        folder.append([row])
        fit.machine.board(folder.digest, row)
    bar(fit.step, f"loss {loss:.4f}")


def _save(fit: Fit, folder: RunFolder, clock: Clock) -> None:
    fit.check()
    if fit.machine.rank == 0:
        folder.save_state(fit.state(), fit.step, clock.spent())
    clock.saved = time.perf_counter()


def _finish(fit: Fit, folder: RunFolder, clock: Clock) -> None:
    fit.check()
    if fit.machine.rank == 0:
        weights = folder.save_model(fit.ema, fit.step)
        if fit.machine.keep_state:
            _save(fit, folder, clock)
        folder.finish({"step": fit.step, **clock.spent(), "weights": weights, **fit.machine.facts()})
    fit.machine.meet()
