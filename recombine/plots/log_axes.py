"""Logarithmic axes with a few plain numbers on them."""

import math
from typing import Any


def log_ticks(axis: Any) -> None:
    """Ticks at 1, 3, 10, 30 ... (1, 2, 5, 10 ... where the range is short), written out; none in
    between."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = axis.get_view_interval()
    locations = (
        (1, 3) if high / low > 30 else (1, 2, 5) if high / low > 4 else (1, 1.5, 2, 3, 4, 5, 7)
    )
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    axis.set_major_locator(
        FixedLocator(
            [m * 10.0**k for k in decades for m in locations if low <= m * 10.0**k <= high]
        )
    )
    axis.set_major_formatter(FuncFormatter(_plain))
    axis.set_minor_locator(NullLocator())


def _plain(value: float, _: int) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"
