"""Why does what varies inside a class teach what a label does?

An exact model of who composes (theory/products.py): trained by gradient flow, it is told shape, colour and size and answers
with all three; it may add what it is told, or multiply, so that every combination can have a meaning of its own. It sees the
four combinations of `composition`, spread around their centres in colour and size, and is asked for the others. `prior` says
how cheap products are:

- apart: products with shape cost nothing, so circles and triangles share nothing;
- alike: products cost something, with every factor the same;
- sums: products cost much.

Without spread the four pictures cannot tell a sum from a product, and what the model says of the others is its prior alone:
only `sums` composes. Any spread of both colour and size tells them apart in the end, but slowly: what colour does to triangles
at a rate that goes with the square of the spread, what colour and size do together with its fourth power. And spread tells
where it is: among triangles of triangles, of colour what colour does. Colours and sizes spread alike here. Not in the papers;
made after `variation` and `where` had been seen, to explain them, and before `which`, which tests it.

Run: `recombine run interactions --scale laptop` (seconds, one core).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from recombine.studies import interaction_figures
from recombine.studies.base import Claim, Judgement, Row, Rows, Scale, Study, about
from recombine.studies.interaction_figures import RIGHT
from recombine.studies.variation import AMOUNTS
from recombine.studies.which import OWN, WORLDS
from recombine.theory.products import NARROW, Corner, Products
from recombine.worlds.factors import code

Code = tuple[int, int, int]
SEEN: tuple[Code, ...] = ((0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0))
UNSEEN: tuple[Code, ...] = ((0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1, 1))
PRIORS = {"apart": (1.0, 0.2, 0.2), "alike": (0.5, 0.5, 0.5), "sums": (0.05, 0.05, 0.05)}


@dataclass(frozen=True)
class Interactions:
    """`spreads`: plain, usual, half and varied, in halves of the distance between classes, as the colours of Shapes2D. `steps`:
    times at which answers are noted, up to `end`."""

    spreads: tuple[float, float, float, float] = (0.0, 0.15, 0.3125, 0.625)
    end: float = 1e6
    steps: int = 61

    def __post_init__(self) -> None:
        if list(self.spreads) != sorted(self.spreads) or not 0 == self.spreads[0] < self.spreads[1]:
            raise ValueError(f"spreads={list(self.spreads)}: plain, usual, half and varied, from 0 on upwards")
        if self.steps < 2 or not 1 < self.end < math.inf:
            raise ValueError(f"end={self.end}, steps={self.steps}: two times or more, the last of them after 1")
        self.worlds()

    @property
    def times(self) -> list[float]:
        return [10 ** (-1 + i * (math.log10(self.end) + 1) / (self.steps - 1)) for i in range(self.steps)]

    def worlds(self) -> dict[str, dict[str, tuple[Corner, ...]]]:
        """Three studies, and the worlds of each."""
        _, usual, _, much = self.spreads
        shapes = {"nowhere": (), "circles": (0,), "triangles": (1,), "everywhere": (0, 1)}
        kinds = dict(zip(WORLDS, ((0.0, 0.0), (much, 0.0), (0.0, much), (much, much)), strict=True))
        return {
            "variation": {
                a: corners(dict.fromkeys((0, 1), (s, s))) for a, s in zip(AMOUNTS, self.spreads, strict=True)
            },
            "where": {
                w: corners({s: (much if s in some else usual,) * 2 for s in (0, 1)}) for w, some in shapes.items()
            },
            "which": {w: corners(dict.fromkeys((0, 1), both)) for w, both in kinds.items()},
        }


def corners(spread: dict[int, tuple[float, float]]) -> tuple[Corner, ...]:
    """What is seen, with the spread of colour and size among circles and among triangles."""
    return tuple(Corner(at, (0.0, *spread[at[0]])) for at in SEEN)


def settings(scale: Scale) -> Interactions:
    return Interactions(steps=31) if scale == "smoke" else Interactions()


def run(settings: Interactions, lab: Any) -> Iterator[Row]:
    """Rows of kind `answer`, over time, and `end`: `right` is the worst of colour and size, 1 where both are as asked for and
    -1 where one is the opposite. Rows of kind `pace`: how long it takes."""
    for prior, strength in PRIORS.items():
        for study, worlds in settings.worlds().items():
            for world, seen in worlds.items():
                for asked in UNSEEN:
                    named = {"prior": prior, "study": study, "world": world, "composition": code(asked)}
                    *path, end = right(Products(seen, strength), asked, [*settings.times, math.inf])
                    yield from (
                        named | {"kind": "answer", "time": t, "right": a}
                        for t, a in zip(settings.times, path, strict=True)
                    )
                    yield named | {"kind": "end", "right": end}
        yield from pace(settings, prior)


def right(model: Products, asked: Code, times: list[float]) -> list[float]:
    wanted = 2.0 * torch.tensor(asked, dtype=torch.float64) - 1
    return (model.answers(asked, times) * wanted)[:, 1:].min(1).values.tolist()


def pace(settings: Interactions, prior: str) -> Iterator[Row]:
    """When small triangles are nine tenths right for the first time, red ones and blue ones, by the spread of all pictures."""
    for spread in (s for k in range(9) if (s := settings.spreads[3] / 2 ** (k / 2)) >= NARROW):
        model = Products(corners(dict.fromkeys((0, 1), (spread, spread))), PRIORS[prior])
        for asked in ((1, 0, 1), (1, 1, 1)):
            if (when := first(model, asked, 0.9)) < math.inf:
                yield {"kind": "pace", "prior": prior, "spread": spread, "composition": code(asked), "time": when}


def first(model: Products, asked: Code, least: float) -> float:
    """When an answer is as right for the first time, to five digits; inf where it never is."""
    times = [10 ** (i / 10) for i in range(-10, 131)]
    past = next((i for i, a in enumerate(right(model, asked, times)) if a >= least), None)
    if not past:
        return math.inf
    low, high = (math.log(times[i]) for i in (past - 1, past))
    while high - low > 1e-5:
        middle = (low + high) / 2
        low, high = (low, middle) if right(model, asked, [math.exp(middle)])[0] >= least else (middle, high)
    return math.exp(high)


def end(rows: Rows, prior: str, world: str, composition: str) -> float:
    some = rows.where(kind="end", prior=prior, world=world, composition=composition)
    if not some:
        raise LookupError(f"no answer of {prior} in the world {world} to {composition}")
    return some[0]["right"]


def judge_need(rows: Rows) -> Judgement:
    plain, any_of = ({p: [end(rows, p, a, "111") for a in some] for p in PRIORS} for some in (AMOUNTS[:1], AMOUNTS[1:]))
    measured = {f"{p}, plain": some[0] for p, some in plain.items()}
    measured |= {f"{p}, with any spread, at worst": min(some) for p, some in any_of.items()}
    prior = all(plain[p][0] < RIGHT for p in ("apart", "alike")) and plain["sums"][0] >= RIGHT
    return Judgement((prior and min(map(min, any_of.values())) >= 0.99) or ("partly" if prior else False), measured)


def judge_pace(rows: Rows) -> Judgement:
    """With shapes apart; the other priors stand beside."""
    measured = {f"{p}, level {c.count('1') - 1}": power(rows, p, c) for p in PRIORS for c in ("101", "111")}
    passed = [abs(measured["apart, level 1"] + 2) <= 0.1, abs(measured["apart, level 2"] + 4) <= 0.1]
    return Judgement(all(passed) or ("partly" if any(passed) else False), measured)


def power(rows: Rows, prior: str, composition: str) -> float:
    """Of the spread, with which the time goes."""
    some = rows.where(kind="pace", prior=prior, composition=composition)
    if len(some) < 3:
        raise LookupError("too few spreads at which it is right in time")
    return slope([(math.log(r["spread"]), math.log(r["time"])) for r in some])


def slope(points: list[tuple[float, float]]) -> float:
    """Of the line through points, by least squares."""
    x, y = (torch.tensor(some, dtype=torch.float64) for some in zip(*points, strict=True))
    return float(((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum())


def judge_place(rows: Rows) -> Judgement:
    """With shapes apart; `alike` stands beside."""
    pairs = (("triangles", "everywhere"), ("circles", "nowhere"))
    measured = {f"{p}, {a} from {b} at most": gap(rows, p, a, b) for p in ("apart", "alike") for a, b in pairs}
    same = [measured[f"apart, {a} from {b} at most"] < 1e-6 for a, b in pairs]
    return Judgement(all(same) or ("partly" if any(same) else False), measured)


def gap(rows: Rows, prior: str, *worlds: str) -> float:
    """How far the answers to unseen triangles in two worlds come apart, at most."""
    some = Rows(r for r in rows.where(kind="answer", prior=prior, study="where") if r["composition"][0] == "1")
    both = list(zip(*(some.where(world=w).column("right") for w in worlds), strict=True))
    if not both:
        raise LookupError(f"no answers of {prior} in the worlds {' and '.join(worlds)}")
    return max(abs(a - b) for a, b in both)


def judge_kind(rows: Rows) -> Judgement:
    table = {(c, w): end(rows, "apart", w, c) for c in OWN for w in WORLDS}
    passed = [(value >= RIGHT) == (w in (OWN[c], "both")) for (c, w), value in table.items()]
    measured = {f"{c}, {w}": value for (c, w), value in table.items()}
    return Judgement(all(passed) or ("partly" if sum(passed) >= 10 else False), measured)


STUDY = Study(
    name="interactions",
    question="Why does what varies inside a class teach what a label does?",
    paper="beyond the papers",
    about=about(__doc__),
    cost={"smoke": "1 s, one core", "laptop": "2 s, one core", "full": "2 s, one core"},
    settings=settings,
    compute=run,
    claims=(
        Claim(
            id="B26",
            paper="beyond the papers",
            statement="Where classes do not vary, whether a model composes is a matter of its prior alone; where colours and "
            "sizes vary at all, it composes in the end, whatever its prior.",
            expected="small blue triangles (1 right, -1 the opposite), at the end: without spread < 0.5 unless products cost "
            "much, with any >= 0.99",
            judge=judge_need,
        ),
        Claim(
            id="B27",
            paper="beyond the papers",
            statement="But slowly, unless its prior prefers sums: the time goes with the inverse square of the spread one "
            "factor away from what was seen, and with its inverse fourth power two away.",
            expected="slope of log time over log spread, shapes apart: -2 +- 0.1 for small red, -4 +- 0.1 for small blue "
            "triangles",
            judge=judge_pace,
        ),
        Claim(
            id="B28",
            paper="beyond the papers",
            statement="Variation teaches where it is: of triangles, among triangles. Where shapes share nothing, circles that "
            "vary change no answer on triangles.",
            expected="shapes apart, all unseen triangles, at all times: triangles = everywhere, circles = nowhere, to 1e-6",
            judge=judge_place,
        ),
        Claim(
            id="B29",
            paper="beyond the papers",
            statement="Where products cost nothing, each condition is learned from its own variation: small red triangles from "
            "sizes, large blue ones from colours, small blue ones from both together.",
            expected="shapes apart, at the end: all 12 of three triangles in four worlds on the right side of 0.5",
            judge=judge_kind,
        ),
    ),
    draw=interaction_figures.draw,
    widget="interactions",
)
