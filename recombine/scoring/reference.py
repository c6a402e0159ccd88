"""What a model is measured against: real pictures, their factors, and what was seen of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from recombine.config import UsageError
from recombine.metrics.factor_probe import SIDE
from recombine.rng import seeded
from recombine.scoring.splits import find_split
from recombine.worlds.datasets.class_folders import named_levels
from recombine.worlds.datasets.columns import Labels, factor_columns, label, matched
from recombine.worlds.datasets.dataset import Dataset, Picture
from recombine.worlds.datasets.open_dataset import open_dataset
from recombine.worlds.factors import Composition, FactorSpace, Split
from recombine.worlds.folder import Folder
from recombine.worlds.world import World

MOST = 400
"""Real pictures of each composition that a probe learns from, at most."""
CHECKED = 40
"""Real pictures of each composition on which a probe that was not trained here is validated."""


@dataclass(frozen=True)
class Reference:
    """`world` renders or holds real pictures; None where there are no real pictures at all."""

    where: str
    space: FactorSpace
    split: Split
    present: tuple[Composition, ...]
    world: World | None = None
    data: tuple[Dataset, Labels] | None = None
    notes: tuple[str, ...] = ()

    @property
    def seen(self) -> list[str]:
        """The seen compositions in words."""
        return [self.space.describe(c) for c in self.split.seen]

    def real(self, held_out: bool) -> Iterator[tuple[Picture, Sequence[int]]]:
        """Real pictures with their composition: those that a trained probe has not met."""
        if isinstance(self.world, Folder) and held_out:
            loaded = self.world.part_of("held-out").loaded
            for picture, c in zip(loaded.picture.tolist(), loaded.factors.tolist(), strict=True):
                yield loaded.pictures[picture].permute(1, 2, 0).numpy(), c
        elif self.data is not None:
            rows = evenly(self.data[1].index, CHECKED)
            index = self.data[1].index[rows].tolist()
            yield from zip(self.data[0].pictures(rows), index, strict=True)
        elif self.world is not None:
            for c in self.present:
                index, rng = torch.tensor([c] * CHECKED), seeded("real", *c)
                images = (self.world.render(index, rng).images * 255).round().byte()
                yield from ((image.permute(1, 2, 0).numpy(), c) for image in images)


def open_reference(
    data: Any, factors: Sequence[str], split: Any, source: Dataset | None
) -> Reference:
    """`data`: a world, a path to pictures in any layout, or nothing, then factors and split are
    those of the source."""
    if isinstance(data, World) and not isinstance(data, Folder):
        chosen = find_split(split, data.space, None, ()) if split else data.usual
        return Reference(type(data).__name__, data.space, chosen, data.present, data)
    if data is None or data == "":
        return _without_data(source, factors, split)
    path = data.path if isinstance(data, Folder) else data
    return _from_pictures(path, factors or getattr(data, "factors", ()), split)


def _from_pictures(path: str | Path, factors: Sequence[str], split: Any) -> Reference:
    dataset = named_levels(open_dataset(path), factors)
    names, notes = factor_columns(dataset, factors)
    if not names:
        raise UsageError(
            f"{path}: has no column that is a factor; it has {', '.join(dataset.table.columns)}"
        )
    first = next(dataset.pictures([0]))
    size = min(SIDE, *first.shape[:2])
    folder = Folder.open(path, factors=names, size=size, most=MOST)
    labels = Labels(folder.space, matched(dataset, folder.space))
    chosen = find_split(split, folder.space, (dataset, labels), folder.present)
    said = (*dataset.notes, *notes, *label(dataset, names)[1])
    return Reference(
        str(path), folder.space, chosen, folder.present, folder, (dataset, labels), said
    )


def _without_data(source: Dataset | None, factors: Sequence[str], split: Any) -> Reference:
    if source is None:
        raise UsageError(
            "--data: a model that draws on request needs real pictures to say what its factors are"
        )
    source = named_levels(source, factors)
    names, notes = factor_columns(source, factors)
    if not names:
        raise UsageError(
            f"{source.where}: has no column that is a factor; give --data or --factors"
        )
    labels, merged = label(source, names)
    if not split and "split" not in source.table.columns:
        last = labels.space.describe(labels.space.compositions[-1])
        raise UsageError(
            "--split: without --data nothing says which compositions the model was not trained on; "
            f"list those, as in --split 'unseen: {last}'"
        )
    chosen = find_split(split, labels.space, (source, labels), labels.space.compositions)
    return Reference("", labels.space, chosen, (), None, None, (*notes, *merged))


def evenly(index: np.ndarray, most: int) -> list[int]:
    """At most so many rows of each composition, evenly spaced, in ascending order."""
    _, kind = np.unique(index, axis=0, return_inverse=True)
    chosen = []
    for k in range(int(kind.max()) + 1):
        rows = np.flatnonzero(kind == k)
        take = min(most, len(rows))
        chosen += rows[np.arange(take) * len(rows) // take].tolist()
    return sorted(chosen)
