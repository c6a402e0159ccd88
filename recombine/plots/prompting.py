"""Figures of `concept-space`: methods of prompting, samples over training, three factors, masked
captions."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from recombine.analysis.concepts import Outcome, begins, by_masked_share, late_mean, smoothed
from recombine.analysis.prompted import Prompted, prompted_runs
from recombine.analysis.table import Table
from recombine.plots.log_axes import log_ticks
from recombine.plots.sheets import sheets_over_training
from recombine.plots.style import BESIDE, CYCLE, Figure, canvas

METHODS = {
    "plain": ("plain prompt", CYCLE[7]),
    "overprompt": ("overprompting: more than blue", CYCLE[0]),
    "steer": ("embedding pushed", CYCLE[2]),
    "patch": ("late embedding, early network", CYCLE[3]),
    "patch back": ("early embedding, late network", CYCLE[4]),
}
SHEET_ROWS = 4


def figures(rows: Table, variants: list[Outcome], folder: Path) -> list[Figure]:
    """Those for which there are rows."""
    made = []
    if runs := prompted_runs(rows):
        made.append(prompting(runs, folder))
    if strip := samples(variants, folder):
        made.append(strip)
    if three := [o for o in variants if o.facts["background_signal"]]:
        made.append(emergence(three, folder))
    if lines := by_masked_share(variants):
        made.append(masked(lines, folder))
    return made


def prompting(runs: list[Prompted], folder: Path) -> Figure:
    figure = Figure(
        "prompting",
        "What the network can generate, and what the plain prompt gets",
        "Probability of a small blue circle, by the same network at the same step, for different "
        "methods of prompting: best strength, mean over seeds; thin lines are seeds. Overprompting"
        " and pushing the embedding coincide. Squares and diamonds: a network that is given the "
        "condition embedding of another checkpoint, at the network's own step. Where the blue line "
        "is high and the grey one low, the ability is there and does not show.",
    )
    variants = list(dict.fromkeys(r.variant for r in runs))
    size = (4.2 * len(variants) + 2.0, 3.5)
    with canvas(folder, figure, 1, len(variants), size=size, sharey=True, squeeze=False) as axes:
        for axis, variant in zip(axes[0], variants, strict=True):
            mine = [r for r in runs if r.variant == variant]
            for method, (label, ink) in METHODS.items():
                given = [r.lines[method] for r in mine if method in r.lines]
                lines = [line for line in given if len(line[0])]
                if lines:
                    one_method(axis, lines, ink, label, method)
            axis.set(xscale="log", ylim=(-0.03, 1.03), xlabel="updates", title=variant)
            log_ticks(axis.xaxis)
        axes[0][0].set_ylabel("joint accuracy, unseen")
        axes[0][-1].legend(fontsize=8, **BESIDE)
    return figure


def one_method(axis: Any, lines: list[tuple], ink: str, label: str, method: str) -> None:
    marker = {"patch": "s", "patch back": "D"}.get(method)
    for steps, values in lines if len(lines) > 1 and method in ("plain", "overprompt") else []:
        axis.plot(steps, values, color=ink, lw=0.6, alpha=0.4)
    steps = sorted(set.intersection(*({int(s) for s in steps} for steps, _ in lines)))
    table = [dict(zip((int(s) for s in steps_), values, strict=True)) for steps_, values in lines]
    mean = [sum(float(t[s]) for t in table) / len(table) for s in steps]
    styles = {"overprompt": {"lw": 3.5, "alpha": 0.6}, "steer": {"ls": ":", "lw": 2.0}}
    style = styles.get(method, {"ls": ""} if marker else {})
    axis.plot(steps, mean, color=ink, label=label, marker=marker, ms=4, **style)


def samples(variants: list[Outcome], folder: Path) -> Figure | None:
    """From the sheets that the study keeps; without them there is no strip."""
    figure = Figure(
        "samples",
        "Samples along the way",
        "The same noise at every checkpoint of one run with a weak colour signal; two samples of "
        "each composition. The last one was never seen: first a blur, then the small red circle "
        "that is known, then blue.",
    )
    weak = next((o for o in variants if o.facts["weak"]), None)
    if not weak or not weak.runs:
        return None
    seed = min(weak.runs)
    first = weak.runs[seed]
    begin = 0.7 * first.steps[begins(first)]
    every = sheets_over_training(folder, weak.name, seed)
    sheets = {step: sheet for step, sheet in every.items() if step == 0 or step >= begin}
    if not sheets:
        return None
    names = ("red large", "red small", "blue large", "blue small\n(unseen)")
    size = (1.5 * len(sheets) + 0.9, 3.6)
    with canvas(folder, figure, SHEET_ROWS, len(sheets), size=size, squeeze=False) as axes:
        for j, (step, sheet) in enumerate(sheets.items()):
            with Image.open(sheet) as picture:
                cell = picture.height // SHEET_ROWS
                pixels = np.asarray(picture.convert("RGB"))
            for i, name in enumerate(names):
                axes[i][j].imshow(
                    pixels[i * cell : (i + 1) * cell, : 2 * cell], interpolation="nearest"
                )
                axes[i][j].set(xticks=(), yticks=())
                axes[i][j].grid(visible=False)
                for spine in axes[i][j].spines.values():
                    spine.set_visible(False)
                if j == 0:
                    axes[i][j].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=8)
            axes[0][j].set_title(f"{step:,}", fontsize=9)
    return figure


def emergence(three: list[Outcome], folder: Path) -> Figure:
    figure = Figure(
        "emergence",
        "Three factors at once",
        "Colour, size and background of the composition in which all three are new. The joint "
        "accuracy waits for the last factor and then jumps; the mean over factors does not show "
        "it.",
    )
    runs = [c for o in three for c in o.runs.values()]
    begin = min(begins(c) for c in runs)
    steps = runs[0].steps[begin:]
    lines = {name: [c.factors[name] for c in runs] for name in runs[0].factors}
    lines |= {"mean": [c.mean for c in runs], "joint": [c.joint for c in runs]}
    with canvas(folder, figure, size=(6.4, 3.5)) as axis:
        for (name, each), ink in zip(lines.items(), (*CYCLE[:3], CYCLE[7], "#ED220D"), strict=True):
            values = torch.stack([smoothed(v)[begin:] for v in each])
            bold = name in ("mean", "joint")
            if bold:
                axis.fill_between(
                    steps, values.amin(0), values.amax(0), color=ink, alpha=0.15, lw=0
                )
            axis.plot(
                steps,
                values.mean(0),
                color=ink,
                label=name,
                lw=2.2 if bold else 1.2,
                ls="-" if bold else "--",
            )
        axis.set(xscale="log", ylim=(-0.03, 1.03), xlabel="updates", ylabel="accuracy, unseen")
        log_ticks(axis.xaxis)
        axis.legend(**BESIDE)
    return figure


def masked(lines: dict[str, list[Outcome]], folder: Path) -> Figure:
    figure = Figure(
        "masked",
        "Captions that leave out the colour",
        "The captions of a share of the small red training pictures leave out the colour. Left: "
        "probability that the unseen small blue circle is blue, over training; thin lines are "
        "seeds. Right: late in training, seed by seed. A row for models conditioned on values, and"
        " one for models conditioned on classes.",
    )
    import matplotlib

    how = {"size": (8.6, 3.4 * len(lines)), "width_ratios": (1.5, 1), "squeeze": False}
    with canvas(folder, figure, len(lines), 2, **how) as axes:
        for (left, right), (given, line) in zip(axes, lines.items(), strict=True):
            for i, o in enumerate(line):
                one_share(
                    left, right, o, matplotlib.colormaps["plasma"](0.85 * i / max(1, len(line) - 1))
                )
            means = [
                sum(late_mean(c.factors["color"]) for c in o.runs.values()) / len(o.runs)
                for o in line
            ]
            right.plot([o.facts["masked"] for o in line], means, color=CYCLE[7], zorder=0)
            left.set(
                xscale="log",
                ylim=(-0.03, 1.03),
                xlabel="updates",
                title=f"blue, unseen, by {given}",
            )
            log_ticks(left.xaxis)
            left.legend(title="masked", fontsize=8, title_fontsize=8)
            right.set(ylim=(-0.03, 1.03), xlabel="share masked", title="late in training")
    return figure


def one_share(left: Any, right: Any, o: Outcome, ink: Any) -> None:
    runs = list(o.runs.values())
    begin = min(begins(c) for c in runs)
    values = torch.stack([smoothed(c.factors["color"])[begin:] for c in runs]).mean(0)
    left.plot(runs[0].steps[begin:], values, color=ink, label=f"{o.facts['masked']:.0%}")
    for c in runs if len(runs) > 1 else []:
        left.plot(
            c.steps[begin:], smoothed(c.factors["color"])[begin:], color=ink, lw=0.5, alpha=0.4
        )
    ends = [late_mean(c.factors["color"]) for c in runs]
    right.plot([o.facts["masked"]] * len(ends), ends, "o", ms=4, color=ink)
