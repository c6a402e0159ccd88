"""How far a denoiser is from a local conditional score (LCS): pixels of set M_j may depend on the
pixels of M_j and to condition j alone, pixels outside every active set to each other and to no
condition.

The score is (alpha D - x) / sigma^2, so between different sets its derivative is that of the
denoiser times alpha / sigma^2, and both are zero together. Works on any Denoiser, exact or trained:
the effect of pixels by vector-Jacobian products, that of conditions by toggling them."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from numpy.polynomial.legendre import leggauss
from torch import Tensor

from recombine.config import UsageError
from recombine.objectives.process import Denoiser, Schedule, spread
from recombine.worlds.factors import Condition


@dataclass(frozen=True, eq=False)
class Violation:
    """What depends on what. The first k groups are the sets of the conditions, the last one is the
    rest.

    `pixels[g, i]`      mean square norm of the Jacobian block, outputs in g, inputs in group i;
    `conditions[g, j]`  mean square change of the outputs in group g when condition j is toggled;
    `worst_*`           the largest single foreign effect seen."""

    pixels: Float[Tensor, "g g"]
    conditions: Float[Tensor, "g k"]
    worst_pixel: float
    worst_condition: float

    @property
    def pixel_share(self) -> float:
        """How much of the Jacobian (root of its energy) lies between different groups: 0 local,
        near 1 all foreign."""
        return _share(self.pixels)

    @property
    def condition_share(self) -> float:
        """How much of the conditions' effect (root of its energy) lies outside their own pixels."""
        return _share(self.conditions)


def _share(energy: Float[Tensor, "g i"]) -> float:
    foreign = energy.clone().fill_diagonal_(0.0)
    return (foreign.sum() / energy.sum()).sqrt().item() if energy.sum() > 0 else 0.0


def pixel_masks(sets: tuple[tuple[int, ...], ...], shape: tuple[int, ...]) -> Bool[Tensor, "k *s"]:
    """Masks over a picture of `shape`, from sets of flat pixel indices."""
    masks = torch.zeros(len(sets), torch.Size(shape).numel(), dtype=torch.bool)
    for mask, pixels in zip(masks, sets, strict=True):
        mask[list(pixels)] = True
    return masks.reshape(-1, *shape)


def lcs_violation(
    denoiser: Denoiser,
    sets: Bool[Tensor, "..."],
    x: Float[Tensor, "b *s"],
    t: Float[Tensor, "b"],
    condition: Condition,
    probes: int | None = None,
    rng: torch.Generator | None = None,
) -> Violation:
    """Test `denoiser` at the noisy pictures `x`. `sets` are masks (k, *s), or (b, k, *s) where they
    differ from picture to picture. With `probes`, each Jacobian block is estimated from that many
    random sign vectors (unbiased) instead of one product a pixel: the way for large pictures."""
    masks = _flat_masks(sets, x, condition)
    groups = _groups(masks & condition.present[:, :, None])
    rows = _pixel_rows(groups) if probes is None else _probe_rows(groups, probes, rng)
    pixels, worst_pixel = _pixel_effects(denoiser, x, t, condition, groups, rows)
    conditions, worst_condition = _condition_effects(denoiser, x, t, condition, masks)
    return Violation(pixels, conditions, worst_pixel, worst_condition)


def jacobian(
    denoiser: Denoiser, x: Float[Tensor, "b *s"], t: Float[Tensor, "b"], condition: Condition
) -> Float[Tensor, "b d d"]:
    """The derivative of every output pixel by every input pixel."""
    size = x[0].numel()
    starts = torch.eye(size, dtype=x.dtype, device=x.device)[:, None].expand(-1, len(x), -1)
    return torch.stack(list(_pullbacks(denoiser, x, t, condition, starts)), 1)


def interaction(
    denoiser: Denoiser,
    schedule: Schedule,
    mask: Bool[Tensor, "*s"],
    x: Float[Tensor, "b *s"],
    y: Float[Tensor, "b *s"],
    t: Float[Tensor, "b"],
    condition: Condition,
    nodes: int = 24,
) -> Float[Tensor, "b"]:
    """What the score, integrated, says about independence of the pixels M in `mask` and the rest R:
    log p(y_M, y_R) - log p(x_M, y_R) - log p(y_M, x_R) + log p(x_M, x_R), zero for all x and y just
    where p splits into M times R. It is the integral along M, from x to y, of the score at y_R
    minus the score at x_R."""
    alpha, sigma = schedule.alpha(spread(t, x)), schedule.sigma(spread(t, x))
    total = x.new_zeros(len(x))
    for place, weight in zip(*leggauss(nodes), strict=True):
        moving = torch.lerp(x, y, (place + 1) / 2)
        here, there = (torch.where(mask, moving, still) for still in (x, y))
        # between the two corners the x_t of Tweedie's relation cancels on M
        change = alpha * (denoiser(there, t, condition) - denoiser(here, t, condition)) / sigma**2
        total = total + weight / 2 * (change * (y - x) * mask).reshape(len(x), -1).sum(1)
    return total


def _flat_masks(
    sets: Bool[Tensor, "..."], x: Tensor, condition: Condition
) -> Bool[Tensor, "b k d"]:
    shared = sets.ndim == x.ndim
    masks = sets[None].expand(len(x), *sets.shape) if shared else sets
    if (
        masks.shape[0] != len(x)
        or masks.shape[2:] != x.shape[1:]
        or masks.shape[1] != condition.present.shape[1]
    ):
        wanted = f"(conditions {condition.present.shape[1]}, *{tuple(x.shape[1:])})"
        raise UsageError(
            f"masks of shape {tuple(sets.shape)} do not fit: give {wanted}, or that for each "
            "picture"
        )
    masks = masks.reshape(len(x), masks.shape[1], -1).to(x.device)
    if (masks.sum(1) > 1).any():
        raise UsageError("the pixel sets overlap: each pixel may belong to one condition at most")
    return masks


def _groups(masks: Bool[Tensor, "b k d"]) -> Bool[Tensor, "b g d"]:
    return torch.cat([masks, ~masks.any(1, keepdim=True)], 1)


def _pixel_rows(groups: Bool[Tensor, "b g d"]) -> list[tuple[Tensor, float]]:
    """One start a pixel: each is summed into whichever group owns it."""
    return [
        (one.expand(len(groups), -1), 1.0)
        for one in torch.eye(groups.shape[2], device=groups.device)
    ]


def _probe_rows(
    groups: Bool[Tensor, "b g d"], probes: int, rng: torch.Generator | None
) -> list[tuple[Tensor, float]]:
    """Random signs on one group at a time; the mean square of the answer is the norm of the
    block."""
    signs = (
        torch.randint(0, 2, (probes, groups.shape[2]), generator=rng, device=groups.device) * 2.0
        - 1
    )
    return [(sign * groups[:, g], 1 / probes) for g in range(groups.shape[1]) for sign in signs]


def _pixel_effects(denoiser, x, t, condition, groups, rows) -> tuple[Float[Tensor, "g g"], float]:
    inside = groups.to(x.dtype)
    energy, worst = x.new_zeros(groups.shape[1], groups.shape[1]), 0.0
    starts = [start.to(x.dtype) for start, _ in rows]
    for pulled, (start, share) in zip(
        _pullbacks(denoiser, x, t, condition, starts), rows, strict=True
    ):
        owner = ((start != 0)[:, None] & groups).any(2).to(x.dtype)
        energy += share * torch.einsum("bg,bd,bid->gi", owner, pulled**2, inside) / len(x)
        foreign = (1 - torch.einsum("bg,bgd->bd", owner, inside)) * owner.any(1, keepdim=True)
        worst = max(worst, (pulled.abs() * foreign).max().item())
    return energy, worst


def _pullbacks(denoiser, x, t, condition, starts):
    """start^T Jacobian for every start, flat; the denoiser itself runs once."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        answer = denoiser(x, t, condition)
    for start in starts:
        (pulled,) = torch.autograd.grad(answer, x, start.reshape(x.shape), retain_graph=True)
        yield pulled.reshape(len(x), -1)


@torch.no_grad()
def _condition_effects(denoiser, x, t, condition, masks) -> tuple[Float[Tensor, "g k"], float]:
    """Toggle each condition in turn. Its own pixels are those of its set; all others should not
    notice."""
    base, columns, worst = denoiser(x, t, condition), [], 0.0
    for j in range(masks.shape[1]):
        present = condition.present.clone()
        present[:, j] = ~present[:, j]
        change = (denoiser(x, t, condition._replace(present=present)) - base).reshape(len(x), -1)
        active = (condition.present | present)[:, :, None]
        columns.append(
            torch.einsum("bgd,bd->g", _groups(masks & active).to(x.dtype), change**2) / len(x)
        )
        worst = max(worst, change[~masks[:, j]].abs().max().item() if (~masks[:, j]).any() else 0.0)
    return torch.stack(columns, 1), worst
