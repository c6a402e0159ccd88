"""Two processes that share each batch end with the weights of one."""

import multiprocessing
import os
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from tiny import CONFIG, fit

from recombine.config import override
from recombine.runtime import Runtime
from recombine.store import RunFolder, read_json
from recombine.studies import composition
from recombine.studies.lab import Lab
from recombine.train.fit import Fit


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def join(rank: int, port: int) -> None:
    """The environment that torchrun makes."""
    said = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ.update({k: str(v) for k, v in said.items()})


def together(work: Callable[..., None], root: Path) -> list[int | None]:
    """Two processes at the same work; their exit codes, None for one that hangs."""
    port, start = free_port(), multiprocessing.get_context("spawn").Process
    processes = [start(target=work, args=(rank, port, root)) for rank in range(2)]
    for p in processes:
        p.start()
    for p in processes:
        p.join(120)
    found = [p.exitcode for p in processes]
    for p in processes:
        p.kill()
    return found


def work(rank: int, port: int, root: Path) -> None:
    """What torchrun starts: the environment says who we are, `Runtime.find` joins the others. A run is trained as a study does
    it, looked up, and trained anew; only the first process locks its folder."""
    join(rank, port)
    runtime = Runtime.find("cpu", quiet=True)
    assert (runtime.rank, runtime.processes) == (rank, 2)
    folder, train = RunFolder(root, CONFIG), lambda: fit(root, runtime=runtime)
    lab = Lab(runtime, root, "smoke", 1)
    rows = lab.rows_of(folder, train, "a", 0, "train")
    assert lab.rows_of(folder, train, "a", 0, "train") == rows, "found on disk"
    fresh = replace(lab, fresh=True, began=time.time() + 1)
    assert len(fresh.rows_of(folder, train, "a", 0, "train")) == len(rows), (
        "all processes agree that it is trained again"
    )
    torch.manual_seed(rank)
    net = Fit(torch.nn.Linear(3, 1), lambda n, x: n(x)[:, 0], CONFIG, runtime).net
    each = [torch.empty_like(net.weight) for _ in range(2)]
    dist.all_gather(each, net.weight.detach())
    assert torch.equal(*each), "all begin with the weights of the first"
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("ddp")
    assert together(work, root / "two") == [0, 0]
    return fit(root / "one"), fit(root / "two")


def test_two_processes_give_the_weights_of_one(folders):
    one, two = (f.load_model() for f in folders)
    assert one.keys() == two.keys()
    for name in one:
        torch.testing.assert_close(two[name], one[name], atol=1e-5, rtol=1e-5)


def test_every_row_is_written_once_and_says_the_same(folders):
    one, two = (f.rows() for f in folders)
    assert [(r["kind"], r["step"]) for r in one] == [(r["kind"], r["step"]) for r in two]
    for a, b in zip(one, two, strict=True):
        shared = [k for k in a if k not in ("kind", "loss")]  # the loss is that of the first process's share
        assert [b[k] for k in shared] == pytest.approx([a[k] for k in shared], rel=1e-4)


def test_the_run_says_that_two_took_part(folders):
    assert [read_json(f.path / "done.json")["processes"] for f in folders] == [1, 2]
    assert folders[1].load_state()[1] == CONFIG.steps


def another_seed(rank: int, port: int, root: Path) -> None:
    """The second seed finds what the probes are worth on disk, and needs them all the same: to judge, which one process does,
    both must have made them."""
    join(rank, port)
    runtime = Runtime.find("cpu", quiet=True)
    settings = override(
        composition.settings("smoke"), "probe_steps=2", "recipe.train.steps=2", "samples=2", "world.size=21"
    )
    for seeds in (1, 2):
        composition.run(settings, Lab(runtime, root, "smoke", seeds))
    dist.destroy_process_group()


def test_processes_that_share_a_run_all_make_what_it_stands_on(tmp_path):
    assert together(another_seed, tmp_path) == [0, 0]
    assert len(list(tmp_path.glob("runs/*/samples"))) == 2
