"""Mutation testing: small faults are put into the source, one at a time, and the tests that run
the lines around it must notice. `python scripts/mutants.py [MODULE...]` tries up to `--sample`
faults of each module (by default of CORE); `--over N` tries N faults drawn from all modules but
AWAY; `--named` those that once went unnoticed (NAMED). Prints the share caught per module or
package and every fault that was not; `--record FILE` keeps each as JSON at once, and is continued
where it exists; `--again FILE` tries those of such a file that were not caught.

Faults: comparisons flipped, conditions negated, `and` for `or`, arithmetic swapped, numbers changed
by one, booleans flipped, statements dropped. A fault inside a function is tried in a fork of a
process that has the package loaded; one that acts when modules are loaded in one that loads them
anew. EQUIVALENT lists faults that change nothing that can be seen."""

import argparse
import ast
import json
import os
import random
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from mutant_blocks import at_load, block_at, files, imported, tests_at, traced, with_notes
from mutant_tests import FAILED, Tests, Warm, is_exchangeable, verdict

ROOT = Path(__file__).parents[1]
CORE = (
    "store",
    "config",
    "overrides",
    "analysis/estimates",
    "metrics/intervals",
    "analysis/claims",
)
AWAY = ("worlds/scenes/kernel",)
"""Modules that no test can run here: they need a GPU."""
ABROAD = {
    "pipeline/engines/mps": "mps",
    "pipeline/engines/": "engines",
    "pipeline/worker": "engines",
    "runtime": "ddp",
    "train/": "ddp",
}
"""Modules that tests run in processes of their own, which read the source anew: the file of these
tests, for faults that no other test notices."""
SWAPS = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}  # fmt: skip
NAMED = (
    ("worlds/labelled_pictures", "update(digests[file])", "update(digests[0])", "test_folder"),
    ("metrics/probes", "valid & (logits[-1] < 0)[:, 0]", "valid", "test_probes"),
    ("runs/models", 'seeded(r.seed, "sample",', 'seeded(0, "sample",', "test_robust"),
    ("metrics/violation", "Violation(pixels, c", "Violation(pixels.tril(), c", "test_violation"),
)
EQUIVALENT = (ROOT / "scripts" / "equivalent_mutants.txt").read_text()
"""A module (* for any), part of a line, how the fault begins, why no test can see the difference."""
MOST = 20.0
"""Seconds for the tests of one fault: they are taken, the quickest first, until they take so long."""


def sites(tree: ast.Module) -> Iterator[ast.AST]:
    """Every place that can be mutated."""
    skipped = {id(n) for node in ast.walk(tree) for n in _notes(node)}
    for node in (n for n in ast.walk(tree) if id(n) not in skipped):
        match node:
            case (
                ast.Compare()
                | ast.BoolOp()
                | ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div())
                | (ast.If() | ast.IfExp() | ast.While())
                | ast.Constant(value=bool() | int() | float())
                | (ast.AugAssign() | ast.Raise() | ast.Expr(value=ast.Call()))
            ):
                yield node


def _notes(node: ast.AST) -> Iterator[ast.AST]:
    """What is annotation, not behaviour."""
    for name in ("annotation", "returns"):
        if isinstance(note := getattr(node, name, None), ast.AST):
            yield from ast.walk(note)
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        yield from ast.walk(node)


def mutate(source: str, index: int) -> tuple[str, str, int]:
    """The source with its fault number `index`, what that is, and on which line."""
    tree = ast.parse(source)
    node = list(sites(tree))[index]
    before, line = ast.unparse(node).splitlines()[0], node.lineno
    match node:
        case ast.Compare():
            node.ops[0] = SWAPS[type(node.ops[0])]()
        case ast.BoolOp() | ast.BinOp():
            node.op = SWAPS[type(node.op)]()
        case ast.If() | ast.IfExp() | ast.While():
            node.test = ast.UnaryOp(ast.Not(), node.test)
        case ast.Constant():
            node.value = not node.value if isinstance(node.value, bool) else node.value + 1
        case _:
            old, node = node, ast.Pass()
            lists = [v for n in ast.walk(tree) for v in vars(n).values() if isinstance(v, list)]
            held = next(one for one in lists if old in one)
            held[held.index(old)] = node
    after = ast.unparse(node).splitlines()[0]
    return ast.unparse(ast.fix_missing_locations(tree)), f"{before} -> {after}", line


def is_equivalent(module: str, text: str, what: str) -> bool:
    rows = (row.split(" | ") for row in EQUIVALENT.strip().splitlines())
    return any(m in (module, "*") and part in text and what.startswith(w) for m, part, w, _ in rows)


CAUGHT = ("caught", "timed out")
NAMES = {"failed": "caught", "passed": "survived"}


class Outcome(NamedTuple):
    """One fault and what came of it: caught, timed out, survived, equivalent, or without a test."""

    module: str
    line: int
    what: str
    result: str
    index: int = 0
    test: str = ""


class Trial:
    """A copy of the project in which faults are tried, and what the tests run in it."""

    def __init__(self, place: Path, kept: Path) -> None:
        self.root, self.time, self.tests = place, 0, {}
        self.good: set[str] = set()
        self.bad: set[str] = set()
        for name in ("recombine", "tests", "docs", "scripts"):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, place / name, ignore=ignored)
        for name in ("results", "README.md", "pyproject.toml", "Makefile", "mkdocs.yml"):
            (place / name).symlink_to(ROOT / name)
        sources = {m: self.path(m).read_text() for m in all_modules() if m not in AWAY}
        for module, source in sources.items():
            self.write(self.path(module), with_notes(source, module))
        self.at_import = imported(place, kept)
        for file in files(place):
            self.tests |= traced(place, file, kept)
        for module, source in sources.items():
            self.write(self.path(module), source)
        self.warm = Warm(place)

    def path(self, module: str) -> Path:
        return self.root / "recombine" / f"{module}.py"

    def write(self, path: Path, text: str) -> None:
        """With a time of its own, so that no compiled file of another version is taken for it."""
        path.write_text(text)
        self.time += 10
        os.utime(path, (path.stat().st_mtime + self.time,) * 2)

    def verdict(self, module: str, text: str, tests: Tests) -> str:
        """How the tests end where a module's text is another."""
        path = self.path(module)
        source = path.read_text()
        self.write(path, text)
        try:
            return verdict(self.root, tests)
        finally:
            self.write(path, source)

    def outcome(self, module: str, index: int) -> Outcome:
        source = self.path(module).read_text()
        text, what, line = mutate(source, index)
        if is_equivalent(module, source.splitlines()[line - 1], what):
            return Outcome(module, line, what, "equivalent", index)
        block = block_at(ast.parse(source), module, line)
        loaded = block is None or at_load(block, self.at_import)
        tests = tests_at(self.tests, module, None if loaded else block, MOST)
        anew = loaded or not is_exchangeable(source, text)
        result, test = self.tried(module, text, tests, anew)
        abroad = [f"tests/test_{f}.py" for m, f in ABROAD.items() if module.startswith(m)]
        if abroad and result not in CAUGHT:
            result, test = self.tried(module, text, {abroad[0]: 60.0}, True)
        return Outcome(module, line, what, result, index, test)

    def tried(self, module: str, text: str, tests: Tests, anew: bool) -> tuple[str, str]:
        """What comes of a module's other text, and the test that noticed."""
        source = self.path(module).read_text()
        act = self.verdict if anew else self.warm.verdict
        while tests := {t: seconds for t, seconds in tests.items() if t not in self.bad}:
            said = act(module, text, tests)
            test = self.failed() if said == "failed" else ""
            if said != "failed" or test in self.good or (anew and not test):
                return NAMES.get(said, said), test
            alone = {test: tests[test]} if test in tests else tests
            if act(module, source, alone) == "passed":
                self.good |= alone.keys()
                return "caught", test
            self.bad |= alone.keys()
        return "without a test", ""

    def failed(self) -> str:
        """The test that failed; none where loading did."""
        path = self.root / FAILED
        return path.read_text() if path.exists() else ""


def drawn(modules: list[str], sample: int, over: int, rng: random.Random) -> list[tuple[str, int]]:
    """Faults to try: up to `sample` of each module, or `over` of all together."""
    count = {m: len(list(sites(ast.parse(_source(m))))) for m in modules}
    if over:
        every = [(m, i) for m in modules for i in range(count[m])]
        return rng.sample(every, min(over, len(every)))
    chosen = {m: rng.sample(range(count[m]), min(sample, count[m])) for m in modules}
    return [(m, i) for m in modules for i in sorted(chosen[m])]


def _source(module: str) -> str:
    return (ROOT / "recombine" / f"{module}.py").read_text()


def all_modules() -> list[str]:
    package = ROOT / "recombine"
    return sorted(str(p.relative_to(package).with_suffix("")) for p in package.rglob("*.py"))


MANY = 12
"""More modules are summed up by package."""


def summary(outcomes: list[Outcome]) -> Iterator[str]:
    """Per module or package and in all: caught of those that can be; what was not caught is listed before."""
    by: dict[str, list[Outcome]] = defaultdict(list)
    several = len({o.module for o in outcomes}) > MANY
    for one in outcomes:
        package = one.module.rpartition("/")[0] or "recombine"
        by[package if several else one.module].append(one)
    for name, some in [*sorted(by.items()), ("all", outcomes)]:
        real = [o for o in some if o.result != "equivalent"]
        caught = sum(o.result in CAUGHT for o in real)
        same = len(some) - len(real)
        note = f", {same} equivalent" if same else ""
        yield f"{name}: {caught} of {len(real)} caught ({caught / max(1, len(real)):.1%}{note})"


def try_named(trial: Trial) -> list[Outcome]:
    outcomes = []
    for module, old, new, test in NAMED:
        source = _source(module)
        said = trial.verdict(module, source.replace(old, new), {f"tests/{test}.py": 60.0})
        result = NAMES.get(said, said) if old in source else "no longer there"
        outcomes.append(Outcome(module, 0, f"{old!r} -> {new!r}", result))
        print(f"  {result}: {module} {old!r} -> {new!r}", flush=True)
    return outcomes


def try_drawn(trial: Trial, faults: list[tuple[str, int]], record: Path | None) -> list[Outcome]:
    """What was recorded already is not tried again, so that an interruption loses nothing."""
    held = json.loads(record.read_text()) if record and record.exists() else []
    outcomes = [Outcome(**one) for one in held]
    known = {(o.module, o.index) for o in outcomes}
    for number, (module, index) in enumerate(faults):
        if (module, index) in known:
            continue
        outcomes.append(one := trial.outcome(module, index))
        if one.result not in CAUGHT:
            at = f"{number + 1}/{len(faults)}"
            print(f"  {at} {one.result}: {module} line {one.line}: {one.what}", flush=True)
        if record:
            new = record.with_suffix(".new")
            new.write_text(json.dumps([o._asdict() for o in outcomes], indent=0))
            new.replace(record)
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition(". ")[0])
    parser.add_argument("modules", nargs="*", default=[])
    parser.add_argument("--sample", type=int, default=60)
    parser.add_argument("--over", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--named", action="store_true")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--kept", type=Path, default=ROOT / "build" / "mutants")
    parser.add_argument("--again", type=Path)
    given = parser.parse_args()
    sys.dont_write_bytecode = False
    for name in ("hypothesis", "matplotlib", "numpy", "polars", "pytest", "scipy.stats", "torch"):
        import_module(name)
    modules = given.modules or (
        [m for m in all_modules() if m not in AWAY] if given.over else list(CORE)
    )
    faults = drawn(modules, given.sample, given.over, random.Random(given.seed))
    if given.again:
        held = json.loads(given.again.read_text())
        faults = [(o["module"], o["index"]) for o in held if o["result"] not in CAUGHT]
    with tempfile.TemporaryDirectory() as place:
        trial = Trial(Path(place), given.kept.absolute())
        record = given.record and given.record.absolute()
        outcomes = try_named(trial) if given.named else try_drawn(trial, faults, record)
        trial.warm.end()
    print(*summary(outcomes), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
