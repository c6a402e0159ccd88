"""Reading a CLEVR folder: `images/<split>/*.png` and `scenes/CLEVR_<split>_scenes.json`. The first
thing that is wrong ends it with one line that names it: only regular files inside the folder, within
the limits of `recombine.limits`. Scenes and objects are counted from 1."""

import hashlib
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, UInt8
from PIL import Image, ImageOps
from torch import Tensor

from recombine.config import UsageError
from recombine.files import read_json
from recombine.limits import allow, check_memory
from recombine.worlds.picture_files import decode, read_inside
from recombine.worlds.scenes.scene import COLORS, MATERIALS, MOST, SHAPES, SIZES

BATCH = 256
"""Pictures that are decoded at a time."""
ATTRIBUTES = {"shape": SHAPES, "color": tuple(COLORS), "material": MATERIALS, "size": tuple(SIZES)}


class Described(NamedTuple):
    """One scene of the file: its picture's name, and of each object the centre in pixels and the
    four indices."""

    file: str
    centres: list[tuple[float, float]]
    kind: list[list[int]]


class LoadedScenes(NamedTuple):
    """What is kept of a split."""

    images: UInt8[Tensor, "n 3 h w"]
    centres: Float[Tensor, "n k 2"]
    present: Bool[Tensor, "n k"]
    kind: Int[Tensor, "n k 4"]
    content: str

    def to(self, device: torch.device) -> "LoadedScenes":
        return LoadedScenes(*(part.to(device) for part in self[:4]), self.content)


def read(
    root: Path, split: str, size: int, view: str, counts: tuple[int, ...], limit: int | None
) -> LoadedScenes:
    if not root.is_dir():
        raise UsageError(f"{root}: there is no such folder")
    if Path(split).name != split:
        raise UsageError(f"split {split!r}: must be the name of a folder in {root / 'images'}")
    file, folder = root / "scenes" / f"CLEVR_{split}_scenes.json", root / "images" / split
    scenes = [s for s in described(file) if not counts or len(s.kind) in counts]
    kept = picked(folder, scenes, size, view, limit)
    if not kept:
        wanted = f" with {', '.join(map(str, counts))} objects" if counts else ""
        raise UsageError(f"{file}: has no picture{wanted} that shows all its objects")
    images, centres, kinds, digests = zip(*kept, strict=True)
    content = hashlib.sha256(b"".join(digests) + repr((centres, kinds)).encode()).hexdigest()[:16]
    pictures = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).contiguous()
    slots = max(1, *(len(kind) for kind in kinds))
    return LoadedScenes(pictures, *padded(centres, kinds, slots), content)


def padded(centres: tuple, kinds: tuple, slots: int) -> tuple[Tensor, Tensor, Tensor]:
    """Centres, presence and kinds with as many slots for every picture."""
    place, kind = (
        torch.zeros(len(kinds), slots, 2),
        torch.zeros(len(kinds), slots, 4, dtype=torch.long),
    )
    for i, (some, sorts) in enumerate(zip(centres, kinds, strict=True)):
        if sorts:
            place[i, : len(some)], kind[i, : len(sorts)] = torch.tensor(some), torch.tensor(sorts)
    count = torch.tensor([len(sorts) for sorts in kinds])
    return place, torch.arange(slots) < count[:, None], kind


def described(file: Path) -> list[Described]:
    """Every scene of the file, checked."""
    if not file.exists():
        raise UsageError(
            f"{file}: cannot be read; CLEVR has images/<split> and scenes/CLEVR_<split>_scenes.json"
        )
    data = read_json(file)
    scenes = data.get("scenes") if isinstance(data, dict) else None
    if not isinstance(scenes, list) or not scenes:
        raise UsageError(f"{file}: holds no list of 'scenes'")
    allow("rows", len(scenes), str(file))
    return [_scene(scene, f"{file}: scene {i}") for i, scene in enumerate(scenes, 1)]


def _scene(scene: Any, where: str) -> Described:
    name, objects = (
        scene.get(k) if isinstance(scene, dict) else None for k in ("image_filename", "objects")
    )
    if not isinstance(name, str) or not name or Path(name).name != name:
        raise UsageError(f"{where}: 'image_filename' is {name!r}, not the name of a file")
    if not isinstance(objects, list) or len(objects) > MOST:
        many = f"holds {len(objects)}" if isinstance(objects, list) else "is no list"
        raise UsageError(f"{where}: 'objects' {many}; at most {MOST} objects are allowed")
    found = [_object(thing, f"{where}, object {i}") for i, thing in enumerate(objects, 1)]
    return Described(name, [centre for centre, _ in found], [kind for _, kind in found])


def _object(thing: Any, where: str) -> tuple[tuple[float, float], list[int]]:
    thing = thing if isinstance(thing, dict) else {}
    for name, known in ATTRIBUTES.items():
        if thing.get(name) not in known:
            raise UsageError(
                f"{where}: {name!r} is {repr(thing.get(name))[:80]}, not one of {', '.join(known)}"
            )
    centre = thing.get("pixel_coords")
    if not isinstance(centre, list) or len(centre) < 2 or not all(map(_is_number, centre[:2])):
        said = repr(centre)[:80]
        raise UsageError(f"{where}: 'pixel_coords' is {said}, not a list of numbers")
    return (float(centre[0]), float(centre[1])), [
        known.index(thing[name]) for name, known in ATTRIBUTES.items()
    ]


def _is_number(value: Any) -> bool:
    """Finite, and small enough for a picture."""
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return plain and (isinstance(value, int) or math.isfinite(value)) and abs(value) < 1e9


class Picture(NamedTuple):
    """A picture at its final size, the digest of its file, and the part of the file's picture that
    it shows."""

    pixels: UInt8[np.ndarray, "h w 3"]
    digest: bytes
    left: float
    top: float
    width: float
    height: float


Kept = tuple[np.ndarray, list[tuple[float, float]], list[list[int]], bytes]


def picked(
    folder: Path, scenes: list[Described], size: int, view: str, limit: int | None
) -> list[Kept]:
    """The pictures that show the centres of all their objects, decoded by several threads."""
    kept: list[Kept] = []
    least = min(len(scenes), limit or len(scenes)) * size * size * 3
    check_memory(least, f"{folder}: reading its pictures")
    with ThreadPoolExecutor() as pool:
        for start in range(0, len(scenes), BATCH):
            part = scenes[start : start + BATCH]
            for scene, picture in zip(
                part, pool.map(lambda s: _picture(folder, s, size, view), part), strict=True
            ):
                kept += _shown(scene, picture)
                if kept and kept[-1][0].shape != kept[0][0].shape:
                    raise UsageError(
                        f"{folder}: {scene.file!r} has another shape than the first picture; use "
                        "crop or squeeze"
                    )
                if len(kept) == limit:
                    return kept
    return kept


def _shown(scene: Described, picture: Picture) -> list[Kept]:
    """The scene with its centres as fractions, or nothing where a centre is cut off."""
    centres = [
        ((x - picture.left) / picture.width, (y - picture.top) / picture.height)
        for x, y in scene.centres
    ]
    whole = all(0 <= x <= 1 and 0 <= y <= 1 for x, y in centres)
    return [(picture.pixels, centres, scene.kind, picture.digest)] if whole else []


def _picture(folder: Path, scene: Described, size: int, view: str) -> Picture:
    data = read_inside(folder, scene.file, "the scenes file")
    image = Image.fromarray(decode(data, f"{folder}: {scene.file!r}"))
    (w, h), digest = image.size, hashlib.sha256(data).digest()
    if view == "crop":
        side = float(min(w, h))
        pixels = np.asarray(ImageOps.fit(image, (size, size)))
        return Picture(pixels, digest, (w - side) / 2, (h - side) / 2, side, side)
    shape = (max(1, round(size * w / h)) if view == "wide" else size, size)
    allow("pixels", shape[0] * shape[1], f"{folder}: {scene.file!r}, at {size} rows,")
    return Picture(np.asarray(image.resize(shape)), digest, 0.0, 0.0, float(w), float(h))
