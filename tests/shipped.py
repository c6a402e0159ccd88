"""Rows that ship under results/."""

from functools import cache
from pathlib import Path

from recombine.store import read_rows
from recombine.studies.base import Rows

RESULTS = Path(__file__).parents[1] / "results"


@cache
def shipped(study: str) -> Rows:
    return Rows(read_rows(RESULTS / study / "rows.jsonl"))
