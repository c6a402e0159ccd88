"""The exact model where labels are left out of training, against many small steps on the pictures
themselves; and that the claims of `missing-labels` can fail."""

import itertools
import math
from pathlib import Path

import pytest
import torch
from level_rows import accuracy_rows, verdict
from tiny import QUIET

from recombine.analysis.claims import assess
from recombine.analysis.missing_labels import CLAIMS, first_time_below, over_time
from recombine.analysis.table import Table
from recombine.overrides import override
from recombine.pipeline.job import Work
from recombine.plots.missing_labels import over_time as plot_over_time
from recombine.runs.interactions import SEEN, UNSEEN, corners
from recombine.studies import missing_labels
from recombine.studies.missing_labels import MissingLabels
from recombine.theory.products import Corner, Products

TIMES = (0.1, 1.0, 10.0, 1e3, 1e5, math.inf)
EXACT = tuple(claim for claim in CLAIMS if not claim.trained)


def pictures(share: float, dropped: str) -> list[tuple[tuple, tuple, float]]:
    """What the model sees (None = missing), what it should say, how often."""
    none, every = (False,) * 3, (True,) * 3
    how_often = {none: 1 - share, every: share}
    if dropped != "together":
        masks = itertools.product((False, True), repeat=3)
        how_often = {m: share ** sum(m) * (1 - share) ** (3 - sum(m)) for m in masks}
    instead, made = -1.0 if dropped == "zero" else None, []
    for mask, x in itertools.product(how_often, SEEN):
        target = tuple(2.0 * v - 1 for v in x)
        given = tuple(instead if gone else v for gone, v in zip(mask, target, strict=True))
        made.append((given, target, how_often[mask] / len(SEEN)))
    return made


def features(given: tuple, prior: tuple[float, ...]) -> torch.Tensor:
    """All products of 1, the value, and that it is missing."""
    each = (
        (1.0, 0.0, math.sqrt(p)) if v is None else (1.0, math.sqrt(p) * v, 0.0)
        for v, p in zip(given, prior, strict=True)
    )
    return torch.tensor([math.prod(some) for some in itertools.product(*each)]).double()


WAYS = ("null", "together", "zero")


@pytest.mark.parametrize("dropped", WAYS)
@pytest.mark.parametrize("share", [0.05, 0.4])
def test_it_is_what_gradient_descent_on_the_pictures_comes_to(share, dropped):
    prior, rate, steps = (0.9, 0.3, 0.6), 2e-3, 5000
    seen = pictures(share, dropped)
    phi = torch.stack([features(given, prior) for given, _, _ in seen])
    target, mass = (torch.tensor([p[k] for p in seen]).double() for k in (1, 2))
    w = torch.zeros(phi.shape[1], 3, dtype=torch.float64)
    for _ in range(steps):
        w = w - rate * phi.T @ (mass[:, None] * (phi @ w - target))
    model = Products(corners((0.0, 0.0), (0.0, 0.0)), prior, share, dropped)
    for prompted in (*SEEN, *UNSEEN):
        expected = features(tuple(2.0 * v - 1 for v in prompted), prior) @ w
        answer = model.answers(prompted, (rate * steps,))[0]
        assert torch.allclose(answer, expected, atol=2e-3)


@pytest.mark.parametrize("spread", [0.0, 0.4])
def test_hardly_any_dropout_is_none_for_a_while_and_all_at_once_needs_no_more(spread):
    prior, seen = (0.05, 0.2, 0.3), corners((spread, spread), (spread, spread))
    plain = Products(seen, prior).answers((1, 1, 1), TIMES[:4])
    for dropped in WAYS:
        rare = Products(seen, prior, 1e-7, dropped).answers((1, 1, 1), TIMES[:4])
        assert torch.allclose(plain, rare, atol=1e-3)


def test_of_one_factor_single_labels_are_all_labels():
    """Of three they are not."""
    one, three = (Corner((0,), (0.0,)),), corners((0.0, 0.0), (0.0, 0.0))

    def answers(seen: tuple[Corner, ...], dropped: str) -> torch.Tensor:
        n = len(seen[0].at)
        return Products(seen, (0.3, 0.2, 0.4)[:n], 0.2, dropped).answers((1,) * n, TIMES)

    assert torch.allclose(answers(one, "null"), answers(one, "together"), atol=1e-12)
    assert not torch.allclose(answers(three, "null"), answers(three, "together"), atol=1e-3)


def test_factors_may_be_exchanged():
    prior, share = (0.1, 0.2, 0.7), 0.15
    one = Products(corners((0.2, 0.6), (0.2, 0.6)), prior, share).answers((1, 0, 1), TIMES)
    swapped = (prior[0], prior[2], prior[1])
    other = Products(corners((0.6, 0.2), (0.6, 0.2)), swapped, share).answers((1, 1, 0), TIMES)
    assert torch.allclose(one[:, [0, 2, 1]], other, atol=1e-8)


def exact_rows(settings: MissingLabels) -> list[dict]:
    return [
        row | dict(job.labels)
        for job in missing_labels.exact(settings)
        for row in job.task.run(Work(job.task, Path(), QUIET))
    ]


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return exact_rows(missing_labels.settings("smoke"))


@pytest.mark.parametrize("claim", EXACT, ids=lambda c: c.id)
def test_claims_hold_of_the_model_and_fail_where_its_answers_are_others(rows, claim):
    def verdict_of(some: list[dict]) -> str:
        return assess(claim, Table(some), "full").verdict

    assert verdict_of(rows) == "supported"
    other = {"null": "together", "together": "zero", "zero": "null"}
    swapped = [r | {"dropped": other[r["dropped"]]} if r["missing"] else r for r in rows]
    assert verdict_of(swapped) != "supported"
    upside_down = [r | {"agreement": -r["agreement"]} for r in rows]
    assert verdict_of(upside_down) != "supported"
    assert verdict_of([]) == "not measured"


@pytest.mark.parametrize(
    ("single", "at_once", "seen", "expected"),
    [
        (0.1, 0.6, 0.8, "supported"),
        (0.5, 0.6, 0.8, "partly supported"),
        (0.1, 0.1, 0.8, "contradicted"),
        (0.1, 0.6, 0.5, "inconclusive"),
    ],
)
def test_trained_models_agree_or_not(single, at_once, seen, expected):
    levels = {"": 0.6, ", dropout": single, ", guidance": at_once}
    heights = {f + ending: y for f in ("maskgit", "dit") for ending, y in levels.items()}
    made = accuracy_rows(heights, seen=seen, probes=("paper 0", "paper 1"))
    assert verdict(missing_labels.STUDY, "B43", made) == expected
    fewer = [r for r in made if r["variant"] != "dit, guidance"]
    assert verdict(missing_labels.STUDY, "B43", fewer) == "not measured"


def test_when_a_path_falls_is_after_its_highest_value():
    assert first_time_below([(1.0, 0.1), (2.0, 0.9), (3.0, 0.6), (4.0, 0.2)], 0.5) == 4
    with pytest.raises(LookupError, match="never falls"):
        first_time_below([(1.0, 0.1), (2.0, 0.9)], 0.5)
    with pytest.raises(LookupError, match="no answers"):
        over_time(Table([]), "111")


def test_the_figure_shows_every_share(rows, tmp_path):
    figure = plot_over_time(Table(rows), tmp_path)
    drawn = (tmp_path / f"{figure.name}.svg").read_text()
    for text in ("0.001", "0.3", "single, false label, 0.1", "all at once, 0.3", "all given"):
        assert text in drawn


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("shares=[0.1,0.01,0.2]", "rising"),
        ("shares=[0.1,0.2]", "three or more"),
        ("often=[]", "one or more"),
        ("often=[1.0]", "between 0 and 1"),
    ],
)
def test_what_cannot_be_is_refused(change, said):
    with pytest.raises(Exception, match=said):
        override(MissingLabels(), change)


@pytest.mark.parametrize("missing", [-0.1, 1.0])
def test_a_share_of_missing_labels_lies_between_0_and_1(missing):
    with pytest.raises(ValueError, match="below 1"):
        Products(corners((0.0, 0.0), (0.0, 0.0)), (0.1,) * 3, missing)


def test_trained_models_are_those_of_label_dropout_in_small_and_their_seeds_are_new():
    laptop, full = (missing_labels.settings(scale) for scale in ("laptop", "full"))
    assert laptop.recipes() == full.recipes()
    seeds = {dict(job.labels).get("seed") for job in missing_labels.jobs(full, 5)} - {None}
    assert seeds == {5, 6, 7, 8, 9}
