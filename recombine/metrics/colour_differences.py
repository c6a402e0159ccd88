"""What a colour adds to pictures of an empty floor, and how alike two colours are in that.

Composing conditions by adding scores needs conditions that act on different pixels or channels. In
such a composition the mean differences d_i = E[x | i] - E[x | nothing] are orthogonal (Lemma 2 of
paper B): a cosine near zero is necessary. It is known from pictures alone, before any training."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from recombine.worlds.scenes.scene import COLORS, Color, Scene
from recombine.worlds.scenes.scenes import Scenes

CHUNK = 128
"""Pictures rendered at once."""


def differences(
    world: Scenes, scene: Scene, colors: Sequence[Color] = tuple(COLORS)
) -> Float[Tensor, "n c h w"]:
    """For each colour the mean over scenes of the picture with all objects in it, less the same
    picture of the floor alone."""
    total = torch.zeros(len(colors), *world.image_shape, device=scene.xy.device)
    for some in scene.split(CHUNK):
        empty = world.images(some._replace(present=torch.zeros_like(some.present)))
        for i, name in enumerate(colors):
            index = torch.full_like(some.color, list(COLORS).index(name))
            total[i] += (world.images(some._replace(color=index)) - empty).sum(0)
    return total / len(scene.xy)


def cosines(vectors: Float[Tensor, "n *s"]) -> Float[Tensor, "n n"]:
    unit = torch.nn.functional.normalize(vectors.flatten(1).double(), dim=1)
    return unit @ unit.T
