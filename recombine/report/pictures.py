"""The pictures of README and docs that are laid out from the samples of the shipped results."""

from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from recombine.figures import INK, LEVELS
from recombine.store import read_json, read_rows


def tile(sheet: Path, row: int, rows: int, frame: str, zoom: int = 3, gap: int = 6) -> Image.Image:
    """Four samples of the composition that stands in a row of a sheet, framed."""
    image = Image.open(sheet)
    side = image.height // rows
    made = Image.new("RGB", (2 * side * zoom + 2 * gap,) * 2, frame)
    for j in range(4):
        cell = image.crop((j * side, row * side, (j + 1) * side, (row + 1) * side)).resize((side * zoom,) * 2, 0)
        made.paste(cell, (gap + j % 2 * side * zoom, gap + j // 2 * side * zoom))
    return made


def samples(results: Path, run: str) -> list[Path]:
    return sorted((results / "runs" / run / "samples").glob("*.png"))


def cover(results: Path) -> Image.Image:
    """What the first run of `composition` draws at the end: a tile per composition, in the colour of its level."""
    study = read_json(results / "composition" / "study.json")
    codes, sheet = sorted(study["levels"]), samples(results, study["runs"][0]["digest"])[-1]
    tiles = [tile(sheet, i, len(codes), LEVELS[study["levels"][c]]) for i, c in enumerate(codes)]
    step, columns = tiles[0].width + 6, 4
    page = Image.new("RGB", (columns * step - 6, len(tiles) // columns * step - 6), "white")
    for i, one in enumerate(tiles):
        page.paste(one, (i % columns * step, i // columns * step))
    return page


def furthest(results: Path, study: dict[str, Any]) -> dict[str, dict[int, float]]:
    """The accuracy of each run of a study at its last level, by the judge, at every checkpoint."""
    found: dict[str, dict[int, float]] = defaultdict(dict)
    top = max(study["levels"].values())
    for r in read_rows(results / study["name"] / "rows.jsonl"):
        if r["kind"] == "accuracy" and (r["probe"], r["level"]) == ("wary", top):
            found[r["run"]][r["step"]] = r["joint"]
    return found


def unseen(results: Path) -> Image.Image:
    """What every run of `objectives` draws of the composition furthest from all it saw: where all of them together are best,
    and at the end. A line per family; below each tile what the judge says."""
    study = read_json(results / "objectives" / "study.json")
    score, codes = furthest(results, study), sorted(study["levels"])
    row = max(range(len(codes)), key=lambda i: study["levels"][codes[i]])
    steps = sorted(next(iter(score.values())))
    peak = max(steps, key=lambda s: fmean(run[s] for run in score.values()))
    families, seeds = list(dict.fromkeys(r["variant"] for r in study["runs"])), study["seeds"]
    side, left, head, gap = 118, 92, 62, 8
    size = (left + 2 * len(seeds) * (side + gap) + 22, head + len(families) * (side + 30))
    page = Image.new("RGB", size, "white")
    pen, font = ImageDraw.Draw(page), ImageFont.load_default(17)
    at = lambda k, i: left + (k * len(seeds) + i) * (side + gap) + 22 * k  # noqa: E731
    for k, step in enumerate((peak, steps[-1])):
        pen.text((at(k, (len(seeds) - 1) / 2) + side / 2, 14), f"after {step:,} updates", INK, font, "mm")
        for i in seeds:
            pen.text((at(k, i) + side / 2, 44), f"seed {i}", INK, ImageFont.load_default(15), "mm")
    for r in study["runs"]:
        y = head + families.index(r["variant"]) * (side + 30)
        pen.text((left - 12, y + side / 2), r["variant"], INK, font, "rm")
        for k, step in enumerate((peak, steps[-1])):
            sheet = results / "runs" / r["digest"] / "samples" / f"step_{step:08d}.png"
            one = tile(sheet, row, len(codes), LEVELS[study["levels"][codes[row]]], zoom=2, gap=3)
            page.paste(one, (at(k, r["seed"]), y))
            said = f"{score[r['digest']][step]:.2f}"
            pen.text((at(k, r["seed"]) + side / 2, y + side + 12), said, INK, ImageFont.load_default(15), "mm")
    return page
