"""Where workers run. An engine starts them and replaces those that die; what they do is the same
everywhere."""

import dataclasses
import os
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

from recombine.config import RunFailed, UsageError, install_command, nearest

ENGINES = {"local": "LocalEngine", "slurm": "SlurmEngine", "ray": "RayEngine"}
RESTARTS = 3
"""How often a cluster's worker that died is replaced."""
Settings = TypeVar("Settings")


class EngineError(RunFailed):
    """Workers keep failing; the message is one line."""


@runtime_checkable
class Engine(Protocol):
    """Keeps `workers` workers busy with a plan until it is done."""

    def run(self, plan: Path, workers: int, log: Callable[[str], None]) -> None: ...


def find_engine(name: str) -> Engine:
    """The engine of this name; its module, and so Slurm's or Ray's package, is imported now."""
    if name not in ENGINES:
        allowed = f"not one of {', '.join(ENGINES)}{nearest(name, ENGINES)}"
        raise UsageError(f"--engine {name}: {allowed}")
    return getattr(import_module(f"recombine.pipeline.engines.{name}"), ENGINES[name])()


def need(package: str, extra: str) -> None:
    """UsageError where a package that an engine needs is not installed."""
    try:
        import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise UsageError(f"--engine {extra}: {package} does not load: {error}") from None
        raise UsageError(
            f"--engine {extra} needs the package {package}: {install_command(extra)}"
        ) from None


def settings_from(cls: type[Settings], prefix: str) -> Settings:
    """A dataclass of settings from environment variables: prefix + the field's name in capitals."""
    fields = {prefix + field.name.upper(): field for field in dataclasses.fields(cls)}
    given = {name: text for name, text in os.environ.items() if name.startswith(prefix) and text}
    for name in given:
        if name not in fields:
            raise UsageError(f"{name}: not one of {', '.join(fields)}{nearest(name, fields)}")
    values = {name: _convert(name, text, fields[name].default) for name, text in given.items()}
    return cls(**{fields[name].name: value for name, value in values.items()})


def _convert(name: str, text: str, default: str | int | float) -> str | int | float:
    """A setting in the type of its default."""
    try:
        return type(default)(text)
    except ValueError:
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise UsageError(f"{name}={text}: must be {kind}") from None


class Outcomes:
    """How a plan's workers on a cluster ended so far, and whether one that died is replaced."""

    def __init__(self, plan: Path, log: Callable[[str], None]):
        self.failures, self.log = plan.parent / "failed", log
        self.done: set[int] = set()
        self.crashed: dict[int, str] = {}
        self.deaths: Counter[int] = Counter()
        self.last = "none was started"

    def returned(self, index: int) -> None:
        """Nothing was left to do, for any worker."""
        self.done.add(index)

    def raised(self, index: int, why: str) -> None:
        """A worker left with an error: it crashed, unless it says at its end that tasks failed."""
        from recombine.pipeline.worker import known_failures

        if known_failures(self.failures):
            self.done.add(index)
            return
        self.crashed[index] = why
        self.log(f"worker {index} crashed: {why}")

    def died(self, index: int, why: str, replace: bool = True) -> bool:
        """A worker is gone: killed, out of memory, its node down. Whether another takes its place:
        not where it died too often, nor where nothing is left to do."""
        self.deaths[index] += 1
        self.last = f"worker {index} died {self.deaths[index]} times, last: {why}"
        again = replace and not self.done and self.deaths[index] <= RESTARTS
        self.log(f"worker {index} died ({why}) and is {'' if again else 'not '}replaced")
        return again

    def check(self) -> None:
        """EngineError where the plan cannot be done. Called when no worker is left."""
        if self.crashed:
            index, why = min(self.crashed.items())
            raise EngineError(f"worker {index} crashed: {why}")
        if not self.done:
            raise EngineError(f"no worker is left; {self.last}")
