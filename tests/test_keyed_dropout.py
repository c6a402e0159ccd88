"""Dropout by keys: it drops as much as it says, evenly and independently, the same for the same
picture, and nothing outside training."""

import pytest
import torch
from tiny import QUIET

from recombine.nets.conditioning import Conditioning
from recombine.nets.keyed_dropout import KeyedDropout, kept, key_of
from recombine.nets.unet import UNetConfig
from recombine.rng import seeded
from recombine.train.fit import Fit, TrainConfig
from recombine.worlds.circles import Circles

X = torch.randn(64, 16, 8, 8, generator=seeded("x"))
KEY = key_of(X)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_it_drops_its_share_everywhere(rate):
    stay = kept(X.shape, KEY, rate).float()
    assert float(stay.mean()) == pytest.approx(1 - rate, abs=4e-3)
    for axes in ((1, 2, 3), (0, 2, 3), (0, 1, 2)):
        count = X.numel() / stay.mean(axes).numel()
        spread = (rate * (1 - rate) / count) ** 0.5
        assert (stay.mean(axes) - (1 - rate)).abs().max() < 4.5 * spread


def test_pictures_layers_and_neighbours_drop_independently():
    stay = kept(X.shape, KEY, 0.5).float().flatten(1) - 0.5
    other = kept(X.shape, KEY + 1, 0.5).float().flatten(1) - 0.5
    pairs = [(stay, stay.roll(n, 1)) for n in (1, 8, 64, 512)] + [(stay, other)]
    pairs += [(stay[:-1], stay[1:])]
    for a, b in pairs:
        assert abs(float((a * b).mean())) < 4 * 0.25 / a.numel() ** 0.5


def test_the_key_depends_on_every_pixel_and_on_nothing_else():
    assert torch.equal(key_of(X.clone()), KEY)
    assert torch.equal(key_of(X[3:5]), KEY[3:5])
    assert len(set(KEY.tolist())) == len(KEY)
    changed = X.clone()
    changed[:, 5, 3, 2] += 1e-6 * (1 + X[:, 5, 3, 2].abs())
    assert (key_of(changed) != KEY).all()


def test_values_that_stay_are_scaled_up_and_outside_training_nothing_is_dropped():
    layer = KeyedDropout(0.25)
    out = layer(X, KEY)
    torch.testing.assert_close(out, torch.where(kept(X.shape, KEY, 0.25), X / 0.75, 0.0))
    assert 0 < (out == 0).float().mean() < 0.3
    assert torch.equal(layer.eval()(X, KEY), X)
    assert torch.equal(KeyedDropout(0.0)(X, KEY), X)


def test_a_network_drops_in_training_and_not_where_it_is_observed():
    world, config = Circles(size=16), UNetConfig((8,), 1, 1, 8, dropout=0.5)
    net = config.build(Conditioning(), (3, 16, 16), world.space)
    with torch.no_grad():
        for p in net.parameters():
            p.add_(0.2 * torch.randn(p.shape, generator=seeded("weights")))
    x, given = X[:2, :3].repeat(1, 1, 2, 2), (torch.tensor([0.1, 0.9]), world.condition((1, 0), 2))
    fit = Fit(net, lambda *_: None, TrainConfig(steps=1, batch=2), QUIET)
    drops = net(x, *given)
    assert torch.equal(net(x, *given), drops)
    with fit.averaged():
        whole = net(x, *given)
    assert (whole != drops).any()
    assert torch.equal(net(x, *given), drops)
    layers = [m.layer for m in net.modules() if isinstance(m, KeyedDropout)]
    assert layers == list(range(len(layers)))
