"""The detector of scenes as a run: trained once on real pictures, and tested on real pictures
before its counts are used."""

import math
from dataclasses import field
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor, nn

from recombine.config import ALWAYS, config
from recombine.files import rounded
from recombine.limits import check_memory, check_time, check_updates
from recombine.metrics.counting import Detect, curve, doubt, real_counts, row, tally
from recombine.metrics.detector import (
    Detector,
    DetectorNet,
    check_detector,
    crowds,
    noisy,
    target,
)
from recombine.metrics.heat import heat_loss
from recombine.metrics.worn import cut, seamed, shifted, with_faults
from recombine.nets.unfilled import COPIES, Unfilled
from recombine.pipeline.job import Task, Work
from recombine.rng import initial_weights, seeded
from recombine.runs.scene_prompts import Prompts, locations_of
from recombine.runs.scene_recipe import DETECTOR_VERSION, SceneRecipe
from recombine.store import Row
from recombine.train.fit import TrainConfig
from recombine.train.loop import load_weights, train
from recombine.worlds.scenes.scene import Scene
from recombine.worlds.scenes.scenes import Scenes

BLOCK = 32
"""Batches that are placed at once: crowded scenes take many trials, which go faster for many scenes
together."""
CHECK_VERSION = 3
"""Rises when what is measured of detectors changes."""


@config("run/detector")
class DetectorRun(Task):
    """A detector to be trained on pictures of `world`, all its numbers of objects equally often.
    `noise` is the largest standard deviation of noise on the pictures, `worn` the share of them with
    seams, shifted cells and cut objects: samples are never quite as clean as a render."""

    noun = "detector"
    weights = True
    world: Scenes
    width: int = 48
    noise: float = 0.04
    worn: float = 0.5
    train: TrainConfig = field(default_factory=TrainConfig)
    seed: int = 0
    version: int = field(default=DETECTOR_VERSION, metadata=ALWAYS)

    def __post_init__(self) -> None:
        check_detector(self.width, self.noise, self.worn)

    @staticmethod
    def of(recipe: SceneRecipe) -> "DetectorRun":
        d = recipe.detector
        return DetectorRun(
            recipe.detector_world, d.width, d.noise, d.worn, d.train, version=d.version
        )

    def check(self) -> None:
        with Unfilled() as made:
            DetectorNet(self.world.image_shape, self.width)
        values, t = math.prod(self.world.image_shape), self.train
        check_memory(4 * values * t.batch + COPIES * made.bytes, "the detector")
        check_time(6.0 * made.bytes / 4 * t.batch * t.steps, "the detector")
        check_updates(t.steps, "the detector")

    @property
    def cost(self) -> float:
        return 10.0 * self.train.steps

    def net(self) -> DetectorNet:
        with initial_weights(self.seed):
            return DetectorNet(self.world.image_shape, self.width)

    def run(self, work: Work) -> None:
        world, device, size = self.world, work.runtime.device, self.train.batch

        @lru_cache(maxsize=1)
        def placed(block: int) -> Scene:
            return crowds(world, BLOCK * size, seeded(self.seed, "crowds", block, device=device))

        def batch(step: int) -> tuple[Tensor, Tensor]:
            rng, first = seeded(self.seed, "detector", step, device=device), step % BLOCK * size
            scene = placed(step // BLOCK).take(slice(first, first + size))
            images, counted = with_faults(world, scene, self.worn, rng)
            return noisy(images, self.noise, rng), target(world, counted)

        train(
            self.net(), map_loss, batch, self.train, work.folder, work.runtime,
            title=work.title, check=work.check,
        )  # fmt: skip

    def open(self, work: Work) -> Detector:
        return Detector(load_weights(self.net(), work.folder, work.runtime).eval())


def map_loss(net: nn.Module, images: Tensor, target: Tensor) -> Float[Tensor, "b"]:
    return heat_loss(net(images), target)


@config("run/detector-check")
class DetectorCheck(Task):
    """What a detector is worth: on `real` pictures of every number of objects, on pictures with
    each kind of fault, and on the real pictures behind the prompts, where no model can be expected
    to do better."""

    noun = "detector check"
    detector: DetectorRun
    prompts: Prompts
    real: int
    radius: float
    version: int = field(default=CHECK_VERSION, metadata=ALWAYS)

    @staticmethod
    def of(recipe: SceneRecipe) -> "DetectorCheck":
        radius, real = recipe.evaluation.radius, recipe.detector.real
        return DetectorCheck(DetectorRun.of(recipe), Prompts.of(recipe), real, radius)

    def parents(self) -> tuple[Task, ...]:
        return (self.detector,)

    def check(self) -> None:
        self.prompts.check()

    def run(self, work: Work) -> list[Row]:
        device, world, detector = work.runtime.device, self.prompts.world, work.open(self.detector)
        rows = real_counts(detector, world, world.counts, self.real, device, self.radius)
        rows += worn_counts(detector, world, self.prompts, device, self.radius)
        for kind, prompts in (("real", self.prompts), ("real, crowded", self.prompts.crowded)):
            for scene in prompts.scenes(device).values() if prompts else ():
                detected = detector(world.images(scene))
                rows += curve(detected, locations_of(world, scene), self.radius, kind)
        if why := doubt(rows):
            work.runtime.log(why)
        return [rounded(row) | {"step": 0} for row in rows]


def worn_counts(
    detect: Detect, world: Scenes, prompts: Prompts, device: torch.device, radius: float
) -> list[Row]:
    """How well pictures with faults are counted, one row for every fault and number of objects, at
    the prompts' own scenes."""
    rows = []
    for k, scene in prompts.scenes(device).items():
        images, rng = world.images(scene), seeded("worn", k, device=device)
        pieces, left = cut(world, scene, images, rng)
        locations = locations_of(world, scene)
        faults = {
            "shifted cells": (shifted(images, rng), locations),
            "seams": (seamed(images, rng), locations),
            "cut objects": (pieces, locations._replace(present=left)),
        }
        for fault, (faulty, there) in faults.items():
            counted = row(tally(detect(faulty), there, radius=radius))
            rows.append({"kind": "worn", "fault": fault, "objects": k, **counted})
    return rows
