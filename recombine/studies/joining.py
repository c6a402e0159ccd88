"""Results of one study from several machines that share no folder, or from several days, as one:
the same settings, other seeds."""

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from recombine.analysis.frames import pl
from recombine.analysis.table import Table, read_rows_of, write_table
from recombine.config import UsageError, from_json, to_json
from recombine.files import Row, read_json
from recombine.studies import find_assessed
from recombine.studies.summary import prepare_folder, publish, words

SAME = ("name", "scale", "settings")
"""What results must agree in; settings up to the list of variants, where there is one."""
LISTS = ("variants", "experiments", "labels")
"""The settings that list variants."""


def join(folders: list[Path], out: Path, commit: str) -> Path:
    """Rows, runs and sheets of all folders under `out/<study>`, plotted and assessed together; that
    folder. A run that several of them hold is taken from the first."""
    facts = [_facts(folder) for folder in folders]
    study = find_assessed(facts[0]["name"])
    for key in SAME:
        for folder, other in zip(folders[1:], facts[1:], strict=True):
            if _compared(other[key]) != _compared(facts[0][key]):
                where, one, two = _difference(key, _compared(facts[0][key]), _compared(other[key]))
                raise UsageError(f"{folder}: {where} is {two}, but {one} in {folders[0]}")
    goal = out / facts[0]["name"]
    if goal.exists():
        raise UsageError(f"{goal} is there already; join into a new folder")
    held = zip(folders, facts, strict=True)
    rows = joined_rows([read_rows_of(f, str(one.get("rows_of") or "")) for f, one in held])
    prepare_folder(goal)
    write_table(goal / "rows.parquet", rows)
    made = facts[0] | words(study) | _joined_facts(facts, commit)
    made["sheets"] = _copied_sheets(folders, facts, goal)
    publish(study, rows, made, goal, set())
    return goal


def _compared(value: Any) -> Any:
    """Settings with fields that they lack at their defaults: those are newer than the results.
    Settings of another version are compared as they stand."""
    value = _with_defaults(value)
    return {k: v for k, v in value.items() if k not in LISTS} if isinstance(value, dict) else value


def _with_defaults(value: Any) -> Any:
    if isinstance(value, dict):
        with suppress(UsageError, TypeError, KeyError):
            return to_json(from_json(value))
    return value


def _difference(path: str, one: Any, other: Any) -> tuple[str, str, str]:
    """The first place in which two values differ, as a path for --set, with both values there."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return path.removeprefix("settings."), json.dumps(one), json.dumps(other)
    key = next(k for k in (*one, *other) if one.get(k) != other.get(k))
    return _difference(f"{path}.{key}", one.get(key), other.get(key))


def joined_rows(tables: list[Table]) -> Table:
    """The rows of the first table, and of each further one those of runs that none before it
    holds, and what it says of variants that none before it has."""
    runs: set[str] = set()
    variants: set[str] = set()
    frames = []
    for i, table in enumerate(tables):
        frame = table.frame
        if i:
            new = pl.col("run").is_not_null() & ~pl.col("run").is_in(list(runs))
            if "variant" in frame.columns:
                new |= (pl.col("kind") == "variant") & ~pl.col("variant").is_in(list(variants))
            frame = frame.filter(new)
        runs |= set(table.unique("run"))
        variants |= set(table.where(kind="variant").unique("variant"))
        frames.append(frame)
    return Table(pl.concat(frames, how="diagonal_relaxed"))


def _facts(folder: Path) -> Row:
    if inside := sorted(path.parent.name for path in folder.glob("*/study.json")):
        raise UsageError(f"{folder} holds {', '.join(inside)}: name one, as {folder / inside[0]}")
    facts = read_json(folder / "study.json")
    needed = {*SAME, "seeds", "runs", "sheets", "provenance"}
    if not isinstance(facts, dict) or not needed <= facts.keys():
        raise UsageError(f"{folder / 'study.json'} does not describe a study")
    return facts


def _joined_facts(facts: list[Row], commit: str) -> Row:
    listed: dict[tuple[str, str], Row] = {}
    for run in (run for one in facts for run in one["runs"]):
        listed.setdefault((run["digest"], run["label"]), run)
    origin = [one["provenance"] for one in facts]
    combined: dict[str, Any] = {
        key: ", ".join(sorted({w for o in origin for w in str(o.get(key, "")).split(", ") if w}))
        for key in ("device", "torch", "python", "trained")
    }
    combined |= {
        "seconds": round(sum(o.get("seconds", 0.0) for o in origin), 1),
        "runs": list(dict.fromkeys(run for o in origin for run in o.get("runs", []))),
        "assessed": commit,
    }
    seeds = sorted({seed for one in facts for seed in one["seeds"]})
    return {
        "seeds": seeds,
        "runs": list(listed.values()),
        "settings": joined_settings([one["settings"] for one in facts]),
        "provenance": origin[0] | combined,
    }


def joined_settings(settings: list[Any]) -> Any:
    """Those of the first folder, with the lists of all; a list that older settings lack is at its
    default there."""
    first, *others = (_with_defaults(one) for one in settings)
    listed = (key for key in LISTS if isinstance(first, dict) and key in first)
    joined = {
        key: list(dict.fromkeys(v for s in (first, *others) for v in s.get(key, ())))
        for key in listed
    }
    return first | joined if joined else settings[0]


def _copied_sheets(folders: list[Path], facts: list[Row], goal: Path) -> list[Row]:
    kept: dict[str, Row] = {}
    (goal / "samples").mkdir(parents=True, exist_ok=True)
    for folder, one in zip(folders, facts, strict=True):
        for sheet in one["sheets"]:
            name = str(sheet["file"])
            source = folder / "samples" / name
            if Path(name).name != name or not source.is_file() or source.is_symlink():
                raise UsageError(f"{source} is not a sheet of samples")
            if name not in kept:
                shutil.copyfile(source, goal / "samples" / name)
                kept[name] = sheet
    return list(kept.values())
