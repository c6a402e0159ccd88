"""What claims would be called had one looked earlier: judged on the checkpoints up to each. Not what shorter trainings would
have given: learning rates fall towards the end of the whole one, and a training made anew is another draw."""

from functools import cache

from recombine.studies.base import Claim, Judgement, Rows, Scale, Verdict, judge
from recombine.studies.levels import means, probe_of

Course = list[list[int | str]]
"""Checkpoints, each with the verdict on all up to it; in the order of training."""
LEARNED = 0.8
"""The share of seen compositions that a model draws right before anything is asked about others."""


def courses(claims: tuple[Claim, ...], rows: Rows, scale: Scale, seeds: int) -> list[Course]:
    """Of each claim, from where the models that it asks have learned what they saw; the last is the verdict. Nothing where
    there is none, or where it does not come from checkpoints."""
    known = cache(lambda step: until(rows, step))

    def judged(claim: Claim, some: Rows) -> Verdict:
        return judge(claim, some, scale, seeds, {})

    def course(claim: Claim) -> Course:
        last = judged(claim, rows)
        models = asked(claim, rows, last.judgement) if claim.trained and last.given else []
        found = [(step, judged(claim, known(step))) for step in checkpoints(rows, models)]
        return [[step, verdict.said] for step, verdict in found if verdict.given]

    return [course(claim) for claim in claims]


def until(rows: Rows, step: int) -> Rows:
    """What was known then; what is true at all times, as of probes and tokenizers, has no step."""
    return Rows(r for r in rows if r.get("step") is None or r["step"] <= step)


def asked(claim: Claim, rows: Rows, judgement: Judgement | None) -> list[str]:
    """The variants without whose checkpoints a claim would find something else, or nothing."""

    def without(variant: str) -> Rows:
        return Rows(r for r in rows if r.get("step") is None or r.get("variant") != variant)

    variants = dict.fromkeys(r["variant"] for r in rows.where(kind="accuracy"))
    return [v for v in variants if judge(claim, without(v), "full", 0, {}).judgement != judgement]


def checkpoints(rows: Rows, variants: list[str]) -> list[int]:
    """Those of some variants, from where all of them that ever learn what they saw have done so."""
    steps = {v: {int(r["step"]) for r in rows.where(kind="accuracy", variant=v)} for v in variants}
    begin = max((learned(rows, v) for v in variants), default=0)
    return sorted({s for some in steps.values() for s in some if s >= begin and s > 0})


def learned(rows: Rows, variant: str) -> int:
    """Where a variant first draws what it saw, by the probe that judges; 0 where it never does."""
    seen = means(rows.where(kind="accuracy", variant=variant, level=0, probe=probe_of(rows)))
    return next((int(step) for step, mean in seen if mean >= LEARNED), 0)
