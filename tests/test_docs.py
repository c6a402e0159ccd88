"""The documentation: generated pages are those of the results, programs run,
commands run or are planned."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from printed import BLOCK, Small, blocks, lines
from test_joining import only

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
ELSEWHERE = {"bridge.md", "own-data.md", "own-model.md", "own-study.md", "scenes.md"}
"""Pages whose programs the tests of their subject run."""


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


@pytest.mark.slow
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


MODEL = """
from pathlib import Path
from PIL import Image

def sample(labels, n_per_item, seed):
    return [Image.open(p) for p in sorted(Path("cups").glob("*.png"))[: len(labels) * n_per_item]]
"""
PIPELINES = {"crockery-model", "my-pipeline", "exported"}
"""Pipelines, not evaluated here: test_own_tour.py evaluates such ones; diffusers takes long to import."""
NOT_RUN = {
    "make run": "installs an environment, then trains for minutes; its studies have tests",
    "make test": "is this",
}


@pytest.fixture(scope="module")
def desk(tmp_path_factory) -> Path:
    """A folder with what the pages take to be there: pictures, a model, results."""
    folder = tmp_path_factory.mktemp("desk")
    make = blocks(DOCS / "own-data.md", "python")[0]
    subprocess.run([sys.executable, "-c", make], cwd=folder, check=True)
    shutil.copytree(folder / "cups", folder / "generated")
    shutil.copytree(ROOT / "results" / "colours", folder / "results" / "colours")
    (folder / "model.py").write_text(MODEL)
    return folder


@pytest.fixture(scope="module")
def small():
    with pytest.MonkeyPatch.context() as patch:
        yield Small(patch)


def others_make(command: str) -> None:
    """What other models or machines would have left behind."""
    if command == "compare":
        for name in ("a", "b"):
            made = f"out/evaluate/{name}"
            shutil.copytree("out/evaluate/generated", made, dirs_exist_ok=True)
    if command == "join":
        only({0, 1}, Path("one/label-dropout"))
        only({2, 3, 4}, Path("two/label-dropout"))


def run_tasks(line: list[str], small: Small, patch: pytest.MonkeyPatch) -> None:
    match line:
        case ["make", *_]:
            assert " ".join(line) in NOT_RUN
        case ["export", *settings]:
            for setting in settings:
                patch.setenv(*setting.split("="))
        case ["python", "scripts/example_pictures.py", folder]:
            example_pictures.make(Path(folder), 45, 16, 3)
        case ["recombine", *call] | ["torchrun", "--nproc-per-node", "4", "-m", "recombine", *call]:
            others_make(call[0])
            if not PIPELINES & set(call):
                small(call)
        case _:
            raise AssertionError(f"not carried out: {line}")


WITH_COMMANDS = [p for p in PAGES if blocks(p, "sh", "console")]


@pytest.mark.parametrize("path", WITH_COMMANDS, ids=name_of)
def test_lines_for_a_shell_are_carried_out_or_planned(path, desk, small, monkeypatch):
    monkeypatch.chdir(desk)
    for text in blocks(path, "sh", "console"):
        for line in lines(text):
            run_tasks(line, small, monkeypatch)


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_column_of_a_table_has_a_header(path):
    """A screen reader names a cell by it."""
    headers = re.findall(r"^\|(.*)\|\n\|(?: ?:?-+:? ?\|)+$", path.read_text(), re.M)
    assert all(cell.strip() for header in headers for cell in header.split("|"))


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
    first = " ".join((ROOT / "README.md").read_text().partition("<!-- findings -->")[0].split())
    said = first.partition("A verdict beside a number")[2]
    assert letters <= set(re.findall(r"\b([A-Z])\b", said))


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
