"""The slope: how far the trend inside one composition reaches towards another."""

import pytest
import torch

from recombine.metrics.slope import enough, slope, trend
from recombine.rng import seeded
from recombine.worlds.shapes2d import Shapes2D


def values(centre: tuple[float, ...], spread: float, name: str) -> torch.Tensor:
    return torch.tensor(centre) + spread * (
        2 * torch.rand(500, len(centre), generator=seeded(name)) - 1
    )


def test_it_is_one_where_latents_are_linear_whatever_else_varies_and_half_where_they_bend():
    mix, rng = torch.randn(2, 3, 4, 4, generator=seeded("mix")), seeded("noise")
    line = lambda v: torch.einsum("nv,v...->n...", v, mix)  # noqa: E731
    here, there = values((0.1, 0.5), 0.05, "a"), values((0.9, 0.5), 0.05, "b")
    assert slope(trend(line(here), here), trend(line(there), there)) == pytest.approx(
        (1, 1, 1), abs=1e-5
    )
    noisy = lambda v: line(v) + 0.1 * torch.randn(500, 3, 4, 4, generator=rng)  # noqa: E731
    assert slope(trend(noisy(here), here), trend(noisy(there), there)).slope == pytest.approx(
        1, abs=0.1
    )
    faster = lambda v: line(v) * torch.where(v[:, :1] > 0.5, 2.0, 1.0).view(-1, 1, 1, 1)  # noqa: E731
    flat = lambda v: line(torch.stack((v[:, 0], torch.zeros(500)), 1))  # noqa: E731
    doubled = lambda v: faster(torch.stack((v[:, 0] - 0.1, torch.zeros(500)), 1))  # noqa: E731
    assert slope(trend(flat(here), here), trend(flat(there), there)).slope == pytest.approx(
        1, abs=1e-5
    )
    assert slope(trend(doubled(here), here), trend(doubled(there), there)).slope == pytest.approx(
        0.5, abs=0.01
    )


def test_it_is_zero_where_nothing_varies_or_where_what_varies_is_thrown_away():
    mix = torch.randn(1, 6, generator=seeded("mix"))
    same = torch.full((500, 1), 0.1)
    there = values((0.9,), 0.05, "b")
    assert slope(trend(same @ mix, same), trend(there @ mix, there)) == (0, 0, 0)
    here = values((0.1,), 0.05, "a")
    rounded = lambda v: v.round() @ mix  # noqa: E731
    assert slope(trend(rounded(here), here), trend(rounded(there), there)).slope == pytest.approx(
        0, abs=1e-9
    )


def test_it_overshoots_where_codes_change_at_one_border_inside_the_class():
    here, there = values((0.1,), 0.05, "a"), values((0.9,), 0.05, "b")
    steps = lambda v: (v > 0.1).float() + (v > 0.5).float()  # noqa: E731
    assert slope(trend(steps(here), here), trend(steps(there), there)).slope > 3


def test_pixels_are_linear_in_colour_and_a_world_without_values_has_no_trend():
    world = Shapes2D(size=16, wander=0.3)
    red, blue = (
        world.render(torch.tensor([c] * 600), seeded("pictures")) for c in ((1, 0, 0), (1, 1, 0))
    )
    assert slope(trend(*red), trend(*blue)).slope == pytest.approx(1, abs=0.1)
    assert trend(red.images, red.values[:, :0]).change.shape == (0, 3 * 16 * 16)


def test_units_do_not_matter_and_a_trend_to_the_side_is_long_but_leads_nowhere():
    here, there = values((0.1, 0.5), 0.05, "a"), values((0.9, 0.5), 0.05, "b")
    units, mix = torch.tensor([1e4, 1e-3]), torch.eye(2)
    other = lambda v: trend(v @ mix, v * units)  # noqa: E731
    assert slope(other(here), other(there)) == pytest.approx((1, 1, 1), abs=1e-4)

    def turned(v):
        return torch.stack(
            (v[:, 0].round(), 3 * v[:, 0].where(v[:, 0] < 0.5, torch.tensor(0.1))), 1
        )

    found = slope(trend(turned(here), here), trend(turned(there), there))
    assert abs(found.slope) < 0.05
    assert found.length == pytest.approx(3 * 0.8, rel=0.02)


def test_few_different_pictures_are_not_enough_however_often_they_are_drawn():
    few = values((0.1, 0.5), 0.05, "a")[:20]
    assert not enough(few.repeat(50, 1))
    assert enough(values((0.1, 0.5), 0.05, "a"))


def test_the_slope_of_known_latents_is_as_before():
    values = torch.randn(40, 2, generator=seeded("v"))
    latents = torch.randn(40, 5, generator=seeded("z")) + values @ torch.ones(2, 5)
    here, there = trend(latents[:20], values[:20]), trend(latents[20:], values[20:])
    found = slope(here, there)
    assert (found.slope, found.length, found.cosine) == pytest.approx(
        (0.187823, 0.486173, 0.38633), abs=1e-5
    )
    assert here.change[0].tolist() == pytest.approx(
        [0.78839, 1.03439, 0.81561, 0.8278, 0.84702], abs=1e-4
    )


@pytest.mark.parametrize(("different", "numbers", "said"), [
    (29, 2, False), (30, 2, True), (19, 1, False), (20, 1, True), (40, 0, False),
])  # fmt: skip
def test_ten_pictures_for_each_number_that_is_fitted_are_enough(different, numbers, said):
    rows = torch.arange(different * numbers, dtype=torch.float32).reshape(different, numbers)
    assert enough(rows.repeat(2, 1)) is said
