"""The figures of `optimizers`: held-out loss and what is read of every level, by rate; and
samples."""

from pathlib import Path
from statistics import fmean
from typing import Any

from matplotlib.lines import Line2D

from recombine.analysis.levels import per_seed
from recombine.analysis.optimizers import USED, best_setting, diverged_of, families_of, held_out
from recombine.analysis.paper_probe import PAPER, with_paper_probe
from recombine.analysis.table import Table
from recombine.plots.boards import boards
from recombine.plots.locality import log_ticks
from recombine.plots.style import CYCLE, GREY, INK, Figure, canvas, display

DASHES = {"not clipped": "-", "clipped": ":"}
LEVELS = (("seen", 0, "oracle"), ("level 1", 1, PAPER), ("level 2", 2, PAPER))
"""What is shown below the loss, and by which probe."""


def figures(rows: Table, folder: Path) -> list[Figure]:
    rows = with_paper_probe(rows)
    return [by_rate(rows, folder), *samples(rows, folder)]


def samples(rows: Table, folder: Path) -> list[Figure]:
    """Of each family at the setting that suits it best."""
    best = {some[best_setting(rows, some)]: f for f, some in families_of(rows).items()}
    which = (
        "Each family with the setting that has the lowest held-out loss, at the end of training, all "
        "labels given."
    )
    return boards(rows, folder, best, which)


def by_rate(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "rates",
        "Learning rate and clipping, all labels given",
        "Above: the loss on held-out pictures of seen compositions, each family in its own unit. "
        "Below, late means: seen accuracy by the oracle, levels 1 and 2 by the paper's linear probe "
        "(the mean over its seeds). A colour is a seed, black the mean of settings that were run in all; "
        "a ring is the setting with the lowest loss of these, a square the one that `label-dropout` "
        "uses. Unseen levels have no part in the choice. Sizes overlap: of real pictures of seen "
        "compositions the oracle reads 0.80.",
    )
    families = families_of(rows)
    size = (2.6 * len(families) + 1.6, 2.0 * (1 + len(LEVELS)) + 0.6)
    many = {"squeeze": False, "sharex": True}
    with canvas(folder, figure, 1 + len(LEVELS), len(families), size=size, **many) as axes:
        for column, (family, whole) in zip(axes.T, families.items(), strict=True):
            settings = settings_of(rows, family)
            shown = [{s: held_out(rows, v) for s, v in settings.items()}]
            shown += [
                {s: per_seed(rows, v, level, probe=probe) for s, v in settings.items()}
                for _, level, probe in LEVELS
            ]
            for axis, values in zip(column, shown, strict=True):
                lines_of_seeds(axis, values)
                means(
                    axis, {s: fmean(values[s].values()) for s in whole}, best_setting(rows, whole)
                )
            for axis in column[1:]:
                axis.set(xscale="log", ylim=(-0.03, 1.03))
            column[0].set_title(display(family))
            column[-1].set_xlabel("learning rate")
            log_ticks(column[-1].xaxis)
        for axis, name in zip(axes[:, 0], ("held-out loss", *(l[0] for l in LEVELS)), strict=True):
            axis.set_ylabel(name)
        legend(axes[0][-1], rows)
    return figure


def settings_of(rows: Table, family: str) -> dict[str, str]:
    """Setting -> variant: all that were run of a family and did not diverge."""
    variants = rows.where(kind="held-out loss").unique("variant")
    mine = [v for v in variants if v.startswith(f"{family}, ") and v not in diverged_of(rows)]
    return {v.partition(", ")[2]: v for v in mine}


def split(setting: str) -> tuple[float, str]:
    """ "0.001, clipped at 1" -> its rate and its clipping."""
    rate, _, clipping = setting.partition(", ")
    return float(rate), clipping


def lines_of_seeds(axis: Any, values: dict[str, dict[int, float]]) -> None:
    """For each seed a line over rates, dashed where gradients are clipped."""
    for seed in sorted({seed for each in values.values() for seed in each}):
        for clipping, dash in DASHES.items():
            unclipped = clipping == "not clipped"
            mine = {
                split(s)[0]: v[seed]
                for s, v in values.items()
                if seed in v and (split(s)[1] == "not clipped") == unclipped
            }
            if not (x := sorted(mine)):
                continue
            style = {"color": CYCLE[seed % len(CYCLE)], "ls": dash, "marker": "o", "ms": 3.5}
            axis.plot(x, [mine[rate] for rate in x], lw=1, alpha=0.8, **style)


def means(axis: Any, values: dict[str, float], best: str) -> None:
    """Over seeds, not clipped; the best setting and the one in use."""
    plain = {split(s)[0]: y for s, y in values.items() if split(s)[1] == "not clipped"}
    axis.plot(sorted(plain), [plain[rate] for rate in sorted(plain)], color=INK, lw=2)
    style = {"color": INK, "mfc": "none", "ms": 11, "ls": ""}
    for setting, shape in ((best, "o"), (USED, "s")):
        if setting in values:
            axis.plot([split(setting)[0]], [values[setting]], shape, **style)


def legend(axis: Any, rows: Table) -> None:
    """Seeds, clipping and the mean, right of the panels."""
    seeds = sorted(rows.where(kind="held-out loss").unique("seed"))
    lines = [Line2D([], [], color=CYCLE[s % len(CYCLE)], marker="o", ms=3.5, lw=1) for s in seeds]
    lines += [Line2D([], [], color=GREY, ls=dash, lw=1) for dash in DASHES.values()]
    names = [*(f"seed {s}" for s in seeds), *DASHES, "mean"]
    lines.append(Line2D([], [], color=INK, lw=2))
    axis.legend(lines, names, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
