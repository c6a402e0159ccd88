"""Does what varies inside a class point towards the next class?

Pictures of one composition differ in their true values: one red is not the other. Where latents follow those values, a model
that is told them learns what more of a value does, and can go on in the same direction, to a class that it never saw in
this company. Where a tokenizer throws small differences away, there is nothing to go on with."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class Trend(NamedTuple):
    """Pictures of one composition: the means of their latents and values, and how latents change with each value."""

    latent: Float[Tensor, "d"]
    value: Float[Tensor, "v"]
    change: Float[Tensor, "v d"]


def trend(latents: Float[Tensor, "n *d"], values: Float[Tensor, "n v"]) -> Trend:
    """By least squares, in double precision; a value that never varies changes nothing."""
    z, x = latents.flatten(1).double(), values.double()
    mean, centre = z.mean(0), x.mean(0)
    z, x = z - mean, x - centre
    return Trend(mean, centre, torch.linalg.pinv(x.mT @ x, hermitian=True, rtol=1e-6) @ (x.mT @ z))


def slope(here: Trend, there: Trend) -> float:
    """The trend of one composition, drawn on to the values of another: which share of the way between their mean latents it
    goes. 1 where latents are linear in the values, as pixels are in colour; 0 where the variation inside a class says nothing
    about the next class; above 1 where it overshoots, as codes may that change at a few borders only."""
    step = (there.value - here.value) @ here.change
    way = there.latent - here.latent
    return float(step @ way / way.square().sum().clamp(min=1e-12))
