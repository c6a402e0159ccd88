"""Locality: exactly 1 for local denoisers, closed forms for linear and even ones, the exact laws of
the theory."""

import math

import pytest
import torch

from recombine.config import UsageError
from recombine.metrics.locality import condition_influence, distance, locality, pixel_influence
from recombine.metrics.locality_map import locality_map
from recombine.nets.layout_encoder import GlobalConfig, Grid, List
from recombine.nets.local import LocalConfig
from recombine.nets.unet import UNetConfig
from recombine.objectives.edm import Edm
from recombine.objectives.process import Flow
from recombine.plots.locality import plot_map
from recombine.rng import seeded
from recombine.theory.mixtures import Exact, condition_of
from recombine.theory.projective import Joint, Projective, Tilted, random_mixture
from recombine.worlds.layout import Layout
from recombine.worlds.shapes2d import Shapes2D

SIDE, CELLS = 16, 8
LAYOUT = Layout.of(
    torch.tensor([[[0.15, 0.2], [0.8, 0.3], [0.4, 0.9], [0.0, 0.0]]]).expand(2, -1, -1)
).keep(torch.tensor([[True, True, True, False], [True, True, False, False]]))
X, T = torch.randn(2, 3, SIDE, SIDE, generator=seeded("x")), torch.tensor([0.4, 0.4])
PIXELS = torch.tensor([[[0, 0], [7, 9]], [[15, 15], [3, 12]]])


def opened(config):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = config.build(
            List() if isinstance(config, LocalConfig) else Grid(cells=CELLS), (3, SIDE, SIDE)
        )
    rng = seeded("weights")
    with torch.no_grad():
        for p in net.parameters():
            p.add_(0.2 * torch.randn(p.shape, generator=rng))
    return Edm().denoiser(net)


class Linear:
    """x -> A x + sum over conditions of B_j, on flat pictures."""

    def __init__(self, a: torch.Tensor, b: torch.Tensor):
        self.a, self.b = a, b

    def __call__(self, x, t, condition):
        given = torch.einsum("bk,k...->b...", condition.present.to(x.dtype), self.b)
        return (x.flatten(1) @ self.a.T).reshape(x.shape) + given


def test_distance_is_the_larger_axis_in_sides_of_the_picture():
    d = distance(torch.tensor([[[0.25, 0.5]]]), 4, 8)[0, 0]
    assert d.shape == (4, 8)
    assert d[2, 0] == pytest.approx(0.25 - 1 / 16)
    assert d[0, 2] == pytest.approx(0.375)
    assert d[3, 7] == pytest.approx(15 / 16 - 0.25)


@pytest.mark.parametrize("reach", [0, 1, 2])
def test_both_are_exactly_one_for_a_local_network_and_not_for_a_whole_one(reach):
    radius = (reach + 1) / CELLS
    for config, local in (
        (LocalConfig(CELLS, reach, 16, 2, 2), True),
        (GlobalConfig(UNetConfig((8, 16), 1, 2, 16)), False),
    ):
        found = locality(
            opened(config), Edm().schedule, X, LAYOUT, (0.3, 0.8), seeded("l"), 3, radius
        )
        for level in found.levels:
            assert (level.pixel == 1) == local
            assert (level.condition == 1) == local
    assert found.calls == 2 * (1 + 2 * 3 * 3 + 1 + 3)
    assert found.pixel == pytest.approx(sum(level.pixel for level in found.levels) / 2)


def test_a_smaller_square_than_the_patch_loses_some():
    found = locality(
        opened(LocalConfig(CELLS, 2, 16, 2, 2)),
        Edm().schedule,
        X,
        LAYOUT,
        (0.8,),
        seeded("l"),
        4,
        1 / 16,
    )
    assert found.pixel < 1
    assert found.condition < 1


def test_rows_of_a_linear_denoiser_are_those_of_its_matrix():
    a = torch.randn(3 * SIDE**2, 3 * SIDE**2, generator=seeded("a"))
    found = pixel_influence(Linear(a, torch.zeros(4, 3, SIDE, SIDE)), X, T, LAYOUT, PIXELS)
    blocks = a.reshape(3, SIDE, SIDE, 3, SIDE, SIDE).square().sum((0, 3))
    for i in range(2):
        for p, (row, column) in enumerate(PIXELS[i].tolist()):
            wanted = blocks[row, column].clone()
            wanted[row, column] = 0
            torch.testing.assert_close(found.energy[i, p], wanted, rtol=1e-4, atol=1e-4)
    assert found.calls == 1 + 2 * 2 * 3


def test_an_even_denoiser_has_the_squares_share_of_the_picture():
    even = Linear(torch.full((3 * SIDE**2,) * 2, 0.01), torch.ones(4, 3, SIDE, SIDE))
    middle = torch.tensor([[[7, 9]], [[8, 8]]])
    # a square of 5 x 5 pixels around a pixel, itself left out of both
    pixel = pixel_influence(even, X, T, LAYOUT, middle).share(2 / SIDE)
    assert pixel == pytest.approx(24 / (SIDE**2 - 1), rel=1e-5)
    at = torch.full((2, 4, 2), 0.5)
    given = condition_influence(even, X, T, LAYOUT, at)
    assert given.share(2 / SIDE) == pytest.approx(16 / SIDE**2, rel=1e-5)
    assert given.calls == 4
    # three conditions in one picture, two in the other
    assert given.own() == pytest.approx((3 * (1 / 3) + 2 * (1 / 2)) / 5, rel=1e-5)
    constant = condition_influence(
        Linear(torch.eye(3 * SIDE**2), torch.zeros(4, 3, SIDE, SIDE)), X, T, LAYOUT, at
    )
    assert constant.share() == 1
    assert math.isnan(constant.own())


def measure(denoiser, condition=LAYOUT, times=(0.3, 0.6), **more):
    return locality(denoiser, Flow(), X, condition, times, seeded("locality"), pixels=1, **more)


def test_where_no_condition_has_an_effect_nothing_is_said_of_where_it_lies():
    a = torch.eye(3 * SIDE**2) + 0.01
    constant = measure(Linear(a, torch.zeros(4, 3, SIDE, SIDE)))
    assert math.isnan(constant.condition)
    assert all(
        math.isnan(level.condition) and math.isnan(level.condition_plain)
        for level in constant.levels
    )
    assert 0 < constant.pixel < 1
    assert "`present`" in constant.doubt
    dependent = Linear(a, torch.ones(4, 3, SIDE, SIDE))
    late = measure(lambda x, t, c: dependent(x, t, c if t[0] > 0.5 else c.null()))
    assert late.doubt == ""
    assert late.condition == late.levels[1].condition < 1, (
        "the mean is over the times at which there is one"
    )


@pytest.mark.parametrize(
    ("what", "says"),
    [
        (lambda: measure(lambda x, t, c: x * math.nan), "not finite"),
        (lambda: measure(lambda x, t, c: torch.zeros_like(x)), "no gradient"),
        (lambda: measure(torch.no_grad()(lambda x, t, c: 2 * x)), "no_grad"),
        (lambda: measure(lambda x, t, c: x, times=()), "times"),
        (lambda: measure(lambda x, t, c: x, Shapes2D().condition((0, 0, 0), 2)), "at="),
    ],
    ids=[
        "not a number",
        "ignores the picture",
        "no gradients",
        "no times",
        "conditions without locations",
    ],
)
def test_a_strangers_denoiser_that_cannot_be_measured_is_one_clear_line(what, says):
    with pytest.raises(UsageError, match=says):
        what()


def test_effects_of_conditions_follow_their_own_pictures():
    b = torch.zeros(4, 3, SIDE, SIDE)
    b[0, :, 3, 2], b[1, :, 4, 12], b[1, 0, 15, 0], b[2, 0, 14, 6] = 1.0, 2.0, 4.0, 1.0
    given = condition_influence(Linear(torch.eye(3 * SIDE**2), b), X, T, LAYOUT, LAYOUT.at)
    near, far = given.parts(2 / SIDE)
    torch.testing.assert_close(near, torch.tensor([[3.0, 12, 1, 0], [3, 12, 0, 0]]))
    torch.testing.assert_close(far, torch.tensor([[0.0, 16, 0, 0], [0, 16, 0, 0]]))
    assert given.share(2 / SIDE) == pytest.approx(31 / 63)
    assert given.energy[1, 2].sum() == 0
    assert given.own() == 1


def test_the_pixel_itself_does_not_count_so_score_and_denoiser_agree():
    a = torch.randn(3 * SIDE**2, 3 * SIDE**2, generator=seeded("a"))
    b = torch.zeros(4, 3, SIDE, SIDE)
    denoiser, score = Linear(a, b), Linear((a - torch.eye(len(a))) / 0.1, b)
    shares = [pixel_influence(d, X, T, LAYOUT, PIXELS).share() for d in (denoiser, score)]
    assert shares[0] == pytest.approx(shares[1], rel=1e-5)
    assert pixel_influence(Linear(torch.eye(len(a)), b), X, T, LAYOUT, PIXELS).share() == 1


def test_exact_laws_a_composition_is_local_and_a_tilted_one_is_not():
    """Three 2 x 2 sets in the corners of a 4 x 4 picture; the fourth corner is background."""

    def corner(r: int, c: int) -> tuple[int, ...]:
        return tuple(4 * (r + i) + c + j for i in (0, 1) for j in (0, 1))

    sets, rng = (corner(0, 0), corner(0, 2), corner(2, 0)), seeded("law")
    alone = random_mixture(1, 16, rng, 0.3, 1.0)
    idle = type(alone)(
        alone.log_weight, alone.mean, alone.along
    )  # axes of the pixels: nothing tied
    law = Projective(sets, tuple((random_mixture(2, 4, rng),) for _ in sets), idle)
    x = torch.randn(6, 1, 4, 4, generator=rng, dtype=torch.float64)
    at = torch.tensor([[0.25, 0.25], [0.75, 0.25], [0.25, 0.75]], dtype=torch.float64).expand(
        6, -1, -1
    )
    local, tilted = (
        locality(
            Exact(kind, Flow()),
            Flow(),
            x,
            condition_of((0, 0, 0), 6),
            (0.3, 0.6),
            seeded("m"),
            8,
            0.25,
            at,
        )
        for kind in (Joint(law), Tilted(law, 2.0))
    )
    assert local.pixel == pytest.approx(1, abs=1e-9)
    assert local.condition == pytest.approx(1, abs=1e-9)
    assert all(level.own == pytest.approx(1, abs=1e-9) for level in local.levels)
    assert tilted.pixel < 0.999
    assert tilted.condition < 0.99


def test_a_map_shows_a_spot_and_the_conditions_inside_it():
    plt = pytest.importorskip("matplotlib.figure")
    layout = LAYOUT.rows(slice(0, 1))
    found = locality_map(opened(LocalConfig(CELLS, 1, 16, 2, 2)), X[:1], T[:1], layout, (3, 2))
    assert found.heat.max() == 1
    assert found.heat[6:].max() == 0
    assert torch.equal(found.effect != 0, torch.tensor([True, False, False]))
    axis = plt.Figure().subplots()
    plot_map(axis, found, "reach 1")
    assert len(axis.lines) == 2 * 3 + 1


def test_what_cannot_be_measured_is_refused():
    denoiser = opened(LocalConfig(CELLS, 1, 16, 2, 2))
    with pytest.raises(UsageError, match="outside the picture of 16x16"):
        pixel_influence(denoiser, X, T, LAYOUT, PIXELS + 1)
    with pytest.raises(UsageError, match="none is present"):
        locality(denoiser, Edm().schedule, X, LAYOUT.null(), (0.5,), seeded("l"))
