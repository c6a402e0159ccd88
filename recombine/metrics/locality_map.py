"""A map of locality: how much every pixel, and every condition, changes the output at one pixel."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from recombine.metrics.locality import condition_influence, pixel_influence
from recombine.objectives.process import Denoiser
from recombine.worlds.layout import Layout

DECADES = 4
"""Of the logarithmic scale on which a map is stored and plotted."""


class LocalityMap(NamedTuple):
    """For one pixel. `heat`: root of the mean squared effect of each pixel; `effect`: the same of
    each condition. Both are divided by their largest entry."""

    heat: Float[Tensor, "h w"]
    effect: Float[Tensor, "k"]
    at: Float[Tensor, "k 2"]
    pixel: tuple[int, int]


def locality_map(
    denoiser: Denoiser,
    x: Float[Tensor, "b c h w"],
    t: Float[Tensor, "b"],
    layout: Layout,
    pixel: tuple[int, int],
) -> LocalityMap:
    """Averaged over noisy pictures that all have the same layout."""
    row, column = pixel
    where = torch.tensor(pixel, device=x.device).expand(len(x), 1, 2)
    heat = pixel_influence(denoiser, x, t, layout, where).energy[:, 0].mean(0).sqrt()
    given = condition_influence(denoiser, x, t, layout, layout.at)
    effect = given.energy[:, layout.present[0], row, column].mean(0).sqrt()
    tiny = torch.finfo(x.dtype).tiny
    scaled = (heat / heat.max().clamp(min=tiny), effect / effect.max().clamp(min=tiny))
    return LocalityMap(*scaled, layout.at[0, layout.present[0]], pixel)
