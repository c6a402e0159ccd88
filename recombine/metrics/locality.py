"""How local a denoiser is, one noise level at a time: what the pixels around a pixel do to it, and
where the effect of a condition is seen. Works on any Denoiser, exact or trained, and counts the
denoiser calls it costs.

Pixels: the output at a pixel is differentiated by every pixel of the picture (vector-Jacobian
products, one a colour). The pixel's own entry is left out. There alone the derivatives of the
denoiser and of the score (alpha D - x) / sigma^2 differ by more than a factor, and it says nothing
about others. Conditions: each is removed in turn, and the change of the output is measured.

Both are effects that belong to a location, spread over the picture. The measure is the share of the
effect that lies near the location, within a square, as patches are squares: 1 for a denoiser that
is exactly local, the square's share of the picture for one that spreads it evenly. For pixels it is
the share of the magnitude: of the square, hardly anything lies beyond the next few pixels, whatever
the network. For conditions it is the share of the square, since a change of rounding everywhere is
none. The other one of each stands beside it. `violation.py` measures the same for sets of pixels
that are known exactly."""

import math
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from recombine.config import UsageError
from recombine.objectives.process import Denoiser, Schedule, noised

RADIUS = 3 / 16
"""Three cells of sixteen: all that a cell and a location can be apart and share a patch that
reaches two cells."""
PULL = 2
"""What a vector-Jacobian product costs, in calls."""


@runtime_checkable
class Conditions(Protocol):
    """What a condition must offer: which of its parts are present, and itself without some of
    them."""

    @property
    def present(self) -> Bool[Tensor, "b k"]: ...

    def keep(self, mask: Bool[Tensor, "b k"]) -> Any: ...


@dataclass(frozen=True, eq=False)
class Influence:
    """Effects that belong to locations. `at`: the locations, fractions of the picture (x right, y
    down). `energy`: the squared effect at every pixel, colours summed; those not `present` do not
    count. `calls`: denoiser calls spent on each picture."""

    at: Float[Tensor, "b n 2"]
    energy: Float[Tensor, "b n h w"]
    present: Bool[Tensor, "b n"]
    calls: int

    def parts(self, radius: float = RADIUS) -> tuple[Float[Tensor, "b n"], Float[Tensor, "b n"]]:
        """The energy of each effect within `radius` of its location, and beyond."""
        inside = distance(self.at, *self.energy.shape[2:]) <= radius
        near, far = ((self.energy * part).sum((2, 3)) * self.present for part in (inside, ~inside))
        return near, far

    def share(self, radius: float = RADIUS, squared: bool = True) -> float:
        """The share of all energy that lies near its location, or of its root. Strong effects count
        more, so that effects which are nothing but rounding do not count; 1 where there is no
        effect at all, and so none elsewhere."""
        whole = self if squared else replace(self, energy=self.energy.sqrt())
        near, far = (part.sum().item() for part in whole.parts(radius))
        return 1.0 if near + far == 0 else near / (near + far)

    def own(self, radius: float = 1 / 16) -> float:
        """For conditions: at the location of each, the part of its own effect in that of all
        conditions, as root mean squares within `radius` (at least the nearest pixel). 1: conditions
        do not disturb each other; 1 / k: all do so alike. Only where there are several and some
        effect; NaN if there is none."""
        h, w = self.energy.shape[2:]
        inside = (distance(self.at, h, w) <= max(radius, 0.5 / min(h, w))).to(self.energy.dtype)
        effect = torch.einsum("bihw,bjhw->bij", inside, self.energy).sqrt()
        part = effect.diagonal(dim1=1, dim2=2) / effect.sum(2)
        counted = self.present & (self.present.sum(1, keepdim=True) > 1) & (effect.sum(2) > 0)
        return part[counted].mean().item()


def distance(at: Float[Tensor, "b n 2"], h: int, w: int) -> Float[Tensor, "b n h w"]:
    """From every location to every pixel's middle, the larger of the two axes, in sides of the
    picture."""
    x, y = ((torch.arange(n, device=at.device, dtype=at.dtype) + 0.5) / n for n in (w, h))
    across, down = (at[..., :1] - x).abs(), (at[..., 1:] - y).abs()
    return torch.maximum(across[:, :, None, :], down[:, :, :, None])


def pixel_influence(
    denoiser: Denoiser,
    x: Float[Tensor, "b c h w"],
    t: Float[Tensor, "b"],
    condition: Any,
    pixels: Int[Tensor, "b p 2"],
) -> Influence:
    """What every pixel of the noisy pictures `x` does to the output at `pixels` (row, column)."""
    rows, size = torch.arange(len(x), device=x.device), torch.tensor(x.shape[2:], device=x.device)
    if pixels.min() < 0 or (pixels >= size).any():
        raise UsageError(f"a pixel lies outside the picture of {x.shape[2]}x{x.shape[3]}")
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        output = _finite(denoiser(x, t, condition))
    if not output.requires_grad:
        raise UsageError(
            "the denoiser's output has no gradient by the picture: it ignores it, or runs under "
            "no_grad"
        )
    energy = x.new_zeros(len(x), pixels.shape[1], *x.shape[2:])
    for p, (row, column) in enumerate(pixels.permute(1, 2, 0)):
        for channel in range(x.shape[1]):
            start = torch.zeros_like(x)
            start[rows, channel, row, column] = 1
            (pulled,) = torch.autograd.grad(output, x, start, retain_graph=True)
            energy[:, p] += pulled.square().sum(1)
        energy[rows, p, row, column] = 0
    middle = (pixels.flip(-1) + 0.5) / size.flip(0)
    present = torch.ones(pixels.shape[:2], dtype=torch.bool, device=x.device)
    return Influence(middle.to(x.dtype), energy, present, 1 + PULL * pixels.shape[1] * x.shape[1])


def _finite(output: Tensor) -> Tensor:
    if not output.isfinite().all():
        raise UsageError(
            "the denoiser's output is not finite everywhere: there is nothing to measure"
        )
    return output


@torch.no_grad()
def condition_influence(
    denoiser: Denoiser,
    x: Float[Tensor, "b c h w"],
    t: Float[Tensor, "b"],
    condition: Conditions,
    at: Float[Tensor, "b k 2"],
) -> Influence:
    """What every condition, located `at`, does to the output: the change when it alone is
    removed."""
    present, calls = condition.present, 1
    base, energy = _finite(denoiser(x, t, condition)), x.new_zeros(*present.shape, *x.shape[2:])
    for j in range(present.shape[1]):
        if present[:, j].any():
            others = torch.arange(present.shape[1], device=present.device) != j
            change = _finite(denoiser(x, t, condition.keep(others.expand_as(present)))) - base
            energy[:, j], calls = change.square().sum(1), calls + 1
    return Influence(at.to(x.dtype), energy, present, calls)


@dataclass(frozen=True)
class LevelLocality:
    """Both measures at one time: the shares within the radius, `own`, the shares taken the other
    way (squared or plain), and how large the effect of a condition is (root mean square over
    pictures, of its sum over pixels). Where no condition has any effect, nothing is known of where
    it lies: the shares of conditions are NaN."""

    t: float
    sigma: float
    pixel: float
    condition: float
    own: float
    pixel_squared: float
    condition_plain: float
    effect: float

    @staticmethod
    def of(
        t: float, sigma: float, around: Influence, given: Influence, radius: float
    ) -> "LevelLocality":
        shares = [
            influence.share(radius, squared)
            for squared in (False, True)
            for influence in (around, given)
        ]
        size = given.energy.sum((2, 3))[given.present].mean().sqrt().item()
        if size == 0:
            shares[1] = shares[3] = math.nan
        return LevelLocality(
            t, sigma, shares[0], shares[3], given.own(), shares[2], shares[1], size
        )


@dataclass(frozen=True)
class Locality:
    """The levels, the means over them (of conditions, over those at which one has an effect), and
    what it cost: denoiser calls for each picture."""

    levels: tuple[LevelLocality, ...]
    calls: int

    @property
    def pixel(self) -> float:
        return sum(level.pixel for level in self.levels) / len(self.levels)

    @property
    def condition(self) -> float:
        """NaN where no condition has an effect at any level; `doubt` says so."""
        known = [level.condition for level in self.levels if level.effect]
        return sum(known) / len(known) if known else math.nan

    @property
    def doubt(self) -> str:
        """Why the numbers say nothing, in one line; empty if they do."""
        if any(level.effect for level in self.levels):
            return ""
        return (
            "removing a condition changes nothing at any time: is the denoiser trained, and does "
            "it use `present`?"
        )


def locality(
    denoiser: Denoiser,
    schedule: Schedule,
    x: Float[Tensor, "b c h w"],
    condition: Any,
    times: tuple[float, ...],
    rng: torch.Generator,
    pixels: int = 4,
    radius: float = RADIUS,
    at: Float[Tensor, "b k 2"] | None = None,
) -> Locality:
    """Both measures at each of `times`, on clean pictures `x` that are noised here. `pixels` random
    pixels of each picture are measured. `at` says where the conditions are, if they do not say so
    themselves."""
    where, levels, calls = getattr(condition, "at", None) if at is None else at, [], 0
    if where is None:
        raise UsageError(
            "conditions that do not say where they are need at=: (x, y) of each, as fractions of "
            "the picture"
        )
    if not times:
        raise UsageError("times: at least one is needed")
    if not condition.present.any():
        raise UsageError(
            "conditional locality needs a condition that can be removed; none is present"
        )
    for time in times:
        t = torch.full((len(x),), time, dtype=x.dtype, device=x.device)
        noise = torch.randn(x.shape, generator=rng, dtype=x.dtype, device=x.device)
        noisy, chosen = noised(schedule, x, t, noise), random_pixels(x, pixels, rng)
        around = pixel_influence(denoiser, noisy, t, condition, chosen)
        given = condition_influence(denoiser, noisy, t, condition, where)
        sigma = schedule.sigma(t[0]).item()
        levels.append(LevelLocality.of(time, sigma, around, given, radius))
        calls += around.calls + given.calls
    return Locality(tuple(levels), calls)


def random_pixels(
    x: Float[Tensor, "b c h w"], count: int, rng: torch.Generator
) -> Int[Tensor, "b p 2"]:
    draw = torch.rand(len(x), count, 2, generator=rng, device=x.device)
    return (draw * torch.tensor(x.shape[2:], device=x.device)).long()
