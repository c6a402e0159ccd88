"""What a study declares: tasks, pure data that say what they need and how they are done, and jobs,
tasks with labels."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from recombine.config import UsageError, digest, tag_of, to_json
from recombine.runtime import Runtime
from recombine.store import Row, RunFolder

Label = str | int | float


class Task(ABC):
    """One piece of work: a config class (`@config("tag")`), so it is hashable, has a JSON form and
    a digest. What it reads of other tasks must be listed in `parents`; the pipeline sees to it that
    they are done before it runs."""

    noun: ClassVar[str] = "run"
    """What progress lines call it: probe, tokenizer, model."""
    weights: ClassVar[bool] = False
    """Whether it leaves weights that its children open."""

    def parents(self) -> tuple["Task", ...]:
        return ()

    def check(self) -> None:  # noqa: B027
        """UsageError where its settings do not fit each other; called before anything runs."""

    @property
    def cost(self) -> float:
        """How long it takes: the longest start first, and the time left is estimated from it.
        About hundredths of a second on one core, with the networks of laptop scale."""
        return 1.0

    @abstractmethod
    def run(self, work: "Work") -> Iterable[Row] | None:
        """Do the work in `work.folder`. Rows that it gives are written there; a training that
        appends its own gives None."""

    def open(self, work: "Work") -> Any:
        """What a child gets from it once it is done, e.g. the trained network."""
        raise NotImplementedError(f"{tag_of(type(self))} leaves nothing to open")


@dataclass(frozen=True)
class Job:
    """A task as a study uses it. The labels (variant, seed, ...) become columns of its rows; they
    are not part of its name."""

    task: Task
    labels: tuple[tuple[str, Label], ...] = ()

    @staticmethod
    def of(task: Task, **labels: Label) -> "Job":
        return Job(task, tuple(labels.items()))

    @property
    def title(self) -> str:
        named = dict(self.labels)
        seed = [f"seed {named['seed']}"] if "seed" in named else []
        return ", ".join([str(named.get("variant", self.task.noun)), *seed])


def seed_by_seed(jobs: Iterable[Job]) -> list[Job]:
    """All jobs of a seed before those of the next, so that whoever stops early has whole seeds."""
    return sorted(jobs, key=lambda job: dict(job.labels).get("seed", 0))


_BEING_RESOLVED: list[Task] = []
"""The chain of tasks whose parents are being looked up."""


@lru_cache(maxsize=100_000)
def digest_of(task: Task) -> str:
    """The name of a task's run: of its config and of the digests of its parents. UsageError where
    parents form a cycle."""
    if task in _BEING_RESOLVED:
        chain = " -> ".join(
            tag_of(type(t)) for t in (*_BEING_RESOLVED[_BEING_RESOLVED.index(task) :], task)
        )
        raise UsageError(f"the plan has a cycle: {chain}")
    _BEING_RESOLVED.append(task)
    try:
        return digest(task, [digest_of(parent) for parent in task.parents()])
    finally:
        _BEING_RESOLVED.pop()


def folder_of(task: Task, out: Path) -> RunFolder:
    return RunFolder(out, digest_of(task))


def described(task: Task) -> dict[str, Any]:
    """How a task stands in config.json."""
    return {"config": to_json(task), "parents": sorted(digest_of(p) for p in task.parents())}


@dataclass
class Work:
    """What a task is handed when it runs or is opened: its folder, the runtime, and the way to its
    parents."""

    task: Task
    out: Path
    runtime: Runtime
    title: str = ""
    check: Any = None
    """Called now and then by long work; raises where the work has to stop (its lease was lost)."""
    opened: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def folder(self) -> RunFolder:
        return replace(folder_of(self.task, self.out), check=self.check)

    def open(self, parent: Task) -> Any:
        """What a parent left, loaded once per process for each state of its weights."""
        folder = folder_of(parent, self.out)
        name = f"{folder.digest} {folder.weights}"
        if name not in self.opened:
            folder.begin(described(parent))  # refuses a folder that holds another config
            self.opened[name] = parent.open(self.of(parent))
        return self.opened[name]

    def of(self, task: Task) -> "Work":
        """The same for another task."""
        return Work(task, self.out, self.runtime, self.title, self.check, self.opened)


def ancestors(tasks: Iterable[Task]) -> Iterator[Task]:
    """All tasks and their parents, parents first, each once."""
    seen: set[Task] = set()

    def visit(task: Task) -> Iterator[Task]:
        if task in seen:
            return
        digest_of(task)  # finds cycles
        for parent in task.parents():
            yield from visit(parent)
        if task not in seen:
            seen.add(task)
            yield task

    for task in tasks:
        yield from visit(task)
