"""Swing-by experiments on the laws of learning: second moments, vector field, closed form, order,
slowing, waiting.

Each yields flat rows at the reference parameters of its claim; none knows the claim's threshold."""

import math
from collections.abc import Iterator

import torch
from scipy.integrate import solve_ivp

from recombine.rng import seeded
from recombine.store import Row
from recombine.theory import detect, flow, mlp, sim
from recombine.theory.sim import IdentityMapping
from recombine.theory.swing_by_rows import OMEGA, REFERENCE, RHO, follow, row, start, starts


def second_moments(seeds: int) -> Iterator[Row]:
    """Sampled second moments against diag(a), over growing sets."""
    tasks = {
        "reference": REFERENCE,
        "three concepts": IdentityMapping((1.0, 2.0, 3.0), (0.5, 0.2, 1.0)),
        "origin": IdentityMapping((1.0, 2.0), 0.5, origin=True),
    }
    for case, task in tasks.items():
        for n in (100, 1000, 10_000):
            found = sim.second_moment(task.concepts(n, seeds, seeded(0, "second moment", n)))
            error = (found - torch.diag(task.a)).abs().amax((1, 2)).mean()
            yield row(
                "t1", case=case, n=n, error=error, scaled=error * math.sqrt(task.clusters * n)
            )


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
    task = IdentityMapping((1.0, 2.0, 1.5), (0.05, 0.3, 1.0), d=5)
    rng = seeded(0, "one layer")
    w0, z = (
        torch.randn(5, 5, generator=rng, dtype=torch.float64),
        torch.randn(5, generator=rng, dtype=torch.float64),
    )
    t, a = torch.linspace(0, 8, 30, dtype=torch.float64), task.a.numpy()

    def pull(_, w):
        return (-(w.reshape(5, 5) - torch.eye(5).numpy()) * a).ravel()

    solved = solve_ivp(
        pull, (0, 8), w0.numpy().ravel(), "DOP853", t.numpy(), rtol=1e-12, atol=1e-12
    ).y
    answer = torch.tensor(solved.T).reshape(-1, 5, 5) @ z
    closed = sim.one_layer(w0[None], task.a[None], t, z)[0]
    short = closed - (torch.exp(-task.a * t[:, None]) * z)[:, 3:] @ w0[:, 3:].mT
    yield row(
        "t3.exact",
        error=(closed - answer).abs().max(),
        error_as_printed=(short - answer).abs().max(),
    )


def one_layer_sgd(seeds: int, lr: float = 0.1, d: int = 64, steps: int = 1800) -> Iterator[Row]:
    """Steps to 80 % of each signal, without bias and from a small start; then with biases, which
    couple the concepts."""
    wide = 0.05**0.5
    cases = [
        ((1.0, 2.0), 0.05, False, False),
        ((1.0, 2.0), 0.05, True, False),
        ((3.0, 2.0), 0.05, True, False),
    ]
    cases += [((1.0, 2.0), (2.0, 0.05), True, False), ((1.0, 2.0), wide, True, True)]
    for mu, sigma, origin, bias in cases:
        task = IdentityMapping(mu, sigma, d, origin)
        net = mlp.MLP(d, bias=bias, scale=0.01)
        epoch = mlp.compress(
            mlp.batches(task.concepts(5000, seeds, seeded(0, "t3", str(mu), int(origin))))
        )
        frame = torch.eye(task.s, d, dtype=torch.float64)
        last = 2 * steps if bias else steps
        t, out = mlp.train(
            net, net.init(seeds, seeded(0, "t3 init")), epoch, task.probe[None], last, lr, 5, frame
        )
        times = detect.learning_times(t, out[:, :, 0, :2], task.probe[:2]).mean(0)
        for k in range(2):
            wanted = sim.sgd_steps(-math.log(0.2) / float(task.a[k]), lr, d)
            case = f"mu {mu[0]:g},{mu[1]:g}, sigma {', '.join(f'{x:.3g}' for x in task.sigmas)}"
            yield row(
                "t3.sgd",
                case=case,
                origin=int(origin),
                bias=int(bias),
                concept=k + 1,
                steps=times[k],
                expected=wanted,
            )


def order_flip() -> Iterator[Row]:
    """Which concept comes first as sigma1 grows, in both models."""
    sweep = [0.05, 0.5, *(1 + 0.02 * i for i in range(26))]
    tasks = [IdentityMapping((1.0, 2.0), (sigma, 0.05)) for sigma in sweep]
    a = torch.stack([task.a for task in tasks])
    path = flow.flow(start(OMEGA, 0.5, 2).expand(len(a), -1, -1), a, 0.01, 800, 2)
    deep = detect.learning_times(path.t, path.w.diagonal(dim1=2, dim2=3), torch.ones(2))
    t = torch.linspace(0, 8, 1601, dtype=torch.float64)
    z = REFERENCE.probe
    shallow = detect.learning_times(
        t, sim.one_layer(flow.correlated(OMEGA, 0.0, 2).expand(len(a), 2, 2), a, t, z), z
    )
    for i, sigma in enumerate(sweep):
        for model, times in (("one layer", shallow), ("two layers", deep)):
            yield row(
                "t4",
                model=model,
                sigma1=sigma,
                t1=times[i, 0],
                t2=times[i, 1],
                first=detect.order(times)[i, 0] + 1,
            )


def slowing() -> Iterator[Row]:
    """The slope of log |f(x^) - x^| late in training."""
    for mu in ((1.0, 2.0), (1.0, 1.5), (0.7, 1.7, 3.0)):
        task = IdentityMapping(mu)
        low = float(task.a.min())
        t = torch.linspace(0, 30 / low, 3001, dtype=torch.float64)
        near = sim.one_layer(flow.correlated(OMEGA, RHO, task.s)[None], task.a[None], t, task.probe)
        path, _ = follow(
            start(OMEGA, RHO, task.s),
            task,
            task.a[None],
            0.1 / float(task.a.max()),
            int(120 * task.a.max() / low),
            4,
        )
        for model, clock, out, rate in (
            ("one layer", t, near, low),
            ("two layers", path.t, path.output(task.probe), 2 * low),
        ):
            far = (out[0] - task.probe).norm(dim=-1)
            late = (far < 1e-3 * far[0]) & (far > 1e-6 * far[0])
            x, y = clock[late], far[late].log()
            slope = ((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum()
            yield row(
                "t5", model=model, mu=",".join(f"{m:g}" for m in mu), slope=slope, expected=-rate
            )


def waiting() -> Iterator[Row]:
    """When the weak concept is half learned, against the Schur complement law."""
    pairs = [
        (omega, rho) for omega in (0.001, 0.003, 0.01, 0.03, 0.1) for rho in (0.0, 0.5, 0.9, 0.99)
    ]
    path = flow.flow(starts(pairs), REFERENCE.a[None], 0.01, 1500)
    half = detect.learning_times(path.t, path.w.diagonal(dim1=2, dim2=3), torch.ones(2), 0.5)
    for (omega, rho), times in zip(pairs, half, strict=True):
        schur = omega * (1 - rho**2)
        law = math.log((1 - schur) / schur) / (2 * float(REFERENCE.a[0]))
        yield row("t8", omega=omega, rho=rho, half=times[0], law=law)
