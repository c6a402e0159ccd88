"""The figures of `swing-by` on what was measured: the hypercube, trained networks, laws, and slips
in print."""

from pathlib import Path
from typing import Any

from recombine.analysis.table import Table
from recombine.metrics.intervals import wilson
from recombine.plots.style import CYCLE, GREY, INK, Figure, canvas, color_bar

BLUE, RED, GREEN, PURPLE, GOLD = CYCLE[:5]


def curve(rows: Table, kind: str, *names: str, **equal: Any) -> list[list[Any]]:
    """Columns of the rows of one kind."""
    found = rows.where(kind=kind, **equal)
    return [found.column(name) for name in names]


def figures(rows: Table, folder: Path) -> list[Figure]:
    return [make(rows, folder) for make in (hypercube, networks, laws, in_print)]


def hypercube(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "hypercube",
        "Combinations are learned in order",
        "Losses of all 16 combinations of four concepts (μ = 1, 2, 3, 4) on the concept hypercube,"
        " two-layer ReLU networks; a node names the concepts it combines. An edge adds one "
        "concept; red edges break the rule that more concepts mean more loss. Right: the share of "
        "comparable pairs in order (the origin left out); dashed: without biases. The rule bends "
        "where the added concept is already learned, here 4, and so adds no loss of its own.",
    )
    with canvas(folder, figure, 1, 4, size=(11.0, 3.4), width_ratios=(1, 1, 1, 1.05)) as axes:
        for axis, when in zip(axes[:3], (0, 1, 2), strict=True):
            dots = _cube(
                axis,
                {
                    r["corner"]: r["loss"]
                    for r in rows.where(kind="t13.node", net="two layers, ReLU", epoch=when)
                },
            )
            axis.set_title("at the start" if when == 0 else f"after epoch {when}")
        where = {"location": "bottom", "pad": 0.03, "shrink": 0.5, "aspect": 40}
        color_bar(dots, list(axes[:3]), label="loss", **where)
        for net, colour in (("one layer", BLUE), ("two layers, ReLU", PURPLE)):
            axes[3].plot(*curve(rows, "t13", "epoch", "share", net=net), color=colour, label=net)
            axes[3].plot(
                *curve(rows, "t13", "epoch", "share", net=f"{net}, no bias"),
                color=colour,
                ls="--",
                lw=1,
            )
        axes[3].axhline(0.92, color=GREY, ls=":", lw=1)
        axes[3].set(xlabel="epoch", title="pairs in order", ylim=(0.7, 1.01))
        axes[3].legend(fontsize=8.5, loc="lower left")
    return figure


def _cube(axis: Any, loss: dict[str, float]) -> Any:
    levels = [sorted((v for v in loss if v.count("1") == k), reverse=True) for k in range(5)]
    place = {
        v: ((i - (len(level) - 1) / 2), k)
        for k, level in enumerate(levels)
        for i, v in enumerate(level)
    }
    for u in loss:
        for v in loss:
            if sum(a != b for a, b in zip(u, v, strict=True)) == 1 and u < v and "1" in u:
                style = (
                    {"color": RED, "lw": 1.8}
                    if loss[u] > loss[v]
                    else {"color": GREY, "lw": 0.6, "alpha": 0.5}
                )
                axis.plot(*zip(place[u], place[v], strict=True), zorder=1, **style)
    colours = [max(value, 1e-3) for value in loss.values()]
    x, y = zip(*(place[v] for v in loss), strict=True)
    dots = axis.scatter(
        x, y, c=colours, cmap="viridis_r", s=330, norm="log", zorder=2, linewidths=0
    )
    dots.set_clim(1e-1, 20)
    for v in loss:
        name = "".join(str(k + 1) for k, bit in enumerate(v) if bit == "1") or "0"
        axis.text(
            *place[v],
            name,
            ha="center",
            va="center",
            fontsize=6.5,
            color="white" if loss[v] > 0.4 else "black",
            zorder=3,
        )
    axis.set(xlim=(-3, 3), ylim=(-0.4, 4.4))
    axis.axis("off")
    return dots


def networks(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "networks",
        "Deeper and smaller networks swing by more often",
        "Share of seeds of linear networks, trained by SGD from the usual random start, whose OOD "
        "loss rises by more than 1 % of its start (bars: 95 % Wilson intervals). Crosses: a "
        "replication of the authors' setting with 4 to 16 seeds.",
    )
    with canvas(folder, figure, 1, 2, size=(8.0, 3.3), sharey=True) as (left, right):
        for axis, cells, label in (
            (left, [(k, 3) for k in (1, 2, 3, 4)], "depth (d = 3)"),
            (right, [(4, d) for d in (2, 3, 8, 64)], "dimension d (depth 4)"),
        ):
            for i, (depth, d) in enumerate(cells):
                found = rows.one(kind="t12", depth=depth, d=d)
                low, high = wilson(round(found["share"] * found["seeds"]), found["seeds"])
                axis.bar(i, found["share"], color=BLUE if axis is left else GREEN, width=0.6)
                axis.plot([i, i], [low, high], color=INK, lw=1.2)
            axis.set_xticks(range(4), [str(k if axis is left else d) for k, d in cells])
            axis.set(xlabel=label, ylim=(0, 0.8))
            axis.grid(axis="x", visible=False)
        left.plot(range(4), (0, 0.125, 0.3125, 0.4375), "x", color=RED, mew=1.8)
        right.plot([1, 3], [0.4375, 0], "x", color=RED, mew=1.8)
        left.set(ylabel="share of seeds that swing by")
    return figure


def laws(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "laws",
        "Time, order and half-time of learning, beside the theory",
        "Left: steps of SGD to 80 % of a signal against -ln(.2) d / (2 lr a); biases (red) break "
        "it. Middle: the order of learning flips where diversity outweighs signal. Right: the "
        "half-time of the weak concept against ln((1-S)/S) / (2a), S = ω(1-ρ²).",
    )
    with canvas(folder, figure, 1, 3, size=(11.0, 3.4)) as (left, middle, right):
        for bias, colour, label in ((0, BLUE, "without bias"), (1, RED, "with bias")):
            reached = [r for r in rows.where(kind="t3.sgd", bias=bias) if r.get("steps")]
            expected, steps = ([r[name] for r in reached] for name in ("expected", "steps"))
            left.loglog(expected, steps, "o", color=colour, label=label, mec="white", ms=7)
        left.plot([90, 3000], [90, 3000], color=GREY, lw=1, zorder=0)
        left.set(xlabel="steps expected", ylabel="steps measured")
        left.legend(fontsize=8.5)
        for column, colour in (("t1", GREEN), ("t2", BLUE)):
            for model, dash in (("one layer", "-"), ("two layers", "--")):
                found = Table(rows.where(kind="t4", model=model).frame.sort("sigma1"))
                middle.plot(
                    found.column("sigma1"),
                    found.column(column),
                    dash,
                    color=colour,
                    label=f"concept {column[1]}, {model}",
                )
        middle.axvline(1.2258, color=GREY, lw=1, ls=":")
        middle.set(xlabel="σ₁", ylabel="time to 80 %", xlim=(1, 1.5), ylim=(0, 2.7))
        middle.legend(fontsize=7.5, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
        for k, omega in enumerate(sorted(set(rows.where(kind="t8").column("omega")))):
            found = rows.where(kind="t8", omega=omega)
            right.plot(
                found.column("law"),
                found.column("half"),
                "o",
                color=(BLUE, GREEN, PURPLE, GOLD, RED)[k],
                label=f"ω = {omega:g}",
                mec="white",
                ms=7,
            )
        right.plot([2, 11], [2, 11], color=GREY, lw=1, zorder=0)
        right.set(xlabel="half-time, law", ylabel="half-time, measured")
        right.legend(fontsize=8)
    return figure


def in_print(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "in-print",
        "Two published figures beside the equations of the text",
        "Left: the published two-layer figure, from its own start. With the second moment A of the"
        " text the loss never rises noticeably; the rise appears with A². Right: the published "
        "'failure' to learn a weak concept. The recurrence on W lets w₁₁ go negative, which no U "
        "Uᵀ can be, and then diverges; the same start, updated on U, learns it.",
    )
    with canvas(folder, figure, 1, 2, size=(9.2, 3.6)) as (left, right):
        for variant, colour in (("A", BLUE), ("A^2", RED)):
            rise = rows.one(kind="t14.fig5", variant=variant)["rise"]
            label = f"{'A² (as plotted)' if '2' in variant else 'A (as written)'}, rise {rise:.1%}"
            left.plot(
                *curve(rows, "t14.fig5.curve", "step", "loss", variant=variant),
                color=colour,
                label=label,
            )
        left.set(
            xlabel="iteration",
            ylabel="OOD loss / loss at start",
            ylim=(0, 1.02),
            title="swing-by appears only with A²",
        )
        left.legend(fontsize=8.5)
        for update, colour in (("W recurrence", RED), ("U update", BLUE)):
            right.plot(
                *curve(rows, "t14.fig10.curve", "step", "w11", update=update),
                color=colour,
                label=update,
            )
        right.axhspan(-0.35, 0, color=RED, alpha=0.08, lw=0)
        right.text(27_500, -0.2, "not possible for U Uᵀ", ha="right", fontsize=8.5)
        right.axvline(10_000, color=GREY, lw=1, ls=":")
        right.text(10_200, 0.62, "published\nhorizon", fontsize=8.5)
        right.set(
            xlabel="iteration",
            ylabel="w₁₁",
            ylim=(-0.35, 1.08),
            title="a concept that 'is not learned'",
        )
        right.legend(fontsize=8.5, loc="center right")
    return figure
