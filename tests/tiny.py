"""A training run that takes milliseconds: a small MLP, random pictures of three numbers, a loss per
sample."""

import json
from pathlib import Path

import torch
from torch import Tensor, nn

from recombine.config import digest, to_json
from recombine.rng import seeded
from recombine.runtime import Runtime
from recombine.store import RunFolder
from recombine.train.fit import TrainConfig
from recombine.train.loop import train

QUIET = Runtime(quiet=True)
CONFIG = TrainConfig(steps=12, batch=8, lr=0.01, warmup=3, ema=0.9, log_every=2)


def net() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2))


def batch(step: int) -> tuple[Tensor, Tensor]:
    x = torch.randn(CONFIG.batch, 3, generator=seeded("tiny", step))
    return x, torch.stack([x.sum(1).sin(), x[:, 0] * x[:, 1]], 1)


def loss(net: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return (net(x) - y).square().mean(1)


def folder_of(root: Path, config: TrainConfig = CONFIG) -> RunFolder:
    return RunFolder(root, digest(config))


def fit(
    root: Path,
    config: TrainConfig = CONFIG,
    runtime: Runtime = QUIET,
    batch=batch,
    observe_at=(0, 5, 12),
    observe=None,
):
    """Train (or go on training) under `root`; the run folder. It observes the sum of the weights in
    place, unless another function is given."""
    folder, model = folder_of(root, config), net()
    if runtime.rank == 0:
        folder.begin(to_json(config))
    runtime.barrier()

    def weights(step: int) -> list[dict]:
        value = float(sum(p.detach().sum() for p in model.parameters()))
        return [{"kind": "sum", "step": step, "value": value}]

    train(model, loss, batch, config, folder, runtime, observe or weights, observe_at)
    return folder


def outcome(folder: RunFolder) -> tuple[bytes, list[dict]]:
    """What two equal runs share: the weights, byte for byte, and every row."""
    rows = (folder.path / "rows.jsonl").read_text().splitlines()
    return (folder.path / "model.safetensors").read_bytes(), [json.loads(row) for row in rows]
