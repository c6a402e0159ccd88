"""How far from a composition a picture may be and still be read as it. A world that can interpolate
renders pictures from one composition to its neighbour in a single factor: a triangle that turns
into a circle, a blue that turns into red. A closed-set probe changes its answer somewhere in
between; an open-set probe rejects earlier, and not equally early for every factor. That matters
where models are compared that fail in different factors."""

from collections.abc import Iterator
from typing import Any

import torch

from recombine.metrics.intervals import wilson
from recombine.metrics.probes import Probe
from recombine.rng import seeded
from recombine.worlds.factors import Composition, Split, code
from recombine.worlds.world import World

SHARES = tuple(i / 10 for i in range(11))
MOST = 4
"""Compositions of the furthest level from which ways are shown."""
Way = tuple[Composition, Composition, str]
"""From where to where, and the factor in which they differ."""


def ways(world: World, split: Split) -> Iterator[Way]:
    """From each composition furthest from the seen ones to its neighbours."""
    top = max(split.level(c) for c in world.present)
    for here in [c for c in world.present if split.level(c) == top][:MOST]:
        for i, factor in enumerate(world.space.factors):
            for value in range(len(factor.values)):
                if value != here[i]:
                    yield here, (*here[:i], value, *here[i + 1 :]), factor.name


def interpolation_rows(
    probe: Probe, world: World, split: Split, count: int, device: Any = "cpu"
) -> list[dict[str, Any]]:
    """Of `count` pictures at every tenth of each way, the share that is still read as where it
    began (`joint`), and as where it leads (`other`)."""
    return [row for way in ways(world, split) for row in along(probe, world, way, count, device)]


def along(
    probe: Probe, world: World, way: Way, count: int, device: Any
) -> Iterator[dict[str, Any]]:
    """The same pictures at every tenth of one way."""
    here, there, factor = way
    ends = [torch.tensor([c] * count, device=device) for c in (here, there)]

    def rendered(share: float) -> torch.Tensor:
        rng = seeded("between", code(here), code(there), device=device)
        return world.interpolate(*ends, torch.full((count,), share, device=device), rng)

    answers = probe(torch.cat([rendered(share) for share in SHARES])).unflatten(
        0, (len(SHARES), count)
    )
    near, far = ((answers == end).all(2).sum(1).tolist() for end in ends)
    about = {
        "kind": "interpolation",
        "factor": factor,
        "composition": code(here),
        "to": code(there),
        "probe": probe.name,
    }
    for share, first, others in zip(SHARES, near, far, strict=True):
        low, high = wilson(first, count)
        yield {
            **about,
            "share": share,
            "n": count,
            "joint": first / count,
            "low": low,
            "high": high,
            "other": others / count,
        }
