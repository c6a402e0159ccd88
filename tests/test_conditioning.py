"""What a network is told: exactly the factors that are present, as values or as indices, one vector each, summed."""

import pytest
import torch

from recombine.nets.conditioning import ConditionEmbedding, Conditioning
from recombine.rng import seeded
from recombine.worlds.factors import Condition, Factor, FactorSpace

SPACE = FactorSpace((Factor("shape", ("a", "b")), Factor("color", ("c", "d", "e"), 3), Factor("size", ("f", "g"), 1)))
MODES = pytest.mark.parametrize("mode", ["continuous", "quantised"])
COLUMNS = (slice(0, 0), slice(0, 3), slice(3, 4))


def made(mode: str) -> ConditionEmbedding:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return ConditionEmbedding(SPACE, Conditioning(mode), 8)


def condition(b: int = 5) -> Condition:
    rng = seeded("condition")
    index = torch.stack([torch.randint(n, (b,), generator=rng) for n in SPACE.sizes], 1)
    return Condition(index, torch.rand(b, 4, generator=rng), torch.ones(b, 3, dtype=torch.bool))


def test_quantised_ignores_values_exactly_and_continuous_uses_every_one():
    for mode in ("quantised", "continuous"):
        value = condition().value.requires_grad_()
        out = made(mode)(condition()._replace(value=value))
        gradient = torch.autograd.grad(out.square().sum(), value, allow_unused=True)[0]
        used = gradient is not None and bool((gradient != 0).all())
        assert used == (mode == "continuous")
        assert gradient is None or used


def test_continuous_ignores_the_index_of_a_factor_with_true_values():
    c = condition()
    other = c._replace(index=torch.stack([c.index[:, 0], 2 - c.index[:, 1], 1 - c.index[:, 2]], 1))
    assert torch.equal(made("continuous")(c), made("continuous")(other))
    assert not torch.equal(made("quantised")(c), made("quantised")(other))


@MODES
@pytest.mark.parametrize("factor", range(3))
def test_an_absent_factor_says_nothing_and_a_present_one_does(mode, factor):
    embed, c = made(mode), condition()
    index, value = c.index.clone(), c.value.clone()
    index[:, factor] = (index[:, factor] + 1) % SPACE.sizes[factor]
    value[:, COLUMNS[factor]] += 1
    mask = torch.arange(3).expand(5, 3) != factor
    changed = Condition(index, value, c.present)
    assert torch.equal(embed(c.keep(mask)), embed(changed.keep(mask)))
    assert (embed(c) != embed(changed)).any(1).all()


@MODES
def test_the_embedding_is_the_sum_over_factors(mode):
    embed, c = made(mode), condition()
    nulls = torch.stack([f.null for f in embed.factors])
    torch.testing.assert_close(embed(c.null()), nulls.sum(0).expand(5, 8))
    each = [embed(c.keep(torch.arange(3).expand(5, 3) == i)) - (nulls.sum(0) - nulls[i]) for i in range(3)]
    torch.testing.assert_close(embed(c), sum(each))


@MODES
def test_presence_is_decided_picture_by_picture(mode):
    embed, c = made(mode), condition(2)
    mixed = c.keep(torch.tensor([[True] * 3, [False] * 3]))
    torch.testing.assert_close(embed(mixed), torch.stack([embed(c)[0], embed(c.null())[1]]))


@pytest.mark.parametrize("dropout", [-0.1, 1.1])
def test_dropout_is_a_probability(dropout):
    with pytest.raises(ValueError, match="not between 0 and 1"):
        Conditioning(dropout=dropout)
