"""How fast scenes are placed and rendered at 64 x 64, four rays a pixel, shadows and reflections
on. On one CPU core a batch is set beside one picture at a time. On a GPU, where there is one, the
kernel is set beside the core, and beside the stages that render where there is no kernel;
`compiled` are the seconds of its first call, which do not count. `share` says how much of a step's
time it would take to render a batch of 256 for a network that trains at 40 steps a second: far
below one, rendering is never what training waits for."""

from collections.abc import Iterator

import torch
from _timing import one_core, per_second, seconds

from recombine.rng import seeded
from recombine.worlds.scenes.scene import Scene
from recombine.worlds.scenes.scenes import Scenes
from recombine.worlds.scenes.shot import shots
from recombine.worlds.scenes.stages import trace

CASES = {"1 to 3 objects": (Scenes(), (1, 2, 3)), "12 slots": (Scenes(counts=(12,)), (9, 9, 9))}


def scenes(world: Scenes, counts: tuple[int, ...], pictures: int, device: str) -> Scene:
    """Some scenes, placed on the CPU and repeated."""
    few = world.place(torch.tensor(counts * 4), seeded("bench"))
    times = -(-pictures // len(few.xy))
    return Scene(
        *(part.repeat(times, *[1] * (part.dim() - 1))[:pictures].to(device) for part in few)
    )


def on_one_core() -> Iterator[dict]:
    for name, (world, counts) in CASES.items():
        scene = scenes(world, counts, 12, "cpu")
        batch = per_second(lambda world=world, scene=scene: world.images(scene), 12, repeats=3)
        single = per_second(
            lambda world=world, scene=scene: [world.images(part) for part in scene.split(1)],
            12,
            repeats=3,
        )
        yield {
            "name": f"render, {name}, one core",
            "value": batch,
            "ratio": batch / single,
            "beside": "one at a time",
        }
    world, counts = CASES["1 to 3 objects"]
    place = per_second(lambda: world.place(torch.tensor(counts * 100), seeded("bench")), 300)
    drawn = per_second(lambda: world.images(scenes(world, counts, 12, "cpu")), 12, repeats=3)
    yield {
        "name": "place, 1 to 3 objects, one core",
        "value": place,
        "ratio": place / drawn,
        "beside": "render",
    }


def on_gpu(core: list[dict]) -> Iterator[dict]:
    for (name, (world, counts)), beside in zip(CASES.items(), core, strict=False):
        scene = scenes(world, counts, 16384, "cuda")
        compiled = seconds(lambda world=world, scene=scene: world.images(scene), "cuda", 0)
        speed = per_second(
            lambda world=world, scene=scene: world.images(scene), 16384, "cuda", repeats=8
        )
        ratio = speed / beside["value"]
        row = {"name": f"render, {name}, GPU", "value": speed, "ratio": ratio, "beside": "one core"}
        yield row | {"compiled": compiled}
        some = shots(scene.take(slice(2048)), world.frame)
        staged = per_second(
            lambda some=some: [trace(*part, True, True) for part in some], 2048, "cuda", repeats=4
        )
        yield {
            "name": f"render, {name}, GPU, in stages",
            "value": staged,
            "ratio": staged / speed,
            "beside": "kernel",
        }
    sample = per_second(
        lambda: Scenes().sample(16384, seeded("bench", device="cuda")), 16384, "cuda", repeats=8
    )
    ratio = sample / core[0]["value"]
    yield {"name": "place and render, 1 to 3 objects, GPU", "value": sample, "ratio": ratio,
           "beside": "one core", "share": 40 * 256 / sample}  # fmt: skip


def main() -> Iterator[dict]:
    core = []
    with one_core():
        for row in on_one_core():
            core.append(row)
            yield row | {"unit": "pictures/s"}
    if torch.cuda.is_available():
        yield from (row | {"unit": "pictures/s"} for row in on_gpu(core))


if __name__ == "__main__":
    for row in main():
        print("{name:36} {value:12,.0f} {unit}   {ratio:8.1f} x {beside}".format(**row))
