"""From the rows of `reach` to what is judged and drawn: its networks, what they miss, and how full their patches are."""

from recombine.studies.base import Rows
from recombine.studies.levels import Found
from recombine.studies.scenes.outcomes import last, marks_of

MANY = 9
"""Locations at which it is asked what is missed, or as many as were tried."""


def bases(rows: Rows) -> list[str]:
    return list(dict.fromkeys(rows.where(kind="fit").column("base")))


def reaches(rows: Rows, base: str) -> dict[int, str]:
    """Each reach of an experiment and its variant, smallest first."""
    return {r["reach"]: r["variant"] for r in rows.where(kind="fit", base=base)}


def missed(rows: Rows) -> tuple[dict[str, Found], int]:
    """The share of many locations that each network misses at the end, seed by seed; and how many these are."""
    many = max(k for k in marks_of(rows) if k <= MANY)
    variants = rows.where(kind="fit").column("variant")
    recall = {v: {seed: some.one(locations=many)["recall"] for seed, some in last(rows, v).items()} for v in variants}
    return {v: Found.of({seed: 1 - share for seed, share in some.items()}) for v, some in recall.items()}, many


def fullness(rows: Rows) -> dict[str, float]:
    """The share of each network's patches that hold more of these locations than training told of."""
    many = missed(rows)[1]
    return {r["variant"]: r["share"] for r in rows.where(kind="overfull", locations=many)}
