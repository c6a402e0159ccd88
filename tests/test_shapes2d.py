import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from recombine.config import UsageError, digest, from_json, to_json
from recombine.overrides import override
from recombine.rng import seeded
from recombine.worlds import shapes2d_read
from recombine.worlds.factors import code
from recombine.worlds.outlines import OUTLINES, cover, depth
from recombine.worlds.shapes2d import Shapes2D
from recombine.worlds.world import INVALID, World

EVERYTHING = {"shapes": ("circle", "triangle", "square"), "colors": ("red", "blue", "green")}


def world_at(size: int) -> Shapes2D:
    return Shapes2D(size=size, **EVERYTHING)


def draws(world: Shapes2D, count: int, *key):
    """`count` random compositions, drawn."""
    rng = seeded("test", world.size, *key)
    compositions = torch.tensor(world.space.compositions)
    factors = compositions[torch.randint(len(compositions), (count,), generator=rng)]
    return factors, world.render(factors, rng), rng


def other_than(world: Shapes2D, factors: torch.Tensor, rng: torch.Generator) -> torch.Tensor:
    """Compositions that differ from the given ones."""
    compositions = torch.tensor(world.space.compositions)
    index = (compositions == factors[:, None]).all(2).int().argmax(1)
    return compositions[
        (index + torch.randint(1, len(compositions), (len(index),), generator=rng))
        % len(compositions)
    ]


def at_centre(world: Shapes2D, factors: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    return world.draw(factors, values, torch.full((len(factors), 2), 0.5))


def blur(images: torch.Tensor, sigma: float) -> torch.Tensor:
    kernel = torch.exp(-(torch.arange(-3, 4.0) ** 2) / (2 * sigma**2))
    kernel = (kernel / kernel.sum()).expand(3, 1, 1, 7)
    padded = F.pad(images, (3, 3, 3, 3), mode="replicate")
    return F.conv2d(F.conv2d(padded, kernel, groups=3), kernel.transpose(2, 3), groups=3)


def accuracy(world: Shapes2D, images: torch.Tensor, factors: torch.Tensor) -> float:
    return (world.read(images) == factors).all(1).float().mean().item()


def rejected(world: Shapes2D, images: torch.Tensor) -> float:
    return (world.read(images) == INVALID).all(1).float().mean().item()


def test_codes_are_the_papers():
    space = Shapes2D().space
    assert [code(c) for c in space.compositions] == [
        "000",
        "001",
        "010",
        "011",
        "100",
        "101",
        "110",
        "111",
    ]
    assert space.describe((0, 1, 1)) == "circle blue small"
    assert space.dims == (0, 3, 1)


def test_canonical_values_are_the_class_centres():
    got = Shapes2D().canonical(torch.tensor([[0, 0, 0], [1, 1, 1]]))
    torch.testing.assert_close(
        got, torch.tensor([[0.9, 0.1, 0.1, 8 / 28], [0.1, 0.1, 0.9, 4.8 / 28]])
    )


@pytest.mark.parametrize("scale", [0.5, 0.85, 1.0])
def test_conditions_are_in_units_of_the_distance_between_the_two_classes(scale):
    world = Shapes2D(scale=scale)
    large, small = world.canonical(torch.tensor([[0, 0, 0], [0, 0, 1]]))[:, 3].tolist()
    size = world.space.factors[2]
    assert size.centre[0] == pytest.approx((large + small) / 2)
    assert size.unit[0] == pytest.approx(large - small)


@pytest.mark.parametrize("outline", OUTLINES, ids=lambda o: o.name)
def test_every_outline_covers_the_area_of_its_circle(outline):
    x, radius = torch.arange(128.0)[None, None] - 63.3, torch.tensor([[[30.0]]])
    area = cover(depth(outline, x, x.transpose(1, 2), radius)).sum().item()
    assert area == pytest.approx(math.pi * 30**2, rel=2e-3)


def test_a_rendered_picture_is_what_its_values_say():
    world = world_at(28)
    factors, (images, values), _ = draws(world, 500)
    assert images.dtype == torch.float32
    assert images.min() >= 0
    assert images.max() <= 1
    off = (values - world.canonical(factors)).abs()
    assert (off[:, :3] <= 0.06 + 1e-6).all()
    assert (off[:, 3] <= 0.06 * world.canonical(factors)[:, 3] + 1e-6).all()
    assert off.mean() > 0.01
    mass = (0.95 - images).sum((2, 3)) / (0.95 - values[:, :3]).clamp_min(1e-6)
    strong = (0.95 - values[:, :3]) > 0.5
    expected = (math.pi * (28 * values[:, 3]) ** 2)[:, None].expand_as(mass)
    assert ((mass / expected)[strong] - 1).abs().max() < 0.05, (
        "the whole shape is inside the picture, in its colour"
    )


def test_only_the_shapes_that_are_named_vary_and_all_others_stay_as_they_were():
    usual, everywhere = Shapes2D(), Shapes2D(color_jitter=0.25, size_jitter=0.2)
    some = replace(everywhere, varying=("triangle",))
    factors, (images, values), _ = draws(some, 400, "some")
    triangle = factors[:, 0] == 1
    for other, which in ((everywhere, triangle), (usual, ~triangle)):
        _, (theirs, others), _ = draws(other, 400, "some")
        assert torch.equal(values[which], others[which])
        assert torch.equal(images[which], theirs[which])
        assert not torch.isclose(values[~which], others[~which]).all(1).any()
    named = replace(everywhere, varying=everywhere.shapes)
    assert torch.equal(*(draws(world, 400, "some")[1].images for world in (named, everywhere)))


@pytest.mark.parametrize("size", [16, 28])
def test_classes_that_vary_as_much_as_they_may_are_read_and_refused_where_they_should_not(size):
    """Sizes nearly touch then; the oracle of the usual world refuses those it does not know."""
    world = replace(world_at(size), color_jitter=0.25, size_jitter=0.2)
    factors, (images, values), _ = draws(world, 1000)
    assert (world.read(images) == factors).all(1).float().mean() > 0.995
    usual = (world_at(size).read(images) == factors).all(1)
    off = (values - world.canonical(factors)).abs()
    near = (off[:, :3] < 0.18).all(1) & (off[:, 3] < 0.12 * world.canonical(factors)[:, 3])
    far = (off[:, :3] > 0.22).any(1) | (off[:, 3] > 0.18 * world.canonical(factors)[:, 3])
    assert usual[near].float().mean() > 0.99
    assert usual[far].float().mean() < 0.01


def test_ink_and_background_are_exact():
    world, factors = world_at(28), torch.tensor([[0, 0, 0], [1, 1, 1], [2, 2, 0]])
    values = world.canonical(factors)
    images = at_centre(world, factors, values)
    torch.testing.assert_close(images[:, :, 14, 14], values[:, :3], rtol=0, atol=2e-7)
    assert (images[:, :, 0, 0] == torch.tensor(0.95)).all()


def test_drawing_depends_on_the_stream_and_not_on_the_batch():
    world = world_at(20)
    factors, (images, values), _ = draws(world, 1200)
    again = world.render(factors, draws(world, 1200)[2])
    assert not torch.equal(images, again.images), "a stream goes on"
    assert torch.equal(images, draws(world, 1200)[1].images), (
        "the same stream gives the same pictures"
    )
    centres = torch.rand(1200, 2, generator=seeded(0))
    whole = world.draw(factors, values, centres)
    assert torch.equal(
        whole[700:703], world.draw(factors[700:703], values[700:703], centres[700:703])
    )


def test_positions_fill_the_picture():
    world = Shapes2D()
    factors = torch.tensor([[1, 0, 1]]).expand(4, 3)
    corners = torch.tensor([[0.0, 0], [1, 0], [0, 1], [1, 1]])
    images = world.draw(
        factors, world.canonical(factors), world.centres(factors, world.canonical(factors), corners)
    )
    ink = (images - 0.95).abs().amax(1) > 0.1
    touches = torch.stack(
        [
            ink[:, :2].any((1, 2)),
            ink[:, -2:].any((1, 2)),
            ink[..., :2].any((1, 2)),
            ink[..., -2:].any((1, 2)),
        ]
    )
    assert touches.T.tolist() == [[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]]


@pytest.mark.parametrize(("size", "count"), [(28, 2_000), (32, 500), (64, 100), (20, 500)])
def test_what_is_drawn_is_read(size, count):
    world = world_at(size)
    factors, (images, _), _ = draws(world, count)
    assert accuracy(world, images, factors) >= 0.999


@pytest.mark.parametrize("size", [28, 32, 64])
def test_a_good_generators_flaws_are_forgiven(size):
    world = world_at(size)
    factors, (images, _), rng = draws(world, 200, "flaws")
    noise = 0.03 * torch.randn(images.shape, generator=rng)
    shift = 0.05 * (2 * torch.rand(200, 3, 1, 1, generator=rng) - 1).sign()
    for flawed in (
        images + noise,
        blur(images, 0.4),
        images + shift,
        blur(images, 0.4) + noise + shift,
    ):
        assert accuracy(world, flawed.clamp(0, 1), factors) >= 0.97


def nothing(world, count, rng):
    """Pictures that show nothing."""
    shape = (count, 3, world.size, world.size)
    gauss = torch.randn(shape, generator=rng)
    yield "uniform noise", torch.rand(shape, generator=rng)
    yield "grey noise", 0.5 + 0.15 * gauss
    yield "noisy background", 0.95 + 0.1 * gauss
    yield "empty", torch.full(shape, 0.95)
    yield "not a number", torch.full(shape, math.nan)


def mixtures(world, count, rng):
    """Pictures between two compositions."""
    factors, (images, values), _ = draws(world, count, "mixtures")
    others = other_than(world, factors, rng)
    second = world.render(others, rng)
    yield "blend", 0.5 * images + 0.5 * second.images
    yield (
        "blend at one centre",
        0.5 * at_centre(world, factors, values) + 0.5 * at_centre(world, others, second.values),
    )
    for k, name in enumerate(("shape", "color", "size")):
        near = factors.clone()
        near[:, k] = (near[:, k] + 1) % world.space.sizes[k]
        moved = values.clone()
        columns = {"shape": slice(0, 0), "color": slice(0, 3), "size": slice(3, 4)}[name]
        moved[:, columns] = world.canonical(near)[:, columns]
        yield (
            f"blend of two {name}s",
            0.5 * at_centre(world, factors, values) + 0.5 * at_centre(world, near, moved),
        )
        if name != "shape":
            yield f"{name} half way", at_centre(world, factors, (values + moved) / 2)


def blots(world, count, rng):
    """Outlines between two shapes: mean cover, and mean signed distance."""
    _, (_, values), _ = draws(world, count, "blots")
    x = (
        torch.arange(world.size)
        + 0.5
        - world.size * (0.45 + 0.1 * torch.rand(count, 1, 1, generator=rng))
    )
    radius, paint = world.size * values[:, 3, None, None], (values[:, :3] - 0.95)[:, :, None, None]
    for i, j in ((0, 1), (0, 2), (1, 2)):
        one, two = (depth(OUTLINES[n], x, x.transpose(1, 2), radius) for n in (i, j))
        yield f"mean cover {i}{j}", 0.95 + (cover(one) / 2 + cover(two) / 2)[:, None] * paint
        yield f"mean distance {i}{j}", 0.95 + cover((one + two) / 2)[:, None] * paint


def broken(world, count, rng):
    """Two objects side by side, and objects of which a part is missing. A large triangle whose foot
    is cut off is not among them: it is a small triangle."""
    factors, (_, values), _ = draws(world, count, "broken")
    one, two = values.clone(), values.flip(0)
    one[:, 3], two[:, 3] = 0.14, 0.6 * two[:, 3]
    first = world.draw(factors, one, torch.full((count, 2), 0.2))
    yield (
        "two objects",
        torch.minimum(first, world.draw(factors.flip(0), two, torch.full((count, 2), 0.68))),
    )
    place = torch.rand(count, 2, generator=rng)
    for name, axis, edge in (("left", 0, 0.0), ("right", 0, 1.0), ("top", 1, 0.0)):
        centres = world.centres(factors, values, place)
        centres[:, axis] = edge + (0.5 - edge) * 0.1
        yield f"cut off at the {name}", world.draw(factors, values, centres)
    gone = torch.arange(world.size) > world.size * (0.5 + 0.4 * values[:, 3, None])
    yield (
        "right part erased",
        torch.where(gone[:, None, None], 0.95, at_centre(world, factors, values)),
    )


LIMITS = {
    "colour": 0.2,
    "size": 0.15,
    "background": 0.15,
    "outside": 0.5,
    "spot": 0.2,
}


def read_at_a_distance(what: str, distance: float) -> torch.Tensor:
    """Which of the small shapes are read as what they are, where they are off in one way alone by
    so much in its own unit."""
    world = Shapes2D(background=0.8)
    factors = torch.tensor(world.space.compositions)
    factors = factors[world.canonical(factors)[:, 3] == world.canonical(factors)[:, 3].min()]
    values, place = world.canonical(factors), torch.full((len(factors), 2), 0.5)
    if what == "colour":
        inwards = torch.where(values[:, :3] > 0.5, -1.0, 1.0)
        values[:, :3] += distance * inwards
    if what == "size":
        values[:, 3] *= 1 - distance
    centres = world.centres(factors, values, place)
    if what == "outside":
        side = 0.5 / world.size + distance / world.size
        centres[:, 0] = world.centres(factors, values, 0 * place)[:, 0] - side
    images = world.draw(factors, values, centres)
    step = (values[:, :3] - world.background).norm(dim=1)[:, None, None, None] / math.sqrt(3)
    if what == "spot":
        images[:, :, 2:5, 2:5] -= distance * step
    off = distance if what == "background" else 0.0
    read = replace(world, background=world.background + off).read(images)
    return (read == factors).all(1)


@pytest.mark.parametrize("what", LIMITS)
def test_the_oracle_reads_up_to_its_limits_and_no_further(what):
    for share, read in ((0.0, True), (0.85, True), (1.2, False)):
        assert (read_at_a_distance(what, share * LIMITS[what]) == read).all(), share


@pytest.mark.parametrize("family", [nothing, mixtures, blots, broken])
@pytest.mark.parametrize("size", [28, 32, 64, 20])
def test_what_shows_no_composition_is_invalid(size, family):
    world = world_at(size)
    for name, images in family(world, 40, seeded("invalid", size)):
        assert rejected(world, images) >= 0.99, name


def test_known_things_outside_the_world_are_invalid():
    larger, world = world_at(28), Shapes2D()
    factors, (images, _), _ = draws(larger, 600, "outside")
    foreign = (factors[:, 0] == 2) | (factors[:, 1] == 2)
    assert rejected(world, images[foreign]) == 1
    assert accuracy(world, images[~foreign], factors[~foreign]) == 1


def test_values_are_numbered_in_the_worlds_own_order():
    world = Shapes2D(shapes=("square", "circle"), colors=("green", "red"), sizes=("small", "large"))
    factors, (images, _), _ = draws(world, 200, "order")
    assert accuracy(world, images, factors) == 1


def test_drawing_and_reading_never_look_at_the_numbers():
    """Tensors without numbers stand in for a GPU: whatever would wait for one fails on them."""
    world, factors = Shapes2D(), torch.zeros(1000, 3, dtype=torch.long, device="meta")
    values = world.canonical(factors)
    images = world.draw(
        factors, values, world.centres(factors, values, torch.rand(1000, 2, device="meta"))
    )
    assert images.shape == (1000, 3, 28, 28)
    assert world.read(images).shape == (1000, 3)


def test_no_pictures_are_read_as_none():
    assert Shapes2D().read(torch.zeros(0, 3, 28, 28)).shape == (0, 3)


OVERLAP = Shapes2D().calibrated()


def test_normal_sizes_are_truncated_to_what_fits():
    index = torch.tensor(OVERLAP.present).repeat(2000, 1)
    images, values = OVERLAP.render(index, seeded("cut"))
    sides = images[:, :, 0], images[:, :, -1], images[:, :, :, 0], images[:, :, :, -1]
    assert float(values[:, 3].min()) >= 1.5 / 28 - 1e-6
    assert float((torch.cat(sides, -1) - OVERLAP.background).abs().max()) < 0.5, "soft edges only"
    low, high = OVERLAP.truncated(torch.tensor([(1, 0, 0), (0, 0, 0), (0, 0, 1)]))
    assert 0.02 < float(high[0]) < 0.06
    assert max(float(high[1:].max()), float(low.max())) < 0.02
    assert not sum(part.any() for part in Shapes2D().truncated(index[:4]))


def test_where_sizes_overlap_the_oracle_reads_the_nearest_class():
    radii = OVERLAP.canonical(torch.tensor([(0, 0, 0), (0, 0, 1)]))[:, 3]
    for c in OVERLAP.present:
        index = torch.tensor([c] * 1000)
        images, values = OVERLAP.render(index, seeded("overlap", c[2]))
        nearest = (values[:, 3:] - radii).abs().argmin(1)
        own = float((nearest == c[2]).float().mean())
        assert abs(own - (0.775, 0.9)[c[2]]) < 0.05
        shown = torch.stack((index[:, 0], index[:, 1], nearest), 1)
        assert accuracy(OVERLAP, images, shown) > 0.95
    assert OVERLAP.overlapping == ("size",)
    assert Shapes2D().overlapping == ()


def test_a_normal_law_of_no_width_renders_centres():
    world = Shapes2D(size_law="normal", size_jitter=0.0)
    index = torch.tensor(world.present)
    radii = world.render(index, seeded("none")).values[:, 3]
    assert torch.allclose(radii, world.canonical(index)[:, 3], atol=1e-4)


def test_config_round_trip_and_digest():
    world = world_at(32)
    assert from_json(to_json(world), World) == world
    assert digest(world) != digest(Shapes2D())


@pytest.mark.parametrize(
    ("assignment", "word"),
    [("size=8", "at least 16"), ('shapes=["star"]', "circle"), ('colors=["red","red"]', "each once"), ("sizes=[]", "large"),
     ("color_jitter=0.5", "between 0 and 0.25"), ("size_jitter=0.3", "between 0 and 0.2"),
     ('varying=["square"]', "none of the shapes"),
     ("background=0.1", "between 0.8 and 1")],
)  # fmt: skip
def test_a_wrong_setting_is_named(assignment, word):
    with pytest.raises(UsageError, match=word) as error:
        override(Shapes2D(), assignment)
    assert "\n" not in str(error.value)


def close(found: torch.Tensor, known: list, by: float = 2e-3) -> None:
    torch.testing.assert_close(found, torch.tensor(known), rtol=0, atol=by)


def known_pictures() -> torch.Tensor:
    """A large red circle, a small blue triangle and a small red square, with noise."""
    world = Shapes2D(size=16, shapes=("circle", "triangle", "square"))
    index = torch.tensor([[0, 0, 0], [1, 1, 1], [2, 0, 1]])
    images = world.render(index, seeded("known answer")).images
    return (images + 0.05 * torch.randn(images.shape, generator=seeded("noise"))).clamp(0, 1)


def test_ink_background_and_cover_of_known_pictures():
    images = known_pictures()
    ink, background = shapes2d_read.ink_and_background(images)
    close(
        ink, [[0.94963, 0.08968, 0.14546], [0.16703, 0.17884, 0.87999], [0.91564, 0.05726, 0.17228]]
    )
    close(
        background,
        [[0.94616, 0.94457, 0.94833], [0.95517, 0.95145, 0.9463], [0.94617, 0.94777, 0.95227]],
    )
    seen = shapes2d_read.observed_cover(images, ink, background)
    close(seen.mean((1, 2)), [0.24275, 0.10852, 0.10343])
    close(seen.std((1, 2)), [0.40762, 0.28059, 0.29406])
    close(
        shapes2d_read.first_pose(seen),
        [[7.15477, 9.0868, 4.42298], [10.33539, 11.49804, 2.85836], [9.56942, 9.47368, 2.81311]],
    )


POSES = (
    [[7.14775, 9.0765, 4.40666], [10.34297, 11.50098, 2.74086], [9.6104, 9.43151, 2.84365]],
    [[7.14848, 9.02222, 4.38626], [10.32593, 11.46693, 2.81894], [9.56505, 9.54356, 2.7702]],
    [[7.15671, 9.09263, 4.35611], [10.33599, 11.32497, 2.77687], [9.6087, 9.42442, 2.85416]],
)
ERRORS = ([0.32873, 4.45247, 1.59339], [13.30807, 0.42659, 5.81724], [4.72683, 5.25051, 0.34041])


@pytest.mark.parametrize("number", range(3))
def test_each_outline_is_fitted_to_known_pictures_as_before(number):
    images = known_pictures()
    seen = shapes2d_read.observed_cover(images, *shapes2d_read.ink_and_background(images))
    found = shapes2d_read.fit(OUTLINES[number], seen, shapes2d_read.first_pose(seen))
    close(found.pose, POSES[number])
    close(found.error, ERRORS[number], 5e-3)
    if number == 0:
        left = shapes2d_read.left_over(images, found.cover)
        close(left.ink[0], [0.94928, 0.08306, 0.14198])
        close(left.background[1], [0.93338, 0.93682, 0.9441])
        close(left.speckle, [0.06589, 0.1546, 0.09395])
        close(left.spot, [0.04607, 0.22568, 0.09259])


def test_centre_and_unit_of_sizes_are_scaled_as_the_radii_are():
    size = Shapes2D(scale=0.5).space.factors[2]
    assert size.centre == pytest.approx((3.2 / 28,))
    assert size.unit == pytest.approx((1.6 / 28,))
