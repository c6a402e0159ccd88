"""Solvers: from noise to pictures with any denoiser. All share one exact change of variables: along
the probability-flow ODE, d(x / sigma) = E[x | x_t] d(alpha / sigma), so a step from t to s needs
only the denoiser's answer."""

from abc import ABC, abstractmethod
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from recombine.config import config
from recombine.objectives.process import Denoiser, Schedule


class Solver(ABC):
    """A frozen dataclass with `steps`; its own config."""

    steps: int

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps must be positive, not {self.steps}")

    @abstractmethod
    def step(
        self,
        denoiser: Denoiser,
        schedule: Schedule,
        x: Float[Tensor, "b *s"],
        t: Tensor,
        s: Tensor,
        condition: Any,
        rng: torch.Generator | None,
    ) -> Float[Tensor, "b *s"]:
        """x at time s < t, given x at time t (scalars)."""

    def sample(
        self,
        denoiser: Denoiser,
        schedule: Schedule,
        noise: Float[Tensor, "b *s"],
        condition: Any,
        rng: torch.Generator | None = None,
    ) -> Float[Tensor, "b *s"]:
        """Pictures from standard normal `noise`; `rng` feeds the solvers that draw noise of their
        own."""
        times = torch.linspace(1, 0, self.steps + 1, device=noise.device, dtype=noise.dtype)
        x = schedule.sigma(times[0]) * noise
        for t, s in zip(times[:-1], times[1:], strict=True):
            x = self.step(denoiser, schedule, x, t, s, condition, rng)
        return x / schedule.alpha(times[-1])


def denoised(denoiser: Denoiser, x: Tensor, t: Tensor, condition: Any) -> Tensor:
    return denoiser(x, t.expand(len(x)), condition)


def advance(schedule: Schedule, x: Tensor, clean: Tensor, t: Tensor, s: Tensor) -> Tensor:
    """The exact solution from t to s if the denoiser's answer stayed `clean` all the way (DDIM)."""
    ratio = schedule.sigma(s) / schedule.sigma(t)
    return ratio * x + (schedule.alpha(s) - ratio * schedule.alpha(t)) * clean


@config("solver/euler")
class Euler(Solver):
    """First order."""

    steps: int = 50

    def step(self, denoiser, schedule, x, t, s, condition, rng=None):
        return advance(schedule, x, denoised(denoiser, x, t, condition), t, s)


@config("solver/heun")
class Heun(Solver):
    """Second order; one call in the last step, where sigma is 0. On EDM's schedule
    the mean of the slopes dx / dsigma = (x - answer) / sigma, as Karras et al. do: the mean of the
    answers, which others take, has up to twice the error there."""

    steps: int = 25

    def step(self, denoiser, schedule, x, t, s, condition, rng=None):
        clean = denoised(denoiser, x, t, condition)
        guess = advance(schedule, x, clean, t, s)
        if s == 0:
            return guess
        again = denoised(denoiser, guess, s, condition)
        if not schedule.slopes_in_sigma:
            return advance(schedule, x, (clean + again) / 2, t, s)
        before, after = schedule.sigma(t), schedule.sigma(s)
        return x + (after - before) / 2 * ((x - clean) / before + (guess - again) / after)


@config("solver/ancestral")
class Ancestral(Solver):
    """DDPM's stochastic sampler: x_s drawn from its law given x_t and the denoiser's answer."""

    steps: int = 250

    def step(self, denoiser, schedule, x, t, s, condition, rng=None):
        clean = denoised(denoiser, x, t, condition)
        forward = schedule.alpha(t) / schedule.alpha(s)
        added = schedule.sigma(t) ** 2 - (forward * schedule.sigma(s)) ** 2
        share = schedule.sigma(s) ** 2 / schedule.sigma(t) ** 2
        mean = forward * share * x + schedule.alpha(s) * added / schedule.sigma(t) ** 2 * clean
        noise = torch.randn(x.shape, generator=rng, device=x.device, dtype=x.dtype)
        return mean + (added * share).sqrt() * noise
