"""How far apart two laws are once both are noised: KL(p_s, q_s), and the score error that it is
made of.

Adding noise can only bring laws closer, at a rate the scores fix (de Bruijn's identity): with
variance v = s^2,

    d/dv KL(p_v, q_v) = -1/2 E_{p_v} |score_p - score_q|^2,

so all score error above a noise level adds up to exactly twice the KL that is left there.
Expectations are taken over scrambled Sobol points, the same ones at every level, the same number in
each component of p."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from scipy.interpolate import CubicSpline
from torch import Tensor

from recombine.theory.mixtures import Mixture


class Gap(NamedTuple):
    """At one noise level: KL(p, q), E|s_p - s_q|^2, and that error as a share of E|s_p|^2."""

    kl: float
    error: float
    relative: float


class Points(NamedTuple):
    """Standard normal points, spread evenly over components: whose component, where, and how much
    each counts."""

    which: Tensor
    noise: Float[Tensor, "b d"]
    weight: Float[Tensor, "b"]


def even_points(law: Mixture, per_component: int, seed: int = 0) -> Points:
    """`per_component` Sobol points (best a power of two) for each component."""
    count = len(law.log_weight)
    engine = torch.quasirandom.SobolEngine(law.dim, scramble=True, seed=seed)
    uniform = engine.draw(per_component * count, dtype=torch.float64).clamp(1e-12, 1 - 1e-12)
    which = torch.arange(count).repeat_interleave(per_component)
    return Points(which, torch.special.ndtri(uniform), law.log_weight.exp()[which] / per_component)


def gap(p: Mixture, q: Mixture, sigma: float, at: Points, rows: int = 2048) -> Gap:
    """The gap between p and q at noise sigma (alpha = 1), over `rows` points at a time (so that
    they stay in cache)."""
    kl = error = size = 0.0
    wide = Mixture(p.log_weight, p.mean, p.along + sigma**2, p.axes)
    for which, noise, weight in zip(*(a.split(rows) for a in at), strict=True):
        log_ratio, ours, theirs = _compared(p, q, wide.place(which, noise), sigma)
        kl += (log_ratio @ weight).item()
        if (
            q.mean is p.mean
        ):  # the ratio r = p / q is bounded: E_p[1/r - 1] = 0 takes most of the variance away
            kl += (torch.expm1(-log_ratio) @ weight).item()
        error += ((ours - theirs).square().sum(1) @ weight).item()
        size += (ours.square().sum(1) @ weight).item()
    return Gap(kl, error, error / size)


def _compared(
    p: Mixture, q: Mixture, x: Float[Tensor, "b d"], sigma: float
) -> tuple[Tensor, Tensor, Tensor]:
    """log p / q and both scores; laws that share their components are evaluated once."""
    log_p, pull, _ = p.log_each(x, 1.0, sigma)
    if q.mean is p.mean:
        log_q, other = log_p + (q.log_weight - p.log_weight), pull
    else:
        log_q, other, _ = q.log_each(x, 1.0, sigma)
    log_ratio = torch.logsumexp(log_p, 1) - torch.logsumexp(log_q, 1)
    return log_ratio, -p.weighed(log_p.softmax(1), pull), -q.weighed(log_q.softmax(1), other)


def gaps(
    p: Mixture, q: Mixture, sigmas: Sequence[float], per_component: int = 128, seed: int = 0
) -> list[Gap]:
    at = even_points(p, per_component, seed)
    return [gap(p, q, sigma, at) for sigma in sigmas]


def remaining(sigmas: Sequence[float], errors: Sequence[float]) -> list[float]:
    """The KL left at each level as de Bruijn gives it: 1/2 of the integral over v of the error,
    from the level to infinity. In u = log sigma this is the integral of error * sigma^2; beyond the
    last level the error falls like sigma^-4."""
    u, height = np.log(sigmas), np.asarray(errors) * np.square(sigmas)
    curve = CubicSpline(u, height)
    return [float(curve.integrate(low, u[-1]) + height[-1] / 2) for low in u]
