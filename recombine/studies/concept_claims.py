"""Claims C1-C6, B2 and B5 of `concept-space`, from rows to findings. All accuracies are mean
probabilities of the CNN probe; a concept is learned when its coordinate reaches 0.8 and stays
there, for the seen compositions and the unseen one."""

import math
from statistics import fmean, median

from recombine.analysis.claims import Finding, Measured, Part, claim
from recombine.analysis.concept_order import (
    shared,
)
from recombine.analysis.concepts import (
    by_masked_share,
    dips,
    distance_descents,
    halfway,
    late_mean,
    main_line,
    outcomes,
    ratio,
    rise,
)
from recombine.analysis.estimates import (
    Estimate,
    correlation,
    correlation_estimate,
    rate,
    rate_difference,
)
from recombine.analysis.prompted import Prompted, prompted_runs
from recombine.analysis.table import NotMeasured, Table
from recombine.studies.concept_order_claims import (
    DEVIATIONS,
    embedding_scale_decides,
    order_flips,
    rates_predict_order,
    shown,
)


def probability(values: list[float]) -> Estimate:
    """The mean over seeds of probabilities; rounding may carry one a little beyond 0 or 1."""
    return rate([clipped(v) for v in values])


@claim("C1", "C, Fig 6; concept-space papers", faithful=False, deviations=DEVIATIONS)
def accuracy_dips(rows: Table) -> Finding:
    """Where the colour signal is weak, accuracy on the unseen composition falls before it rises.

    Expected: a fall of at least 0.1, then above 0.5, at every weak signal (paper: 0.25 to below
    0.1, then 0.55); CNN probe"""
    # A fall of 0.1 or more and a rise above 0.5, at every weak signal.
    weak = [o for o in main_line(outcomes(rows)) if o.has(weak=1)]
    if not weak:
        raise NotMeasured("no weak colour signal is in the settings")
    parts, measured = [], {}
    for o in weak:
        each, at = list(dips(o).values()), f"color {o.facts['color_signal']:g}"
        parts.append(Part(f"fall, {at}", probability([d.depth for d in each]), 0.1, 1.0))
        parts.append(Part(f"then, {at}", probability([d.after for d in each]), 0.5, 1.0))
        twice = [distance_descents(c)[0] >= 2 for c in o.runs.values()]
        dipped = sum(d.depth >= 0.1 and d.after > 0.5 for d in each)
        measured |= {
            f"{at}: high": fmean(d.high for d in each),
            f"{at}: low": fmean(d.low for d in each),
            f"{at}: after": fmean(d.after for d in each),
            f"{at}: turn at step": median(d.turn for d in each),
            f"{at}: seeds with a dip": f"{dipped} of {len(each)}",
            f"{at}: seeds whose distance falls twice": f"{sum(twice)} of {len(twice)}",
        }
    return Finding(
        tuple(parts), measured | {"paper: high": 0.25, "paper: low": 0.05, "paper: after": 0.55}
    )


@claim("C2", "C, section 5; concept-space papers", faithful=False, deviations=DEVIATIONS)
def signal_speeds_learning(rows: Table) -> Finding:
    """The stronger the colour signal, the sooner colour is learned.

    Expected: steps to learn colour fall at every step of the line, over at least 5 signals, rank
    correlation <= -0.8 (paper: 15.7k to 3.3k); CNN probe"""
    # Over seeds: the rank correlation of signal and time, and the step of the line that falls
    # least.
    line = main_line(outcomes(rows))
    if len(line) < 3:
        raise NotMeasured("at least three colour signals are needed")
    signals = [o.facts["color_signal"] for o in line]
    times = [o.capped_times("color") for o in line]
    each = [correlation(signals, [t[seed] for t in times]) for seed in shared(times)]
    each = [0.0 if math.isnan(rho) else rho for rho in each]
    steps = [ratio(a, b) for a, b in zip(times, times[1:], strict=False)]
    least = min(range(len(steps)), key=lambda i: steps[i].value)
    between = f"color {signals[least]:g} to {signals[least + 1]:g}"
    parts = [
        Part("rank correlation of signal and T_color", correlation_estimate(each), -1.0, -0.8),
        Part(f"T_color falls least: ratio from {between}", steps[least], 1.0),
    ]
    if len(line) < 5:
        few = Estimate(float(len(line)), math.nan, math.nan, len(line), ())
        parts.append(Part("colour signals", few, 5.0))
    measured = {f"T_color at {o.facts['color_signal']:g}": o.time("color") for o in line}
    return Finding(tuple(parts), shown(measured | {"paper at 0.2": 15700, "paper at 0.8": 3300}))


@claim("C4", "concept-space papers", faithful=False, deviations=DEVIATIONS)
def ability_precedes(rows: Table) -> Finding:
    """The ability is there before it shows: prompting for more than blue succeeds while the plain
    prompt for blue still fails.

    Expected: overprompting >= 0.9 at a checkpoint where the plain prompt is <= 0.4, in most runs
    in which it fails; CNN probe"""
    # Of each seed's runs in which the plain prompt fails: the share in which overprompting
    # reaches 0.9 meanwhile.
    runs = prompted_runs(rows)
    if not runs:
        raise NotMeasured("no run was prompted by another method")
    over = [
        (r.seed, best) for r in runs if (best := r.best_while_plain_fails("overprompt")) is not None
    ]
    if not over:
        raise NotMeasured("the plain prompt fails in no run")
    by_seed: dict[int, list[bool]] = {}
    for seed, value in over:
        by_seed.setdefault(seed, []).append(value >= 0.9)
    share = rate([fmean(each) for each in by_seed.values()])
    measured: Measured = {
        "seeds and worlds": len(runs),
        "of these the plain prompt fails in": len(over),
        "overprompting while plain <= 0.4": fmean(value for _, value in over),
        "runs with overprompting >= 0.9 while plain <= 0.4": sum(v >= 0.9 for _, v in over),
        "steering while plain <= 0.4": fmean(best_of(runs, "steer")),
    }
    for method in ("plain", "overprompt", "steer"):
        step = median(r.reaches(method) for r in runs)
        measured[f"step at which {method} reaches 0.8"] = step
    if patches := best_of(runs, "patch"):
        measured["early network, late embedding, while plain <= 0.4"] = fmean(patches)
        measured["runs with such a patch"] = len(patches)
    part = Part("share of runs with overprompting >= 0.9", share, 0.5, 1.0)
    return Finding((part,), shown(measured))


def best_of(runs: list[Prompted], method: str) -> list[float]:
    """The most that a method reaches while the plain prompt fails, of all runs of which that can be
    said."""
    best = [run.best_while_plain_fails(method) for run in runs]
    return [value for value in best if value is not None]


@claim("C5", "Okawa et al., Fig 6", faithful=False, deviations=DEVIATIONS)
def joint_jumps_late(rows: Table) -> Finding:
    """Compositional ability emerges multiplicatively: with three concepts the joint accuracy jumps
    late, while the mean over concepts grows smoothly.

    Expected: largest rise of joint >= 1.3 times that of the mean, and halfway at least 10 % later
    (paper: 0.47 against 0.16); joint >= 0.5 at the end; CNN probe"""
    # Ratios of joint to mean, seed by seed: of their largest rises, and of the steps at which
    # they are halfway.
    three = [o for o in outcomes(rows) if o.facts["background_signal"]]
    runs = dict(enumerate(c for o in three for c in o.runs.values()))
    if not runs:
        raise NotMeasured("no world with three factors")
    rises, halves = {}, {}
    for name in ("joint", "mean"):
        curves = {i: (c.steps, getattr(c, name)) for i, c in runs.items()}
        rises[name] = {i: max(rise(*c), SMALL) for i, c in curves.items()}
        halves[name] = {i: max(1.0, min(halfway(*c), float(c[0][-1]))) for i, c in curves.items()}
    end = probability([float(c.joint[-1]) for c in runs.values()])
    parts = (
        Part("largest rise, joint / mean", ratio(rises["joint"], rises["mean"]), 1.3),
        Part("halfway step, joint / mean", ratio(halves["joint"], halves["mean"]), 1.1),
        Part("joint at the end", end, 0.5, 1.0),
    )
    measured = {
        f"largest rise of {k} while steps grow by a quarter": fmean(v.values())
        for k, v in rises.items()
    }
    measured |= {f"halfway step of {k}": median(v.values()) for k, v in halves.items()}
    return Finding(parts, measured | {"paper, joint": 0.47, "paper, mean": 0.16})


SMALL = 1e-3


"""A rise that is less cannot be distinguished from none."""


@claim("C6", "concept-space papers", faithful=False, deviations=DEVIATIONS)
def masking_bends_back(rows: Table) -> Finding:
    """Captions that leave out a colour bend the unseen composition back to the colour seen, and
    slow learning.

    Expected: blue (mean of the last quarter) falls with the share of masked captions, by 0.2 or
    more in all and never by less than -0.02; T_color grows, never by less than a factor 0.95;
    conditioned on values and on classes; CNN probe"""
    # For models conditioned on values and on classes: how far blue falls, and how much later
    # colour is learned, from no masked captions to all; and that neither goes back on the way.
    lines = by_masked_share(outcomes(rows))
    if not lines:
        raise NotMeasured("no masked captions, or none to compare them with")
    parts, blues, times = [], {}, {}
    for given, line in lines.items():
        blue = [[clipped(late_mean(c.factors["color"])) for c in o.runs.values()] for o in line]
        steps = [o.capped_times("color") for o in line]
        falls_by = [rate_difference(a, b) for a, b in zip(blue, blue[1:], strict=False)]
        slows_by = [ratio(b, a) for a, b in zip(steps, steps[1:], strict=False)]
        parts += [
            Part(f"by {given}: blue falls", rate_difference(blue[0], blue[-1]), 0.2, 1.0),
            Part(f"by {given}: T_color, all / none masked", ratio(steps[-1], steps[0]), 1.0),
            *violated(f"by {given}: blue falls least", falls_by, -0.02),
            *violated(f"by {given}: T_color grows least", slows_by, 0.95),
        ]
        names = [f"{o.facts['masked']:.0%}" for o in line]
        at = list(zip(names, line, blue, strict=True))
        blues |= {f"by {given}: blue at {n} masked": fmean(b) for n, _, b in at}
        times |= {f"by {given}: T_color at {n}": o.time("color") for n, o, _ in at}
    return Finding(tuple(parts), shown(blues | times))


def violated(name: str, steps: list[Estimate], low: float) -> list[Part]:
    """The smallest of the estimates, where it is below its limit: so what changes nothing does not
    count as support."""
    least = min(steps, key=lambda e: e.value)
    return [Part(name, least, low)] if least.value < low else []


def clipped(value: float) -> float:
    """Rounding may carry a probability a little beyond 0 or 1."""
    return min(max(value, 0.0), 1.0)


CLAIMS = (
    accuracy_dips,
    signal_speeds_learning,
    order_flips,
    ability_precedes,
    joint_jumps_late,
    masking_bends_back,
    rates_predict_order,
    embedding_scale_decides,
)
