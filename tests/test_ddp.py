"""Two processes that share a run end where one does that takes both their batches."""

import multiprocessing
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import tiny
import torch
import torch.distributed as dist
from tiny import CONFIG, QUIET, fit

from recombine.pipeline.plan import Command
from recombine.pipeline.run import collect, run_studies
from recombine.runtime import Runtime
from recombine.train.fit import Diverged, Fit

SMALL = ("probe_steps=2", "recipe.train.steps=2", "samples=2", "world.size=21", "real=4")


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def join(rank: int, port: int) -> Runtime:
    """The environment that torchrun makes, and what is found in it."""
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    ranks = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2}
    os.environ.update({k: str(v) for k, v in (address | ranks).items()})
    return Runtime.find("cpu", quiet=True)


def together(work: Callable[..., None], root: Path) -> list[int | None]:
    """Two processes at the same work; their exit codes, None for one that hangs."""
    port, start = free_port(), multiprocessing.get_context("spawn").Process
    processes = [start(target=work, args=(rank, port, root)) for rank in range(2)]
    for p in processes:
        p.start()
    for p in processes:
        p.join(120)
    codes = [p.exitcode for p in processes]
    for p in processes:
        p.kill()
    return codes


def part(runtime: Runtime, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """What one process draws of a batch."""
    x = torch.randn(runtime.share(CONFIG.batch), 3, generator=runtime.stream("part", step))
    return x, torch.stack([x.sum(1).sin(), x[:, 0] * x[:, 1]], 1)


def train_together(rank: int, port: int, root: Path) -> None:
    """A run, then a study: its second seed finds the probes on disk, and a finished command is
    found finished by both."""
    runtime = join(rank, port)
    assert (runtime.rank, runtime.processes) == (rank, 2)
    fit(root, runtime=runtime, batch=lambda step: part(runtime, step))
    torch.manual_seed(rank)
    net = Fit(torch.nn.Linear(3, 1), lambda n, x: n(x)[:, 0], CONFIG, runtime).net
    each = [torch.empty_like(net.weight) for _ in range(2)]
    dist.all_gather(each, net.weight.detach())
    assert torch.equal(*each), "all begin with the weights of the first"
    for seeds in (1, 2, 2):
        command = Command(("composition",), "smoke", seeds, SMALL, "cpu", str(root / "study"))
        for plan in run_studies(command, "local", False, runtime):
            assert len(collect(plan, root / "study")) > 0
    dist.destroy_process_group()


def diverge_together(rank: int, port: int, root: Path) -> None:
    """Only the first process samples, so only it sees that samples are not finite."""

    def observe(step: int) -> list:
        raise Diverged("samples are not finite")

    try:
        fit(root, runtime=join(rank, port), observe=observe)
    except Diverged:
        dist.destroy_process_group()
        sys.exit(7)


@pytest.mark.slow
def test_what_diverges_in_one_process_ends_all(tmp_path):
    assert together(diverge_together, tmp_path) == [7, 7]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("ddp")
    ranks = [Runtime(quiet=True, rank=rank, processes=2) for rank in range(2)]

    def both(step: int) -> tuple[torch.Tensor, ...]:
        return tuple(torch.cat(t) for t in zip(*(part(r, step) for r in ranks), strict=True))

    assert together(train_together, root / "two") == [0, 0]
    return fit(root / "one", runtime=QUIET, batch=both), tiny.folder_of(root / "two")


@pytest.mark.slow
def test_two_processes_give_the_weights_of_one(folders):
    one, two = (f.load_model() for f in folders)
    assert one.keys() == two.keys()
    for name in one:
        torch.testing.assert_close(two[name], one[name], atol=1e-5, rtol=1e-5)


@pytest.mark.slow
def test_every_row_is_written_once_and_says_the_same(folders):
    one, two = (f.rows() for f in folders)
    assert [(r["kind"], r["step"]) for r in one] == [(r["kind"], r["step"]) for r in two]
    for a, b in zip(one, two, strict=True):
        shared = [k for k in a if k != "kind"]
        assert [b[k] for k in shared] == pytest.approx([a[k] for k in shared], rel=1e-4)


def test_processes_draw_different_parts():
    parts = [part(Runtime(quiet=True, rank=rank, processes=2), 3)[0] for rank in range(2)]
    assert [len(p) for p in parts] == [CONFIG.batch // 2] * 2
    assert not torch.equal(*parts)


@pytest.mark.slow
def test_a_study_runs_under_torchrun(folders):
    study = folders[1].path.parents[1] / "study"
    assert len(list(study.glob("runs/*/samples"))) == 2
    assert not list(study.glob(".leases/*")), "leases are given back"
