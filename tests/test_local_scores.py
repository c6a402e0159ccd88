"""Exact scores: settings, rows from the settings that matter alone, claims that can fail,
figures."""

import dataclasses
import json
from pathlib import Path

import pytest
import torch
from tiny import QUIET

from recombine.analysis.claims import assess
from recombine.analysis.table import Table
from recombine.config import UsageError, from_json, to_json
from recombine.metrics.ties import marginal_distance, total_correlation
from recombine.overrides import override
from recombine.pipeline.job import Work, digest_of
from recombine.rng import seeded
from recombine.runs.exact_laws import LocalScores
from recombine.runs.local_scores import MATTERS, MEASURE, LocalScoresRun
from recombine.studies.local_scores import STUDY, settings
from recombine.theory.block_net import BlockNet

SMALL = dataclasses.replace(
    settings("smoke"), sobol_points=64, levels=17, sigmas=(0.3, 1.0, 10.0), fit_steps=20
)


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    tasks = [job.task for job in STUDY.jobs(SMALL, 1)]
    return [{"seed": t.seed, **row} for t in tasks for row in t.run(Work(t, Path(), QUIET))]


def test_rows_are_flat_and_bear_on_every_claim(rows):
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    verdicts = {claim.id: assess(claim, Table(rows), "laptop") for claim in STUDY.claims}
    assert list(verdicts) == ["L1", "L2", "L3", "L4", "L5", "L6"]
    assert all(v.finding for v in verdicts.values())
    assert {verdicts[i].verdict for i in ("L1", "L4", "L5")} == {"supported"}


def test_claims_can_fail(rows):
    wrong = {"worst_pixel": 1e-3, "cosine": 0.2, "ratio": 1.5, "all_lit": 0.5, "off": 0.1}
    table = Table([row | {k: v for k, v in wrong.items() if k in row} for row in rows])
    verdicts = {claim.id: assess(claim, table, "laptop").verdict for claim in STUDY.claims}
    assert "supported" not in [verdicts[i] for i in ("L1", "L3", "L4", "L5", "L6")]
    assert {assess(c, Table(), "laptop").verdict for c in STUDY.claims} == {"not measured"}


@pytest.mark.slow
@pytest.mark.parametrize("part", MEASURE)
def test_a_part_depends_on_its_own_settings_alone(part):
    odd = LocalScores(
        4, 1, 1, 2, 0.7, 0.5, (0.4, 2.0), 4, 8, 9, 20, 4, 5, 4, (1, 2), 0.4, 6, 4, 0.3, 0.9
    )
    assert all(getattr(odd, f.name) != f.default for f in dataclasses.fields(odd)), "none is usual"
    kept = LocalScoresRun.of(part, odd, 1)
    assert list(MEASURE[part](odd, 1)) == kept.run(Work(kept, Path(), QUIET))
    for name in MATTERS[part]:
        assert getattr(kept.settings, name) == getattr(odd, name)
    others = {f.name: f.default for f in dataclasses.fields(odd) if f.name not in MATTERS[part]}
    assert digest_of(LocalScoresRun.of(part, dataclasses.replace(odd, **others), 1)) == digest_of(
        kept
    )


@pytest.mark.slow
def test_every_figure_is_plotted(rows, tmp_path):
    for figure in STUDY.figures(Table(rows), tmp_path):
        assert (tmp_path / f"{figure.name}.svg").stat().st_size > 1000
        assert figure.caption


@pytest.mark.parametrize(
    "wrong",
    [
        "blocks=1",
        "tilt=0",
        "link=1",
        "sigmas=[1,0.5]",
        "lit=[0,8]",
        "clutter=1",
        "modes=20",
        "grid=2",
    ],
)
def test_nonsense_settings_get_one_clear_line(wrong):
    with pytest.raises(UsageError) as error:
        override(LocalScores(), wrong)
    assert "\n" not in str(error.value)


def test_settings_survive_json():
    for scale in ("smoke", "laptop", "full"):
        assert from_json(to_json(settings(scale))) == settings(scale)


def test_a_block_network_does_not_see_other_blocks():
    net = BlockNet([(0, 3), (1,), (2,)], 8, seeded(0, "net"))
    x = torch.randn(5, 4, generator=seeded(0, "x"), dtype=torch.float64)
    t = torch.rand(5, generator=seeded(0, "t")).double()
    other = x.clone()
    other[:, 3] += 1
    moved = (net(x, t) - net(other, t)).abs().max(0).values > 0
    assert moved.tolist() == [True, False, False, True]


def test_total_correlation_of_equal_and_of_independent_labels():
    coin = torch.randint(0, 2, (20_000, 2), generator=seeded(0, "coin"))
    assert total_correlation(coin) == pytest.approx(0, abs=1e-3)
    assert total_correlation(coin[:, [0, 0]]) == pytest.approx(1, abs=1e-3)


LEAST = {"blocks": 2, "pixels": 1, "rest": 0, "modes": 2, "levels": 8, "sobol_points": 2}
LEAST |= {"pictures": 2, "samples": 2, "steps": 2, "lamp_samples": 2, "fit_steps": 1, "grid": 3}
LEAST |= {"lamps": 2}
MOST = {"grid": 31, "lamps": 12}


@pytest.mark.parametrize(
    ("name", "edge", "beyond"),
    [(n, v, v - 1) for n, v in LEAST.items()] + [(n, v, v + 1) for n, v in MOST.items()],
)
def test_settings_are_taken_up_to_the_edge_that_is_named_and_not_beyond(name, edge, beyond):
    LocalScores(lit=(0, 1), **{name: edge})
    with pytest.raises(ValueError, match=f"{name}|{edge}"):
        LocalScores(lit=(0, 1), **{name: beyond})


def test_the_distance_of_marginals_is_their_total_variation():
    a, b = torch.tensor([0, 0, 1, 2]), torch.tensor([0, 0, 1, 1])
    assert marginal_distance(a, b) == marginal_distance(b, a) == pytest.approx(0.25)
    assert marginal_distance(a, a.flip(0)) == 0
    assert marginal_distance(torch.zeros(3).int(), torch.full((3,), 4).int()) == 1
