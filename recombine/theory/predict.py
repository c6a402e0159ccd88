"""From a world alone to the order in which a model should learn its factors.

Structured identity mapping (theory/sim.py) says that concept k is learned at the rate
a_k = mu_k^2 / clusters + sigma_k^2: its signal and its diversity. A world of pictures has both. In
which space to measure the signal is left open, so there are four answers:

  pixels         the distance between two pictures that differ in factor k and in nothing else;
  mean picture   the distance between the mean pictures of the two classes, nuisances averaged out:
                 all that a linear model of the picture given the condition can use;
  condition      the distance between the two conditions, as they enter the network;
  both           the geometric mean of condition and mean picture: in a two-layer linear network a
                 mode grows at the rate of the correlation between its input and its target.

Binary factors, or the first two values of others; the training set is assumed to hold the first
composition and those that leave it in one factor, so that it is structured identity mapping with a
cluster at the origin."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import torch
from jaxtyping import Float
from scipy.optimize import brentq
from torch import Tensor

from recombine.nets.conditioning import Standardised
from recombine.rng import seeded
from recombine.theory.flow import correlated, flow, root
from recombine.theory.sim import IdentityMapping
from recombine.worlds.factors import Composition
from recombine.worlds.world import World

Space = Literal["pixels", "mean picture", "condition", "both"]
SPACES: tuple[Space, ...] = get_args(Space)
EmbeddingScale = Literal["balanced", "raw"]


@dataclass(frozen=True)
class Signals:
    """`mu`: distance between the classes of each factor; `spread`: how far pictures stray from
    their class, as a share of it (a standard deviation)."""

    names: tuple[str, ...]
    mu: tuple[float, ...]
    spread: tuple[float, ...]

    @property
    def task(self) -> IdentityMapping:
        """The structured identity mapping with these signals and diversities."""
        return IdentityMapping(
            self.mu, tuple(m * s for m, s in zip(self.mu, self.spread, strict=True)), origin=True
        )

    @property
    def a(self) -> dict[str, float]:
        """The rate of each factor."""
        return dict(zip(self.names, self.task.a.tolist(), strict=True))

    def times(self, share: float = 0.8) -> dict[str, float]:
        """When each factor reaches `share` of its signal, in gradient-flow time of the one-layer
        model started at zero. Up to one common scale this is also how the steps of other models
        should lie."""
        return {name: -math.log(1 - share) / a for name, a in self.a.items()}


def signals(
    world: World, space: Space, embedding_scale: EmbeddingScale = "balanced", count: int = 1024
) -> Signals:
    """The signals of a world's factors in one of the four spaces. `embedding_scale`, as in
    Conditioning, matters where the space is the condition: raw values enter as they are, balanced
    ones in units of the distance between classes."""
    return Signals(
        tuple(f.name for f in world.space.factors),
        distances(world, space, embedding_scale, count),
        spreads(world, count),
    )


def distances(
    world: World, space: Space, embedding_scale: EmbeddingScale, count: int
) -> tuple[float, ...]:
    """The distance between the first two classes of each factor."""
    if space == "condition":
        return in_conditions(world, embedding_scale)
    if space != "both":
        return in_pictures(world, space, count)
    given = in_conditions(world, embedding_scale)
    shown = in_pictures(world, "mean picture", count)
    return tuple(math.sqrt(a * b) for a, b in zip(given, shown, strict=True))


def in_pictures(
    world: World, space: Literal["pixels", "mean picture"], count: int
) -> tuple[float, ...]:
    """Distances between classes in pictures. Both sides have the same nuisances."""
    first = pictures(world, start(world), count)
    steps = [pictures(world, c, count) - first for c in neighbours(world)]
    if space == "mean picture":
        return tuple(float(step.mean(0).norm()) for step in steps)
    return tuple(float(step.flatten(1).square().sum(1).mean().sqrt()) for step in steps)


def in_conditions(world: World, embedding_scale: EmbeddingScale) -> tuple[float, ...]:
    """Distances between classes in the values that a network is conditioned on."""
    if without := [f.name for f in world.space.factors if not f.dim]:
        raise ValueError(f"{without[0]} has no values to condition on, only its index")
    lengths = []
    for k, (factor, value) in enumerate(zip(world.space.factors, centres(world), strict=True)):
        ends = Standardised(factor)(value) if embedding_scale == "balanced" else value
        lengths.append(float((ends[k + 1] - ends[0]).norm()))
    return tuple(lengths)


def centres(world: World) -> tuple[Float[Tensor, "n v"], ...]:
    """Of each factor: its values at the centre of the first composition and of its neighbours."""
    compositions = torch.tensor([start(world), *neighbours(world)])
    return world.canonical(compositions).split(list(world.space.dims), 1)


def spreads(world: World, count: int) -> tuple[float, ...]:
    """The standard deviation of each factor's values around their class, along the line to the next
    class and as a share of its length; zero for a factor without values."""
    rendered = world.render(torch.tensor([start(world)] * count), seeded("signals")).values
    values = rendered.split(list(world.space.dims), 1)
    shares = []
    for k, (value, centre) in enumerate(zip(values, centres(world), strict=True)):
        line = centre[k + 1] - centre[0]
        along = value @ line / line.square().sum()
        shares.append(float(along.std()) if len(line) else 0.0)
    return tuple(shares)


def start(world: World) -> Composition:
    return (0,) * len(world.space.factors)


def neighbours(world: World) -> list[Composition]:
    """The compositions that leave the first one in one factor."""
    n = len(world.space.factors)
    return [tuple(int(i == k) for i in range(n)) for k in range(n)]


def pictures(world: World, composition: Composition, count: int) -> Float[Tensor, "b c h w"]:
    return world.render(torch.tensor([composition] * count), seeded("signals")).images


def flip(ratio: Callable[[float], float], low: float, high: float) -> float | None:
    """Where a ratio of rates, as a function of one number of the world, passes through 1; None if
    it does not in between."""

    def gap(x: float) -> float:
        return math.log(ratio(x))

    return brentq(gap, low, high, xtol=1e-3) if gap(low) * gap(high) < 0 else None


class Path(NamedTuple):
    """The answer of the two-layer model to "all concepts at once", as shares of the target; time in
    units of the strongest concept's 1 / a."""

    t: Float[Tensor, "t"]
    share: Float[Tensor, "t k"]


def path(
    signals: Signals, omega: float = 0.01, rho: float = 0.9, horizon: float = 7.0, points: int = 400
) -> Path:
    """The trajectory of the symmetric two-layer model with these signals, from W(0) = omega [(1 -
    rho) I + rho 1 1^T]. It runs for `horizon` times the weakest concept's own time."""
    task = signals.task
    a = task.a / task.a.max()
    length = horizon / float(a.min())
    every = math.ceil(length / 0.05 / points)
    steps = every * points
    run = flow(root(correlated(omega, rho, task.dim))[None], a[None], length / steps, steps, every)
    return Path(run.t, (run.output(task.probe) / task.probe)[0])
