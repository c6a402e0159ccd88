"""Prompts as a pipeline's network is given them: token embeddings, pooled embeddings, and which
tokens each word of the prompt became, so that a word can be removed from what the network sees."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor


class Encoded(NamedTuple):
    """What the text encoders make of some prompts; `mask`: which tokens may be attended to."""

    embeds: Float[Tensor, "b l d"] | None
    pooled: Float[Tensor, "b p"] | None = None
    mask: Tensor | None = None

    def rows(self, which: Tensor) -> "Encoded":
        return Encoded(*(None if part is None else part[which] for part in self))


Encode = Callable[[list[str]], Encoded]


@dataclass(frozen=True, eq=False)
class Text:
    """The conditions of a batch, one prompt each, for metrics as for networks: its parts are the
    words. `keep` replaces the embeddings of removed words by those that the empty prompt has in
    their place, and the pooled embedding by that of the prompt without them. `tokens`: which
    tokens are whose."""

    prompts: tuple[str, ...]
    encoded: Encoded
    tokens: Bool[Tensor, "b k l"]
    present: Bool[Tensor, "b k"]
    encode: Encode = field(repr=False)

    @property
    def words(self) -> list[list[str]]:
        return [prompt.split() for prompt in self.prompts]

    def keep(self, mask: Bool[Tensor, "b k"]) -> "Text":
        """Without the words where `mask` is False."""
        left = self.present & mask
        gone = (self.tokens & ~left[:, :, None]).any(1)
        null = self.encode([""] * len(self.prompts))
        embeds = torch.where(gone[:, :, None], null.embeds, self.encoded.embeds)
        pooled = self.encoded.pooled
        if pooled is not None:
            pooled = self.encode(self._spelled(left)).pooled
        return replace(
            self, encoded=self.encoded._replace(embeds=embeds, pooled=pooled), present=left
        )

    def without(self, mask: Bool[Tensor, "b k"]) -> "Text":
        """As if the words where `mask` is True had never been written: encoded anew."""
        left = self.present & ~mask
        return replace(self, encoded=self.encode(self._spelled(left)), present=left)

    def null(self) -> "Text":
        """Empty prompts."""
        none = torch.zeros_like(self.present)
        return replace(self, encoded=self.encode([""] * len(self.prompts)), present=none)

    def _spelled(self, left: Bool[Tensor, "b k"]) -> list[str]:
        rows = zip(self.words, left.tolist(), strict=True)
        return [
            " ".join(w for w, there in zip(some, row, strict=False) if there) for some, row in rows
        ]


class Segment(NamedTuple):
    """A stretch of the sequence of tokens that one tokenizer fills, from `start` on."""

    tokenizer: Any
    start: int
    length: int


class Tokens(NamedTuple):
    input_ids: list[str]


class EachWord:
    """The tokenizer of models whose tokens are words."""

    def __call__(self, prompt: str) -> Tokens:
        return Tokens(prompt.split())


def word_tokens(prompt: str, segments: tuple[Segment, ...], length: int) -> Bool[Tensor, "k l"]:
    """Which tokens each word of a prompt became, in every segment: from how many tokens the prompt
    has up to the word and with it."""
    words = prompt.split()
    found = torch.zeros(len(words), length, dtype=torch.bool)
    for tokenizer, start, room in segments:
        bare = tokenizer("").input_ids
        lead = int(
            bool(bare) and len(bare) > 1
        )  # a token that opens the text, beside the one that closes it
        ends = [
            len(tokenizer(" ".join(words[: k + 1])).input_ids) - len(bare)
            for k in range(len(words))
        ]
        for k, (first, last) in enumerate(zip([0, *ends], ends, strict=False)):
            low, high = (min(lead + n, room) for n in (first, last))
            found[k, start + low : start + high] = True
    return found


def texts(prompts: list[str], encode: Encode, segments: tuple[Segment, ...]) -> Text:
    """Prompts, encoded, with the tokens of their words."""
    encoded = encode(prompts)
    device, length = encoded.embeds.device, encoded.embeds.shape[1]
    most = max(len(prompt.split()) for prompt in prompts)
    tokens = torch.zeros(len(prompts), most, length, dtype=torch.bool)
    for i, prompt in enumerate(prompts):
        mine = word_tokens(prompt, segments, length)
        tokens[i, : len(mine)] = mine
    tokens = tokens.to(device)
    return Text(tuple(prompts), encoded, tokens, tokens.any(2), encode)
