"""Pictures sorted into folders: one level of folders per factor, `red/circle/0001.png`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from recombine.config import UsageError
from recombine.worlds.datasets.dataset import NAME, Dataset, natural
from recombine.worlds.datasets.tables import files_under

PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm")
LAYOUT = "class folders"
SPLITS = {"train", "test", "validation", "val", "seen", "unseen"}
"""Folders of these names are no values of a factor but parts of a dataset."""


def picture_files(root: Path) -> Iterator[str]:
    """Names of all pictures under a folder, relative to it, in natural order; none that is
    hidden."""
    found = (p.relative_to(root) for p in root.rglob("*") if p.suffix.lower() in PICTURES)
    named = (p.as_posix() for p in found if not any(x.startswith(".") for x in p.parts))
    yield from sorted(named, key=natural)


def open_class_folders(root: Path) -> Dataset:
    """Factors are called level1, level2, ... unless a folder's names say `color=red`."""
    names = list(picture_files(root))
    if not names:
        raise UsageError(f"{root}: has neither a table nor pictures")
    depth = {name.count("/") for name in names}
    if depth == {0}:
        raise UsageError(f"{root}: has pictures but no table factors.csv that says what they show")
    if len(depth) > 1:
        odd = next(n for n in names if n.count("/") != max(depth))
        raise UsageError(f"{root}: {odd} lies in {odd.count('/')} folders, others in {max(depth)}")
    cells = [name.split("/")[:-1] for name in names]
    columns = {}
    for k in range(max(depth)):
        values = [row[k] for row in cells]
        heads = {v.partition("=")[0] for v in values}
        named = len(heads) == 1 and all("=" in v for v in values)
        usual = "split" if set(values) <= SPLITS else f"level{k + 1}"
        title = heads.pop() if named else usual
        columns[title] = [v.partition("=")[2] for v in values] if named else values
    table = pl.DataFrame({NAME: names, **columns})
    read = files_under(root, table[NAME])
    return Dataset(str(root), LAYOUT, table, read, (_note(columns),))


def named_levels(dataset: Dataset, names: Sequence[str]) -> Dataset:
    """Class folders whose levels are called as the factors are, in order, where there are as many;
    any other dataset as it is."""
    columns = dataset.table.columns
    levels = [c for c in columns if c.startswith("level")]
    if dataset.layout != LAYOUT or len(levels) != len(names) or set(names) & set(columns):
        return dataset
    named = dataset.renamed(dict(zip(levels, names, strict=True)))
    return replace(named, notes=(_note(c for c in named.table.columns if c != NAME),))


def _note(columns: Iterable[str]) -> str:
    return f"folders give the factors: {', '.join(columns)}"
