"""A training update of the U-Nets of `length`, on the picture and on patches, as cuDNN guesses its
algorithms, against the fastest that it measures (`torch.backends.cudnn.benchmark`). Without a GPU
there is no such choice, and the ratio is of no use."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from step import timed

from recombine.pipeline.job import Work
from recombine.runs.scene_recipe import SceneRecipe
from recombine.runs.scenes import SceneModel, SceneRun
from recombine.runtime import Runtime
from recombine.studies.length import STUDY
from recombine.train.fit import Fit

EXPERIMENTS = ("exp1", "exp2L, patches")
PICTURES = 4096


def updates(recipe: SceneRecipe, runtime: Runtime, measured: bool):
    """A function that carries out the next update, compiled and captured anew."""
    torch.backends.cudnn.benchmark = measured
    torch._dynamo.reset()
    model = SceneModel(recipe, Work(SceneRun(recipe), Path(tempfile.gettempdir()), runtime))
    fit = Fit(model.net, recipe.objective.loss, recipe.train, runtime)
    return lambda: fit.advance(model.batch(fit.step))


def main() -> Iterator[dict]:
    runtime = Runtime.find("auto")
    gpu = runtime.device.type == "cuda"
    recipes = STUDY.settings("full" if gpu else "smoke").variants()
    warm, count = (10, 100) if gpu else (1, 2)
    for name in EXPERIMENTS:
        recipe = replace(recipes[name], pool=PICTURES if gpu else 16)
        guessed, measured = (
            timed(updates(recipe, runtime, how), runtime.device, warm, count)
            for how in (False, True)
        )
        yield {
            "name": f"training update, {name}, batch {recipe.train.batch}",
            "ratio": guessed / measured,
            "milliseconds": 1000 * measured,
            "guessed_milliseconds": 1000 * guessed,
            **runtime.facts(),
        }


if __name__ == "__main__":
    for row in main():
        print(row)
