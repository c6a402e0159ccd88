"""Frozen dataclasses <-> JSON, the digest that names them, and typed overrides.

A config is a frozen dataclass whose fields are numbers, strings, booleans, None, tuples, or other configs. Its JSON form
carries the class path under "class", so a run folder says by itself what it was made from. Reading one executes nothing:
class paths outside `trust` are refused.
"""

import dataclasses
import hashlib
import importlib
import json
import math
import types
import typing
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal, Union, get_args, get_origin

JSON = dict[str, Any] | list[Any] | str | int | float | bool | None
TRUSTED = ("recombine",)


class UsageError(ValueError):
    """What the user gave cannot be used; the message is one line that names the value and what is allowed."""


@lru_cache(maxsize=1024)
def types_of(cls: type) -> dict[str, Any]:
    """What each field of a config class holds."""
    return typing.get_type_hints(cls)


def to_json(value: Any) -> JSON:
    """The plain form of a config. Tuples become lists, floats stay floats even when given as ints."""
    if dataclasses.is_dataclass(value):
        hints = types_of(type(value))
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        plain = {name: to_json(convert(v, hints[name], name)) for name, v in fields.items()}
        return {"class": class_path(type(value)), **plain}
    if isinstance(value, (tuple, list)):
        return [to_json(v) for v in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise TypeError(f"a config holds plain values and configs, not {type(value).__name__}")


def digest(value: Any) -> str:
    """16 hex digits that depend on the content alone: not on dict order, machine or Python's hash seed. Fields at their
    default do not enter, so a new option leaves the names of older runs as they are. (If a default changes, an old folder's
    full config no longer fits its name, and it is refused, not mistaken.)"""
    text = json.dumps(_essence(value), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _essence(value: Any) -> JSON:
    """The plain form of a config without the fields that stand at their default."""
    if isinstance(value, (tuple, list)):
        return [_essence(v) for v in value]
    if not dataclasses.is_dataclass(value):
        return to_json(value)
    hints = types_of(type(value))
    given = {f.name: convert(getattr(value, f.name), hints[f.name], f.name) for f in dataclasses.fields(value)}
    named = [f.name for f in dataclasses.fields(value) if given[f.name] != _unnamed(f) or _renewed(given[f.name])]
    return {"class": class_path(type(value)), **{name: _essence(given[name]) for name in named}}


def _renewed(value: Any) -> bool:
    """Whether a version inside is no longer its first: then a config enters the name though it stands at its default."""
    if isinstance(value, (tuple, list)):
        return any(map(_renewed, value))
    if not dataclasses.is_dataclass(value):
        return False
    inner = [(f, getattr(value, f.name)) for f in dataclasses.fields(value)]
    return any(_renewed(v) or v != f.metadata.get("unnamed", v) for f, v in inner)


def _unnamed(field: dataclasses.Field) -> Any:
    """The value of a field that does not enter the name: its default, or what its metadata says (a version's first)."""
    if "unnamed" in field.metadata:
        return field.metadata["unnamed"]
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def from_json(data: Any, expected: Any = Any, trust: tuple[str, ...] = TRUSTED, path: str = "config") -> Any:
    """Build the config that `data` (JSON, or values built already) describes, checking each field against its type."""
    if isinstance(data, dict) and "class" in data and (expected is Any or isinstance(expected, type)):
        cls = find_class(str(data["class"]), trust, path)
        if expected is not Any and not issubclass(cls, expected):
            raise UsageError(f"{path}: {data['class']} is not a {expected.__name__}")
        return _build(cls, {k: v for k, v in data.items() if k != "class"}, trust, path)
    return convert(data, expected, path, trust)


def _build(cls: type, data: dict[str, Any], trust: tuple[str, ...], path: str) -> Any:
    hints = types_of(cls)
    names = [f.name for f in dataclasses.fields(cls)]
    if unknown := sorted(set(data) - set(names)):
        raise UsageError(f"{path}.{unknown[0]}: no such field; {cls.__name__} has {', '.join(names) or 'none'}")
    values = {k: from_json(v, hints[k], trust, f"{path}.{k}") for k, v in data.items()}
    try:
        return cls(**values)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{path}: {error}") from None


def class_path(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def find_class(path: str, trust: tuple[str, ...], where: str) -> type:
    """The config class at `path`; nothing outside the trusted packages is imported."""
    module, _, name = path.rpartition(".")
    if module.split(".")[0] not in trust:
        raise UsageError(f"{where}: class {path!r} lies outside the trusted packages ({', '.join(trust)})")
    try:
        cls = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        raise UsageError(f"{where}: there is no class {path!r}") from None
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
        raise UsageError(f"{where}: {path!r} is not a config class")
    return cls


def convert(value: Any, hint: Any, path: str, trust: tuple[str, ...] = TRUSTED) -> Any:
    """`value` as the type `hint` asks for, or a UsageError that says what is allowed."""
    origin = get_origin(hint)
    if hint is Any:
        return tuple(convert(v, Any, path, trust) for v in value) if isinstance(value, list) else value
    if origin in (Union, types.UnionType):
        return _convert_union(value, get_args(hint), path, trust)
    if origin is Literal:
        if value in get_args(hint):
            return value
        raise UsageError(f"{path}: {value!r} is not one of {', '.join(map(str, get_args(hint)))}")
    if origin is tuple:
        return _convert_tuple(value, get_args(hint), path, trust)
    return _convert_plain(value, hint, path)


def _convert_plain(value: Any, hint: type, path: str) -> Any:
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{path}: {value} is not a finite number")
    if isinstance(value, hint) and not (hint in (int, float) and isinstance(value, bool)):
        return value
    if isinstance(value, str) and hasattr(hint, "from_text"):
        return hint.from_text(value)
    name = "nothing (null)" if hint is type(None) else hint.__name__
    raise UsageError(f"{path}: {value!r} is not of type {name}")


def _convert_union(value: Any, options: tuple[Any, ...], path: str, trust: tuple[str, ...]) -> Any:
    for option in options:
        try:
            return from_json(value, option, trust, path)
        except UsageError:
            continue
    names = ", ".join("null" if o is type(None) else getattr(o, "__name__", str(o)) for o in options)
    given = value["class"] if isinstance(value, dict) and "class" in value else repr(value)
    raise UsageError(f"{path}: {given} is none of {names}")


def _convert_tuple(value: Any, items: tuple[Any, ...], path: str, trust: tuple[str, ...]) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise UsageError(f"{path}: {value!r} is not a list")
    if len(items) == 2 and items[1] is Ellipsis:
        return tuple(from_json(v, items[0], trust, f"{path}[{i}]") for i, v in enumerate(value))
    if len(items) != len(value):
        raise UsageError(f"{path}: a list of {len(items)} is needed, not of {len(value)}")
    return tuple(from_json(v, t, trust, f"{path}[{i}]") for i, (v, t) in enumerate(zip(value, items, strict=True)))


def override(config: Any, *assignments: str) -> Any:
    """`config` with some fields replaced: `train.steps=500`, `mu=[1,2]`, `net.qk_norm=false`. A path may leave out its
    beginning where only one field fits: `world=...` for `recipe.world=...`. What is outside is replaced before what is inside,
    and the result is checked once, as a whole, so that the order of assignments does not matter. Last, what has to look at the
    disk to be complete does so (`settled`)."""
    plain, known = to_json(config), {class_path(type(c)): type(c) for _, c in [("", config), *_inner(config)]}
    given = []
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        if not equals or not path:
            raise UsageError(f"--set {assignment}: write path=value")
        given.append((path, text))
    for path, text in sorted(given, key=lambda one: _depth(plain, one[0])):
        _assign(plain, path, text, known)
    del plain["class"]
    try:
        return _settled(_build(type(config), plain, TRUSTED, "--set")) if assignments else config
    except UsageError as error:
        raise UsageError(str(error).replace("--set.", "--set ", 1)) from None


def _settled(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_settled, value))
    if not dataclasses.is_dataclass(value):
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
    except json.JSONDecodeError:
        return text


Known = dict[str, type]
"""Class paths and the classes that are meant."""


def _assign(plain: JSON, path: str, text: str, known: Known) -> None:
    path = _whole_path(plain, path)
    *above, last = path.split(".")
    for key in above:
        _check_field(plain, key, path, known)
        plain = plain[key]
    hint = _check_field(plain, last, path, known)
    plain[last] = to_json(from_json(_parse(text, hint), hint, path=f"--set {path}"))


def _depth(plain: JSON, path: str) -> float:
    """How far inside a path ends; one that leads nowhere yet, or to several fields, comes last."""
    try:
        whole = _whole_path(plain, path)
    except UsageError:
        return math.inf
    return float(whole.count(".")) if whole.partition(".")[0] in plain else math.inf


def _whole_path(plain: JSON, path: str) -> str:
    """`path`, or the one path below `plain` that ends in it."""
    first = path.partition(".")[0]
    if first in plain:
        return path
    found = [f"{where}.{path}" for where, inner in _below(plain) if first in inner]
    if len(found) > 1:
        raise UsageError(f"--set {path}: which one? {', '.join(found)}")
    return found[0] if found else path


def _below(plain: JSON, above: str = "") -> list[tuple[str, JSON]]:
    """All configs inside the plain form of one, with their paths."""
    held = [(above + name, value) for name, value in plain.items() if isinstance(value, dict)]
    return held + [found for where, value in held for found in _below(value, f"{where}.")]


def _inner(config: Any, above: str = "") -> list[tuple[str, Any]]:
    """All configs inside `config`, with their paths."""
    held = [(above + f.name, getattr(config, f.name)) for f in dataclasses.fields(config)]
    held = [(where, value) for where, value in held if dataclasses.is_dataclass(value)]
    return held + [found for where, value in held for found in _inner(value, f"{where}.")]


def leaves(config: Any, above: str = "") -> Iterator[tuple[str, str]]:
    """Every setting below `config`: its path, and its value as `--set` would take it."""
    for f in dataclasses.fields(config):
        value = getattr(config, f.name)
        if dataclasses.is_dataclass(value):
            yield above + f.name, type(value).__name__
            yield from leaves(value, f"{above}{f.name}.")
        else:
            plain = to_json(value)
            yield above + f.name, plain if isinstance(plain, str) else json.dumps(plain)


def _check_field(plain: JSON, key: str, path: str, known: Known) -> Any:
    """The declared type of a field, or a UsageError that names the fields there are."""
    if not isinstance(plain, dict):
        raise UsageError(f"--set {path}: {key} lies below a plain value")
    cls = known.get(plain["class"]) or find_class(plain["class"], TRUSTED, f"--set {path}")
    names = [f.name for f in dataclasses.fields(cls)]
    if key not in names:
        raise UsageError(f"--set {path}: no field {key!r} in {cls.__name__}; it has {', '.join(names)}")
    return types_of(cls)[key]
