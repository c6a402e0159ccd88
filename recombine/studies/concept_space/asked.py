"""Asked otherwise than plainly: what each way of asking gets from the same network, run by run."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from recombine.studies.base import Rows
from recombine.studies.concept_space.curves import begins, learned, outcomes

QUIET = 0.4
"""Plain prompting fails at or below this."""
Line = tuple[Float[Tensor, "t"], Float[Tensor, "t"]]
"""Steps and the probability that all factors are right."""


class Asked(NamedTuple):
    """One run. `lines`: for each way of asking, steps and the best strength's value there; the patches are given by the step
    of the network that was patched."""

    variant: str
    seed: int
    lines: dict[str, Line]

    def best_while_quiet(self, way: str) -> float | None:
        """The most that `way` reaches at any checkpoint where asking plainly fails; None if there is no such checkpoint."""
        steps, values = self.lines.get(way, ((), ()))
        quiet = {int(s) for s, v in zip(*self.lines["plain"], strict=True) if v <= QUIET}
        return max((float(v) for s, v in zip(steps, values, strict=True) if int(s) in quiet), default=None)

    def reaches(self, way: str) -> float:
        """The step from which on it stays at 0.8."""
        return learned(*self.lines[way], stay=2)


def asked_otherwise(rows: Rows) -> list[Asked]:
    """All runs that were asked otherwise, from where they draw anything as told."""
    start = {
        (o.name, seed): c.steps[begins(c)] for o in outcomes(rows) if o.facts["weak"] for seed, c in o.runs.items()
    }
    variants = rows.where(kind="asked").by("variant").items()
    held = {(variant, seed): some for variant, seeds in variants for seed, some in seeds.by("seed").items()}
    top = max((r["level"] for r in rows.where(kind="accuracy", probe="cnn")), default=0)
    plain = rows.where(kind="accuracy", probe="cnn", level=top)
    found = []
    for (variant, seed), some in held.items():
        ways = {"plain": plain.where(variant=variant, seed=seed)}
        ways |= {way: some.where(way=way) for way in dict.fromkeys(some.column("way"))}
        points = {way: [(r.get("of", r["step"]), r["p_joint"]) for r in mine] for way, mine in ways.items()}
        begin = start[variant, seed]
        lines = {way: line([p for p in each if p[0] >= begin]) for way, each in points.items()}
        found.append(Asked(variant, seed, lines))
    return found


def line(points: list[tuple[int, float]]) -> Line:
    """The best value at every step."""
    best: dict[int, float] = {}
    for step, value in points:
        best[step] = max(value, best.get(step, 0.0))
    steps = sorted(best)
    return torch.tensor(steps).float(), torch.tensor([best[s] for s in steps])
