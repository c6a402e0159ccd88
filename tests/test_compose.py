"""The operator on laws whose denoisers are exact, on all schedules, and on a network with a
layout."""

from dataclasses import dataclass, field

import pytest
import torch

from recombine.nets.layout_encoder import GlobalConfig, Grid
from recombine.nets.unet import UNetConfig
from recombine.objectives.compose import Composed, OneByOne
from recombine.objectives.edm import Edm, Karras
from recombine.objectives.process import Flow, Linear, spread
from recombine.objectives.solvers import Ancestral, Euler, Heun
from recombine.rng import seeded
from recombine.theory.maps import orthogonal, skewed
from recombine.theory.mixtures import Exact, Exploding, Score, condition_of, unconditional
from recombine.theory.projective import Tilted, joined, random_mixture, random_projective
from recombine.worlds.layout import Layout

SCHEDULES = [Flow(), Linear(), Linear(signal=0.3), Exploding(), Karras(high=20.0)]
each = pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: type(s).__name__)
PARTS, SIDE = 3, 2
"""Blocks of a picture, and the pixels of each."""


def at(dim: int, count: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    x = 2 * torch.randn(count, dim, generator=seeded(0, "x"), dtype=torch.float64)
    return x, torch.linspace(0.05, 0.95, count, dtype=torch.float64)


@dataclass
class Blocks:
    """Independent Gaussian blocks, by the formula for one Gaussian: block i is N(0, 1) where it is
    in the background and N(i + 1, 1/4) where it was prompted for."""

    schedule: object
    rows: list[int] = field(default_factory=list)

    def __call__(self, x, t, prompted):
        self.rows.append(len(x))
        alpha, sigma = self.schedule.alpha(spread(t, x)), self.schedule.sigma(spread(t, x))
        own = prompted.present.repeat_interleave(SIDE, 1)
        mean = own * (torch.arange(PARTS, dtype=x.dtype) + 1).repeat_interleave(SIDE)
        variance = torch.where(own, 0.25, 1.0).to(x.dtype)
        return mean + alpha * variance / (alpha**2 * variance + sigma**2) * (x - alpha * mean)


def given(slot: int | None, count: int) -> Layout:
    """One block, or none, for every picture."""
    present = torch.arange(PARTS) == (-1 if slot is None else slot)
    return Layout(torch.zeros(count, PARTS, 2, dtype=torch.float64), present.expand(count, -1))


def ragged(count: int) -> Layout:
    """Every choice of blocks, none and all among them; what absent slots hold must not be read."""
    present = torch.arange(count)[:, None] % 2**PARTS // 2 ** torch.arange(PARTS) % 2 == 1
    return Layout(
        torch.where(present[..., None], 0.5, torch.nan).double().expand(-1, -1, 2), present
    )


@each
def test_over_the_empty_background_independent_gaussians_compose_exactly(schedule):
    x, t = at(PARTS * SIDE, 16)
    law = Blocks(schedule)
    composed, joint = (Score(d, schedule)(x, t, ragged(16)) for d in (OneByOne(law), law))
    torch.testing.assert_close(composed, joint, rtol=1e-10, atol=1e-10)


@each
def test_over_the_average_of_the_parts_they_do_not(schedule):
    """Bayes: the unconditional law of equally likely parts, whose denoiser is the parts' mean by
    posterior."""
    x, t = at(PARTS * SIDE, 16)
    law, everything = (
        Blocks(schedule),
        given(None, 16)._replace(present=torch.ones(16, PARTS, dtype=torch.bool)),
    )
    alpha, sigma = (f(t)[:, None] for f in (schedule.alpha, schedule.sigma))

    def log_share(i: int) -> torch.Tensor:
        own = torch.arange(PARTS).repeat_interleave(SIDE) == i
        deviation = (alpha**2 * torch.where(own, 0.25, 1.0) + sigma**2).sqrt()
        return torch.distributions.Normal(alpha * own * (i + 1), deviation).log_prob(x).sum(1)

    share = torch.stack([log_share(i) for i in range(PARTS)], 1).softmax(1)
    average = sum(share[:, i, None] * law(x, t, given(i, 16)) for i in range(PARTS))
    off = OneByOne(law, lambda x, t, none: average)(x, t, everything) - law(x, t, everything)
    assert off.abs().amax(1).median() > 0.1


@each
def test_composing_scores_is_composing_denoisers(schedule):
    laws = [Exact(unconditional(random_mixture(2, 3, seeded(i, "m"))), schedule) for i in range(4)]
    x, t = at(3)
    scores = [Score(law, schedule)(x, t) for law in laws]
    total = scores[0] + sum(s - scores[0] for s in scores[1:])
    torch.testing.assert_close(
        Score(Composed(laws[0], tuple(laws[1:])), schedule)(x, t), total, rtol=1e-9, atol=1e-9
    )


def test_weights_sum_to_one():
    """What is added to all parts is added once to the sum, however many they are."""
    x, t = at(PARTS * SIDE, 16)
    law = Blocks(Flow())

    def shifted(x, t, prompted):
        return law(x, t, prompted) + 7

    torch.testing.assert_close(
        OneByOne(shifted)(x, t, ragged(16)), OneByOne(law)(x, t, ragged(16)) + 7
    )
    five = Composed(shifted, (shifted,) * 5)(x, t, given(1, 16))
    torch.testing.assert_close(five, law(x, t, given(1, 16)) + 7)


@each
def test_one_part_is_itself_and_none_the_background_bit_for_bit(schedule):
    part, background = (
        Exact(unconditional(random_mixture(3, 2, seeded(i, "m"))), schedule) for i in range(2)
    )
    x, t = at(2)
    assert torch.equal(Composed(background, (part,))(x, t, None), part(x, t, None))
    assert torch.equal(Composed(background, ())(x, t, None), background(x, t, None))
    x, t = at(PARTS * SIDE)
    law, other = Blocks(schedule), Blocks(Flow())
    for slot, own in ((1, law), (None, other)):
        assert torch.equal(OneByOne(law, other)(x, t, given(slot, 12)), own(x, t, given(slot, 12)))


def test_one_call_for_all_parts_or_several_and_none_for_what_is_absent():
    x, t = at(PARTS * SIDE, 16)
    answers = {}
    for most in (1, 7, 1000):
        law, empty = Blocks(Flow()), Blocks(Flow())
        answers[most] = OneByOne(law, empty, most)(x, t, ragged(16))
        assert empty.rows == [16]
        assert sum(law.rows) == int(ragged(16).present.sum()) == 24
        assert max(law.rows) == min(most, 24)
    assert torch.equal(answers[1], answers[7])
    assert torch.equal(answers[1], answers[1000])
    with pytest.raises(ValueError, match="most"):
        OneByOne(law, most=0)


@pytest.mark.parametrize(
    "solver", [Euler(8), Heun(8), Ancestral(8)], ids=lambda s: type(s).__name__
)
def test_every_solver_draws_what_the_joint_law_would_draw(solver):
    for schedule in SCHEDULES:
        law = Blocks(schedule)
        noise, prompted = at(PARTS * SIDE, 16)[0], ragged(16)
        drawn = [
            solver.sample(d, schedule, noise, prompted, seeded("own")) for d in (OneByOne(law), law)
        ]
        torch.testing.assert_close(*drawn, rtol=0, atol=1e-9)


def test_gradients_pass():
    x, t = at(PARTS * SIDE, 4)
    x.requires_grad_()
    law = Blocks(Flow())
    (composed,) = torch.autograd.grad(OneByOne(law)(x, t, ragged(4)).sum(), x)
    (joint,) = torch.autograd.grad(law(x, t, ragged(4)).sum(), x)
    torch.testing.assert_close(composed, joint)


@each
def test_composing_a_projective_law_is_exact_at_all_times_and_only_such_a_law(schedule):
    cpc = random_projective(3, 2, 1, 2, 2, seeded(1, "cpc"))
    x, t = at(7)
    condition = condition_of((1, 0, 1), len(x))
    condition.present[::3, 1] = False
    for law, exact in ((cpc, True), (Tilted(cpc, 1.0), False)):
        off = (
            (
                OneByOne(Exact(law, schedule))(x, t, condition)
                - Exact(law, schedule)(x, t, condition)
            )
            .abs()
            .max()
        )
        assert (off < 1e-9) == exact


def test_in_feature_space_rotations_are_exact_and_skews_are_not():
    cpc = random_projective(2, 1, 0, 1, 2, seeded(3, "cpc"))
    prompted = [(None, None), (0, None), (None, 0), (0, 0)]
    x, t = at(2)
    for change, exact in ((orthogonal(2, 1), True), (skewed(2, 0.8), False)):
        laws = [
            Exact(unconditional(joined(cpc(a)).mapped(change.matrix)), Flow()) for a in prompted
        ]
        off = (Composed(laws[0], tuple(laws[1:3]))(x, t, None) - laws[3](x, t, None)).abs().max()
        assert (off < 1e-9) == exact


def test_a_network_with_a_layout():
    """Against the sum written out, one location after the other."""
    shape, edm = (3, 8, 8), Edm()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = GlobalConfig(UNetConfig((16,), blocks=1, heads=1, embedding=8)).build(
            Grid(cells=4), shape
        )
        for weight in net.parameters():
            torch.nn.init.normal_(weight, std=0.3)
    denoiser, x, t = (
        edm.denoiser(net),
        torch.randn(2, *shape, generator=seeded("x")),
        torch.tensor([0.3, 0.8]),
    )
    prompted = Layout.of(torch.tensor([[[0.1, 0.1], [0.9, 0.4], [0.5, 0.7]]] * 2))
    with torch.no_grad():
        base = denoiser(x, t, prompted.null())
        alone = [denoiser(x, t, prompted.keep(torch.arange(3)[None] == j)) for j in range(3)]
        torch.testing.assert_close(
            OneByOne(denoiser)(x, t, prompted), base + sum(a - base for a in alone)
        )
    assert (alone[0] - base).abs().max() > 1e-4
