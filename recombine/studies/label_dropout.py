"""Is it label dropout, and not the categorical output, that keeps MaskGIT from composing?

Paper A finds in its Fig 4 that label dropout, each factor left out of every tenth picture, destroys
composition in DiT; for Fig 3 it names no such setting. Public MaskGIT code leaves out labels too,
all of a picture's at once, so that samples can be guided. Here all four families are trained with
all labels, with dropout of each factor (`dropout`) and of all together (`guidance`), everything
else alike and as in the authors' development code: class labels, 1e-4 (the first 8,000 updates,
over which their rate hardly falls), neither clipped nor averaged, 1,500 pictures of a composition,
in the world that the paper's curves imply (`Shapes2D.calibrated`). MaskGIT, GIVT and MAR share a
transformer of 7 layers of 128 with labels as tokens; DiT has 7 of 448 with adaLN. With all labels
DiT and GIVT are also trained on the latents of a VAE, GIVT without snapping, since there are no
codes. If the output decides, the three continuous families compose with dropout too; if dropout
decides, none does.

The authors' DiT is a DDPM that noises the latents of a VQGAN as they are. Where these are smaller
than the noise, most noise levels hold little of the picture. `ddpm` is the authors' diffusion,
`weak signal` the same with latents of a tenth of the noise.

Run: `recombine run label-dropout --scale full` (on a GPU), `--scale laptop` (MaskGIT with and
without, on two cores).
"""

from dataclasses import field
from typing import Any

from recombine.analysis import label_dropout as claims
from recombine.config import UsageError, config
from recombine.pipeline.job import Job, seed_by_seed
from recombine.plots import label_dropout as plots
from recombine.runs.models import model_jobs
from recombine.runs.recipe import Recipe
from recombine.studies import calibrated
from recombine.studies.calibrated import Calibrated
from recombine.studies.study import Scale, Study, about

SETUPS = {
    "maskgit": "maskgit, tokens, small",
    "givt": "givt sure, tokens, small",
    "mar": "mar, tokens, small",
    "dit": "dit",
    "dit on vae": "dit on vae",
    "givt on vae": "givt sure on vae, tokens, small",
}
"""Each family in the names of `calibrated`."""
ENDINGS = ("", ", dropout", ", guidance")
DDPM = (", ddpm", ", weak signal")
FOUR = ("maskgit", "givt", "mar", "dit")


@config("settings/label-dropout")
class LabelDropout:
    """`variants`: families, with ", dropout" or ", guidance" after the name where labels are left
    out, or ", ddpm" or ", weak signal" after that of a DiT."""

    base: Calibrated = field(default_factory=Calibrated)
    variants: tuple[str, ...] = (
        *(family + ending for family in FOUR for ending in ENDINGS),
        *("dit" + ending for ending in DDPM),
        *("dit on vae" + ending for ending in ("", ", weak signal")),
        "givt on vae",
    )

    def recipes(self) -> dict[str, Recipe]:
        return {name: self._recipe(name) for name in self.variants}

    def _recipe(self, name: str) -> Recipe:
        family, _, change = name.partition(", ")
        if family not in SETUPS or name.removeprefix(family) not in ENDINGS + DDPM:
            raise UsageError(
                f"variants: {name!r} is none of {', '.join(SETUPS)}, or one of them and "
                "', dropout', ', guidance', ', ddpm' or ', weak signal'"
            )
        changes = ["few", *([change] if change else []), "8k updates"]
        return self.base.variant(", ".join([SETUPS[family], *changes]))


def settings(scale: Scale) -> LabelDropout:
    variants = {"laptop": ("maskgit", "maskgit, dropout", "maskgit, guidance")}.get(
        scale, LabelDropout.variants
    )
    return LabelDropout(calibrated.settings(scale), variants)


def jobs(settings: LabelDropout, seeds: int) -> list[Job]:
    return seed_by_seed(model_jobs(settings.recipes(), seeds))


def describe(settings: LabelDropout) -> dict[str, Any]:
    curves = calibrated.curves_of(settings.variants)
    return settings.base.recipe.facts() | {"paper_curve": curves}


STUDY = Study(
    name="label-dropout",
    question="Is it label dropout, and not the categorical output, that keeps MaskGIT from composing?",
    paper="A, Figs 2 to 4",
    about=about(__doc__),
    cost={
        "smoke": "40 s, one core",
        "laptop": "15 min (estimate), two cores",
        "full": "50 min (estimate), one H200, 5 seeds",
    },
    settings=settings,
    jobs=jobs,
    claims=claims.CLAIMS,
    figures=plots.figures,
    describe=describe,
    run_minutes=0.6,
)
