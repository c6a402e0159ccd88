"""Does each factor teach itself?

In a world where pictures of a class do not differ, a model learns which of four pictures is meant. Let colours differ inside
their classes: now it can learn what colour does, to triangles too. Let sizes differ: what size does. A DiT on pixels, as in
`composition`, in four worlds, which differ in what varies inside classes:

- none: nothing;
- colour: colours alone;
- size: sizes alone;
- both.

If a condition is learned from its own variation, as the exact model of `interactions` has it, then unseen triangles come one
by one: small red ones where sizes vary, large blue ones where colours do, small blue ones where both do. All models are asked
for the same and judged in the usual world. Not in the papers; the claim was written before anything of it was run, except
`both`, which is `varied` of `composition`, and what models on tokens do with nothing and with both (`variation`). After three
seeds at laptop scale its criterion was made stricter, before any run at full scale: what comes must reach a half, and more
than where nothing varies.

Run: `recombine run which --scale laptop` (on two cores), `--scale full` (3 seeds, on a GPU).
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recombine.plots.style import CYCLE, Figure, canvas
from recombine.studies import composition, training_figures, where
from recombine.studies.base import Claim, Judgement, Row, Rows, Scale, Study, about
from recombine.studies.lab import Lab
from recombine.studies.levels import Found, gain, late, over_seeds, probe_of
from recombine.studies.recipe import VARIED, Recipe
from recombine.studies.runs import compute

WORLDS = ("none", "colour", "size", "both")
UNSEEN = {"101": "small red triangle", "110": "large blue triangle", "111": "small blue triangle"}
"""Triangles two of which are one factor away from what was seen, and one two."""
OWN = {"101": "size", "110": "colour", "111": "both"}
OTHER = {"101": ("none", "colour"), "110": ("none", "size"), "111": ("none", "colour", "size")}
"""Where each should come from, and where not."""


@dataclass(frozen=True)
class Which:
    """`varied`: the jitter of colour and of size where they vary."""

    recipe: Recipe = field(default_factory=composition.full)
    varied: tuple[float, float] = VARIED

    def __post_init__(self) -> None:
        self.variants()

    def variants(self) -> dict[str, Recipe]:
        color, size = self.varied
        jitters = ((0.0, 0.0), (color, 0.0), (0.0, size), (color, size))
        return {name: self.recipe.varying(*jitter) for name, jitter in zip(WORLDS, jitters, strict=True)}


def settings(scale: Scale) -> Which:
    return Which(where.settings(scale).recipe)


def run(settings: Which, lab: Lab) -> list[Row]:
    return compute(settings.variants(), lab)


def triangles(rows: Rows, code: str, probe: str | None = None) -> dict[str, Found]:
    """Late means of one unseen triangle in each world."""
    some = Rows(r for r in rows if r["kind"] != "accuracy" or r["composition"] == code)
    return {world: over_seeds(some, world, code.count("1") - 1, late, probe) for world in WORLDS}


def judge_each(rows: Rows) -> Judgement:
    """Partly: at least one of the three comes from its own variation."""
    found = {code: triangles(rows, code) for code in UNSEEN}
    leads = {code: [gain(worlds[OWN[code]], worlds[w]) for w in OTHER[code]] for code, worlds in found.items()}
    measured: dict[str, float | str] = {
        f"{UNSEEN[c]}, {w}": f.mean for c, worlds in found.items() for w, f in worlds.items()
    }
    passed = [found[c][OWN[c]].mean >= 0.5 and min(lead.mean for lead in leads[c]) >= 0.3 for c in UNSEEN]
    holds = all(passed) or ("partly" if any(passed) else False)
    return Judgement(holds, measured | {"judge": probe_of(rows)}, leads["101"][1].interval)


def draw(rows: Rows, folder: Path) -> list[Figure]:
    return [each(rows, folder), *training_figures.draw(rows, folder)]


def each(rows: Rows, folder: Path) -> Figure:
    """A panel per unseen triangle: what comes in each world, by the probes that may refuse; a dot per seed."""
    figure = Figure(
        "which",
        "What varies, and what comes",
        "Late means, a dot per seed. Circles: by the judge; squares: by the strict reader. Left to right what varies inside "
        "classes; all models are judged by the probes of the usual world.",
    )
    with canvas(folder, figure, 1, len(UNSEEN), size=(8.6, 3.0), sharey=True) as axes:
        for axis, (code, title) in zip(axes, UNSEEN.items(), strict=True):
            for shift, (probe, marker) in enumerate((("open-set", "o"), ("oracle", "s"))):
                for x, found in enumerate(triangles(rows, code, probe).values()):
                    at = x + 0.24 * shift - 0.12
                    axis.bar(at, found.mean, 0.22, color=CYCLE[shift], alpha=0.35)
                    axis.scatter([at] * len(found.values), found.values, s=14, color=CYCLE[shift], marker=marker)
            axis.set(title=title, xticks=range(len(WORLDS)), xticklabels=WORLDS, ylim=(-0.03, 1.03))
        axes[0].set_ylabel("drawn as asked for")
    return figure


def describe(settings: Which) -> dict[str, Any]:
    return settings.recipe.facts()


STUDY = Study(
    name="which",
    question="Does each factor teach itself?",
    paper="beyond the papers",
    about=about(__doc__),
    cost={
        "smoke": "20 s, one core",
        "laptop": "9 min a seed, two cores, --workers 2",
        "full": "11 min (estimate), one H200, 3 seeds, 6 runs at a time",
    },
    settings=settings,
    compute=run,
    claims=(
        Claim(
            id="B25",
            paper="beyond the papers",
            statement="Each condition is learned from its own variation: small red triangles come where sizes vary, large blue "
            "ones where colours do, small blue ones where both do.",
            expected="each >= 0.5 there and 0.3 above all worlds without (small red: none, colour; large blue: none, size; "
            "small blue: none, colour, size); late means by the judge",
            judge=judge_each,
            trained=True,
            interval_of="of small red, size - colour",
        ),
    ),
    draw=draw,
    describe=describe,
    stops=True,
)
