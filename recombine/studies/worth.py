"""What a run relies on, probes and a learned tokenizer, made when it is needed; and what these are worth on real pictures,
measured once and kept."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from recombine.measure.composing import judges, probe_configs, train_small, worth
from recombine.measure.probes import Probe, ProbeConfig
from recombine.store import RunFolder
from recombine.studies.base import Row
from recombine.studies.lab import Lab
from recombine.studies.recipe import Recipe
from recombine.studies.tokens import TokenizerRun, ceiling, folder_of, open_codec
from recombine.tokenizers.autoencoder import Autoencoder
from recombine.worlds.factors import Composition


@dataclass(frozen=True)
class Exam:
    """Real and spoiled pictures for the probes of a world: `count` of every composition, and as many spoiled ones in all."""

    probes: tuple[ProbeConfig, ...]
    seen: tuple[Composition, ...]
    count: int


@dataclass(frozen=True)
class Ceiling:
    """Real pictures for a tokenizer: `count` of every composition, through it and before the probes."""

    tokenizer: TokenizerRun
    probes: tuple[ProbeConfig, ...]
    seen: tuple[Composition, ...]
    count: int


def make_probes(recipe: Recipe, lab: Lab) -> list[Probe]:
    """As they judge anybody's model (measure/composing.py). The first one counts."""
    configs = probe_configs(recipe.world, recipe.evaluation.probe_steps)

    def make() -> list[Probe]:
        for config in configs:
            lab.renew(RunFolder(lab.out, config))
        return judges(recipe.world, recipe.evaluation.probe_steps, lab.out, lab.machine)

    return lab.once(configs, make)


def needed(recipe: Recipe, lab: Lab) -> Iterator[tuple[RunFolder, Callable[[], Any]]]:
    """The probes and the tokenizer, each with how it is made."""
    for config in probe_configs(recipe.world, recipe.evaluation.probe_steps):
        yield RunFolder(lab.out, config), partial(train_small, config, lab.out, lab.machine)
    tokenizer, where = recipe.tokenizer, (recipe.world, recipe.split, lab)
    if isinstance(tokenizer, Autoencoder):
        yield folder_of(tokenizer, *where), partial(open_codec, tokenizer, *where)


def exam(recipe: Recipe, lab: Lab) -> list[Row]:
    """What its probes are worth."""
    world, split, probes = recipe.world, recipe.split, probe_configs(recipe.world, recipe.evaluation.probe_steps)
    known = (world, split, many(lab), lab.machine.device)
    on, ready = RunFolder(lab.out, probes[0]), partial(make_probes, recipe, lab)
    return lab.measured(Exam(probes, split.seen, many(lab)), on, ready, lambda made: worth(made, *known))


def ceilings(recipes: dict[tuple[str, int], Recipe], lab: Lab) -> Iterator[Row]:
    """What each recipe's tokenizer leaves of real pictures, by its probes: no generator behind it can be better. Nothing where
    pictures are not encoded. The recipes are named by variant and seed."""
    plans = {name: limit(recipe, lab) for name, recipe in recipes.items() if isinstance(recipe.tokenizer, Autoencoder)}
    lacking = [n for n, (config, on, *_) in plans.items() if lab.lacks(RunFolder(lab.out, config, on.weights))]
    lab.prepare(job for name in lacking for job in needed(recipes[name], lab))
    for (variant, seed), plan in plans.items():
        yield from (r | {"variant": variant, "seed": seed} for r in lab.measured(*plan))


def limit(recipe: Recipe, lab: Lab) -> tuple[Ceiling, RunFolder, Callable[[], Any], Callable[[Any], list[Row]]]:
    """How a tokenizer's ceiling is measured."""
    world, split, tokenizer = recipe.world, recipe.split, recipe.tokenizer
    made = TokenizerRun.of(tokenizer, world, split)
    config = Ceiling(made, probe_configs(world, recipe.evaluation.probe_steps), split.seen, many(lab))
    make = lambda codec: ceiling(codec, make_probes(recipe, lab), world, split, many(lab), lab.machine.device)  # noqa: E731
    return config, RunFolder(lab.out, made), lambda: open_codec(tokenizer, world, split, lab), make


def many(lab: Lab) -> int:
    """Real pictures of each composition."""
    return 64 if lab.scale == "smoke" else 1024
