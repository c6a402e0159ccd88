"""Gaussian mixtures at every noise level: density, score and denoiser in closed form.

If x has the law of a mixture, then x_t = alpha x + sigma noise is a mixture again: means times
alpha, covariances times alpha^2 plus sigma^2. Each covariance is kept by its axes and the variances
along them, so a change of noise level costs no linear algebra, and every row of a batch may have a
level of its own. The sigma convention is alpha = 1."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from recombine.config import config
from recombine.objectives.process import Schedule, spread
from recombine.worlds.factors import Condition

Level = Float[Tensor, "..."] | float
"""alpha or sigma: one number for the whole batch (a third cheaper), or one a row."""
Prompt = tuple[int | None, ...]
"""The value of each condition; None where the condition is not present."""


@config("schedule/exploding")
class Exploding(Schedule):
    """The sigma convention as a schedule: alpha = 1, sigma = high t^power; power > 1 makes small
    steps at low noise."""

    high: float = 20.0
    power: float = 3.0

    def alpha(self, t: Tensor) -> Tensor:
        return torch.ones_like(t)

    def sigma(self, t: Tensor) -> Tensor:
        return self.high * t**self.power


@dataclass(frozen=True, eq=False)
class Mixture:
    """Weighted Gaussians. Component n has variance `along[n, e]` along column e of `axes[n]`; no
    axes: the pixels'."""

    log_weight: Float[Tensor, "n"]
    mean: Float[Tensor, "n d"]
    along: Float[Tensor, "n d"]
    axes: Float[Tensor, "n d d"] | None = None

    @property
    def dim(self) -> int:
        return self.mean.shape[1]

    @property
    def covariance(self) -> Float[Tensor, "n d d"]:
        if self.axes is None:
            return torch.diag_embed(self.along)
        return torch.einsum("nde,ne,nfe->ndf", self.axes, self.along, self.axes)

    def moments(self) -> tuple[Float[Tensor, "d"], Float[Tensor, "d d"]]:
        """Mean and covariance of the whole mixture."""
        weight = self.log_weight.exp()
        mean = weight @ self.mean
        off = self.mean - mean
        return mean, torch.einsum(
            "n,ndf->df", weight, self.covariance + off[:, :, None] * off[:, None, :]
        )

    def log_each(
        self, x: Float[Tensor, "b d"], alpha: Level, sigma: Level
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Every component by itself: the log of its share of the density of x_t (b n), its pull,
        which is the residual over the variance (b n d), and its gain alpha * variance of x; both
        along the component's own axes."""
        alpha, sigma = _per_row(alpha, x), _per_row(sigma, x)
        residual = x[:, None, :] - alpha * self.mean
        if self.axes is not None:
            residual = torch.einsum("bnd,nde->bne", residual, self.axes)
        variance = alpha**2 * self.along + sigma**2
        pull = residual / variance
        log = -0.5 * (residual * pull + variance.log() + math.log(2 * math.pi)).sum(-1)
        return self.log_weight + log, pull, alpha * self.along

    def log_density(
        self, x: Float[Tensor, "b d"], alpha: Level = 1.0, sigma: Level = 0.0
    ) -> Float[Tensor, "b"]:
        return torch.logsumexp(self.log_each(x, alpha, sigma)[0], -1)

    def score(
        self, x: Float[Tensor, "b d"], alpha: Level = 1.0, sigma: Level = 0.0
    ) -> Float[Tensor, "b d"]:
        """The gradient of the log density."""
        log, pull, _ = self.log_each(x, alpha, sigma)
        return -self.weighed(log.softmax(-1), pull)

    def denoise(
        self, x: Float[Tensor, "b d"], alpha: Level = 1.0, sigma: Level = 0.0
    ) -> Float[Tensor, "b d"]:
        """E[x | x_t]. Needs no division by alpha or sigma, so pure noise (alpha = 0) is answered
        too: the mean."""
        log, pull, gain = self.log_each(x, alpha, sigma)
        share = log.softmax(-1)
        return share @ self.mean + self.weighed(share, gain * pull)

    def weighed(
        self, share: Float[Tensor, "b n"], own: Float[Tensor, "b n d"]
    ) -> Float[Tensor, "b d"]:
        """The components' answers, given along their own axes, each counted by its share."""
        if self.axes is None:
            return (share[:, :, None] * own).sum(1)
        return torch.einsum("bne,nde->bd", share[:, :, None] * own, self.axes)

    def sample(self, count: int, rng: torch.Generator) -> Float[Tensor, "b d"]:
        which = torch.multinomial(self.log_weight.exp(), count, replacement=True, generator=rng)
        noise = torch.randn(
            count, self.dim, generator=rng, dtype=self.mean.dtype, device=self.mean.device
        )
        return self.place(which, noise)

    def place(self, which: Int[Tensor, "b"], noise: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
        """The points that standard normal `noise` becomes in the components `which`."""
        step = self.along[which].sqrt() * noise
        return self.mean[which] + (
            step if self.axes is None else torch.einsum("bde,be->bd", self.axes[which], step)
        )

    def marginal(self, pixels: tuple[int, ...]) -> "Mixture":
        """The law of some of the pixels."""
        keep = list(pixels)
        if self.axes is None:
            return Mixture(self.log_weight, self.mean[:, keep], self.along[:, keep])
        return mixture(self.log_weight, self.mean[:, keep], self.covariance[:, keep][:, :, keep])

    def mapped(self, matrix: Float[Tensor, "f d"]) -> "Mixture":
        """The law of matrix @ x."""
        return mixture(self.log_weight, self.mean @ matrix.T, matrix @ self.covariance @ matrix.T)

    def merged(self) -> "Mixture":
        """The same law without repeated components, as marginals of products have many (equal to
        nine digits)."""
        key = torch.cat([self.mean, self.covariance.flatten(1)], 1).mul(1e9).round()
        _, which = key.unique(dim=0, return_inverse=True)
        kept = torch.stack([(which == i).nonzero()[0, 0] for i in range(int(which.max()) + 1)])
        weight = self.mean.new_zeros(len(kept)).index_add(0, which, self.log_weight.exp())
        axes = None if self.axes is None else self.axes[kept]
        return Mixture(weight.log(), self.mean[kept], self.along[kept], axes)

    def reweighted(self, log_weight: Float[Tensor, "n"]) -> "Mixture":
        """The same components, weighted anew."""
        return Mixture(log_weight.log_softmax(0), self.mean, self.along, self.axes)


def _per_row(level: Level, x: Float[Tensor, "b d"]) -> Float[Tensor, "r 1 1"]:
    return torch.as_tensor(level, dtype=x.dtype, device=x.device).reshape(-1, 1, 1)


def mixture(
    log_weight: Float[Tensor, "n"], mean: Float[Tensor, "n d"], covariance: Float[Tensor, "n d d"]
) -> Mixture:
    """The mixture with these covariances; weights need not be normalised."""
    along, axes = torch.linalg.eigh(covariance)
    if along.min() < -1e-9 * along.abs().max():
        raise ValueError(f"a covariance cannot have the negative eigenvalue {along.min():.3g}")
    return Mixture(log_weight.log_softmax(0), mean, along.clamp(min=0), axes)


def points(
    mean: Float[Tensor, "n d"], log_weight: Float[Tensor, "n"] | None = None, width: float = 0.0
) -> Mixture:
    """Round components of one width; width 0: point masses, a finite data set."""
    log_weight = mean.new_zeros(len(mean)) if log_weight is None else log_weight
    return Mixture(log_weight.log_softmax(0), mean, torch.full_like(mean, width**2))


class Block(NamedTuple):
    """The law of some pixels, independent of all others."""

    pixels: tuple[int, ...]
    law: Mixture


Law = Callable[[Prompt], tuple[Block, ...]]
"""A conditional law: prompt -> independent blocks that together cover every pixel."""


def unconditional(law: Mixture) -> Law:
    """The same mixture, whatever the prompt."""
    return lambda prompt: (Block(tuple(range(law.dim)), law),)


@dataclass(frozen=True, eq=False)
class Exact:
    """The Denoiser of a conditional law. Pictures of any shape are read as flat rows of pixels."""

    law: Law
    schedule: Schedule
    known: dict[Prompt, tuple[Block, ...]] = field(default_factory=dict, repr=False)

    def __call__(
        self, x: Float[Tensor, "b *s"], t: Float[Tensor, "b"], condition: Condition | None = None
    ) -> Float[Tensor, "b *s"]:
        flat, clean = x.reshape(len(x), -1), torch.zeros_like(x).reshape(len(x), -1)
        level = t[:1] if (t == t[0]).all() else t
        for prompt, rows in distinct_prompts(condition, len(x)):
            for pixels, law in self.blocks(prompt):
                here = rows[:, None], torch.tensor(pixels, device=x.device)
                own = level if len(level) == 1 else level[rows]
                clean[here] = law.denoise(
                    flat[here], self.schedule.alpha(own), self.schedule.sigma(own)
                )
        return clean.reshape(x.shape)

    def blocks(self, prompt: Prompt) -> tuple[Block, ...]:
        if prompt not in self.known:
            self.known[prompt] = self.law(prompt)
        return self.known[prompt]


def distinct_prompts(
    condition: Condition | None, count: int
) -> Iterator[tuple[Prompt, Int[Tensor, "r"]]]:
    """Every different prompt in a batch, with the rows that have it."""
    if condition is None:
        yield (), torch.arange(count)
        return
    kinds, which = condition.index.masked_fill(~condition.present, -1).unique(
        dim=0, return_inverse=True
    )
    for number, kind in enumerate(kinds.tolist()):
        yield tuple(None if v < 0 else v for v in kind), (which == number).nonzero()[:, 0]


def condition_of(prompt: Prompt, count: int) -> Condition:
    """The prompt as a condition, `count` times."""
    index = torch.tensor([[0 if v is None else v for v in prompt]] * count)
    present = torch.tensor([[v is not None for v in prompt]] * count)
    return Condition(index, torch.zeros(count, 0, dtype=torch.float64), present)


@dataclass(frozen=True, eq=False)
class Score:
    """Tweedie's relation: score = (alpha E[x | x_t] - x_t) / sigma^2, for the answer of any
    denoiser."""

    denoiser: Callable[..., Tensor]
    schedule: Schedule

    def __call__(
        self, x: Float[Tensor, "b *s"], t: Float[Tensor, "b"], condition: Any = None
    ) -> Float[Tensor, "b *s"]:
        level = spread(t, x)
        return (
            self.schedule.alpha(level) * self.denoiser(x, t, condition) - x
        ) / self.schedule.sigma(level) ** 2
