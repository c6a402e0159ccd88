"""Does the auxiliary loss change how factors live inside a model?

The models of `jepa`, MaskGIT without and with the auxiliary loss, are opened. Heads: the same tokens are shown under two
conditions that differ in one factor; a head whose output turns by more than a threshold for two factors or more is
polysemantic. Units: those whose removal would change the likelihood of a composition's pictures most are its circuit, and
circuits of different compositions are compared (Jaccard overlap). Both are also tested by truly cutting heads and units.
Paper A, section 6: with the auxiliary loss fewer heads are polysemantic, and circuits overlap less.

The paper does not say which threshold, which circuit or how influence was measured. Here the threshold is set on the model
without the auxiliary loss, so that its share is the paper's; the share of units is swept; and every overlap stands beside
the one between two halves of the same composition's pictures, since a circuit that is found badly overlaps with nothing.

Run: `recombine run circuits --scale laptop` (on two cores), `--scale full` (on a GPU; the runs of `jepa` are used again).
"""

from dataclasses import dataclass, field
from itertools import product
from statistics import fmean
from typing import Any

from recombine.config import UsageError
from recombine.evaluate.attention_heads import breadth
from recombine.evaluate.intervals import student
from recombine.objectives.jepa import Jepa
from recombine.studies import circuit_figures, jepa
from recombine.studies.base import Claim, Judgement, Row, Rows, Scale, Study, about
from recombine.studies.circuit_parts import Opening, opened
from recombine.studies.circuit_rows import (
    PAPER_PAIRS,
    VARIANTS,
    agreement,
    by_shared,
    causal,
    head_table,
    overlap_table,
    pairs_of,
    paper_mean,
    shares,
    sweep,
    threshold,
    tidy,
)
from recombine.studies.lab import Lab, Measurement
from recombine.studies.recipe import Recipe
from recombine.studies.runs import Run, compute

OPENED_VERSION = 1
"""Rises when what is measured on an opened model changes: its rows are kept."""


@dataclass(frozen=True)
class Opened:
    """A trained model, and how it is opened."""

    recipe: Recipe
    how: Opening
    version: int = field(default=OPENED_VERSION, metadata={"unnamed": 1})


@dataclass(frozen=True)
class Circuits:
    """The recipe and auxiliary loss of the study `jepa`, and how its models are opened."""

    recipe: Recipe = field(default_factory=Recipe)
    several: Jepa = field(default_factory=Jepa)
    opening: Opening = field(default_factory=Opening)

    def variants(self) -> dict[str, Recipe]:
        """As in `jepa`, so that its runs are found on disk."""
        every = jepa.Repair(self.recipe, self.several).variants()
        return {name: every[name] for name in VARIANTS}


def settings(scale: Scale) -> Circuits:
    repair = jepa.settings(scale)
    opening = {
        "smoke": Opening(pictures=8, units=8, samples=4),
        "laptop": Opening(pictures=64, units=64, samples=8),
        "full": Opening(),
    }
    return Circuits(repair.recipe, repair.several, opening[scale])


def run(settings: Circuits, lab: Lab) -> list[Row]:
    """Train what is not on disk, then open every model."""
    sizes = settings.recipe.world.space.sizes
    if sum(n > 1 for n in sizes) < 2:
        raise UsageError(f"circuits compares factors: at least two must vary; this world's have {list(sizes)} values")
    variants = settings.variants()
    opening = lambda run: inside(run, settings.opening)  # noqa: E731
    rows = compute(variants, lab, opens=lambda run: lab.unmeasured(opening(run)))
    for variant, seed in product(variants, range(lab.seeds)):
        one = Run(variants[variant].with_seed(seed), lab)
        about = {"variant": variant, "seed": seed, "run": one.folder.digest, "step": one.recipe.train.steps}
        rows += [r | about for r in lab.measured(opening(one))]
    return rows


def inside(run: Run, how: Opening) -> Measurement:
    return Measurement(Opened(run.recipe, how), (run.folder,), run.train, lambda net: opened(run, how))


def judge_heads(rows: Rows) -> Judgement:
    """At the threshold that gives the models without the auxiliary loss the paper's mean share."""
    at = threshold(rows)
    found = {v: shares(rows, v, at) for v in VARIANTS}
    falls = found["maskgit"] - found["jepa"]
    change = (sweep(rows, "jepa") - sweep(rows, "maskgit")).mean(0).round(decimals=9)
    lower, interval = falls.mean(0).round(decimals=9) > 0, student([tidy(x) for x in falls.mean(1)])
    measured: dict[str, Any] = {v: tidy(found[v].mean()) for v in VARIANTS}
    measured |= {f"paper_{v}": tidy(paper_mean(v)) for v in VARIANTS}
    measured |= {
        "threshold": tidy(at),
        "layers lower": f"{int(lower.sum())} of {len(lower)}",
        "thresholds lower": f"{int((change < 0).sum())} of {int((change != 0).sum())}",
    }
    for v in VARIANTS:
        measured[f"factors per head, {v}"] = tidy(breadth(head_table(rows, v)).mean())
        measured[f"sensitivity against cutting, {v}"] = tidy(fmean(causal(rows, v)))
    most = int(lower.sum()) > len(lower) / 2 and tidy(falls.mean()) >= 0.05
    sure = interval is not None and bool(interval[0] > 0)
    return Judgement((most and sure) or ("partly" if most else False), measured, interval)


def judge_circuits(rows: Rows) -> Judgement:
    pairs, same = pairs_of(rows), pairs_of(rows, same=True)
    found = {v: overlap_table(rows, v, pairs) for v in VARIANTS}
    falls, grouped = found["maskgit"] - found["jepa"], {v: by_shared(pairs, found[v].mean(0)) for v in VARIANTS}
    each, interval = [tidy(x) for x in falls.mean(0)], student([tidy(x) for x in falls.mean(1)])
    lower, ordered = sum(x > 0 for x in each), all(list(g.values()) == sorted(g.values()) for g in grouped.values())
    measured: dict[str, Any] = {v: tidy(found[v].mean()) for v in VARIANTS}
    measured |= {f"paper_{v}": tidy(fmean(p[i] for p in PAPER_PAIRS.values())) for i, v in enumerate(VARIANTS)}
    measured |= {"pairs lower": f"{lower} of {len(pairs)}"}
    measured |= {"smallest fall": min(each), "largest fall": max(each)}
    for v in VARIANTS:
        measured |= {f"{v}, {k} shared": tidy(x) for k, x in grouped[v].items()}
        measured[f"{v}, one composition twice"] = tidy(overlap_table(rows, v, same).mean())
        measured[f"{v}, cut to the mean"] = tidy(overlap_table(rows, v, pairs, column="jaccard_mean").mean())
        measured[f"attribution against cutting, {v}"] = tidy(fmean(agreement(rows, v)))
    sure = interval is not None and bool(interval[0] > 0)
    some = lower >= 0.75 * len(pairs) and tidy(falls.mean()) >= 0.02
    return Judgement((lower == len(pairs) and ordered and sure) or ("partly" if some else False), measured, interval)


def describe(settings: Circuits) -> dict[str, Any]:
    return settings.recipe.facts()


STUDY = Study(
    name="circuits",
    question="Does the auxiliary loss change how factors live inside a model?",
    paper="A, section 6",
    about=about(__doc__),
    cost={
        "smoke": "20 s, one core",
        "laptop": "8 min (estimate), two cores",
        "full": "9 min (estimate), one H200, 3 seeds",
    },
    settings=settings,
    compute=run,
    claims=(
        Claim(
            id="D8",
            paper="A, Fig 6c",
            statement="The auxiliary loss lowers the share of polysemantic heads.",
            expected="lower in most layers and by 0.05 or more on average, the interval over seeds above 0, at the threshold "
            "that gives the model without it the paper's 0.64 (paper: 0.64 -> 0.52 on average)",
            judge=judge_heads,
            trained=True,
            interval_of="fall of the share, over seeds",
        ),
        Claim(
            id="D9",
            paper="A, Fig 6d",
            statement="The auxiliary loss separates circuits: those of different compositions overlap less, and those of "
            "compositions that share more factors overlap more.",
            expected="Jaccard of the 5 % most influential units lower in every pair, the mean fall above 0 over seeds, and "
            "rising with the number of shared factors (paper: lower in every pair, by 0.08 to 0.23)",
            judge=judge_circuits,
            trained=True,
            interval_of="mean fall of the overlap, over seeds",
        ),
    ),
    draw=circuit_figures.draw,
    describe=describe,
)
