"""The figures of `local-scores`, from the rows of the first seed."""

from pathlib import Path
from typing import Any

import numpy as np

from recombine.analysis.table import Table
from recombine.plots.style import CYCLE, GREY, Figure, canvas, color_bar

BLUE, RED, GREEN, VIOLET = CYCLE[:4]


def figures(rows: Table, folder: Path) -> list[Figure]:
    rows = rows.where(seed=0)
    return [part(rows, folder) for part in (jacobians, toggles, ties, kl)]


def table(rows: Table, first: str, second: str, value: str) -> np.ndarray:
    """Table as a matrix, by two of their columns in order of appearance."""
    layout = [list(dict.fromkeys(rows.column(name))) for name in (first, second)]
    matrix = np.full([len(p) for p in layout], np.nan)
    for row in rows:
        matrix[layout[0].index(row[first]), layout[1].index(row[second])] = row[value]
    return matrix


def picture(axis: Any, matrix: np.ndarray, **kwargs: Any) -> Any:
    """A matrix as coloured squares, without the grid and the frame."""
    axis.grid(False)
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)
    return axis.imshow(matrix, interpolation="nearest", **kwargs)


def spread_out(sigmas: list[float], count: int) -> list[float]:
    return [
        sigmas[i] for i in np.unique(np.linspace(0, len(sigmas) - 1, count).round().astype(int))
    ]


def jacobians(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "jacobian",
        "Which pixels the score depends on",
        "How strongly each pixel of the exact denoiser (row) depends on each noisy pixel (column),"
        " root mean square over pictures, log scale. Above: a projective composition, blind to its"
        " blocks, is block-diagonal to float precision at every noise level. Below: the same "
        "components weighted anew, no longer a composition.",
    )
    found = rows.where(kind="jacobian")
    sigmas = spread_out(sorted(set(found.column("sigma"))), 5)
    with canvas(folder, figure, 2, len(sigmas), (9.4, 4.1), squeeze=False) as axes:
        for line, law in zip(axes, ("CPC", "no CPC"), strict=True):
            for axis, sigma in zip(line, sigmas, strict=True):
                matrix = table(found.where(law=law, sigma=sigma), "out", "into", "size")
                image = picture(
                    axis, np.log10(np.maximum(matrix, 1e-16)), vmin=-4, vmax=0, cmap="magma"
                )
                axis.set_xticks([])
                axis.set_yticks([])
            line[0].set_ylabel("composition (CPC)" if law == "CPC" else "no CPC")
        for axis, sigma in zip(axes[0], sigmas, strict=True):
            axis.set_title(f"σ = {sigma:g}", loc="center")
        bar = color_bar(image, axes, shrink=0.7, pad=0.015)
        bar.set_ticks([-4, -2, 0], labels=["≤ 10⁻⁴", "10⁻²", "1"])
    return figure


def toggles(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "toggles",
        "Which pixels change when a condition is switched off",
        "Left: change of the score on each group of pixels (row) when one condition (column) is "
        "switched off, at σ near 1. Right: the largest change outside the condition's own pixels "
        "against noise. In a composition it is rounding error.",
    )
    found = rows.where(kind="toggle")
    sigma = min(set(found.column("sigma")), key=lambda s: abs(np.log(s)))
    with canvas(folder, figure, 1, 3, (9.4, 3.2), width_ratios=(1, 1, 1.7)) as axes:
        top = max(found.where(sigma=sigma).column("effect"))
        for axis, law in zip(axes, ("CPC", "no CPC"), strict=False):
            matrix = table(found.where(law=law, sigma=sigma), "group", "condition", "effect")
            picture(axis, matrix, vmin=0, vmax=top, cmap="magma", aspect="auto")
            for (g, j), value in np.ndenumerate(matrix):
                shown = f"{value:.2f}" if value > 1e-9 else "0"
                axis.text(
                    j,
                    g,
                    shown,
                    ha="center",
                    va="center",
                    color="white" if value < 0.6 * top else "black",
                    fontsize=9,
                )
            count = matrix.shape[1]
            axis.set_title("composition (CPC)" if law == "CPC" else "no CPC")
            axis.set_xticks(range(count), [f"c{j + 1}" for j in range(count)])
            axis.set_yticks(range(count + 1), [*(f"M{j + 1}" for j in range(count)), "rest"])
        for law, colour in (("no CPC", RED), ("CPC", BLUE)):
            curve = rows.where(kind="locality", law=law)
            axes[2].loglog(
                curve.column("sigma"),
                curve.column("worst_condition"),
                "o-",
                color=colour,
                label=law,
                ms=4,
            )
        axes[2].axhline(1e-9, color=GREY, ls="--", lw=1)
        axes[2].text(
            curve.column("sigma")[-1],
            2e-9,
            "counts as zero",
            color=GREY,
            ha="right",
            va="bottom",
            fontsize=9,
        )
        axes[2].set(xlabel="noise σ", title="largest foreign change of the score")
        axes[2].legend(loc="center left", bbox_to_anchor=(0, 0.68))
    return figure


def ties(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "ties",
        "A local score can only draw independent blocks",
        "Left: the score of each law, integrated around rectangles of own and foreign pixels, "
        "gives the interaction in its log density; a local score has none. Right: bits shared by "
        "the blocks of samples. The joint denoiser draws the data's ties; its best local "
        "approximation and a block network fitted to the data draw every block right and no tie.",
    )
    with canvas(folder, figure, 1, 2, (9.4, 3.2), width_ratios=(1.25, 1)) as axes:
        floor = 1e-17
        for law, colour in (("no CPC", RED), ("CPC", BLUE), ("its best LCS", GREEN)):
            curve = rows.where(kind="interaction", law=law)
            sizes = np.maximum(curve.column("size"), floor)
            label = "best LCS of no CPC" if law == "its best LCS" else law
            axes[0].loglog(curve.column("sigma"), sizes, "o-", color=colour, ms=4, label=label)
        axes[0].set(
            xlabel="noise σ", title="interaction in the integrated score", ylim=(floor / 3, 1e2)
        )
        axes[0].set_yticks([1e-17, 1e-12, 1e-8, 1e-4, 1], ["0", "10⁻¹²", "10⁻⁸", "10⁻⁴", "1"])
        axes[0].legend(loc="center right", bbox_to_anchor=(1, 0.62))
        found = rows.where(kind="ties")
        names = {
            "data": "data",
            "joint": "exact joint\ndenoiser",
            "best LCS": "its best\nLCS",
            "block net": "fitted\nblock net",
        }
        bits = [found.one(source=name)["bits"] for name in names]
        axes[1].bar(range(len(bits)), bits, color=[GREY, RED, GREEN, VIOLET], width=0.65)
        for place, b in enumerate(bits):
            axes[1].text(
                place,
                max(b, 0) + 0.02 * max(bits),
                f"{b:.3f}",
                ha="center",
                va="bottom",
                fontsize=9,
            )
        axes[1].set_xticks(range(len(bits)), names.values())
        axes[1].set(
            title="bits shared by blocks of samples", ylim=(min(0, *bits) - 0.02, max(bits) * 1.18)
        )
        axes[1].grid(axis="x", visible=False)
    return figure


def kl(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "kl",
        "The KL to a composition falls with noise, by the score error above",
        "Left: KL between a law and the composition it was tilted from (line), and half the score "
        "error of all higher noise levels (dots): de Bruijn's identity. Right: the score error "
        "itself; relative to the score it peaks at intermediate noise, near the distance between "
        "modes, so 'better at high noise' holds above that scale.",
    )
    curve = rows.where(kind="kl")
    sigma = curve.column("sigma")
    with canvas(folder, figure, 1, 2, (9.4, 3.4)) as axes:
        axes[0].loglog(sigma, curve.column("kl"), color=BLUE, label="KL(p, q) at noise σ")
        axes[0].loglog(
            sigma, curve.column("integral"), "o", color=RED, ms=4, label="½ score error above σ"
        )
        worst = max(abs(r - 1) for r in curve.column("ratio"))
        axes[0].text(
            0.04, 0.08, f"largest difference {100 * worst:.1f} %", transform=axes[0].transAxes
        )
        axes[0].set(xlabel="noise σ", title="KL that is left (nats)")
        axes[0].legend(loc="upper right")
        axes[1].loglog(sigma, curve.column("error"), color=VIOLET, label="$E\\,|s_p - s_q|^2$")
        axes[1].loglog(
            sigma, curve.column("relative"), color=GREEN, label="the same over $E\\,|s_p|^2$"
        )
        peak = max(curve, key=lambda r: r["relative"])
        axes[1].plot(peak["sigma"], peak["relative"], "o", color=GREEN, ms=5)
        place = (peak["sigma"], peak["relative"])
        axes[1].annotate(
            f"peak at σ = {peak['sigma']:.2g}",
            place,
            (-12, -18),
            textcoords="offset points",
            ha="center",
        )
        axes[1].set(xlabel="noise σ", title="score error")
        axes[1].legend(loc="lower left")
    return figure
