"""Samples as a figure: a line per variant, a column per number of locations, cut from the sheets that runs leave."""

from pathlib import Path

from recombine.plots.style import Figure, canvas
from recombine.studies.base import Rows
from recombine.studies.scenes.outcomes import last
from recombine.studies.scenes.pictures import cut


def last_sheet(rows: Rows, variant: str, folder: Path) -> Path:
    """What the first seed of a variant drew at the end; `folder` is that of the study's figures."""
    row = next(iter(last(rows, variant).values()))[0]
    return folder.parents[1] / "runs" / row["run"] / "samples" / f"step_{row['step']:08d}.png"


def strips(
    folder: Path, figure: Figure, sheets: dict[str, Path], locations: list[int], shown: tuple[int, ...]
) -> list[Figure]:
    """The first picture for each number in `shown`. `sheets`: label -> a sheet with a row for each of `locations`; nothing is drawn
    where none of them is on disk. They lie beside the study's own folder, in those of the runs."""
    lines = [(label, sheet) for label, sheet in sheets.items() if sheet.is_file()]
    columns = [k for k in shown if k in locations]
    if not lines:
        return []
    size = (len(columns) + 1.9, len(lines) + 0.4)
    with canvas(folder, figure, len(lines), len(columns), size=size, squeeze=False) as axes:
        for line, (label, sheet) in zip(axes, lines, strict=True):
            for axis, k in zip(line, columns, strict=True):
                axis.imshow(cut(sheet, len(locations), locations.index(k)), interpolation="nearest")
                axis.set(xticks=(), yticks=())
                axis.grid(visible=False)
                axis.spines[:].set_visible(False)
            line[0].set_ylabel(label, rotation=0, ha="right", va="center", fontsize=8)
        for axis, k in zip(axes[0], columns, strict=True):
            axis.set_title(str(k), fontsize=9, loc="center")
    return [figure]
