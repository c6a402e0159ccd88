"""The exact model of composition as runs: its answers over time in one world, and how long they
take."""

import math
from dataclasses import field

import torch

from recombine.config import ALWAYS, config
from recombine.limits import check_memory, check_updates
from recombine.pipeline.job import Task, Work
from recombine.store import Row
from recombine.theory.products import NARROW, Corner, Products
from recombine.worlds.factors import code

VERSION = 1
"""Rises when what is computed changes."""
Triple = tuple[int, int, int]
"""Shape, colour, size."""
SEEN: tuple[Triple, ...] = ((0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0))
UNSEEN: tuple[Triple, ...] = ((0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1, 1))
Spread = tuple[float, float]
"""Of colour and of size inside a class, in halves of the distance between classes."""


def corners(circles: Spread, triangles: Spread) -> tuple[Corner, ...]:
    """What is seen, with the spread among circles and among triangles."""
    spread = (circles, triangles)
    return tuple(Corner(at, (0.0, *spread[at[0]])) for at in SEEN)


def times(end: float, steps: int) -> list[float]:
    """From 0.1 to `end`, evenly in the logarithm."""
    return [10 ** (-1 + i * (math.log10(end) + 1) / (steps - 1)) for i in range(steps)]


def agreement(model: Products, prompted: Triple, at: list[float]) -> list[float]:
    """The worst of colour and size: 1 where both are as prompted for, -1 where one is the
    opposite."""
    target = 2.0 * torch.tensor(prompted, dtype=torch.float64) - 1
    return (model.answers(prompted, at) * target)[:, 1:].min(1).values.tolist()


@config("run/interactions")
class InteractionsRun(Task):
    """The answers to all unseen compositions in one world: rows of kind `answer`, over time, and
    `end`."""

    noun = "exact model"
    prior: tuple[float, float, float]
    circles: Spread
    triangles: Spread
    end: float
    steps: int
    version: int = field(default=VERSION, metadata=ALWAYS)

    def check(self) -> None:
        """A lower bound: a row for every time and composition."""
        check_memory(8 * len(UNSEEN) * self.steps, self.noun)
        check_updates(len(UNSEEN) * self.steps, self.noun)

    def run(self, work: Work) -> list[Row]:
        model = Products(corners(self.circles, self.triangles), self.prior)
        at, rows = times(self.end, self.steps), []
        for prompted in UNSEEN:
            named = {"composition": code(prompted)}
            *path, last = agreement(model, prompted, [*at, math.inf])
            for t, value in zip(at, path, strict=True):
                rows.append({"kind": "answer", **named, "time": t, "agreement": value})
            rows.append({"kind": "end", **named, "agreement": last})
        return rows


@config("run/interactions-pace")
class PaceRun(Task):
    """When small triangles, red ones and blue ones, first agree to nine tenths with the prompt, by
    the spread of all pictures: rows of kind `pace`."""

    noun = "exact model, pace"
    prior: tuple[float, float, float]
    widest: float
    version: int = field(default=VERSION, metadata=ALWAYS)

    def run(self, work: Work) -> list[Row]:
        rows: list[Row] = []
        for spread in (self.widest / 2 ** (k / 2) for k in range(9)):
            if spread < NARROW:
                continue
            model = Products(corners((spread, spread), (spread, spread)), self.prior)
            for prompted in ((1, 0, 1), (1, 1, 1)):
                when = first_time(model, prompted, 0.9)
                if when < math.inf:
                    about = {"kind": "pace", "spread": spread, "composition": code(prompted)}
                    rows.append(about | {"time": when})
        return rows


def first_time(model: Products, prompted: Triple, least: float) -> float:
    """When an answer first agrees so well, to five digits; inf where it never does."""
    grid = [10 ** (i / 10) for i in range(-10, 131)]
    reached = [i for i, a in enumerate(agreement(model, prompted, grid)) if a >= least]
    if not reached or not reached[0]:
        return math.inf
    low, high = (math.log(grid[i]) for i in (reached[0] - 1, reached[0]))
    while high - low > 1e-5:
        middle = (low + high) / 2
        early = agreement(model, prompted, [math.exp(middle)])[0] >= least
        low, high = (low, middle) if early else (middle, high)
    return math.exp(high)
