"""From accuracy rows to one number per level: per seed first, then over seeds."""

from collections.abc import Callable
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

from recombine.figures import level_name
from recombine.measure.composing import TRUST
from recombine.measure.intervals import student
from recombine.studies.base import Rows

Curve = list[tuple[int, float]]
"""(step, accuracy), in order."""


class Found(NamedTuple):
    """One number per seed, their mean and its interval."""

    mean: float
    interval: tuple[float, float] | None
    values: list[float]
    seeds: list[int]

    @classmethod
    def of(cls, by_seed: dict[int, float]) -> "Found":
        seeds = sorted(by_seed)
        values = [by_seed[seed] for seed in seeds]
        return cls(fmean(values), student(values), values, seeds)


def probe_of(rows: Rows) -> str:
    """The probe that judges: the classifier that may refuse; the one that must choose where rows know no other."""
    names = {r["probe"] for r in rows.where(kind="accuracy")}
    return "wary" if "wary" in names else "cnn"


def trusted(rows: Rows, probe: str) -> bool:
    """Whether a probe is right on real pictures of every composition (TRUST): no other is worth showing."""
    real = rows.where(kind="probe", probe=probe).column("joint")
    return bool(real) and min(real) >= TRUST


def curve(rows: Rows, variant: str, seed: int, level: int, column: str = "joint", probe: str | None = None) -> Curve:
    """The mean over a level's compositions at every checkpoint of one run."""
    some = rows.where(kind="accuracy", variant=variant, seed=seed, level=level, probe=probe or probe_of(rows))
    return means(some, column)


def means(rows: Rows, column: str = "joint") -> Curve:
    """Over all rows of each checkpoint."""
    return [(step, fmean(some.column(column))) for step, some in sorted(rows.by("step").items())]


def way(rows: Rows, probe: str, factor: str) -> list[tuple[float, float]]:
    """(share of the way, share still read as where it began), the mean over all ways along a factor."""
    some = rows.where(kind="between", probe=probe, factor=factor)
    return [(x, fmean(some.where(share=x).column("joint"))) for x in sorted({r["share"] for r in some})]


def tolerance(points: list[tuple[float, float]]) -> float:
    """How far along a way a probe lets go: where its curve crosses one half, between two points by the straight line."""
    for (x, high), (z, low) in pairwise(points):
        if high >= 0.5 > low:
            return x + (z - x) * (high - 0.5) / (high - low)
    return 1.0 if points[0][1] >= 0.5 else 0.0


def late(points: Curve) -> float:
    """The mean over the last quarter of the checkpoints. LookupError where there are none."""
    if not points:
        raise LookupError("no such level was measured")
    return fmean(y for _, y in points[-max(1, len(points) // 4) :])


def best(points: Curve) -> float:
    """Of the trained network: what an untrained one draws is right by accident only."""
    return max(y for step, y in points if step > 0 or len(points) == 1)


def seeds_of(rows: Rows, variant: str) -> list[int]:
    return sorted({r["seed"] for r in rows.where(kind="accuracy", variant=variant)})


def over_seeds(
    rows: Rows, variant: str, level: int, summary: Callable[[Curve], float], probe: str | None = None
) -> Found:
    """One summary per seed, their mean and its interval. LookupError where there are no such rows."""
    curves = {s: curve(rows, variant, s, level, probe=probe) for s in seeds_of(rows, variant)}
    found = {seed: summary(points) for seed, points in curves.items() if points}
    if not found:
        by = f" by the probe {probe}" if probe else ""
        raise LookupError(f"no rows of {variant} at level {level}{by}")
    return Found.of(found)


def judged(rows: Rows, papers: dict[str, float | None]) -> tuple[dict[tuple[str, int], Found], dict[str, float | str]]:
    """Late means of the variants in `papers` at each level, by the probe that judges; and what a claim says it measured: those
    at level 2 beside the paper's, if it has any; then each one's other levels, its best checkpoint, and what a classifier
    says that must choose, the strict reader and, where it is right on real pictures, the linear probe; last how the judge
    reads real pictures."""
    found = {(name, level): over_seeds(rows, name, level, late) for name in papers for level in (0, 1, 2)}
    known = {r["probe"] for r in rows.where(kind="accuracy")} - {probe_of(rows)}
    beside = {word: p for word, p in (("made to choose", "cnn"), ("strict reader", "read")) if p in known}
    beside |= {"linear probe": "linear"} if trusted(rows, "linear") else {}
    measured: dict[str, float | str] = {name: found[name, 2].mean for name in papers}
    measured |= {f"paper_{name}": paper for name, paper in papers.items() if paper is not None}
    measured["judge"] = probe_of(rows)
    for name in papers:
        measured |= {f"{name}, {word}": found[name, k].mean for k, word in ((1, "level 1"), (0, "seen"))}
        measured[f"{name}, best"] = over_seeds(rows, name, 2, best).mean
        measured |= {f"{name}, {w}": over_seeds(rows, name, 2, late, probe).mean for w, probe in beside.items()}
    real = rows.where(kind="probe", probe=probe_of(rows)).column("joint")
    return found, measured | ({"judge on real pictures, at worst": min(real)} if real else {})


def by_all(rows: Rows, *variants: str) -> dict[str, float]:
    """What a claim says it measured where the strict reader decides: late means at level 2 by it, and by the others."""
    probes = {"read": "strict reader", "wary": "judge", "cnn": "must choose"}
    return {f"{v}, {word}": over_seeds(rows, v, 2, late, p).mean for p, word in probes.items() for v in variants}


def summary(rows: Rows) -> list[str]:
    """A line for each variant: its late means at every level, by the probe that judges."""
    lines = []
    for variant in dict.fromkeys(r["variant"] for r in rows.where(kind="accuracy")):
        levels = sorted({r["level"] for r in rows.where(kind="accuracy", variant=variant)})
        found = (f"{level_name(k)} {over_seeds(rows, variant, k, late).mean:.2f}" for k in levels)
        lines.append(f"{variant}: {', '.join(found)} (late means, by {probe_of(rows)})")
    return lines + doubts(rows) if lines else lines


def doubts(rows: Rows) -> list[str]:
    """A line where the probe that judges cannot read real pictures."""
    real = [r for r in rows.where(kind="probe", probe=probe_of(rows)) if r["joint"] < TRUST]
    if not real:
        return []
    worst = min(real, key=lambda r: r["joint"])
    said = f"{probe_of(rows)} reads only {worst['joint']:.0%} of real pictures of {worst['composition']}"
    return [f"{said}: what it says of samples means little (below {TRUST:.0%})"]


def level_mean(rows: Rows, level: int) -> float:
    """The mean joint accuracy of a level's rows. LookupError where there are none."""
    values = rows.where(level=level).column("joint")
    if not values:
        raise LookupError(f"no rows at level {level}")
    return fmean(values)


def gain(more: Found, less: Found) -> Found:
    """What one variant is above another, seed by seed. LookupError unless both have the same seeds."""
    same_seeds(more, less)
    return Found.of({s: a - b for s, a, b in zip(more.seeds, more.values, less.values, strict=True)})


def same_seeds(*found: Found) -> tuple[Found, ...]:
    """All as they are. LookupError where some have other seeds than others: pairing them would compare strangers."""
    if len(different := dict.fromkeys(str(f.seeds) for f in found)) > 1:
        raise LookupError(f"seeds {' beside '.join(different)}: some runs are missing")
    return found


def clear(found: Found, least: float) -> bool:
    """A mean of at least `least` whose interval over seeds lies above zero."""
    return bool(found.mean >= least and (found.interval is None or found.interval[0] > 0))
