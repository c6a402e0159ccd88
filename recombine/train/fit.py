"""The state of one training run and its update: plain, compiled, over several processes, or
replayed as a CUDA graph."""

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from recombine.config import RunFailed, UsageError, config
from recombine.runtime import Runtime
from recombine.train.flat import StepScalars, adamw, flat_params, learner
from recombine.train.graph import DDP_WARM, WARM, GraphedUpdate

Batch = tuple[Any, ...]
"""Tensors and named tuples of tensors, first axis = sample."""
Loss = Callable[..., Tensor]
"""(net, *batch) -> one number per sample; with a teacher also teacher=net's moving average."""


KINDS = 10_000
"""Kinds of networks that one process may compile; runs of the same kind, as the seeds of a variant,
share the code. Past its own limit of 8, torch stops compiling, and all is slow."""


@config("train")
class TrainConfig:
    """How a network is trained. `clip`: the largest norm of a gradient; 0 = not clipped."""

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
        for name in ("steps", "batch", "lr", "log_every"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}")
        for name in ("warmup", "weight_decay", "clip"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, not {getattr(self, name)}")
        if not all(0 <= x < 1 for x in (*self.betas, self.ema)):
            raise ValueError(f"betas {list(self.betas)} and ema {self.ema} must lie in [0, 1)")

    def rate(self, step: int) -> float:
        """The learning rate of the update after `step` updates."""
        warm = min(1.0, (step + 1) / max(1, self.warmup))
        rest = min(1.0, max(0, step - self.warmup) / max(1, self.steps - self.warmup))
        fall = {"none": 1.0, "linear": 1 - rest, "cosine": (1 + math.cos(math.pi * rest)) / 2}[
            self.decay
        ]
        return self.lr * warm * fall

    def average(self, step: int) -> float:
        """How much of the old average the EMA keeps; less at first, so that early checkpoints mean
        something."""
        return min(self.ema, (1 + step) / (10 + step))


class Diverged(RunFailed):
    """Training met a NaN or an infinity; the message says where."""


class Step(nn.Module):
    """The mean loss of a batch as a module, so that it can be compiled."""

    def __init__(
        self,
        net: nn.Module,
        loss: Loss,
        precision: str,
        device: torch.device,
        teacher: nn.Module | None,
    ):
        super().__init__()
        self.net, self.loss, self.teacher = net, loss, teacher
        self.cast = lambda: (
            torch.autocast(device.type, torch.bfloat16)
            if precision == "bfloat16"
            else nullcontext()
        )

    def forward(self, *batch: Any) -> Tensor:
        with self.cast():
            more = {"teacher": self.teacher} if self.teacher is not None else {}
            return self.loss(self.net, *batch, **more).float().mean()


class Fit:
    """The state of one training run: network, its moving average, their moments, step.
    `needs_teacher`: the loss is handed the moving average too."""

    def __init__(
        self,
        net: nn.Module,
        loss: Loss,
        config: TrainConfig,
        runtime: Runtime,
        needs_teacher: bool = False,
    ):
        if config.batch % runtime.processes:
            raise UsageError(
                f"batch {config.batch} cannot be shared by {runtime.processes} processes"
            )
        if running := [
            name
            for name, part in net.named_modules()
            if getattr(part, "running_mean", None) is not None
        ]:
            raise UsageError(
                f"{running[0]}: running statistics are neither averaged nor saved; take a norm without them"
            )
        self.config, self.runtime, self.step = config, runtime, 0
        self.net = net.to(runtime.device)
        if runtime.processes > 1:
            broadcast(self.net)  # before the average is copied from it
        self.average = copy.deepcopy(self.net).requires_grad_(False)
        self.flat = flat_params(self.net, self.average, config.precision == "bfloat16")
        self.params, self.ema = (
            dict(self.net.named_parameters()),
            dict(self.average.named_parameters()),
        )
        self.scalars = StepScalars.on(runtime.device)
        self.bad_step, self.bad_loss = torch.tensor([-1.0, 0.0], device=runtime.device).unbind()
        teacher, learns = self.average if needs_teacher else None, learner(self.net, self.flat)
        self.module, self.adamw = (
            Step(learns, loss, config.precision, runtime.device, teacher),
            adamw,
        )
        if runtime.compile:
            torch._dynamo.config.recompile_limit = (
                torch._dynamo.config.accumulated_recompile_limit
            ) = KINDS
            # Convolutions of bfloat16 want channels last. By its own guess torch turns only some, and
            # cuDNN the others in every step: 4.88 ms of kernels a step of a scene U-Net, so 4.19.
            torch._inductor.config.force_layout_optimization = True
            self.module.compile(dynamic=False, mode=runtime.compile)
            self.adamw = torch.compile(adamw, dynamic=False)
        if runtime.processes > 1:
            self.module = distributed(self.module, runtime)
        warm = DDP_WARM if runtime.processes > 1 else WARM
        self.update = (
            GraphedUpdate(self.plain_update, warm) if runtime.graphs else self.plain_update
        )

    def plain_update(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """One update of weights and average; the batch's loss and the gradient's norm. Notes the
        first step at which one of them is not finite."""
        moving = [v for v in self.flat if v.learns]
        for part in moving:
            part.forget()
        loss = self.module(*batch)
        loss.backward()
        loss = loss.detach()
        grads = [part.gather() for part in moving]
        norm = torch.stack([torch.linalg.vector_norm(g, dtype=torch.float32) for g in grads]).norm()
        scale = torch.ones_like(norm)
        if self.config.clip:
            scale = (self.config.clip / (norm + 1e-6)).clamp(max=1.0)
        with torch.no_grad():
            for part, grad in zip(moving, grads, strict=True):
                self.adamw(
                    *part.held(),
                    grad,
                    scale,
                    self.scalars,
                    self.config.betas,
                    self.config.weight_decay,
                )
            first = (self.bad_step < 0) & ~(torch.isfinite(loss) & torch.isfinite(norm))
            self.bad_step.copy_(torch.where(first, self.scalars.step, self.bad_step))
            self.bad_loss.copy_(torch.where(first, ~torch.isfinite(loss), self.bad_loss))
        return loss, norm

    def advance(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """One step; its loss and the norm of its gradient before clipping."""
        config, step = self.config, self.step
        self.scalars.set(step, config.rate(step), config.average(step), config.betas)
        losses = self.update(batch)
        self.step += 1
        return losses

    def check(self) -> None:
        """Stop if any step so far was not finite; nothing is saved or measured after one."""
        if (bad := int(self.bad_step)) >= 0:
            what = "the loss" if self.bad_loss else "the gradient of a finite loss"
            raise Diverged(
                f"{what} is not finite at step {bad}; a lower lr, more warmup or float32 may help"
            )

    def state(self) -> dict[str, Tensor]:
        """Everything that the next step depends on, by names that do not depend on how it is laid
        out."""
        return {
            f"{kind}.{name}": t
            for v in self.flat
            for kind, some in v.parts().items()
            for name, t in some.items()
        }

    @torch.no_grad()
    def load(self, tensors: dict[str, Tensor], step: int) -> None:
        if self.state().keys() != tensors.keys():
            raise UsageError(
                "what is saved of this run is of another version; --fresh trains it anew"
            )
        self.step = step
        for name, part in self.state().items():
            part.copy_(tensors[name])
        for part in self.flat:
            part.round()

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """`with fit.averaged():` the network carries its moving average, and drops nothing."""
        before = self.net.training
        with swapped(self.params, self.ema):
            self.net.eval()
            try:
                yield
            finally:
                self.net.train(before)


def distributed(module: nn.Module, runtime: Runtime) -> DistributedDataParallel:
    """The module with gradients averaged over processes, in buckets, while the backward pass goes
    on. The graph of a step never changes, so weights that a loss does not use need no search. On a
    GPU it is built on a side stream, as capturing it in a CUDA graph requires."""
    on_gpu = runtime.device.type == "cuda"
    side = torch.cuda.stream(torch.cuda.Stream()) if on_gpu else nullcontext()
    devices = [runtime.device] if on_gpu else None
    with side:
        return DistributedDataParallel(
            module,
            devices,
            broadcast_buffers=False,
            gradient_as_bucket_view=True,
            static_graph=True,
        )


@torch.no_grad()
def broadcast(net: nn.Module) -> None:
    """All processes begin with the numbers of the first."""
    for tensor in (*net.parameters(), *net.buffers()):
        if tensor.is_floating_point():
            dist.broadcast(tensor, 0)


class swapped:
    """Two sets of weights exchanged in place while the block runs; compiled code and graphs keep
    their addresses."""

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
