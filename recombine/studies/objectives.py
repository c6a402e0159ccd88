"""Is it the categorical output that keeps a model from composing?

Four families on the same tokens, with the same transformer, condition, optimizer and number of updates; neighbours differ in
one thing. MaskGIT says a category for every hidden token. GIVT says a mixture of Gaussians instead. MAR says it by a small
denoiser per token. DiT hides nothing and denoises all tokens at once. A discrete token is a vector of the codebook, so all
four read and write the same vectors. Paper A, Fig 3: MaskGIT fails at level 2, all others succeed, so the decisive step is
the first. One more thing differs there, as in the families' own decoding: MaskGIT shows its surest tokens first, the others
at random; `--set decoding.order=random` makes them equal. Objects stay near the middle, as they must in the paper, whose
linear probe on pixels is always right; what
happens where they go anywhere is asked in `details`.

Run: `recombine run objectives --scale laptop` (two families, 7 min on two cores), `--scale full` (all four, 3 seeds, on a GPU).
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from recombine.figures import Figure
from recombine.nets.dit import DiTConfig
from recombine.nets.transformer import TransformerConfig
from recombine.objectives.base import Objective
from recombine.objectives.diffusion import Diffusion
from recombine.objectives.heads import Categorical, Denoising, Mixture
from recombine.objectives.masked import Decoding, Masked
from recombine.objectives.solvers import Euler, Heun
from recombine.studies import listening, training_figures
from recombine.studies.base import Claim, Judgement, Row, Rows, Scale, Study, about
from recombine.studies.lab import Lab
from recombine.studies.levels import clear, gain, judged, level_mean, probe_of
from recombine.studies.recipe import Evaluation, Recipe
from recombine.studies.runs import compute
from recombine.tokenizers.autoencoder import Autoencoder
from recombine.tokenizers.bottlenecks import VQ
from recombine.train.fit import TrainConfig
from recombine.worlds.shapes2d import Shapes2D

Family = Literal["maskgit", "givt", "mar", "dit"]
PAPER = {"maskgit": 0.006, "givt": 0.697, "mar": 0.821, "dit": 0.848}
"""Late means of level 2 in the paper's figure 3."""
CURVES = {"maskgit": "maskgit", "givt": "givt", "mar": "mar_token_final", "dit": "diffusion_token"}


@dataclass(frozen=True)
class Objectives:
    """`recipe` is shared by all families; its objective is each one's own, with these heads."""

    recipe: Recipe = field(default_factory=Recipe)
    families: tuple[Family, ...] = ("maskgit", "givt", "mar", "dit")
    maskgit: Categorical = field(default_factory=Categorical)
    givt: Mixture = field(default_factory=Mixture)
    mar: Denoising = field(default_factory=Denoising)
    dit: Diffusion = field(default_factory=Diffusion)

    def __post_init__(self) -> None:
        if self.recipe.objective != Diffusion():
            raise ValueError("recipe.objective: each family has its own; set maskgit, givt, mar or dit")
        if not self.families or len(set(self.families)) < len(self.families):
            raise ValueError('families: one or more of maskgit, givt, mar, dit, each once, as in ["maskgit","dit"]')

    def variants(self) -> dict[str, Recipe]:
        masked = {"maskgit": Masked(self.maskgit), "givt": Masked(self.givt), "mar": Masked(self.mar)}
        objectives: dict[str, Objective] = masked | {"dit": self.dit}
        return {name: replace(self.recipe, objective=objectives[name]) for name in self.families}


def settings(scale: Scale) -> Objectives:
    if scale == "smoke":
        return Objectives(smoke(), mar=Denoising(steps=2, width=16, depth=1, repeats=1))
    return Objectives(full()) if scale == "full" else Objectives(laptop(), ("maskgit", "dit"))


def smoke() -> Recipe:
    net = DiTConfig(TransformerConfig(depth=2, width=32, heads=2), patch=1)
    train = TrainConfig(steps=8, batch=16, warmup=2, log_every=2)
    evaluation = Evaluation((0, 4), 8, Euler(2), probe_steps=20, decoding=Decoding(steps=3))
    tokenizer = Autoencoder(VQ(size=16, dim=4), width=8, steps=8, batch=16)
    return Recipe(net=net, tokenizer=tokenizer, train=train, pool=16, evaluation=evaluation)


def laptop() -> Recipe:
    net = DiTConfig(TransformerConfig(depth=3, width=96, heads=4), patch=1)
    train = TrainConfig(steps=2000, batch=32, lr=2e-3, warmup=50, betas=(0.9, 0.95), ema=0.99)
    world = Shapes2D(size=20, wander=0.3)
    tokenizer = Autoencoder(VQ(), width=32, fine=0, steps=1000, batch=16, lr=4e-3)
    evaluation = Evaluation(9, 32, Euler(12), probe_steps=800)
    return Recipe(world=world, tokenizer=tokenizer, net=net, train=train, evaluation=evaluation)


def full() -> Recipe:
    train = TrainConfig(steps=5000, batch=256, lr=5e-4, precision="bfloat16")
    evaluation = Evaluation(14, 256, Heun(25), probe_steps=1200)
    world, tokenizer, net = Shapes2D(wander=0.3), Autoencoder(VQ()), DiTConfig(patch=1)
    return Recipe(world=world, tokenizer=tokenizer, net=net, train=train, pool=60_000, evaluation=evaluation)


def run(settings: Objectives, lab: Lab) -> list[Row]:
    return compute(settings.variants(), lab)


def judge_maskgit(rows: Rows) -> Judgement:
    """It must fail by itself: not for want of training, nor for a tokenizer or a task at which everything fails."""
    found, measured = judged(rows, {k: PAPER[k] for k in ("maskgit", "dit")})
    limit = level_mean(rows.where(kind="ceiling", variant="maskgit", probe=probe_of(rows)), 2)
    fails = found["maskgit", 2].mean <= 0.15
    fair = found["maskgit", 0].mean >= 0.8 and found["dit", 2].mean >= 0.5 and limit >= 0.9
    measured["tokenizer's ceiling at level 2"] = limit
    return Judgement((fails and fair) or ("partly" if fails else False), measured, found["maskgit", 2].interval)


def judge_head(rows: Rows) -> Judgement:
    found, measured = judged(rows, {k: PAPER[k] for k in ("maskgit", "givt")})
    lift = gain(found["givt", 2], found["maskgit", 2])
    return Judgement(clear(lift, 0.5) or ("partly" if lift.mean >= 0.2 else False), measured, lift.interval)


def judge_continuous(rows: Rows) -> Judgement:
    found, measured = judged(rows, {k: PAPER[k] for k in ("mar", "dit")})
    passed = [found[k, 2].mean >= 0.75 for k in ("mar", "dit")]
    return Judgement(all(passed) or ("partly" if any(passed) else False), measured, found["mar", 2].interval)


def judge_listening(rows: Rows) -> Judgement:
    """A correlation must be there both over all checkpoints and between models at the end, for one of the measures, and the
    other must not say the opposite. Within a family it is shown beside them: families differ in more than how they listen."""
    found, measured, signs = listening.points(rows), {}, []
    for name in listening.MEASURES:
        values = [listening.rank_correlation(p, name) for p in (found, listening.at_the_end(found))]
        measured |= {f"{name}, {w}": v for w, v in zip(("all checkpoints", "at the end"), values, strict=True)}
        signs.append(1 if min(values) >= 0.5 else -1 if max(values) <= -0.5 else 0)
    for name in listening.MEASURES:
        measured |= {f"{name}, within {v}": r for v, r in listening.within(found, name).items()}
    holds = (max(signs) > 0 and min(signs) >= 0) or ("partly" if max(signs) > 0 else False)
    return Judgement(holds, measured | {"points": len(found)})


def draw(rows: Rows, folder: Path) -> list[Figure]:
    return training_figures.draw(rows, folder) + listening.draw(rows, folder)


def describe(settings: Objectives) -> dict[str, Any]:
    return settings.recipe.facts() | {"paper_curve": {k: CURVES[k] for k in settings.families}}


STUDY = Study(
    name="objectives",
    question="Is it the categorical output that keeps a model from composing?",
    paper="A, Fig 3",
    about=about(__doc__),
    cost={"smoke": "20 s, one core", "laptop": "7 min, two cores", "full": "15 min (estimate), one H200, 3 seeds"},
    settings=settings,
    compute=run,
    claims=(
        Claim(
            id="D1",
            paper="A, Fig 3a",
            statement="MaskGIT, which predicts categories, fails at level 2.",
            expected="level 2 <= 0.15 and seen >= 0.8, late means by the judge (paper: 0.006, 0.866); DiT >= 0.5, the "
            "tokenizer >= 0.9",
            judge=judge_maskgit,
            trained=True,
            interval_of="of MaskGIT at level 2",
        ),
        Claim(
            id="D2",
            paper="A, Fig 3b",
            statement="Replacing only the categorical head by a mixture of Gaussians lifts level 2.",
            expected="level 2 of GIVT - level 2 of MaskGIT >= 0.5, late means by the judge (paper: 0.697 against 0.006)",
            judge=judge_head,
            trained=True,
            interval_of="of the lift",
        ),
        Claim(
            id="D3",
            paper="A, Fig 3c and d",
            statement="MAR and DiT succeed too: masking against denoising does not decide it.",
            expected="level 2 >= 0.75 for both, late means by the judge (paper: 0.821, 0.848)",
            judge=judge_continuous,
            trained=True,
            interval_of="of MAR at level 2",
        ),
        Claim(
            id="B1",
            paper="beyond the papers",
            statement="The more local a model's dependence on its conditions, the better it composes, across objectives and "
            "checkpoints.",
            expected="rank correlation of sparse or additive dependence with level 2 >= 0.5, over all checkpoints and at the "
            "end, and the other not <= -0.5",
            judge=judge_listening,
            trained=True,
        ),
    ),
    draw=draw,
    describe=describe,
    stops=True,
)
