"""Numbers in the sentences of docs/*.md, from results/. `0.56<!-- C1: color 0.1: high -->`: that
value of what claim C1 measured, with as many decimals as stand there; `0.56 [0.49, 0.63], n = 5<!--
C1: fall, color 0.1 -->`: the estimate of that part, or of what stands beside the claim; `1,500<!-- concept-space:
recipe.train.steps -->`: that setting of the study's run; `390<!-- seed-pairs: pairs -->`: what
scripts/seed_pairs.py counts. `make readme` writes them anew."""

import json
import re
from pathlib import Path
from typing import Any

import seed_pairs
from findings import cited

CITED = re.compile(
    r"(-?\d[\d,]*(?:\.(\d+))?)(?P<interval> \[[^\]]*\](?P<n>, n = \d+)?)?<!-- ([\w-]+): ([^>]+?) -->"
)
PLAIN = re.compile(r"(?<![\w.^])-?\d+\.\d+(?!\w|\.\d|<!--)")
"""A number with decimals that cites nothing."""
LEFT_OUT = (
    re.compile(r"^```.*?^```", re.S | re.M),
    re.compile(r"<!-- summary .*?<!-- /summary -->", re.S),  # made from results as a whole
    re.compile(r"^( {4}|\||#|!\[).*$", re.M),  # formulas, tables, headings, figures
    re.compile(r"`[^`]*`"),
    re.compile(r"arXiv\s[\d.]+"),
)


def filled_numbers(text: str, claims: dict[str, dict[str, Any]], results: Path) -> str:
    """`text` with every number that cites its source made anew."""

    def number(match: re.Match[str]) -> str:
        source, name = match[5], match[6]
        if match["interval"]:
            estimate = cited(claims[source], name)
            shown = estimate if match["n"] else estimate.partition(", n = ")[0]
            return f"{shown}<!-- {source}: {name} -->"
        value = value_of(source, name, claims, results)
        decimals = len(match[2] or "")
        shown = f"{value:,.{decimals}f}".replace(f"-0.{'0' * decimals}", f"0.{'0' * decimals}")
        return f"{shown}<!-- {source}: {name} -->"

    return CITED.sub(number, text)


def value_of(source: str, name: str, claims: dict[str, dict[str, Any]], results: Path) -> float:
    if source in claims:
        return claims[source]["measured"][name]
    if source == "seed-pairs":
        return seed_pairs.measured(results)[name]
    value = json.loads((results / source / "study.json").read_text())["settings"]
    for key in name.split("."):
        value = value[int(key)] if isinstance(value, list) else value[key]
    return len(value) if isinstance(value, list) else value


def uncited(text: str) -> set[str]:
    """Numbers with decimals in the sentences of a page that cite no source."""
    for part in (*LEFT_OUT, CITED):
        text = part.sub("", text)
    return set(PLAIN.findall(text))
