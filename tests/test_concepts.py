"""Concept space: coordinates are probabilities, and each method of prompting changes just what it
says."""

import pytest
import torch

from recombine.metrics.concepts import (
    additive,
    coordinates,
    direction,
    multiplicative,
    overprompt,
    patched,
    steered,
)
from recombine.nets.conditioning import Conditioning
from recombine.nets.dit import DiTConfig
from recombine.nets.net_config import NetConfig
from recombine.nets.transformer import TransformerConfig
from recombine.nets.unet import UNetConfig
from recombine.rng import seeded
from recombine.worlds.circles import Circles

WORLD = Circles(size=16)
NETS = (DiTConfig(TransformerConfig(1, 16, 2), 8), UNetConfig((8, 16), 1, 2, 16))
each_net = pytest.mark.parametrize("config", NETS, ids=["dit", "unet"])
WANTED, AWAY = WORLD.condition((1, 1), 3), WORLD.condition((0, 1), 3)


def opened(config: NetConfig, name: str = "weights") -> torch.nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = config.build(Conditioning(), WORLD.image_shape, WORLD.space)
    rng = seeded(name)
    with torch.no_grad():
        for p in net.parameters():
            p.add_(0.2 * torch.randn(p.shape, generator=rng))
    return net


def answer(net: torch.nn.Module, condition=WANTED) -> torch.Tensor:
    x = torch.randn(3, *WORLD.image_shape, generator=seeded("x"))
    with torch.no_grad():
        return net(x, torch.tensor([0.2, 0.5, 0.8]), condition)


def test_coordinates_are_the_probabilities_of_the_prompted_values_picture_by_picture():
    table = torch.tensor([[0.1, 0.9], [0.7, 0.3], [0.5, 0.5]])

    def logits(images):
        which = images[:, 0, 0, 0].mul(10).round().long()
        return [table[which].log(), table[which].flip(1).log()]

    images = torch.tensor([0.0, 0.1, 0.2, 0.1]).reshape(4, 1, 1, 1)
    expected = {
        (0, 0): [[0.1, 0.9], [0.7, 0.3], [0.5, 0.5]],
        (1, 0): [[0.9, 0.9], [0.3, 0.3], [0.5, 0.5]],
    }
    for composition, rows in expected.items():
        got = coordinates(logits, images, composition, chunk=3)
        torch.testing.assert_close(got, torch.tensor([*rows, rows[1]]))


def test_values_outside_the_screen_are_assessed_as_shown():
    logits = lambda images: [torch.stack((images.mean((1, 2, 3)), 1 - images.mean((1, 2, 3))), 1)]  # noqa: E731
    wild = torch.tensor([[[[-3.0, 0.5]]], [[[0.0, 0.5]]]])
    got = coordinates(logits, wild, (0,))
    assert torch.equal(got[0], got[1])


def test_additive_and_multiplicative_accuracy_of_known_pictures():
    right = torch.tensor([[1.0, 1.0, 1.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    assert additive(right) == pytest.approx(9 / 12)
    assert multiplicative(right) == pytest.approx(0.5)
    half = torch.full((8, 3), 0.5)
    assert (additive(half), multiplicative(half)) == (0.5, 0.125)
    assert multiplicative(right) <= additive(right)


def test_overprompting_goes_on_along_the_line_of_the_one_factor_that_differs():
    more = overprompt(WANTED, AWAY, 0.5)
    red, blue = torch.tensor([0.7, 0.3, 0.3]), torch.tensor([0.3, 0.3, 0.7])
    torch.testing.assert_close(
        more.value[0], torch.cat((blue + 0.5 * (blue - red), torch.tensor([0.25])))
    )
    assert torch.equal(overprompt(WANTED, AWAY, 0.0).value, WANTED.value)
    torch.testing.assert_close(overprompt(WANTED, AWAY, -1.0).value, AWAY.value)
    assert torch.equal(more.index, WANTED.index)


@each_net
def test_steering_by_minus_one_gives_the_other_and_the_network_is_left_as_it_was(config):
    net = opened(config)
    plain, line = answer(net), direction(net, WANTED, AWAY)
    with steered(net, -line):
        torch.testing.assert_close(answer(net), answer(opened(config), AWAY), atol=1e-5, rtol=1e-5)
    with steered(net, 2 * line[:1]):
        assert (answer(net) != plain).any()
    with steered(net, 0 * line):
        assert torch.equal(answer(net), plain)
    assert torch.equal(answer(net), plain)


@each_net
def test_each_picture_is_steered_by_its_own_shift(config):
    net = opened(config)
    plain, line = answer(net), direction(net, WANTED, AWAY)
    with steered(net, line * torch.tensor([[0.0], [1.0], [0.0]])):
        moved = (answer(net) != plain).flatten(1).any(1)
    assert moved.tolist() == [False, True, False]


@each_net
def test_a_patched_network_is_the_one_with_the_other_checkpoints_embedding(config):
    net, other = opened(config), opened(config, "other")
    plain, theirs = answer(net), {k: p.detach().clone() for k, p in other.named_parameters()}
    mixed = opened(config)
    mixed.condition = other.condition
    with patched(net, theirs):
        assert torch.equal(answer(net), answer(mixed))
    assert torch.equal(answer(net), plain)
    assert all(torch.equal(p, theirs[k]) for k, p in other.named_parameters()), (
        "what is lent comes back unchanged"
    )
    everything_else = {k for k, _ in net.named_parameters() if not k.startswith("condition.")}
    with patched(net, theirs):
        own = dict(opened(config).named_parameters())
        assert all(torch.equal(dict(net.named_parameters())[k], own[k]) for k in everything_else)


@each_net
def test_the_network_comes_back_also_when_the_block_fails(config):
    net = opened(config)
    plain, theirs = (
        answer(net),
        {k: p.detach().clone() for k, p in opened(config, "other").named_parameters()},
    )
    for change in (steered(net, direction(net, WANTED, AWAY)), patched(net, theirs)):
        with pytest.raises(KeyError), change:
            raise KeyError
        assert torch.equal(answer(net), plain)
