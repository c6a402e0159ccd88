"""Swing-by: settings that work and settings that do not, experiments, claims from rows, figures."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from figure_reader import drawn

from recombine.analysis.claims import assess
from recombine.analysis.frames import pl
from recombine.analysis.table import Table, read_table
from recombine.config import UsageError
from recombine.metrics.intervals import wilson
from recombine.overrides import override
from recombine.pipeline.job import digest_of
from recombine.plots.swing_by import story, trajectory
from recombine.runs.swing_by import rows_of
from recombine.studies.swing_by import STUDY, SwingBy, runs, settings
from recombine.studies.swing_by_claims import apart, flip_steps, is_near, share_of
from recombine.theory import flow, sim, swing_by_flows, swing_by_laws, swing_by_own
from recombine.theory.sim import IdentityMapping
from recombine.theory.swing_by_rows import POINTS, REFERENCE, row, thin

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


SHIPPED = read_table(Path(__file__).parents[1] / "results" / "swing-by" / "rows.parquet")


def changed(where: dict, column: str, value: float) -> Table:
    """The shipped rows with another value in some of them."""
    some = pl.all_horizontal(pl.col(name) == v for name, v in where.items())
    return SHIPPED.with_columns(pl.when(some).then(value).otherwise(pl.col(column)).alias(column))


@pytest.mark.parametrize(
    ("id", "check", "where", "column", "inside", "outside"),
    [
        ("T2", 0, {"kind": "t2"}, "error", 0.9e-10, 1e-10),
        ("T2", 0, {"kind": "t2"}, "gap", 0.9e-10, 1e-10),
        ("T2", 1, {"kind": "t2"}, "ratio", 2 + 0.9e-9, 2 + 1.1e-9),
        ("T2", 1, {"kind": "t2"}, "ratio", 2 - 0.9e-9, 2 - 1.1e-9),
        ("T3", 0, {"kind": "t3.exact"}, "error", 0.9e-8, 1e-8),
        ("T6", 1, {"kind": "t6.summary"}, "end", 0.9e-3, 1e-3),
        ("T6", 2, {"kind": "t6.summary"}, "train_rise", 0.9e-12, 1e-12),
        ("T7", 0, {"kind": "t7", "why": "rho <= 0"}, "rise", 0.9e-4, 1e-4),
        ("T7", 1, {"kind": "t7", "why": "one layer"}, "rise", 0.9e-4, 1e-4),
        ("T7", 2, {"kind": "t7", "why": "zero mean, width >= 64"}, "rise", 0.9e-4, 1e-4),
        ("T7", 3, {"kind": "t7", "why": "sigma >= 2"}, "rise", 0.9e-4, 1e-4),
        ("T9", 2, {"kind": "t9.listed", "variant": "A"}, "descents", 3, 2),
        ("T10", 0, {"kind": "t6.summary"}, "rise", 0.011, 0.01),
        ("T10", 0, {"kind": "t6.summary"}, "train_rise", 0.9e-3, 1e-3),
        ("T10", 1, {"kind": "t12", "depth": 4, "d": 3}, "largest", 0.011, 0.01),
        ("T10", 1, {"kind": "t12", "depth": 4, "d": 3}, "train_rise", 0.9e-3, 1e-3),
        ("T11", 0, {"kind": "t11"}, "apart_max", 0.019, 0.02),
        ("T11", 1, {"kind": "t11"}, "same", 0.951, 0.95),
        ("T13", 0, {"kind": "t13", "net": "one layer"}, "share", 0.92, 0.919),
        ("T13", 1, {"kind": "t13", "net": "two layers, ReLU"}, "share", 0.92, 0.919),
        ("T14", 0, {"kind": "t14.fig5", "variant": "A"}, "rise", 0.0019, 0.002),
        ("T14", 0, {"kind": "t14.fig5", "variant": "A^2"}, "rise", 0.0524, 0.053),
        ("T14", 0, {"kind": "t14.fig5", "variant": "A^2"}, "rise", 0.0476, 0.047),
        ("T14", 1, {"kind": "t14.fig10", "update": "W recurrence"}, "w11", -0.1, 0.0),
        ("T14", 1, {"kind": "t14.fig10", "update": "U update"}, "w11", 0.1, 0.0),
        ("T14", 1, {"kind": "t14.fig10", "update": "U update"}, "w11_end", 1.009, 1.011),
        ("T14", 1, {"kind": "t14.fig10", "update": "U update"}, "w11_end", 0.991, 0.989),
        ("T14", 2, {"kind": "t14.cone", "update": "U update"}, "outside", 0.0, 0.1),
        ("T14", 2, {"kind": "t14.cone", "update": "W recurrence"}, "outside", 0.1, 0.0),
    ],
)
def test_a_check_holds_up_to_its_edge_and_not_beyond(id, check, where, column, inside, outside):
    def holds(value: float) -> list[bool]:
        parts = CLAIMS[id].measure(changed(where, column, value)).parts
        return [getattr(part, "holds", True) for part in parts]

    assert holds(inside)[check]
    assert [i for i, held in enumerate(holds(outside)) if not held] == [check]


@pytest.mark.parametrize(
    ("id", "where", "column", "beside", "share"),
    [
        ("T3", {"kind": "t3.sgd", "bias": 0}, "steps", "expected", 0.05),
        ("T5", {"kind": "t5", "model": "one layer"}, "slope", "expected", 0.02),
        ("T5", {"kind": "t5", "model": "two layers"}, "slope", "expected", 0.02),
        ("T8", {"kind": "t8"}, "half", "law", 0.02),
    ],
)
def test_measured_times_and_slopes_lie_so_near_to_the_law(id, where, column, beside, share):
    some = pl.all_horizontal(pl.col(name) == v for name, v in where.items())
    for factor, expected in ((1 + 0.9 * share, True), (1 - 0.9 * share, True),
                             (1 + 1.1 * share, False), (1 - 1.1 * share, False)):  # fmt: skip
        value = pl.when(some).then(pl.col(beside) * factor).otherwise(pl.col(column))
        rows = SHIPPED.with_columns(value.alias(column))
        assert all(check.holds for check in CLAIMS[id].measure(rows).parts) is expected, factor


@pytest.mark.parametrize(
    ("name", "wanted", "slack"),
    [
        ("low", 0.1315, 1e-4),
        ("low_t", 1.73, 0.01),
        ("high", 0.1635, 1e-4),
        ("high_t", 3.31, 0.01),
        ("w12_peak", 0.1015, 1e-4),
        ("w22_at_peak", 0.758, 1e-3),
    ],
)
def test_every_digit_of_the_reference_run_counts(name, wanted, slack):
    for off, holds in ((-0.9, True), (0.9, True), (-1.1, False), (1.1, False)):
        rows = changed({"kind": "t6.summary"}, name, wanted + off * slack)
        assert CLAIMS["T6"].measure(rows).parts[0].holds is holds, off
    assert CLAIMS["T6"].measure(SHIPPED).measured[f"{name}_expected"] == wanted


def test_the_error_of_the_second_moment_is_bounded_and_does_not_grow():
    def holds(**by_size: float) -> bool:
        rows = [{"kind": "t1", "case": case, "n": int(n[1:]), "scaled": x, "error": x}
                for case in "ab" for n, x in by_size.items()]  # fmt: skip
        (check,) = CLAIMS["T1"].measure(Table(rows)).parts
        return check.holds

    assert holds(n10=2.0, n1000=3.9)
    assert not holds(n10=2.0, n1000=4.0)
    assert holds(n10=4.9, n1000=1.0)
    assert not holds(n10=5.0, n1000=1.0)


def test_an_order_flips_between_two_steps_of_a_sweep():
    line = [(1.0, 2, 3.0, 1.0), (3.0, 1, 2.0, 2.5), (2.0, 2, 2.5, 2.0)]
    rows = Table([dict(zip(("sigma1", "first", "t1", "t2"), r, strict=True)) for r in line])
    assert flip_steps(rows) == [2.5]
    law = CLAIMS["T4"].measure(SHIPPED).measured["flip_law"]
    assert law == pytest.approx(1.22576, abs=1e-5)


def test_shares_of_starts_have_their_regions():
    found = {id: CLAIMS[id].measure(SHIPPED).parts[:2] for id in ("T9", "T12")}
    assert {id: [(p.name, p.low, p.high) for p in parts] for id, parts in found.items()} == {
        "T9": [
            ("starts with three descents, A", 0.1, 0.26),
            ("starts with three descents, A^2", 0.49, 0.69),
        ],
        "T12": [
            ("depth 4 - depth 1, at d = 3", 0.0, math.inf),
            ("d = 2 - d = 64, at depth 4", 0.0, math.inf),
        ],
    }
    many, few = {"share": 0.5, "seeds": 20}, {"share": 0.25, "seeds": 8}
    gap, a, b = apart(many, few), share_of(many), share_of(few)
    assert (gap.value, gap.low, gap.high, gap.n) == (0.25, a.low - b.high, a.high - b.low, 8)
    assert (a.low, a.high) == wilson(10, 20)


def test_near_is_within_a_share_and_nothing_is_near_to_none():
    assert [is_near(x, -2.0, 0.25) for x in (-2.5, -1.5, -2.6, None)] == [True, True, False, False]


def test_the_horizon_is_cut_where_signals_differ_by_much(monkeypatch):
    steps = []

    def still(u, a, dt, count, every):
        steps.append((dt, count, every))
        return flow.Trajectory(torch.zeros(1), (u @ u.mT)[:, None])

    monkeypatch.setattr(swing_by_own.flow, "flow", still)
    assert swing_by_own.MOST_STEPS == 24_000
    for weak, cut in ((0.5, False), (0.01, True)):
        task = IdentityMapping((weak, 1.0), 0.0)
        fast, slow = float(task.a.max()), float(task.a.min())
        horizon = (math.log(1 / 0.05) + 7) / (2 * slow)
        end = min(horizon, 24_000 / (10 * fast))
        path, is_cut = swing_by_own._patient(task, flow.correlated(0.1, 0.5, 2))
        assert is_cut is cut
        assert float(path.t[-1]) == pytest.approx(end, rel=1e-9)
        assert path.w.shape == (1, POINTS + 1, 2, 2)
        count = math.ceil(end / POINTS * fast * 10)
        assert steps.pop() == (pytest.approx(end / POINTS / count), count, count)


def test_a_summary_names_the_weakest_and_the_strongest():
    task = IdentityMapping((2.0, 0.5, 1.0), (0.1, 0.2, 0.3))
    ends = swing_by_own._ends(task, 1, 0)
    assert ends == {
        "weak": 2, "strong": 1, "mu_weak": 0.5, "mu_strong": 2.0,
        "sigma_weak": 0.2, "sigma_strong": 0.1,
    }  # fmt: skip
    assert swing_by_own._entries(2, [1, 0]) == [("w11", 0, 0), ("w12", 0, 1), ("w22", 1, 1)]
    many = swing_by_own._entries(10, list(range(10)))
    assert [name for name, _, _ in many][:4] == ["w1,1", "w1,4", "w1,7", "w1,10"]
    assert len(many) == 10


def test_curves_are_thinned_with_their_ends_and_numbers_have_seven_digits():
    assert thin(5, 3) == [0, 2, 4]
    assert thin(3, 9) == [0, 1, 2]
    made = row("k", a=0.123456789, b=math.inf, c=3, d="x", e=torch.tensor(2.0))
    assert made == {"kind": "k", "a": 0.1234568, "b": None, "c": 3, "d": "x", "e": 2.0}
