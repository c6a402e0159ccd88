"""One style for every figure: small SVG files on white, which can be read on light and dark pages
alike."""

import math
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from io import BytesIO, StringIO
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

INK = "#1b1d22"
SEEN, LEVEL1, LEVEL2 = "#56C1FF", "#FF95CA", "#ED220D"
"""The paper's colours: seen compositions, one factor away, two factors away."""
LEVELS = (SEEN, LEVEL1, LEVEL2, "#7A0F5C", "#3D0A3A")
GREY = "#7A7F87"
CYCLE = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#AA4499",
    "#E69F00",
    "#56B4E9",
    "#882255",
    GREY,
    "#332288",
)
"""Distinct with any colour vision (Okabe and Ito's, and Tol's)."""
DISPLAY = {
    "maskgit": "MaskGIT", "givt": "GIVT", "mar": "MAR", "dit": "DiT", "jepa": "MaskGIT + JEPA",
    "vae": "VAE", "vq": "VQ", "fsq": "FSQ", "cnn": "CNN", "adaln": "adaLN",
}  # fmt: skip
"""How figures write what rows name."""
FAMILY = dict(zip(("dit", "maskgit", "mar", "givt", "", "jepa"), CYCLE, strict=False))
"""The same model has the same colour in every figure."""
BESIDE = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
"""Where a legend goes: beside the axes, where nothing is hidden."""


def display(variant: str) -> str:
    """ "maskgit, wide" -> "MaskGIT, wide"."""
    return re.sub(r"\w+", lambda word: DISPLAY.get(word[0], word[0]), variant)


def colors_of(variants: Iterable[str]) -> dict[str, str]:
    """Each family in its own colour, all else in the colours that are left."""
    names = list(variants)
    known = {v: FAMILY[v] for v in names if v in FAMILY}
    left = [c for c in CYCLE if c not in known.values()] or CYCLE
    rest = zip((v for v in names if v not in known), cycle(left), strict=False)
    return known | dict(rest)


def write_values(axis: Any, values: Any, form: str = ".2f", most: float = 1.0) -> None:
    """Numbers into the cells of a table of colours, white where the colour is strong."""
    for y, row in enumerate(values):
        for x, value in enumerate(row):
            color = "white" if abs(value) > 0.6 * most else INK
            text = re.sub(r"^-(0[.0]*)$", r"\1", format(value, form))  # no -0
            axis.text(x, y, text, ha="center", va="center", color=color, fontsize=9)


def label_ends(axis: Any, x: int, ends: dict[str, tuple[float, str]], room: float = 0.06) -> None:
    """The name of each line beside its last point, (y, colour), pushed apart where they are
    close."""
    at = -math.inf
    for name, (y, color) in sorted(ends.items(), key=lambda item: item[1][0]):
        at = max(at + room, y)
        axis.annotate(
            name, (x, at), (8, 0), textcoords="offset points", color=color, va="center",
            annotation_clip=False,
        )  # fmt: skip


def color_bar(image: Any, axes: Any, **how: Any) -> Any:
    """Without a frame."""
    bar = image.figure.colorbar(image, ax=axes, **how)
    bar.outline.set_visible(False)
    return bar


def seed_lines(axis: Any, x: Any, each: Any, color: str, label: str = "", **bold: Any) -> None:
    """Each seed thin, their mean bold: one list of values per seed, over the same x."""
    for line in each if len(each) > 1 else []:
        axis.plot(x, line, color=color, lw=0.7, alpha=0.5)
    mean = [sum(map(float, values)) / len(values) for values in zip(*each, strict=True)]
    axis.plot(x, mean, color=color, label=label, **({"marker": "o", "ms": 3} | bold))


STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ("DejaVu Sans", "Verdana"),
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
    "figure.facecolor": "white",
    "axes.facecolor": "none",
    "savefig.facecolor": "white",
    "figure.constrained_layout.use": True,
}


DIGITS = re.compile(r"(\.\d\d)\d+")
PLACES = re.compile(r'(?<= )(?:d|x|y)="[^"]*"')
"""Attributes of an SVG file that hold coordinates in points."""
PICTURE = re.compile(r"data:image/png;base64,\s*([A-Za-z0-9+/=\s]+)")


@dataclass(frozen=True)
class Figure:
    """A figure on disk, `figures/<name>.svg`, with what there is to see in it."""

    name: str
    title: str
    caption: str


@contextmanager
def canvas(
    folder: Path,
    figure: Figure,
    rows: int = 1,
    cols: int = 1,
    size: tuple[float, float] = (7.0, 3.6),
    **kwargs,
) -> Iterator:
    """`with canvas(folder, Figure("loss", ...), 1, 2) as axes:` plot on the axes; the file is
    written at the end."""
    import matplotlib
    from matplotlib.figure import Figure as Drawing

    settings = {**STYLE, "axes.prop_cycle": matplotlib.cycler(color=CYCLE)}
    settings["svg.hashsalt"] = figure.name
    with matplotlib.rc_context(settings):  # without pyplot: a notebook keeps its own figures
        drawing = Drawing(figsize=size)
        yield drawing.subplots(rows, cols, **kwargs)
        save(drawing, folder, figure)


def save(drawing: "Drawing", folder: Path, figure: Figure) -> None:
    """The whole file at once: another command may be reading it."""
    from recombine.store import write_atomic

    try:
        text = as_svg(drawing, figure.title)
    except ValueError:  # a user's own name with dollar signs that is no mathematics
        for artist in drawing.findobj(lambda artist: hasattr(artist, "set_parse_math")):
            artist.set_parse_math(False)
        text = as_svg(drawing, figure.title)
    write_atomic(folder / f"{figure.name}.svg", text)


def as_svg(drawing: "Drawing", title: str) -> str:
    """The drawing as SVG, its coordinates to a hundredth of a point, photographs in it as JPEG."""
    lines = StringIO()
    drawing.savefig(lines, format="svg", metadata={"Date": None, "Title": title})
    return PICTURE.sub(smaller, PLACES.sub(shorter, lines.getvalue()))


def shorter(attribute: "re.Match[str]") -> str:
    return DIGITS.sub(r"\1", attribute[0])


def smaller(picture: "re.Match[str]") -> str:
    """A PNG inside an SVG as JPEG, where that takes less than half the room and nothing is
    transparent."""
    from PIL import Image

    png, buffer = b64decode(picture[1]), BytesIO()
    with Image.open(BytesIO(png), formats=["PNG"]) as image:
        pixels = image.convert("RGBA")
    if pixels.getextrema()[3] != (255, 255):
        return picture[0]
    pixels.convert("RGB").save(buffer, "jpeg", quality=88, subsampling=0, optimize=True)
    if len(buffer.getvalue()) > len(png) / 2:
        return picture[0]
    return f"data:image/jpeg;base64,{b64encode(buffer.getvalue()).decode()}"


def entry(figure: Figure) -> dict[str, str]:
    return asdict(figure)
