"""The transformer: what each token may see, what the condition does, and that order enters by
position alone."""

import pytest
import torch

from recombine.nets.transformer import Attention, Transformer, TransformerConfig, sincos, waves
from recombine.rng import seeded

GRID = (2, 3)
CONFIGS = [
    TransformerConfig(2, 16, 4, 2, qk_norm=q, causal=c)
    for q in (False, True)
    for c in (False, True)
]
CASES = pytest.mark.parametrize(
    "config", CONFIGS, ids=lambda c: f"qk_norm={c.qk_norm}-causal={c.causal}"
)


def randomised(module: torch.nn.Module) -> torch.nn.Module:
    """Weights such that every path is open (an untrained net has its gates shut)."""
    rng = seeded("weights")
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(0.5 * torch.randn(p.shape, generator=rng))
    return module


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    rng = seeded("inputs")
    return torch.randn(2, 6, 16, generator=rng), torch.randn(2, 16, generator=rng)


@CASES
def test_causal_tokens_see_nothing_that_comes_later_and_the_others_see_everything(config):
    net, (x, c) = randomised(Transformer(config, GRID)), inputs()
    x.requires_grad_()
    for i in range(6):
        gradient = torch.autograd.grad(net(x, c)[:, i].square().sum(), x)[0].abs().sum(-1)
        assert (gradient[:, : i + 1] > 0).all()
        assert bool((gradient[:, i + 1 :] == 0).all()) == (config.causal or i == 5)


@CASES
def test_the_untrained_network_ignores_the_condition_and_keeps_the_tokens(config):
    net, (x, c) = Transformer(config, GRID), inputs()
    assert torch.equal(net(x, c), net(x, -3 * c))
    expected = torch.nn.functional.layer_norm(x + net.position, (16,))
    torch.testing.assert_close(net(x, c), expected)


@CASES
def test_the_condition_matters_once_the_gates_open(config):
    net, (x, c) = randomised(Transformer(config, GRID)), inputs()
    assert not torch.allclose(net(x, c), net(x, -c))


@CASES
def test_samples_do_not_mix(config):
    net, (x, c) = randomised(Transformer(config, GRID)), inputs()
    torch.testing.assert_close(net(x, c)[1:], net(x[1:], c[1:]))


@pytest.mark.parametrize("qk_norm", [False, True])
def test_permuted_tokens_give_permuted_answers_where_there_are_no_positions(qk_norm):
    net, (x, c) = (
        randomised(Transformer(TransformerConfig(2, 16, 4, 2, qk_norm=qk_norm), GRID)),
        inputs(),
    )
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    assert not torch.allclose(net(x[:, order], c), net(x, c)[:, order], atol=1e-3)
    net.position.zero_()
    torch.testing.assert_close(net(x[:, order], c), net(x, c)[:, order], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("qk_norm", [False, True])
def test_qk_norm_makes_attention_blind_to_the_length_of_queries_and_keys(qk_norm):
    attention, (x, _) = (
        randomised(Attention(TransformerConfig(1, 16, 4, qk_norm=qk_norm))),
        inputs(),
    )
    before = attention(x)
    with torch.no_grad():
        attention.qkv.weight[:32] *= 30
        attention.qkv.bias[:32] *= 30
    assert torch.allclose(attention(x), before, atol=1e-4) == qk_norm


def test_every_place_on_the_grid_has_its_own_code_of_unit_waves():
    code = sincos((5, 7), 16)
    assert len(code.unique(dim=0)) == 35
    sin, cos = code.unflatten(1, (2, 2, 4)).unbind(2)
    torch.testing.assert_close(sin**2 + cos**2, torch.ones_like(sin))
    assert torch.equal(waves(torch.zeros(1), 6), torch.tensor([[0.0, 0, 0, 1, 1, 1]]))


@pytest.mark.parametrize(
    ("change", "says"), [({"heads": 5}, "not a multiple of heads 5"), ({"depth": 0}, "positive")]
)
def test_sizes_that_do_not_fit_are_refused(change, says):
    with pytest.raises(ValueError, match=says):
        TransformerConfig(**{"width": 16, "heads": 4} | change)
    with pytest.raises(ValueError, match="multiple of 4"):
        TransformerConfig(width=6, heads=3)
