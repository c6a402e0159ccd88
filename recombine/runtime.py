"""Where a run happens and how it reports: device, processes, compilation, progress. None of this
decides a result."""

import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist

from recombine.config import UsageError
from recombine.provenance import commit
from recombine.rng import seeded

EARLY = 0.05
"""The share of a task below which its own speed is believed less than the average."""


@dataclass
class Pace:
    """How far a whole command is, from the costs of its tasks (`Task.cost`): what a unit takes is
    measured for each kind of task, and on average for kinds that this process has not met. `costs`
    by kind are those of all tasks that were not finished when the running one began, which is one
    of them; `after`: what comes when all are done, in one process."""

    workers: int = 1
    after: float = 0.0
    kind: str = ""
    cost: float = 0.0
    costs: dict[str, float] = field(default_factory=dict)
    resumed: float = 0.0
    began: float = field(default_factory=time.monotonic)
    measured: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Seconds and cost of what is finished, by kind."""

    def start(self, kind: str, cost: float, costs: dict[str, float]) -> None:
        self.kind, self.cost, self.costs = kind, cost, costs
        self.resumed, self.began = 0.0, time.monotonic()

    def finish(self) -> None:
        self.measured, self.cost = self._with_running(1.0), 0.0

    def left(self, share: float) -> str:
        """The time that the command still takes, when so much of the running task is done; nothing
        while too little is known. The other workers are taken to be as fast as this one."""
        measured = self._with_running(share)
        spent, finished = (sum(column) for column in zip(*measured.values(), strict=True))
        if finished <= 0 or spent < 5:
            return ""
        average = spent / finished
        few = {self.kind: EARLY * self.cost}  # a task begins with what is not repeated
        rates = {
            k: (s + average * few.get(k, 0.0)) / (c + few.get(k, 0.0)) if c and s > 1 else average
            for k, (s, c) in measured.items()
        }
        own = (1 - share) * self.cost * rates[self.kind]
        by_others = (self.workers - 1) * (share - self.resumed) * self.cost * rates[self.kind]
        all_ = sum(cost * rates.get(kind, average) for kind, cost in self.costs.items())
        others = max(0.0, all_ - self.cost * rates[self.kind] - by_others)
        seconds = max(own, (own + others) / self.workers) + self.after * average
        return f"about {in_words(seconds)} left in all"

    def _with_running(self, share: float) -> dict[str, tuple[float, float]]:
        seconds, cost = self.measured.get(self.kind, (0.0, 0.0))
        now, part = time.monotonic() - self.began, (share - self.resumed) * self.cost
        return self.measured | {self.kind: (seconds + now, cost + part)}


def in_words(seconds: float) -> str:
    """42 s, 3 min, 1.5 h: as exact as a forecast is."""
    if seconds < 90:
        return f"{max(1, round(seconds)):d} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@dataclass(frozen=True)
class Runtime:
    """`compile` is a torch.compile mode ("" = off); `graphs` replays whole updates as CUDA graphs.
    `label`: what its lines begin with, where several processes write."""

    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    compile: str = ""
    graphs: bool = False
    rank: int = 0
    processes: int = 1
    save_seconds: float = 60.0
    keep_state: bool = True
    quiet: bool = False
    label: str = ""
    tensorboard: str = ""
    pace: Pace = field(default_factory=Pace, compare=False)

    @staticmethod
    def find(name: str = "auto", **options: Any) -> "Runtime":
        """The runtime called auto, cpu, cuda or cuda:N; joins the other processes when started by
        torchrun."""
        device = find_device(name)
        processes = int(os.environ.get("WORLD_SIZE", 1))
        if processes > 1 and device.type == "cuda":
            device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        if device.type == "cuda":
            torch.cuda.set_device(device)
            torch.set_float32_matmul_precision("high")
            options = {"compile": "default", "graphs": True} | options
        if processes > 1 and not dist.is_initialized():
            os.environ.setdefault(
                "TORCH_NCCL_ASYNC_ERROR_HANDLING", "0"
            )  # or updates cannot be captured
            dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
        rank = dist.get_rank() if processes > 1 else 0
        commit()  # while the code on disk is the one that is loaded
        return Runtime(device=device, rank=rank, processes=processes, **options)

    def facts(self) -> dict[str, Any]:
        """What provenance says of this machine."""
        name = (
            torch.cuda.get_device_name(self.device)
            if self.device.type == "cuda"
            else platform.machine() + " CPU"
        )
        return {
            "commit": commit(),
            "device": name,
            "torch": torch.__version__,
            "python": platform.python_version(),
            "processes": self.processes,
        }

    def barrier(self) -> None:
        """Wait until all processes that share a run are here."""
        if self.processes > 1:
            dist.barrier()

    def share(self, count: int) -> int:
        """How many of the `count` samples of a batch this process draws."""
        return count // self.processes

    def stream(self, *key: str | int) -> torch.Generator:
        """The random stream called `key` on this device; processes that share a run each have their
        own."""
        own = ("rank", self.rank, self.processes) if self.processes > 1 else ()
        return seeded(*key, *own, device=self.device)

    def agreed(self, answer: bool) -> bool:
        """What the first of the processes that share a run answers; all of them must call it."""
        if self.processes == 1:
            return answer
        word = torch.tensor([float(answer)], device=self.device)
        dist.broadcast(word, 0)
        return bool(word.item())

    def log(self, text: str) -> None:
        """One line for whoever watches."""
        if not self.quiet and self.rank == 0:
            print(self.label + text, file=sys.stderr, flush=True)

    @contextmanager
    def progress(
        self, label: str, total: int, done: int = 0
    ) -> Iterator[Callable[[int, str], None]]:
        """A bar on a terminal, a plain line now and then otherwise, with the time that is left for
        the whole command: `with runtime.progress(...) as bar: bar(step, text)`."""
        self.pace.resumed = done / max(1, total)
        if self.quiet or self.rank > 0:
            yield lambda step, text: None
        elif sys.stderr.isatty() and not self.label:
            with _bar(label, total, done, self.pace) as bar:
                yield bar
        else:
            yield _lines(self.label + label, total, self.pace)

    def board(self, run: str, row: dict[str, Any]) -> None:
        """The row to TensorBoard, where that is installed and a folder was named."""
        if self.tensorboard and (writer := _writer(f"{self.tensorboard}/{run}")):
            for key, value in row.items():
                if isinstance(value, float):
                    writer.add_scalar(key, value, row["step"])


def find_device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    if name == "cpu":
        return torch.device("cpu")
    kind, _, number = name.partition(":")
    if kind != "cuda" or (number and not (number.isascii() and number.isdigit())):
        raise UsageError(f"--device {name}: not one of auto, cpu, cuda, cuda:N")
    count = torch.cuda.device_count()
    if int(number or 0) >= count:
        raise UsageError(
            f"--device {name}: this machine has {count or 'no'} CUDA device{'s' * (count != 1)}"
        )
    return torch.device("cuda", int(number or 0))


@contextmanager
def _bar(label: str, total: int, done: int, pace: Pace) -> Iterator[Callable[[int, str], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[text]}  {task.fields[left]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=total, completed=done, text="", left="")
        yield lambda step, text: progress.update(
            task, completed=step, text=text, left=pace.left(step / total)
        )


def _lines(label: str, total: int, pace: Pace, every: float = 10.0) -> Callable[[int, str], None]:
    last = [time.monotonic()]

    def line(step: int, text: str) -> None:
        if time.monotonic() - last[0] > every or step == total:
            last[0] = time.monotonic()
            words = (f"{step}/{total}", text, pace.left(step / total))
            print("  ".join((label, *filter(None, words))), file=sys.stderr, flush=True)

    return line


_writers: dict[str, Any] = {}


def _writer(path: str) -> Any:
    if path not in _writers:
        try:
            from torch.utils.tensorboard import SummaryWriter

            _writers[path] = SummaryWriter(path)
        except ImportError:
            _writers[path] = None
    return _writers[path]
