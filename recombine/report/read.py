"""A study's folder, read and checked. Whatever is missing or broken becomes one line that names the
file and the field."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from recombine.analysis.claims import Verdict
from recombine.analysis.table import Table, read_rows_of
from recombine.config import UsageError
from recombine.files import read_bytes, refuse_links

Name = Annotated[str, Meta(pattern=r"\A(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9_.-]*\Z")]
"""What becomes part of a path: it cannot leave its folder."""
Step = Annotated[int, Meta(ge=0)]
Value = float | int | bool | str | None
Interval = tuple[float, float] | None


class Factor(Struct):
    name: str
    values: list[str | int | float]


class Space(Struct):
    factors: list[Factor] = []


class Run(Struct):
    digest: str
    variant: str | None = None
    seed: int | None = None
    noun: str = "run"
    label: str = ""


class Sheet(Struct):
    """A sheet of samples, `samples/<file>`: of a checkpoint where it has a step."""

    run: str
    file: Name
    name: str = ""
    step: Step | None = None


class FigureEntry(Struct):
    name: Name
    title: str = ""
    caption: str = ""


class StudyEntry(Struct):
    """study.json, as far as a page needs it."""

    name: str
    question: str
    paper: str = ""
    about: str = ""
    widget: str | None = None
    scale: str = ""
    seeds: list[int] = []
    settings: Any = None
    settings_version: str = ""
    runs: list[Run] = []
    sheets: list[Sheet] = []
    figures: list[FigureEntry] = []
    space: Space | None = None
    levels: dict[str, int] | None = None
    own: str = ""
    paper_curve: str | dict[str, str] | None = None
    rows_of: str = ""
    provenance: dict[str, Any] = {}

    @property
    def factors(self) -> list[Factor]:
        return self.space.factors if self.space else []

    @property
    def seeds_text(self) -> str:
        """`5 seeds`, or `1 to 5 seeds` where variants have different numbers of them."""
        seeds: dict[str, set[int]] = {}
        for run in self.runs:
            if run.variant is not None and run.seed is not None:
                seeds.setdefault(run.variant, set()).add(run.seed)
        counts = sorted({len(each) for each in seeds.values()} or {len(self.seeds)})
        first = f"{counts[0]} to " if len(counts) > 1 else ""
        return f"{first}{counts[-1]} seed{'s' * (counts[-1] != 1)}"


class PartEntry(Struct):
    """A number with its expected region, or a check that holds or does not."""

    name: str
    verdict: Verdict
    estimate: float | None = None
    interval: Interval = None
    n: int | None = None
    expected: tuple[float | None, float | None] = (None, None)
    holds: bool | None = None
    needed: bool = False


class Sensitivity(Struct):
    """What the verdict would be by another probe, or assessed up to an earlier checkpoint."""

    by_probe: dict[str, Verdict] = {}
    by_checkpoint: list[tuple[Step, Verdict]] = []


class ClaimEntry(Struct):
    """One claim of claims.json."""

    id: str
    study: str
    statement: str
    verdict: Verdict
    paper: str = ""
    expected: str = ""
    measured: dict[str, Value] = {}
    estimate: float | None = None
    interval: Interval = None
    n: int | None = None
    note: str = ""
    parts: list[PartEntry] = []
    deviations: list[str] = []
    sensitivity: Sensitivity = msgspec.field(default_factory=Sensitivity)
    scale: str = ""
    seeds: int = 0
    folder: str = ""


@dataclass(frozen=True)
class Results:
    """What one study left on disk."""

    folder: Path
    study: StudyEntry
    rows: Table
    claims: list[ClaimEntry]


def read_results(folder: Path) -> Results:
    """Everything but pictures: study.json, rows.parquet, claims.json."""
    refuse_links(folder, "figures", "samples")
    study = read_study(folder)
    rows = read_rows_of(folder, study.rows_of)
    return Results(folder, study, rows, read_entries(folder / "claims.json"))


def read_study(folder: Path) -> StudyEntry:
    refuse_old(folder)
    return read_as(folder / "study.json", StudyEntry)


def read_entries(path: Path) -> list[ClaimEntry]:
    """The claims of one file, checked; each knows the folder it lies in."""
    claims = read_as(path, list[ClaimEntry])
    for claim in claims:
        claim.folder = path.parent.name
    return claims


def in_order(files: Iterable[Path]) -> list[Path]:
    """The folders of some files, as `recombine list` has their studies; strangers come last."""
    from recombine.studies import NAMES  # the list alone; no study is imported

    known = {name: i for i, name in enumerate(NAMES)}
    folders = {path.parent for path in files}
    return sorted(folders, key=lambda f: (known.get(f.name, len(known)), f.name))


def read_as(path: Path, kind: Any) -> Any:
    """A JSON file as a value of some type; unknown fields are ignored."""
    data = content(path)
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {_line(error)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise UsageError(f"{path}: is not valid JSON") from None


def content(path: Path) -> bytes:
    if not path.exists():
        raise UsageError(f"{path}: there is no such file")
    return read_bytes(path)


def refuse_old(folder: Path) -> None:
    """UsageError where a study's folder holds the files that were written before rows became
    Parquet."""
    if (folder / "rows.jsonl").exists() and not (folder / "rows.parquet").exists():
        raise UsageError(
            f"{folder}: made by an earlier version (rows.jsonl, not rows.parquet); "
            "run the study again"
        )


def _line(error: Exception) -> str:
    """`$.figures[0].name` of the decoder's message becomes figures[0].name."""
    return " ".join(str(error).split()).replace("`$.", "`").replace("`$[", "`[")
