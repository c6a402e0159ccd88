"""Solvers against a Gaussian, whose denoiser and whose flow are known exactly. Every solver with
every schedule."""

import pytest
import torch

from recombine.objectives.process import Flow, Guided, Linear, noised, spread
from recombine.objectives.solvers import Ancestral, Euler, Heun
from recombine.rng import seeded
from recombine.worlds.factors import Condition

SCHEDULES = [Flow(), Linear()]
WEAK = Linear(signal=0.3)
SOLVERS = [Euler, Heun, Ancestral]
ALL = [(make, schedule) for make in SOLVERS for schedule in (*SCHEDULES, WEAK)]
CASES = pytest.mark.parametrize(
    ("make", "schedule"), ALL, ids=lambda v: getattr(v, "__name__", type(v).__name__)
)
MEAN, VARIANCE = 1.5, 0.4


def gaussian(schedule):
    """The exact denoiser of x ~ N(MEAN, VARIANCE)."""

    def denoise(x, t, condition):
        alpha, sigma = schedule.alpha(spread(t, x)), schedule.sigma(spread(t, x))
        return MEAN + alpha * VARIANCE / (alpha**2 * VARIANCE + sigma**2) * (x - alpha * MEAN)

    return denoise


def exact(schedule, noise, stop):
    """Where the probability flow carries this noise by time `stop`: it keeps each point's place in
    the Gaussian."""
    deviation = lambda t: (schedule.alpha(t) ** 2 * VARIANCE + schedule.sigma(t) ** 2).sqrt()  # noqa: E731
    one, stop = torch.ones((), dtype=noise.dtype), torch.tensor(stop, dtype=noise.dtype)
    place = (schedule.sigma(one) * noise - schedule.alpha(one) * MEAN) / deviation(one)
    return schedule.alpha(stop) * MEAN + deviation(stop) * place


def normal(*shape) -> torch.Tensor:
    return torch.randn(shape, generator=seeded("noise"), dtype=torch.float64)


def error(solver, schedule, stop: float) -> float:
    """How far from the exact flow, from pure noise down to `stop`."""
    noise = normal(64, 1)
    times = torch.linspace(1, stop, solver.steps + 1, dtype=noise.dtype)
    x = schedule.sigma(times[0]) * noise
    for t, s in zip(times[:-1], times[1:], strict=True):
        x = solver.step(gaussian(schedule), schedule, x, t, s, None)
    return float((x - exact(schedule, noise, stop)).abs().mean())


@pytest.mark.parametrize("schedule", [*SCHEDULES, WEAK], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize(("make", "order"), [(Euler, 1), (Heun, 2)])
def test_twice_the_steps_shrink_the_error_as_the_order_says(make, order, schedule):
    """Away from t = 0, where the sigma of Linear bends like a square root."""
    errors = [error(make(n), schedule, 0.2) for n in (40, 80, 160)]
    for coarse, fine in zip(errors, errors[1:], strict=False):
        assert coarse / fine == pytest.approx(2**order, rel=0.1)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: type(s).__name__)
@pytest.mark.parametrize(("make", "most"), [(Euler, 0.02), (Heun, 0.005)])
def test_samples_arrive_where_the_exact_flow_does(make, most, schedule):
    noise = normal(64, 1)
    found = make(100).sample(gaussian(schedule), schedule, noise, None)
    assert float((found - exact(schedule, noise, 0.0)).abs().mean()) < most


@CASES
def test_all_the_data_at_one_point_is_found_exactly_in_any_number_of_steps(make, schedule):
    point = normal(1, 2, 3)
    for steps in (1, 3, 10):
        found = make(steps).sample(
            lambda x, t, c: point.expand_as(x), schedule, normal(4, 2, 3), None, seeded("own")
        )
        torch.testing.assert_close(found, point.expand(4, 2, 3))


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: type(s).__name__)
def test_ancestral_samples_have_the_mean_and_variance_of_the_data(schedule):
    found = Ancestral(300).sample(
        gaussian(schedule), schedule, normal(4000, 1), None, seeded("own")
    )
    assert float(found.mean()) == pytest.approx(MEAN, abs=0.04)
    assert float(found.var()) == pytest.approx(VARIANCE, rel=0.08)


@CASES
def test_samples_depend_on_their_noise_and_generator_alone(make, schedule):
    def sample(key):
        return make(5).sample(gaussian(schedule), schedule, normal(4, 1), None, seeded(key))

    assert torch.equal(sample("a"), sample("a"))
    assert torch.equal(sample("a"), sample("b")) == (make is not Ancestral)


@CASES
def test_the_denoiser_is_called_once_a_step_and_by_heun_twice_except_at_the_end(make, schedule):
    times = []

    def denoise(x, t, condition):
        assert condition == "condition"
        assert t.shape == (4,)
        times.append(float(t[0]))
        return torch.zeros_like(x)

    make(6).sample(denoise, schedule, normal(4, 1), "condition", seeded("own"))
    assert len(times) == (11 if make is Heun else 6)
    assert times[0] == 1
    assert times == sorted(times, reverse=True)
    assert times[-1] > 0


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: type(s).__name__)
def test_a_schedule_runs_from_the_picture_to_noise(schedule):
    t = torch.linspace(0, 1, 101, dtype=torch.float64)
    alpha, sigma = schedule.alpha(t), schedule.sigma(t)
    assert (alpha[0], sigma[0]) == (1, 0)
    assert alpha[-1] < 0.01
    assert sigma[-1] > 0.99
    assert (alpha.diff() < 0).all()
    assert (sigma.diff() > 0).all()
    if isinstance(schedule, Linear):
        torch.testing.assert_close(alpha**2 + sigma**2, torch.ones_like(t))
    x, noise = normal(3, 2), normal(3, 2).flip(0)
    mixed = noised(schedule, x, t[[0, 50, 100]], noise)
    torch.testing.assert_close(mixed[0], x[0])
    torch.testing.assert_close(mixed[1], alpha[50] * x[1] + sigma[50] * noise[1])


def test_a_weaker_signal_is_the_process_of_smaller_pictures():
    t, x, noise = torch.rand(5, generator=seeded("t")).double(), normal(5, 2), normal(5, 2).flip(0)
    torch.testing.assert_close(noised(WEAK, x, t, noise), noised(Linear(), 0.3 * x, t, noise))
    found = Ancestral(1500).sample(gaussian(WEAK), WEAK, normal(8000, 1), None, seeded("own"))
    assert float(found.mean()) == pytest.approx(MEAN, abs=0.04)
    assert float(found.var()) == pytest.approx(VARIANCE, rel=0.08)


def counting(x, t, condition: Condition) -> torch.Tensor:
    """A denoiser whose answer is the number of factors it is conditioned on."""
    return condition.present.sum(1, keepdim=True).expand_as(x).double()


@pytest.mark.parametrize(("scale", "answer"), [(0.0, 0.0), (1.0, 2.0), (2.5, 5.0), (-1.0, -2.0)])
def test_guidance_goes_from_the_unconditional_answer_through_the_conditional_one(scale, answer):
    condition = Condition(
        torch.zeros(4, 2).long(), torch.zeros(4, 0), torch.ones(4, 2, dtype=torch.bool)
    )
    x, t = normal(4, 3), torch.full((4,), 0.5)
    assert torch.equal(Guided(counting, scale)(x, t, condition), torch.full_like(x, answer))
    assert torch.equal(Guided(counting, 1.0)(x, t, condition), counting(x, t, condition))
    assert torch.equal(Guided(counting, 0.0)(x, t, condition), counting(x, t, condition.null()))


@pytest.mark.parametrize("make", SOLVERS)
def test_no_steps_are_refused(make):
    with pytest.raises(ValueError, match="steps must be positive, not 0"):
        make(0)
