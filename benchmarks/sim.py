"""How fast the theory runs: many trajectories in one batched call against a Python loop over seeds
of the same update, and a compressed minibatch against a whole one. Ratios are measured side by
side, on one thread.

    python -m benchmarks.sim"""

import time
from collections.abc import Callable

import numpy as np
import torch
from _timing import one_core

from recombine.rng import seeded
from recombine.theory import flow, mlp
from recombine.theory.sim import IdentityMapping

Row = dict[str, str | float | None]
COUNT, STEPS, LOOPED = 10_000, 2000, 60


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def looped(u: torch.Tensor, a: torch.Tensor, dt: float, steps: int) -> torch.Tensor:
    """The same update of U, one seed after the other. In numpy, which is quicker than torch for a 3
    x 3 matrix, and with all that can be taken out of the loop taken out: the ratio should flatter
    nobody."""
    rates = np.diag(a.numpy()), 0.5 * (a[:, None] + a).numpy()
    done = []
    for one in u.numpy():
        for _ in range(steps):
            one = one + dt * ((rates[0] - rates[1] * (one @ one.T)) @ one)
        done.append(one @ one.T)
    return torch.from_numpy(np.stack(done))


def trajectories() -> list[Row]:
    a = IdentityMapping((1.0, 1.5, 2.2)).a
    u = torch.rand(COUNT, 3, 3, generator=seeded(0, "bench"), dtype=torch.float64) / 5
    batched = seconds(lambda: flow.flow(u, a[None], 0.01, STEPS, 100, flow.euler))
    loop = seconds(lambda: looped(u[:LOOPED], a, 0.01, STEPS)) * COUNT / LOOPED
    same = flow.flow(u[:2], a[None], 0.01, 50, 50, flow.euler).w[:, -1]
    assert torch.allclose(same, looped(u[:2], a, 0.01, 50), atol=1e-12), "the two updates differ"
    return [
        {
            "name": "10,000 two-layer trajectories, d = 3, 2,000 steps, one call",
            "value": batched,
            "unit": "s",
            "ratio": loop / batched,
        },
        {
            "name": f"the same by a loop over seeds ({LOOPED} timed)",
            "value": loop,
            "unit": "s",
            "ratio": 1.0,
        },
    ]


def networks() -> list[Row]:
    task, net, seeds = IdentityMapping((1.0, 2.0), 0.2, 64), mlp.MLP(64, 4), 8
    whole = mlp.batches(task.concepts(500, seeds, seeded(0, "bench")))
    frame, layers = torch.eye(2, 64, dtype=torch.float64), net.init(seeds, seeded(0, "bench"))

    def run(epoch: torch.Tensor) -> Callable[[], object]:
        return lambda: mlp.train(net, layers, epoch, task.probe[None], 20, 0.1, 20, frame)

    small = mlp.compress(whole)
    plain, compressed = seconds(run(whole)) / 20, seconds(run(small)) / 20
    return [
        {
            "name": "SGD step, 8 four-layer nets, d = 64, compressed batch",
            "value": compressed,
            "unit": "s",
            "ratio": plain / compressed,
        },
        {"name": "the same on the whole batch of 128", "value": plain, "unit": "s", "ratio": 1.0},
    ]


def main() -> list[Row]:
    with one_core():
        return trajectories() + networks()


if __name__ == "__main__":
    for row in main():
        print(f"{row['name']:<64} {row['value']:>10.4g} {row['unit']}   {row['ratio']:>8.1f} x")
