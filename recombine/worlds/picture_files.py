"""Picture files of others: only regular files inside their folder, of usual formats (none that runs
a program), within the limits of `recombine.limits`; whatever is wrong is one line."""

import io
import os
import stat
import warnings
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageOps

from recombine.config import UsageError
from recombine.limits import allow, limit, regular

FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM")


def read_inside(root: Path, name: str, who: str) -> bytes:
    """The bytes of a file below `root`; `who` names it in complaints."""
    try:
        path = found_inside(root, name, who)
        with regular(path) as file:
            return file.read()
    except OSError:
        raise UsageError(f"{root}: {who} names {name!r}, and there is no such file") from None


def found_inside(root: Path, name: str, who: str) -> str:
    """Where a file below `root` is. UsageError where it is none, or where its name or a link leads
    out of the folder: a table must not say what else of this machine is read."""
    path = f"{root}/{name}"
    if name.startswith("/") or ".." in name.split("/") or "\0" in name:
        raise UsageError(f"{root}: {who} names {name!r}, which is not inside the folder")
    try:
        mode = os.lstat(path).st_mode
        linked = stat.S_ISLNK(mode) or "/" in name
        outside = linked and not _is_below(path, root)
        plain = outside or stat.S_ISREG(os.stat(path).st_mode if linked else mode)
    except (OSError, ValueError):
        raise UsageError(f"{root}: {who} names {name!r}, and there is no such file") from None
    if outside:
        raise UsageError(f"{root}: {who}, {name!r}, is a link out of the folder")
    if not plain:
        raise UsageError(f"{root}: {who}, {name!r}, is not a regular file")
    return path


def _is_below(path: str, root: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def rgb(picture: Image.Image) -> Image.Image:
    """Any picture in RGB; 16 bits become 8, where Pillow would make all but the darkest white. What
    is transparent lies on white, as viewers show it; Pillow would show what is stored there."""
    if picture.mode.startswith("I"):
        values = np.asarray(picture).astype(np.int64)
        if values.min() < 0 or values.max() > 65535:
            raise ValueError(f"values from {values.min()} to {values.max()}, not in 0..65535")
        picture = Image.fromarray((values // 257).astype(np.uint8))
    if picture.has_transparency_data:
        white = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(white, picture.convert("RGBA"))
    return picture.convert("RGB")


def decode(data: bytes, where: str, size: int | None = None) -> UInt8[np.ndarray, "h w 3"]:
    """A picture as RGB, upright, cropped and scaled to a square where `size` is given. Its header
    says how large it is; more pixels than allowed are not decoded."""
    most = limit("pixels")
    if Image.MAX_IMAGE_PIXELS is not None:
        Image.MAX_IMAGE_PIXELS = max(Image.MAX_IMAGE_PIXELS, most)
    try:
        with warnings.catch_warnings(action="ignore", category=Image.DecompressionBombWarning):
            picture = Image.open(io.BytesIO(data), formats=FORMATS)
        pixels = picture.width * picture.height
        if pixels <= most:
            picture = rgb(ImageOps.exif_transpose(picture))
            return np.asarray(picture if size is None else ImageOps.fit(picture, (size, size)))
    except Image.DecompressionBombError:
        pixels = 2 * Image.MAX_IMAGE_PIXELS  # or more
    except Exception:  # what a damaged file raises in a decoder is as varied as decoders are
        raise UsageError(f"{where}, is not a picture that can be read") from None
    allow("pixels", pixels, where)
    raise AssertionError("allow() refuses it")
