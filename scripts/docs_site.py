"""What the documentation site is built from, under build/docs-source: README.md as its first page,
docs/ and the figures of results/ beside it, so that links between them hold there as they do in the
repository. `make docs` runs it, then mkdocs."""

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "build" / "docs-source"
DRAWN = (".svg", ".webp", ".png")


def gather(target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT / "docs", target / "docs", ignore=shutil.ignore_patterns("*.py"))
    for path in sorted((ROOT / "results").rglob("*")):
        if path.suffix in DRAWN:
            copy = target / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    shutil.copyfile(ROOT / "README.md", target / "index.md")


if __name__ == "__main__":
    gather(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE)
