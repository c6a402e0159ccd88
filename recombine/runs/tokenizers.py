"""Tokenizers as runs: each learned one is trained once, and its ceiling is measured: what probes
say of real pictures that were encoded and decoded. No model on top of a tokenizer can do better."""

from dataclasses import field
from functools import lru_cache
from itertools import permutations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from recombine.config import ALWAYS, UsageError, config
from recombine.metrics.probes import Probe, score
from recombine.metrics.slope import Trend, enough, slope, trend
from recombine.pipeline.job import Task, Work
from recombine.rng import initial_weights, seeded
from recombine.runs.probes import open_probes, probe_runs
from recombine.store import Row
from recombine.tokenizers.autoencoder import Autoencoder, AutoencoderNet, codec_of
from recombine.tokenizers.pixels import Pixels
from recombine.tokenizers.tokenizer import Codec, Tokenizer, nearest
from recombine.train.fit import TrainConfig
from recombine.train.loop import load_weights, train
from recombine.worlds.factors import Composition, FactorSpace, Split, code
from recombine.worlds.world import World

STATISTICS = 1024
"""Pictures from which the mean and variance of latents are taken."""
CEILING_VERSION = 2
"""Rises when what is measured of tokenizers changes."""


@config("run/tokenizer")
class TokenizerRun(Task):
    """A tokenizer to be trained on pictures of some compositions."""

    noun = "tokenizer"
    weights = True
    world: World
    tokenizer: Autoencoder
    compositions: tuple[Composition, ...]

    @staticmethod
    def of(tokenizer: Autoencoder, world: World, split: Split) -> "TokenizerRun":
        return TokenizerRun(
            world, tokenizer, world.present if tokenizer.data == "all" else split.seen
        )

    @property
    def cost(self) -> float:
        return float(self.tokenizer.steps)

    @property
    def train(self) -> TrainConfig:
        t = self.tokenizer
        return TrainConfig(
            t.steps, t.batch, t.lr, warmup=min(100, t.steps // 4), betas=(0.9, 0.95), ema=0.99
        )

    def sample(self, count: int, rng: torch.Generator) -> Float[Tensor, "b c h w"]:
        """Pictures of its compositions, each as often as any other."""
        table = on_device(self.compositions, rng.device)
        index = table[torch.randint(len(table), (count,), generator=rng, device=rng.device)]
        return self.world.render(index, rng).images

    def net(self) -> AutoencoderNet:
        with initial_weights(self.tokenizer.seed):
            return AutoencoderNet(self.tokenizer, self.world.image_shape[0])

    def run(self, work: Work) -> None:
        tokenizer = self.tokenizer
        grid = tokenizer.latent_shape(self.world.image_shape)[1:]

        def batch(step: int) -> tuple[Tensor, Tensor]:
            rng = work.runtime.stream(tokenizer.seed, "tokenizer", step)
            images = self.sample(work.runtime.share(tokenizer.batch), rng)
            return 2 * images - 1, tokenizer.bottleneck.draw(len(images), grid, rng)

        train(
            self.net(), reconstruction, batch, self.train, work.folder, work.runtime,
            title=work.title, check=work.check,
        )  # fmt: skip

    def open(self, work: Work) -> Codec:
        net = load_weights(self.net(), work.folder, work.runtime)
        return codec_of(
            net, self.sample(STATISTICS, seeded("statistics", device=work.runtime.device))
        )


@lru_cache(maxsize=64)
def on_device(compositions: tuple[Composition, ...], device: torch.device) -> Int[Tensor, "n k"]:
    """Copied once: a copy in every update would wait for the GPU to finish the one before."""
    return torch.tensor(compositions, device=device)


def reconstruction(net: AutoencoderNet, images: Tensor, draw: Tensor) -> Float[Tensor, "b"]:
    answer, penalty = net(images, draw)
    return (answer.float() - images).square().mean((1, 2, 3)) + penalty


def tokenizer_runs(tokenizer: Tokenizer, world: World, split: Split) -> tuple[TokenizerRun, ...]:
    """The run that a tokenizer comes from; none where nothing is learned."""
    return (TokenizerRun.of(tokenizer, world, split),) if isinstance(tokenizer, Autoencoder) else ()


def open_codec(tokenizer: Tokenizer, world: World, split: Split, work: Work) -> Codec:
    """The tokenizer, ready for use."""
    for run in tokenizer_runs(tokenizer, world, split):
        return work.open(run)
    if not isinstance(tokenizer, Codec):
        name = type(tokenizer).__name__
        raise UsageError(
            f"tokenizer: {name} needs encode, decode and codes, or training of its own"
        )
    return tokenizer


@config("run/ceiling")
class CeilingRun(Task):
    """What a learned tokenizer leaves of real pictures of `probe_world`, `count` of every
    composition, by its probes; without a tokenizer, what they read in these pictures themselves."""

    noun = "tokenizer check"
    tokenizer: TokenizerRun | None
    probe_world: World
    probe_steps: int
    seen: tuple[Composition, ...]
    count: int
    version: int = field(default=CEILING_VERSION, metadata=ALWAYS)
    paper_probes: int = 0

    def parents(self) -> tuple[Task, ...]:
        probes = probe_runs(self.probe_world, self.probe_steps, self.paper_probes)
        return (*([self.tokenizer] if self.tokenizer else []), *probes)

    def run(self, work: Work) -> list[Row]:
        probes = open_probes(self.probe_world, self.probe_steps, work, self.paper_probes)
        codec = work.open(self.tokenizer) if self.tokenizer else Pixels(centred=False)
        split, device = Split(self.seen), work.runtime.device
        return ceiling(codec, probes, self.probe_world, split, self.count, device)


def ceiling(
    codec: Codec, probes: list[Probe], world: World, split: Split, count: int, device: torch.device
) -> list[Row]:
    """What is left of real pictures of every composition, by every probe; where a factor has true
    values, how far its slope reaches; for a codebook also how much of it is used, and which share
    of a composition's tokens are codes that no seen composition has: what a model cannot have
    learned to predict."""
    rows, codes, trends = [], {}, {}
    for c in world.present:
        index = torch.tensor([c] * count, device=device)
        images, values = world.render(index, seeded("ceiling", code(c), device=device))
        latents = codec.encode(images)
        again = codec.decode(latents)
        where = {"composition": code(c), "level": split.level(c)}
        error = float((again - images).square().mean())
        rows += [
            {"kind": "ceiling", "mse": error, **where, **score(p, again, c, world.space)}
            for p in probes
        ]
        if enough(values):
            trends[c] = trend(latents, values)
        if codec.codes is not None:
            codes[c] = torch.bincount(
                nearest(latents, codec.codes).flatten(), minlength=len(codec.codes)
            )
    return rows + slopes(trends, world.space, split) + (codebook(codes, split) if codes else [])


def slopes(trends: dict[Composition, Trend], space: FactorSpace, split: Split) -> list[Row]:
    """From every seen composition to each that differs from it in one factor, if that has true
    values."""
    rows = []
    for here, there in permutations(trends, 2):
        changed = [f for f, a, b in zip(space.factors, here, there, strict=True) if a != b]
        if split.level(here) == 0 and len(changed) == 1 and changed[0].dim:
            ends = {"composition": code(here), "to": code(there), "level": split.level(there)}
            measured = slope(trends[here], trends[there])._asdict()
            rows.append({"kind": "slope", "factor": changed[0].name, **ends, **measured})
    return rows


def codebook(counts: dict[Composition, Int[Tensor, "n"]], split: Split) -> list[Row]:
    """From how often each composition uses each code."""
    share = sum(counts.values()).double()
    share = share / share.sum()
    known = sum(n for c, n in counts.items() if split.level(c) == 0) > 0
    spread = float(torch.special.entr(share).sum().exp())
    rows: list[Row] = [
        {
            "kind": "codebook",
            "size": len(share),
            "used": float((share > 0).double().mean()),
            "perplexity": spread,
        }
    ]
    for c, n in counts.items():
        novel = float(n[~known].sum() / n.sum())
        rows.append(
            {"kind": "novel codes", "composition": code(c), "level": split.level(c), "novel": novel}
        )
    return rows
