"""Run folders: named by content, written atomically, resumable. JSON lines and safetensors only; nothing is ever unpickled.

<root>/runs/<digest>/config.json  metrics.jsonl  samples/  state.safetensors  model.safetensors  done.json (last)
and basis.txt, where a run stands on the weights of another.
"""

import hashlib
import json
import os
import struct
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from recombine.config import UsageError, digest, from_json, to_json

try:
    import fcntl
except ImportError:  # no such locks on Windows: there, one process at a time
    fcntl = None

Row = dict[str, Any]
_HELD: set[Path] = set()
"""Folders that this process works in."""


def write_atomic(path: Path, data: bytes | str) -> None:
    """All of it or nothing, also when the process is killed or the disk is full."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None


def write_json(path: Path, value: Any) -> None:
    write_atomic(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    write_atomic(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError:
        raise UsageError(f"{path} is not valid JSON") from None


def read_rows(path: Path) -> list[Row]:
    """The complete lines of a JSON-lines file; a last line cut off by a kill is left out."""
    if not path.exists():
        return []
    *lines, _cut = path.read_bytes().split(b"\n")
    try:
        return [json.loads(line) for line in lines]
    except ValueError:
        raise UsageError(f"{path} is not valid JSON lines") from None


@dataclass(frozen=True)
class RunFolder:
    """One run on disk. `config` decides its result and its name. `basis`: the fingerprint of the weights it stands on, where
    those are another run's: a tokenizer that is trained again, on a GPU, is never quite the same."""

    root: Path
    config: Any
    basis: str = ""

    @cached_property
    def digest(self) -> str:
        return digest(self.config)

    @property
    def title(self) -> str:
        """For whoever watches: what it trains, where that is not a study's own model, and its name."""
        kinds = {"ProbeConfig": "probe", "DetectorConfig": "detector", "TokenizerRun": "tokenizer"}
        return f"{kinds.get(type(self.config).__name__, 'run')} {self.digest}"

    @property
    def path(self) -> Path:
        return self.root / "runs" / self.digest

    @property
    def done(self) -> bool:
        return (self.path / "done.json").exists()

    @property
    def made(self) -> float:
        """When this folder was begun, in seconds since 1970; 0 where there is none."""
        with suppress(FileNotFoundError):  # another process may be erasing it
            return (self.path / "config.json").stat().st_mtime
        return 0.0

    @property
    def hollow(self) -> bool:
        """Whether it is done, but its weights are gone; its rows are there."""
        return self.done and not (self.path / "model.safetensors").exists()

    @property
    def fingerprint(self) -> str:
        """Of its weights, by which others know them; empty where it is not done."""
        with suppress(FileNotFoundError):
            return json.loads((self.path / "done.json").read_text()).get("weights", "")
        return ""

    @property
    def stale(self) -> bool:
        """Whether it was made on other weights than those it stands on."""
        stood = ""
        with suppress(FileNotFoundError):
            stood = (self.path / "basis.txt").read_text()
        return bool(self.basis and self.made) and stood != self.basis

    @contextmanager
    def held(self, wait: bool = True) -> Iterator[bool]:
        """True: no other command works in this folder while the block runs. False, at once and only if `wait` is not wished:
        another one does. A lock goes with its process, also with one that is killed. Of the processes that torchrun starts the
        first one locks for all."""
        if self.path in _HELD or int(os.environ.get("RANK", 0)) > 0:
            yield True
            return
        with ExitStack() as stack:
            if mine := _lock(self.root / ".locks" / self.digest, wait, stack):
                _HELD.add(self.path)
                stack.callback(_HELD.discard, self.path)
            yield mine

    def open(self) -> None:
        """Make the folder and write its config; a folder that is there must hold this very config. (Where it does, nothing is
        built from it, so configs of anybody's own classes are fine.)"""
        path = self.path / "config.json"
        if path.exists():
            if read_json(path) != to_json(self.config):
                read_config(self.path)
            return
        if self.basis:
            write_atomic(self.path / "basis.txt", self.basis)
        write_json(path, to_json(self.config))

    def erase(self) -> None:
        """Start over: everything goes, the word "done" first."""
        for name in (
            "done.json",
            "state.safetensors",
            "spent.json",
            "model.safetensors",
            "metrics.jsonl",
            "config.json",
            "basis.txt",
        ):
            (self.path / name).unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove half-written weights that a kill in mid-save left behind."""
        for name in ("state", "model"):
            for stale in self.path.glob(f".{name}.safetensors.*.tmp"):
                stale.unlink(missing_ok=True)

    def append(self, rows: Iterable[Row]) -> None:
        try:
            with open(self.path / "metrics.jsonl", "a") as file:
                file.write("".join(json.dumps(row) + "\n" for row in rows))
        except OSError as error:
            raise UsageError(f"cannot write {self.path / 'metrics.jsonl'}: {error.strerror or error}") from None

    def rows(self) -> list[Row]:
        return read_rows(self.path / "metrics.jsonl")

    def rewind(self, step: int) -> None:
        """Forget what a run resumed at `step` will write again, the same: later training rows, and measurements from
        `step` on (a kill may have cut one short)."""
        keep = lambda r: r["step"] < step or (r["step"] == step and r["kind"] == "train")  # noqa: E731
        write_rows(self.path / "metrics.jsonl", [r for r in self.rows() if keep(r)])

    def save_state(self, tensors: dict[str, Tensor], step: int, spent: dict[str, float] | None = None) -> None:
        """`spent`: the seconds it took so far, in a file of its own: equal runs have equal states, but not equal times."""
        self._save("state.safetensors", tensors, step)
        if spent:
            write_json(self.path / "spent.json", spent)

    def spent(self) -> dict[str, float]:
        path = self.path / "spent.json"
        return read_json(path) if path.exists() else {}

    def save_model(self, tensors: dict[str, Tensor], step: int) -> str:
        """The fingerprint of what was saved."""
        return hashlib.sha256(self._save("model.safetensors", tensors, step)).hexdigest()[:16]

    def _save(self, name: str, tensors: dict[str, Tensor], step: int) -> bytes:
        """One metadata entry, not two: safetensors writes several in random order, and equal runs must be equal files."""
        held = {k: v.detach().contiguous() for k, v in tensors.items()}
        data = save(held, metadata={"run": f"{self.digest} step {step}"})
        write_atomic(self.path / name, data)
        return data

    def load_state(self) -> tuple[dict[str, Tensor], int] | None:
        """The last saved state and its step, or None for a run that has not saved yet."""
        path = self.path / "state.safetensors"
        return load_tensors(path, self.digest) if path.exists() else None

    def load_model(self) -> dict[str, Tensor]:
        return load_tensors(self.path / "model.safetensors", self.digest)[0]

    def finish(self, facts: Row) -> None:
        write_json(self.path / "done.json", facts)
        (self.path / "spent.json").unlink(missing_ok=True)


def lockable(root: Path) -> bool:
    """Whether processes can keep each other out of run folders under `root`."""
    with ExitStack() as first, ExitStack() as second:
        trial = root / ".locks" / "trial"
        return _lock(trial, True, first) and not _lock(trial, False, second)


def _lock(path: Path, wait: bool, stack: ExitStack) -> bool:
    """Lock a file until the stack unwinds; False where another process has. Where files cannot be locked or written, nobody can
    be kept out: True."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = stack.enter_context(open(path, "w"))  # noqa: SIM115
        if fcntl:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def load_tensors(path: Path, digest: str) -> tuple[dict[str, Tensor], int]:
    """Tensors and step of a safetensors file. One that is cut off, altered or of another run is refused in one line."""
    try:
        tensors = load_file(path)
        with open(path, "rb") as file:
            header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        owner, _, step = header["__metadata__"]["run"].partition(" step ")
        step = int(step)
    except (SafetensorError, OSError, ValueError, KeyError, struct.error) as error:
        raise UsageError(f"{path} is corrupt or cut off ({type(error).__name__}); use --fresh to start over") from None
    if owner != digest:
        raise UsageError(f"{path} belongs to run {owner}, not to {digest}; use --fresh to start over")
    return tensors, step


def read_config(folder: Path, trust: tuple[str, ...] = ("recombine",)) -> Any:
    """The config of a run folder, perhaps a stranger's: classes outside the trusted packages are refused, and so is a config
    that is not the one the folder is named by (altered, or written when configs had other fields)."""
    path = folder / "config.json"
    config = from_json(read_json(path), trust=trust, path=str(path))
    if digest(config) != folder.name:
        raise UsageError(
            f"{path} is not the config of run {folder.name}; it was altered, or made by another version; --fresh starts over"
        )
    return config
