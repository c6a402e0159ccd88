"""Pictures as one array: NumPy's .npz and HDF5, as dSprites and Shapes3D are published. Nothing is
loaded whole: pictures stream from the file in ascending order."""

import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from recombine.config import UsageError, install_command
from recombine.worlds.datasets.dataset import NAME, Dataset

IMAGES = ("images", "imgs", "image", "pictures", "x")
LABELS = ("latents_classes", "labels", "factors", "y")
"""Two-dimensional: a column per factor."""
DSPRITES = ("color", "shape", "scale", "orientation", "posX", "posY")
SHAPES3D = ("floor_hue", "wall_hue", "object_hue", "scale", "shape", "orientation")
WORDS = {
    "latents_classes": {"shape": ("square", "ellipse", "heart"), "color": ("white",)},
    "shapes3d": {"shape": ("cube", "cylinder", "sphere", "capsule")},
}
"""Values that the publications name in words."""
CHUNK = 1 << 22
Arrays = dict[str, Any]


def open_npz(path: Path) -> Dataset:
    """Arrays `images` (n pictures) and one array of n labels per factor, or the arrays of
    dSprites. Objects that would have to be unpickled are never read."""
    try:
        with np.load(path, allow_pickle=False) as file, zipfile.ZipFile(path) as zipped:
            headers = {n.removesuffix(".npy"): _header(zipped, n) for n in zipped.namelist()}
            name = _images_of(headers, path)
            count = headers[name][0][0]
            plain = (n for n, (shape, kind) in headers.items() if n != name and not kind.hasobject)
            labels = {n: file[n] for n in plain if headers[n][0][:1] == (count,)}
    except UsageError:
        raise
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        reason = " ".join(str(error).split())[:80]
        raise UsageError(f"{path}: is not an .npz file that can be read ({reason})") from None
    shape, kind = headers[name]
    table = _table(labels, count, path, DSPRITES if "latents_classes" in labels else ())
    return Dataset(str(path), "npz", table, _stream(path, name, shape, kind))


def open_h5(path: Path) -> Dataset:
    """The same from HDF5: `images` and an array per factor, or the arrays of Shapes3D."""
    try:
        import h5py
    except ModuleNotFoundError:
        raise UsageError(f"{path}: reading HDF5 needs h5py; {install_command('h5')}") from None
    try:
        with h5py.File(path, "r") as file:
            arrays = {n: a for n, a in file.items() if isinstance(a, h5py.Dataset) and a.shape}
            name = _images_of({n: (a.shape, a.dtype) for n, a in arrays.items()}, path)
            count = arrays[name].shape[0]
            some = {n: a[:] for n, a in arrays.items() if n != name and a.shape[:1] == (count,)}
    except UsageError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = " ".join(str(error).split())[:80]
        raise UsageError(f"{path}: is not an HDF5 file that can be read ({reason})") from None

    def read(rows: Sequence[int]) -> Iterator[np.ndarray]:
        with h5py.File(path, "r") as file:
            for row in rows:
                yield file[name][row]

    published = some.get("labels", np.zeros(0)).shape[1:] == (len(SHAPES3D),)
    table = _table(some, count, path, SHAPES3D if published else ())
    return Dataset(str(path), "h5", table, read)


def _images_of(headers: Arrays, path: Path) -> str:
    found = [n for n in IMAGES if n in headers and len(headers[n][0]) in (3, 4)]
    if not found:
        names = ", ".join(sorted(headers))
        raise UsageError(f"{path}: needs an array 'images' of pictures; it has {names}")
    if not headers[found[0]][0][0]:
        raise UsageError(f"{path}: has no pictures")
    return found[0]


def _table(labels: Arrays, count: int, path: Path, published: tuple[str, ...]) -> pl.DataFrame:
    """Every array of n labels as a column of text; a two-dimensional one as several."""
    columns: dict[str, Any] = {NAME: pl.int_range(count, eager=True).cast(pl.String)}
    wide = next((n for n in LABELS if n in labels and labels[n].ndim == 2), None)
    if wide is not None:
        names = published or tuple(f"factor{k + 1}" for k in range(labels[wide].shape[1]))
        words = WORDS["latents_classes" if published == DSPRITES else "shapes3d"]
        for k, name in enumerate(names[: labels[wide].shape[1]]):
            columns[name] = _words(labels[wide][:, k], words.get(name, ()) if published else ())
    else:
        flat = {n: a for n, a in labels.items() if a.ndim == 1}
        columns |= {n: _words(a, ()) for n, a in flat.items()}
    if len(columns) == 1:
        raise UsageError(f"{path}: has pictures but no array of {count} labels")
    return pl.DataFrame(columns)


def _words(values: np.ndarray, words: tuple[str, ...]) -> pl.Series:
    if values.dtype.kind == "S" or values.dtype == object:
        values = np.array([v.decode() if isinstance(v, bytes) else str(v) for v in values])
    if words:
        _, place = np.unique(values, return_inverse=True)
        return pl.Series(np.array(words)[place % len(words)])
    if values.dtype.kind == "f" and (values == values.round()).all():
        values = values.astype(np.int64)
    return pl.Series(values).cast(pl.String)


def _header(zipped: zipfile.ZipFile, name: str) -> tuple[tuple[int, ...], np.dtype]:
    with zipped.open(name) as file:
        return _read_header(file)


def _read_header(file: Any) -> tuple[tuple[int, ...], np.dtype]:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0
    shape, fortran, kind = (read if version == (1, 0) else np.lib.format.read_array_header_2_0)(
        file
    )
    if fortran and len(shape) > 1:
        raise ValueError("an array in Fortran order cannot be streamed")
    return shape, kind


def _stream(path: Path, name: str, shape: tuple[int, ...], kind: np.dtype) -> Callable:
    """Pictures of ascending rows from a compressed file, one at a time."""
    one = int(np.prod(shape[1:])) * kind.itemsize
    bright = _brightness(path, name, kind)

    def read(rows: Sequence[int]) -> Iterator[np.ndarray]:
        with zipfile.ZipFile(path) as zipped, zipped.open(f"{name}.npy") as file:
            _read_header(file)
            here = 0
            for row in rows:
                _skip(file, (row - here) * one)
                here = row + 1
                yield np.frombuffer(file.read(one), kind).reshape(shape[1:]) * bright

    return read


def _brightness(path: Path, name: str, kind: np.dtype) -> Any:
    """255 where the pictures are black and white, 0 or 1, as in dSprites."""
    if kind != np.uint8:
        return 1 if kind.kind == "f" else kind.type(1)
    with zipfile.ZipFile(path) as zipped, zipped.open(f"{name}.npy") as file:
        _read_header(file)
        head = np.frombuffer(file.read(CHUNK), np.uint8)
    return np.uint8(255 if head.max(initial=0) == 1 else 1)


def _skip(file: Any, count: int) -> None:
    while count > 0:
        count -= len(file.read(min(count, CHUNK))) or count
