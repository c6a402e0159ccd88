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
    primary, variants = probe_of(rows), variants_of(rows)
    figure = Figure(
        "levels",
        "Accuracy per level over training",
        f"Share of samples that show all factors as prompted for, by the primary probe, "
        f"{EXPLAINED[primary]}; levels are the number of factors in which a composition differs "
        "from "
        "any seen one. Thin lines are seeds.",
    )
    return panels(rows, folder, figure, [(v, primary) for v in variants], abreast(len(variants)))


def abreast(count: int) -> int:
    """Columns of a grid of so many panels, full lines where that can be."""
    return count if count < ABREAST else next((c for c in (5, 3, 4) if count % c == 0), 4)


def others(rows: Table, folder: Path) -> list[Figure]:
    """By the other probes, if there are any; a figure for each where one could not show them
    all."""
    variants, probes = variants_of(rows), [p for p in probes_of(rows) if p != probe_of(rows)]
    said = {p: f"'{PROBES.get(p, p)}' is {EXPLAINED.get(p, 'another probe')}" for p in probes}
    if len(variants) > ABREAST:
        apart = {
            p: Figure(
                f"probe-{p}",
                f"By another probe: {PROBES.get(p, p)}",
                f"The same samples; {said[p]}.",
            )
            for p in probes
        }
        return [
            panels(rows, folder, f, [(v, p) for v in variants], abreast(len(variants)))
            for p, f in apart.items()
        ]
    figure = Figure(
        "probes", "What other probes say", f"The same samples. {'; '.join(said.values())}."
    )
    which = [(v, p) for p in probes for v in variants]
    columns = len(probes) if len(variants) == 1 else len(variants)
    return [panels(rows, folder, figure, which, columns)] if probes else []


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


def ends(rows: Table, folder: Path, figure: Figure, lines: dict[str, dict[str, str]]) -> Figure:
    """Late means of level 2 by the probes that may refuse: lines over ticks, by the variant of
    each; a dot per seed."""
    probes = [p for p in ("open-set", "oracle") if rows.where(kind="accuracy", probe=p)]
    colors = colors_of(lines)
    ticks = list(dict.fromkeys(tick for some in lines.values() for tick in some))
    size = (3.4 * len(probes) + (1.4 if len(lines) > 1 else 0), 3.2)
    with canvas(folder, figure, 1, len(probes), size=size, sharey=True, squeeze=False) as axes:
        for axis, probe in zip(axes[0], probes, strict=True):
            for i, (line, variants) in enumerate(lines.items()):
                color = colors[line]
                values = {
                    t: accuracy(rows, variants[t], 2, late, probe) for t in ticks if t in variants
                }
                at = [ticks.index(t) + 0.03 * (i - (len(lines) - 1) / 2) for t in values]
                axis.plot(at, [v.value for v in values.values()], color=color, label=display(line))
                for x, value in zip(at, values.values(), strict=True):
                    axis.scatter(
                        [x] * len(value.values),
                        value.values,
                        s=14,
                        color=color,
                        alpha=0.7,
                        zorder=3,
                    )
            axis.set(
                title=PROBES[probe],
                xticks=range(len(ticks)),
                xticklabels=map(display, ticks),
                ylim=(-0.03, 1.03),
            )
        axes[0][0].set_ylabel("level 2")
        if len(lines) > 1:
            axes[0][-1].legend(**BESIDE)
    return figure


def factors(rows: Table, folder: Path) -> Figure:
    """Which factor fails, at the furthest level, by the CNN probe: an open-set probe rejects all
    factors at once."""
    variants, furthest, probe = (
        variants_of(rows),
        max(rows.where(kind="accuracy").column("level")),
        "cnn",
    )
    names = [k for k in rows.where(kind="accuracy").frame.columns if k not in RESERVED]
    figure = Figure(
        "factors",
        f"Factor by factor at {level_name(furthest)}",
        "Share of samples that show each factor as prompted for, by the closed-set CNN probe, "
        "since "
        "an open-set probe rejects all factors at once. Dotted: the joint accuracy.",
    )
    with grid(folder, figure, len(variants), abreast(len(variants))) as axes:
        for axis, variant in zip(axes.flat, variants, strict=False):
            for name, color in zip(names, CYCLE, strict=False):
                plot_level(axis, rows, Line(variant, furthest, name, probe), color, name)
            plot_level(axis, rows, Line(variant, furthest, "joint", probe), GREY, "joint")
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
