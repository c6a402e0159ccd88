"""From accuracy rows to one number per level: per seed first, then over seeds."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from statistics import fmean
from typing import Any

from recombine.analysis.claims import Measured, Part
from recombine.analysis.estimates import Estimate, rate, rate_difference
from recombine.analysis.frames import pl
from recombine.analysis.table import NotMeasured, Table
from recombine.metrics.intervals import TRUST

Curve = list[tuple[int, float]]
"""(step, accuracy), in order."""
LEARNED = 0.8
"""The joint accuracy on seen compositions from which on a network counts as trained."""
FEWEST = 4
"""Checkpoints of a run of which something can be said over updates."""
PRIMARY = ("open-set", "cnn")
"""The primary probe where a claim names no other: the first of these that scored the samples."""
PROBES = {
    "open-set": "open-set probe",
    "cnn": "CNN probe",
    "linear": "linear probe",
    "oracle": "oracle",
}
"""Probes as tables and figures name them."""
PROBE_ENDINGS = {name: f", {words}" for name, words in PROBES.items()}
"""What the name of a number says of the probe; nothing of the paper's own."""


def probe_of(rows: Table) -> str:
    """The primary probe of these rows."""
    names = set(rows.where(kind="accuracy").unique("probe"))
    return next((name for name in PRIMARY if name in names), "cnn")


def is_trusted(rows: Table, probe: str) -> bool:
    """Whether a probe is right on real pictures of every composition (TRUST): no other is worth
    showing."""
    real = rows.where(kind="probe", probe=probe).column("joint")
    return bool(real) and min(real) >= TRUST


def curve(
    rows: Table,
    variant: str,
    seed: int,
    level: int,
    column: str = "joint",
    probe: str | None = None,
) -> Curve:
    """The mean over a level's compositions at every checkpoint of one run."""
    scored = rows.where(kind="accuracy")
    points = scored.lists(column, "variant", "seed", "level", "probe", "step")
    key = (variant, seed, level, probe or probe_of(rows))
    return [(step, fmean(values)) for step, values in sorted(points.get(key, {}).items())]


def curves_at(rows: Table, variant: str, composition: str, probe: str) -> list[Curve]:
    """Accuracy on one composition over updates, for each seed. NotMeasured where there is none."""
    some = rows.where(kind="accuracy", variant=variant, composition=composition, probe=probe)
    if not len(some):
        raise NotMeasured(f"no rows of {variant} at {composition}")
    each = [some.where(seed=s) for s in seeds_of(rows, variant)]
    return [sorted(zip(t.column("step"), t.column("joint"), strict=True)) for t in each]


def means(rows: Table, column: str = "joint") -> Curve:
    """Over all rows of each checkpoint."""
    return [(step, fmean(some.column(column))) for step, some in sorted(rows.by("step").items())]


def interpolation_curve(rows: Table, probe: str, factor: str) -> list[tuple[float, float]]:
    """(share of the way, share still read as where it began), the mean over all ways along a
    factor."""
    some = rows.where(kind="interpolation", probe=probe, factor=factor)
    return [(x, fmean(some.where(share=x).column("joint"))) for x in sorted(some.unique("share"))]


def tolerance(points: list[tuple[float, float]]) -> float:
    """How far along a way a probe lets go: where its curve crosses one half, between two points by
    the straight line."""
    for (x, high), (z, low) in pairwise(points):
        if high >= 0.5 > low:
            return x + (z - x) * (high - 0.5) / (high - low)
    return 1.0 if points[0][1] >= 0.5 else 0.0


def late_mean(points: Curve) -> float:
    """The mean over the last quarter of the checkpoints. NotMeasured where there are none."""
    if not points:
        raise NotMeasured("no such level was measured")
    return fmean(y for _, y in points[-max(1, len(points) // 4) :])


def early(points: Curve) -> float:
    """The mean over the second to the fourth checkpoint: the first is of a network that has hardly
    begun. NotMeasured where there are too few."""
    return fmean(y for _, y in enough(points)[1:4])


def fluctuation(points: Curve) -> float:
    """How much a checkpoint differs from the one before, on average over the second half.
    NotMeasured where there are too few."""
    half = enough(points)[len(points) // 2 - 1 :]
    return fmean(abs(b - a) for (_, a), (_, b) in pairwise(half))


def over_updates(
    rows: Table, variant: str, level: int, summary: Callable[[Curve], float], probe: str, key: str
) -> Measured:
    """A summary of a variant's curves, the mean over seeds; nothing where they are too short."""
    with suppress(NotMeasured):
        return {key: fmean(per_seed(rows, variant, level, summary, probe).values())}
    return {}


def enough(points: Curve) -> Curve:
    """The checkpoints of a run. NotMeasured where early and late ones would be the same."""
    if len(points) < FEWEST:
        raise NotMeasured(f"fewer than {FEWEST} checkpoints")
    return points


def best(points: Curve) -> float:
    """Of the trained network: what an untrained one draws is right by accident only."""
    return max(y for step, y in points if step > 0 or len(points) == 1)


def seeds_of(rows: Table, variant: str) -> list[int]:
    return sorted(rows.where(kind="accuracy", variant=variant).unique("seed"))


def per_seed(
    rows: Table,
    variant: str,
    level: int,
    summary: Callable[[Curve], float] = late_mean,
    probe: str | None = None,
    column: str = "joint",
) -> dict[int, float]:
    """One summary of a level's curve for each seed. NotMeasured where there are no such rows."""

    def summaries() -> dict[int, float]:
        seeds = seeds_of(rows, variant)
        curves = {seed: curve(rows, variant, seed, level, column, probe) for seed in seeds}
        return {seed: summary(points) for seed, points in curves.items() if points}

    values = rows.once(("per seed", variant, level, summary, probe, column), summaries)
    if not values:
        by = f" by the probe {probe}" if probe else ""
        raise NotMeasured(f"no rows of {variant} at level {level}{by}")
    return values


def accuracy(
    rows: Table,
    variant: str,
    level: int,
    summary: Callable[[Curve], float] = late_mean,
    probe: str | None = None,
) -> Estimate:
    """The accuracy at a level over seeds, late mean unless another summary is given."""
    return rate(list(per_seed(rows, variant, level, summary, probe).values()))


def gain(rows: Table, more: str, less: str, level: int = 2, probe: str | None = None) -> Estimate:
    """How much more accurate one variant is than another, over the seeds that both have, of which
    the estimate's n says how many. NotMeasured where they have none in common."""
    a, b = (per_seed(rows, variant, level, late_mean, probe) for variant in (more, less))
    if not (both := sorted(a.keys() & b.keys())):
        raise NotMeasured(f"{more} has seeds {sorted(a)}, {less} {sorted(b)}: none in common")
    return rate_difference([a[seed] for seed in both], [b[seed] for seed in both])


def mean_gain(
    rows: Table, pairs: Sequence[tuple[str, str]], level: int = 2, probe: str | None = None
) -> Estimate:
    """The mean over pairs of variants of how much more accurate the first is than the second, over
    the seeds that all of them have. Kinds of training with the same seed go alike, so each side is
    averaged over the pairs within a seed first. NotMeasured where no seed is common to all."""
    sides = [
        [per_seed(rows, pair[side], level, late_mean, probe) for pair in pairs] for side in (0, 1)
    ]
    common = sorted(set.intersection(*(set(values) for side in sides for values in side)))
    if not common:
        raise NotMeasured("no seed is common to all variants")
    more, less = ([fmean(values[seed] for values in side) for seed in common] for side in sides)
    return rate_difference(more, less)


def leads(rows: Table, leaders: Sequence[str], less: str, *probes: str) -> tuple[Part, ...]:
    """Parts of a claim: each of some variants is more accurate at level 2 than another, by however
    little and by each probe."""
    return tuple(
        replace(part, name=f"{part.name}{PROBE_ENDINGS.get(probe, '')}")
        for probe in probes
        for part in (gain_of(rows, leader, less, 0.0, probe=probe) for leader in leaders)
    )


def from_seed(rows: Table, first: int) -> Table:
    """The rows of seeds from one on, and those that have no seed. NotMeasured where none is left."""
    left = rows.filter(pl.col("seed").is_null() | (pl.col("seed") >= first))
    if not len(left.where(kind="accuracy")):
        raise NotMeasured(f"no seed from {first} on")
    return left


def same_seeds(*values: dict[int, float]) -> None:
    """NotMeasured where some have other seeds than others: pairing them would compare strangers."""
    if len(different := dict.fromkeys(str(sorted(v)) for v in values)) > 1:
        raise NotMeasured(f"seeds {' beside '.join(different)}: some runs are missing")


def at_level(
    rows: Table, variant: str, level: int, low: float = 0.0, high: float = 1.0, **by: Any
) -> Part:
    """A part of a claim: the late accuracy of a variant at a level lies in a region."""
    name = f"{variant}, {level_name(level)}"
    return Part(name, accuracy(rows, variant, level, **by), low, high)


def has_learned(rows: Table, variant: str, least: float, probe: str | None = None) -> Part:
    """What claims on composition need: the late accuracy of a variant on what it has seen."""
    return replace(at_level(rows, variant, 0, low=least, probe=probe), needed=True)


def gain_of(
    rows: Table, more: str, less: str, least: float, level: int = 2, probe: str | None = None
) -> Part:
    """A part of a claim: one variant is more accurate than another, by at least so much."""
    return Part(
        f"{more} - {less}, {level_name(level)}", gain(rows, more, less, level, probe), least, 1.0
    )


def gains(rows: Table, *pairs: tuple[str, str], probe: str | None = None) -> Measured:
    """Differences at level 2 that stand beside a claim and decide nothing, in words."""
    made: Measured = {}
    for more, less in pairs:
        with suppress(NotMeasured):
            said = str(gain(rows, more, less, probe=probe))
            made[f"{more} - {less}"] = said.replace("-0.00", "0.00")
    return made


def gains_by_probe(rows: Table, *pairs: tuple[str, str], probe: str) -> Measured:
    """`gains` by a probe and by those that refuse fragments and blobs, which a linear one accepts."""
    return {
        f"{name}{PROBE_ENDINGS.get(by, '')}": said
        for by in (probe, "open-set", "oracle")
        for name, said in gains(rows, *pairs, probe=by).items()
    }


def measured(rows: Table, papers: Mapping[str, float | None], probe: str | None = None) -> Measured:
    """Numbers that stand beside a claim: late means at level 2 next to the paper's, if it has any;
    then other levels, the best checkpoint, other probes, and how the primary probe reads real
    pictures."""
    primary = probe or probe_of(rows)
    shown: Measured = {name: accuracy(rows, name, 2, late_mean, probe).value for name in papers}
    shown |= {f"paper_{name}": paper for name, paper in papers.items() if paper is not None}
    shown["primary probe"] = PROBES.get(primary, primary)
    others = [p for p in PROBES if p != primary and rows.where(kind="accuracy", probe=p)]
    others = [p for p in others if p != "linear" or is_trusted(rows, p)]
    for name in papers:
        for level in (1, 0):
            shown[f"{name}, {level_name(level)}"] = accuracy(
                rows, name, level, late_mean, probe
            ).value
        shown[f"{name}, best checkpoint"] = accuracy(rows, name, 2, best, probe).value
        shown |= {
            f"{name}, {PROBES[p]}": accuracy(rows, name, 2, late_mean, p).value for p in others
        }
    real = rows.where(kind="probe", probe=primary).column("joint")
    return shown | ({"primary probe on real pictures, at worst": min(real)} if real else {})


def level_name(level: int) -> str:
    """A level in words: how many factors away from anything seen."""
    return "seen" if level == 0 else f"level {level}"


def summary(rows: Table) -> tuple[list[str], list[str]]:
    """What makes the numbers doubtful, and the numbers: a line for each variant with its late means
    at every level, by the primary probe."""
    lines = []
    for variant in rows.where(kind="accuracy").unique("variant"):
        levels = sorted(rows.where(kind="accuracy", variant=variant).unique("level"))
        each = (f"{level_name(k)} {accuracy(rows, variant, k).value:.2f}" for k in levels)
        lines.append(
            f"{variant}: {', '.join(each)} (late means, {PROBES.get(probe_of(rows), probe_of(rows))})"
        )
    return (learning_notes(rows) + doubts(rows) if lines else []), lines


def learning_notes(rows: Table) -> list[str]:
    """First of all, whether the models draw what they have seen."""
    return unlearned(rows) or ["the seen compositions were learned"]


def unlearned(rows: Table) -> list[str]:
    """A line for each variant that does not even draw what it has seen."""
    lines = []
    for variant in rows.where(kind="accuracy").unique("variant"):
        seen = accuracy(rows, variant, 0).value
        if seen < LEARNED:
            lines.append(
                f"{variant} has not learned the seen compositions ({seen:.2f}): other levels mean little"
            )
    return lines


def doubts(rows: Table) -> list[str]:
    """A line where the primary probe cannot read real pictures."""
    probe = probe_of(rows)
    real = [r for r in rows.where(kind="probe", probe=probe) if r["joint"] < TRUST]
    if not real:
        return []
    worst = min(real, key=lambda r: r["joint"])
    read = f"the {PROBES.get(probe, probe)} reads only {worst['joint']:.0%} of real pictures of {worst['composition']}"
    return [f"{read}: what it says of samples means little (below {TRUST:.0%})"]


def level_mean(rows: Table, level: int) -> float:
    """The mean joint accuracy of a level's rows. NotMeasured where there are none."""
    values = rows.where(level=level).column("joint")
    if not values:
        raise NotMeasured(f"no rows at level {level}")
    return fmean(values)
