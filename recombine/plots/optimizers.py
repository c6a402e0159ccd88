"""The figures of `optimizers`: held-out loss and what is read of every level, by rate; and
samples."""

from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from recombine.analysis.frames import pl
from recombine.analysis.levels import per_seed
from recombine.analysis.optimizers import USED, best_setting, families_of, held_out
from recombine.analysis.paper_probe import PAPER, with_paper_probe
from recombine.analysis.table import Table
from recombine.plots.locality import log_ticks
from recombine.plots.scene_pictures import cut
from recombine.plots.sheets import sheet_path
from recombine.plots.style import CYCLE, INK, Figure, canvas, display

VALUES = (("circle", "triangle"), ("red", "blue"), ("large", "small"))
"""Of the paper's shapes, colours and sizes."""
SHOWN = 4
"""Samples of a combination."""
LEVELS = (("seen", 0, "oracle"), ("level 1", 1, PAPER), ("level 2", 2, PAPER))
"""What is shown below the loss, and by which probe."""


def figures(rows: Table, folder: Path) -> list[Figure]:
    return [by_rate(with_paper_probe(rows), folder), *samples(rows, folder)]


def name_of(composition: str) -> str:
    """011 -> small blue circle."""
    return " ".join(VALUES[i][int(composition[i])] for i in (2, 1, 0))


def samples(rows: Table, folder: Path) -> list[Figure]:
    """Of the compositions that lack a seen neighbour, in the first seed; nothing where a sheet is not
    on disk."""
    scored = rows.where(kind="accuracy")
    codes, seed = sorted(scored.unique("composition")), min(scored.unique("seed"))
    unseen = sorted(scored.filter(pl.col("level") > 0).unique("composition"))
    families = families_of(rows)
    sheets = {
        (family, setting): sheet_path(folder, variant, seed, max(scored.unique("step")))
        for family, settings in families.items()
        for setting, variant in settings.items()
    }
    if not all(path.is_file() for path in sheets.values()):
        return []
    figure = Figure(
        "samples",
        "Samples of unseen combinations, by learning rate and clipping",
        f"Seed {seed}, at the end of training, all labels given. Lines from above: "
        f"{', '.join(map(name_of, unseen))}, of which the last is level 2.",
    )
    most = max(map(len, families.values()))
    size = (1.75 * most + 0.4, (0.44 * len(unseen) + 0.4) * len(families))
    with canvas(folder, figure, len(families), most, size=size, squeeze=False) as axes:
        for line, (family, settings) in zip(axes, families.items(), strict=True):
            for axis in line:
                axis.axis("off")
            for axis, setting in zip(line, settings, strict=False):
                sheet = sheets[family, setting]
                cells = [
                    [cut(sheet, len(codes), codes.index(c), k) for k in range(SHOWN)]
                    for c in unseen
                ]
                axis.imshow(
                    np.concatenate([np.concatenate(c, 1) for c in cells]), interpolation="nearest"
                )
                axis.set_title(f"{display(family)}, {setting}", fontsize=7)
    return [figure]


def by_rate(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "rates",
        "Learning rate and clipping, all labels given",
        "Above: the loss on held-out pictures of seen compositions, each family in its own unit. "
        "Below, late means: seen accuracy by the oracle, levels 1 and 2 by the paper's linear probe "
        "(the mean over its seeds). Dots are seeds; a ring is the setting with the lowest loss of those "
        "that were run, a square the one that `label-dropout` uses. Unseen levels have no part in the "
        "choice. Sizes overlap: of real pictures of seen compositions the oracle reads 0.80.",
    )
    families = families_of(rows)
    size = (2.6 * len(families) + 1.6, 2.0 * (1 + len(LEVELS)) + 0.6)
    many = {"squeeze": False, "sharex": True}
    with canvas(folder, figure, 1 + len(LEVELS), len(families), size=size, **many) as axes:
        for column, (family, settings) in zip(axes.T, families.items(), strict=True):
            shown = [{s: held_out(rows, v) for s, v in settings.items()}]
            shown += [
                {s: per_seed(rows, v, level, probe=probe) for s, v in settings.items()}
                for _, level, probe in LEVELS
            ]
            for axis, values in zip(column, shown, strict=True):
                panel(axis, settings, values)
                highlight(axis, best_setting(rows, settings), values)
            for axis in column[1:]:
                axis.set(xscale="log", ylim=(-0.03, 1.03))
            column[0].set_title(display(family))
            column[-1].set_xlabel("learning rate")
            log_ticks(column[-1].xaxis)
        for axis, name in zip(axes[:, 0], ("held-out loss", *(l[0] for l in LEVELS)), strict=True):
            axis.set_ylabel(name)
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


def highlight(axis: Any, best: str, values: dict[str, dict[int, float]]) -> None:
    """The best setting and the one in use."""
    style = {"color": INK, "mfc": "none", "ms": 11, "ls": ""}
    for setting, shape in ((best, "o"), (USED, "s")):
        if setting in values:
            axis.plot([split(setting)[0]], [fmean(values[setting].values())], shape, **style)
