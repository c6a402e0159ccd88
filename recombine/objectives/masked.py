"""Masked prediction of tokens: hide some, predict them. With a categorical head this is MaskGIT,
with a mixture GIVT, with a small per-token denoiser MAR: one transformer, one way of masking and
decoding, another head. `causal` predicts token after token in reading order instead."""

import math
from dataclasses import field, replace
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from recombine.config import UsageError, config
from recombine.nets.conditioning import Conditioning
from recombine.nets.dit import DiTConfig
from recombine.nets.masked import MaskedNet
from recombine.nets.net_config import NetConfig, Shape
from recombine.objectives.jepa import Jepa, goals
from recombine.objectives.objective import Codes, Objective
from recombine.objectives.token_heads import Categorical, Head
from recombine.worlds.factors import Condition, FactorSpace


class Hiding(NamedTuple):
    """The randomness of one loss: which tokens are hidden, what the head's loss draws, and which
    hidden tokens the auxiliary loss predicts."""

    mask: Bool[Tensor, "b l"]
    head: tuple[Tensor, ...]
    predicted: Bool[Tensor, "b l"]


@config("decoding")
class Decoding:
    """How tokens are filled in: in `steps` rounds, as many per round as the cosine schedule says.
    `order`: the tokens that the head is surest of first (MaskGIT; `choice` is the strength of the
    Gumbel noise on that, falling to 0 over the rounds), or at random; `auto` = by confidence where
    the head is categorical. `temperature` sharpens the head's own sampling."""

    steps: int = 12
    order: Literal["auto", "confidence", "random"] = "auto"
    choice: float = 4.5
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps must be positive, not {self.steps}")
        if self.choice < 0 or self.temperature < 0:
            raise ValueError(
                f"choice {self.choice} and temperature {self.temperature} must not be negative"
            )

    def rounds(self, length: int) -> list[int]:
        """How many of `length` tokens are still hidden after each round; at least one is shown in
        every round."""
        steps = min(self.steps, length)
        wanted = [
            math.floor(length * math.cos(math.pi / 2 * (i + 1) / steps)) for i in range(steps)
        ]
        return [max(0, min(w, length - 1 - i)) for i, w in enumerate(wanted)]

    def sure(self, head: Head) -> bool:
        """Whether the surest tokens come first."""
        return self.order == "confidence" or (
            self.order == "auto" and isinstance(head, Categorical)
        )


@config("objective/masked")
class Masked(Objective):
    """`jepa` adds the auxiliary loss on inner layers."""

    head: Head = field(default_factory=Categorical)
    causal: bool = False
    jepa: Jepa | None = None

    def __post_init__(self) -> None:
        if self.causal and self.jepa:
            raise ValueError("jepa compares hidden with shown tokens; a causal model hides none")

    @property
    def needs_teacher(self) -> bool:
        return self.jepa is not None

    def network(
        self,
        net: NetConfig,
        conditioning: Conditioning,
        shape: Shape,
        space: FactorSpace,
        codes: Codes = None,
    ) -> MaskedNet:
        if not isinstance(net, DiTConfig):
            raise UsageError(f"masked prediction needs the transformer, not a {type(net).__name__}")
        if net.patch != 1:
            raise UsageError(
                f"masked prediction takes each cell of the latent as a token: patch=1, not {net.patch}"
            )
        layers = self.jepa.layers if self.jepa else ()
        if layers and max(layers) >= net.transformer.depth:
            raise UsageError(
                f"jepa layers {list(layers)}: the network has {net.transformer.depth} blocks, from 0"
            )
        net = replace(net, transformer=replace(net.transformer, causal=self.causal))
        head = self.head.net(net.transformer.width, shape[0], codes)
        return MaskedNet(net, conditioning, shape, space, head, layers)

    def draw(self, shape: torch.Size, rng: torch.Generator) -> Hiding:
        batch, channels, height, width = shape
        length = height * width
        share = torch.cos(math.pi / 2 * torch.rand(batch, 1, generator=rng, device=rng.device))
        rank = torch.rand(batch, length, generator=rng, device=rng.device).argsort(1).argsort(1)
        mask = (
            torch.ones_like(rank, dtype=torch.bool)
            if self.causal
            else rank < (share * length).ceil().clamp(min=1)
        )
        head = self.head.draw((batch, length, channels), rng)
        inside = self.jepa.draw(batch, (height, width), rng) if self.jepa else mask
        return Hiding(mask, head, mask & inside)

    def loss(
        self,
        net: MaskedNet,
        x: Float[Tensor, "b c h w"],
        condition: Condition,
        draw: Hiding,
        teacher: MaskedNet | None = None,
    ) -> Float[Tensor, "b"]:
        """The mean over hidden tokens of the head's negative log-likelihood."""
        tokens, mask = net.tokens(x), draw.mask
        hidden, states = net.trace(
            *(_shifted(tokens) if self.causal else (tokens, mask)), condition
        )
        nll = self.head.nll(net.head, hidden, tokens, draw.head)
        loss = (nll * mask).sum(1) / mask.sum(1).clamp(min=1)
        if self.jepa and teacher is not None:
            targets = goals(teacher, tokens, condition)
            loss = loss + self.jepa.loss(net, states, targets, draw.predicted)
        return loss

    def readings(
        self, net: MaskedNet, x: Float[Tensor, "b c h w"], condition: Condition, draw: Hiding
    ) -> list[dict[str, Any]]:
        """The loss on the output, and what `Jepa.readings` says of each layer; the network is its
        own teacher. Nothing without an auxiliary loss."""
        if not self.jepa:
            return []
        tokens = net.tokens(x)
        states, targets = net.trace(tokens, draw.mask, condition)[1], goals(net, tokens, condition)
        plain = replace(self, jepa=None).loss(net, x, condition, draw).mean().item()
        return [
            {"output_loss": plain, **row}
            for row in self.jepa.readings(net, states, targets, draw.predicted)
        ]

    def expect(
        self,
        net: MaskedNet,
        x: Float[Tensor, "b c h w"],
        condition: Condition,
        gone: float,
        rng: torch.Generator,
    ) -> Float[Tensor, "b c h w"]:
        tokens = net.tokens(x)
        rank = torch.rand(tokens.shape[:2], generator=rng, device=rng.device).argsort(1).argsort(1)
        mask = (
            torch.ones_like(rank, dtype=torch.bool)
            if self.causal
            else rank < math.ceil(gone * tokens.shape[1])
        )
        hidden = net(*(_shifted(tokens) if self.causal else (tokens, mask)), condition)
        mean = self.head.mean(net.head, hidden.flatten(0, 1), rng).view(tokens.shape)
        return net.latent(mean * mask[..., None])

    def sample(
        self,
        net: MaskedNet,
        shape: Shape,
        condition: Condition,
        rng: torch.Generator,
        sampler: Decoding,
    ) -> Float[Tensor, "b c h w"]:
        batch, (channels, height, width) = len(condition.index), shape
        tokens = torch.zeros(batch, height * width, channels, device=rng.device)
        fill = self._surest_first if sampler.sure(self.head) else self._at_random
        return net.latent(
            (self._in_order if self.causal else fill)(net, tokens, condition, rng, sampler)
        )

    def _surest_first(
        self, net, tokens, condition, rng, sampler: Decoding
    ) -> Float[Tensor, "b l p"]:
        """All hidden tokens are drawn in every round; the least sure are hidden again."""
        mask = torch.ones(tokens.shape[:2], dtype=torch.bool, device=tokens.device)
        rounds = sampler.rounds(tokens.shape[1])
        for i, left in enumerate(rounds, 1):
            hidden = net(tokens, mask, condition)
            guess, sure = self.head.sample(net.head, hidden.flatten(0, 1), rng, sampler.temperature)
            tokens = torch.where(mask[..., None], guess.view_as(tokens).to(tokens.dtype), tokens)
            gumbel = -torch.empty_like(sure).exponential_(generator=rng).log()
            order = (sure + sampler.choice * (1 - i / len(rounds)) * gumbel).view_as(mask)
            mask = order.masked_fill(~mask, math.inf).argsort(1).argsort(1) < left
        return tokens

    def _at_random(self, net, tokens, condition, rng, sampler: Decoding) -> Float[Tensor, "b l p"]:
        """Which tokens a round shows is drawn beforehand, so only those are drawn."""
        batch, length, _ = tokens.shape
        order = torch.rand(batch, length, generator=rng, device=rng.device).argsort(1)
        before, rank = length, order.argsort(1)
        for left in sampler.rounds(length):
            hidden = net(tokens, rank < before, condition)
            place = order[:, left:before, None]
            some = hidden.gather(1, place.expand(-1, -1, hidden.shape[-1]))
            drawn, _ = self.head.sample(net.head, some.flatten(0, 1), rng, sampler.temperature)
            drawn = drawn.view(batch, before - left, -1).to(tokens.dtype)
            tokens, before = tokens.scatter(1, place.expand_as(drawn), drawn), left
        return tokens

    def _in_order(self, net, tokens, condition, rng, sampler: Decoding) -> Float[Tensor, "b l p"]:
        for i in range(tokens.shape[1]):
            hidden = net(*_shifted(tokens), condition)[:, i]
            tokens = tokens.clone()
            tokens[:, i] = self.head.sample(net.head, hidden, rng, sampler.temperature)[0].to(
                tokens.dtype
            )
        return tokens


def _shifted(tokens: Float[Tensor, "b l p"]) -> tuple[Float[Tensor, "b l p"], Bool[Tensor, "b l"]]:
    """Each place holds the token before it; the first is hidden."""
    mask = torch.zeros(tokens.shape[:2], dtype=torch.bool, device=tokens.device)
    mask[:, 0] = True
    return tokens.roll(1, dims=1), mask
