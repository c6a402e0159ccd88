"""Structured identity mapping: data, closed form, clocks, and networks trained on it."""

import math

import pytest
import torch
from scipy.integrate import solve_ivp

from recombine.rng import seeded
from recombine.theory import mlp, sim
from recombine.theory.sim import IdentityMapping


def normal(*shape: int, name: str = "x") -> torch.Tensor:
    return torch.randn(*shape, generator=seeded(0, name), dtype=torch.float64)


@pytest.mark.parametrize(
    "task",
    [
        IdentityMapping((1.0, 2.0)),
        IdentityMapping((0.5, 1.0, 3.0), (0.1, 0.5, 1.0)),
        IdentityMapping((1.0, 2.0), 0.3, origin=True),
    ],
)
def test_second_moment_of_the_data(task):
    found = sim.second_moment(task.concepts(20_000, 2, seeded(0, "data")))
    assert (found - torch.diag(task.a[: task.s])).abs().max() < 5 * max(task.mu) / math.sqrt(
        20_000 * task.clusters
    )


def test_empty_dimensions_have_no_rate_and_no_probe():
    task = IdentityMapping((1.0, 2.0), d=5)
    assert task.a[2:].tolist() == task.probe[2:].tolist() == [0, 0, 0]


def test_probes_are_the_corners_of_the_hypercube():
    points, corners = IdentityMapping((1.0, 2.0, 3.0), d=4).probes()
    assert len(corners) == 8
    assert points[corners.index((1, 0, 1))].tolist() == [1, 0, 3, 0]


def test_points_near_the_probe_are_drawn_again():
    task = IdentityMapping((1.0, 2.0), 0.5)
    points = task.concepts(2000, 2, seeded(0, "data"), away=0.5)
    assert (points - task.probe).norm(dim=-1).min() >= 0.5
    whole = task.concepts(2000, 2, seeded(0, "data"))
    kept = (whole - task.probe).norm(dim=-1) >= 0.5
    assert torch.equal(points[kept], whole[kept])
    assert not kept.all()


def test_rotation_is_orthogonal():
    q = sim.rotation(7, seeded(0, "rotation"))
    assert torch.allclose(q @ q.mT, torch.eye(7, dtype=torch.float64), atol=1e-12)


def test_one_layer_closed_form_against_an_ode_solver():
    d, a, w, z = 4, torch.tensor([0.5, 2.0, 0.1, 0.0]).double(), normal(4, 4), normal(4, name="z")
    t = torch.linspace(0, 6, 9, dtype=torch.float64)
    eye = torch.eye(d).double()

    def pull(_, flat):
        return (-(torch.from_numpy(flat).reshape(d, d) - eye) * a).ravel().numpy()

    solved = solve_ivp(
        pull, (0, 6), w.numpy().ravel(), "DOP853", t.numpy(), rtol=1e-12, atol=1e-12
    ).y
    answer = torch.tensor(solved.T).reshape(-1, d, d) @ z
    assert torch.allclose(sim.one_layer(w[None], a[None], t, z)[0], answer, atol=1e-8)


def test_one_layer_runs_many_settings_at_once():
    a, w, t, z = (
        normal(3, 2, name="a").square(),
        normal(3, 2, 2),
        torch.linspace(0, 3, 5).double(),
        normal(2, name="z"),
    )
    whole = sim.one_layer(w, a, t, z)
    for i in range(3):
        assert torch.allclose(whole[i], sim.one_layer(w[i : i + 1], a[i : i + 1], t, z)[0])


def test_zero_start_loses_along_the_hypercube_exactly():
    task, t = IdentityMapping((1.0, 2.0, 3.0), 0.2), torch.linspace(0, 2, 5).double()
    points, corners = task.probes()
    for z, v in zip(points, corners, strict=True):
        loss = sim.probe_loss(sim.one_layer(torch.zeros(1, 3, 3).double(), task.a[None], t, z), z)[
            0
        ]
        terms = [
            bit * m**2 * torch.exp(-2 * a * t) / 2
            for bit, m, a in zip(v, task.mu, task.a, strict=True)
        ]
        assert torch.allclose(loss, sum(terms))


def test_train_loss_is_the_loss_on_the_distribution():
    task, w = IdentityMapping((1.0, 2.0), 0.3), normal(2, 2)
    x = task.concepts(50_000, 1, seeded(0, "data"))[0]
    sampled = 0.5 * (x @ w.mT - x).square().sum(-1).mean()
    assert sim.train_loss(w[None, None], task.a[None])[0, 0] == pytest.approx(
        float(sampled), rel=0.02
    )


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_sgd_step_against_autograd(relu, bias):
    net = mlp.MLP(3, 3, 4, relu, bias)
    layers = net.init(2, seeded(0, "init"))
    x = mlp.homogeneous(normal(2, 6, 3))
    free = [layer.clone().requires_grad_() for layer in layers]
    mlp.sgd_step(net, layers, x, 0.1)
    loss = (mlp.forward(net, free, x)[-1] - x[..., :-1]).square().mean((1, 2)).sum()
    for old, new, gradient in zip(free, layers, torch.autograd.grad(loss, free), strict=True):
        gradient[..., -1] *= bias
        assert torch.allclose(new, old - 0.1 * gradient, atol=1e-12)


@pytest.mark.parametrize("bias", [False, True])
def test_a_linear_network_treats_compressed_batches_alike(bias):
    net, task = mlp.MLP(4, 3, bias=bias), IdentityMapping((1.0, 2.0), 0.3)
    data = mlp.batches(task.concepts(64, 2, seeded(0, "data")), 32)
    frame, layers = sim.rotation(4, seeded(0, "rotation"))[:2], net.init(2, seeded(0, "init"))
    probes = task.probe[None] @ frame
    _, whole = mlp.train(net, layers, data, probes, 30, 0.05, 5, frame)
    _, small = mlp.train(net, layers, mlp.compress(data), probes, 30, 0.05, 5, frame)
    assert mlp.compress(data).shape[2] == 3 < data.shape[2]
    assert torch.allclose(whole, small, atol=1e-9)


def test_networks_of_a_batch_do_not_touch_each_other():
    net, task = mlp.MLP(2, 2), IdentityMapping((1.0, 2.0), 0.3)
    data, layers = (
        mlp.batches(task.concepts(64, 3, seeded(0, "data")), 32),
        net.init(3, seeded(0, "init")),
    )
    _, whole = mlp.train(net, layers, data, task.probe[None], 20, 0.05, 5)
    _, alone = mlp.train(
        net, [layer[1:2] for layer in layers], data[1:2], task.probe[None], 20, 0.05, 5
    )
    assert torch.allclose(whole[1:2], alone, atol=1e-12)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mu": (1.0, -2.0)}, "mu="),
        ({"mu": (0.0, 0.0)}, "mu="),
        ({"mu": ()}, "mu="),
        ({"mu": (1.0, math.inf)}, "finite"),
        ({"mu": (1.0, 2.0), "sigma": -0.1}, "sigma=-0.1"),
        ({"mu": (1.0, 2.0), "sigma": (0.1, 0.2, 0.3)}, "sigma has 3"),
        ({"mu": (1.0, 2.0), "d": 1}, "d=1"),
    ],
)
def test_nonsense_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        IdentityMapping(**given)


@pytest.mark.parametrize("every", [1, 3])
def test_what_is_watched_on_the_way_is_what_training_so_long_would_give(every):
    net, task = mlp.MLP(2, 2), IdentityMapping((1.0, 2.0), 0.3)
    data, layers = (
        mlp.batches(task.concepts(64, 1, seeded(0, "data")), 32),
        net.init(1, seeded(0, "init")),
    )
    noted: list[int] = []
    steps, watched = mlp.train(
        net, layers, data, task.probe[None], 7, 0.05, every, note=noted.append
    )
    assert steps.tolist() == [0, *noted] == list(range(0, 8, every))
    for step, answer in zip(noted, watched[:, 1:].unbind(1), strict=True):
        _, alone = mlp.train(net, layers, data, task.probe[None], step, 0.05, step)
        assert torch.equal(alone[:, -1], answer)


@pytest.mark.parametrize("d", [2, 5])
def test_so_many_steps_of_sgd_are_so_much_gradient_flow(d):
    """On the mean squared error of w against 1: each step is smaller by d / 2 than that of flow."""
    lr, time, w = 1e-3, 1.5, torch.zeros(d, dtype=torch.float64, requires_grad=True)
    for _ in range(round(sim.sgd_steps(time, lr, d))):
        (slope,) = torch.autograd.grad((w - 1).square().mean(), w)
        w = (w - lr * slope).detach().requires_grad_()
    assert (1 - w).tolist() == pytest.approx([math.exp(-time)] * d, rel=1e-2)
