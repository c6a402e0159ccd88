import pytest
import torch
from torch import nn

from recombine.config import UsageError
from recombine.metrics.violation import interaction, jacobian, lcs_violation, pixel_masks
from recombine.objectives.process import Flow
from recombine.rng import seeded
from recombine.theory.mixtures import Exact, condition_of
from recombine.theory.projective import (
    Joint,
    Projective,
    Tilted,
    joined,
    random_mixture,
    random_projective,
)

CPC = random_projective(3, 2, 2, 2, 2, seeded(0, "cpc"))
MASKS = pixel_masks(CPC.sets, (8,))


def at(count: int = 16, shape: tuple[int, ...] = (8,)) -> tuple[torch.Tensor, torch.Tensor]:
    x = 2 * torch.randn(count, *shape, generator=seeded(1, "x"), dtype=torch.float64)
    return x, torch.linspace(0.2, 0.8, count, dtype=torch.float64)


@pytest.mark.parametrize("prompted", [(0, 1, 0), (1, None, None), (None, 0, 1)])
def test_a_composition_is_local_and_a_tilted_one_is_not(prompted):
    x, t = at()
    local = lcs_violation(Exact(Joint(CPC), Flow()), MASKS, x, t, condition_of(prompted, 16))
    assert (
        max(local.worst_pixel, local.worst_condition, local.pixel_share, local.condition_share)
        < 1e-9
    )
    assert local.pixels.diagonal()[[v is not None for v in prompted] + [True]].min() > 1e-3
    tilted = lcs_violation(Exact(Tilted(CPC, 1.0), Flow()), MASKS, x, t, condition_of(prompted, 16))
    assert tilted.condition_share > 0.01
    assert tilted.pixel_share > 1e-3


def test_a_background_may_tie_its_own_pixels():
    """Active sets depend on nothing foreign; pixels of the rest depend on each other."""
    rng = seeded(2, "tied")
    tied = Projective(CPC.sets, CPC.parts, random_mixture(3, 8, rng))
    x, t = at()
    seen = lcs_violation(Exact(Joint(tied), Flow()), MASKS, x, t, condition_of((0, 1, None), 16))
    assert seen.worst_pixel < 1e-9
    foreign = seen.conditions[:3].clone().fill_diagonal_(0)
    assert foreign[:2].max() < 1e-18
    assert seen.conditions[3].max() > 1e-6


def test_blocks_sum_the_jacobian_and_probes_estimate_them():
    x, t = at(8)
    denoiser, condition = Exact(Tilted(CPC, 1.0), Flow()), condition_of((0, 1, 0), 8)
    whole = jacobian(denoiser, x, t, condition)
    exact = lcs_violation(denoiser, MASKS, x, t, condition)
    torch.testing.assert_close(exact.pixels[0, 1], whole[:, :2, 2:4].square().sum((1, 2)).mean())
    torch.testing.assert_close(exact.pixels.sum(), whole.square().sum((1, 2)).mean())
    probed = lcs_violation(denoiser, MASKS, x, t, condition, probes=200, rng=seeded(0, "probes"))
    torch.testing.assert_close(probed.pixels, exact.pixels, rtol=0.2, atol=1e-3)


def test_jacobian_against_differences():
    x, t = at(2)
    denoiser, condition = Exact(Tilted(CPC, 1.0), Flow()), condition_of((0, 1, 0), 2)
    step = 1e-5 * torch.eye(8, dtype=torch.float64)[3]
    slope = (denoiser(x + step, t, condition) - denoiser(x - step, t, condition)) / 2e-5
    torch.testing.assert_close(
        jacobian(denoiser, x, t, condition)[:, :, 3], slope, rtol=1e-5, atol=1e-7
    )


class Net(nn.Module):
    """A random network on pictures: all pixels and conditions mixed, or each channel for itself."""

    def __init__(self, mixed: bool) -> None:
        super().__init__()
        self.mixed = mixed
        self.table = nn.Parameter(torch.randn(2, generator=seeded(0, "table")), requires_grad=False)
        self.kernel = nn.Parameter(
            torch.randn(2, 2, 3, 3, generator=seeded(0, "kernel")), requires_grad=False
        )

    def forward(self, x, t, condition):
        push = (condition.present * self.table)[:, :, None, None]
        kernel = self.kernel if self.mixed else self.kernel * torch.eye(2)[:, :, None, None]
        push = push.sum(1, keepdim=True) if self.mixed else push
        return torch.tanh(nn.functional.conv2d(x, kernel, padding=1) + push)


@pytest.mark.parametrize("probes", [None, 8])
def test_trained_networks_are_measured_alike(probes):
    x, t = torch.randn(4, 2, 3, 3, generator=seeded(3, "x")), torch.full((4,), 0.5)
    masks = torch.zeros(2, 2, 3, 3, dtype=torch.bool)
    masks[0, 0] = masks[1, 1] = True
    condition = condition_of((0, 0), 4)
    mixed, apart = (
        lcs_violation(Net(m), masks, x, t, condition, probes, seeded(0, "p")) for m in (True, False)
    )
    assert (
        apart.pixel_share
        == apart.condition_share
        == apart.worst_pixel
        == apart.worst_condition
        == 0
    )
    assert mixed.pixel_share > 0.2
    assert mixed.condition_share > 0.2
    per_picture = lcs_violation(Net(True), masks.expand(4, -1, -1, -1, -1), x, t, condition)
    torch.testing.assert_close(per_picture.conditions, mixed.conditions)


def test_the_integrated_score_says_whether_the_density_splits():
    x, _ = at()
    t, y, condition = (
        torch.full((16,), 0.4, dtype=torch.float64),
        x.roll(1, 0),
        condition_of((0, 1, 0), 16),
    )
    assert (
        interaction(Exact(Joint(CPC), Flow()), Flow(), MASKS[0], x, y, t, condition).abs().max()
        < 1e-9
    )
    tilted = Tilted(CPC, 1.0)
    law = joined(tilted((0, 1, 0)))
    corner = lambda a, b: law.log_density(torch.where(MASKS[0], a, b), 0.6, 0.4)  # noqa: E731
    exact = corner(y, y) - corner(x, y) - corner(y, x) + corner(x, x)
    found = interaction(Exact(tilted, Flow()), Flow(), MASKS[0], x, y, t, condition, nodes=80)
    torch.testing.assert_close(found, exact, rtol=1e-4, atol=1e-4)
    assert exact.abs().max() > 0.1


def test_masks_that_do_not_fit_are_refused():
    x, t = at(4)
    with pytest.raises(UsageError, match="do not fit"):
        lcs_violation(Exact(CPC, Flow()), MASKS[:2], x, t, condition_of((0, 1, 0), 4))
    with pytest.raises(UsageError, match="overlap"):
        lcs_violation(Exact(CPC, Flow()), MASKS | MASKS[:1], x, t, condition_of((0, 1, 0), 4))
