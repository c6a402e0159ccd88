"""Prediction from a world: signals are measured rightly, and order, times and flips follow from
them."""

import math
from dataclasses import dataclass

import pytest
import torch

from recombine.rng import seeded
from recombine.theory.predict import SPACES, Signals, flip, path, signals
from recombine.theory.sim import IdentityMapping, second_moment
from recombine.worlds.circles import Circles
from recombine.worlds.factors import Factor, FactorSpace
from recombine.worlds.shapes2d import Shapes2D
from recombine.worlds.world import Rendered, World


@dataclass(frozen=True)
class Axes(World):
    """Structured identity mapping as a world: a picture is its own values, two numbers beside each
    other, and a nuisance."""

    mu: tuple[float, float] = (1.0, 2.0)
    sigma: tuple[float, float] = (0.3, 0.1)

    @property
    def space(self) -> FactorSpace:
        return FactorSpace(
            tuple(
                Factor(n, ("0", "1"), 1, (0.0,), (m,)) for n, m in zip("xy", self.mu, strict=True)
            )
        )

    @property
    def image_shape(self) -> tuple[int, int, int]:
        return 1, 1, 3

    def canonical(self, factors):
        return factors * torch.tensor(self.mu)

    def render(self, factors, rng):
        noise = torch.randn(len(factors), 3, generator=rng)
        values = self.canonical(factors) + noise[:, :2] * torch.tensor(self.sigma)
        return Rendered(torch.cat((values, 5 * noise[:, 2:]), 1)[:, None, None], values)

    def read(self, images):
        return (images[:, 0, 0, :2] > torch.tensor(self.mu) / 2).long()


def test_a_world_that_is_the_theory_gives_the_theorys_own_numbers():
    world = Axes()
    found = signals(world, "pixels", count=20_000)
    assert found.mu == pytest.approx((1.0, 2.0), rel=1e-5), "nuisances, however large, do not enter"
    assert found.task.sigmas == pytest.approx((0.3, 0.1), rel=0.02)
    index = torch.tensor([(0, 0), (0, 1), (1, 0)]).repeat_interleave(40_000, 0)
    moment = second_moment(world.render(index, seeded("set")).values).diagonal()
    assert list(found.a.values()) == pytest.approx(moment.tolist(), rel=0.03)


def test_in_the_theorys_world_all_four_spaces_agree_at_the_raw_scale():
    for space in SPACES:
        assert signals(Axes(), space, "raw").mu == pytest.approx((1.0, 2.0), rel=1e-4)
    assert signals(Axes(), "condition").mu == pytest.approx((1.0, 1.0)), (
        "balanced: in units of the distance between classes"
    )


def test_the_pixel_signal_of_colour_is_its_distance_times_the_root_of_the_area():
    world = Circles(color_signal=0.3, wander=0.0, size_spread=0.0)
    found = dict(zip(("color", "size"), signals(world, "pixels", count=64).mu, strict=True))
    one = world.render_values(
        torch.tensor([[1.0, 1, 1, 0.65]]), torch.full((1, 2), 0.5), torch.zeros(1, 3)
    )[0, 0]
    assert found["color"] == pytest.approx(math.sqrt(2) * 0.3 * float(one.norm()), rel=1e-4)


@pytest.mark.parametrize("space", SPACES)
def test_a_factors_rate_grows_with_its_own_signal_and_spread(space):
    rates = lambda **world: signals(Circles(**world), space, "raw", count=256).a  # noqa: E731
    weak, strong = rates(color_signal=0.1), rates(color_signal=0.2)
    assert strong["color"] > 3.5 * weak["color"]
    assert rates(color_spread=0.4)["color"] > rates(color_spread=0.1)["color"]
    assert rates(size_signal=0.4)["size"] > rates(size_signal=0.2)["size"]


def test_wandering_blurs_the_mean_picture_but_not_the_pair():
    still, moving = Circles(wander=0.0), Circles(wander=1.0)
    ratio = lambda space: signals(moving, space).mu[1] / signals(still, space).mu[1]  # noqa: E731
    assert ratio("mean picture") < 0.85
    assert ratio("pixels") > 0.9


def test_worlds_with_more_or_other_factors_have_signals_too():
    assert signals(Circles(background_signal=0.3), "pixels", count=64).names == (
        "color",
        "size",
        "background",
    )
    shapes = signals(Shapes2D(), "pixels", count=64)
    assert min(shapes.mu) > 0
    assert shapes.spread[0] == 0
    with pytest.raises(ValueError, match="shape has no values"):
        signals(Shapes2D(), "condition", count=64)


def test_times_are_those_of_the_one_layer_model():
    found = Signals(("x", "y"), (1.0, 2.0), (0.0, 0.0))
    a = IdentityMapping((1.0, 2.0), 0.0, origin=True).a
    for name, rate in zip("xy", a.tolist(), strict=True):
        assert 1 - math.exp(-rate * found.times(0.8)[name]) == pytest.approx(0.8)


def test_the_flip_is_found_where_the_rates_meet():
    rates = lambda m: Signals(("x", "y"), (m, 2.0), (0.1, 0.1)).a  # noqa: E731
    assert flip(lambda m: rates(m)["x"] / rates(m)["y"], 0.5, 5.0) == pytest.approx(2.0, abs=2e-3)
    assert flip(lambda m: rates(m)["x"] / rates(m)["y"], 3.0, 5.0) is None


def test_the_path_runs_straight_for_equal_signals_and_bends_to_the_stronger_one():
    even = path(Signals(("x", "y"), (1.0, 1.0), (0.0, 0.0)))
    torch.testing.assert_close(even.share[:, 0], even.share[:, 1])
    assert (even.share[-1] > 0.99).all()
    bent = path(Signals(("x", "y"), (0.5, 1.0), (0.0, 0.0)))
    half = int((bent.share[:, 1] > 0.9).int().argmax())
    assert bent.share[half, 0] < 0.6
    assert (bent.share[-1] > 0.95).all()
    turn = bent.share[:, 0]
    assert (turn.cummax(0).values - turn).max() > 0.05, (
        "the weak concept falls back before it is learned"
    )


@pytest.mark.parametrize("weak", [0.9, 0.45, 0.3])
def test_a_path_lasts_as_long_as_it_says_and_arrives(weak):
    found = path(Signals(("x", "y"), (weak, 1.0), (0.0, 0.0)), horizon=7.0)
    assert float(found.t[-1]) == pytest.approx(7.0 / weak**2, rel=0.01)
    assert float((found.share[-1] - 1).abs().max()) < 0.01


def test_a_ratio_flips_where_it_passes_through_one_and_nowhere_else():
    assert flip(lambda x: x / 0.3, 0.1, 1.0) == pytest.approx(0.3, abs=1e-3)
    assert flip(lambda x: 0.3 / x, 0.1, 1.0) == pytest.approx(0.3, abs=1e-3)
    assert flip(lambda x: 1.1 + x, 0.1, 1.0) is None
    assert flip(lambda x: 0.3 * x, 0.1, 1.0) is None
