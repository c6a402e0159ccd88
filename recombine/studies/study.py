"""What a study is: a question, settings per scale, jobs, claims and figures. It declares; the
pipeline carries out."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from recombine.analysis.claims import Claim
from recombine.analysis.table import Table
from recombine.display import html_table
from recombine.pipeline.job import Job
from recombine.plots.style import Figure
from recombine.runs.models import model_jobs
from recombine.runs.own_data import fitting
from recombine.store import Row

Scale = Literal["smoke", "laptop", "full"]
SCALES: tuple[Scale, ...] = ("smoke", "laptop", "full")


def no_figures(rows: Table, folder: Path) -> list[Figure]:
    return []


def no_rows(settings: Any, seeds: int) -> Iterable[Row]:
    return ()


def nothing(settings: Any) -> dict[str, Any]:
    return {}


def recipe_facts(settings: Any) -> dict[str, Any]:
    """What a page needs to know of a study whose settings hold one recipe."""
    return settings.recipe.facts()


def variant_jobs(settings: Any, seeds: int) -> list[Job]:
    """A run for each variant of the settings and each seed."""
    return model_jobs(settings.variants(), seeds)


@dataclass(frozen=True)
class Study:
    """One question. `settings(scale)` is a config, open to --set. `jobs(settings, seeds)` says what
    has to be run: pure data, no I/O; unless given, every variant of the settings with every seed.
    `facts(settings, seeds)` are rows that follow from the settings alone. `figures(rows, folder)`
    plots. `describe(settings)` adds what the page needs to know (factors, levels, the paper's
    curve). `widget`: an interactive part of the page. `sensitivity`: whether its claims are on the
    end of training by a probe, so that it can be said what they would be at an earlier checkpoint
    or by another probe. `run_minutes`: GPU minutes of one run at full scale. `fitting(settings,
    changes, scale)`: settings that follow from one's own pictures."""

    name: str
    question: str
    settings: Callable[[Scale], Any]
    jobs: Callable[[Any, int], Iterable[Job]] = variant_jobs
    claims: tuple[Claim, ...] = ()
    paper: str = "beyond the papers"
    about: str = ""
    cost: dict[Scale, str] = field(default_factory=dict)
    figures: Callable[[Table, Path], list[Figure]] = no_figures
    facts: Callable[[Any, int], Iterable[Row]] = no_rows
    describe: Callable[[Any], dict[str, Any]] = nothing
    widget: str | None = None
    sensitivity: bool = False
    fitting: Callable[..., tuple[str, ...]] = fitting
    run_minutes: float = 0.0

    def __repr__(self) -> str:
        claims = ", ".join(claim.id for claim in self.claims)
        return f"Study({self.name!r}: {self.question} Claims: {claims or 'none'})"

    def _repr_html_(self) -> str:
        rows = [(claim.id, claim.statement, claim.expected) for claim in self.claims]
        return html_table(("claim", "statement", "expected"), rows, f"{self.name}: {self.question}")


def described(doc: str | None) -> dict[str, str]:
    """A study's question, the first lines of its docstring, and what the docstring says of it."""
    return {"question": " ".join((doc or "").partition("\n\n")[0].split()), "about": about(doc)}


def about(doc: str | None) -> str:
    """What a study's docstring says between its question and how it is run."""
    return (doc or "").partition("\n\n")[2].partition("\n\nRun:")[0]
