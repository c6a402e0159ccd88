"""What each part of a sum makes of the objects that it was not told of, on real pictures: see `recombine.evaluate.leakage`.

The rows lie in a folder of their own, beside those of the sum."""

from dataclasses import dataclass

import torch

from recombine.evaluate.leakage import Objects, leakages
from recombine.objectives.process import Denoiser
from recombine.rng import seeded
from recombine.studies.base import Row
from recombine.studies.lab import Measurement
from recombine.studies.scenes.adding import Adding, Addition
from recombine.studies.scenes.judge import short
from recombine.worlds.scenes.scene import Scene

SEEN = 0.5
"""What share of a pixel an object must cover to be looked at there."""


@dataclass(frozen=True)
class Echoing:
    """On the real pictures and at the noise levels of the parts' own measure of locality, with locations as far apart as asked."""

    adding: Adding


@dataclass
class Echoed:
    """The leakage of one sum."""

    sum_of: Addition

    @property
    def config(self) -> Echoing:
        return Echoing(self.sum_of.config)

    def rows(self) -> list[Row]:
        return self.sum_of.lab.measured(Measurement(self.config, self.sum_of.models, self.ready, self.measure))

    def ready(self) -> tuple[Denoiser, Denoiser]:
        return self.sum_of.run.denoiser(), self.sum_of.background()

    def scene(self) -> Scene:
        e = self.sum_of.config.parts.evaluation
        return self.sum_of.judge.placed(e.locality.locations, e.locality.pictures, "leakage", e.spaced)

    def measure(self, both: tuple[Denoiser, Denoiser]) -> list[Row]:
        recipe, scene = self.sum_of.config.parts, self.scene()
        rng = seeded("leakage", device=scene.xy.device)
        locations, times = self.sum_of.judge.locations(scene), recipe.evaluation.locality.times
        found = leakages(*both, recipe.objective.schedule, self.objects(scene), locations, times, rng)
        about = {"kind": "leakage", "step": recipe.train.steps, "locations": recipe.evaluation.locality.locations}
        return [short({**vars(level), "leakage": level.leakage} | about) for level in found]

    def objects(self, scene: Scene) -> Objects:
        world = self.sum_of.config.parts.crowd
        view = world.render(scene)
        without = torch.stack([world.draw(scene.without(j)) for j in range(scene.xy.shape[1])], 1)
        return Objects(2 * view.images - 1, 2 * without - 1, view.visible > SEEN)
