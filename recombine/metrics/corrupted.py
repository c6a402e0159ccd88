"""Corrupted pictures, as a broken model draws them. A closed-set classifier names even an empty
picture; an open-set probe is trained on these to reject them. They are made from any world's own
pictures:

- mixed: a picture and one of another composition at the same place, one through the other (colours
  between two, ghosts);
- patched: blocks of one and blocks of the other;
- faded: the picture sunk into the colour of its border, up to nothing at all;
- noisy: so much noise that little else is left;
- strayed, where the world can render it: one thing between two compositions that differ in one
  factor. Without these a probe lets a triangle with round corners pass and refuses a blue that
  leans towards red, since only the latter can be mixed."""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from recombine.worlds.world import World

MIX, FADE, NOISE, BLOCKS = (0.35, 0.65), (0.6, 1.0), (0.25, 1.0), 7
"""How much of the other picture; how far gone; the noise's standard deviation; blocks along a
side."""
TINGE, FAINT, DUST = 0.15, 0.3, 0.05
"""How much of another composition a picture may have, how far it may fade, how noisy it may be, and
still be a good one. What lies between good and corrupted is shown as neither, and the probe may
decide."""


def corrupted(
    world: World, factors: Int[Tensor, "b k"], rng: torch.Generator
) -> Float[Tensor, "b c h w"]:
    """Pictures that were to show `factors` and show no composition, each corrupted in one of these
    ways."""
    images, other = pair(world, factors, rng)
    stray = [lambda: strayed(world, factors, MIX, rng)] if world.interpolates else []
    return spoiled(images, other, rng, stray)


def spoiled(
    images: Float[Tensor, "b c h w"],
    other: Float[Tensor, "b c h w"],
    rng: torch.Generator,
    more: Sequence[Callable[[], Tensor]] = (),
) -> Float[Tensor, "b c h w"]:
    """Each picture corrupted in one way, with the help of a picture of another composition."""
    ways: list[Callable[[], Tensor]] = [
        lambda: mixed(images, other, MIX, rng),
        lambda: patched(images, other, rng),
        lambda: faded(images, FADE, rng),
        lambda: images + _strength(images, NOISE, rng) * _normal(images, rng),
        *more,
    ]
    which = torch.randint(len(ways), (len(images), 1, 1, 1), generator=rng, device=rng.device)
    made = torch.stack([way() for way in ways])
    return made.gather(0, which[None].expand(1, *images.shape))[0].clamp(0, 1)


def slightly_degraded(
    images: Float[Tensor, "b c h w"], other: Float[Tensor, "b c h w"], rng: torch.Generator
) -> Float[Tensor, "b c h w"]:
    """Good pictures as a model may draw them: a tinge of another one, a little faint, a little
    dusty."""
    made = faded(mixed(images, other, (0.0, TINGE), rng), (0.0, FAINT), rng)
    return (made + _strength(images, (0.0, DUST), rng) * _normal(images, rng)).clamp(0, 1)


def imperfect(
    world: World, factors: Int[Tensor, "b k"], rng: torch.Generator
) -> Float[Tensor, "b c h w"]:
    """Good pictures as a model may draw them: a tinge of another composition, a little faint, a
    little dusty."""
    images, other = pair(world, factors, rng)
    made = mixed(images, other, (0.0, TINGE), rng)
    if world.interpolates:
        coin = torch.rand(len(images), 1, 1, 1, generator=rng, device=rng.device)
        made = torch.where(coin < 0.5, made, strayed(world, factors, (0.0, TINGE), rng))
    made = faded(made, (0.0, FAINT), rng)
    return (made + _strength(images, (0.0, DUST), rng) * _normal(images, rng)).clamp(0, 1)


def strayed(
    world: World, factors: Int[Tensor, "b k"], how_far: tuple[float, float], rng: torch.Generator
) -> Tensor:
    """On the way to a composition that differs in one factor, each factor that has another value as
    often as any other; none whose classes overlap, since pictures between them are good ones."""
    sizes = torch.tensor(world.space.sizes, device=rng.device)
    several = [i for i, n in enumerate(world.space.sizes) if n > 1]
    apart = [i for i in several if world.space.factors[i].name not in world.overlapping]
    able = torch.tensor(apart or several, device=rng.device)
    which = able[torch.randint(len(able), (len(factors), 1), generator=rng, device=rng.device)]
    step = (
        1 + (torch.rand(which.shape, generator=rng, device=rng.device) * (sizes[which] - 1)).long()
    )
    neighbour = factors.scatter(1, which, (factors.gather(1, which) + step) % sizes[which])
    low, high = how_far
    share = low + (high - low) * torch.rand(len(factors), generator=rng, device=rng.device)
    return world.interpolate(factors, neighbour, share, rng)


def pair(world: World, factors: Int[Tensor, "b k"], rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Pictures of `factors`, and the same of other compositions: nuisances alike, as far as the
    world draws them alike."""
    state = rng.get_state()
    images = world.render(factors, rng).images
    return images, world.render(
        others(world, factors, rng), torch.Generator(rng.device).set_state(state)
    ).images


def others(world: World, factors: Int[Tensor, "b k"], rng: torch.Generator) -> Int[Tensor, "b k"]:
    """For each composition a random other one."""
    table = torch.tensor(world.present, device=factors.device)
    own = (factors[:, None] == table).all(2).int().argmax(1)
    step = torch.randint(1, max(2, len(table)), own.shape, generator=rng, device=rng.device)
    return table[(own + step) % len(table)]


def mixed(a: Tensor, b: Tensor, how_much: tuple[float, float], rng: torch.Generator) -> Tensor:
    return torch.lerp(a, b, _strength(a, how_much, rng))


def patched(a: Tensor, b: Tensor, rng: torch.Generator) -> Tensor:
    blocks = torch.rand(len(a), 1, BLOCKS, BLOCKS, generator=rng, device=rng.device) < 0.5
    return torch.where(F.interpolate(blocks.float(), a.shape[2:], mode="nearest") > 0, a, b)


def faded(images: Tensor, how_far: tuple[float, float], rng: torch.Generator) -> Tensor:
    """Towards the mean colour of each picture's border."""
    top, left = images[:, :, (0, -1)].flatten(2), images[:, :, :, (0, -1)].flatten(2)
    border = torch.cat((top, left), 2).mean(2)[:, :, None, None]
    return torch.lerp(images, border.expand_as(images), _strength(images, how_far, rng))


def _strength(
    images: Tensor, between: tuple[float, float], rng: torch.Generator
) -> Float[Tensor, "b 1 1 1"]:
    low, high = between
    return low + (high - low) * torch.rand(len(images), 1, 1, 1, generator=rng, device=rng.device)


def _normal(images: Tensor, rng: torch.Generator) -> Tensor:
    return torch.randn(images.shape, generator=rng, device=rng.device)
