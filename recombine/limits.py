"""What a file of others may cost this machine: only regular files are read, and none that is
larger than the limits below. Limits are settings of the machine, not of a run: raise one by its
environment variable, e.g. RECOMBINE_MAX_PIXELS=200000000."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from recombine.config import UsageError

DEFAULTS = {
    "RECOMBINE_MAX_PIXELS": 50_000_000,  # of one picture
    "RECOMBINE_MAX_BYTES": 8_000_000_000,  # of one file
    "RECOMBINE_MAX_ROWS": 50_000_000,  # of one table
    "RECOMBINE_MAX_COMPOSITIONS": 10_000,  # that a study enumerates
    "RECOMBINE_MAX_CHECKPOINTS": 10_000,  # of one run
    "RECOMBINE_MAX_RUNS": 100_000,  # of one study
    "RECOMBINE_MAX_DAYS": 365,  # of one run
    "RECOMBINE_MAX_MEMORY": 0,  # bytes that one run may need; 0: what this machine has free
}

SPEED = 1e15
"""Operations a second that no machine exceeds by much: what takes too long at this speed is
refused."""
UPDATE = 1e-6
"""Seconds that an update, or a step of a solver, takes at least."""


def limit(name: str) -> int:
    """A limit by the last word of its name: `limit("pixels")`."""
    variable = f"RECOMBINE_MAX_{name.upper()}"
    text = os.environ.get(variable, "")
    if not text:
        return DEFAULTS[variable]
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise UsageError(f"{variable}={text}: a limit is a whole number")
    return int(text)


def allow(name: str, count: int, what: str) -> None:
    """UsageError where `what` has more than the limit allows."""
    if count > (most := limit(name)):
        raise UsageError(
            f"{what} has {count:,} {name}, more than the {most:,} that are allowed; "
            f"RECOMBINE_MAX_{name.upper()} sets how many"
        )


def memory() -> int:
    """Bytes that one run may need: the limit that was set, else what this machine has free."""
    if most := limit("memory"):
        return most
    free = [_meminfo(), _cgroup()]
    return min((n for n in free if n), default=2**63)


def check_memory(need: int, what: str) -> None:
    """UsageError, with the estimate, where `what` cannot fit into memory."""
    if need > (free := memory()):
        raise UsageError(
            f"{what} needs at least {amount(need)} of memory, and {amount(free)} are free; choose "
            "smaller settings, or set RECOMBINE_MAX_MEMORY (bytes)"
        )


def check_time(operations: float, what: str) -> None:
    """UsageError, with the estimate, where `what` would take longer than allowed even at
    `SPEED`."""
    _check_days(operations / SPEED / 86400, f"at {SPEED:.0e} operations a second", what)


def check_updates(count: int | float, what: str) -> None:
    """The same of what is done one after the other, each in no less than `UPDATE`."""
    _check_days(count * UPDATE / 86400, f"for {count:.3g} steps of a microsecond", what)


def _check_days(days: float, why: str, what: str) -> None:
    if days > (most := limit("days")):
        raise UsageError(
            f"{what} takes at least {days:.3g} days {why}, and RECOMBINE_MAX_DAYS allows {most}"
        )


def _meminfo() -> int:
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 0


def _cgroup() -> int:
    """What is left of a container's memory; 0 where there is no such limit."""
    with suppress(OSError, ValueError):
        root = Path("/sys/fs/cgroup")
        return int((root / "memory.max").read_text()) - int((root / "memory.current").read_text())
    return 0


def amount(count: int | float) -> str:
    """3.2e9 bytes -> "3.2 GB"."""
    for unit in ("bytes", "kB", "MB", "GB", "TB", "PB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} EB"


@contextmanager
def regular(path: Path | str) -> Iterator[BinaryIO]:
    """A file open for reading. OSError where it is none; UsageError where it is a pipe, a device or
    a folder, which might never end, or larger than allowed."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise UsageError(f"{path}: is not a regular file")
        allow("bytes", found.st_size, str(path))
        yield file
