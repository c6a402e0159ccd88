"""Kept samples scored again, by any probe, without the weights that made them."""

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor

from recombine.config import UsageError, from_json, nearest
from recombine.metrics.kept_samples import read_kept
from recombine.metrics.probes import Oracle, Probe, accuracy_rows
from recombine.pipeline.executor import obtain
from recombine.pipeline.job import Task
from recombine.runs.models import ModelRun
from recombine.runs.probes import EPOCHS, PaperProbeRun, probe_runs
from recombine.runs.recipe import Recipe
from recombine.runtime import Runtime
from recombine.store import Row, read_json

NAMES = ("paper", "linear", "cnn", "open-set", "oracle")
"""The probes that a world has by itself."""


@dataclass(frozen=True)
class OwnProbe:
    """A function of one's own as a probe: pictures in [0, 1] -> a value index per factor."""

    name: str
    function: Callable[[Tensor], Tensor]

    @staticmethod
    def find(name: str) -> "OwnProbe":
        """From `module:function`, the current folder included."""
        module, _, function = name.partition(":")
        sys.path.insert(0, "")
        try:
            return OwnProbe(name, getattr(importlib.import_module(module), function))
        except (ImportError, AttributeError) as error:
            raise UsageError(f"--probe {name}: {error}") from None
        finally:
            sys.path.remove("")

    def __call__(self, images: Float[Tensor, "b c h w"]) -> Int[Tensor, "b k"]:
        answers = torch.as_tensor(self.function(images))
        if answers.ndim != 2 or len(answers) != len(images):
            got = "x".join(map(str, answers.shape))
            raise UsageError(
                f"--probe {self.name}: gave {got} for {len(images)} pictures; one row each is "
                "needed, with a value index per factor"
            )
        return answers.long()


def find_probes(
    name: str, recipe: Recipe, seeds: int, out: Path, runtime: Runtime
) -> Iterator[Probe]:
    """The probes of this name for a recipe's samples, `seeds` of them where they are trained;
    trained now where they are not under `out`."""
    world, steps = recipe.probe_world, recipe.evaluation.probe_steps
    if ":" in name:
        yield OwnProbe.find(name)
    elif name == "oracle":
        yield Oracle(world)
    elif name == "paper":
        for seed in range(seeds):
            yield obtain(PaperProbeRun(world, seed, min(EPOCHS, steps)), out, runtime)
    elif name in NAMES:
        open_set, linear = probe_runs(world, steps)
        probe = obtain(linear if name == "linear" else open_set, out, runtime)
        yield probe.closed_set() if name == "cnn" else probe
    else:
        raise UsageError(
            f"--probe {name}: neither {', '.join(NAMES)} nor module:function{nearest(name, NAMES)}"
        )


def rescore_all(out: Path, names: Sequence[str], seeds: int, runtime: Runtime) -> list[Row]:
    """All kept samples under `out` by all these probes."""
    if not (folders := kept_runs(out)):
        raise UsageError(f"{out}: no run there kept samples; set evaluation.keep before training")
    rows: list[Row] = []
    for folder in folders:
        recipe = recipe_of(folder)
        probes = [p for n in names for p in find_probes(n, recipe, seeds, out, runtime)]
        rows += rescore([folder], probes)
    return rows


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
