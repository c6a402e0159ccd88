"""Which concept comes first and when, measured and predicted by the rates of structured identity
mapping."""

import math
from collections.abc import Callable
from statistics import fmean, linear_regression

from recombine.analysis.concepts import Outcome
from recombine.analysis.estimates import correlation
from recombine.analysis.table import NotMeasured

PAIR = ("color", "size")


def log_ratio(size: float, color: float) -> float:
    """How much later size is learned than colour: positive = colour first. 0 where neither is
    learned."""
    if math.isinf(color) or math.isinf(size):
        return 0.0 if color == size else math.copysign(math.inf, size - color)
    return math.log(max(size, 1.0) / max(color, 1.0))


def lead(o: Outcome) -> float:
    """The lead of colour, by the median times."""
    return log_ratio(o.time("size"), o.time("color"))


def seed_leads(o: Outcome) -> dict[int, float]:
    """The lead of colour in each seed; finite, since a concept never learned counts as learned at
    the last step."""
    color, size = o.capped_times("color"), o.capped_times("size")
    return {seed: log_ratio(size[seed], color[seed]) for seed in color}


def predicted_lead(o: Outcome, space: str) -> float:
    """The same by the theory: the log ratio of rates."""
    return math.log(o.rates[space, "color"] / o.rates[space, "size"])


def right_orders(some: list[Outcome], space: str) -> float:
    """The share of worlds in which theory predicts the order of the median times."""
    return fmean(lead(o) * predicted_lead(o, space) > 0 for o in some)


def seed_right_orders(some: list[Outcome], space: str) -> list[float]:
    """The same for each seed that all worlds have."""
    leads = [seed_leads(o) for o in some]
    wanted = [predicted_lead(o, space) for o in some]
    pairs = [[(each[s], w) for each, w in zip(leads, wanted, strict=True)] for s in shared(leads)]
    return [fmean(a * b > 0 for a, b in one) for one in pairs]


def shared(by_seed: list[dict[int, float]]) -> list[int]:
    """The seeds that all have. NotMeasured where there is none."""
    seeds = [s for s in by_seed[0] if all(s in one for one in by_seed)]
    if not seeds:
        raise NotMeasured("no seed in common")
    return seeds


def rank(some: list[Outcome], space: str) -> float:
    """Spearman's correlation of predicted and median learning times, over all factors of all
    worlds; 0 where times do not vary. A concept that was never learned comes last."""
    predicted = [1 / o.rates[space, f] for o in some for f in PAIR]
    return _rank(predicted, [o.time(f) for o in some for f in PAIR])


def seed_ranks(some: list[Outcome], space: str) -> list[float]:
    """The same for each seed that all worlds have."""
    predicted = [1 / o.rates[space, f] for o in some for f in PAIR]
    times = [o.times(f) for o in some for f in PAIR]
    return [_rank(predicted, [t[seed] for t in times]) for seed in shared(times)]


def _rank(x: list[float], y: list[float]) -> float:
    rho = correlation(x, y) if len(x) > 2 else math.nan
    return 0.0 if math.isnan(rho) else rho


def by_net(some: list[Outcome], least: int = 3) -> dict[str, list[Outcome]]:
    """The worlds of each network that has at least so many. NotMeasured where none has."""
    groups: dict[str, list[Outcome]] = {}
    for o in some:
        groups.setdefault(o.facts["net"], []).append(o)
    enough = {net: mine for net, mine in groups.items() if len(mine) >= least}
    if not enough:
        raise NotMeasured(f"at least {least} worlds are needed")
    return enough


def crossing(line: list[Outcome], value: Callable[[Outcome], float]) -> float | str:
    """The colour signal at which `value`, a log ratio, changes its sign along a line, between two
    worlds; or which concept is first in all."""
    points = [(math.log(o.facts["color_signal"]), value(o)) for o in line]
    for (x0, y0), (x1, y1) in zip(points, points[1:], strict=False):
        if y0 < 0 <= y1:
            part = -y0 / (y1 - y0) if math.isfinite(y0) and math.isfinite(y1) else 0.5
            return math.exp(x0 + part * (x1 - x0))
    return "color first" if points[0][1] >= 0 else "size first"


def flip_ratios(net: str, some: list[Outcome]) -> dict[str, float | str]:
    """Along each line of worlds with one size signal: where the order flips, and where it should by
    the world's pixels."""
    at: dict[str, float | str] = {}
    for size in sorted({o.facts["size_signal"] for o in some}, reverse=True):
        line = [o for o in some if o.facts["size_signal"] == size]
        line = sorted(line, key=lambda o: o.facts["color_signal"])
        at[f"{net}, size {size:g}: order flips at color"] = crossing(line, lead)
        by_pixels = crossing(line, lambda o: predicted_lead(o, "pixels"))
        at[f"{net}, size {size:g}: by pixels"] = by_pixels
    return at


def powers(pairs: list[tuple[Outcome, Outcome]]) -> dict[str, float]:
    """The power of the colour signal with which the steps to learn colour fall, for each network
    and embedding scale that has three or more worlds."""
    fitted = {}
    for net in dict.fromkeys(raw.facts["net"] for raw, _ in pairs):
        mine = [p for p in pairs if p[0].facts["net"] == net]
        for i, scale in enumerate(("raw", "balanced")):
            some = [pair[i] for pair in mine]
            x = [math.log(o.facts["color_signal"]) for o in some]
            y = [math.log(max(o.time("color"), 1.0)) for o in some]
            if len(x) >= 3 and all(map(math.isfinite, y)):
                name = f"{net}: T_color goes as the signal to the power, {scale}"
                fitted[name] = linear_regression(x, y).slope
    return fitted
