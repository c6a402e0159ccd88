"""Several evaluations in one table."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from recombine.analysis.levels import level_name
from recombine.config import UsageError
from recombine.scoring.result import Result, read_result
from recombine.scoring.score import lacking


def compare(folders: Sequence[Path]) -> Iterator[str]:
    """Lines: every model under its primary probe, with the digests of probe and pictures."""
    results = alike(folders)
    levels = sorted({k for r in results for k in r.levels()})
    names = _names(results, folders)
    width = max(map(len, names)) + 2
    heads = "".join(f"{level_name(k):<22}" for k in levels)
    yield f"{'model':<{width}}{heads}{'probe':<34}pictures"
    for name, r in zip(names, results, strict=True):
        cells = "".join(f"{_cell(r, k):<22}" for k in levels)
        probe, made = r.facts["probes"][r.primary], r.facts["pictures"]
        yield f"{name:<{width}}{cells}{probe:<34}{made['n']} ({made['digest']})"
    for name, r in zip(names, results, strict=True):
        if r.learned() is False:
            yield f"doubtful: {name} does not draw its seen compositions"
        yield from (f"doubtful: {line}" for line in lacking(name, r.levels()))
    if len({r.facts["probes"][r.primary] for r in results}) > 1:
        yield "doubtful: these were read by different probes; `recombine leaderboard` scores all by each"


def alike(folders: Sequence[Path]) -> list[Result]:
    """The evaluations in these folders; UsageError where they cannot be compared."""
    if len(folders) < 2:
        raise UsageError("compare: name two or more folders that `recombine evaluate` wrote")
    results = [read_result(Path(folder)) for folder in folders]
    for r, folder in zip(results[1:], folders[1:], strict=True):
        for what in ("factors", "seen"):
            if r.facts.get(what) != results[0].facts.get(what):
                raise UsageError(
                    f"{folder}: has other {what} than {folders[0]}; they cannot be compared"
                )
    return results


def _names(results: Sequence[Result], folders: Sequence[Path]) -> list[str]:
    """What each model is called; with its folder where two share a name."""
    names = [r.facts["name"] for r in results]
    return [
        name if names.count(name) == 1 else f"{name} ({folder})"
        for name, folder in zip(names, folders, strict=True)
    ]


def _cell(result: Result, level: int) -> str:
    e = result.levels().get(level)
    if e is None or e["mean"] is None:
        return "–"
    return f"{e['mean']:.2f} ({e['low']:.2f} to {e['high']:.2f})"
