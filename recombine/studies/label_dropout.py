"""Is it label dropout, and not the categorical output, that keeps MaskGIT from composing?

Paper A finds in its Fig 4 that label dropout, each factor left out of every tenth picture, destroys
composition in DiT; for Fig 3 it names no such setting. Public MaskGIT code leaves out labels too,
all of a picture's at once, so that samples can be guided. Here all four families are trained with
all labels, with dropout of each factor (`dropout`) and of all together (`guidance`), everything
else alike. If the output decides, the three continuous families compose with dropout too; if dropout
decides, none does.

The setting is the paper's as far as its curves and a co-author's public code of spring 2025 tell
(`Shapes2D.calibrated`): class labels, 1,500 pictures of a composition, 8,000 updates at 1e-4,
neither clipped nor averaged. MaskGIT, GIVT and MAR share a transformer of 7 layers of 128 with
labels as tokens; DiT has 7 of 448 with adaLN. Sizes overlap there: some pictures that are labelled
large show a small object. `apart` trains without these, `longer` with 24,000 updates, `decayed` at
a rate that falls to nothing. `maskgit, lr 1e-3` has ten times the learning rate (`optimizers`),
`small` besides the networks of `small-models`. MaskGIT and MAR with `adaln` get their labels as DiT
does.

With all labels DiT and GIVT are also trained on the latents of a VAE, GIVT without snapping, since
there are no codes; `cool` samples GIVT without the noise inside components. The authors' DiT is a
DDPM that noises the latents of a VQGAN as they are. Where these are smaller than the noise, most
noise levels hold little of the picture. `ddpm` is the authors' diffusion, `weak signal` the same
with latents of a tenth of the noise.

Run: `recombine run label-dropout --scale full` (on a GPU), `--scale laptop` (MaskGIT with and
without, on two cores).
"""

from dataclasses import field
from typing import Any

from recombine.analysis import label_dropout as claims
from recombine.config import config
from recombine.pipeline.job import Job, seed_by_seed
from recombine.plots import label_dropout as plots
from recombine.runs.models import model_jobs
from recombine.runs.recipe import Recipe
from recombine.studies import calibrated
from recombine.studies.calibrated import FAMILIES, Calibrated
from recombine.studies.study import Scale, Study, about

ENDINGS = ("", ", dropout", ", guidance", ", apart", ", longer", ", decayed")


@config("settings/label-dropout")
class LabelDropout:
    """`variants`: families, and after a comma what differs, in the names of `calibrated`."""

    base: Calibrated = field(default_factory=Calibrated)
    variants: tuple[str, ...] = (
        *(family + ending for family in FAMILIES for ending in ENDINGS),
        *("dit, ddpm", "dit, weak signal", "dit on vae", "dit on vae, weak signal", "givt on vae"),
        "givt, cool",
        *("maskgit, lr 1e-3", "maskgit, small, lr 1e-3", "dit, small, lr 1e-3"),
        *("maskgit, adaln", "mar, adaln"),
    )

    def recipes(self) -> dict[str, Recipe]:
        return {name: self.base.variant(name) for name in self.variants}


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
        "laptop": "8 min (estimate), two cores",
        "full": "76 min (a third estimated), one H200, 5 seeds: 0.4 a masked model, 0.8 a DiT",
    },
    settings=settings,
    jobs=jobs,
    claims=claims.CLAIMS,
    figures=plots.figures,
    describe=describe,
    run_minutes=0.6,
)
