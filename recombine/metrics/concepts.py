"""Concept space: where a generator's pictures lie, factor by factor, and what it can generate when
prompted otherwise.

A picture's coordinate along a factor is the probability, by a probe trained on real pictures, that
it shows the prompted value. All coordinates at 1 is the prompted composition; 0 is its opposite.

A model may be able to generate what it does not generate when prompted plainly. Three methods show
it, each with the network as it is: prompt for more than is wanted (`overprompt`), push the
embedding of the condition along a straight line (`steered`), or give the network the embedding of
another checkpoint (`patched`)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn

from recombine.metrics.capture import Place, edited
from recombine.train.fit import swapped
from recombine.worlds.factors import Composition, Condition

Logits = Callable[[Tensor], list[Tensor]]
"""Pictures -> one row of logits per factor, as `ProbeNet` gives them."""


@torch.no_grad()
def coordinates(
    logits: Logits, images: Float[Tensor, "b c h w"], composition: Composition, chunk: int = 4096
) -> Float[Tensor, "b k"]:
    """The probability that each picture shows each value of a composition."""
    parts = []
    for some in images.clamp(0, 1).split(chunk):
        pairs = zip(logits(some), composition, strict=True)
        parts.append(torch.stack([x.softmax(-1)[:, i] for x, i in pairs], 1))
    return torch.cat(parts)


def additive(at: Float[Tensor, "b k"]) -> float:
    """The mean coordinate. Smooth where each factor is learned smoothly."""
    return float(at.mean())


def multiplicative(at: Float[Tensor, "b k"]) -> float:
    """The probability that all factors of a picture are as prompted. It waits for the last
    factor."""
    return float(at.prod(1).mean())


def overprompt(wanted: Condition, away: Condition, strength: float) -> Condition:
    """Prompt for more: the values of `wanted`, pushed on along the line that leads to them from
    `away`. 0 is the plain prompt, 1 is twice the difference. Where both agree nothing changes."""
    return wanted._replace(value=wanted.value + strength * (wanted.value - away.value))


@torch.no_grad()
def direction(net: nn.Module, wanted: Condition, away: Condition) -> Float[Tensor, "b d"]:
    """From the embedding of `away` to that of `wanted`. The network has to embed its condition in a
    submodule `condition`."""
    return net.condition(wanted) - net.condition(away)


@contextmanager
def steered(net: nn.Module, shift: Float[Tensor, "#b d"]) -> Iterator[None]:
    """Linear latent intervention: while the block runs, every embedded condition is moved by
    `shift`, picture by picture."""

    def moved(embedded: Tensor) -> Tensor:
        return embedded + shift.to(embedded.dtype)

    with edited(net, {Place("condition", "out"): moved}):
        yield


@contextmanager
def patched(net: nn.Module, weights: dict[str, Tensor], part: str = "condition") -> Iterator[None]:
    """Embedding patching: while the block runs, the submodule `part` carries the weights it had at
    another checkpoint, given by their names in the whole network; the others stay."""
    mine = {k: p for k, p in net.named_parameters() if k.startswith(f"{part}.")}
    theirs = {k: weights[k].detach().to(p.device, p.dtype, copy=True) for k, p in mine.items()}
    with swapped(mine, theirs):
        yield
