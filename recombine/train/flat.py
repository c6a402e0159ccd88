"""All weights of a network as one vector, and its update in one pass over memory: clipping, AdamW,
the moving average, and, where the network computes in bfloat16, its weights in that precision. A
large network's update is all memory: each further pass over a hundred million numbers costs as much
as the products of several pictures."""

import copy
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

PRODUCTS = (nn.Linear, nn.Conv2d, nn.ConvTranspose2d)
"""Layers whose weights enter only matrix products: what autocast would round anew in every step."""
ALIGN = 64
"""Every tensor begins at a multiple of this many numbers, as kernels like it."""
EPS = 1e-8
Params = dict[str, nn.Parameter]


class StepScalars(NamedTuple):
    """What changes from step to step, on the device, so that a captured update can be replayed."""

    step: Float[Tensor, ""]
    rate: Float[Tensor, ""]
    blend: Float[Tensor, ""]
    """How much of the new weights enters the average."""
    first: Float[Tensor, ""]
    second: Float[Tensor, ""]
    """What the moments are divided by, since they start at zero."""

    @staticmethod
    def on(device: torch.device) -> "StepScalars":
        return StepScalars(*(torch.zeros((), device=device) for _ in StepScalars._fields))

    def set(self, step: int, rate: float, keep: float, betas: tuple[float, float]) -> None:
        values = (step, rate, 1 - keep, *(1 - beta ** (step + 1) for beta in betas))
        for scalar, value in zip(self, values, strict=True):
            scalar.fill_(value)


class FlatParams:
    """Some parameters side by side, with their average and moments; the parameters become views of
    it. `rounded`: the network that learns uses a copy in bfloat16 in their place (`leaves`), and
    gradients come in that precision too."""

    def __init__(self, params: Params, average: Params, rounded: bool):
        sizes = [-(-p.numel() // ALIGN) * ALIGN for p in params.values()]
        device = next(iter(params.values())).device
        empty = lambda dtype=torch.float32: torch.zeros(sum(sizes), device=device, dtype=dtype)  # noqa: E731
        self.sizes, self.shapes = sizes, {k: p.shape for k, p in params.items()}
        self.weight, self.ema, self.first, self.second = (empty() for _ in range(4))
        self.grad = empty(torch.bfloat16 if rounded else torch.float32)
        self.copy = empty(torch.bfloat16) if rounded else None
        for flat, some in ((self.weight, params), (self.ema, average)):
            for view, p in zip(self.views(flat).values(), some.values(), strict=True):
                p.data = view.copy_(p.data)
        self.leaves: Params = params
        if self.copy is not None:
            self.leaves = {k: nn.Parameter(v) for k, v in self.views(self.copy).items()}
        self.learns = any(p.requires_grad for p in params.values())
        self.round()

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        parts = zip(self.shapes.items(), flat.split(self.sizes), strict=True)
        return {name: part[: shape.numel()].view(shape) for (name, shape), part in parts}

    @torch.no_grad()
    def round(self) -> None:
        if self.copy is not None:
            self.copy.copy_(self.weight)

    @torch.no_grad()
    def gather(self) -> Tensor:
        """The gradient as one vector; zero for a weight that the loss did not use."""
        views = list(self.views(self.grad).values())
        grads = [leaf.grad for leaf in self.leaves.values()]
        for view, grad in zip(views, grads, strict=True):
            if grad is None:
                view.zero_()
        used = [(v, g) for v, g in zip(views, grads, strict=True) if g is not None]
        if used:
            torch._foreach_copy_(*(list(t) for t in zip(*used, strict=True)))
        return self.grad

    def forget(self) -> None:
        """The gradient of the step before."""
        for leaf in self.leaves.values():
            leaf.grad = None

    def held(self) -> tuple[Tensor | None, ...]:
        return self.weight, self.ema, self.first, self.second, self.copy

    def parts(self) -> dict[str, dict[str, Tensor]]:
        """What is saved, tensor by tensor."""
        kinds = {"net": self.weight, "ema": self.ema, "first": self.first, "second": self.second}
        return {kind: self.views(flat) for kind, flat in kinds.items()}


def adamw(
    weight: Tensor,
    ema: Tensor,
    first: Tensor,
    second: Tensor,
    rounded: Tensor | None,
    grad: Tensor,
    scale: Tensor,
    scalars: StepScalars,
    betas: tuple[float, float],
    decay: float,
) -> None:
    """The update of one vector, in place."""
    grad = grad.float() * scale
    first.lerp_(grad, 1 - betas[0])
    second.lerp_(grad * grad, 1 - betas[1])
    change = first / scalars.first / ((second / scalars.second).sqrt() + EPS)
    if decay:
        weight.mul_(1 - scalars.rate * decay)
    weight.sub_(scalars.rate * change)
    ema.lerp_(weight, scalars.blend)
    if rounded is not None:
        rounded.copy_(weight)


def products(net: nn.Module) -> set[str]:
    """The names of the weights that learn and only enter matrix products."""
    mine = {id(m.weight) for m in net.modules() if isinstance(m, PRODUCTS)}
    others = {id(p) for m in net.modules() for k, p in m.named_parameters(recurse=False)
              if not (isinstance(m, PRODUCTS) and k == "weight")}  # fmt: skip
    return {
        name for name, p in net.named_parameters() if id(p) in mine - others and p.requires_grad
    }


def flat_params(net: nn.Module, average: nn.Module, rounded: bool) -> list[FlatParams]:
    """All parameters of a network and of its average: those that are `rounded`, the rest, and those
    that do not learn."""
    params, means = dict(net.named_parameters()), dict(average.named_parameters())
    heavy = products(net) if rounded else set()
    still = {k for k, p in params.items() if not p.requires_grad}
    found = []
    for names, rounds in ((heavy, True), (params.keys() - heavy - still, False), (still, False)):
        mine = [k for k in params if k in names]  # in the network's order, not a set's
        if mine:
            found.append(
                FlatParams({k: params[k] for k in mine}, {k: means[k] for k in mine}, rounds)
            )
    return found


def learner(net: nn.Module, some: list[FlatParams]) -> nn.Module:
    """The network that the loss is given: `net` itself, or, where weights are rounded, a twin that
    shares all but those."""
    if not any(v.copy is not None for v in some):
        return net
    shared = {id(t): t for t in (*net.parameters(), *net.buffers())}
    rounded = {name: leaf for v in some if v.copy is not None for name, leaf in v.leaves.items()}
    shared |= {id(p): rounded[k] for k, p in net.named_parameters() if k in rounded}
    return copy.deepcopy(net, shared)
