"""What claims would be called had another probe judged: each takes the judge's place in turn."""

from recombine.figures import PROBES
from recombine.studies.base import Claim, Judgement, Rows, Scale, judge
from recombine.studies.levels import probe_of, trusted


def by_others(claims: tuple[Claim, ...], rows: Rows, scale: Scale, seeds: int) -> list[dict[str, str]]:
    """Of each claim the verdict by every other probe that is right on real pictures. Nothing where there is no verdict, or
    where it does not turn on what the judge says."""
    mine = probe_of(rows)
    known = {p: seen_by(rows, p, mine) for p in PROBES if p != mine and trusted(rows, p)}
    blind = Rows(r | {"joint": 0.0} if r["kind"] == "accuracy" and r["probe"] == mine else r for r in rows)

    def said(claim: Claim) -> dict[str, str]:
        usual, without = (judge(claim, some, scale, seeds, {}) for some in (rows, blind))
        if not (claim.trained and usual.given and differ(usual.judgement, without.judgement)):
            return {}
        found = {p: judge(claim, some, scale, seeds, {}) for p, some in known.items()}
        return {p: verdict.said for p, verdict in found.items() if verdict.given}

    return [said(claim) for claim in claims]


def seen_by(rows: Rows, probe: str, judge: str) -> Rows:
    """With what one probe said in the place of what the judge said; it also stays where it was."""
    kept = [r for r in rows if r.get("probe") != judge]
    return Rows([*kept, *(r | {"probe": judge} for r in rows if r.get("probe") == probe)])


def differ(a: Judgement | None, b: Judgement | None) -> bool:
    """In more than the numbers that stand beside."""
    return a is None or b is None or (a.holds, a.interval) != (b.holds, b.interval)
