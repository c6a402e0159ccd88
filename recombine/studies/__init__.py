"""One question = one file: settings, jobs, claims, figures. The list of studies, in the order in
which to read them."""

import runpy
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from recombine.config import UsageError, nearest
from recombine.files import allow_imports_beside

if TYPE_CHECKING:
    from recombine.studies.study import Study

NAMES = (
    "two-models",
    "composition",
    "objectives",
    "label-dropout",
    "optimizers",
    "small-models",
    "labels",
    "forgetting",
    "jitter",
    "jitter-by-shape",
    "interactions",
    "missing-labels",
    "ablations",
    "reconstruction",
    "repair",
    "circuits",
    "seed-parts",
    "concept-space",
    "learning-order",
    "swing-by",
    "local-scores",
    "length",
    "locality",
    "receptive-field",
    "operator",
    "features",
    "colours",
)
"""Each is the module or package of that name; torch is imported only when one is loaded."""
TOUR = ("two-models", "interactions", "swing-by", "local-scores")
"""Every pillar once."""


def expanded(names: Iterable[str]) -> list[str]:
    """The studies of a command, each once: `tour` is several; a file of one's own by its whole
    path."""
    every = dict.fromkeys(n for name in names for n in (TOUR if name == "tour" else (name,)))
    return [str(Path(n).resolve()) if n.endswith(".py") else n for n in every]


def find(name: str) -> "Study":
    """A study by its name, or from a file of one's own (`path/to/study.py`, which defines
    STUDY)."""
    if name.endswith(".py"):
        return load(Path(name))
    if name not in NAMES:
        known = ["tour", *NAMES]
        hint = nearest(name, known) or "."
        raise UsageError(f"no study {name!r}{hint} There are {', '.join(known)}")
    return import_module(f"recombine.studies.{name.replace('-', '_')}").STUDY


def find_assessed(name: str) -> "Study":
    """The study that results are of. One's own is assessed by its file, which results do not
    name."""
    if name not in NAMES:
        raise UsageError(
            f"no study {name!r} in the package; one of your own is assessed by `recombine run "
            "FILE --out DIR`, which trains only what DIR/runs lacks"
        )
    return find(name)


_LOADED: dict[Path, "Study"] = {}


def load(path: Path) -> "Study":
    """The STUDY that a file defines. Running the file is what the user wants; an error in it is
    one line."""
    from recombine.studies.study import Study

    path = path.resolve()
    if path in _LOADED:
        return _LOADED[path]
    if not path.is_file():
        raise UsageError(f"{path}: there is no such study file")
    allow_imports_beside(path)
    try:
        study = runpy.run_path(str(path), run_name=f"study_{path.stem}").get("STUDY")
    except UsageError:
        raise
    except Exception as error:
        where = _line(error, path)
        raise UsageError(f"{path}{where}: {type(error).__name__}: {error}") from None
    if not isinstance(study, Study):
        raise UsageError(f"{path}: defines no STUDY (a recombine.studies.study.Study)")
    if study.name in NAMES:
        raise UsageError(f"{path}: {study.name!r} is a study of recombine; choose another name")
    return _LOADED.setdefault(path, study)


def _line(error: BaseException, path: Path) -> str:
    """The words ", line N" of the user's own file, if the error arose there."""
    number, trace = getattr(error, "lineno", None), error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename == str(path):
            number = trace.tb_lineno
        trace = trace.tb_next
    return f", line {number}" if number else ""
