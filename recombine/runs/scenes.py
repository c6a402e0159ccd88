"""A scene model as a run: its pictures, its training, its samples at prompted locations, counted,
and how local it is."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from recombine.config import ALWAYS, UsageError, config
from recombine.files import rounded
from recombine.metrics.counting import curve, match, nearness, tally
from recombine.metrics.detector import Detector
from recombine.metrics.locality import locality
from recombine.metrics.locality_map import locality_map
from recombine.metrics.scene_sheets import crossed, write_heat
from recombine.metrics.sheets import write_sheet
from recombine.nets.colour_grid import ColourGrid
from recombine.objectives.diffusion import Draw
from recombine.objectives.edm import PatchDraw
from recombine.objectives.process import Denoiser, noised
from recombine.pipeline.job import Job, Task, Work
from recombine.rng import initial_weights, seeded
from recombine.runs.detectors import DetectorCheck, DetectorRun
from recombine.runs.scene_prompts import Prompts, check_room, locations_of, placed
from recombine.runs.scene_recipe import SceneRecipe
from recombine.store import Row
from recombine.train.loop import load_weights, train
from recombine.worlds.layout import Layout
from recombine.worlds.scenes.scene import Labelled
from recombine.worlds.scenes.scenes import Scenes

VERSION = 3
"""Rises when what is trained or measured changes."""
AT_ONCE = 4096
"""Training pictures that are placed and rendered together."""
ROOM = {"cuda": 512, "cpu": 64}
"""Pictures that are sampled together."""
COLUMNS = 4
"""Samples of each number of locations on a sheet."""
NEAR = (0.1, 0.13, 0.16, 0.2, 0.25, 0.32)
"""Ranges of the distance to the nearest other location in which recall is counted, as shares of the
picture."""


@config("run/scene")
class SceneRun(Task):
    """A scene recipe carried out: trained, sampled at every checkpoint, counted by the detector."""

    noun = "scene model"
    weights = True
    recipe: SceneRecipe
    version: int = field(default=VERSION, metadata=ALWAYS)

    def parents(self) -> tuple[Task, ...]:
        return (DetectorRun.of(self.recipe),)

    def check(self) -> None:
        r = self.recipe
        r.check()
        if isinstance(r.layout_encoder, ColourGrid):
            raise UsageError("layout_encoder: a colour grid is for models conditioned on colours")
        check_room(r.world, max(r.world.counts))
        check_room(r.detector_world, r.evaluation.locality.locations)
        Prompts.of(r).check()

    @property
    def cost(self) -> float:
        return 20.0 * self.recipe.train.steps

    def run(self, work: Work) -> None:
        r, model = self.recipe, SceneModel(self.recipe, work)
        train(
            model.net, r.objective.loss, model.batch, r.train, work.folder, work.runtime,
            model.observe, r.evaluation.at(r.train.steps), title=work.title, check=work.check,
        )  # fmt: skip

    def open(self, work: Work) -> "SceneModel":
        model = SceneModel(self.recipe, work)
        load_weights(model.net, work.folder, work.runtime).eval()
        return model


class Pool(NamedTuple):
    """Pictures, and where all their objects are, on the device."""

    images: UInt8[Tensor, "n 3 h w"]
    layout: Layout


def all_locations(some: Labelled) -> Layout:
    return Layout(some.centres, some.present)


@lru_cache(maxsize=1)
def training_pool(
    world: Scenes,
    count: int,
    seed: int,
    device: torch.device,
    layout_of: Callable[[Labelled], Layout] = all_locations,
) -> Pool:
    """Kept until another one is needed: runs that follow each other mostly share it."""
    images, layouts = [], []
    for first in range(0, count, AT_ONCE):
        rng = seeded(seed, "pool", first, device=device)
        some = world.sample(min(AT_ONCE, count - first), rng)
        images.append((255 * some.images).round().byte())
        layouts.append(layout_of(some))
    return Pool(torch.cat(images), Layout(*map(torch.cat, zip(*layouts, strict=True))))


@dataclass
class SceneModel:
    """A scene recipe on a machine: its data, its network, its samples, its measures."""

    recipe: SceneRecipe
    work: Work

    @property
    def device(self) -> torch.device:
        return self.work.runtime.device

    @property
    def detector(self) -> Detector:
        return self.work.open(DetectorRun.of(self.recipe))

    @cached_property
    def net(self) -> nn.Module:
        r = self.recipe
        with initial_weights(r.seed):
            return r.net.build(r.layout_encoder, r.world.image_shape)

    @property
    def pool(self) -> Pool:
        """The training pictures, the same for all variants that are trained on the same numbers of
        objects."""
        return training_pool(self.recipe.world, self.recipe.pool, self.recipe.seed, self.device)

    def batch(self, step: int) -> tuple[Float[Tensor, "b 3 h w"], Layout, Draw | PatchDraw]:
        """The batch after `step` updates. Pictures and noise are drawn before conditions are
        dropped, so that variants see the same ones. Always the same number of slots, so that one
        compiled step serves all of them."""
        r, runtime = self.recipe, self.work.runtime
        rng = runtime.stream(r.seed, "batch", step)
        images, layout = self.pool
        count = runtime.share(r.train.batch)
        pick = torch.randint(len(images), (count,), generator=rng, device=rng.device)
        x = images[pick].float() / 127.5 - 1
        noise = r.objective.draw(x.shape, rng)
        return x, r.layout_encoder.drop(layout.rows(pick), rng).padded(r.slots), noise

    def denoiser(self) -> Denoiser:
        return self.recipe.objective.denoiser(self.net)

    @torch.no_grad()
    def sample(
        self, locations: Layout, noise: Float[Tensor, "b 3 h w"], denoiser: Denoiser | None = None
    ) -> Float[Tensor, "b 3 h w"]:
        """A picture in [0, 1] for each layout. Another denoiser may take the network's place; it is
        evaluated in float32."""
        r, parts, room = self.recipe, [], ROOM[self.device.type]
        low = r.train.precision == "bfloat16" and denoiser is None
        solver, schedule = r.evaluation.solver, r.objective.schedule
        rng, used = seeded(r.seed, "solver", device=self.device), denoiser or self.denoiser()
        with torch.autocast(self.device.type, torch.bfloat16, enabled=low):
            for i in range(0, len(noise), room):
                some = slice(i, i + room)
                parts.append(solver.sample(used, schedule, noise[some], locations.rows(some), rng))
        return ((torch.cat(parts).float() + 1) / 2).clamp(0, 1)

    def noise(self, count: int) -> Float[Tensor, "b 3 h w"]:
        """For the first `count` prompts of each number of locations. Named by seed and number, so
        that what changes from checkpoint to checkpoint is the network."""
        r, parts = self.recipe, []
        for k in r.evaluation.locations:
            rng = seeded(r.seed, "sample", k, device=self.device)
            shape = (r.evaluation.samples, *r.world.image_shape)
            parts.append(torch.randn(shape, generator=rng, device=self.device)[:count])
        return torch.cat(parts)

    def observe(self, step: int) -> list[Row]:
        """Samples for every number of locations, counted, and how local the model is; a sheet of
        samples on disk."""
        last, prompts = step == self.recipe.train.steps, Prompts.of(self.recipe)
        rows = self.counted(prompts, f"step_{step:08d}.png", "count", last) + self.locality()
        if last:
            rows += self.maps()
        if last and prompts.crowded and self.recipe.evaluation.crowded:
            rows += self.counted(prompts.crowded, "crowded.png", "crowded", last)
        return [rounded(row) | {"step": step} for row in rows]

    def counted(self, prompts: Prompts, sheet: str, kind: str, last: bool) -> list[Row]:
        """Samples, counted: rows of this kind. The sheet has a row for each number of locations; a
        cross says where an object was prompted for, and whether it is there. At the end, where
        locations are as near as in real scenes, also recall by distance."""
        e = self.recipe.evaluation
        count = e.samples if last else e.early
        locations = prompts.layout(self.device, count)
        images = self.sample(locations, self.noise(count))
        detected = self.detector(images)
        each = torch.arange(len(images), device=self.device).view(len(e.locations), -1)
        shown = each[:, : COLUMNS if last else COLUMNS // 2].flatten()
        few = locations.rows(shown)
        crosses = crossed(images[shown], few, match(detected.rows(shown), few, e.radius)[0])
        path = self.work.folder.path / "samples" / sheet
        write_sheet(path, crosses.unflatten(0, (len(e.locations), -1)))
        rows = curve(detected, locations, e.radius, kind, self.recipe.spare)
        if last and kind == "count":
            rows += self.shown(few, detected.rows(shown))
        by_distance = last and not prompts.spacing
        return rows + (nearness(detected, locations, e.radius, NEAR) if by_distance else [])

    def shown(self, locations: Layout, detected: Layout) -> list[Row]:
        """What was counted in each picture of the sheet, to be compared with counts by eye."""
        counts = tally(detected, locations, radius=self.recipe.evaluation.radius)
        each = enumerate(zip(*(part.tolist() for part in counts), strict=True))
        return [
            {"kind": "shown", "picture": i % COLUMNS, "locations": k, "located": n, "total": total}
            for i, (k, n, total) in each
        ]

    def locality(self) -> list[Row]:
        """Both measures at every noise level, in float32, on real pictures that are the same for
        all runs."""
        p, world = self.recipe.evaluation.locality, self.recipe.detector_world
        scene = placed(world, p.locations, p.pictures, "locality", self.device)
        x, rng = 2 * world.images(scene) - 1, seeded("locality", device=self.device)
        schedule, given = self.recipe.objective.schedule, locations_of(world, scene)
        levels = locality(self.denoiser(), schedule, x, given, p.times, rng, p.pixels).levels
        return [{"kind": "locality", **vars(level)} for level in levels]

    def maps(self) -> list[Row]:
        """Maps of the pixel at the location nearest to the lower left corner: the heat as a picture
        beside the samples, the rest as rows."""
        p, world = self.recipe.evaluation.locality, self.recipe.detector_world
        schedule, heats, rows = self.recipe.objective.schedule, [], []
        same = torch.zeros(p.noises, dtype=torch.long, device=self.device)
        scene = placed(world, p.locations, 1, "map", self.device).take(same)
        x, locations = 2 * world.images(scene) - 1, locations_of(world, scene)
        row, column = corner_pixel(x, locations)
        for time in p.maps:
            t, rng = torch.full((p.noises,), time, device=x.device), seeded("map", device=x.device)
            noise = torch.randn(x.shape, generator=rng, device=x.device)
            noisy = noised(schedule, x, t, noise)
            one = locality_map(self.denoiser(), noisy, t, locations, (row, column))
            heats.append(one.heat)
            sigma = schedule.sigma(t[0]).item()
            about = {"kind": "map", "t": time, "sigma": sigma, "row": row, "column": column}
            each = enumerate(zip(one.at.tolist(), one.effect.tolist(), strict=True))
            rows += [
                {**about, "location": j, "x": at[0], "y": at[1], "effect": e} for j, (at, e) in each
            ]
        write_heat(self.work.folder.path / "samples" / "maps.png", torch.stack(heats))
        return rows


def corner_pixel(x: Float[Tensor, "b c h w"], locations: Layout) -> tuple[int, int]:
    """Row and column of the first picture's location nearest to the lower left corner."""
    at = locations.at[0]
    low = (at[:, 1] - at[:, 0]).masked_fill(~locations.present[0], -2).argmax()
    column, row = (at[low] * torch.tensor(x.shape[:1:-1], device=x.device)).long().tolist()
    return row, column


def scene_jobs(recipes: dict[str, SceneRecipe], seeds: int) -> list[Job]:
    """A check of every detector, on the prompts of its first variant, and every variant over its
    seeds. Runs of one seed and world follow
    each other, since they share their pictures."""
    worlds = list(dict.fromkeys(r.world for r in recipes.values()))
    order = sorted(recipes, key=lambda variant: worlds.index(recipes[variant].world))
    checks = {DetectorRun.of(r): DetectorCheck.of(r) for r in reversed(recipes.values())}
    runs = [
        Job.of(SceneRun(recipes[variant].with_seed(seed)), variant=variant, seed=seed)
        for seed in range(seeds)
        for variant in order
    ]
    return [*map(Job.of, checks.values()), *runs]


def scene_facts(recipes: dict[str, SceneRecipe]) -> list[Row]:
    """What each variant is: the most objects in training, whether further objects are errors, and
    how many are none."""
    return [
        {
            "kind": "variant",
            "variant": v,
            "trained": max(r.world.counts),
            "strict": int(r.strict),
            "spare": r.spare,
        }
        for v, r in recipes.items()
    ]
