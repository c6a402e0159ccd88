"""The measurements of `local-scores` that compose scores: lamps over four backgrounds, features
through four maps."""

import itertools
from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from recombine.objectives.compose import Composed, OneByOne
from recombine.objectives.process import Flow, Linear
from recombine.objectives.solvers import Heun
from recombine.rng import seeded
from recombine.runs.exact_laws import LocalScores, everything, world
from recombine.store import Row
from recombine.theory.lamps import Lamps
from recombine.theory.maps import FeatureMap, Swirl, identity, orthogonal, skewed
from recombine.theory.mixtures import Exact, Exploding, condition_of, points, unconditional
from recombine.theory.projective import joined


def lamps(s: LocalScores, seed: int) -> Iterator[Row]:
    """L5: light several lamps by composing parts that light one each, over four backgrounds."""
    schedule = Exploding()
    noise = torch.randn(
        s.lamp_samples,
        s.lamps,
        generator=seeded(seed, "local-scores", "lamps"),
        dtype=torch.float64,
    )
    for clutter in (0.0, s.clutter):
        row = Lamps(s.lamps, clutter=clutter)
        parts = tuple(Exact(row.with_on((i,)), schedule) for i in s.lit)
        for background, law in {"empty": row.with_on(()), "average": row.average()}.items():
            x = Heun(s.steps).sample(Composed(Exact(law, schedule), parts), schedule, noise, None)
            name = f"{background}, cluttered" if clutter else background
            yield from lamp_rows(x, name, s)


def lamp_rows(x: Float[Tensor, "b d"], name: str, s: LocalScores) -> Iterator[Row]:
    wanted, on = list(s.lit), (x > 0.5) & (x < 1.5)
    others = [i for i in range(s.lamps) if i not in s.lit]
    yield {
        "kind": "lamps",
        "background": name,
        "all_lit": on[:, wanted].all(1).double().mean().item(),
        "brightness": x[:, wanted].mean().item(),
        "others_on": on[:, others].double().mean().item() if others else 0.0,
        "clutter": s.clutter if "cluttered" in name else 0.0,
        "parts": len(wanted),
    }
    for sample, lamp in itertools.product(range(min(24, len(x))), range(s.lamps)):
        brightness = x[sample, lamp].item()
        yield {
            "kind": "lamp",
            "background": name,
            "sample": sample,
            "lamp": lamp,
            "brightness": brightness,
            "prompted": int(lamp in s.lit),
        }


def maps(s: LocalScores, seed: int) -> Iterator[Row]:
    """L6: the composed denoiser against the denoiser of the composition, in pixels at all times,
    then through maps."""
    cpc, prompt = world(s, seed), everything(s)
    for schedule, time in itertools.product(
        (Flow(), Linear(), Exploding()), np.linspace(0.02, 1, 15).tolist()
    ):
        exact = Exact(cpc, schedule)
        rng = seeded(seed, "local-scores", "exact")
        t = torch.full((s.pictures,), time, dtype=torch.float64)
        noise = torch.randn(s.pictures, cpc.background.dim, generator=rng, dtype=torch.float64)
        x = (
            schedule.alpha(t)[:, None] * joined(cpc(prompt)).sample(s.pictures, rng)
            + schedule.sigma(t)[:, None] * noise
        )
        condition = condition_of(prompt, len(x))
        off = (OneByOne(exact)(x, t, condition) - exact(x, t, condition)).abs().max().item()
        yield {"kind": "exact", "schedule": type(schedule).__name__, "t": time, "off": off}
    changes: dict[str, FeatureMap] = {
        "identity": identity(2),
        "rotation": orthogonal(2, seed),
        "skew": skewed(2, s.skew),
        "swirl": Swirl(s.swirl),
    }
    for name, change in changes.items():
        yield from through(change, name, s, seed)


def through(change: FeatureMap, name: str, s: LocalScores, seed: int) -> Iterator[Row]:
    """Two features on a grid, each with a condition that picks its modes: factorised in z, seen in
    x = map(z). Laws are point masses, so every noised score in x is exact for any map."""
    level = torch.linspace(-2, 2, s.grid, dtype=torch.float64)
    idle = (-(level**2) / 8).log_softmax(0)
    picked = torch.logaddexp(
        -((level - 1.3) ** 2) / 0.18, -((level + 1.3) ** 2) / 0.18 - 0.7
    ).log_softmax(0)
    x = change(torch.cartesian_prod(level, level))
    pairs = ((idle, idle), (picked, idle), (idle, picked), (picked, picked))
    laws = [points(x, (a[:, None] + b).reshape(-1)) for a, b in pairs]
    background, first, second, exact = (Exact(unconditional(law), Flow()) for law in laws)
    composed, target = Composed(background, (first, second)), laws[-1]
    rng = seeded(seed, "local-scores", "maps")
    for time in np.linspace(0.02, 0.98, 25).tolist():
        t = torch.full((s.pictures * 8,), time, dtype=torch.float64)
        at = (1 - time) * target.sample(len(t), rng) + time * torch.randn(
            len(t), 2, generator=rng, dtype=torch.float64
        )
        off = (composed(at, t, None) - exact(at, t, None)).square().mean().sqrt().item()
        yield {"kind": "mismatch", "map": name, "t": time, "off": off}
    noise = torch.randn(s.samples, 2, generator=rng, dtype=torch.float64)
    share, distance, truth = {}, {}, target.log_weight.exp()
    for which, denoiser in (("composed", composed), ("exact", exact)):
        y = Heun(s.steps).sample(denoiser, Flow(), noise, None)
        share[which] = torch.bincount(torch.cdist(y, x).argmin(1), minlength=len(x)) / len(y)
        distance[which] = (share[which] - truth).abs().sum().item() / 2
    yield {"kind": "map", "map": name, **distance}
    cells = zip(x.tolist(), truth.tolist(), share["composed"].tolist(), strict=True)
    for n, (place, want, got) in enumerate(cells):
        where = {"kind": "cell", "map": name, "n": n, "x": place[0], "y": place[1]}
        yield {**where, "target": want, "composed": got}
