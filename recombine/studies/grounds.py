"""What runs stand on, probes and a learned tokenizer, made when they are needed; and what these are worth on real pictures,
measured once and kept."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from recombine.measure.composing import judges, probe_configs, train_small, worth
from recombine.measure.probes import Probe, ProbeConfig
from recombine.store import RunFolder
from recombine.studies.base import Row
from recombine.studies.lab import Lab, Measurement
from recombine.studies.recipe import Recipe
from recombine.studies.tokens import TokenizerRun, ceiling, folder_of, open_codec
from recombine.tokenizers.autoencoder import Autoencoder
from recombine.worlds.factors import Composition

EXAM_VERSION, CEILING_VERSION = 2, 2
"""Rise when what is measured of probes or of tokenizers changes: these rows are kept. Exams: 2, with what lies between
compositions. Ceilings: 2, with slopes."""


@dataclass(frozen=True)
class ProbeExam:
    """Real and spoiled pictures for the probes of a world: `count` of every composition, and as many spoiled ones in all."""

    probes: tuple[ProbeConfig, ...]
    seen: tuple[Composition, ...]
    count: int
    version: int = field(default=EXAM_VERSION, metadata={"unnamed": 1})


@dataclass(frozen=True)
class Ceiling:
    """Real pictures for a tokenizer: `count` of every composition, through it and before the probes."""

    tokenizer: TokenizerRun
    probes: tuple[ProbeConfig, ...]
    seen: tuple[Composition, ...]
    count: int
    version: int = field(default=CEILING_VERSION, metadata={"unnamed": 1})


def make_probes(recipe: Recipe, lab: Lab) -> list[Probe]:
    """As they judge anybody's model (measure/composing.py). The first one counts."""
    configs = probe_configs(recipe.judged_in, recipe.evaluation.probe_steps)

    def make() -> list[Probe]:
        for config in configs:
            lab.renew(RunFolder(lab.out, config))
        return judges(recipe.judged_in, recipe.evaluation.probe_steps, lab.out, lab.machine)

    return lab.once(configs, make)


def needed(recipe: Recipe, lab: Lab) -> Iterator[tuple[RunFolder, Callable[[], Any]]]:
    """The probes and the tokenizer, each with how it is made."""
    for config in probe_configs(recipe.judged_in, recipe.evaluation.probe_steps):
        yield RunFolder(lab.out, config), partial(train_small, config, lab.out, lab.machine)
    tokenizer, where = recipe.tokenizer, (recipe.coded, recipe.split, lab)
    if isinstance(tokenizer, Autoencoder):
        yield folder_of(tokenizer, *where), partial(open_codec, tokenizer, *where)


def lay(recipes: list[Recipe], lab: Lab) -> None:
    """Make the probes and tokenizers of runs that will be trained or opened, before anything is believed that stands on them:
    those that are trained again are not the same. Also for all processes of a run, since one of them alone measures."""
    lab.machine.meet()  # all have seen what is missing
    lab.prepare(job for recipe in recipes for job in needed(recipe, lab))
    for recipe in recipes:
        open_codec(recipe.tokenizer, recipe.coded, recipe.split, lab)
        make_probes(recipe, lab)


def exam(recipe: Recipe, lab: Lab) -> Measurement:
    """What its probes are worth."""
    world, split = recipe.judged_in, recipe.split
    probes = probe_configs(world, recipe.evaluation.probe_steps)
    on, known = tuple(RunFolder(lab.out, p) for p in probes), (world, split, many(lab), lab.machine.device)
    ready = partial(make_probes, recipe, lab)
    return Measurement(ProbeExam(probes, split.seen, many(lab)), on, ready, lambda made: worth(made, *known))


def ceilings(recipes: dict[tuple[str, int], Recipe], lab: Lab) -> Iterator[Row]:
    """What each recipe's tokenizer leaves of real pictures, by its probes: no generator behind it can be better. Nothing where
    pictures are not encoded. The recipes are named by variant and seed."""
    limits = {name: limit(recipe, lab) for name, recipe in recipes.items() if isinstance(recipe.tokenizer, Autoencoder)}
    lab.prepare(job for name, what in limits.items() if lab.unmeasured(what) for job in needed(recipes[name], lab))
    for (variant, seed), what in limits.items():
        yield from (r | {"variant": variant, "seed": seed} for r in lab.measured(what))


def limit(recipe: Recipe, lab: Lab) -> Measurement:
    """What a learned tokenizer is worth, on pictures of the world that judges."""
    world, split, judged_in = recipe.coded, recipe.split, recipe.judged_in
    probes = probe_configs(judged_in, recipe.evaluation.probe_steps)
    made, known = TokenizerRun.of(recipe.tokenizer, world, split), (judged_in, split, many(lab), lab.machine.device)
    on = tuple(RunFolder(lab.out, config) for config in (made, *probes))
    ready = lambda: (open_codec(recipe.tokenizer, world, split, lab), make_probes(recipe, lab))  # noqa: E731
    return Measurement(Ceiling(made, probes, split.seen, many(lab)), on, ready, lambda both: ceiling(*both, *known))


def many(lab: Lab) -> int:
    """Real pictures of each composition."""
    return 32 if lab.scale == "smoke" else 1024
