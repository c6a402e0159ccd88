"""The whole tracer as one GPU kernel: what `stages.py` computes over tensors, written once more for
a single ray, with every number in a register. A program renders a tile of one picture; it loops
over the solids, so that it is compiled once for any number of them, in seconds. A test compares it
with `stages.py`.

    first_hit the first solid on a ray from the camera
    shade     what light the solids leave at that point
    bounce    the first solid on the mirrored ray, in tiles that show metal
    finish    all light together, averaged over the samples of a pixel"""

import math

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from recombine.worlds.scenes import shade
from recombine.worlds.scenes import stages as plain
from recombine.worlds.scenes.lights import EXPOSURE, LAMPS
from recombine.worlds.scenes.scene import table
from recombine.worlds.scenes.shot import Shot
from recombine.worlds.scenes.trace import EDGE, FAR, NEAR, Solids

BLOCK, WARPS = 256, 4
"""Rays of one program, and its threads by 32."""
SOLID = tl.constexpr(len(Solids._fields))
NEAREST, FARTHEST, ROUND = tl.constexpr(NEAR), tl.constexpr(FAR), tl.constexpr(EDGE)
FLOOR, ABOVE, BELOW, SOFT = (
    tl.constexpr(c) for c in (shade.FLOOR, shade.ABOVE, shade.BELOW, shade.SOFT)
)
SKY, MATTE, MIRROR, BRIGHTEST = (
    tl.constexpr(c) for c in (plain.SKY, plain.MATTE, plain.MIRROR, plain.BRIGHTEST)
)


def trace(
    solids: Solids, shot: Shot, width: int, shadows: bool, reflections: bool
) -> Float[Tensor, "b 3 p"]:
    """The colours of all pixels of pictures of this width; what `stages.trace` gives, for a GPU."""
    things = torch.stack(tuple(solids), -1)
    camera = torch.stack(
        [part.flatten() for axis in (shot.eye, shot.right, shot.up, shot.forward) for part in axis],
        1,
    )
    spots = torch.stack([part.flatten(1) for spot in shot.lamps for part in spot], 1)
    pixels, samples = shot.x.shape
    lanes = triton.next_power_of_2(samples)
    block = max(1, BLOCK // lanes)
    tile = 2 ** (block.bit_length() // 2)
    shape = (width, pixels // width, tile, block // tile)
    grid = (len(things), triton.cdiv(width, tile) * triton.cdiv(pixels // width, block // tile))
    out = torch.empty(len(things), 3, pixels, device=things.device)
    given = (things, camera, spots, lamp_table(things.device), shot.x, shot.y, things.shape[1])
    with torch.cuda.device_of(
        things
    ):  # Triton starts on the current device, wherever the tensors are
        picture[grid](out, *given, *shape, samples, lanes, shadows, reflections, num_warps=WARPS)
    return out


def lamp_table(device: torch.device) -> Float[Tensor, "lamps 8"]:
    """Aim, colour and power of each lamp, and the power that falls on a surface."""
    return table(
        tuple(
            (*lamp.aim, *lamp.rgb, lamp.power, EXPOSURE * lamp.power / math.pi**2) for lamp in LAMPS
        ),
        device,
    )


@triton.jit
def picture(
    out, things, camera, spots, lamps, grid_x, grid_y, count,
    width: tl.constexpr, height: tl.constexpr, tile: tl.constexpr, high: tl.constexpr,
    samples: tl.constexpr, lanes: tl.constexpr, shadows: tl.constexpr, reflections: tl.constexpr,
):  # fmt: skip
    """A tile of one picture, `tile` pixels wide and `high` pixels high, with `lanes` lanes for the
    samples of each pixel."""
    number = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, tile * high * lanes)
    pixel, inside = pixels_of(lane // lanes, width, height, tile, high)
    sample = lane % lanes
    used = inside & (sample < samples)
    px = tl.load(grid_x + pixel * samples + sample, used, 0.0)
    py = tl.load(grid_y + pixel * samples + sample, used, 0.0)
    solids, eye = things + number * count * SOLID, camera + number * 12
    spot = spots + number * 9 * samples + sample
    ex, ey, ez = three(eye, 1)
    rx, ry, rz = ray_through(eye + 3, px, py)

    reach, who = nearest(solids, count, ex, ey, ez, rx, ry, rz)
    floor = reach >= FARTHEST
    reach = tl.where(floor, -ez / rz, reach)
    x, y, z = ex + reach * rx, ey + reach * ry, ez + reach * rz
    nx, ny, nz, red, green, blue, metal = surface(solids + who * SOLID, x, y, z, floor)
    vx, vy, vz = unit(rx, ry, rz)
    along = 2 * (vx * nx + vy * ny + vz * nz)
    mx, my, mz = vx - along * nx, vy - along * ny, vz - along * nz

    around = ambient(nz, openness(solids, count, x, y, z, nx, ny, nz) if shadows else 1.0)
    fall_r, fall_g, fall_b = around, around, around
    shine_r, shine_g, shine_b = x * 0, x * 0, x * 0
    for i in tl.static_range(3):
        lamp = lamps + 8 * i
        lx, ly, lz = three_of(spot + 3 * i * samples, samples, sample < samples)
        free = passed(solids, count, x, y, z, lx, ly, lz) if shadows else 1.0
        fall = free * shine(lamp, lx - x, ly - y, lz - z, nx, ny, nz)
        lit = tl.where(floor, 0.0, free * glossed(lamp, metal, lx - x, ly - y, lz - z, mx, my, mz))
        fall_r, fall_g, fall_b = tinted(lamp, fall_r, fall_g, fall_b, fall)
        shine_r, shine_g, shine_b = tinted(lamp, shine_r, shine_g, shine_b, lit)

    see = SKY + (FLOOR * 0.5 - SKY) * clip(0.5 - 2 * mz, 0.0, 1.0)
    see_r, see_g, see_b = see, see, see
    if reflections:  # noqa: SIM102  # known when compiled; the other is not
        if tl.max(tl.where(used, metal, 0.0)) > 0:
            own = solids + who * SOLID
            see_r, see_g, see_b = mirrored(
                solids, count, own, lamps, spot, samples, sample < samples, x, y, z, mx, my, mz
            )

    rim = clip(1 + vx * nx + vy * ny + vz * nz, 0.0, 1.0)
    rim = rim * rim * rim * rim * rim
    pixel, inside = pixels_of(tl.arange(0, tile * high), width, height, tile, high)
    to = out + number * 3 * width * height + pixel
    write(to, inside, blend(red, fall_r, shine_r, see_r, metal, rim), samples, lanes)
    to += width * height
    write(to, inside, blend(green, fall_g, shine_g, see_g, metal, rim), samples, lanes)
    to += width * height
    write(to, inside, blend(blue, fall_b, shine_b, see_b, metal, rim), samples, lanes)


@triton.jit
def pixels_of(
    place, width: tl.constexpr, height: tl.constexpr, tile: tl.constexpr, high: tl.constexpr
):
    """The pixels at these positions of this program's tile, and whether they are inside the
    picture."""
    across: tl.constexpr = (width + tile - 1) // tile
    row = tl.program_id(1) // across * high + place // tile
    column = tl.program_id(1) % across * tile + place % tile
    return row * width + column, (row < height) & (column < width)


@triton.jit
def three(at, step):
    return tl.load(at), tl.load(at + step), tl.load(at + 2 * step)


@triton.jit
def three_of(at, step, mask):
    return tl.load(at, mask, 1.0), tl.load(at + step, mask, 1.0), tl.load(at + 2 * step, mask, 1.0)


@triton.jit
def clip(value, low, high):
    return tl.minimum(tl.maximum(value, low), high)


@triton.jit
def unit(x, y, z):
    near = tl.rsqrt(x * x + y * y + z * z)
    return x * near, y * near, z * near


@triton.jit
def ray_through(axes, px, py):
    """One unit ahead of the camera; its axes are right, up and forward."""
    right_x, right_y, right_z = three(axes, 1)
    up_x, up_y, up_z = three(axes + 3, 1)
    x, y, z = three(axes + 6, 1)
    return x + right_x * px + up_x * py, y + right_y * px + up_y * py, z + right_z * px + up_z * py


@triton.jit
def slab(start, ray, half):
    inverse = 1 / (ray + 1e-12)
    middle, reach = start * inverse, half * tl.abs(inverse)
    return -middle - reach, reach - middle


@triton.jit
def span(solid, sx, sy, sz, rx, ry, rz):
    """Where rays enter and leave one solid."""
    x, y, radius = three(solid, 1)
    cos, sin = tl.load(solid + 3), tl.load(solid + 4)
    sx, sy, sz = sx - x, sy - y, sz - radius
    low, high = slab(sz, rz, radius)
    if tl.load(solid + 5) > 0:
        left, right = slab(cos * sx + sin * sy, cos * rx + sin * ry, radius)
        front, back = slab(cos * sy - sin * sx, cos * ry - sin * rx, radius)
        enter, leave = tl.maximum(left, front), tl.minimum(right, back)
    else:
        ball = tl.load(solid + 6)
        square = rx * rx + ry * ry + ball * (rz * rz) + 1e-9
        half = sx * rx + sy * ry + ball * sz * rz
        rest = sx * sx + sy * sy + ball * sz * sz - radius * radius
        inner, scale = tl.maximum(half * half - square * rest, 0.0), 1 / square
        root = inner * tl.rsqrt(inner + 1e-20)
        enter, leave = -(half + root) * scale, (root - half) * scale
    return tl.maximum(enter, low), tl.minimum(leave, high)


@triton.jit
def nearest(solids, count, sx, sy, sz, rx, ry, rz):
    """How far along each ray the first solid is, and which it is."""
    reach, who = tl.zeros_like(rx) + FARTHEST, tl.zeros_like(rx).to(tl.int32)
    for j in range(count):
        solid = solids + j * SOLID
        if tl.load(solid + 2) > 0:
            enter, leave = span(solid, sx, sy, sz, rx, ry, rz)
            first = (leave > enter) & (enter > NEAREST) & (enter < reach)
            reach, who = tl.where(first, enter, reach), tl.where(first, j, who)
    return reach, who


@triton.jit
def beyond(part):
    return part - clip(part, ROUND - 1, 1 - ROUND)


@triton.jit
def surface(solid, x, y, z, floor):
    """The way a surface faces, its colour, and whether it is of metal. Each ray has a solid of its
    own, or the floor."""
    radius, cos, sin = tl.load(solid + 2), tl.load(solid + 3), tl.load(solid + 4)
    cube, ball = tl.load(solid + 5) > 0, tl.load(solid + 6) > 0
    scale = 1 / tl.where(floor, 1.0, radius)
    ax, ay = (x - tl.load(solid)) * scale, (y - tl.load(solid + 1)) * scale
    ax, ay, az = cos * ax + sin * ay, cos * ay - sin * ax, (z - radius) * scale
    out = tl.maximum(tl.sqrt(ax * ax + ay * ay), 1e-6)
    bend = tl.maximum(out - (1 - ROUND), 0.0) / out
    nx = tl.where(cube, beyond(ax), tl.where(ball, ax, bend * ax))
    ny = tl.where(cube, beyond(ay), tl.where(ball, ay, bend * ay))
    nz = tl.where(ball, az, beyond(az))
    near = tl.rsqrt(nx * nx + ny * ny + nz * nz + 1e-12)
    nx, ny, nz = (cos * nx - sin * ny) * near, (cos * ny + sin * nx) * near, nz * near
    red, green, blue = tl.load(solid + 7), tl.load(solid + 8), tl.load(solid + 9)
    return (
        tl.where(floor, 0.0, nx), tl.where(floor, 0.0, ny), tl.where(floor, 1.0, nz),
        tl.where(floor, FLOOR, red), tl.where(floor, FLOOR, green), tl.where(floor, FLOOR, blue),
        tl.where(floor, 0.0, tl.load(solid + 10)),
    )  # fmt: skip


@triton.jit
def beside(solid, x, y, z, nx, ny, nz):
    """How much of the light from all around gets past a solid."""
    radius = tl.load(solid + 2)
    ax, ay, az = tl.load(solid) - x, tl.load(solid + 1) - y, radius - z
    near = tl.rsqrt(ax * ax + ay * ay + az * az + 1e-6)
    size = radius * (1.1 + 0.1 * tl.load(solid + 5)) * near
    return clip(1.04 - 1.04 * ((ax * nx + ay * ny + az * nz) * near * size * size), 0.1, 1.0)


@triton.jit
def openness(solids, count, x, y, z, nx, ny, nz):
    light = tl.zeros_like(x) + 1
    for j in range(count):
        if tl.load(solids + j * SOLID + 2) > 0:
            light *= beside(solids + j * SOLID, x, y, z, nx, ny, nz)
    return light


@triton.jit
def passed(solids, count, x, y, z, lx, ly, lz):
    """How much of a lamp's light gets past the solids."""
    rx, ry, rz = x - lx, y - ly, z - lz
    length, light = tl.sqrt(rx * rx + ry * ry + rz * rz) / SOFT, tl.zeros_like(x) + 1
    for j in range(count):
        if tl.load(solids + j * SOLID + 2) > 0:
            enter, leave = span(solids + j * SOLID, lx, ly, lz, rx, ry, rz)
            light *= clip(1 - (tl.minimum(leave, 1.0) - enter) * length, 0.0, 1.0)
    return light


@triton.jit
def ambient(nz, open_share):
    up = 0.5 + 0.5 * nz
    return ABOVE * up * open_share + BELOW * (1 - up)


@triton.jit
def shine(lamp, rx, ry, rz, nx, ny, nz):
    """What a lamp throws on a surface from which it is seen along a ray."""
    near = 1 / (rx * rx + ry * ry + rz * rz)
    x, y, z = three(lamp, 1)
    spread = tl.maximum(rx * x + ry * y + rz * z, 0.0) * near
    return (
        tl.load(lamp + 7)
        * (spread * spread)
        * (tl.maximum(nx * rx + ny * ry + nz * rz, 0.0) * tl.sqrt(near))
    )


@triton.jit
def glossed(lamp, metal, rx, ry, rz, mx, my, mz):
    """How bright a lamp is mirrored in a surface."""
    ux, uy, uz = unit(rx, ry, rz)
    blurred = tl.exp(25 * (mx * ux + my * uy + mz * uz - 1))
    twice = blurred * blurred
    return tl.load(lamp + 6) * blurred * tl.where(metal > 0, 0.05 * (twice * twice) + 0.005, 0.002)


@triton.jit
def tinted(lamp, red, green, blue, light):
    """Light of a lamp's colour added to others."""
    r, g, b = three(lamp + 3, 1)
    return red + r * light, green + g * light, blue + b * light


@triton.jit
def mirrored(solids, count, own, lamps, spot, samples: tl.constexpr, real, x, y, z, mx, my, mz):
    """What a mirror shows. The only shadow there is the mirror's own."""
    reach, who = nearest(solids, count, x, y, z, mx, my, mz)
    floor = reach >= FARTHEST
    reach = tl.where(floor, z / tl.maximum(-mz, 0.01), reach)
    fade = tl.where(floor, clip(mz * 20, -1.0, 0.0) + 1, 0.0)
    x, y, z = x + mx * reach, y + my * reach, z + mz * reach
    nx, ny, nz, red, green, blue, _ = surface(solids + who * SOLID, x, y, z, floor)
    dim = beside(own, x, y, z, nx, ny, nz)
    around = ambient(nz, dim)
    fall_r, fall_g, fall_b = around, around, around
    for i in tl.static_range(3):
        lx, ly, lz = three_of(spot + 3 * i * samples, samples, real)
        light = dim * shine(lamps + 8 * i, lx - x, ly - y, lz - z, nx, ny, nz)
        fall_r, fall_g, fall_b = tinted(lamps + 8 * i, fall_r, fall_g, fall_b, light)
    red, green, blue = red * fall_r, green * fall_g, blue * fall_b
    return red + fade * (SKY - red), green + fade * (SKY - green), blue + fade * (SKY - blue)


@triton.jit
def blend(color, light, shiny, seen, metal, rim):
    tint = 0.1 + 0.9 * color
    tint += (1 - tint) * rim
    shown = tl.where(
        metal > 0, MATTE * color * light + tint * (MIRROR * seen + shiny), color * light + shiny
    )
    return tl.minimum(shown, BRIGHTEST)


@triton.jit
def write(to, inside, light, samples: tl.constexpr, lanes: tl.constexpr):
    """The mean over a pixel's samples, as a screen shows it."""
    each = tl.reshape(light, (light.shape[0] // lanes, lanes))
    each = tl.where(tl.arange(0, lanes)[None, :] < samples, each, 0.0)
    mean = clip(tl.sum(each, 1) / samples, 0.0, 1.0)
    root = tl.exp2(tl.log2(tl.maximum(mean, 1e-4)) / 2.4)
    tl.store(to, tl.where(mean < 0.0031308, 12.92 * mean, 1.055 * root - 0.055), inside)
