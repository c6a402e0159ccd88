"""Detectors on curves made by hand."""

import math

import pytest
import torch

from recombine.theory import detect, flow
from recombine.theory.sim import IdentityMapping


def curve(*values: float) -> torch.Tensor:
    return torch.tensor([values], dtype=torch.float64)


@pytest.mark.parametrize(
    ("loss", "rise", "count", "turns"),
    [
        (curve(4, 3, 2, 1, 0), 0.0, 1, []),
        (curve(4, 2, 1, 2, 0), 0.25, 2, [2, 3]),
        (curve(4, 1, 3, 2, 3.5, 0), 2.5 / 4, 3, [1, 2, 3, 4]),
        (curve(4, 2, 2.003, 0), 0.003 / 4, 1, []),
        (curve(4, 4, 4), 0.0, 0, []),
        (curve(2, 3, 1), 0.5, 1, [1]),
        (curve(4, 2, 3), 0.25, 1, [1]),
    ],
)
def test_rise_descents_and_turns(loss, rise, count, turns):
    assert float(detect.relative_rise(loss)) == pytest.approx(rise)
    assert int(detect.descents(loss)) == count
    assert [t for t in detect.turns(loss[0]) if t] == turns


def test_rise_and_descents_do_not_depend_on_the_unit():
    loss = torch.rand(20, 50, dtype=torch.float64) + 0.1
    assert torch.allclose(detect.relative_rise(loss), detect.relative_rise(7 * loss))
    assert torch.equal(detect.descents(loss), detect.descents(7 * loss))


def test_turns_and_descents_agree():
    steps = torch.randn(30, 80, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    loss = steps.cumsum(1).abs() + 1
    loss[:, 0] = 50
    counts = [1 + sum(1 for _ in detect.turns(row)) // 2 for row in loss]
    assert detect.descents(loss).tolist() == counts


def test_swing_by_must_be_learned_in_the_end():
    assert detect.swings_by(curve(4, 1, 2, 0)).tolist() == [True]
    assert detect.swings_by(curve(4, 1, 2, 1)).tolist() == [False]
    assert detect.swings_by(curve(4, 2, 1, 0)).tolist() == [False]


def test_learning_times_between_samples_and_never():
    t = torch.tensor([0.0, 1, 2, 3]).double()
    value = torch.tensor([[0.0, 1, 0], [0.4, 1, 0], [1.2, 1, 0.1], [1.2, 1, 0.2]]).double()[None]
    times = detect.learning_times(t, value, torch.ones(3).double())[0]
    assert times.tolist() == pytest.approx([1.5, 0.0, math.inf])
    assert detect.order(times[None]).tolist() == [[1, 0, 2]]


def test_equal_concepts_keep_their_index_order():
    assert detect.order(torch.tensor([[2.0, 1.0, 1.0, 2.0]])).tolist() == [[1, 2, 0, 3]]


def test_stages_of_the_reference_run():
    task = IdentityMapping((1.0, 2.0))
    path = flow.flow(flow.root(flow.correlated(0.01, 0.9, 2))[None], task.a[None], 0.01, 1200)
    story = detect.stages(path.t, path.w[0], task.a, 2)
    assert [(s.name, s.entry, s.by) for s in story] == [
        ("initial growth", "all", ""),
        ("growth", "w22", ""),
        ("suppression", "w12", "w22"),
        ("growth", "w11", ""),
    ]
    assert story[0].end == story[2].start == pytest.approx(1.45, abs=0.02)
    assert story[3].start > story[2].start


def test_no_suppression_where_there_is_nothing_to_suppress():
    task = IdentityMapping((1.0, 2.0))
    path = flow.flow(flow.root(flow.correlated(0.01, 0.0, 2))[None], task.a[None], 0.01, 600)
    assert "suppression" not in [s.name for s in detect.stages(path.t, path.w[0], task.a, 2)]


def test_ordered_pairs_of_a_hand_made_square():
    corners = [(0, 0), (0, 1), (1, 0), (1, 1)]
    losses = torch.tensor([[9.0, 1, 2, 3], [0, 4, 2, 3], [0, 4, 4, 3]])
    assert detect.ordered_pairs(losses, corners).tolist() == [1.0, 0.5, 0.0]
    assert detect.ordered_pairs(losses, corners, slack=1.0).tolist() == [1.0, 1.0, 1.0]


def test_pairs_of_corners_are_ordered_as_often_as_their_losses_are():
    corners = [(0, 0), (1, 0), (0, 1), (1, 1)]
    loss = torch.tensor([[9.0, 1.0, 2.0, 3.0], [0.0, 1.0, 4.0, 3.0], [0.0, 5.0, 4.0, 3.5]])
    assert detect.ordered_pairs(loss, corners).tolist() == [1.0, 0.5, 0.0]
    assert detect.ordered_pairs(loss, corners, slack=1.0).tolist() == [1.0, 1.0, 0.5]
    assert detect.ordered_pairs(loss[:, :2], corners[:2]).tolist() == [1.0, 1.0, 1.0]
