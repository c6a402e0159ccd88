"""Which hidden units matter for what. A unit's effect on a loss is estimated for all units at once
from one gradient (attribution) or measured by cutting it (ablation). The units with the largest
effect on the pictures of one composition are its circuit; the Jaccard overlap says how much two
circuits share."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from recombine.metrics.capture import Place, captured, cut, watched
from recombine.nets.transformer import Block

Loss = Callable[[], Float[Tensor, "b"]]
"""One number per sample; inputs and conditions are fixed, and no sample knows of another."""


def units_of(net: nn.Module) -> tuple[Place, ...]:
    """The hidden units of every MLP of recombine's transformer, in order: what leaves its
    nonlinearity."""
    return tuple(
        Place(f"{name}.mlp.1", "out") for name, m in net.named_modules() if isinstance(m, Block)
    )


@torch.no_grad()
def resting(
    net: nn.Module, places: Sequence[Place], losses: Sequence[Loss]
) -> list[Float[Tensor, "u"]]:
    """The mean activation of every unit over all samples and tokens: its output at rest."""
    means = []
    with captured(net, places) as held:
        for loss in losses:
            loss()
            means.append([held[p].flatten(0, -2).mean(0) for p in places])
    return [torch.stack(each).mean(0) for each in zip(*means, strict=True)]


def attribution(
    net: nn.Module,
    places: Sequence[Place],
    loss: Loss,
    rest: Sequence[Tensor | float] | None = None,
) -> Float[Tensor, "b units"]:
    """A first-order estimate of how each sample's loss would change if a unit said `rest` (default:
    zero) at every token: the sum over tokens of gradient times (rest - activation). Exact where the
    loss is linear in the unit."""
    with watched(net, places) as held:
        total = loss().sum()
        kept = [held[p] for p in places]
    slopes = torch.autograd.grad(total, kept)
    rest = rest or [0.0] * len(places)
    each = [
        (g * (r - a.detach())).flatten(1, -2).sum(1)
        for g, a, r in zip(slopes, kept, rest, strict=True)
    ]
    return torch.cat(each, 1)


@torch.no_grad()
def ablation(
    net: nn.Module,
    loss: Loss,
    units: Sequence[tuple[Place, int]],
    rest: Sequence[Tensor | float] | None = None,
) -> Float[Tensor, "b units"]:
    """How each sample's loss does change when a unit says `rest` at every token; one call of the
    network per unit."""
    before, changes = loss(), []
    for (place, unit), value in zip(units, rest or [0.0] * len(units), strict=True):
        with cut(net, place, slice(unit, unit + 1), value):
            changes.append(loss() - before)
    return torch.stack(changes, 1)


def influence(effects: Float[Tensor, "b units"]) -> Float[Tensor, "units"]:
    """How much a unit matters for these samples: the mean size of its effect, for better or
    worse."""
    return effects.abs().mean(0)


def circuit(influence: Float[Tensor, "*n units"], share: float) -> Bool[Tensor, "*n units"]:
    """The given share of all units, those with the largest influence; at least one."""
    count = max(1, round(share * influence.shape[-1]))
    top = influence.topk(count, dim=-1).indices
    return torch.zeros_like(influence, dtype=torch.bool).scatter(-1, top, True)


def jaccard(a: Bool[Tensor, "n units"], b: Bool[Tensor, "m units"]) -> Float[Tensor, "n m"]:
    """Units in both over units in either, for every pair of rows; 1 where both are empty."""
    a, b = a.double(), b.double()
    both = a @ b.T
    either = a.sum(1)[:, None] + b.sum(1) - both
    return torch.where(either > 0, both / either.clamp(min=1), 1.0).float()


def overlaps(influence: Float[Tensor, "2 n units"], share: float) -> Float[Tensor, "n n"]:
    """The Jaccard overlap of the circuits of n compositions, each estimated twice, from two halves
    of its pictures: the first half of one against the second half of the other. So the diagonal
    says how reliable a circuit is."""
    first, last = circuit(influence, share)
    each = jaccard(first, last)
    return (each + each.T) / 2


def chance(share: float) -> float:
    """The Jaccard overlap to expect of two random circuits that hold this share of very many
    units."""
    return share / (2 - share)
