"""The exact two-layer flow at a setting of one's own: any signals, diversities, start and
dimension."""

import math
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from recombine.store import Row
from recombine.theory import detect, flow, sim
from recombine.theory.sim import IdentityMapping
from recombine.theory.swing_by_rows import POINTS, row

MOST_STEPS = 24_000
"""Where the horizon is cut: signals may differ by any factor, but the time to wait may not."""


def yours(task: IdentityMapping, omega: float, rho: float) -> Iterator[Row]:
    """The user's own setting: a summary, the curve, and the stages where there are few concepts."""
    folded, begin = _folded(task, omega, rho)
    path, is_cut = _patient(folded, begin)
    out = path.output(folded.probe)
    ood = sim.probe_loss(out, folded.probe)
    train = sim.train_loss(path.w, folded.a[None])
    rank = folded.a[: task.s].argsort(stable=True).tolist()
    about = {"omega": omega, "rho": rho, "d": task.dim, "s": task.s}
    yield row(
        "yours.summary",
        mus=" ".join(f"{m:g}" for m in task.mu[:16]),
        sigmas=" ".join(f"{x:g}" for x in task.sigmas[:16]),
        **about,
        **_ends(task, rank[0], rank[-1]),
        rise=detect.relative_rise(ood)[0],
        swing_by=int(detect.swings_by(ood)[0]),
        descents=detect.descents(ood)[0],
        train_rise=detect.relative_rise(train)[0],
        order=_order(path, task.s),
        end=ood[0, -1] / ood[0, 0],
        horizon_cut=int(is_cut),
    )
    names = _entries(task.s, rank)
    for i, t in enumerate(path.t):
        entries = {name: path.w[0, i, p, q] for name, p, q in names}
        losses = {"ood": ood[0, i] / ood[0, 0], "train": train[0, i] / train[0, 0]}
        answer = {"x": out[0, i, rank[0]], "y": out[0, i, rank[-1]]}
        yield row("yours.curve", t=t, **answer, **losses, **entries)
    if task.s <= 4:
        for stage in detect.stages(path.t, path.w[0], folded.a, task.s):
            span = {"start": stage.start, "end": stage.end}
            yield row("yours.stage", stage=stage.name, entry=stage.entry, by=stage.by, **span)


def _ends(task: IdentityMapping, weak: int, strong: int) -> dict[str, float | int]:
    """The weakest and the strongest concept, counted from 1, with their signals and diversities."""
    return {
        "weak": weak + 1,
        "strong": strong + 1,
        "mu_weak": task.mu[weak],
        "mu_strong": task.mu[strong],
        "sigma_weak": task.sigmas[weak],
        "sigma_strong": task.sigmas[strong],
    }


def _order(path: flow.Trajectory, s: int) -> str:
    """The concepts in the order in which they are learned, the first 16."""
    times = detect.learning_times(path.t, path.w[:, :, range(s), range(s)], torch.ones(s))
    return " ".join(str(int(k) + 1) for k in detect.order(times)[0, :16])


def _entries(s: int, rank: list[int]) -> list[tuple[str, int, int]]:
    """The entries of W that are kept: at most four concepts, from the weakest to the strongest."""
    kept = sorted({rank[round(i)] for i in torch.linspace(0, s - 1, min(s, 4)).tolist()})
    pairs = [(i, j) for i in kept for j in kept if i <= j]
    comma = "" if s < 10 else ","
    return [(f"w{i + 1}{comma}{j + 1}", i, j) for i, j in pairs]


def _folded(task: IdentityMapping, omega: float, rho: float) -> tuple[IdentityMapping, Tensor]:
    """The same run in at most s + 1 dimensions. The m = d - s coordinates without a concept start
    alike and have no rate of their own: only their common direction ever meets the concepts, so
    they fold into one coordinate, exactly."""
    m = task.dim - task.s
    if m < 2:
        return task, flow.correlated(omega, rho, task.dim)
    w = flow.correlated(omega, rho, task.s + 1)
    w[-1] *= math.sqrt(m)
    w[:, -1] *= math.sqrt(m)
    w[-1, -1] = omega * (1 + (m - 1) * rho)
    return replace(task, d=task.s + 1), w


def _patient(task: IdentityMapping, start: Tensor) -> tuple[flow.Trajectory, bool]:
    """W at POINTS even times until the weakest concept is learned, and whether the horizon had to
    be cut short. The step follows the stiffness of the moment, the size of W."""
    fast, slow = float(task.a.max()), float(task.a[task.a > 0].min())
    least = float(torch.linalg.eigvalsh(start)[0])
    horizon = (math.log(1 / min(max(least, 1e-5), 0.5)) + 7) / (2 * slow)
    most = MOST_STEPS * min(1.0, 16 / task.dim) / (10 * fast)
    gap, w = min(horizon, most) / POINTS, [start]
    for _ in range(POINTS):
        steps = math.ceil(gap * fast * max(10.0, 2 * float(torch.linalg.matrix_norm(w[-1], 2))))
        w.append(
            flow.flow(flow.root(w[-1])[None], task.a[None], gap / steps, steps, steps).w[0, -1]
        )
    return flow.Trajectory(
        torch.arange(POINTS + 1, dtype=torch.float64) * gap, torch.stack(w)[None]
    ), horizon > most
