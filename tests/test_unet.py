"""U-Net: starts at zero, keeps shapes, depends on everything everywhere, and stands in for a
DiT."""

import inspect
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from recombine.config import UsageError, from_json, to_json
from recombine.nets.conditioning import Conditioning
from recombine.nets.dit import DiT
from recombine.nets.unet import Coordinates, UNet, UNetConfig
from recombine.rng import seeded
from recombine.worlds.circles import Circles

WORLD = Circles(size=16)
SMALL = UNetConfig((8, 16), blocks=1, heads=2, embedding=16)
RICH = UNetConfig((8, 16), 1, 2, 16, fold=2, scaled=True, coordinates=True)
PUBLIC = UNetConfig((16, 32), 1, 2, 16, block_mlps=11, dropout=0.1)
"""Two channels a group and more: a norm of single channels would remove what is added to them."""


RAW = Conditioning(embedding_scale="raw")


def made(
    config: UNetConfig = SMALL,
    shape: tuple[int, int, int] = (3, 16, 16),
    conditioning: Conditioning | None = None,
) -> UNet:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return config.build(conditioning or Conditioning(), shape, WORLD.space)


def opened(net: UNet) -> UNet:
    rng = seeded("weights")
    with torch.no_grad():
        for p in net.parameters():
            p.add_(0.2 * torch.randn(p.shape, generator=rng))
    return net


@pytest.mark.parametrize(
    ("config", "shape"),
    [
        (SMALL, (3, 16, 16)),
        (UNetConfig((8,), 2, 1, 8), (1, 7, 5)),
        (UNetConfig((8, 16, 24), 1, 3, 8), (3, 8, 12)),
        (RICH, (3, 16, 16)),
        (RICH, (1, 8, 12)),
        (PUBLIC, (3, 16, 16)),
    ],
)
def test_the_untrained_network_answers_exactly_zero_in_the_shape_of_the_picture(config, shape):
    x = torch.randn(2, *shape, generator=seeded("x"))
    out = made(config, shape)(x, torch.tensor([0.1, 0.9]), WORLD.condition((1, 0), 2))
    assert torch.equal(out, torch.zeros_like(x))


@pytest.mark.parametrize("config", [SMALL, RICH, PUBLIC], ids=["small", "rich", "public"])
def test_every_pixel_the_time_and_the_condition_reach_every_pixel_of_the_answer(config):
    net, c = opened(made(config)), WORLD.condition((1, 0), 1)
    x, t = (
        torch.randn(1, 3, 16, 16, generator=seeded("x")).requires_grad_(),
        torch.tensor([0.4]).requires_grad_(),
    )
    for where in ((0, 0), (0, 15), (15, 0), (8, 7)):
        to_x, to_t = torch.autograd.grad(net(x, t, c)[0, :, *where].sum(), (x, t))
        assert (to_x != 0).all()
        assert (to_t != 0).all()
    assert (net(x, t, c) != net(x, t, WORLD.condition((0, 1), 1))).all()


def test_a_network_with_coordinates_knows_where_it_is():
    """On a picture of one colour, far from the borders: what differs there comes from coordinates,
    or from afar."""
    flat, t, c = torch.zeros(1, 3, 64, 64), torch.tensor([0.4]), WORLD.condition((1, 0), 1)
    one_level = UNetConfig((8,), 1, 1, 8, fold=2)
    for given in (False, True):
        net = opened(made(replace(one_level, coordinates=given), (3, 64, 64)))
        inner = net(flat, t, c)[0, :, 24:40, 24:40]
        folded = inner.unflatten(1, (-1, 2)).unflatten(3, (-1, 2))
        assert (folded.std((1, 3)).max() > 1e-3) == given


def test_every_residual_block_gets_the_embedding():
    net = opened(made())
    blocks = [m for name, m in net.named_modules() if name.endswith("modulation")]
    assert len(blocks) == 2 * len(SMALL.widths) * SMALL.blocks + 1
    inputs_: list[torch.Tensor] = []
    for block in blocks:
        block.register_forward_hook(lambda _, inputs, out: inputs_.append(inputs[0]))
    x = torch.zeros(1, 3, 16, 16)
    net(x, torch.tensor([0.5]), WORLD.condition((0, 0), 1))
    assert len(inputs_) == len(blocks)
    assert all(torch.equal(h, inputs_[0]) for h in inputs_)


def test_the_condition_reaches_every_block_by_an_mlp_of_its_own():
    """Each MLP gets its gradient, and where all others give nothing the answer still depends on the
    condition."""
    net = opened(made(PUBLIC, conditioning=RAW)).eval()
    t = torch.tensor([0.5])
    mlps = {k: m for k, m in net.named_modules() if k.endswith("modulation.condition")}
    assert len(mlps) == 2 * len(PUBLIC.widths) * PUBLIC.blocks + 1
    x = torch.randn(1, 3, 16, 16, generator=seeded("x"))
    net(x, t, WORLD.condition((1, 0), 1)).square().sum().backward()
    values = sum(WORLD.space.dims)
    for mlp in mlps.values():
        assert (mlp[0].weight.grad[:, :values].abs().sum(0) > 0).all()
        assert (mlp[0].weight.grad[:, values:] == 0).all()
    last = {k: m[2].weight.detach().clone() for k, m in mlps.items()}
    with torch.no_grad():
        for name in mlps:
            for other, m in mlps.items():
                m[2].weight.copy_(last[other] if other == name else 0 * last[other])
            red, blue = (net(x, t, WORLD.condition(c, 1)) for c in ((0, 0), (1, 0)))
            assert (red - blue).abs().max() > 1e-3, name


def test_block_mlps_get_raw_values_and_zeros_for_what_is_absent():
    net = made(PUBLIC, conditioning=RAW)
    whole = WORLD.condition((1, 0), 2)
    torch.testing.assert_close(net.condition(whole), F.pad(whole.value, (0, 7)))
    no_colour = whole.keep(torch.tensor([[False, True]]).expand(2, 2))
    assert (net.condition(no_colour)[:, :3] == 0).all()
    torch.testing.assert_close(net.condition(no_colour)[:, 3:], net.condition(whole)[:, 3:])


@pytest.mark.parametrize(
    ("config", "conditioning", "says"),
    [
        (PUBLIC, Conditioning(mode="quantised"), "true values"),
        (replace(PUBLIC, block_mlps=3), RAW, "4 values do not fit"),
    ],
)
def test_conditions_that_are_no_numbers_are_refused(config, conditioning, says):
    with pytest.raises(UsageError, match=says):
        config.build(conditioning, (3, 16, 16), WORLD.space)


def test_a_network_may_add_its_answer_to_its_input():
    x = torch.randn(2, 3, 16, 16, generator=seeded("x"))
    net = made(replace(PUBLIC, adds_input=True))
    given = torch.tensor([0.1, 0.9]), WORLD.condition((1, 0), 2)
    assert torch.equal(net(x, *given), x)
    plain, added = (opened(made(replace(PUBLIC, adds_input=a))).eval() for a in (False, True))
    torch.testing.assert_close(added(x, *given), x + plain(x, *given))


def test_pictures_do_not_affect_each_other():
    net, x, t = (
        opened(made()),
        torch.randn(3, 3, 16, 16, generator=seeded("x")),
        torch.tensor([0.1, 0.5, 0.9]),
    )
    whole, part = (
        net(x, t, WORLD.condition((1, 1), 3)),
        net(x[1:2], t[1:2], WORLD.condition((1, 1), 1)),
    )
    torch.testing.assert_close(whole[1:2], part)


def test_it_answers_the_call_of_a_dit_and_names_its_condition_alike():
    assert list(inspect.signature(UNet.forward).parameters) == list(
        inspect.signature(DiT.forward).parameters
    )
    assert list(inspect.signature(UNet.__init__).parameters) == list(
        inspect.signature(DiT.__init__).parameters
    )
    assert type(made().condition).__name__ == "ConditionEmbedding"


def test_sides_that_cannot_be_halved_are_refused():
    with pytest.raises(UsageError, match="3 levels need sides divisible by 4, not 18x16"):
        made(UNetConfig((8, 8, 8), 1, 1, 8), (3, 18, 16))
    with pytest.raises(UsageError, match="not 16x18"):
        UNetConfig((8, 8, 8)).check((3, 16, 18))


@pytest.mark.parametrize(
    "bad",
    [
        {"widths": ()},
        {"widths": (12,)},
        {"blocks": 0},
        {"heads": 3},
        {"embedding": 0},
        {"dropout": 1.0},
        {"block_mlps": -1},
        {"block_mlps": 4, "scaled": True},
    ],
)
def test_impossible_networks_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        UNetConfig(**bad)


def test_the_config_goes_through_json():
    assert from_json(to_json(SMALL)) == SMALL


def test_coordinates_are_those_of_the_middles_of_cells():
    """Sines and cosines of eight speeds, down and along."""
    place = Coordinates(32)
    with torch.no_grad():
        place.project.weight.copy_(torch.eye(32))
        place.project.bias.zero_()
    made = place(torch.zeros(1, 32, 2, 4))[0]
    down, along = torch.tensor([-0.5, 0.5]), torch.tensor([-0.75, -0.25, 0.25, 0.75])
    for k in range(8):
        speed = (k + 1) * torch.pi / 2
        expected = [(down * speed).sin()[:, None], (down * speed).cos()[:, None]]
        expected += [(along * speed).sin()[None], (along * speed).cos()[None]]
        for i, wave in enumerate(expected):
            torch.testing.assert_close(made[8 * i + k], wave.expand(2, 4), atol=1e-5, rtol=0)
