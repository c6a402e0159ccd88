"""What is trained: lines of worlds in which the colour signal grows, and three side experiments."""

from dataclasses import dataclass, field, replace
from typing import Literal

from recombine.nets.net_config import NetConfig
from recombine.nets.conditioning import Conditioning
from recombine.nets.dit import DiTConfig
from recombine.nets.transformer import TransformerConfig
from recombine.nets.unet import UNetConfig
from recombine.objectives.diffusion import Diffusion
from recombine.objectives.solvers import Euler
from recombine.studies.base import Scale
from recombine.studies.recipe import Evaluation, Recipe, spaced
from recombine.train.fit import TrainConfig
from recombine.worlds.circles import Circles


@dataclass(frozen=True)
class Asking:
    """Ways of asking for the unseen composition other than plainly, at every `every`-th checkpoint: strengths of
    overprompting and of steering. `patches`: at how many checkpoints an embedding is exchanged with the last one's."""

    over: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    steer: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    every: int = 2
    patches: int = 8

    def __post_init__(self) -> None:
        if self.every < 1 or self.patches < 0:
            raise ValueError("every must be positive, patches must not be negative")


@dataclass(frozen=True)
class Course:
    """Everything that decides one run. `masked`: the share of red small training pictures whose colour is not told."""

    recipe: Recipe
    masked: float = 0.0
    asking: Asking | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.masked <= 1:
            raise ValueError(f"masked={self.masked}: a share lies between 0 and 1")

    @property
    def world(self) -> Circles:
        return self.recipe.world

    def check(self) -> None:
        self.recipe.check()

    @property
    def name(self) -> str:
        w, parts = (
            self.world,
            [word(self.recipe.net), f"color {self.world.color_signal:g}, size {self.world.size_signal:g}"],
        )
        parts += [f"background {w.background_signal:g}"] if w.background_signal else []
        parts += ["balanced"] if self.recipe.conditioning.signal == "balanced" else []
        parts += ["by class"] if self.recipe.conditioning.mode == "quantised" else []
        return ", ".join(parts + ([f"{self.masked:.0%} masked"] if self.masked else []))


def word(net: NetConfig) -> str:
    return "U-Net" if isinstance(net, UNetConfig) else "DiT"


@dataclass(frozen=True)
class Line:
    """One network, told in one way, in worlds that differ in the colour signal alone. `steps`: how long it is trained, looked
    at as often as the recipe says; 0 = as long as the recipe says."""

    net: NetConfig
    colors: tuple[float, ...]
    size: float = 0.4
    told: Literal["raw", "balanced"] = "raw"
    steps: int = 0

    def trained(self, recipe: Recipe) -> Recipe:
        recipe = replace(recipe, net=self.net, conditioning=Conditioning(signal=self.told))
        if not self.steps:
            return recipe
        often = recipe.evaluation.checkpoints
        looks = spaced(self.steps, often if isinstance(often, int) else len(often))
        train, evaluation = replace(recipe.train, steps=self.steps), replace(recipe.evaluation, checkpoints=looks)
        return replace(recipe, train=train, evaluation=evaluation)


@dataclass(frozen=True)
class ConceptSpace:
    """`lines`: the first is the main one. `weak`: its colour signals at which the dip is judged and the model is also asked
    otherwise, over `extra_seeds` more seeds. `masked`: shares of hidden captions, at the colour signal `masked_color` of the
    main line, with captions that tell values, as everywhere else, and with such that name a class. `background`: the signal
    of a third factor, with the colour signal `background_color`; 0 = left out."""

    recipe: Recipe
    lines: tuple[Line, ...]
    weak: tuple[float, ...]
    extra_seeds: int = 0
    asking: Asking = field(default_factory=Asking)
    masked: tuple[float, ...] = ()
    masked_by: tuple[Literal["continuous", "quantised"], ...] = ("continuous", "quantised")
    masked_color: float = 0.3
    background: float = 0.0
    background_color: float = 0.4

    def __post_init__(self) -> None:
        if not self.lines or not set(self.weak) <= set(self.lines[0].colors):
            raise ValueError(f"weak={list(self.weak)}: must be colours of the first line")
        recipe, usual = self.recipe, Circles()
        if not isinstance(recipe.world, Circles) or not isinstance(recipe.objective, Diffusion):
            raise ValueError("recipe: this study trains diffusion on circles; world and objective must be such")
        signals = ("color_signal", "size_signal", "background_signal")
        if any(getattr(recipe.world, s) != getattr(usual, s) for s in signals):
            raise ValueError("recipe.world: signals are set by the study; change lines, background or masked_color")
        if (recipe.net, recipe.conditioning) != (Recipe().net, Recipe().conditioning):
            raise ValueError("recipe: net and conditioning are those of each line; change lines")

    def course(self, line: Line, color: float, background: float = 0.0) -> Course:
        signals = {"color_signal": color, "size_signal": line.size, "background_signal": background}
        world = replace(self.recipe.world, **signals)
        asked = self.asking if line is self.lines[0] and color in self.weak and not background else None
        return Course(replace(line.trained(self.recipe), world=world), asking=asked)

    def silent(self, mode: Literal["continuous", "quantised"]) -> list[Course]:
        """Courses with hidden captions. GivenEmbedding by values, the one without is in the main line."""
        whole = self.course(self.lines[0], self.masked_color)
        told = replace(whole.recipe, conditioning=replace(whole.recipe.conditioning, mode=mode))
        shares = (0.0, *self.masked) if self.masked and mode == "quantised" else self.masked
        return [Course(told, masked=share) for share in shares]

    def courses(self) -> list[tuple[Course, int]]:
        """All courses, each with how many seeds it gets beyond the lab's."""
        main = self.lines[0]
        found = [(self.course(line, c), 0) for line in self.lines for c in line.colors]
        found = [(course, self.extra_seeds if course.asking else 0) for course, _ in found]
        found += [(course, 0) for mode in self.masked_by for course in self.silent(mode)]
        if self.background:
            found.append((self.course(main, self.background_color, self.background), 0))
        return found


def settings(scale: Scale) -> ConceptSpace:
    return {"smoke": smoke, "laptop": laptop, "full": full}[scale]()


def smoke() -> ConceptSpace:
    train = TrainConfig(steps=8, batch=16, warmup=2, log_every=4)
    recipe = Recipe(
        Circles(size=16), train=train, pool=16, evaluation=Evaluation((0, 2, 4, 6), 8, Euler(2), probe_steps=10)
    )
    lines = (Line(UNetConfig((8, 16), 1, 2, 16), (0.1, 0.3)), Line(DiTConfig(TransformerConfig(1, 32, 2)), (0.3,)))
    asking = Asking((1.0,), (1.0,), patches=2)
    return ConceptSpace(recipe, lines, (0.1,), asking=asking, masked=(0.5, 1.0), background=0.3)


def laptop() -> ConceptSpace:
    """Small pictures, a small transformer (convolutions are slow on a CPU), three colour signals, and the weakest of them
    told as loudly as size."""
    steps = 1600
    train = TrainConfig(steps, batch=32, lr=1e-3, warmup=50, decay="none", betas=(0.9, 0.95), ema=0.98)
    recipe = Recipe(Circles(size=16, wander=0.5), train=train, evaluation=Evaluation(spaced(steps, 25), 32, Euler(12)))
    net = DiTConfig(TransformerConfig(3, 64, 4))
    lines = (Line(net, (0.12, 0.3, 0.8)), Line(net, (0.12,), told="balanced"))
    return ConceptSpace(recipe, lines, (0.12,), asking=Asking((1.0, 2.0, 4.0), (1.0, 2.0, 4.0)))


def full() -> ConceptSpace:
    """A small learning rate and a short warm-up: at 1e-3 all happens within 300 steps, the warm-up among them."""
    steps, longer = 1500, 4000
    train = TrainConfig(
        steps, batch=128, lr=4e-4, warmup=20, decay="none", ema=0.98, precision="bfloat16", log_every=100
    )
    evaluation = Evaluation(spaced(steps, 60), 64, Euler(12), probe_steps=800)
    recipe = Recipe(Circles(), train=train, evaluation=evaluation)
    unet, dit = UNetConfig(), DiTConfig(TransformerConfig(4, 192, 6))
    lines = (
        Line(unet, (0.1, 0.15, 0.2, 0.3, 0.5, 0.8)),
        Line(dit, (0.1, 0.2, 0.4, 0.8), steps=longer),
        Line(dit, (0.1, 0.2, 0.4), told="balanced", steps=longer),
        Line(unet, (0.1, 0.2, 0.4), size=0.2),
        Line(unet, (0.15,), told="balanced"),
    )
    return ConceptSpace(recipe, lines, (0.1, 0.15, 0.2), 2, masked=(0.3, 0.6, 1.0), background=0.3)
