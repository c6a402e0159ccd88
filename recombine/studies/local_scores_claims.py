"""Claims L1-L6 of the study `local-scores`, from rows to findings. All are exact: largest or
smallest values over all seeds."""

from statistics import fmean

from recombine.analysis.claims import Check, Finding, claim
from recombine.analysis.table import NotMeasured, Table

FLOAT = 1e-9
"""What counts as zero in float64."""
MAPS = ("identity", "rotation", "skew", "swirl")


def values(rows: Table, name: str) -> list[float]:
    if not len(rows):
        raise NotMeasured(f"no rows with {name}")
    return [float(v) for v in rows.column(name)]


@claim("L1", "B, Lemma 1", trained=False)
def compositions_are_local(rows: Table) -> Finding:
    """A conditional projective composition (CPC) has a local conditional score (LCS) at every
    noise level.

    Expected: foreign pixels and foreign conditions have effect <= 1e-9 in float64"""
    cpc = rows.where(kind="locality", law="CPC")
    pixels, conditions = max(values(cpc, "worst_pixel")), max(values(cpc, "worst_condition"))
    sigmas = values(cpc, "sigma")
    measured = {
        "foreign pixels, largest score derivative": pixels,
        "foreign conditions, largest score change": conditions,
        "allowed": FLOAT,
        "own pixels, for scale": max(values(cpc, "own_pixel")),
        "sigma from": min(sigmas),
        "sigma to": max(sigmas),
    }
    checks = (
        Check("no effect of foreign pixels", pixels <= FLOAT),
        Check("no effect of foreign conditions", conditions <= FLOAT),
    )
    return Finding(checks, measured)


@claim("L2", "B, Lemma 1", trained=False)
def only_compositions_are_local(rows: Table) -> Finding:
    """A local conditional score is the score of a CPC; data that is no CPC has cross-block
    derivatives.

    Expected: both directions: cross-block derivatives well above 0; local scores integrate and
    sample to independent blocks"""
    # One direction: a law that is no CPC has foreign derivatives at every level (a thousand
    # times what counts as zero), and at its worst level they are a real share of the Jacobian;
    # at low noise few pictures lie between modes, where they matter. The other: integrated
    # local scores have no interaction, and blocks of their samples share no bits, while those
    # of the joint denoiser share as many as the data's.
    no_cpc = rows.where(kind="locality", law="no CPC")
    share, foreign = values(no_cpc, "pixel_share"), min(values(no_cpc, "worst_pixel"))
    peaks = [max(values(mine, "pixel_share")) for mine in no_cpc.by("seed").values()]
    interactions = rows.where(kind="interaction")
    with_ties = min(values(interactions.where(law="no CPC"), "size"))
    without = max(values(interactions.where(law="its best LCS"), "size"))
    sources = ("data", "joint", "best LCS", "block net")
    bits = {name: values(rows.where(kind="ties", source=name), "bits") for name in sources}
    data = min(bits["data"])
    local = max(abs(b) for name in ("best LCS", "block net") for b in bits[name])
    is_seen = foreign > 1e3 * FLOAT and min(peaks) > 0.05 and with_ties > 1e-3
    is_free = without <= FLOAT and local < 0.1 * data and min(bits["joint"]) > 0.7 * data
    measured = {
        "no CPC: largest foreign derivative, at the level where it is least": foreign,
        "no CPC: share of the Jacobian between sets, worst level": min(peaks),
        "no CPC: the same, least level": min(share),
        "no CPC: interaction of the integrated score, least": with_ties,
        "best LCS: interaction, most": without,
        **{f"ties in samples, bits: {name}": fmean(b) for name, b in bits.items()},
    }
    checks = (
        Check("what is no CPC has no local score", is_seen),
        Check("a local score gives independent blocks", is_free),
    )
    return Finding(checks, measured)


@claim("L3", "B, Lemma 3", trained=False)
def noise_spends_the_score_error(rows: Table) -> Finding:
    """Near a CPC: KL(p_t, q_t) falls with noise, and the score error above a level is twice the KL
    left there.

    Expected: monotone; integral within 2 % of the KL at every level"""
    levels = rows.where(kind="kl")
    worst = max(abs(r - 1) for r in values(levels, "ratio"))
    rises = 0
    for curve in levels.by("seed").values():
        kl = values(curve, "kl")
        rises += sum(b >= a for a, b in zip(kl, kl[1:], strict=False))
    first = min(levels, key=lambda r: (r["seed"], r["sigma"]))
    peak = max(levels.where(seed=first["seed"]), key=lambda r: r["relative"])
    measured = {
        "KL at the lowest noise": first["kl"],
        "half the score error above it": first["integral"],
        "largest deviation over all levels": worst,
        "allowed": 0.02,
        "rises of KL with noise": rises,
        "reference (another mixture, sigma .3): KL": 0.1009,
        "reference: half the score error above it": 0.1002,
        "relative score error peaks at sigma": peak["sigma"],
    }
    checks = (
        Check("KL falls with noise", rises == 0),
        Check("integral within 2 % of the KL", worst <= 0.02),
    )
    return Finding(checks, measured)


@claim("L4", "B, Lemma 2", trained=False)
def orthogonality_is_a_hint(rows: Table) -> Finding:
    """Orthogonality of d_i = mu_i - mu_b is necessary, not sufficient, and depends on coordinates.

    Expected: cosine 0 under a CPC and its rotation; 0 in a law that is no CPC; a skewed map breaks
    it"""
    pairs = rows.where(kind="cosine")
    largest: dict[str, float] = {}
    for case, some in pairs.by("case").items() if len(pairs) else ():
        largest[case] = max(abs(r["cosine"]) for r in some if r["i"] != r["j"])
    linked = rows.where(kind="linked")
    bits, share = min(values(linked, "bits")), min(values(linked, "pixel_share"))
    measured = {
        **{f"largest cosine: {case}": value for case, value in largest.items()},
        "linked, no CPC: bits shared by two blocks": bits,
        "linked, no CPC: share of the Jacobian between sets": share,
        "reference: a generic linear map gives up to": 0.49,
    }
    is_linked = bits > 0.01 and share > 0.01 and largest["linked, no CPC"] <= FLOAT
    checks = (
        Check("necessary", max(largest["CPC"], largest["CPC, rotated"]) <= FLOAT),
        Check("not sufficient", is_linked),
        Check("depends on coordinates", largest["CPC, skewed"] > 0.1),
    )
    return Finding(checks, measured)


@claim("L5", "Projective Composition, Fig 12", trained=False)
def backgrounds_decide(rows: Table) -> Finding:
    """Eight lamps, composing {0, 2, 4, 6}: the empty background composes, Bayes composition does
    not, clutter repairs it.

    Expected: all lit in >= 95 % over empty and cluttered backgrounds, in <= 5 % over the average
    of the parts"""
    lamps = rows.where(kind="lamps")
    names = ("empty", "average", "empty, cluttered", "average, cluttered")
    lit = {name: values(lamps.where(background=name), "all_lit") for name in names}
    average = lamps.where(background="average")
    measured = {
        **{f"all lamps lit, background {name}": fmean(v) for name, v in lit.items()},
        "Bayes: brightness of the prompted lamps": fmean(values(average, "brightness")),
        "Bayes: brightness predicted, 1 / parts": 1 / lamps.unique("parts")[0],
    }
    works = [Check(f"all lit, {n}", min(lit[n]) >= 0.95) for n in names if n != "average"]
    fails = Check("not lit, average of the parts", max(lit["average"]) <= 0.05)
    return Finding((*works, fails), measured)


@claim("L6", "Projective Composition, Thm 5.3, 6.1", trained=False)
def rotations_are_safe(rows: Table) -> Finding:
    """Composition is exact under factorised conditionals at all t; in feature space only
    orthogonal maps are safe.

    Expected: composed = exact denoiser (<= 1e-9); a rotation is exact; skew and swirl miss the
    composition by over twice the floor"""
    off = max(values(rows.where(kind="exact"), "off"))
    mismatch = {m: max(values(rows.where(kind="mismatch", map=m), "off")) for m in MAPS}
    distance = {m: values(rows.where(kind="map", map=m), "composed") for m in MAPS}
    floor = {m: values(rows.where(kind="map", map=m), "exact") for m in MAPS}
    is_safe = off <= FLOAT and max(mismatch["identity"], mismatch["rotation"]) <= 1e-6
    is_missed = [min(distance[m]) > 2 * max(floor[m]) for m in ("skew", "swirl")]
    differs = [mismatch[m] > 1e-2 for m in ("skew", "swirl")]
    measured = {
        "factorised: composed against exact denoiser, all t": off,
        "allowed": FLOAT,
        **{f"{m}: denoisers differ by at most": v for m, v in mismatch.items()},
        **{f"{m}: samples' distance from the composition": max(v) for m, v in distance.items()},
        **{f"{m}: the same with the exact denoiser": max(v) for m, v in floor.items()},
    }
    checks = (
        Check("exact under factorised conditionals and rotations", is_safe),
        Check("not through skew and swirl", all(is_missed) and all(differs)),
    )
    return Finding(checks, measured)


CLAIMS = (
    compositions_are_local,
    only_compositions_are_local,
    noise_spends_the_score_error,
    orthogonality_is_a_hint,
    backgrounds_decide,
    rotations_are_safe,
)
