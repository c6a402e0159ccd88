"""The list of studies as data, so that `recombine list` needs no torch. Generated: `python -m
recombine.studies.catalogue`."""

import json
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_suffix(".json")


def catalogue() -> list[dict[str, Any]]:
    return json.loads(PATH.read_text())


def entry(study: Any) -> dict[str, Any]:
    claims = [
        {"id": c.id, "statement": c.statement, "expected": c.expected, "paper": c.paper}
        for c in study.claims
    ]
    names = ("name", "question", "paper", "cost")
    return {**{name: getattr(study, name) for name in names}, "claims": claims}


def build() -> str:
    """The catalogue of the studies as they are now."""
    from recombine.studies import NAMES, find

    return json.dumps([entry(find(name)) for name in NAMES], indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.write_text(build())
