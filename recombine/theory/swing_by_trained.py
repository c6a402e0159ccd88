"""Swing-by experiments that train networks by SGD: depth and dimension, truncated data, order on
the hypercube."""

import itertools
from collections.abc import Iterator

import torch
from torch import Tensor

from recombine.rng import seeded
from recombine.store import Row
from recombine.theory import detect, mlp, sim
from recombine.theory.sim import IdentityMapping
from recombine.theory.swing_by_rows import row, thin

WIDE = 0.05**0.5
"""The published networks read sigma = 0.05 as a variance."""


def fit(
    task: IdentityMapping, net: mlp.MLP, seeds: int, steps: int, away: float = 0.0, every: int = 10
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Linear networks trained at lr = d / 300 (so a step is 1/150 of gradient-flow time whatever
    d): the steps, the answers to x^, its loss, and the training loss, read off the answers to the
    axes."""
    epoch = mlp.compress(mlp.batches(task.concepts(5000, seeds, seeded(0, "clusters"), away)))
    frame = torch.eye(task.s, task.dim, dtype=torch.float64)
    probes = torch.cat([task.probe[None], frame])
    t, out = mlp.train(
        net,
        net.init(seeds, seeded(0, "layers", net.depth)),
        epoch,
        probes,
        steps,
        task.dim / 300,
        every,
        frame,
    )
    train = 0.5 * ((out[:, :, 1:] - frame).square().sum(-1) * task.a[: task.s]).sum(-1)
    return t, out[:, :, 0], sim.probe_loss(out[:, :, 0], task.probe), train


def depth_and_dimension(seeds: int, steps: int) -> Iterator[Row]:
    """How often networks swing by: over depth at d = 3, over d at depth 4."""
    for depth, d in ((1, 3), (2, 3), (3, 3), (4, 3), (4, 2), (4, 8), (4, 64)):
        task = IdentityMapping((1.0, 2.0), WIDE, d)
        t, out, loss, train = fit(
            task,
            mlp.MLP(d, depth),
            seeds if d < 64 else min(seeds, 32),
            steps if d < 64 else steps // 2,
        )
        rise = detect.relative_rise(loss)
        steep = detect.relative_rise(train)[rise > detect.RISE]
        yield row(
            "t12",
            depth=depth,
            d=d,
            seeds=len(rise),
            share=(rise > detect.RISE).double().mean(),
            largest=rise.max(),
            train_rise=steep.max() if len(steep) else 0.0,
            learned=(loss[:, -1] < 0.01 * loss[:, 0]).double().mean(),
        )
        if (depth, d) == (4, 3):
            best = int(torch.where(detect.swings_by(loss), rise, -1).argmax())
            for i in thin(len(t)):
                point = {
                    "x": out[best, i, 0],
                    "y": out[best, i, 1],
                    "ood": loss[best, i] / loss[best, 0],
                }
                yield row(
                    "t12.curve", step=int(t[i]), **point, train=train[best, i] / train[best, 0]
                )


def truncation(seeds: int, steps: int) -> Iterator[Row]:
    """The same networks and noise with and without the training points near x^."""
    for sigma in (WIDE, 0.5):
        task = IdentityMapping((1.0, 2.0), sigma, 3)
        radius = min(task.mu) / 2
        net = mlp.MLP(3, 3)
        (_, whole, before, _), (_, cut, after, _) = (
            fit(task, net, seeds, steps),
            fit(task, net, seeds, steps, radius),
        )
        points = task.concepts(5000, seeds, seeded(0, "clusters"))
        near = ((points - task.probe[:2]).norm(dim=-1) < radius).double().mean()
        apart = (whole - cut).norm(dim=-1).amax(1) / task.probe.norm()
        swung = [(detect.relative_rise(loss) > detect.RISE) for loss in (before, after)]
        yield row(
            "t11",
            sigma=sigma,
            removed=near,
            apart_median=apart.median(),
            apart_max=apart.max(),
            seeds=seeds,
            same=(swung[0] == swung[1]).double().mean(),
            share=swung[0].double().mean(),
            share_cut=swung[1].double().mean(),
        )


def hypercube(seeds: int, epochs: int = 6, d: int = 64) -> Iterator[Row]:
    """The order of the 16 probes, epoch by epoch, in the networks of the published code (which have
    biases), and in the bias-free ones that the theory speaks of."""
    task = IdentityMapping((1.0, 2.0, 3.0, 4.0), 0.5, d)
    frame = sim.rotation(d, seeded(0, "rotation"))[: task.s]
    points, corners = task.probes()
    inputs = points[:, : task.s] @ frame
    data = mlp.batches(task.concepts(5000, seeds, seeded(0, "hypercube")))
    for bias, depth in itertools.product((True, False), (1, 2)):
        net = mlp.MLP(d, depth, relu=depth > 1, bias=bias)
        name = ("one layer", "two layers, ReLU")[depth - 1] + ("" if bias else ", no bias")
        epoch = data if net.relu else mlp.compress(data)
        length = epoch.shape[1]
        t, out = mlp.train(
            net,
            net.init(seeds, seeded(0, "nodes")),
            epoch,
            inputs,
            epochs * length,
            0.1,
            length // 4,
            frame,
        )
        loss = 0.5 * (out - inputs).square().sum(-1)
        kept = detect.ordered_pairs(loss, corners)
        for i, share in enumerate(kept.mean(0)):
            yield row(
                "t13",
                net=name,
                epoch=float(t[i]) / length,
                share=share,
                worst=kept[:, i].min(),
                seeds=seeds,
            )
        for when in (0, 1, 2, 4):
            at = int((t / length - when).abs().argmin())
            for v, value in zip(corners, loss[:, at].mean(0), strict=True):
                yield row("t13.node", net=name, epoch=when, corner="".join(map(str, v)), loss=value)
