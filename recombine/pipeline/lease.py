"""Leases: who works on a run, for processes on any number of machines that share a folder.

A lease is a file `<name>.<generation>`, created exclusively, whose holder rewrites it every few
seconds (the heartbeat). Nobody needs file locks, which some shared file systems keep local to a
machine. A holder that died is recognised at once on its own machine (its process is gone),
elsewhere by a heartbeat that does not change for TIMEOUT seconds of the watcher's own clock.
Whoever takes over creates the next generation; a holder that finds a newer one has lost its lease
and stops. The last one to leave removes the folder."""

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from recombine.config import UsageError
from recombine.files import sweep, temporary_path

BEAT = 2.0
"""Seconds between heartbeats."""
TIMEOUT = 30.0
"""Seconds without a heartbeat after which a holder on another machine counts as dead."""
_MINE: dict[Path, "Lease"] = {}
"""Leases that this process holds."""


class LeaseLost(RuntimeError):
    """Another worker has taken the run over, because this one seemed dead (it was stopped, or its
    disk was away)."""


def whoami() -> dict[str, Any]:
    """The process, so that others on the same machine can check whether it still lives."""
    return _identity(os.getpid())


@cache
def _identity(pid: int) -> dict[str, Any]:
    return {"host": socket.gethostname(), "boot": _boot(), "pid": pid, "started": _started(pid)}


def _boot() -> str:
    """This boot of this machine, and the process namespace in which its numbers hold."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process began, in the kernel's ticks; empty where it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in ("Z", "X") else fields[19]


def is_dead(holder: dict[str, Any]) -> bool:
    """Whether a holder is known to be gone: it ran on this machine, and its process is no more."""
    me = whoami()
    here = me["boot"] and all(holder.get(key) == me[key] for key in ("host", "boot"))
    return bool(here) and _started(int(holder.get("pid", 0))) != holder.get("started")


class Lease:
    """One held lease, kept alive by a thread until it is released."""

    def __init__(self, folder: Path, name: str, generation: int):
        self.folder, self.name, self.generation = folder, name, generation
        self.path = _path(folder, name, generation)
        self.token, self.lost, self.stop = uuid.uuid4().hex, False, threading.Event()
        self.looked = time.monotonic()
        self.thread = threading.Thread(target=self._beat, daemon=True)

    def content(self) -> str:
        return json.dumps({**whoami(), "token": self.token, "beat": time.time()})

    def start(self) -> None:
        self.thread.start()

    def _beat(self) -> None:
        while not self.stop.wait(BEAT):
            if self._is_lost():
                return
            with suppress(OSError):
                _rewrite(self.path, self.content())

    def _is_lost(self) -> bool:
        self.lost = self.lost or _newest(self.folder, self.name) != self.generation
        self.looked = time.monotonic()
        return self.lost

    def check(self) -> None:
        """LeaseLost where somebody else has taken over. A process that was stopped for a while
        looks for itself, before its heart beats again."""
        if self.lost or (time.monotonic() - self.looked > 2 * BEAT and self._is_lost()):
            raise LeaseLost(f"another worker took over {self.name}")

    def release(self) -> None:
        self.stop.set()
        if self.thread.is_alive():
            self.thread.join()
        for generation in _generations(self.folder, self.name):
            if generation <= self.generation:
                _path(self.folder, self.name, generation).unlink(missing_ok=True)
        _leave(self.folder)


def _leave(folder: Path) -> None:
    """Remove what killed processes left half-written, and the folder where nothing else is in it."""
    sweep(folder)
    with suppress(OSError):
        folder.rmdir()


def sweep_leases(out: Path) -> None:
    """Remove the leases of processes of this machine that are gone, as one who takes over does."""
    folder = out / ".leases"
    for name in sorted({p.name.rpartition(".")[0] for p in folder.glob("[!.]*.*")}):
        with suppress(OSError):  # a full disk
            if lease := acquire(folder, name, Watcher()):
                lease.release()
    _leave(folder)


def _path(folder: Path, name: str, generation: int) -> Path:
    return folder / f"{name}.{generation}"


def _generations(folder: Path, name: str) -> list[int]:
    found = (p.name.rpartition(".")[2] for p in folder.glob(f"{name}.*"))
    return sorted(int(g) for g in found if g.isdigit())


def _newest(folder: Path, name: str) -> int:
    return max(_generations(folder, name), default=0)


def _rewrite(path: Path, text: str) -> None:
    """A heartbeat: whole, since a watcher may be reading it."""
    beat = temporary_path(path)
    try:
        beat.write_text(text)
        os.replace(beat, path)
    finally:
        beat.unlink(missing_ok=True)


def _create(path: Path, text: str) -> bool:
    """Whether this process was the one to create the file. Written aside and linked, so it is never
    seen empty. FileNotFoundError where the folder was removed meanwhile."""
    aside = temporary_path(path)
    try:
        aside.write_text(text)
        os.link(aside, path)
        return True
    except FileExistsError:
        return False
    finally:
        aside.unlink(missing_ok=True)


class Watcher:
    """Remembers what it saw of other holders' leases, and since when, by its own clock."""

    def __init__(self, timeout: float = 0.0):
        self.timeout, self.seen = timeout or TIMEOUT, {}

    def is_stale(self, path: Path, content: str) -> bool:
        try:
            holder = json.loads(content)
        except ValueError:
            holder = {}
        if isinstance(holder, dict) and is_dead(holder):
            return True
        known, since = self.seen.get(path, (None, 0.0))
        if known != content:
            self.seen[path] = (content, time.monotonic())
            return False
        return time.monotonic() - since > self.timeout


def acquire(folder: Path, name: str, watcher: Watcher) -> Lease | None:
    """A lease on `name`, or None where somebody who seems alive holds it."""
    for _ in range(99):  # another process may just be removing the empty folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return _try_to_acquire(folder, name, watcher)
        except FileNotFoundError:
            continue
        except FileExistsError:  # there, and gone when mkdir looked whether it is a folder
            if folder.is_file():
                raise
    return None


def _try_to_acquire(folder: Path, name: str, watcher: Watcher) -> Lease | None:
    newest = _newest(folder, name)
    stale = ""
    if newest:
        path = _path(folder, name, newest)
        try:
            stale = path.read_text()
        except OSError:
            return None  # released this moment: next time
        if not watcher.is_stale(path, stale):
            return None
    lease = Lease(folder, name, newest + 1)
    if not _create(lease.path, lease.content()):
        return None
    if newest and _read(_path(folder, name, newest)) != stale:
        lease.path.unlink(missing_ok=True)  # the holder lives after all, or is another one by now
        return None
    lease.start()
    return lease


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text()
    return ""


@contextmanager
def hold_lease(
    out: Path, name: str, watcher: Watcher | None = None, wait: Callable[[], bool] | None = None
) -> Iterator[Lease | None]:
    """A lease while the block runs; None where another worker has it. `wait`: tried again and again
    while it is taken, whether to go on waiting."""
    folder, watcher = out / ".leases", watcher or Watcher()
    if (mine := _MINE.get(folder / name)) is not None:
        yield mine
        return
    try:
        lease = acquire(folder, name, watcher)
        while lease is None and wait is not None and wait():
            time.sleep(0.1)
            lease = acquire(folder, name, watcher)
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror or error}") from None
    if lease is None:
        yield None
        return
    _MINE[folder / name] = lease
    try:
        yield lease
    finally:
        del _MINE[folder / name]
        lease.release()
