"""A part of a claim as a bar: the expected region, the interval, the estimate and the paper's own
number on one axis."""

import re
from dataclasses import dataclass

from recombine.report.read import ClaimEntry, PartEntry, Value

LEVEL = re.compile(r"(.*), (level \d+|seen)$")
PREFIXES = ("K_max of ", "K_max, ", "real ")


@dataclass(frozen=True)
class Bar:
    """Places on the axis from `low` to `high`, in percent of its length."""

    low: float
    high: float
    region: tuple[float, float]
    estimate: float
    interval: tuple[float, float] | None
    paper: float | None
    paper_value: float | None

    @property
    def zero(self) -> float | None:
        """Where 0 is, if inside."""
        return -100 * self.low / (self.high - self.low) if self.low < 0 < self.high else None


def bar(claim: ClaimEntry, part: PartEntry | None = None) -> Bar | None:
    """The bar of a part, by itself the claim's first one that is a number."""
    numbers = [p for p in claim.parts if p.estimate is not None and p.expected != (None, None)]
    part = part or next(iter(numbers), None)
    if part is None or part not in numbers:
        return None
    paper = paper_number(claim, part.name)
    low, high = axis([part.estimate, *(part.interval or ()), *part.expected, paper])

    def place(value: float) -> float:
        return round(100 * min(1.0, max(0.0, (value - low) / (high - low))), 2)

    ends = (low if part.expected[0] is None else part.expected[0],
            high if part.expected[1] is None else part.expected[1])  # fmt: skip
    interval = (place(part.interval[0]), place(part.interval[1])) if part.interval else None
    region = (place(ends[0]), place(ends[1]))
    at = None if paper is None else place(paper)
    return Bar(low, high, region, place(part.estimate), interval, at, paper)


def axis(values: list[float | None]) -> tuple[float, float]:
    """0 to 1 for rates, -1 to 1 for their differences, else a little more than what is shown."""
    known = [v for v in values if v is not None]
    least, most = min(known), max(known)
    if most <= 1:
        return (0.0, 1.0) if least >= 0 else (-1.0, 1.0) if least >= -1 else (1.1 * least, 1.0)
    return (0.0 if least >= 0 else 1.1 * least), 1.1 * most


def paper_number(claim: ClaimEntry, name: str) -> float | None:
    """What the paper has where a part says "dit, level 2", "jepa - dit, level 2" or "K_max of
    exp1": from the claim's `paper_dit` and the like. None where it says nothing."""
    found = LEVEL.fullmatch(name)
    if found and found[2] == "seen":
        return None
    plain = found[1] if found else name
    for prefix in PREFIXES:
        plain = plain.removeprefix(prefix)
    values = [_number(claim.measured.get(f"paper_{one}")) for one in plain.split(" - ", 1)]
    if not values or any(v is None for v in values):
        return None
    return values[0] - values[1] if len(values) == 2 else values[0]


def _number(value: Value) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
