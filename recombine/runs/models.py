"""A model as a run: its data, its training, its samples, and what probes read in them."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from recombine.config import UsageError, config
from recombine.metrics.dependence import dependence
from recombine.metrics.kept_samples import write_kept
from recombine.metrics.probes import accuracy_rows
from recombine.metrics.sheets import write_sheet
from recombine.objectives.noising import Noising
from recombine.objectives.process import Denoiser, Guided
from recombine.pipeline.job import Job, Task, Work
from recombine.rng import initial_weights, seeded
from recombine.runs.probes import ProbeCheck, open_probes, probe_runs
from recombine.runs.recipe import Recipe
from recombine.runs.tokenizers import CeilingRun, TokenizerRun, open_codec, tokenizer_runs
from recombine.store import Row
from recombine.tokenizers.autoencoder import Autoencoder
from recombine.tokenizers.tokenizer import Codec
from recombine.train.fit import Diverged
from recombine.train.loop import load_weights, train
from recombine.worlds.factors import Composition, Condition, code
from recombine.worlds.world import Rendered

PICTURES, HIDDEN = 32, (0.5, 0.7, 0.9)
"""On how many pictures condition dependence is measured, and how much of each is noised or
masked."""
ATTEMPTS = 100
"""How often a picture that lies nearer to another class is rendered anew."""
TOGETHER = 2048
"""Pictures that are sampled together, all compositions at once if they fit: small networks wait for
their launches."""


@config("run/model")
class ModelRun(Task):
    """A recipe carried out: trained, sampled at every checkpoint, scored by all probes."""

    noun = "model"
    weights = True
    recipe: Recipe

    def parents(self) -> tuple[Task, ...]:
        r = self.recipe
        tokenizer = tokenizer_runs(r.tokenizer, r.tokenizer_pictures, r.split)
        e = r.evaluation
        return (*tokenizer, *probe_runs(r.probe_world, e.probe_steps, e.paper_probes))

    def check(self) -> None:
        self.recipe.check()

    @property
    def cost(self) -> float:
        return 10.0 * self.recipe.train.steps

    def run(self, work: Work) -> None:
        r, model = self.recipe, Model(self.recipe, work)
        train(
            model.net, r.objective.loss, model.batch, r.train, work.folder, work.runtime,
            model.observe, r.evaluation.at(r.train.steps), r.objective.needs_teacher,
            work.title, work.check,
        )  # fmt: skip

    def open(self, work: Work) -> "Model":
        model = Model(self.recipe, work)
        load_weights(model.net, work.folder, work.runtime).eval()
        return model


@config("run/search")
class SearchRun(ModelRun):
    """One setting of a search: that its training diverges is a result, and a row says so."""

    def run(self, work: Work) -> None:
        try:
            super().run(work)
        except Diverged as error:
            work.folder.append([{"kind": "diverged", "why": str(error)}])


@dataclass
class Model:
    """A recipe on a machine: its data, its network, its samples."""

    recipe: Recipe
    work: Work

    @property
    def device(self) -> torch.device:
        return self.work.runtime.device

    @cached_property
    def codec(self) -> Codec:
        r = self.recipe
        return open_codec(r.tokenizer, r.tokenizer_pictures, r.split, self.work)

    @cached_property
    def net(self) -> nn.Module:
        r = self.recipe
        with initial_weights(r.seed if r.start is None else r.start):
            return r.objective.network(
                r.net, r.conditioning, r.shape, r.world.space, self.codec.codes
            )

    @cached_property
    def pool(self) -> tuple[Float[Tensor, "n c h w"], Condition]:
        """The training set, latents and full conditions, on the device."""
        index = self._pool_index()
        images, values = self._apart(index) if self.recipe.apart else self._rendered(index, 0)
        return self.codec.encode(images), self.recipe.world.describe(index, values)

    @cached_property
    def streamed_pool(self) -> tuple[Int[Tensor, "n"], Condition]:
        """The same training set where it does not fit into memory: rows of a folder."""
        index = self._pool_index()
        rows = self.recipe.world.pick(index, seeded(self.recipe.seed, "pool", device=self.device))
        return rows, self.recipe.world.describe(index, self.recipe.world.values(rows))

    def _pool_index(self) -> Int[Tensor, "n k"]:
        r = self.recipe
        return torch.tensor(r.split.seen, device=self.device).repeat_interleave(r.pool, 0)

    def _rendered(self, index: Int[Tensor, "b k"], attempt: int) -> Rendered:
        more = (attempt,) if attempt else ()
        rng = seeded(self.recipe.seed, "pool", *more, device=self.device)
        return self.recipe.world.render(index, rng)

    def _apart(self, index: Int[Tensor, "b k"]) -> Rendered:
        """Pictures that lie nearer to another class are rendered anew, until none does."""
        images, values = self._rendered(index, 0)
        for attempt in range(1, ATTEMPTS):
            wrong = (self.recipe.world.nearest(index, values) != index).any(1).nonzero()[:, 0]
            if not len(wrong):
                return Rendered(images, values)
            images[wrong], values[wrong] = self._rendered(index[wrong], attempt)
        raise UsageError("apart: classes overlap so much that some pictures lie nearer to others")

    def batch(self, step: int) -> tuple[Tensor, Condition, Any]:
        """The batch after `step` updates: latents, conditions with some factors dropped, the loss's
        own randomness."""
        r, runtime = self.recipe, self.work.runtime
        rng = runtime.stream(r.seed, "batch", step)
        held, condition = self.streamed_pool if r.streams else self.pool
        pick = torch.randint(
            len(held), (runtime.share(r.train.batch),), generator=rng, device=rng.device
        )
        x = self.codec.encode(r.world.images(held[pick])) if r.streams else held[pick]
        condition = r.conditioning.drop(condition.rows(pick), r.world.space, rng)
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
        """`count` pictures of each composition. All randomness is named by seed and compositions:
        it is the same at every step of training, so what changes from checkpoint to checkpoint is
        the network. Another denoiser may take its place."""
        at_once = max(1, TOGETHER // count)
        parts = [compositions[i : i + at_once] for i in range(0, len(compositions), at_once)]
        return torch.cat(
            [self._sample(some, count, denoiser).unflatten(0, (-1, count)) for some in parts]
        )

    def _sample(
        self, some: list[Composition], count: int, denoiser: Denoiser | None
    ) -> Float[Tensor, "b c h w"]:
        r = self.recipe
        index = torch.tensor(some, device=self.device).repeat_interleave(count, 0)
        condition = r.world.describe(index, r.world.canonical(index))
        rng = seeded(r.seed, "sample", *map(code, some), device=self.device)
        if left_out := r.evaluation.prompt_dropout:
            how = replace(r.conditioning, dropout=left_out, dropped="null")
            condition = how.drop(condition, r.world.space, rng)
        with torch.autocast(
            self.device.type, torch.bfloat16, enabled=r.train.precision == "bfloat16"
        ):
            if isinstance(r.objective, Noising):
                solver = r.evaluation.solver
                denoiser = denoiser or self.denoiser()
                schedule = r.objective.schedule_of(self.net)
                latents = r.objective.follow(denoiser, r.shape, condition, rng, solver, schedule)
            else:
                latents = r.objective.sample(
                    self.net, r.shape, condition, rng, r.evaluation.decoding
                )
        return self.codec.decode(latents.float())

    def observe(self, step: int) -> list[Row]:
        """Samples of every composition at this step of training, scored by every probe; a sheet of
        them on disk, and more of them where the recipe keeps some."""
        r, e, space = self.recipe, self.recipe.evaluation, self.recipe.world.space
        images = self.sample(list(space.compositions), e.samples)
        sheet = self.work.folder.path / "samples" / f"step_{step:08d}.png"
        write_sheet(sheet, images[:, :8])
        if e.keeps(step, r.train.steps):
            write_kept(sheet.with_suffix(".npz"), images[:, : e.keep])
        probes = open_probes(r.probe_world, e.probe_steps, self.work, e.paper_probes)
        about = {"kind": "accuracy", "step": step}
        rows = [about | row for row in accuracy_rows(probes, images, r.split, space)]
        rows += [{"kind": "auxiliary loss", "step": step} | row for row in self.readings()]
        more = [*self.held_out_loss(), *self.condition_dependence()]
        return rows + [row | {"step": step} for row in more]

    @torch.no_grad()
    def held_out_loss(self) -> list[Row]:
        """The loss on pictures of seen compositions that training does not have, with all labels
        given, the same at every step; nothing unless the recipe sets it."""
        r, count = self.recipe, self.recipe.evaluation.held_out
        if not count or r.objective.needs_teacher:
            return []
        rng = seeded(r.seed, "held out", device=self.device)
        index = torch.tensor(r.split.seen, device=self.device).repeat_interleave(count, 0)
        images, values = r.world.render(index, rng)
        x, condition = self.codec.encode(images), r.world.describe(index, values)
        loss = r.objective.loss(self.net, x, condition, r.objective.draw(x.shape, rng))
        return [{"kind": "held-out loss", "loss": round(float(loss.mean()), 5), "n": len(x)}]

    @torch.no_grad()
    def readings(self) -> list[Row]:
        """Parts of the loss on real pictures of seen compositions, the same at every step; nothing
        where there is one part only."""
        if not self.recipe.objective.needs_teacher:
            return []
        r, rng = self.recipe, seeded("readings", device=self.device)
        seen = torch.tensor(r.split.seen, device=self.device)
        index = seen[torch.randint(len(seen), (PICTURES,), generator=rng, device=self.device)]
        images, values = r.world.render(index, rng)
        x, condition = self.codec.encode(images), r.world.describe(index, values)
        return r.objective.readings(self.net, x, condition, r.objective.draw(x.shape, rng))

    @torch.no_grad()
    def condition_dependence(self) -> list[Row]:
        """How what it expects depends on each condition, on real pictures of seen compositions, the
        same at every step; nothing where there is one factor only."""
        r = self.recipe
        if len(r.world.space.factors) < 2:
            return []
        rng = seeded("dependence", device=self.device)
        seen = torch.tensor(r.split.seen, device=self.device)
        index = seen[torch.randint(len(seen), (PICTURES,), generator=rng, device=self.device)]
        x = self.codec.encode(r.world.render(index, rng).images)

        def row(hidden: float) -> Row:
            def expect(condition: Condition) -> Tensor:
                return r.objective.expect(
                    self.net, x, condition, hidden, seeded("gone", device=self.device)
                )

            return {
                "kind": "dependence",
                "hidden": hidden,
                **dependence(expect, r.world, index)._asdict(),
            }

        return [row(hidden) for hidden in HIDDEN]


def model_jobs(recipes: dict[str, Recipe], seeds: int, first: int = 0) -> list[Job]:
    """Every variant over its seeds, from the first one on, with the checks of their probes and
    tokenizers."""
    numbers = range(first, first + seeds)
    named = {(v, seed): r.with_seed(seed) for v, r in recipes.items() for seed in numbers}
    return [
        *check_jobs(named),
        *(Job.of(ModelRun(r), variant=v, seed=s) for (v, s), r in named.items()),
    ]


def check_jobs(recipes: dict[tuple[str, int], Recipe]) -> list[Job]:
    """What the probes of each world are worth on real pictures, and what each learned tokenizer
    leaves of them."""
    jobs = []
    for i, world in enumerate(dict.fromkeys(r.probe_world for r in recipes.values())):
        variant, recipe = next((v, r) for (v, _), r in recipes.items() if r.probe_world == world)
        e = recipe.evaluation
        seen, papers = recipe.split.seen, e.paper_probes
        check = ProbeCheck(world, e.probe_steps, seen, e.real, paper_probes=papers)
        jobs.append(Job.of(check, **({"variant": variant} if i else {})))
    return jobs + [job for (v, s), r in recipes.items() for job in ceiling_jobs(r, v, s)]


def ceiling_jobs(recipe: Recipe, variant: str, seed: int) -> list[Job]:
    """What a learned tokenizer leaves of real pictures; nothing where pictures are not encoded."""
    if not isinstance(recipe.tokenizer, Autoencoder):
        return []
    made = TokenizerRun.of(recipe.tokenizer, recipe.tokenizer_pictures, recipe.split)
    return [Job.of(ceiling_run(recipe, made), variant=variant, seed=seed)]


def ceiling_run(recipe: Recipe, tokenizer: TokenizerRun | None) -> CeilingRun:
    """By the probes of a recipe; None: of the pictures as they are."""
    e = recipe.evaluation
    return CeilingRun(
        tokenizer, recipe.probe_world, e.probe_steps, recipe.split.seen, e.real,
        paper_probes=e.paper_probes,
    )  # fmt: skip
