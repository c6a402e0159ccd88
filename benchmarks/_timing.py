"""How the benchmarks take time."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch


def seconds(work: Callable[[], object], device: str = "cpu", repeats: int = 5) -> float:
    """The best of some repeats after one to warm up: the one least disturbed by others on the
    runtime. None: the one."""
    found = []
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        found.append(time.perf_counter() - begin)
    return min(found[1:] or found)


def per_second(
    work: Callable[[], object], pictures: int, device: str = "cpu", repeats: int = 5
) -> float:
    return pictures / seconds(work, device, repeats)


@contextmanager
def one_core() -> Iterator[None]:
    """`with one_core():` torch uses one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
