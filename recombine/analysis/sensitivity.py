"""What the verdict on a claim would be under another probe, or at an earlier checkpoint."""

from functools import cache

from recombine.analysis.claims import Assessment, Claim, assess
from recombine.analysis.frames import pl
from recombine.analysis.levels import LEARNED, PROBES, is_trusted, means, probe_of
from recombine.analysis.table import Table

GIVEN = ("supported", "partly supported", "inconclusive", "contradicted")


def by_probe(
    claims: tuple[Claim, ...], rows: Table, scale: str, run_minutes: float
) -> list[dict[str, str]]:
    """Of each claim the verdict by every other probe that is right on real pictures. Nothing where
    there is no verdict, or where it does not depend on the primary probe."""
    mine = probe_of(rows)
    swapped = {p: _primary(rows, p, mine) for p in PROBES if p != mine and is_trusted(rows, p)}
    hit = (pl.col("kind") == "accuracy") & (pl.col("probe") == mine)
    blind = (
        rows.with_columns(joint=pl.when(hit).then(0.0).otherwise(pl.col("joint")))
        if mine in _probes(rows)
        else rows
    )

    def verdicts(claim: Claim) -> dict[str, str]:
        usual, without = (assess(claim, some, scale, run_minutes) for some in (rows, blind))
        if not (_given(claim, usual, scale) and _differ(usual, without)):
            return {}
        others = {
            PROBES[p]: assess(claim, some, scale, run_minutes).verdict
            for p, some in swapped.items()
        }
        return {p: verdict for p, verdict in others.items() if verdict in GIVEN}

    return [verdicts(claim) for claim in claims]


def _given(claim: Claim, assessed: Assessment, scale: str) -> bool:
    """Whether a claim on trained models has a verdict, which needs full scale."""
    return claim.trained and scale == "full" and assessed.verdict in GIVEN


def _probes(rows: Table) -> list[str]:
    return rows.where(kind="accuracy").unique("probe")


def _primary(rows: Table, probe: str, primary: str) -> Table:
    """With what one probe said in the place of what the primary one said; it also stays where it
    was."""
    kept = rows.filter(pl.col("probe").is_null() | (pl.col("probe") != primary))
    moved = rows.filter(pl.col("probe") == probe).with_columns(probe=pl.lit(primary))
    return kept + moved


def _differ(a: Assessment, b: Assessment) -> bool:
    """In more than the numbers that stand beside."""
    return a.finding is None or b.finding is None or a.finding.parts != b.finding.parts


def by_checkpoint(
    claims: tuple[Claim, ...], rows: Table, scale: str, run_minutes: float
) -> list[list[tuple[int, str]]]:
    """Of each claim the verdict on the checkpoints up to each, from where the models it is about
    have learned what they saw. Not what shorter trainings would have given: rates fall towards the
    end of the whole one."""
    kept = pl.col("step").is_null()
    # tables are made once for all claims: each remembers how it was split

    @cache
    def until(step: int) -> Table:
        return rows.filter(kept | (pl.col("step") <= step))

    @cache
    def without(variant: str) -> Table:
        return rows.filter(kept | pl.col("variant").is_null() | (pl.col("variant") != variant))

    def verdicts_by_checkpoint(claim: Claim) -> list[tuple[int, str]]:
        last = assess(claim, rows, scale, run_minutes)
        if not _given(claim, last, scale):
            return []
        # the variants without whose checkpoints it would find something else, or nothing
        about = [v for v in variants if assess(claim, without(v), scale).finding != last.finding]
        steps = _checkpoints(rows, about)
        verdicts = [(s, assess(claim, until(s), scale, run_minutes).verdict) for s in steps]
        return [(step, verdict) for step, verdict in verdicts if verdict in GIVEN]

    variants = rows.where(kind="accuracy").unique("variant")
    return [verdicts_by_checkpoint(claim) for claim in claims]


def _checkpoints(rows: Table, variants: list[str]) -> list[int]:
    """Those of some variants, from where all of them that ever learn what they saw have done so."""
    steps = {v: set(rows.where(kind="accuracy", variant=v).unique("step")) for v in variants}
    begin = max((_learned(rows, v) for v in variants), default=0)
    return sorted({s for some in steps.values() for s in some if s >= begin and s > 0})


def _learned(rows: Table, variant: str) -> int:
    """Where a variant first draws what it saw, by the primary probe; 0 where it never does."""
    seen = means(rows.where(kind="accuracy", variant=variant, level=0, probe=probe_of(rows)))
    return next((int(step) for step, mean in seen if mean >= LEARNED), 0)
