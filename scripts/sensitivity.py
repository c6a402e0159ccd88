"""docs/sensitivity.png: what the verdicts on trained models would be at earlier checkpoints, or by
another probe."""

from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from recombine.analysis.levels import PROBES
from recombine.plots.style import STYLE
from recombine.report.read import ClaimEntry, in_order, read_entries

COLOURS = {
    "supported": "#0072B2",
    "partly supported": "#EDB458",
    "inconclusive": "#B9BEC6",
    "contradicted": "#882255",
}
TICKS = (100, 300, 1000, 3000, 10_000)


def sensitivity(results: Path) -> Image.Image:
    """Left: over checkpoints. Right: at the end, by probe."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    folders = in_order(results.glob("*/claims.json"))
    every = [claim for folder in folders for claim in read_entries(folder / "claims.json")]
    claims = [claim for claim in every if claim.sensitivity.by_checkpoint]
    buffer = BytesIO()
    with plt.rc_context({**STYLE, "figure.constrained_layout.use": False}):
        size = (10.6, 1.6 + 0.27 * len(claims))
        page, (left, right) = plt.subplots(
            1, 2, figsize=size, sharey=True, width_ratios=(2.8, 1), layout="constrained"
        )
        over_checkpoints(left, claims)
        by_probe(right, claims)
        finish(page, left, right, claims)
        page.savefig(buffer, format="png", dpi=110, facecolor="white")
        plt.close(page)
    return Image.open(buffer).convert("RGB")


def over_checkpoints(axis: Any, claims: list[ClaimEntry]) -> None:
    for i, claim in enumerate(claims):
        for left, width, verdict in cells(claim.sensitivity.by_checkpoint):
            axis.barh(i, width, 0.78, left, color=COLOURS[verdict], edgecolor="white", lw=0.6)
    axis.set_xscale("log")
    axis.set(xlabel="assessed on the checkpoints up to this step", xlim=(70, None))
    axis.set_xticks(TICKS, [f"{t:,}" for t in TICKS])


def by_probe(axis: Any, claims: list[ClaimEntry]) -> None:
    """Nothing where a claim does not depend on the primary probe."""
    primary, *_ = names = list(PROBES.values())
    for i, claim in enumerate(claims):
        others = claim.sensitivity.by_probe
        for name, verdict in ({primary: claim.verdict, **others} if others else {}).items():
            axis.barh(i, 0.92, 0.78, names.index(name) - 0.46, color=COLOURS[verdict])
    axis.set(xlabel="at the end, by probe", xlim=(-0.5, len(names) - 0.5))
    axis.set_xticks(range(len(names)), [name.replace(" ", "\n") for name in names])


def finish(page: Any, left: Any, right: Any, claims: list[ClaimEntry]) -> None:
    from matplotlib.patches import Patch

    for axis in (left, right):
        axis.set(ylim=(len(claims) - 0.4, -0.6))
        axis.minorticks_off()
        axis.grid(visible=False)
        axis.spines[:].set_visible(False)
        axis.tick_params("both", length=0)
    left.set_yticks(range(len(claims)), [f"{c.id}, {c.study}" for c in claims], ha="left")
    left.tick_params("y", pad=132)
    handles = [Patch(color=colour, label=verdict) for verdict, colour in COLOURS.items()]
    page.legend(handles=handles, loc="outside upper left", ncols=len(handles))


def cells(verdicts: list[tuple[int, str]]) -> list[tuple[float, float, str]]:
    """Left, width and verdict of each checkpoint's cell: to the middle between two, as a log axis
    has it; the last reaches as far to its right as to its left."""
    steps = [float(step) for step, _ in verdicts]
    inner = [(a * b) ** 0.5 for a, b in zip(steps, steps[1:], strict=False)]
    edges = (
        [steps[0] ** 2 / inner[0], *inner, steps[-1] ** 2 / inner[-1]]
        if inner
        else [steps[0] / 1.2, steps[0] * 1.2]
    )
    spans = zip(edges, edges[1:], verdicts, strict=False)
    return [(a, b - a, verdict) for a, b, (_, verdict) in spans]
