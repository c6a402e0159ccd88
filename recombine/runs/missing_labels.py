"""The exact model of composition where labels are left out of training: its answers over time, and
how soon they are lost."""

import math
from dataclasses import field

import torch

from recombine.config import ALWAYS, config
from recombine.limits import check_memory, check_updates
from recombine.pipeline.job import Task, Work
from recombine.runs.interactions import SEEN, UNSEEN, Triple, corners, times
from recombine.store import Row
from recombine.theory.products import Dropped, Products
from recombine.worlds.factors import code

VERSION = 1
"""Rises when what is computed changes."""


@config("run/missing-labels")
class MissingLabelsRun(Task):
    """Rows of kind `answer`, over time, and `end`, for every composition: the agreement of the worst
    factor with the prompt, all labels given (1 = as prompted, -1 = the opposite). `missing`: how
    often training leaves a label out, and `dropped` how, as in `Products`. `spread`: of colour and
    size inside a class, which the labels give; 0 where they give the class alone."""

    noun = "exact model"
    prior: float
    missing: float
    dropped: Dropped
    spread: float
    end: float
    steps: int
    version: int = field(default=VERSION, metadata=ALWAYS)

    def check(self) -> None:
        """A lower bound: a row for every time and composition."""
        rows = len(SEEN + UNSEEN) * self.steps
        check_memory(8 * rows, self.noun)
        check_updates(rows, self.noun)

    def run(self, work: Work) -> list[Row]:
        spread = (self.spread, self.spread)
        prior = (self.prior,) * 3
        model = Products(corners(spread, spread), prior, self.missing, self.dropped)
        at, rows = times(self.end, self.steps), []
        for prompted in SEEN + UNSEEN:
            named = {"composition": code(prompted)}
            *path, last = worst(model, prompted, [*at, math.inf])
            for t, value in zip(at, path, strict=True):
                rows.append({"kind": "answer", **named, "time": t, "agreement": value})
            rows.append({"kind": "end", **named, "agreement": last})
        return rows


def worst(model: Products, prompted: Triple, at: list[float]) -> list[float]:
    """The agreement of the worst factor with the prompt, at each time."""
    target = 2.0 * torch.tensor(prompted, dtype=torch.float64) - 1
    return (model.answers(prompted, at) * target).min(1).values.tolist()
