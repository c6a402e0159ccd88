"""Pictures that captions describe: shapes in two places, a texture and a light behind them, all of
them optional, so that a word can say that something is there at all.

Every place is an upright half of the picture. A caption names what is there, in a fixed order: "a
red circle on the left and a blue square on the right striped warm". Words can be left out; what a
caption does not mention may be there or not."""

from dataclasses import field
from functools import lru_cache
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from recombine.config import config
from recombine.worlds.factors import Factor, FactorSpace
from recombine.worlds.outlines import OUTLINES, cover, depth
from recombine.worlds.shapes2d import COLORS
from recombine.worlds.world import INVALID, Rendered, World

SHAPES = ("none", "circle", "triangle", "square")
TEXTURES = ("plain", "striped", "dotted", "checked")
LIGHTS = ("white", "warm", "cool", "dim")
LIGHT = ((1.0, 1.0, 1.0), (1.0, 0.88, 0.7), (0.74, 0.88, 1.0), (0.7, 0.7, 0.7))
Place = Literal["left", "right"]
LENGTH = 16
"""Words of a caption, at most."""
PERIOD = 1 / 8
"""Of textures, in heights of the picture."""
VOCABULARY = (
    "", "?", "a", "and", "on", "the", "left", "right", "thing",
    *SHAPES[1:], *COLORS, *TEXTURES[1:], *LIGHTS[1:],
)  # fmt: skip
"""The first word is none at all, the second any that is not known."""
WORD = {word: i for i, word in enumerate(VOCABULARY)}


class Caption(NamedTuple):
    """What a model is given about each picture: the numbers of words, filled up with zeros."""

    tokens: Int[Tensor, "b l"]


@config("world/captions")
class Captions(World):
    """`size`: the height; a place is half as wide. In each place there is a shape in `share` of
    the pictures where nothing is said, and as often a texture and a light."""

    readable = False
    size: int = 48
    places: tuple[Place, ...] = ("left", "right")
    radius: tuple[float, float] = (0.12, 0.18)
    share: float = 0.6
    background: float = field(default=0.95)

    def __post_init__(self) -> None:
        if self.size < 16 or self.size % 8:
            raise ValueError(f"size={self.size}: a multiple of 8, at least 16")
        if not self.places or len(set(self.places)) < len(self.places):
            raise ValueError(f"places={list(self.places)}: one or more, each once")
        if not 0 < self.radius[0] <= self.radius[1] <= 0.2:
            raise ValueError(f"radius={list(self.radius)}: from more than 0 to at most 0.2")
        for name in ("share", "background"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name}={getattr(self, name)}: must lie between 0 and 1")

    @property
    def space(self) -> FactorSpace:
        each = [(Factor(p, SHAPES), Factor(f"{p}_color", tuple(COLORS))) for p in self.places]
        objects = tuple(factor for pair in each for factor in pair)
        return FactorSpace((*objects, Factor("texture", TEXTURES), Factor("light", LIGHTS)))

    @property
    def image_shape(self) -> tuple[int, int, int]:
        return 3, self.size, self.size // 2 * len(self.places)

    def canonical(self, factors: Int[Tensor, "b k"]) -> Float[Tensor, "b 0"]:
        return torch.zeros(len(factors), 0, device=factors.device)

    def read(self, images: Float[Tensor, "b c h w"]) -> Int[Tensor, "b k"]:
        """Trained probes read these pictures; see `halves` in `runs`."""
        return torch.full((len(images), len(self.space.factors)), INVALID, device=images.device)

    def sample(self, count: int, rng: torch.Generator) -> Int[Tensor, "b k"]:
        """Compositions as they come: what is optional is there in `share` of them."""
        columns = []
        for factor in self.space.factors:
            values = len(factor.values)
            first = 1 if factor.values[0] in ("none", "plain", "white") else 0
            pick = torch.randint(first, values, (count,), generator=rng, device=rng.device)
            there = torch.rand(count, generator=rng, device=rng.device) < self.share
            columns.append(torch.where(there, pick, 0) if first else pick)
        return torch.stack(columns, 1)

    def render(self, factors: Int[Tensor, "b k"], rng: torch.Generator) -> Rendered:
        factors = factors.to(rng.device)
        chance = torch.rand(
            len(factors), 2 + 3 * len(self.places), generator=rng, device=rng.device
        )
        _, height, width = self.image_shape
        rows, columns = (torch.arange(n, device=rng.device) + 0.5 for n in (height, width))
        lit = torch.tensor(LIGHT, device=rng.device)[factors[:, -1]]
        backdrop = self.background - 0.25 * self._texture(
            factors[:, -2], chance[:, :2], rows, columns
        )
        images = backdrop[:, None] * lit[:, :, None, None]
        for i in range(len(self.places)):
            own = chance[:, 2 + 3 * i : 5 + 3 * i]
            images = self._object(images, factors[:, 2 * i : 2 * i + 2], own, i, lit)
        return Rendered(images, self.canonical(factors))

    def _texture(self, kind: Tensor, phase: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """How dark each pixel is, 0 to 1: stripes, dots, squares, moved by the phase."""
        speed = 2 * torch.pi / (PERIOD * self.size)
        down = (speed * rows[None] + 2 * torch.pi * phase[:, :1])[:, :, None]
        along = (speed * columns[None] + 2 * torch.pi * phase[:, 1:])[:, None, :]
        shape = (len(kind), len(rows), len(columns))
        striped = (2 * (along + down).sin() + 0.5).clamp(0, 1).expand(shape)
        dotted = (3 * (down.sin() * along.sin()).abs() - 1).clamp(0, 1)
        checked = (2 * (down / 2).sin() * (along / 2).sin() + 0.5).clamp(0, 1)
        made = torch.stack([torch.zeros(shape, device=kind.device), striped, dotted, checked])
        return made[kind, torch.arange(len(kind), device=kind.device)]

    def _object(
        self, images: Tensor, what: Tensor, chance: Tensor, place: int, lit: Tensor
    ) -> Tensor:
        """The picture with a shape painted over it, where there is one."""
        low, high = self.radius
        radius = self.size * (low + (high - low) * chance[:, :1])
        reach = 0.25 * self.size
        across = (
            place * self.size / 2 + reach + (reach - 1.35 * radius) * (2 * chance[:, 1:2] - 1) * 0.5
        )
        down = self.size * (0.5 + 0.25 * (2 * chance[:, 2:] - 1))
        _, height, width = self.image_shape
        x = (torch.arange(width, device=images.device) + 0.5 - across)[:, None, :]
        y = (torch.arange(height, device=images.device) + 0.5 - down)[:, :, None]
        covered = torch.stack([cover(depth(o, x, y, radius[:, :, None])) for o in OUTLINES])
        mine = covered[(what[:, 0] - 1).clamp(min=0), torch.arange(len(what), device=what.device)]
        mine = (mine * (what[:, 0] > 0)[:, None, None])[:, None]
        paint = torch.tensor(list(COLORS.values()), device=images.device)[what[:, 1]] * lit
        return images + mine * (paint[:, :, None, None] - images)

    def caption(
        self, factors: Int[Tensor, "b k"], said: Bool[Tensor, "b k"] | None = None
    ) -> Caption:
        """Captions that name what is there. `said`: the factors that are mentioned; a shape that
        is not is "a thing" where its colour is, and nothing where neither is."""
        said = torch.ones_like(factors, dtype=torch.bool) if said is None else said
        slots, any_before = [], torch.zeros(len(factors), dtype=torch.bool, device=factors.device)
        for i, place in enumerate(self.places):
            shape, color = factors[:, 2 * i], factors[:, 2 * i + 1]
            named, colored = said[:, 2 * i], said[:, 2 * i + 1]
            there = (shape > 0) & (named | colored)
            nouns = torch.tensor(
                [WORD["thing"], *(WORD[s] for s in SHAPES[1:])], device=shape.device
            )
            inks = torch.tensor([WORD[c] for c in COLORS], device=shape.device)
            words = [(WORD["and"], there & any_before), (WORD["a"], there)]
            words += [(inks[color], there & colored), (nouns[shape * named], there)]
            words += [(WORD[w], there) for w in ("on", "the", place)]
            slots += [word * shown for word, shown in words]
            any_before = any_before | there
        for column, names in ((-2, TEXTURES), (-1, LIGHTS)):
            table = torch.tensor([0, *(WORD[w] for w in names[1:])], device=factors.device)
            slots.append(table[factors[:, column]] * said[:, column])
        return Caption(_to_the_left(torch.stack(slots, 1), LENGTH))


def _to_the_left(words: Int[Tensor, "b n"], length: int) -> Int[Tensor, "b l"]:
    """Without the gaps, filled up or cut to a length."""
    order = (words == 0).int().argsort(dim=1, stable=True)
    words = words.gather(1, order)[:, :length]
    return torch.nn.functional.pad(words, (0, length - words.shape[1]))


@lru_cache(maxsize=4096)
def numbered(prompt: str) -> tuple[int, ...]:
    """The words of a prompt as numbers; one that is not known is a "?"."""
    return tuple(WORD.get(word.strip(",."), 1) for word in prompt.lower().split())


def tokens_of(prompts: list[str], device: torch.device | str = "cpu") -> Int[Tensor, "b l"]:
    """Prompts as a model is given them."""
    rows = [(*numbered(prompt)[:LENGTH], *[0] * LENGTH)[:LENGTH] for prompt in prompts]
    return torch.tensor(rows, dtype=torch.long, device=device)


def spelled(caption: Caption) -> list[str]:
    """Captions as text."""
    return [" ".join(VOCABULARY[i] for i in row if i) for row in caption.tokens.tolist()]
