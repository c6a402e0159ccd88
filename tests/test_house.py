"""The house rules: imports run one way, files stay short, and the README's program works as
printed."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import jaxtyping
import pytest
import torch
from beartype.roar import BeartypeCallHintViolation

from recombine.config import nearest
from recombine.metrics.locality import distance
from recombine.nets.unet import UNetConfig

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "recombine"
FILES = sorted(PACKAGE.rglob("*.py"))
ORDER = [
    "config overrides display rng limits files store provenance runtime",
    "worlds", "nets", "tokenizers", "objectives", "theory", "train",
    "metrics", "bridge", "pipeline", "runs", "analysis", "plots", "studies", "report", "scoring", "api bench export", "cli",
]  # fmt: skip
RANK = {part: i for i, group in enumerate(ORDER) for part in group.split()}
BASE = set(ORDER[0].split())
FILE, FUNCTION = 380, 58
"""Lines, at most."""


def part(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """The parts of the house that a file imports, at the top or inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module] if isinstance(node, ast.ImportFrom) else []
        names += [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module == "recombine":
            names = [f"recombine.{a.name}" for a in node.names if not a.name.startswith("__")]
        found |= {n.split(".")[1] for n in names if n.startswith("recombine.")}
    return found


def test_imports_never_run_upwards():
    arrows = [(p, part(p), other) for p in FILES for other in imported(p) - {part(p)}]
    arrows = [a for a in arrows if a[1] not in ("__init__", "__main__")]
    up = [a for a in arrows if RANK[a[2]] >= RANK[a[1]] and not {a[1], a[2]} <= BASE]
    assert not up, "a file imports what stands above it"


def test_files_and_functions_stay_short_and_open_with_what_they_are_for():
    long = []
    for path in FILES:
        text = path.read_text()
        tree = ast.parse(text)
        assert ast.get_docstring(tree), path
        functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
        long += [(path.name, f.name) for f in functions if f.end_lineno - f.lineno >= FUNCTION]
        long += [path.name] if len(text.splitlines()) > FILE else []
    assert not long


def test_no_file_draws_from_global_random_state_or_unpickles():
    bad = re.compile(
        r"^import random$|np\.random\.|torch\.load\(|import pickle|torch\.manual_seed", re.MULTILINE
    )
    found = {str(p.relative_to(PACKAGE)): bad.findall(p.read_text()) for p in FILES}
    for name, recall in found.items():
        allowed = "fork_rng" in (PACKAGE / name).read_text()
        assert not [h for h in recall if not (h == "torch.manual_seed" and allowed)], name


def test_a_version_enters_the_name_of_what_it_decides():
    """A default does not, so a version that rises would change nothing unless it always enters."""
    text = "\n".join(path.read_text() for path in FILES)
    fields = re.findall(r"\n\s+\w*version: int = [^\n]*(?:\n[^\n]*\))?", text)
    assert len(fields) >= 5
    assert all("metadata=ALWAYS" in f for f in fields)


def test_there_are_no_import_cycles_between_files():
    """Also not by imports inside functions."""
    modules = {
        ".".join(("recombine", *p.relative_to(PACKAGE).with_suffix("").parts)): p for p in FILES
    }
    arrows = {name: modules_in(path) & modules.keys() for name, path in modules.items()}
    done: set[str] = set()

    def visit(name: str, chain: tuple[str, ...]) -> None:
        assert name not in chain, " -> ".join((*chain[chain.index(name) :], name))
        if name in done:
            return
        for other in sorted(arrows[name] - {name}):
            visit(other, (*chain, name))
        done.add(name)

    for name in arrows:
        visit(name, ())


def modules_in(path: Path) -> set[str]:
    """The modules that a file imports; of a package, what it takes from it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{a.name}" for a in node.names}
    return names


def test_types_and_shapes_are_checked_in_every_function_while_tests_run():
    for call in (
        lambda: nearest(3, []),
        lambda: UNetConfig(blocks=2.5),
        lambda: distance(torch.zeros(2, 3), 4, 4),
        lambda: distance(torch.zeros(2, 3, 2), 4, 4.0),
    ):
        with pytest.raises((BeartypeCallHintViolation, jaxtyping.TypeCheckError)):
            call()


def test_listing_studies_needs_no_torch():
    code = "import sys; from recombine.studies.catalogue import catalogue; catalogue(); import recombine, recombine.cli; "
    code += "assert not {'torch', 'polars', 'scipy', 'matplotlib'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_the_catalogue_is_up_to_date():
    from recombine.studies.catalogue import PATH, build

    assert PATH.read_text() == build(), "python -m recombine.studies.catalogue writes it"


def test_the_readmes_program_works_as_printed():
    if not (ROOT / "README.md").exists():
        pytest.skip("there is no README.md yet")
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block, "the README shows a program"
    assert len(block[1].splitlines()) <= 15
    said = subprocess.run(
        [sys.executable, "-c", block[1]], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert said.returncode == 0, said.stderr
    assert said.stdout.strip()
