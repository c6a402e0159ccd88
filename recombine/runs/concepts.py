"""Models in concept space as runs: a recipe whose samples are placed in concept space at every
checkpoint, and a check of the probe that places them."""

from dataclasses import field
from shutil import rmtree

from recombine.config import ALWAYS, config
from recombine.metrics.probes import Oracle, real_accuracy
from recombine.nets.net_config import NetConfig
from recombine.nets.unet import UNetConfig
from recombine.pipeline.job import Task, Work
from recombine.runs.concept_model import ConceptModel, Prompting
from recombine.runs.probes import ProbeRun
from recombine.runs.recipe import Recipe
from recombine.runs.tokenizers import tokenizer_runs
from recombine.store import Row
from recombine.train.loop import train
from recombine.worlds.circles import Circles
from recombine.worlds.factors import Composition, Split

VERSION = 1
"""Rises when a change to the code changes the rows."""


@config("run/concepts")
class ConceptRun(Task):
    """A recipe in a world of circles. `masked`: the share of small red training pictures whose
    caption leaves out the colour."""

    noun = "model"
    recipe: Recipe
    masked: float = 0.0
    prompting: Prompting | None = None
    version: int = field(default=VERSION, metadata=ALWAYS)

    def __post_init__(self) -> None:
        if not 0 <= self.masked <= 1:
            raise ValueError(f"masked={self.masked}: a share lies between 0 and 1")

    @property
    def world(self) -> Circles:
        return self.recipe.world

    @property
    def probe(self) -> ProbeRun:
        return cnn_probe(self.world, self.recipe.evaluation.probe_steps)

    def parents(self) -> tuple[Task, ...]:
        r = self.recipe
        return (*tokenizer_runs(r.tokenizer, r.tokenizer_pictures, r.split), self.probe)

    def check(self) -> None:
        self.recipe.check()

    @property
    def cost(self) -> float:
        return 10.0 * self.recipe.train.steps

    @property
    def name(self) -> str:
        """What distinguishes it from the other variants of its study."""
        w, c = self.world, self.recipe.conditioning
        words = [net_name(self.recipe.net), f"color {w.color_signal:g}, size {w.size_signal:g}"]
        words += [f"background {w.background_signal:g}"] if w.background_signal else []
        words += ["balanced"] if c.embedding_scale == "balanced" else []
        words += ["by class"] if c.mode == "quantised" else []
        words += [f"{self.masked:.0%} masked"] if self.masked else []
        return ", ".join(words)

    def run(self, work: Work) -> None:
        r, model = (
            self.recipe,
            ConceptModel(self.recipe, self.masked, self.prompting, self.probe, work),
        )
        train(
            model.net, r.objective.loss, model.batch, r.train, work.folder, work.runtime,
            model.observe, model.checkpoints, title=work.title, check=work.check,
        )  # fmt: skip
        rmtree(model.kept(0).parent, ignore_errors=True)


def cnn_probe(world: Circles, steps: int) -> ProbeRun:
    """The probe whose probabilities are the coordinates of concept space."""
    return ProbeRun.of(world, "cnn", steps)


def net_name(net: NetConfig) -> str:
    return "U-Net" if isinstance(net, UNetConfig) else "DiT"


@config("run/concept-probe-check")
class ConceptProbeCheck(Task):
    """What the CNN probe and the oracle of a world are worth on `count` real pictures of every
    composition."""

    noun = "probe check"
    world: Circles
    steps: int
    seen: tuple[Composition, ...]
    count: int
    version: int = field(default=VERSION, metadata=ALWAYS)

    def parents(self) -> tuple[Task, ...]:
        return (cnn_probe(self.world, self.steps),)

    def run(self, work: Work) -> list[Row]:
        probes = (work.open(cnn_probe(self.world, self.steps)), Oracle(self.world))
        split, device = Split(self.seen), work.runtime.device
        rows = [r for p in probes for r in real_accuracy(p, self.world, split, self.count, device)]
        return [r | ({"kind": "probe3"} if self.world.background_signal else {}) for r in rows]
