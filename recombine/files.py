"""Files: written whole or not at all; only regular files are read, and no links."""

import hashlib
import json
import os
import socket
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from recombine.config import UsageError
from recombine.limits import regular

Row = dict[str, Any]


def write_atomic(path: Path, data: bytes | str) -> None:
    """All of it or nothing, also when the process is killed or the disk is full. The temporary file
    is created exclusively under a random name, so nothing that lies there is written through; the
    name says whose it is (see `sweep`)."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(
            prefix=f".{path.name[:80]}.{_host()}.{os.getpid()}.", suffix=".tmp", dir=path.parent
        )
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None
    try:
        with open(handle, "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            os.unlink(temporary)


def temporary_path(path: Path) -> Path:
    """A hidden name beside a file, for this process alone (see `sweep`)."""
    return path.with_name(f".{path.name[:80]}.{_host()}.{os.getpid()}.{uuid4().hex[:8]}.tmp")


def sweep(folder: Path) -> None:
    """Remove what processes of this machine that are gone left half-written in a folder."""
    for stale in folder.glob(".*.tmp"):
        *_, host, pid, _random, _tmp = ["", "", *stale.name.rsplit(".", 4)]
        if host == _host() and pid.isdigit() and is_gone(int(pid)):
            with suppress(OSError):
                stale.unlink()


def is_gone(pid: int) -> bool:
    """Whether no process of this machine has this number."""
    try:
        with suppress(PermissionError):  # another user's
            os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):  # no process has so large a number
        return True
    return False


def allow_imports_beside(path: Path) -> None:
    """A file of the user's own can import what lies beside it, as if Python had been called with
    it."""
    if (folder := str(path.resolve().parent)) not in sys.path:
        sys.path.insert(0, folder)


def check_writable(out: Path) -> None:
    """Fail before the work, not after it."""
    if out.is_file():
        raise UsageError(f"--out {out}: is a file, not a folder")
    sweep(out)
    trial = out / ".writable"
    write_atomic(trial, "")
    trial.unlink(missing_ok=True)


def _host() -> str:
    return socket.gethostname().replace(".", "-") or "host"


def refuse_links(folder: Path, *below: str) -> None:
    """UsageError where a results folder, or one of the folders in it, is a link: what is read from
    it and written into it stays inside."""
    for path in (folder, *(folder / name for name in below)):
        if path.is_symlink():
            raise UsageError(f"{path}: is a link; a results folder holds its own files")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_json(path: Path, value: Any) -> None:
    write_atomic(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    write_atomic(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def read_bytes(path: Path, most: int = -1) -> bytes:
    """Of a regular file within the limits, not of a link; only the first `most` where given."""
    try:
        if path.is_symlink():
            raise UsageError(f"cannot read {path}: it is a link")
        with regular(path) as file:
            return file.read(most)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None


def read_json(path: Path) -> Any:
    data = read_bytes(path)
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise UsageError(f"{path} is not valid JSON") from None


def parse_rows(data: bytes, path: Path) -> list[Row]:
    """The complete lines of a JSON-lines file; a last line cut off by a kill is left out."""
    *lines, _cut = data.split(b"\n")
    try:
        rows = [json.loads(line) for line in lines]
    except (ValueError, RecursionError):
        rows = [None]
    if not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"{path} is not valid JSON lines")
    return rows


def read_rows(path: Path) -> list[Row]:
    return parse_rows(read_bytes(path), path) if path.exists() else []


def rounded(row: Row) -> Row:
    """Four digits are enough on disk; a share of nothing (NaN) is None."""
    plain = {k: None if isinstance(v, float) and v != v else v for k, v in row.items()}
    return {k: round(v, 4) if isinstance(v, float) else v for k, v in plain.items()}


def checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@contextmanager
def readable_parquet(where: str) -> Iterator[None]:
    """A damaged table is one line; polars also panics on some, which is no Exception."""
    try:
        yield
    except (UsageError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        said = " ".join(str(error).split())[:80]
        raise UsageError(f"{where}: is not a readable Parquet table ({said})") from None


def printable(text: str) -> str:
    """Control characters as text: a stranger's file must not steer the terminal, nor break a
    line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
