"""One study, one self-contained page."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment
from markupsafe import Markup

from recombine.config import UsageError
from recombine.report.read import WORDS, Record, Results, read_json, read_results
from recombine.report.render import environment, widget, write
from recombine.report.sheets import picture_uri
from recombine.report.svg import inline_svg
from recombine.report.training import training

LARGEST_DRAWING = 800_000
"""Bytes of SVG beyond which a figure is shown as a picture."""
WIDE = 2.4
"""Width over height beyond which a card shows a drawing's left part, large enough to be read."""
VIEW = re.compile(r'viewBox="\S+ \S+ ([\d.]+) ([\d.]+)"')


@dataclass(frozen=True)
class Shown:
    """A figure as it stands on the page."""

    name: str
    title: str
    caption: str
    markup: Markup
    files: tuple[str, ...] = ()

    @property
    def wide(self) -> bool:
        view = VIEW.search(self.markup)
        return bool(view) and float(view[1]) > WIDE * float(view[2])


@dataclass(frozen=True)
class Page:
    """A study ready to be written: what the page shows, and what the site's index shows of it."""

    results: Results
    explorer: Record | None
    figures: list[Shown]
    counts: list[tuple[str, int]]


def write_study(folder: Path) -> Path:
    """`folder/index.html` from what lies in `folder` and in the run folders beside it."""
    folder = Path(folder)
    return write(folder / "index.html", render_page(prepare(folder), environment()))


def prepare(folder: Path) -> Page:
    """Read all that the page needs, so that whatever is broken is found before anything is written."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: there is no such folder")
    results = read_results(folder)
    figures = [show(folder, figure) for figure in results.study["figures"]]
    return Page(results, training(results), figures, count(results.claims))


def count(claims: list[Record]) -> list[tuple[str, int]]:
    """How many claims have each verdict, best first."""
    found = Counter(claim["said"] for claim in claims)
    return [(verdict, found[verdict]) for verdict in WORDS if found[verdict]]


def show(folder: Path, figure: Record, prefix: str = "f") -> Shown:
    """The drawing inline, so that it follows light and dark; the picture where there is no drawing or it is too large."""
    name, title = figure["name"], str(figure.get("title") or figure["name"])
    drawing, picture = (folder / "figures" / f"{name}.{kind}" for kind in ("svg", "png"))
    if drawing.is_file() and (drawing.stat().st_size <= LARGEST_DRAWING or not picture.is_file()):
        markup = Markup(inline_svg(drawing, f"{prefix}-{folder.name}-{name}".replace(".", "-"), title))
    elif picture.is_file():
        markup = Markup('<img class="picture" alt="{}" src="{}">').format(title, picture_uri(picture))
    else:
        raise UsageError(f"{drawing}: there is no such file, nor a .png beside it")
    files = tuple(path.name for path in (drawing, picture) if path.is_file())
    return Shown(name, title, str(figure.get("caption") or ""), markup, files)


def render_page(page: Page, templates: Environment) -> str:
    study = page.results.study
    return templates.get_template("study.html").render(
        page=page,
        study=study,
        claims=page.results.claims,
        explorer=page.explorer,
        start=first_view(page.explorer) if page.explorer else None,
        configs=configs(page.results),
        widget=widget(study.get("widget"), templates.globals["nonce"]),
        provenance=study.get("provenance") or {},
    )


def first_view(explorer: Record, run: Record | None = None) -> Record:
    """What is shown before, or without, any script: the last step of a run, by itself the first one."""
    run, probes = run or explorer["runs"][0], explorer["probes"]
    return {
        "run": run,
        "step": run["steps"][-1],
        "probe": probes[0],
        "sheet": explorer["sheets"][run["sheets"][-1][1]] if run["sheets"] else None,
        "scores": {c["code"]: {p: last(run, p, c["code"]) for p in probes} for c in explorer["compositions"]},
        "real": {c["code"]: {p: real(explorer, p, c) for p in probes} for c in explorer["compositions"]},
    }


def furthest(explorer: Record) -> Record:
    """The run that draws best, at the end, what lies furthest from all it has seen: by the world's reader, or by the probe that
    judges; the first of equals."""
    probe = "read" if "read" in explorer["probes"] else explorer["probes"][0]
    code = max(explorer["compositions"], key=lambda c: (c["level"], c["row"]))["code"]
    drawn = [run for run in explorer["runs"] if run["sheets"]]
    return max(drawn, key=lambda run: (last(run, probe, code) or [0.0])[0] or 0.0)


def last(run: Record, probe: str, code: str) -> list[float | None] | None:
    scores = run["scores"].get(probe, {}).get(code)
    return scores[-1] if scores else None


def real(explorer: Record, probe: str, composition: Record) -> float | None:
    """The probe's accuracy on real pictures of the composition, or of its level where that is all there is; the worst, where
    runs are of several worlds."""
    rows = [r for r in explorer["quality"] if r["probe"] == probe]
    exact = [r["joint"] for r in rows if r["composition"] == composition["code"]]
    level = [r["joint"] for r in rows if r["composition"] is None and r["level"] == composition["level"]]
    return min(exact or level, default=None)


def configs(results: Results) -> list[Record]:
    """Each run with its whole config, where the run folder is at hand."""
    found = []
    for run in results.runs:
        path = results.run_folder(run["digest"]) / "config.json"
        found.append({**run, "config": read_json(path) if path.is_file() else None})
    return found
