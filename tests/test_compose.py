import pytest
import torch

from recombine.objectives.process import Flow, Linear
from recombine.objectives.solvers import Heun
from recombine.rng import seeded
from recombine.theory.compose import Composed, Lamps, OneByOne
from recombine.theory.maps import orthogonal, skewed
from recombine.theory.mixtures import Exact, Exploding, asking, unconditional
from recombine.theory.projective import Tilted, joined, random_mixture, random_projective

SCHEDULES = [Flow(), Linear(), Exploding()]


def at(dim: int, count: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    x = 2 * torch.randn(count, dim, generator=seeded(0, "x"), dtype=torch.float64)
    return x, torch.linspace(0.05, 0.95, count, dtype=torch.float64)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_one_part_is_itself_whatever_the_background(schedule):
    part, background = (Exact(unconditional(random_mixture(3, 2, seeded(i, "m"))), schedule) for i in range(2))
    x, t = at(2)
    torch.testing.assert_close(Composed(background, (part,))(x, t, None), part(x, t, None))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_composing_a_projective_law_is_exact_at_all_times_and_only_such_a_law(schedule):
    cpc = random_projective(3, 2, 1, 2, 2, seeded(1, "cpc"))
    x, t = at(7)
    condition = asking((1, 0, 1), len(x))
    condition.present[::3, 1] = False
    for law, exact in ((cpc, True), (Tilted(cpc, 1.0), False)):
        off = (OneByOne(Exact(law, schedule))(x, t, condition) - Exact(law, schedule)(x, t, condition)).abs().max()
        assert (off < 1e-9) == exact


def test_nothing_asked_for_is_the_background():
    cpc = random_projective(2, 1, 1, 1, 2, seeded(2, "cpc"))
    x, t = at(3)
    none = asking((None, None), len(x))
    torch.testing.assert_close(OneByOne(Exact(cpc, Flow()))(x, t, none), Exact(cpc, Flow())(x, t, none))


def test_in_feature_space_rotations_are_exact_and_skews_are_not():
    cpc = random_projective(2, 1, 0, 1, 2, seeded(3, "cpc"))
    asked = [(None, None), (0, None), (None, 0), (0, 0)]
    x, t = at(2)
    for change, exact in ((orthogonal(2, 1), True), (skewed(2, 0.8), False)):
        laws = [Exact(unconditional(joined(cpc(a)).mapped(change.matrix)), Flow()) for a in asked]
        off = (Composed(laws[0], tuple(laws[1:3]))(x, t, None) - laws[3](x, t, None)).abs().max()
        assert (off < 1e-9) == exact


def lit(lamps: Lamps, law, asked: tuple[int, ...] = (0, 2, 3), count: int = 60) -> torch.Tensor:
    schedule = Exploding()
    parts = tuple(Exact(lamps.with_on((i,)), schedule) for i in asked)
    noise = torch.randn(count, lamps.count, generator=seeded(0, "lamps"), dtype=torch.float64)
    return Heun(40).sample(Composed(Exact(law, schedule), parts), schedule, noise, None)


def test_lamps_over_the_empty_background_and_over_the_average():
    lamps = Lamps(5)
    x = lit(lamps, lamps.with_on(()))
    torch.testing.assert_close(x.mean(0), torch.tensor([1, 0, 1, 1, 0]).double(), rtol=0, atol=0.05)
    bayes = lit(lamps, lamps.average())
    torch.testing.assert_close(bayes.mean(0)[[0, 2, 3]], torch.full((3,), 1 / 3).double(), rtol=0, atol=0.06)


def test_clutter_repairs_the_average_and_leaves_other_lamps_to_chance():
    lamps = Lamps(5, clutter=0.5)
    for law in (lamps.with_on(()), lamps.average()):
        on = lit(lamps, law) > 0.5
        assert on[:, [0, 2, 3]].all(1).double().mean() > 0.95
        assert 0.1 < on[:, [1, 4]].double().mean() < 0.7


def test_the_average_is_the_average_of_the_parts():
    for clutter in (0.0, 0.3):
        lamps = Lamps(4, 0.2, clutter)
        x, _ = at(4)
        parts = torch.stack([joined(lamps.with_on((i,))(())).log_density(x / 2) for i in range(4)])
        average = lamps.average()(())[0].law.log_density(x / 2)
        torch.testing.assert_close(average, torch.logsumexp(parts, 0) - torch.tensor(4.0).double().log())


def test_nonsense_lamps_are_refused():
    with pytest.raises(ValueError, match="clutter"):
        Lamps(clutter=1.0)
