"""Some classes and functions of this package, with all that they use, as one file that needs torch
alone: the code of a model that others load without the package."""

import ast
import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from recombine.config import UsageError

PACKAGE = "recombine"
HEADER = '''
def config(tag):
    """A config is a frozen dataclass."""
    return dataclass(frozen=True)
'''
GIVEN = {"config", "ALWAYS"}
"""What the header defines in the place of the package's own."""


class Name(NamedTuple):
    module: str
    name: str


class _Module:
    """The top level of a module: where each of its names comes from."""

    def __init__(self, name: str) -> None:
        path = Path(importlib.import_module(name).__file__)
        self.nodes: dict[str, ast.stmt] = {}
        self.imports: dict[str, tuple[str, str | None, str]] = {}
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Import):
                for a in node.names:
                    self.imports[a.asname or a.name.partition(".")[0]] = (
                        a.name,
                        None,
                        a.asname or "",
                    )
            elif isinstance(node, ast.ImportFrom):
                for a in node.names:
                    self.imports[a.asname or a.name] = (node.module, a.name, a.asname or "")
            elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                self.nodes[node.name] = _without_local_imports(node)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in [n for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]:
                    self.nodes[target.id] = node


def _without_local_imports(node: Any) -> Any:
    """A class without the methods that import from the package: what they do is not needed."""
    if isinstance(node, ast.ClassDef):
        node.body = [part for part in node.body if not _imports_package(part)]
    return node


def _imports_package(node: ast.AST) -> bool:
    found = (n.module or "" for n in ast.walk(node) if isinstance(n, ast.ImportFrom))
    return any(name.startswith(PACKAGE) for name in found)


def _used(node: ast.AST) -> list[str]:
    """The names that code uses, annotations aside: those are never evaluated."""
    skipped: set[int] = set()
    for part in ast.walk(node):
        for attribute in ("annotation", "returns"):
            if (hint := getattr(part, attribute, None)) is not None:
                skipped |= {id(n) for n in ast.walk(hint)}
    names = (n for n in ast.walk(node) if isinstance(n, ast.Name) and id(n) not in skipped)
    return list(dict.fromkeys(n.id for n in names))


class _Rename(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self.names.get(node.id, node.id)
        return node


class Bundle:
    """Collects definitions, each after those that it uses."""

    def __init__(self) -> None:
        self.modules: dict[str, _Module] = {}
        self.order: list[Name] = []
        self.imports: dict[str, str] = {}
        self._seen: set[Name] = set()

    def add(self, thing: type | Any) -> None:
        self._visit(Name(thing.__module__, thing.__qualname__))

    def _module(self, name: str) -> _Module:
        if name not in self.modules:
            self.modules[name] = _Module(name)
        return self.modules[name]

    def _visit(self, name: Name) -> None:
        if name in self._seen or name.name in GIVEN:
            return
        self._seen.add(name)
        module = self._module(name.module)
        if name.name in module.imports:
            self._import(name.name, *module.imports[name.name])
        elif name.name in module.nodes:
            for used in _used(module.nodes[name.name]):
                self._visit(Name(name.module, used))
            self.order.append(name)

    def _import(self, name: str, source: str, what: str | None, alias: str) -> None:
        if source.split(".")[0] == PACKAGE:
            if alias and alias != what:
                raise UsageError(f"{source}.{what}: imported by another name, {alias}")
            self._visit(Name(source, what or name))
            return
        as_ = f" as {alias}" if alias else ""
        line = f"import {source}{as_}" if what is None else f"from {source} import {what}{as_}"
        if self.imports.setdefault(name, line) != line:
            raise UsageError(f"{name} means two things: {self.imports[name]}, {line}")

    def text(self) -> str:
        """The file. A name that two modules define is followed by its module's."""
        owners: dict[str, set[str]] = {}
        for module, name in self.order:
            owners.setdefault(name, set()).add(module)
        parts, done = [], set()
        for module, name in self.order:
            node = self._module(module).nodes[name]
            if id(node) in done:
                continue
            done.add(id(node))
            held = self._module(module)
            names = {n: self._final(module, n, owners, held) for n in (*held.nodes, *held.imports)}
            changed = {a: b for a, b in names.items() if a != b}
            if changed:
                node = _Rename(changed).visit(node)
                node.name = changed.get(name, name) if hasattr(node, "name") else None
            parts.append(ast.unparse(node))
        fixed = ["from __future__ import annotations", "from dataclasses import dataclass"]
        fixed.append("from typing import Any, ClassVar, Literal")
        lines = sorted({*self.imports.values()} - set(fixed))
        return "\n".join([*fixed, *lines, HEADER, "\n\n".join(parts)]) + "\n"

    def _final(self, module: str, name: str, owners: dict[str, set[str]], held: _Module) -> str:
        """What a name of a module is called in the file."""
        while name in held.imports and held.imports[name][0].split(".")[0] == PACKAGE:
            module = held.imports[name][0]
            held = self._module(module)
        if len(owners.get(name, ())) < 2:
            return name
        return f"{name}_{module.replace('.', '_').removeprefix(PACKAGE + '_')}"


def bundle(things: Iterable[Any]) -> str:
    """The source of some classes and functions and of all that they use."""
    made = Bundle()
    for thing in things:
        made.add(thing)
    return made.text()
