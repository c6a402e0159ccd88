"""Cosines between the differences that colours make to pictures, as a run; no network."""

from dataclasses import field

import torch

from recombine.config import ALWAYS, config
from recombine.metrics.colour_differences import cosines, differences
from recombine.pipeline.job import Task, Work
from recombine.rng import seeded
from recombine.store import Row
from recombine.worlds.scenes.scenes import Scenes

VERSION = 1
"""Rises when what is measured changes."""


@config("run/colour-cosines")
class ColourCosines(Task):
    """For every pair of colours of `world`, over `scenes` random scenes with one object each: the
    cosine of what they add to the empty floor."""

    noun = "colour cosines"
    world: Scenes
    scenes: int = 256
    seed: int = 0
    version: int = field(default=VERSION, metadata=ALWAYS)

    def __post_init__(self) -> None:
        if self.scenes < 1:
            raise ValueError(f"scenes must be positive, not {self.scenes}")

    def run(self, work: Work) -> list[Row]:
        device, colors = work.runtime.device, self.world.colors
        one = torch.ones(self.scenes, dtype=torch.long, device=device)
        scene = self.world.place(one, seeded(self.seed, "colours", device=device))
        table = cosines(differences(self.world, scene, colors)).tolist()
        pairs = ((i, j) for i in range(len(colors)) for j in range(i))
        return [
            {"kind": "cosine", "color": colors[j], "other": colors[i], "step": 0,
             "cosine": round(table[i][j], 4)}
            for i, j in pairs
        ]  # fmt: skip
