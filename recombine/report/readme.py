"""The generated parts of README.md: the studies, and the claims with the verdicts of the shipped reference results. Run by
`make readme`; a test holds the file against it. Everything comes from what is on disk in results/."""

import itertools
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from recombine.report.courses import courses
from recombine.report.gradations import between
from recombine.report.pictures import amounts, asked, cover, on_tokens, taught, told, tried, unseen, varied
from recombine.report.read import read_claims
from recombine.report.site import in_order
from recombine.store import read_json

MARK = {
    "reproduced": "✅ reproduced",
    "holds": "✅ holds",
    "partly": "🟡 partly",
    "not reproduced": "❌ not reproduced",
    "does not hold": "❌ does not hold",
    "not measured": "– not measured",
}


def studies_table(results: Path) -> str:
    lines = ["| study | question | paper | claims | scale of the results |", "|---|---|---|---|---|"]
    for folder in folders(results):
        study, claims = read_json(folder / "study.json"), read_claims(folder / "claims.json")
        cells = (
            f"`{study['name']}`",
            study["question"],
            study["paper"],
            spans(c["id"] for c in claims),
            f"{study['scale']}, {study['provenance']['device']}",
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def spans(ids: Iterable[str]) -> str:
    """Claims by letter and number; four or more in a row as `S1 to S6`."""
    parts = sorted((i[0], int(re.sub(r"\D", "", i)), i) for i in ids)
    groups = itertools.groupby(enumerate(parts), lambda at: (at[1][0], at[1][1] - at[0]))
    rows = [[part[2] for _, part in some] for _, some in groups]
    return ", ".join(f"{row[0]} to {row[-1]}" if len(row) > 3 else ", ".join(row) for row in rows)


def claims_table(results: Path) -> str:
    """A line for each claim; studies of theory, which have many and no chance in them, with one line in all."""
    lines = ["| claim | statement | verdict |", "|---|---|---|"]
    for folder in folders(results):
        study, claims = read_json(folder / "study.json"), read_claims(folder / "claims.json")
        brief = [f"| {c['id']} | {cell(c['statement'])} | {MARK.get(c['said'], c['said'])} |" for c in claims]
        lines += [together(study, claims)] if not study["runs"] else brief
    return "\n".join(lines)


def together(study: dict[str, Any], claims: list[dict[str, Any]]) -> str:
    found = Counter(c["said"] for c in claims)
    verdicts = ", ".join(f"{MARK[v]}: {found[v]}" for v in MARK if found[v])
    return f"| {claims[0]['id']} to {claims[-1]['id']} | `{study['name']}`: {study['question']} | {verdicts} |"


HEAD = """# All claims

With the verdicts of the reference results in [results/](../results). Made by `make readme`. Where it says that it was not
measured how far from right a judge lets each factor go, the first judge spoke, which was kinder to some errors than to others
([how far from right still counts](composition.md)).

| claim | statement | expected | measured | verdict |
|---|---|---|---|---|
"""


def claims_page(results: Path) -> str:
    claims = [c for folder in folders(results) for c in read_claims(folder / "claims.json")]
    return HEAD + "\n".join(map(claim_line, claims)) + "\n"


def claim_line(claim: dict[str, Any]) -> str:
    some = list(claim["measured"].items())[:6]
    some += (
        [("judge", claim["measured"]["judge"])] if "judge" in claim["measured"] and "judge" not in dict(some) else []
    )
    measured = ", ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in some)
    note = f" ({claim['note']})" if claim.get("note") else ""
    verdict = MARK.get(claim["said"], claim["said"]) + note
    cells = (claim["id"], claim["statement"], claim["expected"], measured, verdict)
    return "| " + " | ".join(map(cell, cells)) + " |"


def cell(text: Any) -> str:
    return str(text).replace("|", "\\|")


def folders(results: Path) -> list[Path]:
    return in_order(p.parent for p in results.glob("*/study.json"))


def filled(text: str, results: Path) -> str:
    """`text` with what stands between the markers made anew."""
    for name, table in (("studies", studies_table(results)), ("claims", claims_table(results))):
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.S)
        text = pattern.sub(lambda m, table=table: f"{m[1]}{table}\n{m[2]}", text)
    return text


def main() -> None:
    root = Path(__file__).parents[2]
    path = root / "README.md"
    path.write_text(filled(path.read_text(), root / "results"))
    (root / "docs" / "claims.md").write_text(claims_page(root / "results"))
    for picture in (cover, amounts, tried, unseen, on_tokens, told, varied, taught, between, asked, courses):
        picture(root / "results").save(root / "docs" / f"{picture.__name__}.png", optimize=True)


if __name__ == "__main__":
    main()
