"""What other methods of prompting get from the same network, run by run."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from recombine.analysis.concepts import begins, learning_step, outcomes
from recombine.analysis.table import Table

FAILS = 0.4
"""The plain prompt fails at or below this."""
Line = tuple[Float[Tensor, "t"], Float[Tensor, "t"]]
"""Steps and the probability that all factors are as prompted."""


class Prompted(NamedTuple):
    """One run. `lines`: for each method, steps and the best strength's value there; the patches are
    given by the step of the network that was patched."""

    variant: str
    seed: int
    lines: dict[str, Line]

    def best_while_plain_fails(self, method: str) -> float | None:
        """The most that `method` reaches at any checkpoint where the plain prompt fails; None if
        there is none."""
        steps, values = self.lines.get(method, ((), ()))
        fails = {int(s) for s, v in zip(*self.lines["plain"], strict=True) if v <= FAILS}
        reached = [float(v) for s, v in zip(steps, values, strict=True) if int(s) in fails]
        return max(reached, default=None)

    def reaches(self, method: str) -> float:
        """The step from which on it stays at 0.8."""
        return learning_step(*self.lines[method], stay=2)


def prompted_runs(rows: Table) -> list[Prompted]:
    """All runs with other methods of prompting, from where they generate anything as prompted."""
    weak = [o for o in outcomes(rows) if o.has(weak=1)]
    start = {(o.name, s): int(c.steps[begins(c)]) for o in weak for s, c in o.runs.items()}
    accuracy = rows.where(kind="accuracy", probe="cnn")
    plain = accuracy.where(level=max(accuracy.column("level"), default=0))
    runs = []
    for variant, seeds in rows.where(kind="prompted").by("variant").items():
        for seed, some in seeds.by("seed").items():
            methods = {"plain": plain.where(variant=variant, seed=seed), **some.by("method")}
            begin = start[variant, seed]
            lines = {method: line(mine, begin) for method, mine in methods.items()}
            runs.append(Prompted(variant, seed, lines))
    return runs


def line(rows: Table, begin: int) -> Line:
    """The best value at every step from `begin` on."""
    best: dict[int, float] = {}
    for row in rows:
        patched = row.get("network_step")
        step = row["step"] if patched is None else patched
        if step >= begin:
            best[step] = max(row["p_joint"], best.get(step, 0.0))
    steps = sorted(best)
    return torch.tensor(steps).float(), torch.tensor([best[s] for s in steps])
