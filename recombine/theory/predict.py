"""From a world alone to the order in which a model should learn its factors.

Structured identity mapping (theory/sim.py) says that concept k is learned at the rate a_k = mu_k^2 / clusters + sigma_k^2: its
signal and its diversity. A world of pictures has both. What it leaves open is in which space to measure the signal, so there
are four answers, and a trained network may choose between them:

  pixels         the distance between two pictures that differ in factor k and in nothing else;
  mean picture   the distance between the mean pictures of the two classes, nuisances averaged out: all that a linear model of
                 the picture given the condition can use;
  told           the distance between the two conditions, as they enter the network;
  both           the geometric mean of told and mean picture: in a two-layer linear network a mode grows at the rate of the
                 correlation between what goes in and what shall come out.

Binary factors, or the first two values of others; the training set is assumed to hold the first composition and those that
leave it in one factor, so that it is structured identity mapping with a cluster at the origin."""

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
from recombine.theory.sim import Task
from recombine.worlds.factors import Composition
from recombine.worlds.world import World

Space = Literal["pixels", "mean picture", "told", "both"]
SPACES: tuple[Space, ...] = get_args(Space)


@dataclass(frozen=True)
class Signals:
    """`mu`: distance between the classes of each factor; `spread`: how far pictures stray from their class, as a share of it
    (a standard deviation)."""

    names: tuple[str, ...]
    mu: tuple[float, ...]
    spread: tuple[float, ...]

    @property
    def task(self) -> Task:
        """The structured identity mapping with these signals and diversities."""
        return Task(self.mu, tuple(m * s for m, s in zip(self.mu, self.spread, strict=True)), origin=True)

    @property
    def a(self) -> dict[str, float]:
        """The rate of each factor."""
        return dict(zip(self.names, self.task.a.tolist(), strict=True))

    def times(self, share: float = 0.8) -> dict[str, float]:
        """When each factor reaches `share` of its signal, in gradient-flow time of the one-layer model started at zero. Up to
        one common scale this is also how the steps of other models should lie."""
        return {name: -math.log(1 - share) / a for name, a in self.a.items()}


def signals(world: World, space: Space, raw: bool = False, count: int = 1024) -> Signals:
    """The signals of a world's factors in one of the four spaces. `raw`: conditions enter as they are, not in units of the
    distance between classes; matters where the space is what is told."""
    names, spread = tuple(f.name for f in world.space.factors), spreads(world, count)
    if space == "both":
        parts = [signals(world, part, raw, count).mu for part in ("told", "mean picture")]
        return Signals(names, tuple(math.sqrt(a * b) for a, b in zip(*parts, strict=True)), spread)
    return Signals(names, told(world, raw) if space == "told" else drawn(world, space, count), spread)


def drawn(world: World, space: Literal["pixels", "mean picture"], count: int) -> tuple[float, ...]:
    """Distances between classes in pictures. The same stream of nuisances is drawn for both sides."""
    first = pictures(world, start(world), count)
    steps = [pictures(world, c, count) - first for c in neighbours(world)]
    if space == "mean picture":
        return tuple(float(step.mean(0).norm()) for step in steps)
    return tuple(float(step.flatten(1).square().sum(1).mean().sqrt()) for step in steps)


def told(world: World, raw: bool) -> tuple[float, ...]:
    """Distances between classes in the numbers that a network is told."""
    if silent := [f.name for f in world.space.factors if not f.dim]:
        raise ValueError(f"{silent[0]} has no numbers to be told; only its index")
    ends = world.canonical(torch.tensor([start(world), *neighbours(world)])).split(list(world.space.dims), 1)
    enter = [torch.nn.Identity() if raw else Standardised(f) for f in world.space.factors]
    return tuple(float((e(v)[k + 1] - e(v)[0]).norm()) for k, (e, v) in enumerate(zip(enter, ends, strict=True)))


def spreads(world: World, count: int) -> tuple[float, ...]:
    """The standard deviation of each factor's numbers around their class, along the line to the next class and as a share of
    its length; zero for a factor without numbers."""
    dims, centres = list(world.space.dims), world.canonical(torch.tensor([start(world), *neighbours(world)]))
    values = world.render(torch.tensor([start(world)] * count), seeded("signals")).values
    found = []
    for k, (value, centre) in enumerate(zip(values.split(dims, 1), centres.split(dims, 1), strict=True)):
        line = centre[k + 1] - centre[0]
        found.append(float((value @ line / line.square().sum()).std()) if len(line) else 0.0)
    return tuple(found)


def start(world: World) -> Composition:
    return (0,) * len(world.space.factors)


def neighbours(world: World) -> list[Composition]:
    """The compositions that leave the first one in one factor."""
    n = len(world.space.factors)
    return [tuple(int(i == k) for i in range(n)) for k in range(n)]


def pictures(world: World, composition: Composition, count: int) -> Float[Tensor, "b c h w"]:
    return world.render(torch.tensor([composition] * count), seeded("signals")).images


def flip(ratio: Callable[[float], float], low: float, high: float) -> float | None:
    """Where a ratio of rates, as a function of one number of the world, passes through 1; None if it does not in between."""
    gap = lambda x: math.log(ratio(x))  # noqa: E731
    return brentq(gap, low, high, xtol=1e-3) if gap(low) * gap(high) < 0 else None


class Path(NamedTuple):
    """The answer of the two-layer model to "all concepts at once", as shares of what was asked; time in units of the
    strongest concept's 1 / a."""

    t: Float[Tensor, "t"]
    share: Float[Tensor, "t k"]


def path(signals: Signals, omega: float = 0.01, rho: float = 0.9, horizon: float = 7.0, points: int = 400) -> Path:
    """The trajectory of the symmetric two-layer model with these signals, from W(0) = omega [(1 - rho) I + rho 1 1^T]. It
    runs for `horizon` times the weakest concept's own time."""
    task = signals.task
    a = task.a / task.a.max()
    length = horizon / float(a.min())
    every = math.ceil(length / 0.05 / points)
    steps = every * points
    run = flow(root(correlated(omega, rho, task.dim))[None], a[None], length / steps, steps, every)
    return Path(run.t, (run.output(task.probe) / task.probe)[0])
