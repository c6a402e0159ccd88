"""WebDataset shards: tar files in which the files of one sample share their name up to the first
dot, `000001.jpg` with `000001.json` or `000001.cls`. The tar is indexed once; pictures are read
from their place in it."""

import json
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from recombine.config import UsageError
from recombine.worlds.datasets.class_folders import PICTURES
from recombine.worlds.datasets.dataset import NAME, Dataset, natural

TEXTS = {"cls": "class", "txt": "prompt", "caption": "prompt", "text": "prompt"}
LONGEST = 1_000_000
"""Bytes of labels of one sample that are read."""


def open_shards(where: Path, paths: Sequence[Path]) -> Dataset:
    """The samples of one or more shards, in order."""
    rows: list[dict[str, Any]] = []
    places: list[tuple[Path, int, int]] = []
    for path in sorted(paths, key=lambda p: natural(p.name)):
        for key, labels, place in _samples(path):
            rows.append({NAME: f"{path.name}/{key}", **labels})
            places.append((path, *place))
    if not rows:
        raise UsageError(f"{where}: its shards hold no pictures")
    names = dict.fromkeys(name for row in rows for name in row)
    table = pl.DataFrame({n: [str(row.get(n, "")) for row in rows] for n in names})

    def read(chosen: Sequence[int]) -> Iterator[bytes]:
        for row in chosen:
            path, start, size = places[row]
            with open(path, "rb") as file:
                file.seek(start)
                yield file.read(size)

    return Dataset(str(where), "WebDataset", table, read)


def _samples(path: Path) -> Iterator[tuple[str, dict[str, str], tuple[int, int]]]:
    """Name, labels and the picture's place of every sample that has a picture."""
    try:
        with tarfile.open(path) as tar:
            key, labels, place = "", {}, None
            for member in tar:
                if not member.isreg():
                    continue
                stem, _, ending = member.name.rpartition("/")[2].partition(".")
                stem = member.name[: len(member.name) - len(ending) - 1] if ending else member.name
                if stem != key:
                    if place:
                        yield key, labels, place
                    key, labels, place = stem, {}, None
                if f".{ending.rpartition('.')[2].lower()}" in PICTURES:
                    place = (member.offset_data, member.size)
                elif member.size <= LONGEST:
                    labels |= _labels(ending, tar.extractfile(member).read())
            if place:
                yield key, labels, place
    except (tarfile.TarError, OSError, ValueError) as error:
        raise UsageError(f"{path}: is not a tar shard that can be read ({error})") from None


def _labels(ending: str, data: bytes) -> dict[str, str]:
    text = data.decode("utf-8", "replace").strip()
    if ending == "json":
        found = json.loads(text)
        plain = found.items() if isinstance(found, dict) else ()
        return {str(k): str(v) for k, v in plain if isinstance(v, (str, int, float, bool))}
    return {TEXTS[ending]: text} if ending in TEXTS else {}
