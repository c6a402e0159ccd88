import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recombine.objectives.process import Flow
from recombine.rng import seeded
from recombine.theory.mixtures import Exact, condition_of, points
from recombine.theory.projective import (
    Joint,
    Linked,
    Localised,
    Projective,
    Tilted,
    compositions,
    joined,
    mean_of,
    random_mixture,
    random_projective,
)

quick = settings(max_examples=10, deadline=None)
CPC = random_projective(3, 2, 2, 2, 3, seeded(0, "cpc"))


def at(count: int = 6, dim: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    x = 2 * torch.randn(count, dim, generator=seeded(1, "x"), dtype=torch.float64)
    return x, torch.linspace(0.1, 0.9, count, dtype=torch.float64)


@quick
@given(st.sampled_from(compositions(2, 3)))
def test_blocks_and_joint_are_the_same_law(prompted):
    x, t = at()
    answers = [Exact(law, Flow())(x, t, condition_of(prompted, 6)) for law in (CPC, Joint(CPC))]
    torch.testing.assert_close(*answers, rtol=1e-8, atol=1e-9)
    blocks = CPC(prompted)
    by_block = sum(b.law.log_density(x[:, list(b.pixels)]) for b in blocks)
    torch.testing.assert_close(joined(blocks).log_density(x), by_block)
    torch.testing.assert_close(mean_of(blocks), joined(blocks).moments()[0])


def test_blocks_cover_every_pixel_once_and_inactive_sets_follow_the_background():
    for prompted in compositions(2, 3):
        assert sorted(i for b in CPC(prompted) for i in b.pixels) == list(range(8))
    (rest,) = [b for b in CPC((0, None, 1)) if b.pixels == (2, 3, 6, 7)]
    x, _ = at(dim=4)
    torch.testing.assert_close(
        rest.law.log_density(x), CPC.background.marginal((2, 3, 6, 7)).log_density(x)
    )


def test_sets_in_any_order_of_pixels():
    rng = seeded(2, "mixed")
    law = Projective(
        ((3, 0), (1,)),
        ((random_mixture(2, 2, rng),), (random_mixture(2, 1, rng),)),
        random_mixture(2, 4, rng),
    )
    x, _ = at(dim=4)
    density = joined(law((0, 0))).log_density(x)
    parts = law.parts[0][0].log_density(x[:, [3, 0]]) + law.parts[1][0].log_density(x[:, [1]])
    torch.testing.assert_close(
        density, parts + law.background.marginal((2,)).log_density(x[:, [2]])
    )


def test_the_best_local_denoiser_keeps_marginals_and_has_the_least_loss_of_local_ones():
    tilted, prompted = Tilted(CPC, 1.0), (0, 1, 0)
    local = Localised(tilted, CPC.sets)
    torch.testing.assert_close(mean_of(local(prompted)), joined(tilted(prompted)).moments()[0])
    rng = seeded(3, "loss")
    clean = joined(tilted(prompted)).sample(20_000, rng)
    t = torch.full((len(clean),), 0.5, dtype=torch.float64)
    x = 0.5 * clean + 0.5 * torch.randn(clean.shape, generator=rng, dtype=torch.float64)
    loss = [
        (Exact(law, Flow())(x, t, condition_of(prompted, len(x))) - clean).square().mean().item()
        for law in (tilted, local, CPC)
    ]
    assert loss[0] < loss[1] < loss[2]


def test_the_same_tilt_every_time_and_none_at_strength_zero():
    weights = [Tilted(CPC, s)((0, 0, 0))[0].law.log_weight for s in (0.0, 1.0, 1.0)]
    torch.testing.assert_close(weights[0], joined(CPC((0, 0, 0))).log_weight)
    assert torch.equal(weights[1], weights[2])
    assert not torch.allclose(weights[0], weights[1])


def test_linking_ties_two_blocks_and_moves_no_marginal():
    law = random_projective(3, 1, 0, 1, 2, seeded(4, "link"))
    even = tuple(tuple(m.reweighted(torch.zeros(2).double()) for m in part) for part in law.parts)
    law = Projective(law.sets, even, law.background)
    plain, linked = joined(law((0, 0, 0))), joined(Linked(law, 0.9)((0, 0, 0)))
    x, _ = at(dim=3)
    for i in range(3):
        torch.testing.assert_close(
            linked.marginal((i,)).log_density(x[:, [i]]),
            plain.marginal((i,)).log_density(x[:, [i]]),
        )
    assert (linked.moments()[1] - plain.moments()[1])[0, 1].abs() > 0.1
    torch.testing.assert_close(
        joined(Linked(law, 0.9)((0, None, None))).log_weight,
        joined(law((0, None, None))).log_weight,
    )


def test_overlapping_sets_are_refused():
    one = points(torch.zeros(1, 2).double())
    with pytest.raises(ValueError, match="disjoint"):
        Projective(((0, 1), (1, 2)), ((one,), (one,)), points(torch.zeros(1, 3).double()))
    with pytest.raises(ValueError, match="laws of 1 pixels"):
        Projective(((0,),), ((one,),), points(torch.zeros(1, 3).double()))
