"""The U-Net on patches: what it sees, what it is trained on, and that all cells are put together
as the patches say."""

import pytest
import torch

from recombine.config import UsageError, from_json, to_json
from recombine.nets.layout_encoder import Grid, List
from recombine.nets.patch_unet import PatchConfig
from recombine.nets.unet import UNetConfig
from recombine.objectives.edm import Edm
from recombine.rng import seeded
from recombine.worlds.layout import Layout

CONFIG = PatchConfig(4, 1, UNetConfig((8, 16), blocks=1, heads=2, embedding=16, fold=2))
SHAPE = (3, 16, 16)
X = torch.randn(2, *SHAPE, generator=seeded("x"))
T = torch.tensor([0.3, 0.6])
AT = torch.tensor([[[0.1, 0.1], [0.9, 0.9]], [[0.6, 0.4], [0.0, 0.0]]])
LAYOUT = Layout.of(AT, torch.tensor([[True, True], [True, False]]))


def opened(config: PatchConfig = CONFIG, encoder=None) -> torch.nn.Module:
    """A network that does something."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = config.build(encoder or Grid(cells=4), SHAPE)
        for parameter in net.parameters():
            torch.nn.init.normal_(parameter, std=0.2)
    return net


@pytest.mark.parametrize("encoder", [Grid(cells=4), List(slots=3)], ids=["grid", "list"])
def test_a_cell_depends_on_its_patch_alone(encoder):
    """Pixels and locations more than one cell away have exactly no effect; those inside have."""
    net = opened(encoder=encoder)
    base = net(X, T, LAYOUT)
    assert base.shape == X.shape
    far = X.clone()
    far[:, :, 8:] += 1
    changed = (net(far, T, LAYOUT) != base).any(1)
    assert not changed[:, :4].any()
    assert changed[:, 4:].any(2).all()
    moved = (net(X, T, LAYOUT.without(1)) != base).any(1)
    assert not moved[0, :8].any()
    assert not moved[0, :, :8].any()
    assert moved[0, 8:, 8:].any()
    assert torch.equal(net.sees(LAYOUT.without(1))[0].nonzero().amax(0), torch.tensor([7, 7]))


def test_every_cell_is_the_centre_of_its_own_patch():
    net = opened()
    index = torch.tensor([[6]]).expand(2, -1)
    patch = net.patches(X, index)
    assert torch.equal(patch[:, 0, :3], X[:, :, 0:12, 4:16])
    assert patch[:, 0, 3].min() == 1
    corner = net.patches(X, torch.zeros(2, 1, dtype=torch.long))[:, 0]
    assert corner[:, :, :4].abs().max() == corner[:, :, :, :4].abs().max() == 0
    alone = net.on(patch[:, 0], T, net.codes(LAYOUT)[:, 6], index[:, 0])[:, :, 4:8, 4:8]
    torch.testing.assert_close(net(X, T, LAYOUT)[:, :, 4:8, 8:12], alone)


def test_how_many_patches_go_at_once_changes_nothing(monkeypatch):
    net = opened()
    whole = net(X, T, LAYOUT)
    monkeypatch.setattr("recombine.nets.patch_unet.AT_ONCE", 3)
    torch.testing.assert_close(net(X, T, LAYOUT), whole)


def test_the_loss_is_that_of_one_patch_with_a_location_and_one_without():
    net, layout = opened(), LAYOUT.without(1)
    edm = Edm(patches=16)
    draw = edm.draw(X.shape, seeded("draw"))
    seen = layout.inside(4, 1).any(2)
    goal = torch.randn(X.shape, generator=seeded("goal"))
    index = torch.stack(
        [draw.pick[:, i].masked_fill(~mask, -1).argmax(1) for i, mask in enumerate((seen, ~seen))],
        1,
    )
    assert seen.gather(1, index).tolist() == [[True, False]] * 2
    each = []
    for i in range(2):
        own = index[:, i : i + 1]
        patch, wanted = net.patches(X, own)[:, 0], net.patches(goal, own)[:, 0]
        codes = net.codes(layout)[torch.arange(2), index[:, i]]
        error = (net.on(patch, T, codes, index[:, i]) - wanted[:, :3]).square()
        inside = wanted[:, 3:].bool().expand_as(error)
        each.append(torch.stack([error[b][inside[b]].mean() for b in range(2)]))
    torch.testing.assert_close(net.two(X, T, layout, goal, draw.pick), (each[0] + each[1]) / 2)
    assert edm.loss(net, X, layout, draw).shape == (2,)


def test_a_patch_as_large_as_the_picture_costs_what_it_says():
    whole = PatchConfig(16, 8)
    assert whole.side((3, 64, 64)) == 68
    assert whole.cost((3, 64, 64)) == 17**2
    assert from_json(to_json(CONFIG)) == CONFIG
    for shape in ((3, 18, 18), (3, 16, 20), (3, 20, 16)):
        with pytest.raises(UsageError, match="cells do not divide"):
            CONFIG.check(shape)
    with pytest.raises(ValueError, match="reach=4"):
        PatchConfig(4, 4)
