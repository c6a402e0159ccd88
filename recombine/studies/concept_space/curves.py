"""What to read off a curve in concept space: when a concept is learned, how far the unseen composition falls back before it
rises, where it turns, and how fast it moves."""

from dataclasses import dataclass
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from recombine.studies.base import Row, Rows
from recombine.theory.detect import descents, learning_times, turns

LEARNED, STAY = 0.8, 3
"""A concept is learned when its coordinate reaches this, and stays there for as many checkpoints."""
SMOOTH = 1.0
"""Curves are smoothed by a Gaussian of this many checkpoints before times are read off."""


class Curves(NamedTuple):
    """One run: steps, and for the unseen composition the coordinate of every factor and of all at once; `seen` is the mean
    coordinate of each factor over the seen compositions."""

    steps: Float[Tensor, "t"]
    factors: dict[str, Float[Tensor, "t"]]
    joint: Float[Tensor, "t"]
    mean: Float[Tensor, "t"]
    seen: dict[str, Float[Tensor, "t"]]


@dataclass(frozen=True)
class Outcome:
    """What became of one course: the facts of its world and network, and one run per seed."""

    facts: Row
    runs: dict[int, Curves]
    rates: dict[tuple[str, str], float]
    """(space, factor) -> the rate a that the theory gives it."""

    @property
    def name(self) -> str:
        return str(self.facts["variant"])

    @property
    def by(self) -> str:
        """What conditions are told by: a `value`, or the name of a `class`."""
        return str(self.facts["by"])

    @property
    def plain(self) -> bool:
        """Two factors, told by their values, every time."""
        return self.is_(masked=0.0, background_signal=0.0) and self.by == "value"

    def times(self, factor: str) -> list[float]:
        """When each seed learned a factor: shown as asked by the seen compositions and by the unseen one. (What a classifier
        makes of noise, early on, may agree with the unseen one by chance, but not with all.)"""
        both = lambda c: torch.minimum(smoothed(c.factors[factor]), smoothed(c.seen[factor]))  # noqa: E731
        return [learned(c.steps, both(c)) for c in self.runs.values()]

    def time(self, factor: str) -> float:
        """The median over seeds."""
        return median(self.times(factor))

    def is_(self, **facts: Any) -> bool:
        return all(self.facts[k] == v for k, v in facts.items())


def outcomes(rows: Rows) -> list[Outcome]:
    """All courses, in the order in which they were run."""
    scored = Rows(r for r in rows if r["kind"] in ("accuracy", "accuracy3") and r["probe"] == "cnn")
    held = {variant: some.by("seed") for variant, some in scored.by("variant").items()}
    signals = rows.where(kind="signal").by("variant").items()
    rates = {variant: {(r["space"], r["factor"]): r["a"] for r in some} for variant, some in signals}
    found = []
    for facts in rows.where(kind="course"):
        runs = {seed: curves(some) for seed, some in held.get(facts["variant"], {}).items()}
        found.append(Outcome(facts, runs, rates.get(facts["variant"], {})))
    return found


def curves(rows: Rows) -> Curves:
    """From the classifier's rows of one run."""
    names = [k.removeprefix("p_") for k in rows[0] if k.startswith("p_") and k not in ("p_joint", "p_mean")]
    top = max(rows.column("level"))
    steps = sorted(set(rows.column("step")))

    def line(level: int, key: str) -> Tensor:
        at: dict[int, list[float]] = {}
        for row in rows:
            if row["level"] == level:
                at.setdefault(row["step"], []).append(row[key])
        return torch.tensor([sum(at[s]) / len(at[s]) for s in steps])

    factors, seen = ({n: line(level, f"p_{n}") for n in names} for level in (top, 0))
    return Curves(torch.tensor(steps).float(), factors, line(top, "p_joint"), line(top, "p_mean"), seen)


def smoothed(values: Float[Tensor, "t"], width: float = SMOOTH) -> Float[Tensor, "t"]:
    """Averaged over neighbouring checkpoints with Gaussian weights; the ends keep their own weight only."""
    place = torch.arange(len(values), dtype=values.dtype)
    weight = torch.exp(-((place[:, None] - place) ** 2) / (2 * max(width, 1e-6) ** 2))
    return weight @ values / weight.sum(1)


def learned(steps: Float[Tensor, "t"], values: Float[Tensor, "t"], level: float = LEARNED, stay: int = STAY) -> float:
    """The step from which on `values` stays at `level` or above for `stay` checkpoints; inf if it never does."""
    padded = torch.cat((values, values[-1:].expand(stay - 1)))
    lasting = padded.unfold(0, stay, 1).amin(1)
    return float(learning_times(steps, lasting[None, :, None], torch.ones(1), level)[0, 0])


class Dip(NamedTuple):
    """A fall and what follows: from the highest point (`high` at step `start`) down to `low` at step `turn`, and the highest
    value `after` that. `depth` = high - low."""

    start: float
    high: float
    turn: float
    low: float
    after: float

    @property
    def depth(self) -> float:
        return self.high - self.low


def dip(steps: Float[Tensor, "t"], values: Float[Tensor, "t"], begin: int = 0) -> Dip:
    """The deepest fall of a curve below its own earlier height, looked for from index `begin` on."""
    steps, values = steps[begin:], values[begin:]
    highs = values.cummax(0)
    low = int((highs.values - values).argmax())
    high = int(highs.indices[low])
    return Dip(*(float(x) for x in (steps[high], values[high], steps[low], values[low], values[low:].max())))


def begins(curves: Curves, level: float = LEARNED) -> int:
    """The index of the first checkpoint at which the model draws anything as told: one factor of the seen compositions has
    reached `level`. Before that a classifier judges noise."""
    best = torch.stack(list(curves.seen.values())).amax(0)
    return int((best >= level).int().argmax()) if (best >= level).any() else len(best) - 1


def error(curves: Curves) -> Float[Tensor, "t"]:
    """The squared distance of the unseen composition from where it should be, averaged over factors."""
    return torch.stack([(1 - c).square() for c in curves.factors.values()]).mean(0)


def falls(curves: Curves, tolerance: float = 0.05) -> tuple[int, list[int]]:
    """How many times that distance sets out to fall, from where drawing begins, and the indices at which it turns. Moves of
    less than `tolerance` of its start do not count."""
    begin = begins(curves)
    distance = smoothed(error(curves))[begin:]
    return int(descents(distance[None], tolerance)[0]), [begin + i for i in turns(distance, tolerance)]


def speed(curves: Curves) -> Float[Tensor, "t"]:
    """How far the unseen composition moves in concept space per step, before each checkpoint; 0 before the first."""
    place = torch.stack([smoothed(c) for c in curves.factors.values()], 1)
    return torch.cat((torch.zeros(1), place.diff(dim=0).norm(dim=1) / curves.steps.diff()))


def rise(steps: Float[Tensor, "t"], values: Float[Tensor, "t"], stretch: float = 1.25) -> float:
    """The largest gain of a curve while the number of steps grows by the factor `stretch`."""
    x, y = steps.numpy(), smoothed(values).numpy()
    start = x[(x > 0) & (x * stretch <= x[-1])]
    return float(np.max(np.interp(start * stretch, x, y) - np.interp(start, x, y))) if len(start) else 0.0


def halfway(steps: Float[Tensor, "t"], values: Float[Tensor, "t"]) -> float:
    """When a curve has covered half of the way from where it is lowest to where it ends."""
    values = smoothed(values)
    return learned(steps, values, float(values.min() + values[-1]) / 2)
