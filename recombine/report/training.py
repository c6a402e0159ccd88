"""Accuracy rows and sheets -> what the page's slider, grid, curves and table show. Means are over compositions of a level
and over seeds, nothing more."""

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from recombine.config import UsageError
from recombine.report.read import Record, Results, number, read_json, safe_name
from recombine.report.sheets import Sheet, encode, find_sheets

PAPER_CURVES = Path(__file__).parent / "paper_curves.json"
Score = list[float | None]
"""Joint accuracy, the ends of its interval, how many pictures, then one accuracy per factor."""


def training(results: Results) -> Record | None:
    """The explorer's data, or None where the study trained nothing."""
    rows = [r for r in results.rows if r.get("kind") == "accuracy"]
    if not rows:
        return None
    path = results.folder / "rows.jsonl"
    compositions = _compositions(results.study, rows, path)
    probes = _unique(text(r, "probe", path) for r in rows)
    factors = [str(f.get("name")) for f in (results.study.get("space") or {}).get("factors", [])]
    runs, sheets = _runs(results, rows, compositions, factors, path)
    return {
        "factors": factors,
        "compositions": compositions,
        "levels": sorted({c["level"] for c in compositions}),
        "probes": probes,
        "quality": _quality(results.rows, path),
        "refused": _refused(results.rows, path),
        "runs": runs,
        "variants": _variants(runs, results.study),
        "sheets": [asdict(s) for s in sheets],
    }


def _compositions(study: Record, rows: list[Record], path: Path) -> list[Record]:
    """Code, name, level and row on the sheets; shown level by level, from the seen ones on, or where there are many from the
    most novel ones on."""
    levels = study.get("levels") or {text(r, "composition", path): r.get("level") for r in rows}
    if not all(isinstance(level, int) for level in levels.values()):
        raise UsageError(f"{path}: every accuracy row needs a composition and its level as an integer")
    factors = (study.get("space") or {}).get("factors", [])
    ordered = sorted(levels, key=lambda code: digits(code, len(factors)))
    found = [{"code": c, "name": name_of(c, factors), "level": levels[c], "row": i} for i, c in enumerate(ordered)]
    sign = 1 if len(found) <= 16 else -1
    return sorted(found, key=lambda c: (sign * c["level"], c["row"]))


def digits(code: str, factors: int = 0) -> tuple[int, ...]:
    """ "011" -> (0, 1, 1), "10.0.1" -> (10, 0, 1), "10" of one factor -> (10,); other codes come last, as they are."""
    parts = code.split(".") if "." in code or factors == 1 else list(code)
    known = all(p.isdecimal() and p.isascii() for p in parts)
    return tuple(map(int, parts)) if known else (10**9, *map(ord, code))


def name_of(code: str, factors: list[Record]) -> str:
    """ "011" -> "circle blue small"; the code itself where the space does not cover it."""
    try:
        return " ".join(str(f["values"][i]) for f, i in zip(factors, digits(code, len(factors)), strict=True)) or code
    except (KeyError, IndexError, ValueError, TypeError):
        return code


def _runs(
    results: Results, rows: list[Record], compositions: list[Record], factors: list[str], path: Path
) -> tuple[list[Record], list[Sheet]]:
    known = {run["digest"]: run for run in results.runs}
    grouped: dict[str, list[Record]] = {}
    for row in rows:
        grouped.setdefault(text(row, "run", path), []).append(row)
    order = [d for d in known if d in grouped] + [d for d in grouped if d not in known]
    runs, paths = [], []
    for digest in order:
        safe_name(digest, path, "a run's digest")
        found = find_sheets(results.run_folder(digest) / "samples")
        first = grouped[digest][0]
        about = {"variant": first.get("variant", "run"), "seed": first.get("seed", 0), **known.get(digest, {})}
        run = {"id": digest, "variant": str(about["variant"]), "seed": str(about["seed"])}
        run |= _scores(grouped[digest], compositions, factors, path)
        run["sheets"] = [[step, len(paths) + i] for i, step in enumerate(found)]
        paths += found.values()
        runs.append(run)
    return runs, encode(paths, len(compositions))


def _scores(rows: list[Record], compositions: list[Record], factors: list[str], path: Path) -> Record:
    """`scores[probe][code]` is one Score (or None) per step; `curves[probe][level]` its mean over compositions."""
    found: dict[str, dict[str, dict[int, Score]]] = {}
    for row in rows:
        score = [number(row, key, path) for key in ("joint", "low", "high", "n", *factors)]
        step = int(number(row, "step", path) or 0)
        found.setdefault(row["probe"], {}).setdefault(row["composition"], {})[step] = score
    steps = sorted({s for by_code in found.values() for by_step in by_code.values() for s in by_step})
    codes: dict[int, list[str]] = {}
    for c in compositions:
        codes.setdefault(c["level"], []).append(c["code"])
    scores = {p: {c: [at.get(s) for s in steps] for c, at in by.items()} for p, by in found.items()}
    curves = {
        p: {str(level): _curve([by[c] for c in names if c in by], len(steps)) for level, names in codes.items()}
        for p, by in scores.items()
    }
    return {"steps": steps, "scores": scores, "curves": curves}


def _curve(scores: list[list[Score | None]], count: int) -> list[Score | None]:
    """Per step the mean [joint, low, high] of several scores; None where one of them is missing."""
    return [_mean([s[i] for s in scores]) for i in range(count)]


def _mean(scores: list[Score | None]) -> Score | None:
    if not scores or any(s is None or s[0] is None for s in scores):
        return None
    columns = list(zip(*((s[0], *(s[0] if v is None else v for v in s[1:3])) for s in scores), strict=True))
    return [round(fmean(column), 4) for column in columns]


def _variants(runs: list[Record], study: Record) -> list[Record]:
    """The runs that differ by seed alone, with their mean curve over the steps that all of them have."""
    paper = None if study.get("own") else study.get("paper_curve")
    found = []
    for name in _unique(run["variant"] for run in runs):
        same = [run for run in runs if run["variant"] == name]
        steps = sorted(set.intersection(*(set(run["steps"]) for run in same)))
        shared = [p for p in same[0]["curves"] if all(p in run["curves"] for run in same)]
        curves = {p: {level: _over_seeds(same, p, level, steps) for level in same[0]["curves"][p]} for p in shared}
        curve = paper.get(name) if isinstance(paper, dict) else paper
        found.append({"name": name, "steps": steps, "curves": curves, "paper": _paper(curve, study)})
    return found


def _over_seeds(runs: list[Record], probe: str, level: str, steps: list[int]) -> list[Score | None]:
    at_steps = [dict(zip(run["steps"], run["curves"][probe][level], strict=True)) for run in runs]
    return _curve([[at[step] for step in steps] for at in at_steps], len(steps))


def _paper(name: Any, study: Record) -> Record | None:
    """The paper's own curve, per level, under the name that study.json gives."""
    if name is None:
        return None
    runs = read_json(PAPER_CURVES)["runs"]
    if not isinstance(name, str) or name not in runs:
        raise UsageError(f"study {study['name']}: paper_curve {name!r} is not one of {', '.join(runs)}")
    return {key: runs[name][key] for key in ("label", "figure", "steps", "levels")}


def _quality(rows: list[Record], path: Path) -> list[Record]:
    """What each probe reaches on real pictures, so that no score stands alone."""
    return [
        {"probe": text(r, "probe", path), "composition": plain(r.get("composition")), "level": plain(r.get("level"))}
        | {"joint": number(r, "joint", path)}
        for r in rows
        if r.get("kind") == "probe"
    ]


def _refused(rows: list[Record], path: Path) -> dict[str, float]:
    """The share of spoiled pictures that each probe refuses, the least where runs are of several worlds; only those that may
    refuse at all."""
    found: dict[str, float] = {}
    for row in (r for r in rows if r.get("kind") == "refused"):
        probe, share = text(row, "probe", path), number(row, "share", path)
        found[probe] = min(share, found.get(probe, share))
    return {probe: share for probe, share in found.items() if share}


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def plain(value: Any) -> int | str | None:
    return value if value is None or isinstance(value, int) else str(value)


def text(row: Record, key: str, path: Path) -> str:
    if not isinstance(row.get(key), str):
        raise UsageError(f"{path}: a row of kind {row.get('kind')!r} needs a text as its {key!r}, not {row.get(key)!r}")
    return row[key]
