"""What paper B measures of a text-conditioned model, on any of them: how local the denoiser is in
its pixels, what each word does at two places, and how separate concepts are in pixels, latents and
hidden states."""

from collections.abc import Iterator
from dataclasses import field
from itertools import combinations
from typing import Any, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from recombine.bridge.features import hidden_states
from recombine.bridge.text import Text
from recombine.config import config
from recombine.metrics.locality import RADIUS, distance, pixel_influence, random_pixels
from recombine.objectives.process import Schedule, noised
from recombine.objectives.solvers import Euler
from recombine.rng import seeded
from recombine.store import Row

NEAR = 1 / 8
"""How far around a place a word's influence is counted, in sides of the picture."""
CELLS = 256
"""Hidden states of more tokens are averaged over neighbours down to so many."""


@runtime_checkable
class TextDenoiser(Protocol):
    """A denoiser of latents, conditioned on prompts: a bridge's adapter, or a model of ours."""

    net: nn.Module
    schedule: Schedule
    device: torch.device

    def __call__(self, x: Tensor, t: Tensor, condition: Any) -> Tensor: ...
    def text(self, prompts: list[str]) -> Text: ...
    def shape(self, side: int = 0) -> tuple[int, int, int]: ...
    def decode(self, latents: Tensor) -> Tensor: ...


@config("concepts")
class Concepts:
    """A category, and a prompt for each of its concepts."""

    category: str
    prompts: tuple[str, ...]


PAPER_PROMPT = (
    "a beautiful photograph with a horse in the middle, a dog on the left, and a cat on the right"
)
PAPER_CONCEPTS = (
    Concepts("animals", ("a dog", "a cat", "a horse")),
    Concepts("art styles", ("an oil painting", "a watercolor", "a pencil drawing")),
    Concepts("foods", ("a pizza", "a hamburger", "a cake")),
    Concepts("accessories", ("a hat", "sunglasses", "a scarf")),
)
"""The paper names three categories and no concept of the fourth."""


@config("features")
class FeatureMeasure:
    """What is measured. `prompt`: for pixels and words, at two `places` (x, y). `pictures`: samples
    of the model, drawn in `steps`, that are noised again at `times`; `pixels` of each are
    differentiated. Concepts are compared over `draws` noises, hidden states at time `high`. `side`
    of the picture; 0 = the model's own."""

    prompt: str = PAPER_PROMPT
    places: tuple[tuple[float, float], ...] = ((0.25, 0.5), (0.75, 0.5))
    concepts: tuple[Concepts, ...] = PAPER_CONCEPTS
    background: str = ""
    times: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    pictures: int = 8
    pixels: int = 4
    draws: int = 10
    steps: int = 25
    high: float = 0.95
    side: int = 0
    seed: int = field(default=0)

    def __post_init__(self) -> None:
        if len(self.places) != 2:
            raise ValueError(f"places: two are compared, not {len(self.places)}")
        if len(self.concepts) < 2 or min(len(c.prompts) for c in self.concepts) < 2:
            raise ValueError("concepts: two categories or more, of two prompts or more each")
        if not self.prompt.split() or not self.times:
            raise ValueError("prompt and times must not be empty")
        for name in ("pictures", "pixels", "draws", "steps"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}")

    def rows(self, model: TextDenoiser) -> Iterator[Row]:
        """All rows, from a model in evaluation mode."""
        x = self.samples(model, self.prompt, self.pictures)
        yield from self.pixel_rows(model, x)
        yield from self.word_rows(model, x)
        yield from self.concept_rows(model)

    def noise(self, model: TextDenoiser, count: int) -> Float[Tensor, "b c h w"]:
        rng = seeded(self.seed, "features", "noise", device=model.device)
        shape = (count, *model.shape(self.side))
        return torch.randn(shape, generator=rng, device=model.device)

    @torch.no_grad()
    def samples(self, model: TextDenoiser, prompt: str, count: int) -> Float[Tensor, "b c h w"]:
        """Latents drawn for a prompt, from the same noise whatever it is."""
        text, noise = model.text([prompt] * count), self.noise(model, count)
        return Euler(self.steps).sample(model, model.schedule, noise, text)

    def noisy(self, model: TextDenoiser, x: Tensor) -> Iterator[tuple[float, Tensor, Tensor, Row]]:
        """The pictures under the noise of every level: time, times, noisy pictures, a row's
        beginning."""
        for time in self.times:
            rng = seeded(self.seed, "features", str(time), device=model.device)
            t = x.new_full((len(x),), time)
            noise = torch.randn(x.shape, generator=rng, device=x.device)
            sigma = model.schedule.sigma(t[0]).item()
            yield time, t, noised(model.schedule, x, t, noise), {"t": time, "sigma": sigma}

    def pixel_rows(self, model: TextDenoiser, x: Tensor) -> Iterator[Row]:
        """The share of what other pixels do to a pixel that comes from nearby."""
        text, rng = model.text([self.prompt] * len(x)), seeded(self.seed, "pixels", device=x.device)
        even = (distance(x.new_full((1, 1, 2), 0.5), *x.shape[2:]) <= RADIUS).float().mean().item()
        for _, t, noisy, about in self.noisy(model, x):
            seen = pixel_influence(model, noisy, t, text, random_pixels(x, self.pixels, rng))
            shares = {"share": seen.share(squared=False), "share_squared": seen.share()}
            yield {"kind": "pixels", **about, **shares, "even": even}

    @torch.no_grad()
    def word_rows(self, model: TextDenoiser, x: Tensor) -> Iterator[Row]:
        """How much the output changes near each place when a word is left out of the prompt (how:
        word), or its embeddings alone are replaced (how: embedding), as root mean squares."""
        text = model.text([self.prompt] * len(x))
        at = torch.tensor([self.places], device=x.device, dtype=x.dtype)
        inside = (distance(at, *x.shape[2:]) <= NEAR)[0, :, None].to(x.dtype)
        for _, t, noisy, about in self.noisy(model, x):
            base = model(noisy, t, text)
            for k, word in enumerate(text.words[0]):
                one = torch.zeros_like(text.present)
                one[:, k] = True
                for how, less in (("word", text.without(one)), ("embedding", text.keep(~one))):
                    change = (model(noisy, t, less) - base).square()
                    near = [(change * mask).sum() / mask.sum() / change.shape[1] for mask in inside]
                    first, second = ((n / len(x)).sqrt().item() for n in near)
                    named = {"word": word, "position": k, "how": how}
                    yield {"kind": "word", **about, **named, "first": first, "second": second}

    @torch.no_grad()
    def concept_rows(self, model: TextDenoiser) -> Iterator[Row]:
        """The mean cosine of concepts of one category, and of different ones, in every space: what
        each concept adds to the background's mean."""
        background = self.means(model, self.background)
        shifts, owner = [], []
        for concepts in self.concepts:
            for prompt in concepts.prompts:
                means = self.means(model, prompt)
                shifts.append({name: z - background[name] for name, z in means.items()})
                owner.append(concepts.category)
        blocks = [name for name in background if name not in ("pixels", "latents")]
        for name in background:
            cosines = {True: [], False: []}
            for i, j in combinations(range(len(owner)), 2):
                cosine = F.cosine_similarity(shifts[i][name], shifts[j][name], dim=0).item()
                cosines[owner[i] == owner[j]].append(cosine)
            within, between = (sum(c) / len(c) for c in (cosines[True], cosines[False]))
            depth = {"depth": blocks.index(name), "blocks": len(blocks)} if name in blocks else {}
            both = {"within": within, "between": between, "gap": within - between}
            yield {"kind": "concepts", "space_of": name, **depth, **both}

    def means(self, model: TextDenoiser, prompt: str) -> dict[str, Float[Tensor, "n"]]:
        """Of a prompt, over the draws: pixels, latents, and every block's hidden states at the high
        noise level, flat."""
        x = self.samples(model, prompt, self.draws)
        text, t = model.text([prompt] * self.draws), x.new_full((self.draws,), self.high)
        start = noised(model.schedule, torch.zeros_like(x), t, self.noise(model, self.draws))
        with hidden_states(model.net) as held:
            model(start, t, text)
        spaces = {"pixels": model.decode(x), "latents": x, **held}
        return {name: _flat(z.float().mean(0)) for name, z in spaces.items()}


def _flat(z: Tensor) -> Float[Tensor, "n"]:
    """One vector; of many tokens, their means over neighbours."""
    if z.ndim == 2 and len(z) > CELLS:
        z = F.adaptive_avg_pool1d(z.mT[None], CELLS)[0]
    return z.flatten().cpu()
