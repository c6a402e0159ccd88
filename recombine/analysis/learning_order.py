"""When each concept is learned by the rule of the public concept-space code, and the times that its
authors published."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from recombine.analysis.concepts import LEARNED, smoothed
from recombine.analysis.frames import pl
from recombine.analysis.table import NotMeasured, Table

LEVEL, STAY, SMOOTH = 0.9, 3, 1.5
"""A concept is learned when its accuracy, smoothed over so many checkpoints, stays above this for so
many: at the middle one of the first three."""
COLORS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
T_COLOR = {
    0.2: dict(zip(COLORS, (9000, 7100, 3700, 3000, 2600, 1900, 1900), strict=True)),
    0.4: dict(zip(COLORS, (15700, 9200, 8000, 7800, 4400, 4500, 3300), strict=True)),
}
T_SIZE = {
    0.2: {0.2: 8350, 0.4: 9000, 0.6: 9500, 0.8: 9650},
    0.4: {0.2: 6600, 0.4: 7350, 0.6: 6500, 0.8: 6100},
}
"""Steps by size signal and colour signal, means over 5 seeds, read off the figure in the public
repository of Park et al. (2024); to about 100 steps."""


class Run(NamedTuple):
    """One seed: the accuracy of each factor of the unseen composition, over steps, and the index of
    the first checkpoint at which seen compositions show anything as prompted."""

    steps: Float[Tensor, "t"]
    accuracy: dict[str, Float[Tensor, "t"]]
    begin: int

    def time(self, factor: str) -> float:
        """When it learned a factor; inf = never."""
        above = smoothed(self.accuracy[factor], SMOOTH) > LEVEL
        above[: self.begin] = False
        lasting = above.unfold(0, STAY, 1).all(1).nonzero() if len(above) >= STAY else []
        return float(self.steps[int(lasting[0]) + STAY // 2]) if len(lasting) else math.inf


@dataclass(frozen=True)
class World:
    """One world, or one share of masked captions in it, with its seeds."""

    color: float
    size: float
    masked: float
    runs: dict[int, Run]

    @property
    def name(self) -> str:
        return f"color {self.color:g}, size {self.size:g}"

    @property
    def published(self) -> dict[str, float]:
        """The published times, where there are both."""
        given = {"color": T_COLOR, "size": T_SIZE}
        known = {f: t.get(self.size, {}).get(self.color) for f, t in given.items()}
        return {f: float(t) for f, t in known.items() if t and None not in known.values()}

    def times(self, factor: str) -> dict[int, float]:
        """When each seed learned a factor; the last step where it never did, as published times
        count."""
        last = {s: float(run.steps[-1]) for s, run in self.runs.items()}
        return {s: max(1.0, min(run.time(factor), last[s])) for s, run in self.runs.items()}

    def never(self, factor: str) -> int:
        """In how many seeds a factor was never learned."""
        return sum(math.isinf(run.time(factor)) for run in self.runs.values())

    def leads(self) -> dict[int, float]:
        """How much later size is learned than colour in each seed, as the logarithm of the ratio:
        positive = colour first."""
        color, size = self.times("color"), self.times("size")
        return {s: math.log(size[s] / color[s]) for s in color}


def worlds(rows: Table) -> list[World]:
    """All worlds that were run, in the order of the rows. NotMeasured where there are none."""
    found = rows.once("learning order", lambda: _worlds(rows))
    if not found:
        raise NotMeasured("no world was run")
    return found


def _worlds(rows: Table) -> list[World]:
    scored = rows.where(kind="accuracy", probe="cnn").by("variant")
    made = []
    for fact in rows.where(kind="variant facts"):
        if fact["variant"] in scored:
            mine = scored[fact["variant"]].by("seed").items()
            signals = (fact["color_signal"], fact["size_signal"], fact["masked"])
            made.append(World(*signals, {seed: run_of(some) for seed, some in mine}))
    return made


def run_of(rows: Table) -> Run:
    """From the CNN probe's rows of one run."""
    factors = ["color", "size"]
    means = rows.frame.group_by("level", "step").agg(pl.col(factors).mean()).sort("step")
    levels = [means.filter(pl.col("level") == x) for x in (0, max(rows.column("level")))]
    seen, far = ({f: torch.tensor(some[f].to_list()) for f in factors} for some in levels)
    shown = torch.stack(list(seen.values())).amax(0) >= LEARNED
    begin = int(shown.int().argmax()) if shown.any() else len(shown)
    return Run(torch.tensor(levels[1]["step"].to_list()).float(), far, begin)


def grid(found: list[World]) -> list[World]:
    """The worlds whose captions are all complete."""
    return [w for w in found if not w.masked]


def by_masked_share(found: list[World]) -> list[World]:
    """The world of which some captions are masked: more and more of them, from none on. NotMeasured
    where there is no such world."""
    masked = sorted((w for w in found if w.masked), key=lambda w: w.masked)
    complete = [w for w in grid(found) if masked and w.name == masked[0].name]
    if not complete:
        raise NotMeasured("no masked captions, or none to compare them with")
    return [*complete, *masked]
