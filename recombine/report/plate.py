"""A drawn picture of README and docs: a white page in the look of all figures."""

from collections.abc import Callable
from io import BytesIO
from typing import Any

from PIL import Image

from recombine.plots.style import STYLE


def plate(size: tuple[float, float], draw: Callable[[Any], None], **how: Any) -> Image.Image:
    """`draw` is given the page, of a size in inches."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    buffer = BytesIO()
    with plt.rc_context(STYLE):
        page = plt.figure(figsize=size, facecolor="white", **how)
        draw(page)
        page.savefig(buffer, format="png", dpi=110, facecolor="white")
        plt.close(page)
    return Image.open(buffer).convert("RGB")
