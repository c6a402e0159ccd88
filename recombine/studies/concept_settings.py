"""What `concept-space` trains: lines of worlds in which the colour signal grows, and two side
experiments."""

from dataclasses import field, replace
from typing import Literal

from recombine.config import config
from recombine.nets.conditioning import Conditioning
from recombine.nets.dit import DiTConfig
from recombine.nets.net_config import NetConfig
from recombine.nets.transformer import TransformerConfig
from recombine.nets.unet import UNetConfig
from recombine.objectives.diffusion import Diffusion
from recombine.objectives.solvers import Euler
from recombine.runs.concepts import ConceptRun, Prompting
from recombine.runs.recipe import Evaluation, Recipe, spaced
from recombine.studies.study import Scale
from recombine.train.fit import TrainConfig
from recombine.worlds.circles import Circles

Mode = Literal["continuous", "quantised"]


@config("concept-space/line")
class Line:
    """One network with one embedding scale, in worlds that differ in the colour signal alone.
    `steps`: how long it is trained, with as many checkpoints as the recipe has; 0 = as long as the
    recipe says."""

    net: NetConfig
    colors: tuple[float, ...]
    size: float = 0.4
    embedding_scale: Literal["raw", "balanced"] = "raw"
    steps: int = 0

    def trained(self, recipe: Recipe) -> Recipe:
        conditioning = Conditioning(embedding_scale=self.embedding_scale)
        recipe = replace(recipe, net=self.net, conditioning=conditioning)
        if not self.steps:
            return recipe
        given = recipe.evaluation.checkpoints
        checkpoints = spaced(self.steps, given if isinstance(given, int) else len(given))
        evaluation = replace(recipe.evaluation, checkpoints=checkpoints)
        return replace(recipe, train=replace(recipe.train, steps=self.steps), evaluation=evaluation)


@config("settings/concept-space")
class ConceptSpace:
    """`lines`: the first is the main one. `weak`: its colour signals at which the dip is measured
    and other methods of prompting are tried, over `extra_seeds` more seeds. `masked`: shares of
    captions that leave out the colour, at the colour signal `masked_color` of the main line, for
    models conditioned on values, as everywhere else, and on classes. `background`: the signal of a
    third factor, with the colour signal `background_color`; 0 = left out."""

    recipe: Recipe
    lines: tuple[Line, ...]
    weak: tuple[float, ...]
    extra_seeds: int = 0
    prompting: Prompting = field(default_factory=Prompting)
    masked: tuple[float, ...] = ()
    masked_by: tuple[Mode, ...] = ("continuous", "quantised")
    masked_color: float = 0.3
    background: float = 0.0
    background_color: float = 0.4

    def __post_init__(self) -> None:
        if not self.lines or not set(self.weak) <= set(self.lines[0].colors):
            raise ValueError(f"weak={list(self.weak)}: must be colours of the first line")
        recipe, usual = self.recipe, Circles()
        if not isinstance(recipe.world, Circles) or not isinstance(recipe.objective, Diffusion):
            raise ValueError(
                "recipe: this study trains diffusion on Circles; set no other world or objective"
            )
        signals = ("color_signal", "size_signal", "background_signal")
        if any(getattr(recipe.world, s) != getattr(usual, s) for s in signals):
            raise ValueError(
                "recipe.world: the study sets signals; change lines, background or masked_color"
            )
        if (recipe.net, recipe.conditioning) != (Recipe().net, Recipe().conditioning):
            raise ValueError("recipe: net and conditioning are those of each line; change lines")

    def run(self, line: Line, color: float, background: float = 0.0) -> ConceptRun:
        """A line at one colour signal; with other methods of prompting where the main line is
        weak."""
        signals = {"color_signal": color, "size_signal": line.size, "background_signal": background}
        recipe = replace(line.trained(self.recipe), world=replace(self.recipe.world, **signals))
        is_weak = line is self.lines[0] and color in self.weak and not background
        return ConceptRun(recipe, prompting=self.prompting if is_weak else None)

    def with_masked_captions(self, mode: Mode) -> list[ConceptRun]:
        """Conditioned on values, the run without masked captions is in the main line."""
        full = self.run(self.lines[0], self.masked_color).recipe
        recipe = replace(full, conditioning=replace(full.conditioning, mode=mode))
        shares = (0.0, *self.masked) if self.masked and mode == "quantised" else self.masked
        return [ConceptRun(recipe, masked=share) for share in shares]

    def variants(self) -> list[tuple[ConceptRun, int]]:
        """All runs with seed 0, each with how many seeds it gets beyond the study's."""
        lines = [self.run(line, color) for line in self.lines for color in line.colors]
        runs = [(run, self.extra_seeds if run.prompting else 0) for run in lines]
        runs += [(run, 0) for mode in self.masked_by for run in self.with_masked_captions(mode)]
        if self.background:
            runs.append((self.run(self.lines[0], self.background_color, self.background), 0))
        return runs

    def is_main(self, run: ConceptRun) -> bool:
        """Whether it is a run of the first line."""
        main = self.lines[0]
        return not run.masked and run.name in {self.run(main, c).name for c in main.colors}


def settings(scale: Scale) -> ConceptSpace:
    return {"smoke": smoke, "laptop": laptop, "full": full}[scale]()


def smoke() -> ConceptSpace:
    train = TrainConfig(steps=8, batch=16, warmup=2, log_every=4)
    evaluation = Evaluation((0, 2, 4, 6), 8, Euler(2), probe_steps=10, real=64)
    recipe = Recipe(Circles(size=16), train=train, pool=16, evaluation=evaluation)
    unet, dit = UNetConfig((8, 16), 1, 2, 16), DiTConfig(TransformerConfig(1, 32, 2))
    lines = (Line(unet, (0.1, 0.3)), Line(dit, (0.3,)))
    prompting = Prompting((1.0,), (1.0,), patches=2)
    return ConceptSpace(
        recipe, lines, (0.1,), prompting=prompting, masked=(0.5, 1.0), background=0.3
    )


def laptop() -> ConceptSpace:
    """Small pictures, a small transformer (convolutions are slow on a CPU), three colour signals,
    and the weakest of them embedded at the same scale as size."""
    steps, net = 1600, DiTConfig(TransformerConfig(3, 64, 4))
    train = TrainConfig(
        steps, batch=32, lr=1e-3, warmup=50, decay="none", betas=(0.9, 0.95), ema=0.98
    )
    evaluation = Evaluation(spaced(steps, 25), 32, Euler(12), real=512)
    recipe = Recipe(Circles(size=16, wander=0.5), train=train, evaluation=evaluation)
    lines = (Line(net, (0.12, 0.3, 0.8)), Line(net, (0.12,), embedding_scale="balanced"))
    prompting = Prompting((1.0, 2.0, 4.0), (1.0, 2.0, 4.0))
    return ConceptSpace(recipe, lines, (0.12,), prompting=prompting)


def full() -> ConceptSpace:
    """A small learning rate and a short warm-up: at 1e-3 all happens within 300 steps, the warm-up
    among them."""
    steps, longer = 1500, 4000
    train = TrainConfig(
        steps,
        batch=128,
        lr=4e-4,
        warmup=20,
        decay="none",
        ema=0.98,
        precision="bfloat16",
        log_every=100,
    )
    evaluation = Evaluation(spaced(steps, 60), 64, Euler(12), probe_steps=800, real=512)
    recipe = Recipe(Circles(), train=train, evaluation=evaluation)
    unet, dit = UNetConfig(), DiTConfig(TransformerConfig(4, 192, 6))
    lines = (
        Line(unet, (0.1, 0.15, 0.2, 0.3, 0.5, 0.8)),
        Line(dit, (0.1, 0.2, 0.4, 0.8), steps=longer),
        Line(dit, (0.1, 0.2, 0.4), embedding_scale="balanced", steps=longer),
        Line(unet, (0.1, 0.2, 0.4), size=0.2),
        Line(unet, (0.15,), embedding_scale="balanced"),
    )
    weak = (0.1, 0.15, 0.2)
    return ConceptSpace(recipe, lines, weak, 2, masked=(0.3, 0.6, 1.0), background=0.3)
