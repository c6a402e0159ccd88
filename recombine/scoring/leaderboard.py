"""A leaderboard that recomputes: a folder of submissions becomes a page with every model under
every probe.

DIR/board.json            {"world": {...}} or {"data": "path"}, and optionally split, factors, probes,
                          probe_steps, title
DIR/<submission>/         pictures with labels, in any layout
DIR/<submission>/card.json   name, about, link, trained_on: shown, never trusted
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from recombine.analysis.levels import level_name
from recombine.config import UsageError, from_json, nearest
from recombine.runtime import Runtime
from recombine.scoring import score
from recombine.scoring.evaluate import STEPS, find_probes, order_free, validated
from recombine.scoring.page import render
from recombine.scoring.probes import PictureProbe, function_probe
from recombine.scoring.reference import Reference, open_reference
from recombine.scoring.source import wanted
from recombine.store import Row, read_json, write_atomic, write_json
from recombine.worlds.datasets.class_folders import named_levels
from recombine.worlds.datasets.open_dataset import open_dataset
from recombine.worlds.world import World

BOARD, CARD = "board.json", "card.json"
KEYS = ("world", "data", "split", "factors", "probes", "probe_steps", "title")
"""What a board says."""


@dataclass(frozen=True)
class Entry:
    """A submission under every probe: probe -> level -> estimate."""

    folder: str
    card: dict[str, str]
    pictures: int
    digest: str
    levels: dict[str, dict[int, dict[str, Any]]]

    @property
    def name(self) -> str:
        return self.card.get("name") or self.folder

    def mean(self, probe: str, level: int) -> float:
        found = self.levels[probe].get(level, {}).get("mean")
        return -1.0 if found is None else found


def leaderboard(
    directory: str | Path, out: str | Path = "out/leaderboard", steps: int = 0, device: str = "auto",
    runtime: Runtime | None = None, find: Callable[..., list[PictureProbe]] = find_probes,
) -> list[Entry]:  # fmt: skip
    """Score all submissions of a folder by every probe; `out` gets rows.parquet and index.html."""
    root, runtime = Path(directory), runtime or Runtime.find(device)
    target = Path(out)
    board = _board(root)
    reference = _reference(root, board)
    probes = find("", reference, steps or int(board.get("probe_steps", STEPS)), "", target, runtime)
    probes += [function_probe(text, reference.space) for text in board.get("probes", [])]
    checks = [row for i, r in enumerate(probes) for row in validated(r, reference, i == 0)]
    folders = sorted(p.parent for p in root.glob(f"*/{CARD}"))
    if not folders:
        raise UsageError(f"{root}: holds no submission; each is a folder with pictures and {CARD}")
    rows, entries = list(checks), []
    for folder in folders:
        runtime.log(f"leaderboard: {folder.name}")
        entry, more = _entry(folder, reference, probes)
        entries.append(entry)
        rows += more
    entries = _distinct(entries)
    _write(target, board, entries, rows, probes, reference)
    return entries


def _distinct(entries: Sequence[Entry]) -> list[Entry]:
    """Submissions whose cards share a name are called by their folders, too."""
    often = Counter(e.name for e in entries)
    return [
        e if often[e.name] == 1 else replace(e, card=e.card | {"name": f"{e.name} ({e.folder})"})
        for e in entries
    ]


def _board(root: Path) -> dict[str, Any]:
    if not (root / BOARD).is_file():
        raise UsageError(f"{root}: has no {BOARD}, which says what real pictures are")
    found = read_json(root / BOARD)
    if not isinstance(found, dict) or not {"world", "data"} & found.keys():
        raise UsageError(f"{root / BOARD}: needs 'world' or 'data'")
    if unknown := sorted(found.keys() - set(KEYS)):
        hint = nearest(unknown[0], KEYS)
        raise UsageError(f"{root / BOARD}: {unknown[0]!r} is none of {', '.join(KEYS)}{hint}")
    return found


def _reference(root: Path, board: dict[str, Any]) -> Reference:
    if "world" in board:
        data: Any = from_json(board["world"], World, "world")
    else:
        data = root / str(board["data"])
    return open_reference(data, tuple(board.get("factors", ())), board.get("split", ""), None)


def _entry(
    folder: Path, reference: Reference, probes: Sequence[PictureProbe]
) -> tuple[Entry, list[Row]]:
    found, space = read_json(folder / CARD), reference.space
    plain = found.items() if isinstance(found, dict) else ()
    card = {str(k): str(v) for k, v in plain if isinstance(v, (str, int, float))}
    dataset = named_levels(open_dataset(folder), space.names)
    index, rows, levels, digest = wanted(dataset, space, ""), [], {}, ""
    for probe in probes:
        read, prompted, digests = score.read_all(probe, score.stream(dataset.pictures(), index))
        every = space.compositions
        mine = score.accuracy_table(
            "accuracy", probe.name, read, prompted, space, reference.split, every
        )
        rows += [row | {"variant": folder.name} for row in mine]
        levels[probe.name] = {k: score.level_estimate(r) for k, r in score.by_level(mine).items()}
        digest = digest or order_free(digests, [space.describe(tuple(c)) for c in index.tolist()])
    return Entry(folder.name, card, len(dataset), digest, levels), rows


def changes_of_rank(entries: Sequence[Entry], probes: Sequence[str]) -> list[str]:
    """Which submissions change places with the probe, at the level furthest from all seen ones."""
    last = max(k for e in entries for k in e.levels[probes[0]])
    orders = {p: [e.name for e in sorted(entries, key=lambda e: -e.mean(p, last))] for p in probes}
    first, lines = orders[probes[0]], []
    for probe in probes[1:]:
        moved = [
            f"{e.name} from {first.index(e.name) + 1} to {orders[probe].index(e.name) + 1}"
            for e in entries
            if abs(e.mean(probe, last) - e.mean(probes[0], last)) > 0.05
            and first.index(e.name) != orders[probe].index(e.name)
        ]
        if moved:
            lines.append(f"by the probe {probe} instead of {probes[0]}: {', '.join(moved)}")
    return lines


def _write(
    target: Path, board: dict[str, Any], entries: list[Entry], rows: list[Row],
    probes: Sequence[PictureProbe], reference: Reference,
) -> None:  # fmt: skip
    from recombine.analysis.table import Table, write_table

    names = [p.name for p in probes]
    last = max(k for e in entries for k in e.levels[names[0]])
    ranked = sorted(entries, key=lambda e: -e.mean(names[0], last))
    write_table(target / "rows.parquet", Table(rows))
    facts = {
        "probes": {p.name: p.digest for p in probes},
        "entries": {e.folder: {"pictures": e.pictures, "digest": e.digest} for e in entries},
        "seen": [reference.space.describe(c) for c in reference.split.seen],
    }
    write_json(target / "leaderboard.json", facts)
    page = render(
        "leaderboard.html", title=board.get("title", "Which models compose?"), entries=ranked,
        facts=facts, probes=names, levels=sorted(ranked[0].levels[names[0]]),
        moved=changes_of_rank(entries, names), doubts=doubts(entries), real=_real(rows),
    )  # fmt: skip
    write_atomic(target / "index.html", page)


def _real(rows: Sequence[Row]) -> dict[str, float]:
    """The accuracy of each probe on real pictures."""
    frame = pl.DataFrame(
        [{"probe": r["probe"], "joint": r["joint"]} for r in rows if r["kind"] == "probe"]
    )
    if not len(frame):
        return {}
    return dict(frame.group_by("probe").agg(pl.col("joint").mean()).iter_rows())


def lines(entries: Sequence[Entry]) -> list[str]:
    """The table as text, by every probe."""
    probes = list(entries[0].levels)
    width = (
        max(len(name) for name in (*(e.name for e in entries), *(f"{p} probe" for p in probes))) + 2
    )
    made = []
    for probe in probes:
        levels = sorted(entries[0].levels[probe])
        made.append(
            f"{probe + ' probe':<{width}}" + "".join(f"{level_name(k):<22}" for k in levels)
        )
        for e in sorted(entries, key=lambda e: -e.mean(probe, levels[-1])):
            cells = (e.levels[probe][k] for k in levels)
            shown = (
                f"{c['mean']:.2f} ({c['low']:.2f} to {c['high']:.2f})" if c["n"] else "–"
                for c in cells
            )
            made.append(f"{e.name:<{width}}" + "".join(f"{s:<22}" for s in shown))
    doubtful = [f"doubtful: {line}" for line in doubts(entries)]
    return made + changes_of_rank(entries, probes) + doubtful


def doubts(entries: Sequence[Entry]) -> list[str]:
    """Which submissions lack pictures of some compositions."""
    return [line for e in entries for line in score.lacking(e.name, next(iter(e.levels.values())))]
