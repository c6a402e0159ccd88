"""Figures become part of the page: inlined, so that `currentColor` follows light and dark. Only known drawing elements and
attributes pass, so a stranger's results folder cannot bring scripts or reach the network."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

from recombine.config import UsageError
from recombine.report.read import read_text

SVG = "http://www.w3.org/2000/svg"
DRAWING = (
    "svg g path rect circle ellipse line polyline polygon text tspan defs clipPath use marker linearGradient "
    "radialGradient stop title desc image pattern mask symbol"
)
LOOKS = (
    "id style d x y x1 y1 x2 y2 cx cy r rx ry fx fy dx dy width height viewBox preserveAspectRatio transform points "
    "href clip-path clip-rule clipPathUnits fill fill-opacity fill-rule stroke stroke-width stroke-opacity stroke-dasharray "
    "stroke-dashoffset stroke-linecap stroke-linejoin stroke-miterlimit opacity color font font-size font-family "
    "font-weight font-style text-anchor dominant-baseline letter-spacing offset stop-color stop-opacity gradientUnits "
    "gradientTransform patternUnits patternTransform patternContentUnits maskUnits mask marker-start marker-mid marker-end "
    "markerWidth markerHeight refX refY orient visibility display textLength lengthAdjust rotate"
)
ELEMENTS, ATTRIBUTES = frozenset(DRAWING.split()), frozenset(LOOKS.split())
LOCAL_URL = re.compile(r"url\(\s*['\"]?#([^)'\"]+)['\"]?\s*\)")
PICTURE = re.compile(r"data:image/(png|jpeg|webp);base64,[A-Za-z0-9+/=\s]*")
WIDTH = re.compile(r"\d+(\.\d+)?")


def inline_svg(path: Path, prefix: str, label: str) -> str:
    """The drawing in `path` as an element of the page, its ids made unique by `prefix`."""
    text = re.sub(r"<!DOCTYPE[^>\[]*>", "", read_text(path))
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise UsageError(f"{path}: declares entities, which a figure may not")
    try:
        root = ET.fromstring(text)
        clean = _clean(root, prefix)
    except (ET.ParseError, RecursionError):
        raise UsageError(f"{path}: is not a valid SVG file") from None
    if root.tag != f"{{{SVG}}}svg":
        raise UsageError(f"{path}: is not an SVG drawing")
    _as_figure(clean, label)
    return ET.tostring(clean, encoding="unicode")


def _as_figure(root: ET.Element, label: str) -> None:
    """Scale with the page up to the natural size. Matplotlib's global style rule becomes two inherited attributes."""
    width, height = (WIDTH.match(root.attrib.pop(key, "")) for key in ("width", "height"))
    root.attrib.pop("style", None)
    if width and height:
        root.attrib.setdefault("viewBox", f"0 0 {width.group()} {height.group()}")
        root.set("style", f"max-width:{float(width.group()) * 4 / 3:.0f}px")
    root.attrib.update({"role": "img", "aria-label": label, "stroke-linejoin": "round", "stroke-linecap": "butt"})
    root.set("xmlns", SVG)


def _clean(element: ET.Element, prefix: str) -> ET.Element:
    """A copy with allowed elements and attributes only, without namespaces."""
    copy = ET.Element(_local(element.tag))
    copy.text = element.text
    for name, value in element.attrib.items():
        allowed = _attribute(_local(name), value, prefix)
        if allowed is not None:
            copy.set(_local(name), allowed)
    for child in element:
        if isinstance(child.tag, str) and _namespace(child.tag) == SVG and _local(child.tag) in ELEMENTS:
            copy.append(_clean(child, prefix))
            copy[-1].tail = child.tail
    return copy


def _attribute(name: str, value: str, prefix: str) -> str | None:
    """The attribute as it may stand in the page, or None."""
    if name not in ATTRIBUTES:
        return None
    if name == "id":
        return f"{prefix}-{value}"
    if name == "href":
        return f"#{prefix}-{value[1:]}" if value.startswith("#") else value if PICTURE.fullmatch(value) else None
    rest = LOCAL_URL.sub("", value).lower()
    if any(bad in rest for bad in ("url(", "image-set", "src(", "@", "expression", "javascript:", "\\", "/*")):
        return None
    return LOCAL_URL.sub(rf"url(#{prefix}-\1)", value)


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _namespace(tag: str) -> str:
    return tag[1:].partition("}")[0] if tag.startswith("{") else ""
