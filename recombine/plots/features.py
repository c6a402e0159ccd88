"""Figures of `features`: pixels over the noise, words at two places, concepts over the depth."""

from pathlib import Path
from statistics import fmean
from typing import Any

from matplotlib import colormaps

from recombine.analysis.table import Table
from recombine.plots.style import CYCLE, Figure, canvas

GREY = "#8a8f98"


def figures(rows: Table, folder: Path) -> list[Figure]:
    return [locality(rows, folder), words(rows, folder), concepts(rows, folder)]


def locality(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "pixels",
        "How much of what other pixels do to a pixel comes from nearby",
        "Of the derivatives of a denoised pixel by all others, the share (of summed magnitudes) that "
        "lies within 3/16 of the picture's side, over the noise level; each line is a seed. Dotted: "
        "what an even spread gives around the middle of the picture.",
    )
    some = rows.where(kind="pixels")
    with canvas(folder, figure, size=(5.0, 3.2)) as axis:
        for seed, mine in some.by("seed").items():
            axis.plot(
                mine.column("t"), mine.column("share"), marker="o", ms=3, label=f"seed {seed}"
            )
        axis.axhline(some.column("even")[0], color=GREY, lw=0.8, ls=":")
        axis.set(xlabel="noise level t", ylabel="share nearby", ylim=(0, 1.02))
        axis.legend()
    return figure


def words(rows: Table, folder: Path) -> Figure:
    some = rows.where(kind="word", how="word")
    by_word = [mine for _, mine in sorted(some.by("position").items())]
    prompt = " ".join(mine.column("word")[0] for mine in by_word)
    figure = Figure(
        "words",
        "What each word of the prompt does at two places",
        f"Prompt: “{prompt}”. Each word is left out in turn; shown is how much the output changes "
        "near the first place (by default on the left) and near the second (on the right), as root "
        "mean square. Left: means over noise levels; bars are means over seeds, dots are seeds. "
        "Right: one place against the other; each dot is a word at one noise level t in one seed, "
        "and on the dotted line the two are equal.",
    )
    height = max(3.4, 1.4 + 0.2 * len(by_word))
    with canvas(folder, figure, 1, 2, size=(9.5, height)) as (left, right):
        per_word(left, by_word)
        one_against_other(right, some)
    return figure


def per_word(axis: Any, by_word: list[Table]) -> None:
    """A line for each word, in the order of the prompt."""
    for shift, place, ink in ((-0.2, "first", CYCLE[0]), (0.2, "second", CYCLE[1])):
        at = [i + shift for i in range(len(by_word))]
        means = [fmean(mine.column(place)) for mine in by_word]
        axis.barh(at, means, height=0.4, color=ink, alpha=0.5, label=f"{place} place")
        for y, mine in zip(at, by_word, strict=True):
            seeds = [fmean(of.column(place)) for of in mine.by("seed").values()]
            axis.plot(seeds, [y] * len(seeds), "o", ms=2.5, color=ink)
    axis.set_yticks(range(len(by_word)), [mine.column("word")[0] for mine in by_word])
    axis.set(title="word left out", xlabel="change of the output", ylim=(len(by_word) - 0.4, -0.6))
    axis.grid(False, axis="y")
    axis.legend()


def one_against_other(axis: Any, some: Table) -> None:
    """On logarithmic scales, a colour for each noise level."""
    levels = sorted(some.by("t").items())
    for i, (t, at) in enumerate(levels):
        ink = colormaps["viridis"](0.9 * i / max(1, len(levels) - 1))
        axis.plot(at.column("first"), at.column("second"), "o", ms=3, color=ink, label=f"t = {t:g}")
    both = [*some.column("first"), *some.column("second")]
    ends = [min(both), max(both)]
    axis.plot(ends, ends, color=GREY, lw=0.8, ls=":")
    axis.set(title="all words", xlabel="change at the first place", xscale="log", yscale="log")
    axis.set_ylabel("change at the second place")
    axis.legend()


def concepts(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "concepts",
        "How alike concepts are, within a category and between categories",
        "Mean cosine of what two concepts add to the empty prompt, in pixels, in latents, and in the "
        "hidden states of every block in the order of computation. Within: two concepts of one "
        "category, as two shapes; between: of different ones. The further apart the lines, the more "
        "separate the categories. Thin lines are seeds.",
    )
    some = rows.where(kind="concepts")
    names = some.unique("space_of")
    with canvas(folder, figure, size=(8.5, 3.6)) as axis:
        for column, ink in (("within", CYCLE[0]), ("between", CYCLE[1])):
            for mine in some.by("seed").values():
                axis.plot(range(len(names)), mine.column(column), color=ink, lw=0.6, alpha=0.5)
            means = [fmean(some.where(space_of=name).column(column)) for name in names]
            axis.plot(range(len(names)), means, color=ink, marker="o", ms=3, label=column)
        axis.set_xticks(
            range(len(names)),
            [n.removesuffix(".transformer") for n in names],
            rotation=60,
            fontsize=8,
        )
        axis.axhline(0, color=GREY, lw=0.8, ls=":")
        axis.set(ylabel="cosine", ylim=(min(-0.3, *some.column("between")), 1.02))
        axis.legend()
    return figure
