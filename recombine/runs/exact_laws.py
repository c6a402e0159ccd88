"""The measurements of `local-scores` on single laws, one function for each question; each yields
flat rows."""

import itertools
import math
from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from recombine.config import config
from recombine.metrics.ties import labels, marginal_distance, total_correlation
from recombine.metrics.violation import interaction, jacobian, lcs_violation, pixel_masks
from recombine.objectives.process import Flow
from recombine.objectives.solvers import Heun
from recombine.rng import seeded
from recombine.store import Row
from recombine.theory.block_net import fitted
from recombine.theory.divergence import even_points, gaps, remaining
from recombine.theory.maps import FeatureMap, Swirl, identity, orthogonal, skewed
from recombine.theory.mixtures import Exact, Exploding, Law, Mixture, Prompt, Score, condition_of
from recombine.theory.projective import (
    Joint,
    Linked,
    Localised,
    Projective,
    Tilted,
    joined,
    mean_of,
    random_projective,
)

SIGMA = Exploding(high=1.0, power=1.0)


"""t is sigma itself."""


@config("settings/local-scores")
class LocalScores:
    """`blocks` conditions own `pixels` pixels each, `rest` pixels belong to none; each part is a
    mixture of `modes`. `tilt` sets how far the counter-example is from a CPC, `link` how strongly
    the other one ties two blocks. `pictures`, `samples`, `sobol_points` (for each component of a
    mixture) and `levels` of noise say how much is computed; `steps` of the solver and `fit_steps`
    of the block network. `lamps` in a row, of which `lit` are prompted for, `clutter`: how often
    another is on."""

    blocks: int = 3
    pixels: int = 2
    rest: int = 2
    modes: int = 3
    tilt: float = 1.0
    link: float = 0.8
    sigmas: tuple[float, ...] = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
    pictures: int = 64
    sobol_points: int = 512
    levels: int = 25
    samples: int = 2000
    steps: int = 40
    fit_steps: int = 600
    lamps: int = 8
    lit: tuple[int, ...] = (0, 2, 4, 6)
    clutter: float = 0.5
    lamp_samples: int = 200
    grid: int = 9
    skew: float = 0.8
    swirl: float = 1.5

    def __post_init__(self) -> None:
        if self.blocks < 2 or self.pixels < 1 or self.rest < 0 or self.modes < 2:
            raise ValueError("blocks >= 2, pixels >= 1, rest >= 0 and modes >= 2 are needed")
        if self.modes**self.blocks > 4096:
            raise ValueError(
                f"modes^blocks = {self.modes**self.blocks} components: at most 4096 are allowed"
            )
        if self.tilt <= 0 or not 0 < abs(self.link) < 1:
            raise ValueError(
                f"tilt {self.tilt} must be > 0 and link {self.link} within (-1, 1) and not 0"
            )
        if not self.sigmas or any(
            a >= b for a, b in zip(self.sigmas, self.sigmas[1:], strict=False)
        ):
            raise ValueError(f"sigmas {self.sigmas} must be one or more rising noise levels")
        if (
            self.sigmas[0] <= 0
            or self.levels < 8
            or min(self.sobol_points, self.pictures, self.samples, self.steps) < 2
        ):
            raise ValueError(
                "sigmas must be > 0, levels >= 8, and sobol_points, pictures, samples and steps >="
                " 2"
            )
        if (
            not self.lit
            or len(set(self.lit)) < len(self.lit)
            or not set(self.lit) <= set(range(self.lamps))
        ):
            raise ValueError(f"lit {self.lit} must be different lamps out of 0..{self.lamps - 1}")
        if not 2 <= self.lamps <= 12 or not 0 < self.clutter < 1 or self.lamp_samples < 2:
            raise ValueError("2 to 12 lamps, 0 < clutter < 1 and lamp_samples >= 2 are needed")
        if not 3 <= self.grid <= 31 or not -1 < self.skew < 1 or self.fit_steps < 1:
            raise ValueError("grid must be 3 to 31, skew within (-1, 1), fit_steps >= 1")


def world(s: LocalScores, seed: int) -> Projective:
    return random_projective(
        s.blocks, s.pixels, s.rest, 2, s.modes, seeded(seed, "local-scores", "world")
    )


def everything(s: LocalScores) -> Prompt:
    """All conditions active, values 0 1 0 1 ..."""
    return tuple(j % 2 for j in range(s.blocks))


def noisy(law: Mixture, sigma: float, count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Pictures at noise sigma, and that sigma a row."""
    rng = seeded(seed, "local-scores", "noisy")
    x = law.sample(count, rng)
    return x + sigma * torch.randn(x.shape, generator=rng, dtype=x.dtype), torch.full(
        (count,), sigma, dtype=x.dtype
    )


def locality(s: LocalScores, seed: int) -> Iterator[Row]:
    """L1, L2: which pixels and conditions the score depends on, in a CPC and in a law that is none.
    Both are given as joint mixtures, without their blocks."""
    cpc, prompt = world(s, seed), everything(s)
    masks = pixel_masks(cpc.sets, (cpc.background.dim,))
    laws: dict[str, Law] = {"CPC": Joint(cpc), "no CPC": Tilted(cpc, s.tilt, seed)}
    for (name, law), sigma in itertools.product(laws.items(), s.sigmas):
        x, t = noisy(joined(law(prompt)), sigma, s.pictures, seed)
        condition = condition_of(prompt, len(x))
        seen = lcs_violation(Score(Exact(law, SIGMA), SIGMA), masks, x, t, condition)
        whole = jacobian(Exact(law, SIGMA), x, t, condition).square().mean(0).sqrt()
        yield {
            "kind": "locality",
            "law": name,
            "sigma": sigma,
            "worst_pixel": seen.worst_pixel,
            "worst_condition": seen.worst_condition,
            "own_pixel": seen.pixels.diagonal().max().sqrt().item(),
            "pixel_share": lcs_violation(Exact(law, SIGMA), masks, x, t, condition).pixel_share,
            "condition_share": seen.condition_share,
        }
        for out, into in itertools.product(range(len(whole)), repeat=2):
            size = whole[out, into].item()
            yield {
                "kind": "jacobian",
                "law": name,
                "sigma": sigma,
                "out": out,
                "into": into,
                "size": size,
            }
        for group, j in itertools.product(range(s.blocks + 1), range(s.blocks)):
            effect = seen.conditions[group, j].sqrt().item()
            yield {
                "kind": "toggle",
                "law": name,
                "sigma": sigma,
                "group": group,
                "condition": j,
                "effect": effect,
            }


def factorisation(s: LocalScores, seed: int) -> Iterator[Row]:
    """L2: samples of a local denoiser have independent blocks. The law that is no CPC, its best
    local denoiser, and a block network fitted to its samples; integrated scores first, samples
    second."""
    cpc, prompt = world(s, seed), everything(s)
    tilted = Tilted(cpc, s.tilt, seed)
    local = Localised(tilted, cpc.sets)
    data = joined(tilted(prompt))
    yield from interactions(
        {"CPC": Joint(cpc), "no CPC": tilted, "its best LCS": local}, cpc, prompt, s, seed
    )
    noise = torch.randn(
        s.samples, data.dim, generator=seeded(seed, "local-scores", "start"), dtype=torch.float64
    )
    groups = [block.pixels for block in local(prompt)]
    net = fitted(data, groups, s.fit_steps, seed)
    samples = {"data": data.sample(s.samples, seeded(seed, "local-scores", "data"))}
    for name, denoiser in {
        "joint": Exact(tilted, Flow()),
        "best LCS": Exact(local, Flow()),
        "block net": net,
    }.items():
        samples[name] = Heun(s.steps).sample(
            denoiser, Flow(), noise, condition_of(prompt, s.samples)
        )
    modes = [block.law.mean for block in cpc(prompt)]
    truth = total_correlation(labels(samples["data"], groups, modes))
    for name, x in samples.items():
        seen = labels(x, groups, modes)
        off = max(
            marginal_distance(a, b)
            for a, b in zip(seen.T, labels(samples["data"], groups, modes).T, strict=True)
        )
        yield {
            "kind": "ties",
            "source": name,
            "bits": total_correlation(seen),
            "data": truth,
            "marginal_distance": off,
        }


def interactions(
    laws: dict[str, Law], cpc: Projective, prompt: Prompt, s: LocalScores, seed: int
) -> Iterator[Row]:
    """The score integrated around rectangles (own pixels x foreign pixels), and how far that is
    from the log density's."""
    mask = pixel_masks(cpc.sets, (cpc.background.dim,))[0]
    for (name, law), sigma in itertools.product(laws.items(), s.sigmas):
        whole = joined(law(prompt)) if name != "its best LCS" else None
        x, t = noisy(joined(laws["no CPC"](prompt)), sigma, s.pictures, seed)
        y = x.roll(1, 0)
        given = condition_of(prompt, len(x))
        size = interaction(Exact(law, SIGMA), SIGMA, mask, x, y, t, given, nodes=48)
        row = {
            "kind": "interaction",
            "law": name,
            "sigma": sigma,
            "size": size.square().mean().sqrt().item(),
        }
        if whole is not None:
            corners = ((y, y), (x, y), (y, x), (x, x))
            density = [whole.log_density(torch.where(mask, a, b), 1.0, sigma) for a, b in corners]
            exact = density[0] - density[1] - density[2] + density[3]
            row["integration_error"] = (size - exact).abs().max().item()
        yield row


def approximation(s: LocalScores, seed: int) -> Iterator[Row]:
    """L3: KL between a law and the CPC it was tilted from, against noise; and the KL that the
    scores alone account for."""
    rng = seeded(seed, "local-scores", "approximation")
    cpc, prompt = random_projective(s.blocks, s.pixels, 0, 2, s.modes, rng), everything(s)
    q = joined(cpc(prompt))
    p = q.reweighted(joined(Tilted(cpc, s.tilt, seed)(prompt)).log_weight)
    sigmas = np.geomspace(s.sigmas[0], max(100.0, 10 * s.sigmas[-1]), s.levels).tolist()
    levels = gaps(p, q, sigmas, s.sobol_points, seed)
    left = remaining(sigmas, [g.error for g in levels])
    for sigma, g, integral in zip(sigmas, levels, left, strict=True):
        row = {
            "kl": g.kl,
            "error": g.error,
            "relative": g.relative,
            "integral": integral,
            "ratio": integral / g.kl,
        }
        yield {"kind": "kl", "sigma": sigma, **row}


def angles(s: LocalScores, seed: int) -> Iterator[Row]:
    """L4: cosines between the mean directions d_i = E[x | c_i] - E[x | nothing], under laws and
    maps."""
    cpc = random_projective(4, 2, 0, 1, 2, seeded(seed, "local-scores", "angles"))
    even = tuple(
        tuple(law.reweighted(torch.zeros(2, dtype=torch.float64)) for law in part)
        for part in cpc.parts
    )
    linked = Linked(Projective(cpc.sets, even, cpc.background), s.link)
    plain, dim = identity(8), 8
    cases: dict[str, tuple[Law, FeatureMap]] = {
        "CPC": (cpc, plain),
        "CPC, rotated": (cpc, orthogonal(dim, seed)),
        "CPC, skewed": (cpc, skewed(dim, s.skew / 2)),
        "CPC, swirled": (cpc, Swirl(s.swirl / 2)),
        "linked, no CPC": (linked, plain),
    }
    for name, (law, change) in cases.items():
        cosine = cosines(law, change, 4, s.sobol_points, seed)
        for i, j in itertools.product(range(4), repeat=2):
            yield {"kind": "cosine", "case": name, "i": i, "j": j, "cosine": cosine[i, j].item()}
    masks, whole = pixel_masks(cpc.sets, (dim,)), joined(linked((0,) * 4))
    share = 0.0
    for sigma in s.sigmas:
        x, t = noisy(whole, sigma, s.pictures, seed)
        share = max(
            share,
            lcs_violation(
                Exact(linked, SIGMA), masks, x, t, condition_of((0,) * 4, len(x))
            ).pixel_share,
        )
    shared = sum((1 + e * s.link) / 2 * math.log2(1 + e * s.link) for e in (1, -1))
    yield {"kind": "linked", "pixel_share": share, "bits": shared}


def cosines(
    law: Law, change: FeatureMap, conditions: int, count: int, seed: int
) -> Float[Tensor, "k k"]:
    """Means through a linear map are exact; through another they are averages over Sobol points."""
    none = (None,) * conditions
    prompts = [
        none,
        *(tuple(0 if i == j else None for i in range(conditions)) for j in range(conditions)),
    ]
    means = torch.stack([_mean_through(law(a), change, count, seed) for a in prompts])
    unit = torch.nn.functional.normalize(means[1:] - means[0], dim=1)
    return unit @ unit.T


def _mean_through(blocks: tuple, change: FeatureMap, count: int, seed: int) -> Float[Tensor, "d"]:
    if not isinstance(change, Swirl):
        return change(mean_of(blocks)[None])[0]
    law = joined(blocks)
    at = even_points(law, count, seed)
    return at.weight @ change(law.place(at.which, at.noise))
