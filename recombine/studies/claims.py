"""Claims on disk: reading them, and the table of them."""

from pathlib import Path
from typing import Any

from recombine.config import UsageError
from recombine.store import read_json

MARKS = {"reproduced": "green", "holds": "green", "partly": "yellow", "not reproduced": "red", "does not hold": "red"}
MARKS |= {"not measured": "dim", "smoke": "dim"}


KEYS = {"id", "verdict", "study", "scale", "seeds", "expected", "statement", "measured"}


def shipped() -> Path:
    """The reference results that come with the project."""
    package = Path(__file__).parents[1]
    return next((p for p in (package / "_results", package.parent / "results") if p.is_dir()), package / "_results")


def read_all(paths: list[Path]) -> list[dict[str, Any]]:
    found = []
    for path in paths:
        claims = read_json(path)
        if not isinstance(claims, list) or not all(isinstance(c, dict) and c.keys() >= KEYS for c in claims):
            raise UsageError(f"{path} does not hold a list of claims")
        found += claims
    return found


def number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def seeds(claim: dict[str, Any]) -> str:
    return f"{claim['seeds']} seed{'s' * (claim['seeds'] != 1)}"


def measured(claim: dict[str, Any], most: int | None = None) -> str:
    """All values, or the first ones and how many there are besides."""
    values = [f"{k} {number(v)}" for k, v in claim["measured"].items()]
    more = len(values[most:]) if most is not None else 0
    return ("; ".join(values[:most]) or "-") + (f"; {more} more" if more else "")


def table(paths: list[Path], brief: bool = False) -> None:
    """Print the claims: a table on a terminal, with the first values of each (the report has all), tab-separated lines with all
    values otherwise. `brief`: on a terminal, without what was expected and with fewer values."""
    import sys

    claims = read_all(paths)
    if not sys.stdout.isatty():
        for c in claims:
            line = [c["id"], c["verdict"], c["study"], c["scale"], seeds(c), c["expected"], measured(c)]
            print("\t".join(line + ([c["note"]] if c.get("note") else [])))
        return
    from rich.console import Console

    Console().print(grid(claims, brief))


def grid(claims: list[dict[str, Any]], brief: bool) -> Any:
    from rich.markup import escape
    from rich.table import Table

    heads = ("id", "verdict", "claim", *(() if brief else ("expected",)), "measured", "scale")
    made = Table(*heads, pad_edge=False, box=None, row_styles=["", "on grey11"])
    for c in claims:
        said = c.get("said", c["verdict"])
        note = f"\n[dim]{escape(c['note'])}[/]" if c.get("note") else ""
        verdict = f"[{MARKS[said]}]{said}[/]{note}"
        expected = () if brief else (escape(c["expected"]),)
        found = escape(measured(c, 3 if brief else 6))
        made.add_row(c["id"], verdict, escape(c["statement"]), *expected, found, f"{c['scale']}, {seeds(c)}")
    return made
