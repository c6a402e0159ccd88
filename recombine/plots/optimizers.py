"""The figures of `optimizers`: held-out loss and what is read of every level, by rate; and
samples."""

from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from matplotlib.lines import Line2D

from recombine.analysis.frames import pl
from recombine.analysis.levels import per_seed
from recombine.analysis.optimizers import USED, best_setting, diverged_of, families_of, held_out
from recombine.analysis.paper_probe import PAPER, with_paper_probe
from recombine.analysis.table import Table
from recombine.plots.locality import log_ticks
from recombine.plots.scene_pictures import cut
from recombine.plots.sheets import sheet_path
from recombine.plots.style import CYCLE, GREY, INK, Figure, canvas, display

VALUES = (("circle", "triangle"), ("red", "blue"), ("large", "small"))
"""Of the paper's shapes, colours and sizes."""
DASHES = {"not clipped": "-", "clipped": ":"}
SHOWN = 4
"""Samples of a combination."""
LEVELS = (("seen", 0, "oracle"), ("level 1", 1, PAPER), ("level 2", 2, PAPER))
"""What is shown below the loss, and by which probe."""


def figures(rows: Table, folder: Path) -> list[Figure]:
    rows = with_paper_probe(rows)
    return [by_rate(rows, folder), *samples(rows, folder)]


def name_of(composition: str) -> str:
    """011 -> small blue circle."""
    return " ".join(VALUES[i][int(composition[i])] for i in (2, 1, 0))


def samples(rows: Table, folder: Path) -> list[Figure]:
    """Compositions that lack a seen neighbour, of each family at the setting that suits it best, in
    the seeds of which all sheets are on disk."""
    scored = rows.where(kind="accuracy")
    codes, last = sorted(scored.unique("composition")), max(scored.unique("step"))
    unseen = sorted(scored.filter(pl.col("level") > 0).unique("composition"))
    families = families_of(rows)
    best = {f: some[best_setting(rows, some)] for f, some in families.items()}
    read = {f: per_seed(rows, v, 2, probe=PAPER) for f, v in best.items()}
    every = set().union(*read.values())
    sheets = {(f, s): sheet_path(folder, v, s, last) for f, v in best.items() for s in every}
    seeds = sorted(s for s in every if all(sheets[f, s].is_file() for f in best))
    if not seeds:
        return []
    figure = Figure(
        "samples",
        "Samples of unseen combinations, by seed",
        "Each family with the setting that has the lowest held-out loss, at the end of training, all "
        f"labels given. Lines of a panel, from above: {', '.join(map(name_of, unseen))}, of which the "
        "last is level 2; above a panel the share of these that the paper's linear probe (the mean over "
        "its seeds) reads as prompted.",
    )
    size = (1.45 * len(seeds) + 0.3, (0.37 * len(unseen) + 0.3) * len(families))
    shape = (len(families), len(seeds))
    with canvas(folder, figure, *shape, size=size, squeeze=False) as axes:
        for (row, column), axis in np.ndenumerate(axes):
            family, seed = list(families)[row], seeds[column]
            cells = [
                [cut(sheets[family, seed], len(codes), codes.index(c), k) for k in range(SHOWN)]
                for c in unseen
            ]
            axis.imshow(
                np.concatenate([np.concatenate(c, 1) for c in cells]), interpolation="nearest"
            )
            axis.set_title(f"{display(family)}, seed {seed}: {read[family][seed]:.2f}", fontsize=7)
            axis.axis("off")
    return [figure]


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
