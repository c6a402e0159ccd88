"""Runs of earlier versions are found again: their names and the defaults of settings are those that
`earlier_runs.json` lists. A setting that changes leaves finished runs behind; a default that changes
makes every folder that relied on it be refused. New variants and new settings are free. If a change
is meant: `python tests/test_earlier_runs.py` lists them anew."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from recombine.config import _TAGS, default_of, from_json, to_json
from recombine.pipeline.job import Task, digest_of
from recombine.studies import NAMES, find
from recombine.studies.study import SCALES

LISTED = Path(__file__).with_name("earlier_runs.json")


def defaults() -> dict[str, dict[str, Any]]:
    """The defaults of every config class that names of runs are made of, by its tag."""
    for name in NAMES:
        find(name)
    return {
        tag: {
            f.name: to_json(default_of(f))
            for f in dataclasses.fields(cls)
            if default_of(f) is not dataclasses.MISSING
        }
        for tag, cls in sorted(_TAGS.items())
        if cls.__module__.startswith("recombine.") and not tag.startswith("settings/")
    }


def runs(name: str) -> dict[str, str]:
    """Of a study at each scale, the names of the runs of one seed, in six digits each."""
    study = find(name)
    found = {scale: study.jobs(study.settings(scale), 1) for scale in SCALES}
    return {
        scale: " ".join(sorted({digest_of(job.task)[:6] for job in jobs}))
        for scale, jobs in found.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_study_finds_its_earlier_runs(name):
    now = runs(name)
    listed = json.loads(LISTED.read_text())["runs"].get(name, {})
    for scale, names in listed.items():
        assert set(names.split()) <= set(now[scale].split()), f"{scale}: {__doc__}"


def test_no_default_has_changed():
    now = defaults()
    for tag, held in json.loads(LISTED.read_text())["defaults"].items():
        for field, value in held.items():
            assert now[tag].get(field, "no default") == as_now(value), f"{tag}, {field}: {__doc__}"


def as_now(value: Any) -> Any:
    """A listed config with the settings that are new since; they are at their default."""
    return to_json(from_json(value)) if isinstance(value, dict) else value


def test_what_a_child_can_open_leaves_weights_and_nothing_else_does():
    known = [_TAGS[tag] for tag in defaults()]
    own = [cls for cls in known if issubclass(cls, Task)]
    assert len(own) > 20
    assert [c.tag for c in own if c.weights] == [c.tag for c in own if c.open is not Task.open]


if __name__ == "__main__":
    made = {"runs": {name: runs(name) for name in NAMES}, "defaults": defaults()}
    LISTED.write_text(json.dumps(made).replace("}, ", "},\n") + "\n")
