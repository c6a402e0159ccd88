"""What the documentation site is built from, under build/docs-source: README.md as its first page,
docs/ and the figures of results/ beside it, so that links between them hold there as they do in the
repository. `make docs` runs it, then mkdocs, then it again with `--check`: the site must need
nothing from the network."""

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "build" / "docs-source"
STYLES = re.compile(r"<style.*?</style>", re.S)
"""The site has a style for tables of its own."""
NOTEBOOK = re.compile(r"(\]\([\w/.-]+)\.ipynb\)")
"""A link to a notebook, which is a page here."""
REMOTE = re.compile(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"?https?://[^>]*")
ALONE = "---\nhide: [navigation]\n---\n"
"""The first page has no others beside it."""
DRAWN = (".svg", ".webp", ".png")


def gather(target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(ROOT / "docs", target / "docs", ignore=shutil.ignore_patterns("*.py"))
    for path in sorted((ROOT / "results").rglob("*")):
        if path.suffix in DRAWN:
            copy = target / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    (target / "index.md").write_text(ALONE + (ROOT / "README.md").read_text())
    for path in (target / "index.md", *(target / "docs").glob("*.md")):
        path.write_text(NOTEBOOK.sub(r"\1.md)", path.read_text()))
    for path in sorted((target / "docs" / "notebooks").glob("*.ipynb")):
        write_notebook(path)


def write_notebook(path: Path) -> None:
    """The page of an executed notebook beside it, and its pictures in a folder of its name."""
    from nbconvert import MarkdownExporter

    settings = {"output_files_dir": path.stem}
    text, made = MarkdownExporter().from_filename(path, resources=settings)
    head, _, rest = text.partition("\n\n")
    offer = f"[Download this notebook]({path.name}) and open it in Jupyter."
    path.with_suffix(".md").write_text(f"{head}\n\n{offer}\n\n{STYLES.sub('', rest)}")
    for name, data in made["outputs"].items():
        (path.parent / name).parent.mkdir(exist_ok=True)
        (path.parent / name).write_bytes(data)


def needs_network(site: Path) -> list[str]:
    """What pages would fetch."""
    return [
        tag for page in sorted(site.rglob("*.html")) for tag in REMOTE.findall(page.read_text())
    ]


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit("\n".join(needs_network(SOURCE.parent / "docs")) or None)
    gather(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE)
