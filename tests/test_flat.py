"""All weights as one vector: the same update as torch's own parts, in float32 and in bfloat16."""

import copy
from contextlib import nullcontext

import pytest
import torch
from tiny import QUIET
from torch import nn

from recombine.config import UsageError
from recombine.nets.conditioning import Conditioning
from recombine.nets.dit import DiTConfig
from recombine.nets.transformer import TransformerConfig
from recombine.nets.unet import UNetConfig
from recombine.objectives.diffusion import Diffusion
from recombine.rng import seeded
from recombine.train.fit import Fit, TrainConfig
from recombine.train.flat import ALIGN, products
from recombine.worlds.circles import Circles

pytestmark = pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")


class Small(nn.Module):
    """Weights of products, others, a buffer, and one that the loss does not use."""

    def __init__(self):
        super().__init__()
        self.enter, self.norm, self.leave = nn.Linear(3, 5), nn.LayerNorm(5), nn.Linear(5, 1)
        self.idle = nn.Parameter(torch.ones(7))
        self.register_buffer("shift", torch.tensor(0.5))

    def forward(self, x):
        return self.leave(torch.tanh(self.norm(self.enter(x)) + self.shift))


def loss(net, x, y):
    return (net(x)[:, 0].float() - y).square()


def batch(step: int):
    x = torch.randn(8, 3, generator=seeded("vector", step))
    return x, 40 * x.sum(1)


def small() -> Small:
    torch.manual_seed(0)
    return Small()


def plainly(config: TrainConfig, steps: int) -> tuple[nn.Module, nn.Module]:
    """The same training with torch's own clipping and AdamW, tensor by tensor: the network and its
    average."""
    net = small()
    average = copy.deepcopy(net)
    optimizer = torch.optim.AdamW(
        net.parameters(), config.lr, config.betas, weight_decay=config.weight_decay
    )
    cast = (
        torch.autocast("cpu", torch.bfloat16) if config.precision == "bfloat16" else nullcontext()
    )
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = config.rate(step)
        optimizer.zero_grad()
        with cast:
            value = loss(net, *batch(step)).mean()
        value.backward()
        nn.utils.clip_grad_norm_(net.parameters(), config.clip)
        optimizer.step()
        with torch.no_grad():
            for mean, p in zip(average.parameters(), net.parameters(), strict=True):
                mean.lerp_(p, 1 - config.average(step))
    return net, average


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_it_is_clipping_and_adamw_and_the_moving_average(precision, decay):
    config = TrainConfig(
        steps=40, lr=0.01, warmup=3, weight_decay=decay, ema=0.9, precision=precision
    )
    fit = Fit(small(), loss, config, QUIET)
    for step in range(30):
        fit.advance(batch(step))
    net, average = plainly(config, 30)
    if decay:  # torch leaves a weight without gradient alone; here it decays as all others do
        net.idle.data.copy_(fit.net.idle.data)
        average.idle.data.copy_(fit.average.idle.data)
    for mine, theirs in ((fit.net, net), (fit.average, average)):
        assert all(
            torch.allclose(p, q, atol=2e-6)
            for p, q in zip(mine.parameters(), theirs.parameters(), strict=True)
        )


def test_what_learns_in_bfloat16_is_the_rounded_twin_and_shares_the_rest():
    fit = Fit(small(), loss, TrainConfig(precision="bfloat16"), QUIET)
    twin, net = fit.module.net, fit.net
    assert products(net) == {"enter.weight", "leave.weight"}
    for name, p in twin.named_parameters():
        mine = net.get_parameter(name)
        assert (p is not mine) == (name in products(net)), name
        assert torch.equal(p, mine.to(p.dtype)), name
    assert twin.shift is net.shift
    for step in range(3):
        fit.advance(batch(step))
    assert all(torch.equal(p, net.get_parameter(k).to(p.dtype)) for k, p in twin.named_parameters())
    before = twin.enter.weight.detach().clone()
    with fit.averaged():
        assert torch.equal(twin.enter.weight, before), (
            "what is measured meanwhile is the network, not its twin"
        )
    fit.load({k: v + 1 for k, v in fit.state().items()}, 3)
    assert torch.equal(twin.enter.weight, net.enter.weight.bfloat16())


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_what_is_frozen_stays_and_is_saved(precision):
    net = small()
    net.enter.weight.requires_grad_(False)
    net.idle.requires_grad_(False)
    start = {k: p.detach().clone() for k, p in net.named_parameters()}
    fit = Fit(
        net, loss, TrainConfig(lr=0.01, weight_decay=0.1, warmup=1, precision=precision), QUIET
    )
    for step in range(4):
        fit.advance(batch(step))
    still = {k for k, p in fit.params.items() if torch.equal(p, start[k])}
    assert (
        still == {"enter.weight", "idle"} == {k for k in still if torch.equal(fit.ema[k], start[k])}
    )
    assert {f"ema.{k}" for k in start} <= fit.state().keys()


def test_a_weight_that_is_also_used_otherwise_is_not_rounded():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.leave = nn.Embedding(4, 3), nn.Linear(3, 4, bias=False)
            self.leave.weight = self.table.weight

    assert products(Tied()) == set()


def test_what_another_version_saved_is_refused_in_one_line():
    fit = Fit(small(), loss, TrainConfig(), QUIET)
    old = {k.replace("first.", "optimizer."): v for k, v in fit.state().items()}
    with pytest.raises(UsageError, match="--fresh"):
        fit.load(old, 3)


def test_in_float32_there_is_no_twin():
    fit = Fit(small(), loss, TrainConfig(), QUIET)
    assert fit.module.net is fit.net
    assert len(fit.flat) == 1


def test_every_weight_begins_where_kernels_like_it():
    fit = Fit(small(), loss, TrainConfig(precision="bfloat16"), QUIET)
    for vector in fit.flat:
        for flat in (vector.weight, vector.copy):
            if flat is not None:
                views = vector.views(flat).values()
                assert {
                    (v.data_ptr() - flat.data_ptr()) % (ALIGN * flat.element_size()) for v in views
                } == {0}


NETS = {"DiT": DiTConfig(TransformerConfig(2, 32, 2)), "U-Net": UNetConfig((8, 16), 1, 2, 16)}


@pytest.mark.parametrize("name", NETS)
def test_networks_learn_in_bfloat16_as_under_autocast_alone(name):
    """The gradient of every weight is what autocast gives it."""
    world, objective = Circles(size=16), Diffusion()
    condition = world.condition((0, 1), 4, torch.device("cpu"))
    torch.manual_seed(0)
    net = NETS[name].build(Conditioning(), (3, 16, 16), world.space)
    for p in net.parameters():
        nn.init.normal_(p, std=0.2)
    x, rng = torch.randn(4, 3, 16, 16), seeded("bf16")
    given = (x, condition, objective.draw(x.shape, rng))
    plain = copy.deepcopy(net)
    with torch.autocast("cpu", torch.bfloat16):
        objective.loss(plain, *given).float().mean().backward()
    fit = Fit(net, objective.loss, TrainConfig(precision="bfloat16", batch=4), QUIET)
    fit.advance(given)
    found = {k: v for vector in fit.flat for k, v in vector.views(vector.grad).items()}
    for key, p in plain.named_parameters():
        wanted = torch.zeros_like(p) if p.grad is None else p.grad
        assert torch.allclose(
            found[key].float(), wanted, rtol=0.02, atol=1e-3 * float(wanted.abs().max() + 1e-6)
        ), key
