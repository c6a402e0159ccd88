"""Which colours can be composed?

The predecessor of paper B composes a model of yellow objects with models of other colours by adding
scores. It works with blue, cyan and purple and fails with brown, gray, green and red. The reason it
gives is that yellow acts on the blue channel: conditions compose if they act on different pixels or
channels, and then what they add to the mean picture is orthogonal. That can be checked on pictures
alone. One object on the floor is rendered in every colour, in the same place and light; the mean
difference from the empty floor is a direction for each colour, and cosines between directions say
which pairs share channels. A low cosine is necessary for composing, not sufficient; composing
itself needs a model conditioned on colours, which is not trained here.

Run: `recombine run colours --scale laptop` (no GPU, no training)."""

from dataclasses import field
from statistics import fmean

from recombine.analysis.claims import Claim, Finding, Measured, Part
from recombine.analysis.estimates import mean
from recombine.analysis.table import Table
from recombine.config import config
from recombine.pipeline.job import Job
from recombine.plots.colours import figures
from recombine.runs.colours import ColourCosines
from recombine.studies.study import Scale, Study, about
from recombine.worlds.scenes.scenes import Scenes

COMPOSE, FAIL = ("blue", "cyan", "purple"), ("brown", "gray", "green", "red")
"""What yellow composes with in the predecessor's figure 5, and what it does not compose with."""
GAP = 0.1
"""By how much the two groups have to differ; an earlier measurement of 0.23 was known."""


@config("settings/colours")
class Colours:
    """`scenes`: how many scenes with one object are rendered in every colour."""

    world: Scenes = field(default_factory=lambda: Scenes(counts=(1,)))
    scenes: int = 256


def settings(scale: Scale) -> Colours:
    """Smaller pictures on a CPU; shadows and reflections stay."""
    if scale == "full":
        return Colours()
    size, rays, scenes = {"smoke": (16, 1, 4), "laptop": (32, 1, 192)}[scale]
    return Colours(Scenes(size=size, counts=(1,), samples=rays), scenes)


def jobs(settings: Colours, seeds: int) -> list[Job]:
    runs = (ColourCosines(settings.world, settings.scenes, seed) for seed in range(seeds))
    return [Job.of(run, seed=run.seed) for run in runs]


def with_yellow(rows: Table, seed: int) -> dict[str, float]:
    """The cosine of yellow with every other colour."""
    found = rows.where(kind="cosine", seed=seed)
    pairs = {frozenset((r["color"], r["other"])): r["cosine"] for r in found}
    if missing := [c for c in (*COMPOSE, *FAIL) if frozenset(("yellow", c)) not in pairs]:
        raise LookupError(f"no pictures of yellow and {missing[0]}")
    return {c: pairs[frozenset(("yellow", c))] for c in (*COMPOSE, *FAIL)}


def partition(rows: Table) -> Finding:
    """By how much the least cosine of the colours that fail exceeds the largest of those that
    compose."""
    seeds = [with_yellow(rows, seed) for seed in sorted(rows.where(kind="cosine").unique("seed"))]
    if not seeds:
        raise LookupError("no colours were compared")
    gaps = [min(s[c] for c in FAIL) - max(s[c] for c in COMPOSE) for s in seeds]
    measured: Measured = {f"yellow, {c}": fmean(s[c] for s in seeds) for c in (*COMPOSE, *FAIL)}
    return Finding((Part("gap between the two groups", mean(gaps, -2, 2), GAP),), measured)


STUDY = Study(
    name="colours",
    question="Which colours can be composed?",
    paper="Bradley et al., Mechanisms of Projective Composition (before B), arXiv 2502.04549, "
    "Fig 5",
    about=about(__doc__),
    cost={
        "smoke": "5 s, one core",
        "laptop": "1 min a seed, one core",
        "full": "5 min a seed, one core (estimate)",
    },
    settings=settings,
    jobs=jobs,
    claims=(
        Claim(
            id="S10a",
            paper="Bradley et al. (2502.04549), Fig 5",
            statement="Pictures alone predict with which colours yellow composes: what it adds to "
            "an empty floor is less aligned with blue, cyan and purple than with brown, gray, "
            "green and red.",
            expected="smallest cosine with brown, gray, green and red less the largest with blue, "
            "cyan and purple >= 0.1, mean over sets of scenes",
            measure=partition,
            deviations=(
                "a prediction: no model is trained and composed here, so S10 itself, the partition "
                "of compositions, is not measured",
                "CLEVR-like renders of our own",
            ),
        ),
    ),
    figures=figures,
)
