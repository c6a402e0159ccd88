"""Deep linear and ReLU networks on structured identity mapping, trained by plain SGD, one network
per seed in one batch.

A linear network sees a minibatch only through its second moment. So a minibatch of 128 points may
be replaced by d + 1 points with the same second moment (`compress`): every gradient stays exactly
the same, and a step gets many times cheaper. For that to include biases, points carry a last
coordinate, the constant's, which is 1 in real data."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from recombine.theory.sim import second_moment


@dataclass(frozen=True)
class MLP:
    """`depth` weight matrices, d -> hidden -> ... -> d. Weights and biases start uniform in +-scale
    / sqrt(fan in)."""

    d: int
    depth: int = 1
    hidden: int | None = None
    relu: bool = False
    bias: bool = False
    scale: float = 1.0

    def init(self, b: int, rng: torch.Generator) -> list[Float[Tensor, "b o i"]]:
        """The layers of b networks; a layer's last column is its bias, zero for good where there is
        none."""
        sizes = [self.d, *[self.hidden or self.d] * (self.depth - 1), self.d]
        layers = []
        for fan_in, fan_out in zip(sizes, sizes[1:], strict=False):
            layer = 2 * torch.rand(b, fan_out, fan_in + 1, generator=rng, dtype=torch.float64) - 1
            layer[..., -1] *= self.bias
            layers.append(self.scale * fan_in**-0.5 * layer)
        return layers


def homogeneous(x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b e"]:
    """Points with the constant's coordinate, 1, behind their own."""
    return torch.cat([x, torch.ones_like(x[..., :1])], -1)


def batches(x: Float[Tensor, "b n d"], size: int = 128) -> Float[Tensor, "b m p e"]:
    """An epoch: full minibatches in the set's own (already shuffled) order; the points left over
    are dropped."""
    m = x.shape[1] // size
    return homogeneous(x[:, : m * size]).unflatten(1, (m, size))


def compress(x: Float[Tensor, "*b p e"]) -> Float[Tensor, "*b e e"]:
    """As many points as coordinates, with the same second moment: the same to a linear network."""
    values, vectors = torch.linalg.eigh(second_moment(x))
    return (vectors * (values.clamp_min(0) * x.shape[-1]).sqrt()[..., None, :]).mT


def embed(x: Float[Tensor, "*p e"], frame: Float[Tensor, "s d"]) -> Float[Tensor, "*p f"]:
    """Points in concept coordinates, laid into d dimensions along the rows of `frame`; the constant
    stays last."""
    return torch.cat([x[..., :-1] @ frame, x[..., -1:]], -1)


def forward(
    net: MLP, layers: list[Tensor], x: Float[Tensor, "b p e"]
) -> list[Float[Tensor, "b p _"]]:
    """The inputs of every layer (each with the constant behind it), and last the output without
    it."""
    one, seen = x[..., -1:], [x]
    for i, layer in enumerate(layers):
        h = seen[-1] @ layer.mT
        if i == len(layers) - 1:
            return [*seen, h]
        seen.append(torch.cat([h.relu() if net.relu else h, one], -1))
    return seen


def sgd_step(net: MLP, layers: list[Tensor], x: Float[Tensor, "b p e"], lr: float) -> None:
    """One step, in place, on the squared error averaged over points and outputs."""
    *seen, output = forward(net, layers, x)
    delta = (output - x[..., :-1]) * (2 / (x.shape[1] * net.d))
    for i in reversed(range(len(layers))):
        gradient = delta.mT @ seen[i]
        if i:
            delta = (delta @ layers[i])[..., :-1]
            delta = delta * (seen[i][..., :-1] > 0) if net.relu else delta
        if not net.bias:
            gradient[..., -1] = 0
        layers[i].sub_(gradient, alpha=lr)


def train(
    net: MLP,
    layers: list[Tensor],
    epoch: Float[Tensor, "b m p e"],
    probes: Float[Tensor, "n d"],
    steps: int,
    lr: float,
    every: int,
    frame: Float[Tensor, "s d"] | None = None,
    note: Callable[[int], None] = lambda step: None,
) -> tuple[Float[Tensor, "t"], Float[Tensor, "b t n d"]]:
    """Train every network of the batch on its own epoch, over and over in the same order, and watch
    the answers to `probes` every `every` steps: the steps, and the answers. `frame` embeds concept
    coordinates, batch by batch."""
    place = (lambda x: x) if frame is None else (lambda x: embed(x, frame))
    layers = [layer.clone() for layer in layers]
    inputs = homogeneous(probes).expand(len(epoch), -1, -1)
    kept = [forward(net, layers, inputs)[-1]]
    for step in range(steps):
        sgd_step(net, layers, place(epoch[:, step % epoch.shape[1]]), lr)
        if (step + 1) % every == 0:
            kept.append(forward(net, layers, inputs)[-1])
            note(step + 1)
    return torch.arange(len(kept), dtype=torch.float64) * every, torch.stack(kept, 1)
