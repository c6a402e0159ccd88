"""Does within-class jitter decide which models compose?

Four families, as in `objectives`, in worlds that differ in one thing: how much pictures of one
class differ in colour and size.

- none: not at all, so true values say no more than classes;
- usual: by 0.06 and 6 %;
- wide: by 0.25 and 20 %, at most half of the distance to the other class.

Models are conditioned on true values of colour and size or, with `classes` in their names, on
classes. All are prompted for the centres of classes and scored by the probes of the usual world;
pictures, updates and networks are the same. What a condition does can only be learned where it varies and
nothing else does. Where a class is nearly one picture, a model may learn which of four pictures is
meant, and has no reason to learn what colour is.

Not in the papers. When the claims on all four families with true values were written, two things were known: MaskGIT
fails with the usual jitter and composes with the wide one, and what DiT does with the usual one.

Run: `recombine run jitter --scale laptop` (two families, on two cores), `--scale full` (all four,
on a GPU).
"""

from dataclasses import field, replace
from pathlib import Path
from typing import Any, Literal

from recombine.analysis.claims import Finding, Measured, claim
from recombine.analysis.levels import PROBES, accuracy, at_level, gain_of, probe_of
from recombine.analysis.table import Table
from recombine.config import config
from recombine.pipeline.job import Job, seed_by_seed
from recombine.plots import training
from recombine.plots.accuracy_panels import variants_of
from recombine.plots.style import Figure
from recombine.runs.models import model_jobs
from recombine.runs.recipe import WIDE, Recipe
from recombine.studies import objectives
from recombine.studies.objectives import Family, Objectives
from recombine.studies.study import Scale, Study, described
from recombine.worlds.shapes2d import Shapes2D

Amount = Literal["none", "usual", "wide"]
Labels = Literal["values", "classes"]
FAMILIES: tuple[Family, ...] = ("maskgit", "givt", "mar", "dit")
AMOUNTS: tuple[Amount, ...] = ("none", "usual", "wide")
LABELS: tuple[Labels, ...] = ("values", "classes")
WHOLE = (
    "models with classes draw whole classes: with wide jitter the open-set probe, trained on the usual "
    "one, refuses part of what they draw, of seen classes too; the CNN probe beside it refuses nothing"
)


@config("settings/jitter")
class Jitter:
    """`objectives` in several worlds. `wide`: the widest jitter, of colour and of size. `labels`:
    what models are conditioned on."""

    objectives: Objectives = field(default_factory=lambda: Objectives(objectives.full()))
    amounts: tuple[Amount, ...] = AMOUNTS
    wide: tuple[float, float] = WIDE
    labels: tuple[Labels, ...] = ("values",)

    def __post_init__(self) -> None:
        if not isinstance(self.objectives.recipe.world, Shapes2D):
            raise ValueError("objectives.recipe.world: this study sets the jitter of Shapes2D")
        if not self.amounts or len(set(self.amounts)) < len(self.amounts):
            raise ValueError(f"amounts: one or more of {', '.join(AMOUNTS)}, each once")
        if not self.labels or len(set(self.labels)) < len(self.labels):
            raise ValueError(f"labels: one or both of {', '.join(LABELS)}, each once")
        self.variants()

    def variants(self) -> dict[str, Recipe]:
        """Families in turn, the amounts of each side by side; those with classes after them."""
        made = self.objectives.variants()
        each = [(f, a, given) for given in self.labels for f in made for a in self.amounts]
        return {name_of(*key): self.with_amount(made[key[0]], *key[1:]) for key in each}

    def with_amount(self, recipe: Recipe, amount: Amount, labels: Labels = "values") -> Recipe:
        jitters = {"none": (0.0, 0.0), "wide": self.wide}
        if labels == "classes":
            recipe = replace(recipe, conditioning=replace(recipe.conditioning, mode="quantised"))
        return recipe.with_jitter(*jitters[amount]) if amount in jitters else recipe


def name_of(family: str, amount: str, labels: Labels = "values") -> str:
    return f"{family}, {amount}" + (", classes" if labels == "classes" else "")


def settings(scale: Scale) -> Jitter:
    return Jitter(objectives.settings(scale), labels=LABELS if scale == "full" else ("values",))


def jobs(settings: Jitter, seeds: int) -> list[Job]:
    return seed_by_seed(model_jobs(settings.variants(), seeds))


def context_numbers(rows: Table, *families: Family, labels: Labels = "values") -> Measured:
    """Late means at level 2 with every amount, by the CNN probe too, which refuses no picture; seen
    accuracy; and what the oracle reads with wide jitter."""
    names = [name_of(f, a, labels) for f in families for a in AMOUNTS]
    shown: Measured = {name: accuracy(rows, name, 2).value for name in names}
    shown["primary probe"] = PROBES[probe_of(rows)]
    shown |= {f"{name}, seen": accuracy(rows, name, 0).value for name in names}
    if rows.where(kind="accuracy", probe="cnn"):
        shown |= {f"{n}, {PROBES['cnn']}": accuracy(rows, n, 2, probe="cnn").value for n in names}
    if rows.where(kind="accuracy", probe="oracle"):
        for name in (name_of(f, "wide", labels) for f in families):
            shown[f"{name}, oracle"] = accuracy(rows, name, 2, probe="oracle").value
    return shown


@claim("B10")
def dit_gains(rows: Table) -> Finding:
    """Within-class jitter teaches what a label does: DiT composes better the more of it there is.

    Expected: level 2 of DiT, wide - none >= 0.3, and the usual jitter between them; late means,
    open-set probe"""
    none, usual, wide = (name_of("dit", a) for a in AMOUNTS)
    steps = (gain_of(rows, usual, none, 0.0), gain_of(rows, wide, usual, 0.0))
    return Finding((gain_of(rows, wide, none, 0.3), *steps), context_numbers(rows, "dit"))


@claim("B18")
def all_compose(rows: Table) -> Finding:
    """With wide jitter all families compose, also the one of categories.

    Expected: level 2 with wide jitter >= 0.5, and 0.2 above none, in all four families; late
    means, open-set probe"""
    parts = []
    for family in FAMILIES:
        wide, none = name_of(family, "wide"), name_of(family, "none")
        parts += [gain_of(rows, wide, none, 0.2), at_level(rows, wide, 2, low=0.5)]
    return Finding(tuple(parts), context_numbers(rows, *FAMILIES))


@claim("B19")
def values_lead(rows: Table) -> Finding:
    """With wide jitter families differ as the paper says: values compose better than categories.

    Expected: level 2 with wide jitter: GIVT, MAR and DiT each 0.1 above MaskGIT; late means,
    open-set probe"""
    maskgit = name_of("maskgit", "wide")
    others = [name_of(f, "wide") for f in ("dit", "mar", "givt")]
    parts = tuple(gain_of(rows, name, maskgit, 0.1) for name in others)
    return Finding(parts, context_numbers(rows, *FAMILIES))


@claim("B40", deviations=(WHOLE,))
def jitter_teaches_classes_too(rows: Table) -> Finding:
    """Within-class jitter decides also where models are conditioned on classes.

    Expected: level 2, wide - none >= 0.2 in all four families, conditioned on classes; late means,
    open-set probe"""
    ends = [[name_of(f, a, "classes") for a in ("wide", "none")] for f in FAMILIES]
    parts = tuple(gain_of(rows, *pair, 0.2) for pair in ends)
    return Finding(parts, context_numbers(rows, *FAMILIES, labels="classes"))


def figures(rows: Table, folder: Path) -> list[Figure]:
    """Of models with true values and of models with classes, each where there are any."""
    shown = [figure for labels in LABELS for figure in by_amount(rows, folder, labels)]
    return [*shown, *training.figures(rows, folder)]


def by_amount(rows: Table, folder: Path, labels: Labels) -> list[Figure]:
    """A line per family, over the amounts of jitter and over training."""
    lines: dict[str, dict[str, str]] = {}
    for variant in variants_of(rows):
        family, amount, *given = variant.split(", ")
        if (given == ["classes"]) == (labels == "classes"):
            lines.setdefault(family, {})[amount] = variant
    if not lines:
        return []
    ending, words = ("-classes", "classes") if labels == "classes" else ("", "true values")
    late = Figure(
        f"jitter{ending}",
        f"Level-2 accuracy by within-class jitter, conditioned on {words}",
        "Late means; a dot per seed. Left to right pictures of one class differ more in colour and "
        "size; all models are prompted for the same and scored by the probes of the usual world.",
    )
    curves = Figure(
        f"training{ending}",
        f"Level-2 accuracy over training, conditioned on {words}",
        "By the primary probe, a panel for each amount of within-class jitter. Thin lines are seeds.",
    )
    drawn = training.ends(rows, folder, late, lines)
    return [drawn, training.over_training(rows, folder, curves, lines)]


def describe(settings: Jitter) -> dict[str, Any]:
    return settings.objectives.recipe.facts()


STUDY = Study(
    name="jitter",
    **described(__doc__),
    cost={
        "smoke": "50 s, one core",
        "laptop": "17 min, two cores, --workers 2",
        "full": "58 min (half of it estimated), one H200, 3 seeds: 29 for true values",
    },
    settings=settings,
    jobs=jobs,
    claims=(dit_gains, all_compose, values_lead, jitter_teaches_classes_too),
    figures=figures,
    describe=describe,
    sensitivity=True,
    run_minutes=1.0,
)
