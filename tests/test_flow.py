"""The symmetric two-layer flow: its terms, its integrators, its invariances."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from scipy.integrate import solve_ivp

from recombine.rng import seeded
from recombine.theory import detect, flow, sim
from recombine.theory.sim import IdentityMapping

WIDGET = Path(__file__).parents[1] / "recombine/report/widgets/swing-by.html"


def symmetric(b: int, d: int, name: str = "w") -> torch.Tensor:
    x = torch.randn(b, d, d, generator=seeded(0, name, d), dtype=torch.float64)
    return (x + x.mT) / 2


def rates(b: int, d: int) -> torch.Tensor:
    return torch.rand(b, d, generator=seeded(0, "rates", d), dtype=torch.float64)


def uniform(b: int, d: int, m: int | None = None) -> torch.Tensor:
    return 0.3 * torch.rand(b, d, m or d, generator=seeded(0, "u", d), dtype=torch.float64)


@pytest.mark.parametrize("d", range(1, 9))
def test_growth_less_suppression_less_noise_is_the_field(d):
    w, a = symmetric(5, d), rates(5, d)
    parts = flow.growth(w, a) - flow.suppression(w, a) - flow.noise(w, a)
    assert torch.allclose(parts, flow.field(w, a), atol=1e-12)


def test_noise_against_its_definition():
    w, a = symmetric(1, 4), rates(1, 4)
    found = flow.noise(w, a)[0]
    for i in range(4):
        for j in range(4):
            terms = [
                w[0, k, i] * w[0, k, j] * (a[0, i] + a[0, j] + 2 * a[0, k]) / 2
                for k in range(4)
                if k not in (i, j)
            ]
            assert found[i, j] == pytest.approx(float(sum(terms)))


@pytest.mark.parametrize("d", [2, 3, 6])
def test_gradient_flow_on_u_is_exactly_twice_the_field(d):
    u, a = uniform(4, d, d + 2).requires_grad_(), rates(4, d)
    loss = sim.train_loss((u @ u.mT)[:, None], a).sum()
    speed = -torch.autograd.grad(loss, u)[0]
    moved = (speed @ u.mT + u @ speed.mT).detach()
    assert torch.allclose(moved, 2 * flow.field((u @ u.mT).detach(), a), atol=1e-12)


@pytest.mark.parametrize("d", [2, 3, 20])
def test_rk4_against_an_ode_solver_on_w(d):
    u, a = uniform(1, d), rates(1, d)
    w = u @ u.mT

    def pull(_, flat):
        return flow.field(torch.from_numpy(flat).reshape(1, d, d), a).ravel().numpy()

    solved = solve_ivp(pull, (0, 4), w.numpy().ravel(), "DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    found = flow.flow(u, a, 0.01, 400, 400).w[0, -1]
    assert torch.allclose(found, torch.tensor(solved).reshape(d, d), atol=1e-7)


def test_euler_is_gradient_descent_on_u():
    u, a = uniform(2, 3).requires_grad_(), rates(2, 3)
    loss = sim.train_loss((u @ u.mT)[:, None], a).sum()
    after = (u - 0.05 * torch.autograd.grad(loss, u)[0]).detach()
    found = flow.flow(u.detach(), a, 0.1, 1, step=flow.euler).w[:, -1]
    assert torch.allclose(found, after @ after.mT, atol=1e-13)


def test_every_trajectory_of_a_batch_runs_alone():
    u, a = uniform(6, 3), rates(6, 3)
    whole = flow.flow(u, a, 0.05, 40, 10)
    assert whole.w.shape == (6, 5, 3, 3)
    assert whole.t.tolist() == pytest.approx([0, 0.5, 1, 1.5, 2])
    assert torch.equal(whole.w[3:4], flow.flow(u[3:4], a[3:4], 0.05, 40, 10).w)


def test_order_of_the_coordinates_does_not_matter():
    u, a, p = uniform(2, 4), rates(2, 4), torch.tensor([2, 0, 3, 1])
    plain = flow.flow(u, a, 0.05, 60).w[:, -1]
    turned = flow.flow(u[:, p], a[:, p], 0.05, 60).w[:, -1]
    assert torch.allclose(turned, plain[:, p][:, :, p], atol=1e-13)


def test_a_wide_u_and_its_root_flow_alike():
    u, a = uniform(3, 3, 40), rates(3, 3)
    wide, narrow = flow.flow(u, a, 0.02, 100).w, flow.flow(flow.root(u @ u.mT), a, 0.02, 100).w
    assert torch.allclose(wide, narrow, atol=1e-12)


@pytest.mark.parametrize("step", [flow.euler, flow.rk4])
def test_the_u_update_stays_positive_semidefinite(step):
    w = flow.flow(uniform(50, 3), rates(50, 3), 0.3, 300, 10, step).w
    assert torch.linalg.eigvalsh(w).min() > -1e-12


def test_the_recurrence_on_w_does_not():
    u = torch.rand(40, 3, 3, generator=seeded(0, "cone"), dtype=torch.float64) / 5
    a = torch.tensor([[0.5025, 1.1275, 0.0025]]).double() ** 2
    assert (
        torch.linalg.eigvalsh(flow.recurrence(u @ u.mT, a, 0.01, 1500, 1500).w[:, -1]).min() < -1e-9
    )


def test_one_recurrence_is_one_field():
    w, a = symmetric(2, 3), rates(2, 3)
    assert torch.allclose(
        flow.recurrence(w, a, 0.1, 1).w[:, 1], w + 0.1 * flow.field(w, a), atol=1e-14
    )


@pytest.mark.parametrize("inner", [3, 40])
def test_product_is_the_matrix_product(inner):
    x, y = torch.randn(2, inner, 5).double(), torch.randn(inner, 4, 5).double()
    assert torch.allclose(flow.product(x, y), torch.einsum("ikb,kjb->ijb", x, y), atol=1e-12)


def test_correlated_start_and_its_root():
    w = flow.correlated(0.01, 0.9, 2)
    assert torch.allclose(w, torch.tensor([[0.01, 0.009], [0.009, 0.01]]).double(), atol=1e-9)
    assert torch.allclose(flow.root(w) @ flow.root(w).mT, w, atol=1e-15)


def test_suppression_threshold_of_the_minor_entry():
    """w12 turns where w22 (3 a2 + a1) + w11 (3 a1 + a2) = 2 (a1 + a2)."""
    task = IdentityMapping((1.0, 3.0), 0.1)
    w = flow.flow(flow.root(flow.correlated(0.02, 0.7, 2))[None], task.a[None], 0.001, 1500).w[0]
    at, (a1, a2) = w[int(w[:, 0, 1].argmax())], task.a.tolist()
    assert float(at[1, 1] * (3 * a2 + a1) + at[0, 0] * (3 * a1 + a2)) == pytest.approx(
        2 * (a1 + a2), rel=2e-3
    )


@pytest.mark.parametrize(("ratio", "exponent"), [(4.0, -75), (10.0, -62), (100.0, -66)])
def test_printed_assumptions_require_an_absurdly_small_start(ratio, exponent):
    assert flow.largest_omega(ratio) == pytest.approx(exponent, abs=0.5)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize(
    "setting",
    [(1.0, 2.0, 0.05, 0.01, 0.9), (1.5, 0.7, 0.4, 0.1, -0.6), (1.0, 3.5, 0.0, 0.001, 0.99)],
)
def test_the_widget_computes_the_same(setting):
    pure = re.search(r"// pure: begin(.*)// pure: end", WIDGET.read_text(), re.S)[1]
    mu1, mu2, sigma, omega, rho = setting
    given = {
        "mu1": mu1,
        "mu2": mu2,
        "sigma": sigma,
        "omega": omega,
        "rho": rho,
        "horizon": 8,
        "steps": 1600,
    }
    script = f"{pure}; console.log(JSON.stringify(swingBy({json.dumps(given)})))"
    run = json.loads(
        subprocess.run(["node", "-e", script], capture_output=True, text=True, check=True).stdout
    )
    task = IdentityMapping((mu1, mu2), sigma)
    path = flow.flow(flow.root(flow.correlated(omega, rho, 2))[None], task.a[None], 0.005, 1600)
    loss = sim.probe_loss(path.output(task.probe), task.probe)
    for name, i, j in (("w11", 0, 0), ("w12", 0, 1), ("w22", 1, 1)):
        assert torch.allclose(torch.tensor(run[name]).double(), path.w[0, :, i, j], atol=1e-6)
    assert torch.allclose(torch.tensor(run["ood"]).double(), loss[0], atol=1e-6)
    assert torch.allclose(
        torch.tensor(run["train"]).double(), sim.train_loss(path.w, task.a[None])[0], atol=1e-6
    )
    assert run["rise"] == pytest.approx(float(detect.relative_rise(loss)), abs=1e-6)
