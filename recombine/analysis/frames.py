"""polars, imported when it is first used: studies are also declared where models are trained, and a
GPU machine need not have it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any


class Lazy:
    """A module that is imported when something of it is needed."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


if TYPE_CHECKING:
    import polars as pl
else:
    pl = Lazy("polars")
