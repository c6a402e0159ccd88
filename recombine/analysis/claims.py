"""Claims and the one rule by which all of them get their verdict.

A claim measures its parts on the rows. A part is an estimate with its interval over seeds and the
region in which it is expected, or a check that is exactly true or false. The verdict follows from
the parts, here and nowhere else. A part may be needed, as that a model has learned what it saw: it
speaks against a claim, never for it.

- supported: enough seeds, and the interval of every part lies inside its region;
- partly supported: some parts are supported, and everything that is needed besides;
- contradicted: an interval lies outside its region, in a set-up that is the paper's, over enough
  seeds;
- inconclusive: everything else that was measured;
- not measured; and smoke, at a scale whose numbers mean nothing."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from recombine.analysis.estimates import Estimate
from recombine.analysis.table import NotMeasured, Table

VERDICTS = (
    "supported",
    "partly supported",
    "inconclusive",
    "contradicted",
    "not measured",
    "smoke",
)
"""Best first."""
Verdict = Literal[
    "supported", "partly supported", "inconclusive", "contradicted", "not measured", "smoke"
]
ENOUGH, ENOUGH_LONG = 5, 3
"""Seeds that a verdict on trained models needs; where one run takes more than LONG GPU minutes,
three will do."""
LONG = 5.0
Measured = dict[str, float | int | str | None]


@dataclass(frozen=True)
class Part:
    """One number of a claim, and the region in which it is expected. `needed`: without it the claim
    says nothing, but it does not support the claim either."""

    name: str
    estimate: Estimate
    low: float = -math.inf
    high: float = math.inf
    needed: bool = False

    def __repr__(self) -> str:
        bounds = (f">= {self.low:g}", self.low), (f"<= {self.high:g}", self.high)
        region = " and ".join(text for text, bound in bounds if math.isfinite(bound))
        return f"Part({self.name}: {self.estimate}, expected {region or 'anything'})"

    def verdict(self, enough: int, faithful: bool) -> Verdict:
        low, high = self.estimate.interval or (math.nan, math.nan)
        if self.estimate.n < enough or math.isnan(low):
            return "inconclusive"
        if self.low <= low and high <= self.high:
            return "supported"
        if high < self.low or low > self.high:
            return "contradicted" if faithful else "inconclusive"
        return "inconclusive"

    def json(self, verdict: Verdict) -> dict[str, Any]:
        interval = self.estimate.interval
        return {
            "name": self.name,
            "estimate": self.estimate.value,
            "interval": list(interval) if interval else None,
            "n": self.estimate.n,
            "expected": [None if math.isinf(x) else x for x in (self.low, self.high)],
            "verdict": verdict,
            **({"needed": True} if self.needed else {}),
        }


@dataclass(frozen=True)
class Check:
    """Something that is true or false whatever the seed: an identity, an ordering of exact
    numbers."""

    name: str
    holds: bool
    needed: ClassVar[bool] = False

    def verdict(self, enough: int, faithful: bool) -> Verdict:
        if self.holds:
            return "supported"
        return "contradicted" if faithful else "inconclusive"

    def json(self, verdict: Verdict) -> dict[str, Any]:
        return {"name": self.name, "holds": self.holds, "verdict": verdict}


@dataclass(frozen=True)
class Finding:
    """What a claim's function found in the rows: its parts, the headline first, and other numbers
    worth showing."""

    parts: tuple[Part | Check, ...]
    measured: Measured = field(default_factory=dict)


@dataclass(frozen=True)
class Claim:
    """One statement, what was expected of it, and the function from rows to finding, which raises
    NotMeasured where the rows do not bear on it; any other error is one of the code. `trained`:
    assessed at full scale over enough seeds. `deviations`: what differs from the paper's set-up;
    `faithful` is False where one of them may decide the outcome, and then nothing is called
    contradicted."""

    id: str
    paper: str
    statement: str
    expected: str
    measure: Callable[[Table], Finding]
    trained: bool = False
    faithful: bool = True
    deviations: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Claim({self.id}: {self.statement} Expected: {self.expected})"


def claim(id: str, paper: str = "beyond the papers", **more: Any) -> Callable[..., Claim]:
    """Makes a Claim of a measuring function: its docstring is the statement, then `Expected: `."""

    def made(measure: Callable[[Table], Finding]) -> Claim:
        text = " ".join((measure.__doc__ or "").split())
        statement, _, expected = text.partition(" Expected: ")
        if not expected:
            raise ValueError(
                f"claim {id}: its docstring says no `Expected: ...` after the statement"
            )
        return Claim(id, paper, statement, expected, measure, **({"trained": True} | more))

    return made


@dataclass(frozen=True)
class Assessment:
    """A claim with its verdict; `note` says why there is none, or what to mind."""

    claim: Claim
    verdict: Verdict
    finding: Finding | None
    parts: tuple[Verdict, ...] = ()
    note: str = ""

    def json(
        self, study: str, scale: str, seeds: int, provenance: dict[str, Any]
    ) -> dict[str, Any]:
        """As it stands in claims.json."""
        c, parts = self.claim, self.finding.parts if self.finding else ()
        shown = [part.json(verdict) for part, verdict in zip(parts, self.parts, strict=True)]
        head = next((p for p in shown if "estimate" in p), {})
        return {
            "id": c.id,
            "study": study,
            "paper": c.paper,
            "statement": c.statement,
            "expected": c.expected,
            "measured": {k: _plain(v) for k, v in self.finding.measured.items()}
            if self.finding
            else {},
            "estimate": head.get("estimate"),
            "interval": head.get("interval"),
            "n": head.get("n"),
            "verdict": self.verdict,
            "note": self.note,
            "parts": shown,
            "deviations": list(c.deviations),
            "scale": scale,
            "seeds": seeds,
            "provenance": provenance,
        }


def _plain(value: Any) -> Any:
    """JSON knows no infinity and no NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def assess(claim: Claim, rows: Table, scale: str, run_minutes: float = 0.0) -> Assessment:
    """The verdict on one claim. `run_minutes`: how long one run of its study takes on a GPU."""
    try:
        finding = claim.measure(rows)
    except NotMeasured as error:
        return Assessment(
            claim, "smoke" if scale == "smoke" else "not measured", None, (), _text(error)
        )
    except Exception as error:
        error.add_note(f"while claim {claim.id} was assessed")
        raise
    enough = (ENOUGH_LONG if run_minutes > LONG else ENOUGH) if claim.trained else 0
    each = tuple(part.verdict(enough, claim.faithful) for part in finding.parts)
    if scale == "smoke":
        return Assessment(claim, "smoke", finding, each)
    if claim.trained and scale != "full":
        return Assessment(claim, "inconclusive", finding, each, "a verdict needs full scale")
    verdict = combine(finding.parts, each)
    return Assessment(claim, verdict, finding, each, _note(claim, verdict, finding, enough))


def combine(parts: tuple[Part | Check, ...], verdicts: tuple[Verdict, ...]) -> Verdict:
    """The verdict of a claim from those of its parts."""
    each = list(zip(parts, verdicts, strict=True))
    own = [verdict for part, verdict in each if not part.needed]
    if not own or any(part.needed and verdict != "supported" for part, verdict in each):
        return "inconclusive"
    if all(verdict == "supported" for verdict in own):
        return "supported"
    if "supported" in own:
        return "partly supported"
    return "contradicted" if "contradicted" in own else "inconclusive"


def _note(claim: Claim, verdict: Verdict, finding: Finding, enough: int) -> str:
    counts = [p.estimate.n for p in finding.parts if isinstance(p, Part)]
    if claim.trained and counts and min(counts) < enough:
        seeds = f"{min(counts)} seed{'s' * (min(counts) != 1)}"
        if verdict == "partly supported":
            return f"{seeds} for some parts; a verdict on these needs {enough}"
        return f"{seeds}; a verdict needs {enough}"
    if claim.faithful:
        return ""
    said = "the set-up is not the paper's in all that may decide"
    outside = [p.name for p in finding.parts if p.verdict(enough, True) == "contradicted"]
    return f"{outside[0]}: outside the expected region, but {said}" if outside else said


def _text(error: NotMeasured) -> str:
    return " ".join(map(str, error.args))
