"""Figures of `colours`: cosines between all colours; how often the sum of two scores shows both
colours, beside the cosine and the paper; samples of yellow with every other colour."""

from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from jaxtyping import Float

from recombine.analysis.colours import COMPOSE, SUMS, by_pair, cosines
from recombine.analysis.table import Table
from recombine.plots.scene_pictures import cut
from recombine.plots.sheets import sheet_path
from recombine.plots.style import CYCLE, GREY, INK, Figure, canvas, color_bar
from recombine.worlds.scenes.scene import COLORS

WORKS, FAILS = CYCLE[0], CYCLE[1]
"""Colours of the two groups: those that compose with yellow in the paper, and those that do not."""
SHEETS = {
    "colours alone": ("global", "color"),
    "with locations": ("global", "location"),
    "with locations,\nlocal network": ("local", "location"),
}
"""Of the samples that are shown: the model, and what was given."""
EACH = 3
"""So many samples of each."""


def figures(rows: Table, folder: Path) -> list[Figure]:
    names = in_order(rows)
    added = [sums(rows, names, folder)] if len(shared(rows, "color")) else []
    return [*added, *samples(rows, names, folder), cosine_table(rows, names, folder)]


def in_order(rows: Table) -> list[str]:
    """Yellow, and the others by their cosine with it."""
    means = cosines(rows)
    names = sorted({name for pair in means for name in pair} - {"yellow"})
    names.sort(key=lambda name: means.get(frozenset(("yellow", name)), 1.0))
    return [*(["yellow"] if any("yellow" in pair for pair in means) else []), *names]


def cosine_table(rows: Table, names: list[str], folder: Path) -> Figure:
    figure = Figure(
        "cosines",
        "What colours add to an empty floor",
        "Cosine between the mean differences that two colours make to pictures of an empty floor, "
        "mean over sets of scenes. Colours are ordered by their cosine with yellow. Low: they act "
        "on different channels and can be composed. The paper composes yellow with blue, cyan and "
        "purple, and not with gray, green, red and brown.",
    )
    means = cosines(rows)
    table = np.array([[1.0 if a == b else means[frozenset((a, b))] for b in names] for a in names])
    with canvas(folder, figure, 1, 1, (5.6, 4.8)) as axis:
        bar = axis.figure.colorbar(
            matrix(axis, table, names), ax=axis, shrink=0.85, ticks=[0, 0.5, 1]
        )
        bar.outline.set_visible(False)
    return figure


def matrix(axis: Any, table: Float[np.ndarray, "n n"], names: list[str]) -> Any:
    """Numbers between 0 and 1 for pairs of colours."""
    image = axis.imshow(table, vmin=0, vmax=1, cmap="viridis")
    axis.grid(visible=False)
    axis.set_xticks(range(len(names)), names, rotation=45, ha="right")
    axis.set_yticks(range(len(names)), names)
    for (i, j), value in np.ndenumerate(table):
        ink = INK if value > 0.6 else "white"
        axis.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=8, color=ink)
    return image


def sums(rows: Table, names: list[str], folder: Path) -> Figure:
    local = shared(rows, "location", "local")
    figure = Figure(
        "sums",
        "Scores of two colours, added",
        "Share of samples that are exact matches: two objects, one of each colour, by detector and "
        "colour probe; mean over seeds. Left: all pairs, ordered by the cosine with yellow; on the "
        "diagonal, each colour by itself; below it pairs of colours given alone, above it with two "
        "locations that are far apart. Middle: colours given alone, yellow with every other colour; "
        "dots are seeds. Blue: composes in the paper, orange: does not. Diamonds: with locations"
        + (
            "; squares: with locations, a local network, all else is without. "
            if len(local)
            else ". "
        )
        + "Right: colours given alone, all pairs over the cosine between what the two colours add to "
        "pictures; those with yellow in the colours of the middle.",
    )
    pairs = by_pair(shared(rows, "color"), "exact_match")
    with canvas(folder, figure, 1, 3, (14.0, 4.4), width_ratios=(1.25, 1, 1)) as axes:
        image = matrix(axes[0], both_ways(rows, names), names)
        color_bar(image, axes[0], shrink=0.85, ticks=[0, 0.5, 1])
        axes[0].set_title("exact match")
        if names[:1] == ["yellow"]:
            yellow_bars(axes[1], rows, names[1:])
        against_cosine(axes[2], pairs, cosines(rows))
    return figure


def both_ways(rows: Table, names: list[str]) -> Float[np.ndarray, "n n"]:
    """Exact matches of pairs: colours alone below the diagonal, at locations above it; on it, each
    colour by itself."""
    below, above = (by_pair(shared(rows, given), "exact_match") for given in ("color", "location"))
    alone = rows.where(kind="single", given="color", variant=SUMS["global"]).by("color")
    table = np.diag([fmean(alone[name].column("exact_match")) for name in names])
    for (i, a), (j, b) in combinations(enumerate(names), 2):
        table[j, i], table[i, j] = below[frozenset((a, b))], above[frozenset((a, b))]
    return table


def group_color(name: str) -> str:
    return WORKS if name in COMPOSE else FAILS


def yellow_bars(axis: Any, rows: Table, names: list[str]) -> None:
    """A bar for each colour with yellow, its seeds, and the control."""
    each = [by_pair(some, "exact_match") for some in shared(rows, "color").by("seed").values()]
    control = by_pair(shared(rows, "location"), "exact_match")
    local = by_pair(shared(rows, "location", "local"), "exact_match")
    axis.bar(0, 0, color=WORKS, alpha=0.75, label="composes in the paper")
    axis.bar(0, 0, color=FAILS, alpha=0.75, label="fails in the paper")
    for x, name in enumerate(names):
        pair = frozenset(("yellow", name))
        values = [seed[pair] for seed in each]
        axis.bar(x, fmean(values), 0.7, color=group_color(name), alpha=0.75)
        axis.plot([x] * len(values), values, "o", ms=3, color=INK, alpha=0.7)
        label = "with locations" if x == 0 else None
        axis.plot(x, control[pair], "D", ms=6, mfc="none", mec=GREY, mew=1.4, label=label)
        if local:
            label = "with locations, local model" if x == 0 else None
            axis.plot(x, local[pair], "s", ms=6, mfc="none", mec=INK, mew=1.4, label=label)
    axis.set_xticks(range(len(names)), names, rotation=45, ha="right")
    axis.set(title="with yellow", ylabel="share of samples", ylim=(-0.03, 1.08))
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3, fontsize=8)


def shared(rows: Table, given: str, model: str = "global") -> Table:
    """The pairs of one model, with colours alone or at locations."""
    return rows.where(kind="pair", given=given, variant=SUMS[model])


def against_cosine(
    axis: Any, pairs: dict[frozenset[str], float], alike: dict[frozenset[str], float]
) -> None:
    for pair in pairs:
        yellow = "yellow" in pair
        (other, *_) = sorted(pair - {"yellow"})
        style = {"color": group_color(other) if yellow else GREY, "zorder": 3 if yellow else 2}
        axis.plot(alike[pair], pairs[pair], "o", ms=7 if yellow else 5, alpha=0.85, **style)
        if yellow:
            place = {"textcoords": "offset points", "fontsize": 8, "rotation": 45, "va": "bottom"}
            axis.annotate(other, (alike[pair], pairs[pair]), (2, 4), **place)
    top = max(pairs.values(), default=0.0)
    axis.set(title="all pairs", xlabel="cosine of the two colours", ylim=(-0.03, 1.35 * top + 0.05))
    axis.set_ylabel("share of samples")


def samples(rows: Table, names: list[str], folder: Path) -> list[Figure]:
    """Of the first seed, where its sheets are on disk; none without yellow."""
    figure = Figure(
        "samples",
        "Samples of yellow with every other colour",
        "From the sum of two scores, the first seed; a line shares its noise and, where they are "
        "given, its two locations, which are far apart. Colours are ordered by their cosine with "
        "yellow. In the paper yellow composes with those in blue letters, and not with those in orange "
        "ones. Lines without a word on the network are of the one that sees the whole picture.",
    )
    seeds = sorted(rows.where(kind="pair").unique("seed"))
    if not seeds or names[:1] != ["yellow"]:
        return []
    places = {
        words: sheet_path(folder, SUMS[model], seeds[0], given)
        for words, (model, given) in SHEETS.items()
    }
    lines = [(w, place, k) for w, place in places.items() if place.is_file() for k in range(EACH)]
    if not lines:
        return []
    known = [name for name in COLORS if name in names]
    order = [*({name} for name in known), *map(set, combinations(known, 2))]
    others, size = names[1:], (len(names) - 1 + 1.2, len(lines) + 0.4)
    with canvas(folder, figure, len(lines), len(others), size, squeeze=False) as axes:
        for line, (words, place, column) in zip(axes, lines, strict=True):
            for axis, name in zip(line, others, strict=True):
                picture = cut(place, len(order), order.index({"yellow", name}), column)
                if picture.size:
                    axis.imshow(picture, interpolation="nearest")
                axis.set(xticks=(), yticks=())
                axis.grid(visible=False)
                axis.spines[:].set_visible(False)
            line[0].set_ylabel(words, rotation=0, ha="right", va="center", fontsize=8)
        for axis, name in zip(axes[0], others, strict=True):
            axis.set_title(name, fontsize=9, loc="center", color=group_color(name))
    return [figure]
