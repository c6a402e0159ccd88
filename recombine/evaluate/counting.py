"""Counting: found objects against the locations that asked for them, and how far a model can count.

A location is located by a found object within a radius of it. Each object recall one location at most; the pairs are chosen so that as many
locations as possible are located. A picture is

- complete: every location is located;
- exact: it holds as many objects as locations, wherever they are;
- right: both.

The criterion of `k_max`: K_max is the largest number of locations K such that for every number from 1 to K that was tried, at
least half of the pictures (`threshold`) are right. For models whose training pictures hold objects that no location names (Exps 2
and 2L), more objects than locations are no error, and it is enough that the pictures are complete.

A picture with many locations is right only if all of them are, so this is a strict way to count. `k_mean` is a milder one: on
average nine of ten locations are located, and the number of objects is off by half a one at most."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from recombine.evaluate.intervals import wilson
from recombine.rng import seeded
from recombine.worlds.layout import Layout
from recombine.worlds.scenes.scene import MOST, Scene
from recombine.worlds.scenes.scenes import Scenes, View

Find = Callable[[Float[Tensor, "b c h w"]], Layout]
"""Pictures -> the layout of their objects: a trained `Detector`, or whatever knows them."""
RADIUS = 1.25 / 16
"""How far from its location an object may be found, as a share of the picture: one cell and a quarter of the grid that locations are
given on. Who is told the cell alone cannot know more, and two layout in one cell are further apart than the cell is wide in one
case of forty: at twelve locations, every fourth picture of a model that does all it can would count as wrong."""
SHOWN = 0.25
"""An object of which less is visible than this share of its whole mask is hidden: to find it is no error, nor to miss it."""
BAR = ((6, 0.97), (10, 0.90))
"""What a detector must reach on real pictures before it judges: up to so many objects, this share counted exactly."""
CHUNK = 256
"""How many pictures are drawn with all their masks at once."""


class Tally(NamedTuple):
    """For each picture: how many locations there were, how many of them were located, and how many objects were found in all."""

    locations: Int[Tensor, "b"]
    recall: Int[Tensor, "b"]
    total: Int[Tensor, "b"]


def match(found: Layout, locations: Layout, radius: float = RADIUS) -> tuple[Bool[Tensor, "b k"], Bool[Tensor, "b n"]]:
    """Which locations are located, and which of the found objects located one: as many pairs as possible within the radius, and of all
    such choices the one with the least sum of distances."""
    apart = torch.cdist(locations.at.double(), found.at.double(), compute_mode="donot_use_mm_for_euclid_dist")
    near = (apart <= radius) & locations.present[:, :, None] & found.present[:, None]
    far = 1 + min(near.shape[1:]) * radius
    located, used = torch.zeros(locations.present.shape, dtype=torch.bool), torch.zeros(found.present.shape, dtype=torch.bool)
    for i, (cost, allowed) in enumerate(zip(apart.where(near, far).cpu().numpy(), near.cpu().numpy(), strict=True)):
        location, other = linear_sum_assignment(cost)
        kept = allowed[location, other]
        located[i, location[kept]], used[i, other[kept]] = True, True
    return located.to(near.device), used.to(near.device)


def tally(found: Layout, locations: Layout, hidden: Layout | None = None, radius: float = RADIUS) -> Tally:
    """Found objects against locations. An object that recall no location but lies where one is `hidden` is left out of the total."""
    located, used = match(found, locations, radius)
    if hidden is not None:
        found = found.keep(~match(found.keep(~used), hidden, radius)[1])
    return Tally(*(part.sum(1) for part in (locations.present, located, found.present)))


def row(counts: Tally) -> dict[str, Any]:
    """What pictures with the same number of locations amount to: shares of complete, exact and right ones with their Wilson
    intervals, the share of all locations that are located, and the mean number of objects."""
    n, asked = len(counts.locations), int(counts.locations.sum())
    complete, exact = counts.recall == counts.locations, counts.total == counts.locations
    made = {"n": n, "recall": int(counts.recall.sum()) / asked if asked else 1.0}
    for name, good in (("complete", complete), ("exact", exact), ("right", complete & exact)):
        low, high = wilson(int(good.sum()), n)
        made |= {name: _mean(good), f"{name}_low": low, f"{name}_high": high}
    return made | {"total": _mean(counts.total)}


def _mean(values: Tensor) -> float:
    return float(values.double().mean())


def curve(found: Layout, locations: Layout, radius: float = RADIUS, kind: str = "count") -> list[dict[str, Any]]:
    """One row, of this kind, for every number of locations among the pictures, smallest first; with the share of locations that are located
    by chance, where there are several pictures."""
    counts, made = tally(found, locations, radius=radius), []
    for k in sorted(set(counts.locations.tolist())):
        which = counts.locations == k
        lucky = {"chance": chance(found.rows(which), locations.rows(which), radius)} if k and int(which.sum()) > 1 else {}
        made.append({"kind": kind, "locations": k, **row(Tally(*(part[which] for part in counts))), **lucky})
    return made


def chance(found: Layout, locations: Layout, radius: float = RADIUS) -> float:
    """The share of locations that would be located without being heard: of each picture, those of the next one. Who fills pictures with
    objects recall many."""
    others = locations.rows(torch.arange(len(locations.present)).roll(1))
    return int(match(found, others, radius)[0].sum()) / int(others.present.sum())


def nearness(found: Layout, locations: Layout, radius: float, edges: Sequence[float]) -> list[dict[str, Any]]:
    """Is it the number of locations that is too large, or are they too near to each other? For every number of locations, and for
    every range of the distance to the nearest other location: how many locations there are (`n`), and the share that is located."""
    located, own = match(found, locations, radius)[0], torch.eye(locations.at.shape[1], dtype=torch.bool, device=locations.at.device)
    apart = torch.cdist(locations.at.double(), locations.at.double(), compute_mode="donot_use_mm_for_euclid_dist")
    other = locations.present[:, :, None] & locations.present[:, None] & ~own
    nearest = apart.masked_fill(~other, torch.inf).amin(2)
    asked, rows = locations.present.sum(1, keepdim=True).expand_as(located), []
    for k in sorted(set(asked[locations.present].tolist())):
        for low, high in pairwise((0.0, *edges, torch.inf)):
            some = locations.present & (asked == k) & (nearest >= low) & ((nearest < high) | (high == torch.inf))
            if n := int(some.sum()):
                rows.append({"kind": "near", "locations": k, "from": low, "n": n, "recall": _mean(located[some])})
    return rows


def k_max(rows: Sequence[dict[str, Any]], total: bool = True, threshold: float = 0.5) -> int:
    """The largest number of locations up to which at least `threshold` of the pictures are right at every number that was tried;
    without `total`, up to which they are complete. 0 if the smallest number fails; no locations at all are not counted."""
    column = "right" if total else "complete"
    return _up_to(rows, lambda r: r[column] >= threshold)


def k_mean(rows: Sequence[dict[str, Any]], total: bool = True, share: float = 0.9, off: float = 0.5) -> int:
    """The same by means over pictures: up to which this `share` of locations is located and, with `total`, the mean number of objects
    is `off` by no more than this."""
    return _up_to(rows, lambda r: r["recall"] >= share and not (total and abs(r["total"] - r["locations"]) > off))


def _up_to(rows: Sequence[dict[str, Any]], good: Callable[[dict[str, Any]], bool]) -> int:
    reached = 0
    for made in sorted((r for r in rows if r["locations"] > 0), key=lambda r: r["locations"]):
        if not good(made):
            break
        reached = made["locations"]
    return reached


def shown(seen: View, present: Bool[Tensor, "b k"], least: float = SHOWN) -> tuple[Layout, Layout]:
    """The objects of rendered pictures that can be seen, and those that are hidden behind others."""
    whole = seen.whole.sum((2, 3))
    visible = seen.visible.sum((2, 3)) >= least * whole
    return Layout(seen.centres, present & visible), Layout(seen.centres, present & ~visible)


def real_scenes(world: Scenes, objects: int, count: int, device: torch.device | str = "cpu") -> Scene:
    """Fresh scenes that no detector was trained on, named by their number of objects."""
    return world.place(torch.full((count,), objects, device=device), seeded("real", objects, device=device))


def real_counts(
    find: Find,
    world: Scenes,
    objects: Iterable[int] = range(MOST + 1),
    count: int = 512,
    device: torch.device | str = "cpu",
    radius: float = RADIUS,
    least: float = SHOWN,
) -> list[dict[str, Any]]:
    """How well real pictures are counted, one row for every number of objects: what the detector's counts are worth. The
    locations are the objects that are not hidden."""
    rows = []
    for k in objects:
        parts = []
        for scene in real_scenes(world, k, count, device).split(CHUNK):
            seen = world.render(scene)
            parts.append(tally(find(seen.images), *shown(seen, scene.present, least), radius))
        rows.append({"kind": "detector", "objects": k, **row(Tally(*map(torch.cat, zip(*parts, strict=True))))})
    return rows


def may_judge(rows: Sequence[dict[str, Any]]) -> bool:
    """Whether a detector's rows on real pictures clear the bar, for every number of objects that the bar names."""
    exact = {r["objects"]: r["exact"] for r in rows}
    return all(exact.get(k, 0.0) >= share for most, share in BAR for k in range(most + 1))
