"""The field's words, not this project's own: an agreed list of words that nothing here says."""

import ast
import re
from pathlib import Path

import pytest

from recombine.studies import NAMES

ROOT = Path(__file__).parents[1]
INSTEAD = {
    r"told|untold|asked|wish(?:es|ed)?|loud(?:ly|er)?|quiet(?:ly|er)|deaf": "conditioned on, prompt, embedding scale",
    r"judg(?:e|es|ed|ing)|strict[ _]readers?": "probe, oracle; a claim is assessed",
    r"wary": "open-set probe",
    r"made[ _]to[ _]choose|must[ _]choose": "closed-set probe",
    r"share that is right|luck(?:y)?": "accuracy, chance level",
    r"marks": "locations",
    r"classes that vary|var(?:ies|y|iation) inside a class": "within-class jitter",
    r"listening": "condition dependence",
    r"echo(?:es|ed)?": "leakage",
    r"placing": "layout encoder",
    r"dice|one-tokenizer": "seed variance",
    r"(?<!flex-)basis": "artifact, parents",
    r"courses?": "sensitivity by checkpoint",
    r"machine\.meet": "barrier",
    r"sown|taught|hollow": "with_seed, needs_teacher, weights_missing",
    r"dials?|patience": "step scalars, interrupt guard",
    r"does not hold": "contradicted",
    r"shel(?:f|ves)": "labelled pictures",
}
"""Words that only this project used, and what it says now; also as a part of a name: `is_wary`."""
NO_NAMES = {"tell", "ask", "reader", "hits", "mark", "look", "looks", "meet", "agree", "ahead",
            "ground", "machine"}  # fmt: skip
"""Plain English in a sentence; as the name of a function, class, argument or variable a riddle."""
OLD_STUDIES = {"details", "dice", "where", "which", "reach", "variation", "scenes"}
SHELL = re.compile(r"^\s*@?echo |\|\| echo ", re.MULTILINE)
FOLDERS = ("recombine", "docs", "benchmarks", "scripts", "tests", "results")
FILES = [p for folder in FOLDERS for p in (ROOT / folder).rglob("*") if p.is_file()]
FILES += [ROOT / name for name in ("README.md", "SECURITY.md", "Makefile", "pyproject.toml")]
TEXT = {".py", ".md", ".html", ".js", ".json", ".toml", ".css", ".ipynb", ""}
LISTS = {"test_words.py", "test_results.py"}
"""Tests that name the words."""
READ = [p for p in FILES if p.suffix in TEXT and p.name not in LISTS and "log" not in p.parts]
"""Not the log: what was written on a day stays as it was."""
PRIVATE = re.compile(rf"(?<![a-z])(?:{'|'.join(INSTEAD)})(?![a-z])", re.IGNORECASE)
PICTURE = re.compile(r'"image/png": "[^"]*"')


def private(text: str) -> list[str]:
    return PRIVATE.findall(PICTURE.sub("", SHELL.sub("", text)))


def names(path: Path) -> set[str]:
    """What a file of Python names: functions, classes, arguments, variables."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                found.add(node.name.lower())
            case ast.arg():
                found.add(node.arg.lower())
            case ast.Name(ctx=ast.Store()):
                found.add(node.id.lower())
    return found


def test_no_private_words():
    found = {p: private(p.read_text()) for p in READ}
    assert not {p: words for p, words in found.items() if words}


def test_no_private_names():
    opaque = {p: names(p) & NO_NAMES for p in READ if p.suffix == ".py"}
    assert not {p: words for p, words in opaque.items() if words}
    assert not OLD_STUDIES & set(NAMES)


@pytest.mark.parametrize("text", ["is_wary", "The judge", "told", "x.Shelf", "strict reader"])
def test_the_list_finds_a_word_in_text_and_in_names(text):
    assert private(text)
    assert not private(f"not{text.lower().replace(' ', '')}able")
