"""EDM: pictures under noise of any size, a network whose inputs and outputs have size one, its
loss, and its denoiser (Karras et al. 2022).

Time runs from 0 to 1 and stands for the noise level sigma(t), with alpha = 1. The network is handed
the picture divided by its expected size and the time; its answer F is read as

    E[x | x_t] = skip x_t + out F,
    skip = data^2 / (sigma^2 + data^2),   out = sigma data / sqrt(sigma^2 + data^2),

where `data` is the standard deviation of the pictures. So it copies what the noise left, and adds
what it must."""

import math
from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from recombine.config import UsageError, config
from recombine.objectives.diffusion import Draw
from recombine.objectives.noising import Noising
from recombine.objectives.process import Denoiser, Schedule, noised, spread

Network = Callable[[Tensor, Tensor, Any], Tensor]


@config("schedule/karras")
class Karras(Schedule):
    """alpha = 1, and sigma^(1/rho) linear in time between the levels `low` and `high`, all of it
    lowered by `low`, so that no noise is left at time 0. Equal steps in time are small where the
    noise is."""

    slopes_in_sigma: ClassVar[bool] = True
    low: float = 0.002
    high: float = 80.0
    rho: float = 7.0

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high or self.rho <= 0:
            raise ValueError(
                f"need 0 < low < high and rho > 0, not {self.low}, {self.high} and {self.rho}"
            )

    @property
    def growth(self) -> float:
        """How much the root of the highest level exceeds that of the lowest."""
        return (self.high / self.low) ** (1 / self.rho) - 1

    def alpha(self, t: Tensor) -> Tensor:
        return torch.ones_like(t)

    def sigma(self, t: Tensor) -> Tensor:
        return self.low * torch.expm1(self.rho * torch.log1p(self.growth * t))

    def time(self, sigma: Tensor) -> Tensor:
        """When the noise has this level; 1 for all above the highest."""
        return (torch.expm1(torch.log1p(sigma / self.low) / self.rho) / self.growth).clamp(max=1)


class PatchDraw(NamedTuple):
    """The randomness of one loss on patches: a time and a noise picture per sample, and a number
    for every cell, once for patches with a location and once for those without: the highest is
    taken."""

    t: Float[Tensor, "b"]
    noise: Float[Tensor, "b *s"]
    pick: Float[Tensor, "b 2 l"]


@config("objective/edm")
class Edm(Noising):
    """`data`: standard deviation of the pictures. Training draws log sigma from a normal law
    (`centre`, `width`) and counts errors in units of `out`, so that every level starts with a loss
    of about one. `balance`: None, all pixels count alike. Otherwise pixels whose patch holds a
    location share this part of a picture's loss, and the others the rest. That is a local network
    trained on patches with and without a condition, every patch of the picture at once; it needs a
    network that says which is which (`sees`). `patches`: 0, or the number of cells of a network
    that is trained on two patches of each picture (`nets/patch_unet.py`)."""

    schedule: Karras = field(default_factory=Karras)
    data: float = 0.5
    centre: float = -0.8
    width: float = 1.6
    balance: float | None = None
    patches: int = 0

    @staticmethod
    def edm2(data: float) -> "Edm":
        """EDM2's law of noise levels at 64 x 64, with median sigma / data 0.90 (P_mean = -0.8,
        P_std = 1.6 at data = 0.5), for pictures of this standard deviation."""
        return Edm(data=data, centre=round(math.log(data / 0.5) - 0.8, 4), width=1.6)

    def __post_init__(self) -> None:
        if self.data <= 0 or self.width < 0:
            raise ValueError(
                f"data must be positive and width not negative, not {self.data} and {self.width}"
            )
        if self.balance is not None and not 0 <= self.balance <= 1:
            raise ValueError(f"balance {self.balance} is not between 0 and 1")
        if self.patches < 0 or (self.patches and self.balance is not None):
            raise ValueError(f"patches={self.patches}: 0, or a number of cells and no balance")

    def draw(self, shape: torch.Size, rng: torch.Generator) -> "Draw | PatchDraw":
        """Random times and noise for a batch of this shape. Each sample's level comes from its own
        quantile of the law, so that every batch holds all of them."""
        count, noise = shape[0], torch.randn(shape, generator=rng, device=rng.device)
        within = torch.rand(count, generator=rng, device=rng.device)
        share = (torch.arange(count, device=rng.device) + within) / count
        log = self.centre + self.width * torch.special.ndtri(share.clamp(1e-6, 1 - 1e-6))
        t = self.schedule.time(log.exp())
        if not self.patches:
            return Draw(t, noise)
        pick = torch.rand((count, 2, self.patches), generator=rng, device=rng.device)
        return PatchDraw(t, noise, pick)

    def scales(
        self, t: Float[Tensor, "b"], like: Float[Tensor, "b *s"]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """in, skip and out at these times."""
        sigma = self.schedule.sigma(spread(t, like))
        size = (sigma**2 + self.data**2).sqrt()
        return 1 / size, (self.data / size) ** 2, sigma * self.data / size

    def loss(
        self, net: Network, x: Float[Tensor, "b *s"], condition: Any, draw: "Draw | PatchDraw"
    ) -> Float[Tensor, "b"]:
        """The mean squared error of each sample's denoised picture, in units of out^2."""
        noisy = noised(self.schedule, x, draw.t, draw.noise)
        enter = self.scales(draw.t, x)[0]
        # (x - skip noisy) / out without its division by zero where there is no noise
        goal = enter * (
            self.schedule.sigma(spread(draw.t, x)) / self.data * x - self.data * draw.noise
        )
        if isinstance(draw, PatchDraw):
            return net.two(enter * noisy, draw.t, condition, goal, draw.pick)
        error = (net(enter * noisy, draw.t, condition).float() - goal).square()
        return (
            (error if self.balance is None else error * self._weight(net, condition))
            .flatten(1)
            .mean(1)
        )

    def _weight(self, net: Network, condition: Any) -> Float[Tensor, "b 1 h w"]:
        """How much each pixel counts, one on average."""
        if not hasattr(net, "sees"):
            raise UsageError(
                "balance needs a local network that says which pixels see a location, not "
                f"{type(net).__name__}"
            )
        seen = net.sees(condition)[:, None].float()
        part = seen.mean((2, 3), keepdim=True)
        share = torch.where(part == 0, 0.0, torch.where(part == 1, 1.0, self.balance))
        return seen * share / part.clamp(min=1e-9) + (1 - seen) * (1 - share) / (1 - part).clamp(
            min=1e-9
        )

    def denoiser(self, net: Network) -> Denoiser:
        """The network's output, read as E[x | x_t]."""

        def denoise(x: Tensor, t: Tensor, condition: Any) -> Tensor:
            enter, skip, out = self.scales(t, x)
            return skip * x + out * net(enter * x, t, condition).to(x.dtype)

        return denoise
