"""Where a model's pictures come from: a dataset that exists, a pipeline, a function."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from recombine.config import UsageError
from recombine.scoring.prompts import check_template, labels_of, prompt_column, read_prompts
from recombine.scoring.samplers import (
    Sampler,
    as_sampler,
    digest_of_code,
    drawn,
    find_function,
)
from recombine.store import checksum
from recombine.worlds.datasets import HUB
from recombine.worlds.datasets.columns import matched
from recombine.worlds.datasets.dataset import Dataset
from recombine.worlds.datasets.open_dataset import open_dataset
from recombine.worlds.factors import FactorSpace

CHECKED = 2
"""Pictures that a model draws before a probe is trained: a fixed number of them is found out."""


@dataclass(frozen=True)
class Source:
    """Pictures that exist (`dataset`), or something that draws (`draws`, opened when needed). What
    an interrupted evaluation drew is kept if `digest` gives the same; it gives nothing for a function
    in memory, which may be any."""

    name: str
    dataset: Dataset | None = None
    draws: Callable[[], Sampler] | None = None
    is_pipeline: bool = False
    digest: Callable[[], str] = str


def find_source(source: Any, template: str, device: str, options: dict[str, Any]) -> Source:
    """A callable, `module:function`, a pipeline's folder or id, or pictures in any layout."""
    if callable(source):
        name = getattr(source, "__name__", "function")
        return Source(name, draws=lambda: as_sampler(source, name))
    text, path = str(source), Path(str(source))
    if text.startswith(HUB) or path.is_file() or (path.is_dir() and not _is_pipeline(path)):
        return Source(path.resolve().name, open_dataset(source))
    if path.is_dir() or (text.count("/") == 1 and ":" not in text and not text.startswith(".")):
        name = path.resolve().name if path.is_dir() else text
        known = checksum(repr((str(source), template, sorted(options.items()))).encode())
        return Source(
            name,
            draws=lambda: _pipeline(text, template, device, options),
            is_pipeline=True,
            digest=lambda: known,
        )
    if ":" in text:
        return Source(
            text,
            draws=lambda: as_sampler(find_function(text, "SOURCE"), text),
            digest=partial(digest_of_code, text),
        )
    raise UsageError(
        f"{source}: no such folder or file; a source is a folder of pictures, a pipeline (folder or "
        "owner/name) or module:function"
    )


def _is_pipeline(path: Path) -> bool:
    return (path / "model_index.json").is_file()


def _pipeline(text: str, template: str, device: str, options: dict[str, Any]) -> Sampler:
    from recombine.bridge.pipelines import sampler

    return sampler(text, template, device, **options)


def check_source(source: Source, template: str, space: FactorSpace, seed: int) -> Sampler | None:
    """Open what draws and let it draw two pictures, before a probe is trained."""
    if source.is_pipeline and not template:
        fields = " ".join(f"{{{f.name}}}" for f in space.factors)
        raise UsageError(
            f"{source.name}: a pipeline needs a template such as --template 'a {fields}'"
        )
    if template:
        check_template(template, space)
    if source.draws is None:
        return None
    sampler = source.draws()
    drawn(sampler, source.name, labels_of(space, space.compositions[0]), CHECKED, seed)
    return sampler


def wanted(dataset: Dataset, space: FactorSpace, template: str) -> Int[np.ndarray, "n k"]:
    """What each picture of a dataset should show: by its labels, else by its prompt."""
    names = {f.name for f in space.factors}
    column = prompt_column(dataset)
    if column and not names <= set(dataset.table.columns):
        return read_prompts(dataset, column, space, template)
    return matched(dataset, space)
