"""One training step of the house (compiled, replayed as a CUDA graph) against the same step written
plainly in eager PyTorch with autocast: same shapes, batch and precision, side by side in one run,
with the share of the matrix-product ceiling that is measured in the same run. On a CPU the shapes
shrink and only the ratio is of use."""

import time
from collections.abc import Iterator

import torch
from _plain import PlainDiT, PlainStep

from recombine.nets.conditioning import Conditioning
from recombine.nets.dit import DiT, DiTConfig
from recombine.nets.transformer import TransformerConfig
from recombine.objectives.diffusion import Diffusion
from recombine.rng import seeded
from recombine.runtime import Runtime
from recombine.train.fit import Fit, TrainConfig
from recombine.worlds.factors import Condition, Factor, FactorSpace

SPACE = FactorSpace(
    (Factor("a", ("0", "1"), 1), Factor("b", ("0", "1"), 1), Factor("c", ("0", "1"), 1))
)
BATCHES = (44, 64, 256)
SHAPES = {"small": (7, 448, 7, 28, 4, 256)} | {
    f"large, {b}": (12, 768, 12, 64, 4, b) for b in BATCHES
}
"""depth, width, heads, picture side, patch, batch: 49 and 256 tokens. The large one over several
batches: a plain step waits for its launches where the batch is small and for memory where it is
large, so the ratio depends on it. 44 x 256 tokens are whole waves of tiles on the 132
multiprocessors of an H200."""
TINY = {"small": (2, 64, 2, 28, 4, 8)} | {f"large, {b}": (2, 64, 2, 64, 4, 2) for b in BATCHES}


def flops(depth: int, width: int, length: int, batch: int) -> float:
    """Matrix-product operations of one step: forward plus twice that backward."""
    per_token = depth * (2 * 12 * width**2 + 4 * length * width)
    per_picture = 2 * width * (6 * depth + 2) * width
    return 3 * batch * (length * per_token + per_picture)


def timed(step, device: torch.device, warm: int, count: int) -> float:
    """Seconds per call, the median of five stretches."""
    sync = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    for _ in range(warm):
        step()
    stretches = []
    for _ in range(5):
        sync()
        began = time.perf_counter()
        for _ in range(count):
            step()
        sync()
        stretches.append((time.perf_counter() - began) / count)
    return sorted(stretches)[2]


def ceiling(device: torch.device) -> float:
    """The rate of a large matrix product in the step's precision, in operations per second."""
    n, dtype = (8192, torch.bfloat16) if device.type == "cuda" else (512, torch.float32)
    a, b = (torch.randn(n, n, device=device, dtype=dtype) for _ in range(2))
    return 2 * n**3 / timed(lambda: a @ b, device, 5, 20)


def ours(shape: tuple[int, ...], runtime: Runtime):
    depth, width, heads, side, patch, batch = shape
    device, objective = runtime.device, Diffusion()
    net = DiT(
        DiTConfig(TransformerConfig(depth, width, heads), patch),
        Conditioning(),
        (3, side, side),
        SPACE,
    )
    precision = "bfloat16" if device.type == "cuda" else "float32"
    fit = Fit(net, objective.loss, TrainConfig(batch=batch, precision=precision), runtime)
    pool = torch.randn(1024, 3, side, side, device=device)
    condition = Condition(
        torch.zeros(1024, 3, dtype=torch.long, device=device),
        torch.rand(1024, 3, device=device),
        torch.ones(1024, 3, dtype=torch.bool, device=device),
    )

    def step() -> None:
        rng = seeded("bench", fit.step, device=device)
        pick = torch.randint(1024, (batch,), generator=rng, device=device)
        fit.advance((pool[pick], condition.rows(pick), objective.draw(pool[pick].shape, rng)))

    return step


def plain(shape: tuple[int, ...], device: torch.device):
    depth, width, heads, side, patch, batch = shape
    length, dim = (side // patch) ** 2, 3 * patch**2
    update = PlainStep(PlainDiT(depth, width, heads, length, dim), device)
    x, label = torch.randn(1024, length, dim, device=device), torch.rand(1024, 3, device=device)

    def step() -> None:
        pick = torch.randint(1024, (batch,), device=device)
        update(x[pick], label[pick])

    return step


def compare(name: str, runtime: Runtime) -> dict:
    gpu = runtime.device.type == "cuda"
    shape = (SHAPES if gpu else TINY)[name]
    depth, width, _, side, patch, batch = shape
    count = (100 if name == "small" else 15) if gpu else 2
    slow = timed(plain(shape, runtime.device), runtime.device, 5, count)
    fast = timed(ours(shape, runtime), runtime.device, 10, count)
    length, size = (side // patch) ** 2, name.partition(",")[0]
    work, top = flops(depth, width, length, batch), ceiling(runtime.device)
    return {
        "name": f"training step, {size}: {length} tokens, depth {depth}, width {width}, batch {batch}",
        "ratio": slow / fast,
        "steps_per_s": 1 / fast,
        "plain_steps_per_s": 1 / slow,
        "share_of_ceiling": work / fast / top,
        "plain_share": work / slow / top,
        "ceiling_tflops": top / 1e12,
        "compile": runtime.compile,
        **runtime.facts(),
    }


def main() -> Iterator[dict]:
    runtime = Runtime.find("auto")
    torch.manual_seed(0)
    for name in SHAPES:
        yield compare(name, runtime)


if __name__ == "__main__":
    for row in main():
        print(row)
