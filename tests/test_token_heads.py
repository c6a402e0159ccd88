"""The heads: each is a distribution over vectors that trains by its nll and draws what it was
trained on."""

import math

import jaxtyping
import pytest
import torch
from scipy import stats
from torch import Tensor, nn
from torch.distributions import Categorical as Choice
from torch.distributions import Independent, MixtureSameFamily, Normal

from recombine.config import UsageError, digest, from_json, to_json
from recombine.nets.head_nets import Last
from recombine.objectives.token_heads import Categorical, Denoising, Head, Mixture, log_density
from recombine.rng import seeded

WIDTH, DIM = 8, 3
CODES = torch.randn(6, DIM, generator=seeded("codes"))
SMALL = Denoising(steps=6, width=32, depth=2, repeats=2)
HEADS = [
    Categorical(),
    Categorical(smoothing=0.1),
    Mixture(4),
    Mixture(1),
    SMALL,
    Denoising(6, 16, 1, 1),
]


def name(head: Head) -> str:
    return type(head).__name__.lower() + "-" + digest(head)[:4]


ALL = pytest.mark.parametrize("head", HEADS, ids=name)
ONE_OF_EACH = pytest.mark.parametrize("head", [Categorical(), Mixture(4), SMALL], ids=name)
WITH_DENSITY = pytest.mark.parametrize("head", [Categorical(), Mixture(4), Mixture(1)], ids=name)


def made(head: Head, dim: int = DIM, codes: Tensor | None = CODES) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return head.net(WIDTH, dim, codes)


def opened(net: nn.Module, size: float = 0.4) -> nn.Module:
    """Weights such that every path is open (an untrained head says the same whatever its
    condition)."""
    rng = seeded("weights")
    with torch.no_grad():
        for p in net.parameters():
            p.add_(size * torch.randn(p.shape, generator=rng))
    return net


def hidden(*shape: int) -> Tensor:
    return torch.randn(*shape, WIDTH, generator=seeded("hidden"))


def tokens(b: int, l: int) -> Tensor:
    return CODES[torch.randint(len(CODES), (b, l), generator=seeded("tokens"))]


def fitted(head: Head, net: nn.Module, batch, steps: int, lr: float = 0.01) -> nn.Module:
    """Adam, its rate falling to zero. `batch(rng)` gives (hidden, token)."""
    optimizer, rng = torch.optim.Adam(net.parameters(), lr, fused=True), seeded("fit")
    for i in range(steps):
        optimizer.param_groups[0]["lr"] = lr * (1 - i / steps)
        h, x = batch(rng)
        optimizer.zero_grad()
        head.nll(net, h, x, head.draw(tuple(x.shape), rng)).mean().backward()
        optimizer.step()
    return net


# Every head


@ALL
def test_a_head_is_its_own_config(head):
    assert from_json(to_json(head), Head) == head


@ALL
def test_the_nll_is_one_float32_per_token_also_under_autocast(head):
    net, h, x = opened(made(head)), hidden(2, 5), tokens(2, 5)
    draw = head.draw((2, 5, DIM), seeded("draw"))
    assert all(len(d) == 2 for d in draw)
    plain = head.nll(net, h, x, draw)
    with torch.autocast("cpu", torch.bfloat16):
        cast = head.nll(net, h.bfloat16(), x, draw)
    assert plain.shape == cast.shape == (2, 5)
    assert plain.dtype == cast.dtype == torch.float32
    torch.testing.assert_close(cast, plain, rtol=0.1, atol=0.1)
    cast.sum().backward()
    assert all(
        p.grad.dtype == torch.float32 and torch.isfinite(p.grad).all() for p in net.parameters()
    )


def test_a_last_layer_starts_at_zero_and_rounds_nothing_under_autocast():
    layer, h = Last(WIDTH, 5), hidden(7)
    assert torch.equal(layer(h), torch.zeros(7, 5))
    opened(layer)
    with torch.autocast("cpu", torch.bfloat16):
        cast = layer(h)
    assert cast.dtype == torch.float32
    assert torch.equal(cast, layer(h))


@ALL
def test_tokens_do_not_mix(head):
    net, h, x = opened(made(head)), hidden(2, 4).requires_grad_(), tokens(2, 4)
    draw = head.draw((2, 4, DIM), seeded("draw"))
    nll = head.nll(net, h, x, draw)
    for at in ((0, 0), (1, 2)):
        reached = torch.autograd.grad(nll[at], h, retain_graph=True)[0].abs().sum(-1) > 0
        assert reached.nonzero().tolist() == [list(at)]
    moved = x.clone()
    moved[1, 2] = CODES[(CODES - x[1, 2]).square().sum(-1).argmax()]
    assert (head.nll(net, h, moved, draw) != nll).nonzero().tolist() == [[1, 2]]


@ALL
def test_samples_and_draws_are_pure_functions_of_the_generator(head):
    net, h = opened(made(head)), hidden(64)
    with torch.no_grad():
        one, same, other = (head.sample(net, h, seeded(key)) for key in ("a", "a", "b"))
    assert one[0].shape == (64, DIM)
    assert one[1].shape == (64,)
    assert torch.equal(one[0], same[0])
    assert torch.equal(one[1], same[1])
    assert not torch.equal(one[0], other[0])
    assert all(x.dtype == torch.float32 for x in head.sample(net, h.bfloat16(), seeded("a")))
    first, again = (head.draw((2, 4, DIM), seeded("a")) for _ in range(2))
    assert all(torch.equal(x, y) for x, y in zip(first, again, strict=True))


@ALL
def test_an_untrained_head_is_the_same_whatever_its_condition(head):
    net, x = made(head), tokens(1, 4)
    draw = head.draw((1, 4, DIM), seeded("draw"))
    assert torch.equal(
        head.nll(net, hidden(1, 4), x, draw), head.nll(net, -3 * hidden(1, 4), x, draw)
    )


@WITH_DENSITY
def test_the_samples_density_is_the_negative_nll_at_any_temperature(head):
    net, h = opened(made(head)), hidden(50)
    for temperature in (1.0, 0.3, 0.0):
        token, density = head.sample(net, h, seeded("s"), temperature)
        torch.testing.assert_close(density, -head.nll(net, h[None], token[None], ())[0])


@ALL
def test_at_temperature_zero_only_the_choice_among_components_is_left(head):
    net, h = opened(made(head)), hidden(40)
    with torch.no_grad():
        cold, again = (head.sample(net, h, seeded(key), 0.0)[0] for key in "ab")
        nearly = head.sample(net, h, seeded("a"), 1e-4)[0]
    torch.testing.assert_close(cold, nearly, atol=2e-3, rtol=0)
    if isinstance(head, Mixture):
        distance = (net(h).mean - cold[:, None]).abs().amax(-1).amin(-1)
        assert torch.equal(distance, torch.zeros(40))
        assert torch.equal(cold, again) == (head.components == 1)
    else:
        assert torch.equal(cold, again)
    if isinstance(head, Categorical):
        assert torch.equal(cold, CODES[net(h).argmax(-1)])


@ONE_OF_EACH
def test_every_head_learns_which_of_two_codes_the_hidden_vector_means(head):
    meant = torch.randn(WIDTH, generator=seeded("direction"))

    def batch(rng: torch.Generator) -> tuple[Tensor, Tensor]:
        code = torch.randint(2, (4, 16), generator=rng)
        noise = torch.randn(4, 16, WIDTH, generator=rng)
        return (2 * code[..., None] - 1) * meant + 0.2 * noise, CODES[code]

    net = fitted(head, made(head), batch, 300, 0.03)
    h, right = (x.flatten(0, 1) for x in batch(seeded("test")))
    with torch.no_grad():
        token, _ = head.sample(net, h, seeded("sample"))
    nearest = CODES[(token[:, None] - CODES).square().sum(-1).argmin(-1)]
    assert (nearest == right).all(-1).float().mean() >= 0.95


@ONE_OF_EACH
def test_the_nll_is_traced_whole_and_draws_nothing_by_itself(head, monkeypatch):
    monkeypatch.setattr(
        jaxtyping.config, "jaxtyping_disable", True
    )  # the checks of shapes cannot be traced
    net, h, x = opened(made(head)), hidden(2, 4), tokens(2, 4)
    draw, before = head.draw((2, 4, DIM), seeded("draw")), torch.get_rng_state()
    torch._dynamo.reset()
    whole = torch.compile(type(head).nll, backend="eager", fullgraph=True, dynamic=False)
    torch.testing.assert_close(whole(head, net, h, x, draw), head.nll(net, h, x, draw))
    assert torch.equal(torch.get_rng_state(), before)


# Categorical


def test_categorical_probabilities_are_a_softmax_and_sum_to_one():
    head, h = Categorical(), hidden(1, 1).expand(1, len(CODES), WIDTH)
    net = opened(made(head))
    nll = head.nll(net, h, CODES[None], ())[0]
    torch.testing.assert_close(
        nll, -(h[0, 0] @ net.leave.weight.T + net.leave.bias).log_softmax(-1)
    )
    assert float(torch.exp(-nll.detach()).sum()) == pytest.approx(1, abs=1e-6)
    untrained = head.nll(made(head), h, CODES[None], ())
    torch.testing.assert_close(untrained, torch.full_like(untrained, math.log(len(CODES))))
    mixed = Categorical(smoothing=0.2).nll(net, h, CODES[None], ())[0]
    torch.testing.assert_close(mixed, 0.8 * nll + 0.2 * nll.mean())


def test_tokens_differ_from_the_closest_other_row_also_under_autocast():
    codes = 5 + torch.cat(
        [torch.zeros(1, 16), 1e-5 * torch.randn(200, 16, generator=seeded("close"))]
    )
    net = made(Categorical(), 16, codes)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(net.nearest(codes), torch.arange(201))
    moved = codes + 1e-3 * torch.ones(16)
    exact = (moved.double()[:, None] - codes.double()).square().sum(-1).argmin(-1)
    assert torch.equal(net.nearest(moved), exact)


@pytest.mark.parametrize("temperature", [1.0, 0.5, 2.0])
def test_rows_are_drawn_as_often_as_their_probability_says(temperature):
    head, n = Categorical(), 20_000
    net, h = opened(made(head)), hidden(1)
    token, _ = head.sample(net, h.expand(n, WIDTH), seeded("s"), temperature)
    counts = net.nearest(token).bincount(minlength=len(CODES))
    assert torch.equal(CODES[net.nearest(token)], token)
    expected = n * (net(h)[0].detach().double() / temperature).softmax(-1)
    assert stats.chisquare(counts.numpy(), expected.numpy()).pvalue > 0.01


def test_the_codebook_is_not_saved_and_is_the_heads_own():
    codes = CODES.clone()
    net = made(Categorical(), DIM, codes)
    codes.zero_()
    assert torch.equal(net.codes, CODES)
    assert set(net.state_dict()) == {"leave.weight", "leave.bias"}


# Mixture


def grid(dim: int, reach: float, count: int) -> tuple[Tensor, float]:
    axis = torch.linspace(-reach, reach, count)
    return torch.cartesian_prod(*[axis] * dim).view(-1, dim), (2 * reach / (count - 1)) ** dim


@pytest.mark.parametrize(("dim", "count"), [(1, 9_601), (2, 961)])
def test_the_mixtures_density_integrates_to_one(dim, count):
    head = Mixture(3)
    points, cell = grid(dim, 12, count)
    with torch.no_grad():
        nll = head.nll(
            opened(made(head, dim)), hidden(1, 1).expand(1, len(points), WIDTH), points[None], ()
        )
    assert float(torch.exp(-nll.double()).sum() * cell) == pytest.approx(1, abs=1e-3)


def test_the_mixtures_nll_is_that_of_torch():
    head, h, x = Mixture(5), hidden(3, 4), torch.randn(3, 4, DIM, generator=seeded("x"))
    net = opened(made(head))
    weight, mean, scale = net(h)
    torchs = MixtureSameFamily(Choice(logits=weight), Independent(Normal(mean, scale.exp()), 1))
    torch.testing.assert_close(head.nll(net, h, x, ()), -torchs.log_prob(x))


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_the_mixtures_samples_have_its_moments(temperature):
    head, n = Mixture(3), 40_000
    net, h = opened(made(head)), hidden(1)
    weight, mean, scale = (x[0].detach() for x in net(h))
    token, _ = head.sample(net, h.expand(n, WIDTH), seeded("s"), temperature)
    weight = weight.exp()[:, None]
    centre = (weight * mean).sum(0)
    variance = (weight * ((temperature * scale.exp()) ** 2 + (mean - centre) ** 2)).sum(0)
    torch.testing.assert_close(
        token.mean(0), centre, atol=4 * float(variance.max() / n) ** 0.5, rtol=0
    )
    torch.testing.assert_close(token.var(0), variance, rtol=0.04, atol=0)


@pytest.mark.parametrize("components", [1, 2, 16])
def test_the_untrained_mixture_is_standard_and_its_components_differ(components):
    weight, mean, scale = (x[0].detach() for x in made(Mixture(components))(hidden(1)))
    torch.testing.assert_close(weight.exp(), torch.full((components,), 1 / components))
    torch.testing.assert_close(mean.mean(0), torch.zeros(DIM))
    torch.testing.assert_close((mean**2 + (2 * scale).exp()).mean(0), torch.ones(DIM))
    assert len(mean.unique(dim=0)) == components


@pytest.mark.parametrize("size", [1.0, 30.0, 1e4])
def test_scales_stay_within_bounds_and_gradients_finite_however_extreme_the_network(size):
    head = Mixture(4, floor=0.05, cap=2.0)
    net, h = opened(made(head), size), hidden(8, 8).requires_grad_()
    scale = net(h).log_scale.detach().exp()
    assert 0.05 * (1 - 1e-5) <= float(scale.min()) < float(scale.max()) <= 2 * (1 + 1e-5)
    head.nll(net, h, tokens(8, 8), ()).sum().backward()
    assert all(torch.isfinite(x.grad).all() for x in (h, *net.parameters()))


def test_the_floor_bounds_the_likelihood_of_a_point():
    head = Mixture(2)
    net = opened(made(head), 1e3)
    best = -DIM * (math.log(0.05) + 0.5 * math.log(2 * math.pi))
    with torch.no_grad():
        mixture = net(hidden(100))
        assert float(log_density(mixture, mixture.mean[:, 0]).max()) <= best + 1e-4


def test_a_mixture_snaps_samples_to_codes_and_has_a_temperature_of_its_own():
    h = hidden(50)
    cool, snaps, plain = Mixture(3, temperature=0.5), Mixture(3, snap=True), Mixture(3)
    nets = {head: opened(made(head)) for head in (cool, snaps, plain)}
    half, _ = cool.sample(nets[cool], h, seeded("s"))
    torch.testing.assert_close(half, plain.sample(nets[plain], h, seeded("s"), 0.5)[0])
    token, _ = snaps.sample(nets[snaps], h, seeded("s"))
    free, _ = plain.sample(nets[plain], h, seeded("s"))
    assert torch.equal(token, CODES[torch.cdist(free, CODES).argmin(1)])
    with pytest.raises(UsageError, match="no codes to snap to"):
        Mixture(snap=True).net(WIDTH, DIM, None)


# Denoising


def test_the_untrained_denoising_nets_error_is_that_of_no_velocity_averaged_over_repeats():
    x = tokens(2, 4)
    t, noise = draw = SMALL.draw((2, 4, DIM), seeded("draw"))
    assert t.shape == (2, 4, 2)
    expected = (noise - x[:, :, None]).square().mean((2, 3))
    torch.testing.assert_close(SMALL.nll(made(SMALL), hidden(2, 4), x, draw), expected)


def test_denoising_draws_both_modes_of_a_condition_that_has_two():
    """Given the first thing, tokens are N(-0.5, 0.5); given the second, 1.2 or, three times
    in ten, -1.2, with deviation 0.3."""
    head = Denoising(steps=25, width=32, depth=2, repeats=4)

    def batch(rng: torch.Generator) -> tuple[Tensor, Tensor]:
        second = torch.rand(24, 4, generator=rng) < 0.5
        high, z = torch.rand(24, 4, generator=rng) < 0.7, torch.randn(24, 4, generator=rng)
        token = torch.where(second, 1.2 * (2 * high.float() - 1) + 0.3 * z, -0.5 + 0.5 * z)
        return nn.functional.one_hot(second.long(), WIDTH).float(), token[..., None]

    net = fitted(head, made(head, 1), batch, 300)
    with torch.no_grad():
        hidden = torch.eye(WIDTH)[:2].repeat_interleave(1000, 0)
        first, second = head.sample(net, hidden, seeded("s"))[0][:, 0].split(1000)
    up = second > 0
    assert float(up.float().mean()) == pytest.approx(0.7, abs=0.06)
    for part, mean, std in ((first, -0.5, 0.5), (second[up], 1.2, 0.3), (second[~up], -1.2, 0.3)):
        assert float(part.mean()) == pytest.approx(mean, abs=0.1)
        assert float(part.std()) == pytest.approx(std, abs=0.08)


# What is refused


def test_a_categorical_head_without_its_codebook_is_refused():
    with pytest.raises(UsageError, match="needs a codebook"):
        Categorical().net(WIDTH, DIM, None)
    with pytest.raises(UsageError, match="codes of 3 numbers cannot describe tokens of 4"):
        Categorical().net(WIDTH, 4, CODES)


@pytest.mark.parametrize(
    ("cls", "change", "says"),
    [
        (Categorical, {"smoothing": 1.0}, "smoothing 1.0"),
        (Mixture, {"components": 0}, "components must be positive"),
        (Mixture, {"floor": 0.0}, "floor 0.0"),
        (Mixture, {"cap": 1.0}, "cap 1.0"),
        (Mixture, {"temperature": -1.0}, "temperature -1.0"),
        (Denoising, {"steps": 0}, "steps must be positive"),
        (Denoising, {"repeats": 0}, "repeats must be positive"),
    ],
)
def test_settings_that_make_no_sense_are_refused(cls, change, says):
    with pytest.raises(ValueError, match=says):
        cls(**change)
