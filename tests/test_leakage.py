"""Amplitudes of objects: exact on made-up denoisers and on an exact law, and they predict what a
sum shows."""

import pytest
import torch

from recombine.config import UsageError
from recombine.metrics.leakage import Leakage, Objects, leakages
from recombine.objectives.compose import OneByOne
from recombine.objectives.edm import Karras
from recombine.rng import seeded
from recombine.worlds.layout import Layout

SIDE, COUNT, SLOTS = 4, 6, 3
SCHEDULE = Karras(high=20.0)


@pytest.fixture(scope="module")
def objects() -> Objects:
    """Objects in columns of their own, over random floors. The last picture has two, and rubbish in
    its third slot."""
    rng = seeded(0, "leakage test")
    floor = torch.randn(COUNT, 2, SIDE, SLOTS, generator=rng, dtype=torch.float64)
    each = torch.randn(COUNT, SLOTS, 2, SIDE, SLOTS, generator=rng, dtype=torch.float64)
    columns = torch.eye(SLOTS, dtype=torch.bool)[None, :, None, None, :]
    pixels = columns[:, :, 0].expand(COUNT, -1, SIDE, -1).clone()
    pixels[-1, -1] = False
    x = floor + (each * columns * pixels[:, :, None]).sum(1)
    return Objects(x, torch.where(columns, floor[:, None], x[:, None]), pixels)


@pytest.fixture(scope="module")
def layout() -> Layout:
    present = torch.ones(COUNT, SLOTS, dtype=torch.bool)
    present[-1, -1] = False
    return Layout(torch.full((COUNT, SLOTS, 2), 0.5, dtype=torch.float64), present)


def showing(objects: Objects, own: float, others: float, unconditional: float):
    """A denoiser that shows so much of each object, whatever the noise."""
    parts, amounts = (
        objects.x[:, None] - objects.without,
        torch.tensor([own, others, unconditional], dtype=torch.float64),
    )

    def denoiser(x, t, condition):
        given = condition.present.any(1, keepdim=True)
        much = amounts[torch.where(condition.present, 0, torch.where(given, 1, 2))]
        rows = torch.cdist(x.flatten(1), objects.x.flatten(1)).argmin(
            1
        )  # pictures may come several times
        floor = objects.x - parts.sum(1)
        return floor[rows] + (much[:, :, None, None, None] * parts[rows]).sum(1)

    return denoiser


@pytest.mark.parametrize(
    "shown", [(1.0, 0.0, 0.0), (0.9, 0.3, 0.1), (1.0, 0.1, 0.6), (0.2, -0.4, 1.3)]
)
def test_what_is_shown_is_what_is_measured_and_predicts_the_sum(objects, layout, shown):
    model = showing(objects, *shown)
    (level,) = leakages(model, model, SCHEDULE, objects, layout, (0.001,), seeded(1))
    assert (level.own, level.others, level.unconditional) == pytest.approx(shown, abs=1e-9)
    assert level.sigma == pytest.approx(
        SCHEDULE.sigma(torch.tensor(0.001, dtype=torch.float64)).item()
    )
    t = torch.full((COUNT,), 0.001, dtype=torch.float64)
    amplitude = objects.shown(OneByOne(model)(objects.x, t, layout)) / objects.contrast
    for k, some in ((SLOTS, amplitude[:-1]), (SLOTS - 1, amplitude[-1:, :-1])):
        assert some.flatten().tolist() == pytest.approx([level.amplitude(k)] * some.numel())


def test_the_background_may_be_another_model(objects, layout):
    models = showing(objects, 1.0, 0.3, 0.7), showing(objects, 9.0, 9.0, 0.1)
    (level,) = leakages(*models, SCHEDULE, objects, layout, (0.001,), seeded(1))
    assert level.leakage == pytest.approx(0.2)


@pytest.mark.parametrize("empty", [True, False])
def test_where_every_picture_holds_one_object_the_sum_of_two_shows_half_of_each(empty):
    """Exact denoisers of a world with one object in one of eight pixels. Conditioned on one, the
    output is that picture, whatever the input. Unconditional, it is empty, or (Bayes) one of the
    two in the input."""
    width, count = 8, 512
    shown = torch.zeros(count, 1, 1, width, dtype=torch.float64)
    shown[..., 2] = shown[..., 5] = 1.0
    own = torch.eye(width, dtype=torch.float64)[[2, 5]]
    objects = Objects(
        shown, shown[:, None] - own[:, None, None], (own > 0)[:, None].expand(count, -1, 1, -1)
    )

    def denoiser(x, t, condition):
        at = (torch.tensor([2, 5]) * condition.present).sum(1)
        one_of = torch.softmax(x[:, 0, 0] / SCHEDULE.sigma(t)[:, None] ** 2, 1)
        given = torch.eye(width, dtype=torch.float64)[at]
        unconditional = torch.zeros_like(one_of) if empty else one_of
        return torch.where(condition.present.any(1, keepdim=True), given, unconditional)[
            :, None, None
        ]

    locations = Layout(
        torch.zeros(count, 2, 2, dtype=torch.float64), torch.ones(count, 2, dtype=torch.bool)
    )
    (level,) = leakages(denoiser, denoiser, SCHEDULE, objects, locations, (0.15,), seeded(2))
    assert (level.own, level.others) == (1.0, 0.0)
    assert level.amplitude(2) == pytest.approx(1.0 if empty else 0.5, abs=0.02)


def test_amplitudes_grow_with_every_further_part():
    assert [Leakage(0.5, 1.0, 0.9, 0.4, 0.2).amplitude(k) for k in (1, 2, 6)] == pytest.approx(
        [0.9, 1.1, 1.9]
    )


def test_what_cannot_leak_gets_one_clear_line(objects, layout):
    model = showing(objects, 1.0, 0.0, 0.0)
    with pytest.raises(UsageError, match="two objects or more"):
        leakages(
            model,
            model,
            SCHEDULE,
            objects,
            layout.keep(torch.arange(SLOTS)[None] == 0),
            (0.5,),
            seeded(0),
        )
    with pytest.raises(UsageError, match="at least one"):
        leakages(model, model, SCHEDULE, objects, layout, (), seeded(0))
    same = Objects(objects.x, objects.x[:, None].expand_as(objects.without), objects.pixels)
    with pytest.raises(UsageError, match="the same"):
        leakages(model, model, SCHEDULE, same, layout, (0.5,), seeded(0))
