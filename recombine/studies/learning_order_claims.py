"""Claims C7, C8 and B34 of `learning-order`, from rows to findings: in the setting of the public
concept-space code, by its rule of when a concept is learned."""

import math
from statistics import fmean

from recombine.analysis.claims import Finding, Measured, Part, claim
from recombine.analysis.concept_order import shared
from recombine.analysis.concepts import late_mean, ratio
from recombine.analysis.estimates import mean, rate, rate_difference
from recombine.analysis.learning_order import World, by_masked_share, grid, worlds
from recombine.analysis.table import NotMeasured, Table

FACTOR = 1.5
"""Our times may be longer or shorter than the published ones by this much."""
CLEAR = 1.25
"""Published times that differ by less do not say which concept is first."""
DEVIATIONS = (
    "U-Net with one block less at the coarsest grid, and SiLU (the public code: GELU)",
    "batches are drawn with replacement (the public code: by epochs)",
    "a CNN probe for each world (the public code: one classifier for all worlds)",
    "a time counts only once seen compositions show something (the public code: from the start)",
    "worlds stop at 1.5 times their longest published time (the public code: 20,000 steps)",
)
MASKING = (*DEVIATIONS, "masked captions: circles, the colour set to zero (not in the public code)")


def calibration(found: list[World]) -> Part:
    """Our T_color over the published one, geometric means over worlds, seed by seed."""
    known = [w for w in grid(found) if w.published]
    if not known:
        raise NotMeasured("no world with published times")
    times = [w.times("color") for w in known]
    seeds = shared(times)
    ours = {s: math.exp(fmean(math.log(t[s]) for t in times)) for s in seeds}
    theirs = math.exp(fmean(math.log(w.published["color"]) for w in known))
    estimate = ratio(ours, dict.fromkeys(seeds, theirs))
    return Part("T_color, ours / published", estimate, 1 / FACTOR, FACTOR)


def needed(part: Part) -> Part:
    return Part(part.name, part.estimate, part.low, part.high, needed=True)


def table(found: list[World]) -> Measured:
    """Mean times of every world beside the published ones."""
    measured: Measured = {}
    for w in found:
        for factor, short in (("color", "T_color"), ("size", "T_size")):
            at = f"{short}, {w.name}" + (f", {w.masked:.0%} masked" if w.masked else "")
            measured[at] = fmean(w.times(factor).values())
            if w.never(factor):
                measured[f"{at}: seeds that never learn it"] = w.never(factor)
            if w.published and not w.masked:
                measured[f"{at}, published"] = w.published[factor]
    return measured


@claim("B34", "concept-space papers", deviations=DEVIATIONS)
def gate(rows: Table) -> Finding:
    """In the public code's setting, colour is learned after as many steps as its authors published.

    Expected: T_color over the published one between 1 / 1.5 and 1.5, geometric means over worlds;
    needed: colour learned in at least 75 % of worlds; CNN probe"""
    found = grid(worlds(rows))
    learned = [
        {s: float(math.isfinite(run.time("color"))) for s, run in w.runs.items()} for w in found
    ]
    share = rate([fmean(one[s] for one in learned) for s in shared(learned)])
    shown = Part("worlds in which colour is learned", share, 0.75, 1.0, needed=True)
    return Finding((calibration(found), shown), table(found))


@claim("C7", "C, section 5; concept-space papers", deviations=DEVIATIONS)
def order_flips(rows: Table) -> Finding:
    """In the public code's setting, which concept comes first flips along the diagonal of the
    signals.

    Expected: size first at the weakest colour and strongest size, colour first at the strongest
    colour and weakest size; the published order in at least 75 % of worlds whose published times
    differ by a quarter; needed: T_color within a factor 1.5 of the published one; CNN probe"""
    found = grid(worlds(rows))
    weakest = min(found, key=lambda w: w.color / w.size)
    strongest = max(found, key=lambda w: w.color / w.size)
    if weakest.name == strongest.name:
        raise NotMeasured("one world only")
    size, color = (list(w.leads().values()) for w in (weakest, strongest))
    parts = (
        Part(f"lead of colour, {weakest.name}", mean(size, resolution=0.01), high=0.0),
        Part(f"lead of colour, {strongest.name}", mean(color, resolution=0.01), low=0.0),
        Part("worlds in the published order", rate(right_orders(found)), 0.75, 1.0),
        needed(calibration(found)),
    )
    return Finding(parts, table(found))


def right_orders(found: list[World]) -> list[float]:
    """For each seed the share of worlds with a clear published order in which ours is the same."""
    clear = {w.name: lead for w in found if abs(lead := published_lead(w)) > math.log(CLEAR)}
    if not clear:
        raise NotMeasured("no world with a clear published order")
    leads = {w.name: w.leads() for w in found if w.name in clear}
    seeds = shared(list(leads.values()))
    return [fmean(leads[name][s] * clear[name] > 0 for name in clear) for s in seeds]


def published_lead(w: World) -> float:
    return math.log(w.published["size"] / w.published["color"]) if w.published else 0.0


@claim("C8", "concept-space papers", faithful=False, deviations=MASKING)
def masking_bends_back(rows: Table) -> Finding:
    """In the public code's setting, captions that leave out the colour of one training class bend
    the unseen composition back to the colour seen, and slow learning.

    Expected: blue (mean of the last quarter) falls by 0.2 or more from no to all captions masked,
    and T_color grows; neither goes back by more than 0.02 or a factor 0.95 on the way; needed:
    T_color within a factor 1.5 of the published one; CNN probe"""
    found = worlds(rows)
    line = by_masked_share(found)
    blue = [[late_mean(run.accuracy["color"]) for run in w.runs.values()] for w in line]
    times = [w.times("color") for w in line]
    steps = list(zip(blue, blue[1:], times, times[1:], strict=False))
    falls = min((rate_difference(a, b) for a, b, _, _ in steps), key=lambda e: e.value)
    grows = min((ratio(d, c) for _, _, c, d in steps), key=lambda e: e.value)
    parts = [
        Part("blue falls", rate_difference(blue[0], blue[-1]), 0.2, 1.0),
        Part("T_color, all / none masked", ratio(times[-1], times[0]), 1.0),
    ]
    parts += [Part("blue falls least", falls, -0.02)] if falls.value < -0.02 else []
    parts += [Part("T_color grows least", grows, 0.95)] if grows.value < 0.95 else []
    blues = {f"blue at {w.masked:.0%} masked": fmean(b) for w, b in zip(line, blue, strict=True)}
    return Finding((*parts, needed(calibration(found))), blues | table(line))


CLAIMS = (order_flips, masking_bends_back, gate)
