"""The claims T1-T14 of the study `swing-by`, from rows to findings. Wherever print or theory gives
a number, it stands beside the measured one under the name `..._expected`, `..._law` or
`..._paper`."""

import math

from recombine.analysis.claims import Check, Claim, Finding, Part, claim
from recombine.analysis.estimates import Estimate
from recombine.analysis.table import NotMeasured, Table
from recombine.metrics.intervals import wilson

PAPER = "Yang et al. 2025, "


def some(rows: Table, **equal: object) -> Table:
    """The rows that match, at least one."""
    matching = rows.where(**equal)
    if not len(matching):
        raise NotMeasured(f"no rows match {equal}")
    return matching


def is_near(value: float | None, wanted: float, share: float) -> bool:
    return value is not None and abs(value - wanted) <= share * abs(wanted)


def share_of(row: dict) -> Estimate:
    """A share of independent random starts, with Wilson's interval."""
    share, n = row["share"], row["seeds"]
    return Estimate(share, *wilson(round(share * n), n), n, ())


def apart(many: dict, few: dict) -> Estimate:
    """How much larger one share is than another; the interval is above 0 where both intervals do
    not overlap."""
    a, b = share_of(many), share_of(few)
    return Estimate(a.value - b.value, a.low - b.high, a.high - b.low, min(a.n, b.n), ())


@claim("T1", PAPER + "Sec 2", trained=False)
def t1(rows: Table) -> Finding:
    """The second moment of the data is diag(mu^2/s + sigma^2).

    Expected: error of order 1/sqrt(s n)"""
    all_sizes = some(rows, kind="t1")
    scaled = {(r["case"], r["n"]): r["scaled"] for r in all_sizes}
    few, many = min(all_sizes.column("n")), max(all_sizes.column("n"))
    growth = max(scaled[case, many] / scaled[case, few] for case, n in scaled if n == many)
    largest = max(some(all_sizes, n=many).column("error"))
    measured = {"error_at_largest_n": largest, "largest_n": many}
    measured |= {"error_times_sqrt_sn": max(scaled.values()), "growth_of_that_over_n": growth}
    holds = max(scaled.values()) < 5 and growth < 2
    return Finding((Check("error times sqrt(s n) < 5, and grows by less than 2", holds),), measured)


@claim("T2", PAPER + "Eq 4.3", trained=False)
def t2(rows: Table) -> Finding:
    """Growth - suppression - noise is the vector field; gradient flow on U is exactly twice it.

    Expected: within 1e-10; ratio 2.000"""
    cases = some(rows, kind="t2")
    error = max(cases.column("error") + cases.column("gap"))
    worst = max(cases.column("ratio"), key=lambda r: abs(r - 2))
    checks = (
        Check("vector field within 1e-10", error < 1e-10),
        Check("ratio 2 within 1e-9", abs(worst - 2) < 1e-9),
    )
    return Finding(checks, {"error": error, "ratio": worst, "ratio_expected": 2.0})


@claim("T3", PAPER + "Thm 4.1", trained=False)
def t3(rows: Table) -> Finding:
    """The one-layer closed form is exact, and SGD takes -ln(.2) d / (2 lr a_k) steps to 80 % (no
    bias, small start).

    Expected: within 1e-8; within 5 %"""
    exact, unbiased = rows.one(kind="t3.exact"), list(some(rows, kind="t3.sgd", bias=0))
    off = [abs(r["steps"] / r["expected"] - 1) if r.get("steps") else 1.0 for r in unbiased]
    weak = rows.one(kind="t3.sgd", bias=1, concept=1)
    measured = {
        "closed_form_error": exact["error"],
        "error_as_printed": exact["error_as_printed"],
        "worst_sgd_deviation": max(off),
        "weak_steps": unbiased[0].get("steps") or -1,
        "weak_steps_expected": unbiased[0]["expected"],
        "weak_steps_with_bias": weak.get("steps") or -1,
        "weak_steps_with_bias_expected_without": weak["expected"],
    }
    checks = (
        Check("closed form within 1e-8", exact["error"] < 1e-8),
        Check("SGD steps within 5 %", max(off) < 0.05),
    )
    return Finding(checks, measured)


@claim("T4", PAPER + "Fig 2", trained=False)
def t4(rows: Table) -> Finding:
    """The concept with the larger a_k is learned first; the order flips where diversity outweighs
    signal.

    Expected: mu=(1,2), sigma2=.05: one flip, at sigma1 = 1.226"""
    law = math.sqrt(0.05**2 + 1.5)
    checks, measured = [], {"flip_law": law}
    for model in ("one layer", "two layers"):
        at = flip_steps(some(rows, kind="t4", model=model))
        checks.append(Check(f"one flip, {model}", len(at) == 1 and abs(at[0] - law) < 0.005))
        measured[f"flips_{model.replace(' ', '_')}"] = len(at)
        if len(at) == 1:
            measured[f"flip_{model.replace(' ', '_')}"] = at[0]
    return Finding(tuple(checks), measured)


def flip_steps(sweep: Table) -> list[float]:
    """The sigma1 at which the order of the concepts changes, between two steps of the sweep."""
    line = sorted(sweep, key=lambda r: r["sigma1"])
    at = []
    for low, high in zip(line, line[1:], strict=False):
        if low["first"] != high["first"]:
            gap = [r["t1"] - r["t2"] for r in (low, high)]
            part = gap[0] / (gap[0] - gap[1])
            at.append(low["sigma1"] + (high["sigma1"] - low["sigma1"]) * part)
    return at


@claim("T5", PAPER + "Sec 4", trained=False)
def t5(rows: Table) -> Finding:
    """Terminal slowing: the log-distance falls with slope -a_min (one layer), -2 a_min (two
    layers, paper time).

    Expected: within 2 %"""
    slopes = some(rows, kind="t5")
    checks, measured = [], {}
    for model in ("one layer", "two layers"):
        mine = some(slopes, model=model)
        off = max(abs(r["slope"] / r["expected"] - 1) for r in mine)
        reference, name = mine.one(mu="1,2"), model.replace(" ", "_")
        checks.append(Check(f"slope within 2 %, {model}", off < 0.02))
        measured |= {f"{name}_worst_deviation": off, name: reference["slope"]}
        measured[f"{name}_expected"] = reference["expected"]
    return Finding(tuple(checks), measured)


T6 = {
    "low": (0.1315, 1e-4),
    "low_t": (1.73, 0.01),
    "high": (0.1635, 1e-4),
    "high_t": (3.31, 0.01),
    "w12_peak": (0.1015, 1e-4),
    "w22_at_peak": (0.758, 1e-3),
}
"""What is expected of the reference run, and how far off it may be."""


@claim("T6", PAPER + "Sec 4.2", trained=False)
def t6(rows: Table) -> Finding:
    """Swing-by in the symmetric two-layer model, mu=(1,2), sigma=.05, W(0)=.01[[1,.9],[.9,1]].

    Expected: L/L0 min .1315 at 1.73, max .1635 at 3.31, then 0; train loss monotone; w12 peaks at
    .1015 where w22=.758"""
    run = rows.one(kind="t6.summary")
    measured = {k: run[k] for k in T6} | {f"{k}_expected": v for k, (v, _) in T6.items()}
    measured |= {"end": run["end"], "train_rise": run["train_rise"], "w22_law": run["w22_law"]}
    checks = (
        Check("all digits", all(abs(run[k] - v) <= slack for k, (v, slack) in T6.items())),
        Check("ends below 1e-3", run["end"] < 1e-3),
        Check("training loss monotone", run["train_rise"] < 1e-12),
    )
    return Finding(checks, measured)


ABSENT = ("rho <= 0", "one layer", "zero mean, width >= 64", "sigma >= 2")


@claim("T7", PAPER + "App E", trained=False)
def t7(rows: Table) -> Finding:
    """No swing-by with rho <= 0, one layer and a small start, a wide zero-mean start, or sigma >=
    2.

    Expected: relative rise < 1e-4"""
    rises = {why: max(some(rows, kind="t7", why=why).column("rise")) for why in ABSENT}
    measured = {f"rise, {why}": rise for why, rise in rises.items()}
    large = rows.one(kind="t7", why="one layer, large start")
    narrow = rows.one(kind="t7", why="zero mean, narrow", value=2)
    measured |= {
        "rise_expected_below": 1e-4,
        "for contrast: one layer, start 0.5": large["rise"],
        "for contrast: share of seeds at width 2": narrow["share"],
    }
    checks = tuple(Check(f"no rise, {why}", rise < 1e-4) for why, rise in rises.items())
    return Finding(checks, measured)


@claim("T8", PAPER + "Sec 4.2, law derived here", trained=False)
def t8(rows: Table) -> Finding:
    """The weak concept waits: half-time ln((1-S)/S)/(2 a_1) with S = omega (1 - rho^2).

    Expected: within 2 % for omega <= .01"""
    small = [r for r in some(rows, kind="t8") if r["omega"] <= 0.01]
    off = max(abs(r["half"] / r["law"] - 1) for r in small)
    one = rows.one(kind="t8", omega=0.01, rho=0.9)
    measured = {"worst_deviation": off, "half_at_rho_0.9": one["half"]}
    measured["half_at_rho_0.9_law"] = one["law"]
    return Finding((Check("half-time within 2 %", off < 0.02),), measured)


@claim("T9", PAPER + "Fig 8-9", trained=False)
def t9(rows: Table) -> Finding:
    """s concepts give up to s descents.

    Expected: 3 in the listed case; over starts .18 +- .08 with A, .59 +- .10 with A^2"""
    listed = rows.one(kind="t9.listed", variant="A")["descents"]
    shares = some(rows, kind="t9.share")
    triple = {v: shares.one(setting="triple", variant=v, descents=3) for v in ("A", "A^2")}
    four = {v: shares.one(setting="quadruple", variant=v, descents=4) for v in ("A", "A^2")}
    measured = {
        "listed_case": listed,
        "listed_case_expected": 3,
        "three_of_three_A": triple["A"]["share"],
        "three_of_three_A_expected": 0.18,
        "three_of_three_A2": triple["A^2"]["share"],
        "three_of_three_A2_expected": 0.59,
        "four_of_four_A": four["A"]["share"],
        "four_of_four_A2": four["A^2"]["share"],
        "seeds": triple["A"]["seeds"],
    }
    parts = (
        Part("starts with three descents, A", share_of(triple["A"]), 0.10, 0.26),
        Part("starts with three descents, A^2", share_of(triple["A^2"]), 0.49, 0.69),
        Check("three descents in the listed case", listed == 3),
    )
    return Finding(parts, measured)


@claim("T10", PAPER + "Fig 17", trained=False)
def t10(rows: Table) -> Finding:
    """Train loss is monotone while OOD loss is not, in the same run.

    Expected: OOD rise > 1 %, train rise none"""
    flow, deep = rows.one(kind="t6.summary"), rows.one(kind="t12", depth=4, d=3)
    measured = {"flow_ood_rise": flow["rise"], "flow_train_rise": flow["train_rise"]}
    measured |= {"sgd_largest_ood_rise": deep["largest"]}
    measured |= {"sgd_train_rise_in_those_seeds": deep["train_rise"]}
    checks = (
        Check("exact flow", flow["rise"] > 0.01 and flow["train_rise"] < 1e-3),
        Check("networks trained by SGD", deep["largest"] > 0.01 and deep["train_rise"] < 1e-3),
    )
    return Finding(checks, measured)


@claim("T11", PAPER + "Fig 16", trained=False)
def t11(rows: Table) -> Finding:
    """Removing the training points near the OOD point hardly changes its trajectory.

    Expected: shift < 2 % of |x^|; the same verdict in > 95 % of seeds"""
    printed, hard = sorted(some(rows, kind="t11"), key=lambda r: r["sigma"])
    measured = {
        "points_removed": printed["removed"],
        "largest_shift": printed["apart_max"],
        "same_verdict": printed["same"],
        "points_removed_at_sigma_0.5": hard["removed"],
        "largest_shift_at_sigma_0.5": hard["apart_max"],
        "seeds": printed["seeds"],
    }
    checks = (
        Check("largest shift below 2 %", printed["apart_max"] < 0.02),
        Check("the same verdict in more than 95 % of seeds", printed["same"] > 0.95),
    )
    return Finding(checks, measured)


T12_PAPER = {(1, 3): 0.0, (2, 3): 0.125, (3, 3): 0.3125, (4, 3): 0.4375, (4, 64): 0.0}
"""Shares of 4 to 16 seeds that swing by, in a replication of the authors' setting, by depth and
dimension."""


@claim("T12", PAPER + "Fig 2c, 13", trained=False)
def t12(rows: Table) -> Finding:
    """Swing-by in networks trained by SGD grows with depth and shrinks with dimension.

    Expected: shares of seeds in that order, the ends apart by their 95 % intervals"""
    cells = [(1, 3), (2, 3), (3, 3), (4, 3), (4, 2), (4, 8), (4, 64)]
    at = {(depth, d): rows.one(kind="t12", depth=depth, d=d) for depth, d in cells}
    measured = {f"depth_{k}_d_{d}": row["share"] for (k, d), row in at.items()}
    measured["seeds"] = min(row["seeds"] for row in at.values())
    measured |= {f"depth_{k}_d_{d}_expected": v for (k, d), v in T12_PAPER.items()}
    depths = [at[k, 3]["share"] for k in (1, 2, 3, 4)]
    dims = [at[4, d]["share"] for d in (2, 3, 8, 64)]
    parts = (
        Part("depth 4 - depth 1, at d = 3", apart(at[4, 3], at[1, 3]), 0.0),
        Part("d = 2 - d = 64, at depth 4", apart(at[4, 2], at[4, 64]), 0.0),
        Check("never falls with depth", depths == sorted(depths)),
        Check("never rises with dimension", dims == sorted(dims, reverse=True)),
    )
    return Finding(parts, measured)


@claim("T13", PAPER + "App B", trained=False)
def t13(rows: Table) -> Finding:
    """Early in training the losses of the 2^s probes are ordered along the hypercube.

    Expected: >= 92 % of comparable non-origin pairs at every moment of the first 6 epochs"""
    nets = ("one layer", "two layers, ReLU")
    low = {net: min(some(rows, kind="t13", net=net).column("share")) for net in nets}
    unbiased = [(net, some(rows, kind="t13", net=f"{net}, no bias")) for net in nets]
    measured = {f"lowest share, {net}": share for net, share in low.items()}
    measured["share_expected_at_least"] = 0.92
    measured |= {f"for contrast: {net}, no bias": min(r.column("share")) for net, r in unbiased}
    return Finding(tuple(Check(net, share >= 0.92) for net, share in low.items()), measured)


@claim("T14", PAPER + "Fig 5, 10", trained=False)
def t14(rows: Table) -> Finding:
    """Published figures integrate A^2 for A, and the W-recurrence leaves the PSD cone: the failure
    to learn is an artefact.

    Expected: rise < .002 with A, .050 with A^2; the W recurrence turns negative, the U update
    learns"""
    rise = {v: rows.one(kind="t14.fig5", variant=v)["rise"] for v in ("A", "A^2")}
    w, u = (rows.one(kind="t14.fig10", update=name) for name in ("W recurrence", "U update"))
    cone_w, cone_u = (rows.one(kind="t14.cone", update=k) for k in ("W recurrence", "U update"))
    omegas = some(rows, kind="t14.assumptions").column("log10_omega")
    measured = {
        "fig5_rise_with_A": rise["A"],
        "fig5_rise_with_A2": rise["A^2"],
        "fig10_w11_W_recurrence": w["w11"],
        "fig10_w11_U_update": u["w11"],
        "fig10_w11_U_update_end": u["w11_end"],
        "left_cone_W_recurrence": cone_w["outside"],
        "diverged_W_recurrence": cone_w["diverged"],
        "left_cone_U_update": cone_u["outside"],
        "log10_omega_that_meets_D3_to_D5": max(omegas),
    }
    learns = w["w11"] < 0 < u["w11"] and is_near(u["w11_end"], 1.0, 0.01)
    checks = (
        Check("A^2 for A", rise["A"] < 0.002 and is_near(rise["A^2"], 0.05, 0.05)),
        Check("only the W recurrence fails to learn", learns),
        Check("only it leaves the cone", cone_u["outside"] == 0 < cone_w["outside"]),
    )
    return Finding(checks, measured)


CLAIMS: tuple[Claim, ...] = (t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, t12, t13, t14)
