"""The table of claims: on a terminal, or as tab-separated lines."""

import sys
from collections.abc import Iterable
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recombine.config import UsageError
from recombine.files import printable
from recombine.report.read import ClaimEntry, in_order, read_as, read_entries, refuse_old

if TYPE_CHECKING:
    from rich.table import Table

COLOURS = {
    "supported": "green",
    "partly supported": "yellow",
    "inconclusive": "yellow",
    "contradicted": "red",
    "not measured": "dim",
    "smoke": "dim",
}
HEADER = ("id", "verdict", "study", "scale", "seeds", "estimate", "low", "high", "n", "expected")
HEADER += ("measured", "note", "statement")
LONG = ("expected", "measured")
"""Columns that a brief table leaves out."""
NARROW = 100
"""Columns of a terminal below which what was expected is left out."""


def shipped() -> Path:
    """The reference results that come with the project."""
    package = Path(__file__).parents[1]
    places = (package / "_results", package.parent / "results")
    return next((path for path in places if path.is_dir()), places[0])


def study_folders(directory: Path | None = None) -> list[Path]:
    """The studies of a results folder, or the folder of one study itself; without one, those that
    are shipped."""
    root = shipped() if directory is None else Path(directory)
    if not root.is_dir():
        raise UsageError(f"{root}: there is no such folder")
    folders = [root] if (root / "claims.json").exists() else in_order(root.glob("*/claims.json"))
    if not folders:
        raise UsageError(f"{root}: holds no claims (no <study>/claims.json)")
    for folder in folders:
        refuse_old(folder)
    return folders


def claim_files(directory: Path | None = None) -> list[Path]:
    """Every claims.json of a results folder, of one study's folder, or of the shipped results."""
    return [folder / "claims.json" for folder in study_folders(directory)]


def read_claims(path: Path) -> list[dict[str, Any]]:
    """The claims of one file as they stand in it, once they are known to be claims."""
    read_entries(path)
    return read_as(path, Any)


def print_claims(paths: Iterable[Path], brief: bool = False) -> None:
    """A table that fits the terminal; tab-separated lines with a header where the output is piped.
    `brief`: without what was expected, piped also without all that was measured, and nothing where
    there are none."""
    claims = [claim for path in paths for claim in read_entries(path)]
    if brief and not claims:
        return
    if not sys.stdout.isatty():
        shown = [name not in LONG or not brief for name in HEADER]
        for cells in (HEADER, *map(line, claims)):
            print("\t".join(compress(cells, shown)))
        return
    from rich.console import Console

    console = Console()
    made = grid(claims, brief or console.width < NARROW)
    for column, part in ((1, 5), (-2, 5), (-1, 10)):  # verdict, estimate, scale
        made.columns[column].max_width = console.width // part
    console.print(made)


def line(claim: ClaimEntry) -> list[str]:
    """A claim's cells of the tab-separated table, under HEADER."""
    low, high = claim.interval or (None, None)
    numbers = [number(x) for x in (claim.estimate, low, high, claim.n)]
    texts = [claim.id, claim.verdict, claim.study, claim.scale, str(claim.seeds)]
    texts += [*numbers, claim.expected, measured(claim), claim.note, claim.statement]
    return [printable(text) for text in texts]


def grid(claims: list[ClaimEntry], brief: bool) -> "Table":
    """The table for a terminal."""
    from rich.table import Table
    from rich.text import Text

    heads = ("id", "verdict", "claim", *(() if brief else ("expected",)), "estimate", "scale")
    made = Table(*heads, pad_edge=False, box=None, row_styles=["", "on grey11"])
    for claim in claims:
        verdict = Text(claim.verdict, COLOURS[claim.verdict])
        if claim.note:
            verdict.append(f"\n{printable(claim.note)}", "dim")
        texts = [claim.statement, *([] if brief else [claim.expected]), estimate(claim)]
        scale = f"{claim.scale}, {claim.seeds} seed{'s' * (claim.seeds != 1)}"
        cells = [Text(printable(text)) for text in (*texts, scale)]
        made.add_row(Text(printable(claim.id)), verdict, *cells)
    return made


def estimate(claim: ClaimEntry) -> str:
    """The headline with its interval; where there is none how many checks hold, or the first
    values."""
    if claim.estimate is not None:
        span = " [{:.3g}, {:.3g}]".format(*claim.interval) if claim.interval else ""
        return f"{claim.estimate:.3g}{span}, n = {claim.n}"
    checks = [part.holds for part in claim.parts if part.holds is not None]
    return f"{sum(checks)} of {len(checks)} checks hold" if checks else measured(claim, 3)


def measured(claim: ClaimEntry, most: int | None = None) -> str:
    """All values, or the first ones and how many there are besides."""
    values = [f"{name} {number(value)}" for name, value in claim.measured.items()]
    more = len(values[most:]) if most is not None else 0
    return ("; ".join(values[:most]) or "-") + (f"; {more} more" if more else "")


def number(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
