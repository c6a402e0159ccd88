"""Models that draw on request: functions of any signature, diffusers pipelines. What they draw is
written to a folder first and scored from there, so that anyone can score it again."""

import csv
import importlib
import inspect
import io
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from recombine.config import UsageError
from recombine.files import allow_imports_beside
from recombine.scoring.prompts import labels_of
from recombine.store import checksum, read_json, write_atomic, write_json
from recombine.worlds.datasets.dataset import Picture, as_rgb
from recombine.worlds.factors import Composition, FactorSpace

Labels = list[dict[str, str]]
Sampler = Callable[[Labels, int, int], Any]
TABLE, NOTE = "metadata.csv", "begun.json"


def find_function(text: str, what: str) -> Callable[..., Any]:
    """`package.module:function`, or `path/to/file.py:function`; imported, so it runs."""
    module, _, name = text.rpartition(":")
    try:
        found = _file(Path(module)) if module.endswith(".py") else _module(module)
    except UsageError:
        raise
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:120]
        raise UsageError(f"{what} {text}: cannot be imported ({reason})") from None
    function = getattr(found, name, None)
    if not callable(function):
        raise UsageError(f"{what} {text}: {module} has no function {name!r}")
    return function


def digest_of_code(text: str) -> str:
    """Of the file in which `package.module:function` or `path/to/file.py:function` stands; nothing
    where there is none."""
    module = text.rpartition(":")[0]
    if module.endswith(".py"):
        return checksum(Path(module).read_bytes())
    spec = importlib.util.find_spec(module)
    return checksum(Path(spec.origin).read_bytes()) if spec and spec.has_location else ""


def failure(error: Exception) -> str:
    """What a stranger's code raised and on which of its own lines, in one line."""
    frames = traceback.extract_tb(error.__traceback__)[1:]
    own = [f for f in frames if f.filename != __file__ and "site-packages" not in f.filename]
    at = f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
    return " ".join(f"{type(error).__name__}: {error}".split())[:160] + at


def _module(name: str) -> Any:
    if os.getcwd() not in sys.path:  # as `python -m` does
        sys.path.insert(0, os.getcwd())
    return importlib.import_module(name)


def _file(path: Path) -> Any:
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file")
    allow_imports_beside(path)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def as_sampler(function: Callable[..., Any], name: str) -> Sampler:
    """Functions (labels, n_per_item, seed), or simpler (label, count) for one composition; further
    arguments keep their defaults."""
    try:
        each = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return function
    positional = [p for p in each if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = sum(p.default is p.empty for p in positional)
    if needed == 3 or (needed == 2 and [p.name for p in positional[2:3]] == ["seed"]):
        return function
    if needed != 2:
        raise UsageError(
            f"{name}: takes {needed} arguments; write (labels, n_per_item, seed) or (label, count)"
        )

    def sample(labels: Labels, n_per_item: int, seed: int) -> list[Any]:
        return [
            p for one in labels for p in pictures_of(function(one, n_per_item), n_per_item, name)
        ]

    return sample


def pictures_of(found: Any, count: int, name: str) -> list[Picture]:
    """Whatever a model returned, as `count` RGB pictures: Pillow images, arrays and tensors, NCHW
    or NHWC, floats in [0, 1] or bytes, lists of these, or an object with `.images`."""
    found = getattr(found, "images", found)
    if found is None:
        raise UsageError(f"{name}: returned nothing, not {count} pictures")
    found = _array(found)
    if isinstance(found, Image.Image) or (isinstance(found, np.ndarray) and found.ndim in (2, 3)):
        whole = isinstance(found, np.ndarray) and found.ndim == 3 and len(found) == count
        found = list(found) if whole and found.shape[-1] not in (3, 4) else [found]
    try:
        some = [_array(one) for one in found]
    except TypeError:
        raise UsageError(f"{name}: returned {type(found).__name__}, not pictures") from None
    if len(some) != count:
        raise UsageError(f"{name}: returned {len(some)} pictures, not {count}")
    try:
        return [as_rgb(one) for one in some]
    except (ValueError, TypeError) as error:
        raise UsageError(f"{name}: returned something that is no picture: {error}") from None


def _array(found: Any) -> Any:
    """A tensor as an array, in a type that numpy has; anything else as it is."""
    if not hasattr(found, "detach"):
        return found
    found = found.detach().cpu()
    return (found.float() if found.is_floating_point() else found).numpy()


def sample_into(
    folder: Path,
    sampler: Sampler,
    name: str,
    space: FactorSpace,
    compositions: Sequence[Composition],
    count: int,
    seed: int,
    log: Callable[[str], None],
    digest: str = "",
) -> Path:
    """`count` pictures of each composition as PNG files, and a table. The table, written last, makes
    the folder a dataset. What was interrupted goes on where `digest` says that the model is the same;
    what was finished is drawn anew, since its weights may have changed."""
    values = {f.name: list(f.values) for f in space.factors}
    facts = {"source": name, "digest": digest, "seed": seed, "n": count, "factors": values}
    rows, going_on = [], _begin(folder, facts) and bool(digest)
    if going_on and (there := len(list(folder.glob("*.png")))):
        log(
            f"{name}: {there} pictures are there from an interrupted evaluation of the same code; "
            f"to draw them anew, delete {folder}"
        )
    for number, c in enumerate(compositions):
        label = labels_of(space, c)
        names = ["-".join((*map(str, c), f"{i:04}.png")) for i in range(count)]
        if not (going_on and all((folder / one).is_file() for one in names)):
            log(f"{name}: {space.describe(c)} ({number + 1} of {len(compositions)})")
            for one, picture in zip(
                names, drawn(sampler, name, label, count, seed + number), strict=True
            ):
                write_atomic(folder / one, _png(picture))
        rows += [{"file": one, **label} for one in names]
    text = io.StringIO()
    table = csv.DictWriter(text, rows[0], lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    write_atomic(folder / TABLE, text.getvalue())
    return folder


def _begin(folder: Path, facts: dict[str, Any]) -> bool:
    """Whether an interrupted evaluation of the same source goes on; else a new one is begun."""
    note = folder / NOTE
    going_on = note.is_file() and not (folder / TABLE).exists() and read_json(note) == facts
    (folder / TABLE).unlink(missing_ok=True)
    write_json(note, facts)
    return going_on


def drawn(
    sampler: Sampler, name: str, label: dict[str, str], count: int, seed: int
) -> list[Picture]:
    """A stranger's code: whatever it raises is one line."""
    try:
        found = sampler([label], count, seed)
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(f"{name}: failed on {label}: {failure(error)}") from error
    return pictures_of(found, count, name)


def _png(picture: Picture) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "png")
    return buffer.getvalue()
