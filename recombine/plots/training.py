"""The figures of the trained composition studies, from rows alone: accuracy per level, and factor
by factor."""

from pathlib import Path

from recombine.analysis.levels import (
    PROBES,
    accuracy,
    interpolation_curve,
    is_trusted,
    late_mean,
    level_name,
    probe_of,
)
from recombine.analysis.table import Table
from recombine.plots.accuracy_panels import (
    ABREAST,
    Line,
    Lines,
    abreast,
    dots,
    furthest,
    level_lines,
    panels,
    variants_of,
)
from recombine.plots.style import (
    BESIDE,
    CYCLE,
    GREY,
    Figure,
    canvas,
    colors_of,
    display,
    label_ends,
)
from recombine.worlds.factors import RESERVED

EXPLAINED = {
    "open-set": "a CNN with a reject class",
    "cnn": "the same CNN, closed-set",
    "linear": "the paper's, linear on pixels, closed-set",
    "oracle": "re-rendering and comparing, with rejection",
}
MOST = 8
"""Panels in one figure, at most; more variants are summarised."""


def figures(rows: Table, folder: Path) -> list[Figure]:
    return [
        levels(rows, folder),
        *others(rows, folder),
        factors(rows, folder),
        *tolerances(rows, folder),
    ]


def probes_of(rows: Table) -> list[str]:
    """The open-set probe, the CNN probe, the oracle, and the linear probe where it is right on real
    pictures."""
    names = {r["probe"] for r in rows.where(kind="accuracy")}
    shown = ("open-set", "cnn", *(["linear"] if is_trusted(rows, "linear") else []), "oracle")
    return [name for name in shown if name in names] or sorted(names)


def levels(rows: Table, folder: Path) -> Figure:
    primary = probe_of(rows)
    figure = Figure(
        "levels",
        "Accuracy per level over training",
        f"Share of samples that show all factors as prompted for, by the primary probe, "
        f"{EXPLAINED[primary]}; levels are the number of factors in which a composition differs "
        "from any seen one. Thin lines are seeds.",
    )
    return by_level(rows, folder, figure, primary)


def by_level(rows: Table, folder: Path, figure: Figure, probe: str) -> Figure:
    """Curves of all levels, a panel for each variant; late means where panels would be too many."""
    variants = variants_of(rows)
    if len(variants) <= MOST:
        each = [(display(v), level_lines(rows, probe, v)) for v in variants]
        return panels(rows, folder, figure, each, abreast(len(variants)), "joint accuracy")
    text = figure.caption.replace("Thin lines are", "Small dots are")
    text = f"Means of the last quarter of checkpoints. {text}"
    many = Figure(figure.name, "Late accuracy per level", text)
    return dots(rows, folder, many, level_lines(rows, probe))


def others(rows: Table, folder: Path) -> list[Figure]:
    """By the other probes, if there are any; their late means where panels would be too many."""
    variants, probes = variants_of(rows), [p for p in probes_of(rows) if p != probe_of(rows)]
    said = [f"'{PROBES.get(p, p)}' is {EXPLAINED.get(p, 'another probe')}" for p in probes]
    text = f"The same samples. {'; '.join(said)}."
    figure = Figure("probes", "What other probes say", text)
    if not probes:
        return []
    if len(variants) > ABREAST:
        by = {p: Line("", furthest(rows), "joint", p) for p in (probe_of(rows), *probes)}
        lines = {PROBES.get(p, p): (by[p], c) for p, c in zip(by, CYCLE, strict=False)}
        text += " Large: the mean over seeds of the last quarter of checkpoints; small: seeds."
        return [dots(rows, folder, Figure("probes", "Late means by probe", text), lines)]
    named = {p: f": {PROBES.get(p, p)}" if len(probes) > 1 else "" for p in probes}
    each = [(display(v) + named[p], level_lines(rows, p, v)) for p in probes for v in variants]
    columns = len(probes) if len(variants) == 1 else len(variants)
    return [panels(rows, folder, figure, each, columns, "joint accuracy")]


def over_training(
    rows: Table, folder: Path, figure: Figure, lines: dict[str, dict[str, str]]
) -> Figure:
    """Level 2 over training by the primary probe: a panel for each tick, a line for each name."""
    ticks, colors, probe = ticks_of(lines), colors_of(lines), probe_of(rows)
    each = []
    for tick in ticks:
        here = {name: variants[tick] for name, variants in lines.items() if tick in variants}
        shown = {display(n): (Line(v, 2, "joint", probe), colors[n]) for n, v in here.items()}
        each.append((display(tick), shown))
    return panels(rows, folder, figure, each, len(ticks), "accuracy at level 2")


def ticks_of(lines: dict[str, dict[str, str]]) -> list[str]:
    return list(dict.fromkeys(tick for variants in lines.values() for tick in variants))


def ends(rows: Table, folder: Path, figure: Figure, lines: dict[str, dict[str, str]]) -> Figure:
    """Late means of level 2 by the probes that may refuse: lines over ticks, by the variant of
    each; a dot per seed."""
    probes = [p for p in ("open-set", "oracle") if rows.where(kind="accuracy", probe=p)]
    ticks, colors = ticks_of(lines), colors_of(lines)
    size = (3.4 * len(probes) + (0.8 if len(lines) > 1 else 0), 3.2)
    with canvas(folder, figure, 1, len(probes), size=size, sharey=True, squeeze=False) as axes:
        for axis, probe in zip(axes[0], probes, strict=True):
            last: dict[str, tuple[float, str]] = {}
            for i, (line, variants) in enumerate(lines.items()):
                known = [t for t in ticks if t in variants]
                values = [accuracy(rows, variants[t], 2, late_mean, probe) for t in known]
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
    variants, level = variants_of(rows), furthest(rows)
    names = [k for k in rows.where(kind="accuracy").frame.columns if k not in RESERVED]
    figure = Figure(
        "factors",
        f"Factor by factor at {level_name(level)}",
        "Share of samples that show each factor as prompted for, by the closed-set CNN probe, "
        "since an open-set probe rejects all factors at once. Grey: the joint accuracy.",
    )
    colors = dict(zip((*names, "joint"), (*CYCLE[: len(names)], GREY), strict=False))

    def lines(variant: str = "") -> Lines:
        return {n: (Line(variant, level, n, "cnn"), color) for n, color in colors.items()}

    if len(variants) > ABREAST:
        return dots(rows, folder, figure, lines())
    each = [(display(v), lines(v)) for v in variants]
    return panels(rows, folder, figure, each, abreast(len(variants)), "accuracy")


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
    size = (3.0 * len(probes) + 1.4, 3.0)
    with canvas(folder, figure, 1, len(probes), size=size, sharey=True, squeeze=False) as axes:
        for axis, probe in zip(axes[0], probes, strict=True):
            for name, color in zip(dict.fromkeys(some.column("factor")), CYCLE, strict=False):
                points = zip(*interpolation_curve(some, probe, name), strict=True)
                axis.plot(*points, color=color, label=name, marker="o", ms=3)
            axis.axhline(0.5, color=GREY, lw=0.8, ls=":")
            axis.set(title=PROBES.get(probe, probe), xlabel="distance from it")
            axis.set(ylim=(-0.03, 1.03), xlim=(0, 1))
        axes[0][0].set_ylabel("read as the first composition")
        axes[0][-1].legend(**BESIDE)
    return [figure]
