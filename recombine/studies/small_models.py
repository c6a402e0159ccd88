"""Does paper A's order of families appear in small models, which train in minutes on a laptop?

All labels are given and the learning rate is 1e-3, as in `optimizers`, but models have three layers
of 96 in place of 7 of 128, pictures 20 pixels in place of 28, and training takes two cores. MaskGIT
predicts categories; GIVT, MAR and DiT continuous values. MaskGIT is trained twice more with averaged
weights, without paper A's auxiliary loss and with it, as in `repair`.

Seeds 0 to 4 were trained before the claims were written: the means were in the paper's order and the
auxiliary loss helped in four seeds of five. So at full scale seeds are counted from 5. In seeds 5 to
9 DiT and MAR read about 0.3 more than MaskGIT; whether others agree is for seeds from 10 on to say
(`--first-seed 5`). DiT gets its labels by adaLN and the others as tokens, so MaskGIT is also trained with
labels by adaLN (`maskgit, adaln`) and DiT with labels as tokens (`dit, tokens`).

Run: `recombine run small-models --scale full --workers 2` (two cores)."""

from dataclasses import field
from typing import Any

from recombine.analysis.small_models import BY_ADALN, BY_TOKENS, CLAIMS, RUNS
from recombine.config import UsageError, config
from recombine.pipeline.job import Job, seed_by_seed
from recombine.plots import small_models as plots
from recombine.runs.models import model_jobs
from recombine.runs.recipe import Recipe
from recombine.studies import calibrated, optimizers, repair
from recombine.studies.calibrated import FAMILIES
from recombine.studies.optimizers import Optimizers
from recombine.studies.repair import Repair
from recombine.studies.study import Scale, Study, described
from recombine.studies.two_models import UNUSED

RATE = 1e-3


@config("settings/small-models")
class SmallModels:
    """`families`: their networks and training; `repair`: those of MaskGIT with averaged weights and of
    the auxiliary loss; `first_seed`: seeds are counted from here; `variants`: what is trained."""

    families: Optimizers = field(default_factory=lambda: optimizers.settings("laptop"))
    repair: Repair = field(default_factory=lambda: repair.settings("laptop"))
    first_seed: int = 0
    variants: tuple[str, ...] = (*FAMILIES, BY_ADALN, BY_TOKENS, *RUNS)

    def recipes(self) -> dict[str, Recipe]:
        """Every family at one learning rate, not clipped, then MaskGIT and DiT with their labels entering as
        the other's do, and MaskGIT with averaged weights."""
        repaired = self.repair.recipes()
        made = {family: self.families.recipe(family, RATE, 0.0) for family in FAMILIES}
        made[BY_ADALN] = calibrated.with_labels_by(made["maskgit"], "adaln")
        made[BY_TOKENS] = calibrated.with_labels_by(made["dit"], "tokens")
        made |= {name: repaired[source] for name, source in RUNS.items()}
        if unknown := [name for name in self.variants if name not in made]:
            raise UsageError(f"variants: {unknown[0]!r} is none of {'; '.join(made)}")
        return {name: made[name] for name in self.variants}


def settings(scale: Scale) -> SmallModels:
    if scale == "smoke":
        return SmallModels(optimizers.settings("smoke"), repair.settings("smoke"))
    return SmallModels(first_seed=UNUSED if scale == "full" else 0)


def jobs(settings: SmallModels, seeds: int) -> list[Job]:
    return seed_by_seed(model_jobs(settings.recipes(), seeds, settings.first_seed))


def describe(settings: SmallModels) -> dict[str, Any]:
    return settings.families.base.recipe.facts()


STUDY = Study(
    name="small-models",
    **described(__doc__),
    paper="A, Figs 3 and 6",
    cost={
        "smoke": "20 s, one core",
        "laptop": "25 min, two cores, --workers 2",
        "full": "2.7 h, two cores, --workers 2, seeds 5 to 9",
    },
    settings=settings,
    jobs=jobs,
    claims=CLAIMS,
    figures=plots.figures,
    describe=describe,
    run_minutes=2.0,
)
