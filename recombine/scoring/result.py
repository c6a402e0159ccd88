"""The result of an evaluation: what is printed, what is written, and what can be read again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from recombine.analysis.levels import LEARNED, level_name
from recombine.analysis.table import Table, read_table, write_table
from recombine.config import UsageError
from recombine.runtime import Runtime
from recombine.scoring.probes import PictureProbe
from recombine.scoring.reference import Reference
from recombine.scoring.score import by_level, level_estimate
from recombine.scoring.sheet import Collector
from recombine.store import Row, read_json, write_atomic, write_json
from recombine.worlds.datasets.dataset import Dataset
from recombine.worlds.factors import code

FACTS = "evaluation.json"
DOUBT = 0.9
"""The accuracy on left-out combinations below which a probe's reading of unseen ones is doubtful."""


@dataclass(frozen=True)
class Result:
    """`rows`: accuracy (pictures of the model), probe (real ones), left out (how well the probe
    reads combinations it was not trained on), confusion. `facts`: what they were made from."""

    rows: list[Row]
    facts: dict[str, Any]
    pictures: pl.DataFrame = field(repr=False)
    sheet: Collector | None = field(default=None, repr=False)
    folder: Path | None = None

    @staticmethod
    def of(
        rows: list[Row], pictures: pl.DataFrame, sheet: Collector, probes: Sequence[PictureProbe],
        reference: Reference, name: str, dataset: Dataset, digest: str,
    ) -> "Result":  # fmt: skip
        space = reference.space
        facts = {
            "name": name,
            "source": dataset.where,
            "layout": dataset.layout,
            "data": reference.where,
            "factors": {f.name: list(f.values) for f in space.factors},
            "seen": reference.seen,
            "primary": probes[0].name,
            "probes": {r.name: r.digest for r in probes},
            "pictures": {"n": len(dataset), "digest": digest},
            "shown": [code(c) for c in sheet.compositions],
            "notes": list(dict.fromkeys((*reference.notes, *dataset.notes))),
        }
        return Result(rows, facts | {"doubts": _doubts(rows, facts, reference)}, pictures, sheet)

    @property
    def primary(self) -> str:
        return self.facts["primary"]

    def accuracy(self, probe: str = "") -> list[Row]:
        """The rows of every composition, by one probe."""
        wanted = probe or self.primary
        if wanted not in self.facts["probes"]:
            raise UsageError(f"no probe {wanted}; there are {', '.join(self.facts['probes'])}")
        return [r for r in self.rows if r["kind"] == "accuracy" and r["probe"] == wanted]

    def levels(self, probe: str = "") -> dict[int, dict[str, Any]]:
        """Level -> mean over its compositions, interval, number of pictures; 0 = seen."""
        return {k: level_estimate(some) for k, some in by_level(self.accuracy(probe)).items()}

    def level(self, number: int, probe: str = "") -> float:
        found = self.levels(probe)
        if number not in found or found[number]["mean"] is None:
            raise UsageError(f"no pictures of level {number}; there are {sorted(found)}")
        return found[number]["mean"]

    def below(self, least: float) -> str:
        """Which level lies below `least`, in one line; empty if none does. Without pictures of unseen
        compositions nothing above 0 is reached."""
        known = {k: e["mean"] for k, e in self.levels().items() if e["mean"] is not None}
        if least > 0 and not any(known.keys() - {0}):
            return f"{self.facts['name']}: no pictures of unseen compositions, so {least:g} is not reached"
        worst = min(known, key=known.get, default=0)
        if known.get(worst, least) >= least:
            return ""
        return f"{self.facts['name']}: {level_name(worst)} accuracy {known[worst]:.3g} is below {least:g}"

    def learned(self) -> bool | None:
        """Whether seen compositions are drawn correctly; None where there are none."""
        seen = self.levels().get(0)
        return None if seen is None or seen["mean"] is None else seen["mean"] >= LEARNED

    def verdict(self) -> str:
        """Whether the model has learned what it saw: without that, nothing else means anything."""
        seen = self.levels().get(0)
        if seen is None or self.learned() is None:
            return (
                "No pictures of seen compositions: whether the model has learned them is not known."
            )
        what = _estimate(seen)
        if self.learned():
            return f"Seen compositions are drawn correctly: {what}."
        return (
            f"Seen compositions are NOT drawn correctly: {what}. The model has not learned what it was "
            "trained on, so the other levels say nothing about composition."
        )

    def answer(self) -> str:
        """How often unseen compositions are drawn correctly, by level."""
        known = {k: e for k, e in self.levels().items() if k and e["mean"] is not None}
        if not known:
            return "No pictures of unseen compositions: whether the model composes is not known."
        levels = "; ".join(f"{level_name(k)}: {_estimate(e)}" for k, e in known.items())
        return f"Accuracy on unseen compositions, {levels}."

    def summary(self) -> Row:
        """Name, probe and accuracy by level, for programs."""
        names = {"accuracy": "mean", "low": "low", "high": "high", "pictures": "n"}
        levels = {
            level_name(k): {name: e[key] for name, key in names.items()}
            for k, e in self.levels().items()
        }
        facts = {"name": self.facts["name"], "probe": self.primary}
        return facts | {"learned": self.learned(), "levels": levels, "doubts": self.facts["doubts"]}

    def lines(self) -> Iterator[str]:
        """Whether seen compositions are drawn and how often unseen ones, then a table, then what is
        doubtful."""
        yield self.verdict()
        yield self.answer()
        mine, levels = self.accuracy(), self.levels()
        wanted = ("probe", self.primary)
        real = {
            r["composition"]: r["joint"] for r in self.rows if (r["kind"], r["probe"]) == wanted
        }
        width = max(len(r["words"]) for r in mine) + 4
        yield ""
        yield _line(
            width, "", ("accuracy", "95 % interval", "pictures", "real pictures", "instead")
        )
        for level, some in by_level(mine).items():
            e = levels[level]
            count = str(e["n"])
            if e["compositions"] < e["of"]:
                count += f", {e['compositions']} of {e['of']} compositions"
            cells = (_share(e["mean"]), f"{e['low']:.2f} to {e['high']:.2f}", count)
            yield _line(width, level_name(level), cells)
            for r in some:
                interval = f"{r['low']:.2f} to {r['high']:.2f}"
                known = _share(real.get(r["composition"]), "none")
                drawn = self.instead(r["composition"])
                cells = (_share(r.get("joint")), interval, str(r["n"]), known, drawn)
                yield _line(width, f"  {r['words']}", cells)
        yield from (f"doubtful: {doubt}" for doubt in self.facts["doubts"])
        yield from (f"note: {note}" for note in self.facts["notes"])
        if self.folder:
            yield f"page: {(self.folder / 'index.html').resolve()}"

    def instead(self, composition: str, probe: str = "") -> str:
        """What was drawn in place of a composition, the most frequent first."""
        wanted = ("confusion", composition, probe or self.primary)
        found = [r for r in self.rows if (r["kind"], r.get("composition"), r["probe"]) == wanted]
        return ", ".join(f"{r['instead']} {r['share']:.2f}" for r in found[:2])

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def write(self, folder: Path, runtime: Runtime) -> None:
        """rows.parquet, pictures.parquet, samples.webp, evaluation.json and the page."""
        from recombine.scoring.page import write_page

        object.__setattr__(self, "folder", folder)
        self.facts["provenance"] = runtime.facts()
        write_table(folder / "rows.parquet", Table(self.rows))
        buffer = BytesIO()
        self.pictures.write_parquet(buffer, compression="zstd")
        write_atomic(folder / "pictures.parquet", buffer.getvalue())
        if self.sheet is not None:
            write_atomic(folder / "samples.webp", self.sheet.webp())
        write_json(folder / FACTS, self.facts)
        write_page(self, folder / "index.html")


def read_result(folder: Path) -> Result:
    """An evaluation that was written before."""
    if not (folder / FACTS).is_file():
        raise UsageError(f"{folder}: holds no evaluation; `recombine evaluate` writes one")
    facts = read_json(folder / FACTS)
    if not isinstance(facts, dict) or not {"name", "primary", "probes", "pictures"} <= facts.keys():
        raise UsageError(f"{folder / FACTS}: does not describe an evaluation")
    rows = [
        {k: v for k, v in row.items() if v is not None}
        for row in read_table(folder / "rows.parquet").frame.to_dicts()
    ]
    return Result(rows, facts, pl.DataFrame(), None, folder)


def same_place(one: str, other: str) -> bool:
    return Path(one).resolve() == Path(other).resolve()


def _line(width: int, title: str, cells: Sequence[str]) -> str:
    return (f"{title:<{width}}" + "".join(f"{cell:<16}" for cell in cells)).rstrip()


def _estimate(e: dict[str, Any]) -> str:
    return f"{e['mean']:.2f} ({e['low']:.2f} to {e['high']:.2f}, {e['n']} pictures)"


def _share(value: float | None, none: str = "–") -> str:
    return none if value is None else f"{value:.2f}"


def _doubts(rows: list[Row], facts: dict[str, Any], reference: Reference) -> list[str]:
    """Why the numbers may mislead: each in one line."""
    if reference.world is None:
        return ["there are no real pictures, so nobody knows how well the probe reads them"]
    space, found = reference.space, []
    if reference.data and same_place(reference.data[0].where, facts.get("source", "")):
        found.append(
            "these are the real pictures themselves: the numbers say how well the probe reads them, "
            "not what a model draws"
        )
    missing = [c for c in space.compositions if c not in set(reference.present)]
    out = [r for r in rows if r["kind"] == "left out" and r["probe"] == facts["primary"]]
    if missing and out:
        worst = min(out, key=lambda r: 1.0 if r["left_out"] is None else r["left_out"])
        if worst["left_out"] is None or worst["left_out"] < DOUBT:
            known = "unknown" if worst["left_out"] is None else f"{worst['left_out']:.2f}"
            found.append(
                f"there are no real pictures of {space.describe(missing[0])}, and on combinations left "
                f"out of its training the probe reads {worst['factor']} with accuracy {known}"
            )
    elif missing:
        found.append(
            f"there are no real pictures of {space.describe(missing[0])}: it is unknown how well the probe reads them"
        )
    if any(r.get("rejects") is False for r in out) and facts["primary"] == "open-set":
        found.append(
            "the open-set probe rejects nothing here, since it would reject real pictures: a picture "
            "that shows no combination counts as some combination, so look at the samples"
        )
    weak = [
        r
        for r in rows
        if r["kind"] == "probe" and r["probe"] == facts["primary"] and r["high"] < DOUBT
    ]
    return found + [f"the probe reads {r['joint']:.2f} of real {r['words']} pictures" for r in weak]
