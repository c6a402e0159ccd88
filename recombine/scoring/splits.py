"""What the model was trained on, or is to be trained on: a column of the table, a list, or what the
data lacks."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from recombine.config import UsageError, nearest
from recombine.overrides import configs_in, override
from recombine.runs.recipe import Recipe
from recombine.scoring.prompts import read_prompt
from recombine.studies import find
from recombine.worlds.datasets.columns import Labels, plain
from recombine.worlds.datasets.dataset import Dataset
from recombine.worlds.factors import Composition, FactorSpace, Split, plain_value

SEEN = {"seen", "train", "training", "true", "1", "yes", "in"}
UNSEEN = {
    "unseen",
    "test",
    "held-out",
    "held out",
    "heldout",
    "held_out",
    "false",
    "0",
    "no",
    "out",
}
LIST = re.compile(r"(seen|unseen)\s*:\s*(.+)", re.IGNORECASE | re.DOTALL)
ASIDE = {"val", "validation", "valid", "dev"}
"""Says nothing of whether a composition was trained on."""


def find_split(
    given: Any,
    space: FactorSpace,
    data: tuple[Dataset, Labels] | None,
    present: Iterable[Composition],
) -> Split:
    """`given`: a Split; "seen: a b; c d" or "unseen: ..."; the name of a column; or nothing, then
    the compositions of which the data has no pictures are the unseen ones."""
    if isinstance(given, Split):
        return _known(given, space)
    if isinstance(given, Mapping):
        given = "; ".join(f"{k}: {_listed(v)}" for k, v in given.items())
    text = str(given or "").strip()
    if match := LIST.fullmatch(text):
        return _from_list(match[1].lower(), match[2], space)
    if text:
        return _from_column(text, data)
    there = set(present)
    if data is not None and "split" in data[0].table.columns and len(there) == space.count:
        return _from_column("split", data)
    if len(there) == space.count:
        last = space.describe(space.compositions[-1])
        raise UsageError(
            f"--split: there are real pictures of all {space.count} compositions, so nothing says "
            f"which of them the model was not trained on; list those, as in --split 'unseen: {last}', "
            "or name a column that says train or test"
        )
    return Split(tuple(c for c in space.compositions if c in there))


def as_change(split: str, studies: Iterable[str], scale: str, changes: tuple[str, ...]) -> str:
    """A list of compositions in words as the change of settings that trains these studies on what it
    names as seen: "unseen: bowl blue" -> "seen=[[0, 0], ...]". What the world has no pictures of is
    not trained on in any case."""
    if not (match := LIST.fullmatch(split.strip())):
        raise UsageError(f"--split {split[:60]}: write 'seen: a b; c d' or 'unseen: a b; c d'")
    worlds = set()
    for name in studies:
        settings = override(find(name).settings(scale), *changes)
        recipes = [c for c in configs_in(settings) if isinstance(c, Recipe)]
        if not recipes:
            raise UsageError(f"--split: {name} has no compositions that could be held out")
        worlds |= {recipe.world for recipe in recipes}
    if len(worlds) > 1:
        raise UsageError("--split: these studies have several worlds; run them one by one")
    (world,) = worlds
    seen = _from_list(match[1].lower(), match[2], world.space).seen
    return f"seen={json.dumps([c for c in seen if c in set(world.present)])}"


def _known(split: Split, space: FactorSpace) -> Split:
    if wrong := [c for c in split.seen if not space.has(c)]:
        sizes = space.sizes
        raise UsageError(
            f"split: {list(wrong[0])} is no composition of factors with {sizes} values"
        )
    return split


def _listed(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "; ".join(v if isinstance(v, str) else " ".join(map(str, _values(v))) for v in value)


def _values(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, Mapping) else value


def _from_list(word: str, text: str, space: FactorSpace) -> Split:
    named, exact = [], {plain_value(space.describe(c)): c for c in space.compositions}
    for part in filter(None, map(str.strip, re.split(r"[;\n]", text))):
        found = exact.get(plain_value(part)) or read_prompt(part, space)
        if isinstance(found, str):
            raise UsageError(f"--split {word}: {part!r} {found}")
        named.append(found)
    chosen = set(named)
    seen = [c for c in space.compositions if (c in chosen) == (word == "seen")]
    return _two_kinds(seen, space, f"--split {word}: {text[:60]}")


def _from_column(name: str, data: tuple[Dataset, Labels] | None) -> Split:
    if data is None:
        raise UsageError(f"--split {name}: there is no table with such a column; give --data")
    dataset, labels = data
    if name not in dataset.table.columns:
        have = ", ".join(dataset.table.columns)
        hint = nearest(name, dataset.table.columns)
        raise UsageError(
            f"--split {name}: {dataset.where} has no such column; it has {have}{hint}; a list of "
            "compositions begins with seen: or unseen:"
        )
    cells = plain(dataset.table[name])
    if unknown := [v for v in cells.unique() if v not in SEEN | UNSEEN | ASIDE]:
        raise UsageError(
            f"--split {name}: {unknown[0]!r} is none of train, seen, test, unseen, validation"
        )
    rows = cells.is_in(sorted(SEEN)).to_numpy()
    seen = {tuple(c) for c in labels.index[rows].tolist()}
    return _two_kinds(sorted(seen), labels.space, f"--split {name}")


def _two_kinds(seen: list[Composition], space: FactorSpace, what: str) -> Split:
    if not seen:
        raise UsageError(f"{what}: leaves no composition that was seen")
    if len(seen) == space.count:
        raise UsageError(f"{what}: leaves no composition that was not seen")
    return Split(tuple(seen))
