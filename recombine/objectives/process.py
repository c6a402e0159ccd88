"""The noising process x_t = alpha(t) x + sigma(t) noise, t in [0, 1] with 1 = noise, and the
Denoiser interface.

A denoiser is any callable (x_t, t, condition) -> E[x | x_t]: a trained net, an exact mixture, a
composition of others. Solvers, guidance and locality maps treat them alike."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from recombine.config import config


@runtime_checkable
class Denoiser(Protocol):
    """The expected clean picture, given the noisy one. `condition` is whatever this denoiser
    understands."""

    def __call__(
        self, x: Float[Tensor, "b *s"], t: Float[Tensor, "b"], condition: Any
    ) -> Float[Tensor, "b *s"]: ...


class Schedule(ABC):
    """alpha and sigma as functions of t; a frozen dataclass. `slopes_in_sigma`: what Heun's
    method averages (EDM: dx / dsigma)."""

    slopes_in_sigma: ClassVar[bool] = False

    @abstractmethod
    def alpha(self, t: Tensor) -> Tensor: ...

    @abstractmethod
    def sigma(self, t: Tensor) -> Tensor: ...


@config("schedule/flow")
class Flow(Schedule):
    """The straight path of flow matching: alpha = 1 - t, sigma = t."""

    def alpha(self, t: Tensor) -> Tensor:
        return 1 - t

    def sigma(self, t: Tensor) -> Tensor:
        return t


@config("schedule/linear")
class Linear(Schedule):
    """DDPM's variance-preserving process with linear betas, in continuous time: beta(t) runs from
    `low` to `high` times `steps`, alpha^2 = exp(-integral of beta), sigma^2 = 1 - alpha^2. `signal`
    multiplies alpha: below 1, as where latents are noised that are smaller than the noise."""

    low: float = 1e-4
    high: float = 0.02
    steps: int = 1000
    signal: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.signal < math.inf:
            raise ValueError(f"signal must be positive, not {self.signal}")
        if self.steps < 1 or not 0 <= self.low <= self.high < 1 or not self.high:
            raise ValueError(
                f"betas must rise from 0 or more to less than 1 over one step or more, not from "
                f"{self.low} to {self.high} over {self.steps}"
            )

    def log_alpha(self, t: Tensor) -> Tensor:
        return -0.5 * self.steps * (self.low * t + 0.5 * (self.high - self.low) * t**2)

    def alpha(self, t: Tensor) -> Tensor:
        return self.signal * self.log_alpha(t).exp()

    def sigma(self, t: Tensor) -> Tensor:
        return (-torch.expm1(2 * self.log_alpha(t))).sqrt()


@config("schedule/log-snr")
class LogSNR(Schedule):
    """Variance preserving, with gamma = log(sigma^2 / alpha^2) linear in time from `low` to
    `high`. Some noise is left at time 0."""

    low: float = -5.0
    high: float = 10.0

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"low={self.low} must lie below high={self.high}")

    def gamma(self, t: Tensor) -> Tensor:
        return self.low + (self.high - self.low) * t

    def alpha(self, t: Tensor) -> Tensor:
        return torch.sigmoid(-self.gamma(t)).sqrt()

    def sigma(self, t: Tensor) -> Tensor:
        return torch.sigmoid(self.gamma(t)).sqrt()


def spread(t: Float[Tensor, "b"], like: Float[Tensor, "b *s"]) -> Tensor:
    """t with trailing axes of length one, so that it multiplies `like` sample by sample."""
    return t.reshape(-1, *[1] * (like.ndim - 1))


def noised(
    schedule: Schedule,
    x: Float[Tensor, "b *s"],
    t: Float[Tensor, "b"],
    noise: Float[Tensor, "b *s"],
) -> Tensor:
    t = spread(t, x)
    return schedule.alpha(t) * x + schedule.sigma(t) * noise


@dataclass(frozen=True)
class Guided:
    """Classifier-free guidance, denoiser -> denoiser: the conditional answer, pushed away from the
    unconditional one."""

    inner: Denoiser
    scale: float

    def __call__(
        self, x: Float[Tensor, "b *s"], t: Float[Tensor, "b"], condition: Any
    ) -> Float[Tensor, "b *s"]:
        free = self.inner(x, t, condition.null())
        return free + self.scale * (self.inner(x, t, condition) - free)
