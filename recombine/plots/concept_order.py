"""Figures of `concept-space`: what the theory predicts, and what the embedding scale does."""

import math
from pathlib import Path
from typing import Any

import torch

from recombine.analysis.concept_order import PAIR, rank
from recombine.analysis.concepts import Outcome, begins, embedding_pairs, smoothed
from recombine.plots.log_axes import log_ticks
from recombine.plots.style import BESIDE, CYCLE, Figure, canvas
from recombine.theory.predict import SPACES


def figures(variants: list[Outcome], folder: Path) -> list[Figure]:
    standard = [o for o in variants if o.is_standard]
    pairs = embedding_pairs(standard)
    return [prediction(standard, folder), *([embedding_scale(pairs, folder)] if pairs else [])]


def prediction(standard: list[Outcome], folder: Path) -> Figure:
    figure = Figure(
        "prediction",
        "Learning times predicted from the world alone",
        "Each mark is one factor of one world: the step at which it was learned against 1 / a, "
        "with the signal measured in four spaces. Squares: balanced embedding scale; triangles: "
        "never learned. Above: rank correlation. The theory leaves one scale free, so only order "
        "counts.",
    )
    last = max((float(c.steps[-1]) for o in standard for c in o.runs.values()), default=1.0)
    with canvas(folder, figure, 1, len(SPACES), size=(13.2, 3.3), sharey=True) as axes:
        for axis, space in zip(axes, SPACES, strict=True):
            for o in standard:
                for factor, ink in zip(PAIR, CYCLE, strict=False):
                    full = ink if o.facts["net"] == "DiT" else "none"
                    marker, y = (
                        ("o", o.time(factor))
                        if math.isfinite(o.time(factor))
                        else ("^", 1.2 * last)
                    )
                    marker = "s" if o.has(embedding_scale="balanced") and marker == "o" else marker
                    axis.plot([1 / o.rates[space, factor]], [y], marker, ms=5, mec=ink, mfc=full)
            nets = {
                net: some
                for net in ("DiT", "U-Net")
                if len(some := [o for o in standard if o.facts["net"] == net]) > 2
            }
            said = ", ".join(f"{net} {rank(some, space):.2f}" for net, some in nets.items())
            axis.set(xscale="log", yscale="log", title=f"{space}\n{said}", xlabel="1 / a")
            log_ticks(axis.xaxis)
        log_ticks(axes[0].yaxis)
        axes[0].set_ylabel("step at which it was learned")
        legend(axes[-1], standard)
    return figure


def legend(axis: Any, standard: list[Outcome]) -> None:
    """What inks and markers mean, beside the last panel."""
    for factor, ink in zip(PAIR, CYCLE, strict=False):
        axis.plot([], [], "o", ms=5, color=ink, label=factor)
    for net in dict.fromkeys(o.facts["net"] for o in standard):
        axis.plot([], [], "o", ms=5, mec="0.4", mfc="0.4" if net == "DiT" else "none", label=net)
    axis.plot([], [], "s", ms=5, mec="0.4", mfc="none", label="balanced")
    axis.legend(fontsize=8, **BESIDE)


def embedding_scale(pairs: list[tuple[Outcome, Outcome]], folder: Path) -> Figure:
    figure = Figure(
        "embedding-scale",
        "The same pictures at two embedding scales",
        "Probability that a sample of the unseen composition is blue and small. Raw: the condition"
        " is the colour and the diameter as they are, so a weak colour is also embedded at a small"
        " scale. Balanced: the same values in units of the distance between classes. Pictures, "
        "network and noise are the same; thin lines are seeds.",
    )
    with canvas(
        folder,
        figure,
        1,
        len(pairs),
        size=(3.2 * len(pairs) + 1.4, 3.3),
        sharey=True,
        squeeze=False,
    ) as axes:
        for axis, pair in zip(axes[0], pairs, strict=True):
            for o, ink in zip(pair, CYCLE, strict=False):
                runs = list(o.runs.values())
                begin = min(begins(c) for c in runs)
                lines = torch.stack([smoothed(c.joint)[begin:] for c in runs])
                for line in lines if len(lines) > 1 else []:
                    axis.plot(runs[0].steps[begin:], line, color=ink, lw=0.6, alpha=0.4)
                axis.plot(
                    runs[0].steps[begin:],
                    lines.mean(0),
                    color=ink,
                    label=o.facts["embedding_scale"],
                )
            axis.set(xscale="log", ylim=(-0.03, 1.03), xlabel="updates")
            axis.set_title(f"{pair[0].facts['net']}, color {pair[0].facts['color_signal']:g}")
            log_ticks(axis.xaxis)
        axes[0][0].set_ylabel("joint accuracy, unseen")
        axes[0][0].legend()
    return figure
