"""What the claim of `reconstruction` measures: how often a probe reads the composition of real
pictures that were encoded and decoded, beside how often it reads that of the same pictures as they
are.

Sizes overlap in the paper's world, so no probe reads all real pictures; the oracle reads about 0.9
of those of level 2. So a tokenizer is compared with real pictures and not with 1: the accuracy on
reconstructions less that of the same probe on the very pictures that were encoded (rows of kind
`ceiling`, variant "real pictures"). The pictures are the same for all tokenizers and seeds, so the
accuracy on them is one number without an interval.

The regions were written down before the study was run. Known by then, from `label-dropout` and
`calibrated`: of VQ trained on all compositions the oracle reads 0.90 at level 2 (5 seeds), of a VAE
0.90 (1 seed). Nothing was known in this world of FSQ, nor of any tokenizer trained on seen
compositions alone."""

from recombine.analysis.claims import Finding, Measured, Part, claim
from recombine.analysis.estimates import rate, rate_difference
from recombine.analysis.levels import level_mean, same_seeds
from recombine.analysis.paper_probe import PAPER, averaged
from recombine.analysis.table import NotMeasured, Table

KINDS, DATA = ("vae", "vq", "fsq"), ("all", "seen")
REAL = "real pictures"
"""The variant of pictures that were not encoded."""
VARIANTS = tuple(f"{kind}, {data}" for kind in KINDS for data in DATA)
BELOW, FALL = -0.1, 0.2
"""Trained on all, so much below real pictures at most; trained on the seen alone, so much lower at
least."""
DEVIATIONS = (
    "tokens of 8 numbers (VAE, VQ with 256 codes) or 3 (FSQ); the paper's: codes of 128 numbers by a "
    "VQGAN, and a VAE of which it says little",
)


@claim("D10", "A, left open", deviations=DEVIATIONS)
def seen_alone_caps(rows: Table) -> Finding:
    """A tokenizer trained on the seen compositions alone does not reconstruct those two factors
    away, one trained on all does.

    Expected: level 2, oracle, for VAE, VQ and FSQ: reconstructions of a tokenizer trained on all
    compositions at most 0.1 below the same real pictures, at least 0.2 lower when it is trained on
    the seen ones alone"""
    read = ceilings(rows)
    oracle = read.where(probe="oracle")
    parts = tuple(part for kind in KINDS for part in parts_of(oracle, kind))
    shown: Measured = {"primary probe": "oracle"}
    for level in (2, 1, 0):
        shown |= {f"{v}, level {level}": mean_of(oracle, v, level) for v in (REAL, *VARIANTS)}
    paper = read.where(probe=PAPER)
    shown |= {f"{v}, level 2, paper's probe": mean_of(paper, v, 2) for v in (REAL, *VARIANTS)}
    return Finding(parts, shown)


def ceilings(rows: Table) -> Table:
    """The rows of reconstructions and of the pictures themselves; the paper's probe, one for each of
    its seeds, as one."""
    return Table(averaged(rows.where(kind="ceiling").frame))


def parts_of(read: Table, kind: str) -> tuple[Part, Part]:
    """What one probe must read of a kind of tokenizer."""
    on_all, on_seen = (per_seed(read, f"{kind}, {data}", 2) for data in DATA)
    same_seeds(on_all, on_seen)
    fall = rate_difference(list(on_all.values()), list(on_seen.values()))
    real = mean_of(read, REAL, 2)
    above = rate([value - real for value in on_all.values()], (-real, 1 - real))
    return (
        Part(f"{kind}, all - seen, level 2", fall, FALL, 1.0),
        Part(f"{kind}, all - real pictures, level 2", above, BELOW, 1.0),
    )


def mean_of(read: Table, variant: str, level: int) -> float:
    """The mean accuracy of a variant at a level, over seeds."""
    return level_mean(readings(read, variant), level)


def per_seed(read: Table, variant: str, level: int) -> dict[int, float]:
    """The same for each seed."""
    some = readings(read, variant)
    return {s: level_mean(some.where(seed=s), level) for s in sorted(some.unique("seed"))}


def readings(read: Table, variant: str) -> Table:
    """The rows of a variant. NotMeasured where there are none."""
    if not (some := read.where(variant=variant)):
        raise NotMeasured(f"no readings of {variant}")
    return some
