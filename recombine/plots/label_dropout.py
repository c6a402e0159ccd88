"""The figures of `label-dropout`: what each family loses by it, and the curves beside the paper's."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from recombine.analysis.by_factor import factor_of
from recombine.analysis.calibrated import LATE
from recombine.analysis.label_dropout_variants import KINDS
from recombine.analysis.levels import curve, per_seed, seeds_of
from recombine.analysis.paper_curves import family_points
from recombine.analysis.paper_probe import FACTORS, PAPER, with_paper_probe
from recombine.analysis.table import Table
from recombine.plots.accuracy_panels import last_of, variants_of
from recombine.plots.calibrated import gate, level_two, plot_dashed, update_axis
from recombine.plots.style import CYCLE, INK, Figure, canvas, display

PANELS = (
    ("seen", 0, PAPER),
    ("one factor away (level 1)", 1, PAPER),
    ("two factors away (level 2)", 2, PAPER),
    ("level 2 by the oracle", 2, "oracle"),
)
LEVELS = {0: "seen", 1: "one factor away (level 1)", 2: "two factors away (level 2)"}
SERIES = (
    ("", "all labels given", CYCLE[0]),
    (", dropout", "each label left out in 10 %", CYCLE[1]),
    (", guidance", "all labels left out in 10 %", CYCLE[2]),
    (", apart", "all labels, no overlapping sizes", CYCLE[5]),
    (", longer", "all labels, 24,000 updates", CYCLE[6]),
    (", lr 1e-3", "all labels, ten times the rate", CYCLE[7]),
    (", decayed", "all labels, rate falls to nothing", CYCLE[8]),
    (", ddpm", "all labels, DDPM", CYCLE[3]),
    (", weak signal", "all labels, DDPM, weak latents", CYCLE[4]),
    (", adaln", "all labels, entering as in DiT", INK),
)
"""What a variant's name ends with, what the legend calls it, its colour. The first four differ in
labels and pictures and stand in the figure of what dropout costs; the others over updates."""
OF_KINDS = tuple(one for one in SERIES if one[0] in KINDS)
BY_PROBE = (
    ("paper's linear probe", PAPER),
    ("open-set probe", "open-set"),
    ("oracle", "oracle"),
)


def figures(rows: Table, folder: Path) -> list[Figure]:
    read = with_paper_probe(rows)
    named = {ending: (name, color) for ending, name, color in SERIES}
    second = level_two(rows, folder, named)
    late = [what_it_costs(read, folder), *kinds_of_training(read, folder)]
    first = [*late, *which_factor(read, folder), second]
    return [*first, beside_paper(read, folder), *gate(rows, folder)]


def what_it_costs(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "dropout",
        "What label dropout costs each family",
        "Late means; each dot is a seed, each bar the mean over seeds. The first three panels are "
        "by the paper's linear probe, the mean over its seeds, which reads 0.80 of real pictures of "
        "seen classes since sizes overlap. Diamonds, left of each family: the paper's own late means; "
        "for MaskGIT, GIVT and MAR it does not say whether labels were left out.",
    )
    variants = variants_of(rows)
    families = compared(variants)
    series = shown(SERIES[:4], families, variants)
    with canvas(folder, figure, 1, len(PANELS), size=(12.0, 3.4), sharey=True) as axes:
        for axis, (title, level, probe) in zip(axes, PANELS, strict=True):
            late = partial(late_means, rows, level=level, probe=probe)
            plot_families(axis, families, series, variants, late)
            axis.set_title(title)
        finish(axes, axes[2], families)
    return figure


def kinds_of_training(rows: Table, folder: Path) -> list[Figure]:
    """Nothing where all labels were given in one kind of training alone."""
    variants = variants_of(rows)
    other = [ending for ending, *_ in OF_KINDS[1:]]
    families = [f for f in families_of(variants) if {f + end for end in other} & set(variants)]
    series = shown(OF_KINDS, families, variants)
    if len(series) < 2:
        return []
    figure = Figure(
        "kinds",
        "All labels given, three kinds of training",
        "Level 2, late means; each dot is a seed, each bar the mean over seeds. Dotted: what each "
        "probe reads of real pictures, whose sizes overlap. Diamonds, left of each family: the "
        "paper's own late means.",
    )
    panels = [p for p in BY_PROBE if rows.where(kind="accuracy", probe=p[1])]
    size = (3.6 * len(panels), 3.4)
    with canvas(folder, figure, 1, len(panels), size=size, sharey=True, squeeze=False) as axes:
        for axis, (title, probe) in zip(axes[0], panels, strict=True):
            late = partial(late_means, rows, level=2, probe=probe)
            plot_families(axis, families, series, variants, late)
            if real := rows.where(kind="probe", probe=probe, level=2).column("joint"):
                axis.axhline(fmean(real), color=INK, ls=":", lw=1, label="real pictures")
            axis.set_title(title)
        finish(axes[0], axes[0][0], families)
    return [figure]


def which_factor(rows: Table, folder: Path) -> list[Figure]:
    """Nothing where the probe read no factors."""
    factors = [column for column in FACTORS if column in rows.frame.columns]
    if not factors:
        return []
    figure = Figure(
        "factors",
        "Which factor is wrong at level 2",
        "The small blue triangle is prompted for: how often each factor is read as prompted, whatever "
        "the others are. Late means by the paper's linear probe, the mean over its seeds; each dot is a "
        "seed, each bar the mean over seeds. Sizes overlap; shapes and colours do not.",
    )
    variants = variants_of(rows)
    families = compared(variants)
    series = shown(
        [s for s in SERIES if s[0] in ("", ", dropout", ", lr 1e-3", ", adaln")], families, variants
    )
    with canvas(folder, figure, 1, len(factors), size=(10.0, 3.2), squeeze=False) as axes:
        for axis, column in zip(axes[0], factors, strict=True):
            plot_families(axis, families, series, variants, partial(factor_of, rows, column=column))
            axis.set(title=FACTORS[column], ylim=(-0.03, 1.03))
        finish(axes[0], axes[0][0], ())
    return [figure]


Series = Sequence[tuple[str, str, str]]


def shown(series: Series, families: Sequence[str], variants: Sequence[str]) -> Series:
    """Those of which some family was trained."""
    return [s for s in series if any(family + s[0] in variants for family in families)]


def late_means(rows: Table, variant: str, level: int, probe: str) -> list[float]:
    return list(per_seed(rows, variant, level, probe=probe).values())


def plot_families(
    axis: Any,
    families: Sequence[str],
    series: Series,
    variants: Sequence[str],
    values: Callable[[str], list[float]],
) -> None:
    """The seeds of each family side by side, one group of dots for each of the series."""
    for i, (ending, name, color) in enumerate(series):
        shift = (i - (len(series) - 1) / 2) * 0.75 / len(series)
        trained = [(x, f + ending) for x, f in enumerate(families) if f + ending in variants]
        for number, (x, variant) in enumerate(trained):
            plot_seeds(axis, x + shift, values(variant), color, "" if number else name)
    axis.set_xticks(range(len(families)), [display(f) for f in families])
    axis.grid(axis="x", visible=False)


def finish(axes: Any, beside: Any, families: Sequence[str]) -> None:
    """The paper's values in one of the panels, axes and legend."""
    plot_paper_values(beside, families)
    axes[0].set(ylim=(-0.03, 1.03), ylabel="share of samples read as prompted")
    axes[0].figure.legend(*beside.get_legend_handles_labels(), loc="outside lower center", ncols=3)


def beside_paper(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "levels",
        "Every level over updates, beside the paper's curves",
        "By the paper's linear probe, ours the mean over its seeds and over the seeds of a model; "
        "thin lines are seeds of a model. Of real pictures of seen classes it reads 0.80, since "
        "sizes overlap. Dashed: the paper's own curve, mostly of one seed.",
    )
    variants = variants_of(rows)
    families = families_of(variants)
    shape = {"size": (10.5, 2.5 * len(families) + 0.5), "sharey": True, "squeeze": False}
    with canvas(folder, figure, len(families), len(LEVELS), **shape) as axes:
        for i, (line, family) in enumerate(zip(axes, families, strict=True)):
            for axis, (level, title) in zip(line, LEVELS.items(), strict=True):
                for ending, name, color in SERIES:
                    if family + ending in variants:
                        plot_curves(axis, rows, family + ending, level, color, name)
                paper = dict(family_points(family, level))
                if paper:
                    plot_dashed(axis, paper, INK)
                update_axis(axis, "" if i else title, last_of(rows), max(paper, default=0))
                axis.set_xlabel("updates" if i + 1 == len(families) else "")
            line[0].set_ylabel(display(family))
        drawn = (zip(*axis.get_legend_handles_labels(), strict=True) for axis in axes.flat)
        named = {label: line for lines in drawn for line, label in lines}
        axes[0, 0].figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=3)
    return figure


def families_of(variants: list[str]) -> list[str]:
    return list(dict.fromkeys(v.partition(", ")[0] for v in variants))


def compared(variants: list[str]) -> list[str]:
    """The families that were trained with label dropout too; all of them where none was."""
    dropped = [f for f in families_of(variants) if {f + s[0] for s in SERIES[1:3]} & set(variants)]
    return dropped or families_of(variants)


def plot_curves(axis: Any, rows: Table, variant: str, level: int, color: str, label: str) -> None:
    """Each seed's curve, thin, and their mean."""
    each = [dict(curve(rows, variant, s, level, probe=PAPER)) for s in seeds_of(rows, variant)]
    for points in each:
        axis.plot(points.keys(), points.values(), color=color, lw=0.6, alpha=0.4)
    steps = sorted(set.intersection(*map(set, each)))
    means = [fmean(points[step] for points in each) for step in steps]
    axis.plot(steps, means, color=color, label=label, marker="o", ms=3)


def plot_seeds(axis: Any, x: float, values: list[float], color: str, label: str) -> None:
    axis.plot([x] * len(values), values, "o", color=color, ms=5, alpha=0.65, mew=0)
    axis.plot([x - 0.13, x + 0.13], [fmean(values)] * 2, color=color, lw=2.5, label=label or None)


def plot_paper_values(axis: Any, families: Sequence[str]) -> None:
    known = [(x - 0.45, LATE[f]) for x, f in enumerate(families) if f in LATE]
    if known:
        axis.plot(*zip(*known, strict=True), "D", color=INK, mfc="none", ms=6, label="the paper")
