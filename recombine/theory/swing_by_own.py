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
    """The user's own setting."""
    d, (task, begin) = task.dim, _folded(task, omega, rho)
    path, cut = _patient(task, begin)
    out = path.output(task.probe)
    loss, train = sim.probe_loss(out, task.probe), sim.train_loss(path.w, task.a[None])
    rank = task.a[: task.s].argsort(stable=True).tolist()
    weak, strong = rank[0], rank[-1]
    shown = sorted({rank[round(i)] for i in torch.linspace(0, task.s - 1, min(task.s, 4)).tolist()})
    names = [
        (f"w{i + 1}{j + 1}" if task.s < 10 else f"w{i + 1},{j + 1}", i, j)
        for i in shown
        for j in shown
        if i <= j
    ]
    times = detect.learning_times(
        path.t, path.w[:, :, range(task.s), range(task.s)], torch.ones(task.s)
    )
    order = " ".join(str(int(k) + 1) for k in detect.order(times)[0, :16])
    yield row(
        "yours.summary", mus=" ".join(f"{m:g}" for m in task.mu[:16]), sigmas=" ".join(f"{x:g}" for x in task.sigmas[:16]),
        omega=omega, rho=rho, d=d, s=task.s, weak=weak + 1, strong=strong + 1,
        mu_weak=task.mu[weak], mu_strong=task.mu[strong], sigma_weak=task.sigmas[weak], sigma_strong=task.sigmas[strong],
        rise=detect.relative_rise(loss)[0], swing_by=int(detect.swings_by(loss)[0]), descents=detect.descents(loss)[0],
        train_rise=detect.relative_rise(train)[0], order=order, end=loss[0, -1] / loss[0, 0], horizon_cut=int(cut),
    )  # fmt: skip
    for i in range(len(path.t)):
        entries = {name: path.w[0, i, p, q] for name, p, q in names}
        losses = {"ood": loss[0, i] / loss[0, 0], "train": train[0, i] / train[0, 0]}
        yield row(
            "yours.curve", t=path.t[i], x=out[0, i, weak], y=out[0, i, strong], **losses, **entries
        )
    if task.s <= 4:
        for stage in detect.stages(path.t, path.w[0], task.a, task.s):
            yield row(
                "yours.stage",
                stage=stage.name,
                entry=stage.entry,
                by=stage.by,
                start=stage.start,
                end=stage.end,
            )


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
