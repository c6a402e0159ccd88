"""Configs: frozen dataclasses <-> JSON, and the digest that names them.

A config class is declared with `@config("tag")`. Its fields are numbers, strings, booleans, None,
tuples, or other configs. The JSON form carries the tag under "type", never a class path, so a class
can be renamed or moved and its runs keep their names. Reading JSON only looks tags up; it imports
and executes nothing that the JSON names.

Written by hand rather than with msgspec or cattrs: fields are typed by abstract classes (`world:
World`) and resolved by tag, unknown fields are errors with a suggestion, `--set` paths may be
shortened (`overrides.py`), and defaults stay out of the digest. With either library all four
remained to be written as hooks, and a GPU machine without it could not train.
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
from collections.abc import Callable, Iterable
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


def install_command(extra: str) -> str:
    """The command that installs an optional part; recombine is installed from a clone."""
    return f"pip install -e '.[{extra}]' (in the clone)"


class RunFailed(RuntimeError):
    """A run went wrong in a way that one line says: it diverged, a worker crashed."""


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
        return build(cls, {k: v for k, v in data.items() if k != "type"}, path)
    return convert(data, expected, path)


def build(cls: type, data: dict[str, Any], path: str) -> Any:
    """A config of this class from the plain values of its fields."""
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
    instead = ""
    if hint not in (int, float, str, bool, type(None)):
        whole = json.dumps({"type": value if isinstance(value, str) else "..."})
        instead = f"; write {whole}, or set its fields"
    raise UsageError(f"{path}: {value!r} is not of type {name}{instead}")


def _convert_union(value: Any, options: tuple[Any, ...], path: str) -> Any:
    for option in options:
        try:
            return from_json(value, option, path)
        except UsageError:
            if _is_of(value, option):  # the right kind of config: its own error says what is wrong
                raise
    names = ", ".join(
        "null" if o is type(None) else getattr(o, "__name__", str(o)) for o in options
    )
    given = value["type"] if isinstance(value, dict) and "type" in value else repr(value)
    raise UsageError(f"{path}: {given} is none of {names}")


def _is_of(value: Any, option: Any) -> bool:
    """Whether plain values describe a config of this class."""
    tag = value.get("type") if isinstance(value, dict) else None
    known = _TAGS.get(tag) if isinstance(tag, str) else None
    return known is not None and isinstance(option, type) and issubclass(known, option)


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
