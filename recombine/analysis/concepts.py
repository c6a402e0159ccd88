"""Curves in concept space: when a concept is learned, how far the unseen composition falls back
before it rises, where it turns, and how fast it moves."""

import math
from dataclasses import dataclass, field
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from recombine.analysis.estimates import Estimate, mean
from recombine.analysis.frames import pl
from recombine.analysis.table import NotMeasured, Table
from recombine.store import Row
from recombine.theory.detect import descents, learning_times, turns

LEARNED, STAY = 0.8, 3
"""A concept is learned when its coordinate reaches this, and stays there for as many
checkpoints."""
SMOOTH = 1.0
"""Curves are smoothed by a Gaussian of this many checkpoints before times are read off."""


class Curves(NamedTuple):
    """One run: steps, and for the unseen composition the coordinate of every factor and of all at
    once; `seen` is the mean coordinate of each factor over the seen compositions."""

    steps: Float[Tensor, "t"]
    factors: dict[str, Float[Tensor, "t"]]
    joint: Float[Tensor, "t"]
    mean: Float[Tensor, "t"]
    seen: dict[str, Float[Tensor, "t"]]


@dataclass(frozen=True)
class Outcome:
    """One variant: the facts of its world and network, and its curves seed by seed."""

    facts: Row
    runs: dict[int, Curves]
    rates: dict[tuple[str, str], float]
    """(space, factor) -> the rate a that the theory gives it."""
    known: dict[str, dict[int, float]] = field(default_factory=dict, compare=False, repr=False)
    """`times`, once they are known."""

    @property
    def name(self) -> str:
        return str(self.facts["variant"])

    @property
    def is_standard(self) -> bool:
        """Two factors, conditioned on their values, every caption complete."""
        return self.has(masked=0.0, background_signal=0.0, conditioned_on="value")

    def has(self, **facts: Any) -> bool:
        return all(self.facts[k] == v for k, v in facts.items())

    def times(self, factor: str) -> dict[int, float]:
        """When each seed learned a factor: as prompted in the seen compositions and in the unseen
        one; inf = never. (What a probe reads in noise, early on, may agree with the unseen one by
        chance, but not with all.)"""
        if factor not in self.known:
            lines = {s: (c, c.factors[factor], c.seen[factor]) for s, c in self.runs.items()}
            both = {s: torch.minimum(smoothed(a), smoothed(b)) for s, (_, a, b) in lines.items()}
            self.known[factor] = {
                s: learning_step(c.steps, both[s]) for s, (c, _, _) in lines.items()
            }
        return self.known[factor]

    def time(self, factor: str) -> float:
        """The median over seeds."""
        return median(self.times(factor).values())

    def capped_times(self, factor: str) -> dict[int, float]:
        """The same, with the last step where a factor was never learned (no later than the true
        time), and at least 1."""
        last = {seed: float(c.steps[-1]) for seed, c in self.runs.items()}
        return {seed: max(1.0, min(t, last[seed])) for seed, t in self.times(factor).items()}


def outcomes(rows: Table) -> list[Outcome]:
    """All variants, in the order of the rows."""
    return rows.once("outcomes", lambda: _outcomes(rows))


def _outcomes(rows: Table) -> list[Outcome]:
    runs: dict[str, dict[int, Curves]] = {}
    for kind in ("accuracy", "accuracy3"):
        scored = rows.where(kind=kind, probe="cnn")
        for variant, some in scored.by("variant").items():
            runs[variant] = {seed: curves(mine) for seed, mine in some.by("seed").items()}
    signals = rows.where(kind="signal").by("variant").items()
    rates = {v: {(r["space"], r["factor"]): r["a"] for r in some} for v, some in signals}
    facts = [row for row in rows.where(kind="variant facts")]
    return [Outcome(f, runs.get(f["variant"], {}), rates.get(f["variant"], {})) for f in facts]


def curves(rows: Table) -> Curves:
    """From the CNN probe's rows of one run, in double precision: distances that are nearly zero are
    drawn on a log scale."""
    keys = [k for k in rows.frame.columns if k.startswith("p_")]
    means = rows.frame.group_by("level", "step").agg(pl.col(keys).mean()).sort("step")
    top = dict(_of_level(means, max(rows.column("level")), keys))
    seen = dict(_of_level(means, 0, keys))
    names = [k.removeprefix("p_") for k in keys if k not in ("p_joint", "p_mean")]
    factors, known = ({n: line[f"p_{n}"] for n in names} for line in (top, seen))
    steps = torch.tensor(sorted(rows.unique("step"))).double()
    return Curves(steps, factors, top["p_joint"], top["p_mean"], known)


def _of_level(means: "pl.DataFrame", level: int, keys: list[str]) -> list[tuple[str, Tensor]]:
    """The columns of one level, step by step."""
    mine = means.filter(pl.col("level") == level)
    return [(k, torch.tensor(mine[k].to_list(), dtype=torch.float64)) for k in keys]


def main_line(variants: list[Outcome]) -> list[Outcome]:
    """The variants of the main line, weakest colour first. NotMeasured where there are none."""
    line = sorted((o for o in variants if o.has(main=1)), key=lambda o: o.facts["color_signal"])
    if not line:
        raise NotMeasured("no variants of the main line")
    return line


def by_masked_share(variants: list[Outcome]) -> dict[str, list[Outcome]]:
    """For models conditioned on values and on classes: more and more captions without the colour,
    from none on."""
    masked = [o for o in variants if o.facts["masked"]]
    lines = {}
    for given in dict.fromkeys(o.facts["conditioned_on"] for o in masked):
        some = [o for o in masked if o.has(conditioned_on=given)]
        some = sorted(some, key=lambda o: o.facts["masked"])
        signals = ("color_signal", "size_signal", "background_signal")
        same = {k: some[0].facts[k] for k in ("net", "embedding_scale", *signals)}
        complete = [o for o in variants if o.has(masked=0.0, conditioned_on=given, **same)]
        if complete:
            lines[given] = [*complete, *some]
    return lines


def embedding_pairs(variants: list[Outcome]) -> list[tuple[Outcome, Outcome]]:
    """Pairs that differ only in the embedding scale, raw first."""
    names = ("net", "color_signal", "size_signal", "background_signal", "masked")
    raw, pairs = {}, []
    for o in variants:
        if o.has(embedding_scale="raw", conditioned_on="value"):
            raw[tuple(o.facts[k] for k in names)] = o
    for o in variants:
        twin = raw.get(tuple(o.facts[k] for k in names))
        if twin and o.has(embedding_scale="balanced"):
            pairs.append((twin, o))
    return pairs


FINE = 0.01
"""What counts as equal: shares of a learning time, differences of probabilities."""


def ratio(above: dict[int, float], below: dict[int, float]) -> Estimate:
    """The geometric mean over seeds of above / below, seed by seed."""
    seeds = [seed for seed in above if seed in below]
    if not seeds:
        raise NotMeasured("no seed in common")
    logs = mean([math.log(above[s] / below[s]) for s in seeds], resolution=FINE)
    value, low, high = (math.exp(x) for x in (logs.value, logs.low, logs.high))
    return Estimate(value, low, high, logs.n, tuple(math.exp(x) for x in logs.values))


def smoothed(values: Float[Tensor, "t"], width: float = SMOOTH) -> Float[Tensor, "t"]:
    """Averaged over neighbouring checkpoints with Gaussian weights; the ends keep their own weight
    only."""
    place = torch.arange(len(values), dtype=values.dtype)
    weight = torch.exp(-((place[:, None] - place) ** 2) / (2 * max(width, 1e-6) ** 2))
    return weight @ values / weight.sum(1)


def learning_step(
    steps: Float[Tensor, "t"], values: Float[Tensor, "t"], level: float = LEARNED, stay: int = STAY
) -> float:
    """The step from which on `values` stays at `level` or above for `stay` checkpoints; inf if it
    never does."""
    padded = torch.cat((values, values[-1:].expand(stay - 1)))
    lasting = padded.unfold(0, stay, 1).amin(1)
    one = torch.ones(1, dtype=values.dtype)
    return float(learning_times(steps, lasting[None, :, None], one, level)[0, 0])


class Dip(NamedTuple):
    """A fall and what follows: from the highest point (`high` at step `start`) down to `low` at
    step `turn`, and the highest value `after` that. `depth` = high - low."""

    start: float
    high: float
    turn: float
    low: float
    after: float

    @property
    def depth(self) -> float:
        return self.high - self.low


def dip(steps: Float[Tensor, "t"], values: Float[Tensor, "t"], begin: int = 0) -> Dip:
    """The deepest fall of a curve below its own earlier height, from index `begin` on."""
    steps, values = steps[begin:], values[begin:]
    highs = values.cummax(0)
    low = int((highs.values - values).argmax())
    high = int(highs.indices[low])
    ends = (steps[high], values[high], steps[low], values[low], values[low:].max())
    return Dip(*(float(x) for x in ends))


def dips(outcome: Outcome) -> dict[int, Dip]:
    """The fall of the unseen composition in each seed, from where the model generates anything as
    prompted."""
    return {s: dip(c.steps, smoothed(c.joint), begins(c)) for s, c in outcome.runs.items()}


def begins(curves: Curves, level: float = LEARNED) -> int:
    """The index of the first checkpoint at which the model generates anything as prompted: one
    factor of the seen compositions has reached `level`. Before that a probe reads noise."""
    best = torch.stack(list(curves.seen.values())).amax(0)
    return int((best >= level).int().argmax()) if (best >= level).any() else len(best) - 1


def error(curves: Curves) -> Float[Tensor, "t"]:
    """The squared distance of the unseen composition from where it should be, averaged over
    factors."""
    return torch.stack([(1 - c).square() for c in curves.factors.values()]).mean(0)


def distance_descents(curves: Curves, tolerance: float = 0.05) -> tuple[int, list[int]]:
    """How many times that distance sets out to fall, from where `begins` says, and the indices at
    which it turns. Moves of less than `tolerance` of its start do not count."""
    begin = begins(curves)
    distance = smoothed(error(curves))[begin:]
    count = int(descents(distance[None], tolerance)[0])
    return count, [begin + i for i in turns(distance, tolerance)]


def speed(curves: Curves) -> Float[Tensor, "t"]:
    """How far the unseen composition moves in concept space per step, before each checkpoint; 0
    before the first."""
    place = torch.stack([smoothed(c) for c in curves.factors.values()], 1)
    return torch.cat((torch.zeros(1), place.diff(dim=0).norm(dim=1) / curves.steps.diff()))


def rise(steps: Float[Tensor, "t"], values: Float[Tensor, "t"], stretch: float = 1.25) -> float:
    """The largest gain of a curve while the number of steps grows by the factor `stretch`."""
    x, y = steps.numpy(), smoothed(values).numpy()
    start = x[(x > 0) & (x * stretch <= x[-1])]
    if not len(start):
        return 0.0
    return float(np.max(np.interp(start * stretch, x, y) - np.interp(start, x, y)))


def halfway(steps: Float[Tensor, "t"], values: Float[Tensor, "t"]) -> float:
    """When a curve has covered half of the way from where it is lowest to where it ends."""
    values = smoothed(values)
    return learning_step(steps, values, float(values.min() + values[-1]) / 2)


def late_mean(values: Float[Tensor, "t"]) -> float:
    """The mean over the last quarter of the checkpoints."""
    return float(values[-max(1, len(values) // 4) :].mean())
