"""A scene model conditioned on an object's colour, and on its location or not, as a run; and its
scores for two colours added over its own empty background: samples, whose colours a probe reads."""

from dataclasses import field
from itertools import combinations
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from recombine.config import ALWAYS, UsageError, config
from recombine.files import rounded
from recombine.metrics.colour_probe import ColourProbe, color_row, placed
from recombine.metrics.detector import Detector
from recombine.metrics.sheets import write_sheet
from recombine.nets.colour_grid import LEFT_OUT, ColourGrid, by_color
from recombine.objectives.compose import OneByOne
from recombine.pipeline.job import Task, Work
from recombine.rng import seeded
from recombine.runs.colour_probe import ColourProbeRun
from recombine.runs.detectors import DetectorRun
from recombine.runs.scene_prompts import Prompts
from recombine.runs.scene_recipe import SceneRecipe
from recombine.runs.scenes import COLUMNS, Pool, SceneModel, training_pool
from recombine.store import Row
from recombine.train.loop import load_weights, train
from recombine.worlds.layout import Layout
from recombine.worlds.scenes.scene import COLORS, Labelled

MODEL_VERSION, VERSION = 1, 2
"""Rise when what is trained, and what is measured of sums, changes."""
GIVEN: tuple[Literal["color", "location"], ...] = ("color", "location")
"""What each part of a sum is conditioned on: a colour alone, or a colour and a location."""


@config("run/colour-model")
class ColourModelRun(Task):
    """A scene recipe carried out, trained on the empty floor and on single objects, conditioned on
    their colours. Without a condition it shows the empty floor."""

    noun = "colour model"
    weights = True
    recipe: SceneRecipe
    version: int = field(default=MODEL_VERSION, metadata=ALWAYS)

    def check(self) -> None:
        r = self.recipe
        r.check()
        if not isinstance(r.layout_encoder, ColourGrid):
            raise UsageError("recipe.layout_encoder: colours need a colour grid")
        if set(r.world.counts) != {0, 1}:
            raise UsageError(f"recipe.world.counts={list(r.world.counts)}: 0 and 1 are needed")

    @property
    def cost(self) -> float:
        return 20.0 * self.recipe.train.steps

    def run(self, work: Work) -> None:
        r, model = self.recipe, ColourModel(self.recipe, work)
        train(
            model.net, r.objective.loss, model.batch, r.train, work.folder, work.runtime,
            title=work.title, check=work.check,
        )  # fmt: skip

    def open(self, work: Work) -> "ColourModel":
        model = ColourModel(self.recipe, work)
        load_weights(model.net, work.folder, work.runtime).eval()
        return model


def colored(some: Labelled) -> Layout:
    return by_color(some.centres, some.present, some.kind[..., 1])


class ColourModel(SceneModel):
    """A scene model whose layouts have a slot for each colour."""

    @property
    def pool(self) -> Pool:
        r = self.recipe
        return training_pool(r.world, r.pool, r.seed, self.device, colored)


def color_sets(recipe: SceneRecipe) -> list[tuple[int, ...]]:
    """Every colour of the world alone, and every pair."""
    known = [i for i, name in enumerate(COLORS) if name in recipe.world.colors]
    return [*combinations(known, 1), *combinations(known, 2)]


@config("run/colour-sums")
class ColourSums(Task):
    """Scores of a model for every pair of colours, added over its own empty background: with the
    colours alone, with locations that are far apart, or both ways (`given`). Every colour by
    itself, too."""

    noun = "sums of colours"
    model: ColourModelRun
    probe: ColourProbeRun
    given: tuple[Literal["color", "location"], ...] = GIVEN
    version: int = field(default=VERSION, metadata=ALWAYS)

    def parents(self) -> tuple[Task, ...]:
        return self.model, self.probe, DetectorRun.of(self.model.recipe)

    def check(self) -> None:
        e, grid = self.model.recipe.evaluation, self.model.recipe.layout_encoder
        if "color" in self.given and not getattr(grid, "anywhere", 1):
            raise UsageError("recipe.layout_encoder.anywhere=0: colours alone were never given")
        if e.locations != (1, 2):
            raise UsageError(f"recipe.evaluation.locations={list(e.locations)}: 1 and 2 are needed")
        Prompts.of(self.model.recipe).check()

    @property
    def cost(self) -> float:
        return 5.0 * self.model.recipe.train.steps

    def run(self, work: Work) -> list[Row]:
        recipe, model = self.model.recipe, work.open(self.model)
        probe, detector = work.open(self.probe), work.open(DetectorRun.of(recipe))
        sets, rows = color_sets(recipe), []
        for given in self.given:
            pictures = samples(model, sets, given)
            rows += [
                self.row(images, colors, given, detector, probe) | {"given": given}
                for colors, images in zip(sets, pictures, strict=True)
            ]
            if work.runtime.rank == 0:
                path = work.folder.path / "samples" / f"{given}.png"
                write_sheet(path, pictures[:, :COLUMNS])
        return [rounded(row) | {"step": recipe.train.steps} for row in rows]

    def row(
        self,
        images: Tensor,
        colors: tuple[int, ...],
        given: str,
        detector: Detector,
        probe: ColourProbe,
    ) -> Row:
        objects, recipe = detector(images), self.model.recipe
        wanted = torch.tensor(colors, device=images.device).expand(len(images), -1)
        names = [list(COLORS)[c] for c in colors]
        about = dict(zip(("color", "other"), names, strict=False))
        found = probe(images, objects)
        made = color_row(found, objects, wanted)
        if given == "location":
            at = prompt(recipe, colors, given, images.device).at[:, list(colors)]
            there = placed(found, objects, wanted, at, recipe.evaluation.radius)
            made["placed"] = float(there.double().mean())
        return {"kind": "single" if len(names) == 1 else "pair", **about, **made}


def samples(
    model: ColourModel, sets: list[tuple[int, ...]], given: str
) -> Float[Tensor, "n b 3 h w"]:
    """From the same noise for all sets of colours. Not in bfloat16: rounding errors would be added
    up, too."""
    r, count = model.recipe, model.recipe.evaluation.samples
    rng = seeded(r.seed, "sample", "colours", device=model.device)
    noise = torch.randn(count, *r.world.image_shape, generator=rng, device=model.device)
    layouts = [prompt(r, colors, given, model.device) for colors in sets]
    together = Layout(*map(torch.cat, zip(*layouts, strict=True)))
    images = model.sample(together, noise.repeat(len(sets), 1, 1, 1), OneByOne(model.denoiser()))
    return images.unflatten(0, (len(sets), count))


def prompt(
    recipe: SceneRecipe, colors: tuple[int, ...], given: str, device: torch.device
) -> Layout:
    """An object of each colour for every sample: anywhere, or where objects of real scenes are."""
    prompts, number = Prompts.of(recipe), len(colors)
    at = prompts.world.centres(prompts.scenes(device)[number])[:, :number]
    where = at if given == "location" else torch.full_like(at, LEFT_OUT)
    index = torch.tensor(colors, device=device).expand(len(at), -1)
    return by_color(where, torch.ones_like(index, dtype=torch.bool), index)
