"""Copy studies' folders into results/ in their light form: rows, verdicts, figures, and of every
variant the last sheet of its first seed, or of every seed where a figure shows them. A study of
the same runs as one that is there already keeps of its rows what that one lacks, and of its sheets
those that are not samples over training.
`python scripts/ship.py out/label-dropout [...]`"""

import shutil
import sys
from pathlib import Path

from recombine.analysis.table import Table, read_rows_of, read_table, write_table
from recombine.plots.small_models import ENTERING
from recombine.store import read_json, write_json

RESULTS = Path(__file__).parents[1] / "results"
EVERY_SEED = ("repair", "optimizers", "small-models")
"""Studies with a figure of the samples of all seeds."""


def last_sheets(facts: dict, every_seed: bool = False) -> list[dict]:
    """One sheet per variant and name: the last of the first seed that has any, or of every seed."""
    runs = {r["digest"]: r for r in facts["runs"]}
    best: dict[tuple, tuple] = {}
    for sheet in facts["sheets"]:
        run = runs[sheet["run"]]
        each = every_seed and run.get("variant") not in ENTERING
        key = run.get("variant"), sheet["name"], run.get("seed") if each else None
        rank = -(run.get("seed") or 0), sheet.get("step") or 0
        if key not in best or rank > best[key][0]:
            best[key] = rank, sheet
    return [sheet for _, sheet in best.values()]


def of_the_same_runs(facts: dict, goal: Path) -> Path | None:
    """The shipped study that holds the rows of the same runs, if any."""
    for path in sorted(RESULTS.glob("*/study.json")):
        other = read_json(path)
        if path.parent != goal and not other.get("rows_of") and other["runs"] == facts["runs"]:
            return path.parent
    return None


def ship(source: Path) -> Path:
    facts, goal = read_json(source / "study.json"), RESULTS / source.name
    rows = read_rows_of(source, facts.pop("rows_of", ""))
    facts["sheets"] = last_sheets(facts, source.name in EVERY_SEED)
    if other := of_the_same_runs(facts, goal):
        held = read_table(other / "rows.parquet").frame
        rows = Table(rows.frame.join(held, on=held.columns, how="anti", nulls_equal=True))
        facts["sheets"] = [s for s in facts["sheets"] if s.get("step") is None]
        facts["rows_of"] = other.name
    samples = {f"samples/{s['file']}" for s in facts["sheets"]}
    facts["files"] = [f for f in facts["files"] if f.startswith("figures/") or f in samples]
    shutil.rmtree(goal, ignore_errors=True)
    for name in ("claims.json", *facts["files"]):
        (goal / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, goal / name)
    write_table(goal / "rows.parquet", rows)
    write_json(goal / "study.json", facts)
    return goal


if __name__ == "__main__":
    for folder in sys.argv[1:]:
        print(ship(Path(folder)))
