"""What stands between encoder and decoder: a small Gaussian (KL), a learned table of codes (VQ), a
fixed grid of codes (FSQ). A bottleneck holds no weights and draws nothing by itself: the network
hands it its codes, the batch its randomness, so that training has no state beside the network's
parameters."""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from recombine.config import config
from recombine.tokenizers.tokenizer import look_up, nearest


class Squeezed(NamedTuple):
    """What the decoder sees while training, and what each sample pays beside its reconstruction
    error."""

    latents: Float[Tensor, "b c h w"]
    penalty: Float[Tensor, "b"]


class Bottleneck(ABC):
    """A frozen dataclass: it is its own config. The encoder gives `features` channels, the latent
    has `channels`."""

    name: ClassVar[str]

    @property
    @abstractmethod
    def channels(self) -> int: ...

    @property
    def features(self) -> int:
        return self.channels

    def codes(self) -> Float[Tensor, "n c"] | None:
        """Where the codes start, one per row; None where there are none."""
        return None

    @property
    def learned(self) -> bool:
        """Whether the codes are trained."""
        return False

    @abstractmethod
    def draw(
        self, batch: int, grid: tuple[int, int], rng: torch.Generator
    ) -> Float[Tensor, "b *s"]:
        """The randomness of one loss."""

    @abstractmethod
    def squeeze(
        self,
        features: Float[Tensor, "b f h w"],
        codes: Float[Tensor, "n c"] | None,
        draw: Float[Tensor, "b *s"],
    ) -> Squeezed:
        """The way through while training."""

    @abstractmethod
    def settle(self, features: Float[Tensor, "b f h w"]) -> Float[Tensor, "b c h w"]:
        """The latent after training, without chance; where there are codes, the point whose nearest
        code it is."""


@config("bottleneck/kl")
class KL(Bottleneck):
    """A variational bottleneck: a Gaussian per latent, held near N(0, 1) by `weight` nats per
    latent channel and place."""

    name: ClassVar[str] = "vae"

    dim: int = 8
    weight: float = 1e-4

    def __post_init__(self) -> None:
        if self.dim <= 0 or self.weight < 0:
            raise ValueError(
                f"dim must be positive and weight not negative, not {self.dim} and {self.weight}"
            )

    @property
    def channels(self) -> int:
        return self.dim

    @property
    def features(self) -> int:
        return 2 * self.dim

    def draw(
        self, batch: int, grid: tuple[int, int], rng: torch.Generator
    ) -> Float[Tensor, "b c h w"]:
        return torch.randn((batch, self.dim, *grid), generator=rng, device=rng.device)

    def squeeze(
        self,
        features: Float[Tensor, "b f h w"],
        codes: Float[Tensor, "n c"] | None,
        draw: Float[Tensor, "b c h w"],
    ) -> Squeezed:
        mean, log_var = features.float().chunk(2, 1)
        log_var = log_var.clamp(-20, 10)
        divergence = (mean.square() + log_var.exp() - 1 - log_var) / 2
        return Squeezed(mean + draw * (log_var / 2).exp(), self.weight * divergence.mean((1, 2, 3)))

    def settle(self, features: Float[Tensor, "b f h w"]) -> Float[Tensor, "b c h w"]:
        return features.float().chunk(2, 1)[0]


@config("bottleneck/vq")
class VQ(Bottleneck):
    """A table of `size` codes, learned by gradient: codes follow the features that chose them, and
    features pay `commitment` for straying from theirs. A code that no feature of the batch chose is
    pulled, with weight `revival`, to the nearest of some badly served features: dead codes come
    back where they are needed, and nothing has to be remembered between steps."""

    name: ClassVar[str] = "vq"
    NEEDY: ClassVar[int] = 64
    """How many badly served features a dead code can choose from."""

    size: int = 256
    dim: int = 8
    commitment: float = 0.25
    revival: float = 0.1

    def __post_init__(self) -> None:
        if self.size < 2 or self.dim <= 0:
            raise ValueError(
                f"size must be at least 2 and dim positive, not {self.size} and {self.dim}"
            )
        if self.commitment < 0 or self.revival < 0:
            raise ValueError(
                f"commitment {self.commitment} and revival {self.revival} must not be negative"
            )

    @property
    def channels(self) -> int:
        return self.dim

    def codes(self) -> Float[Tensor, "n c"]:
        return torch.randn(self.size, self.dim)

    @property
    def learned(self) -> bool:
        return True

    def draw(
        self, batch: int, grid: tuple[int, int], rng: torch.Generator
    ) -> Float[Tensor, "b h w"]:
        return torch.rand((batch, *grid), generator=rng, device=rng.device)

    def squeeze(
        self,
        features: Float[Tensor, "b c h w"],
        codes: Float[Tensor, "n c"],
        draw: Float[Tensor, "b h w"],
    ) -> Squeezed:
        features = features.float()
        index = nearest(features, codes)
        chosen = look_up(index, codes)
        follow = (chosen - features.detach()).square().mean((1, 2, 3))
        commit = (features - chosen.detach()).square().mean((1, 2, 3))
        dead = self.dead(features.detach(), codes, index, draw)
        penalty = follow + self.commitment * commit + self.revival * dead
        return Squeezed(features + (chosen - features).detach(), penalty)

    def dead(
        self, features: Tensor, codes: Tensor, index: Int[Tensor, "b h w"], draw: Tensor
    ) -> Float[Tensor, ""]:
        """The mean over codes of the squared distance of those that were not chosen to the
        nearest needy feature. Needy ones are drawn in proportion to their error, through the
        Gumbel trick."""
        used = torch.zeros(len(codes), device=codes.device).scatter(0, index.flatten(), 1.0)
        points = features.movedim(1, -1).flatten(0, 2)
        error = (points - codes.detach()[index.flatten()]).square().sum(1)
        gumbel = -torch.log(-torch.log(draw.flatten().clamp(1e-6, 1 - 1e-6)))
        needy = points[
            (error.clamp(min=1e-12).log() + gumbel).topk(min(self.NEEDY, len(points))).indices
        ]
        away = (codes[:, None] - needy[None]).square().mean(2).amin(1)
        return (away * (1 - used)).mean()

    def settle(self, features: Float[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
        return features.float()


@config("bottleneck/fsq")
class FSQ(Bottleneck):
    """Every channel is rounded to one of a few values between -1 and 1; all combinations together
    are the codes."""

    name: ClassVar[str] = "fsq"

    levels: tuple[int, ...] = (8, 6, 5)

    def __post_init__(self) -> None:
        if not self.levels or min(self.levels) < 2:
            raise ValueError(f"levels {list(self.levels)}: one or more numbers of at least 2")

    @property
    def channels(self) -> int:
        return len(self.levels)

    def codes(self) -> Float[Tensor, "n c"]:
        values = [torch.linspace(-1, 1, n) for n in self.levels]
        return torch.cartesian_prod(*values).reshape(-1, len(self.levels))

    def draw(self, batch: int, grid: tuple[int, int], rng: torch.Generator) -> Float[Tensor, "b 0"]:
        return torch.empty((batch, 0), device=rng.device)

    def squeeze(
        self,
        features: Float[Tensor, "b c h w"],
        codes: Float[Tensor, "n c"],
        draw: Float[Tensor, "b 0"],
    ) -> Squeezed:
        point = self.settle(features)
        step = (2 / (self._counts(features) - 1)).to(point.dtype)
        rounded = (((point + 1) / step).round() * step - 1).clamp(-1, 1)
        return Squeezed(
            point + (rounded - point).detach(), torch.zeros(len(features), device=features.device)
        )

    def settle(self, features: Float[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
        """Bounded so that every value has a share of the range as wide as any other."""
        count = self._counts(features)
        return (count * features.float().sigmoid() - 0.5) * 2 / (count - 1) - 1

    def _counts(self, like: Tensor) -> Float[Tensor, "c 1 1"]:
        return torch.stack([torch.full((1, 1), float(n), device=like.device) for n in self.levels])
