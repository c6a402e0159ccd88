"""docs/licences.md: every locked package with its licence, from the metadata of what is installed.
`python scripts/licences.py`, where all of requirements*.lock are installed."""

import re
import sys
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "licences.md"
FOR = {
    "requirements.lock": "To run studies and tests",
    "requirements-torch.lock": "PyTorch, in the build that suits the machine",
    "requirements-docs.lock": "For the documentation, notebooks and types",
    "requirements-engines.lock": "For Slurm and Ray",
    "requirements-bridge.lock": "For pipelines of diffusers",
}
HEAD = """# Licences of dependencies

recombine is Apache-2.0. What it is installed with, by lock file, as the packages' own metadata says it (made by
`scripts/licences.py`). A CUDA build of PyTorch brings NVIDIA's libraries in addition, under NVIDIA's licence.
"""


def locked(name: str) -> list[tuple[str, str]]:
    text = (ROOT / name).read_text()
    return re.findall(r"^([A-Za-z0-9._-]+)==([^\s\\]+)", text, re.MULTILINE)


def licence(name: str) -> str:
    """A package's licence in a few words."""
    try:
        about = metadata(name)
    except PackageNotFoundError:
        raise SystemExit(f"{name} is not installed") from None
    said = about.get("License-Expression") or ""
    known = [c.rpartition(" :: ")[2] for c in about.get_all("Classifier", []) if "License" in c]
    short = (about.get("License") or "").strip()
    short = short if len(short) < 40 and "\n" not in short else ""
    return said or ", ".join(x for x in known if x != "OSI Approved") or short or "see its files"


def page() -> str:
    lines = [HEAD]
    for name, use in FOR.items():
        lines += [f"## {use}\n", "| package | version | licence |", "|---|---|---|"]
        lines += [f"| {n} | {v} | {licence(n)} |" for n, v in locked(name)]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.exit(0)
