"""Leakage: what a conditional score shows of objects it was not conditioned on. It decides how many
scores can be added.

Adding scores, D = D_b + sum_j (D_j - D_b), evaluates every part j on a picture that holds the other
objects, too. Take one of them, i. Its amplitude in a denoised picture is 0 where that is the
picture without it and 1 where it is the picture as it is. A part conditioned on i shows the
amplitude `own`, a part conditioned on another object `others`, and the background, conditioned on
nothing, `unconditional`. In the sum of K parts object i then has the amplitude

    own + (K - 1) (others - unconditional),

and the difference, the leakage, is what each further part adds to it. 0: parts do not touch other
objects, and any number of them can be added. Above 0: amplitudes grow with every part, as under too
much guidance. At -1: the second part removes what the first one shows. Amplitudes are taken on the
object's own pixels, against the same scene without it, so this needs neither a detector nor
samples: it is known of a model before anything is sampled."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from recombine.config import UsageError
from recombine.objectives.process import Denoiser, Schedule, noised


@dataclass(frozen=True)
class Leakage:
    """Amplitudes at one time: of objects that a part was conditioned on, of others, and of all
    without a condition."""

    t: float
    sigma: float
    own: float
    others: float
    unconditional: float

    @property
    def leakage(self) -> float:
        return self.others - self.unconditional

    def amplitude(self, parts: int) -> float:
        """Of an object in the sum of so many parts, one of them its own."""
        return self.own + (parts - 1) * self.leakage


@dataclass(frozen=True, eq=False)
class Objects:
    """Pictures `x`, the same `without` each object, and the pixels on which each is measured. Slots
    without an object are all False."""

    x: Float[Tensor, "b c h w"]
    without: Float[Tensor, "b k c h w"]
    pixels: Bool[Tensor, "b k h w"]

    def shown(self, denoised: Float[Tensor, "b c h w"]) -> Float[Tensor, "b k"]:
        """The amplitude of each object in denoised pictures, times `contrast`."""
        there, here = self.x[:, None] - self.without, denoised[:, None] - self.without
        return ((there * here).sum(2) * self.pixels).sum((2, 3))

    @property
    def contrast(self) -> Float[Tensor, "b k"]:
        return self.shown(self.x)


@torch.no_grad()
def leakages(
    parts: Denoiser,
    background: Denoiser,
    schedule: Schedule,
    objects: Objects,
    condition: Any,
    times: tuple[float, ...],
    rng: torch.Generator,
) -> tuple[Leakage, ...]:
    """At each of `times`, on noisy pictures: slot j of `condition` is object j. Objects count by
    their contrast, so those that are hardly visible hardly count. Costs a call for each slot and
    one, at each time."""
    present, weight, x = condition.present, objects.contrast, objects.x
    if not times:
        raise UsageError("times: at least one is needed")
    if (present.sum(1) < 2).any():
        raise UsageError("leakage needs pictures with two objects or more")
    if not (weight * present).sum() > 0:
        raise UsageError(
            "the pictures with and without their objects are the same: nothing can be shown"
        )
    levels = []
    for time in times:
        t = torch.full((len(x),), time, dtype=x.dtype, device=x.device)
        noisy = noised(
            schedule, x, t, torch.randn(x.shape, generator=rng, dtype=x.dtype, device=x.device)
        )
        unconditional = objects.shown(background(noisy, t, condition.null()))
        own, others = own_and_others(parts, noisy, t, condition, objects)
        amplitudes = (
            (part * present).sum() / (weight * present).sum()
            for part in (own, others, unconditional)
        )
        levels.append(Leakage(time, schedule.sigma(t[0]).item(), *(a.item() for a in amplitudes)))
    return tuple(levels)


def own_and_others(
    parts: Denoiser,
    noisy: Float[Tensor, "b c h w"],
    t: Float[Tensor, "b"],
    condition: Any,
    objects: Objects,
) -> tuple[Float[Tensor, "b k"], Float[Tensor, "b k"]]:
    """How much of each object is shown by the part conditioned on it, and on average by those
    conditioned on another."""
    present = condition.present
    own = others = torch.zeros_like(present, dtype=noisy.dtype)
    for j in range(present.shape[1]):
        slot = torch.arange(present.shape[1], device=present.device) == j
        alone = condition.keep(slot.expand_as(present))
        shown = objects.shown(parts(noisy, t, alone)) * present[:, j, None]
        own, others = own + shown * slot, others + shown * ~slot
    return own, others / (present.sum(1, keepdim=True) - 1)
