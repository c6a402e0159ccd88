"""What the world alone says of a local network's patch, without a network."""

from dataclasses import field

import torch

from recombine.config import ALWAYS, config
from recombine.metrics.patch_fit import fits, overfull
from recombine.pipeline.job import Task, Work
from recombine.rng import seeded
from recombine.runs.scene_prompts import Prompts, check_room, locations_of
from recombine.store import Row
from recombine.worlds.scenes.scenes import Scenes

SCENES = 96
"""Real scenes on which it is measured what fits."""
VERSION = 1
"""Rises when what is measured changes."""


@config("run/patch-fit")
class PatchFitRun(Task):
    """How many objects of training scenes fit into patches of this reach, and how many patches hold
    more prompted locations than the `most` that training conditions on."""

    noun = "patch fit"
    world: Scenes
    prompts: Prompts
    cells: int
    reach: int
    most: int
    version: int = field(default=VERSION, metadata=ALWAYS)

    def check(self) -> None:
        check_room(self.world, max(self.world.counts))
        self.prompts.check()

    def run(self, work: Work) -> list[Row]:
        device = work.runtime.device
        counts = torch.full((SCENES,), max(self.world.counts), device=device)
        scene = self.world.place(counts, seeded("fit", device=device))
        held = fits(self.world, scene, self.cells, (self.reach,))[0]
        shares = {name: round(share, 4) for name, share in held._asdict().items()}
        rows: list[Row] = [{"kind": "fit", "given": self.most, **shares}]
        for k, prompted in self.prompts.scenes(device).items():
            layout = locations_of(self.prompts.world, prompted)
            share = overfull(layout, self.cells, self.reach, self.most)
            rows.append({"kind": "overfull", "locations": k, "share": round(share, 4)})
        return rows
