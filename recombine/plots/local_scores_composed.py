"""The figures of `local-scores` on mean directions and on composed scores."""

from pathlib import Path

import numpy as np

from recombine.analysis.table import Table
from recombine.plots.local_scores import BLUE, GREY, RED, VIOLET, picture, table
from recombine.plots.style import INK, Figure, canvas, color_bar


def figures(rows: Table, folder: Path) -> list[Figure]:
    rows = rows.where(seed=0)
    return [part(rows, folder) for part in (cosines, lamps, maps)]


def cosines(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "cosines",
        "Orthogonal directions: necessary, not sufficient, dependent on coordinates",
        "Cosines between the directions dᵢ = E[x | cᵢ] − E[x | nothing]. Zero under a composition "
        "and any rotation of it; not through a skewed or a curved map of the same law; and zero "
        "too in a law that is no composition. First seed; the claim takes the largest over seeds.",
    )
    found = rows.where(kind="cosine")
    cases = list(dict.fromkeys(found.column("case")))
    with canvas(folder, figure, 1, len(cases), (9.6, 2.5)) as axes:
        for axis, case in zip(axes, cases, strict=True):
            matrix = table(found.where(case=case), "i", "j", "cosine")
            image = picture(axis, matrix, vmin=-1, vmax=1, cmap="RdBu_r")
            worst = np.abs(matrix - np.diag(np.diag(matrix))).max()
            axis.set_title(case, loc="center", fontsize=10)
            axis.set_xlabel(
                f"largest {worst:.2f}"
                if worst > 1e-9
                else "exactly 0"
                if worst == 0
                else "0 (rounding)"
            )
            axis.set_xticks([])
            axis.set_yticks([])
        axes[0].set_yticks(range(len(matrix)), [f"d{i + 1}" for i in range(len(matrix))])
        color_bar(image, axes, shrink=0.8, pad=0.015, ticks=[-1, 0, 1])
    return figure


def lamps(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "lamps",
        "Composing single lamps: the background decides",
        "Each part lights one lamp; the composition is prompted for those marked ▾. One line is "
        "one sample drawn with exact composed scores. Over the empty background all are lit. Over "
        "the average of the parts (Bayes composition) the background takes the lamps away again "
        "and each is left at about one part in the number of parts. Where other lamps are on by "
        "chance, independently, both backgrounds work. First seed.",
    )
    summary, found = rows.where(kind="lamps"), rows.where(kind="lamp")
    with canvas(folder, figure, 1, len(summary), (9.6, 4.0), sharey=True) as axes:
        for axis, row in zip(axes, summary, strict=True):
            mine = found.where(background=row["background"])
            image = picture(
                axis,
                table(mine, "sample", "lamp", "brightness"),
                vmin=0,
                vmax=1,
                cmap="inferno",
                aspect="auto",
            )
            prompted = mine.where(sample=0).column("prompted")
            axis.set_xticks(range(len(prompted)))
            axis.set_yticks([])
            for lamp in np.flatnonzero(prompted):
                axis.text(lamp, -0.7, "▾", ha="center", va="bottom", color=RED, fontsize=12)
            axis.set_title(LAMP_TITLES[row["background"]], loc="center", pad=16, fontsize=10)
            axis.set_xlabel(
                f"all lit in {100 * row['all_lit']:.0f} %\nmean brightness {row['brightness']:.2f}"
            )
        axes[0].set_ylabel("samples")
        color_bar(image, axes, shrink=0.8, pad=0.015, ticks=[0, 0.5, 1])
    return figure


LAMP_TITLES = {
    "empty": "empty background",
    "average": "Bayes: average of parts",
    "empty, cluttered": "cluttered, independent",
    "average, cluttered": "cluttered, Bayes",
}


def maps(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "maps",
        "Through which maps may one compose scores?",
        "Two independent features, seen through four invertible maps. Dots: where the composition "
        "should put its mass (area) and how much too much (red) or too little (blue) reverse "
        "diffusion with composed scores puts there. Right: how far the composed denoiser is from "
        "the composition's own: not at all for rotations; for other maps it is right where there "
        "is no noise left and wrong on the way there.",
    )
    names = list(dict.fromkeys(rows.where(kind="map").column("map")))
    with canvas(
        folder, figure, 1, len(names) + 1, (11.4, 2.9), width_ratios=(*[1] * len(names), 1.5)
    ) as axes:
        for axis, name in zip(axes, names, strict=False):
            cells, summary = rows.where(kind="cell", map=name), rows.one(kind="map", map=name)
            want, got = (np.array(cells.column(way)) for way in ("target", "composed"))
            axis.scatter(
                cells.column("x"),
                cells.column("y"),
                s=np.maximum(want, got) * 1200 + 2,
                c=got - want,
                cmap="RdBu_r",
                vmin=-0.02,
                vmax=0.02,
                edgecolors=GREY,
                linewidths=0.4,
            )
            axis.set(aspect="equal", xlim=(-3.7, 3.7), ylim=(-3.0, 3.0), xticks=[], yticks=[])
            axis.set_title(name, loc="center")
            axis.spines[:].set_visible(False)
            axis.set_xlabel(
                f"off by {summary['composed']:.2f}\n(sampling alone {summary['exact']:.2f})",
                color=INK,
            )
        for name, colour, style in zip(
            names, (GREY, BLUE, RED, VIOLET), ("-", "--", "-", "-"), strict=True
        ):
            curve = rows.where(kind="mismatch", map=name)
            axes[-1].plot(curve.column("t"), curve.column("off"), style, color=colour, label=name)
        top = 1.4 * max(rows.where(kind="mismatch").column("off"))
        axes[-1].set(
            xlabel="time t (0 clean, 1 noise)",
            title="error of the composed denoiser",
            ylim=(-0.04 * top, top),
        )
        axes[-1].legend(loc="upper center", ncols=2)
    return figure
