"""Pictures between two compositions, and how far from one each probe still reads it."""

import pytest
import torch
from test_probes import SPLIT, WORLD

from recombine.analysis.levels import interpolation_curve, tolerance
from recombine.analysis.table import Table
from recombine.config import UsageError
from recombine.metrics.interpolation import SHARES, interpolation_rows, ways
from recombine.metrics.probes import Oracle
from recombine.rng import seeded
from recombine.worlds.circles import Circles
from recombine.worlds.folder import Folder
from recombine.worlds.shapes2d import Shapes2D
from recombine.worlds.world import World

WORLDS = [
    Shapes2D(),
    Shapes2D(shapes=("circle", "triangle", "square"), wander=0.3),
    Circles(background_signal=0.3),
]


def pair(world, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    rng = seeded("pair", seed)
    return tuple(
        torch.stack([torch.randint(n, (16,), generator=rng) for n in world.space.sizes], 1)
        for _ in range(2)
    )


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_both_ends_are_what_the_world_renders(world):
    here, there = pair(world, 0)
    for end, share in ((here, torch.zeros(16)), (there, torch.ones(16))):
        assert torch.equal(
            world.interpolate(here, there, share, seeded(1)), world.render(end, seeded(1)).images
        )


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_every_picture_has_its_own_share_and_the_way_back_is_the_same(world):
    here, there = pair(world, 2)
    share = torch.linspace(0, 1, 16)
    made = world.interpolate(here, there, share, seeded(3))
    alone = [
        world.interpolate(here, there, torch.full((16,), float(s)), seeded(3))[i]
        for i, s in enumerate(share)
    ]
    assert torch.allclose(made, torch.stack(alone), atol=1e-6)
    assert torch.allclose(made, world.interpolate(there, here, 1 - share, seeded(3)), atol=1e-5)


def test_halfway_is_one_thing_and_no_mixture():
    """Half way from blue to red it is violet wherever there is ink; half way from triangle to
    circle the ink stays blue."""
    world, both = (
        Shapes2D(color_jitter=0.0),
        [torch.tensor([c]) for c in ((1, 1, 1), (1, 0, 1), (0, 1, 1))],
    )
    violet, round_ = (
        world.interpolate(both[0], there, torch.tensor([0.5]), seeded(4))[0] for there in both[1:]
    )
    assert violet.amin((1, 2)).tolist() == pytest.approx([0.5, 0.1, 0.5], abs=1e-5)
    assert round_.amin((1, 2)).tolist() == pytest.approx([0.1, 0.1, 0.9], abs=1e-5)
    ends = [world.render(c, seeded(4)).images[0] for c in (both[0], both[2])]
    ink = [float((world.background - p[0]).sum()) for p in (ends[0], round_, ends[1])]
    assert ink[1] == pytest.approx(ink[0], rel=0.2)


def test_ways_lead_from_what_is_furthest_to_its_neighbours_along_each_factor():
    found = list(ways(WORLD, SPLIT))
    assert found == [
        ((1, 1, 1), (0, 1, 1), "shape"),
        ((1, 1, 1), (1, 0, 1), "color"),
        ((1, 1, 1), (1, 1, 0), "size"),
    ]


def test_the_oracle_tolerates_about_as_much_in_every_factor():
    rows = Table(interpolation_rows(Oracle(Shapes2D()), Shapes2D(), SPLIT, 32))
    assert sorted(rows.unique("share")) == list(SHARES)
    for factor in ("shape", "color", "size"):
        curve = interpolation_curve(rows, "oracle", factor)
        assert (curve[0][1], curve[-1][1]) == (1, 0)
        assert 0.15 < tolerance(curve) < 0.35
        assert rows.one(factor=factor, share=1.0)["other"] > 0.95


def test_the_tolerance_is_where_a_curve_crosses_one_half():
    assert tolerance([(0.0, 1.0), (0.5, 0.75), (1.0, 0.25)]) == pytest.approx(0.75)
    assert tolerance([(0.0, 1.0), (1.0, 0.9)]) == 1.0
    assert tolerance([(0.0, 0.1), (1.0, 0.0)]) == 0.0


def test_a_world_that_cannot_render_it_says_so():
    assert not Folder.interpolates
    with pytest.raises(UsageError, match="cannot render pictures between"):
        World.interpolate(Shapes2D(), *pair(Shapes2D(), 0), torch.zeros(16), seeded(0))
