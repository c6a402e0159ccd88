"""Diffusion: one process, its loss, and how to draw from what it learned. The objective holds no
weights; it is handed the network. Flow matching is `Diffusion(Flow(), "velocity")`, DDPM is
`Diffusion(Linear(), "noise")`."""

from collections.abc import Callable
from dataclasses import field
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from recombine.config import config
from recombine.objectives.noising import Noising
from recombine.objectives.process import Denoiser, Flow, Schedule, noised, spread

Network = Callable[[Tensor, Tensor, Any], Tensor]


class Draw(NamedTuple):
    """The randomness of one loss: a time and a noise picture per sample."""

    t: Float[Tensor, "b"]
    noise: Float[Tensor, "b *s"]


@config("objective/diffusion")
class Diffusion(Noising):
    """What the network is trained to output: `velocity` = noise - x (the flow's dx/dt), or
    `noise`."""

    schedule: Schedule = field(default_factory=Flow)
    target: Literal["velocity", "noise"] = "velocity"
    times: Literal["uniform", "logit-normal"] = "uniform"

    def __post_init__(self) -> None:
        if self.target == "velocity" and not isinstance(self.schedule, Flow):
            raise ValueError("the velocity noise - x belongs to the Flow schedule")
        if self.target == "noise" and isinstance(self.schedule, Flow):
            raise ValueError(
                "the noise says nothing of the picture at t = 1 on the Flow schedule; use velocity or Linear"
            )

    def draw(self, shape: torch.Size, rng: torch.Generator) -> Draw:
        """Randomness for a batch of latents of this shape, on the generator's device."""
        t = torch.rand(shape[0], generator=rng, device=rng.device)
        if self.times == "logit-normal":
            t = torch.sigmoid(torch.special.ndtri(t.clamp(1e-6, 1 - 1e-6)))
        return Draw(t, torch.randn(shape, generator=rng, device=rng.device))

    def loss(
        self, net: Network, x: Float[Tensor, "b *s"], condition: Any, draw: Draw
    ) -> Float[Tensor, "b"]:
        """The mean squared error of each sample."""
        goal = draw.noise - x if self.target == "velocity" else draw.noise
        answer = net(noised(self.schedule, x, draw.t, draw.noise), draw.t, condition)
        return (answer.float() - goal).square().flatten(1).mean(1)

    def denoiser(self, net: Network) -> Denoiser:
        """The network's output, read as E[x | x_t]."""

        def denoise(x: Tensor, t: Tensor, condition: Any) -> Tensor:
            answer, time = net(x, t, condition).to(x.dtype), spread(t, x)
            if self.target == "velocity":
                return x - time * answer
            return (x - self.schedule.sigma(time) * answer) / self.schedule.alpha(time)

        return denoise
