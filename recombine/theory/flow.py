"""The symmetric two-layer model f = U U^T x on structured identity mapping, in paper time.

W = U U^T moves by V(W) = W A + A W - 1/2 (A W^2 + W^2 A + 2 W A W), which is growth - suppression -
noise, entry by entry. True gradient flow on U gives 2 V (see theory/sim.py for the clocks).
Integrate it on U, by dU/dt = [A - 1/2 (W A + A W)] U: then W stays positive semidefinite whatever
the step. The recurrence on W itself, which was used in print, does not keep it so and is here only
to show what that does.

Every call runs a whole batch of trajectories. The batch lies on the last axis inside the
integrators: for the small d of this task the products are then a few long vector operations instead
of thousands of tiny matrix products. What runs at every step is exempt from the shape checks of the
tests."""

import math
from collections.abc import Callable
from typing import NamedTuple, no_type_check

import torch
from jaxtyping import Float
from torch import Tensor

SMALL = 16
"""Up to this inner size products are written out over the batch; above it they are matrix
products."""


def growth(w: Float[Tensor, "b d d"], a: Float[Tensor, "#b d"]) -> Float[Tensor, "b d d"]:
    """G_ij = w_ij (a_i + a_j)."""
    return w * (a[:, :, None] + a[:, None, :])


def suppression(w: Float[Tensor, "b d d"], a: Float[Tensor, "#b d"]) -> Float[Tensor, "b d d"]:
    """S_ij = 1/2 w_ij [w_ii (3 a_i + a_j) + w_jj (3 a_j + a_i)], the second term only off the
    diagonal."""
    by_row = w.diagonal(dim1=1, dim2=2)[:, :, None] * (3 * a[:, :, None] + a[:, None, :])
    by_column = by_row.mT * (1 - torch.eye(w.shape[-1], dtype=w.dtype, device=w.device))
    return 0.5 * w * (by_row + by_column)


def noise(w: Float[Tensor, "b d d"], a: Float[Tensor, "#b d"]) -> Float[Tensor, "b d d"]:
    """N_ij = 1/2 sum over k other than i, j of w_ki w_kj (a_i + a_j + 2 a_k): what passes through
    third coordinates."""
    i = torch.arange(w.shape[-1], device=w.device)
    third = ((i[:, None, None] != i) & (i[None, :, None] != i)).to(w.dtype)
    rates = third * (a[:, :, None, None] + a[:, None, :, None] + 2 * a[:, None, None, :])
    return 0.5 * torch.einsum("bki,bkj,bijk->bij", w, w, rates.expand(len(w), -1, -1, -1))


def field(w: Float[Tensor, "b d d"], a: Float[Tensor, "#b d"]) -> Float[Tensor, "b d d"]:
    """V(W), in matrix form."""
    wa, w2a = w * a[:, None, :], w @ w * a[:, None, :]
    return wa + wa.mT - 0.5 * (w2a + w2a.mT) - wa @ w


class Trajectory(NamedTuple):
    """W along training: `t` in paper time."""

    t: Float[Tensor, "t"]
    w: Float[Tensor, "b t d d"]

    def output(self, z: Float[Tensor, "d"]) -> Float[Tensor, "b t d"]:
        """The answers f(z) = W z."""
        return self.w @ z


class Rates(NamedTuple):
    """a_i and (a_i + a_j) / 2, with the batch on the last axis."""

    a: Float[Tensor, "d 1 b"]
    pair: Float[Tensor, "d d b"]


Step = Callable[[Tensor, Rates, float], Tensor]
"""(state, rates, dt) -> next state, with the batch on the last axis."""


def flow(
    u: Float[Tensor, "b d m"],
    a: Float[Tensor, "#b d"],
    dt: float,
    steps: int,
    every: int = 1,
    step: Step | None = None,
) -> Trajectory:
    """The trajectories that start from each U: `steps` of size `dt` in paper time, W kept at every
    `every`-th. `step` is `rk4` unless `euler` (the U-update of gradient descent) is given."""
    return _integrate(u, a, dt, steps, every, step or rk4, lambda u: product(u, u.transpose(0, 1)))


def recurrence(
    w: Float[Tensor, "b d d"], a: Float[Tensor, "#b d"], dt: float, steps: int, every: int = 1
) -> Trajectory:
    """W <- W + dt V(W), as in print. It leaves the positive semidefinite cone and may diverge; kept
    as evidence."""
    return _integrate(w, a, dt, steps, every, _recur, lambda w: w)


def _integrate(
    start: Tensor, a: Tensor, dt: float, steps: int, every: int, step: Step, w_of: Callable
) -> Trajectory:
    state = start.permute(1, 2, 0).contiguous()
    a = a.expand(len(start), -1).mT.contiguous()
    rates = Rates(a[:, None], 0.5 * (a[:, None] + a))
    kept = [w_of(state)]
    for i in range(1, steps + 1):
        state = step(state, rates, dt)
        if i % every == 0:
            kept.append(w_of(state))
    times = torch.arange(0, steps + 1, every, dtype=torch.float64) * dt
    return Trajectory(times, torch.stack(kept).permute(3, 0, 1, 2))


@no_type_check
def product(x: Float[Tensor, "i k b"], y: Float[Tensor, "k j b"]) -> Float[Tensor, "i j b"]:
    """The matrix product of every pair in the batch."""
    if x.shape[1] > SMALL:
        return (x.permute(2, 0, 1) @ y.permute(2, 0, 1)).permute(1, 2, 0)
    out = x[:, 0, None] * y[0]
    for k in range(1, x.shape[1]):
        out.addcmul_(x[:, k, None], y[k])
    return out


@no_type_check
def _velocity(u: Tensor, rates: Rates) -> Tensor:
    """dU/dt = A U - M U, where M_ij = w_ij (a_i + a_j) / 2."""
    pull, speed = product(u, u.transpose(0, 1)).mul_(rates.pair), rates.a * u
    if len(u) > SMALL:
        return speed - product(pull, u)
    for k in range(len(u)):
        speed.addcmul_(pull[:, k, None], u[k], value=-1)
    return speed


@no_type_check
def euler(u: Tensor, rates: Rates, dt: float) -> Tensor:
    """One step of gradient descent on U with learning rate dt / 2."""
    return torch.add(u, _velocity(u, rates), alpha=dt)


@no_type_check
def rk4(u: Tensor, rates: Rates, dt: float) -> Tensor:
    """One Runge-Kutta step of fourth order on U."""
    k1 = _velocity(u, rates)
    k2 = _velocity(torch.add(u, k1, alpha=dt / 2), rates)
    k3 = _velocity(torch.add(u, k2, alpha=dt / 2), rates)
    k4 = _velocity(torch.add(u, k3, alpha=dt), rates)
    return u + dt / 6 * (k1 + 2 * (k2 + k3) + k4)


@no_type_check
def _recur(w: Tensor, rates: Rates, dt: float) -> Tensor:
    w = w.permute(2, 0, 1)
    return (w + dt * field(w, rates.a[:, 0].mT)).permute(1, 2, 0)


def correlated(omega: float, rho: float, d: int) -> Float[Tensor, "d d"]:
    """The start W(0) = omega [(1 - rho) I + rho 1 1^T]."""
    return omega * (
        (1 - rho) * torch.eye(d, dtype=torch.float64) + rho * torch.ones(d, d, dtype=torch.float64)
    )


def root(w: Float[Tensor, "*b d d"]) -> Float[Tensor, "*b d d"]:
    """A U with U U^T = W. The flow of W depends on W alone, so any root will do, and a d x d one
    replaces a wide U."""
    values, vectors = torch.linalg.eigh(w)
    return vectors * values.clamp_min(0).sqrt()[..., None, :]


def largest_omega(
    ratio: float, d: int = 2, k: float = 20.0, kappa: float = 1.1, beta: float = 1.01
) -> float:
    """log10 of the largest initial scale that meets the printed assumptions D.3-D.5 together, for
    signals a_i / a_j = ratio. D.4 bounds P beta omega by q; D.5 then needs log P >= (1 + r)/(1 - r)
    (10 kappa^2 log(1/q) + log beta), r = 1 / ratio."""
    q = min(kappa - 1, 1 - kappa**-0.5) / (k * ratio * d * beta)
    r = 1 / ratio
    log_p = (1 + r) / (1 - r) * (10 * kappa**2 * math.log(1 / q) + math.log(beta))
    return (math.log(q) - log_p - math.log(beta)) / math.log(10)
