"""Scores of scene models added over a background: samples for every number of locations, counted,
and the leakage, which needs no samples."""

from dataclasses import field

import torch

from recombine.config import ALWAYS, config
from recombine.files import rounded
from recombine.metrics.counting import curve, match, nearness
from recombine.metrics.leakage import Objects, leakages
from recombine.metrics.scene_sheets import crossed
from recombine.metrics.sheets import write_sheet
from recombine.objectives.compose import OneByOne
from recombine.pipeline.job import Task, Work
from recombine.rng import seeded
from recombine.runs.detectors import DetectorRun
from recombine.runs.scene_prompts import Prompts, check_room, locations_of, placed
from recombine.runs.scenes import COLUMNS, NEAR, SceneModel, SceneRun
from recombine.store import Row
from recombine.worlds.scenes.scene import Scene
from recombine.worlds.scenes.scenes import Scenes

SHEET = "added.png"
VISIBLE = 0.5
"""What share of a pixel an object must cover to be measured there."""
VERSION = 3
"""Rises when what is measured of sums changes."""


@config("run/addition")
class AdditionRun(Task):
    """A model conditioned on one location at a time, its scores added over the background of
    another, or its own: samples, counted."""

    noun = "sum of scores"
    parts: SceneRun
    background: SceneRun
    version: int = field(default=VERSION, metadata=ALWAYS)

    def parents(self) -> tuple[Task, ...]:
        models = dict.fromkeys((self.parts, self.background))
        return (*models, DetectorRun.of(self.parts.recipe))

    @property
    def cost(self) -> float:
        return 2.0 * self.parts.recipe.train.steps

    def run(self, work: Work) -> list[Row]:
        """From the noise that the model alone is given. Not in bfloat16: rounding errors would be
        added up, too."""
        recipe, model = self.parts.recipe, work.open(self.parts)
        e, device = recipe.evaluation, work.runtime.device
        denoiser = OneByOne(model.denoiser(), work.open(self.background).denoiser())
        locations = Prompts.of(recipe).layout(device)
        images = model.sample(locations, model.noise(e.samples), denoiser)
        detected = work.open(DetectorRun.of(recipe))(images)
        rows = curve(detected, locations, e.radius, "added", recipe.spare)
        near = nearness(detected, locations, e.radius, NEAR)
        if work.runtime.rank == 0:
            crosses = crossed(images, locations, match(detected, locations, e.radius)[0])
            path = work.folder.path / "samples" / SHEET
            write_sheet(path, crosses.unflatten(0, (len(rows), -1))[:, :COLUMNS])
        rows += [row | {"kind": "added, near"} for row in near]
        return [rounded(row) | {"step": recipe.train.steps} for row in rows]


@config("run/leakage")
class LeakageRun(Task):
    """The leakage of the same sum, on real pictures and at the noise levels at which the parts'
    locality is measured, with locations as far apart as in the prompts. (In the shipped results, of
    November 2026, another sample of the same pictures and noise.)"""

    noun = "leakage"
    parts: SceneRun
    background: SceneRun
    version: int = field(default=VERSION, metadata=ALWAYS)

    def parents(self) -> tuple[Task, ...]:
        return tuple(dict.fromkeys((self.parts, self.background)))

    def check(self) -> None:
        e = self.parts.recipe.evaluation
        check_room(self.parts.recipe.detector_world, e.locality.locations, e.spacing)

    def run(self, work: Work) -> list[Row]:
        recipe, device = self.parts.recipe, work.runtime.device
        models: list[SceneModel] = [work.open(self.parts), work.open(self.background)]
        e, world = recipe.evaluation, recipe.detector_world
        number = e.locality.locations
        scene = placed(world, number, e.locality.pictures, "leakage", device, e.spacing)
        levels = leakages(
            *(model.denoiser() for model in models),
            recipe.objective.schedule,
            objects_of(world, scene),
            locations_of(world, scene),
            e.locality.times,
            seeded("leakage", device=device),
        )
        about = {"kind": "leakage", "step": recipe.train.steps, "locations": number}
        return [rounded({**vars(one), "leakage": one.leakage} | about) for one in levels]


def objects_of(world: Scenes, scene: Scene) -> Objects:
    """Rendered scenes, each also without every one of its objects, in [-1, 1]."""
    view, slots = world.render(scene), range(scene.xy.shape[1])
    without = torch.stack([world.images(scene.without(j)) for j in slots], 1)
    return Objects(2 * view.images - 1, 2 * without - 1, view.visible > VISIBLE)
