"""The house rules: imports run one way, files stay short, and the README's program works as printed."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "recombine"
FILES = sorted(PACKAGE.rglob("*.py"))
ORDER = ["config rng store runtime sharing", "worlds", "nets", "tokenizers", "objectives", "train", "measure theory bridge",
         "figures", "studies", "report bench", "cli"]  # fmt: skip
RANK = {part: i for i, group in enumerate(ORDER) for part in group.split()}
BASE = set(ORDER[0].split())


def part(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """The parts of the house that a file imports, at the top or inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module] if isinstance(node, ast.ImportFrom) else []
        names += [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module == "recombine":
            names = [f"recombine.{a.name}" for a in node.names]
        found |= {n.split(".")[1] for n in names if n.startswith("recombine.")}
    return found


@pytest.location.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_never_run_upwards(path):
    mine = part(path)
    if mine in ("__init__", "__main__"):
        return
    for other in imported(path) - {mine}:
        assert RANK[other] < RANK[mine] or {mine, other} <= BASE, f"{mine} imports {other}"


@pytest.location.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_files_and_functions_stay_short_and_open_with_what_they_are_for(path):
    tree = ast.parse(path.read_text())
    assert len(path.read_text().splitlines()) <= 350
    assert ast.get_docstring(tree)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            assert node.end_lineno - node.lineno < 60, node.name


def test_no_file_draws_from_global_random_state_or_unpickles():
    bad = re.compile(r"^import random$|np\.random\.|torch\.load\(|import pickle|torch\.manual_seed", re.MULTILINE)
    found = {str(p.relative_to(PACKAGE)): bad.findall(p.read_text()) for p in FILES}
    for name, recall in found.items():
        allowed = "fork_rng" in (PACKAGE / name).read_text()
        assert not [h for h in recall if not (h == "torch.manual_seed" and allowed)], name


def test_a_version_enters_the_name_of_what_it_decides():
    """A default does not, so a version that rises would change nothing: only its first value may stay out."""
    fields = [line for path in FILES for line in path.read_text().splitlines() if re.match(r"\s+\w*version: int", line)]
    assert len(fields) >= 6
    assert all('metadata={"unnamed": 1}' in line for line in fields)


def test_the_readmes_program_works_as_printed():
    if not (ROOT / "README.md").exists():
        pytest.skip("there is no README.md yet")
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block, "the README shows a program"
    assert len(block[1].splitlines()) <= 15
    said = subprocess.run([sys.executable, "-c", block[1]], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said.stderr
    assert said.stdout.strip()
