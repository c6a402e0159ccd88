"""Sheets of samples as a study keeps them: small WebP files, named by variant, seed and step."""

import re
from io import BytesIO
from pathlib import Path
from typing import Any

from recombine.config import UsageError
from recombine.files import checksum, read_bytes, write_atomic
from recombine.store import SHEETS, RunFolder

STEP = re.compile(r"step_(\d+)\.png")
LOSSY = {"quality": 88, "use_sharp_yuv": True}
LARGEST = 16_000
"""Pixels; WebP holds no larger side."""


def keep_sheets(
    runs: list[tuple[dict[str, Any], RunFolder]], folder: Path, earlier: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Copy the sheets of some runs, of those that are there; where each went, from which picture it
    was made and what came of it. One that `earlier` lists just so is not encoded again."""
    kept, taken = [], {}
    known = {(e.get("file"), e.get("source"), e.get("made")) for e in earlier if _is_flat(e)}
    for run, source in runs:
        gone = source.gone(SHEETS)
        for path in (source.path / name for name in source.files(SHEETS) if name not in gone):
            step = STEP.fullmatch(path.name)
            name = f"{slug(run)}-{int(step[1]) if step else slug({'variant': path.stem})}.webp"
            if taken.setdefault(name, run["digest"]) != run["digest"]:
                name = f"{run['digest'][:6]}-{name}"
            picture = source.verified(f"samples/{path.name}")
            digests = (checksum(picture)[:16], _digest(folder / name))
            if (name, *digests) not in known:
                write_atomic(folder / name, as_webp(picture, path))
                digests = (digests[0], _digest(folder / name))
            about = {"run": run["digest"], "file": name, "name": "step" if step else path.stem}
            about |= {"source": digests[0], "made": digests[1]}
            kept.append(about | ({"step": int(step[1])} if step else {}))
    return kept


def _is_flat(entry: dict[str, Any]) -> bool:
    return all(isinstance(entry.get(key), str) for key in ("file", "source", "made"))


def _digest(path: Path) -> str:
    """The checksum of a file that is there, by which it is known again."""
    return checksum(read_bytes(path))[:16] if path.exists() and not path.is_symlink() else ""


def sheet_path(figures: Path, variant: str, seed: int, what: int | str) -> Path:
    """Where a study keeps the sheet of a step, or one with a name; `figures`: the folder of its
    figures."""
    return figures.parent / "samples" / f"{slug({'variant': variant, 'seed': seed})}-{what}.webp"


def sheets_over_training(figures: Path, variant: str, seed: int) -> dict[int, Path]:
    """Step -> sheet, of all that a study keeps of one run."""
    name = re.compile(re.escape(slug({"variant": variant, "seed": seed})) + r"-(\d+)\.webp")
    paths = (figures.parent / "samples").glob("*.webp")
    steps = {int(m[1]): path for path in paths if (m := name.fullmatch(path.name))}
    return dict(sorted(steps.items()))


def slug(run: dict[str, Any]) -> str:
    """ "maskgit, none", seed 1 -> "maskgit-none-s1"."""
    words = re.sub(
        r"[^a-z0-9]+", "-", str(run.get("variant", run.get("label", "run"))).lower()
    ).strip("-")
    return f"{words}-s{run['seed']}" if "seed" in run else words


def as_webp(png: bytes, path: Path) -> bytes:
    """A PNG sheet as WebP: without loss where it is grey, since that is a map of numbers."""
    from PIL import Image

    try:
        with Image.open(BytesIO(png), formats=["PNG"]) as picture:
            how = {"lossless": True} if picture.mode == "L" else LOSSY
            sheet = picture.convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        raise UsageError(f"{path}: is not a readable PNG picture") from None
    if max(sheet.size) > LARGEST:
        sheet.thumbnail((LARGEST, LARGEST))
    buffer = BytesIO()
    sheet.save(buffer, "webp", method=4, **how)
    return buffer.getvalue()
