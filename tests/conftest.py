"""One thread: on a small runtime several threads make the same tests take six seconds or two
minutes. Types are checked in every function, by the quickest checker that sees all there is to
see."""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["MKL_CBWR"] = "AUTO,STRICT"  # or sums depend on where in memory weights lie

import inspect
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, get_args

import jaxtyping
import torch

torch.set_num_threads(1)
shapes_too = jaxtyping.jaxtyped


def mentions_shapes(hint: Any) -> bool:
    """Whether an annotation holds the shape of an array, or is text, which may be anything."""
    if isinstance(hint, type) and issubclass(hint, jaxtyping.AbstractArray):
        return True
    return isinstance(hint, str) or any(map(mentions_shapes, get_args(hint)))


def checked(what: Any = None, *, typechecker: Callable) -> Any:
    """In place of `jaxtyped`, by which `--jaxtyping-packages` decorates everything: it compares the
    shapes of all arguments, which takes 23 µs a call also where there are none; the plain checker
    takes 0.5."""
    if what is None:
        return lambda what: checked(what, typechecker=typechecker)
    if inspect.isclass(what):
        if is_dataclass(what) and "__init__" in vars(what):
            what.__init__ = checked(what.__init__, typechecker=typechecker)
        return what
    plain = inspect.isfunction(what) and not inspect.isgeneratorfunction(what)
    if plain and not any(map(mentions_shapes, what.__annotations__.values())):
        return typechecker(what)
    return shapes_too(what, typechecker=typechecker)


jaxtyping.jaxtyped = checked

LONG = (
    "engines notebooks features export bridge scene_studies circuits objectives concept_space pipeline"
    " cli ddp own_tour docs evaluate own_data robust report_browser tokenizers scenes shapes2d train"
)
"""The files that take longest: they are begun first, so that no worker is left with one at the
end."""


def pytest_collection_modifyitems(items: list) -> None:
    order = {f"test_{name}.py": i for i, name in enumerate(LONG.split())}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))
