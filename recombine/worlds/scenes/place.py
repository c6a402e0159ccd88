"""Where objects stand: CLEVR's rules, for a whole batch at once.

Objects come one after the other. Each is given the first of some random positions at which it keeps
its distance from all earlier ones, and differs enough from them to the left and right and to the
front and back, as the camera sees it. Where none of the positions will do, or where an object turns
out to be hidden, the whole scene is sampled anew."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from recombine.config import UsageError
from recombine.worlds.scenes.camera import Camera, Frame
from recombine.worlds.scenes.masks import areas
from recombine.worlds.scenes.scene import Scene, table
from recombine.worlds.scenes.shot import shots

REACH = 3.0
"""Positions are uniform in a square of this half side."""
TRIES, ROUNDS = 100, 40
"""Positions tried for an object, and rounds without a single success before giving up."""
CPU_BATCH, GPU_BATCH = 256, 8192
"""How many scenes a round tries where few pictures are left and these are hard: more and more for
each, up to this."""
LEAST = 200 / 320**2
"""The smallest visible area of an object, where CLEVR's picture is 1 wide."""
INSIDE = 0.08
"""How far from the border of the picture the centre of an object stays, as a share of its side."""
GRID = (60, 80)
"""Rows and columns of rays by which this area is measured."""


class Rules(NamedTuple):
    """Which objects there may be, as indices, and how they are spread."""

    shapes: tuple[int, ...]
    colors: tuple[int, ...]
    materials: tuple[int, ...]
    sizes: tuple[int, ...]
    apart: float
    margin: float
    spacing: float
    camera_jitter: float
    lamp_jitter: float
    wide: float
    high: float


def place(rules: Rules, count: Int[Tensor, "b"], slots: int, rng: torch.Generator) -> Scene:
    """Random scenes with `count` objects each, in the first of `slots` slots."""
    scene, good = draft(rules, count, slots, rng)
    left, rounds, times = len(count) + 1, ROUNDS, 1
    while len(again := (~good).nonzero()[:, 0]):
        rounds = ROUNDS if len(again) < left else rounds - 1
        if not rounds:
            spacing = f", {rules.spacing:.3g} apart in the picture" if rules.spacing else ""
            raise UsageError(
                f"{int(count[again].max())} objects: found no room for so many at a distance of "
                f"{rules.apart} and a margin of {rules.margin}{spacing}; use fewer, or allow "
                "small ones only"
            )
        left, times = (
            len(again),
            min(2 * times, max(1, (GPU_BATCH if good.is_cuda else CPU_BATCH) // len(again))),
        )
        fresh, fine = best_of(times, rules, count[again], slots, rng)
        scene = Scene(
            *(old.index_copy(0, again, new) for old, new in zip(scene, fresh, strict=True))
        )
        good = good.index_copy(0, again, fine)
    return scene


def best_of(
    times: int, rules: Rules, count: Int[Tensor, "b"], slots: int, rng: torch.Generator
) -> tuple[Scene, Bool[Tensor, "b"]]:
    """As `draft`, with the first good one of several trials for each picture."""
    scene, good = draft(rules, count.repeat(times), slots, rng)
    best = good.view(times, -1).int().argmax(0) * len(count) + torch.arange(
        len(count), device=good.device
    )
    return scene.take(best), good[best]


def draft(
    rules: Rules, count: Int[Tensor, "b"], slots: int, rng: torch.Generator
) -> tuple[Scene, Bool[Tensor, "b"]]:
    """Random scenes, and whether each obeys the rules."""
    b, device = len(count), rng.device

    def pick(allowed: tuple[int, ...]) -> Int[Tensor, "b k"]:
        choice = torch.randint(len(allowed), (b, slots), generator=rng, device=device)
        return table(allowed, device).long()[choice]

    def spread(*shape: int) -> Tensor:
        return 2 * torch.rand(b, *shape, generator=rng, device=device) - 1

    kind = [pick(allowed) for allowed in (rules.shapes, rules.colors, rules.materials, rules.sizes)]
    present = torch.arange(slots, device=device) < count[:, None]
    shift, lamps = rules.camera_jitter * spread(3), rules.lamp_jitter * spread(3, 3)
    scene = Scene(spread(slots, 2), torch.pi * spread(slots), *kind, present, shift, lamps)
    camera = Camera.aimed(shift)
    xy, good = settle(
        rules, scene, camera, torch.rand(b, slots, TRIES, 2, generator=rng, device=device)
    )
    scene, rows = scene._replace(xy=xy), good.nonzero()[:, 0]
    return scene, good.index_copy(0, rows, in_sight(rules, scene.take(rows))) if len(rows) else good


def settle(
    rules: Rules, scene: Scene, camera: Camera, tries: Float[Tensor, "b k m 2"]
) -> tuple[Float[Tensor, "b k 2"], Bool[Tensor, "b"]]:
    """The first of the positions tried that suits each object, and whether there was one for all.
    `tries` are uniform in [0, 1]; they become positions that keep the margin from all earlier
    objects."""
    axes = torch.nn.functional.normalize(
        torch.stack((camera.right, camera.forward), 1)[..., :2], dim=-1
    )
    spot, cross, shown = (torch.zeros_like(tries[:, :, 0]) for _ in range(3))
    good = torch.ones_like(scene.present[:, 0])
    for i in range(tries.shape[1]):
        free, some = zip(
            *(between(cross[:, :i, a], rules.margin, tries[:, i, :, a]) for a in (0, 1)),
            strict=True,
        )
        across = torch.stack(free, -1)
        there = across @ axes
        room = scene.radius[:, i, None] + scene.radius[:, :i] + rules.apart
        gap = (there[:, :, None] - spot[:, None, :i]).square().sum(-1)
        fits = (
            (gap >= room[:, None].square()).all(-1)
            & (there.abs() <= REACH).all(-1)
            & (some[0] & some[1])[:, None]
        )
        centre = appears(rules, camera, there, scene.radius[:, i])
        gap = (centre[:, :, None] - shown[:, None, :i]).square().sum(-1)
        fits = (
            fits & ((centre - 0.5).abs() < 0.5 - INSIDE).all(-1) & (gap >= rules.spacing**2).all(-1)
        )
        first = fits.int().argmax(1)[:, None, None].expand(-1, 1, 2)
        for kept, tried in ((spot, there), (cross, across), (shown, centre)):
            kept[:, i] = tried.gather(1, first)[:, 0]
        good = good & (fits.any(1) | ~scene.present[:, i])
    return spot, good


def between(
    taken: Float[Tensor, "b i"], margin: float, share: Float[Tensor, "b m"]
) -> tuple[Float[Tensor, "b m"], Bool[Tensor, "b"]]:
    """Uniform positions on an axis that keep a margin from those taken, and whether there are
    any."""
    taken, end = taken.sort(1).values, share.new_full((len(share), 1), REACH * 2**0.5)
    low, high = torch.cat((-end, taken + margin), 1), torch.cat((taken - margin, end), 1)
    edge = (high - low).clamp_min(0).cumsum(1)
    at = share * edge[:, -1:]
    gap = torch.searchsorted(edge, at).clamp_max(edge.shape[1] - 1)
    return high.gather(1, gap) - (edge.gather(1, gap) - at), edge[:, -1] > 0


def appears(
    rules: Rules, camera: Camera, xy: Float[Tensor, "b m 2"], radius: Float[Tensor, "b"]
) -> Float[Tensor, "b m 2"]:
    """Where the centre of an object at these positions appears in the picture."""
    middle = torch.cat((xy, radius[:, None, None].expand(-1, xy.shape[1], 1)), -1)
    return camera.project(middle, frame(rules))[..., :2]


def in_sight(rules: Rules, scene: Scene) -> Bool[Tensor, "b"]:
    """Whether enough of every object is visible."""
    area = torch.cat([areas(*part) for part in shots(scene, frame(rules))]) * (
        rules.wide * rules.high
    )
    return ((area >= LEAST) | ~scene.present).all(1)


def frame(rules: Rules) -> Frame:
    return Frame(*GRID, rules.wide, rules.high, 1)
