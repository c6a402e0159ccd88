"""Which part of a seed decides whether a model composes?

With single labels left out of training some seeds learn level 2 early and lose it, others never
learn it, and the auxiliary loss of `repair` hardly changes which do. A seed is several things: the
network's first weights (start); its training pictures, their order, which labels are left out, the
noise of samples (data); and the tokenizer. Here each is drawn by itself: in a square of four starts by
four data sets each cell is a model, and its tokenizer one of four, each of them once in every row
and column. So the three parts do not mix, and each explains a share of the variance of level 2 over
the cells; a part without effect explains a fifth by chance. Squares share nothing, so each counts
as one seed.

Models are trained with single labels left out of a tenth of the pictures, for 2,000 updates, by which
`repair` and `label-dropout` have learned level 2 if they ever do; counted is the best checkpoint.

Run: `recombine run seed-parts --scale full` (on a GPU), `--scale laptop` (two cores).
"""

from dataclasses import field, replace
from itertools import product
from typing import Any

from recombine.analysis.seed_parts import PARTS, start_decides
from recombine.config import config
from recombine.pipeline.job import Job, seed_by_seed
from recombine.plots import seed_parts as plots
from recombine.runs.models import ModelRun, check_jobs
from recombine.runs.recipe import Recipe
from recombine.studies import calibrated
from recombine.studies.calibrated import Calibrated
from recombine.studies.study import Scale, Study, described

FIRST = 100
"""The first seed of the first square; other studies count from 0."""
SAMPLES = 64
"""Of each composition: cells differ by far more than such a share is uncertain."""


@config("settings/seed-parts")
class SeedParts:
    """`variant`: what is trained, in the names of `calibrated`; `size`: of a square; `steps`: updates;
    `checkpoints` before the last; `first_seed`: seeds of starts, data and tokenizers are counted from
    here."""

    base: Calibrated = field(default_factory=Calibrated)
    variant: str = "maskgit, dropout"
    size: int = 4
    steps: int = 2000
    checkpoints: tuple[int, ...] = (300, 1000)
    first_seed: int = FIRST

    def __post_init__(self) -> None:
        if self.size < 3:
            raise ValueError(f"size={self.size}: a square has three rows or more")

    def recipe(self) -> Recipe:
        recipe = self.base.variant(self.variant)
        few = min(SAMPLES, recipe.evaluation.samples)
        evaluation = replace(recipe.evaluation, checkpoints=self.checkpoints, samples=few, keep=0)
        train = replace(recipe.train, steps=self.steps)
        return replace(recipe, train=train, evaluation=evaluation)

    def square(self, number: int) -> dict[tuple[int, int, int], Recipe]:
        """(start, data, tokenizer) -> a cell of one square."""
        recipe, first = self.recipe(), self.first_seed + number * self.size
        made = {}
        for start, data in product(range(self.size), repeat=2):
            codes = (start + data) % self.size
            made[start, data, codes] = replace(
                recipe,
                seed=recipe.seed + first + data,
                start=recipe.seed + first + start,
                tokenizer=recipe.tokenizer.with_seed(first + codes),
            )
        return made


def name_of(start: int, data: int, codes: int) -> str:
    return f"start {start}, data {data}, tokenizer {codes}"


def settings(scale: Scale) -> SeedParts:
    base = calibrated.settings(scale)
    if scale == "smoke":
        return SeedParts(base, size=3, steps=4, checkpoints=(2,))
    return SeedParts(base)


def jobs(settings: SeedParts, seeds: int) -> list[Job]:
    squares = {number: settings.square(number) for number in range(seeds)}
    cells = {(name_of(*k), s): r for s, square in squares.items() for k, r in square.items()}
    first = {(v, s): r for (v, s), r in cells.items() if v.startswith("start 0")}
    models = [
        Job.of(
            ModelRun(recipe), variant=name_of(*key), seed=s, **dict(zip(PARTS, key, strict=True))
        )
        for s, square in squares.items()
        for key, recipe in square.items()
    ]
    return seed_by_seed([*check_jobs(first), *models])


def describe(settings: SeedParts) -> dict[str, Any]:
    return settings.base.recipe.facts()


STUDY = Study(
    name="seed-parts",
    **described(__doc__),
    paper="A, section 6",
    cost={
        "smoke": "20 s, one core",
        "laptop": "8 min, two cores, one square",
        "full": "13 min (estimate), one H200, 5 squares",
    },
    settings=settings,
    jobs=jobs,
    claims=(start_decides,),
    figures=plots.figures,
    describe=describe,
    run_minutes=0.2,
)
