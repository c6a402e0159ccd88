"""Pictures of a world as an imagefolder or as Parquet."""

import json
from collections.abc import Iterator
from io import BytesIO, StringIO
from pathlib import Path
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from recombine.config import UsageError, find_class, nearest, tags_in
from recombine.rng import seeded
from recombine.store import Row, write_atomic
from recombine.worlds.captions import Captions, spelled
from recombine.worlds.world import World

AT_ONCE = 512
"""Pictures of a world that are rendered together."""


def check_new(folder: Path) -> None:
    """UsageError where the folder is there already and holds something."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: is there already and not empty")


def find_world(name: str) -> World:
    """A world by its short name, with its usual settings."""
    known = sorted(tag.removeprefix("world/") for tag in tags_in("worlds") if "world/" in tag)
    if name not in known:
        raise UsageError(f"no world {name!r}; there are {', '.join(known)}{nearest(name, known)}")
    try:
        world = find_class(f"world/{name}", name)()
    except TypeError:
        raise UsageError(f"{name}: is no world with usual settings") from None
    if not isinstance(world, World):
        raise UsageError(f"{name}: its pictures have no factors to write beside them")
    return world


def drawn(
    world: World, count: int, seed: int
) -> Iterator[tuple[Float[Tensor, "b c h w"], list[Row]]]:
    """Pictures of a world, every composition as often as any other, with their factors."""
    table = torch.tensor(world.present)
    for first in range(0, count, AT_ONCE):
        rng, some = seeded(seed, "export", first), min(AT_ONCE, count - first)
        if isinstance(world, Captions):
            index = world.sample(some, rng)
        else:
            index = table[torch.randint(len(table), (some,), generator=rng)]
        yield world.render(index, rng).images, described(world, index)


def described(world: World, index: Int[Tensor, "b k"]) -> list[Row]:
    """The names of the values of each picture; the caption too, where the world has captions."""
    factors = world.space.factors
    rows = [{f.name: f.values[i] for f, i in zip(factors, r, strict=True)} for r in index.tolist()]
    if not isinstance(world, Captions):
        return rows
    texts = spelled(world.caption(index))
    return [row | {"text": text} for row, text in zip(rows, texts, strict=True)]


def export_world(
    name: str,
    folder: Path,
    count: int,
    seed: int = 0,
    kind: Literal["imagefolder", "parquet"] = "imagefolder",
) -> None:
    """Pictures of a world as an imagefolder with metadata.csv, or as one Parquet file."""
    if count < 1:
        raise UsageError(f"--n {count}: must be positive")
    world = find_world(name)
    check_new(folder)
    rows: list[Row] = []
    for images, some in drawn(world, count, seed):
        for image, row in zip(images, some, strict=True):
            rows.append(_kept(folder, len(rows), _png(image), row, kind))
    if kind == "parquet":
        _write_parquet(folder / "train.parquet", rows)
    else:
        write_atomic(folder / "metadata.csv", _csv(rows))


def _png(image: Float[Tensor, "c h w"]) -> bytes:
    from PIL import Image

    buffer = BytesIO()
    pixels = (255 * image.clamp(0, 1)).round().byte().permute(1, 2, 0).squeeze(-1).numpy()
    Image.fromarray(pixels).save(buffer, "png")
    return buffer.getvalue()


def _kept(folder: Path, number: int, png: bytes, row: Row, kind: str) -> Row:
    name = f"{number:07d}.png"
    if kind == "parquet":
        return {"image": {"bytes": png, "path": name}, **row}
    path = folder / "images" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(png)
    return {"file_name": f"images/{name}", **row}


def _csv(rows: list[Row]) -> str:
    import csv

    text = StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _write_parquet(path: Path, rows: list[Row]) -> None:
    """With what the datasets library needs to see pictures in the column of bytes."""
    import polars as pl

    kinds = {name: {"dtype": "string", "_type": "Value"} for name in rows[0] if name != "image"}
    about = {"info": {"features": {"image": {"_type": "Image"}, **kinds}}}
    path.parent.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(rows).write_parquet(path, metadata={"huggingface": json.dumps(about)})
