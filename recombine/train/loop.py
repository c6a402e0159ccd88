"""One training loop that knows no objective. It is given a network, a per-sample loss and a
function from step to batch. All randomness is in that batch, drawn by name, so a resumed run
repeats an uninterrupted one bit for bit on the CPU."""

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

from recombine.config import UsageError
from recombine.runtime import Runtime
from recombine.store import RunFolder
from recombine.train.fit import Batch, Diverged, Fit, Loss, TrainConfig

Observe = Callable[[int], list[dict[str, Any]]]
"""step -> rows, called with the averaged weights in place."""


def train(
    net: nn.Module,
    loss: Loss,
    batch: Callable[[int], Batch],
    config: TrainConfig,
    folder: RunFolder,
    runtime: Runtime,
    observe: Observe | None = None,
    observe_at: tuple[int, ...] = (),
    needs_teacher: bool = False,
    title: str = "",
    check: Callable[[], None] | None = None,
) -> nn.Module:
    """Train `net` to the end of `config`, resuming where the folder left off; returns it with its
    averaged weights, which are saved in the folder. A loss that `needs_teacher` is also handed the
    network's moving average, as `teacher`. Each of several processes draws its own part of the
    batch (`Runtime.share`, `Runtime.stream`). `observe(step)` is called at the steps in
    `observe_at`; its rows are kept in the folder. `check` is called between updates and may raise
    to stop."""
    fit = Fit(net, loss, config, runtime, needs_teacher)
    clock = Clock(_resume(fit, folder))
    _loop(fit, batch, folder, observe, set(observe_at), clock, title or folder.digest, check)
    del fit
    if runtime.device.type == "cuda":
        gc.collect()  # a captured update holds itself, and with it all the memory of a run
    return load_weights(net, folder, runtime)


def load_weights(net: nn.Module, folder: RunFolder, runtime: Runtime) -> nn.Module:
    """`net` with the weights that a run left."""
    params = dict(net.to(runtime.device).named_parameters())
    with torch.no_grad():
        for name, tensor in folder.load_model().items():
            params[name].copy_(tensor)
            params[name].grad = None
    return net


def _resume(fit: Fit, folder: RunFolder) -> dict[str, float]:
    """Go on from what was saved, if anything was; the seconds spent before."""
    tensors, step, spent, rows = folder.load_state() or ({}, 0, {}, "")
    if step:
        fit.load(tensors, step)
    if fit.runtime.rank == 0:
        folder.rewind(fit.step, rows)
    fit.runtime.barrier()
    return spent


class Clock:
    """Seconds that a run has taken, and how many of them went into measuring; of one that was
    resumed, all together."""

    def __init__(self, spent: dict[str, float]) -> None:
        self.before, self.measuring = (spent.get(name, 0.0) for name in ("seconds", "measuring"))
        self.began = self.saved = time.perf_counter()

    def spent(self) -> dict[str, float]:
        seconds = self.before + time.perf_counter() - self.began
        return {"seconds": round(seconds, 2), "measuring": round(self.measuring, 2)}


def _loop(
    fit: Fit,
    batch: Callable[[int], Batch],
    folder: RunFolder,
    observe: Observe | None,
    observe_at: set[int],
    clock: Clock,
    title: str,
    check: Callable[[], None] | None,
) -> None:
    runtime, config = fit.runtime, fit.config
    with runtime.progress(title, config.steps, fit.step) as bar, interrupt_guard() as guard:
        while True:
            if guard.count:
                _save(fit, folder, clock)
                raise KeyboardInterrupt
            if check:
                check()
            if observe and fit.step in observe_at:
                _observe(fit, folder, observe, clock, guard)
            if fit.step >= config.steps:
                break
            values = fit.advance(batch(fit.step))
            if fit.step % config.log_every == 0 or fit.step == config.steps:
                _log(fit, folder, values, bar)
            if time.perf_counter() - clock.saved > runtime.save_seconds:
                _save(fit, folder, clock)
        _finish(fit, folder, clock, observe_at if observe else set())
    if guard.count:
        raise KeyboardInterrupt


class InterruptGuard:
    """Ctrl-C or SIGTERM once is a request, met between two steps, where what is saved is whole
    (half an update would not resume exactly), or `at_once` where nothing is changed; twice, it
    stops and the last save stands."""

    def __init__(self) -> None:
        self.count, self.immediate = 0, False

    def __call__(self, number: int, frame: Any) -> None:
        self.count += 1
        if self.count > 1 or self.immediate:
            raise KeyboardInterrupt

    @contextmanager
    def at_once(self, allowed: bool) -> Iterator[None]:
        self.immediate = allowed
        try:
            yield
        finally:
            self.immediate = False


@contextmanager
def interrupt_guard() -> Iterator[InterruptGuard]:
    """Only the main thread receives signals."""
    guard = InterruptGuard()
    if threading.current_thread() is not threading.main_thread():
        yield guard
        return
    before = {number: signal.signal(number, guard) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield guard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _observe(
    fit: Fit, folder: RunFolder, observe: Observe, clock: Clock, guard: InterruptGuard
) -> None:
    """Measure with the averaged weights in place. What Ctrl-C cuts short is measured again when the
    run is resumed."""
    began, failed = time.perf_counter(), None
    fit.check()
    if fit.runtime.rank == 0:
        try:
            with fit.averaged(), guard.at_once(fit.runtime.processes == 1):
                rows = observe(fit.step)
        except KeyboardInterrupt:
            if guard.count < 2:
                _save(fit, folder, clock)
            raise
        except Diverged as error:
            failed = f"{error} at step {fit.step}; is the guidance or rate too high?"
        else:
            folder.append(rows)
    if fit.runtime.agreed(failed is not None):
        raise Diverged(failed or f"the measurement at step {fit.step} failed")
    clock.measuring += time.perf_counter() - began


def _log(fit: Fit, folder: RunFolder, values: tuple[Tensor, Tensor], bar: Any) -> None:
    fit.check()
    if fit.runtime.processes > 1:
        dist.all_reduce(values[0], dist.ReduceOp.SUM)
        values = (values[0] / fit.runtime.processes, values[1])
    loss, norm = (float(v) for v in values)
    if fit.runtime.rank == 0:
        row = {
            "kind": "train",
            "step": fit.step,
            "loss": loss,
            "norm": norm,
            "lr": fit.config.rate(fit.step - 1),
        }
        folder.append([row])
        fit.runtime.board(folder.digest, row)
    bar(fit.step, f"loss {loss:.4f}")


def _save(fit: Fit, folder: RunFolder, clock: Clock) -> None:
    fit.check()
    if fit.runtime.rank == 0:
        folder.save_state(fit.state(), fit.step, clock.spent())
    clock.saved = time.perf_counter()


def _finish(fit: Fit, folder: RunFolder, clock: Clock, observed: set[int]) -> None:
    """Every planned checkpoint was measured, or the run is not done."""
    fit.check()
    if fit.runtime.rank == 0:
        planned = {step for step in observed if step <= fit.step}
        if lost := sorted(planned - folder.steps_measured()):
            raise UsageError(
                f"{folder.path / 'rows.jsonl'} has no measurements of step {lost[0]}; rows were "
                "lost while the run was at work; use --fresh"
            )
        folder.save_model(fit.ema, fit.step)
    if fit.runtime.keep_state:
        _save(fit, folder, clock)
    fit.runtime.barrier()
