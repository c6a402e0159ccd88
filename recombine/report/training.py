"""Accuracy rows and sheets -> what the page's slider, grid, curves and table show. Means are over
compositions of a level and over seeds, nothing more."""

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from recombine.analysis.frames import pl
from recombine.analysis.levels import PROBES
from recombine.analysis.paper_curves import paper_curves
from recombine.analysis.paper_probe import PAPER, averaged
from recombine.config import UsageError
from recombine.plots.style import display
from recombine.report.read import Factor, Results, StudyEntry
from recombine.report.sheets import Grid, grid_of

Record = dict[str, Any]
Score = list[float | None]
"""Joint accuracy, the ends of its interval, then one accuracy per factor."""
SCORE = ("joint", "low", "high")
KINDS = ("accuracy", "probe", "refused")
"""Kinds of rows with a probe."""
NAMES = PROBES | {PAPER: "paper's linear probe, mean over its seeds"}


def training(results: Results) -> Record | None:
    """The explorer's data, or None where no accuracy was measured over training."""
    path = results.folder / "rows.parquet"
    kinds = results.rows.frame.get_column("kind", default=None)
    if kinds is None or kinds.dtype != pl.String or not (kinds == "accuracy").any():
        return None
    factors = [factor.name for factor in results.study.factors]
    probes = {kind: shown(averaged(results.rows.where(kind=kind).frame)) for kind in KINDS}
    rows = checked(probes["accuracy"], path, factors)
    compositions = compositions_of(results.study, rows, path)
    runs, grids = runs_of(results, rows, compositions, factors)
    variants = variants_of(runs, results.study)
    return {
        "factors": factors,
        "compositions": compositions,
        "levels": sorted({c["level"] for c in compositions}),
        # Where the paper's own probe was used, it is the primary one.
        "probes": sorted(unique(rows["probe"]), key=lambda probe: probe != PAPER),
        "names": NAMES,
        "quality": quality(probes["probe"], path),
        "refused": refused(probes["refused"], path),
        "runs": [slim(run) | {"variant": display(run["variant"])} for run in runs],
        "variants": [one | {"name": display(one["name"])} for one in variants],
        "sheets": [asdict(grid) for grid in grids],
    }


def shown(frame: "pl.DataFrame") -> "pl.DataFrame":
    """Without our own linear probe where the paper's, which is linear too, was used: a page of many
    runs takes long to load."""
    probes = frame.get_column("probe", default=pl.Series(dtype=pl.Null))
    if probes.dtype != pl.String or not probes.eq(PAPER).any():
        return frame
    return frame.filter(pl.col("probe") != "linear")


def checked(frame: "pl.DataFrame", path: Path, factors: Iterable[str]) -> "pl.DataFrame":
    """Accuracy rows with the columns that the page needs, of the types it needs; NaN and infinity
    count as missing."""
    texts = [text_column(frame, name, path) for name in ("run", "probe", "composition")]
    steps = number_column(frame, "step", path).cast(pl.Int64, strict=False).fill_null(0)
    labels = [frame[name] for name in ("level", "variant", "seed") if name in frame.columns]
    # Of joint accuracies means are taken; all else is shown in whole percents.
    scores = [
        number_column(frame, name, path).round(4 if name == "joint" else 2)
        for name in (*SCORE, *factors)
    ]
    columns = [*texts, steps, *labels, *scores]
    names = [column.name for column in columns]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"{path.with_name('study.json')}: no factor may be called {twice!r}")
    return pl.DataFrame(columns)


def text_column(frame: "pl.DataFrame", name: str, path: Path) -> "pl.Series":
    column = frame.get_column(name, default=None)
    if column is None or column.dtype != pl.String or column.null_count():
        raise UsageError(f"{path}: accuracy, probe and refused rows need a text in column {name!r}")
    return column


def number_column(frame: "pl.DataFrame", name: str, path: Path) -> "pl.Series":
    """A column of numbers, all missing where there is none."""
    column = frame.get_column(name, default=None)
    if column is None or column.dtype == pl.Null:
        return pl.Series(name, [None] * len(frame), pl.Float64)
    if not column.dtype.is_numeric():
        raise UsageError(f"{path}: column {name!r} must hold numbers, not {column.dtype}")
    values = column.cast(pl.Float64)
    return values.set(values.is_infinite() | values.is_nan(), None)


def compositions_of(study: StudyEntry, rows: "pl.DataFrame", path: Path) -> list[Record]:
    """Code, name, level and row on the sheets; shown level by level, from the seen ones on, or
    where there are many from the most novel ones on."""
    levels = study.levels or dict(zip(rows["composition"], levels_of(rows), strict=True))
    if not all(isinstance(level, int) for level in levels.values()):
        raise UsageError(f"{path}: every accuracy row needs its level as a whole number")
    ordered = sorted(levels, key=lambda code: digits(code, len(study.factors)))
    codes = [
        {"code": code, "name": name_of(code, study.factors), "level": levels[code], "row": i}
        for i, code in enumerate(ordered)
    ]
    sign = 1 if len(codes) <= 16 else -1
    return sorted(codes, key=lambda c: (sign * c["level"], c["row"]))


def levels_of(rows: "pl.DataFrame") -> Iterable[Any]:
    return rows["level"] if "level" in rows.columns else [None] * len(rows)


def digits(code: str, factors: int = 0) -> tuple[int, ...]:
    """ "011" -> (0, 1, 1), "10.0.1" -> (10, 0, 1), "10" of one factor -> (10,); other codes come
    last, as they are."""
    parts = code.split(".") if "." in code or factors == 1 else list(code)
    known = all(p.isdecimal() and p.isascii() for p in parts)
    return tuple(map(int, parts)) if known else (10**9, *map(ord, code))


def name_of(code: str, factors: list[Factor]) -> str:
    """ "011" -> "circle blue small"; the code itself where the space does not cover it."""
    try:
        values = zip(factors, digits(code, len(factors)), strict=True)
        return " ".join(str(factor.values[i]) for factor, i in values) or code
    except (IndexError, ValueError):
        return code


def runs_of(
    results: Results, rows: "pl.DataFrame", compositions: list[Record], factors: list[str]
) -> tuple[list[Record], list[Grid]]:
    """Every run with its scores, and the sheets of all of them, to which `run["sheets"]` points by
    number."""
    known = {run.digest: run for run in results.study.runs}
    grouped = {
        key: some
        for (key,), some in rows.partition_by("run", maintain_order=True, as_dict=True).items()
    }
    order = [d for d in known if d in grouped] + [d for d in grouped if d not in known]
    runs, grids = [], []
    for digest in order:
        run = {"id": digest, **labels(known.get(digest), grouped[digest])}
        run |= scores_of(grouped[digest], compositions, factors)
        kept = {
            s.step: s.file for s in results.study.sheets if s.run == digest and s.step is not None
        }
        run["sheets"] = [[step, len(grids) + i] for i, step in enumerate(sorted(kept))]
        grids += [grid_of(results.folder, kept[step], len(compositions)) for step in sorted(kept)]
        runs.append(run)
    return runs, grids


def labels(run: Any, rows: "pl.DataFrame") -> Record:
    """Variant and seed: as study.json says, else as the rows say."""
    first = rows.row(0, named=True)
    said = {"variant": run.variant, "seed": run.seed} if run else {}
    return {
        key: str(next((v for v in (said.get(key), first.get(key)) if v is not None), default))
        for key, default in (("variant", "run"), ("seed", 0))
    }


def scores_of(rows: "pl.DataFrame", compositions: list[Record], factors: list[str]) -> Record:
    """`scores[probe][code]` is one Score (or None) per step; `curves[probe][level]` its mean over
    compositions."""
    by_probe: dict[str, dict[str, dict[int, Score]]] = {}
    columns = ("probe", "composition", "step", *SCORE, *factors)
    for probe, code, step, *score in rows.select(columns).iter_rows():
        by_probe.setdefault(probe, {}).setdefault(code, {})[step] = score
    steps = sorted(rows["step"].unique())
    codes: dict[int, list[str]] = {}
    for c in compositions:
        codes.setdefault(c["level"], []).append(c["code"])
    scores = {
        p: {c: [at.get(s) for s in steps] for c, at in by.items()} for p, by in by_probe.items()
    }
    curves = {
        p: {
            str(level): mean_curve([by[c] for c in names if c in by], len(steps))
            for level, names in codes.items()
        }
        for p, by in scores.items()
    }
    return {"steps": steps, "scores": scores, "curves": curves}


def slim(run: Record) -> Record:
    """A run without the intervals of its curves, which the page shows of variants alone."""
    curves = {
        probe: {level: [score and score[:1] for score in curve] for level, curve in levels.items()}
        for probe, levels in run["curves"].items()
    }
    return run | {"curves": curves}


def mean_curve(scores: list[list[Score | None]], count: int) -> list[Score | None]:
    """Per step the mean [joint, low, high] of several scores; None where one of them is missing."""
    return [mean_score([s[i] for s in scores]) for i in range(count)]


def mean_score(scores: list[Score | None]) -> Score | None:
    if not scores or any(s is None or s[0] is None for s in scores):
        return None
    filled = [(s[0], *(s[0] if v is None else v for v in s[1:3])) for s in scores]
    return [round(fmean(column), 4) for column in zip(*filled, strict=True)]


def variants_of(runs: list[Record], study: StudyEntry) -> list[Record]:
    """The runs that differ by seed alone, with their mean curve over the steps that all of them
    have."""
    paper = None if study.own else study.paper_curve
    variants = []
    for name in unique(run["variant"] for run in runs):
        same = [run for run in runs if run["variant"] == name]
        steps = sorted(set.intersection(*(set(run["steps"]) for run in same)))
        shared = [p for p in same[0]["curves"] if all(p in run["curves"] for run in same)]
        curves = {
            p: {k: over_seeds(same, p, k, steps) for k in same[0]["curves"][p]} for p in shared
        }
        curve = paper.get(name) if isinstance(paper, dict) else paper
        about = {"name": name, "steps": steps, "curves": curves}
        variants.append(about | {"paper": paper_curve(curve, study)})
    return variants


def over_seeds(runs: list[Record], probe: str, level: str, steps: list[int]) -> list[Score | None]:
    at_steps = [dict(zip(run["steps"], run["curves"][probe][level], strict=True)) for run in runs]
    return mean_curve([[at[step] for step in steps] for at in at_steps], len(steps))


def paper_curve(name: str | None, study: StudyEntry) -> Record | None:
    """The paper's own curve, per level, under the name that study.json gives."""
    if name is None:
        return None
    runs = paper_curves()
    if name not in runs:
        raise UsageError(
            f"study {study.name}: paper_curve {name!r} is not one of {', '.join(runs)}"
        )
    return {key: runs[name][key] for key in ("label", "figure", "steps", "levels")}


def quality(frame: "pl.DataFrame", path: Path) -> list[Record]:
    """What each probe reaches on real pictures, so that no score stands alone."""
    if frame.is_empty():
        return []
    joint = number_column(frame, "joint", path).round(4)
    probes = text_column(frame, "probe", path)
    rest = [frame.get_column(name, default=None) for name in ("composition", "level")]
    about = [column if column is not None else [None] * len(frame) for column in rest]
    keys = ("probe", "composition", "level", "joint")
    return [dict(zip(keys, row, strict=True)) for row in zip(probes, *about, joint, strict=True)]


def refused(frame: "pl.DataFrame", path: Path) -> dict[str, float]:
    """The share of corrupted pictures that each probe refuses, the least where runs are of several
    worlds; only those that may refuse at all."""
    if frame.is_empty():
        return {}
    shares: dict[str, float] = {}
    pairs = zip(text_column(frame, "probe", path), number_column(frame, "share", path), strict=True)
    for probe, share in pairs:
        if share is not None:
            shares[probe] = min(share, shares.get(probe, share))
    return {probe: share for probe, share in shares.items() if share}


def unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
