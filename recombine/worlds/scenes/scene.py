"""What a scene is: objects on the floor, a camera and three lamps, as tensors for a whole batch of
pictures.

Shapes, colours, materials, sizes and distances are CLEVR's. A scene has a fixed number of slots
`k`; `present` says which of them hold an object."""

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Shape = Literal["cube", "sphere", "cylinder"]
Material = Literal["rubber", "metal"]
Color = Literal["gray", "red", "blue", "green", "brown", "purple", "cyan", "yellow"]
Size = Literal["large", "small"]
SHAPES: tuple[Shape, ...] = get_args(Shape)
MATERIALS: tuple[Material, ...] = get_args(Material)
COLORS = {
    "gray": (87, 87, 87),
    "red": (173, 35, 35),
    "blue": (42, 75, 215),
    "green": (29, 105, 20),
    "brown": (129, 74, 25),
    "purple": (129, 38, 192),
    "cyan": (41, 208, 208),
    "yellow": (255, 238, 51),
}
SIZES = {"large": 0.7, "small": 0.35}
"""Half the height of an object, and its radius, in units of the floor."""
MOST = 12
"""The largest number of objects in a picture."""


class Scene(NamedTuple):
    """Indices count in SHAPES, COLORS, MATERIALS and SIZES. `camera` and `lamps` are displacements
    from their usual positions."""

    xy: Float[Tensor, "b k 2"]
    angle: Float[Tensor, "b k"]
    shape: Int[Tensor, "b k"]
    color: Int[Tensor, "b k"]
    material: Int[Tensor, "b k"]
    size: Int[Tensor, "b k"]
    present: Bool[Tensor, "b k"]
    camera: Float[Tensor, "b 3"]
    lamps: Float[Tensor, "b 3 3"]

    @property
    def radius(self) -> Float[Tensor, "b k"]:
        return table(tuple(SIZES.values()), self.size.device)[self.size]

    @property
    def middle(self) -> Float[Tensor, "b k 3"]:
        """The objects' centres in space."""
        return torch.cat((self.xy, self.radius[..., None]), -1)

    def take(self, rows: slice | Tensor) -> "Scene":
        """Some pictures of the batch."""
        return Scene(*(part[rows] for part in self))

    def split(self, step: int) -> list["Scene"]:
        """The batch in parts of at most `step` pictures."""
        return [self.take(slice(i, i + step)) for i in range(0, max(1, len(self.xy)), step)]

    def without(self, slot: int) -> "Scene":
        """The same scenes with one slot emptied."""
        present = self.present.clone()
        present[:, slot] = False
        return self._replace(present=present)


class Labelled(NamedTuple):
    """Pictures in [0, 1] with the location and the kind of every object. A centre is the projection
    of the object's middle, in fractions of the picture: x right, y down, (0, 0) the upper left
    corner of the upper left pixel, so pixel i spans [i / w, (i + 1) / w]. `kind` holds the indices
    of shape, colour, material and size. Empty slots hold zeros."""

    images: Float[Tensor, "b 3 h w"]
    centres: Float[Tensor, "b k 2"]
    present: Bool[Tensor, "b k"]
    kind: Int[Tensor, "b k 4"]


class SceneSource(ABC):
    """Whatever gives labelled pictures of scenes: the renderer, or CLEVR's own pictures. A scene
    has no fixed list of factors, so this is a waist of its own beside `World`; `sample` is its
    `render`, and reading a picture back takes a trained detector."""

    @property
    @abstractmethod
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, height, width."""

    @property
    @abstractmethod
    def slots(self) -> int:
        """How many objects a picture has room for."""

    @abstractmethod
    def sample(self, count: int, rng: torch.Generator) -> Labelled:
        """`count` random pictures, on the generator's device."""


@lru_cache(maxsize=64)
def table(rows: tuple, device: torch.device) -> Tensor:
    """Constants on a device, copied there once."""
    return torch.tensor(rows, dtype=torch.float32, device=device)
