"""Counting: detected objects against the locations that were prompted for, and up to how many
objects a model counts.

A location is located by a detected object within a radius of it. Each object locates one location
at most; pairs are chosen so that as many locations as possible are located. A picture has

- full recall: every location is located;
- an exact count: it holds as many objects as locations, wherever they are;
- an exact match: both;
- a match: full recall, and no more further objects than training pictures hold without a label
  (`spare`: 0 where all objects are labelled, so that a match is an exact match).

One criterion for all experiments: K_max is the largest number of locations K such that for every
number from 1 to K that was tried, at least half of the pictures (`threshold`) are matches. Recall,
its chance level and false positives (objects that locate nothing) stand beside it.

A picture with many locations is a match only if all of them are located, so this is strict.
`k_mean` is milder: mean recall is 0.9 or more, and the mean number of objects is off by half an
object at most."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from recombine.metrics.intervals import wilson
from recombine.rng import seeded
from recombine.worlds.layout import Layout
from recombine.worlds.scenes.scene import MOST, Scene
from recombine.worlds.scenes.scenes import Scenes, View

Detect = Callable[[Float[Tensor, "b c h w"]], Layout]
"""Pictures -> the locations of their objects: a trained `Detector`, or whatever knows them."""
RADIUS = 1.25 / 16
"""How far from its location an object may be, as a share of the picture: one cell and a quarter of
the grid that encodes locations. A model that is given the cell alone cannot be more exact, and two
points of one cell are further apart than the cell is wide in one case of forty: with a radius of
one cell, every fourth picture with twelve locations would be wrong."""
SHOWN = 0.25
"""An object of which less is visible than this share of its whole mask is hidden: neither to detect
nor to miss it is an error."""
BAR = ((6, 0.97), (10, 0.90))
"""Up to so many objects, the share of real pictures that a detector must count exactly. Its counts
are refused where the test shows that it does not: where the whole 95 % interval lies below. (By the
share alone, a detector that counts 97.7 % exactly would fail one test of 256 pictures in four.)"""
CHUNK = 256
"""How many pictures are rendered with all their masks at once."""


class Tally(NamedTuple):
    """For each picture: the number of locations, of those that were located, and of all detected
    objects."""

    locations: Int[Tensor, "b"]
    located: Int[Tensor, "b"]
    total: Int[Tensor, "b"]


def match(
    detected: Layout, locations: Layout, radius: float = RADIUS
) -> tuple[Bool[Tensor, "b k"], Bool[Tensor, "b n"]]:
    """Which locations are located, and which of the detected objects located one: as many pairs as
    possible within the radius, and of all such choices the one with the least sum of distances."""
    apart = torch.cdist(
        locations.at.double(), detected.at.double(), compute_mode="donot_use_mm_for_euclid_dist"
    )
    near = (apart <= radius) & locations.present[:, :, None] & detected.present[:, None]
    far = 1 + min(near.shape[1:]) * radius
    located, used = (
        torch.zeros(some.present.shape, dtype=torch.bool) for some in (locations, detected)
    )
    costs = apart.where(near, far).cpu().numpy()
    for i, (cost, allowed) in enumerate(zip(costs, near.cpu().numpy(), strict=True)):
        location, other = linear_sum_assignment(cost)
        kept = allowed[location, other]
        located[i, location[kept]], used[i, other[kept]] = True, True
    return located.to(near.device), used.to(near.device)


def tally(
    detected: Layout, locations: Layout, hidden: Layout | None = None, radius: float = RADIUS
) -> Tally:
    """Detected objects against locations. An object that locates nothing but lies where one is
    `hidden` is not counted."""
    located, used = match(detected, locations, radius)
    if hidden is not None:
        detected = detected.keep(~match(detected.keep(~used), hidden, radius)[1])
    return Tally(*(part.sum(1) for part in (locations.present, located, detected.present)))


def row(counts: Tally, spare: int = 0) -> dict[str, Any]:
    """What pictures with the same number of locations amount to: shares with full recall, an exact
    count, an exact match and a match, with their Wilson intervals, the recall over all locations,
    and the mean numbers of objects and of those that locate nothing."""
    n, prompted = len(counts.locations), int(counts.locations.sum())
    full, exact = counts.located == counts.locations, counts.total == counts.locations
    few = counts.total - counts.locations <= spare
    made = {"n": n, "recall": int(counts.located.sum()) / prompted if prompted else 1.0}
    for name, good in (
        ("full_recall", full),
        ("exact_count", exact),
        ("exact_match", full & exact),
        ("matched", full & few),
    ):
        low, high = wilson(int(good.sum()), n)
        made |= {name: _mean(good), f"{name}_low": low, f"{name}_high": high}
    return made | {
        "total": _mean(counts.total),
        "false_positives": _mean(counts.total - counts.located),
    }


def _mean(values: Tensor) -> float:
    return float(values.double().mean())


def curve(
    detected: Layout,
    locations: Layout,
    radius: float = RADIUS,
    kind: str = "count",
    spare: int = 0,
) -> list[dict[str, Any]]:
    """One row, of this kind, for every number of locations among the pictures, smallest first; with
    the chance level of the recall, where there are several pictures."""
    counts, made = tally(detected, locations, radius=radius), []
    for k in sorted(set(counts.locations.tolist())):
        which = counts.locations == k
        several = k and int(which.sum()) > 1
        level = (
            {"chance": chance(detected.rows(which), locations.rows(which), radius)}
            if several
            else {}
        )
        some = row(Tally(*(part[which] for part in counts)), spare)
        made.append({"kind": kind, "locations": k, **some, **level})
    return made


def chance(detected: Layout, locations: Layout, radius: float = RADIUS) -> float:
    """The recall at chance level: for each picture, of the locations of the next one. Pictures full
    of objects score high."""
    others = locations.rows(torch.arange(len(locations.present)).roll(1))
    return int(match(detected, others, radius)[0].sum()) / int(others.present.sum())


def nearness(
    detected: Layout, locations: Layout, radius: float, edges: Sequence[float]
) -> list[dict[str, Any]]:
    """Are there too many locations, or are they too near to each other? For every number of
    locations, and for every range of the distance to the nearest other location: how many locations
    there are (`n`), and the recall."""
    located = match(detected, locations, radius)[0]
    own = torch.eye(locations.at.shape[1], dtype=torch.bool, device=locations.at.device)
    at = locations.at.double()
    apart = torch.cdist(at, at, compute_mode="donot_use_mm_for_euclid_dist")
    other = locations.present[:, :, None] & locations.present[:, None] & ~own
    nearest = apart.masked_fill(~other, torch.inf).amin(2)
    number, rows = locations.present.sum(1, keepdim=True).expand_as(located), []
    for k in sorted(set(number[locations.present].tolist())):
        for low, high in pairwise((0.0, *edges, torch.inf)):
            within = (nearest >= low) & ((nearest < high) | (high == torch.inf))
            some = locations.present & (number == k) & within
            if n := int(some.sum()):
                rows.append(
                    {
                        "kind": "near",
                        "locations": k,
                        "from": low,
                        "n": n,
                        "recall": _mean(located[some]),
                    }
                )
    return rows


def k_max(rows: Iterable[dict[str, Any]], column: str = "matched", threshold: float = 0.5) -> int:
    """The largest number of locations up to which at least `threshold` of the pictures are matches
    at every number that was tried, or whatever else `column` counts. 0 if the smallest number
    fails."""
    return _up_to(rows, lambda r: r[column] >= threshold)


def k_mean(
    rows: Iterable[dict[str, Any]], total: bool = True, share: float = 0.9, off: float = 0.5
) -> int:
    """The same by means over pictures: up to which the recall is at least `share` and, with
    `total`, the mean number of objects is `off` by no more than this."""
    return _up_to(
        rows,
        lambda r: r["recall"] >= share and not (total and abs(r["total"] - r["locations"]) > off),
    )


def _up_to(rows: Iterable[dict[str, Any]], good: Callable[[dict[str, Any]], bool]) -> int:
    reached = 0
    for made in sorted((r for r in rows if r["locations"] > 0), key=lambda r: r["locations"]):
        if not good(made):
            break
        reached = made["locations"]
    return reached


def visible_and_hidden(
    seen: View, present: Bool[Tensor, "b k"], least: float = SHOWN
) -> tuple[Layout, Layout]:
    """The locations of the visible objects of rendered pictures, and of those that are hidden
    behind others."""
    whole = seen.whole.sum((2, 3))
    visible = seen.visible.sum((2, 3)) >= least * whole
    return Layout(seen.centres, present & visible), Layout(seen.centres, present & ~visible)


def real_scenes(
    world: Scenes, objects: int, count: int, device: torch.device | str = "cpu"
) -> Scene:
    """Fresh scenes that no detector was trained on, named by their number of objects."""
    return world.place(
        torch.full((count,), objects, device=device), seeded("real", objects, device=device)
    )


def real_counts(
    detect: Detect,
    world: Scenes,
    objects: Iterable[int] = range(MOST + 1),
    count: int = 512,
    device: torch.device | str = "cpu",
    radius: float = RADIUS,
    least: float = SHOWN,
) -> list[dict[str, Any]]:
    """How well real pictures are counted, one row for every number of objects. The locations are
    those of the objects that are not hidden."""
    rows = []
    for k in objects:
        parts = []
        for scene in real_scenes(world, k, count, device).split(CHUNK):
            seen = world.render(scene)
            parts.append(
                tally(detect(seen.images), *visible_and_hidden(seen, scene.present, least), radius)
            )
        rows.append(
            {
                "kind": "detector",
                "objects": k,
                **row(Tally(*map(torch.cat, zip(*parts, strict=True)))),
            }
        )
    return rows


def doubt(rows: Iterable[dict[str, Any]]) -> str:
    """Why a detector's counts cannot be used, in one line; empty if they can. From its rows on real
    pictures: BAR, for every number of objects up to the largest that models were prompted for."""
    rows = list(rows)
    tested = {r["objects"]: r for r in rows if r["kind"] == "detector"}
    if not tested:
        return "no detector was tested on real pictures"
    most = max((r["locations"] for r in rows if r["kind"] == "real"), default=0)
    for up_to, needed in BAR:
        for k in range(min(up_to, most) + 1):
            made = tested.get(k, {"exact_count": 0.0})
            share = made["exact_count"]
            if made.get("exact_count_high", share) < needed:
                counted = f"{share:.1%} of real pictures with {k} objects"
                why = f"it counts {counted} exactly; {needed:.0%} are needed"
                return f"the detector is not reliable: {why}"
    return ""
