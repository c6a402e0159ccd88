"""Settings that were accepted are accepted and those that were refused are refused: each number of
every config that studies use is set to others in turn, and `earlier_limits.json` says which of them
fit. If a limit is meant to change: `python tests/test_earlier_limits.py` lists them anew."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recombine.config import UsageError, tag_of
from recombine.studies import NAMES, find
from recombine.studies.study import SCALES

LISTED = Path(__file__).with_name("earlier_limits.json")
WHOLE = (*range(-1, 21), 24, 27, 28, 31, 32, 33, 63, 64, 65, 100, 128, 255, 256, 257, 1000)
REAL = (-1.0, -0.01, 0.0, 1e-6, 0.05, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.75, 0.8, 0.95, 1.0)
REAL += (1.01, 1.25, 1.5, 2.0, 3.0, 10.0, 1e3)


def within(value: Any) -> Iterator[Any]:
    """A config and all that it holds."""
    if dataclasses.is_dataclass(value):
        yield value
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from within(one)


def examples() -> dict[str, Any]:
    """One config of each tag, the first that a study or one of its tasks holds."""
    found: dict[str, Any] = {}
    for scale in SCALES:
        for study in map(find, NAMES):
            settings = study.settings(scale)
            tasks = [job.task for job in study.jobs(settings, 1)]
            for one in within([settings, *tasks]):
                found.setdefault(tag_of(type(one)) or "", one)
    found.pop("", None)
    return dict(sorted(found.items()))


def others(value: Any) -> tuple[Any, ...]:
    """What is tried in the place of a value."""
    match value:
        case bool():
            return (not value,)
        case int():
            return WHOLE
        case float():
            return REAL
        case tuple():
            negative = tuple(-v for v in value if isinstance(v, (int, float)))
            return (value[::-1], *((negative,) if negative else ()))
    return ()


def fits(example: Any, field: str, value: Any) -> bool:
    try:
        dataclasses.replace(example, **{field: value})
    except (ValueError, TypeError, UsageError):
        return False
    return True


def limits(example: Any) -> dict[str, str]:
    """By field, a digit for each value that is tried: 1 where it fits."""
    names = [f.name for f in dataclasses.fields(example) if f.init]
    tried = {name: others(getattr(example, name)) for name in names}
    return {
        name: "".join(str(int(fits(example, name, value))) for value in values)
        for name, values in tried.items()
        if values
    }


EXAMPLES = examples()


@pytest.mark.parametrize("tag", EXAMPLES)
def test_limits_of_settings_are_what_they_were(tag):
    listed = json.loads(LISTED.read_text())
    assert limits(EXAMPLES[tag]) == listed.get(tag), __doc__


if __name__ == "__main__":
    LISTED.write_text(json.dumps({t: limits(e) for t, e in EXAMPLES.items()}, indent=0) + "\n")
