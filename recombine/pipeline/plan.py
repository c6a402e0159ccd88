"""Plans: what a command requests, as plain values that every worker reads from a file, and what of
it is still missing."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from recombine.config import UsageError
from recombine.limits import allow
from recombine.overrides import override
from recombine.pipeline.executor import is_finished, is_usable
from recombine.pipeline.job import Job, Task, ancestors, digest_of, folder_of
from recombine.store import SHEETS, read_json, write_json


@dataclass(frozen=True)
class Command:
    """What `recombine run` was called with. Jobs follow from it, so a worker anywhere builds the same
    ones."""

    studies: tuple[str, ...]
    scale: str = "laptop"
    seeds: int = 1
    changes: tuple[str, ...] = ()
    device: str = "auto"
    out: str = "out"
    workers: int = 1
    finder: str = "recombine.studies:find"
    """The function that finds a study by its name; a worker imports it."""
    first_seed: int = 0

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise UsageError(f"--seeds {self.seeds}: must be positive")
        if self.workers < 0:
            raise UsageError(f"--workers {self.workers}: must be positive")
        if self.first_seed < 0:
            raise UsageError(f"--first-seed {self.first_seed}: must not be negative")

    @property
    def last_seed(self) -> int:
        """The first one that is not run."""
        return self.first_seed + self.seeds

    def seeds_of(self, plan: "Planned") -> list[int]:
        """The seeds of which a study has jobs; some studies count theirs from another one than 0."""
        labelled = {dict(job.labels).get("seed") for job in plan.jobs} - {None}
        return sorted(labelled) or list(range(self.first_seed, self.last_seed))

    def find(self, name: str) -> Any:
        module, _, function = self.finder.partition(":")
        return getattr(import_module(module), function)(name)

    def write(self, path: Path) -> Path:
        write_json(path, asdict(self))
        return path

    @staticmethod
    def read(path: Path) -> "Command":
        data = read_json(path)
        try:
            return Command(**{k: tuple(v) if isinstance(v, list) else v for k, v in data.items()})
        except (TypeError, AttributeError):
            raise UsageError(f"{path} is not a plan of this version") from None


@dataclass(frozen=True)
class StudyPlan:
    """One study of a command: the study, its settings, its jobs."""

    study: Any
    settings: Any
    jobs: tuple[Job, ...]
    fitted: tuple[str, ...] = ()
    """Settings that were chosen for one's own pictures."""

    @property
    def tasks(self) -> list[Task]:
        return list(dict.fromkeys(job.task for job in self.jobs))


def make_plans(command: Command) -> list[StudyPlan]:
    """The jobs of every study, checked: settings that do not fit each other are refused before
    anything runs."""
    made = []
    for name in command.studies:
        study = command.find(name)
        plain = study.settings(command.scale)
        fit = getattr(study, "fitting", None)
        fitted = fit(plain, command.changes, command.scale) if fit and command.changes else ()
        settings = override(plain, *fitted, *command.changes)
        one = len(_jobs(study, settings, 1, command.changes))
        allow("runs", one * command.last_seed, f"{study.name} with {command.last_seed:,} seeds")
        jobs = _jobs(study, settings, command.last_seed, command.changes)
        if command.first_seed:
            earlier = set(_jobs(study, settings, command.first_seed, command.changes))
            jobs = tuple(j for j in jobs if j not in earlier or "seed" not in dict(j.labels))
        for task in ancestors(job.task for job in jobs):
            task.check()
        made.append(StudyPlan(study, settings, jobs, fitted))
    return made


def _jobs(study: Any, settings: Any, seeds: int, changes: tuple[str, ...]) -> tuple[Job, ...]:
    """A study's jobs. Settings that were changed may not fit what the study makes of them."""
    try:
        return tuple(study.jobs(settings, seeds))
    except ValueError as error:
        if isinstance(error, UsageError) or not changes:
            raise
        raise UsageError(f"{study.name} with {', '.join(changes)}: {error}") from None


def missing(tasks: Iterable[Task], out: Path) -> list[Task]:
    """What must still run, parents first: tasks that are not finished, and of their parents those
    that cannot be opened."""
    needed: dict[Task, None] = {}
    known: set[tuple[Task, bool]] = set()

    def require(task: Task, to_open: bool) -> None:
        if (task, to_open) in known or task in needed:
            return
        known.add((task, to_open))
        if (is_usable if to_open else is_finished)(task, out):
            return
        for parent in task.parents():
            require(parent, True)
        needed[task] = None

    for task in tasks:
        require(task, False)
    return list(needed)


def finished_part(plan: StudyPlan, out: Path, log: Callable[[str], None]) -> StudyPlan:
    """The part of a study whose rows are on disk. UsageError where there is none, or nothing but
    what is made before the runs that are compared: probes, tokenizers."""
    jobs = tuple(job for job in plan.jobs if is_finished(job.task, out))
    if not jobs:
        raise UsageError(f"no run of {plan.study.name} with these settings is finished in {out}")
    if any(map(is_compared, plan.jobs)) and not any(map(is_compared, jobs)):
        early = ", ".join(dict.fromkeys(job.task.noun for job in jobs))
        raise UsageError(f"no model of {plan.study.name} is finished in {out}, only: {early}")
    gone = sum(len(folder_of(job.task, out).gone(SHEETS)) for job in jobs)
    without = f", {gone} of their sheets of samples are not" if gone else ""
    log(f"{plan.study.name}: {len(jobs)} of {len(plan.jobs)} runs are there{without}")
    return replace(plan, jobs=jobs)


def is_compared(job: Job) -> bool:
    """Whether its rows belong to one of the variants of a study."""
    return "variant" in dict(job.labels)


def ready(tasks: list[Task], seeds: dict[Task, int] | None = None) -> list[Task]:
    """Of the missing tasks, parents first, those whose parents are not missing. Seed by seed, so that
    a command that is cut off leaves whole seeds; of a seed first what starts the longest chain."""
    seeds = seeds or {}
    chain = {task: task.cost for task in tasks}
    for task in reversed(tasks):
        for parent in task.parents():
            if parent in chain:
                chain[parent] = max(chain[parent], parent.cost + chain[task])
    free = [t for t in tasks if not any(p in chain for p in t.parents())]
    return sorted(free, key=lambda t: (seeds.get(t, 0), -chain[t]))


def first_seeds(plans: Iterable[StudyPlan]) -> dict[Task, int]:
    """For each task the first seed that needs it; 0 where no seed is named."""
    first: dict[Task, int] = {}
    for job in (job for plan in plans for job in plan.jobs):
        seed = int(dict(job.labels).get("seed", 0))
        for task in ancestors([job.task]):
            first[task] = min(seed, first.get(task, seed))
    return first


def titles(plans: Iterable[StudyPlan]) -> dict[Task, str]:
    """What progress lines call each task: its study, and variant and seed where the study lists
    it, else what it is."""
    named: dict[Task, str] = {}
    for plan in plans:
        for job in plan.jobs:
            named.setdefault(job.task, f"{plan.study.name}: {job.title}")
        for task in ancestors(plan.tasks):
            named.setdefault(task, f"{plan.study.name}: {task.noun}")
    return named


def outline(command: Command, fresh: bool = False) -> list[str]:
    """What the command would run, a line for each task with its digest, after a line that counts
    them and what is there already; all of it where that is erased first."""
    plans, out = make_plans(command), Path(command.out)
    jobs = list(dict.fromkeys(task for plan in plans for task in plan.tasks))
    every = list(ancestors(jobs))
    todo, named = every if fresh else missing(jobs, out), titles(plans)
    there = sum(is_finished(task, out) for task in every)
    kept = f"{'erased first' if fresh else 'there already'}, in {out}: {there}"
    first = f"runs to do: {len(todo)}; {kept}"
    chosen = [f"chosen for these pictures: {', '.join(p.fitted)}" for p in plans if p.fitted]
    each = [(digest_of(t), title_of(t, named), t.noun) for t in todo]
    lines = (f"{d}  {title}" + f" ({noun})" * (noun not in title) for d, title, noun in each)
    return [first, *chosen, *lines]


def title_of(task: Task, named: dict[Task, str]) -> str:
    return named.get(task, f"{task.noun} {digest_of(task)[:6]}")
