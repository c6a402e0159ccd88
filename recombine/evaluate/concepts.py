"""Concept space: where a generator's pictures lie, factor by factor, and what it could draw if it were asked otherwise.

A picture's coordinate along a factor is the probability, by a probe trained on real pictures, that it shows the value asked
for. All coordinates at 1 is the composition asked for; 0 is its opposite.

A model may be able to draw what it does not draw when asked plainly. Three ways to find out, each at the network as it is:
ask for more than is wanted (`overprompt`), push the embedding of what is asked along a straight line (`steered`), or lend the
network the embedding of another checkpoint (`patched`)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn

from recombine.evaluate.capture import Place, edited
from recombine.train.fit import swapped
from recombine.worlds.factors import Composition, Condition

Logits = Callable[[Tensor], list[Tensor]]
"""Pictures -> one row of logits per factor, as `ProbeNet` gives them."""


@torch.no_grad()
def coordinates(
    logits: Logits, images: Float[Tensor, "b c h w"], asked: Composition, chunk: int = 4096
) -> Float[Tensor, "b k"]:
    """The probability that each picture shows each value asked for."""
    parts = [torch.stack([x.softmax(-1)[:, i] for x, i in zip(logits(some), asked, strict=True)], 1)
             for some in images.clamp(0, 1).split(chunk)]  # fmt: skip
    return torch.cat(parts)


def additive(right: Float[Tensor, "b k"]) -> float:
    """How right the factors are on average. Smooth where each factor is learned smoothly."""
    return float(right.mean())


def multiplicative(right: Float[Tensor, "b k"]) -> float:
    """How right the pictures are as a whole: all factors of one picture at once. It waits for the last factor."""
    return float(right.prod(1).mean())


def overprompt(asked: Condition, away: Condition, strength: float) -> Condition:
    """Ask for more: the values of `asked`, pushed on along the line that leads to them from `away`. 0 asks plainly, 1 asks for
    twice the difference. Where both agree nothing changes."""
    return asked._replace(value=asked.value + strength * (asked.value - away.value))


@torch.no_grad()
def direction(net: nn.Module, asked: Condition, away: Condition) -> Float[Tensor, "b d"]:
    """From the embedding of `away` to that of `asked`. The network has to embed its condition in a submodule `condition`."""
    return net.condition(asked) - net.condition(away)


@contextmanager
def steered(net: nn.Module, shift: Float[Tensor, "#b d"]) -> Iterator[None]:
    """Linear latent intervention: while the block runs, every embedded condition is moved by `shift`, picture by picture."""
    with edited(net, {Place("condition", "out"): lambda told: told + shift.to(told.dtype)}):
        yield


@contextmanager
def patched(net: nn.Module, weights: dict[str, Tensor], part: str = "condition") -> Iterator[None]:
    """Embedding patching: while the block runs, the submodule `part` carries the weights it had at another checkpoint, given
    by their names in the whole network; the others stay."""
    mine = {k: p for k, p in net.named_parameters() if k.startswith(f"{part}.")}
    theirs = {k: weights[k].detach().to(p.device, p.dtype, copy=True) for k, p in mine.items()}
    with swapped(mine, theirs):
        yield
