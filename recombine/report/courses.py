"""docs/courses.png: what the claims on trained models would be called had one looked earlier, or with other eyes."""

from functools import partial
from pathlib import Path
from typing import Any

from PIL import Image

from recombine.plots.style import PROBES
from recombine.report.plate import plate
from recombine.report.read import Record, read_claims
from recombine.report.site import in_order
from recombine.studies.base import OWN

TONES = {"holds": "#2E9E6B", "partly": "#EDB458", "does not hold": "#D9675C"}
TICKS = (100, 300, 1000, 3000, 10_000)


def courses(results: Path) -> Image.Image:
    folders = in_order([p.parent for p in results.glob("*/claims.json")])
    claims = [c for folder in folders for c in read_claims(folder / "claims.json") if c["earlier"]]
    return plate((10.6, 1.6 + 0.27 * len(claims)), partial(draw, claims), layout="constrained")


def draw(claims: list[Record], page: Any) -> None:
    from matplotlib.patches import Patch

    when, who = page.subplots(1, 2, sharey=True, width_ratios=(2.8, 1))
    over_time(when, claims)
    by_probe(who, claims)
    for axis in (when, who):
        axis.set(ylim=(len(claims) - 0.4, -0.6))
        axis.minorticks_off()
        axis.grid(visible=False)
        axis.spines[:].set_visible(False)
        axis.tick_params("both", length=0)
    when.set_yticks(range(len(claims)), [f"{c['id']}, {c['study']}" for c in claims], ha="left")
    when.tick_params("y", pad=118)
    handles = [Patch(color=tone, label=word) for word, tone in TONES.items()]
    page.legend(handles=handles, loc="outside upper left", ncols=len(handles))


def over_time(axis: Any, claims: list[Record]) -> None:
    for i, claim in enumerate(claims):
        for left, wide, tone in cells(claim["earlier"]):
            axis.barh(i, wide, 0.78, left, color=tone, edgecolor="white", lw=0.6)
    axis.set_xscale("log")
    axis.set(xlabel="judged on the checkpoints up to this update", xlim=(70, None))
    axis.set_xticks(TICKS, [f"{t:,}" for t in TICKS])


def by_probe(axis: Any, claims: list[Record]) -> None:
    """At the end; nothing where a claim does not turn on what the judge says."""
    judge, *_ = names = list(PROBES.values())
    for i, claim in enumerate(claims):
        said = {judge: claim["said"], **claim["otherwise"]} if claim["otherwise"] else {}
        for name, word in said.items():
            axis.barh(i, 0.92, 0.78, names.index(name) - 0.46, color=tone_of(word))
    axis.set(xlabel="at the end, judged by", xlim=(-0.5, len(names) - 0.5))
    axis.set_xticks(range(len(names)), ["\n".join(name.rsplit(" ", 1)) for name in names])


def tone_of(said: str) -> str:
    return TONES[OWN.get(said, said)]


def cells(earlier: list[tuple[int, str]]) -> list[tuple[float, float, str]]:
    """Left, width and colour of each verdict: from the middle of the way, as a log axis has it, to the next; the last as far
    to its right as to its left."""
    steps: list[Any] = [step for step, _ in earlier]
    inner = [(a * b) ** 0.5 for a, b in zip(steps, steps[1:], strict=False)]
    edges = (
        [steps[0] ** 2 / inner[0], *inner, steps[-1] ** 2 / inner[-1]] if inner else [steps[0] / 1.2, steps[0] * 1.2]
    )
    tones = [tone_of(said) for _, said in earlier]
    return [(a, b - a, tone) for a, b, tone in zip(edges, edges[1:], tones, strict=False)]
