"""What a program or a notebook calls: run studies, and read results as data frames."""

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from recombine.pipeline.plan import Command
    from recombine.scoring.result import Result

SEEDS = {"smoke": 1, "laptop": 1, "full": 5}
"""How many seeds a scale has by default."""


def run(
    *studies: str,
    scale: str = "laptop",
    seeds: int = 0,
    out: str | Path = "out",
    changes: Mapping[str, Any] | None = None,
    device: str = "auto",
    workers: int = 0,
    engine: str = "local",
    fresh: bool = False,
    first_seed: int = 0,
    finished: bool = False,
    split: str = "",
) -> list[Path]:
    """Run studies as `recombine run` does: train or compute what is missing, assess, write the
    pages; the studies' folders. `changes`: settings by their path, as in
    {"recipe.train.steps": 500}. 0 seeds = the scale's own number, 0 workers = as many as suit.
    `finished`: run nothing, assess what is there. `split`: what is trained on, in words, as
    "unseen: bowl blue"."""
    from recombine.config import UsageError

    if scale not in SEEDS:
        raise UsageError(f"scale {scale!r}: not one of {', '.join(SEEDS)}")
    places = {"device": device, "out": str(out), "workers": workers, "first_seed": first_seed}
    command = command_of(studies, scale, seeds, _as_text(changes), split, **places)
    return run_command(command, engine, fresh, finished)


def command_of(
    studies: Sequence[str], scale: str, seeds: int, changes: tuple[str, ...], split: str, **how: Any
) -> "Command":
    """What to run: parts of a group in place of its name, and a split in words as a change of
    settings."""
    from recombine.pipeline.plan import Command
    from recombine.studies import expanded

    names = tuple(expanded(studies))
    if split:
        from recombine.scoring.splits import as_change

        changes = (*changes, as_change(split, names, scale, changes))
    return Command(names, scale, seeds or SEEDS[scale], changes, **how)


def run_command(
    command: "Command", engine: str = "local", fresh: bool = False, finished: bool = False
) -> list[Path]:
    """Carry a command out: what is missing is run, and every study that is complete is summarised
    and gets its page; the studies' folders. None of them where polars or matplotlib are not
    installed: then runs are left for another machine to assess. With `finished` nothing is run, and
    every study is summarised as far as it is there."""
    from recombine.config import UsageError
    from recombine.files import check_writable
    from recombine.pipeline.engines import find_engine
    from recombine.pipeline.plan import finished_part, make_plans
    from recombine.pipeline.run import run_studies
    from recombine.runtime import Runtime

    if finished and fresh:
        raise UsageError("--finished assesses what --fresh erases: use one of them")
    find_engine(engine)
    out = Path(command.out)
    runtime = Runtime.find(command.device, tensorboard=str(out / "tensorboard"))
    plans = make_plans(command)
    for plan in plans:
        if plan.fitted:
            runtime.log(f"{plan.study.name}: chosen for these pictures: {', '.join(plan.fitted)}")
    if finished:
        plans = [finished_part(plan, out, runtime.log) for plan in plans]
    check_writable(out)
    summarise, folders = _summariser(runtime), []
    for plan in run_studies(command, engine, fresh, runtime, plans):
        if runtime.rank == 0 and summarise:
            folders.append(
                summarise(plan, out, command.scale, command.seeds_of(plan), runtime.facts())
            )
    if folders:
        from recombine.report.site import write_site

        write_site(out)
    return folders


def _summariser(runtime: Any) -> Any:
    """How a study is summarised; None where the packages for it are not installed."""
    try:
        for package in ("polars", "msgspec", "matplotlib"):
            import_module(package)
    except ModuleNotFoundError as error:
        runtime.log(f"{error.name} is not installed: runs are made here and assessed where it is")
        return None
    from recombine.studies.summary import summarise

    return summarise


def _as_text(changes: Mapping[str, Any] | None) -> tuple[str, ...]:
    """{"a.b": [1, 2]} -> ("a.b=[1, 2]",), as --set takes them."""
    texts = {
        path: v if isinstance(v, str) else json.dumps(v) for path, v in (changes or {}).items()
    }
    return tuple(f"{path}={text}" for path, text in texts.items())


def evaluate(source: Any, data: Any = None, **how: Any) -> "Result":
    """Does a model compose? `source`: generated pictures with labels or prompts, a diffusers
    pipeline, a function; `data`: real pictures or a world. See `recombine.scoring.evaluate` for
    the other settings: template, probe, split, factors, n, seed, out, device."""
    from recombine.scoring.evaluate import evaluate as score

    return score(source, data, **how)


def results(directory: str | Path | None = None) -> "pl.DataFrame":
    """All rows of a results folder, or of one study's folder, in one data frame with a column
    `study`; without a folder those that come with the project."""
    import polars as pl

    from recombine.analysis.table import read_table
    from recombine.report.claims import study_folders

    frames = []
    for folder in study_folders(None if directory is None else Path(directory)):
        rows = read_table(folder / "rows.parquet").frame
        named = pl.lit(folder.name).alias("study")
        frames.append(rows.select(named, pl.exclude("study")))
    return pl.concat(frames, how="diagonal_relaxed")


CLAIM_COLUMNS: tuple[str, ...]
CLAIM_COLUMNS = ("study", "id", "verdict", "estimate", "low", "high", "n", "scale", "seeds")
CLAIM_COLUMNS += ("statement", "expected", "paper", "note")


def claims(directory: str | Path | None = None) -> "pl.DataFrame":
    """One row per claim: its verdict, estimate and interval; of the shipped results unless a folder
    is given."""
    import polars as pl

    from recombine.report.claims import claim_files
    from recombine.report.read import read_entries

    rows = []
    for path in claim_files(None if directory is None else Path(directory)):
        for claim in read_entries(path):
            low, high = claim.interval or (None, None)
            values = {name: getattr(claim, name, None) for name in CLAIM_COLUMNS}
            rows.append(values | {"low": low, "high": high})
    return pl.DataFrame(rows, schema_overrides={"estimate": pl.Float64}, infer_schema_length=None)
