import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recombine.objectives.process import Flow, Linear
from recombine.objectives.solvers import Ancestral, Euler, Heun
from recombine.rng import seeded
from recombine.theory.divergence import gaps, remaining
from recombine.theory.maps import Swirl, orthogonal, skewed
from recombine.theory.mixtures import (
    Exact,
    Exploding,
    Mixture,
    Score,
    condition_of,
    mixture,
    points,
    unconditional,
)
from recombine.theory.projective import random_mixture

SCHEDULES = [Flow(), Linear(), Exploding()]
SEEDS = st.integers(0, 10_000)
LEVELS = st.floats(0.1, 5.0)
quick = settings(max_examples=15, deadline=None)


def law(seed: int, modes: int = 3, dim: int = 2) -> Mixture:
    return random_mixture(modes, dim, seeded(seed, "law"))


def at(seed: int, count: int = 5, dim: int = 2) -> torch.Tensor:
    return 2 * torch.randn(count, dim, generator=seeded(seed, "x"), dtype=torch.float64)


@quick
@given(SEEDS, st.floats(0.0, 1.0), LEVELS)
def test_score_is_the_gradient_of_the_log_density(seed, alpha, sigma):
    x = at(seed).requires_grad_()
    (gradient,) = torch.autograd.grad(law(seed).log_density(x, alpha, sigma).sum(), x)
    torch.testing.assert_close(law(seed).score(x, alpha, sigma), gradient, rtol=1e-9, atol=1e-9)


@quick
@given(SEEDS, st.floats(0.05, 1.0), LEVELS)
def test_tweedie(seed, alpha, sigma):
    x = at(seed)
    clean = (x + sigma**2 * law(seed).score(x, alpha, sigma)) / alpha
    torch.testing.assert_close(law(seed).denoise(x, alpha, sigma), clean, rtol=1e-8, atol=1e-8)


def test_every_row_may_have_its_own_level():
    x, sigma = at(0), torch.linspace(0.1, 3, 5, dtype=torch.float64)
    together = law(0).denoise(x, 1.0, sigma)
    alone = torch.cat([law(0).denoise(x[i : i + 1], 1.0, sigma[i].item()) for i in range(5)])
    torch.testing.assert_close(together, alone)


def test_denoiser_against_monte_carlo():
    clean = law(1).sample(400_000, seeded(0, "mc"))
    for x in at(1, 4) / 2:
        log = -0.5 * ((x - 0.8 * clean) ** 2).sum(1) / 0.6**2
        guess = log.softmax(0) @ clean
        torch.testing.assert_close(
            law(1).denoise(x[None], 0.8, 0.6)[0], guess, rtol=0.02, atol=0.02
        )


def test_density_integrates_to_one_and_pure_noise_is_answered_by_the_mean():
    grid = torch.linspace(-12, 12, 601, dtype=torch.float64)
    density = law(2).log_density(torch.cartesian_prod(grid, grid), 0.7, 0.4).exp()
    assert density.sum().item() * 0.04**2 == pytest.approx(1, abs=1e-6)
    torch.testing.assert_close(law(2).denoise(at(0), 0.0, 1.0), law(2).moments()[0].expand(5, 2))


def test_moments_and_samples_agree():
    mean, covariance = law(3).moments()
    x = law(3).sample(200_000, seeded(0, "moments"))
    torch.testing.assert_close(x.mean(0), mean, rtol=0, atol=0.02)
    torch.testing.assert_close(x.T.cov(), covariance, rtol=0.02, atol=0.02)


def test_marginal_of_the_sample_is_the_marginal_law_and_merging_changes_nothing():
    whole = law(4, 3, 3)
    x = at(4, 6, 3)
    split = whole.marginal((2, 0))
    grid = torch.linspace(-9, 9, 1801, dtype=torch.float64)
    for point in x[:2]:
        line = point.expand(len(grid), 3).clone()
        line[:, 1] = grid
        integral = whole.log_density(line).exp().sum() * 0.01
        torch.testing.assert_close(
            split.log_density(point[None, [2, 0]]).exp()[0], integral, rtol=1e-6, atol=1e-12
        )
    doubled = Mixture(
        *(
            torch.cat([a, a])
            for a in (whole.log_weight - math.log(2), whole.mean, whole.along, whole.axes)
        )
    )
    assert len(doubled.merged().mean) == 3
    torch.testing.assert_close(doubled.merged().log_density(x), whole.log_density(x))


@quick
@given(SEEDS, LEVELS)
def test_a_rotation_of_the_law_rotates_its_score_at_every_level(seed, sigma):
    turn, x = orthogonal(2, seed), at(seed)
    turned = law(seed).mapped(turn.matrix)
    torch.testing.assert_close(
        turned.score(turn(x), 1.0, sigma),
        turn(law(seed).score(x, 1.0, sigma)),
        rtol=1e-8,
        atol=1e-9,
    )


def test_a_skew_does_not_commute_with_noise():
    lean, x = skewed(2, 0.8), at(0)
    wrong = torch.linalg.solve(lean.matrix.T, law(0).score(x, 1.0, 1.0).T).T
    assert (law(0).mapped(lean.matrix).score(lean(x), 1.0, 1.0) - wrong).abs().max() > 0.05


@pytest.mark.parametrize("change", [orthogonal(4, 1), skewed(4, 0.5), Swirl(1.3)])
def test_maps_are_undone_by_their_inverse(change):
    z = at(5, 7, 4)
    torch.testing.assert_close(change.inverse(change(z)), z)


@quick
@given(SEEDS, SEEDS)
def test_kl_falls_with_noise(one, other):
    p = law(one)
    tilt = torch.randn(3, generator=seeded(other, "tilt"), dtype=torch.float64)
    kl = [g.kl for g in gaps(p, p.reweighted(p.log_weight + tilt), [0.1, 0.3, 1.0, 3.0, 10.0], 64)]
    assert all(a > b - 2e-3 for a, b in zip(kl, kl[1:], strict=False)), (
        "as far as 64 nodes resolve it"
    )
    assert kl[0] > 5 * kl[-1] > 0


def test_de_bruijn_between_two_gaussians_is_exact():
    one = points(torch.zeros(1, 1).double(), width=1.0)
    four = points(torch.ones(1, 1).double(), width=2.0)
    sigmas = torch.logspace(-1, 2, 49).tolist()
    exact = [
        0.5 * ((1 + s**2) / (4 + s**2) + 1 / (4 + s**2) - 1 + math.log((4 + s**2) / (1 + s**2)))
        for s in sigmas
    ]
    found = gaps(one, four, sigmas, 4096)
    assert remaining(sigmas, [g.error for g in found]) == pytest.approx(exact, rel=2e-3)
    assert [g.kl for g in found] == pytest.approx(exact, rel=0.02, abs=1e-3)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("solver", [Euler(200), Heun(60), Ancestral(200)])
def test_solvers_draw_the_mixture(schedule, solver):
    means = torch.tensor([[-2.0, 0.0], [2.0, 1.0]], dtype=torch.float64)
    target = points(means, torch.tensor([0.3, 0.7], dtype=torch.float64).log(), 0.3)
    noise = torch.randn(2000, 2, generator=seeded(0, "start"), dtype=torch.float64)
    x = solver.sample(
        Exact(unconditional(target), schedule), schedule, noise, None, seeded(0, "steps")
    )
    right = x[:, 0] > 0
    assert right.double().mean().item() == pytest.approx(0.7, abs=0.04)
    torch.testing.assert_close(x[right].mean(0), means[1], rtol=0, atol=0.05)
    torch.testing.assert_close(
        x[right].std(0), torch.full((2,), 0.3, dtype=torch.float64), rtol=0.1, atol=0
    )


def test_a_batch_may_have_different_conditions_in_any_shape():
    laws = {(0,): points(torch.ones(1, 4).double()), (None,): points(torch.zeros(1, 4).double())}
    conditional = lambda prompted: unconditional(laws[prompted])(prompted)  # noqa: E731
    condition = condition_of((0,), 3)._replace(present=torch.tensor([[True], [False], [True]]))
    clean = Exact(conditional, Flow())(
        at(0, 3, 4).reshape(3, 1, 2, 2), torch.full((3,), 0.5).double(), condition
    )
    assert clean.shape == (3, 1, 2, 2)
    assert clean.mean((1, 2, 3)).tolist() == [1, 0, 1]


def test_score_of_a_denoiser():
    x, t = at(0), torch.linspace(0.2, 0.9, 5).double()
    score = Score(Exact(unconditional(law(0)), Flow()), Flow())(x, t)
    torch.testing.assert_close(score, law(0).score(x, 1 - t, t))


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="negative eigenvalue"):
        mixture(
            torch.zeros(1).double(),
            torch.zeros(1, 2).double(),
            torch.diag(torch.tensor([1.0, -1.0])).double()[None],
        )
    with pytest.raises(ValueError, match="skew"):
        skewed(3, -0.6)


def test_the_exact_denoiser_answers_picture_by_picture():
    """One at a time, together at one noise level, or together at several: the same."""
    denoise = Exact(unconditional(law(0)), Flow())
    x, t = torch.randn(3, law(0).dim, generator=seeded("x"), dtype=torch.float64), (0.2, 0.5, 0.9)
    mixed = denoise(x, torch.tensor(t, dtype=torch.float64))
    for i, level in enumerate(t):
        here = torch.full((3,), level, dtype=torch.float64)
        torch.testing.assert_close(denoise(x, here)[i], mixed[i])
        torch.testing.assert_close(denoise(x[i : i + 1], here[:1])[0], mixed[i])
