"""Probes for one's own pictures, as runs: trained on four fifths of them, validated on the rest and
on whole combinations that were left out. What chooses a probe's settings never validates it."""

from collections.abc import Sequence
from dataclasses import field
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from recombine.config import ALWAYS, UsageError, config
from recombine.metrics.corrupted import slightly_degraded, spoiled
from recombine.metrics.factor_probe import CHANGES, NEVER, FactorNets, FactorProbe, changed, fitted
from recombine.metrics.intervals import wilson
from recombine.metrics.probes import Probe
from recombine.pipeline.job import Task, Work
from recombine.rng import initial_weights, seeded
from recombine.store import Row
from recombine.train.loop import load_weights
from recombine.worlds.factor_table import index_in_composition
from recombine.worlds.factors import Composition, Split, code
from recombine.worlds.folder import Folder

VERSION = 3
"""Rises when a change to the code changes a probe's answers. 2: settings chosen on pictures and
combinations that do not validate it; at most EACH pictures of a combination. 3: one that rejects
pictures it was trained on rejects nothing."""
EACH = 400
"""Pictures of each combination that a probe learns from, or is validated on, at most."""
SHARE, MOST = 6, 6
"""One combination in so many is left out, at most so many."""
READABLE = 0.95
"""The accuracy on changed pictures below which a change destroys what is to be read, as zooming
does with size."""
REFUSES = 0.05
"""A probe that rejects a larger share of real pictures, of left-out combinations or of those it was
trained on, rejects nothing."""


@config("run/factor-probe")
class FactorProbeRun(Task):
    """A probe to be trained on the pictures of a folder. `steps`: updates of each network."""

    noun = "probe"
    weights = True
    world: Folder
    steps: int = 200
    batch: int = 48
    lr: float = 4e-3
    seed: int = 0
    version: int = field(default=VERSION, metadata=ALWAYS)

    def check(self) -> None:
        if not len(self.world.part_of("held-out").loaded.factors):
            raise UsageError(
                f"{self.world.path}: a probe needs three pictures or more of some composition, so "
                "that it can be checked on pictures it was not trained on"
            )

    def net(self) -> FactorNets:
        with initial_weights(self.seed):
            return FactorNets(self.world.space)

    def run(self, work: Work) -> list[Row]:
        data = Pictures.of(self.world.part_of("train"), work.runtime.device)
        trainer = Trainer(self, work)
        left = left_out(self.world.present, self.world.space.sizes)
        total = (len(CHANGES) + 1) * self.steps
        with work.runtime.progress(work.title or self.noun, total) as trainer.bar:
            choice, rows = trainer.choose(data, left)
            net = trainer.train(self.net(), data, choice)
        rejects = trainer.rejects and refused(net, data.images) <= REFUSES
        if not rejects:
            net.threshold.fill_(NEVER)
        if work.runtime.rank == 0:
            work.folder.save_model(dict(net.named_parameters()), self.steps)
        return [row | {"rejects": rejects} for row in rows]

    def open(self, work: Work) -> FactorProbe:
        return FactorProbe("open-set", load_weights(self.net(), work.folder, work.runtime).eval())


class Pictures:
    """Pictures as a probe sees them, with their factors, on a device."""

    def __init__(self, images: Float[Tensor, "n 3 h w"], factors: Int[Tensor, "n k"]):
        self.images, self.factors = images, factors
        self.kinds, self.kind = factors.unique(dim=0, return_inverse=True)
        self.order = self.kind.argsort(stable=True)
        self.count = self.kind.bincount(minlength=len(self.kinds))
        self.start = self.count.cumsum(0) - self.count

    @staticmethod
    def of(folder: Folder, device: torch.device) -> "Pictures":
        """The pictures of a folder, at most EACH of a combination, evenly spaced."""
        loaded = folder.loaded
        number, count = index_in_composition(loaded.factors)
        step = count.clamp(max=EACH)  # of a combination with more, those that begin a new share
        first = number * step // count != (number - 1) * step // count
        rows = first.nonzero()[:, 0]
        images = [fitted(loaded.images(some)) for some in rows.split(1024)]
        return Pictures(torch.cat(images).to(device), loaded.factors[rows].to(device))

    def changed(self, change: str) -> "Pictures":
        """The same with their other properties changed at random."""
        rng = seeded("changed", device=self.images.device)
        return Pictures(changed(self.images, change, rng), self.factors)

    def halves(self) -> tuple["Pictures", "Pictures"]:
        """Four fifths and one fifth of each combination; of two to four pictures, one is the
        fifth."""
        number = torch.empty_like(self.kind)
        number[self.order] = torch.arange(len(self.kind), device=self.kind.device)
        number, count = number - self.start[self.kind], self.count[self.kind]
        held = (number % 5 == 4) | ((count < 5) & (count > 1) & (number == count - 1))
        return self.where(~held), self.where(held)

    def among(self, kinds: Sequence[Composition]) -> Bool[Tensor, "n"]:
        table = torch.tensor(kinds, device=self.factors.device).reshape(-1, self.factors.shape[1])
        return (self.factors[:, None] == table).all(2).any(1)

    def where(self, mask: Bool[Tensor, "n"]) -> "Pictures":
        return Pictures(self.images[mask], self.factors[mask])

    def draw(self, count: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """Every combination as often as any other."""
        kind = torch.randint(len(self.kinds), (count,), generator=rng, device=rng.device)
        place = torch.rand(count, generator=rng, device=rng.device) * self.count[kind]
        rows = self.order[self.start[kind] + place.long()]
        return self.images[rows], self.factors[rows]


class Trainer:
    """Trains the networks of a probe, and finds out which changes help each factor."""

    def __init__(self, task: FactorProbeRun, work: Work):
        self.task, self.work, self.device = task, work, work.runtime.device
        self.factors, self.rejects = len(task.world.space.factors), True
        self.done, self.bar = 0, lambda step, text: None

    def choose(self, data: Pictures, left: Sequence[Composition]) -> tuple[list[str], list[Row]]:
        """The change for every factor: of those after which it can still be read the one with the
        best accuracy on left-out combinations, then on pictures set aside; of equals the largest.
        Every second left-out combination takes no part in the choice: rows say how well each
        factor is read on those."""
        inside, aside = data.where(~data.among(left)).halves()
        deciding = data.where(data.among(left[::2])) if left else aside
        fresh = data.where(data.among(left[1::2] or left))
        tried, unread = {}, {}
        for change in CHANGES:
            with_reject = change == CHANGES[0]
            net = self.train(self.net(), inside, [change] * self.factors, with_reject)
            every, shown = range(self.factors), aside.changed(change)
            tried[change] = [
                (right(net, k, shown) >= READABLE, right(net, k, deciding), right(net, k, aside))
                for k in every
            ]
            unread[change] = [right(net, k, fresh) for k in every]
            if with_reject:
                self.rejects = refused(net, deciding.images) <= REFUSES
        best = [max(CHANGES, key=lambda c: _rank(*tried[c][k])) for k in range(self.factors)]
        names = [f.name for f in self.task.world.space.factors]
        rows = [
            {"kind": "left out", "factor": name, "change": c, "n": len(fresh.factors),
             "left_out": float(unread[c][k]) if left else None, "fresh": len(left) > 1}
            for k, (name, c) in enumerate(zip(names, best, strict=True))
        ]  # fmt: skip
        return best, rows

    def net(self) -> FactorNets:
        return self.task.net()

    def train(
        self, net: FactorNets, data: Pictures, choice: Sequence[str], with_reject: bool = True
    ) -> FactorNets:
        """In place, all networks side by side, each on pictures changed in its own way."""
        task, net = self.task, net.to(self.device).train()
        adamw = torch.optim.AdamW(net.nets.parameters(), task.lr, weight_decay=0.05)
        plan = torch.optim.lr_scheduler.OneCycleLR(adamw, task.lr, total_steps=task.steps + 1)
        for step in range(task.steps):
            if self.work.check:
                self.work.check()
            rng = seeded(task.seed, "factor probe", step, device=self.device)
            images, index = data.draw(task.batch, rng)
            seen = {c: changed(images, c, rng) for c in dict.fromkeys((*choice, CHANGES[0]))}
            shown = {c: slightly_degraded(some, some.roll(1, 0), rng) for c, some in seen.items()}
            losses = [
                F.cross_entropy(net.one(k, shown[c]), index[:, k]) for k, c in enumerate(choice)
            ]
            if with_reject:
                losses.append(self.reject_loss(net, seen[CHANGES[0]] if step % 2 else images, rng))
            adamw.zero_grad()
            sum(losses).backward()
            adamw.step()
            plan.step()
            self.done += 1
            self.bar(
                self.done, f"network {1 + (self.done - 1) // task.steps} of {len(CHANGES) + 1}"
            )
        return net.eval()

    def reject_loss(self, net: FactorNets, images: Tensor, rng: torch.Generator) -> Tensor:
        """One half good, the other corrupted with the help of another combination."""
        half = len(images) // 2
        other = images.roll(half, 0)
        good, bad = slightly_degraded(images, other, rng)[:half], spoiled(images, other, rng)[half:]
        is_bad = torch.arange(2 * half, device=self.device) >= half
        logit = net.one(self.factors, torch.cat((good, bad)))[:, 0]
        return F.binary_cross_entropy_with_logits(logit, is_bad.float())


def _rank(readable: Tensor, unknown: Tensor, known: Tensor) -> tuple[bool, float, float]:
    return bool(readable), round(float(unknown), 2), round(float(known), 2)


def refused(net: FactorNets, images: Float[Tensor, "n 3 h w"]) -> float:
    """The share of real pictures that are rejected."""
    if not len(images):
        return 0.0
    return float((FactorProbe("open-set", net)(images) < 0).all(1).float().mean())


@torch.no_grad()
def right(net: FactorNets, k: int, data: Pictures) -> Float[Tensor, ""]:
    """The share of pictures whose value of one factor is read."""
    if not len(data.images):
        return torch.tensor(0.0)
    answers = torch.cat([net.one(k, some).argmax(-1) for some in data.images.split(1024)])
    return (answers == data.factors[:, k]).float().mean()


def left_out(present: Sequence[Composition], sizes: Sequence[int]) -> list[Composition]:
    """Combinations without which every value of every factor is still there; none if there are no
    such."""
    order = torch.randperm(len(present), generator=seeded("left out")).tolist()
    kept, out = list(present), []
    for i in order:
        if len(out) == min(MOST, max(1, len(present) // SHARE)):
            break
        rest = [c for c in kept if c != present[i]]
        if all(len({c[k] for c in rest}) == size for k, size in enumerate(sizes)):
            kept, out = rest, [*out, present[i]]
    return out


def held_out_accuracy(probe: Probe, folder: Folder, split: Split, device: Any) -> list[Row]:
    """Rows of kind probe: what it reads on pictures it was not trained on, each once."""
    if not len(folder.part_of("held-out").loaded.factors):
        return []
    data, space = Pictures.of(folder.part_of("held-out"), device), folder.space
    correct = torch.cat([probe(some) for some in data.images.split(1024)]) == data.factors
    rows = []
    for kind, c in enumerate(map(tuple, data.kinds.tolist())):
        mine = correct[data.kind == kind]
        successes, n = int(mine.all(1).sum()), len(mine)
        low, high = wilson(successes, n)
        each = {f.name: float(mine[:, k].float().mean()) for k, f in enumerate(space.factors)}
        about = {"kind": "probe", "composition": code(c), "level": split.level(c)}
        rows.append(
            about
            | {
                "probe": probe.name,
                "n": n,
                "joint": successes / n,
                "low": low,
                "high": high,
                **each,
            }
        )
    return rows
