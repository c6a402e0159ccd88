"""What the study `circuits` measures on one trained model: heads under matched conditions and cut, units attributed and cut."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from recombine.evaluate.capture import precisely
from recombine.evaluate.circuits import ablation, attribution, influence, overlaps, resting, units_of
from recombine.evaluate.attention_heads import changed, heads_of, sensitivity, without_each
from recombine.rng import seeded
from recombine.studies.base import Row
from recombine.studies.circuit_rows import JUDGED_SHARE
from recombine.studies.runs import Run
from recombine.worlds.factors import Condition, code


@dataclass(frozen=True)
class Opening:
    """`pictures`: real ones, of each composition for its circuit; as many matched pairs a factor for the heads. `shares` of all
    units that make up a circuit, swept. `units`: how many are truly cut, to test attribution. `samples` of each composition
    are drawn with each head cut."""

    pictures: int = 256
    shares: tuple[float, ...] = (0.01, 0.02, JUDGED_SHARE, 0.1, 0.2)
    units: int = 256
    samples: int = 64

    def __post_init__(self) -> None:
        for name in ("pictures", "units", "samples"):
            if getattr(self, name) < 2:
                raise ValueError(f"{name} must be 2 or more, not {getattr(self, name)}")
        if not self.shares or not all(0 < s < 1 for s in self.shares):
            raise ValueError(f"shares {list(self.shares)}: one or more numbers between 0 and 1")


def opened(run: Run, how: Opening) -> list[Row]:
    """The rows of one model."""
    run.net.eval()
    with precisely():
        turned = sensitivities(run, how.pictures)
        rows = circuit_rows(run, how) + unit_rows(run, how)
    return head_rows(run, how.samples, turned) + rows


@torch.no_grad()
def shown(run: Run, index: Int[Tensor, "b k"], key: str) -> tuple[Callable[[Condition], Tensor], Condition]:
    """The loss on real pictures of these compositions as a function of the condition alone, and their true condition. The
    pictures and what is hidden of them are named by `key`, so that all models are shown the same."""
    r, device = run.recipe, run.runtime.device
    images, values = r.world.render(index.to(device), seeded("circuits", key, device=device))
    x = run.codec.encode(images)
    draw = r.objective.draw(x.shape, seeded("circuits", key, "draw", device=device))
    return lambda condition: r.objective.loss(run.net, x, condition, draw), r.world.describe(index.to(device), values)


def dealt(run: Run, count: int) -> Int[Tensor, "b k"]:
    """`count` compositions, all of them in turn."""
    every = torch.tensor(run.recipe.world.space.compositions, device=run.runtime.device)
    return every[torch.arange(count, device=every.device) % len(every)]


def sensitivities(run: Run, count: int) -> dict[str, Float[Tensor, "layers heads"]]:
    """Of every head to every factor, over `count` matched pairs each. One condition of a pair fits the picture; as pictures of
    all compositions are shown, each value is the fitting one equally often."""
    world, heads, index = run.recipe.world, heads_of(run.net), dealt(run, count)
    loss, _ = shown(run, index, "pairs")
    found = {}
    for i, factor in enumerate(world.space.factors):
        if len(factor.values) > 1:
            both = (index, changed(index, i, len(factor.values)))
            one, other = (world.describe(x, world.canonical(x)) for x in both)
            found[factor.name] = sensitivity(run.net, heads, lambda c=one: loss(c), lambda c=other: loss(c))
    return found


def head_rows(run: Run, samples: int, turned: dict[str, Float[Tensor, "layers heads"]]) -> list[Row]:
    """Each head's sensitivities, and each factor's accuracy before and after it is cut."""
    names = [f.name for f in run.recipe.world.space.factors]
    score = lambda: accuracies(run, samples)  # noqa: E731
    before, after = score(), without_each(run.net, heads_of(run.net), score)
    turned = {name: s.tolist() for name, s in turned.items()}
    return [
        {"kind": "head", "layer": layer, "head": head, "factor": name, "sensitivity": short(turned[name][layer][head])}
        | {"before": float(before[names.index(name)]), "after": float(after[layer, head, names.index(name)])}
        for name in turned
        for layer in range(after.shape[0])
        for head in range(after.shape[1])
    ]


@torch.no_grad()
def accuracies(run: Run, samples: int) -> Float[Tensor, "k"]:
    """How often samples of all compositions show each factor as asked for, by the classifier made to choose (to
    refuse is to refuse all factors); the same randomness each time."""
    r, device = run.recipe, run.runtime.device
    wanted = dealt(run, samples * len(r.world.space.compositions))
    condition, rng = r.world.describe(wanted, r.world.canonical(wanted)), seeded(r.seed, "cut", device=device)
    with torch.autocast(device.type, torch.bfloat16, enabled=r.train.precision == "bfloat16"):
        latents = r.objective.sample(run.net, r.shape, condition, rng, r.evaluation.decoding)
    chooser = next((p for p in run.probes if p.name == "cnn"), run.probes[0])
    return (chooser(run.codec.decode(latents.float())) == wanted).float().mean(0).cpu()


def circuit_rows(run: Run, how: Opening) -> list[Row]:
    """The overlap of every two compositions' circuits, with units cut to zero and to their mean."""
    compositions, layout = run.recipe.world.space.compositions, units_of(run.net)
    batches = [
        shown(run, torch.tensor([c] * (how.pictures // 2)), f"{code(c)}.{i}") for i in (0, 1) for c in compositions
    ]
    losses = [lambda loss=loss, c=c: loss(c) for loss, c in batches]
    still, found = resting(run.net, layout, losses), {}
    for name, rest in (("jaccard", None), ("jaccard_mean", still)):
        each = [influence(attribution(run.net, layout, loss, rest)) for loss in losses]
        found[name] = torch.stack(each).unflatten(0, (2, -1))
    return [r for share in how.shares for r in overlap_rows(run, found, share)]


def overlap_rows(run: Run, found: dict[str, Float[Tensor, "2 n units"]], share: float) -> list[Row]:
    compositions, level = run.recipe.world.space.compositions, run.recipe.split.level
    tables = {name: overlaps(each, share).tolist() for name, each in found.items()}
    return [
        {"kind": "overlap", "first": code(a), "second": code(b), "first_level": level(a), "second_level": level(b)}
        | {"shared": sum(x == y for x, y in zip(a, b, strict=True)), "share": share}
        | {name: short(table[i][j]) for name, table in tables.items()}
        for i, a in enumerate(compositions)
        for j, b in enumerate(compositions[: i + 1])
    ]


def unit_rows(run: Run, how: Opening) -> list[Row]:
    """Random units, their influence over pictures of all compositions by attribution and by truly cutting them."""
    layout = units_of(run.net)
    loss, condition = shown(run, dealt(run, how.pictures), "units")
    still = resting(run.net, layout, [lambda: loss(condition)])
    every = [(layer, unit) for layer, rest in enumerate(still) for unit in range(len(rest))]
    pick = torch.randperm(len(every), generator=seeded("circuits", "cut units"))[: how.units].sort().values
    some = [every[i] for i in pick]
    at, found = [(layout[layer], unit) for layer, unit in some], {}
    means = [still[layer][unit] for layer, unit in some]
    for name, all_rest, rest in (("", None, None), ("_mean", still, means)):
        guess = influence(attribution(run.net, layout, lambda: loss(condition), all_rest))[pick.to(run.runtime.device)]
        found[f"attribution{name}"] = guess.tolist()
        found[f"ablation{name}"] = influence(ablation(run.net, lambda: loss(condition), at, rest)).tolist()
    return [
        {"kind": "unit", "layer": layer, "unit": unit} | {name: short(x[i]) for name, x in found.items()}
        for i, (layer, unit) in enumerate(some)
    ]


def short(x: float) -> float:
    """Five digits are enough for a row."""
    return float(f"{x:.5g}")
