"""The local network: what a pixel depends on is its patch, all of its patch, and nothing but its
patch."""

import pytest
import torch

from recombine.config import UsageError, from_json, to_json
from recombine.nets.layout_encoder import Grid, List
from recombine.nets.local import LocalConfig, LocalNet
from recombine.rng import seeded
from recombine.worlds.layout import Layout

CELLS, SIDE = 8, 16
LAYOUT = Layout.of(torch.tensor([[[0.3, 0.3], [0.9, 0.9], [0.05, 0.6], [0.55, 0.45]]]))

OPTIONS = (
    {"layout_scope": "patch"},
    {"layout_scope": "cell"},
    {"fine": 8},
    {"always": True},
    {"layout_scope": "cell", "always": True, "fine": 8},
)


def opened(reach: int, layout_encoder=List(), **more) -> LocalNet:  # noqa: B008
    """A network with all its gates open; the weights do not depend on the reach."""
    sizes = {"width": 32, "depth": 4, "heads": 2} | more
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = LocalConfig(CELLS, reach, **sizes).build(layout_encoder, (3, SIDE, SIDE))
    rng = seeded("weights")
    with torch.no_grad():
        for p in net.parameters():
            p.add_(0.2 * torch.randn(p.shape, generator=rng))
    return net


def picture(count: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(count, 3, SIDE, SIDE, generator=seeded("x")), torch.full((count,), 0.4)


def patch(row: int, column: int, reach: int) -> torch.Tensor:
    """The pixels of the patch around a pixel's cell."""
    inside, side = torch.zeros(SIDE, SIDE, dtype=torch.bool), SIDE // CELLS
    rows, columns = (
        (max(0, (i // side - reach)) * side, (i // side + reach + 1) * side) for i in (row, column)
    )
    inside[slice(*rows), slice(*columns)] = True
    return inside


@pytest.mark.parametrize("reach", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("where", [(0, 0), (7, 8)])
@pytest.mark.parametrize(("stages", "fine"), [(1, 0), (2, 0), (4, 0), (2, 8)])
def test_gradients_are_zero_outside_the_patch_and_nowhere_inside(reach, where, stages, fine):
    net, (x, t) = opened(reach, stages=stages, fine=fine, always=bool(fine)), picture()
    x.requires_grad_()
    inside = patch(*where, reach)
    for channel in range(3):
        (pulled,) = torch.autograd.grad(net(x, t, LAYOUT)[0, channel, *where], x)
        assert (pulled[..., ~inside] == 0).all()
        assert (pulled[..., inside] != 0).all()


@pytest.mark.parametrize("layout_encoder", [Grid(cells=CELLS), List()], ids=["grid", "list"])
@pytest.mark.parametrize(("reach", "stages"), [(0, 1), (1, 2), (2, 1), (2, 2), (7, 2)])
@pytest.mark.parametrize("more", OPTIONS, ids=str)
def test_a_location_changes_every_pixel_whose_patch_holds_it_and_no_other(
    layout_encoder, reach, stages, more
):
    net, (x, t) = opened(reach, layout_encoder, stages=stages, **more), picture()
    for slot in range(4):
        changed = (net(x, t, LAYOUT) != net(x, t, LAYOUT.without(slot)))[0].any(0)
        column, row = (LAYOUT.at[0, slot] * SIDE).long().tolist()
        assert torch.equal(changed, patch(row, column, reach))


@pytest.mark.parametrize("more", OPTIONS, ids=str)
def test_a_cell_is_denoised_from_its_patch_alone(more):
    """The literal form: keep one patch and its locations, put junk everywhere else, and the cell's
    output is the same."""
    net, (x, t) = opened(2, **more), picture()
    whole = net(x, t, LAYOUT)
    for row, column in ((0, 0), (7, 8), (14, 15), (9, 2)):
        inside = patch(row, column, 2)
        junk = torch.where(inside, x, 1e3 * torch.randn(x.shape, generator=seeded("junk")))
        at = (LAYOUT.at * SIDE).long()
        given = LAYOUT.keep(inside[at[..., 1], at[..., 0]])
        assert torch.equal(net(junk, t, given)[..., row, column], whole[..., row, column])


@pytest.mark.parametrize("fine", [0, 8])
def test_the_largest_reach_gives_the_whole_picture_with_the_same_weights(fine):
    far, close, (x, t) = opened(CELLS - 1, fine=fine), opened(1, fine=fine), picture()
    assert {k: v.shape for k, v in far.state_dict().items()} == {
        k: v.shape for k, v in close.state_dict().items()
    }
    x.requires_grad_()
    (pulled,) = torch.autograd.grad(far(x, t, LAYOUT)[0, 0, 0, 0], x)
    assert (pulled != 0).all()
    assert (far(x, t, LAYOUT) != far(x, t, LAYOUT.without(1))).all()


@pytest.mark.parametrize(("cells", "side"), [(8, 24), (8, 32), (4, 32)])
@pytest.mark.parametrize("reach", [0, 1, 2])
def test_convolutions_over_pixels_end_within_the_patch_whatever_the_cells_are(cells, side, reach):
    """Cells of three pixels are not folded; of those of eight, few layers see little."""
    net = (
        LocalConfig(cells, reach, width=16, depth=2, heads=2, fine=4)
        .build(List(), (3, side, side))
        .fine
    )
    with torch.no_grad():
        for p in net.parameters():
            p.normal_(generator=seeded("weights", *p.shape))
    x = torch.randn(1, 3, side, side, generator=seeded("x")).requires_grad_()
    tokens, m = torch.randn(1, cells**2, 16, generator=seeded("tokens")), side // cells
    for row, column in ((0, 0), (2 * m, 3 * m - 1), (3 * m - 1, 2 * m)):
        (pulled,) = torch.autograd.grad(
            net(x, tokens, torch.ones(1, 16), cells)[0, 0, row, column], x
        )
        felt = pulled[0].ne(0).any(0).nonzero() // m
        far = (felt - torch.tensor([row // m, column // m])).abs().max()
        assert far <= reach
        assert reach == 0 or far >= 1, "they do look beyond the cell"


def test_a_network_with_convolutions_starts_at_zero():
    net, (x, t) = (
        LocalConfig(CELLS, 1, 32, 4, 2, fine=8, always=True).build(List(), (3, SIDE, SIDE)),
        picture(),
    )
    assert not net(x, t, LAYOUT).any()


def test_a_cell_knows_where_it_is():
    net, t = opened(1), torch.tensor([0.4])
    out = net(torch.zeros(1, 3, SIDE, SIDE), t, LAYOUT.null())
    cells = out.unfold(2, 2, 2).unfold(3, 2, 2).permute(0, 2, 3, 1, 4, 5).reshape(CELLS**2, -1)
    assert torch.cdist(cells, cells)[~torch.eye(CELLS**2, dtype=torch.bool)].min() > 1e-4


@pytest.mark.parametrize("reach", [0, 2, 7])
def test_sees_says_which_pixels_a_condition_can_change(reach):
    net, (x, t) = opened(reach), picture()
    given = LAYOUT.keep(torch.tensor([[True, False, True, False]]))
    changed = (net(x, t, given) != net(x, t, given.null())).any(1)
    assert torch.equal(net.sees(given), changed)
    assert not net.sees(given.null()).any()


def test_pictures_and_half_precision_do_not_leak():
    net, (x, t) = opened(1), picture(2)
    both = Layout(*(torch.cat([part, part.roll(1, 1)]) for part in LAYOUT))
    torch.testing.assert_close(net(x, t, both)[:1], net(x[:1], t[:1], LAYOUT), rtol=1e-4, atol=1e-4)
    x.requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        (pulled,) = torch.autograd.grad(net(x, t, both)[0, 0, 7, 8], x)
    assert (pulled[0, :, ~patch(7, 8, 1)] == 0).all()
    assert (pulled[1] == 0).all()


def test_radii_add_up_to_the_reach():
    for reach in range(8):
        for stages in (1, 2, 4):
            radii = LocalConfig(CELLS, reach, stages=stages).radii
            assert sum(radii) == reach
            assert max(radii) - min(radii) <= 1


@pytest.mark.parametrize(
    "bad",
    [
        {"reach": 16},
        {"reach": -1},
        {"width": 30},
        {"depth": 3},
        {"cells": 0},
        {"heads": 3},
        {"fine": -1},
    ],
)
def test_impossible_networks_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        LocalConfig(**bad)


def test_pictures_that_do_not_fit_are_refused_and_the_config_goes_through_json():
    with pytest.raises(UsageError, match="16 cells do not divide a picture of 24x24 into squares"):
        LocalConfig().build(Grid(), (3, 24, 24))
    with pytest.raises(UsageError, match="32x48"):
        LocalConfig().check((3, 32, 48))
    config = LocalConfig(reach=8)
    assert from_json(to_json(config)) == config
