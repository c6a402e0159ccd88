"""Scenes: any number of solids on a grey floor, after CLEVR, rendered by a batched ray tracer.

Every picture comes with the locations of its objects, its depth, and for each object the pixels
that show it and those that would show it if it stood alone. With shadows and reflections off these
are all the pixels that an object can change; with them on, `touched` finds the others by rendering
the scene without it."""

from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from recombine.config import UsageError, config
from recombine.worlds.scenes.camera import Camera, Frame
from recombine.worlds.scenes.masks import Masks, masks
from recombine.worlds.scenes.place import Rules, place
from recombine.worlds.scenes.scene import (
    COLORS,
    MATERIALS,
    MOST,
    SHAPES,
    SIZES,
    Color,
    Labelled,
    Material,
    Scene,
    SceneSource,
    Shape,
    Size,
    table,
)
from recombine.worlds.scenes.shot import shots
from recombine.worlds.scenes.tracers import pictures

VIEWS = {"crop": (0.75, 0.75, 1.0), "squeeze": (1.0, 0.75, 1.0), "wide": (1.0, 0.75, 4 / 3)}
"""Width and height of what is shown, in widths of CLEVR's picture, and the shape of the pictures:
width over height."""
RANGES = {
    "size": (16, 1024),
    "samples": (1, 64),
    "camera_jitter": (0, 0.5),
    "lamp_jitter": (0, 1),
    "apart": (0, 2),
    "margin": (0, 2),
    "spacing": (0, 1),
}
KNOWN = {"shapes": SHAPES, "colors": tuple(COLORS), "materials": MATERIALS, "sizes": tuple(SIZES)}


class View(NamedTuple):
    """Pictures in [0, 1] and all that is known about them; see `Labelled` for centres and `Masks`
    for the rest."""

    images: Float[Tensor, "b 3 h w"]
    centres: Float[Tensor, "b k 2"]
    depth: Float[Tensor, "b h w"]
    visible: Float[Tensor, "b k h w"]
    whole: Float[Tensor, "b k h w"]


@config("world/scenes")
class Scenes(SceneSource):
    """`size` is the height of a picture. `view` says how CLEVR's 4 : 3 picture becomes it: cropped
    to a square (objects then keep to the part that is seen), squeezed into one, or left wide.
    `counts` are the numbers of objects that `sample` chooses from, all equally likely. `apart` is
    the least gap between two objects, `margin` the least difference between their positions to the
    left or right and to the front or back, `spacing` the least distance between their locations in
    the picture, as a share of it. `samples` rays are sent through each pixel. The jitters are the
    largest shifts of the camera and of the lamps along each axis."""

    size: int = 64
    view: Literal["crop", "squeeze", "wide"] = "crop"
    counts: tuple[int, ...] = (1, 2, 3)
    shapes: tuple[Shape, ...] = SHAPES
    colors: tuple[Color, ...] = tuple(COLORS)
    materials: tuple[Material, ...] = MATERIALS
    sizes: tuple[Size, ...] = tuple(SIZES)
    camera_jitter: float = 0.5
    lamp_jitter: float = 1.0
    apart: float = 0.25
    margin: float = 0.4
    spacing: float = 0.0
    samples: int = 4
    shadows: bool = True
    reflections: bool = True

    def __post_init__(self) -> None:
        if (
            not self.counts
            or len(set(self.counts)) < len(self.counts)
            or not set(self.counts) <= set(range(MOST + 1))
        ):
            raise ValueError(f"counts={list(self.counts)}: one or more of 0 to {MOST}, each once")
        for name, known in KNOWN.items():
            given = getattr(self, name)
            if not given or len(set(given)) < len(given) or not set(given) <= set(known):
                raise ValueError(
                    f"{name}={list(given)}: one or more of {', '.join(known)}, each once"
                )
        for name, (low, high) in RANGES.items():
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"{name}={getattr(self, name)}: must lie between {low} and {high}")

    @property
    def frame(self) -> Frame:
        wide, high, shape = VIEWS[self.view]
        return Frame(self.size, round(self.size * shape), wide, high, self.samples)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        return 3, self.frame.height, self.frame.width

    @property
    def slots(self) -> int:
        return max(1, *self.counts)

    @property
    def rules(self) -> Rules:
        allowed = (
            tuple(known.index(v) for v in getattr(self, name)) for name, known in KNOWN.items()
        )
        jitter, frame = (self.camera_jitter, self.lamp_jitter), self.frame
        return Rules(
            *allowed, self.apart, self.margin, self.spacing, *jitter, frame.wide, frame.high
        )

    def place(self, count: Int[Tensor, "b"], rng: torch.Generator) -> Scene:
        """Random scenes with `count` objects each, which may be more than `counts` names."""
        for number in set(count.tolist()) - set(range(MOST + 1)):
            raise UsageError(f"{number} objects: a scene holds 0 to {MOST}")
        return place(self.rules, count.to(rng.device), max([self.slots, *count.tolist()]), rng)

    def sample(self, count: int, rng: torch.Generator) -> Labelled:
        choice = torch.randint(len(self.counts), (count,), generator=rng, device=rng.device)
        scene = place(self.rules, table(self.counts, rng.device).long()[choice], self.slots, rng)
        kind = torch.stack((scene.shape, scene.color, scene.material, scene.size), -1)
        return Labelled(
            self.images(scene), self.centres(scene), scene.present, kind * scene.present[..., None]
        )

    def project(self, scene: Scene, points: Float[Tensor, "b n 3"]) -> Float[Tensor, "b n 3"]:
        """Where points of space appear in the pictures: x right, y down, as fractions of the
        picture, and their depth."""
        return Camera.aimed(scene.camera).project(points, self.frame)

    def centres(self, scene: Scene) -> Float[Tensor, "b k 2"]:
        """Where the middle of each object appears; zeros for empty slots."""
        return self.project(scene, scene.middle)[..., :2] * scene.present[..., None]

    def move(self, scene: Scene, centres: Float[Tensor, "b k 2"]) -> Scene:
        """The scenes with their objects moved along the floor to where their middles appear at
        `centres`, which a layout gives. Whether they then overlap is not checked."""
        outside = ~((centres >= 0) & (centres <= 1)).all(-1) & scene.present
        if outside.any():
            x, y = centres[outside][0].tolist()
            raise UsageError(
                f"centre ({x:.3g}, {y:.3g}) lies outside the picture; both must lie between 0 and 1"
            )
        return scene._replace(
            xy=Camera.aimed(scene.camera).level(centres, scene.radius, self.frame)
        )

    def images(self, scene: Scene) -> Float[Tensor, "b 3 h w"]:
        """The pictures alone. Nothing random, no host sync."""
        return pictures(scene, self.frame, self.shadows, self.reflections).unflatten(
            -1, self.image_shape[1:]
        )

    def render(self, scene: Scene) -> View:
        """The pictures and all that is known about them."""
        parts = zip(*(masks(*part) for part in shots(scene, self.frame)), strict=True)
        rest = Masks(*(torch.cat(part).unflatten(-1, self.image_shape[1:]) for part in parts))
        return View(self.images(scene), self.centres(scene), *rest)

    def touched(self, scene: Scene) -> Bool[Tensor, "b k h w"]:
        """The pixels that change when an object is taken away, shadows and reflections included:
        the sets M_j."""
        whole = self.images(scene)
        changed = [
            (self.images(scene.without(i)) != whole).any(1) for i in range(scene.xy.shape[1])
        ]
        return torch.stack(changed, 1)
