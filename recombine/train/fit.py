"""The state of one training run and its update: plain, compiled, over several processes, or replayed as a CUDA graph."""

import copy
import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from recombine.config import UsageError
from recombine.machine import Machine
from recombine.train.graph import GraphedUpdate

Batch = tuple[Any, ...]
"""Tensors and named tuples of tensors, first axis = sample."""
Loss = Callable[..., Tensor]
"""(net, *batch) -> one number per sample; with a teacher also teacher=net's moving average."""


KINDS = 10_000
"""Kinds of networks that one process may compile; runs of the same kind, as the seeds of a variant, share the code. Past its
own limit of 8, torch stops compiling, and all is slow."""


@dataclass(frozen=True)
class TrainConfig:
    steps: int = 20_000
    batch: int = 256
    lr: float = 3e-4
    warmup: int = 200
    decay: Literal["none", "linear", "cosine"] = "cosine"
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.99)
    clip: float = 1.0
    ema: float = 0.999
    precision: Literal["float32", "bfloat16"] = "float32"
    log_every: int = 50

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "lr", "clip", "log_every"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}")
        for name in ("warmup", "weight_decay"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, not {getattr(self, name)}")
        if not all(0 <= x < 1 for x in (*self.betas, self.ema)):
            raise ValueError(f"betas {list(self.betas)} and ema {self.ema} must lie in [0, 1)")

    def rate(self, step: int) -> float:
        """The learning rate of the update after `step` updates."""
        warm = min(1.0, (step + 1) / max(1, self.warmup))
        rest = min(1.0, max(0, step - self.warmup) / max(1, self.steps - self.warmup))
        fall = {"none": 1.0, "linear": 1 - rest, "cosine": (1 + math.cos(math.pi * rest)) / 2}[self.decay]
        return self.lr * warm * fall

    def average(self, step: int) -> float:
        """How much of the old average the EMA keeps; less at first, so that early checkpoints mean something."""
        return min(self.ema, (1 + step) / (10 + step))


class Diverged(RuntimeError):
    """Training met a NaN or an infinity; the message says where."""


class Step(nn.Module):
    """The mean loss of a batch as a module, so that it can be compiled and wrapped for several processes."""

    def __init__(self, net: nn.Module, loss: Loss, precision: str, device: torch.device, teacher: nn.Module | None):
        super().__init__()
        self.net, self.loss, self.teacher = net, loss, teacher
        self.cast = lambda: torch.autocast(device.type, torch.bfloat16) if precision == "bfloat16" else nullcontext()

    def forward(self, *batch: Any) -> Tensor:
        with self.cast():
            more = {"teacher": self.teacher} if self.teacher is not None else {}
            return self.loss(self.net, *batch, **more).float().mean()


class Fit:
    """The state of one training run: network, its moving average, optimizer, step. `taught`: the loss is handed the moving
    average too."""

    def __init__(self, net: nn.Module, loss: Loss, config: TrainConfig, machine: Machine, taught: bool = False):
        if config.batch % machine.processes:
            raise UsageError(f"batch {config.batch} cannot be shared by {machine.processes} processes")
        self.config, self.machine, self.step = config, machine, 0
        self.net = net.to(machine.device)
        self.params = dict(self.net.named_parameters())
        self.average = copy.deepcopy(self.net).requires_grad_(False)
        self.ema = dict(self.average.named_parameters())
        cuda = machine.device.type == "cuda"
        self.rate = torch.tensor(config.lr, device=machine.device) if cuda else config.lr
        self.optimizer = torch.optim.AdamW(
            self.params.values(), self.rate, config.betas, weight_decay=config.weight_decay, fused=cuda, capturable=cuda
        )
        self.bad_step, self.bad_loss = torch.tensor([-1, 0], device=machine.device).unbind()
        teacher = self.average if taught else None
        self.module = self._wrap(Step(self.net, loss, config.precision, machine.device, teacher))
        self.update = GraphedUpdate(self.plain_update) if machine.graphs else self.plain_update

    def _wrap(self, step: Step) -> nn.Module:
        if self.machine.compile:
            torch._dynamo.config.recompile_limit = torch._dynamo.config.accumulated_recompile_limit = KINDS
            step.compile(dynamic=False, mode=self.machine.compile)
        return DistributedDataParallel(step) if self.machine.processes > 1 else step

    def plain_update(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """One optimizer update; the batch's loss and the gradient's norm."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.module(*batch)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.params.values(), self.config.clip, foreach=True)
        self.optimizer.step()
        return loss.detach(), norm.detach()

    def advance(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """One step: update, moving average, and a note of the first step whose loss or gradient was not finite."""
        rate = self.config.rate(self.step)
        if isinstance(self.rate, Tensor):
            self.rate.fill_(rate)
        else:
            self.optimizer.param_groups[0]["lr"] = rate
        loss, norm = self.update(batch)
        with torch.no_grad():
            weight = 1 - self.config.average(self.step)
            torch._foreach_lerp_(list(self.ema.values()), list(self.params.values()), weight)
            first = (self.bad_step < 0) & ~(torch.isfinite(loss) & torch.isfinite(norm))
            self.bad_step = torch.where(first, self.step, self.bad_step)
            self.bad_loss = torch.where(first, ~torch.isfinite(loss), self.bad_loss)
        self.step += 1
        return loss, norm

    def check(self) -> None:
        """Stop if any step so far was not finite; nothing is saved or measured after one."""
        if (bad := int(self.bad_step)) >= 0:
            what = "the loss" if self.bad_loss else "the gradient of a finite loss"
            raise Diverged(f"{what} is not finite at step {bad}; a lower lr, more warmup or float32 may help")

    def state(self) -> dict[str, Tensor]:
        tensors = {f"net.{k}": p for k, p in self.params.items()} | {f"ema.{k}": p for k, p in self.ema.items()}
        for name, p in self.params.items():
            tensors |= {f"optimizer.{name}.{k}": v for k, v in self.optimizer.state.get(p, {}).items()}
        return tensors

    @torch.no_grad()
    def load(self, tensors: dict[str, Tensor], step: int) -> None:
        self.step = step
        for name, p in self.params.items():
            p.copy_(tensors[f"net.{name}"])
            self.ema[name].copy_(tensors[f"ema.{name}"])
            begin = f"optimizer.{name}."
            held = {k.removeprefix(begin): v for k, v in tensors.items() if k.startswith(begin)}
            self.optimizer.state[p] = {k: v.to(p.device) for k, v in held.items()}

    def averaged(self) -> "swapped":
        """`with fit.averaged():` the network carries its moving average."""
        return swapped(self.params, self.ema)


class swapped:
    """Two sets of weights exchanged in place while the block runs; compiled code and graphs keep their addresses."""

    def __init__(self, first: dict[str, Tensor], second: dict[str, Tensor]):
        self.first, self.second = first, second

    @torch.no_grad()
    def _swap(self) -> None:
        for name, tensor in self.first.items():
            held = tensor.clone()
            tensor.copy_(self.second[name])
            self.second[name].copy_(held)

    def __enter__(self) -> None:
        self._swap()

    def __exit__(self, *_: Any) -> None:
        self._swap()
