"""Does within-class jitter point towards the next class?

Pictures of one composition differ in their true values: one red is not the other. Where latents
follow those values, a model conditioned on them can learn what more of a value does, and might go
on in the same direction, to a class that it never saw in this company. Whether latents lead there
depends on the tokenizer."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class Trend(NamedTuple):
    """Pictures of one composition: the means of their latents and values, and how latents change
    with each value."""

    latent: Float[Tensor, "d"]
    value: Float[Tensor, "v"]
    change: Float[Tensor, "v d"]


class Slope(NamedTuple):
    """The step that a trend makes towards another composition, seen from the way between the two:
    its part along the way (`slope`: 1 = it arrives, as in pixels, which are linear in colour; 0 =
    it says nothing of the way), its whole length (`length`), both as shares of the way, and the
    cosine between step and way."""

    slope: float
    length: float
    cosine: float


def trend(latents: Float[Tensor, "n *d"], values: Float[Tensor, "n v"]) -> Trend:
    """By least squares, in double precision, each value in units of its own spread; one that never
    varies changes nothing."""
    z, x = latents.flatten(1).double(), values.double()
    mean, centre = z.mean(0), x.mean(0)
    spread = (x - centre).square().mean(0).sqrt()
    varies = spread > 1e-6 * (1 + centre.abs())
    z, x = z - mean, torch.where(varies, (x - centre) / torch.where(varies, spread, 1.0), 0.0)
    change = torch.linalg.pinv(x.mT @ x, hermitian=True, rtol=1e-6) @ (x.mT @ z)
    return Trend(mean, centre, change / torch.where(varies, spread, 1.0)[:, None])


def slope(here: Trend, there: Trend) -> Slope:
    """The trend of one composition, extended to the values of another."""
    step = (there.value - here.value) @ here.change
    way = there.latent - here.latent
    reach, length, far = float(step @ way), float(step.norm()), max(float(way.norm()), 1e-9)
    return Slope(reach / far**2, length / far, reach / (far * length) if length > 0 else 0.0)


def enough(values: Float[Tensor, "n v"]) -> bool:
    """Whether so many different pictures say anything of a trend: ten for each number that is
    fitted."""
    return values.shape[1] > 0 and len(values.unique(dim=0)) >= 10 * (values.shape[1] + 1)
