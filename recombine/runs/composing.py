"""Does a model compose? For anybody's model: whatever draws pictures on request is prompted for
every composition of a world, and probes that were trained on the world's real pictures read what it
drew.

    result = composing(draw, Shapes2D())    # draw(composition, count) -> pictures in [0, 1]
    print(result)                           # a table: level, composition, accuracy, real pictures
    result.level(2)                         # mean accuracy two factors away from all seen ones
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from recombine.config import UsageError
from recombine.metrics.intervals import TRUST
from recombine.metrics.probes import Oracle, Probe, score
from recombine.pipeline.executor import obtain
from recombine.runs.probes import check_probes, probe_runs
from recombine.runtime import Runtime
from recombine.store import Row
from recombine.worlds.factors import Composition, Split, code
from recombine.worlds.folder import Folder
from recombine.worlds.world import World

Draw = Callable[[Composition, int], Float[Tensor, "n c h w"]]
"""A composition and how many -> pictures in [0, 1] that should show it."""


def obtain_probes(world: World, steps: int, out: Path, runtime: Runtime) -> list[Probe]:
    """The open-set probe, which is the primary one, the same network as a closed-set CNN probe, the
    world's oracle where it has one, and the linear probe. Trained under `out`, or found there."""
    open_set, linear = (obtain(run, out, runtime) for run in probe_runs(world, steps))
    return [open_set, open_set.closed_set(), *([Oracle(world)] if world.readable else []), linear]


@dataclass(frozen=True)
class Composing:
    """Rows of every probe and composition: on the model's pictures (`accuracy`), on real ones
    (`probe`) and on corrupted ones (`refused`). `primary` is the probe that counts."""

    world: World
    rows: list[Row]
    primary: str = "open-set"

    def accuracy(
        self, composition: Composition, kind: str = "accuracy", probe: str = ""
    ) -> float | None:
        """The share of pictures that show the composition they should; None where there are
        none."""
        wanted = (kind, code(composition), probe or self.primary)
        for r in self.rows:
            if (r["kind"], r.get("composition"), r["probe"]) == wanted:
                return r["joint"]
        return None

    def level(self, number: int, probe: str = "") -> float:
        """The mean over the compositions of a level: 0 = seen, otherwise how many factors away from
        any seen one."""
        mine = self._read_by(probe or self.primary)
        if not mine:
            names = ", ".join(dict.fromkeys(r["probe"] for r in self.rows))
            raise UsageError(f"no probe {probe}; there are {names}")
        values = [r["joint"] for r in mine if r["level"] == number]
        if not values:
            levels = sorted({r["level"] for r in mine})
            raise UsageError(f"no composition is of level {number}; there are {levels}")
        return fmean(values)

    def _read_by(self, probe: str) -> list[Row]:
        return [r for r in self.rows if r["kind"] == "accuracy" and r["probe"] == probe]

    @property
    def doubt(self) -> str:
        """Why the primary probe is not to be believed, in one line; empty if it is."""
        known = {c: self.accuracy(c, "probe") for c in self.world.present}
        real = {c: share for c, share in known.items() if share is not None}
        if not real:
            return "no real pictures were held out: it is unknown how well the primary probe reads"
        worst, name = min(real, key=real.get), self.world.space.describe
        if real[worst] < TRUST:
            share = f"{real[worst]:.0%} of real {name(worst)} pictures"
            return f"the primary probe reads {share}: train it longer"
        if unknown := [c for c in self.world.space.compositions if c not in real]:
            missing = f"there are no real pictures of {name(unknown[0])}"
            return f"{missing}: it is unknown how well the primary probe reads them"
        return ""

    def __str__(self) -> str:
        space, mine, lines = self.world.space, self._read_by(self.primary), []
        width = max(len(space.describe(c)) for c in space.compositions)
        for number in sorted({r["level"] for r in mine}):
            title = "seen" if number == 0 else f"level {number}"
            lines.append(f"{title:<{width + 2}}{self.level(number):7.1%}")
            lines += [self._line(r, width) for r in mine if r["level"] == number]
        return "\n".join(lines + ([f"doubtful: {self.doubt}"] if self.doubt else []))

    def _line(self, row: Row, width: int) -> str:
        space = self.world.space
        composition = next(c for c in space.compositions if code(c) == row["composition"])
        interval = f"{row['low']:.1%} to {row['high']:.1%}"
        real = self.accuracy(composition, "probe")
        known = "no real pictures" if real is None else f"real pictures {real:.1%}"
        name = f"{space.describe(composition):<{width}}"
        return f"  {name}{row['joint']:7.1%}   {interval:<17} {known}"


def drawn(folder: Folder, world: World) -> Draw:
    """Pictures that a model has drawn already, in a folder with a table as a world's own: the first
    ones of each composition. Factors and values are known by their names."""
    shelf, mine = folder.shelf, {f.name: k for k, f in enumerate(folder.space.factors)}
    if lacking := [f.name for f in world.space.factors if f.name not in mine]:
        raise UsageError(f"{folder.path}: its table has no column {lacking[0]}")

    def draw(composition: Composition, count: int) -> Tensor:
        matches = torch.ones(len(shelf.factors), dtype=torch.bool)
        for factor, value in zip(world.space.factors, composition, strict=True):
            k, name = mine[factor.name], factor.values[value]
            known = folder.space.factors[k].values
            matches &= shelf.factors[:, k] == (known.index(name) if name in known else -1)
        if (there := int(matches.sum())) < count:
            prompted = world.space.describe(composition)
            hint = "take a smaller count" if there else f"its values are {folder.space.words}"
            lack = f"has {there} pictures of {prompted}, not {count}"
            raise UsageError(f"{folder.path}: {lack}; {hint}")
        return shelf.images(matches.nonzero()[:count, 0])

    return draw


def composing(
    draw: Draw,
    world: World,
    split: Split | None = None,
    count: int = 256,
    out: Path | str = "out",
    steps: int = 1000,
    runtime: Runtime | None = None,
) -> Composing:
    """Prompt `draw` for `count` pictures of every composition and score them. `split` says what the
    model was trained on; by default all that is at most one factor away from the first composition
    (in a folder that lacks pictures of some: all it has). The probes train for `steps` on the
    world's pictures, and are kept under `out`."""
    runtime, split = runtime or Runtime.find(), split or world.usual
    _check(split, world, count, steps)
    images = {c: _pictures(draw(c, count), world, count) for c in world.space.compositions}
    probes, rows = obtain_probes(world, steps, Path(out), runtime), []
    for c, some in images.items():
        about = {"kind": "accuracy", "composition": code(c), "level": split.level(c)}
        on_device = some.to(runtime.device)
        rows += [about | score(probe, on_device, c, world.space) for probe in probes]
    return Composing(world, rows + check_probes(probes, world, split, count, runtime.device))


def _check(split: Any, world: World, count: int, steps: int) -> None:
    if not isinstance(split, Split):
        hint = "write Split(((0, 0), (0, 1))) for what was seen"
        raise UsageError(f"split: {type(split).__name__} is no Split; {hint}")
    if count < 1 or steps < 1:
        raise UsageError(f"count={count}, steps={steps}: both must be positive")
    if wrong := [c for c in split.seen if not world.space.has(c)]:
        sizes = world.space.sizes
        raise UsageError(
            f"split: {list(wrong[0])} is no composition of factors with {sizes} values"
        )


def _pictures(images: Any, world: World, count: int) -> Tensor:
    """What a stranger's model drew, as a checked tensor; UsageError says what is wrong with it."""
    wanted = (count, *world.image_shape)
    images = torch.as_tensor(images) if isinstance(images, np.ndarray) else images
    if not isinstance(images, Tensor) or tuple(images.shape) != wanted:
        is_tensor = isinstance(images, Tensor)
        got = f"shape {tuple(images.shape)}" if is_tensor else type(images).__name__
        raise UsageError(f"draw must give a tensor or an array of shape {wanted}, not {got}")
    images = images.detach().float()
    low, high = float(images.min()), float(images.max())
    # a little outside is rounding; NaN compares with nothing
    if not -0.25 <= low <= high <= 1.25:
        range_given = f"these go from {low:.3g} to {high:.3g}"
        raise UsageError(f"draw must give pictures in [0, 1]; {range_given}")
    return images.clamp(0, 1)
