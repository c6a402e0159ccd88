"""Mutation testing: small faults are put into the source, one at a time, and the tests of that
module must notice. `python scripts/mutants.py [--sample N] [--seed S] [MODULE...]` prints the share
caught per module and every fault that was not; without modules, the core ones (CORE). `--named`
tries the faults that once went unnoticed (NAMED).

Faults: comparisons flipped, conditions negated, `and` for `or`, arithmetic swapped, numbers changed
by one, booleans flipped, statements dropped. Each is tried in a forked child of a process that has
the large libraries loaded already."""

import argparse
import ast
import copy
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[1]
CORE = {
    "store": "test_store",
    "files": "test_store test_robust",
    "limits": "test_robust test_folder",
    "config": "test_config",
    "analysis/estimates": "test_estimates",
    "metrics/intervals": "test_intervals",
    "analysis/claims": "test_claims",
}
SWAPS = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}  # fmt: skip
NAMED = (
    ("worlds/shelf", "content.update(digests[file])", "content.update(digests[0])", "test_folder"),
    ("metrics/probes", "valid & (logits[-1] < 0)[:, 0]", "valid", "test_probes"),
    ("runs/models", 'seeded(r.seed, "sample",', 'seeded(0, "sample",', "test_robust"),
    (
        "metrics/violation",
        "return Violation(pixels, c",
        "return Violation(pixels.tril(), c",
        "test_violation",
    ),
)
SECONDS = 240.0


def sites(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Every place that can be mutated, with how."""
    skipped = {id(n) for node in ast.walk(tree) for n in _notes(node)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
            yield node, "compare"
        elif isinstance(node, ast.BoolOp | ast.BinOp) and type(node.op) in SWAPS:
            yield node, "operator"
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            yield node, "negate"
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
            yield node, "constant"
        elif isinstance(node, ast.AugAssign | ast.Raise) or _is_call(node):
            yield node, "drop"


def _is_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _notes(node: ast.AST) -> Iterator[ast.AST]:
    """What is annotation, not behaviour."""
    for name in ("annotation", "returns"):
        if isinstance(note := getattr(node, name, None), ast.AST):
            yield from ast.walk(note)
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        yield from ast.walk(node)


def mutate(source: str, index: int) -> tuple[str, str]:
    """The source with its fault number `index`, and what that is."""
    tree = ast.parse(source)
    node, kind = list(sites(tree))[index]
    before, where = ast.unparse(node).splitlines()[0], node.lineno
    if kind == "compare":
        node.ops[0] = SWAPS[type(node.ops[0])]()
    elif kind == "operator":
        node.op = SWAPS[type(node.op)]()
    elif kind == "negate":
        node.test = ast.UnaryOp(ast.Not(), copy.deepcopy(node.test))
    elif kind == "constant":
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
    else:
        _replace(tree, node, ast.copy_location(ast.Pass(), node))
    after = "" if kind == "drop" else ast.unparse(node).splitlines()[0]
    return ast.unparse(ast.fix_missing_locations(tree)), f"line {where}: {before} -> {after}"


def _replace(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            held = getattr(node, name, None)
            if isinstance(held, list) and old in held:
                held[held.index(old)] = new


def passes(copied: Path, tests: list[str]) -> bool:
    """Whether the tests pass in the copy, in a child process; one that hangs does not."""
    child = os.fork()
    if child == 0:
        os.setsid()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.chdir(copied)
        sys.path[:0] = [str(copied), str(copied / "tests")]
        import pytest

        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
        os._exit(int(pytest.main([*options, *(f"tests/{t}.py" for t in tests)])))
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def tests_of(module: str) -> list[str]:
    """The tests that import a module by name; those of CORE as listed."""
    if module in CORE:
        return CORE[module].split()
    dotted = "recombine." + module.replace("/", ".")
    files = sorted((ROOT / "tests").glob("test_*.py"))
    return [p.stem for p in files if f"from {dotted} import" in p.read_text()]


def try_module(copied: Path, module: str, sample: int, rng: random.Random) -> tuple[int, int]:
    path, tests = copied / "recombine" / f"{module}.py", tests_of(module)
    source = path.read_text()
    count = len(list(sites(ast.parse(source))))
    if not tests or not count:
        print(f"{module}: {'no tests import it' if not tests else 'nothing to mutate'}", flush=True)
        return 0, 0
    chosen, caught = sorted(rng.sample(range(count), min(sample, count))), 0
    for index in chosen:
        text, what = mutate(source, index)
        path.write_text(text)
        if passes(copied, tests):
            print(f"  not caught: {module} {what}", flush=True)
        else:
            caught += 1
    path.write_text(source)
    print(f"{module}: {caught} of {len(chosen)} caught (of {count} possible)", flush=True)
    return caught, len(chosen)


def try_named(copied: Path) -> tuple[int, int]:
    caught = 0
    for module, old, new, test in NAMED:
        path = copied / "recombine" / f"{module}.py"
        source = path.read_text()
        if old not in source:
            print(f"  {module}: {old!r} is no longer there", flush=True)
            continue
        path.write_text(source.replace(old, new))
        noticed = not passes(copied, [test])
        path.write_text(source)
        caught += noticed
        print(f"  {'caught' if noticed else 'NOT CAUGHT'}: {module} {old!r} -> {new!r}", flush=True)
    return caught, len(NAMED)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition(". ")[0])
    parser.add_argument("modules", nargs="*", default=list(CORE))
    parser.add_argument("--sample", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--named", action="store_true")
    given = parser.parse_args()
    sys.dont_write_bytecode = True
    for name in ("hypothesis", "matplotlib", "numpy", "polars", "pytest", "scipy.stats", "torch"):
        import_module(name)
    rng, results = random.Random(given.seed), []
    with tempfile.TemporaryDirectory() as place:
        copied = Path(place)
        for name in ("recombine", "tests", "docs", "scripts"):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, copied / name, ignore=ignored)
        for name in ("results", "README.md", "pyproject.toml"):
            (copied / name).symlink_to(ROOT / name)
        results += [try_named(copied)] if given.named else []
        for module in [] if given.named else given.modules:
            results.append(try_module(copied, module, given.sample, rng))
    caught, tried = map(sum, zip(*results, strict=True))
    print(f"{caught} of {tried} faults caught ({caught / max(1, tried):.1%}), seed {given.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
