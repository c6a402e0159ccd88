"""Is it what varies inside a class that decides who composes?

Four families, as in `objectives`, in worlds that differ in one thing: how much the colours and sizes of pictures of one class
differ.

- plain: not at all, so true values say no more than classes;
- usual: by 0.06 and 6 %;
- half: by 0.125 and 10 %;
- varied: by 0.25 and 20 %, at most half of the way to the other class.

All are asked for the centres of classes and judged by the probes of the usual world; pictures, updates and networks are the
same. What a condition does can only be learned where it varies and nothing else does. Where a class is nearly one picture, a
model may learn which of four pictures is meant, and has no reason to learn what colour is.

Not in the papers. That MaskGIT, which fails in the usual world, composes in the varied one was known when the claims on all
four families were written, and what both it and DiT do in the usual one; the other runs were not. The claim on `half` was
written when all others were judged.

Run: `recombine run variation --scale laptop` (two families, on two cores), `--scale full` (all four, 3 seeds, on a GPU).
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recombine.plots.style import Figure
from recombine.studies import objectives, training_figures
from recombine.studies.base import Claim, Judgement, Row, Rows, Scale, Study, about
from recombine.studies.lab import Lab
from recombine.studies.levels import Found, clear, gain, late, over_seeds, probe_of
from recombine.studies.objectives import Family, Objectives
from recombine.studies.recipe import VARIED, Recipe
from recombine.studies.runs import compute
from recombine.worlds.shapes2d import Shapes2D

FAMILIES: tuple[Family, ...] = ("maskgit", "givt", "mar", "dit")
AMOUNTS = ("plain", "usual", "half", "varied")
JUDGED = ("plain", "usual", "varied")
"""Where all claims but the last look."""


@dataclass(frozen=True)
class Variation:
    """`objectives` in several worlds. `varied`: the jitter of colour and of size where classes vary; `half`: half of it."""

    objectives: Objectives = field(default_factory=lambda: Objectives(objectives.full()))
    amounts: tuple[str, ...] = AMOUNTS
    varied: tuple[float, float] = VARIED

    def __post_init__(self) -> None:
        if not isinstance(self.objectives.recipe.world, Shapes2D):
            raise ValueError("objectives.recipe.world: this study varies the classes of Shapes2D")
        if wrong := [a for a in self.amounts if a not in AMOUNTS]:
            raise ValueError(f"amounts: {wrong[0]} is none of {', '.join(AMOUNTS)}")
        if not self.amounts or len(set(self.amounts)) < len(self.amounts):
            raise ValueError(f"amounts: one or more of {', '.join(AMOUNTS)}, each once")
        self.variants()

    def variants(self) -> dict[str, Recipe]:
        """Families in turn, the amounts of each side by side."""
        made = self.objectives.variants()
        return {name_of(f, a): self.within(recipe, a) for f, recipe in made.items() for a in self.amounts}

    def within(self, recipe: Recipe, amount: str) -> Recipe:
        color, size = self.varied
        jitters = {"plain": (0.0, 0.0), "half": (color / 2, size / 2), "varied": self.varied}
        return recipe.varying(*jitters[amount]) if amount in jitters else recipe


def name_of(family: str, amount: str) -> str:
    return f"{family}, {amount}"


def settings(scale: Scale) -> Variation:
    return Variation(objectives.settings(scale), AMOUNTS if scale == "full" else JUDGED)


def run(settings: Variation, lab: Lab) -> list[Row]:
    return compute(settings.variants(), lab)


def level2(rows: Rows, families: tuple[Family, ...]) -> tuple[dict[tuple[str, str], Found], dict[str, float | str]]:
    """Late means at level 2 in all worlds; and what a claim says it measured: these, and what the strict reader says where
    classes vary."""
    found = {(f, a): over_seeds(rows, name_of(f, a), 2, late) for f in families for a in JUDGED}
    measured: dict[str, float | str] = {name_of(f, a): value.mean for (f, a), value in found.items()}
    measured["judge"] = probe_of(rows)
    if rows.where(kind="accuracy", probe="oracle"):
        names = (name_of(f, "varied") for f in families)
        measured |= {f"{name}, strict reader": over_seeds(rows, name, 2, late, "oracle").mean for name in names}
    return found, measured


def judge_more(rows: Rows) -> Judgement:
    found, measured = level2(rows, ("dit",))
    lift = gain(found["dit", "varied"], found["dit", "plain"])
    rises = found["dit", "plain"].mean <= found["dit", "usual"].mean <= found["dit", "varied"].mean
    return Judgement((clear(lift, 0.3) and rises) or ("partly" if lift.mean >= 0.2 else False), measured, lift.interval)


def judge_all(rows: Rows) -> Judgement:
    """Partly: the one of categories and another one."""
    found, measured = level2(rows, FAMILIES)
    lifts = {f: gain(found[f, "varied"], found[f, "plain"]) for f in FAMILIES}
    passed = {f: found[f, "varied"].mean >= 0.5 and lifts[f].mean >= 0.2 for f in FAMILIES}
    part = passed["maskgit"] and sum(passed.values()) > 1
    return Judgement(all(passed.values()) or ("partly" if part else False), measured, lifts["maskgit"].interval)


def judge_order(rows: Rows) -> Judgement:
    found, measured = level2(rows, FAMILIES)
    ahead = {f: gain(found[f, "varied"], found["maskgit", "varied"]) for f in FAMILIES[1:]}
    passed = [lead.mean >= 0.1 for lead in ahead.values()]
    return Judgement(all(passed) or ("partly" if any(passed) else False), measured, ahead["dit"].interval)


def judge_between(rows: Rows) -> Judgement:
    """By the bars of D1 and D3. Partly: the paper's order, if not its heights."""
    found = {f: over_seeds(rows, name_of(f, "half"), 2, late) for f in FAMILIES}
    measured = {name_of(f, "half"): value.mean for f, value in found.items()} | {"judge": probe_of(rows)}
    ahead = [gain(found[f], found["maskgit"]) for f in ("mar", "dit")]
    holds = found["maskgit"].mean <= 0.15 and all(found[f].mean >= 0.75 for f in ("mar", "dit"))
    order = all(lead.mean >= 0.3 for lead in ahead)
    return Judgement(holds or ("partly" if order else False), measured, ahead[1].interval)


def draw(rows: Rows, folder: Path) -> list[Figure]:
    return [amounts(rows, folder), *training_figures.draw(rows, folder)]


def amounts(rows: Rows, folder: Path) -> Figure:
    """Level 2 over the amount of variation: a line per family."""
    lines: dict[str, dict[str, str]] = {}
    for variant in training_figures.variants_of(rows):
        family, amount = variant.split(", ")
        lines.setdefault(family, {})[amount] = variant
    figure = Figure(
        "variation",
        "Who composes, by how much varies inside a class",
        "Level 2, late means; a dot per seed. Left to right pictures of one class differ more in colour and size; all "
        "models are asked for the same and judged by the probes of the usual world.",
    )
    return training_figures.ends(rows, folder, figure, lines)


def describe(settings: Variation) -> dict[str, Any]:
    return settings.objectives.recipe.facts()


STUDY = Study(
    name="variation",
    question="Is it what varies inside a class that decides who composes?",
    paper="beyond the papers",
    about=about(__doc__),
    cost={
        "smoke": "50 s, one core",
        "laptop": "17 min, two cores, --workers 2",
        "full": "29 min without `half`, one H200, 3 seeds, 8 runs at a time",
    },
    settings=settings,
    compute=run,
    claims=(
        Claim(
            id="B10",
            paper="beyond the papers",
            statement="What varies inside a class teaches what a label does: DiT composes better the more it varies.",
            expected="level 2 of DiT, varied - plain >= 0.3, its interval above 0, and the usual variation between them; late "
            "means by the judge",
            judge=judge_more,
            trained=True,
            interval_of="of DiT, varied - plain",
        ),
        Claim(
            id="B18",
            paper="beyond the papers",
            statement="Where classes vary, all families compose, also the one of categories.",
            expected="level 2 in the varied world >= 0.5, and 0.2 above the plain one, in all four families; late means by the "
            "judge",
            judge=judge_all,
            trained=True,
            interval_of="of MaskGIT, varied - plain",
        ),
        Claim(
            id="B19",
            paper="beyond the papers",
            statement="And where classes vary, families differ as the paper says: values compose better than categories.",
            expected="level 2 in the varied world: GIVT, MAR and DiT each 0.1 above MaskGIT; late means by the judge",
            judge=judge_order,
            trained=True,
            interval_of="of DiT - MaskGIT",
        ),
        Claim(
            id="B22",
            paper="beyond the papers",
            statement="And between the two lies the paper's picture: with half of that variation MAR and DiT compose and "
            "MaskGIT does not.",
            expected="level 2 with half of the variation: MaskGIT <= 0.15, MAR and DiT >= 0.75 (paper: 0.006, 0.821, 0.848); "
            "late means by the judge",
            judge=judge_between,
            trained=True,
            interval_of="of DiT - MaskGIT",
        ),
    ),
    draw=draw,
    describe=describe,
    stops=True,
)
