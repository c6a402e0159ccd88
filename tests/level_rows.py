"""Accuracy rows made by hand, and the verdict that a study's claim gives on them."""

from collections.abc import Mapping, Sequence

from recombine.analysis.claims import Finding, assess
from recombine.analysis.table import Table
from recombine.store import Row
from recombine.studies.study import Study

PROBES = ("open-set", "cnn", "oracle")
Heights = Mapping[str, float | Sequence[float]]


def accuracy_rows(
    heights: Heights,
    seeds: int = 5,
    probes: Sequence[str] = PROBES,
    seen: float = 0.95,
    step: int = 1,
) -> list[Row]:
    """`heights`: level 2 of each variant, one number or one per seed. Level 1 lies halfway to
    `seen`."""
    rows = []
    for variant, height in heights.items():
        each = height if isinstance(height, Sequence) else [height] * seeds
        for seed, y in enumerate(each):
            for level, joint in ((0, seen), (1, (seen + y) / 2), (2, y)):
                about = {"kind": "accuracy", "variant": variant, "seed": seed, "step": step}
                about |= {"level": level, "joint": joint, "composition": "x"}
                rows += [about | {"probe": p} for p in probes]
    return rows


def verdict(study: Study, id: str, rows: Sequence[Row], scale: str = "full") -> str:
    """Of one claim, by its id."""
    claim = next(c for c in study.claims if c.id == id)
    return assess(claim, Table(rows), scale, study.run_minutes).verdict


def regions(finding: Finding) -> list[tuple]:
    """Of each part of a finding its name, where it is expected and whether it is needed."""
    return [(p.name, p.low, p.high, p.needed) for p in finding.parts]
