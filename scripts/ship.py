"""Copy studies' folders into results/ in their light form: rows, verdicts, figures, and of every
variant the last sheet of its first seed. `python scripts/ship.py out/label-dropout [...]`"""

import shutil
import sys
from pathlib import Path

from recombine.store import read_json, write_json

RESULTS = Path(__file__).parents[1] / "results"


def last_sheets(facts: dict) -> list[dict]:
    """One sheet per variant and name: the last of the first seed that has any."""
    runs = {r["digest"]: r for r in facts["runs"]}
    best: dict[tuple, tuple] = {}
    for sheet in facts["sheets"]:
        run = runs[sheet["run"]]
        key, rank = (run.get("variant"), sheet["name"]), (-(run.get("seed") or 0), sheet["step"])
        if key not in best or rank > best[key][0]:
            best[key] = rank, sheet
    return [sheet for _, sheet in best.values()]


def ship(source: Path) -> Path:
    facts, goal = read_json(source / "study.json"), RESULTS / source.name
    facts["sheets"] = last_sheets(facts)
    samples = {f"samples/{s['file']}" for s in facts["sheets"]}
    facts["files"] = [f for f in facts["files"] if f.startswith("figures/") or f in samples]
    shutil.rmtree(goal, ignore_errors=True)
    for name in ("rows.parquet", "claims.json", *facts["files"]):
        (goal / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, goal / name)
    write_json(goal / "study.json", facts)
    return goal


if __name__ == "__main__":
    for folder in sys.argv[1:]:
        print(ship(Path(folder)))
