"""Variational diffusion (Kingma et al., 2021) in continuous time: noise is predicted, and the two
ends of the noise schedule are learned with the network by the bound on the likelihood,

    gamma(t) = low + width t,   sigma^2 = sigmoid(gamma),   alpha^2 = sigmoid(-gamma).

Its three terms, in bits per number: the prediction of noise, weighted by the slope of gamma; how
far the noisiest picture is from pure noise; and how well the cleanest one gives the picture, which
is known up to `data_noise`. The last has a gradient thousands of times that of the network, on
`low` alone. Where the norm of all gradients is clipped, it decides by how much."""

import math
from collections.abc import Callable
from dataclasses import field
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from recombine.config import config
from recombine.nets.conditioning import Conditioning
from recombine.nets.net_config import NetConfig, Shape
from recombine.objectives.noising import Noising
from recombine.objectives.objective import Codes
from recombine.objectives.process import Denoiser, LogSNR, spread
from recombine.worlds.factors import FactorSpace

BITS = 1 / math.log(2)


class VDMDraw(NamedTuple):
    """The randomness of one loss: a time and two noise pictures per sample, one of them for the
    cleanest time."""

    t: Float[Tensor, "b"]
    noise: Float[Tensor, "b *s"]
    first: Float[Tensor, "b *s"]


class ScheduledNet(nn.Module):
    """A network with the ends of its schedule: gamma at time 0, and how much it grows."""

    def __init__(self, net: nn.Module, schedule: LogSNR):
        super().__init__()
        self.net = net
        self.ends = nn.Parameter(torch.tensor([schedule.low, schedule.high - schedule.low]))

    def gamma(self, t: Tensor) -> Tensor:
        return self.ends[0] + self.ends[1].abs() * t

    def forward(self, x: Tensor, t: Tensor, condition: Any) -> Tensor:
        return self.net(x, t, condition)


@config("objective/vdm")
class VDM(Noising):
    """`schedule`: where its ends start; the network is given gamma in units of these. `data_noise`:
    standard deviation of the noise in pictures themselves."""

    schedule: LogSNR = field(default_factory=LogSNR)
    data_noise: float = 1e-3

    def __post_init__(self) -> None:
        if self.data_noise <= 0:
            raise ValueError(f"data_noise must be positive, not {self.data_noise}")

    def network(
        self,
        net: NetConfig,
        conditioning: Conditioning,
        shape: Shape,
        space: FactorSpace,
        codes: Codes = None,
    ) -> ScheduledNet:
        return ScheduledNet(net.build(conditioning, shape, space), self.schedule)

    def schedule_of(self, net: ScheduledNet) -> LogSNR:
        low, width = net.ends.tolist()
        return LogSNR(low, low + abs(width))

    def draw(self, shape: torch.Size, rng: torch.Generator) -> VDMDraw:
        """Times are evenly spaced over the batch, from a random one on."""
        start = torch.rand(1, generator=rng, device=rng.device)
        t = (torch.arange(shape[0], device=rng.device) + start) / shape[0]
        noise = [torch.randn(shape, generator=rng, device=rng.device) for _ in range(2)]
        return VDMDraw(t, *noise)

    def time(self, gamma: Tensor) -> Tensor:
        """What the network is given: gamma between the ends at which the schedule started."""
        return (gamma - self.schedule.low) / (self.schedule.high - self.schedule.low)

    def loss(
        self,
        net: Callable[[Tensor, Tensor, Any], Tensor],
        x: Float[Tensor, "b *s"],
        condition: Any,
        draw: VDMDraw,
    ) -> Float[Tensor, "b"]:
        """The negative bound of each sample, in bits per number."""
        gamma, slope = net.gamma(draw.t), net.ends[1].abs()
        alpha, sigma = (torch.sigmoid(sign * spread(gamma, x)).sqrt() for sign in (-1, 1))
        answer = net(alpha * x + sigma * draw.noise, self.time(gamma), condition).float()
        denoising = 0.5 * slope * (answer - draw.noise).square()
        last = torch.sigmoid(net.ends[0] + slope)
        prior = 0.5 * (last + (1 - last) * x.square() - last.log() - 1)
        off = (net.ends[0].exp() * draw.first.square()) / self.data_noise**2
        cleanest = 0.5 * (off + math.log(2 * math.pi * self.data_noise**2))
        return BITS * (denoising + prior + cleanest).flatten(1).mean(1)

    def denoiser(self, net: ScheduledNet) -> Denoiser:
        """The network's output, read as E[x | x_t]."""
        schedule = self.schedule_of(net)

        def denoise(x: Tensor, t: Tensor, condition: Any) -> Tensor:
            noise = net(x, self.time(schedule.gamma(t)), condition).to(x.dtype)
            time = spread(t, x)
            return (x - schedule.sigma(time) * noise) / schedule.alpha(time)

        return denoise
