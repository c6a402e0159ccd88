"""recombine: does a generative model generate combinations of factors that it never saw in training?

The public names below are loaded when they are first used, so that importing the package is
instant.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from recombine.analysis.claims import Claim, Finding, Part
    from recombine.analysis.table import Table
    from recombine.api import claims, evaluate, results, run
    from recombine.config import UsageError
    from recombine.objectives.process import Denoiser
    from recombine.runs.recipe import Evaluation, Recipe
    from recombine.studies.study import Study
    from recombine.worlds.circles import Circles
    from recombine.worlds.factors import Factor, FactorSpace, Split
    from recombine.worlds.folder import Folder
    from recombine.worlds.scenes.scenes import Scenes
    from recombine.worlds.shapes2d import Shapes2D
    from recombine.worlds.world import World

HOME = {
    "run": "api",
    "results": "api",
    "claims": "api",
    "evaluate": "api",
    "World": "worlds.world",
    "Shapes2D": "worlds.shapes2d",
    "Circles": "worlds.circles",
    "Scenes": "worlds.scenes.scenes",
    "Folder": "worlds.folder",
    "Split": "worlds.factors",
    "Factor": "worlds.factors",
    "FactorSpace": "worlds.factors",
    "Denoiser": "objectives.process",
    "Recipe": "runs.recipe",
    "Evaluation": "runs.recipe",
    "Study": "studies.study",
    "Claim": "analysis.claims",
    "Finding": "analysis.claims",
    "Part": "analysis.claims",
    "Table": "analysis.table",
    "UsageError": "config",
}
"""Public name -> the module that defines it."""
__all__ = [
    "Circles",
    "Claim",
    "Denoiser",
    "Evaluation",
    "Factor",
    "FactorSpace",
    "Finding",
    "Folder",
    "Part",
    "Recipe",
    "Scenes",
    "Shapes2D",
    "Split",
    "Study",
    "Table",
    "UsageError",
    "World",
    "claims",
    "evaluate",
    "results",
    "run",
]


def __getattr__(name: str) -> Any:
    if name not in HOME:
        raise AttributeError(f"module 'recombine' has no attribute {name!r}")
    return getattr(import_module(f"recombine.{HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *HOME})
