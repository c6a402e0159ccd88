"""What is left of a picture that a tokenizer has encoded and decoded?

A tokenizer turns a 28x28 picture into a 7x7 grid: of continuous vectors (VAE), of vectors from a
learned table (VQ) or from a fixed grid (FSQ). What a tokenizer does not reconstruct, a model on top
will hardly draw, and paper A leaves open how well its own do. Here real pictures of every composition are
encoded, decoded and read by the probes that read samples, beside the same pictures as they are. A
tokenizer is trained on all compositions, as everywhere else in this project, or on the seen ones
alone; then it may fail before any model does.

The world is the one that the paper's curves imply (`Shapes2D.calibrated`): sizes overlap, so that
probes misread some real pictures too, and what counts is the distance to these. No model is
trained. VQ and VAE trained on all compositions are the tokenizers of `label-dropout`.

Run: `recombine run reconstruction --scale full` (on a GPU), `--scale laptop` (on one core).
"""

from dataclasses import field, replace
from typing import Any

from recombine.analysis.reconstruction import DATA, KINDS, REAL, seen_alone_caps
from recombine.config import config
from recombine.pipeline.job import Job, seed_by_seed
from recombine.plots import reconstruction as plots
from recombine.runs.models import ceiling_run, check_jobs
from recombine.runs.recipe import Recipe
from recombine.studies import calibrated
from recombine.studies.calibrated import Calibrated
from recombine.studies.study import Scale, Study, described

SETUPS = dict(zip(KINDS, ("dit on vae", "dit", "dit, fsq"), strict=True))
"""Whose tokenizer each is, in the names of `calibrated`."""


@config("settings/reconstruction")
class Reconstruction:
    """`base`: its tokenizer is the VQ one, from which the others differ in their bottleneck alone."""

    base: Calibrated = field(default_factory=Calibrated)

    def variants(self) -> dict[str, Recipe]:
        """Each tokenizer, and what it is trained on."""
        made = {kind: self.base.variant(setup) for kind, setup in SETUPS.items()}
        return {
            f"{kind}, {data}": replace(recipe, tokenizer=replace(recipe.tokenizer, data=data))
            for kind, recipe in made.items()
            for data in DATA
        }


def settings(scale: Scale) -> Reconstruction:
    return Reconstruction(calibrated.settings(scale))


def jobs(settings: Reconstruction, seeds: int) -> list[Job]:
    made = settings.variants()
    named = {(v, seed): r.with_seed(seed) for v, r in made.items() for seed in range(seeds)}
    real = Job.of(ceiling_run(settings.base.recipe, None), variant=REAL)
    return seed_by_seed([real, *check_jobs(named)])


def describe(settings: Reconstruction) -> dict[str, Any]:
    return settings.base.recipe.facts()


STUDY = Study(
    name="reconstruction",
    **described(__doc__),
    paper="A, left open",
    cost={
        "smoke": "20 s, one core",
        "laptop": "5 min, one core",
        "full": "5 min, one H200, 5 seeds, where label-dropout was run, else 7",
    },
    settings=settings,
    jobs=jobs,
    claims=(seen_alone_caps,),
    figures=plots.figures,
    describe=describe,
    run_minutes=0.5,
)
