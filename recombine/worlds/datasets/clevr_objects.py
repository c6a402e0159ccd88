"""CLEVR as published: `scenes/CLEVR_*_scenes.json` beside `images/`. A scene of one object is one
picture; of a scene with several, every object is one, cropped around its place."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from PIL import Image

from recombine.config import UsageError
from recombine.files import read_json
from recombine.worlds.datasets.class_folders import picture_files
from recombine.worlds.datasets.dataset import NAME, Dataset
from recombine.worlds.picture_files import decode, read_inside

FACTORS = ("shape", "color", "material", "size")
FOCUS = 1.85
"""Side of a crop around an object, in picture widths times its depth: a large object with a margin,
in CLEVR's camera."""


def open_clevr(path: Path) -> Dataset:
    """Every object of a scenes file, with its four factors."""
    try:
        scenes = read_json(path)["scenes"]
        found = [
            (str(scene["image_filename"]), thing, len(scene["objects"]))
            for scene in scenes
            for thing in scene["objects"]
        ]
        cells = {f: [str(thing[f]) for _, thing, _ in found] for f in FACTORS}
        spots = [_spot(thing["pixel_coords"]) for _, thing, _ in found]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        said = repr(error)[:80]
        raise UsageError(f"{path}: is not a CLEVR scenes file ({said})") from None
    if not found:
        raise UsageError(f"{path}: its scenes hold no objects")
    under = path.parent.parent if path.parent.name == "scenes" else path.parent
    files = {Path(name).name: name for name in picture_files(under)}

    def read(rows: Sequence[int]) -> Iterator[Image.Image]:
        for row in rows:
            name, _, alone = found[row]
            if Path(name).name not in files:
                raise UsageError(f"{path}: names {name!r}, and there is no such file under {under}")
            where = f"row {row + 1}"
            data = read_inside(under, files[Path(name).name], where)
            picture = Image.fromarray(decode(data, f"{path}: {where}, {name!r}"))
            yield picture if alone == 1 else _crop(picture, spots[row])

    names = [f"{name}#{row}" for row, (name, _, _) in enumerate(found)]
    several = sum(alone > 1 for _, _, alone in found)
    note = f"{several} objects of scenes with several are cropped around their places"
    table = pl.DataFrame({NAME: names, **cells})
    return Dataset(str(path), "CLEVR", table, read, (note,) if several else ())


def _spot(coords: Any) -> tuple[float, float, float]:
    """Column, row and depth; ValueError where they are no such numbers."""
    x, y, depth = map(float, coords)
    if not all(math.isfinite(c) and abs(c) < 1e6 for c in (x, y, depth)):
        raise ValueError(f"pixel_coords {coords!r}")
    return x, y, depth


def _crop(picture: Image.Image, spot: tuple[float, float, float]) -> Image.Image:
    x, y, depth = spot
    half = FOCUS * picture.width / max(depth, 1.0) / 2
    return picture.crop(tuple(map(round, (x - half, y - half, x + half, y + half))))
