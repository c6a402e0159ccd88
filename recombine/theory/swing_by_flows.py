"""Swing-by experiments on the exact two-layer flow: the reference run, where it is absent, several
descents, phase diagrams, and two slips in print."""

from collections.abc import Iterator

import torch
from torch import Tensor

from recombine.rng import seeded
from recombine.store import Row
from recombine.theory import detect, flow, sim
from recombine.theory.sim import IdentityMapping
from recombine.theory.swing_by_rows import (
    DT,
    OMEGA,
    REFERENCE,
    RHO,
    follow,
    published_start,
    row,
    start,
    starts,
    thin,
)

TRIPLE, QUADRUPLE = IdentityMapping((1.0, 1.5, 2.2)), IdentityMapping((1.0, 1.5, 2.2, 2.7))
FIG5 = (torch.tensor([[0.5025, 1.1275, 0.0025]]).double(), torch.tensor([1.0, 1.5, 0.0]).double())
"""Second moment and test point of the published two-layer figure, with its variance also on the
third, empty coordinate."""


def reference() -> Iterator[Row]:
    """The canonical swing-by."""
    task = REFERENCE
    path, loss = follow(start(OMEGA, RHO, 2), task, task.a[None], DT, 2000)
    train = sim.train_loss(path.w, task.a[None])
    w, share = path.w[0], loss[0] / loss[0, 0]
    low, high = (_vertex(share, i) for i in detect.turns(loss[0]))
    peak = _vertex(w[:, 0, 1], int(w[:, 0, 1].argmax()))
    w11, w22 = _between(w[:, 0, 0], peak), _between(w[:, 1, 1], peak)
    yield row(
        "t6.summary",
        low=_between(share, low),
        low_t=DT * low,
        high=_between(share, high),
        high_t=DT * high,
        end=share[-1],
        rise=detect.relative_rise(loss)[0],
        train_rise=detect.relative_rise(train)[0],
        w12_peak=_between(w[:, 0, 1], peak),
        w22_at_peak=w22,
        w11_at_peak=w11,
        w22_law=(2 * task.a.sum() - w11 * (3 * task.a[0] + task.a[1]))
        / (3 * task.a[1] + task.a[0]),
    )
    for i in thin(len(share)):
        entries = {"w11": w[i, 0, 0], "w12": w[i, 0, 1], "w22": w[i, 1, 1]}
        yield row("t6.curve", t=path.t[i], ood=share[i], train=train[0, i] / train[0, 0], **entries)


def _vertex(y: Tensor, i: int) -> float:
    """Where, between the samples, the parabola through y[i-1], y[i], y[i+1] turns."""
    before, here, after = y[i - 1 : i + 2].tolist()
    return i + 0.5 * (before - after) / (before - 2 * here + after)


def _between(y: Tensor, at: float) -> float:
    i = int(at)
    return float(y[i] + (at - i) * (y[i + 1] - y[i]))


def absences(seeds: int) -> Iterator[Row]:
    """Where the loss must not rise."""
    rates = REFERENCE.a[None]
    rhos = (-0.9, -0.5, -0.1, 0.0)
    _, loss = follow(starts([(OMEGA, rho) for rho in rhos]), REFERENCE, rates, 0.04, 300)
    for rho, rise in zip(rhos, detect.relative_rise(loss), strict=True):
        yield row("t7", why="rho <= 0", value=rho, rise=rise, share=float(rise > 1e-4))
    for sigma in (2.0, 3.0):
        task = IdentityMapping((1.0, 2.0), sigma)
        rise = detect.relative_rise(follow(start(OMEGA, RHO, 2), task, task.a[None], 0.01, 300)[1])[
            0
        ]
        yield row("t7", why="sigma >= 2", value=sigma, rise=rise, share=float(rise > 1e-4))
    t = torch.linspace(0, 20, 2001, dtype=torch.float64)
    for omega in (0.01, 0.1, 0.3, 0.5):
        out = sim.one_layer(
            torch.full((1, 2, 2), omega, dtype=torch.float64), rates, t, REFERENCE.probe
        )
        rise = detect.relative_rise(sim.probe_loss(out, REFERENCE.probe))[0]
        yield row(
            "t7",
            why="one layer" if omega <= 0.3 else "one layer, large start",
            value=omega,
            rise=rise,
            share=float(rise > 1e-4),
        )
    for width in (2, 4, 16, 64, 256):
        u = (
            0.1
            * width**-0.5
            * torch.randn(seeds, 2, width, generator=seeded(0, "width", width), dtype=torch.float64)
        )
        rise = detect.relative_rise(follow(flow.root(u @ u.mT), REFERENCE, rates, 0.04, 300)[1])
        why = "zero mean, width >= 64" if width >= 64 else "zero mean, narrow"
        yield row("t7", why=why, value=width, rise=rise.max(), share=(rise > 1e-4).double().mean())


def many_descents(seeds: int, length: float = 1.0) -> Iterator[Row]:
    """Descents over random positive starts with A and with A^2; then the published three-descent
    start."""
    for name, task in (("triple", TRIPLE), ("quadruple", QUADRUPLE)):
        u = (
            torch.rand(
                seeds, task.s, task.s, generator=seeded(0, "descents", name), dtype=torch.float64
            )
            / 10
        )
        a = torch.stack([task.a, task.a**2]).repeat_interleave(seeds, 0)
        count = detect.descents(follow(u.repeat(2, 1, 1), task, a, 0.05, int(2000 * length), 2)[1])
        for variant, found in zip(("A", "A^2"), count.split(seeds), strict=True):
            for k in range(1, task.s + 1):
                yield row(
                    "t9.share",
                    setting=name,
                    variant=variant,
                    descents=k,
                    share=(found == k).double().mean(),
                    seeds=seeds,
                )
    u = published_start(233333, 3, 10.0)
    path, loss = follow(
        u.expand(2, -1, -1), TRIPLE, torch.stack([TRIPLE.a, TRIPLE.a**2]), 0.04, int(2500 * length)
    )
    for variant, curve, count in zip(("A", "A^2"), loss, detect.descents(loss), strict=True):
        yield row("t9.listed", variant=variant, descents=count)
        for i in sorted(
            {round((len(curve) - 1) ** (k / 199)) for k in range(200)} | set(detect.turns(curve))
        ):
            yield row("t9.curve", variant=variant, t=path.t[i], loss=curve[i] / curve[0])


def in_print(seeds: int, length: float = 1.0) -> Iterator[Row]:
    """A^2 for A, and the recurrence on W for the update of U, on the published starts and on fresh
    ones."""
    a, z = FIG5
    u = published_start(2333, 3, 5.0)
    for variant, rates in (("A", a), ("A^2", a**2)):
        loss = sim.probe_loss(flow.recurrence(u @ u.mT, rates, 0.01, 2000).output(z), z)
        yield row(
            "t14.fig5",
            variant=variant,
            rise=detect.relative_rise(loss)[0],
            descents=detect.descents(loss)[0],
        )
        for i in thin(2001, 200):
            yield row("t14.fig5.curve", variant=variant, step=i, loss=loss[0, i] / loss[0, 0])
    u, rates = published_start(233333, 3, 10.0), IdentityMapping((0.7, 1.7, 3.0)).a[None] ** 2
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
        yield row(
            "t14.cone", update=name, outside=outside, diverged=broken.double().mean(), seeds=seeds
        )
    for ratio in (4.0, 10.0, 100.0):
        yield row("t14.assumptions", ratio=ratio, log10_omega=flow.largest_omega(ratio))


def _both(u: Tensor, a: Tensor, on_w: int, on_u: int) -> Iterator[tuple[str, flow.Trajectory]]:
    """The same starts by the published recurrence and by the update of U, so many steps each."""
    yield "W recurrence", flow.recurrence(u @ u.mT, a, 0.01, on_w, 100)
    yield "U update", flow.flow(u, a, 0.01, on_u, 100, flow.euler)


def phases(grid: int) -> Iterator[Row]:
    """The relative rise over (signal ratio, correlation) and over (sigma, scale of the start)."""
    ratios, rhos = torch.linspace(1, 5, grid).tolist(), torch.linspace(-0.5, 0.99, grid).tolist()
    cells = [(IdentityMapping((1.0, r)), OMEGA, rho) for r in ratios for rho in rhos]
    for (task, _, rho), rise in zip(cells, _rises(cells), strict=True):
        yield row("phase.signal", ratio=task.mu[1], rho=rho, rise=rise)
    sigmas, omegas = torch.linspace(0, 2, grid).tolist(), torch.logspace(-4, -0.3, grid).tolist()
    cells = [
        (IdentityMapping((1.0, 2.0), sigma), omega, RHO) for sigma in sigmas for omega in omegas
    ]
    for (task, omega, _), rise in zip(cells, _rises(cells), strict=True):
        yield row("phase.start", sigma=task.sigmas[0], omega=omega, rise=rise)


def _rises(cells: list[tuple[IdentityMapping, float, float]]) -> Tensor:
    """One batch with a clock per cell: dividing A by its weak rate only rescales time, so all cells
    share one step."""
    a = torch.stack([task.a for task, _, _ in cells])
    u = starts([(omega, rho) for _, omega, rho in cells])
    z = torch.stack([task.probe for task, _, _ in cells])
    dt, span = 0.2 / float((a[:, 1] / a[:, 0]).max()), 7.0
    w = flow.flow(u, a / a[:, :1], dt, int(span / dt)).w
    loss = 0.5 * (torch.einsum("btij,bj->bti", w, z) - z[:, None]).square().sum(-1)
    return detect.relative_rise(loss)
