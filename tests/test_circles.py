"""Circles: signals are what they say, drawing is exact, nuisances do not depend on factors, and
reading undoes drawing."""

import math

import pytest
import torch

from recombine.config import UsageError, digest, from_json, to_json
from recombine.overrides import override
from recombine.rng import seeded
from recombine.worlds import circles_read, shapes2d_read
from recombine.worlds.circles import LIGHTS, SMALLEST, Circles
from recombine.worlds.factors import at_most_one_new, code
from recombine.worlds.world import INVALID, World

WORLDS = (
    Circles(),
    Circles(color_signal=0.1, size_signal=0.2),
    Circles(size=16, wander=0.5),
    Circles(color_signal=0.8, background_signal=0.3),
    Circles(color_spread=0.45, size_spread=0.05, background_signal=0.1),
)
ids = ["paper", "weak", "small", "three factors", "spread"]
each_world = pytest.mark.parametrize("world", WORLDS, ids=ids)


def draws(world: Circles, each: int = 60) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    factors = torch.tensor(world.space.compositions).repeat_interleave(each, 0)
    images, values = world.render(factors, seeded("circles"))
    return factors, images, values


def test_the_classes_are_the_public_ones():
    world = Circles(color_signal=0.4, size_signal=0.4)
    assert [code(c) for c in world.space.compositions] == ["00", "01", "10", "11"]
    assert world.space.describe((1, 1)) == "blue small"
    got = world.canonical(torch.tensor([[0, 0], [1, 1]]))
    torch.testing.assert_close(got, torch.tensor([[0.7, 0.3, 0.3, 0.65], [0.3, 0.3, 0.7, 0.25]]))
    assert at_most_one_new(world.space).seen == ((0, 0), (0, 1), (1, 0))


def test_a_background_with_a_signal_is_a_third_factor():
    world = Circles(background_signal=0.2)
    assert world.space.describe((0, 0, 1)) == "red large green"
    assert len(at_most_one_new(world.space).seen) == 4
    torch.testing.assert_close(
        world.canonical(torch.tensor([[0, 0, 1]]))[0, 4:], torch.tensor([0.7, 0.9, 0.7])
    )


@each_world
def test_values_stray_from_their_class_as_far_as_the_spread_and_no_further(world):
    factors, images, values = draws(world, 400)
    reach = torch.tensor([c.spread * c.signal for c in world.concepts for _ in c.ends[0]])
    off = (values - world.canonical(factors)).abs()
    assert (off <= reach + 1e-6).all()
    assert (off.amax(0) > 0.9 * reach).all()
    assert values[:, 3].min() >= SMALLEST
    assert images.dtype == torch.float32
    assert (images.amin() >= 0) & (images.amax() <= 1)


@each_world
def test_reading_undoes_drawing_cut_or_not(world):
    factors, images, values = draws(world)
    assert torch.equal(world.read(images), factors)
    found = circles_read.fit_circles(images)
    assert (found.diameter - values[:, 3]).abs().median() < 0.01
    assert (found.ink - values[:, :3]).abs().median() < 0.01


@each_world
def test_a_little_noise_does_not_disturb_reading(world):
    factors, images, _ = draws(world)
    noisy = images + 0.02 * torch.randn(images.shape, generator=seeded("noise"))
    assert (world.read(noisy) == factors).all(1).float().mean() > 0.97


def test_what_is_no_circle_is_refused():
    world = Circles()
    _, images, _ = draws(world)
    square = torch.full((1, 3, 32, 32), 0.9)
    square[:, :, 6:22, 8:24] = torch.tensor([0.7, 0.3, 0.3])[:, None, None]
    half = torch.cat((images[:60, :, :16], images[120:180, :, 16:]), 2)
    for bad in (
        torch.rand(60, 3, 32, 32, generator=seeded(0)),
        torch.full((4, 3, 32, 32), 0.9),
        square,
        1 - images,
        half,
    ):
        assert (world.read(bad) == INVALID).all(1).float().mean() > 0.95


def circle(world: Circles, rgb: tuple[float, ...], diameter: float) -> torch.Tensor:
    return world.render_values(
        torch.tensor([[*rgb, diameter]]), torch.full((1, 2), 0.5), torch.full((1, 3), 0.9)
    )


@pytest.mark.parametrize(
    ("rgb", "diameter", "answer"),
    [
        ((0.7, 0.3, 0.3), 0.65, [0, 0]),
        ((0.3, 0.3, 0.7), 0.25, [1, 1]),
        ((0.1, 0.3, 0.9), 0.25, [1, 1]),
        ((0.5, 0.3, 0.5), 0.25, [-1, -1]),
        ((0.3, 0.3, 0.7), 0.45, [-1, -1]),
        ((0.3, 0.7, 0.7), 0.25, [-1, -1]),
    ],
    ids=["red large", "blue small", "bluer than blue", "purple", "medium", "cyan"],
)
def test_the_middle_of_a_gap_belongs_to_neither_class_and_more_than_enough_is_enough(
    rgb, diameter, answer
):
    world = Circles()
    assert world.read(circle(world, rgb, diameter))[0].tolist() == answer


def test_a_drawn_circle_has_its_colour_its_area_and_its_background():
    image = circle(Circles(), (0.7, 0.2, 0.3), 0.5)[0]
    torch.testing.assert_close(image[:, 16, 16], torch.tensor([0.7, 0.2, 0.3]), rtol=0, atol=1e-5)
    torch.testing.assert_close(image[:, 0, 0], torch.full((3,), 0.9), rtol=0, atol=1e-5)
    area = ((0.9 - image[1]) / 0.7).sum()
    assert float(area) == pytest.approx(math.pi * 8**2, rel=0.02)


def test_the_same_stream_gives_the_same_nuisances_whatever_the_factors():
    """Red and blue circles of one size differ in their colour alone, by just the signal."""
    world = Circles(color_signal=0.3)
    red, blue = (world.render(torch.tensor([c] * 50), seeded("pair")) for c in ((0, 0), (1, 0)))
    torch.testing.assert_close(
        blue.values - red.values, torch.tensor([-0.3, 0, 0.3, 0]).expand(50, 4)
    )
    torch.testing.assert_close(blue.images[:, 1], red.images[:, 1])
    torch.testing.assert_close(
        blue.images[:, 0] - red.images[:, 0], red.images[:, 2] - blue.images[:, 2]
    )


def test_position_and_background_wander_as_set():
    free, still = Circles(size_spread=0.0), Circles(wander=0.0, color_spread=0.0, size_spread=0.0)
    background = draws(free, 300)[1][300:600, :, 0, 0]
    assert background.min() >= LIGHTS[0]
    assert background.max() <= LIGHTS[1]
    assert background.std() > 0.04
    cover = lambda images: (images - images[:, :, :1, :1]).abs().sum(1)  # noqa: E731
    _, images, _ = draws(still, 2)
    assert (cover(images)[:, 16, 16] > 0.5).all(), "always in the middle"
    middles = cover(draws(free, 300)[1][300:600])
    x = (middles.sum(1) @ torch.arange(32.0) + 0.5) / middles.sum((1, 2))
    assert (x.min() < 10) & (x.max() > 22)


def test_drawing_in_parts_is_drawing_at_once():
    world = Circles()
    values = world.canonical(torch.tensor([[0, 1]] * 700))
    centres, background = (
        torch.rand(700, 2, generator=seeded(1)),
        torch.rand(700, 3, generator=seeded(2)),
    )
    whole = world.render_values(values, centres, background)
    assert torch.equal(
        whole[300:303], world.render_values(values[300:303], centres[300:303], background[300:303])
    )


def test_a_world_is_its_own_config():
    world = Circles(color_signal=0.137, background_signal=0.3)
    assert from_json(to_json(world), World) == world
    assert digest(world) != digest(Circles())
    assert override(world, "wander=0.5").wander == 0.5


@pytest.mark.parametrize(
    "bad",
    ["size=8", "color_signal=0", "size_signal=0.9", "background_signal=-1", "color_spread=0.5"],
)
def test_impossible_worlds_are_refused_by_name(bad):
    with pytest.raises(UsageError, match=bad.split("=")[0]):
        override(Circles(), bad)


def test_circles_are_fitted_to_known_pictures_as_before():
    images = Circles(size=16).render(torch.tensor([[0, 0], [1, 1]]), seeded("known answer")).images
    images = (images + 0.05 * torch.randn(images.shape, generator=seeded("noise"))).clamp(0, 1)
    seen = shapes2d_read.observed_cover(images, *shapes2d_read.ink_and_background(images))
    edge = circles_read.through_edge(seen)
    for found, known in (
        (edge, [[11.25214, 6.38219, 5.61634], [10.97318, 5.49603, 2.48954]]),
        (
            circles_read.refined(seen, edge),
            [[11.31815, 6.38281, 5.58435], [10.9938, 5.47868, 2.39328]],
        ),
        (circles_read.fit_circles(images).diameter, [0.69804, 0.29916]),
        (circles_read.fit_circles(images).ink[0], [0.73919, 0.32843, 0.27913]),
        (circles_read.fit_circles(images).background[1], [0.92943, 0.91939, 0.82161]),
    ):
        torch.testing.assert_close(found, torch.tensor(known), rtol=0, atol=2e-3)


@pytest.mark.parametrize(("name", "low", "high"), [
    ("color_signal", 0.05, 0.8), ("size_signal", 0.05, 0.6), ("background_signal", 0.0, 0.6),
    ("color_spread", 0.0, 0.49), ("size_spread", 0.0, 0.49), ("wander", 0.0, 1.0),
    ("pixel_noise", 0.0, 0.1),
])  # fmt: skip
def test_settings_are_taken_up_to_their_limits_and_no_further(name, low, high):
    for value in (low, high):
        assert getattr(Circles(**{name: value}), name) == value
    for value in (low - 0.001, high + 0.001):
        with pytest.raises(ValueError, match=f"{name}={value}: must lie between"):
            Circles(**{name: value})
    assert Circles(size=16).size == 16
    with pytest.raises(ValueError, match="size=15: at least 16 pixels are needed"):
        Circles(size=15)
