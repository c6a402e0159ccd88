"""Masked prediction: what is hidden and what is not, loss and decoding of every head, causality,
the auxiliary loss."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from recombine.config import UsageError
from recombine.nets.conditioning import Conditioning
from recombine.nets.dit import DiTConfig
from recombine.nets.transformer import TransformerConfig
from recombine.nets.unet import UNetConfig
from recombine.objectives.jepa import Jepa, goals
from recombine.objectives.masked import Decoding, Masked
from recombine.objectives.token_heads import Categorical, Denoising, Mixture
from recombine.rng import seeded
from recombine.worlds.shapes2d import Shapes2D

WORLD = Shapes2D()
SHAPE = (4, 3, 5)
CODES = torch.randn(11, 4, generator=seeded("codes"))
NET = DiTConfig(TransformerConfig(depth=2, width=32, heads=2), patch=1)
HEADS = {"categorical": Categorical(), "mixture": Mixture(4), "denoising": Denoising(3, 16, 1, 2)}
each_head = pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)


def made(objective: Masked, noise: float = 0.3) -> nn.Module:
    torch.manual_seed(0)
    net = objective.network(NET, Conditioning(), SHAPE, WORLD.space, CODES)
    with torch.no_grad():
        for p in net.parameters():
            p.add_(noise * torch.randn(p.shape))
    return net


def some(count: int = 6):
    pick = torch.randint(len(CODES), (count, 3, 5), generator=seeded("pick"))
    return CODES[pick].movedim(-1, 1), WORLD.condition((0, 1, 1), count)


def test_the_share_that_is_hidden_follows_the_cosine_and_is_never_nothing():
    mask = Masked().draw(torch.Size((20_000, 4, 3, 5)), seeded(0)).mask
    counts = mask.sum(1)
    assert counts.min() == 1
    assert counts.max() == 15
    assert float(counts.float().mean()) / 15 == pytest.approx(2 / math.pi + 0.5 / 15, abs=0.01)
    assert mask.float().mean(0).std() < 0.01, "no place is special"


@each_head
def test_the_loss_looks_at_hidden_tokens_only_and_cannot_see_them(head):
    objective = Masked(head)
    net, (x, condition) = made(objective), some()
    draw = objective.draw(x.shape, seeded(1))
    hidden = net(net.tokens(x), draw.mask, condition)
    other = torch.where(draw.mask[..., None], torch.randn(6, 15, 4), net.tokens(x))
    assert torch.equal(hidden, net(other, draw.mask, condition)), "what is hidden has no way in"
    shown = net.tokens(x).clone().requires_grad_()
    nll = head.nll(net.head, net(shown, draw.mask, condition).detach(), shown, draw.head)
    (grad,) = torch.autograd.grad((nll * draw.mask).sum(), shown, allow_unused=True)
    assert grad is None or not grad[~draw.mask].any()


@each_head
def test_decoding_fills_every_token_and_is_a_function_of_its_stream(head):
    objective = Masked(head)
    net, (_, condition) = made(objective), some()

    def draw(key, **how):
        return objective.sample(net, SHAPE, condition, seeded(key), Decoding(**how)).detach()

    assert draw(1).shape == (6, *SHAPE)
    assert torch.equal(draw(1), draw(1))
    assert not torch.equal(draw(1), draw(2))
    for steps in (1, 4, 15, 40):
        assert torch.isfinite(draw(3, steps=steps)).all()


@pytest.mark.parametrize("causal", [False, True])
def test_categorical_decoding_gives_codes_and_only_codes(causal):
    objective = Masked(Categorical(), causal)
    net, (_, condition) = made(objective), some()
    tokens = net.tokens(objective.sample(net, SHAPE, condition, seeded(1), Decoding()))
    assert (tokens[:, :, None] == CODES).all(-1).any(-1).all()


@pytest.mark.parametrize(
    ("length", "steps"), [*((49, n) for n in range(1, 50)), (64, 52), (15, 40), (3, 3), (1, 5)]
)
def test_every_round_shows_something_and_the_last_shows_all(length, steps):
    left = Decoding(steps=steps).rounds(length)
    assert min(left) == 0, "never below"
    assert len(left) == min(steps, length)
    assert left[-1] == 0
    assert all(b < a for a, b in zip([length, *left], left, strict=False))


@pytest.mark.parametrize("order", ["confidence", "random"])
def test_rounds_hide_fewer_and_fewer_and_never_change_what_is_shown(order):
    objective, masks, shown = Masked(), [], []
    net, (_, condition) = made(objective), some()
    spy = net.trace

    def trace(tokens, mask, condition):
        masks.append(mask.clone())
        shown.append(tokens.clone())
        return spy(tokens, mask, condition)

    net.trace = trace
    last = net.tokens(
        objective.sample(net, SHAPE, condition, seeded(1), Decoding(steps=6, order=order))
    )
    counts = [int(m.sum(1).unique()) for m in masks]
    assert counts == [15, *Decoding(steps=6).rounds(15)[:-1]]
    for i, (mask, tokens) in enumerate(zip(masks, shown, strict=True)):
        later = shown[i + 1] if i + 1 < len(shown) else last
        assert torch.equal(tokens[~mask], later[~mask])


@each_head
def test_a_causal_model_predicts_each_token_from_those_before_it(head):
    objective = Masked(head, causal=True)
    net, (x, condition) = made(objective), some(2)
    draw = objective.draw(x.shape, seeded(1))
    assert draw.mask.all()
    tokens = net.tokens(x).clone().requires_grad_()
    from recombine.objectives.masked import _shifted

    hidden = net(*_shifted(tokens), condition)
    (grad,) = torch.autograd.grad(hidden[:, 7].square().sum(), tokens)
    assert not grad[:, 7:].any()
    assert grad[:, :7].abs().amax((0, 2)).min() > 0


@pytest.mark.slow
def test_a_small_model_learns_which_tokens_its_condition_names():
    """Shape decides the code of every token: after a little training each family draws the right
    ones."""
    index = torch.tensor([[0, 0, 0], [1, 0, 0]]).repeat(12, 1)
    condition = WORLD.describe(index, WORLD.canonical(index))
    x = CODES[index[:, 0]][..., None, None].expand(-1, -1, 3, 5).contiguous()
    for head in HEADS.values():
        objective = Masked(head)
        net = made(objective, 0.0)
        optimizer = torch.optim.Adam(net.parameters(), 6e-3)
        for step in range(40):
            optimizer.zero_grad()
            objective.loss(
                net, x, condition, objective.draw(x.shape, seeded(step))
            ).mean().backward()
            optimizer.step()
        drawn = objective.sample(
            net, SHAPE, condition, seeded("draw"), Decoding(temperature=0.5)
        ).movedim(1, -1)
        nearest = torch.cdist(drawn.reshape(-1, 4), CODES).argmin(1).view(24, 15)
        assert float((nearest == index[:, :1]).float().mean()) > 0.95, head


def test_the_auxiliary_loss_teaches_inner_layers_and_not_the_teacher():
    objective = Masked(jepa=Jepa(layers=(0, 1), weight=1.0))
    net, teacher, (x, condition) = made(objective), made(objective), some()
    draw = objective.draw(x.shape, seeded(1))
    assert objective.needs_teacher
    plain = Masked().loss(net, x, condition, draw)
    helped = objective.loss(net, x, condition, draw, teacher=teacher)
    assert (helped > plain).all()
    (helped - plain).sum().backward()
    assert all(p.grad is None for p in teacher.parameters())
    assert net.predictors["1"][1].weight.grad.abs().sum() > 0
    assert net.enter.weight.grad.abs().sum() > 0
    assert not net.head.leave.weight.grad.any(), "the auxiliary loss never reaches the head"


def test_the_auxiliary_loss_is_zero_where_the_predictor_is_right():
    objective = Masked(jepa=Jepa(layers=(0,), weight=2.0))
    net, (x, condition) = made(objective), some()
    seen = goals(net, net.tokens(x), condition)
    net.predictors["0"] = nn.LayerNorm(32, elementwise_affine=False)
    everything = torch.ones(6, 15, dtype=torch.bool)
    assert float(objective.jepa.loss(net, seen, seen, everything).detach().abs().max()) < 1e-9
    wrong = [torch.randn_like(s) for s in seen]
    assert float(objective.jepa.loss(net, wrong, seen, everything).detach().min()) > 0.1


def test_the_auxiliary_error_is_the_mean_over_the_positions_that_are_predicted():
    net = nn.Module()
    net.predictors = nn.ModuleDict({"0": nn.Identity()})
    goal = torch.randn(2, 5, 8, generator=seeded("goal"))
    off = torch.tensor([3.0, 1.0, 5.0, 7.0, 9.0])[None, :, None]
    state = F.layer_norm(goal, (8,)) + off
    mask = torch.tensor([[True, True, False, False, False], [False] * 5])
    error = Jepa(layers=(0,)).error(net, 0, state, goal, mask)
    assert error.tolist() == pytest.approx([(9 + 1) / 2, 0], abs=1e-4)


def test_squares_are_squares_inside_the_grid_of_every_place():
    squares = Jepa(squares=1).draw(400, (6, 6), seeded("squares")).view(400, 6, 6)
    for one in squares:
        rows, columns = one.any(1).nonzero().flatten(), one.any(0).nonzero().flatten()
        assert one.sum() == len(rows) * len(columns), "one block without holes"
        assert 2 <= len(rows) == len(columns) <= 4
        assert int(rows[-1] - rows[0]) == len(rows) - 1
    assert squares.any(0).all(), "each token is predicted now and then"
    several = Jepa(squares=3).draw(400, (6, 6), seeded("squares"))
    assert several.sum() > 1.5 * squares.sum()


def test_the_auxiliary_loss_looks_at_hidden_tokens_in_squares_alone():
    objective = Masked(jepa=Jepa(layers=(0,), squares=1))
    net, teacher, (x, condition) = made(objective), made(objective), some()
    draw = objective.draw(x.shape, seeded(1))
    assert (draw.predicted <= draw.mask).all()
    assert 0 < int(draw.predicted.sum()) < int(draw.mask.sum())
    states, targets = (
        net.trace(net.tokens(x), draw.mask, condition)[1],
        goals(teacher, net.tokens(x), condition),
    )
    other = [t + 5 * torch.randn_like(t) * ~draw.predicted[..., None] for t in targets]
    losses = [objective.jepa.loss(net, states, t, draw.predicted) for t in (targets, other)]
    assert torch.equal(*losses), "what it does not predict does not matter"
    plain = replace(objective, jepa=Jepa(layers=(0,))).draw(x.shape, seeded(1))
    assert torch.equal(plain.mask, draw.mask), "the same tokens are hidden"


def test_readings_tell_a_collapse():
    objective = Masked(jepa=Jepa(layers=(0, 1), weight=0.5))
    net, (x, condition) = made(objective), some()
    draw = objective.draw(x.shape, seeded(1))
    rows = objective.readings(net, x, condition, draw)
    whole = objective.loss(net, x, condition, draw, teacher=net).mean().item()
    inner = sum(row["error"] for row in rows) / 2
    assert rows[0]["output_loss"] + 0.5 * inner == pytest.approx(whole, rel=1e-5)
    assert all(row["spread"] > 0.01 for row in rows)
    with torch.no_grad():
        for weights in (net.enter.weight, net.condition.factors[0].null):
            weights.zero_()
        for embed in net.condition.factors:
            for parameter in embed.parameters():
                parameter.zero_()
    assert all(row["spread"] < 1e-9 for row in objective.readings(net, x, condition, draw))
    assert Masked().readings(net, x, condition, draw) == []


@pytest.mark.parametrize(
    ("objective", "net", "codes", "words"),
    [
        (Masked(), DiTConfig(NET.transformer, patch=4), CODES, "patch=1, not 4"),
        (Masked(), NET, None, "needs a codebook"),
        (Masked(jepa=Jepa(layers=(2,))), NET, CODES, "has 2 blocks"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(objective, net, codes, words):
    with pytest.raises(UsageError, match=words):
        objective.network(net, Conditioning(), (4, 4, 4), WORLD.space, codes)


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"choice": -1.0}, {"temperature": -0.1}])
def test_decoding_refuses_nonsense(wrong):
    with pytest.raises(ValueError, match=r"not|must"):
        Decoding(**wrong)


TOKENS = Conditioning(enters="tokens")


@each_head
@pytest.mark.parametrize("causal", [False, True])
def test_conditioned_by_tokens_every_factor_reaches_every_token(head, causal):
    torch.manual_seed(0)
    net = Masked(head, causal).network(NET, TOKENS, SHAPE, WORLD.space, CODES)
    assert not hasattr(net.trunk, "modulation"), "nothing modulates"
    (x, condition), mask = some(), torch.ones(6, 15, dtype=torch.bool)
    hidden, states = net.trace(net.tokens(x), mask, condition)
    assert {part.shape for part in (hidden, *states)} == {(6, 15, 32)}
    for i in range(len(WORLD.space.factors)):
        kept = torch.ones_like(condition.present)
        kept[:, i] = False
        other = net(net.tokens(x), mask, condition.keep(kept))
        assert (hidden - other).abs().amax(-1).min() > 1e-4, "also untrained: gates are open"
    hidden.square().sum().backward()
    tables = [p for p in net.condition.factors[0].parameters() if p.shape[0] == 2]
    assert all(p.grad is not None and p.grad.any() for p in tables)
    assert net.trunk.prefix_position.grad.any(1).all()


def test_conditioned_by_tokens_it_trains_and_decodes():
    objective = Masked(Categorical())
    torch.manual_seed(0)
    net = objective.network(NET, TOKENS, SHAPE, WORLD.space, CODES)
    x, condition = some()
    draw, losses = objective.draw(x.shape, seeded(1)), []
    adam = torch.optim.Adam(net.parameters(), 6e-3)
    for _ in range(30):
        loss = objective.loss(net, x, condition, draw).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.5 * losses[0]
    assert objective.sample(net, SHAPE, condition, seeded(2), Decoding()).shape == (6, *SHAPE)


def test_conditioned_by_adaln_it_is_as_it_was():
    """Numbers from the code before condition tokens."""
    net, (x, condition) = made(Masked()), some()
    assert sum(p.numel() for p in net.parameters()) == 42955
    assert set(dict(net.trunk.named_children())) == {"modulation", "blocks"}
    out = net(net.tokens(x), torch.arange(15).expand(6, -1) % 2 == 0, condition)
    torch.testing.assert_close(
        out[0, :3, 0], torch.tensor([0.54396, 0.47880, 0.53099]), rtol=1e-4, atol=1e-4
    )


def test_a_u_net_has_no_condition_tokens():
    from recombine.nets.unet import UNetConfig

    with pytest.raises(UsageError, match="only a transformer has tokens"):
        UNetConfig().build(TOKENS, (3, 32, 32), WORLD.space)


@pytest.mark.parametrize(
    ("net", "objective", "says"),
    [
        (UNetConfig((8,)), Masked(), "masked prediction needs the transformer, not a UNetConfig"),
        (
            replace(NET, patch=2),
            Masked(),
            "masked prediction takes each cell of the latent as a token: patch=1, not 2",
        ),
    ],
)
def test_networks_that_cannot_predict_tokens_are_refused(net, objective, says):
    with pytest.raises(UsageError, match=f"^{says}$"):
        objective.network(net, Conditioning(), SHAPE, WORLD.space, CODES)


def test_a_causal_model_hides_nothing_that_an_auxiliary_loss_could_compare():
    says = "jepa compares hidden with shown tokens; a causal model hides none"
    with pytest.raises(ValueError, match=f"^{says}$"):
        Masked(causal=True, jepa=Jepa(layers=(0,)))
