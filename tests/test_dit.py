"""DiT: starts at zero, keeps shapes, sees the whole picture, and refuses patches that do not
fit."""

import pytest
import torch

from recombine.config import UsageError
from recombine.nets.conditioning import Conditioning
from recombine.nets.dit import DiT, DiTConfig
from recombine.nets.transformer import TransformerConfig
from recombine.rng import seeded
from recombine.worlds.shapes2d import Shapes2D

WORLD = Shapes2D()
SMALL = TransformerConfig(depth=1, width=16, heads=2)


def made(patch: int = 7, shape: tuple[int, int, int] = (3, 28, 28)) -> DiT:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return DiT(DiTConfig(SMALL, patch), Conditioning(), shape, WORLD.space)


def opened(net: DiT) -> DiT:
    rng = seeded("weights")
    with torch.no_grad():
        for p in net.parameters():
            p.add_(0.3 * torch.randn(p.shape, generator=rng))
    return net


@pytest.mark.parametrize(("patch", "shape"), [(7, (3, 28, 28)), (14, (3, 28, 28)), (4, (1, 8, 12))])
def test_the_untrained_network_answers_exactly_zero_in_the_shape_of_the_picture(patch, shape):
    x = torch.randn(2, *shape, generator=seeded("x"))
    out = made(patch, shape)(x, torch.tensor([0.1, 0.9]), WORLD.condition((0, 1, 0), 2))
    assert torch.equal(out, torch.zeros_like(x))


@pytest.mark.parametrize(("patch", "shape"), [(5, (3, 28, 28)), (8, (3, 28, 32)), (3, (3, 30, 28))])
def test_a_patch_that_does_not_divide_the_picture_is_refused(patch, shape):
    with pytest.raises(
        UsageError, match=f"patch {patch} does not divide a grid of {shape[1]}x{shape[2]}"
    ):
        made(patch, shape)


def test_every_pixel_the_time_and_the_condition_reach_every_pixel_of_the_answer():
    net, c = opened(made(14)), WORLD.condition((1, 0, 1), 1)
    x, t = (
        torch.randn(1, 3, 28, 28, generator=seeded("x")).requires_grad_(),
        torch.tensor([0.4]).requires_grad_(),
    )
    for where in ((0, 0), (0, 27), (27, 0), (13, 14)):
        to_x, to_t = torch.autograd.grad(net(x, t, c)[0, :, *where].sum(), (x, t))
        assert (to_x != 0).all()
        assert (to_t != 0).all()
    assert (net(x, t, c) != net(x, t, WORLD.condition((0, 1, 0), 1))).all()


def test_patches_are_cut_and_put_back_in_place():
    net = made(4, (1, 8, 12))
    seen = {}
    net.enter.register_forward_hook(lambda _, inputs, out: seen.update(tokens=inputs[0]))
    x = torch.arange(96.0).reshape(1, 1, 8, 12)
    net(x, torch.zeros(1), WORLD.condition((0, 0, 0), 1))
    assert torch.equal(seen["tokens"][0, 4].reshape(4, 4), x[0, 0, 4:, 4:8])
    net.leave = torch.nn.Identity()
    net.trunk.forward = lambda tokens, c: seen["tokens"]
    assert torch.equal(net(x, torch.zeros(1), WORLD.condition((0, 0, 0), 1)), x)
