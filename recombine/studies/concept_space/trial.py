"""One course carried out: trained like any recipe, and at every checkpoint placed in concept space. At some checkpoints the
model is also asked for the unseen composition in other ways than plainly."""

from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shutil import rmtree
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float
from safetensors.torch import load_file, save
from torch import Tensor

from recombine.evaluate.concepts import additive, coordinates, direction, multiplicative, overprompt, patched, steered
from recombine.evaluate.probes import Oracle, TrainedProbe, score
from recombine.rng import seeded
from recombine.store import RunFolder, write_atomic
from recombine.studies.base import Row
from recombine.studies.concept_space.settings import Course
from recombine.studies.lab import Lab
from recombine.studies.runs import Run
from recombine.studies.sheets import write_sheet
from recombine.train.fit import swapped
from recombine.train.loop import train
from recombine.worlds.factors import Composition, Condition, code

SHEETS = 8
"""How many checkpoints leave a sheet of samples."""
MASKED: Composition = (0, 1)
"""Red and small: the composition whose colour is hidden from some captions."""
Way = Literal["plain", "over", "steer", "patch", "patch back"]


class Ask(NamedTuple):
    """One way of asking for a composition, for a whole group of pictures; `shift` moves the embedded condition."""

    composition: Composition
    condition: Condition
    way: Way = "plain"
    strength: float = 0.0
    shift: Float[Tensor, "1 d"] | None = None


@dataclass
class Trial:
    """`probe` is a classifier trained on real pictures of this course's world."""

    course: Course
    lab: Lab
    probe: TrainedProbe

    @cached_property
    def run(self) -> Run:
        return Run(self.course.recipe, self.lab)

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.lab.out, self.course)

    @cached_property
    def pool(self) -> tuple[Tensor, Condition]:
        """The training set, with some captions silent about colour. A picture keeps its caption for the whole run, and what
        is hidden at one share is hidden at every larger one."""
        latents, condition = self.run.pool
        here = (condition.index[:, :2] == torch.tensor(MASKED, device=latents.device)).all(1)
        rng = seeded(self.course.recipe.seed, "masked", device=latents.device)
        draw = torch.rand(len(latents), generator=rng, device=rng.device)
        first = draw.masked_fill(~here, 2.0).argsort()[: round(self.course.masked * int(here.sum()))]
        keep = torch.ones_like(condition.present)
        keep[first, 0] = False
        return latents, condition.keep(keep)

    def batch(self, step: int) -> tuple[Tensor, Condition, Any]:
        r, (latents, condition) = self.course.recipe, self.pool
        rng = seeded(r.seed, "batch", step, device=latents.device)
        pick = torch.randint(len(latents), (r.train.batch,), generator=rng, device=rng.device)
        x, told = latents[pick], r.conditioning.drop(condition.rows(pick), r.world.space, rng)
        return x, told, r.objective.draw(x.shape, rng)

    def train(self) -> None:
        r = self.course.recipe
        plan = (self.batch, r.train, self.folder, self.run.runtime, self.observe, self.checkpoints)
        train(self.run.net, r.objective.loss, *plan)
        rmtree(self.kept(0).parent, ignore_errors=True)

    @cached_property
    def checkpoints(self) -> tuple[int, ...]:
        r = self.course.recipe
        return r.evaluation.at(r.train.steps)

    @property
    def kind(self) -> str:
        """Of its rows: compositions of three factors are not those of two."""
        return "accuracy3" if self.course.world.background_signal else "accuracy"

    @cached_property
    def unseen(self) -> Composition:
        """The composition furthest from all that was seen: every factor new."""
        return max(self.course.world.space.compositions, key=self.course.recipe.split.level)

    def observe(self, step: int) -> list[Row]:
        last, asking = step == self.course.recipe.train.steps, self.course.asking
        asks = self.plain() + (self.otherwise() if asking and self.checkpoints.index(step) % asking.every == 0 else [])
        images = self.draw(asks)
        rows = [row for ask, some in zip(asks, images, strict=True) for row in self.rows(step, ask, some)]
        three = self.course.world.background_signal
        if not three and step in every_so_often(self.checkpoints, SHEETS):
            write_sheet(self.folder.path / "samples" / f"step_{step:08d}.png", images[: len(self.plain()), :8])
        if asking and step in every_so_often(self.checkpoints[:-1], asking.patches):
            self.keep(step)
        return rows + (self.patches(step) if last and asking else [])

    def told(self, composition: Composition) -> Condition:
        count, device = self.course.recipe.evaluation.samples, self.run.runtime.device
        return self.course.world.condition(composition, count, device)

    def plain(self) -> list[Ask]:
        return [Ask(c, self.told(c)) for c in self.course.world.space.compositions]

    def otherwise(self) -> list[Ask]:
        """For the unseen composition: more than its colour, and its embedding pushed away from the other colour."""
        asking, unseen = self.course.asking, self.unseen
        asked, away = self.told(unseen), self.told((1 - unseen[0], *unseen[1:]))
        line = direction(self.run.net, asked, away)[:1]
        over = [Ask(unseen, overprompt(asked, away, s), "over", s) for s in asking.over]
        return over + [Ask(unseen, asked, "steer", s, s * line) for s in asking.steer]

    @torch.no_grad()
    def draw(self, asks: list[Ask]) -> Float[Tensor, "n b c h w"]:
        """Pictures for all ways of asking in one batch. Noise is named by seed and composition: the same for every way and at
        every checkpoint."""
        r, device, count = self.course.recipe, self.run.runtime.device, len(asks[0].condition.index)
        streams = [seeded(r.seed, "sample", code(a.composition), device=device) for a in asks]
        noise = torch.cat([torch.randn(count, *r.shape, generator=s, device=device) for s in streams])
        condition = Condition(*(torch.cat(t) for t in zip(*(a.condition for a in asks), strict=True)))
        shifts = [a.shift for a in asks if a.shift is not None]
        moved = nullcontext()
        if shifts:
            rows = [torch.zeros_like(shifts[0]) if a.shift is None else a.shift for a in asks]
            moved = steered(self.run.net, torch.cat(rows).repeat_interleave(count, 0))
        with torch.autocast(device.type, torch.bfloat16, enabled=r.train.precision == "bfloat16"), moved:
            solve, rng = r.evaluation.solver.sample, seeded(r.seed, "solver", device=device)
            latents = solve(r.objective.denoiser(self.run.net), r.objective.schedule, noise, condition, rng)
        return self.run.codec.decode(latents.float()).unflatten(0, (len(asks), count))

    def rows(self, step: int, ask: Ask, images: Float[Tensor, "b c h w"]) -> list[Row]:
        """Where these pictures lie: shares by the classifier's choice, and `p_`: its mean probabilities."""
        space, level = self.course.world.space, self.course.recipe.split.level(ask.composition)
        place = coordinates(self.probe.net, images, ask.composition)
        found: Row = {f"p_{f.name}": float(place[:, i].mean()) for i, f in enumerate(space.factors)}
        found |= {"p_joint": multiplicative(place), "p_mean": additive(place)}
        where: Row = {"step": step, "composition": code(ask.composition), "level": level}
        if ask.way != "plain":
            return [short({"kind": "asked", **where, "way": ask.way, "strength": ask.strength, **found})]
        rows = [{"kind": self.kind, **where, **score(self.probe, images, ask.composition, space), **found}]
        if level:
            rows.append(
                {"kind": self.kind, **where, **score(Oracle(self.course.world), images, ask.composition, space)}
            )
        return [short(row) for row in rows]

    def kept(self, step: int) -> Path:
        return self.folder.path / "weights" / f"step_{step:08d}.safetensors"

    def keep(self, step: int) -> None:
        """The weights as they are now, for patching at the end."""
        write_atomic(self.kept(step), save({k: p.detach() for k, p in self.run.net.named_parameters()}))

    def patches(self, step: int) -> list[Row]:
        """The unseen composition, drawn by the network of earlier checkpoints with the last one's embedding of conditions, and
        the other way round."""
        net, rows = self.run.net, []
        params = dict(net.named_parameters())
        last = {k: p.detach().clone() for k, p in params.items()}
        plain = Ask(self.unseen, self.told(self.unseen))
        for at in every_so_often(self.checkpoints[:-1], self.course.asking.patches):
            early = {k: p.to(self.run.runtime.device) for k, p in load_file(self.kept(at)).items()}
            with patched(net, early):
                back = self.draw([plain])[0]
            with swapped(params, early), patched(net, last):
                forth = self.draw([plain])[0]
            for way, images in (("patch", forth), ("patch back", back)):
                rows += [row | {"of": at} for row in self.rows(step, plain._replace(way=way), images)]
        return rows


def every_so_often(steps: tuple[int, ...], count: int) -> tuple[int, ...]:
    """`count` of the steps, evenly from the first to the last."""
    if not steps:
        return ()
    layout = {round(i * (len(steps) - 1) / max(1, count - 1)) for i in range(count)}
    return tuple(steps[i] for i in sorted(layout))


def short(row: Row) -> Row:
    """Four digits are enough on disk."""
    return {k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}
