"""Counting: found objects against the marks that asked for them, and how far a model can count.

A mark is hit by a found object within a radius of it. Each object hits one mark at most; the pairs are chosen so that as many
marks as possible are hit. A picture is

- complete: every mark is hit;
- exact: it holds as many objects as marks, wherever they are;
- right: both.

The criterion of `k_max`: K_max is the largest number of marks K such that for every number from 1 to K that was tried, at
least half of the pictures (`threshold`) are right. For models whose training pictures hold objects that no mark names (Exps 2
and 2L), more objects than marks are no error, and it is enough that the pictures are complete.

A picture with many marks is right only if all of them are, so this is a strict way to count. `k_mean` is a milder one: on
average nine of ten marks are hit, and the number of objects is off by half a one at most."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from recombine.measure.intervals import wilson
from recombine.rng import seeded
from recombine.worlds.places import Places
from recombine.worlds.scenes.scene import MOST, Scene
from recombine.worlds.scenes.world import Scenes, View

Find = Callable[[Float[Tensor, "b c h w"]], Places]
"""Pictures -> the places of their objects: a trained `Detector`, or whatever knows them."""
RADIUS = 1.25 / 16
"""How far from its mark an object may be found, as a share of the picture: one cell and a quarter of the grid that marks are
given on. Who is told the cell alone cannot know more, and two places in one cell are further apart than the cell is wide in one
case of forty: at twelve marks, every fourth picture of a model that does all it can would count as wrong."""
SHOWN = 0.25
"""An object of which less is visible than this share of its whole mask is hidden: to find it is no error, nor to miss it."""
BAR = ((6, 0.97), (10, 0.90))
"""What a detector must reach on real pictures before it judges: up to so many objects, this share counted exactly."""
CHUNK = 256
"""How many pictures are drawn with all their masks at once."""


class Tally(NamedTuple):
    """For each picture: how many marks there were, how many of them were hit, and how many objects were found in all."""

    marks: Int[Tensor, "b"]
    hits: Int[Tensor, "b"]
    total: Int[Tensor, "b"]


def match(found: Places, marks: Places, radius: float = RADIUS) -> tuple[Bool[Tensor, "b k"], Bool[Tensor, "b n"]]:
    """Which marks are hit, and which of the found objects hit one: as many pairs as possible within the radius, and of all
    such choices the one with the least sum of distances."""
    apart = torch.cdist(marks.at.double(), found.at.double(), compute_mode="donot_use_mm_for_euclid_dist")
    near = (apart <= radius) & marks.present[:, :, None] & found.present[:, None]
    far = 1 + min(near.shape[1:]) * radius
    hit, used = torch.zeros(marks.present.shape, dtype=torch.bool), torch.zeros(found.present.shape, dtype=torch.bool)
    for i, (cost, allowed) in enumerate(zip(apart.where(near, far).cpu().numpy(), near.cpu().numpy(), strict=True)):
        mark, other = linear_sum_assignment(cost)
        kept = allowed[mark, other]
        hit[i, mark[kept]], used[i, other[kept]] = True, True
    return hit.to(near.device), used.to(near.device)


def tally(found: Places, marks: Places, hidden: Places | None = None, radius: float = RADIUS) -> Tally:
    """Found objects against marks. An object that hits no mark but lies where one is `hidden` is left out of the total."""
    hit, used = match(found, marks, radius)
    if hidden is not None:
        found = found.keep(~match(found.keep(~used), hidden, radius)[1])
    return Tally(*(part.sum(1) for part in (marks.present, hit, found.present)))


def row(counts: Tally) -> dict[str, Any]:
    """What pictures with the same number of marks amount to: shares of complete, exact and right ones with their Wilson
    intervals, the share of all marks that are hit, and the mean number of objects."""
    n, asked = len(counts.marks), int(counts.marks.sum())
    complete, exact = counts.hits == counts.marks, counts.total == counts.marks
    made = {"n": n, "hits": int(counts.hits.sum()) / asked if asked else 1.0}
    for name, good in (("complete", complete), ("exact", exact), ("right", complete & exact)):
        low, high = wilson(int(good.sum()), n)
        made |= {name: _mean(good), f"{name}_low": low, f"{name}_high": high}
    return made | {"total": _mean(counts.total)}


def _mean(values: Tensor) -> float:
    return float(values.double().mean())


def curve(found: Places, marks: Places, radius: float = RADIUS, kind: str = "count") -> list[dict[str, Any]]:
    """One row, of this kind, for every number of marks among the pictures, smallest first; with the share of marks that are hit
    by luck, where there are several pictures."""
    counts, made = tally(found, marks, radius=radius), []
    for k in sorted(set(counts.marks.tolist())):
        which = counts.marks == k
        lucky = {"luck": luck(found.rows(which), marks.rows(which), radius)} if k and int(which.sum()) > 1 else {}
        made.append({"kind": kind, "marks": k, **row(Tally(*(part[which] for part in counts))), **lucky})
    return made


def luck(found: Places, marks: Places, radius: float = RADIUS) -> float:
    """The share of marks that would be hit without being heard: of each picture, those of the next one. Who fills pictures with
    objects hits many."""
    others = marks.rows(torch.arange(len(marks.present)).roll(1))
    return int(match(found, others, radius)[0].sum()) / int(others.present.sum())


def nearness(found: Places, marks: Places, radius: float, edges: Sequence[float]) -> list[dict[str, Any]]:
    """Is it the number of marks that is too large, or are they too near to each other? For every number of marks, and for
    every range of the distance to the nearest other mark: how many marks there are (`n`), and the share that is hit."""
    hit, own = match(found, marks, radius)[0], torch.eye(marks.at.shape[1], dtype=torch.bool, device=marks.at.device)
    apart = torch.cdist(marks.at.double(), marks.at.double(), compute_mode="donot_use_mm_for_euclid_dist")
    other = marks.present[:, :, None] & marks.present[:, None] & ~own
    nearest = apart.masked_fill(~other, torch.inf).amin(2)
    asked, rows = marks.present.sum(1, keepdim=True).expand_as(hit), []
    for k in sorted(set(asked[marks.present].tolist())):
        for low, high in pairwise((0.0, *edges, torch.inf)):
            some = marks.present & (asked == k) & (nearest >= low) & ((nearest < high) | (high == torch.inf))
            if n := int(some.sum()):
                rows.append({"kind": "near", "marks": k, "from": low, "n": n, "hits": _mean(hit[some])})
    return rows


def k_max(rows: Sequence[dict[str, Any]], total: bool = True, threshold: float = 0.5) -> int:
    """The largest number of marks up to which at least `threshold` of the pictures are right at every number that was tried;
    without `total`, up to which they are complete. 0 if the smallest number fails; no marks at all are not counted."""
    column = "right" if total else "complete"
    return _up_to(rows, lambda r: r[column] >= threshold)


def k_mean(rows: Sequence[dict[str, Any]], total: bool = True, share: float = 0.9, off: float = 0.5) -> int:
    """The same by means over pictures: up to which this `share` of marks is hit and, with `total`, the mean number of objects
    is `off` by no more than this."""
    return _up_to(rows, lambda r: r["hits"] >= share and not (total and abs(r["total"] - r["marks"]) > off))


def _up_to(rows: Sequence[dict[str, Any]], good: Callable[[dict[str, Any]], bool]) -> int:
    reached = 0
    for made in sorted((r for r in rows if r["marks"] > 0), key=lambda r: r["marks"]):
        if not good(made):
            break
        reached = made["marks"]
    return reached


def shown(seen: View, present: Bool[Tensor, "b k"], least: float = SHOWN) -> tuple[Places, Places]:
    """The objects of rendered pictures that can be seen, and those that are hidden behind others."""
    whole = seen.whole.sum((2, 3))
    visible = seen.visible.sum((2, 3)) >= least * whole
    return Places(seen.centres, present & visible), Places(seen.centres, present & ~visible)


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
    marks are the objects that are not hidden."""
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
