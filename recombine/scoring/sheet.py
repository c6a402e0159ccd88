"""A sheet of samples: a row per composition, every picture framed by whether it was read right."""

from collections.abc import Iterator, Sequence
from io import BytesIO

import numpy as np
from PIL import Image

from recombine.worlds.datasets.dataset import Picture, resized
from recombine.worlds.factors import Composition, FactorSpace

ACROSS, SIDE, FRAME = 10, 64, 3
RIGHT, WRONG = (18, 130, 80), (200, 40, 30)
MOST = 120
"""Compositions that are shown."""


class Collector:
    """Keeps the first pictures of each composition as all of them stream past."""

    def __init__(self, space: FactorSpace, index: np.ndarray):
        there = {tuple(c) for c in np.unique(index, axis=0).tolist()}
        self.compositions = [c for c in space.compositions if c in there][:MOST]
        self.kept: dict[Composition, list[tuple[int, Picture]]] = {c: [] for c in self.compositions}
        self.answers: np.ndarray | None = None

    def watch(
        self, stream: Iterator[tuple[Picture, Sequence[int]]]
    ) -> Iterator[tuple[Picture, Sequence[int]]]:
        for row, (picture, c) in enumerate(stream):
            mine = self.kept.get(tuple(c))
            if mine is not None and len(mine) < ACROSS:
                mine.append((row, resized(picture, SIDE)))
            yield picture, c

    def webp(self) -> bytes:
        """The sheet; `answers` must be set."""
        cell = SIDE + 2 * FRAME
        sheet = Image.new("RGB", (ACROSS * cell, max(1, len(self.compositions)) * cell), "white")
        for y, c in enumerate(self.compositions):
            for x, (row, picture) in enumerate(self.kept[c]):
                right = tuple(self.answers[row].tolist()) == c
                framed = Image.new("RGB", (cell - 2, cell - 2), RIGHT if right else WRONG)
                framed.paste(Image.fromarray(picture), (FRAME - 1, FRAME - 1))
                sheet.paste(framed, (x * cell, y * cell))
        buffer = BytesIO()
        sheet.save(buffer, "webp", quality=88, method=4)
        return buffer.getvalue()
