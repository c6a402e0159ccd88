"""Heat maps: one bell for each object, a loss for the logits of such a map, and from its peaks back
to exact locations."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from recombine.worlds.layout import Layout

SPREAD, LEAST = 0.3, 0.8
"""The standard deviation of an object's bell: in radii of the object as it appears, and the least,
in pixels."""
NEAR = 1 / 64
"""Of two maxima nearer than this share of the picture along both axes the higher one counts; real
centres are further apart."""
MERGED, SADDLE = 0.1, 0.3
"""Two maxima nearer than this share of the picture are one object where the map between them stays
above this share of the lower one: the bells of two objects leave a deeper saddle."""
THRESHOLD = 0.35
"""The least height of an object. Below 1/2, because a half hidden object could be in several places
and its bell is flatter."""
ROOM = 32
"""The most objects that are detected in a picture."""


def bells(
    at: Float[Tensor, "b k 2"],
    radius: Float[Tensor, "b k"],
    present: Bool[Tensor, "b k"],
    height: int,
    width: int,
) -> Float[Tensor, "b h w"]:
    """The heat map of objects whose middles appear at `at` and whose radii, in pixels, appear as
    given: 1 in the middle of each, and where several overlap the largest."""
    x = torch.arange(width, device=at.device) + 0.5 - width * at[..., :1]
    y = torch.arange(height, device=at.device) + 0.5 - height * at[..., 1:]
    spread = (SPREAD * radius).clamp_min(LEAST)[..., None]
    across, down = (torch.exp(-(d / spread).square() / 2) for d in (x, y))
    return (down[..., :, None] * across[..., None, :] * present[..., None, None]).amax(1)


def heat_loss(logits: Float[Tensor, "b h w"], target: Float[Tensor, "b h w"]) -> Float[Tensor, "b"]:
    """Cross entropy with the heat map, most where the two differ: nearly all pixels are empty, and
    soon known to be. One number per picture: the sum over its pixels."""
    entropy = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    return ((logits.sigmoid() - target).square() * entropy).sum((1, 2))


def peaks(
    logits: Float[Tensor, "b h w"], threshold: float = THRESHOLD, room: int = ROOM
) -> tuple[Layout, Float[Tensor, "b k"]]:
    """The local maxima of heat maps, highest first, and how high each one is; those below the
    threshold are not present, nor those that belong to a higher one. Both the location and the
    height are those of the top of a parabola through the logarithm of the map: exact for a
    bell."""
    h, w = logits.shape[1:]
    log = F.logsigmoid(logits)
    reach = max(1, round(NEAR * w))
    best = F.max_pool2d(logits[:, None], 2 * reach + 1, 1, reach, return_indices=True)[1].flatten(1)
    highest = best == torch.arange(h * w, device=best.device)
    across, up_x = _top(log)
    down, up_y = _top(log.mT)
    height = (log + up_x + up_y.mT).exp().flatten(1).clamp_max(1.0)
    top, index = torch.where(highest, height, 0.0).topk(min(room, h * w), dim=1)
    x = (index % w + 0.5 + across.flatten(1).gather(1, index)) / w
    y = (index // w + 0.5 + down.mT.flatten(1).gather(1, index)) / h
    at = torch.stack((x, y), -1).clamp(0, 1)
    return Layout(at, distinct(log.exp(), at, top, top >= threshold)), top


def distinct(
    heat: Float[Tensor, "b h w"],
    at: Float[Tensor, "b k 2"],
    top: Float[Tensor, "b k"],
    present: Bool[Tensor, "b k"],
) -> Bool[Tensor, "b k"]:
    """Which of the maxima, highest first, are objects of their own."""
    h, w = heat.shape[1:]
    part = torch.linspace(0, 1, 9, device=at.device)[:, None]
    between = at[:, :, None, None] + part * (at[:, None] - at[:, :, None])[..., None, :]
    column, row = (between * torch.tensor((w, h), device=at.device)).long().unbind(-1)
    index = row.clamp(max=h - 1) * w + column.clamp(max=w - 1)
    low = heat.flatten(1).gather(1, index.flatten(1)).view_as(index).amin(-1)
    near = (at[:, :, None] - at[:, None]).norm(dim=-1) < MERGED
    same = near & (low > SADDLE * torch.minimum(top[:, :, None], top[:, None]))
    kept = present.clone()
    for k in range(1, at.shape[1]):
        kept[:, k] &= ~(same[:, k, :k] & kept[:, :k]).any(1)
    return kept


def _top(log: Float[Tensor, "b h w"]) -> tuple[Float[Tensor, "b h w"], Float[Tensor, "b h w"]]:
    """Where the parabola through each value and its two neighbours in the row has its top, at most
    half a step away, and how much higher it is there."""
    wider = F.pad(log, (1, 1), mode="replicate")
    before, after = wider[..., :-2], wider[..., 2:]
    slope, bend = (after - before) / 2, (2 * log - before - after).clamp_min(1e-6)
    move = (slope / bend).clamp(-0.5, 0.5)
    return move, move * slope - bend * move.square() / 2
