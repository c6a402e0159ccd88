"""Templates that make prompts of labels, and prompts that are read back into labels."""

import re
import string
from collections.abc import Sequence

import numpy as np
import polars as pl
from jaxtyping import Int

from recombine.config import UsageError, nearest
from recombine.worlds.datasets.dataset import Dataset
from recombine.worlds.factors import PROMPTS, Composition, Factor, FactorSpace


def check_template(template: str, space: FactorSpace) -> None:
    """UsageError where a template does not name every factor, or names anything else."""
    try:
        fields = [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]
    except ValueError as error:
        raise UsageError(f"--template {template!r}: {error}") from None
    known = [f.name for f in space.factors]
    for name in fields:
        if name not in known:
            factors = ", ".join(known)
            raise UsageError(
                f"--template {template!r}: {{{name}}} is no factor; they are {factors}"
                f"{nearest(name, known)}"
            )
    for name in known:
        if name not in fields:
            raise UsageError(f"--template {template!r}: does not name {{{name}}}")


def labels_of(space: FactorSpace, composition: Composition) -> dict[str, str]:
    """(0, 1) -> {"shape": "circle", "color": "blue"}."""
    return {f.name: f.values[i] for f, i in zip(space.factors, composition, strict=True)}


def prompt_column(dataset: Dataset) -> str | None:
    return next((c for c in dataset.table.columns if c.lower() in PROMPTS), None)


def read_prompts(
    dataset: Dataset, column: str, space: FactorSpace, template: str = ""
) -> Int[np.ndarray, "n k"]:
    """The composition that each prompt names. Each distinct prompt is read once."""
    cells = dataset.table[column]
    distinct = cells.unique(maintain_order=True)
    read = [read_prompt(text, space, template) for text in distinct]
    for text, found in zip(distinct, read, strict=True):
        if isinstance(found, str):
            row = int((cells == text).arg_max()) + 1
            unclear = not template and "no value" not in found
            hint = "; --template says where each factor stands" if unclear else ""
            raise UsageError(f"{dataset.where}: row {row}: the prompt {text[:80]!r} {found}{hint}")
    place = pl.Series(range(len(distinct)), dtype=pl.Int64)
    number = cells.replace_strict(distinct, place, return_dtype=pl.Int64).to_numpy()
    return np.array(read, np.int64)[number]


def read_prompt(text: str, space: FactorSpace, template: str = "") -> Composition | str:
    """The composition that a text names, or what is wrong with it."""
    if template and (match := _pattern(template, space).search(text)):
        found = match.groupdict()
        return tuple(_place(found[f"v{k}"], f) for k, f in enumerate(space.factors))
    named = []
    for factor in space.factors:
        values = words_in(text, factor.values)
        if len(values) != 1:
            what = "no value" if not values else f"{len(values)} values"
            return f"names {what} of {factor.name} ({factor.words})"
        named.append(factor.values.index(values[0]))
    return _repeated(text, labels_of(space, tuple(named))) or tuple(named)


def _repeated(text: str, labels: dict[str, str]) -> str:
    """What is wrong where factors share a value and a text names it for fewer of them: in "a red
    car" nothing says that the road is red, too."""
    for value in labels.values():
        names = [name for name, v in labels.items() if v.lower() == value.lower()]
        if len(names) > len(_word(value).findall(text.lower())):
            return f"names {value!r} too seldom for {' and '.join(names)}"
    return ""


def words_in(text: str, values: Sequence[str]) -> list[str]:
    """The values that a text names as whole words; of "dark red" and "red" the longer one."""
    found = []
    rest = text.lower()
    for value in sorted(values, key=len, reverse=True):
        rest, count = _word(value).subn("\0", rest)
        found += [value] if count else []
    return found


def _word(value: str) -> re.Pattern[str]:
    """A value as a whole word, in a text in small letters."""
    words = r"[\s_-]+".join(map(re.escape, re.split(r"[\s_-]+", value.lower().strip())))
    return re.compile(rf"(?<!\w){words}(?!\w)")


def _pattern(template: str, space: FactorSpace) -> re.Pattern[str]:
    parts, place = [], {f.name: k for k, f in enumerate(space.factors)}
    for text, name, _, _ in string.Formatter().parse(template):
        parts.append(r"\s+".join(map(re.escape, re.split(r"\s+", text))))
        if name in place:
            values = sorted(space.factors[place[name]].values, key=len, reverse=True)
            parts.append(f"(?P<v{place[name]}>{'|'.join(map(re.escape, values))})")
    return re.compile("".join(parts), re.IGNORECASE)


def _place(value: str, factor: Factor) -> int:
    return [v.lower() for v in factor.values].index(value.lower())
