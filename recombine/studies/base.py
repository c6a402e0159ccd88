"""What a study is: a question, settings per scale, rows, claims judged from the rows, figures drawn from the rows."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from recombine.config import UsageError
from recombine.figures import Figure

Row = dict[str, float | int | str | None]
Scale = Literal["smoke", "laptop", "full"]
SCALES: tuple[Scale, ...] = ("smoke", "laptop", "full")
MIN_SEEDS = 3
OWN = {"reproduced": "holds", "not reproduced": "does not hold"}


def about(doc: str | None) -> str:
    """What a study's docstring says between its question and how it is run."""
    return (doc or "").partition("\n\n")[2].partition("\n\nRun:")[0]


class Rows(list[Row]):
    """Rows with a filter: `rows.where(part="order", seed=0)`; `rows.column("value")`. They do not change: what was asked for
    once is found at once when it is asked for again."""

    def where(self, **equal: Any) -> "Rows":
        found = self
        for name, value in equal.items():
            found = found.by(name).get(value, Rows())
        return found

    def by(self, name: str) -> dict[Any, "Rows"]:
        """All rows by what they say under a name, in the order of first mention; None where they say nothing."""
        known: dict[str, dict[Any, Rows]] = self.__dict__.setdefault("known", {})
        if name not in known:
            groups: dict[Any, list[Row]] = {}
            for row in self:
                value = row.get(name)
                if isinstance(value, (list, dict)):
                    raise UsageError(f"rows are flat: {name!r} must be a number or a text, not {value!r}")
                groups.setdefault(value, []).append(row)
            known[name] = {value: Rows(some) for value, some in groups.items()}
        return known[name]

    def fixed(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Rows do not change; make new ones")

    def __reduce__(self) -> tuple[type, tuple[list[Row]]]:
        return Rows, (list(self),)

    append = extend = insert = pop = remove = clear = sort = reverse = fixed
    __setitem__ = __delitem__ = __iadd__ = __imul__ = fixed

    def column(self, name: str) -> list[Any]:
        return [r[name] for r in self]

    def one(self, **equal: Any) -> Row:
        """The only row that matches."""
        found = self.where(**equal)
        if len(found) != 1:
            raise LookupError(f"{len(found)} rows match {equal}, not one")
        return found[0]


@dataclass(frozen=True)
class Judgement:
    """What a claim's own function found in the rows. `holds` is True, False, or "partly"."""

    holds: bool | Literal["partly"]
    measured: dict[str, float | int | str]
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Claim:
    """One statement, what was expected of it, and the function from rows to judgement. `trained` claims need three seeds
    at full scale before they may be called reproduced. `judge` raises LookupError where the rows do not bear on it."""

    id: str
    paper: str
    statement: str
    expected: str
    judge: Callable[[Rows], Judgement]
    trained: bool = False
    interval_of: str = ""
    """Of which number the judgement's interval is, in words."""


@dataclass(frozen=True)
class Study:
    """One question. `settings(scale)` is a frozen dataclass, open to --set; `compute(settings, lab)` yields rows; `draw`
    makes the figures from rows alone. `widget` names an interactive part of the page (report/widgets/<widget>.html);
    `describe(settings)` adds what the page needs to know (the factor space, the levels, the paper's curve). `stops`: whether
    its claims are on where training ends, so that it can be asked what they would be had one looked earlier, or had another
    probe judged."""

    name: str
    question: str
    paper: str
    about: str
    cost: dict[Scale, str]
    settings: Callable[[Scale], Any]
    compute: Callable[[Any, Any], Iterable[Row]]
    claims: tuple[Claim, ...]
    draw: Callable[[Rows, Path], list[Figure]]
    widget: str | None = None
    describe: Callable[[Any], dict[str, Any]] = lambda settings: {}
    stops: bool = False


@dataclass(frozen=True)
class Verdict:
    """A judged claim; `json()` is how it stands in claims.json. `missing`: what the rows lack, if there is no judgement;
    `caveat`: what to mind, if there is one."""

    claim: Claim
    judgement: Judgement | None
    scale: Scale
    seeds: int
    provenance: dict[str, Any] = field(default_factory=dict)
    missing: str = ""
    caveat: str = ""

    @property
    def word(self) -> str:
        if self.scale == "smoke":
            return "smoke"
        if self.judgement is None or self.small:
            return "not measured"
        return {True: "reproduced", False: "not reproduced", "partly": "partly"}[self.judgement.holds]

    @property
    def given(self) -> bool:
        """Whether there is one."""
        return self.word not in ("smoke", "not measured")

    @property
    def said(self) -> str:
        """The verdict in words: where no paper claimed it, there is nothing to reproduce."""
        own = self.claim.paper.startswith("beyond") or self.claim.paper.endswith("left open")
        return OWN.get(self.word, self.word) if own else self.word

    @property
    def small(self) -> bool:
        return self.claim.trained and (self.scale != "full" or self.seeds < MIN_SEEDS)

    @property
    def note(self) -> str:
        """Why there is no verdict, or what to mind about it."""
        if self.judgement is None:
            return self.missing
        return f"judged at full scale over {MIN_SEEDS} seeds or more" if self.small else self.caveat

    def json(self, study: str) -> dict[str, Any]:
        c, j = self.claim, self.judgement
        return {
            "id": c.id,
            "study": study,
            "paper": c.paper,
            "statement": c.statement,
            "expected": c.expected,
            "measured": j.measured if j else {},
            "interval": list(j.interval) if j and j.interval else None,
            "interval_of": c.interval_of if j and j.interval else "",
            "verdict": self.word,
            "said": self.said,
            "note": self.note,
            "scale": self.scale,
            "seeds": self.seeds,
            "provenance": self.provenance,
        }


def judge(claim: Claim, rows: Rows, scale: Scale, seeds: int, provenance: dict[str, Any]) -> Verdict:
    try:
        judgement, missing = claim.judge(rows), ""
    except LookupError as error:
        judgement, missing = None, " ".join(map(str, error.args))
    return Verdict(claim, judgement, scale, seeds, provenance, missing, caveat(rows))


def caveat(rows: Rows) -> str:
    """Rows of before every seed had a tokenizer of its own know less of chance than they seem to; and where it was not measured
    how far from right a judge lets pictures go, it may be kinder to one factor than to another."""
    if [r for r in rows.where(kind="ceiling") if "seed" not in r]:
        return "one tokenizer for all seeds: their spread is too small"
    judged = rows.where(kind="accuracy", probe="wary")
    return (
        "not measured how far from right its judge lets each factor go"
        if judged and not rows.where(kind="between")
        else ""
    )
