"""Overrides: `--set path=value` on the settings of a study, typed and checked as a whole."""

import dataclasses
import json
import math
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from recombine.config import (
    JSON,
    UsageError,
    build,
    find_class,
    from_json,
    nearest,
    tag_of,
    to_json,
    types_of,
)


def override(settings: Any, *assignments: str) -> Any:
    """`settings` with some fields replaced: `train.steps=500`, `mu=[1,2]`, `net.qk_norm=false`. A
    path may leave out its beginning where only one field fits: `world=...` for `recipe.world=...`.
    What is outside is replaced before what is inside, and the result is checked once, as a whole,
    so that the order of assignments does not matter. Last, what has to look at the disk to be
    complete does so (`settled`)."""
    plain: Any = to_json(settings)
    known = {tag_of(type(c)): type(c) for c in [settings, *configs_in(settings)]}
    given = []
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        if not equals or not path:
            raise UsageError(f"--set {assignment}: write path=value")
        given.append((path, text))
    for path, text in sorted(given, key=lambda one: _depth(plain, one[0])):
        _assign(plain, path, text, known)
    del plain["type"]
    try:
        return _settled(build(type(settings), plain, "--set")) if assignments else settings
    except UsageError as error:
        raise UsageError(str(error).replace("--set.", "--set ", 1)) from None


def _settled(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_settled, value))
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    held = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    changed = {name: new for name, old in held.items() if (new := _settled(old)) != old}
    value = dataclasses.replace(value, **changed) if changed else value
    return value.settled() if hasattr(value, "settled") else value


def _parse(text: str, hint: Any) -> Any:
    """As JSON, unless it is no JSON or is one of the words that a field may hold."""
    if get_origin(hint) is Literal and text in get_args(hint):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _assign(plain: dict[str, Any], path: str, text: str, known: dict[str, type]) -> None:
    path = _whole_path(plain, path)
    *above, last = path.split(".")
    for key in above:
        _check_field(plain, key, path, known)
        plain = plain[key]
    hint = _check_field(plain, last, path, known)
    plain[last] = to_json(from_json(_parse(text, hint), hint, path=f"--set {path}"))


def _depth(plain: dict[str, Any], path: str) -> float:
    """How far inside a path ends; one that leads nowhere yet, or to several fields, comes last."""
    try:
        whole = _whole_path(plain, path)
    except UsageError:
        return math.inf
    return float(whole.count(".")) if whole.partition(".")[0] in plain else math.inf


def _whole_path(plain: dict[str, Any], path: str) -> str:
    """`path`, or the one path below `plain` that ends in it."""
    first = path.partition(".")[0]
    if first in plain:
        return path
    matches = [f"{where}.{path}" for where, inner in _below(plain) if first in inner]
    if len(matches) > 1:
        raise UsageError(f"--set {path}: which one? {', '.join(matches)}")
    return matches[0] if matches else path


def _below(plain: dict[str, Any], above: str = "") -> list[tuple[str, dict[str, Any]]]:
    """All configs inside the plain form of one, with their paths."""
    held = [(above + name, value) for name, value in plain.items() if isinstance(value, dict)]
    return held + [inner for where, value in held for inner in _below(value, f"{where}.")]


def configs_in(settings: Any) -> list[Any]:
    """All configs inside `settings`."""
    held = [getattr(settings, f.name) for f in dataclasses.fields(settings)]
    held = [value for value in held if dataclasses.is_dataclass(value)]
    return held + [inner for value in held for inner in configs_in(value)]


def leaves(settings: Any, above: str = "") -> Iterator[tuple[str, str]]:
    """Every setting below `settings`: its path, and its value as `--set` would take it."""
    for f in dataclasses.fields(settings):
        value = getattr(settings, f.name)
        if dataclasses.is_dataclass(value):
            yield above + f.name, tag_of(type(value))
            yield from leaves(value, f"{above}{f.name}.")
        else:
            plain = to_json(value)
            yield above + f.name, plain if isinstance(plain, str) else json.dumps(plain)


def _check_field(plain: JSON, key: str, path: str, known: dict[str, type]) -> Any:
    """The declared type of a field, or a UsageError that names the fields there are."""
    if not isinstance(plain, dict):
        raise UsageError(f"--set {path}: {key} lies below a plain value")
    cls = known.get(plain["type"]) or find_class(plain["type"], f"--set {path}")
    names = [f.name for f in dataclasses.fields(cls)]
    if key not in names:
        fields = ", ".join(names)
        raise UsageError(
            f"--set {path}: no field {key!r} in {tag_of(cls)}; it has {fields}{nearest(key, names)}"
        )
    return types_of(cls)[key]
