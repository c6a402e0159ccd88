"""The figures of the trained composition studies, from rows alone: accuracy per level, and factor
by factor."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from recombine.analysis.levels import (
    PROBES,
    accuracy,
    curve,
    interpolation_curve,
    late,
    level_name,
    probe_of,
    seeds_of,
    trusted,
)
from recombine.analysis.table import Table
from recombine.plots.style import (
    BESIDE,
    CYCLE,
    GREY,
    LEVELS,
    Figure,
    canvas,
    colors_of,
    display,
    label_ends,
    seed_lines,
)
from recombine.worlds.factors import RESERVED

EXPLAINED = {
    "open-set": "a CNN with a reject class",
    "cnn": "the same CNN, closed-set",
    "linear": "the paper's, linear on pixels, closed-set",
    "oracle": "re-rendering and comparing, with rejection",
}
ABREAST = 5
"""Panels side by side, at most."""
MOST = 8
"""Panels in one figure, at most; more variants are summarised."""
MARKERS = "osD^v"


class Line(NamedTuple):
    """What one curve shows."""

    variant: str
    level: int
    column: str
    probe: str


def figures(rows: Table, folder: Path) -> list[Figure]:
    return [
        levels(rows, folder),
        *others(rows, folder),
        factors(rows, folder),
        *tolerances(rows, folder),
    ]


def variants_of(rows: Table) -> list[str]:
    return list(dict.fromkeys(rows.where(kind="accuracy").column("variant")))


def probes_of(rows: Table) -> list[str]:
    """The open-set probe, the CNN probe, the oracle, and the linear probe where it is right on real
    pictures."""
    names = {r["probe"] for r in rows.where(kind="accuracy")}
    shown = (
        ("open-set", "cnn", "linear", "oracle")
        if trusted(rows, "linear")
        else ("open-set", "cnn", "oracle")
    )
    return [name for name in shown if name in names] or sorted(names)


def plot_level(axis: Any, rows: Table, which: Line, color: str, label: str) -> None:
    """Each seed thin, their mean bold."""
    curves = [
        curve(rows, which.variant, s, which.level, which.column, which.probe)
        for s in seeds_of(rows, which.variant)
    ]
    steps = [step for step, _ in curves[0]]
    seed_lines(axis, steps, [[y for _, y in points] for points in curves], color, label)


def finish(axis: Any, title: str, last: int, legend: bool) -> None:
    """A step axis, to the `last` step of all panels, that shows the start and spreads the early
    steps; the legend beside the curves, where none can run."""
    axis.set_xscale("symlog", linthresh=max(1, last / 50))
    axis.set(title=title, xlabel="training step", ylim=(-0.03, 1.03), xlim=(0, 1.15 * last))
    ticks = [
        t
        for t in (0, *(m * 10**k for k in range(7) for m in (1, 3)))
        if t == 0 or last / 30 <= t <= last
    ]
    axis.set_xticks(ticks, [f"{t:,}" for t in ticks])
    axis.minorticks_off()
    if legend:
        axis.legend(**BESIDE)


def last_of(rows: Table) -> int:
    return max(rows.where(kind="accuracy").column("step"))


def levels(rows: Table, folder: Path) -> Figure:
    primary = probe_of(rows)
    figure = Figure(
        "levels",
        "Accuracy per level over training",
        f"Share of samples that show all factors as prompted for, by the primary probe, "
        f"{EXPLAINED[primary]}; levels are the number of factors in which a composition differs "
        "from "
        "any seen one. Thin lines are seeds.",
    )
    return by_level(rows, folder, figure, primary)


def by_level(rows: Table, folder: Path, figure: Figure, probe: str) -> Figure:
    """Curves of all levels, a panel for each variant; late means where panels would be too many."""
    variants = variants_of(rows)
    if len(variants) <= MOST:
        return panels(rows, folder, figure, [(v, probe) for v in variants], abreast(len(variants)))
    known = range(furthest(rows) + 1)
    lines = {level_name(k): (Line("", k, "joint", probe), LEVELS[min(k, 4)]) for k in known}
    text = figure.caption.replace("Thin lines are", "Small dots are")
    text = f"Means of the last quarter of checkpoints. {text}"
    return dots(rows, folder, Figure(figure.name, "Late accuracy per level", text), lines)


def dots(rows: Table, folder: Path, figure: Figure, lines: dict[str, tuple[Line, str]]) -> Figure:
    """Late means of all variants, one below the other: the mean over seeds large, each seed small.
    `lines`: what is shown in each colour, of any variant."""
    variants, level = variants_of(rows), next(iter(lines.values()))[0].level
    with canvas(folder, figure, size=(7.6, 0.36 * len(variants) + 1.2)) as axis:
        for i, (label, (line, color)) in enumerate(lines.items()):
            for y, variant in enumerate(variants):
                values = late_values(rows, line._replace(variant=variant))
                if not values:
                    continue
                at = y + 0.7 * ((i + 0.5) / len(lines) - 0.5)
                axis.scatter(values, [at] * len(values), s=9, color=color, alpha=0.5, lw=0)
                mean = [sum(values) / len(values)]
                named = {"label": label} if label not in axis.get_legend_handles_labels()[1] else {}
                axis.scatter(mean, [at], s=30, color=color, marker=MARKERS[i % 5], **named)
        for y in range(1, len(variants)):
            axis.axhline(y - 0.5, color=GREY, lw=0.5, alpha=0.5)
        axis.set(xlim=(-0.03, 1.03), ylim=(len(variants) - 0.5, -0.5), xlabel="accuracy, late mean")
        axis.set_yticks(range(len(variants)), map(display, variants))
        axis.grid(visible=False, axis="y")
        if len({line.level for line, _ in lines.values()}) == 1:
            axis.set_xlabel(f"accuracy at {level_name(level)}, late mean")
        axis.legend(**BESIDE)
    return figure


def late_values(rows: Table, line: Line) -> list[float]:
    """The late mean of each seed; nothing where it was not measured."""
    seeds = seeds_of(rows, line.variant)
    curves = [curve(rows, line.variant, s, line.level, line.column, line.probe) for s in seeds]
    return [late(points) for points in curves if points]


def abreast(count: int) -> int:
    """Columns of a grid of so many panels, full lines where that can be."""
    return count if count < ABREAST else next((c for c in (5, 3, 4) if count % c == 0), 4)


def others(rows: Table, folder: Path) -> list[Figure]:
    """By the other probes, if there are any; their late means where panels would be too many."""
    variants, probes = variants_of(rows), [p for p in probes_of(rows) if p != probe_of(rows)]
    said = {p: f"'{PROBES.get(p, p)}' is {EXPLAINED.get(p, 'another probe')}" for p in probes}
    text = f"The same samples. {'; '.join(said.values())}."
    figure = Figure("probes", "What other probes say", text)
    if not probes:
        return []
    if len(variants) > ABREAST:
        by = {p: Line("", furthest(rows), "joint", p) for p in (probe_of(rows), *probes)}
        named = {PROBES.get(p, p): (by[p], c) for p, c in zip(by, CYCLE, strict=False)}
        more = (
            f"{text} Large: the mean over seeds of the last quarter of checkpoints; small: seeds."
        )
        return [dots(rows, folder, Figure("probes", "Late means by probe", more), named)]
    which = [(v, p) for p in probes for v in variants]
    columns = len(probes) if len(variants) == 1 else len(variants)
    return [panels(rows, folder, figure, which, columns)]


def furthest(rows: Table) -> int:
    """The level that is furthest from the seen compositions."""
    return max(rows.where(kind="accuracy").column("level"))


def panels(
    rows: Table, folder: Path, figure: Figure, which: list[tuple[str, str]], columns: int
) -> Figure:
    """Accuracy per level over training: a panel for each variant and probe, which is named where
    there are several."""
    alike = len({probe for _, probe in which}) == 1
    with grid(folder, figure, len(which), columns) as axes:
        for axis, (variant, probe) in zip(axes.flat, which, strict=False):
            for level in sorted({r["level"] for r in rows.where(kind="accuracy", variant=variant)}):
                plot_level(
                    axis,
                    rows,
                    Line(variant, level, "joint", probe),
                    LEVELS[min(level, 4)],
                    level_name(level),
                )
            finish(
                axis,
                display(variant) if alike else f"{display(variant)}: {PROBES.get(probe, probe)}",
                last_of(rows),
                axis is axes[0][-1],
            )
        for line in axes:
            line[0].set_ylabel("joint accuracy")
    return figure


@contextmanager
def grid(folder: Path, figure: Figure, count: int, columns: int) -> Iterator[Any]:
    """The axes of so many panels, room for a legend beside the first line."""
    high = -(-count // columns)
    size = (3.0 * columns + 1.4, 2.9 * high + 0.3)
    with canvas(
        folder, figure, high, columns, size=size, sharey=True, sharex=True, squeeze=False
    ) as axes:
        for axis in axes.flat[count:]:
            axis.axis("off")
        yield axes
        for axis in axes.flat if axes.size == count else ():
            axis.label_outer()


def over_training(
    rows: Table, folder: Path, figure: Figure, lines: dict[str, dict[str, str]]
) -> Figure:
    """Level 2 over training by the primary probe: a panel for each tick, a line for each name."""
    ticks = list(dict.fromkeys(tick for some in lines.values() for tick in some))
    colors, probe = colors_of(lines), probe_of(rows)
    with grid(folder, figure, len(ticks), len(ticks)) as axes:
        for axis, tick in zip(axes[0], ticks, strict=True):
            for line in (line for line in lines if tick in lines[line]):
                shown = Line(lines[line][tick], 2, "joint", probe)
                plot_level(axis, rows, shown, colors[line], display(line))
            finish(axis, display(tick), last_of(rows), axis is axes[0][-1])
        axes[0][0].set_ylabel("accuracy at level 2")
    return figure


def ends(rows: Table, folder: Path, figure: Figure, lines: dict[str, dict[str, str]]) -> Figure:
    """Late means of level 2 by the probes that may refuse: lines over ticks, by the variant of
    each; a dot per seed."""
    probes = [p for p in ("open-set", "oracle") if rows.where(kind="accuracy", probe=p)]
    colors = colors_of(lines)
    ticks = list(dict.fromkeys(tick for some in lines.values() for tick in some))
    size = (3.4 * len(probes) + (0.8 if len(lines) > 1 else 0), 3.2)
    with canvas(folder, figure, 1, len(probes), size=size, sharey=True, squeeze=False) as axes:
        for axis, probe in zip(axes[0], probes, strict=True):
            last: dict[str, tuple[float, str]] = {}
            for i, (line, variants) in enumerate(lines.items()):
                known = [t for t in ticks if t in variants]
                values = [accuracy(rows, variants[t], 2, late, probe) for t in known]
                at = [ticks.index(t) + 0.03 * (i - (len(lines) - 1) / 2) for t in known]
                axis.plot(at, [v.value for v in values], color=colors[line])
                for x, value in zip(at, values, strict=True):
                    seeds = value.values
                    axis.scatter(
                        [x] * len(seeds), seeds, s=14, color=colors[line], alpha=0.7, zorder=3
                    )
                last[display(line)] = (values[-1].value, colors[line])
            axis.set(title=PROBES[probe], ylim=(-0.03, 1.03))
            axis.set_xticks(range(len(ticks)), map(display, ticks))
            if len(lines) > 1:
                label_ends(axis, len(ticks) - 1, last)
        axes[0][0].set_ylabel("accuracy at level 2")
    return figure


def factors(rows: Table, folder: Path) -> Figure:
    """Which factor fails, at the furthest level, by the CNN probe: an open-set probe rejects all
    factors at once."""
    variants, level, probe = variants_of(rows), furthest(rows), "cnn"
    names = [k for k in rows.where(kind="accuracy").frame.columns if k not in RESERVED]
    figure = Figure(
        "factors",
        f"Factor by factor at {level_name(level)}",
        "Share of samples that show each factor as prompted for, by the closed-set CNN probe, "
        "since "
        "an open-set probe rejects all factors at once. Grey: the joint accuracy.",
    )
    if len(variants) > ABREAST:
        colors = zip((*names, "joint"), (*CYCLE[: len(names)], GREY), strict=False)
        return dots(rows, folder, figure, {n: (Line("", level, n, probe), c) for n, c in colors})
    with grid(folder, figure, len(variants), abreast(len(variants))) as axes:
        for axis, variant in zip(axes.flat, variants, strict=False):
            for name, color in zip(names, CYCLE, strict=False):
                plot_level(axis, rows, Line(variant, level, name, probe), color, name)
            plot_level(axis, rows, Line(variant, level, "joint", probe), GREY, "joint")
            axis.lines[-1].set_linestyle(":")
            finish(axis, display(variant), last_of(rows), axis is axes[0][-1])
        for line in axes:
            line[0].set_ylabel("accuracy")
    return figure


def tolerances(rows: Table, folder: Path) -> list[Figure]:
    """How far from a composition a picture may be and still be read as it, by each probe and
    factor; nothing where there are no such rows."""
    some = rows.where(kind="interpolation")
    probes = [p for p in probes_of(rows) if some.where(probe=p)]
    figure = Figure(
        "interpolation",
        "Tolerance of the probes",
        "Pictures rendered between a composition furthest from the seen ones and its neighbour in "
        "one factor, and the share that each probe still reads as the first. A probe that "
        "tolerates more in one factor than in another favours models that fail in it. Dotted: "
        "half.",
    )
    if not probes:
        return []
    with canvas(
        folder,
        figure,
        1,
        len(probes),
        size=(3.0 * len(probes) + 1.4, 3.0),
        sharey=True,
        squeeze=False,
    ) as axes:
        for axis, probe in zip(axes[0], probes, strict=True):
            for name, color in zip(dict.fromkeys(some.column("factor")), CYCLE, strict=False):
                axis.plot(
                    *zip(*interpolation_curve(some, probe, name), strict=True),
                    color=color,
                    label=name,
                    marker="o",
                    ms=3,
                )
            axis.axhline(0.5, color=GREY, lw=0.8, ls=":")
            axis.set(
                title=PROBES.get(probe, probe),
                xlabel="distance from it",
                ylim=(-0.03, 1.03),
                xlim=(0, 1),
            )
        axes[0][0].set_ylabel("read as the first composition")
        axes[0][-1].legend(**BESIDE)
    return [figure]
