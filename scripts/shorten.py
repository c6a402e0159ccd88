"""Runs of models that were cut off, kept as the runs of fewer updates that they contain. Where the
rate is constant, the first updates of a longer run are those of a shorter one, and so are its
checkpoints. `python scripts/shorten.py out 24000 elsewhere` writes elsewhere/runs: of every model
in out/runs that was to have more updates and has its checkpoint at 24,000, the run of 24,000, without
weights; of all other finished tasks, what they are. `recombine run ... --finished --out elsewhere`
assesses them."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path

from recombine.config import from_json
from recombine.files import Row, parse_rows, read_json
from recombine.pipeline.executor import parent_weights
from recombine.pipeline.job import described, folder_of
from recombine.runs.models import ModelRun
from recombine.store import RunFolder

MADE_BY = ("commit", "device", "torch", "python", "processes")


def shortened(task: ModelRun, updates: int) -> ModelRun:
    """The same model, trained with fewer updates and measured up to the last of them. SystemExit
    where it would have been another training."""
    recipe, evaluation = task.recipe, task.recipe.evaluation
    if recipe.train.decay != "none":
        raise SystemExit(f"the rate falls ({recipe.train.decay}): a shorter run is another one")
    if updates not in evaluation.at(recipe.train.steps):
        raise SystemExit(f"there is no checkpoint at {updates:,} updates")
    kept = tuple(step for step in evaluation.at(recipe.train.steps) if step <= updates)
    return replace(
        task,
        recipe=replace(
            recipe,
            train=replace(recipe.train, steps=updates),
            evaluation=replace(evaluation, checkpoints=kept),
        ),
    )


def rows_up_to(folder: RunFolder, updates: int) -> list[Row]:
    """What the run logged and measured by then; nothing where it did not go further, for then its last
    checkpoint may be incomplete."""
    path = folder.path / "rows.jsonl"
    data = path.read_bytes() if path.exists() else b""
    rows = folder.rows() if folder.done else parse_rows(data[: data.rfind(b"\n") + 1], path)
    later = any(row["step"] > updates for row in rows)
    return [row for row in rows if row["step"] <= updates] if later else []


def shorten(source: Path, updates: int, goal: Path) -> list[str]:
    """The digests of the runs that were made."""
    made = []
    for path in sorted((source / "runs").iterdir()):
        folder = RunFolder(source, path.name)
        task = from_json(read_json(path / "config.json")["config"])
        if not isinstance(task, ModelRun) or task.recipe.train.steps <= updates:
            if folder.done:
                shutil.copytree(path, goal / "runs" / path.name)
            continue
        if rows := rows_up_to(folder, updates):
            made.append(_write(shortened(task, updates), rows, folder, source, goal))
    return made


def _write(task: ModelRun, rows: list[Row], longer: RunFolder, source: Path, goal: Path) -> str:
    """Where the longer run is not finished, its parents, made in the same folder, say on what
    machine and from which commit it was."""
    folder = folder_of(task, goal)
    facts = longer.facts() or folder_of(task.parents()[0], source).facts()
    folder.begin(described(task))
    folder.write_rows(rows)
    made = {name: facts[name] for name in MADE_BY}
    if not longer.done:
        made |= longer.spent()
    folder.finish(made | {"part_of": longer.digest, "parents": parent_weights(task, source)})
    return folder.digest


if __name__ == "__main__":
    print(*shorten(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])), sep="\n")
