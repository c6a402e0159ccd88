"""Several processes on one GPU at the same time. By itself a GPU serves one process after another,
in turns; through NVIDIA's multi-process service (MPS) the small kernels of several run side by
side. Where it is installed, it is started for the length of a command and stopped again; where it
is not, or does not work, nothing changes. RECOMBINE_MPS=0 leaves it off."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

CONTROL = "nvidia-cuda-mps-control"
RUNNING = Path("/tmp/nvidia-mps/control")
"""There where somebody else has started the service for the whole runtime."""
TRIAL = "import ctypes; c = ctypes.CDLL('libcuda.so.1'); p = ctypes.c_void_p(); \
raise SystemExit(c.cuInit(0) or c.cuDevicePrimaryCtxRetain(ctypes.byref(p), 0))"
"""What a process must be able to do through the service."""


@contextmanager
def side_by_side(note: Callable[[str], None]) -> Iterator[bool]:
    """Processes that are started inside the block share the GPU; says whether they do."""
    control = shutil.which(CONTROL)
    if not control or not wanted():
        yield False
        return
    with TemporaryDirectory(prefix="mps-", ignore_cleanup_errors=True) as folder:
        folders = {
            "CUDA_MPS_PIPE_DIRECTORY": f"{folder}/pipe",
            "CUDA_MPS_LOG_DIRECTORY": f"{folder}/log",
        }
        for place in folders.values():
            Path(place).mkdir()
        env = os.environ | folders
        service = {
            k: v for k, v in env.items() if k != "CUDA_VISIBLE_DEVICES"
        }  # it would count what is left anew
        try:
            works = succeeds([control, "-d"], service) and succeeds(
                [sys.executable, "-c", TRIAL], env
            )
            if not works:
                note(
                    "processes take turns on the GPU: its multi-process service does not start here"
                )
            with _exported(folders if works else {}):
                yield works
        finally:
            succeeds([control], service, "quit\n")


def wanted() -> bool:
    return (
        os.environ.get("RECOMBINE_MPS") != "0"
        and "CUDA_MPS_PIPE_DIRECTORY" not in os.environ
        and not RUNNING.exists()
    )


def succeeds(
    command: list[str], env: dict[str, str], says: str = "", seconds: float = 30.0
) -> bool:
    """Whether a command succeeds in time."""
    given = {"env": env, "input": says, "text": True, "timeout": seconds}
    try:
        return (
            subprocess.run(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **given
            ).returncode
            == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


@contextmanager
def _exported(folders: dict[str, str]) -> Iterator[None]:
    """For the processes that are started meanwhile."""
    os.environ.update(folders)
    try:
        yield
    finally:
        for name in folders:
            del os.environ[name]
