"""A dataset of any layout as the table of a folder, so that it can be trained on."""

from pathlib import Path
from typing import Any

import numpy as np

from recombine.config import UsageError
from recombine.worlds.datasets.class_folders import named_levels
from recombine.worlds.datasets.columns import factor_columns, label
from recombine.worlds.datasets.dataset import NAME
from recombine.worlds.datasets.open_dataset import open_dataset


def list_dataset(path: Path, wanted: tuple[str, ...] = ()) -> tuple[Any, ...]:
    """The fields of a FactorTable: every picture with its factors. Of class folders `wanted` names the levels."""
    dataset = named_levels(open_dataset(path), wanted)
    names, notes = factor_columns(dataset, wanted)
    if not names:
        raise UsageError(
            f"{path}: has no column that is a factor; {'; '.join(notes) or 'no others'}"
        )
    labels, merged = label(dataset, names)
    rows = np.arange(len(dataset))
    values = np.zeros((len(rows), 0), np.float32)
    said = (*dataset.notes, *notes, *merged)
    files = dataset.table[NAME].to_list()
    return labels.space, files, rows, rows, labels.index, values, said, dataset.pictures
