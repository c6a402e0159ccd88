"""The notebooks: they run at smoke scale, and those in the repository have the cells of their
sources and no error among their outputs."""

import re
import sys
from collections import Counter
from html import unescape
from pathlib import Path

import pytest

pytest.importorskip("jupytext", reason="the packages of requirements-docs.lock")
ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import nbformat  # noqa: E402
from notebooks import FOLDER, executed, source  # noqa: E402

import recombine as rc  # noqa: E402

SOURCES = sorted(FOLDER.glob("*.py"))


def outputs(notebook) -> list:
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_notebook_has_the_cells_of_its_source_and_was_run(path):
    kept = nbformat.read(path.with_suffix(".ipynb"), as_version=4)
    cells = [(cell.cell_type, cell.source) for cell in source(path).cells]
    assert [(cell.cell_type, cell.source) for cell in kept.cells] == cells, "make notebooks"
    assert "error" not in {output.output_type for output in outputs(kept)}
    assert path.with_suffix(".ipynb").stat().st_size < 700_000


def test_a_lab_needs_nothing_that_is_set_outside_of_it():
    """An exercise is switched on in its cell; only the scale may come from outside."""
    lab = (FOLDER / "does-it-compose.py").read_text()
    assert re.findall(r"environ[^)]*", lab) == ['environ.get("LAB_SCALE", "laptop"']
    assert "jupyter lab docs/notebooks" in lab


def test_the_notebook_of_results_shows_the_verdicts_that_are_shipped():
    kept = nbformat.read(FOLDER / "results.ipynb", as_version=4)
    table = outputs(kept)[0]["data"]["text/plain"]
    shown = {name: int(count) for name, count in re.findall(r"│ ([a-z ]+?) +┆ (\d+)", table)}
    counted = Counter(rc.claims()["verdict"])
    assert shown == counted, "python scripts/notebooks.py results"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_claims_are_shown_in_their_present_words(path):
    kept = outputs(nbformat.read(path.with_suffix(".ipynb"), as_version=4))
    tables = unescape("".join(o["data"].get("text/html", "") for o in kept if "data" in o))
    shown = re.findall(
        r'<tr><td>"([A-Z]+\d+\w?)"</td>(?:(?!</tr>).)*<td>"([^<]+)</td></tr>', tables
    )
    words = dict(rc.claims().select("id", "statement").iter_rows())
    assert shown
    assert [(i, s) for i, s in shown if not words[i].startswith(s.rstrip('"…'))] == []


@pytest.mark.slow
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_notebook_runs_at_smoke_scale(path, monkeypatch):
    """Every figure is shown: running a study leaves the notebook's own figures alone."""
    for name in ("LAB_SCALE", "PYTHONPATH"):
        monkeypatch.setenv(name, "")
    shown = [o for o in outputs(executed(path, "smoke")) if "image/png" in o.get("data", {})]
    assert len(shown) >= path.read_text().count("plt.subplots")
