"""The gallery of docs/scenes.md: `python -m recombine.worlds.scenes.gallery docs/scenes.png`."""

import sys
from io import BytesIO
from pathlib import Path

import torch
from einops import rearrange
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from recombine.rng import seeded
from recombine.store import write_atomic
from recombine.worlds.scenes.scenes import Scenes

SIZE = 160
COUNTS = ((1, 2, 3, 3, 5), (6, 7, 9, 10, 12))


def crowds(seed: int = 0) -> Float[Tensor, "n b 3 h w"]:
    """Rows of pictures with more and more objects."""
    world = Scenes(size=SIZE, samples=9)
    rows = [
        world.images(world.place(torch.tensor(row), seeded(seed, "gallery", *row)))
        for row in COUNTS
    ]
    return torch.stack(rows)


def anatomy(seed: int = 0) -> Float[Tensor, "n b 3 h w"]:
    """One scene with what is known about it: picture, depth, visible parts, one object as a whole,
    and all it touches."""
    world = Scenes(size=SIZE, samples=9)
    scene = world.place(torch.tensor([5]), seeded(seed, "anatomy"))
    images, _, depth, visible, whole = world.render(scene)
    hidden = int((whole - visible).sum((2, 3)).argmax())
    near = 1 - (depth - depth.min()) / (depth.max() - depth.min())
    hues = torch.tensor(
        [[0.9, 0.3, 0.3], [0.3, 0.6, 0.95], [0.4, 0.8, 0.4], [0.95, 0.8, 0.3], [0.7, 0.45, 0.9]]
    )
    parts = torch.einsum("bkhw,kc->bchw", visible, hues)
    masks = (near, whole[:, hidden], world.touched(scene)[:, hidden].float())
    depth, alone, touched = (mask[:, None].expand_as(images) for mask in masks)
    return torch.stack((images, depth, parts, alone, touched), 1)


def sheet(rows: Float[Tensor, "n b 3 h w"]) -> bytes:
    """Rows of pictures with thin white lines between them, as a PNG."""
    framed = torch.nn.functional.pad(rows, (2, 2, 2, 2), value=1.0)
    grid = rearrange(framed, "n b c h w -> (n h) (b w) c")
    buffer = BytesIO()
    Image.fromarray((grid * 255).round().byte().numpy()).save(buffer, "png", optimize=True)
    return buffer.getvalue()


if __name__ == "__main__":
    write_atomic(Path(sys.argv[1]), sheet(torch.cat((crowds(), anatomy()))))
