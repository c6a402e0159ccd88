"""The generated parts of README.md and docs/: tables of studies and claims, and pictures, all from
results/.

`make readme` runs it; a test holds the files against it.
"""

import itertools
import re
from collections.abc import Iterable
from pathlib import Path

import pictures
import sensitivity
from claim_tables import all_claims, group
from findings import findings

from recombine.report.claims import estimate
from recombine.report.read import ClaimEntry, StudyEntry, in_order, read_entries, read_study

ROOT = Path(__file__).parents[1]
SIGNS = {
    "supported": "✅",
    "partly supported": "🟡",
    "inconclusive": "❔",
    "contradicted": "❌",
    "not measured": "–",
    "smoke": "·",
}
PICTURES = {
    "cover": pictures.cover,
    "objectives": pictures.objectives,
    "composition": pictures.composition,
    "jitter": pictures.jitter,
    "ablations": pictures.ablations,
    "length": pictures.length,
    "sensitivity": sensitivity.sensitivity,
}
"""docs/<name>.png -> what makes it from a results folder."""


def studies_table(results: Path) -> str:
    """A row for each paper, in it a line for each study."""
    rows: dict[str, list[str]] = {"A": [], "B": [], "C": [], "beyond": []}
    for study, claims in read_all(results):
        ids = spans(claim.id for claim in claims)
        link = f"[{study.name}](docs/studies/{study.name}.md)"
        rows[group(study.paper)].append(
            f"{link}: {study.question} {ids}; {study.scale}, {study.seeds_text}"
        )
    lines = ["| paper | study, question, claims, shipped results |", "|---|---|"]
    return "\n".join([*lines, *(table_line((k, "<br>".join(v))) for k, v in rows.items())])


def spans(ids: Iterable[str]) -> str:
    """Claims by letter and number; four or more in a row as `S1 to S6`."""
    parts = sorted((i[0], int(re.sub(r"\D", "", i)), i) for i in ids)
    groups = itertools.groupby(enumerate(parts), lambda at: (at[1][0], at[1][1] - at[0]))
    rows = [[part[2] for _, part in some] for _, some in groups]
    return ", ".join(f"{row[0]} to {row[-1]}" if len(row) > 3 else ", ".join(row) for row in rows)


HEAD = """# All claims

With the verdicts of the reference results, by [one rule](statistics.md) for all. Made from
`results/` by `make readme`.

| claim | statement | expected | estimate, 95 % interval | verdict |
|---|---|---|---|---|
"""


def claims_page(results: Path) -> str:
    claims = [claim for _, some in read_all(results) for claim in some]
    lines = [
        table_line((c.id, c.statement, c.expected, estimate(c), shown(c) + noted(c)))
        for c in claims
    ]
    return HEAD + "\n".join(lines) + "\n"


def shown(claim: ClaimEntry) -> str:
    return f"{SIGNS[claim.verdict]} {claim.verdict}"


def noted(claim: ClaimEntry) -> str:
    return f" ({claim.note})" if claim.note else ""


def table_line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def read_all(results: Path) -> list[tuple[StudyEntry, list[ClaimEntry]]]:
    folders = in_order(results.glob("*/study.json"))
    return [(read_study(folder), read_entries(folder / "claims.json")) for folder in folders]


def filled(text: str, results: Path) -> str:
    """`text` with what stands between the markers made anew."""
    made = {"studies": studies_table(results), "findings": findings(all_claims(results))}
    for name, table in made.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.S)
        text = pattern.sub(lambda m, table=table: f"{m[1]}{table}\n{m[2]}", text)
    return text


def main() -> None:
    path, results = ROOT / "README.md", ROOT / "results"
    path.write_text(filled(path.read_text(), results))
    (ROOT / "docs" / "claims.md").write_text(claims_page(results))
    for name, make in PICTURES.items():
        make(results).save(ROOT / "docs" / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
