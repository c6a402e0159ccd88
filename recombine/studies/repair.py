"""Does a continuous auxiliary loss make MaskGIT compose where it fails?

In our best guess of paper A's setting MaskGIT fails when it is trained with label dropout
(`label-dropout`). Here it is trained so, with 12 layers, and once more with an auxiliary loss, in
figures JEPA (joint-embedding prediction): at hidden tokens inside random squares, some layers must
predict what the same layers of the network's own moving average say when nothing is hidden. Layers
7, 9 and 11, or layer 8 alone, counted from 0; weight 0.6; a predictor of two layers; the average
over about 1,000 updates. All else is as in `label-dropout`, but samples are drawn with the averaged
weights, in all three. Paper A, section 6: level 2 rises from nothing to about 0.45, and several
layers do better than one.

Seeds differ more than variants do, and a seed has a tokenizer of its own. A variant such as "jepa,
tokenizer 2" takes that of seed 2 for all seeds: is it the tokenizer that decides? In the paper the
rise comes late, its best at 32,000 updates: "jepa, longer" has 24,000 in place of 8,000. At ten
times the learning rate MaskGIT fails with all labels too (one seed): "jepa, all labels, lr 1e-3" is trained there.

At every checkpoint the parts of the loss are kept, and how much the predicted states differ from
picture to picture: after a collapse they would not.

Run: `recombine run repair --scale full` (on a GPU), `--scale laptop` (two cores).
"""

from dataclasses import field, replace
from typing import Any

from recombine.analysis import repair as claims
from recombine.analysis.repair import FAST, LONGER, TOKENIZER
from recombine.config import UsageError, config
from recombine.objectives.jepa import Jepa
from recombine.objectives.masked import Masked
from recombine.pipeline.job import Job, seed_by_seed
from recombine.plots import repair as plots
from recombine.runs.models import ModelRun, check_jobs
from recombine.runs.recipe import Recipe
from recombine.studies import calibrated
from recombine.studies.calibrated import Calibrated, longer
from recombine.studies.study import Scale, Study, described

LOSSES = ("maskgit", "jepa", "jepa, one layer")


@config("settings/repair")
class Repair:
    """`several` and `one`: the auxiliary losses that are compared, beside none. `depth`: layers of
    the transformer. `average`: how much of the old average an update keeps; the average is the
    teacher. `variants`: LOSSES, or one of them with more updates or on the tokenizer of one seed."""

    base: Calibrated = field(default_factory=Calibrated)
    several: Jepa = field(default_factory=lambda: Jepa((7, 9, 11), squares=4))
    one: Jepa = field(default_factory=lambda: Jepa((8,), squares=4))
    depth: int = 12
    average: float = 0.999
    variants: tuple[str, ...] = LOSSES

    def recipes(self) -> dict[str, Recipe]:
        dropped = self.losses("maskgit, dropout")
        made = dropped | {n + LONGER: longer(recipe) for n, recipe in dropped.items()}
        fast = self.losses("maskgit, lr 1e-3")
        return made | {n + FAST: recipe for n, recipe in fast.items()}

    def losses(self, variant: str) -> dict[str, Recipe]:
        """Each of LOSSES, with more layers than a variant of `calibrated` has."""
        recipe = self.base.variant(variant)
        deeper = replace(recipe.net.transformer, depth=self.depth)
        plain = replace(
            recipe,
            net=replace(recipe.net, transformer=deeper),
            train=replace(recipe.train, ema=self.average),
        )
        losses = dict(zip(LOSSES, (None, self.several, self.one), strict=True))
        head = self.base.maskgit
        return {n: replace(plain, objective=Masked(head, jepa=j)) for n, j in losses.items()}

    def runs(self, seeds: int) -> dict[tuple[str, int], Recipe]:
        """On the tokenizer of one seed there are no networks of seeds whose tokenizers are so
        used: by these the tokenizers were chosen."""
        recipes, made = self.recipes(), {}
        named = {name: own_tokenizer(name) for name in self.variants}
        for name, (loss, own) in named.items():
            for seed in range(seeds):
                one = recipes[loss].with_seed(seed)
                if own is None:
                    made[name, seed] = one
                elif (loss, seed) not in named.values():
                    shared = recipes[loss].tokenizer.with_seed(own)
                    made[name, seed] = replace(one, tokenizer=shared)
        return made


def own_tokenizer(variant: str) -> tuple[str, int | None]:
    """Its loss, and the seed whose tokenizer it has if one is named."""
    loss, words, seed = variant.partition(TOKENIZER)
    known = {name + ending for name in LOSSES for ending in ("", LONGER, FAST)}
    if loss not in known or (words and not seed.isdecimal()):
        raise UsageError(
            f"variants: {variant!r} is none of {', '.join(LOSSES)}, or one of them and "
            f"'{LONGER}', '{FAST}', ', tokenizer 2' or that of another seed"
        )
    return loss, int(seed) if words else None


def settings(scale: Scale) -> Repair:
    base = calibrated.settings(scale)
    if scale == "full":
        return Repair(base)
    return Repair(base, Jepa((1, 2), squares=4), Jepa((2,), squares=4), depth=3)


def jobs(settings: Repair, seeds: int) -> list[Job]:
    runs = settings.runs(seeds)
    models = [Job.of(ModelRun(r), variant=v, seed=s) for (v, s), r in runs.items()]
    return seed_by_seed([*check_jobs(runs), *models])


def describe(settings: Repair) -> dict[str, Any]:
    return settings.base.recipe.facts() | {"paper_curve": {"maskgit": "maskgit"}}


STUDY = Study(
    name="repair",
    **described(__doc__),
    paper="A, section 6",
    cost={
        "smoke": "20 s, one core",
        "laptop": "10 min, two cores",
        "full": "13 min, one H200, 5 seeds",
    },
    settings=settings,
    jobs=jobs,
    claims=claims.CLAIMS,
    figures=plots.figures,
    describe=describe,
    run_minutes=1.0,
)
