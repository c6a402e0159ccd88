"""Swing-by: settings that work and settings that do not, experiments, claims from rows, figures."""

import json
from dataclasses import replace

import pytest
import torch
from figure_reader import drawn

from recombine.analysis.claims import assess
from recombine.analysis.table import Table
from recombine.config import UsageError
from recombine.overrides import override
from recombine.pipeline.job import digest_of
from recombine.plots.swing_by import story, trajectory
from recombine.runs.swing_by import rows_of
from recombine.studies.swing_by import STUDY, SwingBy, runs, settings
from recombine.theory import flow, sim, swing_by_flows, swing_by_laws, swing_by_own
from recombine.theory.sim import IdentityMapping
from recombine.theory.swing_by_rows import POINTS, REFERENCE

CLAIMS = {claim.id: claim for claim in STUDY.claims}


@pytest.fixture(scope="module")
def smoke() -> list[dict]:
    return [row for job in STUDY.jobs(settings("smoke"), 1) for row in rows_of(job.task)]


@pytest.mark.parametrize(
    "assignment",
    [
        "sigma=-0.1",
        "rho=1.5",
        "rho=-1.01",
        "d=1",
        "omega=0",
        "omega=-1",
        "omega=2",
        "mu=[]",
        "mu=[1,-2]",
        "mu=[0,0]",
        "sigma=[1,2,3]",
        "d=1000",
        "mu=apple",
        "grid=1",
    ],
)
def test_nonsense_gets_one_line(assignment):
    with pytest.raises(UsageError) as error:
        override(SwingBy(), assignment)
    assert "\n" not in str(error.value)
    assert assignment.split("=")[0] in str(error.value)


def test_a_correlation_that_no_start_can_have():
    with pytest.raises(UsageError, match=r"3 coordinates cannot all correlate below -0\.5"):
        override(override(SwingBy(), "d=3"), "rho=-0.6")


def test_a_setting_of_ones_own_leaves_the_reference_experiments_as_they_are():
    own = override(SwingBy(), "mu=[1,3]", "sigma=[0.1,0.2]")
    assert own.setting.mapping.sigmas == (0.1, 0.2)
    pairs = zip(runs(SwingBy()), runs(own), strict=True)
    changed = [a.experiment for a, b in pairs if digest_of(a) != digest_of(b)]
    assert changed == ["your setting"]


@pytest.mark.parametrize(
    ("mapping", "omega", "rho"),
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
def test_any_setting_works(mapping, omega, rho, monkeypatch):
    monkeypatch.setattr(swing_by_own, "MOST_STEPS", 800)
    rows = list(swing_by_own.yours(mapping, omega, rho))
    json.dumps(rows, allow_nan=False)
    curve = [r for r in rows if r["kind"] == "yours.curve"]
    assert len(curve) == POINTS + 1
    assert curve[-1]["ood"] is not None
    assert rows[0]["train_rise"] < 1e-6


def test_dimensions_without_a_concept_fold_into_one():
    mapping = IdentityMapping((1.0, 2.0), d=7)
    small, w = swing_by_own._folded(mapping, 0.05, 0.8)
    start = flow.root(flow.correlated(0.05, 0.8, 7))[None]
    whole = flow.flow(start, mapping.a[None], 0.02, 300, 30)
    folded = flow.flow(flow.root(w)[None], small.a[None], 0.02, 300, 30)
    assert folded.w.shape[-1] == 3
    assert torch.allclose(folded.w[..., :2, :2], whole.w[..., :2, :2], atol=1e-12)
    pairs = ((whole, mapping), (folded, small))
    losses = [sim.probe_loss(p.output(m.probe), m.probe) for p, m in pairs]
    assert torch.allclose(*losses, atol=1e-12)


def test_your_setting_agrees_with_the_reference():
    mine = next(swing_by_own.yours(REFERENCE, 0.01, 0.9))
    assert (mine["swing_by"], mine["descents"], mine["order"]) == (1, 2, "2 1")
    assert mine["rise"] == pytest.approx(0.0320, abs=2e-4)


def test_the_canonical_digits():
    rows = list(swing_by_flows.reference())
    assert assess(CLAIMS["T6"], Table(rows), "laptop").verdict == "supported"
    wrong = [r | ({"low": 0.14} if r["kind"] == "t6.summary" else {}) for r in rows]
    assert assess(CLAIMS["T6"], Table(wrong), "laptop").verdict != "supported"


def many_descents(share: float, squared: float, seeds: int) -> Table:
    pairs = [(s, v) for s in ("triple", "quadruple") for v in ("A", "A^2")]
    rows = [{"kind": "t9.listed", "variant": "A", "descents": 3}]
    for setting, variant in pairs:
        for k in (3, 4):
            value = {"A": share, "A^2": squared}[variant]
            about = {"setting": setting, "variant": variant, "descents": k, "seeds": seeds}
            rows.append({"kind": "t9.share", "share": value, **about})
    return Table(rows)


def test_a_share_of_starts_needs_enough_starts():
    assert assess(CLAIMS["T9"], many_descents(0.18, 0.59, 600), "laptop").verdict == "supported"
    assert assess(CLAIMS["T9"], many_descents(0.18, 0.59, 20), "laptop").verdict != "supported"
    assert assess(CLAIMS["T9"], many_descents(0.4, 0.59, 600), "laptop").verdict != "supported"


@pytest.mark.parametrize(
    ("id", "experiment"),
    [
        ("T1", lambda: swing_by_laws.second_moments(4)),
        ("T2", lambda: swing_by_laws.fields(4)),
        ("T4", swing_by_laws.order_flip),
        ("T7", lambda: swing_by_flows.absences(20)),
    ],
)
def test_quick_claims_are_supported(id, experiment):
    assert assess(CLAIMS[id], Table(experiment()), "laptop").verdict == "supported"


def test_claims_without_rows_are_not_measured():
    assert {assess(c, Table(), "laptop").verdict for c in STUDY.claims} == {"not measured"}


def test_smoke_rows_are_flat_and_bear_on_every_claim(smoke):
    assert len(json.dumps(smoke, allow_nan=False)) < 3_000_000
    for claim in STUDY.claims:
        assessed = assess(claim, Table(smoke), "smoke")
        assert assessed.finding is not None, claim.id
        assert all(isinstance(v, (int, float, str)) for v in assessed.finding.measured.values())


def test_figures_are_plotted_from_rows_alone(smoke):
    assert len(drawn(STUDY.figures, Table(smoke))) == 8


def test_figures_of_odd_settings(smoke, tmp_path):
    rest = [r for r in smoke if not r["kind"].startswith("yours")]
    one = swing_by_own.yours(IdentityMapping((2.0,), 0.0), 0.01, 0.5)
    twelve = IdentityMapping(tuple(1 + k / 10 for k in range(12)), 0.1)
    trajectory(Table([*rest, *one]), tmp_path)
    story(Table([*rest, *swing_by_own.yours(twelve, 0.01, 0.5)]), tmp_path)


def test_scales_differ_only_in_size():
    full = replace(settings("full"), flow_seeds=600, mlp_seeds=64, grid=41)
    assert full == settings("laptop") == SwingBy()
