"""Which factor comes first, when, and whether theory could tell: claims C3, B2 and B5, judged from the rows."""

import math
from collections.abc import Callable
from statistics import fmean, linear_regression

from recombine.studies.base import Judgement, Rows
from recombine.studies.concept_space.curves import Outcome, outcomes
from recombine.studies.concept_space.judges import correlation, dips, main_line, shown
from recombine.theory.predict import SPACES

PAIR = ("color", "size")


def lead(o: Outcome) -> float:
    """How much later size is learned than colour, as a log ratio: positive = colour first. 0 where neither is learned."""
    color, size = o.time("color"), o.time("size")
    if math.isinf(color) or math.isinf(size):
        return 0.0 if color == size else math.copysign(math.inf, size - color)
    return math.log(size / color)


def foreseen(o: Outcome, space: str) -> float:
    """The same by the theory: the log ratio of rates."""
    return math.log(o.rates[space, "color"] / o.rates[space, "size"])


def right_orders(some: list[Outcome], space: str) -> float:
    return fmean(lead(o) * foreseen(o, space) > 0 for o in some)


def crossing(line: list[Outcome], value: Callable[[Outcome], float]) -> float | str:
    """The colour signal at which `value`, a log ratio, changes its sign along a line, between two worlds; or that it stays."""
    points = [(math.log(o.facts["color_signal"]), value(o)) for o in line]
    for (x0, y0), (x1, y1) in zip(points, points[1:], strict=False):
        if y0 < 0 <= y1:
            part = -y0 / (y1 - y0) if math.isfinite(y0) and math.isfinite(y1) else 0.5
            return math.exp(x0 + part * (x1 - x0))
    return "color first" if points[0][1] >= 0 else "size first"


def judge_order(rows: Rows) -> Judgement:
    found = outcomes(rows)
    main_line(found)
    plain = [o for o in found if o.plain and o.is_(told="raw")]
    nets = {net: [o for o in plain if o.facts["net"] == net] for net in dict.fromkeys(o.facts["net"] for o in plain)}
    nets = {net: some for net, some in nets.items() if len(some) >= 3}
    if not nets:
        raise LookupError("at least three worlds are needed")
    measured: dict = {}
    for net, some in nets.items():
        measured |= {f"{net}: worlds": len(some), f"{net}: color first in": sum(lead(o) > 0 for o in some)}
        measured |= flips(net, some)
        measured |= {f"{net}: orders right, {space}": right_orders(some, space) for space in SPACES}
    both = {net: 0 < measured[f"{net}: color first in"] < len(some) for net, some in nets.items()}
    holds = [both[net] and right_orders(some, "pixels") >= 0.9 for net, some in nets.items()]
    nearly = [both[net] and max(right_orders(some, space) for space in SPACES) >= 0.75 for net, some in nets.items()]
    return Judgement(all(holds) or ("partly" if any(nearly) else False), measured)


def flips(net: str, some: list[Outcome]) -> dict[str, float | str]:
    """Along each line of worlds with one size signal: where the order flips, and where it should by the world's pixels."""
    found: dict[str, float | str] = {}
    for size in sorted({o.facts["size_signal"] for o in some}, reverse=True):
        line = sorted((o for o in some if o.facts["size_signal"] == size), key=lambda o: o.facts["color_signal"])
        found[f"{net}, size {size:g}: order flips at color"] = crossing(line, lead)
        found[f"{net}, size {size:g}: by pixels"] = crossing(line, lambda o: foreseen(o, "pixels"))
    return found


def judge_prediction(rows: Rows) -> Judgement:
    """Predicted times are 1 / a; one scale is left free, so only their order counts: over worlds and factors together."""
    plain = [o for o in outcomes(rows) if o.plain]
    nets = {net: [o for o in plain if o.facts["net"] == net] for net in ("DiT", "U-Net")}
    nets = {net: some for net, some in nets.items() if len(some) >= 3}
    if not nets:
        raise LookupError("at least three worlds are needed")
    measured: dict = {}
    for net, some in nets.items():
        measured[f"{net}: worlds"] = len(some)
        for space in SPACES:
            measured[f"{net}, {space}: rank correlation"] = rank(some, space)
            measured[f"{net}, {space}: orders right"] = right_orders(some, space)
    judge = nets.get("DiT") or nets["U-Net"]
    rho, orders = rank(judge, "pixels"), right_orders(judge, "pixels")
    holds = rho >= 0.7 and orders >= 0.9
    return Judgement(holds or ("partly" if rho >= 0.5 or orders >= 0.75 else False), measured)


def rank(some: list[Outcome], space: str) -> float:
    """Spearman's correlation of predicted and measured learning times, over all factors of all worlds."""
    pairs = [(1 / o.rates[space, f], o.time(f)) for o in some for f in PAIR]
    return correlation([p for p, _ in pairs], [t for _, t in pairs])


def twins(found: list[Outcome]) -> list[tuple[Outcome, Outcome]]:
    """Pairs that differ only in how the condition is told, raw first."""
    same = lambda o: tuple(o.facts[k] for k in ("net", "color_signal", "size_signal", "background_signal", "masked"))  # noqa: E731
    raw = {same(o): o for o in found if o.facts["told"] == "raw" and o.by == "value"}
    return [(raw[same(o)], o) for o in found if o.facts["told"] == "balanced" and same(o) in raw]


def judge_told(rows: Rows) -> Judgement:
    pairs = twins(outcomes(rows))
    if not pairs:
        raise LookupError("no world was told in both ways")
    measured, faster, calmer = {}, [], []
    for raw, balanced in pairs:
        at, times = (
            f"{raw.facts['net']}, color {raw.facts['color_signal']:g}",
            [o.time("color") for o in (raw, balanced)],
        )
        depths = [fmean(d.depth for d in dips(o)) for o in (raw, balanced)]
        measured |= {f"{at}: T_color raw": times[0], f"{at}: T_color balanced": times[1]}
        measured |= {f"{at}: fall raw": depths[0], f"{at}: fall balanced": depths[1]}
        faster.append(times[1] <= times[0] / 2)
        calmer.append(depths[1] < max(0.1, depths[0] / 2))
    measured |= powers(pairs)
    weak = min(range(len(pairs)), key=lambda i: pairs[i][0].facts["color_signal"])
    holds = faster[weak] and all(calmer)
    return Judgement(holds or ("partly" if faster[weak] or any(calmer) else False), shown(measured))


def powers(pairs: list[tuple[Outcome, Outcome]]) -> dict[str, float]:
    """The power of the colour signal with which the steps to learn colour fall, where a network was told several both ways."""
    found = {}
    for net in dict.fromkeys(raw.facts["net"] for raw, _ in pairs):
        mine = [p for p in pairs if p[0].facts["net"] == net]
        for told, some in (("raw", [raw for raw, _ in mine]), ("balanced", [balanced for _, balanced in mine])):
            points = [(math.log(o.facts["color_signal"]), math.log(o.time("color"))) for o in some]
            if len(points) >= 3 and all(math.isfinite(t) for _, t in points):
                found[f"{net}: T_color goes as the signal to the power, {told}"] = linear_regression(
                    *zip(*points, strict=True)
                ).slope
    return found
