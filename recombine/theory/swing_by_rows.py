"""What the swing-by experiments share: the reference setting, correlated starts, and flat rows."""

import math

import torch
from torch import Tensor

from recombine.store import Row
from recombine.theory import flow, sim
from recombine.theory.sim import IdentityMapping

REFERENCE, OMEGA, RHO = IdentityMapping((1.0, 2.0), 0.05), 0.01, 0.9
DT = 0.006
POINTS = 240
"""At most so many points of a curve are kept as rows."""


def row(kind: str, **values: float | int | str | Tensor) -> Row:
    """A flat row: tensors become numbers of seven digits, and what is not finite becomes None."""
    return {"kind": kind, **{k: _plain(v) for k, v in values.items()}}


def _plain(value: float | int | str | Tensor) -> float | int | str | None:
    value = value.item() if isinstance(value, Tensor) else value
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else None
    return value


def thin(length: int, points: int = POINTS) -> list[int]:
    """Indices that keep at most `points` of a curve, its ends included."""
    return sorted({round(i) for i in torch.linspace(0, length - 1, min(points, length)).tolist()})


def start(omega: float, rho: float, d: int) -> Tensor:
    return flow.root(flow.correlated(omega, rho, d))[None]


def starts(pairs: list[tuple[float, float]], d: int = 2) -> Tensor:
    """One U per (omega, rho)."""
    return torch.cat([start(omega, rho, d) for omega, rho in pairs])


def follow(
    u: Tensor, task: IdentityMapping, a: Tensor, dt: float, steps: int, every: int = 1
) -> tuple[flow.Trajectory, Tensor]:
    """The trajectories and their losses at x^."""
    path = flow.flow(u, a, dt, steps, every)
    return path, sim.probe_loss(path.output(task.probe), task.probe)


def published_start(number: int, d: int, divisor: float) -> Tensor:
    """The start of a published figure: uniform single-precision numbers from torch's generator,
    divided."""
    rng = torch.Generator().manual_seed(number)
    return (torch.rand(d, d, generator=rng) / divisor).double()[None]
