"""The diffusion objective: its loss and its denoiser belong together."""

import pytest
import torch

from recombine.objectives.diffusion import Diffusion, Draw
from recombine.objectives.process import Flow, Linear, noised, spread
from recombine.objectives.solvers import Euler
from recombine.rng import seeded

OBJECTIVES = [
    Diffusion(),
    Diffusion(times="logit-normal"),
    Diffusion(Linear(), "noise"),
    Diffusion(Linear(), "noise", "logit-normal"),
    Diffusion(Linear(signal=0.3), "noise"),
]
CASES = pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: f"{o.target}-{o.times}")
X = torch.randn(6, 3, 4, 4, generator=seeded("x"))


def perfect(objective: Diffusion, x: torch.Tensor):
    """The network that knows the picture and so the noise in it."""

    def net(x_t, t, condition):
        time = spread(t, x_t)
        noise = (x_t - objective.schedule.alpha(time) * x) / objective.schedule.sigma(time)
        return noise - x if objective.target == "velocity" else noise

    return net


@CASES
def test_a_perfect_network_has_no_loss_and_its_denoiser_returns_the_picture(objective):
    draw = objective.draw(X.shape, seeded("draw"))
    net = perfect(objective, X)
    assert objective.loss(net, X, None, draw).abs().max() < 1e-6
    x_t = noised(objective.schedule, X, draw.t, draw.noise)
    torch.testing.assert_close(objective.denoiser(net)(x_t, draw.t, None), X, atol=1e-3, rtol=1e-3)


@CASES
def test_a_perfect_network_is_sampled_back_to_its_picture(objective):
    found = Euler(7).sample(
        objective.denoiser(perfect(objective, X)), objective.schedule, torch.ones_like(X), None
    )
    torch.testing.assert_close(found, X, atol=1e-4, rtol=1e-4)


@CASES
def test_the_loss_is_per_sample_and_samples_do_not_mix(objective):
    net, draw = (
        (lambda x, t, c: 0.3 * x.sin() + spread(t, x)),
        objective.draw(X.shape, seeded("draw")),
    )
    before = objective.loss(net, X, None, draw)
    assert before.shape == (6,)
    changed = X.clone()
    changed[2] += 1
    after = objective.loss(net, changed, None, draw)
    assert (after != before).tolist() == [False, False, True, False, False, False]


def test_the_untrained_networks_loss_is_the_size_of_its_goal():
    zero, draw = (lambda x, t, c: torch.zeros_like(x)), Diffusion().draw(X.shape, seeded("draw"))
    torch.testing.assert_close(
        Diffusion().loss(zero, X, None, draw), (draw.noise - X).square().mean((1, 2, 3))
    )
    noise = Diffusion(Linear(), "noise")
    torch.testing.assert_close(noise.loss(zero, X, None, draw), draw.noise.square().mean((1, 2, 3)))


@CASES
def test_draws_are_named_by_their_generator_and_lie_in_time(objective):
    one, same, other = (
        objective.draw(torch.Size([5000, 2]), seeded(key)) for key in ("a", "a", "b")
    )
    assert all(torch.equal(x, y) for x, y in zip(one, same, strict=True))
    assert not any(torch.equal(x, y) for x, y in zip(one, other, strict=True))
    assert 0 <= one.t.min() < one.t.max() <= 1
    spread_of_times = {"uniform": 1 / 12**0.5, "logit-normal": 0.2083}[objective.times]
    assert float(one.t.mean()) == pytest.approx(0.5, abs=0.02)
    assert float(one.t.std()) == pytest.approx(spread_of_times, rel=0.04)
    assert float(one.noise.std()) == pytest.approx(1, rel=0.04)


@pytest.mark.parametrize(
    "objective", [Diffusion(), Diffusion(Linear(), "noise")], ids=lambda o: o.target
)
def test_what_minimises_the_loss_is_the_conditional_mean(objective):
    """Pictures are N(0, v), one time: the best linear network, found by least squares, must denoise
    like the posterior."""
    n, v, time = 20_000, 0.5, 0.3
    x = v**0.5 * torch.randn(n, 1, generator=seeded("pictures"), dtype=torch.float64)
    noise = torch.randn(n, 1, generator=seeded("noise"), dtype=torch.float64)
    draw = Draw(torch.full((n,), time, dtype=torch.float64), noise)
    weight = torch.zeros((), dtype=torch.float64, requires_grad=True)

    def gradient():
        return torch.autograd.grad(
            objective.loss(lambda y, t, c: weight * y, x, None, draw).mean(), weight
        )[0]

    slope = gradient()
    with torch.no_grad():
        weight.add_(1.0)
    best = -slope / (gradient() - slope)
    alpha, sigma = (
        f(torch.tensor(time, dtype=torch.float64))
        for f in (objective.schedule.alpha, objective.schedule.sigma)
    )
    x = torch.ones(1, 1, dtype=torch.float64)
    answer = objective.denoiser(lambda y, t, c: best * y)(x, draw.t[:1], None)
    assert float(answer) == pytest.approx(float(alpha * v / (alpha**2 * v + sigma**2)), rel=0.03)


def test_pairs_that_cannot_be_sampled_are_refused():
    with pytest.raises(ValueError, match="belongs to the Flow schedule"):
        Diffusion(Linear(), "velocity")
    with pytest.raises(ValueError, match="noise says nothing"):
        Diffusion(Flow(), "noise")
