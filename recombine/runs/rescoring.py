"""Kept samples scored again, by any probe, without the weights that made them."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

from recombine.config import UsageError, from_json
from recombine.metrics.kept_samples import read_kept
from recombine.metrics.probes import Probe, accuracy_rows
from recombine.pipeline.job import Task
from recombine.runs.models import ModelRun
from recombine.runs.recipe import Recipe
from recombine.store import Row, read_json


def kept_runs(out: Path) -> list[Path]:
    """The run folders under `out` that hold kept samples."""
    return sorted({path.parents[1] for path in out.glob("runs/*/samples/step_*.npz")})


def recipe_of(folder: Path) -> Recipe:
    """The recipe of a model's run folder. UsageError where it is another kind of run."""
    found = read_json(folder / "config.json")
    task = from_json(found.get("config") if isinstance(found, dict) else None, Task)
    if not isinstance(task, ModelRun):
        raise UsageError(f"{folder} is not the run of a model")
    return task.recipe


@torch.no_grad()
def rescore(folders: Iterable[Path], probes: Sequence[Probe]) -> list[Row]:
    """Rows of kind accuracy, as a run writes them, of all kept samples in these run folders by
    these probes; `run` and `seed` say whose they are."""
    rows: list[Row] = []
    for folder in folders:
        recipe = recipe_of(folder)
        whose = {"run": folder.name, "seed": recipe.seed}
        for path in sorted((folder / "samples").glob("step_*.npz")):
            about = {"kind": "accuracy", "step": int(path.stem.removeprefix("step_")), **whose}
            images, space = read_kept(path), recipe.world.space
            if len(images) != len(space.compositions):
                raise UsageError(f"{path}: holds samples of {len(images)} compositions")
            rows += [about | row for row in accuracy_rows(probes, images, recipe.split, space)]
    return rows
