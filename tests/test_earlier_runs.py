"""Runs of earlier versions are found again: what names a run is as `earlier_runs.json` lists it.
A default that changes makes every folder that relied on it be refused; a setting that changes leaves
finished runs behind. If that is meant: `python tests/test_earlier_runs.py` lists them anew."""

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from recombine.config import _TAGS, default_of, to_json
from recombine.pipeline.job import Task, digest_of
from recombine.studies import NAMES, find
from recombine.studies.study import SCALES

LISTED = Path(__file__).with_name("earlier_runs.json")


def defaults() -> dict[str, dict[str, Any]]:
    """The defaults of every config class that studies use, by its tag."""
    for name in NAMES:
        find(name)
    return {
        tag: {
            f.name: to_json(default_of(f))
            for f in dataclasses.fields(cls)
            if default_of(f) is not dataclasses.MISSING
        }
        for tag, cls in sorted(_TAGS.items())
        if cls.__module__.startswith("recombine.")
    }


def runs(name: str) -> dict[str, str]:
    """Of a study at each scale, its runs and their labels, in eight digits."""
    study, found = find(name), {}
    for scale in SCALES:
        jobs = study.jobs(study.settings(scale), 1)
        said = [f"{dict(job.labels)} {digest_of(job.task)}" for job in jobs]
        found[scale] = hashlib.sha256("\n".join(sorted(said)).encode()).hexdigest()[:8]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_study_names_its_runs_as_before(name):
    assert runs(name) == json.loads(LISTED.read_text())["runs"][name], __doc__


def test_no_default_has_changed():
    """New fields and new classes are free; what was there stays."""
    now = defaults()
    for tag, held in json.loads(LISTED.read_text())["defaults"].items():
        assert held.items() <= now.get(tag, {}).items(), (tag, __doc__)


def test_what_a_child_can_open_leaves_weights_and_nothing_else_does():
    known = [_TAGS[tag] for tag in defaults()]
    own = [cls for cls in known if issubclass(cls, Task)]
    assert len(own) > 20
    assert [c.tag for c in own if c.weights] == [c.tag for c in own if c.open is not Task.open]


if __name__ == "__main__":
    made = {"runs": {name: runs(name) for name in NAMES}, "defaults": defaults()}
    LISTED.write_text(json.dumps(made).replace("}, ", "},\n") + "\n")
