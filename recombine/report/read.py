"""A study's folder, read and checked. Whatever is missing or broken becomes one line that names the file."""

import json
import math
import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from recombine.config import UsageError
from recombine.plots.style import PROBES

Record = dict[str, Any]
VERDICTS = ("reproduced", "partly", "not reproduced", "not measured", "smoke")
WORDS = ("reproduced", "holds", "partly", "not reproduced", "does not hold", "not measured", "smoke")
"""How verdicts are said, best first."""
SAID = WORDS[:5]
"""Where there is one."""
SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class Results:
    """What one study left on disk."""

    folder: Path
    study: Record
    rows: list[Record]
    claims: list[Record]

    @property
    def runs(self) -> list[Record]:
        return self.study["runs"]

    def run_folder(self, digest: str) -> Path:
        return run_of(self.folder, digest)


def run_of(study: Path, digest: str) -> Path:
    """The folder of a run that a study names: among those of all studies, or inside the study's own, where another study has
    one of the same name that stands on other weights."""
    own = study / "runs" / digest
    return own if own.is_dir() else study.parent / "runs" / digest


def read_results(folder: Path) -> Results:
    """Everything but pictures: study.json, rows.jsonl, claims.json."""
    study = read_study(folder / "study.json")
    return Results(folder, study, read_lines(folder / "rows.jsonl"), read_claims(folder / "claims.json"))


def read_study(path: Path) -> Record:
    study = read_json(path)
    if not isinstance(study, dict):
        raise UsageError(f"{path}: an object is needed, not {kind(study)}")
    for key in ("name", "question"):
        if not isinstance(study.get(key), str):
            raise UsageError(f"{path}: {key!r} must be a text, not {kind(study.get(key))}")
    for key in ("runs", "figures"):
        study[key] = records(study.get(key) or [], path, key)
    for key, wanted in {"space": dict, "levels": dict, "provenance": dict, "seeds": list}.items():
        if not isinstance(study.get(key), wanted | None):
            raise UsageError(f"{path}: {key!r} must be a {wanted.__name__}, not {kind(study[key])}")
    if study.get("space"):
        records(study["space"].get("factors"), path, "factors")
    for figure in study["figures"]:
        safe_name(figure.get("name"), path, "a figure's name")
    for run in study["runs"]:
        safe_name(run.get("digest"), path, "a run's digest")
    return study


def read_claims(path: Path) -> list[Record]:
    claims = records(read_json(path), path, "claims.json")
    for claim in claims:
        for key in ("id", "statement", "verdict"):
            if not isinstance(claim.get(key), str):
                raise UsageError(f"{path}: claim {claim.get('id')!r} needs a text as its {key!r}")
        if claim["verdict"] not in VERDICTS:
            raise UsageError(f"{path}: {claim['verdict']!r} is no verdict; allowed are {', '.join(VERDICTS)}")
        claim["earlier"] = course(claim.get("earlier", []), claim["id"], path)
        claim["otherwise"] = others(claim.get("otherwise", {}), claim["id"], path)
    said = [claim["said"] if claim.get("said") in WORDS else claim["verdict"] for claim in claims]
    return [claim | {"said": words} for claim, words in zip(claims, said, strict=True)]


def course(value: Any, claim: str, path: Path) -> list[tuple[int, str]]:
    """Checkpoints, in the order of training, and the verdicts on all up to each; none where the study does not say."""
    pairs = isinstance(value, list) and all(isinstance(v, list) and len(v) == 2 for v in value)
    if pairs and all(type(step) is int and said in SAID for step, said in value):
        steps = [step for step, _ in value]
        if all(a < b for a, b in pairwise([0, *steps])):
            return [(step, said) for step, said in value]
    raise UsageError(f"{path}: 'earlier' of claim {claim!r} must be a list of rising steps, each with a verdict")


def others(value: Any, claim: str, path: Path) -> dict[str, str]:
    """Probes, by the names that a page has for them, and the verdict by each; none where the study does not say."""
    if isinstance(value, dict) and all(probe in PROBES and said in SAID for probe, said in value.items()):
        return {PROBES[probe]: said for probe, said in value.items()}
    raise UsageError(
        f"{path}: 'otherwise' of claim {claim!r} must be probes ({', '.join(PROBES)}), each with a verdict"
    )


def records(value: Any, path: Path, what: str) -> list[Record]:
    if isinstance(value, list) and all(isinstance(v, dict) for v in value):
        return value
    raise UsageError(f"{path}: {what!r} must be a list of objects")


def safe_name(name: Any, path: Path, what: str) -> str:
    """A name that will become part of a path must not leave its folder."""
    if isinstance(name, str) and SAFE_NAME.fullmatch(name) and ".." not in name:
        return name
    raise UsageError(f"{path}: {what} must be letters, digits, '-', '_' or '.', not {name!r}")


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read ({type(error).__name__})") from None


def read_json(path: Path) -> Any:
    try:
        return json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError):
        raise UsageError(f"{path}: is not valid JSON") from None


def read_lines(path: Path) -> list[Record]:
    """The objects of a JSON-lines file."""
    found = []
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (json.JSONDecodeError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise UsageError(f"{path}, line {number}: is not a JSON object")
        found.append(row)
    return found


def number(row: Record, key: str, path: Path) -> float | None:
    """A row's number, or None where it has none; NaN and infinity count as none."""
    value = row.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UsageError(f"{path}: {key!r} must be a number, not {value!r}")
    return round(float(value), 4) if math.isfinite(value) else None


def kind(value: Any) -> str:
    return "nothing" if value is None else type(value).__name__
