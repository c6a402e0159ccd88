"""One recipe carried out: its data, its training, its samples, its rows; and many of them, as the trained studies do."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from recombine.config import UsageError
from recombine.machine import Machine
from recombine.measure.dependence import dependence
from recombine.measure.probes import Probe, score
from recombine.objectives.noising import Noising
from recombine.objectives.process import Denoiser, Guided
from recombine.rng import seeded
from recombine.store import RunFolder
from recombine.studies.base import Row
from recombine.studies.grounds import ceilings, exam, lay, make_probes
from recombine.studies.lab import Lab
from recombine.studies.recipe import Recipe
from recombine.studies.sheets import write_sheet
from recombine.studies.tokens import folder_of, open_codec
from recombine.tokenizers.autoencoder import Autoencoder
from recombine.tokenizers.base import Codec
from recombine.train.loop import train
from recombine.worlds.factors import Composition, Condition, code
from recombine.worlds.folder import Folder

PICTURES, GONE = 32, (0.5, 0.7, 0.9)
"""On how many pictures dependence is measured, and how much of each is gone."""


TOGETHER = 2048
"""Pictures that are sampled together, all compositions at once if they fit: small networks wait for their launches."""


@dataclass
class Run:
    """One recipe on one machine: its data, its network, its samples."""

    recipe: Recipe
    lab: Lab

    @property
    def machine(self) -> Machine:
        return self.lab.machine

    @cached_property
    def probes(self) -> list[Probe]:
        return make_probes(self.recipe, self.lab)

    @cached_property
    def codec(self) -> Codec:
        return open_codec(self.recipe.tokenizer, self.recipe.coded, self.recipe.split, self.lab)

    @cached_property
    def net(self) -> nn.Module:
        r = self.recipe
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(r.seed)
            return r.objective.network(r.net, r.conditioning, r.shape, r.world.space, self.codec.codes)

    @cached_property
    def pool(self) -> tuple[Float[Tensor, "n c h w"], Condition]:
        """The training set, latents and full conditions, on the device."""
        r, device = self.recipe, self.machine.device
        index = torch.tensor(r.split.seen, device=device).repeat_interleave(r.pool, 0)
        images, values = r.world.render(index, seeded(r.seed, "pool", device=device))
        told = r.world.canonical(index) if r.conditioning.mode == "centres" else values
        return self.codec.encode(images), r.world.describe(index, told)

    def batch(self, step: int) -> tuple[Tensor, Condition, Any]:
        """The batch after `step` updates: latents, conditions with some factors dropped, the loss's own randomness."""
        r, rng = self.recipe, seeded(self.recipe.seed, "batch", step, device=self.machine.device)
        latents, condition = self.pool
        pick = torch.randint(len(latents), (r.train.batch,), generator=rng, device=rng.device)
        x, condition = latents[pick], r.conditioning.drop(condition.rows(pick), r.world.space, rng)
        return x, condition, r.objective.draw(x.shape, rng)

    def denoiser(self) -> Denoiser:
        """A diffusion's network as a Denoiser, guided if the recipe says so."""
        if not isinstance(self.recipe.objective, Noising):
            raise UsageError(f"{type(self.recipe.objective).__name__} trains no denoiser")
        plain = self.recipe.objective.denoiser(self.net)
        guidance = self.recipe.evaluation.guidance
        return plain if guidance == 1 else Guided(plain, guidance)

    @torch.no_grad()
    def sample(
        self, compositions: list[Composition], count: int, denoiser: Denoiser | None = None
    ) -> Float[Tensor, "n b c h w"]:
        """`count` pictures of each composition. All randomness is named by seed and compositions: it is the same at every step
        of training, so what changes from checkpoint to checkpoint is the network. Another denoiser may take its place."""
        at_once = max(1, TOGETHER // count)
        parts = [compositions[i : i + at_once] for i in range(0, len(compositions), at_once)]
        return torch.cat([self._sample(some, count, denoiser).unflatten(0, (-1, count)) for some in parts])

    def _sample(self, some: list[Composition], count: int, denoiser: Denoiser | None) -> Float[Tensor, "b c h w"]:
        r, device = self.recipe, self.machine.device
        index = torch.tensor(some, device=device).repeat_interleave(count, 0)
        condition = r.world.describe(index, r.world.canonical(index))
        rng = seeded(r.seed, "sample", *map(code, some), device=device)
        with torch.autocast(device.type, torch.bfloat16, enabled=r.train.precision == "bfloat16"):
            if isinstance(r.objective, Noising):
                solver = r.evaluation.solver
                latents = r.objective.follow(denoiser or self.denoiser(), r.shape, condition, rng, solver)
            else:
                latents = r.objective.sample(self.net, r.shape, condition, rng, r.evaluation.decoding)
        return self.codec.decode(latents.float())

    def observe(self, step: int) -> list[Row]:
        """Samples of every composition at this step of training, scored by every probe; a sheet of them on disk."""
        r, compositions = self.recipe, list(self.recipe.world.space.compositions)
        images = self.sample(compositions, r.evaluation.samples)
        write_sheet(self.folder.path / "samples" / f"step_{step:08d}.png", images[:, :8])
        scores = [
            {"kind": "accuracy", "step": step, "composition": code(c), "level": r.split.level(c)}
            | score(probe, some, c, r.world.space)
            for c, some in zip(compositions, images, strict=True)
            for probe in self.probes
        ]
        return scores + [row | {"step": step} for row in self.dependence()]

    @torch.no_grad()
    def dependence(self) -> list[Row]:
        """How what it expects depends on the factors it is told, on real pictures of seen compositions, the same at every
        step; nothing where there is one factor only."""
        r, device = self.recipe, self.machine.device
        if len(r.world.space.factors) < 2:
            return []
        rng = seeded("dependence", device=device)
        seen = torch.tensor(r.split.seen, device=device)
        index = seen[torch.randint(len(seen), (PICTURES,), generator=rng, device=device)]
        x = self.codec.encode(r.world.render(index, rng).images)

        def rows(gone: float) -> Row:
            expect = lambda c: r.objective.expect(self.net, x, c, gone, seeded("gone", device=device))  # noqa: E731
            return {"kind": "dependence", "gone": gone, **dependence(expect, r.world, index)._asdict()}

        return [rows(gone) for gone in GONE]

    @property
    def tokenizer(self) -> RunFolder | None:
        """The run that its latents come from."""
        r = self.recipe
        return folder_of(r.tokenizer, r.coded, r.split, self.lab) if isinstance(r.tokenizer, Autoencoder) else None

    @property
    def folder(self) -> RunFolder:
        tokenizer = self.tokenizer
        return RunFolder(self.lab.out, self.recipe, tokenizer.fingerprint if tokenizer else "")

    def train(self) -> nn.Module:
        r, loss, net = self.recipe, self.recipe.objective.loss, self.net
        self.probes  # noqa: B018  # all processes make them, one of them measures
        plan = (self.batch, r.train, self.folder, self.machine, self.observe, r.evaluation.at(r.train.steps))
        return train(net, loss, *plan, taught=r.objective.taught)


def compute(recipes: dict[str, Recipe], lab: Lab, opens: Callable[[Run], bool] = lambda run: False) -> list[Row]:
    """Every variant for every seed: see `compute_all`."""
    return compute_all({(v, seed): r.sown(seed) for v, r in recipes.items() for seed in range(lab.seeds)}, lab, opens)


def compute_all(
    recipes: dict[tuple[str, int], Recipe], lab: Lab, opens: Callable[[Run], bool] = lambda run: False
) -> list[Row]:
    """Train all recipes, named by variant and seed, and give all accuracy rows; before them what each world's probes and each
    learned tokenizer are worth. `opens`: whether a run's rows are not enough, because its network will be opened."""
    for recipe in recipes.values():
        recipe.check()
    for world in dict.fromkeys(r.world for r in recipes.values() if isinstance(r.world, Folder) and not lab.ahead):
        lab.note(world.summary)
    lay([r for r in recipes.values() if opens(Run(r, lab)) or lab.lacks(Run(r, lab).folder)], lab)
    rows: list[Row] = []
    for i, world in enumerate(dict.fromkeys(r.judged_in for r in recipes.values())):
        variant, recipe = next((v, r) for (v, _), r in recipes.items() if r.judged_in == world)
        rows += [r | ({"variant": variant} if i else {}) for r in lab.measured(exam(recipe, lab))]
    rows += ceilings(recipes, lab)
    for (variant, seed), recipe in in_turn(recipes, lab.ahead):
        run = Run(recipe, lab)
        rows += lab.rows_of(run.folder, run.train, variant, seed, "accuracy", opens(run))
    return rows


def in_turn(recipes: dict[tuple[str, int], Recipe], ahead: bool) -> list[tuple[tuple[str, int], Recipe]]:
    """As they are named; of those that several processes share, the longest first, so that none is left alone with one."""
    named = list(recipes.items())
    return sorted(named, key=lambda item: item[1].train.steps, reverse=True) if ahead else named
