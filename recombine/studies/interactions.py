"""Why does within-class jitter teach what a label does?

An exact model of composition (theory/products.py): trained by gradient flow, it is conditioned on
shape, colour and size and answers with all three; it may add its conditions, or multiply them, so
that every combination can have a meaning of its own. It sees the four combinations of
`composition`, spread around their centres in colour and size, and is prompted for the others.
`prior` says how cheap products are:

- apart: products with shape cost nothing, so circles and triangles share nothing;
- alike: products cost something, with every factor the same;
- sums: products cost much.

Without spread the four pictures cannot tell a sum from a product, and the answers to the others
depend on the prior alone: only `sums` composes. Any spread of both colour and size tells them apart
in the end, but slowly: what colour does to triangles at a rate that goes with the square of the
spread, what colour and size do together with its fourth power. And spread teaches where it is:
among triangles of triangles, of colour what colour does. Colours and sizes spread alike here. Not
in the papers; made after `jitter` and `jitter-by-shape` had been seen, to explain them. Which factor
must vary is a prediction that was tested on no trained model.

Run: `recombine run interactions --scale laptop` (seconds, one core).
"""

import math

import numpy as np

from recombine.analysis.claims import Check, Finding, Measured, claim
from recombine.analysis.frames import pl
from recombine.analysis.table import NotMeasured, Table
from recombine.config import config
from recombine.pipeline.job import Job
from recombine.plots import interactions as plots
from recombine.plots.interactions import CORRECT
from recombine.runs.interactions import InteractionsRun, PaceRun, Spread, corners
from recombine.studies.study import Scale, Study, described

AMOUNTS = ("none", "usual", "half", "wide")
WORLDS = ("none", "colour", "size", "both")
"""How much varies, as in `jitter`, and which factor does."""
OWN = {"101": "size", "110": "colour", "111": "both"}
"""The world from which each unseen triangle should be learned."""
PRIORS = {"apart": (1.0, 0.2, 0.2), "alike": (0.5, 0.5, 0.5), "sums": (0.05, 0.05, 0.05)}


@config("settings/interactions")
class Interactions:
    """`spreads`: none, usual, half and wide, in halves of the distance between classes, as the
    colours of Shapes2D. `steps`: times at which answers are recorded, up to `end`."""

    spreads: tuple[float, float, float, float] = (0.0, 0.15, 0.3125, 0.625)
    end: float = 1e6
    steps: int = 61

    def __post_init__(self) -> None:
        rising = list(self.spreads) == sorted(self.spreads)
        if not rising or not 0 == self.spreads[0] < self.spreads[1]:
            given = list(self.spreads)
            raise ValueError(f"spreads={given}: none, usual, half and wide, from 0 on upwards")
        if self.steps < 2 or not 1 < self.end < math.inf:
            given = f"end={self.end}, steps={self.steps}"
            raise ValueError(f"{given}: two times or more, the last of them after 1")
        for worlds in self.worlds().values():
            for both in worlds.values():
                corners(*both)

    def worlds(self) -> dict[str, dict[str, tuple[Spread, Spread]]]:
        """Three studies, and the worlds of each: the spread of circles and that of triangles."""
        _, usual, _, wide = self.spreads
        little, much = (usual, usual), (wide, wide)
        factors = ((0.0, 0.0), (wide, 0.0), (0.0, wide), (wide, wide))
        return {
            "jitter": {a: ((s, s),) * 2 for a, s in zip(AMOUNTS, self.spreads, strict=True)},
            "jitter-by-shape": {
                "nowhere": (little, little),
                "circles": (much, little),
                "triangles": (little, much),
                "everywhere": (much, much),
            },
            "jitter-by-factor": {w: (s, s) for w, s in zip(WORLDS, factors, strict=True)},
        }


def settings(scale: Scale) -> Interactions:
    return Interactions(steps=31) if scale == "smoke" else Interactions()


def jobs(settings: Interactions, seeds: int) -> list[Job]:
    """Nothing is random: seeds make no difference. `mirrors` says what is varied, in the names of
    trained studies where there is one."""
    made = []
    for prior, strength in PRIORS.items():
        for study, worlds in settings.worlds().items():
            for world, both in worlds.items():
                task = InteractionsRun(strength, *both, settings.end, settings.steps)
                made.append(Job.of(task, prior=prior, mirrors=study, world=world))
        made.append(Job.of(PaceRun(strength, settings.spreads[3]), prior=prior))
    return made


def end(rows: Table, prior: str, study: str, world: str, composition: str) -> float:
    """How an answer agrees with its prompt when training ends."""
    some = rows.where(kind="end", prior=prior, mirrors=study, world=world)
    return some.one(composition=composition)["agreement"]


@claim("B26", trained=False)
def any_spread_suffices(rows: Table) -> Finding:
    """Without within-class jitter, the prior alone decides whether a model composes; where colours
    and sizes vary at all, it composes in the end, whatever its prior.

    Expected: small blue triangles (1 as prompted for, -1 the opposite), at the end: without spread
    < 0.5 unless products cost much, with any >= 0.99"""
    ends = {(p, a): end(rows, p, "jitter", a, "111") for p in PRIORS for a in AMOUNTS}
    without = {p: ends[p, "none"] for p in PRIORS}
    at_worst = {p: min(ends[p, a] for a in AMOUNTS[1:]) for p in PRIORS}
    parts = (
        *(Check(f"{p}, none: < {CORRECT}", without[p] < CORRECT) for p in ("apart", "alike")),
        Check(f"sums, none: >= {CORRECT}", without["sums"] >= CORRECT),
        *(Check(f"{p}, any spread: >= 0.99", at_worst[p] >= 0.99) for p in PRIORS),
    )
    shown: Measured = {f"{p}, none": value for p, value in without.items()}
    shown |= {f"{p}, with any spread, at worst": value for p, value in at_worst.items()}
    return Finding(parts, shown)


@claim("B27", trained=False)
def time_is_a_power_of_spread(rows: Table) -> Finding:
    """With within-class jitter a model composes slowly, unless its prior prefers sums: the time goes
    with the inverse square of the spread one factor away from what was seen, and with its inverse
    fourth power two away.

    Expected: slope of log time over log spread, shapes apart: -2 +- 0.1 for small red, -4 +- 0.1
    for small blue triangles"""
    levels = {"level 1": "101", "level 2": "111"}
    shown = {f"{p}, {k}": exponent(rows, p, c) for p in PRIORS for k, c in levels.items()}
    parts = (
        Check("level 1: exponent -2 +- 0.1", abs(shown["apart, level 1"] + 2) <= 0.1),
        Check("level 2: exponent -4 +- 0.1", abs(shown["apart, level 2"] + 4) <= 0.1),
    )
    return Finding(parts, shown)


def exponent(rows: Table, prior: str, composition: str) -> float:
    """Of the spread, in the time; the slope of a line through the logarithms."""
    some = rows.where(kind="pace", prior=prior, composition=composition)
    if len(some) < 3:
        raise NotMeasured("too few spreads at which the answer is correct in time")
    spread, time = (np.log(some.column(name)) for name in ("spread", "time"))
    return float(np.polyfit(spread, time, 1)[0])


@claim("B28", trained=False)
def jitter_teaches_where_it_is(rows: Table) -> Finding:
    """Within-class jitter teaches where it is: of triangles, among triangles. Where shapes share
    nothing, circles that vary change no answer on triangles.

    Expected: shapes apart, all unseen triangles, at all times: triangles = everywhere, circles =
    nowhere, to 1e-6"""
    pairs = (("triangles", "everywhere"), ("circles", "nowhere"))
    gaps = {(p, a, b): gap(rows, p, a, b) for p in ("apart", "alike") for a, b in pairs}
    parts = tuple(Check(f"{a} = {b}, to 1e-6", gaps["apart", a, b] < 1e-6) for a, b in pairs)
    return Finding(parts, {f"{p}, {a} from {b} at most": x for (p, a, b), x in gaps.items()})


def gap(rows: Table, prior: str, *worlds: str) -> float:
    """The largest difference between the answers to unseen triangles in two worlds."""
    some = rows.where(kind="answer", prior=prior, mirrors="jitter-by-shape")
    if not some:
        raise NotMeasured(f"no answers of {prior} in the worlds {' and '.join(worlds)}")
    some = some.filter(pl.col("composition").str.starts_with("1"))
    a, b = (np.array(some.where(world=w).column("agreement")) for w in worlds)
    if not len(a) or len(a) != len(b):
        raise NotMeasured(f"no answers of {prior} in the worlds {' and '.join(worlds)}")
    return float(np.abs(a - b).max())


@claim("B29", trained=False)
def each_from_its_own(rows: Table) -> Finding:
    """Where products cost nothing, each condition is learned from its own jitter: small red
    triangles from sizes, large blue ones from colours, small blue ones from both.

    Expected: shapes apart, at the end: all 12 of three triangles in four worlds on the expected
    side of 0.5"""
    parts, shown = [], {}
    for composition, own in OWN.items():
        for world in WORLDS:
            value = end(rows, "apart", "jitter-by-factor", world, composition)
            name = f"{composition}, {world}"
            expected = world in (own, "both")
            sign = ">=" if expected else "<"
            parts.append(Check(f"{name}: {sign} {CORRECT}", (value >= CORRECT) == expected))
            shown[name] = value
    return Finding(tuple(parts), shown)


STUDY = Study(
    name="interactions",
    **described(__doc__),
    cost={"smoke": "1 s, one core", "laptop": "2 s, one core", "full": "2 s, one core"},
    settings=settings,
    jobs=jobs,
    claims=(
        any_spread_suffices,
        time_is_a_power_of_spread,
        jitter_teaches_where_it_is,
        each_from_its_own,
    ),
    figures=plots.figures,
    widget="interactions",
)
