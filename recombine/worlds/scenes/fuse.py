"""Compilation of the tracer's stages, for those who draw very many pictures on a CPU. A GPU has a
kernel of its own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from typing import Any

import torch

OPTIONS = {"unroll_reductions_threshold": 1}
"""A reduction over few solids stays a reduction: unrolled, what leads to it would be written to
memory first."""
_fusing: ContextVar[bool] = ContextVar("fusing", default=False)


@contextmanager
def fusing() -> Iterator[None]:
    """`with fusing():` the tracer becomes very few loops: about three times as fast. Compiling
    takes about a minute, and again for another size of picture or number of slots."""
    token = _fusing.set(True)
    try:
        yield
    finally:
        _fusing.reset(token)


def is_fusing() -> bool:
    return _fusing.get()


def fused(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of solids and rays that is compiled while `fusing`. Functions are kept small, so
    that compiling each takes seconds; what passes between them is a few numbers per ray."""

    @wraps(function)
    def call(solids: Any, *rest: Any) -> Any:
        return (compiled(function) if is_fusing() else function)(solids, *rest)

    return call


@lru_cache(maxsize=32)
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return torch.compile(function, options=OPTIONS)
