"""The paper's probable setting, in which the studies from `label-dropout` to `circuits` train.

In paper A a linear probe reads three of four large objects of its best model, and nine of ten
small ones, but all canonical pictures: sizes vary so much that classes overlap. Here models are
trained in such a world (`Shapes2D.calibrated`), conditioned on class labels as in the paper's Figs
2 and 3, and scored by the paper's own probe, the mean over five seeds of it. The rest is as in a
co-author's public code: 1,500 pictures of a composition, 1e-4 (the first 8,000 updates, over which
their rate hardly falls), neither clipped nor averaged. MaskGIT, GIVT and MAR share a transformer of
7 layers of 128 with labels as tokens; DiT has 7 of 448 with adaLN. Samples of the last checkpoints
are kept for other probes (`recombine.runs.rescoring`).

A plain mixture does not learn what it sees on tokens of a codebook, so GIVT's scales are at least
the distance of neighbouring codes, samples are snapped to codes and decoded by confidence. On the
latents of a VAE there are no codes to snap to.

After a family and a comma stands what differs:

- dropout: each factor's label is left out of every tenth picture, as in the paper's Fig 4;
- guidance: all labels are left out of every tenth picture, as guided models are trained;
- apart: no picture that is nearer to another class is trained on;
- longer: 24,000 updates in place of 8,000;
- decayed: the rate falls to nothing;
- lr 3e-4, lr 1e-3: three and ten times the learning rate;
- small: the network of `small-models`, three layers of 96;
- adaln, tokens: how labels enter: as in DiT, or as in the masked families;
- averaged, clipped: weights are averaged (EMA), gradients clipped at 1;
- ddpm: the authors' diffusion; noise is predicted, linear betas, 500 steps, all of them sampled;
- weak signal: the same with latents of a tenth of the noise, as where those of a VQGAN are not
  brought to unit variance;
- cool: tokens of GIVT are means of components, not draws from them;
- 1024 codes, 128 dims, fsq: other codebooks.
"""

from collections.abc import Iterable
from dataclasses import field, replace
from functools import partial
from typing import Any, Literal

from recombine.analysis.paper_curves import OF_FAMILY
from recombine.config import UsageError, config
from recombine.nets.conditioning import Conditioning
from recombine.nets.transformer import TransformerConfig
from recombine.objectives.diffusion import Diffusion
from recombine.objectives.masked import Masked
from recombine.objectives.process import Linear
from recombine.objectives.solvers import Ancestral
from recombine.objectives.token_heads import Categorical, Denoising, Mixture
from recombine.runs.recipe import Recipe
from recombine.studies import objectives
from recombine.studies.study import Scale
from recombine.tokenizers.autoencoder import Autoencoder
from recombine.tokenizers.bottlenecks import FSQ, KL, VQ, Bottleneck

FAMILIES = ("maskgit", "givt", "mar", "dit")
WIDE = 0.2
"""The floor of a mixture's scales, in standard deviations of tokens: the median distance of
neighbouring codes, which decode alike."""
SMALL = TransformerConfig(depth=7, width=128, heads=8, mlp_ratio=8)
"""The transformer of a co-author's public code of MaskGIT (whose MLP is 1040 wide)."""
SMALLER = TransformerConfig(depth=3, width=96, heads=4)
"""That of the small models that train on two cores."""
FEW = 1500
"""Pictures of a composition, as many as the code that the paper builds on renders."""
DROPOUT = 0.1
"""How often a label is left out where `dropout` is named: as in the paper's Fig 4b and d."""
DDPM_STEPS, DDPM_SAMPLES = 500, 64
"""Steps of the authors' process; pictures of each composition: 500 steps cost ten times as much as
a flow's 25 by Heun, and with 256 pictures took about as long as the training."""
CHECKPOINTS = (300, 1000, 2000, 3000, 4000, 5000, 5500, 6000, 6500, 7000, 7500, 8000)
SOON = (300, 1000, 2000, 3000, 3500, 4000, 4500)
"""The same at laptop scale, where training ends at 5,000. Late means are over the last three, or the
last two of these and the end."""
LONGER, EVERY = 24_000, 2000
"""Updates of `longer` (the shortest of the paper's curves has 28,000; the authors plan about 115,000),
and between two checkpoints of them."""


def small(recipe: Recipe) -> Recipe:
    return replace(recipe, net=replace(recipe.net, transformer=SMALLER))


def drops(recipe: Recipe) -> Recipe:
    return replace(recipe, conditioning=replace(recipe.conditioning, dropout=DROPOUT))


def drops_together(recipe: Recipe) -> Recipe:
    conditioning = replace(recipe.conditioning, dropout=DROPOUT, dropped="together")
    return replace(recipe, conditioning=conditioning)


def with_labels_by(recipe: Recipe, enters: Literal["adaln", "tokens"]) -> Recipe:
    """Labels modulate all norms, or are tokens before those of the picture."""
    return replace(recipe, conditioning=replace(recipe.conditioning, enters=enters))


def apart(recipe: Recipe) -> Recipe:
    return replace(recipe, apart=True)


def longer(recipe: Recipe) -> Recipe:
    """At full scale; other scales keep their own number of updates, and as many checkpoints."""
    steps = LONGER if recipe.train.steps == CHECKPOINTS[-1] else recipe.train.steps
    each = LONGER // EVERY
    later = tuple(round(steps * k / each) for k in range(1, each + 1))
    evaluation = replace(recipe.evaluation, checkpoints=(*CHECKPOINTS[:2], *later), keep_last=4)
    return replace(recipe, train=replace(recipe.train, steps=steps), evaluation=evaluation)


def trained(recipe: Recipe, **changes: Any) -> Recipe:
    return replace(recipe, train=replace(recipe.train, **changes))


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


def cool(recipe: Recipe) -> Recipe:
    """Means of components in place of draws from them, whose scales the floor makes too large."""
    if not (isinstance(recipe.objective, Masked) and isinstance(recipe.objective.head, Mixture)):
        raise UsageError("cool: GIVT alone draws from a mixture")
    head = replace(recipe.objective.head, temperature=0.0)
    return replace(recipe, objective=replace(recipe.objective, head=head))


def with_codes(recipe: Recipe, codes: Bottleneck) -> Recipe:
    if not isinstance(recipe.tokenizer, Autoencoder):
        raise UsageError(f"{recipe.tokenizer.name}: a tokenizer that learns nothing has no codes")
    return replace(recipe, tokenizer=replace(recipe.tokenizer, bottleneck=codes))


def more_codes(recipe: Recipe) -> Recipe:
    return with_codes(recipe, VQ(1024))


def wide_codes(recipe: Recipe) -> Recipe:
    return with_codes(recipe, replace(recipe.tokenizer.bottleneck, dim=128))


def grid_codes(recipe: Recipe) -> Recipe:
    return with_codes(recipe, FSQ())


CHANGES = {
    "dropout": drops,
    "guidance": drops_together,
    "apart": apart,
    "longer": longer,
    "decayed": partial(trained, decay="linear"),
    "lr 3e-4": partial(trained, lr=3e-4),
    "lr 1e-3": partial(trained, lr=1e-3),
    "small": small,
    "adaln": partial(with_labels_by, enters="adaln"),
    "tokens": partial(with_labels_by, enters="tokens"),
    "averaged": partial(trained, ema=0.999),
    "clipped": partial(trained, clip=1.0),
    "ddpm": ddpm,
    "weak signal": weak_signal,
    "cool": cool,
    "1024 codes": more_codes,
    "128 dims": wide_codes,
    "fsq": grid_codes,
}
"""What may stand after a family's name, and what it changes."""


@config("settings/calibrated")
class Calibrated:
    """`recipe` is DiT's, `net` of the masked families; each has its own head."""

    recipe: Recipe = field(default_factory=Recipe)
    net: TransformerConfig = SMALL
    maskgit: Categorical = field(default_factory=Categorical)
    givt: Mixture = field(default_factory=lambda: Mixture(floor=WIDE, snap=True))
    mar: Denoising = field(default_factory=Denoising)

    def known(self) -> dict[str, Recipe]:
        """Every family, unchanged; on VAE latents too, unless the tokenizer learns none."""
        dit = self.recipe
        evaluation = dit.evaluation
        sure = replace(evaluation, decoding=replace(evaluation.decoding, order="confidence"))
        givt = replace(self.masked(self.givt), evaluation=sure)
        families = {
            "maskgit": self.masked(self.maskgit),
            "givt": givt,
            "mar": self.masked(self.mar),
            "dit": dit,
        }
        if not isinstance(dit.tokenizer, Autoencoder):
            return families
        vae = replace(dit.tokenizer, bottleneck=KL(dit.tokenizer.bottleneck.dim))
        free = Masked(replace(self.givt, snap=False))
        return families | {
            "dit on vae": replace(dit, tokenizer=vae),
            "givt on vae": replace(givt, objective=free, tokenizer=vae),
        }

    def masked(self, head: Categorical | Mixture | Denoising) -> Recipe:
        net = replace(self.recipe.net, transformer=self.net)
        return with_labels_by(replace(self.recipe, objective=Masked(head), net=net), "tokens")

    def variant(self, name: str) -> Recipe:
        """A family, then any of CHANGES, as in "maskgit, dropout"."""
        family, *changes = name.split(", ")
        known = self.known()
        if family not in known or not set(changes) <= CHANGES.keys():
            raise UsageError(
                f"variants: {name!r} is none of {', '.join(known)}, with any of "
                f"{', '.join(CHANGES)} after a comma"
            )
        recipe = known[family]
        for change in changes:
            recipe = CHANGES[change](recipe)
        return recipe


def settings(scale: Scale) -> Calibrated:
    if scale == "full":
        base = objectives.full()
        more = replace(base, train=replace(base.train, steps=CHECKPOINTS[-1]))
        return Calibrated(calibrated(more, keep=64))
    base = objectives.laptop() if scale == "laptop" else objectives.smoke()
    net = replace(base.net.transformer, depth=1)
    if scale == "laptop":
        return Calibrated(quick(calibrated(base, keep=32)), net)
    mar = Denoising(steps=2, width=16, depth=1, repeats=1)
    return Calibrated(calibrated(base, keep=4, paper_probes=2), net, mar=mar)


def quick(recipe: Recipe) -> Recipe:
    """Ten times the rate: at 1e-4 small models had learned nothing after 2,000 updates."""
    train = replace(recipe.train, steps=5000, lr=1e-3)
    evaluation = replace(recipe.evaluation, checkpoints=SOON, samples=64)
    return replace(recipe, train=train, evaluation=evaluation)


def calibrated(recipe: Recipe, keep: int, paper_probes: int = 5) -> Recipe:
    """A recipe of `objectives` in the paper's world and training."""
    steps = min(CHECKPOINTS[-1], recipe.train.steps)
    scored: dict[str, Any] = {"checkpoints": CHECKPOINTS, "keep_last": 3}
    return replace(
        recipe,
        world=recipe.world.calibrated(),
        pool=max(1, min(FEW, recipe.pool // 4)),
        conditioning=Conditioning(mode="quantised"),
        train=replace(recipe.train, steps=steps, lr=1e-4, decay="none", clip=0.0, ema=0.0),
        evaluation=replace(recipe.evaluation, keep=keep, paper_probes=paper_probes, **scored),
    )


def curves_of(variants: Iterable[str]) -> dict[str, str]:
    """The paper's curve of each variant whose family it has."""
    families = {variant: variant.partition(", ")[0] for variant in variants}
    return {v: OF_FAMILY[family] for v, family in families.items() if family in OF_FAMILY}
