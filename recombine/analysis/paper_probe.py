"""Paper A's probe was trained with several seeds: its answers, averaged over them, as one probe."""

from collections.abc import Mapping

from recombine.analysis.claims import Measured
from recombine.analysis.frames import pl
from recombine.analysis.levels import measured
from recombine.analysis.table import NotMeasured, Table

PAPER = "paper"
"""The mean over the probe's seeds, as a probe of its own."""
FACTORS = {"shape": "shape", "color": "colour", "size": "size"}
"""Columns of the factors that it reads, and what they are called."""
KEYS = ("kind", "run", "variant", "seed", "step", "composition", "level")


def seeds_of_probe(rows: Table, kind: str = "accuracy") -> list[str]:
    """The names of the paper's probe, one per seed. NotMeasured where there are none."""
    names = [n for n in rows.where(kind=kind).unique("probe") if n.startswith(f"{PAPER} ")]
    if not names:
        raise NotMeasured("no rows of the paper's probe")
    return sorted(names)


def with_paper_probe(rows: Table) -> Table:
    """The rows, and beside them those of the probe PAPER. NotMeasured where there are none."""
    return rows.once(PAPER, lambda: _with_paper_probe(rows))


def _with_paper_probe(rows: Table) -> Table:
    of_probe = pl.col("probe").is_in(seeds_of_probe(rows))
    some = rows.frame.filter(of_probe, pl.col("kind") != "interpolation")
    keys = [name for name in KEYS if name in some.columns]
    read = [name for name in ("joint", *FACTORS) if name in some.columns]
    means = some.group_by(keys, maintain_order=True).agg(pl.col(read).mean())
    return rows + Table(means.with_columns(probe=pl.lit(PAPER)))


def averaged(frame: "pl.DataFrame") -> "pl.DataFrame":
    """Rows of probes with those of the paper's probe, one for each of its seeds, as one: the mean of
    every number."""
    if frame.get_column("probe", default=pl.Series(dtype=pl.Null)).dtype != pl.String:
        return frame
    several = pl.col("probe").str.starts_with(f"{PAPER} ")
    some = frame.filter(several)
    if some.is_empty():
        return frame
    keys = [name for name in KEYS if name in some.columns]
    numbers = pl.selectors.numeric() - pl.selectors.by_name(keys)
    means = some.with_columns(probe=pl.lit(PAPER)).group_by(*keys, "probe", maintain_order=True)
    return pl.concat([frame.filter(~several), means.agg(numbers.mean())], how="diagonal_relaxed")


def paper_numbers(rows: Table, papers: Mapping[str, float | None]) -> Measured:
    """Numbers that stand beside a claim that this probe assesses; the paper's own where it has
    one."""
    named = {"primary probe": "paper's linear probe, mean over its seeds"}
    return measured(rows, dict(papers), PAPER) | named
