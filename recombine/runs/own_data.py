"""Settings that follow from one's own pictures: patch, width, steps, batch and pool from their
size, their number and the device. They stand before what the user sets, which wins."""

from typing import Any

import torch

from recombine.config import UsageError
from recombine.nets.dit import DiTConfig
from recombine.overrides import override
from recombine.runs.recipe import Recipe
from recombine.tokenizers.pixels import Pixels
from recombine.worlds.folder import Folder

TOKENS = 64
"""Patches of a picture, at most: what two cores can attend to."""
WIDTHS = {"laptop": (96, 128, 192, 256), "full": (448,)}
STEPS = {"cpu": 2500, "cuda": 5000}
BATCH = {"cpu": 32, "cuda": 256}
POOL = 4
"""Times a picture of the most frequent combination is drawn into the training set."""


def fitting(settings: Any, changes: tuple[str, ...], scale: str) -> tuple[str, ...]:
    """Assignments such as `recipe.net.patch=6`; none where the pictures are not one's own, or the
    study has no recipe of a transformer."""
    given = {path: value for path, _, value in (change.partition("=") for change in changes)}
    own = [c for c in changes if c.partition("=")[0].removeprefix("recipe.").startswith("world")]
    recipe = getattr(settings, "recipe", None)
    if not own or not isinstance(recipe, Recipe):
        return ()
    recipe = override(settings, *own).recipe
    if not isinstance(recipe.world, Folder):
        return ()
    made = _net(recipe, scale) | _training(recipe, scale)
    chosen = tuple(
        f"recipe.{path}={value}" for path, value in made.items() if not _set(path, given)
    )
    if scale != "smoke":
        _check(override(settings, *chosen, *changes).recipe)
    return chosen


def _check(recipe: Recipe) -> None:
    """A patch with more numbers than the network is wide cannot be drawn: refused before
    training."""
    if not isinstance(recipe.net, DiTConfig) or not isinstance(recipe.tokenizer, Pixels):
        return
    numbers, width = recipe.shape[0] * recipe.net.patch**2, recipe.net.transformer.width
    if numbers > width:
        raise UsageError(
            f"patch {recipe.net.patch}: {numbers} numbers in a patch do not fit through a network "
            f"{width} wide; set a smaller patch or transformer.width to {numbers} or more"
        )


def _set(path: str, given: dict[str, str]) -> bool:
    """Whether the user set this, or something it is part of."""
    return any(f".{name}." in f".recipe.{path}." for name in given)


def _net(recipe: Recipe, scale: str) -> dict[str, int]:
    """A patch that divides the picture, with no more numbers in it than the network is wide."""
    if not isinstance(recipe.net, DiTConfig) or not isinstance(recipe.tokenizer, Pixels):
        return {}
    channels, high, wide = recipe.world.image_shape
    fits = [p for p in range(1, min(high, wide) + 1) if high % p == wide % p == 0]
    few = [p for p in fits if (high // p) * (wide // p) <= TOKENS]
    widths = WIDTHS.get(scale, (recipe.net.transformer.width,))
    patch = few[0] if few else fits[-1]
    width = next((w for w in widths if w >= channels * patch**2), None)
    if scale == "smoke":
        return {"net.patch": patch}
    if width is None:
        raise UsageError(
            f"{recipe.world.path}: pictures of {wide}x{high} need patches of {patch}x{patch}, more "
            f"numbers ({channels * patch**2}) than a network of this scale is wide ({widths[-1]}); "
            "--set world.size=64 scales them down"
        )
    return {"net.patch": patch, "net.transformer.width": width}


def _training(recipe: Recipe, scale: str) -> dict[str, Any]:
    if scale == "smoke":
        return {}
    device = "cuda" if torch.cuda.is_available() else "cpu"
    counts = recipe.world.counts
    seen = [counts[c] for c in recipe.split.seen if c in counts]
    if not seen:
        return {}
    made = {
        "train.steps": STEPS[device],
        "train.batch": BATCH[device],
        "train.lr": 2e-3 if device == "cpu" else 5e-4,
    }
    return made | {
        "pool": min(recipe.pool, max(64, POOL * max(seen))),
        "evaluation.checkpoints": 3,
        "evaluation.probe_steps": 200,
    }
