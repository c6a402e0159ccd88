"""Numbers of claims as tables and sentences of docs/ say them."""

from collections.abc import Iterable
from typing import Any

from recombine.plots.style import display

ENDINGS = {
    ", 0.001, not clipped": ", 1e-3, 3,000 updates",
    ", 0.0001, not clipped": ", 1e-4, 3,000 updates",
    ", all labels, lr 1e-3": ", 12 layers, 1e-3",
    ", lr 1e-3": ", 1e-3, 8,000 updates",
}
"""How studies name a rate, and what it is."""


def table_line(cells: Iterable[str]) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def shown(part: dict[str, Any]) -> str:
    low, high = part["interval"] or (None, None)
    interval = "" if low is None else f" [{number(low)}, {number(high)}]"
    return f"{number(part['estimate'])}{interval}"


def region(part: dict[str, Any]) -> str:
    """The expected region; a natural bound of rates and differences is left out."""
    low, high = part["expected"]
    if low is not None and (high is None or high >= 1):
        return f">= {low:g}"
    if not low:
        return f"<= {high:g}"
    return f"{low:g} to {high:g}"


def verdict(part: dict[str, Any]) -> str:
    """Of a part; where it is inconclusive though its whole interval lies outside its region, it says so:
    then the set-up may differ from the paper's, or there are too few seeds."""
    (low, high), interval = part["expected"], part["interval"]
    if part["verdict"] != "inconclusive" or not interval:
        return part["verdict"]
    outside = (low is not None and interval[1] < low) or (high is not None and interval[0] > high)
    return "inconclusive (outside)" if outside else "inconclusive"


def called(variant: str) -> str:
    """A variant as tables name it: by what differs, each rate and length in one way."""
    for ending, words in ENDINGS.items():
        variant = variant.replace(ending, words)
    return display(variant)


def number(value: float) -> str:
    return f"{value:.2f}".replace("-0.00", "0.00")
