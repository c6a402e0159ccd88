"""Layouts and their encoders: cells, lists, what training drops, and one interface into every
network."""

import pytest
import torch

from recombine.config import UsageError, from_json, to_json
from recombine.nets.colour_grid import ColourGrid
from recombine.nets.dit import DiTConfig
from recombine.nets.layout_encoder import GlobalConfig, Grid, List, Null
from recombine.nets.local import LocalConfig
from recombine.nets.transformer import TransformerConfig
from recombine.nets.unet import UNetConfig
from recombine.rng import seeded
from recombine.worlds.factors import Condition
from recombine.worlds.layout import Layout

AT = torch.tensor([[[0.0, 0.0], [0.99, 0.26], [1.0, 1.0]], [[0.5, 0.1], [0.51, 0.1], [0.2, 0.7]]])
LAYOUT = Layout.of(AT, torch.tensor([[True, True, True], [True, True, False]]))
SMALL = TransformerConfig(depth=2, width=16, heads=2)
NETS = [
    GlobalConfig(UNetConfig((8, 16), blocks=1, heads=2, embedding=16)),
    GlobalConfig(DiTConfig(SMALL, patch=4)),
    LocalConfig(cells=4, reach=1, width=16, depth=2, heads=2),
]
ENCODERS = [Grid(cells=4), List(slots=5), Null(), ColourGrid(cells=4)]


def random_layout(count: int, slots: int) -> Layout:
    rng = seeded("layout", count, slots)
    at, present = (
        torch.rand(count, slots, 2, generator=rng),
        torch.rand(count, slots, generator=rng) < 0.6,
    )
    return Layout(at, present)


def test_a_location_outside_the_picture_is_refused_unless_it_is_absent():
    at = AT.clone()
    at[1, 2] = torch.tensor([1.2, 0.5])
    assert Layout.of(at, LAYOUT.present).present.sum() == 5
    with pytest.raises(UsageError, match=r"location \(1.2, 0.5\) lies outside the picture"):
        Layout.of(at)
    at[0, 0, 0] = torch.nan
    with pytest.raises(UsageError, match="outside"):
        Layout.of(at, LAYOUT.present)


def test_layouts_offer_what_conditions_offer():
    offered = {name for name in vars(Condition) if not name.startswith("_")} - {
        "index",
        "value",
        "zeroed",
    }
    assert offered <= set(dir(Layout))
    assert torch.equal(LAYOUT.without(1).present, torch.tensor([[1, 0, 1], [1, 0, 0]]).bool())
    assert not LAYOUT.null().present.any()
    assert torch.equal(LAYOUT.rows(torch.tensor([1])).at, AT[1:])
    assert not Layout.empty(3, 2).present.any()


def test_a_grid_has_a_one_in_the_cell_of_each_location():
    locations = Grid(cells=4).code(LAYOUT).reshape(2, 4, 4)
    assert [tuple(i) for i in locations[0].nonzero().tolist()] == [(0, 0), (1, 3), (3, 3)]
    assert [tuple(i) for i in locations[1].nonzero().tolist()] == [(0, 2)]
    assert locations.max() == 1


def test_a_list_is_packed_and_padded_whatever_the_gaps():
    holes, slots = random_layout(6, 4), List(slots=5)
    assert torch.equal(slots.code(holes), slots.code(holes.packed()))
    code = slots.code(LAYOUT).reshape(2, 5, 3)
    torch.testing.assert_close(code[0, 1], torch.tensor([1, 0.98, -0.48]))
    assert torch.equal(code[1, 2:], torch.zeros(3, 3))
    assert torch.equal(slots.code(LAYOUT.without(0))[0, :6], slots.code(LAYOUT)[0, 3:9])
    with pytest.raises(UsageError, match="3 locations do not fit into 2 slots"):
        List(slots=2).code(LAYOUT)


def test_a_patch_code_holds_what_lies_inside_as_seen_from_its_middle():
    grid = Grid().patch_code(LAYOUT, 4, 1).reshape(2, 4, 4, 3, 3)
    assert [tuple(i) for i in grid[0, 0, 2].nonzero().tolist()] == [(2, 2)]
    assert [tuple(i) for i in grid[0, 2, 3].nonzero().tolist()] == [(0, 1), (2, 1)]
    assert not grid[0, 2, 1].any()
    code = List(slots=4).patch_code(LAYOUT, 4, 1).reshape(2, 4, 4, 4, 3)
    torch.testing.assert_close(
        code[0, 2, 3, 0], torch.tensor([1, 0.46 / 1.5, -1.46 / 1.5]), rtol=0, atol=1e-5
    )
    torch.testing.assert_close(
        code[0, 2, 3, 1], torch.tensor([1, 0.5 / 1.5, 1.5 / 1.5]), rtol=0, atol=1e-5
    )
    assert torch.equal(code[0, 2, 3, 2:], torch.zeros(2, 3))
    torch.testing.assert_close(
        code[1, 0, 2, 1], torch.tensor([1, -0.46 / 1.5, -0.1 / 1.5]), rtol=0, atol=1e-5
    )
    assert (code[..., 0].sum(-1) == LAYOUT.inside(4, 1).sum(2).reshape(2, 4, 4)).all()
    assert code[..., 1:].abs().max() <= 1


@pytest.mark.parametrize("layout_encoder", ENCODERS)
def test_absent_slots_have_no_effect(layout_encoder):
    layout = random_layout(8, 5)
    junk = layout._replace(at=torch.where(layout.present[..., None], layout.at, torch.nan))
    for write in (layout_encoder.code, lambda p: layout_encoder.patch_code(p, 4, 1)):
        assert torch.equal(write(layout), write(junk))
        assert not write(layout.null()).any()


def test_one_label_is_drawn_evenly_among_the_present():
    layout = Layout(
        torch.rand(3000, 4, 2), torch.tensor([[True, False, True, True]]).expand(3000, -1)
    )
    given = Grid(labelled="one").drop(layout, seeded("one"))
    share = given.present.float().mean(0)
    assert (given.present.sum(1) == 1).all()
    assert share[1] == 0
    assert (share[[0, 2, 3]] - 1 / 3).abs().max() < 0.03
    assert not layout.null().one(seeded("one")).present.any()
    dropped = Grid(dropout=0.25).drop(layout, seeded("drop")).present
    assert set(dropped.sum(1).tolist()) == {0, 3}
    assert abs((dropped.sum(1) == 0).float().mean() - 0.25) < 0.03


@pytest.mark.parametrize("config", NETS, ids=lambda c: type(getattr(c, "net", c)).__name__)
@pytest.mark.parametrize("layout_encoder", ENCODERS, ids=lambda p: type(p).__name__)
def test_every_encoder_enters_every_network_and_only_its_projection_differs(config, layout_encoder):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = config.build(layout_encoder, (3, 16, 16))
    x, t = torch.randn(2, 3, 16, 16, generator=seeded("x")), torch.tensor([0.2, 0.8])
    assert torch.equal(net(x, t, LAYOUT), torch.zeros_like(x))
    sizes = {name: p.shape for name, p in net.named_parameters()}
    other = {
        name: p.shape for name, p in config.build(Grid(cells=4), (3, 16, 16)).named_parameters()
    }
    projection = "layout.weight" if isinstance(config, GlobalConfig) else "layout.0.weight"
    assert {name for name in sizes if sizes[name] != other[name]} <= {projection}
    assert sizes.keys() == other.keys()
    with torch.no_grad():
        for p in net.parameters():
            p.add_(0.2 * torch.randn(p.shape, generator=seeded(str(p.shape))))
    changed = (net(x, t, LAYOUT) - net(x, t, LAYOUT.without(0))).abs().amax((1, 2, 3)) > 0
    assert changed[0] == (not isinstance(layout_encoder, Null))
    assert from_json(to_json(config)) == config
    assert from_json(to_json(layout_encoder)) == layout_encoder


@pytest.mark.parametrize(
    "make",
    [
        lambda: Grid(cells=0),
        lambda: List(slots=0),
        lambda: Null(dropout=2.0),
        lambda: ColourGrid(cells=0),
    ],
)
def test_impossible_encoders_are_refused(make):
    with pytest.raises(ValueError, match=r"cells|slots|dropout"):
        make()
