"""Figures of `length`, from the rows: curves over the number of locations, K_max beside the paper's, and pictures."""

from pathlib import Path
from statistics import fmean
from typing import Any

from matplotlib import colormaps

from recombine.plots.style import CYCLE, INK, Figure, canvas
from recombine.evaluate.counting import k_mean
from recombine.evaluate.intervals import wilson
from recombine.studies.base import Rows
from recombine.studies.scenes.outcomes import (
    NAMES,
    PAPER,
    facts,
    judged_by,
    last,
    marks_of,
    reached,
    title,
    variants_of,
)
from recombine.studies.scenes.strips import last_sheet, strips

GREY = "#7A7F87"
SHADES = colormaps["viridis"]
ENOUGH = 5
"""Of so many locations at least a share is shown."""
COLORS = dict(zip(NAMES, CYCLE, strict=False))
TRAINED_ON = {"1 object": 1, "1-3 objects": 3, "1-5 objects": 5}


def draw(rows: Rows, folder: Path) -> list[Figure]:
    return [curves(rows, folder), numbers(rows, folder), *nearness(rows, folder), *samples(rows, folder)]


def color(variant: str) -> str:
    """Variants that differ in what they were trained on have the colour of their experiment."""
    return COLORS.get(variant) or COLORS[variant.partition(", ")[0]]


def pooled(seeds: dict[int, Rows], locations: int, column: str) -> tuple[float, float, float]:
    """A share over the pictures of all seeds, and its interval."""
    some = [found.one(locations=locations) for found in seeds.values()]
    n = sum(r["n"] for r in some)
    recall = round(sum(r[column] * r["n"] for r in some))
    return recall / n, *wilson(recall, n)


def curves(rows: Rows, folder: Path) -> Figure:
    figure = Figure(
        "curves",
        "How many objects can be asked for",
        "Bold: share of pictures that are right (every location located, no object more) or, where training pictures hold objects that "
        "are not told, complete (every location located), with its 95 % interval; thin lines are seeds. Dotted: share of all locations "
        "that are located; grey, where counted, those of another: by chance. Dashed: complete ones where right ones are judged; in "
        "grey, real pictures of the same scenes, by the same detector. Dash-dotted, where locations keep a distance: "
        "the bold share at locations as near to each other as in real scenes. Shaded: numbers of objects in training. "
        "The vertical line is K_max, where the bold line leaves the upper half; the triangle is the paper's.",
    )
    variants = variants_of(rows)
    wide = min(len(variants), 5)
    high = -(-len(variants) // wide)
    size = (2.7 * wide + 1.6, 2.75 * high + 0.2)
    with canvas(folder, figure, high, wide, size=size, sharex=True, sharey=True, squeeze=False) as axes:
        for axis, variant in zip(axes.flat, variants, strict=False):
            one_curve(axis, rows, variant)
        for axis in list(axes.flat)[len(variants) :]:
            axis.set_visible(False)
        for line in axes:
            line[0].set_ylabel("share of pictures")
        for axis in axes[-1]:
            axis.set_xlabel("locations")
        lines = {line.get_label(): line for axis in axes.flat for line in axis.get_legend_handles_labels()[0]}
        legend = axes[0][-1].legend(handles=[*lines.values()], loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
        for line in legend.get_lines():
            line.set_color(INK)
    return figure


def one_curve(axis: Any, rows: Rows, variant: str) -> None:
    seeds, column, ink, locations = last(rows, variant), judged_by(rows, variant), color(variant), marks_of(rows)
    axis.axvspan(0.5, facts(rows, variant)["trained"] + 0.5, color=GREY, alpha=0.13, lw=0)
    axis.axhline(0.5, color=GREY, lw=0.7, ls=(0, (1, 2)))
    share, low, high = zip(*(pooled(seeds, k, column) for k in locations), strict=True)
    real = rows.where(kind="real")
    axis.plot(real.column("locations"), real.column(column), color=GREY, lw=1.1, ls="--", label="real pictures")
    for found in seeds.values() if len(seeds) > 1 else []:
        axis.plot(locations, [found.one(locations=k)[column] for k in locations], color=ink, lw=0.6, alpha=0.5)
    axis.fill_between(locations, low, high, color=ink, alpha=0.18, lw=0)
    recall = [fmean(found.one(locations=k)["recall"] for found in seeds.values()) for k in locations]
    axis.plot(locations, recall, color=ink, lw=1.2, ls=":", label="locations located")
    if all("chance" in r for found in seeds.values() for r in found):
        lucky = [fmean(found.one(locations=k)["chance"] for found in seeds.values()) for k in locations]
        axis.plot(locations, lucky, color=GREY, lw=1.0, ls=":", label="of another picture's locations")
    if column == "right":
        alone = [pooled(seeds, k, "complete")[0] for k in locations]
        axis.plot(locations, alone, color=ink, lw=1, ls=(0, (6, 2)), alpha=0.8, label="complete, where right is judged")
    axis.plot(locations, share, color=ink, marker="o", ms=3, label="right or complete")
    if rows.where(kind="crowded", variant=variant):
        near = [pooled(last(rows, variant, "crowded"), k, column)[0] for k in locations]
        axis.plot(locations, near, color=ink, lw=1, ls="-.", alpha=0.7, label="right or complete, crowded")
    most = reached(rows, variant).mean
    axis.axvline(most, color=ink, lw=1, ymax=0.93, label="K_max")
    if PAPER.get(variant, locations[-1] + 1) <= locations[-1]:
        axis.plot(
            [PAPER[variant]],
            [1.04],
            marker="v",
            ms=6,
            color=ink,
            mfc="none",
            ls="",
            clip_on=False,
            label="K_max, paper",
        )
    axis.set(ylim=(-0.03, 1.08), xlim=(0.5, locations[-1] + 0.5), xticks=[k for k in locations if k % 2 or locations[-1] < 8])
    axis.set_title(f"{title(variant)}\n{column}, K_max {most:.3g}", fontsize=9)


def numbers(rows: Rows, folder: Path) -> Figure:
    figure = Figure(
        "k-max",
        "K_max beside the paper's",
        "Dots are seeds, the bar is their mean, diamonds are the paper's numbers (it gives none for the whole-picture "
        "control). The upright line is K_max by means: up to which nine of ten locations are located and the number of objects is off "
        "by half a one at most. Left: trained on one to three objects (shaded). Right: Exps 2 and 2L by what they were trained "
        "on.",
    )
    main = [v for v in variants_of(rows) if v in NAMES]
    sets = training_sets(rows)
    ratio = {"width_ratios": (1.5, 1)} if sets else {}
    size = (9.6 if sets else 6.4, 0.42 * len(main) + 1.2 if not sets else 3.5)
    with canvas(folder, figure, 1, 2 if sets else 1, size=size, squeeze=False, gridspec_kw=ratio) as axes:
        by_experiment(axes[0][0], rows, main)
        if sets:
            by_training(axes[0][1], rows, sets)
    return figure


def by_experiment(axis: Any, rows: Rows, main: list[str]) -> None:
    top = marks_of(rows)[-1]
    axis.axvspan(0, max(facts(rows, v)["trained"] for v in main), color=GREY, alpha=0.13, lw=0)
    for y, variant in enumerate(main):
        found, ink = reached(rows, variant), color(variant)
        axis.barh(y, found.mean, height=0.5, color=ink, alpha=0.35)
        shift = [y + 0.12 * (i - (len(found.values) - 1) / 2) for i in range(len(found.values))]
        axis.plot(found.values, shift, "o", color=ink, ms=4.5)
        axis.plot([reached(rows, variant, by=k_mean).mean], [y], marker="|", ms=20, mew=2, color=ink)
        if variant in PAPER:
            axis.plot([PAPER[variant]], [y], marker="D", ms=7, color=ink, mfc="none", mew=1.5, ls="")
    axis.set(xlim=(0, top + 0.5), ylim=(len(main) - 0.5, -0.5), xlabel="K_max")
    axis.set_yticks(range(len(main)), [title(v) for v in main])
    axis.grid(visible=False, axis="y")


def training_sets(rows: Rows) -> dict[str, dict[int, str]]:
    """For each experiment that was trained on several numbers of objects: the largest of them -> its variant."""
    found: dict[str, dict[int, str]] = {}
    for base in ("exp2", "exp2L"):
        names = {n: base if n == 3 else f"{base}, {word}" for word, n in TRAINED_ON.items()}
        held = {n: name for n, name in names.items() if name in variants_of(rows)}
        found |= {base: held} if len(held) > 1 else {}
    return found


def by_training(axis: Any, rows: Rows, sets: dict[str, dict[int, str]]) -> None:
    for base, held in sets.items():
        ink, paper = color(base), {n: PAPER[v] for n, v in held.items()}
        axis.plot(paper.keys(), paper.values(), color=ink, marker="D", ms=6, mfc="none", ls="--", lw=1)
        ours = {n: reached(rows, v) for n, v in held.items()}
        axis.plot(ours.keys(), [f.mean for f in ours.values()], color=ink, label=title(base).partition(":")[0])
        for n, found in ours.items():
            axis.plot([n] * len(found.values), found.values, "o", color=ink, ms=4.5)
    axis.plot([0.5, 5.5], [0.5, 5.5], color=GREY, lw=0.8, ls=":")
    axis.set(xlabel="objects in training, at most", ylabel="K_max", xticks=(1, 3, 5), xlim=(0.5, 5.5), ylim=(0, None))
    axis.legend(fontsize=8)


def nearness(rows: Rows, folder: Path) -> list[Figure]:
    """Nothing where no run counted it."""
    figure = Figure(
        "near",
        "Too many, or too near to each other?",
        "Share of locations that are located, by the distance to the nearest other location (from so much on, as a share of the picture); "
        "a line for each range of the number of locations. Locations of real scenes, all seeds. Where the lines lie on each other, it "
        "is the crowd that a model fails at, not the number; where they lie apart, the number itself.",
    )
    main = [v for v in variants_of(rows) if v in NAMES and rows.where(kind="near", variant=v)]
    if not main:
        return []
    wide = min(len(main), 3)
    high = -(-len(main) // wide)
    size = (2.9 * wide + 1.2, 2.5 * high + 0.4)
    with canvas(folder, figure, high, wide, size=size, sharex=True, sharey=True, squeeze=False) as axes:
        for axis in list(axes.flat)[len(main) :]:
            axis.set_visible(False)
        for axis, variant in zip(axes.flat, main, strict=False):
            for group, (ink, name) in groups(marks_of(rows)).items():
                at, share = by_distance(rows.where(kind="near", variant=variant), group)
                axis.plot(at, share, color=ink, marker="o", ms=3, label=name)
            axis.set_title(title(variant), fontsize=9)
            axis.set(ylim=(-0.03, 1.05))
        for axis in axes[-1]:
            axis.set_xlabel("to the nearest other location")
        for line in axes:
            line[0].set_ylabel("locations located")
        axes[0][-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8, title="locations", title_fontsize=8)
    return [figure]


def groups(locations: list[int]) -> dict[tuple[int, ...], tuple[Any, str]]:
    """Numbers of locations in up to four ranges, each with a colour and a name; a single location has no neighbour."""
    several = [k for k in locations if k > 1]
    size = max(1, -(-len(several) // 4))
    parts = [tuple(several[i : i + size]) for i in range(0, len(several), size)]
    shades = [SHADES(0.9 * (i + 0.5) / len(parts)) for i in range(len(parts))]
    name = lambda part: f"{part[0]}" if len(part) == 1 else f"{part[0]}-{part[-1]}"  # noqa: E731
    return {part: (ink, name(part)) for part, ink in zip(parts, shades, strict=True)}


def by_distance(some: Rows, group: tuple[int, ...]) -> tuple[list[float], list[float]]:
    """From each distance on, up to the next: the share of locations that are located, where there are enough to tell."""
    at, share = [], []
    for low in sorted({r["from"] for r in some}):
        mine = [r for r in some if r["from"] == low and r["locations"] in group]
        if (n := sum(r["n"] for r in mine)) >= ENOUGH:
            at.append(low)
            share.append(sum(r["recall"] * r["n"] for r in mine) / n)
    return at, share


def samples(rows: Rows, folder: Path) -> list[Figure]:
    figure = Figure(
        "samples",
        "What is drawn for 1, 2, 3 ... locations",
        "The first picture of each, not chosen; the first seed. A cross says where an object was asked for: green, one is "
        "there by the detector; red, none is. The same locations and noise in every row.",
    )
    sheets = {}
    for variant in variants_of(rows):
        name = title(variant).replace(": ", ":\n").replace(", trained", ",\ntrained").replace(", whole", ",\nwhole")
        sheets[name] = last_sheet(rows, variant, folder)
    locations = marks_of(rows)
    return strips(folder, figure, sheets, locations, tuple(locations))
