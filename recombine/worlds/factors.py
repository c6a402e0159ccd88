"""Factors, compositions of them, conditions on them, and the split into seen compositions and
levels of novelty."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from recombine.limits import allow

Composition = tuple[int, ...]
ROW_KEYS = (
    "kind",
    "step",
    "composition",
    "level",
    "probe",
    "n",
    "joint",
    "low",
    "high",
    "variant",
    "seed",
    "run",
    "scale",
)
RESERVED = frozenset(ROW_KEYS)
"""Names that rows use for other things; no factor may be called so."""
PROMPTS = ("prompt", "text", "caption")
ASIDE = {"split", "id", "index", "width", "height", "guidance", "steps", "model", *PROMPTS}
"""Columns that describe a picture but not what it shows; factors only where they are chosen."""
NAMED = 20
"""Values of a factor that are named where all are listed."""


@dataclass(frozen=True)
class Factor:
    """One factor: its name, its values, and how many real numbers describe it exactly (0: the
    value's index alone). `centre` and `unit` say where those numbers lie and how far apart, so that
    all factors can be embedded at the same scale."""

    name: str
    values: tuple[str, ...]
    dim: int = 0
    centre: tuple[float, ...] = field(default=(), repr=False)
    unit: tuple[float, ...] = field(default=(), repr=False)

    @property
    def words(self) -> str:
        """Its values, the first ones where there are many."""
        shown, count = "/".join(self.values[:NAMED]), len(self.values)
        return shown if count <= NAMED else f"{shown}/... ({count:,} values)"


def plain_value(value: str) -> str:
    """What two spellings of a value share: "Dark  Red " and "dark red" are the same."""
    return " ".join(value.split()).lower()


def aside_note(column: str) -> str:
    return f"column {column!r} is left out: it is no factor"


def merged_note(name: str, spellings: Sequence[str]) -> str:
    """Says which spellings of a factor's values are taken for the same."""
    return (
        f"{name}: capitals and spaces make no difference in {', '.join(map(repr, spellings[:6]))}"
    )


@dataclass(frozen=True)
class FactorSpace:
    """The factors of a world, in order. A composition is one value index per factor."""

    factors: tuple[Factor, ...]

    def __post_init__(self) -> None:
        if taken := [f.name for f in self.factors if f.name in RESERVED]:
            raise ValueError(
                f"a factor cannot be called {taken[0]!r}; reserved are "
                f"{', '.join(sorted(RESERVED))}"
            )
        if any(len(f.values) < 1 for f in self.factors):
            raise ValueError("every factor needs at least one value")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.factors)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(f.values) for f in self.factors)

    @property
    def dims(self) -> tuple[int, ...]:
        return tuple(f.dim for f in self.factors)

    @property
    def count(self) -> int:
        """How many compositions there are; they need not be enumerated for it."""
        return math.prod(self.sizes)

    @cached_property
    def compositions(self) -> tuple[Composition, ...]:
        allow("compositions", self.count, f"a space of {len(self.factors)} factors")
        return tuple(itertools.product(*(range(n) for n in self.sizes)))

    def has(self, composition: Composition) -> bool:
        """Whether it is one of the compositions."""
        fits = len(composition) == len(self.factors)
        return fits and all(0 <= i < n for i, n in zip(composition, self.sizes, strict=True))

    @property
    def words(self) -> str:
        """All factors with their values: "shape circle/triangle, color red/blue"."""
        return ", ".join(f"{f.name} {f.words}" for f in self.factors)

    def describe(self, composition: Composition) -> str:
        """`(0, 1, 1)` -> "circle blue small"."""
        return " ".join(f.values[i] for f, i in zip(self.factors, composition, strict=True))

    def __repr__(self) -> str:
        return f"FactorSpace({self.words})"


def code(composition: Composition) -> str:
    """The short name of a composition, `(0, 1, 1)` -> "011"; dots where an index has two digits."""
    return ("" if max(composition, default=0) < 10 else ".").join(map(str, composition))


class Condition(NamedTuple):
    """What a model is given about each picture. A factor that is not `present` was dropped: the
    model sees its null."""

    index: Int[Tensor, "b k"]
    value: Float[Tensor, "b v"]
    present: Bool[Tensor, "b k"]

    def to(self, device: torch.device | str) -> "Condition":
        return Condition(*(t.to(device) for t in self))

    def rows(self, which: slice | Tensor) -> "Condition":
        """The conditions of some of the pictures."""
        return Condition(self.index[which], self.value[which], self.present[which])

    def keep(self, mask: Bool[Tensor, "b k"]) -> "Condition":
        """Drop the factors where `mask` is False."""
        return self._replace(present=self.present & mask)

    def zeroed(self, mask: Bool[Tensor, "#b k"], dims: tuple[int, ...]) -> "Condition":
        """Set index and values to zero where `mask` is False; `dims` says how many values each
        factor has."""
        wide = torch.cat([mask[:, i : i + 1].expand(-1, d) for i, d in enumerate(dims)], dim=1)
        return self._replace(index=self.index * mask, value=self.value * wide)

    def null(self) -> "Condition":
        """Everything dropped."""
        return self._replace(present=torch.zeros_like(self.present))


@dataclass(frozen=True)
class Split:
    """Which compositions were seen in training. A composition's level is the least number of
    factors in which it differs from any seen one: 0 = seen."""

    seen: tuple[Composition, ...]

    def __post_init__(self) -> None:
        if not self.seen:
            raise ValueError("a split needs at least one seen composition")
        if len({len(c) for c in self.seen}) > 1:
            raise ValueError("all seen compositions need the same number of factors")

    def level(self, composition: Composition) -> int:
        return min(sum(a != b for a, b in zip(composition, s, strict=True)) for s in self.seen)

    def levels(self, space: FactorSpace) -> dict[int, tuple[Composition, ...]]:
        """The compositions of `space`, by level."""
        by_level: dict[int, list[Composition]] = {}
        seen = torch.tensor(self.seen)
        for some in torch.tensor(space.compositions).split(1000):
            levels = torch.full((len(some),), len(space.factors))
            for part in seen.split(1000):
                levels = levels.minimum((some[:, None] != part).sum(-1).amin(1))
            for level, composition in zip(levels.tolist(), some.tolist(), strict=True):
                by_level.setdefault(level, []).append(tuple(composition))
        return {level: tuple(by_level[level]) for level in sorted(by_level)}

    def __repr__(self) -> str:
        return f"Split(seen: {' '.join(map(code, self.seen))})"


def at_most_one_new(space: FactorSpace, old: tuple[int, ...] | None = None) -> Split:
    """Seen: every composition in which at most one factor leaves its first `old` values (default:
    its first value). Three binary factors give the papers' split: seen 000 001 010 100, level 1 011
    101 110, level 2 111."""
    old = old or (1,) * len(space.factors)
    ranges = [range(n) for n in old]
    seen = set(itertools.product(*ranges))
    for k, (n, size) in enumerate(zip(old, space.sizes, strict=True)):
        seen |= set(itertools.product(*ranges[:k], range(n, size), *ranges[k + 1 :]))
    return Split(tuple(sorted(seen)))
