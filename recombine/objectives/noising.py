"""Objectives whose network becomes a Denoiser: what diffusion and EDM share. They differ in
schedule, loss and in how the network's output is read."""

from abc import abstractmethod
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from recombine.nets.conditioning import Conditioning
from recombine.nets.net_config import NetConfig, Shape
from recombine.objectives.objective import Codes, Objective
from recombine.objectives.process import Denoiser, Schedule, noised
from recombine.objectives.solvers import Solver
from recombine.worlds.factors import FactorSpace


class Noising(Objective):
    """A frozen dataclass with a `schedule`."""

    schedule: Schedule

    @abstractmethod
    def denoiser(self, net: Any) -> Denoiser:
        """The network's output, read as E[x | x_t]."""

    def schedule_of(self, net: Any) -> Schedule:
        """The schedule of a network; its own where it learned one."""
        return self.schedule

    def network(
        self,
        net: NetConfig,
        conditioning: Conditioning,
        shape: Shape,
        space: FactorSpace,
        codes: Codes = None,
    ) -> nn.Module:
        return net.build(conditioning, shape, space)

    def expect(
        self,
        net: Any,
        x: Float[Tensor, "b c h w"],
        condition: Any,
        gone: float,
        rng: torch.Generator,
    ) -> Float[Tensor, "b c h w"]:
        t, noise = (
            x.new_full((len(x),), gone),
            torch.randn(x.shape, generator=rng, device=rng.device),
        )
        return self.denoiser(net)(noised(self.schedule_of(net), x, t, noise), t, condition)

    def sample(
        self, net: Any, shape: Shape, condition: Any, rng: torch.Generator, sampler: Solver
    ) -> Float[Tensor, "b c h w"]:
        denoiser, schedule = self.denoiser(net), self.schedule_of(net)
        return self.follow(denoiser, shape, condition, rng, sampler, schedule)

    def follow(
        self,
        denoiser: Denoiser,
        shape: Shape,
        condition: Any,
        rng: torch.Generator,
        solver: Solver,
        schedule: Schedule | None = None,
    ) -> Float[Tensor, "b c h w"]:
        """From noise to latents with any denoiser of this process: the trained one, a guided or a
        composed one."""
        noise = torch.randn((len(condition.present), *shape), generator=rng, device=rng.device)
        return solver.sample(denoiser, schedule or self.schedule, noise, condition, rng)
