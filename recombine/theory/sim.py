"""Structured identity mapping (SIM): the smallest task in which concepts are learned one by one and
then composed.

Training data are s Gaussian clusters, one on each concept axis: cluster p is centred at mu_p e_p,
with standard deviation sigma_j along axis j in every cluster. The target is the input itself. The
test point x^ = sum_p mu_p e_p shows all concepts at once and lies in none of the clusters.

Three clocks measure training. *Gradient-flow time* is the one in which weights move by minus the
gradient of L = 1/2 E|f(x) - x|^2. *Paper time* is the clock of the published two-layer equations,
which run at half that speed, so paper time is twice gradient-flow time. *SGD steps* on a squared
error that is averaged over the d outputs advance gradient-flow time by 2 lr / d each."""

import itertools
import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


def sgd_steps(time: float, lr: float, d: int) -> float:
    """Steps of SGD on the squared error averaged over d outputs that take so much gradient-flow
    time."""
    return time * d / (2 * lr)


@dataclass(frozen=True)
class IdentityMapping:
    """The data. `mu` are the signals, one per concept; `sigma` the diversities (one number, or one
    per concept; standard deviations); `d` the input dimension (None: no more than the concepts);
    `origin` adds a cluster at zero."""

    mu: tuple[float, ...]
    sigma: float | tuple[float, ...] = 0.05
    d: int | None = None
    origin: bool = False

    def __post_init__(self) -> None:
        numbers = (*self.mu, *self.sigmas)
        if (
            not self.mu
            or min(self.mu) < 0
            or max(self.mu) == 0
            or not all(map(math.isfinite, numbers))
        ):
            raise ValueError(
                f"mu={self.mu}: signals are finite, not negative, and at least one is positive"
            )
        if min(self.sigmas) < 0:
            raise ValueError(f"sigma={self.sigma}: a standard deviation is not negative")
        if len(self.sigmas) != self.s:
            raise ValueError(
                f"sigma has {len(self.sigmas)} values and mu has {self.s}: "
                "give one number, or one per concept"
            )
        if self.d is not None and self.d < self.s:
            raise ValueError(f"d={self.d} is less than s={self.s}, the number of concepts in mu")

    @property
    def s(self) -> int:
        return len(self.mu)

    @property
    def dim(self) -> int:
        return self.s if self.d is None else self.d

    @property
    def sigmas(self) -> tuple[float, ...]:
        return self.sigma if isinstance(self.sigma, tuple) else (self.sigma,) * len(self.mu)

    @property
    def clusters(self) -> int:
        return self.s + self.origin

    @property
    def a(self) -> Float[Tensor, "d"]:
        """The diagonal of the second moment E[x x^T]: mu_p^2 / clusters + sigma_p^2, zero where
        there is no concept. These are the rates at which everything is learned."""
        a = torch.zeros(self.dim, dtype=torch.float64)
        a[: self.s] = (
            torch.tensor(self.mu).double() ** 2 / self.clusters
            + torch.tensor(self.sigmas).double() ** 2
        )
        return a

    @property
    def probe(self) -> Float[Tensor, "d"]:
        """The test point x^: all concepts at once."""
        return torch.cat([torch.tensor(self.mu).double(), torch.zeros(self.dim - self.s).double()])

    def probes(self) -> tuple[Float[Tensor, "n d"], list[tuple[int, ...]]]:
        """The 2^s corners v of the concept hypercube and their points sum_p v_p mu_p e_p, the
        origin first."""
        corners = list(itertools.product((0, 1), repeat=self.s))
        padded = torch.tensor([[*v, *[0] * (self.dim - self.s)] for v in corners]).double()
        return padded * self.probe, corners

    def concepts(
        self, n: int, b: int, rng: torch.Generator, away: float = 0.0
    ) -> Float[Tensor, "b m s"]:
        """b shuffled training sets of n points per cluster, in concept coordinates. Points nearer
        to x^ than `away` are sampled again: the answer to "does the model not simply see neighbours
        of the test point?"."""
        centres = torch.diag(torch.tensor(self.mu).double())
        if self.origin:
            centres = torch.cat([centres, torch.zeros(1, self.s).double()])
        centre = centres.repeat_interleave(n, 0)[torch.randperm(n * self.clusters, generator=rng)]
        spread = torch.tensor(self.sigmas).double()
        x = centre + spread * torch.randn(b, *centre.shape, generator=rng, dtype=torch.float64)
        while away and (near := (x - self.probe[: self.s]).norm(dim=-1) < away).any():
            fresh = centre + spread * torch.randn(x.shape, generator=rng, dtype=torch.float64)
            x = torch.where(near[..., None], fresh, x)
        return x


def second_moment(x: Float[Tensor, "*b n d"]) -> Float[Tensor, "*b d d"]:
    """The uncentred second moment of each set: all that a linear model ever sees of it."""
    return x.mT @ x / x.shape[-2]


def rotation(d: int, rng: torch.Generator) -> Float[Tensor, "d d"]:
    """A random orthogonal matrix. Its first s rows are a frame that hides the concept axes from the
    network."""
    q, r = torch.linalg.qr(torch.randn(d, d, generator=rng, dtype=torch.float64))
    return q * r.diagonal().sign()


def one_layer(
    w: Float[Tensor, "b d d"],
    a: Float[Tensor, "#b d"],
    t: Float[Tensor, "t"],
    z: Float[Tensor, "d"],
) -> Float[Tensor, "b t d"]:
    """f = W x under gradient flow dW/dt = -(W - I) A, solved in closed form at the point z and the
    times t: each column of W - I decays at its own rate a_i. The sum over columns runs to d, not to
    s as in print: so it is right for every z."""
    left = torch.exp(-a[:, None] * t[:, None]) * z
    return z + torch.einsum(
        "bki,bti->btk", w - torch.eye(w.shape[-1], dtype=w.dtype), left.expand(len(w), -1, -1)
    )


def probe_loss(output: Float[Tensor, "*b d"], target: Float[Tensor, "d"]) -> Float[Tensor, "*b"]:
    """1/2 |f(x^) - x^|^2."""
    return 0.5 * (output - target).square().sum(-1)


def train_loss(w: Float[Tensor, "b t d d"], a: Float[Tensor, "#b d"]) -> Float[Tensor, "b t"]:
    """1/2 |(W - I) A^(1/2)|^2: the loss of a linear model on the whole distribution."""
    return 0.5 * ((w - torch.eye(w.shape[-1], dtype=w.dtype)).square() * a[:, None, None]).sum(
        (-1, -2)
    )
