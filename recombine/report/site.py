"""One site over every study in a folder: their pages, and an index with all claims."""

from collections.abc import Iterable
from pathlib import Path

from recombine.config import UsageError
from recombine.report.page import Page, count, first_view, furthest, prepare, render_page, show
from recombine.report.read import Record, read_json
from recombine.report.render import environment, write

LAST = 1_000_000


def write_site(directory: Path) -> Path:
    """All study pages and `directory/index.html`. Everything is read and rendered before the first file is written."""
    directory = Path(directory)
    folders = in_order(path.parent for path in directory.glob("*/study.json"))
    if not folders:
        raise UsageError(f"{directory}: holds no study (no <study>/study.json); reference results are in results/")
    templates = environment()
    pages = [prepare(folder) for folder in folders]
    texts = [render_page(page, templates) for page in pages]
    claims = [{**claim, "folder": page.results.folder.name} for page in pages for claim in page.results.claims]
    shown = {"pages": pages, "hero": hero(pages), "claims": claims, "counts": count(claims)}
    index = templates.get_template("index.html").render(shown)
    for page, text in zip(pages, texts, strict=True):
        write(page.results.folder / "index.html", text)
    return write(directory / "index.html", index)


def in_order(folders: Iterable[Path]) -> list[Path]:
    """As in `recombine list`; strangers come last."""

    def place(folder: Path) -> tuple[int, str]:
        study = read_json(folder / "study.json")
        order = study.get("order") if isinstance(study, dict) else None
        return (order if isinstance(order, int) else LAST), folder.name

    return sorted(folders, key=place)


def hero(pages: list[Page]) -> Record | None:
    """The picture at the top: samples of the best run of the first trained study, else the first figure."""
    trained = [page for page in pages if page.explorer and page.explorer["sheets"]]
    if trained:
        page = trained[0]
        return {
            "page": page,
            "explorer": page.explorer,
            "start": first_view(page.explorer, furthest(page.explorer)),
            "figure": None,
        }
    drawn = [page for page in pages if page.figures]
    if not drawn:
        return None
    figure = show(drawn[0].results.folder, drawn[0].results.study["figures"][0], "hero")
    return {"page": drawn[0], "explorer": None, "start": None, "figure": figure}
