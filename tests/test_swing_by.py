"""The study: settings that work and settings that do not, rows, claims from rows, figures."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from recombine.config import UsageError, digest, override
from recombine.studies.base import Rows, judge
from recombine.studies.swing_by import parts, trained
from recombine.studies.swing_by.figures import story, trajectory
from recombine.studies.swing_by.study import STUDY, SwingBy, compute, settings
from recombine.theory import flow, sim
from recombine.theory.sim import IdentityMapping


@pytest.fixture(scope="module")
def smoke() -> Rows:
    notes = []
    rows = Rows(compute(settings("smoke"), SimpleNamespace(scale="smoke", seeds=1, device="cpu", note=notes.append)))
    assert len(notes) == 16
    return rows


@pytest.mark.parametrize(
    "assignment",
    ["sigma=-0.1", "rho=1.5", "rho=-1.01", "d=1", "omega=0", "omega=-1", "omega=2", "mu=[]", "mu=[1,-2]", "mu=[0,0]",
     "sigma=[1,2,3]", "d=1000", "mu=apple", "grid=1"],
)  # fmt: skip
def test_nonsense_gets_one_line(assignment):
    with pytest.raises(UsageError) as error:
        override(SwingBy(), assignment)
    assert "\n" not in str(error.value)
    assert assignment.split("=")[0] in str(error.value)


def test_a_correlation_that_no_start_can_have():
    with pytest.raises(UsageError, match=r"3 coordinates cannot all correlate below -0\.5"):
        override(override(SwingBy(), "d=3"), "rho=-0.6")


def test_settings_have_names_of_their_own():
    assert digest(SwingBy()) != digest(override(SwingBy(), "mu=[1,3]"))
    assert override(SwingBy(), "sigma=[0.1,0.2]").task.sigmas == (0.1, 0.2)


@pytest.mark.parametrize(
    ("task", "omega", "rho"),
    [
        (IdentityMapping((2.0,)), 0.01, 0.9),
        (IdentityMapping((2.0,), d=3), 0.01, 0.9),
        (IdentityMapping((1.0, 1.0)), 0.01, 0.9),
        (IdentityMapping((1.0, 2.0), 0.0), 0.01, 0.9),
        (IdentityMapping((1.0, 2.0, 3.0)), 0.01, 0.5),
        (IdentityMapping((0.0, 2.0), 0.0), 0.01, 0.9),
        (IdentityMapping((1.0, 2.0)), 1.0, 1.0),
        (IdentityMapping((1.0, 2.0)), 0.01, -1.0),
        (IdentityMapping((1.0, 2.0), d=256), 0.1, 0.9),
        (IdentityMapping((1.0,) * 24), 1.0, 0.9),
        (IdentityMapping((0.01, 10.0)), 0.01, 0.9),
        (IdentityMapping(tuple(1 + k / 10 for k in range(12)), 0.1), 0.01, 0.2),
    ],
)
def test_any_setting_works(task, omega, rho, monkeypatch):
    monkeypatch.setattr(trained, "MOST_STEPS", 800)
    rows = Rows(trained.yours(task, omega, rho))
    json.dumps(rows, allow_nan=False)
    summary = rows.one(kind="yours.summary")
    assert len(rows.where(kind="yours.curve")) == parts.POINTS + 1
    assert rows.where(kind="yours.curve")[-1]["ood"] is not None
    assert summary["train_rise"] < 1e-6


def test_dimensions_without_a_concept_fold_into_one():
    task = IdentityMapping((1.0, 2.0), d=7)
    small, w = trained._folded(task, 0.05, 0.8)
    whole = flow.flow(flow.root(flow.correlated(0.05, 0.8, 7))[None], task.a[None], 0.02, 300, 30)
    folded = flow.flow(flow.root(w)[None], small.a[None], 0.02, 300, 30)
    assert folded.w.shape[-1] == 3
    assert torch.allclose(folded.w[..., :2, :2], whole.w[..., :2, :2], atol=1e-12)
    losses = [sim.probe_loss(p.output(t.probe), t.probe) for p, t in ((whole, task), (folded, small))]
    assert torch.allclose(*losses, atol=1e-12)


def test_your_setting_agrees_with_the_reference():
    mine = Rows(trained.yours(parts.REFERENCE, 0.01, 0.9)).one(kind="yours.summary")
    assert mine["swing_by"] == 1
    assert mine["descents"] == 2
    assert mine["order"] == "2 1"
    assert mine["rise"] == pytest.approx(0.0320, abs=2e-4)


def test_the_canonical_digits():
    rows = Rows(parts.reference())
    claim = next(c for c in STUDY.claims if c.id == "T6")
    assert judge(claim, rows, "laptop", 1, {}).word == "reproduced"
    wrong = Rows({**r, "low": 0.14} if r["kind"] == "t6.summary" else r for r in rows)
    assert judge(claim, wrong, "laptop", 1, {}).word == "not reproduced"


@pytest.mark.parametrize(
    ("id", "experiment"),
    [
        ("T1", lambda: parts.second_moments(4)),
        ("T2", lambda: parts.fields(4)),
        ("T4", parts.order_flip),
        ("T7", lambda: parts.absences(20)),
    ],
)
def test_quick_claims_hold(id, experiment):
    claim = next(c for c in STUDY.claims if c.id == id)
    assert judge(claim, Rows(experiment()), "laptop", 1, {}).word == "reproduced"


def test_claims_without_rows_are_not_measured():
    assert [judge(c, Rows(), "laptop", 1, {}).word for c in STUDY.claims] == ["not measured"] * 14


def test_smoke_rows_bear_on_every_claim(smoke):
    for claim in STUDY.claims:
        verdict = judge(claim, smoke, "smoke", 1, {})
        assert verdict.word == "smoke"
        assert verdict.judgement is not None, claim.id
        assert all(isinstance(v, (int, float, str)) for v in verdict.judgement.measured.values())


def test_rows_are_flat_and_plain(smoke):
    text = json.dumps(smoke, allow_nan=False)
    assert len(text) < 3_000_000
    assert all(isinstance(v, (int, float, str, type(None))) for row in smoke for v in row.values())


def test_figures_are_drawn_from_rows_alone(smoke, tmp_path):
    figures = STUDY.draw(Rows(json.loads(json.dumps(smoke))), tmp_path)
    assert len({f.name for f in figures}) == len(figures) == 8
    for figure in figures:
        assert (tmp_path / f"{figure.name}.svg").stat().st_size > 1000
        assert (tmp_path / f"{figure.name}.png").exists()


def test_figures_of_odd_settings(smoke, tmp_path):
    rest = [r for r in smoke if not r["kind"].startswith("yours")]
    trajectory(Rows([*rest, *trained.yours(IdentityMapping((2.0,), 0.0), 0.01, 0.5)]), tmp_path)
    story(Rows([*rest, *trained.yours(IdentityMapping(tuple(1 + k / 10 for k in range(12)), 0.1), 0.01, 0.5)]), tmp_path)


def test_scales_differ_only_in_size():
    assert replace(settings("full"), flow_seeds=300, mlp_seeds=64, grid=41) == settings("laptop") == SwingBy()
