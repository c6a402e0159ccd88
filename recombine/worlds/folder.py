"""Folder: one's own pictures as a world. A folder holds pictures and a table that names the
factors' values of each; see `factor_table`."""

import os
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from recombine.config import UsageError, config
from recombine.limits import allow
from recombine.worlds.datasets import HUB
from recombine.worlds.factor_table import TABLE, composition_index, tally
from recombine.worlds.factors import Composition, FactorSpace
from recombine.worlds.labelled_pictures import LabelledPictures, load, part
from recombine.worlds.world import Rendered, World

Stamp = tuple[int, int]


@config("world/folder")
class Folder(World):
    """Drawing picks, with replacement, one of the pictures of a composition. `factors` chooses
    columns and their order (none: all); `size` crops and scales to a square (None: pictures stay as
    they are and must be equal in size); `part`: probes train on one part and are checked on the
    other; `most`: of each composition at most so many pictures (0: all). `content` is the digest of table and pictures: make a
    Folder by `open`, which checks everything and fills it in, so that runs on changed data never
    share a name."""

    readable: ClassVar[bool] = False

    path: str
    table: str = TABLE
    factors: tuple[str, ...] = ()
    size: int | None = None
    content: str = ""
    part: Literal["all", "train", "held-out"] = "all"
    most: int = 0

    def __post_init__(self) -> None:
        check_size(self.size)

    @classmethod
    def at(cls, path: str | Path) -> "Folder":
        """Not read yet: `settled` does that, when the other fields are known."""
        return cls(whole_path(path))

    def settled(self) -> "Folder":
        """Read and checked, with the digest of what is there."""
        return self if self.content else replace(self, content=self._fresh().loaded.content)

    def _fresh(self) -> "Folder":
        _load.cache_clear()
        _resident.cache_clear()
        return self

    @classmethod
    def open(
        cls,
        path: str | Path,
        table: str = TABLE,
        factors: tuple[str, ...] = (),
        size: int | None = None,
        most: int = 0,
    ) -> "Folder":
        """The folder at `path`, read through and checked from the first row to the last."""
        place = str(path) if str(path).startswith(HUB) else whole_path(path)
        return cls(place, table, tuple(factors), size, most=most).settled()

    def part_of(self, name: Literal["all", "train", "held-out"]) -> "Folder":
        """The same folder, of which only these pictures are drawn."""
        return replace(self, part=name)

    @property
    def loaded(self) -> LabelledPictures:
        """Read when first needed, then kept for as long as the table stays the same."""
        stamp = _stamp(self.path, self.table)
        loaded = _load(self.path, self.table, self.factors, self.size, self.most, stamp)
        if self.content and self.content != loaded.content:
            raise UsageError(
                f"{self.path}: its content is now {loaded.content}, not {self.content}; open the "
                "folder anew"
            )
        return part(loaded, self.part)

    @property
    def space(self) -> FactorSpace:
        return self.loaded.space

    @property
    def image_shape(self) -> tuple[int, int, int]:
        return tuple(self.loaded.pictures.shape[1:])

    @property
    def present(self) -> tuple[Composition, ...]:
        """The compositions of which the folder has pictures."""
        return tuple(self.counts)

    @property
    def counts(self) -> dict[Composition, int]:
        """How many pictures there are of each composition that has any."""
        which, counts = tally(self.loaded.factors, self.space)
        return {tuple(c): n for c, n in zip(which.tolist(), counts.tolist(), strict=True)}

    def render(self, factors: Int[Tensor, "b k"], rng: torch.Generator) -> Rendered:
        rows = self.pick(factors, rng)
        return Rendered(self.images(rows), self.values(rows))

    def pick(self, factors: Int[Tensor, "b k"], rng: torch.Generator) -> Int[Tensor, "b"]:
        """A row of the table for each composition, at random among those that show it."""
        loaded, factors = self._on(rng.device), factors.to(rng.device)
        have, want = (
            composition_index(loaded.factors, loaded.space),
            composition_index(factors, loaded.space),
        )
        first, end = torch.searchsorted(have, want), torch.searchsorted(have, want, right=True)
        absent = (loaded.factors[first.clamp(max=len(have) - 1)] != factors).any(1)
        if absent.any():
            missing = tuple(factors[absent][0].tolist())
            raise UsageError(f"{self.path}: has no picture of {loaded.space.describe(missing)}")
        share = torch.rand(len(want), generator=rng, device=rng.device)
        return first + (share * (end - first)).long()

    def images(self, rows: Int[Tensor, "b"]) -> Float[Tensor, "b c h w"]:
        """The pictures of some rows."""
        return self._on(rows.device).images(rows)

    def values(self, rows: Int[Tensor, "b"]) -> Float[Tensor, "b v"]:
        """The numbers of some rows."""
        return self._on(rows.device).values[rows]

    def _on(self, device: torch.device) -> LabelledPictures:
        return _resident(self, _stamp(self.path, self.table), device)

    def read(self, images: Float[Tensor, "b c h w"]) -> Int[Tensor, "b k"]:
        raise UsageError(
            f"{self.path}: a folder of pictures has no oracle; read samples with a trained probe"
        )

    def canonical(self, factors: Int[Tensor, "b k"]) -> Float[Tensor, "b v"]:
        """Every factor's numbers, averaged over all pictures that share its value."""
        loaded = self._on(factors.device)
        blocks = loaded.values.split(loaded.space.dims, 1)
        means = []
        for k, (block, size) in enumerate(zip(blocks, loaded.space.sizes, strict=True)):
            total = block.new_zeros(size, block.shape[1], dtype=torch.float64)
            total.index_add_(0, loaded.factors[:, k], block.double())
            count = loaded.factors[:, k].bincount(minlength=size)[:, None]
            means.append((total / count).float()[factors[:, k]])
        return torch.cat(means, 1)


def check_size(size: int | None) -> None:
    """ValueError or UsageError where pictures cannot be scaled to this side."""
    if size is not None and size < 1:
        raise ValueError(f"size must be positive, not {size}")
    allow("pixels", (size or 0) ** 2, f"size={size}")


def whole_path(path: str | Path) -> str:
    """UsageError where no file can have such a name."""
    try:
        return str(Path(path).resolve())
    except (OSError, ValueError, RuntimeError) as error:
        raise UsageError(f"{str(path)[:80]!r} is no path: {error}") from None


def check_place(root: Path, table: str) -> None:
    """UsageError where there is no folder, or no table in it."""
    try:
        is_folder, is_table = root.is_dir(), (root / table).is_file()
    except (OSError, ValueError) as error:  # a name that no file can have
        raise UsageError(f"{str(root / table)[:200]!r}: {error}") from None
    if not is_folder and not (table == TABLE and root.is_file()):
        raise UsageError(f"{root}: there is no such folder")
    if not is_table and (table != TABLE or os.path.lexists(root / table)):
        raise UsageError(f"{root}: there is no table {table} in this folder")


def _stamp(path: str, table: str) -> Stamp:
    if path.startswith(HUB):
        return 0, 0
    root = Path(path)
    check_place(root, table)
    place = root / table if (root / table).is_file() else root
    times = [
        p.stat().st_mtime_ns
        for p in (place, *(root.iterdir() if place == root and root.is_dir() else ()))
    ]
    return max(times), place.stat().st_size


@lru_cache(maxsize=8)
def _resident(folder: Folder, stamp: Stamp, device: torch.device) -> LabelledPictures:
    """The folder's pictures, kept on the device that draws from them."""
    return folder.loaded.to(device)


@lru_cache(maxsize=8)
def _load(
    path: str, table: str, factors: tuple[str, ...], size: int | None, most: int, stamp: Stamp
) -> LabelledPictures:
    return load(Path(path), table, factors, size, most)
