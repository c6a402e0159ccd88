"""Samples of scene models as a figure: a line per variant, a column per number of locations, cut
from the sheets that runs leave. And how variants are named and coloured in all scene figures."""

from pathlib import Path

import numpy as np
from jaxtyping import Shaped
from PIL import Image

from recombine.analysis.scenes import LONGER, OTHER_NOISE, OTHER_SIZE, last, variants_of
from recombine.analysis.table import Table
from recombine.plots.sheets import sheet_path
from recombine.plots.style import CYCLE, Figure, canvas

NAMES = {
    "exp1": "Exp 1: grid, all objects",
    "exp2": "Exp 2: grid, one object",
    "exp3": "Exp 3: list, all objects",
    "exp2L": "Exp 2L: local, one object",
    "exp3L": "Exp 3L: local, list",
    "exp2L, whole": "Exp 2L, whole picture",
    "exp2L, patches": "Exp 2L: U-Net on patches",
    "exp3L, patches": "Exp 3L: U-Net on patches",
    "exp2L, patches, whole": "Exp 2L: U-Net on patches, whole",
    "exp1, EDM2 noise": "Exp 1, EDM2's noise levels",
    "exp2L, EDM2 noise": "Exp 2L, EDM2's noise levels",
    "exp1, wide": "Exp 1, wider network",
    "exp2L, patches, longer": "Exp 2L: U-Net on patches, longer",
}
COLORS = dict(zip(NAMES, CYCLE, strict=False))
for variant in NAMES:
    base = variant
    for ending in (", patches", OTHER_NOISE, OTHER_SIZE, LONGER):
        base = base.replace(ending, "")
    COLORS[variant] = COLORS[base]


def title(variant: str) -> str:
    """How a variant is called in figures."""
    if variant in NAMES:
        return NAMES[variant]
    base, _, counts = variant.partition(", ")
    return f"{NAMES[base].partition(':')[0]}, trained on {counts}"


def color(variant: str) -> str:
    """Variants that differ in what they were trained on have the colour of their experiment."""
    return COLORS.get(variant) or COLORS[variant.partition(", ")[0]]


def shape(variant: str) -> str:
    """Experiments that share a colour have different shapes."""
    if variant.endswith(OTHER_NOISE):
        return "D"
    if variant.endswith(OTHER_SIZE):
        return "P"
    if variant.endswith(LONGER):
        return "*"
    if "patches" in variant:
        return "X"
    return "o" if variant in NAMES else "s" if variant.endswith("1 object") else "^"


def run_sheet(rows: Table, variant: str, folder: Path, name: str = "", kind: str = "count") -> Path:
    """The sheet called `name` of the first seed of a variant, or that of its last step; `folder` is
    that of the study's figures."""
    row = next(iter(next(iter(last(rows, variant, kind).values()))))
    return sheet_path(folder, variant, row["seed"], name or row["step"])


def cut(sheet: Path, rows: int, row: int, column: int = 0) -> Shaped[np.ndarray, "h w 3"]:
    """One square cell of a sheet."""
    with Image.open(sheet) as picture:
        pixels = np.asarray(picture.convert("RGB"))
    side = pixels.shape[0] // rows
    return pixels[row * side : (row + 1) * side, column * side : (column + 1) * side]


def in_order(rows: Table) -> list[str]:
    """The variants as figures show them: those with a name of their own first."""
    order = list(NAMES)
    return sorted(variants_of(rows), key=lambda v: order.index(v) if v in NAMES else len(order))


def strips(
    folder: Path, figure: Figure, sheets: dict[str, tuple[Path, list[int]]], shown: tuple[int, ...]
) -> list[Figure]:
    """The first picture for each number in `shown`. `sheets`: label -> a sheet, and the number of
    locations of each of its rows; no figure where none of them is on disk."""
    lines = [(label, *sheet) for label, sheet in sheets.items() if sheet[0].is_file()]
    if not lines:
        return []
    columns = [k for k in shown if any(k in numbers for *_, numbers in lines)]
    size = (len(columns) + 1.9, len(lines) + 0.4)
    with canvas(folder, figure, len(lines), len(columns), size=size, squeeze=False) as axes:
        for line, (label, sheet, numbers) in zip(axes, lines, strict=True):
            for axis, k in zip(line, columns, strict=True):
                axis.set(xticks=(), yticks=())
                axis.grid(visible=False)
                axis.spines[:].set_visible(False)
                if k in numbers:
                    axis.imshow(cut(sheet, len(numbers), numbers.index(k)), interpolation="nearest")
            line[0].set_ylabel(label, rotation=0, ha="right", va="center", fontsize=8)
        for axis, k in zip(axes[0], columns, strict=True):
            axis.set_title(str(k), fontsize=9, loc="center")
    return [figure]
