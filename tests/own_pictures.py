"""Pictures as somebody might have them: drawn shapes of three factors on uneven backgrounds."""

import csv
import random
from pathlib import Path

from PIL import Image, ImageDraw

SHAPES, COLORS = ("disc", "bar"), ("red", "blue", "green")
RGB = {"red": (200, 40, 40), "green": (40, 160, 60), "blue": (50, 70, 200)}
KINDS = [(shape, color) for shape in SHAPES for color in COLORS]


def picture(shape: str, color: str, rng: random.Random, side: int = 20) -> Image.Image:
    image = Image.new("RGB", (side, side), tuple(rng.randint(170, 230) for _ in range(3)))
    x, y = rng.uniform(0.4, 0.6) * side, rng.uniform(0.4, 0.6) * side
    fill = tuple(c + rng.randint(-15, 15) for c in RGB[color])
    r = 0.3 * side
    if shape == "disc":
        ImageDraw.Draw(image).ellipse((x - r, y - r, x + r, y + r), fill)
    else:
        ImageDraw.Draw(image).rectangle((x - r, y - r / 4, x + r, y + r / 4), fill)
    return image


def make(root: Path, count: int = 90, lacks: tuple = (), seed: int = 0, side: int = 20) -> Path:
    """A folder with factors.csv and uneven counts; `lacks`: combinations that are not there."""
    rng, rows = random.Random(seed), []
    root.mkdir(parents=True, exist_ok=True)
    kinds = [k for k in KINDS if k not in lacks]
    for i in range(count):
        kind = kinds[i % len(kinds)] if i < 5 * len(kinds) else kinds[rng.randrange(len(kinds))]
        picture(*kind, rng, side).save(root / f"{i:03}.png")
        rows.append({"file": f"{i:03}.png", "shape": kind[0], "color": kind[1]})
    write(root / "factors.csv", rows)
    return root


def write(path: Path, rows: list[dict]) -> None:
    with open(path, "w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)
