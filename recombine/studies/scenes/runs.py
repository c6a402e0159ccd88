"""One scene recipe carried out: its pictures, its training, what it draws at locations, how local it is; and many of them.

Everything is measured while the run is in memory, so a study that asks another question of the same runs needs no weights."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from recombine.evaluate.counting import curve, match, nearness
from recombine.evaluate.locality import locality
from recombine.evaluate.locality_map import locality_map
from recombine.objectives.diffusion import Draw
from recombine.objectives.process import Denoiser, noised
from recombine.rng import seeded
from recombine.store import RunFolder
from recombine.studies.base import Row, Rows
from recombine.studies.lab import Lab
from recombine.studies.scenes.judge import Judge, doubt, short
from recombine.studies.scenes.pictures import crossed, write_heat
from recombine.studies.scenes.recipe import SceneRecipe
from recombine.studies.sheets import write_sheet
from recombine.train.loop import train
from recombine.worlds.layout import Layout
from recombine.worlds.scenes.scenes import Scenes

AT_ONCE = 4096
"""Training pictures that are placed and drawn together."""
ROOM = {"cuda": 512, "cpu": 64}
"""Pictures that are sampled together."""
COLUMNS = 4
"""Samples of each number of locations on a sheet."""
NEAR = (0.1, 0.13, 0.16, 0.2, 0.25, 0.32)
"""Between which distances to the nearest other location it is counted how many are located, as shares of the picture."""


class Pool(NamedTuple):
    """Pictures, and where all their objects are, on the device."""

    images: UInt8[Tensor, "n 3 h w"]
    layout: Layout


@lru_cache(maxsize=1)
def drawn(world: Scenes, count: int, seed: int, device: torch.device) -> Pool:
    """Kept until another one is wanted: runs that follow each other mostly share it."""
    images, at, present = [], [], []
    for first in range(0, count, AT_ONCE):
        some = world.sample(min(AT_ONCE, count - first), seeded(seed, "pool", first, device=device))
        images.append((255 * some.images).round().byte())
        at.append(some.centres)
        present.append(some.present)
    return Pool(torch.cat(images), Layout(torch.cat(at), torch.cat(present)))


@dataclass
class SceneRun:
    """One recipe on one runtime."""

    recipe: SceneRecipe
    lab: Lab
    judge: Judge

    @property
    def device(self) -> torch.device:
        return self.lab.runtime.device

    @property
    def folder(self) -> RunFolder:
        return RunFolder(self.lab.out, self.recipe)

    @cached_property
    def net(self) -> nn.Module:
        r = self.recipe
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(r.seed)
            return r.net.build(r.layout_encoder, r.world.image_shape)

    @property
    def pool(self) -> "Pool":
        """The training pictures. The same for all variants that are trained on the same numbers of objects."""
        return drawn(self.recipe.world, self.recipe.pool, self.recipe.seed, self.device)

    def batch(self, step: int) -> tuple[Float[Tensor, "b 3 h w"], Layout, Draw]:
        """The batch after `step` updates. Pictures and noise are drawn before it is drawn what is told, so that variants see
        the same ones. Always the same number of slots, so that one compiled step serves all of them."""
        r, rng = self.recipe, seeded(self.recipe.seed, "batch", step, device=self.device)
        images, layout = self.pool
        pick = torch.randint(len(images), (r.train.batch,), generator=rng, device=rng.device)
        x = images[pick].float() / 127.5 - 1
        draw = r.objective.draw(x.shape, rng)
        return x, r.layout_encoder.tell(layout.rows(pick), rng).padded(r.slots), draw

    def denoiser(self) -> Denoiser:
        return self.recipe.objective.denoiser(self.net)

    @torch.no_grad()
    def sample(
        self, locations: Layout, noise: Float[Tensor, "b 3 h w"], denoiser: Denoiser | None = None
    ) -> Float[Tensor, "b 3 h w"]:
        """A picture in [0, 1] for each request. Another denoiser may take the network's place; it is asked in float32."""
        r, parts, low = self.recipe, [], self.recipe.train.precision == "bfloat16" and denoiser is None
        rng, room = seeded(r.seed, "solver", device=self.device), ROOM[self.device.type]
        with torch.autocast(self.device.type, torch.bfloat16, enabled=low):
            for some, i in zip(noise.split(room), range(0, len(noise), room), strict=True):
                asked, ask = locations.rows(slice(i, i + room)), denoiser or self.denoiser()
                parts.append(r.evaluation.solver.sample(ask, r.objective.schedule, some, asked, rng))
        return ((torch.cat(parts).float() + 1) / 2).clamp(0, 1)

    def noise(self, count: int) -> Float[Tensor, "b 3 h w"]:
        """For the first `count` requests of each number of locations. Named by seed and number, so that what changes from
        checkpoint to checkpoint is the network."""
        r, parts = self.recipe, []
        for k in r.evaluation.locations:
            rng = seeded(r.seed, "sample", k, device=self.device)
            shape = (r.evaluation.samples, *r.world.image_shape)
            parts.append(torch.randn(shape, generator=rng, device=self.device)[:count])
        return torch.cat(parts)

    def observe(self, step: int) -> list[Row]:
        """What it draws for every number of locations, counted, and how local it is; a sheet of pictures on disk."""
        last = step == self.recipe.train.steps
        rows = self.counted(f"step_{step:08d}.png", last) + self.locality() + (self.maps() if last else [])
        if last and self.judge.crowded:
            rows += self.counted("crowded.png", last, crowded=True)
        return [short(row) | {"step": step} for row in rows]

    def counted(self, sheet: str, last: bool, crowded: bool = False) -> list[Row]:
        """What it draws, counted. On the sheet is a row for each number of locations; a cross says where an object was asked for,
        and whether it is there. Where locations are as near as in real scenes, also what nearness does."""
        e = self.recipe.evaluation
        count = e.samples if last else e.early
        locations = self.judge.asked(count, crowded)
        images = self.sample(locations, self.noise(count))
        found = self.judge.detector(images)
        each = torch.arange(len(images), device=self.device).view(len(e.locations), -1)
        shown = each[:, : COLUMNS if last else COLUMNS // 2].flatten()
        few = locations.rows(shown)
        drawn = crossed(images[shown], few, match(found.rows(shown), few, e.radius)[0])
        write_sheet(self.folder.path / "samples" / sheet, drawn.unflatten(0, (len(e.locations), -1)))
        rows = curve(found, locations, e.radius, "crowded" if crowded else "count")
        return rows + (nearness(found, locations, e.radius, NEAR) if crowded or (last and not self.judge.crowded) else [])

    def locality(self) -> list[Row]:
        """Both measures at every noise level, in float32, on real pictures that are the same for all runs."""
        p = self.recipe.evaluation.locality
        scene = self.judge.placed(p.locations, p.pictures, "locality")
        x, rng = 2 * self.recipe.crowd.draw(scene) - 1, seeded("locality", device=self.device)
        schedule = self.recipe.objective.schedule
        found = locality(self.denoiser(), schedule, x, self.judge.locations(scene), p.times, rng, p.pixels)
        return [{"kind": "locality", **vars(level)} for level in found.levels]

    def maps(self) -> list[Row]:
        """Maps of the pixel at the location nearest to the lower left corner: the heat as a picture beside the samples, the rest
        as rows."""
        p, schedule, heats, rows = self.recipe.evaluation.locality, self.recipe.objective.schedule, [], []
        scene = self.judge.placed(p.locations, 1, "map").take(torch.zeros(p.noises, dtype=torch.long, device=self.device))
        x, locations = 2 * self.recipe.crowd.draw(scene) - 1, self.judge.locations(scene)
        own = (locations.at[0, :, 1] - locations.at[0, :, 0]).masked_fill(~locations.present[0], -2).argmax()
        column, row = (locations.at[0, own] * torch.tensor(x.shape[:1:-1], device=x.device)).long().tolist()
        for time in p.maps:
            t, rng = torch.full((p.noises,), time, device=x.device), seeded("map", device=self.device)
            noise = torch.randn(x.shape, generator=rng, device=x.device)
            found = locality_map(self.denoiser(), noised(schedule, x, t, noise), t, locations, (row, column))
            heats.append(found.heat)
            facts = {"kind": "map", "t": time, "sigma": schedule.sigma(t[0]).item(), "row": row, "column": column}
            each = zip(found.at.tolist(), found.effect.tolist(), strict=True)
            rows += [{**facts, "location": j, "x": x, "y": y, "effect": effect} for j, ((x, y), effect) in enumerate(each)]
        write_heat(self.folder.path / "samples" / "maps.png", torch.stack(heats))
        return rows

    def train(self) -> None:
        r = self.recipe
        if self.lab.runtime.processes > 1:
            self.judge.detector  # noqa: B018  # all processes make it, one of them counts
        plan = (self.batch, r.train, self.folder, self.lab.runtime, self.observe, r.evaluation.at(r.train.steps))
        train(self.net, r.objective.loss, *plan)


def compute(recipes: dict[str, SceneRecipe], lab: Lab) -> Iterator[Row]:
    """What the detector is worth, what each variant is, and the rows of every run."""
    judge = Judge(next(iter(recipes.values())), lab)
    yield from grounds(recipes, lab, judge)
    for seed in range(lab.seeds):
        yield from runs(recipes, seed, lab, judge)


def grounds(recipes: dict[str, SceneRecipe], lab: Lab, judge: Judge) -> Iterator[Row]:
    """What the detector is worth, and what each variant is. The recipes differ in nothing that concerns the judge."""
    for recipe in recipes.values():
        recipe.check()
    for world in {r.world for r in recipes.values()}:
        world.place(torch.tensor([max(world.counts)]), seeded("room"))  # complains where there is none
    folders = [RunFolder(lab.out, with_seed(recipe, seed)) for recipe in recipes.values() for seed in range(lab.seeds)]
    if any(lab.lacks(folder) for folder in folders):
        judge.scenes  # noqa: B018  # complains where there is no room, before anything is trained
        lab.prepare([(judge.folder, judge.ready)])  # of several processes one makes it, the others go on
        if not lab.ahead:
            judge.ready()  # a detector that is trained again is tested again
    tested = judge.rows()
    if tested and (why := doubt(Rows(tested))):
        lab.note(why)
    yield from tested
    for variant, recipe in recipes.items():
        trained, strict = max(recipe.world.counts), int(recipe.strict)
        yield {"kind": "variant", "variant": variant, "trained": trained, "strict": strict}


def runs(recipes: dict[str, SceneRecipe], seed: int, lab: Lab, judge: Judge) -> Iterator[Row]:
    """The rows of all runs of one seed. Those of one world follow each other, since they share their pictures."""
    worlds = list(dict.fromkeys(r.world for r in recipes.values()))
    for variant, recipe in sorted(recipes.items(), key=lambda item: worlds.index(item[1].world)):
        run = SceneRun(with_seed(recipe, seed), lab, judge)
        yield from lab.rows_of(run.folder, run.train, variant, seed, "count")


def with_seed(recipe: SceneRecipe, seed: int) -> SceneRecipe:
    return replace(recipe, seed=recipe.seed + seed)
