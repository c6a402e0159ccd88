"""Numbers of claims as tables and sentences of docs/ say them."""

from collections.abc import Iterable
from typing import Any


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


def number(value: float) -> str:
    return f"{value:.2f}".replace("-0.00", "0.00")
