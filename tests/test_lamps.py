import pytest
import torch

from recombine.objectives.compose import Composed
from recombine.objectives.solvers import Heun
from recombine.rng import seeded
from recombine.theory.lamps import Lamps
from recombine.theory.mixtures import Exact, Exploding
from recombine.theory.projective import joined


def lit(lamps: Lamps, law, prompted: tuple[int, ...] = (0, 2, 3), count: int = 60) -> torch.Tensor:
    schedule = Exploding()
    parts = tuple(Exact(lamps.with_on((i,)), schedule) for i in prompted)
    noise = torch.randn(count, lamps.count, generator=seeded(0, "lamps"), dtype=torch.float64)
    return Heun(40).sample(Composed(Exact(law, schedule), parts), schedule, noise, None)


def test_lamps_over_the_empty_background_and_over_the_average():
    lamps = Lamps(5)
    x = lit(lamps, lamps.with_on(()))
    torch.testing.assert_close(x.mean(0), torch.tensor([1, 0, 1, 1, 0]).double(), rtol=0, atol=0.05)
    bayes = lit(lamps, lamps.average())
    torch.testing.assert_close(
        bayes.mean(0)[[0, 2, 3]], torch.full((3,), 1 / 3).double(), rtol=0, atol=0.06
    )


@pytest.mark.slow
def test_clutter_repairs_the_average_and_leaves_other_lamps_to_chance():
    lamps = Lamps(5, clutter=0.5)
    for law in (lamps.with_on(()), lamps.average()):
        on = lit(lamps, law) > 0.5
        assert on[:, [0, 2, 3]].all(1).double().mean() > 0.95
        assert 0.1 < on[:, [1, 4]].double().mean() < 0.7


def test_the_average_is_the_average_of_the_parts():
    for clutter in (0.0, 0.3):
        lamps = Lamps(4, 0.2, clutter)
        x = torch.randn(12, 4, generator=seeded(0, "x"), dtype=torch.float64)
        parts = torch.stack([joined(lamps.with_on((i,))(())).log_density(x) for i in range(4)])
        average = lamps.average()(())[0].law.log_density(x)
        torch.testing.assert_close(
            average, torch.logsumexp(parts, 0) - torch.tensor(4.0).double().log()
        )


def test_nonsense_lamps_are_refused():
    with pytest.raises(ValueError, match="clutter"):
        Lamps(clutter=1.0)
