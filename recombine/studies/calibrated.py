"""Which setting is the paper's own, and what would its comparison depend on there?

In paper A a linear probe reads three of four large objects of its best model, and nine of ten
small ones, but all canonical pictures: sizes vary so much that classes overlap. Here the four
families are trained in such a world (`Shapes2D.calibrated`), conditioned on class labels as in the
paper's Figs 2 and 3, and scored by the paper's own probe, the mean over five seeds of it. Most
variants have one seed and are leads; `label-dropout` compares the families over five. Samples of
the last checkpoints are kept for other probes (`recombine.runs.rescoring`).

GIVT has several forms, since a plain mixture does not learn what it sees on tokens of a codebook:

- wide: scales are at least the distance of neighbouring codes, and samples are snapped to codes;
- sure: the same, decoded by confidence;
- wider: twice the least scale, half the temperature;
- free: trained without clipping;
- sure on vae: as sure, on the latents of a VAE, which have no codes to snap to.

After a comma stands what else differs:

- tokens: the condition enters as tokens;
- dropout: each factor's label is left out of every tenth picture, as in the paper's Fig 4;
- guidance: all labels are left out of every tenth picture, as guided models are trained;
- apart: no picture that is nearer to another class is trained on;
- small: the transformer of the authors' MaskGIT;
- few: 1,500 training pictures of a composition;
- 4k updates: half of the updates, with a cosine;
- theirs: 28,000 updates at 1e-4, decayed linearly, neither clipped nor averaged, as in the authors'
  development code; 8k updates: the first 8,000 of such a training, at 1e-4 throughout;
- ddpm: the authors' diffusion; noise is predicted, linear betas, 500 steps, all of them sampled;
- weak signal: the same with latents of a tenth of the noise, as where those of a VQGAN are not
  brought to unit variance;
- 1024 codes, 128 dims, fsq: other codebooks, whose finer codes may be ones that no seen composition
  has.

Run: `recombine run calibrated --scale full` (on a GPU), `--scale laptop` (two families on two
cores).
"""

from collections.abc import Iterable
from dataclasses import field, replace
from typing import Any

from recombine.analysis.calibrated import family_of, gate, tokenizers_alike
from recombine.analysis.paper_curves import OF_FAMILY
from recombine.config import UsageError, config
from recombine.nets.conditioning import Conditioning
from recombine.nets.transformer import TransformerConfig
from recombine.objectives.diffusion import Diffusion
from recombine.objectives.masked import Masked
from recombine.objectives.process import Linear
from recombine.objectives.solvers import Ancestral
from recombine.objectives.token_heads import Categorical, Denoising, Mixture
from recombine.pipeline.job import Job
from recombine.plots import calibrated as plots
from recombine.runs.models import ModelRun, check_jobs
from recombine.runs.recipe import Recipe
from recombine.studies import objectives
from recombine.studies.study import Scale, Study, described
from recombine.tokenizers.bottlenecks import FSQ, KL, VQ, Bottleneck

WIDE, WIDER = 0.2, 0.4
"""Floors of a mixture's scales, in standard deviations of tokens: the median distance of
neighbouring codes, which decode alike, and twice that."""
SMALL = TransformerConfig(depth=7, width=128, heads=8, mlp_ratio=8)
"""The transformer of the authors' development code of MaskGIT (whose MLP is 1040 wide)."""
FEW = 1500
"""Pictures of a composition, as many as the code that the paper builds on renders."""
DROPOUT = 0.1
"""How often a label is left out where `dropout` is named: as in the paper's Fig 4b and d."""
DDPM_STEPS, DDPM_SAMPLES = 500, 64
"""Steps of the authors' process; pictures of each composition: 500 steps cost ten times as much as
a flow's 25 by Heun, and with 256 pictures took about as long as the training."""
THEIRS = 28_000
"""Updates of the shortest of the paper's curves."""
BEGINNING = (300, 1000, 2000, 3000, 4000, 5000, 5500, 6000, 6500, 7000, 7500, 8000)
"""Checkpoints of the first 8,000 updates; late means are over the last three."""
CHECKPOINTS = (150, 300, 600, 1000, 1500, 2000, 2600, 3200, 4000, 4800, 5600, 6400, 7200, 8000)


def by_tokens(recipe: Recipe) -> Recipe:
    return replace(recipe, conditioning=replace(recipe.conditioning, enters="tokens"))


def drops(recipe: Recipe) -> Recipe:
    return replace(recipe, conditioning=replace(recipe.conditioning, dropout=DROPOUT))


def drops_together(recipe: Recipe) -> Recipe:
    conditioning = replace(recipe.conditioning, dropout=DROPOUT, dropped="together")
    return replace(recipe, conditioning=conditioning)


def small(recipe: Recipe) -> Recipe:
    net = recipe.net.transformer
    less = SMALL if net.width > SMALL.width else replace(net, depth=1)
    return replace(recipe, net=replace(recipe.net, transformer=less))


def apart(recipe: Recipe) -> Recipe:
    return replace(recipe, apart=True)


def few(recipe: Recipe) -> Recipe:
    return replace(recipe, pool=max(1, min(FEW, recipe.pool // 4)))


def shorter(recipe: Recipe) -> Recipe:
    train = replace(recipe.train, steps=min(4000, recipe.train.steps), lr=5e-4, decay="cosine")
    evaluation = replace(recipe.evaluation, checkpoints=12, keep_last=4)
    return replace(recipe, train=train, evaluation=evaluation)


def theirs(recipe: Recipe) -> Recipe:
    steps = THEIRS if recipe.train.steps >= 4000 else recipe.train.steps
    train = replace(recipe.train, steps=steps, lr=1e-4, decay="linear", clip=0.0, ema=0.0)
    later = tuple(round(steps * k / 14) for k in range(1, 15))
    evaluation = replace(recipe.evaluation, checkpoints=(*CHECKPOINTS[1:6:2], *later), keep_last=4)
    return replace(recipe, train=train, evaluation=evaluation)


def beginning(recipe: Recipe) -> Recipe:
    """The authors plan about 115,000 updates, over which the rate falls: it hardly has by here."""
    steps = min(BEGINNING[-1], recipe.train.steps)
    train = replace(recipe.train, steps=steps, lr=1e-4, decay="none", clip=0.0, ema=0.0)
    evaluation = replace(recipe.evaluation, checkpoints=BEGINNING, keep_last=3)
    return replace(recipe, train=train, evaluation=evaluation)


def ddpm(recipe: Recipe, signal: float = 1.0) -> Recipe:
    """The authors' DDPM; where a test takes few steps, as few of its own."""
    if not isinstance(recipe.objective, Diffusion):
        raise UsageError("ddpm: DiT alone denoises all tokens at once")
    steps = DDPM_STEPS if recipe.evaluation.solver.steps > 2 else 4
    objective = Diffusion(Linear(steps=DDPM_STEPS, signal=signal), "noise")
    samples = min(DDPM_SAMPLES, recipe.evaluation.samples)
    evaluation = replace(recipe.evaluation, solver=Ancestral(steps), samples=samples)
    return replace(recipe, objective=objective, evaluation=evaluation)


def weak_signal(recipe: Recipe) -> Recipe:
    return ddpm(recipe, signal=0.1)


def with_codes(recipe: Recipe, codes: Bottleneck) -> Recipe:
    return replace(recipe, tokenizer=replace(recipe.tokenizer, bottleneck=codes))


def more_codes(recipe: Recipe) -> Recipe:
    return with_codes(recipe, VQ(1024))


def wide_codes(recipe: Recipe) -> Recipe:
    return with_codes(recipe, replace(recipe.tokenizer.bottleneck, dim=128))


def grid_codes(recipe: Recipe) -> Recipe:
    return with_codes(recipe, FSQ())


CHANGES = {
    "tokens": by_tokens,
    "dropout": drops,
    "guidance": drops_together,
    "apart": apart,
    "small": small,
    "few": few,
    "4k updates": shorter,
    "theirs": theirs,
    "8k updates": beginning,
    "ddpm": ddpm,
    "weak signal": weak_signal,
    "1024 codes": more_codes,
    "128 dims": wide_codes,
    "fsq": grid_codes,
}
"""What may stand after a family's name, and what it changes."""


@config("settings/calibrated")
class Calibrated:
    """`families`: a family, or a form of GIVT, then any of CHANGES, as in "maskgit, tokens, few".
    `once`: those of which one seed is run. `recipe` is shared; its objective is each one's own."""

    recipe: Recipe = field(default_factory=Recipe)
    families: tuple[str, ...] = ("maskgit", "givt wide", "mar", "dit", "dit on vae")
    once: tuple[str, ...] = ()
    maskgit: Categorical = field(default_factory=Categorical)
    givt: Mixture = field(default_factory=Mixture)
    mar: Denoising = field(default_factory=Denoising)

    def known(self) -> dict[str, Recipe]:
        """Every family and form of GIVT, unchanged."""
        base, wide = self.recipe, replace(self.givt, floor=WIDE, snap=True)
        evaluation = base.evaluation
        sure = replace(evaluation, decoding=replace(evaluation.decoding, order="confidence"))
        heads = {
            "maskgit": self.maskgit,
            "mar": self.mar,
            "givt": self.givt,
            "givt wide": wide,
            "givt wider": replace(wide, floor=WIDER, temperature=0.5),
            "givt sure": wide,
            "givt free": wide,
        }
        made = {name: replace(base, objective=Masked(head)) for name, head in heads.items()}
        made["givt sure"] = replace(made["givt sure"], evaluation=sure)
        made["givt free"] = replace(made["givt free"], train=replace(base.train, clip=0.0))
        vae = replace(base.tokenizer, bottleneck=KL(base.tokenizer.bottleneck.dim))
        free = Masked(replace(wide, snap=False))
        made["givt sure on vae"] = replace(made["givt sure"], objective=free, tokenizer=vae)
        return made | {"dit": base, "dit on vae": replace(base, tokenizer=vae)}

    def variant(self, name: str) -> Recipe:
        family, *changes = name.split(", ")
        known = self.known()
        if family not in known or not set(changes) <= CHANGES.keys():
            raise UsageError(
                f"families: {name!r} is none of {', '.join(known)}, with any of "
                f"{', '.join(CHANGES)} after a comma"
            )
        recipe = known[family]
        for change in changes:
            recipe = CHANGES[change](recipe)
        return recipe

    def runs(self, seeds: int) -> dict[tuple[str, int], Recipe]:
        """Seed by seed, so that whoever stops early has whole seeds."""
        if unknown := [name for name in self.once if name not in self.families]:
            raise UsageError(f"once: {unknown[0]!r} is none of the families")
        made = {name: self.variant(name) for name in self.families}
        pairs = [(n, s) for s in range(seeds) for n in made if s == 0 or n not in self.once]
        return {(n, s): made[n].with_seed(s) for n, s in pairs}


def settings(scale: Scale) -> Calibrated:
    if scale == "full":
        base = objectives.full()
        train = replace(base.train, steps=8000, lr=3e-4, decay="none")
        base = replace(base, train=train)
        return Calibrated(calibrated(base, checkpoints=CHECKPOINTS, keep=64, keep_last=3))
    if scale == "laptop":
        return Calibrated(calibrated(objectives.laptop(), keep=32), ("maskgit", "dit"))
    mar = Denoising(steps=2, width=16, depth=1, repeats=1)
    return Calibrated(calibrated(objectives.smoke(), keep=4, paper_probes=2), mar=mar)


def calibrated(recipe: Recipe, **evaluation: Any) -> Recipe:
    """A recipe of `objectives` in the paper's world: class labels, scored by the paper's probe."""
    given = {"paper_probes": 5} | evaluation
    return replace(
        recipe,
        world=recipe.world.calibrated(),
        conditioning=Conditioning(mode="quantised"),
        evaluation=replace(recipe.evaluation, **given),
    )


def jobs(settings: Calibrated, seeds: int) -> list[Job]:
    runs = settings.runs(seeds)
    models = [Job.of(ModelRun(r), variant=v, seed=s) for (v, s), r in runs.items()]
    return [*check_jobs(runs), *models]


def describe(settings: Calibrated) -> dict[str, Any]:
    return settings.recipe.facts() | {"paper_curve": curves_of(settings.families)}


def curves_of(variants: Iterable[str]) -> dict[str, str]:
    """The paper's curve of each variant whose family it has."""
    families = {variant: family_of(variant) for variant in variants}
    return {v: OF_FAMILY[family] for v, family in families.items() if family in OF_FAMILY}


STUDY = Study(
    name="calibrated",
    **described(__doc__),
    paper="A, Figs 2 and 3",
    cost={
        "smoke": "30 s, one core",
        "laptop": "10 min, two cores",
        "full": "50 min (estimate), one H200, 5 seeds",
    },
    settings=settings,
    jobs=jobs,
    claims=(gate, tokenizers_alike),
    figures=plots.figures,
    describe=describe,
    run_minutes=2.0,
)
