"""The experiments of the study `swing-by`, one function a claim. Each yields flat rows; none knows how it will be judged.
All but `yours` use the reference parameters of their claim, so that a claim means the same whatever the user sets."""

import math
from collections.abc import Iterator

import torch
from scipy.integrate import solve_ivp
from torch import Tensor

from recombine.rng import seeded
from recombine.studies.base import Row
from recombine.theory import detect, flow, mlp, sim
from recombine.theory.sim import Task

REFERENCE, OMEGA, RHO = Task((1.0, 2.0), 0.05), 0.01, 0.9
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


def follow(u: Tensor, task: Task, a: Tensor, dt: float, steps: int, every: int = 1) -> tuple[flow.Trajectory, Tensor]:
    """The trajectories and their losses at x^."""
    path = flow.flow(u, a, dt, steps, every)
    return path, sim.probe_loss(path.output(task.probe), task.probe)


def second_moments(seeds: int) -> Iterator[Row]:
    """Sampled second moments against diag(a), over growing sets."""
    tasks = {
        "reference": REFERENCE,
        "three concepts": Task((1.0, 2.0, 3.0), (0.5, 0.2, 1.0)),
        "origin": Task((1.0, 2.0), 0.5, origin=True),
    }
    for case, task in tasks.items():
        for n in (100, 1000, 10_000):
            found = sim.second_moment(task.concepts(n, seeds, seeded(0, "second moment", n)))
            error = (found - torch.diag(task.a)).abs().amax((1, 2)).mean()
            yield row("t1", case=case, n=n, error=error, scaled=error * math.sqrt(task.clusters * n))


def fields(seeds: int) -> Iterator[Row]:
    """Is growth - suppression - noise the vector field, and is gradient flow on U twice it?"""
    for d in range(2, 9):
        rng = seeded(0, "fields", d)
        u = torch.randn(seeds, d, d, generator=rng, dtype=torch.float64).requires_grad_()
        a = torch.rand(seeds, d, generator=rng, dtype=torch.float64)
        w = u @ u.mT
        loss = 0.5 * ((w - torch.eye(d)).square() * a[:, None]).sum()
        speed = -torch.autograd.grad(loss, u)[0]
        u, w = u.detach(), w.detach()
        v, moved = flow.field(w, a), speed @ u.mT + u @ speed.mT
        parts = flow.growth(w, a) - flow.suppression(w, a) - flow.noise(w, a)
        yield row(
            "t2",
            d=d,
            error=(parts - v).abs().max(),
            ratio=(moved * v).sum() / (v * v).sum(),
            gap=(moved - 2 * v).abs().max(),
        )


def one_layer_exact() -> Iterator[Row]:
    """The closed form against an ODE solver, for a probe that also reaches beyond the concepts."""
    task = Task((1.0, 2.0, 1.5), (0.05, 0.3, 1.0), d=5)
    rng = seeded(0, "one layer")
    w0, z = torch.randn(5, 5, generator=rng, dtype=torch.float64), torch.randn(5, generator=rng, dtype=torch.float64)
    t, a = torch.linspace(0, 8, 30, dtype=torch.float64), task.a.numpy()

    def pull(_, w):
        return (-(w.reshape(5, 5) - torch.eye(5).numpy()) * a).ravel()

    solved = solve_ivp(pull, (0, 8), w0.numpy().ravel(), "DOP853", t.numpy(), rtol=1e-12, atol=1e-12).y
    answer = torch.tensor(solved.T).reshape(-1, 5, 5) @ z
    closed = sim.one_layer(w0[None], task.a[None], t, z)[0]
    short = closed - (torch.exp(-task.a * t[:, None]) * z)[:, 3:] @ w0[:, 3:].mT
    yield row("t3.exact", error=(closed - answer).abs().max(), error_as_printed=(short - answer).abs().max())


def one_layer_sgd(seeds: int, lr: float = 0.1, d: int = 64, steps: int = 1800) -> Iterator[Row]:
    """Steps to 80 % of each signal, without bias and from a small start; then with biases, which couple the concepts."""
    wide = 0.05**0.5
    cases = [((1.0, 2.0), 0.05, False, False), ((1.0, 2.0), 0.05, True, False), ((3.0, 2.0), 0.05, True, False)]
    cases += [((1.0, 2.0), (2.0, 0.05), True, False), ((1.0, 2.0), wide, True, True)]
    for mu, sigma, origin, bias in cases:
        task = Task(mu, sigma, d, origin)
        net = mlp.MLP(d, bias=bias, scale=0.01)
        epoch = mlp.compress(mlp.batches(task.concepts(5000, seeds, seeded(0, "t3", str(mu), int(origin)))))
        frame = torch.eye(task.s, d, dtype=torch.float64)
        last = 2 * steps if bias else steps
        t, out = mlp.train(net, net.init(seeds, seeded(0, "t3 init")), epoch, task.probe[None], last, lr, 5, frame)
        times = detect.learning_times(t, out[:, :, 0, :2], task.probe[:2]).mean(0)
        for k in range(2):
            wanted = sim.sgd_steps(-math.log(0.2) / float(task.a[k]), lr, d)
            case = f"mu {mu[0]:g},{mu[1]:g}, sigma {', '.join(f'{x:.3g}' for x in task.sigmas)}"
            yield row(
                "t3.sgd", case=case, origin=int(origin), bias=int(bias), concept=k + 1, steps=times[k], expected=wanted
            )


def order_flip() -> Iterator[Row]:
    """Which concept comes first as sigma1 grows, in both models."""
    sweep = [0.05, 0.5, *(1 + 0.02 * i for i in range(26))]
    tasks = [Task((1.0, 2.0), (sigma, 0.05)) for sigma in sweep]
    a = torch.stack([task.a for task in tasks])
    path = flow.flow(start(OMEGA, 0.5, 2).expand(len(a), -1, -1), a, 0.01, 800, 2)
    deep = detect.learning_times(path.t, path.w.diagonal(dim1=2, dim2=3), torch.ones(2))
    t = torch.linspace(0, 8, 1601, dtype=torch.float64)
    z = REFERENCE.probe
    shallow = detect.learning_times(t, sim.one_layer(flow.correlated(OMEGA, 0.0, 2).expand(len(a), 2, 2), a, t, z), z)
    for i, sigma in enumerate(sweep):
        for model, times in (("one layer", shallow), ("two layers", deep)):
            yield row(
                "t4", model=model, sigma1=sigma, t1=times[i, 0], t2=times[i, 1], first=detect.order(times)[i, 0] + 1
            )


def slowing() -> Iterator[Row]:
    """The slope of log |f(x^) - x^| late in training."""
    for mu in ((1.0, 2.0), (1.0, 1.5), (0.7, 1.7, 3.0)):
        task = Task(mu)
        low = float(task.a.min())
        t = torch.linspace(0, 30 / low, 3001, dtype=torch.float64)
        near = sim.one_layer(flow.correlated(OMEGA, RHO, task.s)[None], task.a[None], t, task.probe)
        path, _ = follow(
            start(OMEGA, RHO, task.s), task, task.a[None], 0.1 / float(task.a.max()), int(120 * task.a.max() / low), 4
        )
        for model, clock, out, rate in (
            ("one layer", t, near, low),
            ("two layers", path.t, path.output(task.probe), 2 * low),
        ):
            far = (out[0] - task.probe).norm(dim=-1)
            late = (far < 1e-3 * far[0]) & (far > 1e-6 * far[0])
            x, y = clock[late], far[late].log()
            slope = ((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum()
            yield row("t5", model=model, mu=",".join(f"{m:g}" for m in mu), slope=slope, expected=-rate)


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
        "t6.summary", low=_between(share, low), low_t=DT * low, high=_between(share, high), high_t=DT * high,
        end=share[-1], rise=detect.relative_rise(loss)[0], train_rise=detect.relative_rise(train)[0],
        w12_peak=_between(w[:, 0, 1], peak), w22_at_peak=w22, w11_at_peak=w11,
        w22_law=(2 * task.a.sum() - w11 * (3 * task.a[0] + task.a[1])) / (3 * task.a[1] + task.a[0]),
    )  # fmt: skip
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
        task = Task((1.0, 2.0), sigma)
        rise = detect.relative_rise(follow(start(OMEGA, RHO, 2), task, task.a[None], 0.01, 300)[1])[0]
        yield row("t7", why="sigma >= 2", value=sigma, rise=rise, share=float(rise > 1e-4))
    t = torch.linspace(0, 20, 2001, dtype=torch.float64)
    for omega in (0.01, 0.1, 0.3, 0.5):
        out = sim.one_layer(torch.full((1, 2, 2), omega, dtype=torch.float64), rates, t, REFERENCE.probe)
        rise = detect.relative_rise(sim.probe_loss(out, REFERENCE.probe))[0]
        yield row(
            "t7",
            why="one layer" if omega <= 0.3 else "one layer, large start",
            value=omega,
            rise=rise,
            share=float(rise > 1e-4),
        )
    for width in (2, 4, 16, 64, 256):
        u = 0.1 * width**-0.5 * torch.randn(seeds, 2, width, generator=seeded(0, "width", width), dtype=torch.float64)
        rise = detect.relative_rise(follow(flow.root(u @ u.mT), REFERENCE, rates, 0.04, 300)[1])
        why = "zero mean, width >= 64" if width >= 64 else "zero mean, narrow"
        yield row("t7", why=why, value=width, rise=rise.max(), share=(rise > 1e-4).double().mean())


def waiting() -> Iterator[Row]:
    """When the weak concept is half learned, against the Schur complement law."""
    pairs = [(omega, rho) for omega in (0.001, 0.003, 0.01, 0.03, 0.1) for rho in (0.0, 0.5, 0.9, 0.99)]
    path = flow.flow(starts(pairs), REFERENCE.a[None], 0.01, 1500)
    half = detect.learning_times(path.t, path.w.diagonal(dim1=2, dim2=3), torch.ones(2), 0.5)
    for (omega, rho), times in zip(pairs, half, strict=True):
        schur = omega * (1 - rho**2)
        law = math.log((1 - schur) / schur) / (2 * float(REFERENCE.a[0]))
        yield row("t8", omega=omega, rho=rho, half=times[0], law=law)


TRIPLE, QUADRUPLE = Task((1.0, 1.5, 2.2)), Task((1.0, 1.5, 2.2, 2.7))


def published_start(number: int, d: int, divisor: float) -> Tensor:
    """The start of a published figure: uniform single-precision numbers from torch's generator, divided."""
    rng = torch.Generator().manual_seed(number)
    return (torch.rand(d, d, generator=rng) / divisor).double()[None]


def many_descents(seeds: int, length: float = 1.0) -> Iterator[Row]:
    """Descents over random positive starts with A and with A^2; then the published three-descent start."""
    for name, task in (("triple", TRIPLE), ("quadruple", QUADRUPLE)):
        u = torch.rand(seeds, task.s, task.s, generator=seeded(0, "descents", name), dtype=torch.float64) / 10
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
    path, loss = follow(u.expand(2, -1, -1), TRIPLE, torch.stack([TRIPLE.a, TRIPLE.a**2]), 0.04, int(2500 * length))
    for variant, curve, count in zip(("A", "A^2"), loss, detect.descents(loss), strict=True):
        yield row("t9.listed", variant=variant, descents=count)
        for i in sorted({round((len(curve) - 1) ** (k / 199)) for k in range(200)} | set(detect.turns(curve))):
            yield row("t9.curve", variant=variant, t=path.t[i], loss=curve[i] / curve[0])
