"""Configs: frozen dataclasses <-> JSON, the digest that names them, and typed overrides.

A config class is declared with `@config("tag")`. Its fields are numbers, strings, booleans, None,
tuples, or other configs. The JSON form carries the tag under "type", never a class path, so a class
can be renamed or moved and its runs keep their names. Reading JSON only looks tags up; it imports
and executes nothing that the JSON names.

Written by hand rather than with msgspec or cattrs: fields are typed by abstract classes (`world:
World`) and resolved by tag, unknown fields are errors with a suggestion, `--set` paths may be
shortened, and defaults stay out of the digest. With either library all four remained to be written
as hooks, and a GPU machine without it could not train.
"""

import dataclasses
import difflib
import hashlib
import importlib
import json
import math
import pkgutil
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Literal, Union, dataclass_transform, get_args, get_origin

from recombine.display import short_repr

JSON = dict[str, Any] | list[Any] | str | int | float | bool | None
ALWAYS = {"always": True}
"""Metadata of a field that enters the digest even at its default: the version of what a task
computes."""
_TAGS: dict[str, type] = {}


class UsageError(ValueError):
    """What the user gave cannot be used; the message is one line that names the value and what is
    allowed."""


@dataclass_transform(frozen_default=True)
def config(tag: str) -> Callable[[type], type]:
    """Declare a config class: a frozen dataclass whose JSON form says `tag`. A tag is for ever; the
    class name is not."""

    def declare(cls: type) -> type:
        made: Any = dataclasses.dataclass(frozen=True, repr=False)(cls)
        known = _TAGS.get(tag)
        if known is not None and _origin(known) != _origin(made):
            raise TypeError(
                f"tag {tag!r} is taken by {known.__qualname__}; {made.__qualname__} needs another"
            )
        if "__repr__" not in vars(cls):
            made.__repr__ = short_repr
        _TAGS[tag] = made
        made.tag = tag
        return made

    return declare


def _origin(cls: type) -> tuple[str, str]:
    """The file and name of a class: the same one may be imported twice (a study file that is run
    again)."""
    module = sys.modules.get(cls.__module__)
    return getattr(module, "__file__", None) or cls.__module__, cls.__qualname__


def nearest(word: str, known: Iterable[str]) -> str:
    """ "; did you mean X?" where a known word is close, else nothing."""
    close = difflib.get_close_matches(word, list(known), 1)
    return f"; did you mean {close[0]}?" if close else ""


@lru_cache(maxsize=1024)
def types_of(cls: type) -> dict[str, Any]:
    """What each field of a config class holds."""
    return typing.get_type_hints(cls)


def tag_of(cls: type) -> str:
    if "tag" not in vars(cls):
        raise TypeError(f'{cls.__qualname__} is not a config; declare it with @config("its-name")')
    return vars(cls)["tag"]


def to_json(value: Any) -> JSON:
    """The plain form of a config. Tuples become lists, floats stay floats even when given as
    ints."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        hints = types_of(type(value))
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        plain = {name: to_json(convert(v, hints[name], name)) for name, v in fields.items()}
        return {"type": tag_of(type(value)), **plain}
    if isinstance(value, (tuple, list)):
        return [to_json(v) for v in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise TypeError(f"a config holds plain values and configs, not {type(value).__name__}")


def digest(value: Any, parents: Iterable[str] = ()) -> str:
    """16 hex digits that depend on the content and on the parents' digests alone: not on dict
    order, machine, class names or Python's hash seed. Fields at their default do not enter, so a
    new option leaves the names of older runs as they are. (If a default changes, an old folder's
    full config no longer fits its name, and it is refused, not mistaken.)"""
    content = {"config": _essence(value), "parents": sorted(parents)}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _essence(value: Any) -> JSON:
    """The plain form of a config without the fields that stand at their default."""
    if isinstance(value, (tuple, list)):
        return [_essence(v) for v in value]
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return to_json(value)
    hints, kept = types_of(type(value)), {}
    for f in dataclasses.fields(value):
        given = convert(getattr(value, f.name), hints[f.name], f.name)
        if given != default_of(f) or _versioned(given) or f.metadata.get("always"):
            kept[f.name] = _essence(given)
    return {"type": tag_of(type(value)), **kept}


def _versioned(value: Any) -> bool:
    """Whether a version stands somewhere inside: then a config enters the digest though it is the
    default."""
    if isinstance(value, (tuple, list)):
        return any(map(_versioned, value))
    if not dataclasses.is_dataclass(value):
        return False
    inner = dataclasses.fields(value)
    return any(f.metadata.get("always") or _versioned(getattr(value, f.name)) for f in inner)


def default_of(field: dataclasses.Field) -> Any:
    made = field.default_factory
    return field.default if made is dataclasses.MISSING else made()


def from_json(data: Any, expected: Any = Any, path: str = "config") -> Any:
    """Build the config that `data` (JSON, or values built already) describes, checking each field
    against its type."""
    if (
        isinstance(data, dict)
        and "type" in data
        and (expected is Any or isinstance(expected, type))
    ):
        cls = find_class(data["type"], path)
        if expected is not Any and not issubclass(cls, expected):
            raise UsageError(f"{path}: {data['type']} is not a {expected.__name__}")
        return _build(cls, {k: v for k, v in data.items() if k != "type"}, path)
    return convert(data, expected, path)


def _build(cls: type, data: dict[str, Any], path: str) -> Any:
    hints = types_of(cls)
    names = [f.name for f in dataclasses.fields(cls)]
    if unknown := sorted(set(data) - set(names)):
        hint = nearest(unknown[0], names)
        raise UsageError(
            f"{path}.{unknown[0]}: no such field; {tag_of(cls)} has {', '.join(names) or 'none'}{hint}"
        )
    values = {k: from_json(v, hints[k], f"{path}.{k}") for k, v in data.items()}
    try:
        return cls(**values)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{path}: {error}") from None


def find_class(tag: Any, path: str) -> type:
    """The config class with this tag. Where it is not known yet, the package's own modules are
    imported; nothing else is."""
    if tag not in _TAGS:
        import_all()
    if not isinstance(tag, str) or tag not in _TAGS:
        hint = nearest(str(tag), _TAGS)
        raise UsageError(
            f"{path}: there is no config type {tag!r}{hint} (a study file of your own must be loaded first)"
        )
    return _TAGS[tag]


ROOMS = ("worlds", "nets", "tokenizers", "objectives", "train", "metrics", "bridge", "runs", "studies")  # fmt: skip


@lru_cache(maxsize=1)
def import_all() -> None:
    """Import the rooms that declare configs."""
    for room in ROOMS:
        tags_in(room)


def tags_in(room: str) -> tuple[str, ...]:
    """Import a room; the tags that are known then. Modules whose own requirements are not installed
    (a GPU kernel's) declare none."""
    package = importlib.import_module(f"recombine.{room}")
    for module in pkgutil.walk_packages(package.__path__, f"recombine.{room}."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if (error.name or "recombine").startswith("recombine"):
                raise
    return tuple(_TAGS)


def convert(value: Any, hint: Any, path: str) -> Any:
    """`value` as the type `hint`, or a UsageError that says what is allowed."""
    origin = get_origin(hint)
    if hint is Any:
        return tuple(convert(v, Any, path) for v in value) if isinstance(value, list) else value
    if origin in (Union, types.UnionType):
        return _convert_union(value, get_args(hint), path)
    if origin is Literal:
        if value in get_args(hint):
            return value
        close = nearest(str(value), map(str, get_args(hint)))
        raise UsageError(
            f"{path}: {value!r} is not one of {', '.join(map(str, get_args(hint)))}{close}"
        )
    if origin is tuple:
        return _convert_tuple(value, get_args(hint), path)
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


def _convert_union(value: Any, options: tuple[Any, ...], path: str) -> Any:
    for option in options:
        try:
            return from_json(value, option, path)
        except UsageError:
            continue
    names = ", ".join(
        "null" if o is type(None) else getattr(o, "__name__", str(o)) for o in options
    )
    given = value["type"] if isinstance(value, dict) and "type" in value else repr(value)
    raise UsageError(f"{path}: {given} is none of {names}")


def _convert_tuple(value: Any, items: tuple[Any, ...], path: str) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise UsageError(f"{path}: {value!r} is not a list")
    if len(items) == 2 and items[1] is Ellipsis:
        return tuple(from_json(v, items[0], f"{path}[{i}]") for i, v in enumerate(value))
    if len(items) != len(value):
        raise UsageError(f"{path}: a list of {len(items)} is needed, not of {len(value)}")
    return tuple(
        from_json(v, t, f"{path}[{i}]") for i, (v, t) in enumerate(zip(value, items, strict=True))
    )


def override(settings: Any, *assignments: str) -> Any:
    """`settings` with some fields replaced: `train.steps=500`, `mu=[1,2]`, `net.qk_norm=false`. A
    path may leave out its beginning where only one field fits: `world=...` for `recipe.world=...`.
    What is outside is replaced before what is inside, and the result is checked once, as a whole,
    so that the order of assignments does not matter. Last, what has to look at the disk to be
    complete does so (`settled`)."""
    plain: Any = to_json(settings)
    known = {tag_of(type(c)): type(c) for c in [settings, *_inner(settings)]}
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
        return _settled(_build(type(settings), plain, "--set")) if assignments else settings
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


def _inner(settings: Any) -> list[Any]:
    """All configs inside `settings`."""
    held = [getattr(settings, f.name) for f in dataclasses.fields(settings)]
    held = [value for value in held if dataclasses.is_dataclass(value)]
    return held + [inner for value in held for inner in _inner(value)]


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
