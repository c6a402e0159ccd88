"""How far from right a picture may be and still count. A world that can draw what lies between two compositions shows a probe
the whole way from one to its neighbour in a single factor: a triangle that turns into a circle, a blue that turns into red. A
probe that must choose changes its mind somewhere on the way; one that may refuse lets go earlier, and not equally early for
every factor. Whoever compares models that fail in different factors has to know it."""

from collections.abc import Iterator
from typing import Any

import torch

from recombine.evaluate.intervals import wilson
from recombine.evaluate.probes import Probe
from recombine.rng import seeded
from recombine.worlds.world import World
from recombine.worlds.factors import Composition, Split, code

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


def interpolation_rows(probe: Probe, world: World, split: Split, count: int, device: Any = "cpu") -> list[dict[str, Any]]:
    """Of `count` pictures at every tenth of each way, the share that is still read as where it began (`joint`), and as where it
    leads (`other`)."""
    return [row for way in ways(world, split) for row in along(probe, world, way, count, device)]


def along(probe: Probe, world: World, way: Way, count: int, device: Any) -> Iterator[dict[str, Any]]:
    """The same pictures at every tenth of one way."""
    here, there, factor = way
    ends = [torch.tensor([c] * count, device=device) for c in (here, there)]
    drawn = lambda share: world.interpolate(  # noqa: E731
        *ends, torch.full((count,), share, device=device), seeded("between", code(here), code(there), device=device)
    )
    answers = probe(torch.cat([drawn(share) for share in SHARES])).unflatten(0, (len(SHARES), count))
    near, far = ((answers == end).all(2).sum(1).tolist() for end in ends)
    about = {"kind": "interpolation", "factor": factor, "composition": code(here), "to": code(there), "probe": probe.name}
    for share, recall, others in zip(SHARES, near, far, strict=True):
        low, high = wilson(recall, count)
        yield {
            **about,
            "share": share,
            "n": count,
            "joint": recall / count,
            "low": low,
            "high": high,
            "other": others / count,
        }
