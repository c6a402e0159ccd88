"""Feature maps: invertible changes of coordinates x = A(z). Composition in feature space z looks at
x through such a map.

The noise of diffusion is round in x. Only a rotation keeps it round in z, which is why only
rotations are safe."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from recombine.rng import seeded


@runtime_checkable
class FeatureMap(Protocol):
    def __call__(self, z: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]: ...

    def inverse(self, x: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]: ...


@dataclass(frozen=True, eq=False)
class Matrix:
    """A linear map."""

    matrix: Float[Tensor, "d d"]

    def __call__(self, z: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
        return z @ self.matrix.T

    def inverse(self, x: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
        return torch.linalg.solve(self.matrix, x.T).T


@dataclass(frozen=True)
class Swirl:
    """Not linear: each pair of coordinates is turned by an angle that grows with its radius. Keeps
    radius and volume."""

    turn: float

    def __call__(self, z: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
        return _turned(z, self.turn)

    def inverse(self, x: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
        return _turned(x, -self.turn)


def _turned(z: Float[Tensor, "b d"], turn: float) -> Float[Tensor, "b d"]:
    half = z.shape[1] // 2
    first, second, odd = z[:, :half], z[:, half : 2 * half], z[:, 2 * half :]
    angle = turn * (first**2 + second**2).sqrt()
    cos, sin = angle.cos(), angle.sin()
    return torch.cat([cos * first - sin * second, sin * first + cos * second, odd], 1)


def identity(dim: int) -> Matrix:
    return Matrix(torch.eye(dim, dtype=torch.float64))


def orthogonal(dim: int, seed: int = 0) -> Matrix:
    """A random rotation or reflection."""
    gauss = torch.randn(dim, dim, generator=seeded(seed, "orthogonal"), dtype=torch.float64)
    return Matrix(torch.linalg.qr(gauss).Q)


def skewed(dim: int, skew: float) -> Matrix:
    """Unit axes that lean towards each other: the cosine between any two of them is `skew`."""
    if not -1 / (dim - 1) < skew < 1:
        raise ValueError(
            f"skew {skew} is not between -1/{dim - 1} and 1, where {dim} axes span the space"
        )
    gram = torch.full((dim, dim), skew, dtype=torch.float64)
    return Matrix(torch.linalg.cholesky(gram.fill_diagonal_(1.0)).T.contiguous())
