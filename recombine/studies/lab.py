"""The lab runs a study: settings -> rows -> claims and figures -> files. It is what a study is handed."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from recombine.config import UsageError, to_json
from recombine.figures import entry
from recombine.machine import Machine
from recombine.store import RunFolder, read_json, read_rows, write_json, write_rows
from recombine.studies import MODULES, find
from recombine.studies.base import Row, Rows, Scale, Study, judge
from recombine.studies.otherwise import by_others
from recombine.studies.stopping import courses

TICK = 0.05
"""Seconds by which the clock of a file may be behind."""


class Measurement(NamedTuple):
    """Rows that are measured on the weights of other runs, `on`, and kept in a folder of their own. `ready` trains or loads
    what `make` measures; neither is called where the rows are there."""

    config: Any
    on: tuple[RunFolder, ...]
    ready: Callable[[], Any]
    make: Callable[[Any], list[Row]]


def in_other_hands(folder: RunFolder) -> bool:
    with folder.held(wait=False) as free:
        return not free


@dataclass
class Lab:
    """Where, how large, over how many seeds; `runs` collects what was trained. `fresh`: what was on disk when it `began` is
    made anew. `ahead`: it is one of several processes that train and measure, each what no other has taken; what they give is
    no matter."""

    machine: Machine
    out: Path
    scale: Scale
    seeds: int
    fresh: bool = False
    ahead: bool = False
    began: float = field(default_factory=time.time)
    runs: list[dict[str, Any]] = field(default_factory=list)
    shared: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def device(self) -> Any:
        return self.machine.device

    def note(self, text: str) -> None:
        self.machine.note(text)

    def record(self, folder: RunFolder, variant: str, seed: int) -> None:
        label = f"{variant}, seed {seed}"
        self.runs.append({"digest": folder.digest, "label": label, "variant": variant, "seed": seed})

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What several runs share, made for the first that asks for it."""
        if key not in self.shared:
            self.shared[key] = make()
        return self.shared[key]

    def outdated(self, folder: RunFolder, weights: bool = False) -> bool:
        """Whether what is there will not do: it was there before this command and all is to be fresh, it was made on weights
        that are no more, or its own `weights` are needed and gone."""
        old = self.fresh and 0 < folder.made < self.began - TICK
        return old or folder.stale or (weights and folder.hollow)

    def lacks(self, folder: RunFolder) -> bool:
        """Whether there is something to be made."""
        return not folder.done or self.outdated(folder)

    def renew(self, folder: RunFolder, weights: bool = False) -> None:
        """Erase what is outdated."""
        if not (self.fresh or weights or folder.basis):
            return
        with folder.held():
            self.machine.meet()  # nobody may still be looking at it
            if self.outdated(folder, weights) and self.machine.rank == 0:
                folder.erase()
            self.machine.meet()

    @contextmanager
    def turn(self, folder: RunFolder, weights: bool = False) -> Iterator[bool]:
        """Whether the work in a folder is to be done or looked at here; others keep out of it while the block runs. A process
        that works ahead leaves alone what is done or in other hands."""
        with folder.held(wait=not self.ahead) as mine:
            if mine:
                self.renew(folder, weights)
            self.machine.meet()
            yield mine and not (self.ahead and folder.done)

    def prepare(self, jobs: Iterable[tuple[RunFolder, Callable[[], Any]]]) -> None:
        """What all runs of a study need, each with how it is made: who works ahead makes what no other is making, so that
        nobody waits while there is something to do. Otherwise all is made when it is needed."""
        for folder, make in jobs if self.ahead else ():
            with self.turn(folder, weights=True) as mine:
                if mine:
                    make()

    def kept(self, what: Measurement) -> RunFolder:
        """Where its rows are; they hold for these weights alone."""
        return RunFolder(self.out, what.config, "-".join(folder.fingerprint for folder in what.on))

    def unmeasured(self, what: Measurement) -> bool:
        return not all(folder.done for folder in what.on) or self.lacks(self.kept(what))

    def measured(self, what: Measurement) -> list[Row]:
        """Its rows, measured now or found on disk; there they can be shown again without the weights, and are measured again
        when these have changed. Who works ahead leaves alone what others are training: they will measure it."""
        if self.ahead and any(not folder.done and in_other_hands(folder) for folder in what.on):
            return []
        thing = what.ready() if self.unmeasured(what) else None
        folder = self.kept(what)
        with self.turn(folder) as mine:
            if not mine:
                return []
            done = folder.done
            self.machine.meet()
            folder.open()  # refuses a folder that holds another config
            if not done:
                self._measure(folder, partial(what.make, what.ready() if thing is None else thing))
            return folder.rows()

    def _measure(self, folder: RunFolder, make: Callable[[], list[Row]]) -> None:
        began, rows = time.perf_counter(), make()
        if self.machine.rank == 0:
            write_rows(folder.path / "metrics.jsonl", rows)
            folder.finish({"seconds": round(time.perf_counter() - began, 2), **self.machine.facts()})
        self.machine.meet()

    def rows_of(
        self, folder: RunFolder, train: Callable[[], Any], variant: str, seed: int, kind: str, weights: bool = False
    ) -> list[Row]:
        """The rows of one run, trained now or found on disk; a finished run's weights may be gone, unless they are needed.
        UsageError where no row of the kind that its study measures is among them."""
        with self.turn(folder, weights) as mine:
            if not mine:
                return []
            self.note(f"{variant}, seed {seed}: run {folder.digest}{' (on disk)' if folder.done else ''}")
            if folder.done:
                folder.open()  # refuses a folder that holds another config
            else:
                train()
            rows = folder.rows()
        self.record(folder, variant, seed)
        if not any(r["kind"] == kind for r in rows):
            raise UsageError(f"{folder.path / 'metrics.jsonl'} holds no measurements; use --fresh to start over")
        return [r | {"run": folder.digest, "variant": variant, "seed": seed} for r in rows]


def run_study(study: Study, settings: Any, lab: Lab) -> Path:
    """Compute, judge, draw, and write everything under `out/<study>`; the folder."""
    began, folder = time.perf_counter(), lab.out / study.name
    folder.mkdir(parents=True, exist_ok=True)
    if replaces(folder, settings, lab.scale):
        lab.note(
            f"{folder} holds another scale or setting of this study and is replaced; --out keeps both (runs all stay)"
        )
    lab.runs = []
    rows = Rows(r | {"scale": lab.scale} for r in study.compute(settings, lab))
    if lab.machine.rank > 0:
        return folder
    facts = _facts(study, settings, lab) | {"provenance": _provenance(lab, time.perf_counter() - began)}
    write_rows(folder / "rows.jsonl", rows)
    _publish(study, rows, facts, folder)
    return folder


def replaces(folder: Path, settings: Any, scale: str) -> bool:
    """Whether a study's folder holds the report of something else."""
    path = folder / "study.json"
    if not path.exists():
        return False
    try:
        there = read_json(path)
    except UsageError:  # what cannot be read is replaced, too
        return True
    mine = {"scale": scale, "settings": to_json(settings)}
    return not isinstance(there, dict) or any(there.get(key) != value for key, value in mine.items())


def judge_again(folder: Path, rules: str) -> None:
    """Judge and draw the rows of a study's folder with today's rules; where they come from stays as it is, and beside it stands
    the commit of these `rules`."""
    facts = read_json(folder / "study.json")
    if not isinstance(facts, dict) or not {"name", "scale", "seeds", "provenance"} <= facts.keys():
        raise UsageError(f"{folder / 'study.json'} does not describe a study")
    if not (rows := Rows(read_rows(folder / "rows.jsonl"))):
        raise UsageError(f"{folder / 'rows.jsonl'}: no rows to judge")
    study, provenance = find(facts["name"]), facts["provenance"] | {"judged": rules}
    _publish(study, rows, facts | _words(study) | {"provenance": provenance}, folder)


def _publish(study: Study, rows: Rows, facts: dict[str, Any], folder: Path) -> None:
    """Figures, facts and claims, which are the last to be written. Figures that are drawn no more go."""
    figures = [entry(f) for f in study.draw(rows, folder / "figures")]
    for path in (folder / "figures").glob("*"):
        if path.stem not in {f["name"] for f in figures}:
            path.unlink()
    known = (facts["scale"], len(facts["seeds"]))
    verdicts = [judge(c, rows, *known, facts["provenance"]).json(study.name) for c in study.claims]
    if study.stops:
        turns = zip(courses(study.claims, rows, *known), by_others(study.claims, rows, *known), strict=True)
        verdicts = [v | {"earlier": e, "otherwise": o} for v, (e, o) in zip(verdicts, turns, strict=True)]
    write_json(folder / "study.json", facts | {"figures": figures})
    write_json(folder / "claims.json", verdicts)


def _words(study: Study) -> dict[str, Any]:
    """What a page says of a study, and where in the list of studies it stands."""
    order = list(MODULES).index(study.name) if study.name in MODULES else None
    return {"question": study.question, "paper": study.paper, "about": study.about, "order": order}


def _facts(study: Study, settings: Any, lab: Lab) -> dict[str, Any]:
    return (
        _words(study)
        | {
            "name": study.name,
            "scale": lab.scale,
            "seeds": list(range(lab.seeds)),
            "settings": to_json(settings),
            "widget": study.widget,
            "runs": lab.runs,
            "space": None,
            "levels": None,
        }
        | study.describe(settings)
    )


def _provenance(lab: Lab, seconds: float) -> dict[str, Any]:
    """`seconds`: what this command took, or all its runs together if that is more: they may have been there before. The
    machine and `trained`, a commit, are theirs, too; `commit` and, where it was another machine, `measured` tell who measured
    and judged."""
    paths = (lab.out / "runs" / r["digest"] / "done.json" for r in lab.runs)
    runs = [read_json(path) for path in paths if path.exists()]
    here, words = lab.machine.facts(), {"device": "device", "torch": "torch", "python": "python", "trained": "commit"}
    made = {word: ", ".join(sorted({r[key] for r in runs if key in r})) for word, key in words.items()}
    elsewhere = (
        {"measured": f"{here['device']}, torch {here['torch']}"} if made["device"] not in ("", here["device"]) else {}
    )
    return {
        **here,
        **{word: found for word, found in made.items() if found},
        **elsewhere,
        "seconds": round(max(seconds, sum(r.get("seconds", 0.0) for r in runs)), 1),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "runs": [r["digest"] for r in lab.runs],
    }
