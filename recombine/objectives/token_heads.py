"""The Head interface: from a network's hidden vector to the distribution of one token, a vector.
The same masked transformer is MaskGIT with the `Categorical` head, GIVT with `Mixture` and MAR with
`Denoising`; nothing else changes. A head holds no weights. It makes the network behind it (`net`)
and is handed it afterwards."""

import math
from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from recombine.config import UsageError, config
from recombine.nets.head_nets import CodeNet, DenoisingNet, Gaussians, MixtureNet, nearest_code
from recombine.objectives.diffusion import Diffusion, Draw
from recombine.objectives.solvers import Heun

FLOW = Diffusion()


class Head(ABC):
    """A frozen dataclass; its own config."""

    @abstractmethod
    def net(self, width: int, dim: int, codes: Float[Tensor, "n c"] | None) -> nn.Module:
        """The weights behind this head: from hidden vectors of `width` to what describes a token of
        `dim` numbers. `codes` are the only tokens there are, where the tokenizer has a codebook;
        UsageError if the head needs one and there is none."""

    @abstractmethod
    def draw(self, shape: tuple[int, int, int], rng: torch.Generator) -> tuple[Tensor, ...]:
        """The randomness of one `nll` of tokens of shape (b, l, c), on the generator's device,
        first axis b in every tensor; empty where none is needed."""

    @abstractmethod
    def nll(
        self,
        net: nn.Module,
        hidden: Float[Tensor, "b l d"],
        token: Float[Tensor, "b l c"],
        draw: tuple[Tensor, ...],
    ) -> Float[Tensor, "b l"]:
        """What training minimises, per token, in float32 also under autocast."""

    @abstractmethod
    def mean(
        self, net: nn.Module, hidden: Float[Tensor, "n d"], rng: torch.Generator
    ) -> Float[Tensor, "n c"]:
        """The expected token."""

    @abstractmethod
    def sample(
        self,
        net: nn.Module,
        hidden: Float[Tensor, "n d"],
        rng: torch.Generator,
        temperature: float = 1.0,
    ) -> tuple[Float[Tensor, "n c"], Float[Tensor, "n"]]:
        """Tokens, and the log-probability or log-density of each, which decoding by confidence
        uses; zeros where the head has none. It is the model's own, whatever the temperature of the
        draw."""


def choose(
    logits: Float[Tensor, "n m"], rng: torch.Generator, temperature: float = 1.0
) -> Int[Tensor, "n"]:
    """One index per row from softmax(logits / temperature), the largest at temperature 0 (the
    Gumbel trick)."""
    gumbel = -torch.empty_like(logits).exponential_(generator=rng).log()
    return (logits + temperature * gumbel).argmax(-1)


@config("head/categorical")
class Categorical(Head):
    """A distribution over the rows of the codebook (MaskGIT). Tokens that are no rows count as the
    nearest one. `smoothing` mixes the target with the uniform distribution in training. The
    temperature divides the logits: at 0 the likeliest row."""

    smoothing: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.smoothing < 1:
            raise ValueError(f"smoothing {self.smoothing} is not in [0, 1)")

    def net(self, width: int, dim: int, codes: Float[Tensor, "n c"] | None) -> CodeNet:
        if codes is None:
            raise UsageError(
                "the categorical head needs a codebook and this tokenizer has none; use vq or another head"
            )
        if codes.shape[1] != dim:
            raise UsageError(f"codes of {codes.shape[1]} numbers cannot describe tokens of {dim}")
        return CodeNet(width, codes)

    def draw(self, shape: tuple[int, int, int], rng: torch.Generator) -> tuple[Tensor, ...]:
        return ()

    def nll(self, net, hidden, token, draw):
        logits, index = net(hidden).flatten(0, 1), net.nearest(token).flatten()
        each = F.cross_entropy(logits, index, reduction="none", label_smoothing=self.smoothing)
        return each.view(hidden.shape[:2])

    def mean(self, net, hidden, rng):
        return net(hidden).softmax(-1) @ net.codes

    def sample(self, net, hidden, rng, temperature=1.0):
        logits = net(hidden)
        index = choose(logits, rng, temperature)
        return net.codes[index], logits.log_softmax(-1).gather(-1, index[:, None])[:, 0]


@config("head/mixture")
class Mixture(Head):
    """A mixture of diagonal Gaussians over token vectors (GIVT). Tokens have mean 0 and variance 1
    per channel; the standard deviations of the components lie between `floor` and `cap`. The floor
    keeps the likelihood bounded: the tokens of a codebook are points, and a component that sits on
    one would gain without end by shrinking. 0.05 is above the error of means that a bfloat16
    network can resolve (about 0.01 for values up to 3). Codes of a learned table may lie closer than
    that; a draw may then be nearer to another code, one that decodes alike. Lower is worse in
    another way too: a token counts in the gradient as 1 / scale^2, so those that are certain drown
    those that are not. The temperature scales the standard deviations and leaves the weights alone,
    as GIVT does: at 0 a draw is the mean of a component, which is itself still drawn by its weight.
    `temperature` multiplies that of decoding, for this head alone. `snap`: a sampled token becomes
    the nearest code, as the decoder knows no others."""

    components: int = 16
    floor: float = 0.05
    cap: float = 2.0
    snap: bool = False
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if self.components < 1:
            raise ValueError(f"components must be positive, not {self.components}")
        if not 0 < self.floor < 0.5:
            raise ValueError(f"floor {self.floor} is not between 0 and 0.5")
        if self.cap <= 1:
            raise ValueError(f"cap {self.cap} is not above 1, the standard deviation of tokens")
        if self.temperature < 0:
            raise ValueError(f"temperature {self.temperature} must not be negative")

    def net(self, width: int, dim: int, codes: Float[Tensor, "n c"] | None) -> MixtureNet:
        if self.snap and codes is None:
            raise UsageError("snap: this tokenizer has no codes to snap to")
        known = codes if self.snap else None
        return MixtureNet(width, dim, self.components, self.floor, self.cap, known)

    def draw(self, shape: tuple[int, int, int], rng: torch.Generator) -> tuple[Tensor, ...]:
        return ()

    def nll(self, net, hidden, token, draw):
        return -log_density(net(hidden), token)

    def mean(self, net, hidden, rng):
        mixture = net(hidden)
        return (mixture.log_weight.exp()[..., None] * mixture.mean).sum(-2)

    def sample(self, net, hidden, rng, temperature=1.0):
        mixture = net(hidden)
        rows = torch.arange(len(hidden), device=hidden.device)
        index = choose(mixture.log_weight, rng)
        mean, scale = mixture.mean[rows, index], mixture.log_scale[rows, index].exp()
        noise = torch.randn(mean.shape, generator=rng, device=mean.device)
        token = mean + self.temperature * temperature * scale * noise
        token = net.codes[nearest_code(token, net.codes)] if self.snap else token
        return token, log_density(mixture, token)


def log_density(mixture: Gaussians, token: Float[Tensor, "*s c"]) -> Float[Tensor, "*s"]:
    z = (token[..., None, :] - mixture.mean) * torch.exp(-mixture.log_scale)
    each = -0.5 * z.square() - mixture.log_scale - 0.5 * math.log(2 * math.pi)
    return torch.logsumexp(mixture.log_weight + each.sum(-1), dim=-1)


@config("head/denoising")
class Denoising(Head):
    """Diffusion of each token by itself, given its hidden vector (MAR), by flow matching. The `nll`
    is no likelihood: it is the squared error of the velocity at a random time, averaged over
    `repeats` draws that share the hidden vector. The network that minimises it draws from the right
    distribution, but the value compares with no other head's, and there is no density to decode by.
    Sampling solves the flow in `steps` steps of Heun. The temperature scales the noise it starts
    from; at 0 a draw is a function of the hidden vector alone."""

    steps: int = 12
    width: int = 256
    depth: int = 3
    repeats: int = 1

    def __post_init__(self) -> None:
        for name in ("steps", "width", "depth", "repeats"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}")

    def net(self, width: int, dim: int, codes: Float[Tensor, "n c"] | None) -> DenoisingNet:
        return DenoisingNet(width, dim, self.width, self.depth)

    def draw(self, shape: tuple[int, int, int], rng: torch.Generator) -> tuple[Tensor, ...]:
        b, l, c = shape
        t, noise = FLOW.draw(torch.Size([b * l * self.repeats, c]), rng)
        return t.view(b, l, self.repeats), noise.view(b, l, self.repeats, c)

    def nll(self, net, hidden, token, draw):
        (t, noise), r = draw, self.repeats
        hidden, token = (x.flatten(0, 1).repeat_interleave(r, 0) for x in (hidden, token))
        error = FLOW.loss(net, token, hidden, Draw(t.flatten(), noise.flatten(0, 2)))
        return error.view(len(t), -1, r).mean(-1)

    def mean(self, net, hidden, rng):
        """What is denoised from nothing but noise."""
        noise = torch.randn(len(hidden), net.enter.in_features, generator=rng, device=hidden.device)
        return FLOW.denoiser(net)(noise, noise.new_ones(len(noise)), hidden.float())

    def sample(self, net, hidden, rng, temperature=1.0):
        noise = torch.randn(len(hidden), net.enter.in_features, generator=rng, device=hidden.device)
        token = Heun(self.steps).sample(
            FLOW.denoiser(net), FLOW.schedule, temperature * noise, hidden.float()
        )
        return token, token.new_zeros(len(token))
