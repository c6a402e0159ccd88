"""docs/courses.png: what the claims on trained models would be called had one looked earlier."""

from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

from recombine.figures import STYLE
from recombine.report.read import read_claims
from recombine.report.site import in_order

TONES = {"holds": "#2E9E6B", "partly": "#EDB458", "does not hold": "#D9675C"}
OWN = {"reproduced": "holds", "not reproduced": "does not hold"}
TICKS = (100, 300, 1000, 3000, 10_000)


def courses(results: Path) -> Image.Image:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch

    folders = in_order([p.parent for p in results.glob("*/claims.json")])
    claims = [c for folder in folders for c in read_claims(folder / "claims.json") if c["earlier"]]
    with plt.rc_context(STYLE):
        page, axis = plt.subplots(figsize=(9.0, 1.1 + 0.27 * len(claims)), facecolor="white", layout="constrained")
        for i, claim in enumerate(claims):
            for left, wide, tone in cells(claim["earlier"]):
                axis.barh(i, wide, 0.78, left, color=tone, edgecolor="white", lw=0.6)
        axis.set_xscale("log")
        axis.set(xlabel="judged on the checkpoints up to this update", ylim=(len(claims) - 0.4, -0.6), xlim=(70, None))
        axis.set_yticks(range(len(claims)), [f"{c['id']}, {c['study']}" for c in claims], ha="left")
        axis.set_xticks(TICKS, [f"{t:,}" for t in TICKS])
        axis.minorticks_off()
        axis.grid(visible=False)
        axis.spines[:].set_visible(False)
        axis.tick_params("both", length=0)
        axis.tick_params("y", pad=118)
        handles = [Patch(color=tone, label=word) for word, tone in TONES.items()]
        axis.legend(handles=handles, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=len(handles))
        buffer = BytesIO()
        page.savefig(buffer, format="png", dpi=110, facecolor="white")
        plt.close(page)
    return Image.open(buffer).convert("RGB")


def cells(earlier: list[tuple[int, str]]) -> list[tuple[float, float, str]]:
    """Left, width and colour of each verdict: from the middle of the way, as a log axis has it, to the next; the last as far
    to its right as to its left."""
    steps: list[Any] = [step for step, _ in earlier]
    inner = [(a * b) ** 0.5 for a, b in zip(steps, steps[1:], strict=False)]
    edges = (
        [steps[0] ** 2 / inner[0], *inner, steps[-1] ** 2 / inner[-1]] if inner else [steps[0] / 1.2, steps[0] * 1.2]
    )
    tones = [TONES[OWN.get(said, said)] for _, said in earlier]
    return [(a, b - a, tone) for a, b, tone in zip(edges, edges[1:], tones, strict=False)]
