"""What a network is told: exactly the factors that are present, as values or as indices, one vector each, summed."""

import pytest
import torch

from recombine.nets.conditioning import ConditionEmbedding, Conditioning
from recombine.rng import seeded
from recombine.worlds.factors import Condition, Factor, FactorSpace

SPACE = FactorSpace((Factor("shape", ("a", "b")), Factor("color", ("c", "d", "e"), 3), Factor("size", ("f", "g"), 1)))
TOLD = [Conditioning(mode, signal=signal) for mode in ("continuous", "quantised") for signal in ("balanced", "raw")]
CASES = pytest.mark.parametrize("told", TOLD, ids=lambda c: f"{c.mode}-{c.signal}")
COLUMNS = (slice(0, 0), slice(0, 3), slice(3, 4))


def made(told: Conditioning, space: FactorSpace = SPACE) -> ConditionEmbedding:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return ConditionEmbedding(space, told, 8)


def condition(b: int = 5) -> Condition:
    rng = seeded("condition")
    index = torch.stack([torch.randint(n, (b,), generator=rng) for n in SPACE.sizes], 1)
    return Condition(index, torch.rand(b, 4, generator=rng), torch.ones(b, 3, dtype=torch.bool))


@CASES
def test_quantised_ignores_values_exactly_and_continuous_uses_every_one(told):
    value = condition().value.requires_grad_()
    out = made(told)(condition()._replace(value=value))
    gradient = torch.autograd.grad(out.square().sum(), value, allow_unused=True)[0]
    if told.mode == "quantised":
        assert gradient is None
    else:
        assert (gradient != 0).all()


@CASES
def test_continuous_ignores_the_index_of_a_factor_with_true_values(told):
    c = condition()
    other = c._replace(index=torch.stack([c.index[:, 0], 2 - c.index[:, 1], 1 - c.index[:, 2]], 1))
    assert torch.equal(made(told)(c), made(told)(other)) == (told.mode == "continuous")


@pytest.mark.parametrize("signal", ["balanced", "raw"])
def test_only_a_balanced_signal_does_not_care_in_which_units_a_factor_is_measured(signal):
    def space(scale: float) -> FactorSpace:
        return FactorSpace((Factor("size", ("a", "b"), 1, (2.0 * scale,), (0.5 * scale,)),))

    told, value = Conditioning("continuous", signal=signal), torch.tensor([[1.0], [3.0]])
    ask = lambda v: Condition(torch.zeros(2, 1).long(), v, torch.ones(2, 1, dtype=torch.bool))  # noqa: E731
    same = torch.allclose(made(told, space(1.0))(ask(value)), made(told, space(100.0))(ask(100 * value)), atol=1e-5)
    assert same == (signal == "balanced")


@CASES
@pytest.mark.parametrize("factor", range(3))
def test_an_absent_factor_says_nothing_and_a_present_one_does(told, factor):
    embed, c = made(told), condition()
    index, value = c.index.clone(), c.value.clone()
    index[:, factor] = (index[:, factor] + 1) % SPACE.sizes[factor]
    value[:, COLUMNS[factor]] += 1
    mask = torch.arange(3).expand(5, 3) != factor
    changed = Condition(index, value, c.present)
    assert torch.equal(embed(c.keep(mask)), embed(changed.keep(mask)))
    assert (embed(c) != embed(changed)).any(1).all()


@CASES
def test_the_embedding_is_the_sum_over_factors(told):
    embed, c = made(told), condition()
    nulls = torch.stack([f.null for f in embed.factors])
    torch.testing.assert_close(embed(c.null()), nulls.sum(0).expand(5, 8))
    each = [embed(c.keep(torch.arange(3).expand(5, 3) == i)) - (nulls.sum(0) - nulls[i]) for i in range(3)]
    torch.testing.assert_close(embed(c), sum(each))


@CASES
def test_presence_is_decided_picture_by_picture(told):
    embed, c = made(told), condition(2)
    mixed = c.keep(torch.tensor([[True] * 3, [False] * 3]))
    torch.testing.assert_close(embed(mixed), torch.stack([embed(c)[0], embed(c.null())[1]]))


@pytest.mark.parametrize("dropout", [-0.1, 1.1])
def test_dropout_is_a_probability(dropout):
    with pytest.raises(ValueError, match="not between 0 and 1"):
        Conditioning(dropout=dropout)
