"""A study's folder: rows as Parquet, verdicts, figures, sheets of samples, and what they were made
from."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recombine.analysis.claims import assess
from recombine.analysis.sensitivity import by_checkpoint, by_probe
from recombine.analysis.table import Table, read_rows_of, write_table
from recombine.config import UsageError, tag_of, to_json
from recombine.files import Row, read_json, refuse_links, sweep, write_json
from recombine.pipeline.job import digest_of, folder_of
from recombine.pipeline.plan import StudyPlan
from recombine.pipeline.run import collect
from recombine.plots.sheets import keep_sheets
from recombine.plots.style import entry
from recombine.store import RunFolder
from recombine.studies.study import Study
from recombine.worlds.folder import Folder


def summarise(plan: StudyPlan, out: Path, scale: str, seeds: Sequence[int], here: Row) -> Path:
    """Everything under `out/<study>`, from the finished runs; the folder. `here`: what provenance
    says of this machine."""
    study, folder = plan.study, out / plan.study.name
    prepare_folder(folder)
    facts_of = study.facts(plan.settings, 1 + max(seeds))
    rows = [r | {"scale": scale} for r in [*facts_of, *collect(plan, out)]]
    table = Table(rows)
    write_table(folder / "rows.parquet", table)
    runs = [_run(job) for job in plan.jobs]
    known = _written(folder)
    of_runs = [(r, RunFolder(out, r["digest"])) for r in runs]
    sheets = keep_sheets(of_runs, folder / "samples", _earlier_sheets(folder))
    facts = {
        **words(study),
        "scale": scale,
        "seeds": list(seeds),
        "settings": to_json(plan.settings),
        "runs": runs,
        "sheets": sheets,
        "space": None,
        "levels": None,
        **study.describe(plan.settings),
        "provenance": provenance(plan, out, here),
    }
    publish(study, table, facts, folder, known)
    return folder


def prepare_folder(folder: Path) -> None:
    """Before a study's folder is written into: no links in it, no litter of a killed command."""
    refuse_links(folder, "figures", "samples")
    for place in (folder, folder / "figures", folder / "samples"):
        sweep(place)


def assess_again(study: Study, folder: Path, commit: str) -> None:
    """Assess and plot the rows of a study's folder with today's code; where they come from stays as
    it is, and beside it stands the commit that assessed."""
    prepare_folder(folder)
    facts = read_json(folder / "study.json")
    if not isinstance(facts, dict) or not {"name", "scale", "seeds", "provenance"} <= facts.keys():
        raise UsageError(f"{folder / 'study.json'} does not describe a study")
    table = read_rows_of(folder, str(facts.get("rows_of") or ""))
    if not len(table):
        raise UsageError(f"{folder / 'rows.parquet'}: no rows to assess")
    made = facts | words(study) | {"provenance": facts["provenance"] | {"assessed": commit}}
    publish(study, table, made, folder, _written(folder))


def publish(study: Study, rows: Table, facts: Row, folder: Path, known: set[str]) -> None:
    """Figures, facts and claims, which are the last to be written. Of the files that an earlier
    summary wrote, those that are made no more are removed; no other file is touched."""
    figures = [entry(f) for f in study.figures(rows, folder / "figures")]
    claims = verdicts(study, rows, facts)
    files = {f"figures/{f['name']}.svg" for f in figures} | {
        f"samples/{s['file']}" for s in facts.get("sheets", [])
    }
    for name in known - files:
        path = folder / name
        if not path.is_symlink() and not path.parent.is_symlink():
            path.unlink(missing_ok=True)
    write_json(folder / "study.json", facts | {"figures": figures, "files": sorted(files)})
    write_json(folder / "claims.json", claims)


def verdicts(study: Study, rows: Table, facts: Row) -> list[Row]:
    """Every claim of a study, assessed; none on one's own pictures, which they are not about."""
    if _own_pictures(facts.get("settings")):
        return []
    scale, minutes, seeds = facts["scale"], study.run_minutes, len(facts["seeds"])
    assessed = [assess(claim, rows, scale, minutes) for claim in study.claims]
    made = [j.json(study.name, scale, seeds, facts["provenance"]) for j in assessed]
    if study.sensitivity:
        probes = by_probe(study.claims, rows, scale, minutes)
        checkpoints = by_checkpoint(study.claims, rows, scale, minutes)
        for one, p, c in zip(made, probes, checkpoints, strict=True):
            one["sensitivity"] = {"by_probe": p, "by_checkpoint": c}
    return made


def _own_pictures(settings: Any) -> bool:
    """Whether a world in these settings, as JSON, is a folder of pictures."""
    if isinstance(settings, list):
        return any(map(_own_pictures, settings))
    if not isinstance(settings, dict):
        return False
    return settings.get("type") == tag_of(Folder) or _own_pictures(list(settings.values()))


def _written(folder: Path) -> set[str]:
    """The figures and sheets that an earlier summary wrote there, by its own list; only plain names
    inside."""
    path = folder / "study.json"
    if not path.exists():
        return set()
    try:
        listed = read_json(path).get("files", [])
    except (UsageError, AttributeError):
        return set()
    listed = listed if isinstance(listed, list) else []
    plain = [f for f in listed if isinstance(f, str) and f.count("/") == 1 and ".." not in f]
    return {f for f in plain if f.startswith(("figures/", "samples/"))}


def _earlier_sheets(folder: Path) -> list[Row]:
    """What an earlier summary says of the sheets it kept."""
    path = folder / "study.json"
    try:
        listed = read_json(path).get("sheets", []) if path.exists() else []
    except (UsageError, AttributeError):
        return []
    return [s for s in listed if isinstance(s, dict)] if isinstance(listed, list) else []


def words(study: Study) -> Row:
    """What a page says of a study."""
    return {
        "name": study.name,
        "question": study.question,
        "paper": study.paper,
        "about": study.about,
        "widget": study.widget,
    }


def _run(job: Any) -> Row:
    return {
        "digest": digest_of(job.task),
        "label": job.title,
        "noun": job.task.noun,
        **dict(job.labels),
    }


def provenance(plan: StudyPlan, out: Path, here: Row) -> Row:
    """The machines and commits of the runs, how long they took together, and who assessed them. The
    seconds are without those of runs that were borrowed from the results of another study."""
    digests = list(dict.fromkeys(digest_of(job.task) for job in plan.jobs))
    done = [
        folder_of(job.task, out).facts() for job in {job.task: job for job in plan.jobs}.values()
    ]
    made = {key: _listed(done, key) for key in ("device", "torch", "python", "borrowed")}
    return {
        **here,
        **{key: value for key, value in made.items() if value},
        "trained": _listed(done, "commit") or here.get("commit"),
        "seconds": round(sum(d.get("seconds", 0.0) for d in done), 1),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "runs": digests,
    }


def _listed(runs: list[Row], key: str) -> str:
    """What runs say, each once; a borrowed run says all that its study does."""
    return ", ".join(sorted({w for run in runs if key in run for w in str(run[key]).split(", ")}))
