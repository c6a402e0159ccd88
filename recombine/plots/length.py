"""Figures of `length`, from the rows: curves over the number of locations, K_max beside the
paper's, recall by distance, and samples."""

from pathlib import Path
from statistics import fmean
from typing import Any

from matplotlib import colormaps

from recombine.analysis.scenes import (
    PAPER,
    criterion,
    last,
    numbers_of,
    reached,
    share_at,
    variant_facts_of,
)
from recombine.analysis.table import Table
from recombine.metrics.intervals import wilson
from recombine.plots.scene_pictures import NAMES, color, in_order, run_sheet, strips, title
from recombine.plots.style import GREY, INK, Figure, canvas

SHADES = colormaps["viridis"]
ENOUGH = 5
"""Of so many locations at least a share is shown."""
TRAINED_ON = {"1 object": 1, "1-3 objects": 3, "1-5 objects": 5}
CRITERIA = {"matched": "match", "exact_match": "exact match", "full_recall": "full recall"}


def figures(rows: Table, folder: Path) -> list[Figure]:
    shown = [curves(rows, folder), lengths(rows, folder)]
    return [*shown, *nearness(rows, folder), *samples(rows, folder)]


def pooled(seeds: dict[int, Table], number: int, column: str) -> tuple[float, float, float]:
    """A share over the pictures of all seeds, and its interval."""
    some = [end.one(locations=number) for end in seeds.values()]
    n = sum(r["n"] for r in some)
    good = round(sum(r[column] * r["n"] for r in some))
    return good / n, *wilson(good, n)


def curves(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "curves",
        "Accuracy over the number of prompted objects",
        "Bold: share of pictures that are matches (every location located, and no more further "
        "objects than training pictures hold without a label), with its 95 % interval; thin lines "
        "are seeds. Dotted: recall over all locations; grey dotted: its chance level, the recall "
        "of another picture's locations. Dashed: full recall; dashed grey: real pictures of the same "
        "scenes, by the same detector. Dash-dotted, where locations keep a distance: the bold "
        "share at locations as near to each other as in real scenes. Shaded: numbers of objects in "
        "training. The vertical line is K_max, where the bold line leaves the upper half; the "
        "triangle is the paper's.",
    )
    variants = in_order(rows)
    wide = min(len(variants), 5)
    high = -(-len(variants) // wide)
    size, same = (2.7 * wide + 1.6, 2.75 * high + 0.2), {"sharex": True, "sharey": True}
    with canvas(folder, figure, high, wide, size=size, squeeze=False, **same) as axes:
        for axis, variant in zip(axes.flat, variants, strict=False):
            one_curve(axis, rows, variant)
        for axis in list(axes.flat)[len(variants) :]:
            axis.set_visible(False)
        for line in axes:
            line[0].set_ylabel("share of pictures")
        for axis in list(axes.flat)[max(0, len(variants) - wide) : len(variants)]:
            axis.set_xlabel("locations")
            axis.tick_params(labelbottom=True)
        legend(axes)
    return figure


def legend(axes: Any) -> None:
    """One for all panels, in the colour of the text."""
    drawn = (line for axis in axes.flat for line in axis.get_legend_handles_labels()[0])
    lines = {line.get_label(): line for line in drawn}
    corner = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
    for line in axes[0][-1].legend(handles=[*lines.values()], fontsize=8, **corner).get_lines():
        line.set_color(INK)


def one_curve(axis: Any, rows: Table, variant: str) -> None:
    """The panel of one variant."""
    column, ink, numbers = criterion(rows, variant), color(variant), numbers_of(rows)
    axis.axvspan(
        0.5, variant_facts_of(rows, variant)["trained"] + 0.5, color=GREY, alpha=0.13, lw=0
    )
    axis.axhline(0.5, color=GREY, lw=0.7, ls=(0, (1, 2)))
    real = rows.where(kind="real").by("locations")
    dashed = {"color": GREY, "lw": 1.1, "ls": "--", "label": "real pictures"}
    axis.plot(sorted(real), [fmean(real[k].column(column)) for k in sorted(real)], **dashed)
    recall_lines(axis, rows, variant)
    criterion_lines(axis, rows, variant)
    most = fmean(reached(rows, variant).values())
    axis.axvline(most, color=ink, lw=1, ymax=0.93, label="K_max")
    if PAPER.get(variant, numbers[-1] + 1) <= numbers[-1]:
        outline = {"marker": "v", "ms": 6, "color": ink, "mfc": "none", "ls": ""}
        axis.plot([PAPER[variant]], [1.04], clip_on=False, label="K_max, paper", **outline)
    ticks = [k for k in numbers if k % 2 or numbers[-1] < 8]
    axis.set(ylim=(-0.03, 1.08), xlim=(0.5, numbers[-1] + 0.5), xticks=ticks)
    axis.set_title(f"{title(variant)}\n{CRITERIA[column]}, K_max {most:.3g}", fontsize=9)


def recall_lines(axis: Any, rows: Table, variant: str) -> None:
    """Recall, and its chance level where it was counted."""
    numbers, ink = numbers_of(rows.where(variant=variant)), color(variant)
    recall = [fmean(share_at(rows, variant, k, "recall").values()) for k in numbers]
    axis.plot(numbers, recall, color=ink, lw=1.2, ls=":", label="recall")
    ends = last(rows, variant).values()
    if all(r.get("chance") is not None for some in ends for r in some):
        level = [fmean(share_at(rows, variant, k, "chance").values()) for k in numbers]
        axis.plot(numbers, level, color=GREY, lw=1.0, ls=":", label="recall, chance level")


def criterion_lines(axis: Any, rows: Table, variant: str) -> None:
    """The share that K_max is about: each seed thin, all bold with an interval; full recall beside
    exact matches; and the same at crowded locations."""
    seeds, column, ink = last(rows, variant), criterion(rows, variant), color(variant)
    numbers = numbers_of(rows.where(variant=variant))
    for end in seeds.values() if len(seeds) > 1 else []:
        values = [end.one(locations=k)[column] for k in numbers]
        axis.plot(numbers, values, color=ink, lw=0.6, alpha=0.5)
    share, low, high = zip(*(pooled(seeds, k, column) for k in numbers), strict=True)
    axis.fill_between(numbers, low, high, color=ink, alpha=0.18, lw=0)
    if column != "full_recall":
        alone = [pooled(seeds, k, "full_recall")[0] for k in numbers]
        style = {"lw": 1, "ls": (0, (6, 2)), "alpha": 0.8}
        axis.plot(numbers, alone, color=ink, label="full recall", **style)
    axis.plot(numbers, share, color=ink, marker="o", ms=3, label="match")
    if rows.where(kind="crowded", variant=variant):
        near = [pooled(last(rows, variant, "crowded"), k, column)[0] for k in numbers]
        axis.plot(numbers, near, color=ink, lw=1, ls="-.", alpha=0.7, label="the same, crowded")


def lengths(rows: Table, folder: Path) -> Figure:
    sets = training_sets(rows)
    panels = "Left: trained on one to three objects (shaded). Right: Exps 2 and 2L by what they "
    panels += "were trained on."
    figure = Figure(
        "k-max",
        "K_max beside the paper's",
        "Dots are seeds, the bar is their mean, diamonds are the paper's numbers (it gives none "
        "for the whole-picture control). The upright line is K_max by means: up to which recall "
        "is 0.9 or more and the number of objects is off by half an object at most. "
        + (panels if sets else "Shaded: numbers of objects in training."),
    )
    main = [v for v in in_order(rows) if v in NAMES] or in_order(rows)
    ratio = {"width_ratios": (1.5, 1)} if sets else {}
    size = (9.6 if sets else 6.4, 0.42 * len(main) + 1.2 if not sets else 3.5)
    grid = {"squeeze": False, "gridspec_kw": ratio}
    with canvas(folder, figure, 1, 2 if sets else 1, size=size, **grid) as axes:
        by_experiment(axes[0][0], rows, main)
        if sets:
            by_training(axes[0][1], rows, sets)
    return figure


def by_experiment(axis: Any, rows: Table, main: list[str]) -> None:
    top = numbers_of(rows)[-1]
    axis.axvspan(
        0, max(variant_facts_of(rows, v)["trained"] for v in main), color=GREY, alpha=0.13, lw=0
    )
    for y, variant in enumerate(main):
        values, ink = list(reached(rows, variant).values()), color(variant)
        axis.barh(y, fmean(values), height=0.5, color=ink, alpha=0.35)
        shift = [y + 0.12 * (i - (len(values) - 1) / 2) for i in range(len(values))]
        axis.plot(values, shift, "o", color=ink, ms=4.5)
        mild = fmean(reached(rows, variant, means=True).values())
        axis.plot([mild], [y], marker="|", ms=20, mew=2, color=ink)
        if variant in PAPER:
            outline = {"marker": "D", "ms": 7, "mfc": "none", "mew": 1.5, "ls": ""}
            axis.plot([PAPER[variant]], [y], color=ink, **outline)
    axis.set(xlim=(0, top + 0.5), ylim=(len(main) - 0.5, -0.5), xlabel="K_max")
    axis.set_yticks(range(len(main)), [title(v) for v in main])
    axis.grid(visible=False, axis="y")


def training_sets(rows: Table) -> dict[str, dict[int, str]]:
    """For each experiment that was trained on several numbers of objects: the largest of them ->
    its variant."""
    made: dict[str, dict[int, str]] = {}
    for base in ("exp2", "exp2L"):
        names = {n: base if n == 3 else f"{base}, {word}" for word, n in TRAINED_ON.items()}
        held = {n: name for n, name in names.items() if name in in_order(rows)}
        made |= {base: held} if len(held) > 1 else {}
    return made


def by_training(axis: Any, rows: Table, sets: dict[str, dict[int, str]]) -> None:
    for base, held in sets.items():
        ink, paper = color(base), {n: PAPER[v] for n, v in held.items()}
        outline = {"marker": "D", "ms": 6, "mfc": "none", "ls": "--", "lw": 1}
        axis.plot(paper.keys(), paper.values(), color=ink, **outline)
        ours = {n: list(reached(rows, v).values()) for n, v in held.items()}
        name = title(base).partition(":")[0]
        axis.plot(ours.keys(), [fmean(v) for v in ours.values()], color=ink, label=name)
        for n, values in ours.items():
            axis.plot([n] * len(values), values, "o", color=ink, ms=4.5)
    axis.plot([0.5, 5.5], [0.5, 5.5], color=GREY, lw=0.8, ls=":")
    axis.set(xlabel="objects in training, at most", ylabel="K_max", xticks=(1, 3, 5))
    axis.set(xlim=(0.5, 5.5), ylim=(0, None))
    axis.legend(fontsize=8)


def nearness(rows: Table, folder: Path) -> list[Figure]:
    """Nothing where no run counted it."""
    figure = Figure(
        "near",
        "Too many, or too near to each other?",
        "Recall by the distance to the nearest other location (from so much on, as a share of the "
        "picture); a line for each range of the number of locations. Locations of real scenes, all "
        "seeds. Where the lines coincide, a model fails because objects are near to each other, "
        "not because there are many; where they lie apart, the number itself matters.",
    )
    main = [v for v in in_order(rows) if v in NAMES and rows.where(kind="near", variant=v)]
    if not main:
        return []
    wide = min(len(main), 3)
    high = -(-len(main) // wide)
    size, same = (2.9 * wide + 1.2, 2.5 * high + 0.4), {"sharex": True, "sharey": True}
    with canvas(folder, figure, high, wide, size=size, squeeze=False, **same) as axes:
        for axis in list(axes.flat)[len(main) :]:
            axis.set_visible(False)
        for axis, variant in zip(axes.flat, main, strict=False):
            for group, (ink, name) in groups(numbers_of(rows)).items():
                at, share = by_distance(rows.where(kind="near", variant=variant), group)
                axis.plot(at, share, color=ink, marker="o", ms=3, label=name)
            axis.set_title(title(variant), fontsize=9)
            axis.set(ylim=(-0.03, 1.05))
        for axis in list(axes.flat)[max(0, len(main) - wide) : len(main)]:
            axis.set_xlabel("distance to the nearest other")
            axis.tick_params(labelbottom=True)
        for line in axes:
            line[0].set_ylabel("recall")
        corner = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
        axes[0][-1].legend(fontsize=8, title="locations", title_fontsize=8, **corner)
    return [figure]


def groups(numbers: list[int]) -> dict[tuple[int, ...], tuple[Any, str]]:
    """Numbers of locations in up to four ranges, each with a colour and a name; a single location
    has no neighbour."""
    several = [k for k in numbers if k > 1]
    size = max(1, -(-len(several) // 4))
    parts = [tuple(several[i : i + size]) for i in range(0, len(several), size)]
    shades = [SHADES(0.9 * (i + 0.5) / len(parts)) for i in range(len(parts))]
    names = [f"{p[0]}" if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts]
    return {p: (ink, name) for p, ink, name in zip(parts, shades, names, strict=True)}


def by_distance(some: Table, group: tuple[int, ...]) -> tuple[list[float], list[float]]:
    """From each distance on, up to the next: recall, where there are enough locations."""
    at, share = [], []
    for low in sorted(some.unique("from")):
        mine = [r for r in some if r["from"] == low and r["locations"] in group]
        if (n := sum(r["n"] for r in mine)) >= ENOUGH:
            at.append(low)
            share.append(sum(r["recall"] * r["n"] for r in mine) / n)
    return at, share


def samples(rows: Table, folder: Path) -> list[Figure]:
    figure = Figure(
        "samples",
        "Samples for 1, 2, 3 ... locations",
        "The first picture of each, not chosen; the first seed that was run. A cross is a prompted "
        "location: green where the detector locates an object, red where it does not. Rows of the "
        "same seed have the same locations and noise.",
    )
    sheets = {}
    for variant in in_order(rows):
        name = title(variant).replace(": ", ":\n").replace(", trained", ",\ntrained")
        sheet = run_sheet(rows, variant, folder), numbers_of(rows.where(variant=variant))
        sheets[name.replace(", whole", ",\nwhole")] = sheet
    return strips(folder, figure, sheets, tuple(numbers_of(rows)))
