"""EDM: levels and back, the preconditioned network as a Denoiser, its loss, and exact sampling of a
known law."""

import math
from pathlib import Path

import pytest
import torch

from recombine.config import UsageError, from_json, to_json
from recombine.nets.layout_encoder import GlobalConfig, Grid, List
from recombine.nets.local import LocalConfig
from recombine.nets.unet import UNetConfig
from recombine.objectives.diffusion import Draw
from recombine.objectives.edm import Edm, Karras
from recombine.objectives.process import Guided, noised
from recombine.objectives.solvers import Ancestral, Euler, Heun, advance
from recombine.rng import seeded
from recombine.theory.mixtures import Exact, Mixture, mixture, unconditional
from recombine.worlds.layout import Layout

EDM = Edm()
LAYOUT = Layout.of(torch.rand(4, 3, 2, generator=seeded("layout")))
TWO = Mixture(
    torch.tensor([0.3, 0.7]).log(),
    torch.tensor([[-0.6, 0.3], [0.6, -0.2]]),
    torch.full((2, 2), 0.01),
)
NETS = [
    GlobalConfig(UNetConfig((8, 16), blocks=1, heads=2, embedding=16)),
    LocalConfig(4, 1, 16, 2, 2),
]


def test_levels_run_from_nothing_to_the_highest_and_back():
    t = torch.linspace(0, 1, 200, dtype=torch.float64)
    sigma = Karras().sigma(t)
    assert sigma[0] == 0
    assert sigma.diff().min() > 0
    assert abs(sigma[-1] - (80 - 0.002)) < 1e-9
    torch.testing.assert_close(Karras().time(sigma), t)
    assert Karras().time(torch.tensor(1e6)) == 1
    # Karras' own levels, lowered by the lowest of them
    own = (0.002 ** (1 / 7) + t * (80 ** (1 / 7) - 0.002 ** (1 / 7))) ** 7
    torch.testing.assert_close(sigma, own - 0.002)


def test_the_network_sees_and_should_answer_numbers_of_size_one_at_every_level():
    seen = {}

    def net(x, t, condition):
        seen["x"] = x
        return torch.zeros_like(x)

    x = 0.5 * torch.randn(20_000, 4, generator=seeded("data"))
    for t in (0.05, 0.3, 0.6, 1.0):
        times = torch.full((len(x),), t)
        loss = EDM.loss(
            net, x, None, Draw(times, torch.randn(x.shape, generator=seeded("noise", int(100 * t))))
        )
        assert abs(seen["x"].std() - 1) < 0.02
        assert abs(loss.mean() - 1) < 0.03


def test_the_loss_is_the_denoisers_error_in_units_of_out():

    def net(x, t, condition):
        return torch.tanh(x) * t[:, None, None, None]

    x, draw = (
        torch.randn(4, 3, 8, 8, generator=seeded("x")),
        EDM.draw(torch.Size((4, 3, 8, 8)), seeded("draw")),
    )
    answer = EDM.denoiser(net)(noised(EDM.schedule, x, draw.t, draw.noise), draw.t, None)
    error = ((answer - x) / EDM.scales(draw.t, x)[2]).square().mean((1, 2, 3))
    torch.testing.assert_close(EDM.loss(net, x, None, draw), error, rtol=1e-3, atol=1e-4)
    calm = draw._replace(t=torch.zeros(4))
    assert torch.isfinite(EDM.loss(net, x, None, calm)).all()
    assert torch.equal(EDM.denoiser(net)(x, calm.t, None), x)


def test_levels_are_drawn_log_normally():
    t = EDM.draw(torch.Size((20_000, 1)), seeded("levels")).t.double()
    log = EDM.schedule.sigma(t).log()
    assert abs(log.median() + 0.8) < 0.05
    assert abs(log.quantile(0.841) - log.median() - 1.6) < 0.05


def test_the_answer_of_zero_is_the_best_denoiser_of_a_normal_law():
    zero = EDM.denoiser(lambda x, t, c: torch.zeros_like(x))
    exact = Exact(
        unconditional(Mixture(torch.zeros(1), torch.zeros(1, 3), torch.full((1, 3), 0.25))),
        EDM.schedule,
    )
    x, t = torch.randn(8, 3, generator=seeded("x")), torch.linspace(0, 1, 8)
    torch.testing.assert_close(zero(x, t, None), exact(x, t, None))


def test_heun_follows_the_flow_of_a_normal_law_to_second_order():
    zero, noise = (
        EDM.denoiser(lambda x, t, c: torch.zeros_like(x)),
        torch.ones(1, 1, dtype=torch.float64),
    )
    high = EDM.schedule.sigma(torch.tensor(1.0)).item()

    def off(solver):
        end = solver.sample(zero, EDM.schedule, noise, None)
        return abs(end * math.hypot(0.5, high) / (0.5 * high) - 1)

    assert off(Heun(18)) < 0.05
    assert off(Heun(36)) < off(Heun(18)) / 3
    assert off(Heun(18)) < off(Euler(36))


@pytest.mark.parametrize(
    "solver", [Heun(24), Euler(100), Ancestral(100)], ids=lambda s: type(s).__name__
)
def test_the_solvers_sample_a_mixture(solver):
    denoiser = Exact(unconditional(TWO), EDM.schedule)
    found = solver.sample(
        denoiser, EDM.schedule, torch.randn(4000, 2, generator=seeded("n")), None, seeded("rng")
    )
    right = found[:, 0] > 0
    assert abs(right.float().mean() - 0.7) < 0.03
    assert (found[right].mean(0) - TWO.mean[1]).abs().max() < 0.02
    assert (found[right].std(0) - 0.1).abs().max() < 0.02


@pytest.mark.parametrize("config", NETS, ids=lambda c: type(c).__name__)
def test_networks_with_a_layout_train_and_sample(config):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = config.build(List(), (3, 16, 16))
    x, draw = (
        torch.randn(4, 3, 16, 16, generator=seeded("x")),
        EDM.draw(torch.Size((4, 3, 16, 16)), seeded("draw")),
    )
    loss = EDM.loss(net, x, LAYOUT, draw)
    assert loss.shape == (4,)
    loss.mean().backward()
    assert all(p.grad is not None for p in net.layout.parameters())
    with torch.no_grad():
        out = EDM.sample(net, (3, 16, 16), LAYOUT, seeded("s"), Heun(3))
        guided = Guided(EDM.denoiser(net), 2.0)
        assert (
            EDM.follow(guided, (3, 16, 16), LAYOUT, seeded("s"), Euler(2)).shape
            == out.shape
            == x.shape
        )
    assert torch.equal(out, EDM.sample(net, (3, 16, 16), LAYOUT, seeded("s"), Heun(3)))


def test_balance_weights_patches_with_and_without_a_location():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = LocalConfig(4, 1, 16, 2, 2).build(Grid(cells=4), (3, 16, 16))
    layout = Layout.of(torch.tensor([[[0.1, 0.1]], [[0.6, 0.6]], [[0.1, 0.9]]])).keep(
        torch.tensor([[1], [1], [0]]).bool()
    )
    x, draw = (
        torch.randn(3, 3, 16, 16, generator=seeded("x")),
        EDM.draw(torch.Size((3, 3, 16, 16)), seeded("draw")),
    )
    seen = net.sees(layout)[:, None].expand(-1, 3, -1, -1)
    error = (
        Edm().scales(draw.t, x)[0]
        * (EDM.schedule.sigma(draw.t)[:, None, None, None] / 0.5 * x - 0.5 * draw.noise)
    ) ** 2
    for balance in (0.0, 0.5, 0.8):
        loss = Edm(balance=balance).loss(net, x, layout, draw)
        for i in range(2):
            parts = error[i][seen[i]].mean(), error[i][~seen[i]].mean()
            torch.testing.assert_close(loss[i], balance * parts[0] + (1 - balance) * parts[1])
        torch.testing.assert_close(loss[2], error[2].mean())
    whole = LocalConfig(4, 3, 16, 2, 2).build(Grid(cells=4), (3, 16, 16))
    torch.testing.assert_close(
        Edm(balance=0.5).loss(whole, x, layout, draw), Edm().loss(whole, x, layout, draw)
    )
    with pytest.raises(UsageError, match="balance needs a local network"):
        Edm(balance=0.5).loss(lambda *a: x, x, layout, draw)


@pytest.mark.parametrize(
    "make", [lambda: Karras(low=0.0), lambda: Edm(data=0.0), lambda: Edm(balance=1.5)]
)
def test_impossible_settings_are_refused(make):
    with pytest.raises(ValueError, match=r"low|data|balance"):
        make()


def test_the_config_goes_through_json():
    config = Edm(Karras(high=40.0), balance=0.5)
    assert from_json(to_json(config)) == config


def test_every_batch_holds_the_whole_law_of_noise_levels():
    """EDM2's law for pictures of any standard deviation, quantile by quantile."""
    for data in (0.26, 0.5):
        edm = Edm.edm2(data)
        sigma = edm.schedule.sigma(edm.draw(torch.Size((64, 1)), seeded("law")).t).sort().values
        assert (sigma[31] / data, sigma[32] / data) == pytest.approx((0.9, 0.9), rel=0.1)
        z = (sigma.log() - edm.centre) / edm.width
        quantiles = torch.special.ndtri((torch.arange(64) + 0.5) / 64)
        assert (z - quantiles)[4:-4].abs().max() < 0.15


LAW = mixture(
    torch.zeros(8), torch.randn(8, 6, generator=seeded("law")), 0.01 * torch.eye(6).expand(8, 6, 6)
)
DOUBLE = Mixture(*(None if part is None else part.double() for part in vars(LAW).values()))


def reference(noise: torch.Tensor, steps: int, rho: float = 7.0) -> torch.Tensor:
    """Karras et al., algorithm 1 without churn, written from the paper: levels, slopes and all."""
    ends = [level ** (1 / rho) for level in (80.0, 0.002)]
    levels = [(ends[0] + i / (steps - 1) * (ends[1] - ends[0])) ** rho for i in range(steps)]
    x = levels[0] * noise
    for high, low in zip(levels, [*levels[1:], 0.0], strict=True):
        slope = (x - DOUBLE.denoise(x, 1.0, high)) / high
        guess = x + (low - high) * slope
        if low:
            again = (guess - DOUBLE.denoise(guess, 1.0, low)) / low
            guess = x + (low - high) * (slope + again) / 2
        x = guess
    return x


def answers_averaged(noise: torch.Tensor, steps: int) -> torch.Tensor:
    """Heun's method with the mean of the answers in place of slopes."""
    schedule, x = Karras(), Karras().sigma(torch.ones((), dtype=noise.dtype)) * noise
    exact = Exact(unconditional(DOUBLE), schedule)
    times = torch.linspace(1, 0, steps + 1, dtype=noise.dtype)
    for t, s in zip(times[:-1], times[1:], strict=True):
        first = exact(x, t.expand(len(x)))
        guess = advance(schedule, x, first, t, s)
        if s:
            mean = (first + exact(guess, s.expand(len(x)))) / 2
            guess = advance(schedule, x, mean, t, s)
        x = guess
    return x


def test_heun_is_as_exact_as_the_reference_and_the_table_in_the_docs_says_so():
    """On an exact mixture of eight modes in six dimensions; root mean square error against 400
    steps of the reference."""
    noise = torch.randn(600, 6, generator=seeded("noise"), dtype=torch.float64)
    truth, table = reference(noise, 400), []
    for steps in (10, 20, 40):
        own = Heun(steps).sample(Exact(unconditional(DOUBLE), Karras()), Karras(), noise, None)
        each = (own, reference(noise, steps), answers_averaged(noise, steps))
        ours, theirs, before = (float((x - truth).square().mean().sqrt()) for x in each)
        assert ours <= 1.05 * theirs
        assert ours < 0.9 * before
        table.append(f"| {steps} | {ours:.3f} | {theirs:.3f} | {before:.3f} |")
    page = (Path(__file__).parents[1] / "docs" / "scenes.md").read_text()
    missing = [line for line in table if line not in page]
    assert not missing
