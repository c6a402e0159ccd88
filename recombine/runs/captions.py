"""A text-conditioned latent diffusion model as a run: trained on captioned pictures, its samples
read by a probe, and what paper B measures of such models."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from recombine.bridge.measures import Concepts, FeatureMeasure
from recombine.bridge.text import EachWord, Encoded, Segment, Text, texts
from recombine.config import config
from recombine.limits import check_memory, check_updates
from recombine.metrics.probes import TrainedProbe
from recombine.metrics.sheets import write_sheet
from recombine.nets.text_unet import TextUNet, TextUNetConfig
from recombine.objectives.diffusion import Diffusion
from recombine.objectives.process import Denoiser, Schedule
from recombine.objectives.solvers import Heun, Solver
from recombine.pipeline.job import Task, Work
from recombine.rng import initial_weights, seeded
from recombine.runs.probes import ProbeRun
from recombine.runs.tokenizers import TokenizerRun
from recombine.store import Row
from recombine.tokenizers.autoencoder import Autoencoder
from recombine.tokenizers.bottlenecks import KL
from recombine.tokenizers.tokenizer import Codec
from recombine.train.fit import TrainConfig
from recombine.train.loop import load_weights, train
from recombine.worlds.captions import LENGTH, VOCABULARY, Caption, Captions, tokens_of

AT_ONCE = 4096
"""Pictures that are rendered and encoded together."""
CONCEPTS = (
    Concepts("shapes", ("a circle on the left", "a triangle on the left", "a square on the left")),
    Concepts("textures", ("striped", "dotted", "checked")),
    Concepts("lights", ("warm", "cool", "dim")),
)
PROMPT = "a red circle on the left and a blue square on the right striped warm"


def own_measure() -> FeatureMeasure:
    """Of a model that knows these captions alone."""
    return FeatureMeasure(prompt=PROMPT, concepts=CONCEPTS)


def _tokenizer() -> Autoencoder:
    return Autoencoder(KL(dim=4, weight=1e-3), width=48, steps=2000, batch=128)


@config("recipe/captions")
class CaptionRecipe:
    """Everything that decides the model. `pool`: training pictures. `unsaid`: how often a caption
    leaves out a factor; `unconditional`: how often it is empty. Probed on `samples` captions that
    name everything."""

    world: Captions = field(default_factory=Captions)
    tokenizer: Autoencoder = field(default_factory=_tokenizer)
    net: TextUNetConfig = field(default_factory=TextUNetConfig)
    objective: Diffusion = field(default_factory=Diffusion)
    train: TrainConfig = field(default_factory=TrainConfig)
    solver: Solver = field(default_factory=Heun)
    pool: int = 50_000
    unsaid: float = 0.25
    unconditional: float = 0.1
    probe_steps: int = 1500
    samples: int = 512
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("pool", "probe_steps", "samples"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}")
        for name in ("unsaid", "unconditional"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must lie in [0, 1), not {getattr(self, name)}")

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.tokenizer.latent_shape(self.world.image_shape)

    @property
    def best(self) -> float:
        """How often a model that draws from the exact law shows a caption that names everything,
        and nothing besides: what a caption does not mention may be there, since captions leave
        things out."""
        absent, there = 1 - self.world.share, self.world.share
        unsaid = [self.unsaid**2] * len(self.world.places) + [self.unsaid] * 2
        silent = [absent + there * u for u in unsaid]
        each = math.prod(there + absent**2 / s for s in silent)
        nothing = absent ** len(unsaid)
        empty = (1 - self.unconditional) * math.prod(silent) + self.unconditional
        return each - nothing**2 / math.prod(silent) + nothing**2 / empty

    def with_seed(self, more: int) -> "CaptionRecipe":
        return replace(self, seed=self.seed + more, tokenizer=self.tokenizer.with_seed(more))


@config("run/captions")
class CaptionRun(Task):
    """A recipe carried out: trained, sampled, its samples read by a probe."""

    noun = "text model"
    weights = True
    recipe: CaptionRecipe

    @property
    def tokenizer(self) -> TokenizerRun:
        return TokenizerRun(self.recipe.world, self.recipe.tokenizer, self.recipe.world.present)

    @property
    def probe(self) -> ProbeRun:
        """Reads one place: what it learned of the left, it reads on the right."""
        half = replace(self.recipe.world, places=self.recipe.world.places[:1])
        return ProbeRun.of(half, "cnn", self.recipe.probe_steps)

    def parents(self) -> tuple[Task, ...]:
        return self.tokenizer, self.probe

    def check(self) -> None:
        r = self.recipe
        r.net.check(r.shape)
        pictures = r.pool + r.samples + r.train.batch
        check_memory(4 * math.prod(r.shape) * pictures, "this run")
        check_updates(r.train.steps, "this run")

    @property
    def cost(self) -> float:
        return 20.0 * self.recipe.train.steps

    def run(self, work: Work) -> None:
        r, model = self.recipe, CaptionModel(self, work)
        train(
            model.net, r.objective.loss, model.batch, r.train, work.folder, work.runtime,
            model.observe, (r.train.steps,), title=work.title, check=work.check,
        )  # fmt: skip

    def open(self, work: Work) -> "CaptionModel":
        model = CaptionModel(self, work)
        load_weights(model.net, work.folder, work.runtime).eval()
        return model


@dataclass
class CaptionModel:
    """A recipe on a machine: its data, its network as a denoiser of prompts, its samples."""

    task: CaptionRun
    work: Work

    @property
    def recipe(self) -> CaptionRecipe:
        return self.task.recipe

    @property
    def device(self) -> torch.device:
        return self.work.runtime.device

    @property
    def schedule(self) -> Schedule:
        return self.recipe.objective.schedule

    @cached_property
    def codec(self) -> Codec:
        return self.work.open(self.task.tokenizer)

    @cached_property
    def net(self) -> TextUNet:
        r = self.recipe
        with initial_weights(r.seed):
            return TextUNet(r.net, r.shape, len(VOCABULARY), LENGTH)

    @cached_property
    def pool(self) -> tuple[Float[Tensor, "n c h w"], Int[Tensor, "n k"]]:
        """The training set: latents and factors, on the device."""
        r, parts, factors = self.recipe, [], []
        for first in range(0, r.pool, AT_ONCE):
            rng = seeded(r.seed, "pool", first, device=self.device)
            index = r.world.sample(min(AT_ONCE, r.pool - first), rng)
            parts.append(self.codec.encode(r.world.render(index, rng).images))
            factors.append(index)
        return torch.cat(parts), torch.cat(factors)

    def batch(self, step: int) -> tuple[Tensor, Caption, Any]:
        """Latents, captions that leave out some of what is there, and the loss's randomness."""
        r, rng = self.recipe, self.work.runtime.stream(self.recipe.seed, "batch", step)
        latents, factors = self.pool
        count = self.work.runtime.share(r.train.batch)
        pick = torch.randint(len(latents), (count,), generator=rng, device=rng.device)
        x, index = latents[pick], factors[pick]
        said = torch.rand(index.shape, generator=rng, device=rng.device) >= r.unsaid
        empty = torch.rand(count, generator=rng, device=rng.device) < r.unconditional
        caption = r.world.caption(index, said & ~empty[:, None])
        return x, caption, r.objective.draw(x.shape, rng)

    @cached_property
    def denoiser(self) -> Denoiser:
        return self.recipe.objective.denoiser(self.net)

    def __call__(self, x: Tensor, t: Tensor, condition: Any) -> Tensor:
        return self.denoiser(x, t, condition)

    def encode(self, prompts: list[str]) -> Encoded:
        return Encoded(self.net.encode(tokens_of(prompts, self.device)))

    @torch.no_grad()
    def text(self, prompts: list[str]) -> Text:
        segment = Segment(EachWord(), 0, LENGTH)
        return texts(prompts, torch.no_grad()(self.encode), (segment,))

    def shape(self, side: int = 0) -> tuple[int, int, int]:
        return self.recipe.shape

    def decode(self, latents: Tensor) -> Tensor:
        return self.codec.decode(latents)

    @torch.no_grad()
    def sample(self, caption: Caption, rng: torch.Generator) -> Float[Tensor, "b 3 h w"]:
        """A picture for each caption."""
        r, count = self.recipe, len(caption.tokens)
        noise = torch.randn((count, *r.shape), generator=rng, device=rng.device)
        return self.decode(r.solver.sample(self, self.schedule, noise, caption, rng))

    def observe(self, step: int) -> list[Row]:
        """How often samples show what their captions name, factor by factor, and how often the
        probe reads real pictures right; a sheet of them on disk."""
        r, rng = self.recipe, seeded("captions", device=self.device)
        index = r.world.sample(r.samples, rng)
        real = r.world.render(index, rng).images
        images = self.sample(r.world.caption(index), rng)
        sheet = self.work.folder.path / "samples" / f"step_{step:08d}.png"
        write_sheet(sheet, images[:32].unflatten(0, (-1, min(8, len(images[:32])))))
        probe: TrainedProbe = self.work.open(self.task.probe)
        rows = []
        for source, pictures in (("samples", images), ("real", real)):
            right = agreement(probe, pictures, index, r.world)
            rows.append({"kind": "captions", "step": step, "of": source, "n": len(index), **right})
        return rows


def agreement(
    probe: Callable[[Tensor], Tensor], images: Tensor, index: Int[Tensor, "b k"], world: Captions
) -> dict[str, float]:
    """The share of pictures whose places show the shape that is there, and its colour where there
    is one; texture and light as read in the first place."""
    wide = world.size // 2
    halves = [images[..., i * wide : (i + 1) * wide] for i in range(len(world.places))]
    read = [probe(half.contiguous()) for half in halves]
    shapes, colors = [], []
    for i, seen in enumerate(read):
        shapes.append(seen[:, 0] == index[:, 2 * i])
        colors.append((seen[:, 1] == index[:, 2 * i + 1]) | (index[:, 2 * i] == 0))
    kept = {
        "shape": torch.stack(shapes).all(0),
        "color": torch.stack(colors).all(0),
        "texture": read[0][:, 2] == index[:, -2],
        "light": read[0][:, 3] == index[:, -1],
    }
    joint = torch.stack(list(kept.values())).all(0)
    return {name: v.float().mean().item() for name, v in {**kept, "joint": joint}.items()}


@config("run/caption-law")
class CaptionLawRun(Task):
    """What a model without error would reach: exact, nothing is trained."""

    noun = "law of captions"
    recipe: CaptionRecipe

    def run(self, work: Work) -> Iterable[Row]:
        return [{"kind": "captions", "of": "a model without error", "joint": self.recipe.best}]


@config("run/features")
class FeatureRun(Task):
    """Paper B's measures of a text model of ours."""

    noun = "features"
    model: CaptionRun
    measure: FeatureMeasure

    def parents(self) -> tuple[Task, ...]:
        return (self.model,)

    def run(self, work: Work) -> Iterable[Row]:
        return list(self.measure.rows(_still(work.open(self.model))))


@config("run/pipeline-features")
class PipelineFeatureRun(Task):
    """The same of a diffusers pipeline, by folder or id."""

    noun = "pipeline"
    pipeline: str
    measure: FeatureMeasure
    trust_code: bool = False

    def run(self, work: Work) -> Iterable[Row]:
        from recombine.bridge.adapters import adapter
        from recombine.bridge.pipelines import open_pipeline

        pipe = open_pipeline(self.pipeline, str(work.runtime.device), self.trust_code)
        return list(self.measure.rows(_still(adapter(pipe))))


def _still(model: Any) -> Any:
    """In evaluation mode; gradients flow to pictures, not to weights."""
    net: nn.Module = model.net
    net.eval().requires_grad_(False)
    return model
