"""The experiments of the study `swing-by` that train networks by SGD, that show what went wrong in print, the phase diagrams,
and the run at the user's own setting."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from recombine.rng import seeded
from recombine.studies.base import Row
from recombine.studies.swing_by.parts import OMEGA, POINTS, RHO, published_start, row, starts, thin
from recombine.theory import detect, flow, mlp, sim
from recombine.theory.sim import Task

WIDE = 0.05**0.5
"""The published networks read sigma = 0.05 as a variance."""
MOST_STEPS = 24_000
"""Where the horizon of the user's own setting is cut: signals may differ by any factor, interrupt_guard may not."""


def fit(
    task: Task, net: mlp.MLP, seeds: int, steps: int, away: float = 0.0, every: int = 10
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Linear networks trained at lr = d / 300 (so a step is 1/150 of gradient-flow time whatever d): the steps, the answers
    to x^, its loss, and the training loss, read off the answers to the axes."""
    epoch = mlp.compress(mlp.batches(task.concepts(5000, seeds, seeded(0, "clusters"), away)))
    frame = torch.eye(task.s, task.dim, dtype=torch.float64)
    probes = torch.cat([task.probe[None], frame])
    t, out = mlp.train(
        net, net.init(seeds, seeded(0, "layers", net.depth)), epoch, probes, steps, task.dim / 300, every, frame
    )
    train = 0.5 * ((out[:, :, 1:] - frame).square().sum(-1) * task.a[: task.s]).sum(-1)
    return t, out[:, :, 0], sim.probe_loss(out[:, :, 0], task.probe), train


def depth_and_dimension(seeds: int, steps: int) -> Iterator[Row]:
    """How often networks swing by: over depth at d = 3, over d at depth 4."""
    for depth, d in ((1, 3), (2, 3), (3, 3), (4, 3), (4, 2), (4, 8), (4, 64)):
        task = Task((1.0, 2.0), WIDE, d)
        t, out, loss, train = fit(
            task, mlp.MLP(d, depth), seeds if d < 64 else min(seeds, 32), steps if d < 64 else steps // 2
        )
        rise = detect.relative_rise(loss)
        steep = detect.relative_rise(train)[rise > detect.RISE]
        yield row(
            "t12", depth=depth, d=d, seeds=len(rise), share=(rise > detect.RISE).double().mean(), largest=rise.max(),
            train_rise=steep.max() if len(steep) else 0.0, learned=(loss[:, -1] < 0.01 * loss[:, 0]).double().mean(),
        )  # fmt: skip
        if (depth, d) == (4, 3):
            best = int(torch.where(detect.swings_by(loss), rise, -1).argmax())
            for i in thin(len(t)):
                point = {"x": out[best, i, 0], "y": out[best, i, 1], "ood": loss[best, i] / loss[best, 0]}
                yield row("t12.curve", step=int(t[i]), **point, train=train[best, i] / train[best, 0])


def truncation(seeds: int, steps: int) -> Iterator[Row]:
    """The same networks and noise with and without the training points near x^."""
    for sigma in (WIDE, 0.5):
        task = Task((1.0, 2.0), sigma, 3)
        radius = min(task.mu) / 2
        net = mlp.MLP(3, 3)
        (_, whole, before, _), (_, cut, after, _) = fit(task, net, seeds, steps), fit(task, net, seeds, steps, radius)
        points = task.concepts(5000, seeds, seeded(0, "clusters"))
        near = ((points - task.probe[:2]).norm(dim=-1) < radius).double().mean()
        apart = (whole - cut).norm(dim=-1).amax(1) / task.probe.norm()
        swung = [(detect.relative_rise(loss) > detect.RISE) for loss in (before, after)]
        yield row(
            "t11", sigma=sigma, removed=near, apart_median=apart.median(), apart_max=apart.max(), seeds=seeds,
            same=(swung[0] == swung[1]).double().mean(), share=swung[0].double().mean(), share_cut=swung[1].double().mean(),
        )  # fmt: skip


def hypercube(seeds: int, epochs: int = 6, d: int = 64) -> Iterator[Row]:
    """The order of the 16 probes, epoch by epoch, in the networks of the published code (which have biases), and in the
    bias-free ones that the theory speaks of."""
    task = Task((1.0, 2.0, 3.0, 4.0), 0.5, d)
    frame = sim.rotation(d, seeded(0, "rotation"))[: task.s]
    points, corners = task.probes()
    asked = points[:, : task.s] @ frame
    data = mlp.batches(task.concepts(5000, seeds, seeded(0, "hypercube")))
    for bias, depth in itertools.product((True, False), (1, 2)):
        net = mlp.MLP(d, depth, relu=depth > 1, bias=bias)
        name = ("one layer", "two layers, ReLU")[depth - 1] + ("" if bias else ", no bias")
        epoch = data if net.relu else mlp.compress(data)
        length = epoch.shape[1]
        t, out = mlp.train(
            net, net.init(seeds, seeded(0, "nodes")), epoch, asked, epochs * length, 0.1, length // 4, frame
        )
        loss = 0.5 * (out - asked).square().sum(-1)
        kept = detect.ordered_pairs(loss, corners)
        for i, share in enumerate(kept.mean(0)):
            yield row("t13", net=name, epoch=float(t[i]) / length, share=share, worst=kept[:, i].min(), seeds=seeds)
        for when in (0, 1, 2, 4):
            at = int((t / length - when).abs().argmin())
            for v, value in zip(corners, loss[:, at].mean(0), strict=True):
                yield row("t13.node", net=name, epoch=when, corner="".join(map(str, v)), loss=value)


FIG5 = (torch.tensor([[0.5025, 1.1275, 0.0025]]).double(), torch.tensor([1.0, 1.5, 0.0]).double())
"""Second moment and test point of the published two-layer figure, with its variance also on the third, empty coordinate."""


def in_print(seeds: int, length: float = 1.0) -> Iterator[Row]:
    """A^2 for A, and the recurrence on W for the update of U, on the published starts and on fresh ones."""
    a, z = FIG5
    u = published_start(2333, 3, 5.0)
    for variant, rates in (("A", a), ("A^2", a**2)):
        loss = sim.probe_loss(flow.recurrence(u @ u.mT, rates, 0.01, 2000).output(z), z)
        yield row("t14.fig5", variant=variant, rise=detect.relative_rise(loss)[0], descents=detect.descents(loss)[0])
        for i in thin(2001, 200):
            yield row("t14.fig5.curve", variant=variant, step=i, loss=loss[0, i] / loss[0, 0])
    u, rates = published_start(233333, 3, 10.0), Task((0.7, 1.7, 3.0)).a[None] ** 2
    for name, path in _both(u, rates, int(180 * length) * 100, int(280 * length) * 100):
        w11 = path.w[0, :, 0, 0]
        printed = min(100, len(w11) - 1)
        least = torch.linalg.eigvalsh(path.w[0, printed]).min()
        yield row("t14.fig10", update=name, w11=w11[printed], w11_end=w11[-1], least=least)
        for i, value in enumerate(w11.tolist()):
            if abs(value) < 2:
                yield row("t14.fig10.curve", update=name, step=100 * i, w11=value)
    u = torch.rand(seeds, 3, 3, generator=seeded(0, "cone"), dtype=torch.float64) / 5
    for name, path in _both(u, a**2, int(100 * length) * 100, int(100 * length) * 100):
        broken = ~path.w.isfinite().all((1, 2, 3))
        least = torch.linalg.eigvalsh(path.w.nan_to_num(0.0, 0.0, 0.0)).amin((1, 2))
        outside = ((least < -1e-9) | broken).double().mean()
        yield row("t14.cone", update=name, outside=outside, diverged=broken.double().mean(), seeds=seeds)
    for ratio in (4.0, 10.0, 100.0):
        yield row("t14.assumptions", ratio=ratio, log10_omega=flow.largest_omega(ratio))


def _both(u: Tensor, a: Tensor, on_w: int, on_u: int) -> Iterator[tuple[str, flow.Trajectory]]:
    """The same starts by the published recurrence and by the update of U, so many steps each."""
    yield "W recurrence", flow.recurrence(u @ u.mT, a, 0.01, on_w, 100)
    yield "U update", flow.flow(u, a, 0.01, on_u, 100, flow.euler)


def phases(grid: int) -> Iterator[Row]:
    """The relative rise over (signal ratio, correlation) and over (sigma, scale of the start)."""
    ratios, rhos = torch.linspace(1, 5, grid).tolist(), torch.linspace(-0.5, 0.99, grid).tolist()
    cells = [(Task((1.0, r)), OMEGA, rho) for r in ratios for rho in rhos]
    for (task, _, rho), rise in zip(cells, _rises(cells), strict=True):
        yield row("phase.signal", ratio=task.mu[1], rho=rho, rise=rise)
    sigmas, omegas = torch.linspace(0, 2, grid).tolist(), torch.logspace(-4, -0.3, grid).tolist()
    cells = [(Task((1.0, 2.0), sigma), omega, RHO) for sigma in sigmas for omega in omegas]
    for (task, omega, _), rise in zip(cells, _rises(cells), strict=True):
        yield row("phase.start", sigma=task.sigmas[0], omega=omega, rise=rise)


def _rises(cells: list[tuple[Task, float, float]]) -> Tensor:
    """One batch with a clock per cell: dividing A by its weak rate only rescales time, so all cells share one step."""
    a = torch.stack([task.a for task, _, _ in cells])
    u = starts([(omega, rho) for _, omega, rho in cells])
    z = torch.stack([task.probe for task, _, _ in cells])
    dt, span = 0.2 / float((a[:, 1] / a[:, 0]).max()), 7.0
    w = flow.flow(u, a / a[:, :1], dt, int(span / dt)).w
    loss = 0.5 * (torch.einsum("btij,bj->bti", w, z) - z[:, None]).square().sum(-1)
    return detect.relative_rise(loss)


def yours(task: Task, omega: float, rho: float) -> Iterator[Row]:
    """The user's own setting."""
    d, (task, begin) = task.dim, _folded(task, omega, rho)
    path, cut = _patient(task, begin)
    out = path.output(task.probe)
    loss, train = sim.probe_loss(out, task.probe), sim.train_loss(path.w, task.a[None])
    rank = task.a[: task.s].argsort(stable=True).tolist()
    weak, strong = rank[0], rank[-1]
    shown = sorted({rank[round(i)] for i in torch.linspace(0, task.s - 1, min(task.s, 4)).tolist()})
    names = [(f"w{i + 1}{j + 1}" if task.s < 10 else f"w{i + 1},{j + 1}", i, j) for i in shown for j in shown if i <= j]
    times = detect.learning_times(path.t, path.w[:, :, range(task.s), range(task.s)], torch.ones(task.s))
    order = " ".join(str(int(k) + 1) for k in detect.order(times)[0, :16])
    yield row(
        "yours.summary", mu=" ".join(f"{m:g}" for m in task.mu[:16]), sigma=" ".join(f"{x:g}" for x in task.sigmas[:16]),
        omega=omega, rho=rho, d=d, s=task.s, weak=weak + 1, strong=strong + 1,
        mu_weak=task.mu[weak], mu_strong=task.mu[strong], sigma_weak=task.sigmas[weak], sigma_strong=task.sigmas[strong],
        rise=detect.relative_rise(loss)[0], swing_by=int(detect.swings_by(loss)[0]), descents=detect.descents(loss)[0],
        train_rise=detect.relative_rise(train)[0], order=order, end=loss[0, -1] / loss[0, 0], horizon_cut=int(cut),
    )  # fmt: skip
    for i in range(len(path.t)):
        entries = {name: path.w[0, i, p, q] for name, p, q in names}
        losses = {"ood": loss[0, i] / loss[0, 0], "train": train[0, i] / train[0, 0]}
        yield row("yours.curve", t=path.t[i], x=out[0, i, weak], y=out[0, i, strong], **losses, **entries)
    if task.s <= 4:
        for stage in detect.stages(path.t, path.w[0], task.a, task.s):
            yield row("yours.stage", stage=stage.name, entry=stage.entry, by=stage.by, start=stage.start, end=stage.end)


def _folded(task: Task, omega: float, rho: float) -> tuple[Task, Tensor]:
    """The same run in at most s + 1 dimensions. The m = d - s coordinates without a concept start alike and have no rate of
    their own: only their common direction ever meets the concepts, so they fold into one coordinate, exactly."""
    m = task.dim - task.s
    if m < 2:
        return task, flow.correlated(omega, rho, task.dim)
    w = flow.correlated(omega, rho, task.s + 1)
    w[-1] *= math.sqrt(m)
    w[:, -1] *= math.sqrt(m)
    w[-1, -1] = omega * (1 + (m - 1) * rho)
    return replace(task, d=task.s + 1), w


def _patient(task: Task, start: Tensor) -> tuple[flow.Trajectory, bool]:
    """W at POINTS even times until the weakest concept is learned, and whether the horizon had to be cut short. The step
    follows the stiffness of the moment, the size of W."""
    fast, slow = float(task.a.max()), float(task.a[task.a > 0].min())
    least = float(torch.linalg.eigvalsh(start)[0])
    horizon = (math.log(1 / min(max(least, 1e-5), 0.5)) + 7) / (2 * slow)
    most = MOST_STEPS * min(1.0, 16 / task.dim) / (10 * fast)
    gap, w = min(horizon, most) / POINTS, [start]
    for _ in range(POINTS):
        steps = math.ceil(gap * fast * max(10.0, 2 * float(torch.linalg.matrix_norm(w[-1], 2))))
        w.append(flow.flow(flow.root(w[-1])[None], task.a[None], gap / steps, steps, steps).w[0, -1])
    return flow.Trajectory(torch.arange(POINTS + 1, dtype=torch.float64) * gap, torch.stack(w)[None]), horizon > most
