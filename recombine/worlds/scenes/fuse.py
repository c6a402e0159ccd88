"""Compilation of the tracer's stages."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any

import torch

OPTIONS = {"unroll_reductions_threshold": 1}
"""A reduction over few solids stays a reduction: unrolled, what leads to it would be written to memory first."""


def fused(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of solids and rays that becomes very few kernels on a GPU. On a CPU it stays as it is. Functions are kept
    small, so that compiling all of them takes seconds; what passes between them is a few numbers per ray."""

    @wraps(function)
    def call(solids: Any, *rest: Any) -> Any:
        return (compiled(function) if solids.x.is_cuda else function)(solids, *rest)

    return call


@lru_cache(maxsize=32)
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return torch.compile(function, options=OPTIONS)
