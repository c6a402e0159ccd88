"""The colour probe as a run: trained once on real pictures, and tested on others before it is
used."""

from dataclasses import field, replace
from functools import lru_cache

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from recombine.config import ALWAYS, config
from recombine.files import rounded
from recombine.limits import check_time, check_updates
from recombine.metrics.colour_probe import ColourNet, ColourProbe, color_row, colour_doubt, crops
from recombine.metrics.detector import Detector, crowds, noisy
from recombine.pipeline.job import Task, Work
from recombine.rng import initial_weights, seeded
from recombine.runs.detectors import BLOCK, DetectorRun
from recombine.runs.scene_prompts import check_room, locations_of
from recombine.runs.scene_recipe import SceneRecipe
from recombine.store import Row
from recombine.train.fit import TrainConfig
from recombine.train.loop import load_weights, train
from recombine.worlds.scenes.scene import COLORS, Scene
from recombine.worlds.scenes.scenes import Scenes

COUNTS, SPACING = (1, 2, 3), 0.15
"""Objects in the pictures it is trained on, and how far apart they are: an object behind another
one shows no colour."""
OFF, NOISE, WIDTH = 0.02, 0.04, 32
"""How far from an object its location may be, along each axis, the largest standard deviation of
noise on pictures, and the network's width."""
VERSION = 1
"""Rises when a change to the code changes a probe's answers, or what is measured of it."""


@config("run/colour-probe")
class ColourProbeRun(Task):
    """A colour probe to be trained on pictures of `world`."""

    noun = "colour probe"
    weights = True
    world: Scenes
    train: TrainConfig = field(default_factory=TrainConfig)
    seed: int = 0
    version: int = field(default=VERSION, metadata=ALWAYS)

    @staticmethod
    def of(recipe: SceneRecipe, train: TrainConfig) -> "ColourProbeRun":
        spacing = max(SPACING, recipe.world.spacing)
        return ColourProbeRun(replace(recipe.world, counts=COUNTS, spacing=spacing), train)

    def check(self) -> None:
        check_room(self.world, max(self.world.counts))
        values = sum(p.numel() for p in ColourNet(WIDTH).parameters())
        check_time(6.0 * values * self.train.batch * self.train.steps, "the colour probe")
        check_updates(self.train.steps, "the colour probe")

    @property
    def cost(self) -> float:
        return 5.0 * self.train.steps

    def net(self) -> ColourNet:
        with initial_weights(self.seed):
            return ColourNet(WIDTH)

    def run(self, work: Work) -> None:
        device, size = work.runtime.device, self.train.batch

        @lru_cache(maxsize=1)
        def placed(block: int) -> Scene:
            rng = seeded(self.seed, "colour crowds", block, device=device)
            return crowds(self.world, BLOCK * size, rng)

        def batch(step: int) -> tuple[Tensor, Tensor]:
            rng, first = seeded(self.seed, "colour probe", step, device=device), step % BLOCK * size
            scene = placed(step // BLOCK).take(slice(first, first + size))
            images = noisy(self.world.images(scene), NOISE, rng)
            return crops(images, self.beside(scene, rng)), scene.color[:, 0]

        train(
            self.net(), color_loss, batch, self.train, work.folder, work.runtime,
            title=work.title, check=work.check,
        )  # fmt: skip

    def beside(self, scene: Scene, rng: torch.Generator) -> Float[Tensor, "b 2"]:
        """Locations near the first object of each scene."""
        at = self.world.centres(scene)[:, 0]
        return at + OFF * (2 * torch.rand(at.shape, generator=rng, device=rng.device) - 1)

    def open(self, work: Work) -> ColourProbe:
        return ColourProbe(load_weights(self.net(), work.folder, work.runtime).eval())


def color_loss(
    net: nn.Module, some: Float[Tensor, "b 3 s s"], color: Int[Tensor, "b"]
) -> Float[Tensor, "b"]:
    return F.cross_entropy(net(some), color, reduction="none")


@config("run/colour-probe-check")
class ColourProbeCheck(Task):
    """What a colour probe is worth, on `real` pictures of each colour that it was not trained on:
    its accuracy at the true locations; and for two objects of two colours anywhere, the exact matches
    by detector and probe, where no model can be expected to do better."""

    noun = "colour probe check"
    probe: ColourProbeRun
    detector: DetectorRun
    real: int = 512
    version: int = field(default=VERSION, metadata=ALWAYS)

    def parents(self) -> tuple[Task, ...]:
        return self.probe, self.detector

    def run(self, work: Work) -> list[Row]:
        probe, detector = work.open(self.probe), work.open(self.detector)
        names = self.probe.world.colors
        rows = [self.accuracy(probe, list(COLORS).index(n), work) for n in names]
        if len(names) > 1:
            rows.append(self.ceiling(probe, detector, work))
        if why := colour_doubt(rows):
            work.runtime.log(why)
        return [rounded(row) | {"step": 0} for row in rows]

    def accuracy(self, probe: ColourProbe, color: int, work: Work) -> Row:
        """Of objects of one colour among others."""
        world, name = self.probe.world, list(COLORS)[color]
        scene = crowds(world, self.real, seeded("colour check", name, device=work.runtime.device))
        own = scene.color.clone()
        own[:, 0] = color
        scene = scene._replace(color=own)
        found = probe(world.images(scene), locations_of(world, scene))[:, 0]
        accuracy = float((found == color).double().mean())
        return {"kind": "colour probe", "color": name, "n": self.real, "accuracy": accuracy}

    def ceiling(self, probe: ColourProbe, detector: Detector, work: Work) -> Row:
        """Pictures of two objects of different colours, as near to each other as in real scenes."""
        world, rng = self.plain, seeded("colour pairs", device=work.runtime.device)
        scene = world.place(torch.full((self.real,), 2, device=rng.device), rng)
        known = torch.tensor([list(COLORS).index(n) for n in world.colors], device=rng.device)
        shuffled = torch.rand(self.real, len(known), generator=rng, device=rng.device).argsort(1)
        wanted = known[shuffled[:, :2]]
        images = world.images(scene._replace(color=wanted))
        objects = detector(images)
        return {"kind": "colours, real", **color_row(probe(images, objects), objects, wanted)}

    @property
    def plain(self) -> Scenes:
        return replace(self.probe.world, counts=(2,), spacing=self.detector.world.spacing)
