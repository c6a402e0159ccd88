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
    run plainly, to warm up; on the same held copy of the batch, since code that was compiled for other
    strides would be compiled anew while the update is captured, which fails."""

    def __init__(self, update: Callable[[Any], tuple[Tensor, Tensor]], warm: int = WARM):
        self.update, self.warm, self.calls = update, warm, 0
        self.graph, self.held = None, None

    def __call__(self, batch: Any) -> tuple[Tensor, Tensor]:
        if self.held is None:
            self.held = _clone(batch)
        else:
            _copy(self.held, batch)
        if self.graph is not None:
            self.graph.replay()
            return self.result
        self.calls += 1
        return self._aside() if self.calls <= self.warm else self._capture()

    def _aside(self) -> tuple[Tensor, Tensor]:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            result = self.update(self.held)
        torch.cuda.current_stream().wait_stream(side)
        return result

    def _capture(self) -> tuple[Tensor, Tensor]:
        gc.collect()  # not in the midst of capturing
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.result = self.update(self.held)
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
