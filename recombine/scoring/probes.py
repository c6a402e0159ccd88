"""The probe that reads a model's pictures: trained on the user's real ones, the world's own, or any
classifier of theirs. Whatever it is, it has to read real pictures first."""

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from PIL import Image

from recombine.config import UsageError, digest
from recombine.metrics.probes import Probe
from recombine.pipeline.executor import is_usable, obtain
from recombine.pipeline.job import folder_of
from recombine.runs.factor_probes import FactorProbeRun
from recombine.runs.probes import Oracle, probe_runs
from recombine.runtime import Runtime
from recombine.scoring.prompts import read_prompt
from recombine.scoring.samplers import failure, find_function
from recombine.store import Row
from recombine.worlds.datasets.dataset import Picture, resized
from recombine.worlds.factors import FactorSpace
from recombine.worlds.folder import Folder
from recombine.worlds.world import INVALID, World

Answers = Int[np.ndarray, "b k"]


@dataclass(frozen=True)
class PictureProbe:
    """A probe with a name and a digest: pictures of any size -> value indices, -1 where it reads
    none. `rows`: what its training measured. `trained`: whether real pictures have been used up,
    so that it is validated on the held-out ones alone."""

    name: str
    read: Callable[[Sequence[Picture]], Answers]
    digest: str
    rows: tuple[Row, ...] = ()
    trained: bool = False


def trained_probes(folder: Folder, steps: int, out: Path, runtime: Runtime) -> list[PictureProbe]:
    """The open-set probe and the same without rejection, trained on the folder's pictures."""
    task = FactorProbeRun(folder, steps)
    if not is_usable(task, out):
        runtime.log("a probe is trained on the real pictures; this takes a minute or two")
    probe, made = obtain(task, out, runtime), folder_of(task, out)
    rows = tuple(r for r in made.rows() if r.get("kind") == "left out")
    side = folder.image_shape[1:]
    return [
        PictureProbe(
            p.name, tensor_probe(p, side, runtime.device), f"{made.digest}-{p.name}", rows, True
        )
        for p in (probe, probe.closed_set())
    ]


def world_probes(world: World, steps: int, out: Path, runtime: Runtime) -> list[PictureProbe]:
    """A world's own probes: its oracle, where it has one, stands beside the trained ones."""
    tasks = probe_runs(world, steps)
    open_set, linear = (obtain(task, out, runtime) for task in tasks)
    names = {
        p.name: folder_of(t, out).digest for p, t in zip((open_set, linear), tasks, strict=True)
    }
    names |= {"cnn": names["open-set"], "oracle": digest(world)}
    oracle = [Oracle(world)] if world.readable else []
    probes: list[Probe] = [open_set, open_set.closed_set(), *oracle, linear]
    side, device = world.image_shape[1:], runtime.device
    return [
        PictureProbe(
            p.name,
            tensor_probe(p, side, device),
            f"{names[p.name]}-{p.name}",
        )
        for p in probes
    ]


def tensor_probe(
    probe: Probe, side: tuple[int, ...], device: torch.device
) -> Callable[[Sequence[Picture]], Answers]:
    """Pictures cropped and scaled to the size that the probe was trained on."""

    def read(pictures: Sequence[Picture]) -> Answers:
        same = [fit(p, side) for p in pictures]
        images = torch.from_numpy(np.stack(same)).permute(0, 3, 1, 2).float() / 255
        return probe(images.to(device)).cpu().numpy()

    return read


def fit(picture: Picture, side: tuple[int, ...]) -> Picture:
    if picture.shape[:2] == tuple(side):
        return picture
    if side[0] == side[1]:
        return resized(picture, side[0])
    return np.asarray(Image.fromarray(picture).resize((side[1], side[0])))


def function_probe(text: str | Callable[..., Any], space: FactorSpace) -> PictureProbe:
    """A classifier of the user's: a list of Pillow images -> a label each, as a dictionary of
    factors or as a text that names the values; or a dictionary of lists."""
    function = text if callable(text) else find_function(text, "--probe")
    name = text if isinstance(text, str) else getattr(text, "__name__", "function")

    def read(pictures: Sequence[Picture]) -> Answers:
        try:
            found = function([Image.fromarray(p) for p in pictures])
        except Exception as error:
            raise UsageError(f"--probe {name}: failed: {failure(error)}") from error
        return answers(found, len(pictures), space, name)

    try:
        code = inspect.getsource(function)
    except (OSError, TypeError):
        code = name
    return PictureProbe(name, read, hashlib.sha256(code.encode()).hexdigest()[:16])


def answers(found: Any, count: int, space: FactorSpace, name: str) -> Answers:
    """A classifier's answers as value indices."""
    if isinstance(found, Mapping):
        try:
            found = [dict(zip(found, r, strict=True)) for r in zip(*found.values(), strict=True)]
        except ValueError:
            raise UsageError(f"--probe {name}: its lists are not equally long") from None
    if found is None or len(found) != count:
        got = "nothing" if found is None else f"{len(found)} answers"
        raise UsageError(f"--probe {name}: gave {got} for {count} pictures")
    return np.array([_answer(one, space, name) for one in found], np.int64)


def _answer(one: Any, space: FactorSpace, name: str) -> tuple[int, ...]:
    if one is None:
        return (INVALID,) * len(space.factors)
    if isinstance(one, str):
        found = read_prompt(one, space)
        if isinstance(found, str):
            raise UsageError(f"--probe {name}: its answer {one[:60]!r} {found}")
        return found
    if not isinstance(one, Mapping):
        raise UsageError(f"--probe {name}: answers with {type(one).__name__}, not with labels")
    values = []
    for factor in space.factors:
        if factor.name not in one:
            raise UsageError(f"--probe {name}: its answer has no {factor.name}, only {list(one)}")
        known = [v.lower() for v in factor.values]
        value = str(one[factor.name]).strip().lower()
        values.append(known.index(value) if value in known else INVALID)
    return tuple(values)
