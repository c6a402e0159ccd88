"""What a study would take from a folder of pictures, line by line. The whole table is read, all its
files are looked for, and some pictures are opened; compositions are counted from what is there."""

import itertools
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from recombine.config import UsageError
from recombine.worlds.factor_table import FactorTable, read_table, tally
from recombine.worlds.factors import Composition, Factor, FactorSpace, Split, at_most_one_new
from recombine.worlds.folder import check_place, check_size, whole_path
from recombine.worlds.labelled_pictures import read_pictures
from recombine.worlds.picture_files import found_inside

LISTED = 64
"""Compositions that are listed by name; of a larger space, counts alone."""
ENUMERATED = 4096
"""Compositions whose level is computed."""
OFTEN, ALIKE = 10, 0.82
"""A value may be a slip of one that is so much more frequent, if so alike (`difflib`'s ratio)."""
Counts = dict[Composition, int]


def describe(
    path: Path, table: str, factors: tuple[str, ...], size: int | None, pictures: int = 0
) -> Iterator[str]:
    """The lines of `recombine check`; `pictures`: how many are opened (0: all)."""
    root = Path(whole_path(path))
    check_place(root, table)
    try:
        check_size(size)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if pictures < 0:
        raise UsageError(f"--pictures {pictures}: must not be negative")
    listing = read_table(root, table, factors)
    for i, name in enumerate(listing.files if listing.read is None else ()):
        found_inside(root, name, listing.who(i))
    wide, high, opened = _sizes(root, listing, size, pictures)
    space = listing.space
    which, counts = tally(torch.from_numpy(listing.factors), space)
    yield summary(root, which, counts, space)
    numbers = ", ".join(f"{f.name} {f.dim}" for f in space.factors if f.dim)
    yield from listing.notes
    yield f"numbers: {numbers or 'none; factors are given by class alone'}"
    yield from _split(which, counts, space)
    yield from _doubts(listing)
    fit = [n for n in range(1, min(high, wide) + 1) if high % n == 0 and wide % n == 0]
    grid = "and" if high % 4 == wide % 4 == 0 else "but not"
    patches = f"patches {', '.join(map(str, fit))} divide it"
    yield f"size: {wide} x {high}; {patches}, {grid} tokenizers, which shrink it by four"
    if opened < len(listing.files):
        yield (
            f"opened: {opened:,} of {len(listing.files):,} pictures, evenly spaced; --pictures 0 "
            "opens all"
        )


def summary(root: Path, which: Tensor, counts: Tensor, space: FactorSpace) -> str:
    """What was understood of the folder, in one line, so that a slip in the table can be seen."""
    rarest = int(counts.argmin())
    of = f"{len(counts)} of {space.count} compositions"
    fewest = f"of {space.describe(tuple(which[rarest].tolist()))} the fewest ({counts[rarest]})"
    return f"{root}: {space.words}; pictures of {of}, {fewest}"


def _sizes(root: Path, listing: FactorTable, size: int | None, most: int) -> tuple[int, int, int]:
    """Width and height, equal in all pictures that are opened, and how many those are."""
    count = len(listing.files)
    opened = count if not most else min(most, count)
    which = sorted({i * (count - 1) // max(1, opened - 1) for i in range(opened)})
    first: tuple[str, tuple[int, ...]] | None = None
    for name, image, _ in read_pictures(root, listing, size, which):
        first = first or (name, image.shape)
        if image.shape != first[1]:
            here, there = (f"{s[1]}x{s[0]}" for s in (image.shape, first[1]))
            raise UsageError(
                f"{root}: {name!r} is {here} but {first[0]!r} is {there} pixels; set size to make "
                f"them equal (--size {min(first[1][:2])})"
            )
    return first[1][1], first[1][0], len(which)


def _split(which: Tensor, counts: Tensor, space: FactorSpace) -> Iterator[str]:
    """What would be seen and what new, as `World.usual` has it."""
    complete = len(counts) == space.count
    if space.count <= ENUMERATED:
        many = dict(zip(map(tuple, which.tolist()), counts.tolist(), strict=True))
        split = at_most_one_new(space) if complete else Split(tuple(many))
        for level, some in split.levels(space).items():
            yield f"{_level(level)}: {_named(some, many, space)}"
        return
    seen = 1 + sum(n - 1 for n in space.sizes) if complete else len(counts)
    yield f"seen: {seen:,} compositions; new: {space.count - seen:,}, too many to list"
    yield "a study needs fewer: choose factors (--factors here, world.factors in a study)"


def _level(level: int) -> str:
    return "seen" if level == 0 else f"level {level}"


def _named(some: Iterable[Composition], counts: Counts, space: FactorSpace) -> str:
    some = tuple(some)
    first = itertools.islice(some, LISTED)
    named = ", ".join(f"{space.describe(c)} ({counts.get(c, 'no pictures')})" for c in first)
    return named if len(some) <= LISTED else f"{named}, ... ({len(some):,} in all)"


def _doubts(listing: FactorTable) -> Iterator[str]:
    """Columns that hardly repeat a value are names of pictures rather than factors; a value that is
    spelled nearly as one that is much more frequent may be a slip."""
    rows = len(listing.file)
    for k, factor in enumerate(listing.space.factors):
        if rows >= 10 and len(factor.values) > rows // 2:
            yield (
                f"doubtful: {factor.name} has {len(factor.values):,} values in {rows:,} rows; it "
                "names pictures rather than a factor"
            )
        elif len(factor.values) <= LISTED:
            yield from _slips(factor, np.bincount(listing.factors[:, k]))


def _slips(factor: Factor, counts: Int[np.ndarray, "v"]) -> Iterator[str]:
    """Numbers are no slips of each other: a and b, or size1 and size2, may well be classes."""
    often = dict(zip(factor.values, counts.tolist(), strict=True))
    for value, count in often.items():
        common = [v for v, n in often.items() if n >= OFTEN * count and digits(v) == digits(value)]
        for near in get_close_matches(value, common, 1, ALIKE):
            yield (
                f"doubtful: {factor.name} is {value!r} in {count:,} of the rows and {near!r} in "
                f"{often[near]:,}; is it misspelled?"
            )


def digits(value: str) -> str:
    return "".join(filter(str.isdigit, value))
