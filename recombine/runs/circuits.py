"""A trained model opened: heads under matched conditions and cut, units attributed and cut."""

from collections.abc import Callable
from dataclasses import field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from recombine.config import ALWAYS, UsageError, config
from recombine.metrics.attention_heads import changed, heads_of, sensitivity, without_each
from recombine.metrics.capture import precisely
from recombine.metrics.circuits import (
    Loss,
    ablation,
    attribution,
    influence,
    overlaps,
    resting,
    units_of,
)
from recombine.pipeline.job import Task, Work
from recombine.rng import seeded
from recombine.runs.models import Model, ModelRun
from recombine.runs.probes import open_probes
from recombine.store import Row
from recombine.worlds.factors import Condition, code

VERSION = 1
"""Rises when what is measured on an opened model changes."""


@config("opening")
class Opening:
    """`pictures`: real ones, of each composition for its circuit; as many matched pairs a factor
    for the heads. `shares` of all units that make up a circuit, swept. `units`: how many are cut,
    to test attribution. `samples` of each composition are taken with each head cut."""

    pictures: int = 256
    shares: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1, 0.2)
    units: int = 256
    samples: int = 64

    def __post_init__(self) -> None:
        for name in ("pictures", "units", "samples"):
            if getattr(self, name) < 2:
                raise ValueError(f"{name} must be 2 or more, not {getattr(self, name)}")
        if not self.shares or not all(0 < s < 1 for s in self.shares):
            raise ValueError(f"shares {list(self.shares)}: one or more numbers between 0 and 1")


@config("run/circuits")
class CircuitRun(Task):
    """A trained model, and how it is opened; rows of kinds head, overlap and unit."""

    noun = "circuits"
    model: ModelRun
    how: Opening = field(default_factory=Opening)
    version: int = field(default=VERSION, metadata=ALWAYS)

    def parents(self) -> tuple[Task, ...]:
        """The model, and what it needs to be opened: its tokenizer and its probes."""
        return (self.model, *self.model.parents())

    def check(self) -> None:
        sizes = self.model.recipe.world.space.sizes
        if sum(n > 1 for n in sizes) < 2:
            raise UsageError(
                "circuits compares factors: at least two must vary; "
                f"this world's have {list(sizes)} values"
            )

    def run(self, work: Work) -> list[Row]:
        model = work.open(self.model)
        step = self.model.recipe.train.steps
        return [row | {"step": step} for row in open_model(model, self.how)]


def open_model(model: Model, how: Opening) -> list[Row]:
    """The rows of one model."""
    model.net.eval()
    with precisely():
        sensitivities = head_sensitivities(model, how.pictures)
        rows = overlap_rows(model, how) + unit_rows(model, how)
    return head_rows(model, how.samples, sensitivities) + rows


@torch.no_grad()
def loss_on(
    model: Model, index: Int[Tensor, "b k"], key: str
) -> tuple[Callable[[Condition], Tensor], Condition]:
    """The loss on real pictures of these compositions as a function of the condition alone, and
    their true condition. The pictures and what is hidden of them are named by `key`, so that all
    models are given the same."""
    r, device = model.recipe, model.device
    index = index.to(device)
    images, values = r.world.render(index, seeded("circuits", key, device=device))
    x = model.codec.encode(images)
    noise = r.objective.draw(x.shape, seeded("circuits", key, "draw", device=device))

    def loss(condition: Condition) -> Tensor:
        return r.objective.loss(model.net, x, condition, noise)

    return loss, r.world.describe(index, values)


def loss_of(model: Model, index: Int[Tensor, "b k"], key: str) -> Loss:
    """The same under the true condition: a function without arguments."""
    loss, condition = loss_on(model, index, key)
    return lambda: loss(condition)


def in_turn(model: Model, count: int) -> Int[Tensor, "b k"]:
    """`count` compositions, all of them in turn."""
    every = torch.tensor(model.recipe.world.space.compositions, device=model.device)
    return every[torch.arange(count, device=every.device) % len(every)]


def head_sensitivities(model: Model, count: int) -> dict[str, Float[Tensor, "layers heads"]]:
    """Of every head to every factor, over `count` matched pairs each. One condition of a pair fits
    the picture; as pictures of all compositions are shown, each value fits equally often."""
    world, heads, index = model.recipe.world, heads_of(model.net), in_turn(model, count)
    loss, _ = loss_on(model, index, "pairs")
    each = {}
    for i, factor in enumerate(world.space.factors):
        if len(factor.values) < 2:
            continue
        pair = (index, changed(index, i, len(factor.values)))
        one, other = (world.describe(x, world.canonical(x)) for x in pair)
        each[factor.name] = sensitivity(
            model.net, heads, lambda c=one: loss(c), lambda c=other: loss(c)
        )
    return each


def head_rows(
    model: Model, samples: int, sensitivities: dict[str, Float[Tensor, "layers heads"]]
) -> list[Row]:
    """Each head's sensitivities, and each factor's accuracy before and after it is cut."""
    names = [f.name for f in model.recipe.world.space.factors]
    before = accuracies(model, samples)
    after = without_each(model.net, heads_of(model.net), lambda: accuracies(model, samples))
    rows: list[Row] = []
    for name, each in sensitivities.items():
        k = names.index(name)
        for layer, values in enumerate(each.tolist()):
            for head, value in enumerate(values):
                about = {"kind": "head", "layer": layer, "head": head, "factor": name}
                effect = {"before": float(before[k]), "after": float(after[layer, head, k])}
                rows.append(about | {"sensitivity": short(value)} | effect)
    return rows


@torch.no_grad()
def accuracies(model: Model, samples: int) -> Float[Tensor, "k"]:
    """How often samples of all compositions show each factor as prompted for, by the closed-set CNN
    probe (an open-set probe rejects all factors at once); the same randomness each time."""
    r, device = model.recipe, model.device
    prompted = in_turn(model, samples * len(r.world.space.compositions))
    condition = r.world.describe(prompted, r.world.canonical(prompted))
    rng = seeded(r.seed, "cut", device=device)
    bfloat16 = r.train.precision == "bfloat16"
    with torch.autocast(device.type, torch.bfloat16, enabled=bfloat16):
        latents = r.objective.sample(model.net, r.shape, condition, rng, r.evaluation.decoding)
    probes = open_probes(r.probe_world, r.evaluation.probe_steps, model.work)
    closed = next((p for p in probes if p.name == "cnn"), probes[0])
    return (closed(model.codec.decode(latents.float())) == prompted).float().mean(0).cpu()


def overlap_rows(model: Model, how: Opening) -> list[Row]:
    """The overlap of every two compositions' circuits, with units cut to zero and to their mean.
    Each circuit is estimated twice, from two halves of the composition's pictures."""
    compositions, places = model.recipe.world.space.compositions, units_of(model.net)
    half = how.pictures // 2
    losses = [
        loss_of(model, torch.tensor([c] * half), f"{code(c)}.{i}")
        for i in (0, 1)
        for c in compositions
    ]
    means = resting(model.net, places, losses)
    influences = {}
    for name, rest in (("jaccard", None), ("jaccard_mean", means)):
        each = [influence(attribution(model.net, places, loss, rest)) for loss in losses]
        influences[name] = torch.stack(each).unflatten(0, (2, -1))
    return [row for share in how.shares for row in rows_at_share(model, influences, share)]


def rows_at_share(
    model: Model, influences: dict[str, Float[Tensor, "2 n units"]], share: float
) -> list[Row]:
    """One row for every pair of compositions, each with itself included."""
    compositions, level = model.recipe.world.space.compositions, model.recipe.split.level
    tables = {name: overlaps(each, share).tolist() for name, each in influences.items()}
    rows: list[Row] = []
    for i, a in enumerate(compositions):
        for j, b in enumerate(compositions[: i + 1]):
            about = {"kind": "overlap", "first": code(a), "second": code(b), "share": share}
            levels = {"first_level": level(a), "second_level": level(b)}
            shared = {"shared": sum(x == y for x, y in zip(a, b, strict=True))}
            values = {name: short(table[i][j]) for name, table in tables.items()}
            rows.append(about | levels | shared | values)
    return rows


def unit_rows(model: Model, how: Opening) -> list[Row]:
    """Random units, their influence over pictures of all compositions: by attribution and by
    cutting them."""
    places = units_of(model.net)
    loss = loss_of(model, in_turn(model, how.pictures), "units")
    means = resting(model.net, places, [loss])
    every = [(layer, unit) for layer, mean in enumerate(means) for unit in range(len(mean))]
    order = torch.randperm(len(every), generator=seeded("circuits", "cut units"))
    pick = order[: how.units].sort().values
    some = [every[i] for i in pick]
    at = [(places[layer], unit) for layer, unit in some]
    own_means = [means[layer][unit] for layer, unit in some]
    effects = {}
    for name, rest, own in (("", None, None), ("_mean", means, own_means)):
        guess = influence(attribution(model.net, places, loss, rest))[pick.to(model.device)]
        effects[f"attribution{name}"] = guess.tolist()
        effects[f"ablation{name}"] = influence(ablation(model.net, loss, at, own)).tolist()
    return [
        {"kind": "unit", "layer": layer, "unit": unit}
        | {name: short(values[i]) for name, values in effects.items()}
        for i, (layer, unit) in enumerate(some)
    ]


def short(x: float) -> float:
    """Five digits are enough for a row."""
    return float(f"{x:.5g}")
