"""Which labels let DiT compose in the paper's setting: true values or classes, complete or not?

Paper A, Fig 4, in the world that its curves imply (`Shapes2D.calibrated`), trained as in
`label-dropout`: true values of colour and size, or their classes; all of them, or each left out of
every tenth picture. A co-author's public code of spring 2025, which the paper may or may not have
used, does three more things, which are here as variants of their own: `zero` replaces a factor by
zero for a whole batch, in one batch of ten, and of a class that is the first one, a false label;
`sampling` leaves the dropout of true values on while it draws samples; `raw` takes values as they
are, not in units of the distance between classes. `theirs` is raw values, left out of pictures and
zero in batches. All models are prompted for the centres of classes. Paper: complete values compose,
classes in part, and dropout ruins both; on the way there one composition, the large blue triangle,
is learned and lost.

Run: `recombine run labels --scale full` (on a GPU), `--scale laptop` (two cores).
"""

from dataclasses import field, replace
from typing import Any

from recombine.analysis import labels as claims
from recombine.config import config
from recombine.nets.conditioning import Conditioning
from recombine.pipeline.job import Job, seed_by_seed
from recombine.plots import labels as plots
from recombine.runs.models import model_jobs
from recombine.runs.recipe import Recipe
from recombine.studies import calibrated
from recombine.studies.calibrated import DROPOUT, Calibrated
from recombine.studies.study import Scale, Study, described

CONDITIONS = {
    "values": Conditioning("continuous"),
    "values, dropout": Conditioning("continuous", DROPOUT),
    "classes": Conditioning("quantised"),
    "classes, dropout": Conditioning("quantised", DROPOUT),
    "classes, zero": Conditioning("quantised", DROPOUT, dropped="zero"),
    "values, dropout, sampling": Conditioning("continuous", DROPOUT),
    "values, zero": Conditioning("continuous", DROPOUT, dropped="zero"),
    "values, raw": Conditioning("continuous", embedding_scale="raw"),
    "values, raw, dropout": Conditioning("continuous", DROPOUT, embedding_scale="raw"),
    "values, theirs": Conditioning("continuous", DROPOUT, embedding_scale="raw", dropped="both"),
}


@config("settings/labels")
class Labels:
    """`base`: world, tokenizer, network and training; labels are each variant's own. `variants`: some
    of CONDITIONS."""

    base: Calibrated = field(default_factory=Calibrated)
    variants: tuple[str, ...] = tuple(CONDITIONS)

    def __post_init__(self) -> None:
        if unknown := [name for name in self.variants if name not in CONDITIONS]:
            raise ValueError(f"variants: {unknown[0]!r} is none of {'; '.join(CONDITIONS)}")

    def recipes(self) -> dict[str, Recipe]:
        recipe = self.base.variant("dit")
        made = {n: replace(recipe, conditioning=CONDITIONS[n]) for n in self.variants}
        if (name := "values, dropout, sampling") in made:
            on = replace(recipe.evaluation, prompt_dropout=DROPOUT)
            made[name] = replace(made[name], evaluation=on)
        return made


def settings(scale: Scale) -> Labels:
    return Labels(calibrated.settings(scale))


def jobs(settings: Labels, seeds: int) -> list[Job]:
    return seed_by_seed(model_jobs(settings.recipes(), seeds))


def describe(settings: Labels) -> dict[str, Any]:
    return settings.base.recipe.facts() | {"paper_curve": claims.CURVES}


STUDY = Study(
    name="labels",
    **described(__doc__),
    paper="A, Fig 4",
    cost={
        "smoke": "40 s, one core",
        "laptop": "30 min (estimate), two cores",
        "full": "29 min (estimate), one H200, 5 seeds, after label-dropout, which has two of the variants",
    },
    settings=settings,
    jobs=jobs,
    claims=claims.CLAIMS,
    figures=plots.figures,
    describe=describe,
    run_minutes=0.9,
)
