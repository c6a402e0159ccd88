"""Variational diffusion: its schedule ends where it says, its bound is that of the textbook, and
its ends are learned."""

import math

import pytest
import torch

from recombine.nets.conditioning import Conditioning
from recombine.nets.unet import UNetConfig
from recombine.objectives.process import LogSNR, noised, spread
from recombine.objectives.solvers import Ancestral, Euler
from recombine.objectives.vdm import VDM, ScheduledNet, VDMDraw
from recombine.rng import seeded
from recombine.worlds.circles import Circles

X = torch.rand(6, 3, 4, 4, generator=seeded("x"))


class Perfect(torch.nn.Module):
    """The network that knows the picture and so the noise in it."""

    def __init__(self, objective: VDM, x: torch.Tensor):
        super().__init__()
        self.objective, self.x = objective, x

    def forward(self, x_t, t, condition):
        low, high = self.objective.schedule.low, self.objective.schedule.high
        gamma = spread(low + (high - low) * t, x_t)
        return (x_t - torch.sigmoid(-gamma).sqrt() * self.x) / torch.sigmoid(gamma).sqrt()


def scheduled(objective: VDM, x: torch.Tensor = X, ends: tuple[float, float] | None = None):
    net = ScheduledNet(Perfect(objective, x), objective.schedule)
    if ends:
        net.ends.data.copy_(torch.tensor(ends))
    return net


@pytest.mark.parametrize(("low", "high"), [(-5.0, 10.0), (-13.3, 5.0)])
def test_log_snr_is_linear_between_exact_ends_and_variance_is_kept(low, high):
    schedule, t = LogSNR(low, high), torch.linspace(0, 1, 9, dtype=torch.float64)
    ratio = (schedule.sigma(t) / schedule.alpha(t)).square().log()
    torch.testing.assert_close(ratio, torch.linspace(low, high, 9, dtype=torch.float64))
    assert [float(schedule.gamma(t)[i]) for i in (0, -1)] == [low, high]
    total = schedule.alpha(t) ** 2 + schedule.sigma(t) ** 2
    torch.testing.assert_close(total, torch.ones(9, dtype=torch.float64))


def test_ends_in_the_wrong_order_are_refused():
    with pytest.raises(ValueError, match="below high"):
        LogSNR(3.0, 3.0)
    with pytest.raises(ValueError, match="data_noise"):
        VDM(data_noise=0.0)


@pytest.mark.parametrize("ends", [(-5.0, 15.0), (-8.0, 14.0)])
def test_a_perfect_network_is_sampled_back_to_its_picture_whatever_schedule_it_learned(ends):
    objective = VDM()
    net = scheduled(objective, ends=ends)
    schedule = objective.schedule_of(net)
    assert (schedule.low, schedule.high) == pytest.approx((ends[0], sum(ends)))
    t = torch.linspace(0.2, 0.8, 6)
    noise = torch.randn(X.shape, generator=seeded("noise"))
    x_t = noised(schedule, X, t, noise)
    torch.testing.assert_close(objective.denoiser(net)(x_t, t, None), X, atol=1e-3, rtol=1e-3)
    drawn = Ancestral(20).sample(objective.denoiser(net), schedule, noise, None, seeded("steps"))
    left = math.exp(ends[0] / 2)
    assert float((drawn - X).std()) < 1.3 * left
    straight = Euler(20).sample(objective.denoiser(net), schedule, noise, None)
    assert float((straight - X).std()) == pytest.approx(left, rel=0.2)


def test_the_bound_is_that_of_the_textbook():
    """All but the prediction of noise, against distributions of torch; per number, in bits."""
    objective = VDM(LogSNR(-4.0, 3.0), data_noise=0.05)
    draw = objective.draw(X.shape, seeded("draw"))
    low, high = (torch.sigmoid(torch.tensor(g)) for g in (-4.0, 3.0))
    prior = torch.distributions.kl_divergence(
        torch.distributions.Normal((1 - high).sqrt() * X, high.sqrt()),
        torch.distributions.Normal(torch.zeros_like(X), 1.0),
    )
    cleanest = X + (low / (1 - low)).sqrt() * draw.first
    off = -torch.distributions.Normal(cleanest, 0.05).log_prob(X)
    net = scheduled(objective)
    found = objective.loss(net, X, None, draw)
    torch.testing.assert_close(
        found, (prior + off).mean((1, 2, 3)) / math.log(2), rtol=1e-4, atol=0
    )
    zero = ScheduledNet(torch.nn.Module(), objective.schedule)
    zero.net.forward = lambda x, t, c: torch.zeros_like(x)
    more = objective.loss(zero, X, None, draw) - found
    expected = 0.5 * 7 * draw.noise.square().mean((1, 2, 3)) / math.log(2)
    torch.testing.assert_close(more, expected, rtol=1e-3, atol=1e-3)


def test_times_are_even_over_the_batch_and_named_by_the_generator():
    one, same, other = (VDM().draw(torch.Size([50, 2]), seeded(k)) for k in ("a", "a", "b"))
    assert all(torch.equal(a, b) for a, b in zip(one, same, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    assert 0 <= one.t.min() < 0.02
    torch.testing.assert_close(one.t.diff(), torch.full((49,), 0.02), atol=1e-6, rtol=0)


def test_the_gradient_of_the_schedule_outweighs_that_of_the_network_at_first():
    """What makes clipping at a small norm hold the network back."""
    world, objective = Circles(size=16), VDM()
    config = UNetConfig((8,), 1, 1, 8, block_mlps=11, adds_input=True)
    net = objective.network(config, Conditioning(), (3, 16, 16), world.space)
    index = torch.tensor([(0, 0), (1, 0), (0, 1)])
    images, values = world.render(index, seeded("pictures"))
    draw = objective.draw(images.shape, seeded("draw"))
    objective.loss(net, images, world.describe(index, values), draw).mean().backward()
    others = [p.grad.square().sum() for p in net.net.parameters() if p.grad is not None]
    expected = math.exp(-5) / (2e-6 * math.log(2))
    assert float(net.ends.grad[0]) == pytest.approx(expected, rel=0.1)
    assert float(net.ends.grad[0]) > 100 * float(sum(others)) ** 0.5
    assert net.ends.grad[1] != 0
    assert isinstance(draw, VDMDraw)
