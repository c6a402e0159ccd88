"""Models told of one place at a time, their scores added over a background: pictures for every number of locations, counted.

Its rows lie in a folder of their own, so that they can be shown again when the models' weights are gone."""

from dataclasses import dataclass, replace
from functools import cached_property

from jaxtyping import Float
from torch import Tensor

from recombine.evaluate.counting import curve, match, nearness
from recombine.objectives.compose import OneByOne
from recombine.objectives.process import Denoiser
from recombine.store import RunFolder
from recombine.studies.base import Row
from recombine.studies.lab import Lab, Measurement
from recombine.studies.scenes.judge import Judge, short
from recombine.studies.scenes.pictures import crossed
from recombine.studies.scenes.recipe import SceneRecipe
from recombine.studies.scenes.runs import COLUMNS, NEAR, SceneRun
from recombine.studies.sheets import write_sheet
from recombine.worlds.layout import Layout

SHEET = "added.png"


@dataclass(frozen=True)
class Adding:
    """The model that is told the layout, and the one that gives the background."""

    parts: SceneRecipe
    background: SceneRecipe

    def at(self, seed: int) -> "Adding":
        """The same with other models, trained from `seed` on."""
        return Adding(*(replace(r, seed=r.seed + seed) for r in (self.parts, self.background)))


@dataclass
class Addition:
    """One such sum on one runtime."""

    config: Adding
    lab: Lab
    judge: Judge

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.lab.out, self.config)

    @cached_property
    def run(self) -> SceneRun:
        return self.trained(self.config.parts)

    def trained(self, recipe: SceneRecipe) -> SceneRun:
        """From disk, where it is done."""
        run = SceneRun(recipe, self.lab, self.judge)
        run.train()
        run.net.eval()
        return run

    def background(self) -> Denoiser:
        own = self.config.background == self.config.parts
        return (self.run if own else self.trained(self.config.background)).denoiser()

    def denoiser(self) -> Denoiser:
        return OneByOne(self.run.denoiser(), self.background())

    @property
    def models(self) -> tuple[RunFolder, ...]:
        """What it is made of."""
        both = dict.fromkeys((self.config.parts, self.config.background))
        return tuple(SceneRun(r, self.lab, self.judge).folder for r in both)

    def sample(self, locations: Layout, denoiser: Denoiser | None = None) -> Float[Tensor, "b 3 h w"]:
        """From the noise that the model alone is given. Not in bfloat16: what is rounded off would be added up, too."""
        count = self.run.recipe.evaluation.samples
        return self.run.sample(locations, self.run.noise(count), denoiser or self.denoiser())

    def rows(self) -> list[Row]:
        """Counted now, or found on disk."""
        return self.lab.measured(Measurement(self.config, (*self.models, self.judge.folder), self.ready, self.measure))

    def ready(self) -> Denoiser:
        self.judge.ready()
        return self.denoiser()

    def measure(self, denoiser: Denoiser) -> list[Row]:
        """What is drawn for every number of locations, counted; a sheet of pictures on disk."""
        e = self.config.parts.evaluation
        locations = self.judge.asked(e.samples)
        images = self.sample(locations, denoiser)
        found = self.judge.detector(images)
        about = {"step": self.config.parts.train.steps}
        rows = [short(row) | about for row in curve(found, locations, e.radius, "added")]
        near = [short(row) | about | {"kind": "added, near"} for row in nearness(found, locations, e.radius, NEAR)]
        if self.lab.runtime.rank == 0:
            drawn = crossed(images, locations, match(found, locations, e.radius)[0])
            write_sheet(self.folder.path / "samples" / SHEET, drawn.unflatten(0, (len(rows), -1))[:, :COLUMNS])
        return rows + near
