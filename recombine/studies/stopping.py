"""What a claim would be called had one looked earlier: judged on the checkpoints up to each. Not quite what a shorter training
would have given: learning rates fall towards the end of the whole one."""

from recombine.studies.base import Claim, Rows, Scale, Verdict, judge

Said = list[list[int | str]]
"""A checkpoint, and the verdict on all up to it; in the order of training."""


def earlier(claim: Claim, rows: Rows, scale: Scale, seeds: int) -> Said:
    """The last one is the verdict. Nothing where there is none, or where it does not come from checkpoints; checkpoints that
    change nothing in what is measured are those of models that it does not ask."""

    def judged(some: Rows) -> Verdict:
        return judge(claim, some, scale, seeds, {})

    if not claim.trained or not measured(judged(rows)):
        return []
    found, before = [], judged(until(rows, -1))
    for step in sorted({r["step"] for r in rows.where(kind="accuracy")} - {0}):
        verdict = judged(until(rows, step))
        if measured(verdict) and verdict.judgement != before.judgement:
            found.append([step, verdict.said])
        before = verdict
    return found


def until(rows: Rows, step: int) -> Rows:
    """What was known then; what is true at all times, as of probes and tokenizers, has no step."""
    return Rows(r for r in rows if r.get("step") is None or r["step"] <= step)


def measured(verdict: Verdict) -> bool:
    return verdict.word not in ("smoke", "not measured")
