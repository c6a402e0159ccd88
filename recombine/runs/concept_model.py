"""A model in concept space: its data, where its samples lie at a checkpoint, and how it answers to
other methods of prompting."""

from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float
from safetensors.torch import load_file, save
from torch import Tensor

from recombine.config import config
from recombine.files import rounded
from recombine.metrics.concepts import (
    additive,
    coordinates,
    direction,
    multiplicative,
    overprompt,
    patched,
    steered,
)
from recombine.metrics.probes import Oracle, TrainedProbe, score
from recombine.metrics.sheets import write_sheet
from recombine.objectives.vdm import VDM
from recombine.pipeline.job import Work
from recombine.rng import seeded
from recombine.runs.models import Model
from recombine.runs.probes import ProbeRun
from recombine.runs.recipe import Recipe
from recombine.store import Row, write_atomic
from recombine.train.fit import swapped
from recombine.worlds.circles import Circles
from recombine.worlds.factors import Composition, Condition, code

SHEETS = 8
"""How many checkpoints leave a sheet of samples."""
MASKED: Composition = (0, 1)
"""Red and small: the composition whose colour some captions leave out."""
Method = Literal["plain", "overprompt", "steer", "patch", "patch back"]


@config("prompting")
class Prompting:
    """Other methods of prompting for the unseen composition, at every `every`-th checkpoint:
    strengths of overprompting and of steering. `patches`: at how many checkpoints an embedding is
    exchanged with the last one's."""

    overprompt: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    steer: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    every: int = 2
    patches: int = 8

    def __post_init__(self) -> None:
        if self.every < 1 or self.patches < 0:
            raise ValueError("every must be positive, patches must not be negative")


class Request(NamedTuple):
    """A composition prompted for by one method, for a whole group of pictures; `shift` moves the
    embedded condition."""

    composition: Composition
    condition: Condition
    method: Method = "plain"
    strength: float = 0.0
    shift: Float[Tensor, "1 d"] | None = None


@dataclass
class ConceptModel:
    """A concept run on a machine: its data, its network, where its samples lie."""

    recipe: Recipe
    masked: float
    prompting: Prompting | None
    probe_run: ProbeRun
    work: Work

    @property
    def world(self) -> Circles:
        return self.recipe.world

    @property
    def device(self) -> torch.device:
        return self.work.runtime.device

    @cached_property
    def model(self) -> Model:
        return Model(self.recipe, self.work)

    @property
    def net(self) -> torch.nn.Module:
        return self.model.net

    @property
    def probe(self) -> TrainedProbe:
        return self.work.open(self.probe_run)

    @cached_property
    def checkpoints(self) -> tuple[int, ...]:
        return self.recipe.evaluation.at(self.recipe.train.steps)

    @cached_property
    def pool(self) -> tuple[Tensor, Condition]:
        """The training set, with some captions that leave out the colour. A picture keeps its
        caption for the whole run, and what is masked at one share is masked at every larger one."""
        latents, condition = self.model.pool
        here = (condition.index[:, :2] == torch.tensor(MASKED, device=latents.device)).all(1)
        rng = seeded(self.recipe.seed, "masked", device=latents.device)
        order = torch.rand(len(latents), generator=rng, device=rng.device).masked_fill(~here, 2.0)
        first = order.argsort()[: round(self.masked * int(here.sum()))]
        keep = torch.ones_like(condition.present)
        keep[first, 0] = False
        return latents, condition.keep(keep)

    def batch(self, step: int) -> tuple[Tensor, Condition, Any]:
        r, runtime, (latents, condition) = self.recipe, self.work.runtime, self.pool
        rng, count = runtime.stream(r.seed, "batch", step), runtime.share(r.train.batch)
        pick = torch.randint(len(latents), (count,), generator=rng, device=rng.device)
        x, given = latents[pick], r.conditioning.drop(condition.rows(pick), r.world.space, rng)
        return x, given, r.objective.draw(x.shape, rng)

    @property
    def kind(self) -> str:
        """Of its rows: compositions of three factors are not those of two."""
        return "accuracy3" if self.world.background_signal else "accuracy"

    @cached_property
    def unseen(self) -> Composition:
        """The composition furthest from all that was seen: every factor new."""
        return max(self.world.space.compositions, key=self.recipe.split.level)

    def observe(self, step: int) -> list[Row]:
        """Samples of every composition, and by other methods of the unseen one; where they lie."""
        prompting, plain = self.prompting, self.plain()
        often = prompting and self.checkpoints.index(step) % prompting.every == 0
        requests = plain + (self.by_other_methods() if often else [])
        images = self.sample(requests)
        pairs = zip(requests, images, strict=True)
        rows = [row for request, some in pairs for row in self.rows(step, request, some)]
        if self.kind == "accuracy" and step in evenly(self.checkpoints, SHEETS):
            sheet = self.work.folder.path / "samples" / f"step_{step:08d}.png"
            write_sheet(sheet, images[: len(plain), :8])
        if prompting and step in evenly(self.checkpoints[:-1], prompting.patches):
            self.keep(step)
        last, rows = step == self.recipe.train.steps, rows + self.learned_schedule(step)
        return rows + (self.patches(step) if last and prompting else [])

    def learned_schedule(self, step: int) -> list[Row]:
        """The ends of the noise schedule, where the network learns it."""
        if not isinstance(self.recipe.objective, VDM):
            return []
        ends = self.recipe.objective.schedule_of(self.net)
        return [rounded({"kind": "schedule", "step": step, "low": ends.low, "high": ends.high})]

    def condition(self, composition: Composition) -> Condition:
        return self.world.condition(composition, self.recipe.evaluation.samples, self.device)

    def plain(self) -> list[Request]:
        return [Request(c, self.condition(c)) for c in self.world.space.compositions]

    def by_other_methods(self) -> list[Request]:
        """For the unseen composition: more than its colour, and its embedding pushed away from the
        other colour."""
        prompting, unseen = self.prompting, self.unseen
        wanted, away = self.condition(unseen), self.condition((1 - unseen[0], *unseen[1:]))
        line = direction(self.net, wanted, away)[:1]
        more = [(s, overprompt(wanted, away, s)) for s in prompting.overprompt]
        over = [Request(unseen, condition, "overprompt", s) for s, condition in more]
        return over + [Request(unseen, wanted, "steer", s, s * line) for s in prompting.steer]

    @torch.no_grad()
    def sample(self, requests: list[Request]) -> Float[Tensor, "n b c h w"]:
        """Pictures for all requests in one batch. Noise is named by seed and composition: the same
        for every method and at every checkpoint."""
        r, device, count = self.recipe, self.device, len(requests[0].condition.index)
        streams = [seeded(r.seed, "sample", code(q.composition), device=device) for q in requests]
        each = [torch.randn(count, *r.shape, generator=s, device=device) for s in streams]
        parts = zip(*(q.condition for q in requests), strict=True)
        condition = Condition(*(torch.cat(t) for t in parts))
        solve, rng = r.evaluation.solver.sample, seeded(r.seed, "solver", device=device)
        is_half = r.train.precision == "bfloat16"
        with torch.autocast(device.type, torch.bfloat16, enabled=is_half), self.shifted(requests):
            denoiser, schedule = r.objective.denoiser(self.net), r.objective.schedule_of(self.net)
            latents = solve(denoiser, schedule, torch.cat(each), condition, rng)
        return self.model.codec.decode(latents.float()).unflatten(0, (len(requests), count))

    def shifted(self, requests: list[Request]) -> Any:
        """The network with the shifts of the requests, where there are any."""
        given = [q.shift for q in requests if q.shift is not None]
        if not given:
            return nullcontext()
        rows = [torch.zeros_like(given[0]) if q.shift is None else q.shift for q in requests]
        count = len(requests[0].condition.index)
        return steered(self.net, torch.cat(rows).repeat_interleave(count, 0))

    def rows(self, step: int, request: Request, images: Float[Tensor, "b c h w"]) -> list[Row]:
        """Where these pictures lie: shares by what the probe reads, and `p_`: its mean
        probabilities."""
        world, composition = self.world, request.composition
        space, level = world.space, self.recipe.split.level(composition)
        at = coordinates(self.probe.net, images, composition)
        means: Row = {f"p_{f.name}": float(at[:, i].mean()) for i, f in enumerate(space.factors)}
        means |= {"p_joint": multiplicative(at), "p_mean": additive(at)}
        where: Row = {"step": step, "composition": code(composition), "level": level}
        if request.method != "plain":
            how = {"method": request.method, "strength": request.strength}
            return [rounded({"kind": "prompted", **where, **how, **means})]
        rows = [
            {"kind": self.kind, **where, **score(self.probe, images, composition, space), **means}
        ]
        if level:
            oracle = score(Oracle(world), images, composition, space)
            rows.append({"kind": self.kind, **where, **oracle})
        return [rounded(row) for row in rows]

    def kept(self, step: int) -> Path:
        return self.work.folder.path / "weights" / f"step_{step:08d}.safetensors"

    def keep(self, step: int) -> None:
        """The weights as they are now, for patching at the end."""
        weights = {k: p.detach() for k, p in self.net.named_parameters()}
        write_atomic(self.kept(step), save(weights))

    def patches(self, step: int) -> list[Row]:
        """The unseen composition, sampled by the network of earlier checkpoints with the last one's
        embedding of conditions, and the other way round."""
        params = dict(self.net.named_parameters())
        last = {k: p.detach().clone() for k, p in params.items()}
        plain, rows = Request(self.unseen, self.condition(self.unseen)), []
        for at in evenly(self.checkpoints[:-1], self.prompting.patches):
            early = {k: p.to(self.device) for k, p in load_file(self.kept(at)).items()}
            with patched(self.net, early):
                back = self.sample([plain])[0]
            with swapped(params, early), patched(self.net, last):
                forth = self.sample([plain])[0]
            for method, images in (("patch", forth), ("patch back", back)):
                made = self.rows(step, plain._replace(method=method), images)
                rows += [row | {"network_step": at} for row in made]
        return rows


def evenly(steps: tuple[int, ...], count: int) -> tuple[int, ...]:
    """`count` of the steps, evenly from the first to the last."""
    if not steps:
        return ()
    indices = {round(i * (len(steps) - 1) / max(1, count - 1)) for i in range(count)}
    return tuple(steps[i] for i in sorted(indices))
