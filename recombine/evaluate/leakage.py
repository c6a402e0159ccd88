"""What a model that is told of one object makes of the others: the number that decides how many scores can be added.

Adding scores, D = D_b + sum_j (D_j - D_b), asks every part j about a picture that holds the other objects, too. Look at one of
them, i. How much of it an answer shows is its amplitude there: 0 where the answer is the picture without it, 1 where it is
the picture as it is. A part that is told of i shows `own` of it, a part that is told of another object `others`, and the
background, told of nothing, `unconditional`. In the sum of K parts object i then has the amplitude

    own + (K - 1) (others - unconditional),

and the difference, the leakage, is what each further part does to it. 0: parts do not touch what is not theirs, and any number
of them can be added. Above 0: objects become ever louder, as under too much guidance. At -1: the second part takes away what
the first one drew. Amplitudes are taken on the object's own pixels, against the same scene without it, so none of this needs a
detector or a sample: it is known of a model before anything is drawn."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from recombine.config import UsageError
from recombine.objectives.process import Denoiser, Schedule, noised


@dataclass(frozen=True)
class Leakage:
    """Amplitudes at one time: of objects that an answer was told of, of others, and of all where nothing was told."""

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
    """Pictures `x`, the same `without` each object, and the pixels on which each is looked at. Slots without an object are
    all False."""

    x: Float[Tensor, "b c h w"]
    without: Float[Tensor, "b k c h w"]
    pixels: Bool[Tensor, "b k h w"]

    def shown(self, answer: Float[Tensor, "b c h w"]) -> Float[Tensor, "b k"]:
        """How much of each object an answer shows, times `contrast`."""
        there, answered = self.x[:, None] - self.without, answer[:, None] - self.without
        return ((there * answered).sum(2) * self.pixels).sum((2, 3))

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
    """At each of `times`, on noisy pictures: `condition` tells of object j in its slot j. Objects count by their contrast, so
    those that are hardly seen hardly count. Costs a call for each slot and one, at each time."""
    told, weight, x = condition.present, objects.contrast, objects.x
    if not times:
        raise UsageError("times: at least one is needed")
    if (told.sum(1) < 2).any():
        raise UsageError("an leakage needs pictures with two objects or more, all of them told in turn")
    if not (weight * told).sum() > 0:
        raise UsageError("the pictures with and without their objects are the same: nothing can be shown")
    found = []
    for time in times:
        t = torch.full((len(x),), time, dtype=x.dtype, device=x.device)
        noisy = noised(schedule, x, t, torch.randn(x.shape, generator=rng, dtype=x.dtype, device=x.device))
        unconditional = objects.shown(background(noisy, t, condition.null()))
        own, others = told_apart(parts, noisy, t, condition, objects)
        amplitudes = ((part * told).sum() / (weight * told).sum() for part in (own, others, unconditional))
        found.append(Leakage(time, schedule.sigma(t[0]).item(), *(a.item() for a in amplitudes)))
    return tuple(found)


def told_apart(
    parts: Denoiser, noisy: Float[Tensor, "b c h w"], t: Float[Tensor, "b"], condition: Any, objects: Objects
) -> tuple[Float[Tensor, "b k"], Float[Tensor, "b k"]]:
    """How much of each object is shown by the part that is told of it, and on average by those that are told of another."""
    told = condition.present
    own = others = torch.zeros_like(told, dtype=noisy.dtype)
    for j in range(told.shape[1]):
        slot = torch.arange(told.shape[1], device=told.device) == j
        shown = objects.shown(parts(noisy, t, condition.keep(slot.expand_as(told)))) * told[:, j, None]
        own, others = own + shown * slot, others + shown * ~slot
    return own, others / (told.sum(1, keepdim=True) - 1)
