"""A folder of pictures as somebody might have them, for docs/own-data.md: `python
scripts/example_pictures.py cups`. Cups, bowls and plates in three colours and two sizes, on walls of
any light colour, some combinations often and some rarely, three never."""

import argparse
import csv
import random
from itertools import product
from pathlib import Path

from PIL import Image, ImageDraw

SHAPES, COLORS, SIZES = ("cup", "bowl", "plate"), ("red", "green", "blue"), ("small", "large")
RGB = {"red": (205, 50, 45), "green": (45, 150, 70), "blue": (50, 80, 200)}
UNSEEN = (("bowl", "green", "large"), ("plate", "red", "small"), ("cup", "blue", "large"))
FINE = 4
"""Pictures are drawn so many times larger and scaled down, for smooth edges."""


def picture(label: tuple[str, str, str], side: int, rng: random.Random) -> Image.Image:
    """One picture: the light, the place and the exact colour and size differ from one to the next."""
    shape, color, size = label
    wall = rng.randint(175, 235)
    backdrop = tuple(wall + rng.randint(-12, 12) for _ in range(3))
    image = Image.new("RGB", (side * FINE, side * FINE), backdrop)
    r = (0.34 if size == "large" else 0.19) * rng.uniform(0.93, 1.07) * side * FINE
    x, y = (rng.uniform(0.42, 0.58) * side * FINE for _ in range(2))
    fill = tuple(min(255, max(0, c + rng.randint(-18, 18))) for c in RGB[color])
    PARTS[shape](ImageDraw.Draw(image), x, y, r, fill, backdrop)
    return image.resize((side, side), Image.Resampling.LANCZOS)


def cup(draw: ImageDraw.ImageDraw, x: float, y: float, r: float, fill: tuple, wall: tuple) -> None:
    draw.ellipse((x + 0.2 * r, y - 0.5 * r, x + 1.1 * r, y + 0.5 * r), fill)
    draw.ellipse((x + 0.4 * r, y - 0.3 * r, x + 0.9 * r, y + 0.3 * r), wall)
    draw.rectangle((x - 0.75 * r, y - r, x + 0.6 * r, y + r), fill)


def bowl(draw: ImageDraw.ImageDraw, x: float, y: float, r: float, fill: tuple, wall: tuple) -> None:
    draw.pieslice((x - 1.1 * r, y - 1.5 * r, x + 1.1 * r, y + 0.7 * r), 0, 180, fill)
    draw.rectangle((x - 0.5 * r, y + 0.5 * r, x + 0.5 * r, y + 0.8 * r), fill)


def plate(
    draw: ImageDraw.ImageDraw, x: float, y: float, r: float, fill: tuple, wall: tuple
) -> None:
    draw.ellipse((x - r, y - r, x + r, y + r), fill)
    draw.ellipse((x - 0.55 * r, y - 0.55 * r, x + 0.55 * r, y + 0.55 * r), wall)


PARTS = {"cup": cup, "bowl": bowl, "plate": plate}


def counts(number: int, least: int, rng: random.Random) -> dict[tuple[str, str, str], int]:
    """So many pictures in all: `least` of each combination, the rest as chance has it."""
    labels = [c for c in product(SHAPES, COLORS, SIZES) if c not in UNSEEN]
    found = dict.fromkeys(labels, least)
    weights = [rng.random() ** 2 for _ in labels]
    for label in rng.choices(labels, weights, k=max(0, number - least * len(labels))):
        found[label] += 1
    return found


def make(root: Path, number: int = 450, side: int = 32, least: int = 8, seed: int = 0) -> Path:
    """Write the pictures and `factors.csv`."""
    rng, rows = random.Random(seed), []
    root.mkdir(parents=True, exist_ok=True)
    for label, count in counts(number, least, rng).items():
        for _ in range(count):
            name = f"{len(rows):04}.png"
            picture(label, side, rng).save(root / name)
            rows.append(dict(zip(("file", "shape", "color", "size"), (name, *label), strict=True)))
    with open(root / "factors.csv", "w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)
    return root


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--n", type=int, default=450)
    parser.add_argument("--side", type=int, default=32)
    parser.add_argument("--least", type=int, default=8, help="pictures of each combination")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(make(given.folder, given.n, given.side, given.least, given.seed))
