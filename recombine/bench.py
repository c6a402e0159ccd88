"""`recombine bench`: runs the files of benchmarks/, each with a `main()` that gives rows, and
prints each row as it comes; with --json all of them at the end, on standard output."""

import json
import runpy
import sys
from datetime import UTC, datetime
from pathlib import Path

from recombine.config import UsageError
from recombine.runtime import commit


def folder() -> Path:
    package = Path(__file__).parent
    return next(
        (p for p in (package / "_benchmarks", package.parent / "benchmarks") if p.is_dir()),
        package / "_benchmarks",
    )


def run_benchmarks(names: list[str], as_json: bool) -> None:
    known = {p.stem: p for p in sorted(folder().glob("*.py")) if not p.stem.startswith("_")}
    if unknown := [n for n in names if n not in known]:
        raise UsageError(f"no benchmark {unknown[0]!r}; there are {', '.join(known)}")
    sys.path.insert(0, str(folder()))  # benchmarks share files of their own
    rows, made = [], {"commit": commit(), "date": datetime.now(UTC).strftime("%Y-%m-%d")}
    for name in names or known:
        for row in runpy.run_path(str(known[name]))["main"]():
            rows.append({"benchmark": name, **row, **made})
            shown = (
                f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in rows[-1].items()
            )
            print("  ".join(shown), file=sys.stderr if as_json else sys.stdout, flush=True)
    if as_json:
        print(json.dumps(rows, indent=1))
