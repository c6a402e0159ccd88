"""Which layout a path has, and its dataset."""

from pathlib import Path

from recombine.config import UsageError
from recombine.worlds.datasets import HUB
from recombine.worlds.datasets.dataset import Dataset


def open_dataset(where: str | Path, table: str = "") -> Dataset:
    """A file (table, .npz, .h5, .tar, CLEVR scenes), a folder of any known layout, or
    `hf:owner/name[:split]`. `table`: which table of a folder, where it has several."""
    if str(where).startswith(HUB):
        from recombine.worlds.datasets.hub import open_hub

        return open_hub(str(where).removeprefix(HUB))
    path = Path(where)
    if path.is_file():
        return _open_file(path)
    if not path.is_dir():
        raise UsageError(f"{where}: there is no such file or folder")
    if table:
        if not (path / table).is_file():
            raise UsageError(f"{where}: there is no table {table} in this folder")
        return _open_file(path / table)
    return _open_folder(path)


def _open_file(path: Path) -> Dataset:
    from recombine.worlds.datasets import arrays, clevr_objects, shards, tables

    ending = path.suffix.lower()
    if ending == ".json" and b'"scenes"' in path.open("rb").read(4096):
        return clevr_objects.open_clevr(path)
    if ending in tables.ENDINGS:
        return tables.open_table(path)
    if ending == ".npz":
        return arrays.open_npz(path)
    if ending in (".h5", ".hdf5"):
        return arrays.open_h5(path)
    if ending == ".tar":
        return shards.open_shards(path, [path])
    known = ", ".join((*tables.ENDINGS, ".npz", ".h5", ".tar"))
    raise UsageError(f"{path}: is none of {known}")


def _open_folder(path: Path) -> Dataset:
    """A known table first, then shards, arrays, CLEVR scenes, Hugging Face's files, one table of
    any name, folders of classes."""
    from recombine.worlds.datasets import class_folders, hub, shards, tables

    for name in tables.TABLES:
        if (path / name).is_file():
            return _open_file(path / name)
    if tars := sorted(path.glob("*.tar")):
        return shards.open_shards(path, tars)
    for pattern in ("*.npz", "*.h5", "*.hdf5", "*_scenes.json", "scenes/*_scenes.json"):
        if found := sorted(path.glob(pattern)):
            return _open_file(_only(found, path))
    if parts := hub.parts_of(path):
        return hub.open_parts(path, parts)
    if found := [
        p for p in sorted(path.iterdir()) if p.suffix.lower() in (".csv", ".tsv", ".jsonl")
    ]:
        return _open_file(_only(found, path))
    return class_folders.open_class_folders(path)


def _only(found: list[Path], folder: Path) -> Path:
    if len(found) > 1:
        names = ", ".join(p.name for p in found[:4])
        raise UsageError(f"{folder}: holds {names}; say which one, as a path or with --table")
    return found[0]
