"""One study, one page, which shows the files that lie beside it."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment

from recombine.analysis.claims import VERDICTS
from recombine.analysis.levels import LEARNED
from recombine.config import UsageError
from recombine.report.read import ClaimEntry, FigureEntry, Results, Sheet, content, read_results
from recombine.report.render import environment, widget, write
from recombine.report.sheets import size_of
from recombine.report.training import Record, training

HEAT_MAPS = "maps"
"""The name of sheets of heat maps."""
VIEW = re.compile(rb'<svg\b[^>]*viewBox="\S+ \S+ ([\d.]+) ([\d.]+)"')


@dataclass(frozen=True)
class Shown:
    """A figure as it stands on the page; its natural size in points, 0 where the file does not
    say."""

    name: str
    title: str
    caption: str
    src: str
    width: float
    height: float


@dataclass(frozen=True)
class Gallery:
    """A sheet that no slider moves: what it shows, and its size."""

    title: str
    src: str
    width: int
    height: int


@dataclass(frozen=True)
class Page:
    """A study ready to be written: what the page shows, and what the site's index shows of it."""

    results: Results
    explorer: Record | None
    figures: list[Shown]
    gallery: list[Gallery]

    @property
    def claims(self) -> list[ClaimEntry]:
        """None on pictures of one's own: the claims are about others."""
        return [] if self.results.study.own else self.results.claims

    @property
    def counts(self) -> list[tuple[str, int]]:
        return count(self.claims)


def write_study(folder: Path) -> Path:
    """`folder/index.html` from what lies in `folder`."""
    folder = Path(folder)
    return write(folder / "index.html", render_page(prepare(folder), environment()))


def prepare(folder: Path) -> Page:
    """Read all that the page needs, so that whatever is broken is found before anything is
    written."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: there is no such folder")
    results = read_results(folder)
    explorer = training(results)
    figures = [show(folder, figure) for figure in results.study.figures]
    return Page(results, explorer, figures, gallery(results, explorer))


def count(claims: Iterable[ClaimEntry]) -> list[tuple[str, int]]:
    """How many claims have each verdict, best first."""
    found = Counter(claim.verdict for claim in claims)
    return [(verdict, found[verdict]) for verdict in VERDICTS if found[verdict]]


def show(folder: Path, figure: FigureEntry) -> Shown:
    """The figure's file, which must be an SVG drawing. As the source of an image it runs no script
    and loads nothing."""
    path = folder / "figures" / f"{figure.name}.svg"
    text = content(path)
    if b"<svg" not in text:
        raise UsageError(f"{path}: is not an SVG drawing")
    view = VIEW.search(text)
    width, height = (float(view[1]), float(view[2])) if view else (0.0, 0.0)
    title = figure.title or figure.name
    return Shown(figure.name, title, figure.caption, f"figures/{path.name}", width, height)


def gallery(results: Results, explorer: Record | None) -> list[Gallery]:
    """Sheets that the explorer does not show: all where there is none, else those that belong to no
    checkpoint. Not those that hold the numbers of a figure."""
    runs = {run.digest: run for run in results.study.runs}
    others = [s for s in results.study.sheets if explorer is None or s.step is None]
    sheets = [s for s in others if s.name != HEAT_MAPS]

    def titled(sheet: Sheet) -> str:
        run = runs.get(sheet.run)
        name = (run.variant or run.label) if run else ""
        seed = f"seed {run.seed}" if run and run.seed is not None else ""
        what = f"step {sheet.step}" if sheet.step is not None else sheet.name
        return ", ".join(part for part in (name, seed, what) if part)

    sizes = {s.file: size_of(results.folder / "samples" / s.file) for s in sheets}
    return [Gallery(titled(s), f"samples/{s.file}", *sizes[s.file]) for s in sheets]


def render_page(page: Page, templates: Environment, before: str = "", after: str = "") -> str:
    """`before`, `after`: the folders of the studies that come before and after it on the site."""
    study = page.results.study
    return templates.get_template("study.html").render(
        page=page,
        study=study,
        claims=page.claims,
        before=before,
        after=after,
        explorer=page.explorer,
        start=first_view(page.explorer) if page.explorer else None,
        widget=widget(study.widget, templates.globals["nonce"]),
        provenance=study.provenance,
    )


def first_view(explorer: Record, run: Record | None = None) -> Record:
    """What is shown before, or without, any script: the last step of a run, by itself the first
    one."""
    run, probes = run or explorer["runs"][0], explorer["probes"]
    codes = [c["code"] for c in explorer["compositions"]]
    return {
        "run": run,
        "step": run["steps"][-1],
        "probe": probes[0],
        "sheet": explorer["sheets"][run["sheets"][-1][1]] if run["sheets"] else None,
        "scores": {code: {p: last(run, p, code) for p in probes} for code in codes},
        "real": {
            c["code"]: {p: real(explorer, p, c) for p in probes} for c in explorer["compositions"]
        },
    }


def contrast(explorer: Record) -> list[Record]:
    """The run that is best, at the end, at what lies furthest from all it has seen, by the oracle
    where there is one, else by the primary probe; and where there are several variants the run that
    is worst at it, of those that have learned what they saw (the best, if none has)."""
    probe = "oracle" if "oracle" in explorer["probes"] else explorer["probes"][0]
    code = max(explorer["compositions"], key=lambda c: (c["level"], c["row"]))["code"]

    def reached(run: Record) -> float:
        return (last(run, probe, code) or [0.0])[0] or 0.0

    def seen(run: Record) -> float:
        curve = run["curves"].get(explorer["probes"][0], {}).get("0") or [None]
        return curve[-1][0] if curve[-1] else 0.0

    shown = [run for run in explorer["runs"] if run["sheets"]]
    best = max(shown, key=reached)
    others = [r for r in shown if r["variant"] != best["variant"] and seen(r) >= LEARNED]
    return [best, min(others, key=reached)] if others else [best]


def last(run: Record, probe: str, code: str) -> list[float | None] | None:
    scores = run["scores"].get(probe, {}).get(code)
    return scores[-1] if scores else None


def real(explorer: Record, probe: str, composition: dict[str, Any]) -> float | None:
    """The probe's accuracy on real pictures of the composition, or of its level where that is all
    there is; the worst, where runs are of several worlds."""
    rows = [r for r in explorer["quality"] if r["probe"] == probe and r["joint"] is not None]
    exact = [r["joint"] for r in rows if r["composition"] == composition["code"]]
    level = [
        r["joint"] for r in rows if r["composition"] is None and r["level"] == composition["level"]
    ]
    return min(exact or level, default=None)
