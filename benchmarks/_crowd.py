"""Processes that all train the U-Net of `concept-space` at the same time, each on its own."""

import time
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier

import torch

from recombine.nets.conditioning import Conditioning
from recombine.nets.unet import UNetConfig
from recombine.objectives.diffusion import Diffusion
from recombine.rng import seeded
from recombine.runtime import Runtime
from recombine.train.fit import Fit, TrainConfig
from recombine.worlds.circles import Circles

WARM, SHAPE = 10, (3, 32, 32)
TIMEOUT = 600.0
"""Seconds that they wait for each other to compile; one that failed is not waited for longer."""


def steps_per_second(processes: int, seconds: float) -> float:
    """Of all together, once all have compiled."""
    context = get_context("spawn")
    barrier, pipes = (
        context.Barrier(processes, timeout=TIMEOUT),
        [context.Pipe(duplex=False) for _ in range(processes)],
    )
    started = [context.Process(target=one, args=(barrier, sender, seconds)) for _, sender in pipes]
    for process in started:
        process.start()
    for _, sender in pipes:
        sender.close()
    total = sum(receiver.recv() for receiver, _ in pipes)
    for process in started:
        process.join()
    return total


def one(barrier: Barrier, sender: Connection, seconds: float) -> None:
    torch.set_num_threads(1)
    runtime, objective = Runtime.find("auto", quiet=True), Diffusion()
    large, space = runtime.device.type == "cuda", Circles().space
    net = (UNetConfig() if large else UNetConfig((8, 16), 1, 2, 16)).build(
        Conditioning(), SHAPE, space
    )
    train = TrainConfig(batch=128 if large else 8, precision="bfloat16" if large else "float32")
    fit = Fit(net, objective.loss, train, runtime)
    picture = torch.randn(train.batch, *SHAPE, device=runtime.device)
    condition = Circles().condition((0, 0), train.batch, runtime.device)

    def step() -> None:
        rng = seeded("bench", fit.step, device=runtime.device)
        fit.advance((picture, condition, objective.draw(picture.shape, rng)))

    for _ in range(WARM):
        step()
    barrier.wait()
    began, first = time.perf_counter(), fit.step
    while time.perf_counter() - began < seconds:
        step()
    if large:
        torch.cuda.synchronize()
    sender.send((fit.step - first) / (time.perf_counter() - began))
