"""The figures of `small-models`: every model by seed beside the paper's, and its samples."""

from pathlib import Path

from recombine.analysis.calibrated import LATE
from recombine.analysis.levels import per_seed, seeds_of
from recombine.analysis.paper_probe import with_paper_probe
from recombine.analysis.repair import PAPERS
from recombine.analysis.small_models import BY_ADALN, BY_TOKENS, FAMILIES, PLAIN, REPAIRED
from recombine.analysis.table import Table
from recombine.plots.accuracy_panels import variants_of
from recombine.plots.boards import boards
from recombine.plots.label_dropout import PANELS, plot_seeds
from recombine.plots.style import CYCLE, INK, Figure, canvas, display

ENTERING = (BY_ADALN, BY_TOKENS)
"""Models whose labels enter as another family's: of their samples no board is shown, and the paper has
none that are known to be like them."""
PAPER_SAYS = {f: LATE[f] for f in FAMILIES} | dict.fromkeys(ENTERING)
PAPER_SAYS |= {PLAIN: PAPERS["maskgit"], REPAIRED: PAPERS["jepa"]}


def figures(rows: Table, folder: Path) -> list[Figure]:
    read = with_paper_probe(rows)
    named = {v: v for v in PAPER_SAYS if v in variants_of(rows) and v not in ENTERING}
    return [by_seed(read, folder), *boards(read, folder, named, "At the end of training.")]


def span(seeds: list[int]) -> str:
    return f"{seeds[0]} to {seeds[-1]}"


def by_seed(rows: Table, folder: Path) -> Figure:
    variants = [v for v in PAPER_SAYS if v in variants_of(rows)]
    figure = Figure(
        "families",
        "Small models by level and seed, all labels given",
        "Late means; each dot is a seed, each bar the mean over seeds. The first three panels are by "
        "the paper's linear probe, the mean over its seeds. Diamonds: the paper's own late means of "
        "level 2, of larger models; without and with the auxiliary loss. Seeds differ: "
        + "; ".join(f"{display(v)} {span(seeds_of(rows, v))}" for v in variants)
        + ".",
    )
    with canvas(
        folder, figure, 1, len(PANELS), size=(2.0 * len(variants) + 1.0, 3.6), sharey=True
    ) as axes:
        for axis, (title, level, probe) in zip(axes, PANELS, strict=True):
            for x, variant in enumerate(variants):
                values = per_seed(rows, variant, level, probe=probe).values()
                plot_seeds(axis, float(x), list(values), CYCLE[x % len(CYCLE)], "")
            names = [display(v).replace(", ", "\n").replace(" + ", "\n+ ") for v in variants]
            axis.set_xticks(range(len(variants)), names, fontsize=7)
            axis.grid(axis="x", visible=False)
            axis.set_title(title)
        papers = {x: y for x, v in enumerate(variants) if (y := PAPER_SAYS[v]) is not None}
        axes[2].plot(
            papers.keys(), papers.values(), "D", color=INK, mfc="none", ms=7, label="the paper"
        )
        axes[0].figure.legend(*axes[2].get_legend_handles_labels(), loc="outside lower center")
        axes[0].set(ylim=(-0.03, 1.03), ylabel="share of samples read as prompted")
    return figure
