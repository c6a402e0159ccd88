"""How fast pictures are rendered and read back. On one CPU core each way is set beside a plain one
(a loop over pictures), on a GPU, where there is one, beside the core. `ratio` is how many times
faster the row is than what it is set beside."""

import numpy as np
import torch
from _timing import one_core, per_second

from recombine.rng import seeded
from recombine.worlds.shapes2d import Shapes2D

WORLD = Shapes2D(size=28)


def plain_picture(
    rng: np.random.Generator, shape: int, rgb: np.ndarray, radius: float, size: int = 28
) -> np.ndarray:
    """The same picture, rendered the way one writes it for a single one."""
    x, y = np.meshgrid(np.arange(size) + 0.5, np.arange(size) + 0.5)
    rgb, radius = rgb + rng.uniform(-0.06, 0.06, 3), radius * size * (1 + rng.uniform(-0.06, 0.06))
    x, y = (
        x - rng.uniform(1.35 * radius, size - 1.35 * radius),
        y - rng.uniform(1.56 * radius, size - 0.78 * radius),
    )
    triangle = 0.7776 * radius - np.maximum(np.abs(x) * np.sqrt(3) / 2 - y / 2, y)
    deep = triangle if shape else radius - np.sqrt(x**2 + y**2)
    cover = np.clip(deep + 0.5, 0, 1)
    return (0.95 + cover * (rgb[:, None, None] - 0.95)).astype(np.float32)


def compositions(count: int, device: str) -> torch.Tensor:
    every = torch.tensor(WORLD.space.compositions, device=device)
    return every.repeat(-(-count // len(every)), 1)[:count]


def on_one_core() -> list[dict]:
    many, some = compositions(4096, "cpu"), compositions(128, "cpu")
    images = WORLD.render(many, seeded("bench")).images
    shapes, values, rng = (
        some[:, 0].tolist(),
        WORLD.canonical(some).numpy(),
        np.random.default_rng(0),
    )
    plain = per_second(
        lambda: [plain_picture(rng, s, v[:3], v[3]) for s, v in zip(shapes, values, strict=True)],
        128,
    )
    single = per_second(lambda: [WORLD.read(image[None]) for image in images[:32]], 32)
    render = per_second(lambda: WORLD.render(many, seeded("bench")), len(many))
    read = per_second(lambda: WORLD.read(images), len(many), repeats=3)
    return [
        {
            "name": "render, one core",
            "value": render,
            "unit": "pictures/s",
            "ratio": render / plain,
            "beside": "numpy loop",
        },
        {
            "name": "read, one core",
            "value": read,
            "unit": "pictures/s",
            "ratio": read / single,
            "beside": "one at a time",
        },
    ]


def on_gpu(core: list[dict]) -> list[dict]:
    many = compositions(65536, "cuda")
    images = WORLD.render(many, seeded("bench", device="cuda")).images
    render = per_second(
        lambda: WORLD.render(many, seeded("bench", device="cuda")), len(many), "cuda"
    )
    read = per_second(lambda: WORLD.read(images), len(many), "cuda")
    return [
        {
            "name": f"{name}, GPU",
            "value": v,
            "unit": "pictures/s",
            "ratio": v / row["value"],
            "beside": "one core",
        }
        for name, v, row in (("render", render, core[0]), ("read", read, core[1]))
    ]


def main() -> list[dict]:
    with one_core():
        rows = on_one_core()
    return rows + on_gpu(rows) if torch.cuda.is_available() else rows


if __name__ == "__main__":
    for row in main():
        print("{name:18} {value:12,.0f} {unit}   {ratio:6.1f} x {beside}".format(**row))
