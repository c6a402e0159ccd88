"""CLEVR as published: `scenes/CLEVR_*_scenes.json` beside `images/`. A scene of one object is one
picture; of a scene with several, every object is one, cropped around its place."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from PIL import Image

from recombine.config import UsageError
from recombine.worlds.datasets.class_folders import picture_files
from recombine.worlds.datasets.dataset import NAME, Dataset

FACTORS = ("shape", "color", "material", "size")
FOCUS = 1.85
"""Side of a crop around an object, in picture widths times its depth: a large object with a margin,
in CLEVR's camera."""


def open_clevr(path: Path) -> Dataset:
    """Every object of a scenes file, with its four factors."""
    try:
        scenes = json.loads(path.read_bytes())["scenes"]
        found = [
            (scene["image_filename"], thing, len(scene["objects"]))
            for scene in scenes
            for thing in scene["objects"]
        ]
        cells = {f: [str(thing[f]) for _, thing, _ in found] for f in FACTORS}
        spots = [tuple(map(float, thing["pixel_coords"])) for _, thing, _ in found]
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise UsageError(f"{path}: is not a CLEVR scenes file ({error!r})") from None
    if not found:
        raise UsageError(f"{path}: its scenes hold no objects")
    under = path.parent.parent if path.parent.name == "scenes" else path.parent
    files = {Path(name).name: under / name for name in picture_files(under)}

    def read(rows: Sequence[int]) -> Iterator[Image.Image]:
        for row in rows:
            name, _, alone = found[row]
            if Path(name).name not in files:
                raise UsageError(f"{path}: names {name!r}, and there is no such file under {under}")
            with Image.open(files[Path(name).name]) as picture:
                yield picture.convert("RGB") if alone == 1 else _crop(picture, spots[row])

    names = [f"{name}#{row}" for row, (name, _, _) in enumerate(found)]
    several = sum(alone > 1 for _, _, alone in found)
    note = f"{several} objects of scenes with several are cropped around their places"
    table = pl.DataFrame({NAME: names, **cells})
    return Dataset(str(path), "CLEVR", table, read, (note,) if several else ())


def _crop(picture: Any, spot: tuple[float, ...]) -> Image.Image:
    x, y, depth = spot
    half = FOCUS * picture.width / max(depth, 1.0) / 2
    return picture.convert("RGB").crop(tuple(map(round, (x - half, y - half, x + half, y + half))))
