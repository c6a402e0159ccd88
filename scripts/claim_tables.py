"""The tables of numbers in docs/*.md, from results/.

Between `<!-- NAME D1 D2 -->` and `<!-- /NAME -->` stands a table of the claims D1 and D2. Names:
parts: a line for every part of these claims; headlines: the first part of each; seeds and factors:
level 2 by seed, and which factor is right (`seed_tables.py`);
probes: every variant in these claims by every probe. `<!-- checks jitter -->`: how each probe of
the study jitter does on real, corrupted and interpolated pictures. `<!-- k-max length -->`:
K_max by seed; `<!-- exact length -->`, `<!-- by-eye all -->`: what its detector counts
(`detector_tables.py`). `<!-- curves A -->`: every curve of paper A beside
ours (`curves_table.py`). `<!-- minutes full -->`: what each paper's studies take on a GPU.
`<!-- data longer-training -->`: docs/data/longer-training.csv as it is. `<!-- summary pictures -->`
and `<!-- decides A -->`: `summaries.py`.
`make readme` runs it; a test holds the pages against it."""

import csv
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from curves_table import curves_table
from detector_tables import by_eye_table, exact_table, k_max_table
from numbers_as_text import called, number, region, shown, table_line, verdict
from prose_numbers import filled_numbers
from seed_tables import factors_table, seeds_table
from summaries import deciding, summary

from recombine.analysis.levels import interpolation_curve, tolerance
from recombine.analysis.table import Table, read_table
from recombine.plots.style import display

ROOT = Path(__file__).parents[1]
CATALOGUE = ROOT / "recombine" / "studies" / "catalogue.json"
Lines = list[list[str]]
"""Of a table: its head and its lines, by cell."""
HEAD = (
    "| claim | measured | estimate [95 % interval] | n | expected | this part | whole claim |",
    "|---|---|---|---|---|---|---|",
)
PROBES = {
    "open-set": "open-set probe",
    "CNN": "CNN probe",
    "linear": "linear probe",
    "oracle": "oracle",
}
PROBE_NAMES = {"open-set": "open-set probe", "cnn": "CNN probe", "linear": "linear probe"}
PROBE_NAMES |= {"oracle": "oracle"}
MARKED = re.compile(
    r"(<!-- (parts|headlines|seeds|factors|probes|checks|exact|k-max|by-eye|curves|minutes|data|decides|summary) "
    r"([^>]*?) -->\n).*?(<!-- /\2 -->)",
    re.S,
)


def all_claims(results: Path) -> dict[str, dict[str, Any]]:
    """Every claim of a results folder by its id."""
    files = sorted(results.glob("*/claims.json"))
    return {claim["id"]: claim for path in files for claim in json.loads(path.read_text())}


def parts_table(claims: list[dict[str, Any]]) -> str:
    return "\n".join([*HEAD, *(line for claim in claims for line in lines(claim))])


def headlines_table(claims: list[dict[str, Any]]) -> str:
    return "\n".join([*HEAD, *(lines(claim)[0] for claim in claims)])


def lines(claim: dict[str, Any]) -> list[str]:
    return [table_line((claim["id"], *cells, claim["verdict"])) for cells in part_cells(claim)]


def part_cells(claim: dict[str, Any], every_check: bool = False) -> list[tuple[str, ...]]:
    """What is measured, estimate, n, region and verdict of each part of a claim; its exact checks
    together in one line, unless every one is wanted."""
    rows = [
        (called(p["name"]), shown(p), str(p["n"]), region(p), verdict(p))
        for p in claim["parts"]
        if "estimate" in p
    ]
    checks = [p for p in claim["parts"] if "holds" in p]
    if every_check:
        rows += [(display(p["name"]), "exact check", "", "holds", p["verdict"]) for p in checks]
    elif checks:
        held = sum(p["holds"] for p in checks)
        whole = "supported" if held == len(checks) else "contradicted"
        rows.append(("exact checks", f"{held} of {len(checks)} hold", "", "all", whole))
    return rows or [(claim["note"], "", "", "", claim["verdict"])]


def probes_table(claims: list[dict[str, Any]]) -> str:
    """Late means over seeds, as the claims state them; the primary probe is the claim's own."""
    heads = ("variant", "seen", "level 1", *(f"level 2, {name}" for name in PROBES), "paper")
    rows: dict[str, str] = {}
    for measured in (claim["measured"] for claim in claims):
        for variant in [
            name.removesuffix(", seen") for name in measured if name.endswith(", seen")
        ]:
            rows.setdefault(variant, probes_line(measured, variant))
    return "\n".join([table_line(heads), "|---" * len(heads) + "|", *rows.values()])


def probes_line(measured: dict[str, Any], variant: str) -> str:
    level_2 = {measured["primary probe"]: measured[variant]}
    level_2 |= {
        name: measured.get(f"{variant}, {name}") for name in PROBES.values() if name not in level_2
    }
    values = [measured.get(f"{variant}, seen"), measured.get(f"{variant}, level 1")]
    values += [level_2[name] for name in PROBES.values()] + [measured.get(f"paper_{variant}")]
    cells = [called(variant), *("" if value is None else number(value) for value in values)]
    return table_line(cells)


def checks_table(rows: Table) -> list[list[str]]:
    """What is known of each probe: how it reads real pictures, what it rejects, what it tolerates; the
    mean where it was trained more than once."""
    factors = rows.where(kind="interpolation").unique("factor")
    heads = ["probe", "real pictures, worst composition", "corrupted pictures rejected"]
    lines = [[*heads, *(f"tolerance in {factor}" for factor in factors)]]
    for probe in rows.where(kind="refused").unique("probe"):
        worst = min(rows.where(kind="probe", probe=probe).column("joint"))
        rejected = fmean(rows.where(kind="refused", probe=probe).column("share"))
        values = [number(worst), number(rejected)]
        values += [f"{tolerance(interpolation_curve(rows, probe, f)):.2f}" for f in factors]
        lines.append([PROBE_NAMES[probe], *values])
    return lines


def group(paper: str) -> str:
    """Which paper a study belongs to: A, B with what came before it, C, or none."""
    if "(before B)" in paper or "after B" in paper:
        return "B"
    return paper[0] if re.match(r"[ABC]\b", paper) else "beyond"


def minutes_table() -> list[list[str]]:
    """What studies cost on a GPU at full scale, and each paper's sum."""
    lines: dict[str, list[list[str]]] = {}
    sums: dict[str, int] = {}
    for entry in json.loads(CATALOGUE.read_text()):
        cost, paper = entry["cost"].get("full", ""), group(entry["paper"])
        found = re.match(r"(\d+) min", cost)
        if found and ("H200" in cost or "after" in cost):
            lines.setdefault(paper, []).append(["", entry["name"], cost])
            sums[paper] = sums.get(paper, 0) + int(found[1])
    table = [["paper", "study", "full scale"]]
    for paper in sorted(lines):
        table += [[f"**{paper}**", "", f"**{sums[paper]} min**"], *lines[paper]]
    return table


def data_table(name: str) -> list[list[str]]:
    with (ROOT / "docs" / "data" / f"{name}.csv").open() as file:
        return list(csv.reader(file))


def of_study(make: Callable[[Table], Lines], results: Path, study: str) -> Lines:
    return make(read_table(results / study / "rows.parquet"))


TABLES = {"parts": parts_table, "headlines": headlines_table, "probes": probes_table}
TABLES |= {"seeds": seeds_table, "factors": factors_table}
OF_STUDIES = {"checks": checks_table, "exact": exact_table, "k-max": k_max_table}
ROW_TABLES = {name: partial(of_study, make) for name, make in OF_STUDIES.items()}
ROW_TABLES |= {
    "by-eye": lambda *_: by_eye_table(),
    "curves": lambda results, _: curves_table(results),
    "minutes": lambda *_: minutes_table(),
    "data": lambda _, name: data_table(name),
    "decides": lambda results, paper: deciding(all_claims(results), paper),
}


def filled_tables(text: str, results: Path) -> str:
    """`text` with the tables between its markers, and the numbers that cite a claim, made anew."""
    claims = all_claims(results)

    def table(match: re.Match[str]) -> str:
        if match[2] == "summary":
            return f"{match[1]}{summary(claims, match[3])}\n{match[4]}"
        if match[2] in ROW_TABLES:
            heads, *lines = ROW_TABLES[match[2]](results, match[3])
            shown = [table_line(heads), "|---" * len(heads) + "|", *map(table_line, lines)]
            return "\n".join([match[1].rstrip("\n"), *shown, match[4]])
        wanted = [claims[name] for name in match[3].split()]
        return f"{match[1]}{TABLES[match[2]](wanted)}\n{match[4]}"

    return filled_numbers(MARKED.sub(table, text), claims, results)


def main() -> None:
    for path in sorted((ROOT / "docs").glob("*.md")):
        path.write_text(filled_tables(path.read_text(), ROOT / "results"))


if __name__ == "__main__":
    main()
