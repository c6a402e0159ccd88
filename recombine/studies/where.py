"""Where must pictures vary for a model to compose?

A DiT on pixels, as in `composition`, is asked for a small blue triangle; of triangles it has seen large red ones alone. How
could it know? A picture is a shape painted in one colour. Where red triangles come in many reds, told which, they show what
colour does to a triangle, and blue is further along that way. Where all are the same red, nothing that the model has seen says
what blue does to a triangle: blue circles say it of circles.

So what varies should teach where it varies. Four worlds, alike but for one thing, which pictures differ more than usual in
colour and size:

- nowhere: none;
- circles: circles, three of the four combinations that are seen;
- triangles: triangles, one of the four;
- everywhere: all.

All models are asked for the same and judged in the usual world. If it were variety as such that helps, circles would help
more, as most pictures show one. Not in the papers; the claim was written before anything of it was run. That circles must
stay below a half, as its words have it, and that the difference must be clear of its seeds, was put into its criterion after
the runs, which would have passed without.

Run: `recombine run where --scale laptop` (on two cores), `--scale full` (3 seeds, on a GPU; two of the four are runs of
`composition`).
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from recombine.plots.style import Figure
from recombine.studies import composition, training_figures
from recombine.studies.base import Claim, Judgement, Row, Rows, Scale, Study, about
from recombine.studies.lab import Lab
from recombine.studies.levels import by_all, clear, gain, late, over_seeds
from recombine.studies.recipe import VARIED, Recipe
from recombine.studies.runs import compute
from recombine.worlds.shapes2d import ShapeName

WHERE: dict[str, tuple[ShapeName, ...]] = {"circles": ("circle",), "triangles": ("triangle",), "everywhere": ()}


@dataclass(frozen=True)
class Where:
    """`varied`: the jitter of colour and of size where pictures vary."""

    recipe: Recipe = field(default_factory=composition.full)
    varied: tuple[float, float] = VARIED

    def __post_init__(self) -> None:
        self.variants()

    def variants(self) -> dict[str, Recipe]:
        return {"nowhere": self.recipe} | {k: self.recipe.varying(*self.varied, shapes) for k, shapes in WHERE.items()}


def settings(scale: Scale) -> Where:
    recipe = {"smoke": composition.smoke, "laptop": laptop, "full": composition.full}[scale]()
    return Where(recipe)


def laptop() -> Recipe:
    """Twice the updates of `composition`: with fewer no model composes."""
    recipe = composition.laptop()
    return replace(recipe, train=replace(recipe.train, steps=4000))


def run(settings: Where, lab: Lab) -> list[Row]:
    return compute(settings.variants(), lab)


def judge_place(rows: Rows) -> Judgement:
    """Partly: triangles help more, but not enough to compose, or not by as much, or circles help as well."""
    triangles, circles = (over_seeds(rows, name, 2, late, "oracle") for name in ("triangles", "circles"))
    ahead, measured = gain(triangles, circles), by_all(rows, "nowhere", *WHERE)
    holds = triangles.mean >= 0.5 > circles.mean and clear(ahead, 0.3)
    return Judgement(holds or ("partly" if ahead.mean >= 0.2 else False), measured, ahead.interval)


def draw(rows: Rows, folder: Path) -> list[Figure]:
    figure = Figure(
        "where",
        "Who composes, by which pictures vary more",
        "Level 2, late means; a dot per seed. Circles are three quarters of the training set, triangles one; asked for are "
        "small blue triangles. All are judged by the probes of the usual world.",
    )
    layout = {"level 2": {v: v for v in training_figures.variants_of(rows)}}
    return [training_figures.ends(rows, folder, figure, layout), *training_figures.draw(rows, folder)]


def describe(settings: Where) -> dict[str, Any]:
    return settings.recipe.facts()


STUDY = Study(
    name="where",
    question="Where must pictures vary for a model to compose?",
    paper="beyond the papers",
    about=about(__doc__),
    cost={
        "smoke": "20 s, one core",
        "laptop": "9 min, two cores, --workers 2",
        "full": "11 min (estimate), one H200, 3 seeds, 6 runs at a time",
    },
    settings=settings,
    compute=run,
    claims=(
        Claim(
            id="B21",
            paper="beyond the papers",
            statement="Variation teaches where it is: a model draws new triangles if the triangles it saw vary, and not if the "
            "circles do.",
            expected="level 2 by the strict reader, late means: triangles >= 0.5, circles < 0.5, 0.3 between them, and the "
            "interval of that above 0",
            judge=judge_place,
            trained=True,
            interval_of="triangles - circles",
        ),
    ),
    draw=draw,
    describe=describe,
    stops=True,
)
