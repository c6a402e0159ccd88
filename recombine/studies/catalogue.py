"""The list of studies as data, so that `recombine list` needs no torch. Generated: `python -m
recombine.studies.catalogue`."""

import json
from collections import Counter
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

    studies = [find(name) for name in NAMES]
    for name, study in zip(NAMES, studies, strict=True):
        if study.name != name:
            raise ValueError(f"study {name!r} of NAMES calls itself {study.name!r}")
    used = Counter(c.id for study in studies for c in study.claims)
    if twice := [id for id, count in used.items() if count > 1]:
        raise ValueError(f"claim id {twice[0]} is used twice")
    return json.dumps([entry(study) for study in studies], indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.write_text(build())
