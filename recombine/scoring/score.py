"""Rows: how many of the pictures of each composition show it, and what the others show."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from jaxtyping import Int

from recombine.analysis.levels import level_name
from recombine.config import UsageError
from recombine.metrics.intervals import wilson, wilson_of_share
from recombine.scoring.probes import PictureProbe
from recombine.store import Row
from recombine.worlds.datasets.dataset import Picture, picture_digest
from recombine.worlds.factors import Composition, FactorSpace, Split, code
from recombine.worlds.world import INVALID

TOGETHER = 256
"""Pictures that are in memory at a time."""
TRUST = 0.9
"""The accuracy on real pictures, of each factor, below which a probe is refused."""
SHOWN = 4
"""Of what was drawn instead, the most frequent are listed."""
SHRINK = 4.0
"""Pictures of the level's mean that are added to a composition's own, for its variance alone."""
Index = Int[np.ndarray, "n k"]


def read_all(
    probe: PictureProbe, pictures: Iterable[tuple[Picture, Sequence[int]]]
) -> tuple[Index, Index, list[bytes]]:
    """What a probe reads in every picture, what it should show, and each picture's digest."""
    stream, found, wanted, digests = iter(pictures), [], [], []
    while some := list(islice(stream, TOGETHER)):
        found.append(probe.read([p for p, _ in some]))
        wanted += [tuple(c) for _, c in some]
        digests += [picture_digest(p) for p, _ in some]
    width = len(wanted[0]) if wanted else 0
    return (
        np.concatenate(found) if found else np.zeros((0, 0), np.int64),
        np.array(wanted, np.int64).reshape(len(wanted), width),
        digests,
    )


def accuracy_table(
    kind: str, probe: str, answers: Index, wanted: Index, space: FactorSpace, split: Split | None = None,
    every: Iterable[Composition] = (),
) -> list[Row]:  # fmt: skip
    """A row for each composition that was prompted for, and of `every` composition that was not, with
    n = 0; in their order."""
    rows = []
    there = [tuple(c) for c in np.unique(wanted, axis=0).tolist()]
    for c in sorted({*there, *every}):
        mine = answers[(wanted == c).all(1)] == c if len(wanted) else np.zeros((0, len(c)), bool)
        successes, n = int(mine.all(1).sum()), len(mine)
        low, high = wilson(successes, n)
        row: Row = {
            "kind": kind,
            "composition": code(c),
            "words": space.describe(c),
            "probe": probe,
            "n": n,
        }
        row |= {"level": split.level(c)} if split else {}
        if n:
            row |= {
                "joint": successes / n,
                **{f.name: float(mine[:, k].mean()) for k, f in enumerate(space.factors)},
            }
        rows.append(row | {"low": low, "high": high})
    return rows


def validate(
    probe: PictureProbe,
    real: Iterable[tuple[Picture, Sequence[int]]],
    space: FactorSpace,
    split: Split,
    where: str,
    primary: bool,
) -> list[Row]:
    """Rows of kind probe on real pictures; UsageError where the primary probe cannot read them."""
    answers, wanted, _ = read_all(probe, real)
    if not len(wanted):
        raise UsageError(
            f"{where}: no real pictures are left to validate the probe on; it needs three of a "
            "composition"
        )
    for factor, share in zip(space.factors, (answers == wanted).mean(0), strict=True):
        if primary and share < TRUST:
            raise UsageError(
                f"the probe {probe.name} cannot read {factor.name} on real pictures of {where}: "
                f"accuracy {share:.2f} on {len(wanted)}, needed {TRUST}; its scores would mean "
                "nothing"
            )
    return accuracy_table("probe", probe.name, answers, wanted, space, split)


def confusion(probe: str, answers: Index, wanted: Index, space: FactorSpace) -> list[Row]:
    """What was drawn in place of each composition, the most frequent first."""
    rows = []
    for c in map(tuple, np.unique(wanted, axis=0).tolist()):
        mine = answers[(wanted == c).all(1)]
        wrong = Counter(tuple(a) for a in mine.tolist() if tuple(a) != c)
        for drawn, n in wrong.most_common(SHOWN):
            words = "no composition" if INVALID in drawn else space.describe(drawn)
            about = {
                "kind": "confusion",
                "composition": code(c),
                "words": space.describe(c),
                "probe": probe,
            }
            rows.append(about | {"instead": words, "n": n, "share": n / len(mine)})
    return rows


def by_level(rows: Iterable[Row]) -> dict[int, list[Row]]:
    levels: dict[int, list[Row]] = {}
    for row in rows:
        levels.setdefault(row["level"], []).append(row)
    return dict(sorted(levels.items()))


def level_estimate(rows: Sequence[Row]) -> dict[str, Any]:
    """The mean over a level's compositions that have pictures, each counting alike, with a 95 %
    interval: Wilson's, for as many pictures as would know one share as well as these know their
    mean. The variance of each composition is that of its share drawn towards the mean of all, as if
    SHRINK more pictures had shown it: one or two pictures do not show how sure they are."""
    there = [(round(r["joint"] * r["n"]), r["n"]) for r in rows if r["n"]]
    if not there:
        return {"mean": None, "low": 0.0, "high": 1.0, "n": 0, "compositions": 0, "of": len(rows)}
    successes, n = np.array(there, float).T
    mean = float((successes / n).mean())
    as_many = len(n) ** 2 / (1 / n).sum()  # where all rates are equal
    if 0 < mean < 1:
        share = (successes + SHRINK * mean) / (n + SHRINK)
        as_many = mean * (1 - mean) * len(n) ** 2 / (share * (1 - share) / n).sum()
    low, high = wilson_of_share(mean, float(as_many))
    facts = {"n": int(n.sum()), "compositions": len(there), "of": len(rows)}
    return {"mean": mean, "low": low, "high": high, **facts}


def lacking(name: str, levels: dict[int, dict[str, Any]]) -> Iterator[str]:
    """A line for each level of which a model has no pictures of some compositions: its mean is over
    the others, so it cannot be ranked beside a model that has all."""
    for level, e in levels.items():
        if e["compositions"] < e["of"]:
            there = f"{e['compositions']} of {e['of']} {level_name(level)} compositions"
            yield f"{name} has pictures of {there}; its mean is over those"


def stream(pictures: Iterator[Picture], index: Index) -> Iterator[tuple[Picture, Sequence[int]]]:
    yield from zip(pictures, index.tolist(), strict=True)
