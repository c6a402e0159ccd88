"""The condition embedding: exactly the factors that are present, by value or by index, summed."""

import pytest
import torch

from recombine.nets.conditioning import ConditionEmbedding, Conditioning
from recombine.rng import seeded
from recombine.worlds.factors import Condition, Factor, FactorSpace

SPACE = FactorSpace(
    (
        Factor("shape", ("a", "b")),
        Factor("color", ("c", "d", "e"), 3),
        Factor("size", ("f", "g"), 1),
    )
)
MODES, EMBEDDING_SCALES = ("continuous", "quantised"), ("balanced", "raw")
HOW = [Conditioning(m, embedding_scale=s) for m in MODES for s in EMBEDDING_SCALES]
CASES = pytest.mark.parametrize("how", HOW, ids=lambda c: f"{c.mode}-{c.embedding_scale}")
COLUMNS = (slice(0, 0), slice(0, 3), slice(3, 4))


def made(how: Conditioning, space: FactorSpace = SPACE) -> ConditionEmbedding:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return ConditionEmbedding(space, how, 8)


def condition(b: int = 5) -> Condition:
    rng = seeded("condition")
    index = torch.stack([torch.randint(n, (b,), generator=rng) for n in SPACE.sizes], 1)
    return Condition(index, torch.rand(b, 4, generator=rng), torch.ones(b, 3, dtype=torch.bool))


@CASES
def test_quantised_ignores_values_exactly_and_continuous_uses_every_one(how):
    value = condition().value.requires_grad_()
    out = made(how)(condition()._replace(value=value))
    gradient = torch.autograd.grad(out.square().sum(), value, allow_unused=True)[0]
    if how.mode == "quantised":
        assert gradient is None
    else:
        assert (gradient != 0).all()


@CASES
def test_continuous_ignores_the_index_of_a_factor_with_true_values(how):
    c = condition()
    other = c._replace(index=torch.stack([c.index[:, 0], 2 - c.index[:, 1], 1 - c.index[:, 2]], 1))
    assert torch.equal(made(how)(c), made(how)(other)) == (how.mode == "continuous")


@pytest.mark.parametrize("scale", EMBEDDING_SCALES)
def test_only_a_balanced_embedding_does_not_depend_on_the_units_of_a_factor(scale):
    def space(unit: float) -> FactorSpace:
        return FactorSpace((Factor("size", ("a", "b"), 1, (2.0 * unit,), (0.5 * unit,)),))

    def embedded(unit: float) -> torch.Tensor:
        value, present = unit * torch.tensor([[1.0], [3.0]]), torch.ones(2, 1, dtype=torch.bool)
        given = Condition(torch.zeros(2, 1).long(), value, present)
        return made(Conditioning("continuous", embedding_scale=scale), space(unit))(given)

    same = torch.allclose(embedded(1.0), embedded(100.0), atol=1e-5)
    assert same == (scale == "balanced")


@CASES
@pytest.mark.parametrize("factor", range(3))
def test_an_absent_factor_has_no_effect_and_a_present_one_has(how, factor):
    embed, c = made(how), condition()
    index, value = c.index.clone(), c.value.clone()
    index[:, factor] = (index[:, factor] + 1) % SPACE.sizes[factor]
    value[:, COLUMNS[factor]] += 1
    mask = torch.arange(3).expand(5, 3) != factor
    changed = Condition(index, value, c.present)
    assert torch.equal(embed(c.keep(mask)), embed(changed.keep(mask)))
    assert (embed(c) != embed(changed)).any(1).all()


@CASES
def test_the_embedding_is_the_sum_over_factors(how):
    embed, c = made(how), condition()
    nulls = torch.stack([f.null for f in embed.factors])
    torch.testing.assert_close(embed(c.null()), nulls.sum(0).expand(5, 8))
    each = [
        embed(c.keep(torch.arange(3).expand(5, 3) == i)) - (nulls.sum(0) - nulls[i])
        for i in range(3)
    ]
    torch.testing.assert_close(embed(c), sum(each))


@CASES
def test_presence_is_decided_picture_by_picture(how):
    embed, c = made(how), condition(2)
    mixed = c.keep(torch.tensor([[True] * 3, [False] * 3]))
    torch.testing.assert_close(embed(mixed), torch.stack([embed(c)[0], embed(c.null())[1]]))


@pytest.mark.parametrize("dropout", [-0.1, 1.1])
def test_dropout_is_a_probability(dropout):
    with pytest.raises(ValueError, match="not between 0 and 1"):
        Conditioning(dropout=dropout)
