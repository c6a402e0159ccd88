"""How far from right a picture may be and still count. A world that can draw what lies between two compositions shows a probe
the whole way from one to its neighbour in a single factor: a triangle that turns into a circle, a blue that turns into red. A
probe that must choose changes its mind somewhere on the way; one that may refuse lets go earlier, and not equally early for
every factor. Whoever compares models that fail in different factors has to know it."""

from collections.abc import Iterator
from typing import Any

import torch

from recombine.measure.probes import Probe, score
from recombine.rng import seeded
from recombine.worlds.base import World
from recombine.worlds.factors import Composition, Split, code

SHARES = tuple(i / 10 for i in range(11))
KEPT = ("probe", "n", "joint", "low", "high")
MOST = 4
"""Compositions of the furthest level from which ways are shown."""


def ways(world: World, split: Split) -> Iterator[tuple[Composition, Composition, str]]:
    """From each composition furthest from the seen ones to its neighbours, and the factor in which they differ."""
    top = max(split.level(c) for c in world.present)
    for here in [c for c in world.present if split.level(c) == top][:MOST]:
        for i, factor in enumerate(world.space.factors):
            for value in range(len(factor.values)):
                if value != here[i]:
                    yield here, (*here[:i], value, *here[i + 1 :]), factor.name


def between(probe: Probe, world: World, split: Split, count: int, device: Any = "cpu") -> list[dict[str, Any]]:
    """Of `count` pictures at every tenth of each way, the share that is still read as where it began (`joint`), and as where it
    leads (`other`)."""
    rows = []
    for here, there, factor in ways(world, split):
        ends = [torch.tensor([c] * count, device=device) for c in (here, there)]
        where = {"kind": "between", "factor": factor, "composition": code(here), "to": code(there)}
        for share in SHARES:
            rng = seeded("between", code(here), code(there), device=device)
            images = world.between(*ends, torch.full((count,), share, device=device), rng)
            far = score(probe, images, there, world.space)["joint"]
            near = {k: v for k, v in score(probe, images, here, world.space).items() if k in KEPT}
            rows.append({**where, "share": share, **near, "other": far})
    return rows
