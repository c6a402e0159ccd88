"""The documentation: generated pages are those of the results, programs run, commands are
accepted."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import recombine.api
import recombine.report.site
from recombine.cli import app
from recombine.overrides import override
from recombine.pipeline.engines import find_engine
from recombine.studies.catalogue import catalogue

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

import example_pictures  # noqa: E402
from concept_pictures import PICTURES  # noqa: E402
from docs_site import needs_network  # noqa: E402
from study_pages import pages  # noqa: E402

DOCS = ROOT / "docs"
LOG = DOCS / "log"
PAGES = [ROOT / "README.md", *(p for p in sorted(DOCS.rglob("*.md")) if LOG not in p.parents)]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)
ELSEWHERE = {"bridge.md", "own-data.md", "own-model.md", "own-study.md", "scenes.md"}
"""Pages whose programs the tests of their subject run."""


def blocks(path: Path, *languages: str) -> list[str]:
    return [text for language, text in BLOCK.findall(path.read_text()) if language in languages]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_pages_of_studies_and_figures_are_those_of_the_shipped_results():
    for name, text in pages(ROOT / "results").items():
        assert (DOCS / name).read_text() == text, f"{name}: make readme"
    assert {f"studies/{p.name}" for p in (DOCS / "studies").iterdir()} < set(
        pages(ROOT / "results")
    )


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_block_says_what_it_is(path):
    """`py`: a fragment, which must parse."""
    languages = {language for language, _ in BLOCK.findall(path.read_text())}
    assert languages <= {"python", "py", "sh", "console", ""}
    for text in blocks(path, "py"):
        compile(text, path.name, "exec")


WITH_PROGRAMS = [p for p in PAGES if blocks(p, "python") and p.name not in ELSEWHERE]


def test_programs_run_as_printed(tmp_path):
    """One process for all pages, each with names of its own: importing torch takes longer than most
    of them."""
    lines = []
    for path in WITH_PROGRAMS:
        program = "\n".join(blocks(path, "python"))
        lines.append(f"print('page:', {path.name!r})")
        lines.append(f"exec(compile({program!r}, {path.name!r}, 'exec'), {{}})")
    where = os.environ | {"PYTHONPATH": str(ROOT)}
    program = [sys.executable, "-c", "\n".join(lines)]
    said = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, env=where)
    assert said.returncode == 0, said.stderr
    printed = said.stdout.split("page: ")[1:]
    assert len(printed) == len(WITH_PROGRAMS)
    assert all(len(text.splitlines()) > 1 for text in printed)


def commands(path: Path) -> list[list[str]]:
    """Every call of recombine in a page, without what is before it on its line."""
    lines = "\n".join(blocks(path, "sh", "console")).replace("\\\n", " ").splitlines()
    calls = [shlex.split(line, comments=True) for line in lines]
    return [call[call.index("recombine") + 1 :] for call in calls if "recombine" in call]


class Scored:
    """In place of an evaluation."""

    def below(self, least: float) -> str:
        return ""


@pytest.fixture(scope="module")
def desk(tmp_path_factory) -> Path:
    """A folder with what the pages take to be there: their own data and their own study."""
    folder = tmp_path_factory.mktemp("desk")
    make = blocks(DOCS / "own-data.md", "python")[0]
    subprocess.run([sys.executable, "-c", make], cwd=folder, check=True)
    example_pictures.make(folder / "crockery", 45, 16, 3)
    (folder / "ridge.py").write_text(blocks(DOCS / "own-study.md", "python")[0])
    (folder / "results").symlink_to(ROOT / "results")
    return folder


@pytest.mark.parametrize("path", [p for p in PAGES if commands(p)], ids=name_of)
def test_commands_are_accepted(path, desk, monkeypatch, capsys):
    """Options, studies and settings are known; nothing is carried out."""

    def settings_fit(command, engine, fresh):
        find_engine(engine)
        for name in command.studies:
            override(command.find(name).settings(command.scale), *command.changes)
        return []

    monkeypatch.setattr(recombine.api, "run_command", settings_fit)
    for name, answer in (("evaluate", Scored()), ("compare", []), ("leaderboard", [])):
        monkeypatch.setattr(f"recombine.scoring.{name}.{name}", lambda *a, _=answer, **k: _)
    monkeypatch.setattr("recombine.scoring.leaderboard.lines", lambda entries: [])
    shipped = ROOT / "results" / "label-dropout"
    monkeypatch.setattr("recombine.studies.joining.join", lambda *a: shipped)
    monkeypatch.setattr("recombine.export.models.export_run", lambda run, folder: None)
    monkeypatch.setattr(recombine.report.site, "write_site", lambda folder: folder / "index.html")
    monkeypatch.chdir(desk)
    for call in commands(path):
        assert app(call, standalone_mode=False) in (None, 0), call


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_targets_of_make_are_there(path):
    targets = re.findall(r"^make (\w+)", "\n".join(blocks(path, "sh", "console")), re.M)
    assert set(targets) <= set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M))


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_of_concepts_are_made_again(name, tmp_path):
    PICTURES[name](tmp_path)
    made, kept = ((f / f"{name}.svg").read_text() for f in (tmp_path, DOCS / "pictures"))
    words = re.compile(r"<text[^>]*>([^<]*)</text>")
    assert words.findall(made) == words.findall(kept), "python scripts/concept_pictures.py"
    assert made.count("<image") == kept.count("<image")
    assert len(kept) < 100_000


@pytest.mark.parametrize(
    ("tag", "known"),
    [
        ('<script src="https://cdn.example/a.js"></script>', False),
        ('<link rel="stylesheet" href=http://a.example/b.css>', False),
        ('<script src="assets/a.js"></script><a href="https://arxiv.org">a paper</a>', True),
    ],
)
def test_a_site_that_needs_the_network_is_refused(tag, known, tmp_path):
    """`make docs`, a part of CI, builds the site strictly and then holds it against this."""
    (tmp_path / "index.html").write_text(f"<html>{tag}</html>")
    assert (needs_network(tmp_path) == []) == known


def test_every_letter_of_a_claim_is_explained_where_claims_are_first_read():
    letters = {claim["id"][0] for study in catalogue() for claim in study["claims"]}
    concepts = (DOCS / "concepts.md").read_text()
    assert letters <= set(re.findall(r"^\| ([A-Z]) \|", concepts, re.M))
    first = (ROOT / "README.md").read_text().partition("<!-- findings -->")[0]
    said = first.partition("Claims are named")[2]
    assert letters <= set(re.findall(r"\b([A-Z])\b", said))


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
