"""What attention heads are sensitive to. A head is given the same inputs under two conditions that
differ in one factor; how much its output turns is its sensitivity to that factor. A head that is
sensitive to two factors or more is called polysemantic."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from recombine.metrics.capture import Place, captured, cut
from recombine.nets.transformer import Attention

Forward = Callable[[], Any]
"""Runs the network on inputs and a condition that are fixed."""


class Heads(NamedTuple):
    """Where the outputs of all heads of each layer lie side by side; how many heads a layer has,
    and how wide each is."""

    places: tuple[Place, ...]
    count: int
    width: int

    def channels(self, head: int) -> slice:
        return slice(head * self.width, (head + 1) * self.width)


def heads_of(net: nn.Module) -> Heads:
    """Every attention of recombine's transformer, in order: its heads are what enters its last
    matrix."""
    modules = {name: m for name, m in net.named_modules() if isinstance(m, Attention)}
    if not modules:
        raise LookupError(f"{type(net).__name__} has no attention")
    first = next(iter(modules.values()))
    return Heads(
        tuple(Place(f"{name}.out", "in") for name in modules),
        first.heads,
        first.out.in_features // first.heads,
    )


def changed(index: Int[Tensor, "b k"], factor: int, values: int) -> Int[Tensor, "b k"]:
    """The same compositions with another value of one factor: the next one, the one after it in the
    next row, and so on."""
    if values < 2:
        raise ValueError(f"a factor with {values} value cannot be changed")
    shift = 1 + torch.arange(len(index), device=index.device) % (values - 1)
    index = index.clone()
    index[:, factor] = (index[:, factor] + shift) % values
    return index


@torch.no_grad()
def sensitivity(
    net: nn.Module, heads: Heads, one: Forward, other: Forward
) -> Float[Tensor, "layers heads"]:
    """The mean over inputs and tokens of 1 - cosine between a head's outputs in the two calls: 0 =
    it does not notice, 1 = it says something unrelated."""
    with captured(net, heads.places) as held:
        one()
        before = dict(held)
        other()
        return torch.stack([turn(before[p], held[p], heads.count) for p in heads.places])


def turn(a: Float[Tensor, "*s d"], b: Float[Tensor, "*s d"], heads: int) -> Float[Tensor, "heads"]:
    """1 - cosine per head, averaged over all else. What has not changed has not turned, also where
    it is zero."""
    a, b = (x.float().unflatten(-1, (heads, -1)) for x in (a, b))
    distance = 1 - F.cosine_similarity(a, b, dim=-1)
    return distance.masked_fill((a == b).all(-1), 0.0).flatten(0, -2).mean(0)


def second(s: Float[Tensor, "k *heads"]) -> Float[Tensor, "*heads"]:
    """The sensitivity to the factor that comes second: a head is polysemantic at a threshold just
    where this lies above."""
    return s.topk(2, dim=0).values[1]


def polysemantic(s: Float[Tensor, "k *heads"], threshold: float) -> Bool[Tensor, "*heads"]:
    """The heads whose sensitivity lies above the threshold for at least two factors."""
    return second(s) > threshold


def threshold_for(s: Float[Tensor, "k *heads"], share: float) -> float:
    """The threshold at which this share of heads is polysemantic."""
    return float(torch.quantile(second(s).flatten(), 1 - share))


def breadth(s: Float[Tensor, "k *heads"]) -> Float[Tensor, "*heads"]:
    """To how many factors a head is sensitive, without a threshold: the participation ratio of its
    sensitivities, from 1 (one factor only) to k (all alike). Not changed by making all of them
    larger."""
    return s.sum(0).square() / s.square().sum(0).clamp(min=1e-30)


def without_each(
    net: nn.Module, heads: Heads, score: Callable[[], Float[Tensor, "k"]]
) -> Float[Tensor, "layers heads k"]:
    """The score with each head cut (its output set to zero), one at a time."""

    def without(place: Place, head: int) -> Float[Tensor, "k"]:
        with cut(net, place, heads.channels(head)):
            return score()

    return torch.stack(
        [torch.stack([without(p, i) for i in range(heads.count)]) for p in heads.places]
    )
