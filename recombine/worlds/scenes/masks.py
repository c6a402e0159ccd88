"""Which pixels belong to which object, and how far away they are."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from recombine.worlds.scenes.fuse import fused
from recombine.worlds.scenes.shot import Shot
from recombine.worlds.scenes.trace import FAR, Solids, crossed, meets, nearest


class Masks(NamedTuple):
    """`depth` is that of a pixel's nearest sample, ahead of the camera; `visible` the share of a
    pixel's samples that see an object, `whole` the share that would see it if it stood alone."""

    depth: Float[Tensor, "b p"]
    visible: Float[Tensor, "b k p"]
    whole: Float[Tensor, "b k p"]


@fused
def masks(solids: Solids, shot: Shot) -> Masks:
    rays = shot.rays()
    far = meets(*crossed(solids, shot.eye, rays))
    near = far.amin(1, keepdim=True)
    depth = torch.minimum(near.squeeze(1), -shot.eye.z / rays.z).amin(-1)
    hit = far < FAR
    visible, whole = (mask.float().mean(-1) for mask in ((far == near) & hit, hit))
    return Masks(depth, visible, whole)


@fused
def areas(solids: Solids, shot: Shot) -> Float[Tensor, "b k"]:
    """The share of the picture in which each object is visible."""
    reach, who = nearest(solids, shot.eye, shot.rays())
    slots = torch.arange(solids.x.shape[1], device=who.device)[:, None, None]
    return (torch.where(reach < FAR, who, -1)[:, None] == slots).float().mean((2, 3))
