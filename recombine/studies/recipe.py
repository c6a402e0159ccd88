"""The recipe that the trained composition studies share: world -> split -> net -> objective -> training -> samples -> rows."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from recombine.config import UsageError
from recombine.machine import Machine
from recombine.measure.probes import PROBE_VERSION, Probe, ProbeConfig, Reader, real_accuracy, score, train_probe
from recombine.nets.conditioning import Conditioning
from recombine.nets.dit import DiT, DiTConfig
from recombine.objectives.diffusion import Diffusion, Draw
from recombine.objectives.process import Denoiser, Guided
from recombine.objectives.solvers import Heun, Solver
from recombine.rng import seeded
from recombine.store import RunFolder
from recombine.studies.base import Row
from recombine.studies.lab import Lab
from recombine.studies.sheets import write_sheet
from recombine.tokenizers.pixels import Pixels
from recombine.train.fit import TrainConfig
from recombine.train.loop import train
from recombine.worlds.base import World
from recombine.worlds.factors import Composition, Condition, Split, at_most_one_new, code
from recombine.worlds.shapes2d import Shapes2D


def spaced(steps: int, count: int) -> tuple[int, ...]:
    """`count` checkpoints from 0 to `steps`, dense at first: spaced evenly in the square root."""
    return tuple(sorted({round(steps * (i / max(1, count - 1)) ** 2) for i in range(count)}))


@dataclass(frozen=True)
class Evaluation:
    """When and how samples are drawn and scored. `guidance` 1 = none. `probe_steps` is how long the trained probes train, and
    `probe_version` which they are: scores are kept with the run, so they belong to its name."""

    checkpoints: tuple[int, ...] = (0,)
    samples: int = 256
    solver: Solver = field(default_factory=Heun)
    guidance: float = 1.0
    probe_steps: int = 300
    probe_version: int = PROBE_VERSION

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ValueError(f"samples must be positive, not {self.samples}")


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the result of one run. `seen` empty = at most one factor away from its first value; `pool` =
    training pictures per seen composition."""

    world: World = field(default_factory=Shapes2D)
    seen: tuple[Composition, ...] = ()
    pool: int = 2000
    tokenizer: Pixels = field(default_factory=Pixels)
    net: DiTConfig = field(default_factory=DiTConfig)
    conditioning: Conditioning = field(default_factory=Conditioning)
    objective: Diffusion = field(default_factory=Diffusion)
    train: TrainConfig = field(default_factory=TrainConfig)
    evaluation: Evaluation = field(default_factory=Evaluation)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.pool < 1:
            raise ValueError(f"pool must be positive, not {self.pool}")

    def check(self) -> None:
        """That world and split fit; asked before the work, not when a config is read (a folder of pictures may be gone)."""
        self.net.check(self.tokenizer.latent_shape(self.world.image_shape))
        if unknown := [c for c in self.seen if c not in self.world.space.compositions]:
            raise UsageError(
                f"seen: {list(unknown[0])} is no composition of factors with {self.world.space.sizes} values"
            )

    @property
    def split(self) -> Split:
        return Split(self.seen) if self.seen else at_most_one_new(self.world.space)

    def facts(self) -> dict[str, Any]:
        """What a page needs to know of the compositions."""
        factors = [{"name": f.name, "values": list(f.values)} for f in self.world.space.factors]
        levels = {code(c): self.split.level(c) for c in self.world.space.compositions}
        return {"space": {"factors": factors}, "levels": levels}


@dataclass
class Run:
    """One recipe on one machine: its data, its network, its samples."""

    recipe: Recipe
    lab: Lab
    probes: list[Probe]

    @property
    def machine(self) -> Machine:
        return self.lab.machine

    @cached_property
    def net(self) -> DiT:
        r = self.recipe
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(r.seed)
            return DiT(r.net, r.conditioning, r.tokenizer.latent_shape(r.world.image_shape), r.world.space)

    @cached_property
    def pool(self) -> tuple[Float[Tensor, "n c h w"], Condition]:
        """The training set, latents and full conditions, on the device."""
        r, device = self.recipe, self.machine.device
        index = torch.tensor(r.split.seen, device=device).repeat_interleave(r.pool, 0)
        images, values = r.world.render(index, seeded(r.seed, "pool", device=device))
        return r.tokenizer.encode(images), r.world.describe(index, values)

    def batch(self, step: int) -> tuple[Tensor, Condition, Draw]:
        """The batch after `step` updates: pictures, conditions with some factors dropped, the loss's own randomness."""
        r, rng = self.recipe, seeded(self.recipe.seed, "batch", step, device=self.machine.device)
        latents, condition = self.pool
        pick = torch.randint(len(latents), (r.train.batch,), generator=rng, device=rng.device)
        x, condition = latents[pick], condition.rows(pick)
        if r.conditioning.dropout:
            draw = torch.rand(condition.present.shape, generator=rng, device=rng.device)
            condition = condition.keep(draw >= r.conditioning.dropout)
        return x, condition, r.objective.draw(x.shape, rng)

    def denoiser(self) -> Denoiser:
        """The network as a Denoiser, guided if the recipe says so."""
        cast = torch.autocast(
            self.machine.device.type, torch.bfloat16, enabled=self.recipe.train.precision == "bfloat16"
        )

        def net(*args: Any) -> Tensor:
            with cast:
                return self.net(*args)

        plain = self.recipe.objective.denoiser(net)
        guidance = self.recipe.evaluation.guidance
        return plain if guidance == 1 else Guided(plain, guidance)

    @torch.no_grad()
    def sample(
        self, compositions: list[Composition], count: int, denoiser: Denoiser | None = None
    ) -> Float[Tensor, "n b c h w"]:
        """`count` pictures of each composition. The noise is named by seed and composition: it is the same at every step of
        training, so what changes from checkpoint to checkpoint is the network."""
        r, device = self.recipe, self.machine.device
        shape = (count, *r.tokenizer.latent_shape(r.world.image_shape))
        streams = [seeded(r.seed, "sample", code(c), device=device) for c in compositions]
        noise = torch.cat([torch.randn(shape, generator=s, device=device) for s in streams])
        parts = [r.world.condition(c, count, device) for c in compositions]
        condition = Condition(*(torch.cat(t) for t in zip(*parts, strict=True)))
        rng = seeded(r.seed, "solver", device=device)
        latents = r.evaluation.solver.sample(denoiser or self.denoiser(), r.objective.schedule, noise, condition, rng)
        return r.tokenizer.decode(latents).unflatten(0, (len(compositions), count))

    def observe(self, step: int) -> list[Row]:
        """Samples of every composition at this step of training, scored by every probe; a sheet of them on disk."""
        r, compositions = self.recipe, list(self.recipe.world.space.compositions)
        images = self.sample(compositions, r.evaluation.samples)
        write_sheet(self.folder.path / "samples" / f"step_{step:08d}.png", images[:, :8])
        return [
            {"kind": "accuracy", "step": step, "composition": code(c), "level": r.split.level(c)}
            | score(probe, some, c, r.world.space)
            for c, some in zip(compositions, images, strict=True)
            for probe in self.probes
        ]

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.lab.out, self.recipe)

    def train(self) -> DiT:
        r = self.recipe
        at = (*r.evaluation.checkpoints, r.train.steps)
        return train(self.net, r.objective.loss, self.batch, r.train, self.folder, self.machine, self.observe, at)


def make_probes(recipe: Recipe, lab: Lab) -> list[Probe]:
    """A small CNN, the world's own reader where there is one, and the paper's linear probe on pixels. The first is shown
    first."""
    machine = replace(lab.machine, compile="", graphs=False)  # too small for compilation to pay
    world, steps = recipe.world, recipe.evaluation.probe_steps
    trained: list[Probe] = []
    for kind in ("cnn", "linear"):
        config = ProbeConfig(world, kind, TrainConfig(steps=steps, batch=128, lr=2e-3, warmup=20, ema=0.98))
        if lab.fresh:
            RunFolder(lab.out, config).erase()
        trained.append(train_probe(config, lab.out, machine))
    return [trained[0], Reader(world), trained[1]] if world.readable else trained


def compute(recipes: dict[str, Recipe], lab: Lab) -> list[Row]:
    """Train every variant for every seed, and give all accuracy rows, with each probe's accuracy on real pictures first."""
    first = next(iter(recipes.values()))
    first.check()
    probes = make_probes(first, lab)
    real = 64 if lab.scale == "smoke" else 1024
    rows: list[Row] = [r for p in probes for r in real_accuracy(p, first.world, first.split, real, lab.machine.device)]
    for variant, recipe in recipes.items():
        for seed in range(lab.seeds):
            rows += [r | {"variant": variant, "seed": seed} for r in one(recipe, variant, seed, probes, lab)]
    return rows


def one(recipe: Recipe, variant: str, seed: int, probes: list[Probe], lab: Lab) -> list[Row]:
    run = Run(replace(recipe, seed=recipe.seed + seed), lab, probes)
    if lab.fresh:
        run.folder.erase()
    lab.note(f"{variant}, seed {seed}: run {run.folder.digest}{' (on disk)' if run.folder.done else ''}")
    run.train()
    lab.record(run.folder, variant, seed)
    rows = [r | {"run": run.folder.digest} for r in run.folder.rows()]
    if not any(r["kind"] == "accuracy" for r in rows):
        raise UsageError(f"{run.folder.path / 'metrics.jsonl'} holds no measurements; use --fresh to start over")
    return rows
