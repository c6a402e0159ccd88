"""Activations of any network, watched and changed from outside with hooks: the network's own code
knows nothing of it. A place is named by a submodule and a side, so naming submodules is all that a
network has to do to be opened."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

Edit = Callable[[Tensor], Tensor | None]
"""From what is at a place to what shall be there; None = leave it."""


class Place(NamedTuple):
    """What enters (its first argument) or leaves the submodule called `name`."""

    name: str
    side: Literal["in", "out"]


@contextmanager
def edited(net: nn.Module, edits: dict[Place, Edit]) -> Iterator[None]:
    """While the block runs, what is at each place goes through its edit. The hooks are gone
    afterwards, whatever happens."""
    with ExitStack() as stack:
        for place, edit in edits.items():
            stack.callback(_attach(net.get_submodule(place.name), place.side, edit).remove)
        yield


def _attach(module: nn.Module, side: str, edit: Edit) -> RemovableHandle:
    if side == "out":
        return module.register_forward_hook(lambda _module, _given, answer: edit(answer))

    def enter(_module: nn.Module, given: tuple) -> tuple | None:
        changed = edit(given[0])
        return None if changed is None else (changed, *given[1:])

    return module.register_forward_pre_hook(enter)


@contextmanager
def captured(net: nn.Module, places: Sequence[Place]) -> Iterator[dict[Place, Tensor]]:
    """A dictionary that holds, after each call of the network inside the block, what was at the
    places."""
    held: dict[Place, Tensor] = {}
    with edited(net, {p: lambda a, p=p: held.__setitem__(p, a) for p in places}):
        yield held


@contextmanager
def watched(net: nn.Module, places: Sequence[Place]) -> Iterator[dict[Place, Tensor]]:
    """As `captured`, and gradients can be taken with respect to what is held, also of a network
    that is frozen."""
    held: dict[Place, Tensor] = {}

    def watch(place: Place, a: Tensor) -> Tensor:
        held[place] = a if a.requires_grad else a.detach().requires_grad_()
        return held[place]

    with edited(net, {p: lambda a, p=p: watch(p, a) for p in places}), torch.enable_grad():
        yield held


@contextmanager
def cut(
    net: nn.Module, place: Place, which: slice | Tensor, rest: Tensor | float = 0.0
) -> Iterator[None]:
    """While the block runs, the channels `which` (last axis) at a place say `rest`, whatever they
    would have said."""

    def silence(a: Tensor) -> Tensor:
        a = a.clone()
        a[..., which] = torch.as_tensor(rest, dtype=a.dtype, device=a.device)
        return a

    with edited(net, {place: silence}):
        yield


@contextmanager
def precisely() -> Iterator[None]:
    """Matrix products in full float32: what one unit does to a loss is smaller than the rounding of
    faster ones."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
