"""Paper B's claims about text-conditioned models, from the rows of `features`."""

from statistics import fmean
from typing import Any

from recombine.analysis.claims import Finding, Measured, Part
from recombine.analysis.estimates import correlation, correlation_estimate, mean
from recombine.analysis.table import NotMeasured, Table

READ, LEARNED = 0.8, 0.9
"""What is needed for a model to be assessed: the share of real pictures that the probe reads right,
and how often samples show their captions, as a share of what a model without error would reach. Until
the first run it was 0.8 of all samples; what captions leave open allows 0.73."""
RISE, MONOTONE, SAME, MARGIN = 0.1, 0.8, 0.9, 0.05
"""The regions, written down before any run."""


def by_seed(rows: Table, kind: str) -> dict[int, Table]:
    found = rows.where(kind=kind).by("seed")
    if not found:
        raise NotMeasured(f"no rows of kind {kind!r}")
    return found


def require_learned(rows: Table) -> Measured:
    """How often samples show their captions. NotMeasured where a model of ours, of any seed, did
    not learn its captions, or the probe cannot read real pictures; a pipeline has no such rows."""
    some, real, best = (
        rows.where(kind="captions", of=of).column("joint")
        for of in ("samples", "real", "a model without error")
    )
    if not some:
        return {}
    if not real or not best:
        raise NotMeasured("what real pictures and a model without error reach was not measured")
    if min(real) < READ:
        raise NotMeasured(f"the probe reads {min(real):.2f} of real pictures, not {READ}")
    if min(some) < LEARNED * best[0]:
        least = f"{LEARNED * best[0]:.2f}"
        raise NotMeasured(f"samples show their captions in {min(some):.2f} of cases, not {least}")
    return {
        "samples that show their captions": fmean(some),
        "samples of a model without error that do": best[0],
    }


def pixels_are_local(rows: Table) -> Finding:
    """X1."""
    measured, rises, ranks = require_learned(rows), [], []
    for some in by_seed(rows, "pixels").values():
        t, share = some.column("t"), some.column("share")
        ordered = [s for _, s in sorted(zip(t, share, strict=True))]
        rises.append(ordered[0] - ordered[-1])
        ranks.append(correlation([-x for x in t], share))
    for t, some in rows.where(kind="pixels").by("t").items():
        measured[f"share nearby, t = {t}"] = fmean(some.column("share"))
    measured["share of the picture that is nearby"] = rows.where(kind="pixels").column("even")[0]
    parts = (
        Part("share nearby at the lowest noise - at the highest", mean(rises), RISE, 1.0),
        Part("rank correlation with less noise", correlation_estimate(ranks), MONOTONE, 1.0),
    )
    return Finding(parts, measured)


def words_act_alike(rows: Table) -> Finding:
    """X2. Over noise levels both places rise together, whatever words do there; so the correlation
    within levels counts too (a second part since the first three seeds were seen)."""
    measured = require_learned(rows)
    left_out, replaced, within = [], [], []
    for some in by_seed(rows, "word").values():
        left_out.append(alike(some.where(how="word")))
        replaced.append(alike(some.where(how="embedding")))
        within.append(fmean(alike(at) for at in some.where(how="word").by("t").values()))
    measured["rank correlation, embeddings replaced"] = fmean(replaced)
    for word, some in rows.where(kind="word", how="word").by("word").items():
        ratio = fmean(some.column("first")) / max(fmean(some.column("second")), 1e-12)
        measured[f"influence of {word!r}, first place / second"] = ratio
    parts = tuple(
        Part(name, correlation_estimate(ranks), SAME, 1.0)
        for name, ranks in (
            ("rank correlation of the two places", left_out),
            ("rank correlation within a noise level", within),
        )
    )
    return Finding(parts, measured)


def alike(some: Table) -> float:
    """The rank correlation of what words do at the two places."""
    return correlation(some.column("first"), some.column("second"))


def thirds(some: Table) -> tuple[float, float]:
    """The mean gap of the blocks in the middle third of the depth, and of the others."""
    blocks = [(r["depth"], r["gap"]) for r in some if r.get("depth") is not None]
    n = len(blocks)
    if n < 3:
        raise NotMeasured(f"{n} blocks; a shape over depth needs three or more")
    middle = [gap for depth, gap in blocks if n / 3 <= depth + 0.5 < 2 * n / 3]
    outer = [gap for depth, gap in blocks if not n / 3 <= depth + 0.5 < 2 * n / 3]
    return fmean(middle), fmean(outer)


def hidden_states_separate(rows: Table) -> Finding:
    """X3."""
    measured = require_learned(rows)
    leads: dict[str, list[Any]] = {"latents": [], "pixels": [], "outer blocks": []}
    for some in by_seed(rows, "concepts").values():
        middle, outer = thirds(some)
        for name in ("latents", "pixels"):
            leads[name].append(middle - some.one(space_of=name)["gap"])
        leads["outer blocks"].append(middle - outer)
    for name, some in rows.where(kind="concepts").by("space_of").items():
        within, between = (fmean(some.column(c)) for c in ("within", "between"))
        measured[f"{name}: within, between"] = f"{within:.2f}, {between:.2f}"
    least = {"latents": MARGIN, "pixels": MARGIN, "outer blocks": 0.0}
    parts = tuple(
        Part(f"gap in the middle blocks - in {name}", mean(v, -4, 4), least[name], 4.0)
        for name, v in leads.items()
    )
    return Finding(parts, measured)
