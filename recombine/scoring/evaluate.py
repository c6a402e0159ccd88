"""Does a model compose? Real pictures train and validate a probe; the probe reads the model's
pictures; rows say how many show what they should."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from recombine.config import UsageError
from recombine.files import check_writable
from recombine.runtime import Runtime
from recombine.scoring import score
from recombine.scoring.probes import PictureProbe, function_probe, trained_probes, world_probes
from recombine.scoring.reference import Reference, open_reference
from recombine.scoring.result import FACTS, Result, read_result, same_place
from recombine.scoring.samplers import sample_into
from recombine.scoring.sheet import Collector
from recombine.scoring.source import Source, check_source, find_source, wanted
from recombine.store import Row
from recombine.worlds.datasets.class_folders import named_levels
from recombine.worlds.datasets.dataset import NAME, Dataset
from recombine.worlds.datasets.open_dataset import open_dataset
from recombine.worlds.factors import code
from recombine.worlds.folder import Folder

STEPS = 200
"""Updates of each network of a probe."""
OUT = Path("out")
"""Where files go unless a folder is given; probes lie here, so that every evaluation finds them."""


def evaluate(
    source: Any,
    data: Any = None,
    *,
    template: str = "",
    probe: Any = "",
    split: Any = "",
    factors: Sequence[str] = (),
    n: int = 32,
    seed: int = 0,
    out: str | Path | None = None,
    probe_steps: int = STEPS,
    device: str = "auto",
    runtime: Runtime | None = None,
    **options: Any,
) -> Result:
    """Score a model. `source`: a folder or file of generated pictures with labels or prompts, a
    diffusers pipeline (folder or id, with `template`), `module:function` or a function. `data`:
    real pictures in any layout, or a world. `probe`: nothing (trained on the real pictures), a
    function, `module:function`, or `zero-shot:ID` or `classifier:ID` of transformers. `split`: a
    column, "seen: ...", "unseen: ..." or nothing (what the data lacks). `n` pictures of each
    composition are drawn where the source draws. Files go to `out`; `options` to a pipeline."""
    runtime = runtime or Runtime.find(device)
    if n < 1 or probe_steps < 1:
        raise UsageError(f"n={n}, probe_steps={probe_steps}: both must be positive")
    found = find_source(source, template, str(runtime.device), options)
    reference = open_reference(data, factors, split, found.dataset)
    folder = Path(out) if out is not None else _usual_folder(found, reference)
    sampler = check_source(found, template, reference.space, seed)
    dataset = found.dataset
    if dataset is not None:
        dataset = named_levels(dataset, reference.space.names)
        index = wanted(dataset, reference.space, template)
    if any(same_place(str(folder), str(p)) for p in (source, reference.where) if p):
        raise UsageError(f"--out {folder}: holds the pictures; choose another folder")
    check_writable(folder)
    kept = OUT if folder.resolve().is_relative_to(OUT.resolve()) else folder
    probes = find_probes(probe, reference, probe_steps, template, kept, runtime)
    checks = [row for i, r in enumerate(probes) for row in validated(r, reference, i == 0)]
    if dataset is None:
        where = folder / "pictures"
        every = reference.space.compositions
        sample_into(
            where,
            sampler,
            found.name,
            reference.space,
            every,
            n,
            seed,
            runtime.log,
            digest=found.digest(),
        )
        dataset = open_dataset(where)
        index = wanted(dataset, reference.space, "")
    result = scored(dataset, index, probes, reference, checks, found)
    result.write(folder, runtime)
    return result


def _usual_folder(source: Source, reference: Reference) -> Path:
    """out/evaluate/NAME. UsageError where it holds the evaluation of other pictures (two models may
    keep theirs in folders of the same name), or of the same by other data or another split."""
    folder = OUT / "evaluate" / _slug(source.name)
    if not (folder / FACTS).is_file():
        return folder
    before = read_result(folder).facts
    of, data = str(before.get("source", "")), str(before.get("data", ""))
    if source.dataset is not None and not same_place(of, source.dataset.where):
        raise UsageError(
            f"{folder}: holds the evaluation of {of}; give --out for that of {source.dataset.where}"
        )
    if data != reference.where and not same_place(data, reference.where):
        raise UsageError(
            f"{folder}: holds the evaluation by {data}; give --out for that by {reference.where}"
        )
    if before.get("seen") != (seen := reference.seen):
        raise UsageError(
            f"{folder}: holds the evaluation with another split; give --out for that with "
            f"{len(seen)} seen combinations"
        )
    return folder


def _slug(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in name).strip("-.") or "model"


def find_probes(
    probe: Any, reference: Reference, steps: int, template: str, out: Path, runtime: Runtime
) -> list[PictureProbe]:
    """The probes, the primary one first."""
    if callable(probe) or (probe and ":" in str(probe)):
        head = str(probe).partition(":")[0] if isinstance(probe, str) else ""
        if head in ("zero-shot", "classifier"):
            from recombine.scoring.hub_probes import hub_probe

            return [hub_probe(str(probe), reference.space, template)]
        return [function_probe(probe, reference.space)]
    if reference.world is None:
        raise UsageError("--data: real pictures are needed to train a probe; or give --probe")
    if isinstance(reference.world, Folder):
        made = trained_probes(reference.world, steps, out, runtime)
    else:
        made = world_probes(reference.world, steps, out, runtime)
    names = [r.name for r in made]
    if probe and str(probe) not in names:
        known = ", ".join((*names, "module:function", "zero-shot:ID", "classifier:ID"))
        raise UsageError(f"--probe {probe}: not one of {known}")
    return sorted(made, key=lambda r: r.name != probe) if probe else made


def validated(probe: PictureProbe, reference: Reference, primary: bool) -> list[Row]:
    if reference.world is None:
        return []
    real = reference.real(probe.trained)
    rows = score.validate(probe, real, reference.space, reference.split, reference.where, primary)
    return rows + [row | {"probe": probe.name} for row in probe.rows]


def scored(
    dataset: Dataset,
    index: np.ndarray,
    probes: Sequence[PictureProbe],
    reference: Reference,
    checks: list[Row],
    source: Source,
) -> Result:
    """Every probe over all pictures, which stream from the disk once for each."""
    space, split, rows, answers = reference.space, reference.split, list(checks), None
    sheet = Collector(space, index)
    for i, probe in enumerate(probes):
        stream = score.stream(dataset.pictures(), index)
        read, prompted, digests = score.read_all(probe, sheet.watch(stream) if i == 0 else stream)
        every = space.compositions
        rows += score.accuracy_table("accuracy", probe.name, read, prompted, space, split, every)
        rows += score.confusion(probe.name, read, prompted, space)
        if i == 0:
            answers, digest = (
                read,
                order_free(digests, [space.describe(tuple(c)) for c in index.tolist()]),
            )
    sheet.answers = answers
    names = dataset.table[NAME]
    pictures = pl.DataFrame(
        {
            "file": names,
            "composition": [code(tuple(c)) for c in index.tolist()],
            **{f.name: [f.values[i] for i in index[:, k]] for k, f in enumerate(space.factors)},
            **{
                f"read {f.name}": [f.values[i] if i >= 0 else None for i in answers[:, k]]
                for k, f in enumerate(space.factors)
            },
        }
    )
    return Result.of(rows, pictures, sheet, probes, reference, source.name, dataset, digest)


def order_free(digests: Sequence[bytes], words: Sequence[str]) -> str:
    """The digest of a set of pictures with their labels: equal whatever files they lie in."""
    each = sorted(d + w.encode() for d, w in zip(digests, words, strict=True))
    return hashlib.sha256(b"".join(each)).hexdigest()[:16]
