"""What a training curve shows: a rise of the loss, descents, learning times, their order, and the
stages."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

RISE, LEARNED = 0.01, 0.01
"""Swing-by: the loss rises by more than RISE of its start, and still ends below LEARNED of it."""


def relative_rise(loss: Float[Tensor, "b t"]) -> Float[Tensor, "b"]:
    """How far each loss climbs above the lowest it had been, as a share of its start."""
    return (loss - loss.cummin(1).values).amax(1) / loss[:, 0]


def swings_by(loss: Float[Tensor, "b t"]) -> Bool[Tensor, "b"]:
    """Falls, rises, and is learned in the end."""
    return (relative_rise(loss) > RISE) & (loss[:, -1] < LEARNED * loss[:, 0])


def descents(loss: Float[Tensor, "b t"], tolerance: float = 1e-3) -> Int[Tensor, "b"]:
    """How many times each loss sets out to fall. Moves below `tolerance` of the start do not count
    as a turn."""
    slack = tolerance * loss[:, 0]
    falling = torch.zeros(len(loss), dtype=torch.bool)
    extreme, count = loss[:, 0].clone(), torch.zeros(len(loss), dtype=torch.long)
    for now in loss.unbind(1):
        turned_down = ~falling & (now < extreme - slack)
        turned_up = falling & (now > extreme + slack)
        count += turned_down
        falling ^= turned_down | turned_up
        best = torch.where(falling, torch.minimum(extreme, now), torch.maximum(extreme, now))
        extreme = torch.where(turned_down | turned_up, now, best)
    return count


def turns(loss: Float[Tensor, "t"], tolerance: float = 1e-3) -> list[int]:
    """Where one loss turns: the indices of its minimum, maximum, minimum ... between the
    descents."""
    slack, falling, best, at = tolerance * float(loss[0]), True, 0, []
    values = loss.tolist()
    for i, now in enumerate(values):
        sign = 1 if falling else -1
        if sign * (now - values[best]) < 0:
            best = i
        elif sign * (now - values[best]) > slack:
            at.append(best)
            falling, best = not falling, i
    return at if at and at[0] > 0 else at[1:]


def learning_times(
    t: Float[Tensor, "t"],
    value: Float[Tensor, "b t k"],
    target: Float[Tensor, "k"],
    share: float = 0.8,
) -> Float[Tensor, "b k"]:
    """When each value first reaches `share` of its target, between the samples by a straight line;
    inf if it never does."""
    done = value >= share * target
    last = done.int().argmax(1, keepdim=True)
    first = (last - 1).clamp_min(0)
    low, high = value.gather(1, first), value.gather(1, last)
    part = ((share * target - low) / (high - low)).nan_to_num(0.0, 0.0, 0.0).clamp(0, 1)
    time = t[first] + part * (t[last] - t[first])
    return torch.where(done.any(1), time[:, 0], torch.full_like(time[:, 0], math.inf))


def order(times: Float[Tensor, "b k"]) -> Int[Tensor, "b k"]:
    """The concepts, first learned first; ties keep their index order."""
    return times.argsort(dim=1, stable=True)


class Stage(NamedTuple):
    """One stage of training. `entry` names what it happens to ("w12"), `by` which major entry did
    it, or "" for none."""

    name: str
    entry: str
    by: str
    start: float
    end: float


def stages(
    t: Float[Tensor, "t"], w: Float[Tensor, "t d d"], a: Float[Tensor, "d"], s: int
) -> list[Stage]:
    """The story of one run, in order of time: all entries grow; each minor entry is suppressed by a
    major one, from its peak until a tenth of it is left; each major entry grows, from a tenth to
    nine tenths."""
    story = [_suppression(t, w, a, i, j) for i in range(s) for j in range(i + 1, s)]
    story = [stage for stage in story if stage]
    first = min((stage.start for stage in story), default=float(t[-1]))
    growths = [
        Stage("growth", _name(k, k), "", _reach(t, w[:, k, k], 0.1), _reach(t, w[:, k, k], 0.9))
        for k in range(s)
    ]
    story += [g for g in growths if math.isfinite(g.start)]
    return [
        Stage("initial growth", "all", "", float(t[0]), first),
        *sorted(story, key=lambda stage: stage.start),
    ]


def _suppression(t: Tensor, w: Tensor, a: Tensor, i: int, j: int) -> Stage | None:
    size = w[:, i, j].abs()
    peak = int(size.argmax())
    if size[peak] == 0 or peak in (0, len(t) - 1):
        return None
    pull_i, pull_j = w[peak, i, i] * (3 * a[i] + a[j]), w[peak, j, j] * (3 * a[j] + a[i])
    gone = (size[peak:] < 0.1 * size[peak]).nonzero()
    end = float(t[peak + int(gone[0])]) if len(gone) else float(t[-1])
    by = i if pull_i > pull_j else j
    return Stage("suppression", _name(i, j), _name(by, by), float(t[peak]), end)


def _reach(t: Tensor, value: Tensor, level: float) -> float:
    return float(
        learning_times(t, value[None, :, None], torch.ones(1, dtype=value.dtype), level)[0, 0]
    )


def _name(i: int, j: int) -> str:
    return f"w{i + 1}{j + 1}" if max(i, j) < 9 else f"w{i + 1},{j + 1}"


def ordered_pairs(
    loss: Float[Tensor, "*b n"], corners: list[tuple[int, ...]], slack: float = 0.0
) -> Float[Tensor, "*b"]:
    """Of all pairs u <= v of hypercube corners without the origin, the share with loss(u) <=
    loss(v) + slack."""
    pairs = [
        (i, j)
        for i, u in enumerate(corners)
        for j, v in enumerate(corners)
        if i != j and any(u) and all(p <= q for p, q in zip(u, v, strict=True))
    ]
    if not pairs:
        return torch.ones(loss.shape[:-1], dtype=loss.dtype)
    low, high = map(list, zip(*pairs, strict=True))
    return (loss[..., low] <= loss[..., high] + slack).to(loss.dtype).mean(-1)
