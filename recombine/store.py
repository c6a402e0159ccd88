"""Files: written whole or not at all, verified when read. A run folder holds JSON lines and
safetensors, never a pickle.

<root>/runs/<digest>/ config.json         what the run is: its config and the digests of its parents
rows.jsonl          what it logged and measured, one JSON object a line samples/            sheets
of samples state.safetensors   everything the next update depends on; progress.json beside it
model.safetensors   the weights (moving average) at the end done.json           written last:
provenance, and the checksum of every file that others read
"""

import hashlib
import json
import os
import struct
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any

from recombine.config import UsageError, from_json, to_json

if TYPE_CHECKING:
    from torch import Tensor

Row = dict[str, Any]
CHECKED = ("rows.jsonl", "model.safetensors")
"""Files of a finished run that others read; done.json holds their checksums."""


def write_atomic(path: Path, data: bytes | str) -> None:
    """All of it or nothing, also when the process is killed or the disk is full. The temporary file
    is created exclusively under a random name, so nothing that lies there is written through."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(
            prefix=f".{path.name}.", suffix=".tmp", dir=path.parent
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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_json(path: Path, value: Any) -> None:
    write_atomic(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    write_atomic(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
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


def checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class RunFolder:
    """One run on disk, named by its digest."""

    root: Path
    digest: str

    @property
    def path(self) -> Path:
        return self.root / "runs" / self.digest

    @property
    def done(self) -> bool:
        return (self.path / "done.json").exists()

    def facts(self) -> Row:
        """What done.json says; empty where the run is not done."""
        path = self.path / "done.json"
        found = read_json(path) if path.exists() else {}
        if not isinstance(found, dict) or not isinstance(found.get("files", {}), dict):
            raise UsageError(
                f"{path} is damaged; delete {self.path} or use --fresh to make the run again"
            )
        return found

    @property
    def weights(self) -> str:
        """The checksum of its weights, by which others know them; empty where it has none."""
        return self.facts().get("files", {}).get("model.safetensors", "")

    @property
    def weights_missing(self) -> bool:
        """Whether it is done and has rows, but its weights are gone (results are shared without
        them)."""
        return bool(self.weights) and not (self.path / "model.safetensors").exists()

    def begin(self, config: Any) -> None:
        """Make the folder and write its config; a folder that is there must hold this very
        config."""
        path = self.path / "config.json"
        if not path.exists():
            write_json(path, config)
        elif not _same(read_json(path), config):
            raise UsageError(
                f"{path} is not the config of run {self.digest}; it was altered, or made by another "
                "version; --fresh starts over"
            )

    def erase(self) -> None:
        """Remove the run. done.json goes first, so that a kill in between leaves no run that seems
        whole."""
        (self.path / "done.json").unlink(missing_ok=True)
        rmtree(self.path, ignore_errors=True)

    def append(self, rows: Iterable[Row]) -> None:
        path = self.path / "rows.jsonl"
        try:
            with open(path, "a") as file:
                file.write("".join(json.dumps(row) + "\n" for row in rows))
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror or error}") from None

    def write_rows(self, rows: Iterable[Row]) -> None:
        write_rows(self.path / "rows.jsonl", rows)

    def rows(self) -> list[Row]:
        """Its rows; those of a finished run are verified."""
        path = self.path / "rows.jsonl"
        if not self.done:
            return read_rows(path)
        return parse_rows(self.verified("rows.jsonl"), path)

    def rewind(self, step: int) -> None:
        """Forget what a run resumed at `step` will write again, the same: later training rows, and
        measurements from `step` on (a kill may have cut one short)."""
        kept = []
        for row in self.rows():
            if row["step"] < step or (row["step"] == step and row["kind"] == "train"):
                kept.append(row)
        self.write_rows(kept)

    def save_state(
        self, tensors: dict[str, "Tensor"], step: int, spent: dict[str, float] | None = None
    ) -> None:
        """`spent`: the seconds it took so far, in a file of its own: equal runs have equal states,
        but not equal times."""
        self._save("state.safetensors", tensors, step)
        write_json(self.path / "progress.json", spent or {})

    def spent(self) -> dict[str, float]:
        """Seconds that an unfinished run has taken so far, and how many of them it measured."""
        path = self.path / "progress.json"
        found = read_json(path) if path.exists() else {}
        return {key: found[key] for key in ("seconds", "measuring") if key in found}

    def load_state(self) -> tuple[dict[str, "Tensor"], int, dict[str, float]] | None:
        """The last saved state, its step and the seconds spent; None for a run that has not saved
        yet."""
        state = self.path / "state.safetensors"
        if not state.exists():
            return None
        return (*load_tensors(read_bytes(state), state, self.digest), self.spent())

    def save_model(self, tensors: dict[str, "Tensor"], step: int) -> None:
        self._save("model.safetensors", tensors, step)

    def load_model(self) -> dict[str, "Tensor"]:
        path = self.path / "model.safetensors"
        data = self.verified(path.name) if self.done else read_bytes(path)
        return load_tensors(data, path, self.digest)[0]

    def _save(self, name: str, tensors: dict[str, "Tensor"], step: int) -> None:
        """One metadata entry, not two: safetensors writes several in random order, and equal runs
        must be equal files. A checksum of everything stands in it, so that a flipped bit is
        noticed."""
        from safetensors.torch import save

        held = {k: v.detach().contiguous() for k, v in tensors.items()}
        owner = f"{self.digest} step {step}"
        data = save(held, metadata={"run": f"{owner} sha256 {_content(save(held), owner)}"})
        write_atomic(self.path / name, data)

    def verified(self, name: str) -> bytes:
        """The bytes of a file of a finished run, as they were when it finished."""
        data, known = read_bytes(self.path / name), self.facts().get("files", {}).get(name)
        if known is not None and checksum(data) != known:
            raise UsageError(
                f"{self.path / name} was altered after the run finished (its checksum differs); delete {self.path} or use "
                "--fresh to make the run again"
            )
        return data

    def finish(self, facts: Row) -> None:
        """Written last: from now on the run is done."""
        files = {}
        for name in CHECKED:
            path = self.path / name
            if path.exists():
                files[name] = checksum(read_bytes(path))
        write_json(self.path / "done.json", {**facts, "files": files})
        (self.path / "progress.json").unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove half-written files that a kill in mid-save left behind."""
        for stale in self.path.glob(".*.tmp"):
            stale.unlink(missing_ok=True)


def _same(stored: Any, config: Any) -> bool:
    """Whether a stored config says the same; fields that it lacks are newer than it and stand at
    their defaults."""
    given = json.loads(json.dumps(config))
    if stored == given:
        return True
    try:
        whole = stored | {"config": to_json(from_json(stored["config"]))}
    except (UsageError, TypeError, KeyError):
        return False
    return whole == given


def _header(data: bytes) -> dict[str, Any]:
    return json.loads(data[8 : 8 + struct.unpack("<Q", data[:8])[0]])


def _content(data: bytes, owner: str) -> str:
    """The checksum of a safetensors file: its tensors, their names and shapes, and whose they are;
    not its metadata."""
    named = {k: v for k, v in _header(data).items() if k != "__metadata__"}
    body = data[8 + struct.unpack("<Q", data[:8])[0] :]
    return checksum(json.dumps([owner, named], sort_keys=True).encode() + body)


def load_tensors(data: bytes, path: Path, digest: str) -> tuple[dict[str, "Tensor"], int]:
    """Tensors and step of a safetensors file. One that is cut off, altered or of another run is
    refused in one line."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        tensors = load(data)
        whose, _, known = _header(data)["__metadata__"]["run"].partition(" sha256 ")
        owner, _, step = whose.partition(" step ")
        step, intact = int(step), _content(data, whose) == known
    except (SafetensorError, ValueError, KeyError, TypeError, struct.error) as error:
        raise UsageError(
            f"{path} is corrupt or cut off ({type(error).__name__}); use --fresh to start over"
        ) from None
    if not intact:
        raise UsageError(f"{path} was altered (its checksum differs); use --fresh to start over")
    if owner != digest:
        raise UsageError(
            f"{path} belongs to run {owner}, not to {digest}; use --fresh to start over"
        )
    return tensors, step
