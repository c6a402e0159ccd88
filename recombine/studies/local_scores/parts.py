"""The measurements of `local-scores` on single laws, one function a question; each yields flat rows."""

import itertools
import math
from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from recombine.evaluate.violation import interaction, jacobian, lcs_violation, pixel_masks
from recombine.objectives.process import Flow
from recombine.objectives.solvers import Heun
from recombine.rng import seeded
from recombine.studies.base import Row
from recombine.studies.local_scores.net import fitted
from recombine.studies.local_scores.settings import LocalScores
from recombine.theory.divergence import even_points, gaps, remaining
from recombine.theory.maps import FeatureMap, Swirl, identity, orthogonal, skewed
from recombine.theory.mixtures import Asked, Exact, Exploding, Law, Mixture, Score, asking
from recombine.theory.projective import Joint, Linked, Localised, Projective, Tilted, joined, mean_of, random_projective

SIGMA = Exploding(high=1.0, power=1.0)
"""t is sigma itself."""


def world(s: LocalScores, seed: int) -> Projective:
    return random_projective(s.blocks, s.pixels, s.rest, 2, s.modes, seeded(seed, "local-scores", "world"))


def everything(s: LocalScores) -> Asked:
    """All conditions active, values 0 1 0 1 ..."""
    return tuple(j % 2 for j in range(s.blocks))


def noisy(law: Mixture, sigma: float, count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Pictures at noise sigma, and that sigma a row."""
    rng = seeded(seed, "local-scores", "noisy")
    x = law.sample(count, rng)
    return x + sigma * torch.randn(x.shape, generator=rng, dtype=x.dtype), torch.full((count,), sigma, dtype=x.dtype)


def locality(s: LocalScores, seed: int) -> Iterator[Row]:
    """L1, L2: who listens to whom, in a CPC and in a law that is none. Both are joint mixtures that do not know of blocks."""
    cpc, asked = world(s, seed), everything(s)
    masks = pixel_masks(cpc.sets, (cpc.background.dim,))
    laws: dict[str, Law] = {"CPC": Joint(cpc), "no CPC": Tilted(cpc, s.tilt, seed)}
    for (name, law), sigma in itertools.product(laws.items(), s.sigmas):
        x, t = noisy(joined(law(asked)), sigma, s.pictures, seed)
        condition = asking(asked, len(x))
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
            yield {"kind": "jacobian", "law": name, "sigma": sigma, "out": out, "into": into, "size": size}
        for group, j in itertools.product(range(s.blocks + 1), range(s.blocks)):
            effect = seen.conditions[group, j].sqrt().item()
            yield {"kind": "toggle", "law": name, "sigma": sigma, "group": group, "condition": j, "effect": effect}


def factorisation(s: LocalScores, seed: int) -> Iterator[Row]:
    """L2: whatever is local draws independent blocks. The law that is no CPC, its best local denoiser, and a block network
    fitted to its samples; integrated scores first, samples second."""
    cpc, asked = world(s, seed), everything(s)
    tilted = Tilted(cpc, s.tilt, seed)
    local = Localised(tilted, cpc.sets)
    data = joined(tilted(asked))
    yield from interactions({"CPC": Joint(cpc), "no CPC": tilted, "its best LCS": local}, cpc, asked, s, seed)
    noise = torch.randn(s.samples, data.dim, generator=seeded(seed, "local-scores", "start"), dtype=torch.float64)
    groups = [block.pixels for block in local(asked)]
    net = fitted(data, groups, s.fit_steps, seed)
    drawn = {"data": data.sample(s.samples, seeded(seed, "local-scores", "data"))}
    for name, denoiser in {"joint": Exact(tilted, Flow()), "best LCS": Exact(local, Flow()), "block net": net}.items():
        drawn[name] = Heun(s.steps).sample(denoiser, Flow(), noise, asking(asked, s.samples))
    modes = [block.law.mean for block in cpc(asked)]
    truth = total_correlation(labels(drawn["data"], groups, modes))
    for name, x in drawn.items():
        seen = labels(x, groups, modes)
        off = max(marginal_distance(a, b) for a, b in zip(seen.T, labels(drawn["data"], groups, modes).T, strict=True))
        yield {"kind": "ties", "source": name, "bits": total_correlation(seen), "data": truth, "marginal_distance": off}


def interactions(laws: dict[str, Law], cpc: Projective, asked: Asked, s: LocalScores, seed: int) -> Iterator[Row]:
    """The score integrated around rectangles (own pixels x foreign pixels), and how far that is from the log density's."""
    mask = pixel_masks(cpc.sets, (cpc.background.dim,))[0]
    for (name, law), sigma in itertools.product(laws.items(), s.sigmas):
        whole = joined(law(asked)) if name != "its best LCS" else None
        x, t = noisy(joined(laws["no CPC"](asked)), sigma, s.pictures, seed)
        y = x.roll(1, 0)
        found = interaction(Exact(law, SIGMA), SIGMA, mask, x, y, t, asking(asked, len(x)), nodes=48)
        row = {"kind": "interaction", "law": name, "sigma": sigma, "size": found.square().mean().sqrt().item()}
        if whole is not None:
            corner = lambda a, b, law=whole, level=sigma: law.log_density(torch.where(mask, a, b), 1.0, level)  # noqa: E731
            exact = corner(y, y) - corner(x, y) - corner(y, x) + corner(x, x)
            row["integration_error"] = (found - exact).abs().max().item()
        yield row


def labels(x: Float[Tensor, "b d"], groups: list[tuple[int, ...]], modes: list[Tensor]) -> Int[Tensor, "b g"]:
    """The nearest mode of every block."""
    near = [torch.cdist(x[:, list(g)], m).argmin(1) for g, m in zip(groups, modes, strict=True)]
    return torch.stack(near, 1)


def total_correlation(label: Int[Tensor, "b g"]) -> float:
    """Bits by which the labels tie each other, less the bias of a finite sample (Miller and Madow)."""
    _, joint = label.unique(dim=0, return_counts=True)
    alone = [column.unique(return_counts=True)[1] for column in label.T]
    total = len(label)

    def entropy(counts: Tensor) -> float:
        share = counts.double() / total
        return -(share * share.log2()).sum().item() + (len(counts) - 1) / (2 * total * math.log(2))

    return sum(entropy(counts) for counts in alone) - entropy(joint)


def marginal_distance(a: Int[Tensor, "b"], b: Int[Tensor, "b"]) -> float:
    """Total variation between two samples of labels."""
    size = int(torch.maximum(a.max(), b.max())) + 1
    shares = [torch.bincount(v, minlength=size).double() / len(v) for v in (a, b)]
    return (shares[0] - shares[1]).abs().sum().item() / 2


def approximation(s: LocalScores, seed: int) -> Iterator[Row]:
    """L3: KL between a law and the CPC it was tilted from, against noise; and the KL that the scores alone account for."""
    rng = seeded(seed, "local-scores", "approximation")
    cpc, asked = random_projective(s.blocks, s.pixels, 0, 2, s.modes, rng), everything(s)
    q = joined(cpc(asked))
    p = q.reweighted(joined(Tilted(cpc, s.tilt, seed)(asked)).log_weight)
    sigmas = np.geomspace(s.sigmas[0], max(100.0, 10 * s.sigmas[-1]), s.levels).tolist()
    found = gaps(p, q, sigmas, s.draws, seed)
    left = remaining(sigmas, [g.error for g in found])
    for sigma, g, integral in zip(sigmas, found, left, strict=True):
        row = {"kl": g.kl, "error": g.error, "relative": g.relative, "integral": integral, "ratio": integral / g.kl}
        yield {"kind": "kl", "sigma": sigma, **row}


def angles(s: LocalScores, seed: int) -> Iterator[Row]:
    """L4: cosines between the mean directions d_i = E[x | c_i] - E[x | nothing], under laws and maps."""
    cpc = random_projective(4, 2, 0, 1, 2, seeded(seed, "local-scores", "angles"))
    even = tuple(tuple(law.reweighted(torch.zeros(2, dtype=torch.float64)) for law in part) for part in cpc.parts)
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
        cosine = cosines(law, change, 4, s.draws, seed)
        for i, j in itertools.product(range(4), repeat=2):
            yield {"kind": "cosine", "case": name, "i": i, "j": j, "cosine": cosine[i, j].item()}
    masks, whole = pixel_masks(cpc.sets, (dim,)), joined(linked((0,) * 4))
    share = 0.0
    for sigma in s.sigmas:
        x, t = noisy(whole, sigma, s.pictures, seed)
        share = max(share, lcs_violation(Exact(linked, SIGMA), masks, x, t, asking((0,) * 4, len(x))).pixel_share)
    shared = sum((1 + e * s.link) / 2 * math.log2(1 + e * s.link) for e in (1, -1))
    yield {"kind": "linked", "pixel_share": share, "bits": shared}


def cosines(law: Law, change: FeatureMap, conditions: int, draws: int, seed: int) -> Float[Tensor, "k k"]:
    """Means through a linear map are exact; through another they are averages over Sobol points."""
    none = (None,) * conditions
    asked = [none, *(tuple(0 if i == j else None for i in range(conditions)) for j in range(conditions))]
    means = torch.stack([_mean_through(law(a), change, draws, seed) for a in asked])
    unit = torch.nn.functional.normalize(means[1:] - means[0], dim=1)
    return unit @ unit.T


def _mean_through(blocks: tuple, change: FeatureMap, draws: int, seed: int) -> Float[Tensor, "d"]:
    if not isinstance(change, Swirl):
        return change(mean_of(blocks)[None])[0]
    law = joined(blocks)
    at = even_points(law, draws, seed)
    return at.weight @ change(law.place(at.which, at.noise))
