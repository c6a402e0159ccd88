"""Tokenizers in use: each learned one is trained once, as a run of its own, and its ceiling is measured: what the probes say of
real pictures that were encoded and decoded. No model on top of a tokenizer can do better."""

from dataclasses import dataclass
from itertools import permutations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from recombine.config import UsageError
from recombine.measure.probes import Probe, score
from recombine.measure.slope import Trend, enough, slope, trend
from recombine.rng import seeded
from recombine.store import RunFolder
from recombine.studies.base import Row
from recombine.studies.lab import Lab
from recombine.tokenizers.autoencoder import Autoencoder, AutoencoderNet, codec_of
from recombine.tokenizers.base import Codec, Tokenizer, nearest
from recombine.train.fit import TrainConfig
from recombine.train.loop import train
from recombine.worlds.base import World
from recombine.worlds.factors import Composition, FactorSpace, Split, code

STATISTICS = 1024
"""Pictures from which the mean and variance of latents are taken."""


@dataclass(frozen=True)
class TokenizerRun:
    """What decides a trained tokenizer, and so its name."""

    world: World
    tokenizer: Autoencoder
    pictures: tuple[Composition, ...]
    """The compositions it is trained on."""

    @staticmethod
    def of(tokenizer: Autoencoder, world: World, split: Split) -> "TokenizerRun":
        return TokenizerRun(world, tokenizer, world.present if tokenizer.data == "all" else split.seen)

    @property
    def train(self) -> TrainConfig:
        t = self.tokenizer
        return TrainConfig(t.steps, t.batch, t.lr, warmup=min(100, t.steps // 4), betas=(0.9, 0.95), ema=0.99)

    def draw(self, count: int, rng: torch.Generator) -> Float[Tensor, "b c h w"]:
        """Pictures of its compositions, each as often as any other."""
        table = torch.tensor(self.pictures, device=rng.device)
        index = table[torch.randint(len(table), (count,), generator=rng, device=rng.device)]
        return self.world.render(index, rng).images


def folder_of(tokenizer: Autoencoder, world: World, split: Split, lab: Lab) -> RunFolder:
    return RunFolder(lab.out, TokenizerRun.of(tokenizer, world, split))


def open_codec(tokenizer: Tokenizer, world: World, split: Split, lab: Lab) -> Codec:
    """The tokenizer, ready for use: from its run folder if it is there, trained otherwise."""
    if not isinstance(tokenizer, Autoencoder):
        if not isinstance(tokenizer, Codec):
            raise UsageError(
                f"tokenizer: {type(tokenizer).__name__} needs encode, decode and codes, or training of its own"
            )
        return tokenizer
    run = TokenizerRun.of(tokenizer, world, split)
    pictures = lambda: run.draw(STATISTICS, seeded("statistics", device=lab.machine.device))  # noqa: E731
    return lab.once(run, lambda: codec_of(trained(run, lab), pictures()))


def trained(run: TokenizerRun, lab: Lab) -> AutoencoderNet:
    tokenizer, device, folder = run.tokenizer, lab.machine.device, RunFolder(lab.out, run)
    grid = tokenizer.latent_shape(run.world.image_shape)[1:]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(tokenizer.seed)
        net = AutoencoderNet(tokenizer, run.world.image_shape[0])

    def batch(step: int) -> tuple[Tensor, Tensor]:
        rng = seeded(tokenizer.seed, "tokenizer", step, device=device)
        images = run.draw(tokenizer.batch, rng)
        return 2 * images - 1, tokenizer.bottleneck.draw(tokenizer.batch, grid, rng)

    def loss(net: AutoencoderNet, images: Tensor, draw: Tensor) -> Float[Tensor, "b"]:
        answer, penalty = net(images, draw)
        return (answer.float() - images).square().mean((1, 2, 3)) + penalty

    lab.renew(folder)
    there = " (on disk)" if folder.done and not folder.hollow else ""
    lab.note(f"tokenizer {tokenizer.name}, {tokenizer.data}: run {folder.digest}{there}")
    return train(net, loss, batch, run.train, folder, lab.machine)


def ceiling(
    codec: Codec, probes: list[Probe], world: World, split: Split, count: int, device: torch.device
) -> list[Row]:
    """What is left of real pictures of every composition, by every probe; where a factor has true values, how far its slope
    reaches; for a codebook also how much of it is used, and which share of a composition's tokens are codes that no seen
    composition has: what a model cannot have learned to say."""
    rows, codes, trends = [], {}, {}
    for c in world.present:
        index = torch.tensor([c] * count, device=device)
        images, values = world.render(index, seeded("ceiling", code(c), device=device))
        latents = codec.encode(images)
        again = codec.decode(latents)
        where = {"composition": code(c), "level": split.level(c)}
        error = float((again - images).square().mean())
        rows += [{"kind": "ceiling", "mse": error, **where, **score(p, again, c, world.space)} for p in probes]
        if enough(values):
            trends[c] = trend(latents, values)
        if codec.codes is not None:
            codes[c] = torch.bincount(nearest(latents, codec.codes).flatten(), minlength=len(codec.codes))
    return rows + slopes(trends, world.space, split) + (codebook(codes, split) if codes else [])


def slopes(trends: dict[Composition, Trend], space: FactorSpace, split: Split) -> list[Row]:
    """From every seen composition to each that differs from it in one factor, if that has true values."""
    rows = []
    for here, there in permutations(trends, 2):
        changed = [f for f, a, b in zip(space.factors, here, there, strict=True) if a != b]
        if split.level(here) == 0 and len(changed) == 1 and changed[0].dim:
            where = {
                "factor": changed[0].name,
                "composition": code(here),
                "to": code(there),
                "level": split.level(there),
            }
            rows.append({"kind": "slope", **where, **slope(trends[here], trends[there])._asdict()})
    return rows


def codebook(counts: dict[Composition, Int[Tensor, "n"]], split: Split) -> list[Row]:
    """From how often each composition uses each code."""
    share = sum(counts.values()).double()
    share = share / share.sum()
    known = sum(n for c, n in counts.items() if split.level(c) == 0) > 0
    spread = float(torch.special.entr(share).sum().exp())
    whole = {"kind": "codebook", "size": len(share), "used": float((share > 0).double().mean()), "perplexity": spread}
    novel = lambda n: float(n[~known].sum() / n.sum())  # noqa: E731
    each = ({"composition": code(c), "level": split.level(c), "novel": novel(n)} for c, n in counts.items())
    return [whole, *({"kind": "novel codes", **e} for e in each)]
