"""Which code made a result."""

import os
import subprocess
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent


def commit() -> str:
    """The commit this code stands at; RECOMBINE_COMMIT says it where there is no repository."""
    return os.environ.get("RECOMBINE_COMMIT") or _checked_out()


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(HERE), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@cache
def _checked_out() -> str:
    """As it was at the first call: code that is loaded does not change any more."""
    try:
        if Path(_git("rev-parse", "--show-toplevel").strip()) != HERE.parent:
            return "unknown"  # installed inside somebody else's repository
        return _git("rev-parse", "--short=12", "HEAD").strip() + (
            "+" if _git("status", "--porcelain") else ""
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
