"""The figure of `optimizers`: held-out loss and what is learned of seen compositions, by rate."""

from pathlib import Path
from statistics import fmean
from typing import Any

from recombine.analysis.levels import per_seed
from recombine.analysis.optimizers import USED, best_setting, families_of, held_out
from recombine.analysis.table import Table
from recombine.plots.locality import log_ticks
from recombine.plots.style import CYCLE, INK, Figure, canvas, display


def figures(rows: Table, folder: Path) -> list[Figure]:
    return [by_rate(rows, folder)]


def by_rate(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "rates",
        "Learning rate and clipping, by what was seen",
        "Above: the loss on held-out pictures of seen compositions, each family in its own unit. "
        "Below: seen accuracy by the oracle, late means. Dots are seeds; a ring is the setting with "
        "the lowest loss, a square the one that `label-dropout` uses.",
    )
    families = families_of(rows)
    size, many = (2.6 * len(families) + 1.6, 4.6), {"squeeze": False, "sharex": True}
    with canvas(folder, figure, 2, len(families), size=size, **many) as axes:
        for column, (family, settings) in zip(axes.T, families.items(), strict=True):
            panel(column[0], settings, {s: held_out(rows, v) for s, v in settings.items()})
            seen = {s: per_seed(rows, v, 0, probe="oracle") for s, v in settings.items()}
            panel(column[1], settings, seen)
            highlight(column, rows, settings, seen)
            column[0].set_title(display(family))
            column[1].set(xscale="log", xlabel="learning rate", ylim=(-0.03, 1.03))
            log_ticks(column[1].xaxis)
        axes[0][0].set_ylabel("held-out loss")
        axes[1][0].set_ylabel("seen")
        axes[0][-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
    return figure


def split(setting: str) -> tuple[float, str]:
    """ "0.001, clipped at 1" -> its rate and its clipping."""
    rate, _, clipping = setting.partition(", ")
    return float(rate), clipping


def panel(axis: Any, settings: dict[str, str], values: dict[str, dict[int, float]]) -> None:
    """One line for each way of clipping, one point for each rate."""
    clippings = dict.fromkeys(split(s)[1] for s in settings)
    for clipping, ink in zip(clippings, CYCLE, strict=False):
        mine = {split(s)[0]: list(values[s].values()) for s in settings if split(s)[1] == clipping}
        means = [fmean(mine[rate]) for rate in sorted(mine)]
        axis.plot(sorted(mine), means, color=ink, label=clipping)
        for rate, seeds in mine.items():
            axis.plot([rate] * len(seeds), seeds, "o", color=ink, ms=4)


def highlight(column: Any, rows: Table, settings: dict[str, str], seen: dict[str, Any]) -> None:
    """The best setting and the one in use."""
    shapes = {best_setting(rows, settings): "o", **({USED: "s"} if USED in settings else {})}
    for setting, shape in shapes.items():
        ends = fmean(held_out(rows, settings[setting]).values()), fmean(seen[setting].values())
        for axis, y in zip(column, ends, strict=True):
            style = {"color": INK, "mfc": "none", "ms": 11, "ls": ""}
            axis.plot([split(setting)[0]], [y], shape, **style)
