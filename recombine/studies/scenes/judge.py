"""Who judges the models: the scenes whose locations all of them are asked for, the detector, and what it is worth.

What the detector is worth is kept in a folder of its own, so that finished runs can be shown again without its weights."""

from dataclasses import dataclass, replace
from functools import cached_property

import torch

from recombine.evaluate.counting import BAR, curve, real_counts
from recombine.evaluate.detector import Detector, DetectorConfig, train_detector
from recombine.rng import seeded
from recombine.store import RunFolder
from recombine.studies.base import Row, Rows
from recombine.studies.lab import Lab, Measurement
from recombine.studies.scenes.recipe import SceneRecipe
from recombine.worlds.layout import Layout
from recombine.worlds.scenes.scene import Scene


@dataclass(frozen=True)
class Exam:
    """Real pictures for a detector: `real` of every number of objects, and those behind the locations that models are asked for."""

    detector: DetectorConfig
    locations: tuple[int, ...]
    samples: int
    real: int
    radius: float
    spaced: float = 0.0


@dataclass
class Judge:
    """The same for all variants and seeds; of the recipe only the world's look, the evaluation and the detector matter."""

    recipe: SceneRecipe
    lab: Lab

    @cached_property
    def scenes(self) -> dict[int, Scene]:
        """For each number of locations, real scenes with so many objects, as far apart as the evaluation says. UsageError where
        the world has no room for them."""
        e = self.recipe.evaluation
        return {k: self.placed(k, e.samples, "locations", e.spaced) for k in e.locations}

    @cached_property
    def crowded(self) -> dict[int, Scene]:
        """The same with objects as near to each other as in training pictures; none where the others are so, too."""
        e = self.recipe.evaluation
        return {k: self.placed(k, e.samples, "locations") for k in e.locations} if e.spaced else {}

    def placed(self, locations: int, count: int, purpose: str, spaced: float = 0.0) -> Scene:
        device, world = self.lab.runtime.device, self.recipe.crowd
        world = replace(world, spaced=max(world.spaced, spaced))
        return world.place(torch.full((count,), locations, device=device), seeded(purpose, locations, device=device))

    def locations(self, scene: Scene) -> Layout:
        """What a model is asked for: where the objects of real scenes are."""
        return Layout.of(self.recipe.crowd.centres(scene), scene.present)

    def asked(self, count: int, crowded: bool = False) -> Layout:
        """The first `count` requests of each number of locations, one number after the other."""
        scenes = self.crowded if crowded else self.scenes
        parts = [self.locations(scene.take(slice(count))) for scene in scenes.values()]
        return Layout(*(torch.cat(t) for t in zip(*parts, strict=True)))

    @property
    def config(self) -> DetectorConfig:
        return self.recipe.detector.config(self.recipe.crowd)

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.lab.out, self.config)

    @cached_property
    def detector(self) -> Detector:
        """Trained, or from disk."""
        self.lab.renew(self.folder)
        there = self.folder.done and not self.folder.weights_missing
        self.lab.note(f"detector: run {self.folder.digest}{' (on disk)' if there else ''}")
        return train_detector(self.config, self.lab.out, self.lab.runtime)

    def rows(self) -> list[Row]:
        """How well the detector counts real pictures, and what it makes of the real pictures behind the locations: no model can
        be expected to do better."""
        e = self.recipe.evaluation
        exam = Exam(self.config, e.locations, e.samples, self.recipe.detector.real, e.radius, e.spaced)
        return self.lab.measured(Measurement(exam, (self.folder,), self.ready, self.test))

    def ready(self) -> Detector:
        self.scenes  # noqa: B018  # complains where there is no room, before anything is trained
        return self.detector

    def test(self, detector: Detector) -> list[Row]:
        device, world, radius = self.lab.runtime.device, self.recipe.crowd, self.recipe.evaluation.radius
        rows = real_counts(detector, world, world.counts, self.recipe.detector.real, device, radius)
        for kind, scenes in (("real", self.scenes), ("real, crowded", self.crowded)):
            for scene in scenes.values():
                rows += curve(detector(world.draw(scene)), self.locations(scene), radius, kind)
        return [short(r) | {"step": 0} for r in rows]


def short(row: Row) -> Row:
    """Four digits are enough on disk; a share of nothing is none."""
    plain = {k: None if isinstance(v, float) and v != v else v for k, v in row.items()}
    return {k: round(v, 4) if isinstance(v, float) else v for k, v in plain.items()}


def doubt(rows: Rows) -> str:
    """Why the detector may not judge, in one line; empty if it may. It must clear the bar for every number of objects up to
    the largest that models are asked for."""
    exact = {r["objects"]: r["exact"] for r in rows.where(kind="detector")}
    most = max(rows.where(kind="real").column("locations"), default=0)
    if not exact:
        return "no detector was tested on real pictures"
    asked = ((k, share) for up_to, share in BAR for k in range(min(up_to, most) + 1))
    for k, share in ((k, share) for k, share in asked if exact.get(k, 0.0) < share):
        found = f"{exact.get(k, 0.0):.1%} of real pictures with {k} objects"
        return f"the detector may not judge: it counts {found} exactly; {share:.0%} are needed"
    return ""
