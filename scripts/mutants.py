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
import copy
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

from mutant_tests import (
    FAILED,
    Tests,
    Warm,
    at_load,
    block_at,
    files,
    imported,
    is_exchangeable,
    tests_at,
    traced,
    verdict,
    with_notes,
)

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
EQUIVALENT = (
    ("analysis/claims", "run_minutes: float = 0.0", "0.0 -> 1.0", "neither is a long run"),
    ("analysis/claims", "if claim.trained else 0", "0 -> 1", "an estimate has at least one seed"),
    ("analysis/estimates", "EVEN_CELLS = 1000", "1000 -> 1001", "how fine a grid is"),
    ("analysis/estimates", "low, high, (-1, 1))", "1 -> 2", "a tanh is never beyond 1"),
    (
        "analysis/estimates",
        "total / total[..., -1:]",
        "total / total[..., -1:] -> total * total[..., -1:]",
        "the masses sum to one already",
    ),
    (
        "metrics/detector",
        "self.shortcut(x) + self.conv2",
        "self.shortcut(x) + self.conv2(F.silu(self.norm2(y))) -> self.shortcut(x) - self.conv2(F.silu(self.norm2(y)))",
        "the sign of what a convolution learns",
    ),
    ("plots/prompting", "steps = runs[0].steps", "0 -> 1", "all runs have the same steps"),
    ("config", "get_close_matches", "1 -> 2", "only the first is used"),
    ("config", "@lru_cache", "1024 -> 1025", "how much is remembered"),
    ("config", "@lru_cache", "1 -> 2", "how much is remembered"),
    ("worlds/scenes/shot", "FUSED = 2**21", "2 -> 3", "how many rays are traced at once"),
    ("nets/text_unet", "any(w <= 0 or w %", "0 -> 1", "a width of one leaves a remainder"),
    ("metrics/scene_sheets", "LOCATED, MISSED", "1.0 -> 2.0", "colours are clipped at one"),
    ("analysis/labels", 'zip(t.column("step")', "True -> False", "columns of one table"),
    ("theory/swing_by_laws", 'seeded(0, "fields"', "0 -> 1", "what is checked holds for all draws"),
    ("plots/local_scores_composed", "zip(axes, summary", "True -> False", "an axis for each"),
    ("plots/swing_by_evidence", "right.text(10_200", "10200 -> 10201", "less than a pixel"),
    ("limits", "default=2**63", "2 -> 3", "both are more than any machine has"),
    ("worlds/scenes/trace", "1 / (ray + 1e-12)", "ray + 1e-12 -> ray - 1e-12", "no ray is so flat"),
    ("plots/concept_order", "zip(axes[0], pairs", "True -> False", "an axis for each"),
    (
        "theory/mixtures",
        "return self.mean[which] + (",
        "self.mean[which] + (step if self.axes is None else torch.einsum('bde,be->bd', self.axes[which], step))"
        " -> self.mean[which] - (step if self.axes is None else torch.einsum('bde,be->bd', self.axes[which], step))",
        "the sign of noise whose law is even",
    ),
    ("config", "zip(value, items, strict=True)", "True -> False", "lengths were compared before"),
)
"""(module, part of the line, "before -> after", why no test can tell the difference)."""
MOST = 20.0
"""Seconds for the tests of one fault: they are taken, the quickest first, until they take so long."""


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


def mutate(source: str, index: int) -> tuple[str, str, int]:
    """The source with its fault number `index`, what that is, and on which line."""
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
    changed = ast.unparse(ast.fix_missing_locations(tree))
    return changed, f"{before} -> {after}", where


def _replace(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            held = getattr(node, name, None)
            if isinstance(held, list) and old in held:
                held[held.index(old)] = new


def is_equivalent(module: str, text: str, what: str) -> bool:
    return any(m == module and part in text and w == what for m, part, w, _ in EQUIVALENT)


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
        anew = loaded or not is_exchangeable(source, text)
        tests = tests_at(self.tests, module, None if loaded else block, MOST)
        tests = {t: seconds for t, seconds in tests.items() if t not in self.bad}
        act = self.verdict if anew else self.warm.verdict
        while tests:
            said = act(module, text, tests)
            test = self.failed() if said == "failed" else ""
            if said != "failed" or test in self.good or (anew and not test):
                return Outcome(module, line, what, NAMES.get(said, said), index, test)
            alone = {test: tests[test]} if test in tests else tests
            if act(module, source, alone) == "passed":
                self.good |= alone.keys()
                return Outcome(module, line, what, "caught", index, test)
            self.bad |= alone.keys()
            tests = {t: seconds for t, seconds in tests.items() if t not in self.bad}
        return Outcome(module, line, what, "without a test", index)

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
