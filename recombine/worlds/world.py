"""The World waist: whatever renders factors into pictures and reads them back."""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from recombine.config import UsageError, find_class
from recombine.display import html_gallery
from recombine.rng import seeded
from recombine.worlds.factors import Composition, Condition, FactorSpace, Split, at_most_one_new

INVALID = -1
"""What `read` answers, for every factor of a picture that shows no composition."""


class Rendered(NamedTuple):
    """Pictures in [0, 1], and the real numbers that describe each one exactly (the factors' `dim`s
    side by side)."""

    images: Float[Tensor, "b c h w"]
    values: Float[Tensor, "b v"]


class World(ABC):
    """A frozen dataclass: it is its own config. Images are float32 in [0, 1]; everything happens on
    the generator's device."""

    readable: ClassVar[bool] = True
    """Whether `read` is exact. Where it is not, trained probes read the pictures."""
    interpolates: ClassVar[bool] = False
    """Whether `interpolate` is there: the world can render pictures between two compositions."""

    @classmethod
    def from_text(cls, text: str) -> "World":
        """A world given as plain text, as in `--set world=path/to/folder`: one's own pictures are a
        world."""
        folder = find_class("world/folder", text)
        if not issubclass(folder, cls):
            raise UsageError(f"{text!r}: a {cls.__name__} cannot be given as text")
        return folder.at(text)

    @property
    @abstractmethod
    def space(self) -> FactorSpace: ...

    @property
    def present(self) -> tuple[Composition, ...]:
        """The compositions of which there are pictures: all, where they are rendered."""
        return self.space.compositions

    @property
    def usual(self) -> Split:
        """What a model is taken to have seen where nobody says: the papers' split; of a world that
        lacks pictures of some compositions, all that it has."""
        present, space = self.present, self.space
        return at_most_one_new(space) if len(present) == space.count else Split(present)

    @property
    def overlapping(self) -> tuple[str, ...]:
        """The factors whose classes overlap: a picture between two of their values is a good
        one."""
        return ()

    @property
    @abstractmethod
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, height, width."""

    @abstractmethod
    def render(self, factors: Int[Tensor, "b k"], rng: torch.Generator) -> Rendered:
        """Render one picture per row, nuisances from `rng`."""

    def interpolate(
        self,
        here: Int[Tensor, "b k"],
        there: Int[Tensor, "b k"],
        share: Float[Tensor, "b"],
        rng: torch.Generator,
    ) -> Float[Tensor, "b c h w"]:
        """Pictures that lie `share` of the way from one composition to another: each shows one
        thing between the two, not one through the other. At 0 and 1 they are what `render`
        gives."""
        raise UsageError(f"{type(self).__name__} cannot render pictures between two compositions")

    @abstractmethod
    def read(self, images: Float[Tensor, "b c h w"]) -> Int[Tensor, "b k"]:
        """The factors that each picture shows, or INVALID in every factor. No learned model."""

    @abstractmethod
    def canonical(self, factors: Int[Tensor, "b k"]) -> Float[Tensor, "b v"]:
        """The exact values of a composition's centre: what a model is prompted for at test time."""

    def nearest(
        self, factors: Int[Tensor, "b k"], values: Float[Tensor, "b v"]
    ) -> Int[Tensor, "b k"]:
        """The composition to whose centre each picture is nearest, factor by factor; a factor
        without values stays as it is labelled."""
        found, first = factors.clone(), 0
        for i, (factor, dim) in enumerate(zip(self.space.factors, self.space.dims, strict=True)):
            own = slice(first, first := first + dim)
            if not dim:
                continue
            others = factors.repeat(len(factor.values), 1)
            others[:, i] = torch.arange(
                len(factor.values), device=factors.device
            ).repeat_interleave(len(factors))
            away = self.canonical(others)[:, own].view(-1, len(factors), dim) - values[:, own]
            found[:, i] = away.square().sum(-1).argmin(0)
        return found

    def condition(
        self, composition: Composition, count: int, device: torch.device | str = "cpu"
    ) -> Condition:
        """`count` times the full condition that prompts for `composition`."""
        index = torch.tensor([composition] * count, device=device)
        return self.describe(index, self.canonical(index))

    def describe(self, index: Int[Tensor, "b k"], value: Float[Tensor, "b v"]) -> Condition:
        """The full condition of pictures with these factors and values."""
        return Condition(index, value, torch.ones_like(index, dtype=torch.bool))

    def _repr_html_(self) -> str:
        """A picture of each composition, framed by its level in the usual split; at most 32."""
        present, split = self.present[:32], self.usual
        images = self.render(torch.tensor(present), seeded("repr")).images
        pixels = (images * 255).round().byte().permute(0, 2, 3, 1).cpu().numpy()
        shown = zip(pixels, present, strict=True)
        tiles = [(p, self.space.describe(c), split.level(c)) for p, c in shown]
        return html_gallery(tiles, repr(self))
