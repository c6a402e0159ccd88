"""Rows of runs that two studies share, taken from one study's results for the other, so that nothing
is trained twice. `python scripts/borrow.py out/labels results/label-dropout elsewhere` writes
elsewhere/labels: what out/labels lacks and label-dropout holds. `recombine join out/labels
elsewhere/labels` puts them together."""

import sys
from pathlib import Path

from recombine.analysis.frames import pl
from recombine.analysis.table import Table, read_rows_of, write_table
from recombine.config import from_json
from recombine.pipeline.job import digest_of
from recombine.store import read_json, write_json
from recombine.studies import find


def borrow(lacking: Path, holding: Path, out: Path) -> Path:
    """Of every variant that the study has by its defaults and the first folder lacks, the runs that
    the second holds."""
    facts, held = (read_json(folder / "study.json") for folder in (lacking, holding))
    rows = read_rows_of(holding, held.get("rows_of") or "").frame
    known, taken = set(rows["run"].drop_nulls()), []
    for labels, digest in shared(facts):
        if digest in known:
            some = rows.filter(pl.col("run") == digest)
            same = {key: pl.lit(value) for key, value in labels.items()}
            taken.append((labels, digest, some.with_columns(**same)))
    if not taken:
        raise SystemExit(f"{holding} holds no run that {lacking} lacks")
    goal = out / facts["name"]
    goal.mkdir(parents=True)
    write_table(goal / "rows.parquet", Table(pl.concat([t for *_, t in taken])))
    entries = {run["digest"]: run for run in held["runs"]}
    runs = [entries[digest] | labels | {"label": label_of(labels)} for labels, digest, _ in taken]
    variants = list(dict.fromkeys(labels["variant"] for labels, *_ in taken))
    made = {"runs": runs, "sheets": [], "seeds": sorted({run["seed"] for run in runs})}
    made["settings"] = facts["settings"] | {"variants": variants}
    made["provenance"] = held["provenance"] | {"runs": [run["digest"] for run in runs]}
    write_json(goal / "study.json", facts | made)
    return goal


def shared(facts: dict) -> list[tuple[dict, str]]:
    """Labels and digests of the models of variants that these results lack."""
    study = find(facts["name"])
    every = study.settings(facts["scale"]).variants
    lacks = [name for name in every if name not in facts["settings"]["variants"]]
    settings = from_json(facts["settings"] | {"variants": lacks})
    jobs = study.jobs(settings, 1 + max(facts["seeds"]))
    return [(dict(j.labels), digest_of(j.task)) for j in jobs if j.task.noun == "model"]


def label_of(labels: dict) -> str:
    return f"{labels['variant']}, seed {labels['seed']}"


if __name__ == "__main__":
    print(borrow(*map(Path, sys.argv[1:])))
