"""Sheets of samples as a study keeps them: small WebP files, named by variant, seed and step."""

import re
from io import BytesIO
from pathlib import Path
from typing import Any

from recombine.config import UsageError
from recombine.store import write_atomic

STEP = re.compile(r"step_(\d+)\.png")
QUALITY = 82


def keep_sheets(runs: list[tuple[dict[str, Any], Path]], folder: Path) -> list[dict[str, Any]]:
    """Copy the sheets of some runs; where each went. A sheet that is already there is not encoded again."""
    kept, taken = [], {}
    for run, samples in runs:
        for path in sorted(samples.glob("*.png")):
            step = STEP.fullmatch(path.name)
            name = f"{slug(run)}-{int(step[1]) if step else slug({'variant': path.stem})}.webp"
            if taken.setdefault(name, run["digest"]) != run["digest"]:
                name = f"{run['digest'][:6]}-{name}"
            target = folder / name
            if not target.exists() or target.stat().st_mtime < path.stat().st_mtime:
                write_atomic(target, as_webp(path))
            about = {"run": run["digest"], "file": name, "name": "step" if step else path.stem}
            kept.append(about | ({"step": int(step[1])} if step else {}))
    return kept


def slug(run: dict[str, Any]) -> str:
    """ "maskgit, none", seed 1 -> "maskgit-none-s1"."""
    words = re.sub(r"[^a-z0-9]+", "-", str(run.get("variant", run.get("label", "run"))).lower()).strip("-")
    return f"{words}-s{run['seed']}" if "seed" in run else words


def as_webp(path: Path) -> bytes:
    from PIL import Image

    try:
        with Image.open(path, formats=["PNG"]) as picture:
            buffer = BytesIO()
            picture.convert("RGB").save(buffer, "webp", quality=QUALITY, method=4)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        raise UsageError(f"{path}: is not a readable PNG picture") from None
    return buffer.getvalue()
