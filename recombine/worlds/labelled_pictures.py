"""The pictures of a folder, in memory or mapped from disk, with the factors of each; a file that
several rows of the table name is read once."""

import hashlib
import math
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from PIL import Image, ImageOps
from torch import Tensor

from recombine.config import UsageError
from recombine.limits import amount, memory, regular
from recombine.worlds.factor_table import (
    FactorTable,
    composition_index,
    index_in_composition,
    read_table,
    some_of,
)
from recombine.worlds.factors import FactorSpace
from recombine.worlds.picture_files import decode, read_inside

HELD = 8
"""Pictures are held in memory where so many times their bytes are free."""


class LabelledPictures(NamedTuple):
    """What a folder holds, ordered by composition: of each row its factors and values, and which
    of the pictures it names."""

    space: FactorSpace
    pictures: UInt8[Tensor, "m 3 h w"]
    picture: Int[Tensor, "n"]
    factors: Int[Tensor, "n k"]
    values: Float[Tensor, "n v"]
    content: str

    on_disk: bool = False
    """Whether the pictures are a file that is mapped into memory, since they do not fit."""

    def to(self, device: torch.device) -> "LabelledPictures":
        """All of it on a device; pictures that are on disk stay there."""
        moved = ("picture", "factors", "values", *(() if self.on_disk else ("pictures",)))
        return self._replace(**{k: getattr(self, k).to(device) for k in moved})

    def images(self, rows: Tensor) -> Float[Tensor, "b 3 h w"]:
        """The pictures of some rows, in [0, 1]."""
        which = self.picture[rows]
        found = self.pictures[which.to(self.pictures.device)].contiguous()
        return found.to(which.device).float() / 255


def load(
    root: Path, name: str, wanted: tuple[str, ...], size: int | None, most: int = 0
) -> LabelledPictures:
    """Read everything, or at most so many pictures of each composition; the first thing that is
    wrong ends it with a line that names it."""
    table = some_of(read_table(root, name, wanted), most)
    head = _table_digest(root / name, table)
    digests, pictures = _pictures(root, table, size)
    on_disk = isinstance(pictures, np.memmap)
    order = composition_index(torch.from_numpy(table.factors), table.space).argsort(stable=True)
    parts = (table.file, table.factors, table.values)
    picture, factors, values = (torch.from_numpy(part)[order] for part in parts)
    content = hashlib.sha256(head)
    for file in table.file.tolist():
        content.update(digests[file])
    shown = torch.from_numpy(pictures).permute(0, 3, 1, 2)
    shown = shown if on_disk else shown.contiguous()
    return LabelledPictures(
        table.space, shown, picture, factors, values, content.hexdigest()[:16], on_disk
    )


def _table_digest(path: Path, table: FactorTable) -> bytes:
    """Of the table's file; of the labels where there is none."""
    if table.read is None:
        with regular(path) as file:
            return hashlib.file_digest(file, "sha256").digest()
    words = repr([(f.name, f.values) for f in table.space.factors]).encode()
    return hashlib.sha256(words + table.factors.astype("<i8").tobytes()).digest()


def part(whole: LabelledPictures, name: str) -> LabelledPictures:
    """The train part or the held-out part: of each composition every fifth row is held out, one
    where there are three or four."""
    if name == "all":
        return whole
    number, count = index_in_composition(whole.factors)
    held = (number % 5 == 4) | ((count < 5) & (count > 2) & (number == 2))
    mask = held if name == "held-out" else ~held
    return whole._replace(
        picture=whole.picture[mask], factors=whole.factors[mask], values=whole.values[mask]
    )


def _pictures(
    root: Path, table: FactorTable, size: int | None
) -> tuple[list[bytes], UInt8[np.ndarray, "m h w 3"]]:
    """The digest of every file and its picture as RGB."""
    digests, kept = [], None
    for i, (name, image, digest) in enumerate(read_pictures(root, table, size)):
        if kept is None:
            first, kept = name, room_for((len(table.files), *image.shape), str(root))
        if image.shape != kept.shape[1:]:
            here, there = (f"{s[1]}x{s[0]}" for s in (image.shape, kept.shape[1:]))
            raise UsageError(
                f"{root}: {name!r} is {here} but {first!r} is {there} pixels; set size to make "
                f"them equal (--set world.size={min(kept.shape[1:3])})"
            )
        kept[i] = image
        digests.append(digest)
    return digests, kept


def room_for(shape: tuple[int, ...], where: str) -> UInt8[np.ndarray, "m h w 3"]:
    """An array for so many pictures: in memory, or, where it would take more than an eighth of what
    is free (every worker has its own, first as read and then as a tensor), a file that is mapped
    into memory and goes with the process. UsageError where the disk has no room either."""
    need = math.prod(shape)
    if HELD * need <= memory():
        return np.empty(shape, np.uint8)
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if need > free:
        raise UsageError(
            f"{where}: {shape[0]:,} pictures of {shape[2]}x{shape[1]} take {amount(need)}, which fit "
            f"neither into memory nor into {folder} ({amount(free)} are free); set a smaller size, or "
            "TMPDIR to a larger disk"
        )
    with tempfile.TemporaryFile(dir=folder) as file:
        return np.memmap(file, np.uint8, "w+", shape=shape)


def read_pictures(
    root: Path, table: FactorTable, size: int | None, which: Iterable[int] | None = None
) -> Iterator[tuple[str, UInt8[np.ndarray, "h w 3"], bytes]]:
    """Some of the files that a table names, or all: the name, the picture, the digest."""
    which = range(len(table.files)) if which is None else list(which)
    if table.read is not None:
        for i, image in zip(which, table.read(which), strict=True):
            shown = (
                image
                if size is None
                else np.asarray(ImageOps.fit(Image.fromarray(image), (size, size)))
            )
            yield table.files[i], shown, hashlib.sha256(image.tobytes()).digest()
        return
    for i in which:
        name, who = table.files[i], table.who(i)
        data = read_inside(root, name, who)
        image = decode(data, f"{root}: {who}, {name!r}", size)
        yield name, image, hashlib.sha256(data).digest()
