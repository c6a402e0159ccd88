"""The claims T1-T14 of the study `swing-by`: from rows to verdicts. Wherever print or theory gives a number, it stands beside
the measured one under the name `..._expected`, `..._law` or `..._paper`."""

import math
from collections.abc import Callable

from recombine.evaluate.intervals import wilson
from recombine.studies.base import Claim, Judgement, Rows


def claim(id: str, where: str, expected: str) -> Callable[[Callable[[Rows], Judgement]], Claim]:
    """Makes a judging function, whose docstring is the statement, into a Claim."""
    return lambda judge: Claim(id, f"Yang et al. 2025, {where}", judge.__doc__, expected, judge)


def near(value: float | None, wanted: float, share: float) -> bool:
    return value is not None and abs(value - wanted) <= share * abs(wanted)


def some(rows: Rows, **equal: object) -> Rows:
    """The rows that match, at least one."""
    found = rows.where(**equal)
    if not found:
        raise LookupError(f"no rows match {equal}")
    return found


@claim("T1", "Sec 2", "error of order 1/sqrt(s n)")
def t1(rows: Rows) -> Judgement:
    """The second moment of the data is diag(mu^2/s + sigma^2)."""
    found = some(rows, kind="t1")
    scaled = {(r["case"], r["n"]): r["scaled"] for r in found}
    few, many = min(found.column("n")), max(found.column("n"))
    growth = max(scaled[case, many] / scaled[case, few] for case, n in scaled if n == many)
    measured = {"error_at_largest_n": max(some(found, n=many).column("error")), "largest_n": many}
    measured |= {"error_times_sqrt_sn": max(scaled.values()), "growth_of_that_over_n": growth}
    return Judgement(max(scaled.values()) < 5 and growth < 2, measured)


@claim("T2", "Eq 4.3", "within 1e-10; ratio 2.000")
def t2(rows: Rows) -> Judgement:
    """Growth - suppression - noise is the vector field; gradient flow on U is exactly twice it."""
    found = some(rows, kind="t2")
    ratios, error = found.column("ratio"), max(found.column("error") + found.column("gap"))
    worst = max(ratios, key=lambda r: abs(r - 2))
    return Judgement(error < 1e-10 and abs(worst - 2) < 1e-9, {"error": error, "ratio": worst, "ratio_expected": 2.0})


@claim("T3", "Thm 4.1", "within 1e-8; within 5 %")
def t3(rows: Rows) -> Judgement:
    """The one-layer closed form is exact, and SGD takes -ln(.2) d / (2 lr a_k) steps to 80 % (no bias, small start)."""
    exact, plain = rows.one(kind="t3.exact"), some(rows, kind="t3.sgd", bias=0)
    off = [1.0 if r["steps"] is None else abs(r["steps"] / r["expected"] - 1) for r in plain]
    weak = rows.one(kind="t3.sgd", bias=1, concept=1)
    first = plain[0]
    measured = {
        "closed_form_error": exact["error"], "error_as_printed": exact["error_as_printed"], "worst_sgd_deviation": max(off),
        "weak_steps": first["steps"] or -1, "weak_steps_expected": first["expected"],
        "weak_steps_with_bias": weak["steps"] or -1, "weak_steps_with_bias_expected_without": weak["expected"],
    }  # fmt: skip
    return Judgement(exact["error"] < 1e-8 and max(off) < 0.05, measured)


@claim("T4", "Fig 2", "mu=(1,2), sigma2=.05: one flip, at sigma1 = 1.226")
def t4(rows: Rows) -> Judgement:
    """The concept with the larger a_k is learned first; the order flips where diversity outweighs signal."""
    flips = {}
    for model in ("one layer", "two layers"):
        sweep = sorted(some(rows, kind="t4", model=model), key=lambda r: r["sigma1"])
        pairs = [(a, b) for a, b in zip(sweep, sweep[1:], strict=False) if a["first"] == 2 and b["first"] == 1]
        back = [1 for a, b in zip(sweep, sweep[1:], strict=False) if a["first"] == 1 and b["first"] == 2]
        if len(pairs) != 1 or back:
            return Judgement(False, {f"flips_{model}": len(pairs) + len(back)})
        (low, high), gap = pairs[0], [r["t1"] - r["t2"] for r in pairs[0]]
        flips[model] = low["sigma1"] + (high["sigma1"] - low["sigma1"]) * gap[0] / (gap[0] - gap[1])
    law = math.sqrt(0.05**2 + 1.5)
    measured = {"flip_one_layer": flips["one layer"], "flip_two_layers": flips["two layers"], "flip_law": law}
    return Judgement(all(abs(f - law) < 0.005 for f in flips.values()), measured)


@claim("T5", "Sec 4", "within 2 %")
def t5(rows: Rows) -> Judgement:
    """Terminal slowing: the log-distance falls with slope -a_min (one layer), -2 a_min (two layers, paper time)."""
    found = some(rows, kind="t5")
    off = max(abs(r["slope"] / r["expected"] - 1) for r in found)
    one, two = found.one(model="one layer", mu="1,2"), found.one(model="two layers", mu="1,2")
    measured = {"worst_deviation": off, "one_layer": one["slope"], "one_layer_expected": one["expected"]}
    return Judgement(off < 0.02, {**measured, "two_layers": two["slope"], "two_layers_expected": two["expected"]})


T6 = {
    "low": (0.1315, 1e-4),
    "low_t": (1.73, 0.01),
    "high": (0.1635, 1e-4),
    "high_t": (3.31, 0.01),
    "w12_peak": (0.1015, 1e-4),
    "w22_at_peak": (0.758, 1e-3),
}


@claim(
    "T6",
    "Sec 4.2",
    "L/L0 min .1315 at 1.73, max .1635 at 3.31, then 0; train loss monotone; w12 peaks at .1015 where w22=.758",
)
def t6(rows: Rows) -> Judgement:
    """Swing-by in the symmetric two-layer model, mu=(1,2), sigma=.05, W(0)=.01[[1,.9],[.9,1]]."""
    found = rows.one(kind="t6.summary")
    measured = {k: found[k] for k in T6} | {f"{k}_expected": v for k, (v, _) in T6.items()}
    measured |= {"end": found["end"], "train_rise": found["train_rise"], "w22_law": found["w22_law"]}
    digits = all(abs(found[k] - v) <= slack for k, (v, slack) in T6.items())
    return Judgement(digits and found["end"] < 1e-3 and found["train_rise"] < 1e-12, measured)


ABSENT = ("rho <= 0", "one layer", "zero mean, width >= 64", "sigma >= 2")


@claim("T7", "App E", "relative rise < 1e-4")
def t7(rows: Rows) -> Judgement:
    """No swing-by with rho <= 0, one layer and a small start, a wide zero-mean start, or sigma >= 2."""
    rises = {why: max(some(rows, kind="t7", why=why).column("rise")) for why in ABSENT}
    measured = {f"rise, {why}": rise for why, rise in rises.items()}
    measured["rise_expected_below"] = 1e-4
    large = rows.one(kind="t7", why="one layer, large start")
    narrow = rows.one(kind="t7", why="zero mean, narrow", value=2)
    measured |= {
        "for contrast: one layer, start 0.5": large["rise"],
        "for contrast: share of seeds at width 2": narrow["share"],
    }
    return Judgement(all(rise < 1e-4 for rise in rises.values()), measured)


@claim("T8", "Sec 4.2, law derived here", "within 2 % for omega <= .01")
def t8(rows: Rows) -> Judgement:
    """The weak concept waits: half-time ln((1-S)/S)/(2 a_1) with S = omega (1 - rho^2)."""
    small = [r for r in some(rows, kind="t8") if r["omega"] <= 0.01]
    off = max(abs(r["half"] / r["law"] - 1) for r in small)
    one = rows.one(kind="t8", omega=0.01, rho=0.9)
    return Judgement(
        off < 0.02, {"worst_deviation": off, "half_at_rho_0.9": one["half"], "half_at_rho_0.9_law": one["law"]}
    )


@claim("T9", "Fig 8-9", "3 in the listed case; over seeds 18 % with A, 59 % with A^2")
def t9(rows: Rows) -> Judgement:
    """s concepts give up to s descents."""
    listed = rows.one(kind="t9.listed", variant="A")["descents"]
    triple = {v: rows.one(kind="t9.share", setting="triple", variant=v, descents=3) for v in ("A", "A^2")}
    four = {v: rows.one(kind="t9.share", setting="quadruple", variant=v, descents=4)["share"] for v in ("A", "A^2")}
    true, squared, seeds = triple["A"]["share"], triple["A^2"]["share"], triple["A"]["seeds"]
    spread = 1.96 * math.sqrt(true * (1 - true) / seeds)
    measured = {
        "listed_case": listed, "listed_case_expected": 3, "three_of_three_A": true, "three_of_three_A_expected": 0.18,
        "three_of_three_A2": squared, "three_of_three_A2_expected": 0.59, "four_of_four_A": four["A"],
        "four_of_four_A2": four["A^2"], "seeds": seeds,
    }  # fmt: skip
    holds = listed == 3 and abs(true - 0.18) < 0.08 and abs(squared - 0.59) < 0.1 and seeds >= 300
    return Judgement(holds, measured, (true - spread, true + spread))


@claim("T10", "Fig 17", "OOD rise > 1 %, train rise none")
def t10(rows: Rows) -> Judgement:
    """Train loss is monotone while OOD loss is not, in the same run."""
    flow, deep = rows.one(kind="t6.summary"), rows.one(kind="t12", depth=4, d=3)
    measured = {"flow_ood_rise": flow["rise"], "flow_train_rise": flow["train_rise"]}
    measured |= {"sgd_largest_ood_rise": deep["largest"], "sgd_train_rise_in_those_seeds": deep["train_rise"]}
    ood, train = flow["rise"] > 0.01 and deep["largest"] > 0.01, max(flow["train_rise"], deep["train_rise"]) < 1e-3
    return Judgement(ood and train, measured)


@claim("T11", "Fig 16", "shift < 2 % of |x^|, same verdict")
def t11(rows: Rows) -> Judgement:
    """Removing the training points near the OOD point hardly changes its trajectory."""
    print_, hard = sorted(some(rows, kind="t11"), key=lambda r: r["sigma"])
    measured = {
        "points_removed": print_["removed"], "largest_shift": print_["apart_max"], "same_verdict": print_["same"],
        "points_removed_at_sigma_0.5": hard["removed"], "largest_shift_at_sigma_0.5": hard["apart_max"],
        "seeds": print_["seeds"],
    }  # fmt: skip
    return Judgement(print_["apart_max"] < 0.02 and print_["same"] > 0.95, measured)


@claim("T12", "Fig 2c, 13", "shares of seeds in that order, the ends apart by their 95 % intervals, >= 32 seeds")
def t12(rows: Rows) -> Judgement:
    """Swing-by in networks trained by SGD grows with depth and shrinks with dimension."""
    depths = [rows.one(kind="t12", depth=k, d=3)["share"] for k in (1, 2, 3, 4)]
    dims = [rows.one(kind="t12", depth=4, d=k)["share"] for k in (2, 3, 8, 64)]
    seeds = min(some(rows, kind="t12").column("seeds"))
    measured = {f"depth_{k}_d_3": v for k, v in zip((1, 2, 3, 4), depths, strict=True)}
    measured |= {f"depth_4_d_{k}": v for k, v in zip((2, 3, 8, 64), dims, strict=True)} | {"seeds": seeds}
    measured |= {f"depth_{k}_d_3_expected": v for k, v in zip((1, 2, 3, 4), (0.0, 0.125, 0.3125, 0.4375), strict=True)}
    measured["depth_4_d_64_expected"] = 0.0
    apart = lambda few, many: wilson(round(few * seeds), seeds)[1] < wilson(round(many * seeds), seeds)[0]  # noqa: E731
    rising = depths == sorted(depths) and apart(depths[0], depths[-1])
    falling = dims == sorted(dims, reverse=True) and apart(dims[-1], dims[0])
    return Judgement(
        (rising and falling and seeds >= 32) or ("partly" if depths[0] < depths[-1] and dims[-1] < dims[0] else False),
        measured,
    )


@claim("T13", "App B", ">= 92 % of comparable non-origin pairs at every moment of the first 6 epochs")
def t13(rows: Rows) -> Judgement:
    """Early in training the losses of the 2^s probes are ordered along the hypercube."""
    low = {net: min(some(rows, kind="t13", net=net).column("share")) for net in ("one layer", "two layers, ReLU")}
    free = {net: min(some(rows, kind="t13", net=f"{net}, no bias").column("share")) for net in low}
    measured = {f"lowest share, {net}": share for net, share in low.items()} | {"share_expected_at_least": 0.92}
    measured |= {f"for contrast: {net}, no bias": share for net, share in free.items()}
    return Judgement(all(share >= 0.92 for share in low.values()), measured)


@claim("T14", "Fig 5, 10", "rise < .002 with A, .050 with A^2; the W recurrence turns negative, the U update learns")
def t14(rows: Rows) -> Judgement:
    """Published figures integrate A^2 for A, and the W-recurrence leaves the PSD cone: the failure to learn is an artefact."""
    rise = {v: rows.one(kind="t14.fig5", variant=v)["rise"] for v in ("A", "A^2")}
    w, u = (rows.one(kind="t14.fig10", update=name) for name in ("W recurrence", "U update"))
    cone = {name: rows.one(kind="t14.cone", update=name) for name in ("W recurrence", "U update")}
    measured = {
        "fig5_rise_with_A": rise["A"], "fig5_rise_with_A2": rise["A^2"], "fig10_w11_W_recurrence": w["w11"],
        "fig10_w11_U_update": u["w11"], "fig10_w11_U_update_end": u["w11_end"],
        "left_cone_W_recurrence": cone["W recurrence"]["outside"], "diverged_W_recurrence": cone["W recurrence"]["diverged"],
        "left_cone_U_update": cone["U update"]["outside"],
        "log10_omega_that_meets_D3_to_D5": max(some(rows, kind="t14.assumptions").column("log10_omega")),
    }  # fmt: skip
    squared = rise["A"] < 0.002 and near(rise["A^2"], 0.05, 0.05)
    cones = (
        w["w11"] < 0 < u["w11"]
        and near(u["w11_end"], 1.0, 0.01)
        and cone["U update"]["outside"] == 0 < cone["W recurrence"]["outside"]
    )
    return Judgement(squared and cones, measured)


CLAIMS: tuple[Claim, ...] = (t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, t12, t13, t14)
