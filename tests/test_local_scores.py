import dataclasses
import json
from types import SimpleNamespace

import pytest
import torch

from recombine.config import UsageError, from_json, override, to_json
from recombine.rng import seeded
from recombine.studies.base import Rows, judge
from recombine.studies.local_scores.net import BlockNet
from recombine.studies.local_scores.parts import total_correlation
from recombine.studies.local_scores.study import STUDY, LocalScores


@pytest.fixture(scope="module")
def rows() -> Rows:
    lab = SimpleNamespace(scale="smoke", seeds=1, device="cpu", note=lambda text: None)
    small = dataclasses.replace(STUDY.settings("smoke"), draws=64, levels=17, sigmas=(0.3, 1.0, 10.0))
    return Rows(STUDY.compute(small, lab))


def test_rows_are_flat_and_every_claim_is_judged(rows):
    assert json.loads(json.dumps(rows, allow_nan=False)) == list(rows)
    found = {claim.id: judge(claim, rows, "laptop", 1, {}) for claim in STUDY.claims}
    assert list(found) == ["L1", "L2", "L3", "L4", "L5", "L6"]
    assert all(v.judgement is not None for v in found.values())
    assert {found[i].word for i in ("L1", "L4", "L5")} == {"reproduced"}


def test_claims_can_fail(rows):
    corrupted = Rows({**r, "worst_pixel": 1e-3, "cosine": 0.2, "ratio": 1.5, "all_lit": 0.5, "off": 0.1} for r in rows)
    words = {claim.id: judge(claim, corrupted, "laptop", 1, {}).word for claim in STUDY.claims}
    assert "reproduced" not in [words[i] for i in ("L1", "L3", "L4", "L5", "L6")]
    assert judge(STUDY.claims[0], Rows(), "laptop", 1, {}).word == "not measured"


def test_every_figure_is_drawn(rows, tmp_path):
    for figure in STUDY.draw(rows, tmp_path):
        assert (tmp_path / f"{figure.name}.svg").stat().st_size > 1000
        assert figure.caption


@pytest.mark.parametrize(
    "wrong", ["blocks=1", "tilt=0", "link=1", "sigmas=[1,0.5]", "lit=[0,8]", "clutter=1", "modes=20", "grid=2"]
)
def test_nonsense_settings_get_one_clear_line(wrong):
    with pytest.raises(UsageError) as error:
        override(LocalScores(), wrong)
    assert "\n" not in str(error.value)


def test_settings_survive_json():
    for scale in ("smoke", "laptop", "full"):
        assert from_json(to_json(STUDY.settings(scale))) == STUDY.settings(scale)


def test_a_block_network_does_not_see_other_blocks():
    net = BlockNet([(0, 3), (1,), (2,)], 8, seeded(0, "net"))
    x, t = (
        torch.randn(5, 4, generator=seeded(0, "x"), dtype=torch.float64),
        torch.rand(5, generator=seeded(0, "t")).double(),
    )
    other = x.clone()
    other[:, 3] += 1
    moved = (net(x, t) - net(other, t)).abs().max(0).values > 0
    assert moved.tolist() == [True, False, False, True]


def test_total_correlation_of_equal_and_of_independent_labels():
    coin = torch.randint(0, 2, (20_000, 2), generator=seeded(0, "coin"))
    assert total_correlation(coin) == pytest.approx(0, abs=1e-3)
    assert total_correlation(coin[:, [0, 0]]) == pytest.approx(1, abs=1e-3)
