"""Amplitudes of objects in answers: exact on made-up answers and on an exact law, and they foretell what a sum shows."""

import pytest
import torch

from recombine.config import UsageError
from recombine.measure.echo import Echo, Objects, echoes
from recombine.objectives.compose import OneByOne
from recombine.objectives.edm import Karras
from recombine.rng import seeded
from recombine.worlds.places import Places

SIDE, COUNT, SLOTS = 4, 6, 3
SCHEDULE = Karras(high=20.0)


@pytest.fixture(scope="module")
def objects() -> Objects:
    """Objects in columns of their own, over random floors. The last picture has two, and rubbish in its third slot."""
    rng = seeded(0, "echo test")
    floor = torch.randn(COUNT, 2, SIDE, SLOTS, generator=rng, dtype=torch.float64)
    each = torch.randn(COUNT, SLOTS, 2, SIDE, SLOTS, generator=rng, dtype=torch.float64)
    columns = torch.eye(SLOTS, dtype=torch.bool)[None, :, None, None, :]
    pixels = columns[:, :, 0].expand(COUNT, -1, SIDE, -1).clone()
    pixels[-1, -1] = False
    x = floor + (each * columns * pixels[:, :, None]).sum(1)
    return Objects(x, torch.where(columns, floor[:, None], x[:, None]), pixels)


@pytest.fixture(scope="module")
def places() -> Places:
    present = torch.ones(COUNT, SLOTS, dtype=torch.bool)
    present[-1, -1] = False
    return Places(torch.full((COUNT, SLOTS, 2), 0.5, dtype=torch.float64), present)


def showing(objects: Objects, own: float, others: float, untold: float):
    """A denoiser that shows so much of each object, whatever the noise."""
    parts, amounts = objects.x[:, None] - objects.without, torch.tensor([own, others, untold], dtype=torch.float64)

    def answer(x, t, asked):
        told = asked.present.any(1, keepdim=True)
        much = amounts[torch.where(asked.present, 0, torch.where(told, 1, 2))]
        rows = torch.cdist(x.flatten(1), objects.x.flatten(1)).argmin(1)  # pictures may come several times
        floor = objects.x - parts.sum(1)
        return floor[rows] + (much[:, :, None, None, None] * parts[rows]).sum(1)

    return answer


@pytest.mark.parametrize("shown", [(1.0, 0.0, 0.0), (0.9, 0.3, 0.1), (1.0, 0.1, 0.6), (0.2, -0.4, 1.3)])
def test_what_is_shown_is_what_is_measured_and_foretells_the_sum(objects, places, shown):
    model = showing(objects, *shown)
    (found,) = echoes(model, model, SCHEDULE, objects, places, (0.001,), seeded(1))
    assert (found.own, found.others, found.untold) == pytest.approx(shown, abs=1e-9)
    assert found.sigma == pytest.approx(SCHEDULE.sigma(torch.tensor(0.001, dtype=torch.float64)).item())
    t = torch.full((COUNT,), 0.001, dtype=torch.float64)
    amplitude = objects.shown(OneByOne(model)(objects.x, t, places)) / objects.contrast
    for k, some in ((SLOTS, amplitude[:-1]), (SLOTS - 1, amplitude[-1:, :-1])):
        assert some.flatten().tolist() == pytest.approx([found.amplitude(k)] * some.numel())


def test_the_background_may_be_another_model(objects, places):
    models = showing(objects, 1.0, 0.3, 0.7), showing(objects, 9.0, 9.0, 0.1)
    (found,) = echoes(*models, SCHEDULE, objects, places, (0.001,), seeded(1))
    assert found.echo == pytest.approx(0.2)


@pytest.mark.parametrize("empty", [True, False])
def test_where_every_picture_holds_one_object_the_sum_of_two_shows_half_of_each(empty):
    """Exact denoisers of a world with one object at one of eight places. Told of one, an answer is that picture, whatever it
    sees. Told of nothing it is empty, or (Bayes) one of the two that are seen."""
    places, count = 8, 512
    shown = torch.zeros(count, 1, 1, places, dtype=torch.float64)
    shown[..., 2] = shown[..., 5] = 1.0
    own = torch.eye(places, dtype=torch.float64)[[2, 5]]
    objects = Objects(shown, shown[:, None] - own[:, None, None], (own > 0)[:, None].expand(count, -1, 1, -1))

    def answer(x, t, asked):
        at = (torch.tensor([2, 5]) * asked.present).sum(1)
        one_of = torch.softmax(x[:, 0, 0] / SCHEDULE.sigma(t)[:, None] ** 2, 1)
        told = torch.eye(places, dtype=torch.float64)[at]
        untold = torch.zeros_like(one_of) if empty else one_of
        return torch.where(asked.present.any(1, keepdim=True), told, untold)[:, None, None]

    marks = Places(torch.zeros(count, 2, 2, dtype=torch.float64), torch.ones(count, 2, dtype=torch.bool))
    (found,) = echoes(answer, answer, SCHEDULE, objects, marks, (0.15,), seeded(2))
    assert (found.own, found.others) == (1.0, 0.0)
    assert found.amplitude(2) == pytest.approx(1.0 if empty else 0.5, abs=0.02)


def test_amplitudes_grow_with_every_further_part():
    assert [Echo(0.5, 1.0, 0.9, 0.4, 0.2).amplitude(k) for k in (1, 2, 6)] == pytest.approx([0.9, 1.1, 1.9])


def test_what_cannot_have_an_echo_gets_one_clear_line(objects, places):
    model = showing(objects, 1.0, 0.0, 0.0)
    with pytest.raises(UsageError, match="two objects or more"):
        echoes(model, model, SCHEDULE, objects, places.keep(torch.arange(SLOTS)[None] == 0), (0.5,), seeded(0))
    with pytest.raises(UsageError, match="at least one"):
        echoes(model, model, SCHEDULE, objects, places, (), seeded(0))
    same = Objects(objects.x, objects.x[:, None].expand_as(objects.without), objects.pixels)
    with pytest.raises(UsageError, match="the same"):
        echoes(model, model, SCHEDULE, same, places, (0.5,), seeded(0))
