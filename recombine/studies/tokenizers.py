"""Does it matter how pictures become tokens?

A tokenizer turns a 28x28 picture into a 7x7 grid: of continuous vectors (VAE), of vectors from a learned table (VQ) or from a
fixed grid (FSQ). First question: a DiT is trained on VAE and on VQ latents, all else equal. Paper A, Fig 2: both compose. MAR
and GIVT, which read and write vectors as well, are trained on VAE latents, too: the models they come from have such. Second
question, which the paper leaves open: what can the tokenizer itself draw? Real pictures of every composition are encoded,
decoded and judged by the same probes: no model on top can do better. A tokenizer is trained on all compositions by default;
trained on the seen ones alone, those with a codebook fail before any model does.

Run: `recombine run tokenizers --scale laptop` (on two cores), `--scale full` (3 seeds, on a GPU).
"""

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from recombine.objectives.token_heads import Denoising, Mixture
from recombine.objectives.masked import Masked
from recombine.studies import objectives, tokenizer_figures, training_figures
from recombine.studies.base import Claim, Judgement, Row, Rows, Scale, Study, about
from recombine.studies.grounds import ceilings
from recombine.studies.lab import Lab
from recombine.studies.levels import judged, level_mean
from recombine.studies.recipe import Recipe
from recombine.studies.runs import compute
from recombine.tokenizers.autoencoder import Autoencoder
from recombine.tokenizers.bottlenecks import FSQ, KL, Bottleneck

PAPER = {"vae": 0.834, "vq": 0.848}
"""Late means of level 2 in the paper's figure 2."""
CURVES = {"vae": "diffusion_vae", "vq": "diffusion_token"}
KINDS = ("vae", "vq", "fsq")


@dataclass(frozen=True)
class Tokenizers:
    """`recipe` is shared by all models; its tokenizer is the VQ one. The others differ from it in their bottleneck alone.
    `masked`: the families that are trained on VAE latents beside DiT."""

    recipe: Recipe = field(default_factory=objectives.full)
    masked: tuple[Literal["givt", "mar"], ...] = ("givt", "mar")
    givt: Mixture = field(default_factory=Mixture)
    mar: Denoising = field(default_factory=Denoising)
    vae: Bottleneck = field(default_factory=KL)
    fsq: Bottleneck = field(default_factory=FSQ)

    def __post_init__(self) -> None:
        if not isinstance(self.recipe.tokenizer, Autoencoder):
            raise ValueError("recipe.tokenizer: this study needs a learned one")

    def tokenizers(self) -> dict[str, Autoencoder]:
        vq = self.recipe.tokenizer
        return {"vae": replace(vq, bottleneck=self.vae), "vq": vq, "fsq": replace(vq, bottleneck=self.fsq)}

    def variants(self) -> dict[str, Recipe]:
        made = {name: replace(self.recipe, tokenizer=self.tokenizers()[name]) for name in ("vae", "vq")}
        heads = {"givt": self.givt, "mar": self.mar}
        return made | {on_vae(f): replace(made["vae"], objective=Masked(heads[f])) for f in self.masked}


def on_vae(family: str) -> str:
    return f"{family} on vae"


def settings(scale: Scale) -> Tokenizers:
    shared = objectives.settings(scale)
    return Tokenizers(shared.recipe, () if scale == "laptop" else ("givt", "mar"), shared.givt, shared.mar)


def run(settings: Tokenizers, lab: Lab) -> list[Row]:
    return compute(settings.variants(), lab) + list(ceilings(kinds(settings, lab.seeds), lab))


def kinds(settings: Tokenizers, seeds: int) -> dict[tuple[str, int], Recipe]:
    """All tokenizers whose ceiling is measured: kinds x what it was trained on x seeds."""
    made = {
        f"{name}, {data}": replace(settings.recipe, tokenizer=replace(tokenizer, data=data))
        for name, tokenizer in settings.tokenizers().items()
        for data in ("all", "seen")
    }
    return {(name, seed): recipe.with_seed(seed) for name, recipe in made.items() for seed in range(seeds)}


def judge_latents(rows: Rows) -> Judgement:
    found, measured = judged(rows, PAPER)
    vae, vq = found["vae", 2].mean, found["vq", 2].mean
    holds = min(vae, vq) >= 0.8 and abs(vae - vq) <= 0.15
    return Judgement(holds or ("partly" if max(vae, vq) >= 0.8 else False), measured, found["vq", 2].interval)


def judge_masked(rows: Rows) -> Judgement:
    """The paper has these families on VQ latents only."""
    found, measured = judged(rows, dict.fromkeys((on_vae("givt"), on_vae("mar"), "vae")))
    both = [found[on_vae(f), 2] for f in ("givt", "mar")]
    passed = [one.mean >= 0.75 for one in both]
    lower = min(both, key=lambda one: one.mean)
    return Judgement(all(passed) or ("partly" if any(passed) else False), measured, lower.interval)


def judge_ceiling(rows: Rows) -> Judgement:
    """By the strict reader where there is one: a blurred picture is no reconstruction."""
    limit = rows.where(kind="ceiling")
    probe = "oracle" if limit.where(probe="oracle") else "open-set"
    measured: dict[str, float] = {}
    for level in (2, 1, 0):
        for name in KINDS:
            for data in ("all", "seen"):
                some = limit.where(variant=f"{name}, {data}", probe=probe)
                measured[f"{name}, {data}, level {level}"] = level_mean(some, level)
    high = [measured[f"{k}, all, level 2"] >= 0.9 for k in KINDS]
    capped = [measured[f"{k}, all, level 2"] - measured[f"{k}, seen, level 2"] >= 0.2 for k in KINDS]
    return Judgement(all(high + capped) or ("partly" if any(capped) else False), measured | {"probe": probe})


def describe(settings: Tokenizers) -> dict[str, Any]:
    return settings.recipe.facts() | {"paper_curve": CURVES}


STUDY = Study(
    name="tokenizers",
    question="Does it matter how pictures become tokens?",
    paper="A, Fig 2",
    about=about(__doc__),
    cost={
        "smoke": "30 s, one core",
        "laptop": "8 min (estimate), two cores",
        "full": "20 min (estimate), one H200, 3 seeds",
    },
    settings=settings,
    compute=run,
    claims=(
        Claim(
            id="D4",
            paper="A, Fig 2",
            statement="On VAE and on VQ latents alike, a DiT reaches level 2.",
            expected="level 2 >= 0.8 for both and no more than 0.15 apart, late means by the judge (paper: 0.834, 0.848)",
            judge=judge_latents,
            trained=True,
            interval_of="of VQ at level 2",
        ),
        Claim(
            id="B12",
            paper="beyond the papers",
            statement="On VAE latents masked prediction of continuous tokens composes, too.",
            expected="level 2 >= 0.75 for GIVT and MAR on VAE latents, late means by the judge; DiT on them beside it",
            judge=judge_masked,
            trained=True,
            interval_of="of the lower one at level 2",
        ),
        Claim(
            id="D10",
            paper="A, left open",
            statement="A tokenizer that saw only the seen compositions cannot draw the others: it caps every model on top.",
            expected="reconstructions at level 2, by the strict reader: >= 0.9 trained on all compositions, at least 0.2 lower "
            "on the seen alone",
            judge=judge_ceiling,
            trained=True,
        ),
    ),
    draw=lambda rows, folder: [*training_figures.draw(rows, folder), tokenizer_figures.ceilings(rows, folder)],
    describe=describe,
    stops=True,
)
