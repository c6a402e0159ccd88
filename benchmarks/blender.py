"""The tracer against Blender's Cycles (32 samples), which CLEVR was made with: the same scenes,
pictures and number of CPU cores, side by side. Blender is no dependency; where no `blender` is
found there is nothing to compare, and a line says so.

`python benchmarks/blender.py docs/blender.png` keeps pictures instead: ours above, Blender's
below."""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from _timing import per_second
from PIL import Image

from recombine.rng import seeded
from recombine.worlds.scenes.fuse import fusing
from recombine.worlds.scenes.gallery import sheet
from recombine.worlds.scenes.lights import LAMPS
from recombine.worlds.scenes.scene import COLORS, MATERIALS, SHAPES, Scene
from recombine.worlds.scenes.scenes import Scenes

CASES, SHOWN, SAMPLES = (
    {"1 to 3 objects": (1, 2, 3) * 8, "9 objects": (9,) * 6},
    (2, 3, 4, 5, 7, 9),
    32,
)


def described(scene: Scene, i: int) -> dict:
    """One scene of a batch, in plain numbers, for Blender."""
    at = scene.lamps[i].tolist()
    lamps = [
        {
            "place": [p + s for p, s in zip(lamp.place, shift, strict=True)],
            "rgb": lamp.rgb,
            "power": lamp.power,
            "side": lamp.side,
        }
        for lamp, shift in zip(LAMPS, at, strict=True)
    ]
    objects = [
        {
            "xy": scene.xy[i, j].tolist(),
            "angle": float(scene.angle[i, j]),
            "shape": SHAPES[scene.shape[i, j]],
            "material": MATERIALS[scene.material[i, j]],
            "rgb": [c / 255 for c in tuple(COLORS.values())[scene.color[i, j]]],
            "radius": float(scene.radius[i, j]),
        }
        for j in range(scene.xy.shape[1])
        if scene.present[i, j]
    ]
    return {"camera": scene.camera[i].tolist(), "lamps": lamps, "objects": objects}


def by_blender(scene: Scene, size: int, threads: int, folder: Path) -> float:
    """Pictures a second, without Blender's start; the pictures are in the folder."""
    job = {
        "scenes": [described(scene, i) for i in range(len(scene.xy))],
        "size": size,
        "samples": SAMPLES,
        "threads": threads,
    }
    (folder / "job.json").write_text(json.dumps(job))
    script = Path(__file__).with_name("_in_blender.py")
    line = [
        "blender",
        "-b",
        "--factory-startup",
        "-noaudio",
        "--python",
        str(script),
        "--",
        str(folder),
    ]
    subprocess.run(line, check=True, capture_output=True, timeout=900)
    return len(scene.xy) / sum(json.loads((folder / "seconds.json").read_text()))


def compare(name: str, counts: tuple[int, ...], size: int) -> dict:
    threads, world = torch.get_num_threads(), Scenes(size=size)
    scene = world.place(torch.tensor(counts), seeded("blender"))
    plain = per_second(lambda: world.images(scene), len(counts))
    with fusing():
        ours = per_second(lambda: world.images(scene), len(counts))
    with tempfile.TemporaryDirectory() as there:
        theirs = by_blender(scene.take(slice(6)), size, threads, Path(there))
    name = f"render, {name}, {size} x {size}, {threads} threads, fused"
    beside = {
        "ratio": ours / theirs,
        "beside": f"Blender Cycles, {SAMPLES} samples",
        "not fused": plain / theirs,
    }
    return {"name": name, "value": ours, "unit": "pictures/s", **beside}


def gallery(path: Path, size: int = 160) -> None:
    """The same scenes by the tracer, above, and by Blender."""
    scene = Scenes(size=size).place(torch.tensor(SHOWN), seeded("blender"))
    with tempfile.TemporaryDirectory() as there:
        by_blender(scene, size, torch.get_num_threads(), Path(there))
        shown = [Image.open(Path(there) / f"{i}.png").convert("RGB") for i in range(len(SHOWN))]
    below = torch.stack(
        [torch.frombuffer(bytearray(p.tobytes()), dtype=torch.uint8) for p in shown]
    )
    below = below.view(-1, size, size, 3).permute(0, 3, 1, 2) / 255
    path.write_bytes(sheet(torch.stack((Scenes(size=size, samples=9).images(scene), below))))


def main() -> list[dict]:
    if not shutil.which("blender"):
        print("no blender found: nothing to compare with", file=sys.stderr)
        return []
    return [compare(name, counts, 64) for name, counts in CASES.items()]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        gallery(Path(sys.argv[1]))
    for row in () if len(sys.argv) > 1 else main():
        print("{name:52} {value:9,.1f} {unit}   {ratio:8.1f} x {beside}".format(**row))
