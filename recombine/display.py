"""How objects show themselves: short reprs of configs, and small HTML in notebooks."""

import dataclasses
from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape
from io import BytesIO
from typing import Any

LEVELS = ("#56C1FF", "#FF95CA", "#ED220D", "#7A0F5C", "#3D0A3A")
"""Frames by level: seen, one factor away, two factors away, ..."""


def short_repr(config: Any) -> str:
    """The fields that are not as by default: Shapes2D(size=20)."""
    given = [f"{name}={value!r}" for name, value in changed_fields(config)]
    return f"{type(config).__name__}({', '.join(given)})"


def changed_fields(config: Any) -> Iterable[tuple[str, Any]]:
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        made = field.default_factory
        usual = field.default if made is dataclasses.MISSING else made()
        if field.repr and (usual is dataclasses.MISSING or value != usual):
            yield field.name, value


def html_table(heads: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "") -> str:
    """A small table; every cell is escaped."""
    cells = ["".join(f"<td style='text-align:left'>{escape(str(c))}</td>" for c in r) for r in rows]
    body = "".join(f"<tr>{line}</tr>" for line in cells)
    head = "".join(f"<th style='text-align:left'>{escape(h)}</th>" for h in heads)
    caption = f"<p><b>{escape(title)}</b></p>" if title else ""
    return f"{caption}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_gallery(pictures: Iterable[tuple[Any, str, int]], title: str = "") -> str:
    """Pictures (uint8 arrays of height x width x 3) with a caption, framed by level."""
    tiles = [_tile(pixels, caption, level) for pixels, caption, level in pictures]
    said = f"<p><b>{escape(title)}</b></p>" if title else ""
    return f"{said}<div style='display:flex;flex-wrap:wrap;gap:8px'>{''.join(tiles)}</div>"


def _tile(pixels: Any, caption: str, level: int) -> str:
    from PIL import Image

    buffer = BytesIO()
    Image.fromarray(pixels).save(buffer, "png")
    source = f"data:image/png;base64,{b64encode(buffer.getvalue()).decode()}"
    color = LEVELS[min(level, len(LEVELS) - 1)]
    style = f"width:88px;image-rendering:pixelated;border:3px solid {color};margin:0"
    said = "seen" if level == 0 else f"level {level}"
    return (
        f"<figure style='margin:0;text-align:center;font-size:12px'><img alt='{escape(caption)}' "
        f"style='{style}' src='{source}'><figcaption>{escape(caption)}<br>{said}</figcaption></figure>"
    )
