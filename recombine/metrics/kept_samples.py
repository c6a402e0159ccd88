"""Samples kept on disk for other probes: 8-bit pictures of every composition, compressed."""

import io
import zipfile
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from recombine.config import UsageError
from recombine.store import read_bytes, write_atomic

NAME = "images"
DATE = (1980, 1, 1, 0, 0, 0)
"""The same in all files, so that equal samples are equal files."""


def write_kept(path: Path, images: Float[Tensor, "n b c h w"]) -> None:
    """b pictures in [0, 1] of each of n compositions -> an .npz file with one array."""
    array, zipped = io.BytesIO(), io.BytesIO()
    np.save(array, (images.clamp(0, 1) * 255).round().byte().cpu().numpy())
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as file:
        about = zipfile.ZipInfo(f"{NAME}.npy", DATE)
        file.writestr(about, array.getvalue(), zipfile.ZIP_DEFLATED)
    write_atomic(path, zipped.getvalue())


def read_kept(path: Path) -> Float[Tensor, "n b c h w"]:
    """What `write_kept` wrote, in [0, 1] to a 255th."""
    try:
        with np.load(io.BytesIO(read_bytes(path)), allow_pickle=False) as file:
            data = file[NAME]
    except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile):
        raise UsageError(f"{path}: holds no kept samples") from None
    if data.ndim != 5 or data.dtype != np.uint8:
        raise UsageError(f"{path}: holds no kept samples")
    return torch.from_numpy(data).float() / 255
