"""Files: written whole or not at all, verified when read. A run folder holds JSON lines and
safetensors, never a pickle.

<root>/runs/<digest>/ config.json         what the run is: its config and the digests of its parents
rows.jsonl          what it logged and measured, one JSON object a line samples/            sheets
of samples state.safetensors   everything the next update depends on; progress.json beside it
model.safetensors   the weights (moving average) at the end done.json           written last:
provenance, the checksum of every file of the run, and its own
"""

import json
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from shutil import rmtree
from typing import TYPE_CHECKING, Any, NamedTuple

from recombine.config import UsageError, from_json, to_json
from recombine.files import (
    Row,
    checksum,
    parse_rows,
    read_bytes,
    read_json,
    read_rows,
    refuse_links,
    write_atomic,
    write_json,
    write_rows,
)

if TYPE_CHECKING:
    from torch import Tensor

AGAIN = "or use --fresh to make the run again"


class Saved(NamedTuple):
    """A saved state: its tensors and step, the seconds spent, and which rows it was saved with."""

    tensors: dict[str, "Tensor"]
    step: int
    spent: dict[str, float]
    rows: str


SHEETS = "samples/*.png"
"""Pictures of samples, in a run's folder."""


@dataclass(frozen=True)
class RunFolder:
    """One run on disk, named by its digest. `check` is called before anything is written and
    raises where the run is no longer this process's own (its lease was lost)."""

    root: Path
    digest: str
    check: Callable[[], None] | None = field(default=None, compare=False, repr=False)

    @property
    def path(self) -> Path:
        return self.root / "runs" / self.digest

    @property
    def done(self) -> bool:
        return (self.path / "done.json").exists()

    def facts(self) -> Row:
        """What done.json says, verified; empty where the run is not done."""
        path = self.path / "done.json"
        if not path.exists():
            return {}
        found, damaged = read_json(path), f"{path} is damaged; delete {self.path} {AGAIN}"
        if not isinstance(found, dict) or not _are_texts(found.get("files", {})):
            raise UsageError(damaged)
        if not _are_texts(found.get("parents", {})) or not _sealed(found):
            raise UsageError(damaged)
        return found

    def files(self, pattern: str) -> list[str]:
        """The files of a finished run that fit a pattern, as `samples/*.png`, by its own list; of
        one that is not finished, or older than the list, those that are there."""
        facts = self.facts()
        if "seal" in facts:
            return sorted(n for n in facts["files"] if PurePath(n).match(pattern))
        return sorted(str(p.relative_to(self.path)) for p in self.path.glob(pattern))

    def gone(self, pattern: str) -> list[str]:
        """Of these files those that are not there: runs can be copied without their pictures."""
        return [name for name in self.files(pattern) if not (self.path / name).exists()]

    @property
    def weights(self) -> str:
        """The checksum of its weights, by which others know them; empty where it has none."""
        return self.facts().get("files", {}).get("model.safetensors", "")

    @property
    def weights_missing(self) -> bool:
        """Whether its weights are not there: results are shared without them."""
        return not (self.path / "model.safetensors").exists()

    def begin(self, config: Any) -> None:
        """Make the folder and write its config; a folder that is there must hold this very
        config."""
        refuse_links(self.path, "samples")
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
        refuse_links(self.path)
        (self.path / "done.json").unlink(missing_ok=True)
        rmtree(self.path, ignore_errors=True)

    def _check_there(self) -> None:
        if self.check:
            self.check()
        if not (self.path / "config.json").exists():
            raise UsageError(f"{self.path} was removed while the run was at work; start it again")

    def append(self, rows: Iterable[Row]) -> None:
        self._check_there()
        path = self.path / "rows.jsonl"
        try:
            with open(path, "a") as file:
                file.write("".join(json.dumps(row) + "\n" for row in rows))
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror or error}") from None

    def write_rows(self, rows: Iterable[Row]) -> None:
        self._check_there()
        write_rows(self.path / "rows.jsonl", rows)

    def rows(self) -> list[Row]:
        """Its rows; those of a finished run are verified."""
        path = self.path / "rows.jsonl"
        if not self.done:
            return read_rows(path)
        return parse_rows(self.verified("rows.jsonl"), path)

    def rewind(self, step: int, known: str = "") -> None:
        """Forget what a run resumed at `step` will write again, the same: later training rows, and
        measurements from `step` on (a kill may have cut one short). `known`: which rows the state
        was saved with, so that none is lost or altered."""
        path, kept = self.path / "rows.jsonl", []
        data = read_bytes(path) if path.exists() else b""
        if known:
            data = data[: int(known.partition(":")[0])]
            if _digest_of_rows(data) != known:
                raise UsageError(f"{path} was altered since the run stopped; use --fresh")
        for row in parse_rows(data, path):
            at = row.get("step")
            if not isinstance(at, int):
                raise UsageError(f"{path} has a row without a step; use --fresh")
            if at < step or (at == step and row.get("kind") == "train"):
                kept.append(row)
        self.write_rows(kept)

    def steps_measured(self) -> set[int]:
        """The steps of which it holds measurements."""
        return {row["step"] for row in self.rows() if row.get("kind") != "train" and "step" in row}

    def save_state(
        self, tensors: dict[str, "Tensor"], step: int, spent: dict[str, float] | None = None
    ) -> None:
        """`spent`: the seconds it took so far, in a file of its own: equal runs have equal states,
        but not equal times."""
        path = self.path / "rows.jsonl"
        rows = _digest_of_rows(read_bytes(path) if path.exists() else b"")
        self._save("state.safetensors", tensors, f"{step} rows {rows}")
        write_json(self.path / "progress.json", spent or {})

    def spent(self) -> dict[str, float]:
        """Seconds that an unfinished run has taken so far, and how many of them it measured."""
        path = self.path / "progress.json"
        found = read_json(path) if path.exists() else {}
        found = found if isinstance(found, dict) else {}
        times = {key: found[key] for key in ("seconds", "measuring") if key in found}
        return {key: float(x) for key, x in times.items() if isinstance(x, int | float)}

    def load_state(self) -> Saved | None:
        """The last saved state; None for a run that has not saved yet."""
        state = self.path / "state.safetensors"
        if not state.exists():
            return None
        tensors, at = load_tensors(read_bytes(state), state, self.digest)
        step, _, rows = at.partition(" rows ")
        return Saved(tensors, int(step), self.spent(), rows)

    def save_model(self, tensors: dict[str, "Tensor"], step: int) -> None:
        self._save("model.safetensors", tensors, str(step))

    def load_model(self) -> dict[str, "Tensor"]:
        path = self.path / "model.safetensors"
        data = self.verified(path.name) if self.done else read_bytes(path)
        return load_tensors(data, path, self.digest)[0]

    def _save(self, name: str, tensors: dict[str, "Tensor"], step: str) -> None:
        """One metadata entry, not two: safetensors writes several in random order, and equal runs
        must be equal files. A checksum of everything stands in it, so that a flipped bit is
        noticed."""
        from safetensors.torch import save

        self._check_there()
        held = {k: v.detach().contiguous() for k, v in tensors.items()}
        owner = f"{self.digest} step {step}"
        data = save(held, metadata={"run": f"{owner} sha256 {_content(save(held), owner)}"})
        write_atomic(self.path / name, data)

    def verified(self, name: str) -> bytes:
        """The bytes of a file of a finished run, as they were when it finished."""
        facts, path = self.facts(), self.path / name
        if not path.exists():
            raise UsageError(f"{path} is missing; delete {self.path} {AGAIN}")
        data, known = read_bytes(path), facts.get("files", {}).get(name)
        if checksum(data) != known and (known is not None or "seal" in facts):
            raise UsageError(
                f"{path} was altered after the run finished (its checksum differs); delete "
                f"{self.path} {AGAIN}"
            )
        return data

    def finish(self, facts: Row) -> None:
        """Written last: from now on the run is done."""
        self._check_there()
        (self.path / "progress.json").unlink(missing_ok=True)
        paths = (p for p in sorted(self.path.rglob("*")) if p.is_file() and p.name != "done.json")
        files = {p.relative_to(self.path).as_posix(): checksum(read_bytes(p)) for p in paths}
        made = json.loads(json.dumps({**facts, "files": files}))
        write_json(self.path / "done.json", made | {"seal": _seal(made)})

    def sweep(self) -> None:
        """Remove half-written files that a kill in mid-save left behind; for who holds its lease."""
        for stale in (*self.path.glob(".*.tmp"), *self.path.glob("samples/.*.tmp")):
            stale.unlink(missing_ok=True)


def _are_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(v, str) for v in value.values())


def _seal(facts: Row) -> str:
    """A checksum of what done.json says."""
    said = {key: value for key, value in facts.items() if key != "seal"}
    return checksum(json.dumps(said, sort_keys=True).encode())[:16]


def _sealed(facts: Row) -> bool:
    return facts.get("seal", _seal(facts)) == _seal(facts)


def _digest_of_rows(rows: bytes) -> str:
    """How long some rows are, and their checksum."""
    return f"{len(rows)}:{checksum(rows)[:16]}"


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


def load_tensors(data: bytes, path: Path, digest: str) -> tuple[dict[str, "Tensor"], str]:
    """Tensors of a safetensors file, and what it says after "step". One that is cut off, altered
    or of another run is refused in one line."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        tensors = load(data)
        whose, _, known = _header(data)["__metadata__"]["run"].partition(" sha256 ")
        owner, _, step = whose.partition(" step ")
        intact = _content(data, whose) == known
    except (
        SafetensorError,
        ValueError,
        KeyError,
        TypeError,
        struct.error,
        RecursionError,
    ) as error:
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
