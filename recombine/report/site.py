"""One site over every study in a folder: their pages, and an index with all claims."""

from pathlib import Path

from recombine.config import UsageError
from recombine.report.claims import shipped
from recombine.report.page import Page, contrast, count, first_view, prepare, render_page
from recombine.report.read import in_order
from recombine.report.render import environment, write
from recombine.report.training import Record


def write_site(directory: Path) -> Path:
    """All study pages and `directory/index.html`. Everything is read and rendered before the first
    file is written."""
    directory = Path(directory)
    folders = in_order(directory.glob("*/study.json"))
    if not directory.is_dir():
        raise UsageError(f"{directory}: there is no such folder; the shipped results: {shipped()}")
    if not folders:
        raise UsageError(f"{directory}: holds no study (no <study>/study.json)")
    templates = environment()
    pages = [prepare(folder) for folder in folders]
    names = ["", *(folder.name for folder in folders), ""]
    around = zip(pages, names, names[2:], strict=False)
    texts = [render_page(page, templates, before, after) for page, before, after in around]
    claims = [claim for page in pages for claim in page.claims]
    shown = {"pages": pages, "hero": hero(pages), "claims": claims, "counts": count(claims)}
    index = templates.get_template("index.html").render(shown)
    for page, text in zip(pages, texts, strict=True):
        write(page.results.folder / "index.html", text)
    return write(directory / "index.html", index)


def hero(pages: list[Page]) -> Record | None:
    """The picture at the top: samples of a run that composes and of one that does not, of the first
    trained study, else the first figure."""
    trained = [page for page in pages if page.explorer and page.explorer["sheets"]]
    if trained:
        page, explorer = trained[0], trained[0].explorer
        starts = [first_view(explorer, run) for run in contrast(explorer)]
        return {"page": page, "explorer": explorer, "starts": starts, "figure": None}
    plotted = [page for page in pages if page.figures]
    if not plotted:
        return None
    return {"page": plotted[0], "explorer": None, "starts": None, "figure": plotted[0].figures[0]}
