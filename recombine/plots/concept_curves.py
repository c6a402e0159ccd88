"""Figures of `concept-space`: trajectories beside the theory's, curves over training, learning
times."""

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from recombine.analysis.concepts import (
    Curves,
    Outcome,
    begins,
    dip,
    error,
    main_line,
    smoothed,
    speed,
)
from recombine.analysis.table import Table
from recombine.plots.log_axes import log_ticks
from recombine.plots.style import CYCLE, GREY, Figure, canvas
from recombine.theory.predict import Signals, path

COLOR, SIZE = CYCLE[0], CYCLE[1]


STILL = 1e-7
"""Distance per step, below which nothing moves."""


def figures(rows: Table, variants: list[Outcome], folder: Path) -> list[Figure]:
    line = main_line(variants)
    return [trajectories(rows, line, folder), over_steps(line, folder), times(variants, folder)]


def shade(place: float) -> tuple[float, float, float, float]:
    """From a weak to a strong signal."""
    import matplotlib

    return matplotlib.colormaps["viridis"](0.05 + 0.85 * place)


def shades(line: list[Outcome]) -> list[Any]:
    return [shade(i / max(1, len(line) - 1)) for i in range(len(line))]


def mean_path(o: Outcome) -> tuple[Tensor, Tensor, int]:
    """Colour and size coordinate of the unseen composition, averaged over seeds, and where it
    generates anything as prompted."""
    runs = list(o.runs.values())
    place = [torch.stack([smoothed(c.factors[f]) for c in runs]).mean(0) for f in ("color", "size")]
    return *place, min(begins(c) for c in runs)


def trajectories(rows: Table, line: list[Outcome], folder: Path) -> Figure:
    figure = Figure(
        "trajectories",
        "Where the unseen composition goes",
        "Prompted for small blue circles, which it never saw: the network's samples in concept "
        "space (above; dots are checkpoints, thin lines are seeds, grey is the time before it "
        "generates anything as prompted, red is where it turns). Below, the two-layer model of the"
        " theory, given nothing but the signals in the world's pixels.",
    )
    size = (2.2 * len(line) + 0.8, 5.0)
    with canvas(
        folder, figure, 2, len(line), size=size, sharex=True, sharey=True, squeeze=False
    ) as axes:
        for i, (o, ink) in enumerate(zip(line, shades(line), strict=True)):
            network(axes[0][i], o, ink)
            theory(axes[1][i], rows, o, ink)
            axes[0][i].set_title(f"color {o.facts['color_signal']:g}")
            for axis in axes[:, i]:
                corners(axis)
            axes[1][i].set_xlabel("blue")
        axes[0][0].set_ylabel(f"{line[0].facts['net']}\nsmall")
        axes[1][0].set_ylabel("theory\nsmall")
    return figure


def network(axis: Any, o: Outcome, ink: Any) -> None:
    for c in o.runs.values() if len(o.runs) > 1 else []:
        begin = begins(c)
        axis.plot(
            smoothed(c.factors["color"])[begin:],
            smoothed(c.factors["size"])[begin:],
            color=ink,
            lw=0.6,
            alpha=0.45,
        )
    x, y, begin = mean_path(o)
    axis.plot(x[: begin + 1], y[: begin + 1], color=GREY, lw=0.8, ls=":")
    axis.plot(x[begin:], y[begin:], color=ink, marker="o", ms=2.6, lw=1.6)
    turn(axis, o, x[begin:], y[begin:], begin)


def turn(axis: Any, o: Outcome, x: Tensor, y: Tensor, begin: int) -> None:
    """Where the path turns, if it goes back by a tenth or more."""
    steps = next(iter(o.runs.values())).steps[begin:]
    back = dip(steps, x)
    if back.depth < 0.1:
        return
    place = int((steps == back.turn).nonzero()[0])
    axis.plot(x[place], y[place], marker="<", ms=7, color="#ED220D", zorder=6)
    left = x[place] < 0.5
    at = (float(x[place]) + (0.0 if left else 0.05), float(y[place]) - 0.09)
    axis.annotate(
        f"turns at step {back.turn:,.0f}", at, fontsize=7, va="top", ha="left" if left else "right"
    )


def theory(axis: Any, rows: Table, o: Outcome, ink: Any) -> None:
    given = rows.where(kind="signal", variant=o.name, space="pixels")
    mu = {r["factor"]: r["mu"] for r in given}
    share = path(Signals(("color", "size"), (mu["color"], mu["size"]), (0.0, 0.0))).share
    axis.plot(share[:, 0], share[:, 1], color=ink, lw=1.6)


def corners(axis: Any) -> None:
    axis.plot([1], [1], marker="*", ms=11, color="#D9A21B", clip_on=False, zorder=5)
    axis.set(
        xlim=(-0.1, 1.1), ylim=(-0.14, 1.16), xticks=(0, 0.5, 1), yticks=(0, 0.5, 1), aspect="equal"
    )
    for x, y, what, side in (
        (-0.07, -0.08, "red large", "left"),
        (1.07, -0.08, "blue large", "right"),
        (-0.07, 1.1, "red small", "left"),
    ):
        axis.text(x, y, what, fontsize=7, ha=side, va="center", alpha=0.7)


def over_steps(line: list[Outcome], folder: Path) -> Figure:
    figure = Figure(
        "steps",
        "The unseen composition over training",
        "First: the probability that a sample is blue and small, mean over seeds (band: smallest "
        "to largest), from where the model generates anything as prompted. Then the distance from "
        "where it should be in concept space, and how fast it moves there.",
    )
    panels = {
        "joint accuracy, unseen": joint,
        "distance in concept space": error,
        "distance moved per step": moved,
    }
    with canvas(folder, figure, 1, 3, size=(10.2, 3.3)) as axes:
        for o, ink in zip(line, shades(line), strict=True):
            runs = list(o.runs.values())
            begin = min(begins(c) for c in runs)
            for axis, value in zip(axes, panels.values(), strict=True):
                lines = torch.stack([smoothed(value(c))[begin:] for c in runs])
                axis.fill_between(
                    runs[0].steps[begin:], lines.amin(0), lines.amax(0), color=ink, alpha=0.15, lw=0
                )
                axis.plot(
                    runs[0].steps[begin:],
                    lines.mean(0),
                    color=ink,
                    label=f"{o.facts['color_signal']:g}",
                )
        for axis, label in zip(axes, panels, strict=True):
            axis.set(xscale="log", xlabel="updates", title=label)
            log_ticks(axis.xaxis)
        axes[0].set_ylim(-0.03, 1.03)
        axes[2].set_yscale("log")
        axes[2].set_ylim(10 * STILL, 0.1)
        axes[0].legend(title="color signal", fontsize=8, title_fontsize=8)
    return figure


def joint(curves: Curves) -> Tensor:
    return curves.joint


def moved(curves: Curves) -> Tensor:
    """The speed, for a log axis: what lies below that is rounding, which machines do differently."""
    return speed(curves).clamp(min=STILL)


def times(variants: list[Outcome], folder: Path) -> Figure:
    """One panel per network, embedding scale and size signal, where there are several worlds."""
    figure = Figure(
        "times",
        "Steps to learn each concept",
        "When colour and size of the unseen composition reach 0.8 and stay there; small dots are "
        "seeds, a triangle at the top is a concept never learned. Dashed: 1 / a from the world's "
        "pixels, one scale for the whole panel.",
    )
    groups: dict[tuple, list[Outcome]] = {}
    for o in (o for o in variants if o.is_standard):
        groups.setdefault(
            (o.facts["net"], o.facts["embedding_scale"], o.facts["size_signal"]), []
        ).append(o)
    groups = {k: some for k, some in groups.items() if len(some) > 1} or groups
    from matplotlib.ticker import NullLocator

    size = (3.0 * len(groups) + 1.2, 3.4)
    with canvas(folder, figure, 1, len(groups), size=size, sharey=True, squeeze=False) as axes:
        for axis, ((net, scale, sized), some) in zip(axes[0], groups.items(), strict=True):
            some = sorted(some, key=lambda o: o.facts["color_signal"])
            for factor, ink in (("color", COLOR), ("size", SIZE)):
                one_concept(axis, some, factor, ink)
            axis.set(
                xscale="log",
                yscale="log",
                xlabel="color signal",
                title=f"{net}, size {sized:g}, {scale}",
            )
            signals = [o.facts["color_signal"] for o in some]
            axis.set_xticks(signals, [f"{c:g}" for c in signals])
            axis.xaxis.set_minor_locator(NullLocator())
            log_ticks(axis.yaxis)
        axes[0][0].set_ylabel("updates")
        axes[0][0].legend(fontsize=8)
    return figure


def one_concept(axis: Any, some: list[Outcome], factor: str, ink: str) -> None:
    x = [o.facts["color_signal"] for o in some]
    last = max(float(c.steps[-1]) for o in some for c in o.runs.values())
    capped = [min(o.time(factor), 1.1 * last) for o in some]
    axis.plot(x, capped, color=ink, marker="o", ms=4, label=factor)
    for o in some:
        for t in o.times(factor).values():
            marker, y = ("o", t) if math.isfinite(t) else ("^", 1.1 * last)
            axis.plot(
                [o.facts["color_signal"]],
                [y],
                color=ink,
                marker=marker,
                ms=2.5 if marker == "o" else 5,
                alpha=0.6,
            )
    known = [(o, f) for o in some for f in ("color", "size") if math.isfinite(o.time(f))]
    if known:
        gap = [math.log(o.time(f) * o.rates["pixels", f]) for o, f in known]
        scale = math.exp(sum(gap) / len(gap))
        axis.plot(
            x,
            [scale / o.rates["pixels", factor] for o in some],
            color=ink,
            lw=1.0,
            ls="--",
            alpha=0.8,
        )
