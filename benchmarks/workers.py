"""Runs trained at the same time on one GPU, as `recombine run --workers` does: steps per second of
all together, beside one process alone. In turns, as a GPU does by itself, and side by side, through
its multi-process service."""

import sys
from collections.abc import Iterator
from functools import partial

import torch
from _crowd import steps_per_second

from recombine.pipeline.engines.mps import side_by_side

PROCESSES, SECONDS = 6, 6.0


def main() -> Iterator[dict]:
    many, seconds = (PROCESSES, SECONDS) if torch.cuda.is_available() else (2, 1.0)
    alone = steps_per_second(1, seconds)
    turns = steps_per_second(many, seconds)
    row = {"unit": "steps/s", "beside": "one process"}
    yield {"name": f"{many} processes in turns", "value": turns, "ratio": turns / alone} | row
    with side_by_side(partial(print, file=sys.stderr)) as on:
        if on:
            together = steps_per_second(many, seconds)
            yield {
                "name": f"{many} processes side by side",
                "value": together,
                "ratio": together / alone,
            } | row
