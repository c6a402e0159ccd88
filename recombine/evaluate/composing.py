"""Does a model compose? For anybody's model: whatever draws pictures on request is asked for every composition of a world, and
probes that were trained on the world's real pictures say what it drew.

    found = composing(draw, Shapes2D())     # draw(composition, count) -> pictures in [0, 1]
    print(found)                            # a table: level, composition, share, and what the judge itself is worth
    found.level(2)                          # the mean share over the compositions two factors away from all seen ones
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from recombine.config import UsageError
from recombine.runtime import Runtime
from recombine.evaluate.interpolation import between
from recombine.evaluate.probes import (
    Probe,
    ProbeConfig,
    Oracle,
    TrainedProbe,
    real_accuracy,
    refused,
    score,
    train_probe,
)
from recombine.worlds.world import World
from recombine.worlds.factors import Composition, Split, code
from recombine.worlds.folder import Folder

Draw = Callable[[Composition, int], Float[Tensor, "n c h w"]]
"""A composition and how many -> pictures in [0, 1] that should show it."""
TRUST = 0.95
"""The share of real pictures that a judge must read, whatever they show, to be believed."""


def probe_configs(world: World, steps: int) -> tuple[ProbeConfig, ProbeConfig]:
    """The two that are trained: one that may refuse, and the paper's on pixels."""
    return ProbeConfig.of(world, "open-set", steps, lr=4e-3), ProbeConfig.of(world, "linear", steps)


def train_small(config: ProbeConfig, root: Path, runtime: Runtime) -> TrainedProbe:
    """Too small for compilation to pay."""
    return train_probe(config, root, replace(runtime, compile="", graphs=False))


def judges(world: World, steps: int, root: Path, runtime: Runtime) -> list[Probe]:
    """A small CNN that may refuse, the same made to choose, the world's own reader where there is one, and the paper's linear
    probe on pixels. The first judges. Trained, or from their run folders."""
    open_set, linear = (train_small(config, root, runtime) for config in probe_configs(world, steps))
    return [open_set, open_set.forced(), *([Oracle(world)] if world.readable else []), linear]


@dataclass(frozen=True)
class Composing:
    """Rows of every probe and composition, on the model's pictures (`accuracy`), on real ones (`probe`) and on corrupted ones
    (`refused`). `judge` is the probe that counts."""

    world: World
    rows: list[dict[str, Any]]
    judge: str = "open-set"

    def share(self, composition: Composition, kind: str = "accuracy", probe: str = "") -> float | None:
        """Of the pictures that should show a composition, those that do; None where there are none."""
        wanted = (kind, code(composition), probe or self.judge)
        found = [r["joint"] for r in self.rows if (r["kind"], r.get("composition"), r["probe"]) == wanted]
        return found[0] if found else None

    def level(self, number: int, probe: str = "") -> float:
        """The mean over the compositions of a level: 0 = seen, otherwise how many factors away from any seen one."""
        mine = [r for r in self.rows if r["kind"] == "accuracy" and r["probe"] == (probe or self.judge)]
        if not mine:
            raise UsageError(f"no probe {probe}; there are {', '.join(dict.fromkeys(r['probe'] for r in self.rows))}")
        if not (found := [r["joint"] for r in mine if r["level"] == number]):
            raise UsageError(f"no composition is of level {number}; there are {sorted({r['level'] for r in mine})}")
        return fmean(found)

    @property
    def doubt(self) -> str:
        """Why the judge is not to be believed, in one line; empty if it is."""
        real = {c: self.share(c, "probe") for c in self.world.present}
        worst, name = min(real, key=real.get), self.world.space.describe
        if real[worst] < TRUST:
            return f"the judge reads {real[worst]:.0%} of real {name(worst)} pictures: train it longer"
        if unknown := [c for c in self.world.space.compositions if c not in real]:
            return f"there are no real pictures of {name(unknown[0])}: nobody knows how well the judge reads such"
        return ""

    def __str__(self) -> str:
        mine = [r for r in self.rows if r["kind"] == "accuracy" and r["probe"] == self.judge]
        named = {code(c): c for c in self.world.space.compositions}
        width, lines = max(len(self.world.space.describe(c)) for c in named.values()), []
        for number in sorted({r["level"] for r in mine}):
            lines.append(f"{'seen' if number == 0 else f'level {number}':<{width + 2}}{self.level(number):7.1%}")
            for r in (r for r in mine if r["level"] == number):
                c, interval = named[r["composition"]], f"{r['low']:.1%} to {r['high']:.1%}"
                real = self.share(c, "probe")
                known = "no real pictures" if real is None else f"real pictures {real:.1%}"
                lines.append(f"  {self.world.space.describe(c):<{width}}{r['joint']:7.1%}   {interval:<17} {known}")
        return "\n".join(lines + ([f"doubtful: {self.doubt}"] if self.doubt else []))


def drawn(folder: Folder, world: World) -> Draw:
    """Pictures that a model has drawn already, in a folder with a table as a world's own: the first ones of each composition.
    Factors and values are known by their names."""
    shelf, mine = folder.shelf, {f.name: k for k, f in enumerate(folder.space.factors)}
    if lacking := [f.name for f in world.space.factors if f.name not in mine]:
        raise UsageError(f"{folder.path}: its table has no column {lacking[0]}")

    def draw(composition: Composition, count: int) -> Tensor:
        right = torch.ones(len(shelf.factors), dtype=torch.bool)
        for factor, value in zip(world.space.factors, composition, strict=True):
            known, k = folder.space.factors[mine[factor.name]].values, mine[factor.name]
            right &= shelf.factors[:, k] == (known.index(factor.values[value]) if factor.values[value] in known else -1)
        if (there := int(right.sum())) < count:
            asked = world.space.describe(composition)
            hint = "take a smaller count" if there else f"its values are {folder.space.words}"
            raise UsageError(f"{folder.path}: has {there} pictures of {asked}, not {count}; {hint}")
        return shelf.images[right][:count].float() / 255

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
    """Ask `draw` for `count` pictures of every composition and have them judged. `split` says what the model was trained on;
    by default all that is at most one factor away from the first composition (in a folder that lacks pictures of some: all it
    has). The probes train for `steps` on the world's
    pictures, and are kept under `out`."""
    runtime, split = runtime or Runtime.find(), split or world.usual
    if not isinstance(split, Split):
        raise UsageError(f"split: {type(split).__name__} is no Split; write Split(((0, 0), (0, 1))) for what was seen")
    if count < 1 or steps < 1:
        raise UsageError(f"count={count}, steps={steps}: both must be positive")
    if wrong := [c for c in split.seen if c not in world.space.compositions]:
        raise UsageError(f"split: {list(wrong[0])} is no composition of factors with {world.space.sizes} values")
    images = {c: _pictures(draw(c, count), world, count) for c in world.space.compositions}
    probes, rows = judges(world, steps, Path(out), runtime), []
    for c, drawn in images.items():
        about = {"kind": "accuracy", "composition": code(c), "level": split.level(c)}
        rows += [about | score(probe, drawn.to(runtime.device), c, world.space) for probe in probes]
    return Composing(world, rows + worth(probes, world, split, count, runtime.device))


def worth(probes: list[Probe], world: World, split: Split, count: int, device: Any) -> list[dict[str, Any]]:
    """What probes are worth: on `count` real pictures of each composition, on as many corrupted ones in all, and, where the world
    can draw them, on some that lie between two compositions."""
    rows = [row for p in probes for row in real_accuracy(p, world, split, count, device)]
    rows += [refused(p, world, count, device) for p in probes]
    some = max(4, count // 8)
    return rows + [row for p in probes if world.graded for row in between(p, world, split, some, device)]


def _pictures(images: Any, world: World, count: int) -> Tensor:
    """What a stranger's model drew, as it must be; UsageError says what is not."""
    wanted = (count, *world.image_shape)
    images = torch.as_tensor(images) if isinstance(images, np.ndarray) else images
    if not isinstance(images, Tensor) or tuple(images.shape) != wanted:
        got = f"shape {tuple(images.shape)}" if isinstance(images, Tensor) else type(images).__name__
        raise UsageError(f"draw must give a tensor or an array of shape {wanted}, not {got}")
    images = images.detach().float()
    low, high = float(images.min()), float(images.max())
    if not -0.25 <= low <= high <= 1.25:  # a little outside is rounding; NaN compares with nothing
        raise UsageError(f"draw must give pictures in [0, 1]; these go from {low:.3g} to {high:.3g}")
    return images.clamp(0, 1)
