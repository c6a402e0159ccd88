"""What scene models are prompted with: the locations of the objects of real scenes, the same for
all models."""

from dataclasses import replace
from functools import lru_cache

import torch

from recombine.config import config
from recombine.rng import seeded
from recombine.runs.scene_recipe import SceneRecipe
from recombine.worlds.layout import Layout
from recombine.worlds.scenes.scene import Scene
from recombine.worlds.scenes.scenes import Scenes


@config("scene/prompts")
class Prompts:
    """`samples` real scenes of `world` for each number of `locations`, no two of them nearer than
    `spacing`."""

    world: Scenes
    locations: tuple[int, ...]
    samples: int
    spacing: float = 0.0

    @staticmethod
    def of(recipe: SceneRecipe) -> "Prompts":
        e = recipe.evaluation
        return Prompts(recipe.detector_world, e.locations, e.samples, e.spacing)

    @property
    def crowded(self) -> "Prompts | None":
        """The same with objects as near to each other as in training pictures; None where these
        are so already."""
        return replace(self, spacing=0.0) if self.spacing else None

    def check(self) -> None:
        """UsageError where the world has no room for so many objects at this spacing."""
        check_room(self.world, max(self.locations), self.spacing)

    def scenes(self, device: torch.device) -> dict[int, Scene]:
        """The scenes by their number of locations."""
        return _scenes(self, device)

    def layout(self, device: torch.device, count: int | None = None) -> Layout:
        """The first `count` prompts of each number of locations, one number after the other."""
        some = [scene.take(slice(count)) for scene in self.scenes(device).values()]
        parts = [locations_of(self.world, scene) for scene in some]
        return Layout(*(torch.cat(t) for t in zip(*parts, strict=True)))


@lru_cache(maxsize=4)
def _scenes(prompts: Prompts, device: torch.device) -> dict[int, Scene]:
    """Kept, since all runs of a study share them. The shipped results (by November 2026) were prompted
    with another sample of the same scenes: the random stream had another name."""
    world, count = prompts.world, prompts.samples
    return {
        k: placed(world, k, count, "prompts", device, prompts.spacing) for k in prompts.locations
    }


def placed(
    world: Scenes,
    locations: int,
    count: int,
    purpose: str,
    device: torch.device,
    spacing: float = 0.0,
) -> Scene:
    """`count` real scenes with so many objects; their randomness is named by the purpose."""
    world = replace(world, spacing=max(world.spacing, spacing))
    number = torch.full((count,), locations, device=device)
    return world.place(number, seeded(purpose, locations, device=device))


def locations_of(world: Scenes, scene: Scene) -> Layout:
    """Where the objects of real scenes are."""
    return Layout.of(world.centres(scene), scene.present)


@lru_cache(maxsize=256)
def check_room(world: Scenes, objects: int, spacing: float = 0.0) -> None:
    """UsageError where a world has no room for so many objects; tried on one scene."""
    world = replace(world, spacing=max(world.spacing, spacing))
    world.place(torch.tensor([objects]), seeded("room", objects))
