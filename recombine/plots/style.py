"""One look for every figure. Ink is drawn in a marker colour that becomes `currentColor` in the SVG, so the same file reads
well on light and dark pages; backgrounds are transparent."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

INK = "#1b1d22"
"""In an SVG it takes the colour of the page's text."""
DARK = "#1b1d23"
"""Ink on light paint, which stays dark on a dark page."""
SEEN, LEVEL1, LEVEL2 = "#56C1FF", "#FF95CA", "#ED220D"
"""The paper's colours: seen compositions, one factor away, two factors away."""
LEVELS = (SEEN, LEVEL1, LEVEL2, "#7A0F5C", "#3D0A3A")
CYCLE = ("#3B7DD8", "#E4572E", "#2A9D6F", "#8E5FC7", "#D9A21B", "#1FA3A8", "#C2477F", "#7A7F87")

STYLE = {
    "font.family": "sans-serif",
    "font.size": 10,
    "svg.fonttype": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.8,
    "grid.color": "#8a8f98",
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "axes.grid": True,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "figure.constrained_layout.use": True,
}


@dataclass(frozen=True)
class Figure:
    """A figure on disk: `figures/<name>.svg` and `.png`, with what a reader should see in it."""

    name: str
    title: str
    caption: str


@contextmanager
def canvas(
    folder: Path, figure: Figure, rows: int = 1, cols: int = 1, size: tuple[float, float] = (7.0, 3.6), **kwargs
) -> Iterator:
    """`with canvas(folder, Figure("loss", ...), 1, 2) as axes:` draw on the axes; both files are written at the end."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    with plt.rc_context({**STYLE, "axes.prop_cycle": plt.cycler(color=CYCLE), "svg.hashsalt": figure.name}):
        drawing, axes = plt.subplots(rows, cols, figsize=size, **kwargs)
        yield axes
        save(drawing, folder, figure)
        plt.close(drawing)


def save(drawing: "Drawing", folder: Path, figure: Figure) -> None:
    """GlobalConfig files at once: another command may be reading them."""
    from recombine.store import write_atomic  # brings torch, which those who only read figures do without

    lines, pixels, facts = StringIO(), BytesIO(), {"Date": None, "Title": figure.title}
    try:
        drawing.savefig(lines, format="svg", metadata=facts)
    except ValueError:  # a user's own name with dollar signs that is no mathematics
        for text in drawing.findobj(lambda artist: hasattr(artist, "set_parse_math")):
            text.set_parse_math(False)
        lines = StringIO()
        drawing.savefig(lines, format="svg", metadata=facts)
    write_atomic(folder / f"{figure.name}.svg", lines.getvalue().replace(INK, "currentColor"))
    drawing.set_layout_engine("none")  # it is laid out by now, and to do so takes a third of the time
    drawing.savefig(pixels, format="png", dpi=160, facecolor="white")
    write_atomic(folder / f"{figure.name}.png", pixels.getvalue())


def entry(figure: Figure) -> dict[str, str]:
    return asdict(figure)
