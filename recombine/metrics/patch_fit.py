"""Does the object at a location fit into the patch around it? A local network is conditioned on a
location in the cells whose patch holds it, and nowhere else. If the object has pixels beyond them,
the network cannot know that they belong to it; if a patch holds more locations than any training
picture had, it is out of distribution."""

from collections.abc import Iterable
from typing import NamedTuple

from jaxtyping import Bool
from torch import Tensor

from recombine.worlds.layout import Layout
from recombine.worlds.scenes.scene import Scene
from recombine.worlds.scenes.scenes import Scenes


class Fit(NamedTuple):
    """Of the objects of some scenes: the share that lies `inside`, no pixel of it beyond the cells
    that are conditioned on its location; and the mean shares that these cells hold of its `own`
    pixels and of all it has `touched`, shadows and reflections included."""

    inside: float
    own: float
    touched: float


def conditioned(layout: Layout, cells: int, reach: int, size: int) -> Bool[Tensor, "b k h w"]:
    """The pixels that are conditioned on each location, in pictures of size x size."""
    grid = layout.inside(cells, reach).mT.unflatten(2, (cells, cells))
    return grid.repeat_interleave(size // cells, 2).repeat_interleave(size // cells, 3)


def fits(world: Scenes, scene: Scene, cells: int, reaches: Iterable[int]) -> list[Fit]:
    """What of the objects of some scenes lies where networks of these reaches are conditioned on
    them."""
    seen, touched = world.render(scene), world.touched(scene)
    own, layout = seen.whole > 0, Layout(seen.centres, scene.present)
    there = scene.present & own.any((2, 3))
    made = []
    for reach in reaches:
        reached = conditioned(layout, cells, reach, world.size)
        inside = ~(own & ~reached).any((2, 3))
        parts = (
            (part & reached).sum((2, 3)) / part.sum((2, 3)).clamp(min=1) for part in (own, touched)
        )
        made.append(Fit(*(part[there].double().mean().item() for part in (inside, *parts))))
    return made


def overfull(layout: Layout, cells: int, reach: int, most: int) -> float:
    """Of all patches that hold a location, the share that holds more than `most`."""
    held = layout.inside(cells, reach).sum(2)
    return ((held > most).sum() / (held > 0).sum().clamp(min=1)).item()
