"""Figures of `features`: pixels over the noise, words at two places, concepts over the depth."""

from pathlib import Path
from statistics import fmean

from recombine.analysis.table import Table
from recombine.plots.style import CYCLE, Figure, canvas

GREY = "#8a8f98"


def figures(rows: Table, folder: Path) -> list[Figure]:
    return [locality(rows, folder), words(rows, folder), concepts(rows, folder)]


def locality(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "pixels",
        "How much of what other pixels do to a pixel comes from nearby",
        "The share of the gradient's magnitude within 3/16 of the side, over the noise level; each "
        "line is a seed. Dotted: the share of the picture that is so near to its middle.",
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
    figure = Figure(
        "words",
        "What each word of the prompt does at two places",
        "The change of the output near the first and the second place when a word is left out "
        "(root mean square; means over seeds), over the noise level. Right: one place against the "
        "other, all words, levels and seeds; on the dotted line the two are equal.",
    )
    some = rows.where(kind="word", how="word")
    with canvas(folder, figure, 1, 3, size=(12.5, 3.4)) as axes:
        for i, mine in enumerate(some.by("position").values()):
            name, ink = mine.column("word")[0], CYCLE[i % len(CYCLE)]
            style = {"color": ink, "ls": ("-", "--", ":")[i // len(CYCLE) % 3]}
            for axis, place in zip(axes, ("first", "second"), strict=False):
                levels = {t: fmean(at.column(place)) for t, at in mine.by("t").items()}
                axis.plot(*zip(*levels.items(), strict=True), lw=1.2, label=name, **style)
            axes[2].plot(mine.column("first"), mine.column("second"), "o", ms=2.5, color=ink)
        top = max(*some.column("first"), *some.column("second"))
        axes[2].plot([0, top], [0, top], color=GREY, lw=0.8, ls=":")
        for axis, place in zip(axes, ("first", "second"), strict=False):
            axis.set(title=f"{place} place", xlabel="noise level t", ylabel="change", ylim=(0, top))
        axes[2].set(title="both", xlabel="first place", ylabel="second place")
        axes[1].legend(fontsize=6, ncols=2)
    return figure


def concepts(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "concepts",
        "How alike concepts are, within a category and between categories",
        "Mean cosine of what two concepts add to the background, in pixels, in latents, and in the "
        "hidden states of every block in the order of computation. Thin lines are seeds.",
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
            range(len(names)), [n.removesuffix(".transformer") for n in names], rotation=60
        )
        axis.tick_params(axis="x", labelsize=6)
        axis.axhline(0, color=GREY, lw=0.8, ls=":")
        axis.set(ylabel="cosine", ylim=(min(-0.3, *some.column("between")), 1.02))
        axis.legend()
    return figure
