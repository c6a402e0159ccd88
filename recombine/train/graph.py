"""A whole update captured once as a CUDA graph and replayed."""

import gc
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

WARM, DDP_WARM = 3, 11
"""Updates that run plainly before one is captured; DistributedDataParallel settles its buckets
within eleven."""


class GraphedUpdate:
    """One launch instead of hundreds, which is what a small network's step costs. The first calls
    run plainly, to warm up."""

    def __init__(self, update: Callable[[Any], tuple[Tensor, Tensor]], warm: int = WARM):
        self.update, self.warm, self.calls, self.graph = update, warm, 0, None

    def __call__(self, batch: Any) -> tuple[Tensor, Tensor]:
        if self.graph is not None:
            _copy(self.static, batch)
            self.graph.replay()
            return self.result
        self.calls += 1
        if self.calls <= self.warm:
            return self._aside(batch)
        return self._capture(batch)

    def _aside(self, batch: Any) -> tuple[Tensor, Tensor]:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            result = self.update(batch)
        torch.cuda.current_stream().wait_stream(side)
        return result

    def _capture(self, batch: Any) -> tuple[Tensor, Tensor]:
        self.static = _clone(batch)
        gc.collect()  # not in the midst of capturing
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.result = self.update(self.static)
        self.graph.replay()
        return self.result


def _clone(batch: Any) -> Any:
    if isinstance(batch, Tensor):
        return batch.clone()
    parts = [_clone(b) for b in batch]
    return type(batch)(*parts) if hasattr(batch, "_fields") else tuple(parts)


def _copy(target: Any, source: Any) -> None:
    if isinstance(target, Tensor):
        target.copy_(source)
    else:
        for t, s in zip(target, source, strict=True):
            _copy(t, s)
