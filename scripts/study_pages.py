"""A page per study, docs/studies/<name>.md, and the list of all figures, docs/figures.md: from the
catalogue and results/. `make readme` runs it; a test holds the pages against it."""

from collections.abc import Iterable
from pathlib import Path

from claim_tables import part_cells
from numbers_as_text import table_line

from recombine.report.claims import read_claims
from recombine.report.read import StudyEntry, read_study
from recombine.store import Row
from recombine.studies.catalogue import catalogue

ROOT = Path(__file__).parents[1]
SAID = "Made from the results by `make readme`."
PARTS = ("measured", "estimate [95 % interval]", "n", "expected", "verdict")
SUMMARY = ("claim", "statement", "first estimate [95 % interval]", "n", "verdict")
OVERVIEWS = {
    "concept-space": "concept-space",
    "learning-order": "concept-space",
    "swing-by": "swing-by",
    "local-scores": "local-scores",
    "interactions": "interactions",
    "missing-labels": "missing-labels",
    **dict.fromkeys(("length", "locality", "receptive-field", "operator", "colours"), "scenes"),
    **dict.fromkeys(("two-models", "composition", "objectives", "jitter"), "jitter"),
    **dict.fromkeys(("jitter-by-shape", "ablations"), "jitter"),
    "features": "bridge",
}
"""Study -> the page that explains it among its neighbours; `pictures` where nothing is said."""


def study_page(entry: Row, results: Path) -> str:
    """The page of one study; without results it says what is planned."""
    folder = results / entry["name"]
    head = [f"# {entry['name']}", f"**{entry['question']}**", source(entry), SAID]
    if not (folder / "study.json").exists():
        absent = "There are no reference results of this study yet."
        planned = [claim_section(c | {"verdict": "not measured"}) for c in entry["claims"]]
        return joined([*head, absent, "## Claims", *planned, command(entry)])
    study, claims = read_study(folder), read_claims(folder / "claims.json")
    parts = ["## Result", summary(claims), LETTERS, main_figure(study)]
    parts += ["## Set-up", study.about.strip(), deviations(claims)]
    parts += ["## Claims in full", *map(claim_section, claims), other_figures(study)]
    return joined([*head, *parts, command(entry), made_where(study)])


LETTERS = (
    "D: paper A; G: ours, in its setting. S, X and L: paper B (scenes, text, exact). C and T: "
    "paper C (trained, exact). B: beyond the papers. Estimates are means over n seeds with 95 % "
    "intervals; [one rule](../statistics.md) gives the verdict."
)


def joined(parts: list[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"


def source(entry: Row) -> str:
    overview = OVERVIEWS.get(entry["name"], "pictures")
    return f"Paper: {entry['paper']}. Explained among its neighbours in [{overview}](../{overview}.md)."


def main_figure(study: StudyEntry) -> str:
    if not study.figures:
        return ""
    first = study.figures[0]
    return f"{image(study.name, first.name, first.title)}\n\n*{first.title}.* {first.caption}"


def image(study: str, figure: str, title: str) -> str:
    return f"![{title}](../../results/{study}/figures/{figure}.svg)"


def other_figures(study: StudyEntry) -> str:
    """All but the first, folded."""
    made = ["## More figures"] if study.figures[1:] else []
    for figure in study.figures[1:]:
        shown = image(study.name, figure.name, figure.title)
        made += ["<details markdown>", f"<summary>{figure.title}</summary>"]
        made += [shown, figure.caption, "</details>"]
    return joined(made).strip()


def deviations(claims: list[Row]) -> str:
    """What differs from the papers' set-ups, each once, with the claims that it concerns."""
    by_text: dict[str, list[str]] = {}
    for claim in claims:
        for text in claim.get("deviations", ()):
            by_text.setdefault(text, []).append(claim["id"])
    if not by_text:
        return ""
    lines = [f"- {text} ({', '.join(ids)})" for text, ids in by_text.items()]
    return "## Differences from the paper's set-up\n\n" + "\n".join(lines)


def table(heads: tuple[str, ...], rows: Iterable[Iterable[str]]) -> str:
    return "\n".join([table_line(heads), "|---" * len(heads) + "|", *map(table_line, rows)])


def summary(claims: list[Row]) -> str:
    """A line per claim, with the first of its parts."""
    rows = []
    for claim in claims:
        _, estimate, n, *_ = part_cells(claim)[0]
        link = f"[{claim['id']}](#{anchor(claim)})"
        rows.append((link, in_line(claim["statement"]), estimate, n, claim["verdict"]))
    return table(SUMMARY, rows)


def anchor(claim: Row) -> str:
    return f"claim-{claim['id'].lower()}"


def in_line(text: str) -> str:
    return " ".join(text.split())


def claim_section(claim: Row) -> str:
    """Statement, expected region, parts, sensitivity and note of one claim."""
    note = claim.get("note")
    lines = [f"### Claim {claim['id']}", in_line(claim["statement"])]
    lines.append(f"**{claim['verdict'].capitalize()}**" + (f": {note}." if note else "."))
    lines.append(f"Expected: {in_line(claim['expected'])}. Source: {claim['paper']}.")
    if claim.get("parts"):
        lines.append(table(PARTS, part_cells(claim, every_check=True)))
    return joined([*lines, sensitivity(claim)]).strip()


def sensitivity(claim: Row) -> str:
    """What the verdict would be by other probes, where it would be another one."""
    by_probe = (claim.get("sensitivity") or {}).get("by_probe", {})
    others = [f"{v} by the {p}" for p, v in by_probe.items() if v != claim["verdict"]]
    return f"By another probe: {', '.join(others)}." if others else ""


def made_where(study: StudyEntry) -> str:
    """Scale, seeds, device, time and date of the shipped results."""
    facts = study.provenance
    spent = duration(float(facts.get("seconds") or 0))
    return (
        f"The shipped results: scale {study.scale}, {study.seeds_text}, {facts.get('device')}, {spent} "
        f"summed over runs, {facts.get('date')}."
    )


def duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def command(entry: Row) -> str:
    """How to run it; after each scale what it costs."""
    commands = {f"recombine run {entry['name']} --scale {s}": c for s, c in entry["cost"].items()}
    lines = [f"{text:<46}# {cost}" for text, cost in commands.items()]
    return "## Run\n\n```sh\n" + "\n".join(lines) + "\n```"


def figures_page(results: Path) -> str:
    """Every shipped figure with the command that makes it."""
    lines = [
        "# How to reproduce each figure",
        f"`recombine run STUDY` writes the figures of a study to `out/STUDY/figures/`. {SAID}\n"
        "`recombine claims results --again` plots and assesses the shipped rows again, without "
        "training.",
    ]
    for entry in catalogue():
        folder = results / entry["name"]
        if (folder / "study.json").exists():
            lines.append(figures_table(read_study(folder)))
    return joined(lines)


def figures_table(study: StudyEntry) -> str:
    command = f"recombine run {study.name} --scale {study.scale} --seeds {len(study.seeds)}"
    head = f"## {study.name}\n\n[The study](studies/{study.name}.md): `{command}`\n\n"
    rows = [
        f"| [{figure.name}.svg](../results/{study.name}/figures/{figure.name}.svg) | "
        f"{figure.title} |"
        for figure in study.figures
    ]
    return head + "\n".join(["| figure | shows |", "|---|---|", *rows])


def pages(results: Path) -> dict[str, str]:
    """Path below docs/ -> text."""
    made = {f"studies/{e['name']}.md": study_page(e, results) for e in catalogue()}
    return made | {"figures.md": figures_page(results)}


def main() -> None:
    for name, text in pages(ROOT / "results").items():
        (ROOT / "docs" / name).write_text(text)


if __name__ == "__main__":
    main()
