"""A picture of locality: the heat map of what surrounds a pixel does to its answer, with a cross at every condition, as
strong as that condition's effect on the same pixel. A local denoiser shows a spot, and one bright cross inside it."""

from typing import TYPE_CHECKING, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from recombine.evaluate.locality import condition_influence, pixel_influence
from recombine.objectives.process import Denoiser
from recombine.worlds.layout import Layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DECADES = 4


class LocalityMap(NamedTuple):
    """For one pixel. `heat`: root of the mean squared effect of each pixel; `effect`: the same of each condition. Both
    are divided by their largest entry."""

    heat: Float[Tensor, "h w"]
    effect: Float[Tensor, "k"]
    at: Float[Tensor, "k 2"]
    pixel: tuple[int, int]


def locality_map(
    denoiser: Denoiser, x: Float[Tensor, "b c h w"], t: Float[Tensor, "b"], layout: Layout, pixel: tuple[int, int]
) -> LocalityMap:
    """Averaged over noisy pictures that all have the same layout."""
    row, column = pixel
    where = torch.tensor(pixel, device=x.device).expand(len(x), 1, 2)
    heat = pixel_influence(denoiser, x, t, layout, where).energy[:, 0].mean(0).sqrt()
    told = condition_influence(denoiser, x, t, layout, layout.at)
    effect = told.energy[:, layout.present[0], row, column].mean(0).sqrt()
    tiny = torch.finfo(x.dtype).tiny
    scaled = (heat / heat.max().clamp(min=tiny), effect / effect.max().clamp(min=tiny))
    return LocalityMap(*scaled, layout.at[0, layout.present[0]], pixel)


def draw_map(axis: "Axes", found: LocalityMap, title: str = "") -> None:
    """Heat and crosses on one logarithmic scale of `DECADES`, from black and faint to full; the pixel is ringed."""
    from matplotlib.colors import LogNorm

    (h, w), least = found.heat.shape, 10.0**-DECADES
    heat, strength = found.heat.cpu().clamp(min=least), 1 + found.effect.cpu().clamp(min=least).log10() / DECADES
    axis.imshow(heat, cmap="magma", norm=LogNorm(least, 1), extent=(0, w, h, 0), interpolation="nearest")
    for (x, y), shown in zip(found.at.tolist(), strength.tolist(), strict=True):
        axis.plot(x * w, y * h, "x", color="white", markersize=11, markeredgewidth=3.4, alpha=0.25)
        axis.plot(x * w, y * h, "x", color="#4CC9F0", markersize=10, markeredgewidth=2.4, alpha=shown)
    row, column = found.pixel
    axis.plot(column + 0.5, row + 0.5, "o", color="#7CFC8A", markersize=7, markerfacecolor="none", markeredgewidth=1.5)
    axis.set(xticks=[], yticks=[], xlim=(0, w), ylim=(h, 0))
    axis.set_title(title)
    axis.grid(False)
