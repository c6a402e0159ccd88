"""What the claims of `label-dropout` measure: late means at level 2 by the paper's probe, the mean
over its seeds. D1 to D4 are the paper's, with all labels given; their regions are those of the fact
sheet, written before any run. That D4 is about the DDPM with weak latents was decided after seed 0
on VQ latents and before the others. The regions of G6 to G10 were written down after the first seed
and before the second; those of G15, G19 and G21 before any of their runs, those of G22 after 3,000 updates at that
rate with one seed (`optimizers`), that of G16 after seed 0 on VQ
latents and before the others. G1 says whether the setting reads as the paper's."""

from collections.abc import Callable
from contextlib import suppress
from statistics import fmean

from recombine.analysis.calibrated import LATE, NAMES, SEEN, gate
from recombine.analysis.claims import Finding, Measured, Part, claim
from recombine.analysis.levels import (
    Curve,
    at_level,
    curve,
    curves_at,
    early,
    fluctuation,
    gain,
    gain_of,
    gains,
    has_learned,
    late,
    per_seed,
    seeds_of,
)
from recombine.analysis.paper_curves import paper_points
from recombine.analysis.paper_probe import PAPER, with_paper_probe
from recombine.analysis.paper_probe import beside as papers_beside
from recombine.analysis.table import Table

DEVIATIONS = (
    "what we have of the paper (abstract, captions, figures, project page) does not say whether its "
    "MaskGIT was trained with label dropout, nor of which kind; dropout of each factor was tried "
    "here after about a dozen other set-ups of MaskGIT, none of which fell to the paper's level 2",
    "learning rate 1e-4 for all families, as in a co-author's code of DiT (the paper's are not known); "
    "at 1e-3, in one seed, MaskGIT falls to the paper's level 2 with all labels (G18, G22)",
    "GIVT: floored scales, samples snapped to codes, decoded by confidence; this form was chosen "
    "among five when their level 2 was known, and MAR decodes at random",
    "8,000 updates (the paper's curves: 28,000 to 55,000); five of the variants were run to 28,000 "
    "with one seed before, and had settled by 8,000",
    "one tokenizer of 256 codes of 8 numbers (a co-author's code: a VQGAN with codes of 128)",
    "7 layers, no dropout inside the network (12 in the paper's Fig 6)",
    "DiT by flow matching, Heun with 25 steps (a co-author's code: DDPM, 500 ancestral steps, as in the "
    "variants called ddpm and weak signal)",
)
BY_DDPM = (
    *DEVIATIONS[:-1],
    "latents of a tenth of the noise: how strong the paper's are is not known",
    "64 samples of a composition at each checkpoint, 256 in seed 0 on VQ latents",
)
"""Of DiT by the authors' DDPM."""
LONG = (
    *DEVIATIONS[:3],
    "24,000 updates at one rate (the paper's curves: 28,000 to 55,000, the rate falling as over 115,000)",
    *DEVIATIONS[4:],
)
"""Of the variants called longer."""
FAST = "maskgit, lr 1e-3"
"""Ten times the learning rate."""
AT_RATE = (
    *DEVIATIONS[2:],
    "learning rate 1e-3, at which MaskGIT's loss on held-out pictures of what it has seen is lower than at 1e-4 "
    "and 3e-4 (the paper's is not known; a co-author's DiT: 1e-4)",
)
CONTINUOUS = ("givt", "mar", "dit")
WEAK = ("dit, weak signal", "dit on vae, weak signal")
"""DiT by a DDPM as the authors', on VQ and on VAE latents."""
OTHER_RUN = paper_points("discrete_DiT_XAI3", 2)
"""The paper's curve of another DiT with class labels on VQ latents: its Fig 4c, to 91,000 updates."""
SAME_UPDATES = (21_000, 28_600)
"""Where the late mean of the paper's first one is taken."""


def beside(rows: Table, *variants: str) -> Measured:
    return papers_beside(rows, {v: LATE.get(v) for v in variants})


def papers_of(*variants: str) -> Measured:
    """The paper's late means of the families of these variants."""
    return {f"paper_{v}": LATE[v.partition(", ")[0]] for v in variants}


def seen(rows: Table, *variants: str) -> tuple:
    return tuple(has_learned(rows, v, SEEN, PAPER) for v in variants)


def seen_by_oracle(rows: Table, *variants: str) -> Measured:
    """What the oracle reads of seen compositions, all factors and the shape alone, of
    variants and of real pictures. Sizes overlap, so it misreads these too."""
    shown: Measured = {}
    for v in variants:
        for ending, column in (("", "joint"), (", shape alone", "shape")):
            shown[f"{v}, seen{ending}, oracle"] = fmean(
                late(curve(rows, v, seed, 0, column, "oracle")) for seed in seeds_of(rows, v)
            )
    real = rows.where(kind="probe", probe="oracle", level=0).column("joint")
    return shown | ({"real pictures, seen, oracle": fmean(real)} if real else {})


def seen_by_class(rows: Table, *variants: str) -> Measured:
    """Late means of each seen class, and what is read of its real pictures."""
    shown: Measured = {}
    for code, name in NAMES.items():
        real = rows.where(kind="probe", probe=PAPER, composition=code).column("joint")
        shown |= {f"real {name}": fmean(real)} if real else {}
        for v in variants:
            with suppress(LookupError):
                shown[f"{v}, {name}"] = fmean(map(late, curves_at(rows, v, code, PAPER)))
    return shown


def over_updates(
    rows: Table, variant: str, level: int, summary: Callable[[Curve], float], probe: str, key: str
) -> Measured:
    """A summary of a variant's curves, the mean over seeds; nothing where they are too short."""
    with suppress(LookupError):
        return {key: fmean(per_seed(rows, variant, level, summary, probe).values())}
    return {}


@claim("D1", "A, Fig 3a", faithful=False, deviations=DEVIATIONS)
def maskgit_fails(rows: Table) -> Finding:
    """MaskGIT, which predicts categories, fails at level 2.

    Expected: level 2 <= 0.15 and seen >= 0.7; late means, paper's linear probe (mean over its
    seeds) (paper: 0.006, 0.866)"""
    rows = with_paper_probe(rows)
    part = at_level(rows, "maskgit", 2, high=0.15, probe=PAPER)
    return Finding((part, *seen(rows, "maskgit")), beside(rows, "maskgit"))


@claim("D2", "A, Fig 3b", faithful=False, deviations=DEVIATIONS)
def mixture_head_lifts(rows: Table) -> Finding:
    """Replacing only the categorical head by a mixture of Gaussians lifts level 2.

    Expected: level 2 of GIVT - level 2 of MaskGIT >= 0.5, seen >= 0.7 for both; late means, paper's
    linear probe (mean over its seeds) (paper: 0.697 against 0.006)"""
    rows, both = with_paper_probe(rows), ("givt", "maskgit")
    part = gain_of(rows, *both, 0.5, probe=PAPER)
    others = [v for v in ("givt on vae", "givt, cool") if rows.where(kind="accuracy", variant=v)]
    shown = beside(rows, *both, *others) | seen_by_oracle(rows, "givt", *others)
    shown |= seen_by_class(rows, "givt", *others)
    return Finding((part, *seen(rows, *both)), shown)


@claim("D3", "A, Fig 3c and d", faithful=False, deviations=DEVIATIONS)
def continuous_succeed(rows: Table) -> Finding:
    """MAR and DiT reach level 2 too: masking against denoising does not decide it.

    Expected: level 2 >= 0.75 and seen >= 0.7 for both; late means, paper's linear probe (mean over
    its seeds) (paper: 0.821, 0.848)"""
    rows, both = with_paper_probe(rows), ("mar", "dit")
    parts = tuple(at_level(rows, name, 2, low=0.75, probe=PAPER) for name in both)
    shown = beside(rows, *both)
    for name in both:
        for text, level in (("level 2", 2), ("seen", 0)):
            key = f"{name}, {text}, between checkpoints"
            shown |= over_updates(rows, name, level, fluctuation, PAPER, key)
    return Finding((*parts, *seen(rows, *both)), shown)


@claim("D4", "A, Fig 2", faithful=False, deviations=BY_DDPM)
def latents_alike(rows: Table) -> Finding:
    """On VQ and on VAE latents alike DiT reaches level 2, by a DDPM as the authors' on weak
    latents.

    Expected: level 2 >= 0.8 for both and at most 0.15 apart, seen >= 0.7 for both; late means,
    paper's linear probe (mean over its seeds) (paper: 0.848, 0.834)"""
    rows, (vq, vae) = with_paper_probe(rows), WEAK
    parts = (
        *(at_level(rows, name, 2, low=0.8, probe=PAPER) for name in WEAK),
        Part(f"{vae} - {vq}, level 2", gain(rows, vae, vq, probe=PAPER), -0.15, 0.15),
    )
    shown = beside(rows, *WEAK) | papers_of(*WEAK) | {"paper_dit, Fig 4c": late(OTHER_RUN)}
    first, last = SAME_UPDATES
    same = fmean(y for step, y in OTHER_RUN if first <= step <= last)
    shown["paper_dit, Fig 4c, same updates"] = same
    for name in WEAK:
        values = per_seed(rows, name, 2, probe=PAPER).values()
        shown |= {f"{name}, lowest seed": min(values), f"{name}, highest seed": max(values)}
        for probe, ending in ((PAPER, ""), ("oracle", ", oracle")):
            shown |= over_updates(rows, name, 2, early, probe, f"{name}, early{ending}")
    return Finding((*parts, *seen(rows, *WEAK)), shown)


@claim("G6", "A, Fig 3a", faithful=False, deviations=DEVIATIONS)
def maskgit_fails_with_dropout(rows: Table) -> Finding:
    """MaskGIT that is trained with label dropout reads as in the paper.

    Expected: level 2 <= 0.15, level 1 in 0.35 to 0.65, seen >= 0.7; late means, paper's linear
    probe (mean over its seeds) (paper: 0.006, 0.527, 0.866)"""
    rows, name = with_paper_probe(rows), "maskgit, dropout"
    parts = (
        at_level(rows, name, 2, high=0.15, probe=PAPER),
        at_level(rows, name, 1, low=0.35, high=0.65, probe=PAPER),
        *seen(rows, name),
    )
    return Finding(parts, beside(rows, name) | {"paper_maskgit": LATE["maskgit"]})


@claim("G7", "beyond A", deviations=DEVIATIONS)
def maskgit_composes_without_dropout(rows: Table) -> Finding:
    """Without label dropout MaskGIT composes, though it predicts categories.

    Expected: level 2 without - with dropout >= 0.3, level 2 without >= 0.3, seen >= 0.7 for both;
    late means, paper's linear probe (mean over its seeds)"""
    rows, both = with_paper_probe(rows), ("maskgit", "maskgit, dropout")
    parts = (
        gain_of(rows, *both, 0.3, probe=PAPER),
        at_level(rows, "maskgit", 2, low=0.3, probe=PAPER),
        *seen(rows, *both),
    )
    return Finding(parts, beside(rows, *both))


@claim("G8", "A, Fig 4c and d", faithful=False, deviations=DEVIATIONS)
def dropout_destroys_composition_in_dit(rows: Table) -> Finding:
    """Label dropout destroys composition in DiT.

    Expected: level 2 without - with dropout >= 0.3, with <= 0.3, seen >= 0.7 for both; late means,
    paper's linear probe (mean over its seeds) (paper: 0.602 and 0.00)"""
    rows, both = with_paper_probe(rows), ("dit", "dit, dropout")
    parts = (
        gain_of(rows, *both, 0.3, probe=PAPER),
        at_level(rows, "dit, dropout", 2, high=0.3, probe=PAPER),
        *seen(rows, *both),
    )
    return Finding(parts, beside(rows, *both) | {"paper_dit, dropout": 0.0})


@claim("G9", "A, Fig 3", faithful=False, deviations=DEVIATIONS)
def continuous_outputs_withstand_dropout(rows: Table) -> Finding:
    """Continuous outputs compose under label dropout where MaskGIT does not.

    Expected: level 2 of GIVT, MAR and DiT with dropout - that of MaskGIT with dropout >= 0.3 for
    each; late means, paper's linear probe (mean over its seeds)"""
    rows = with_paper_probe(rows)
    less = "maskgit, dropout"
    parts = tuple(gain_of(rows, f"{f}, dropout", less, 0.3, probe=PAPER) for f in CONTINUOUS)
    shown = beside(rows, *(f"{f}, dropout" for f in ("maskgit", *CONTINUOUS)))
    shown |= gains(rows, *((f, f"{f}, dropout") for f in CONTINUOUS), probe=PAPER)
    return Finding(parts, shown)


@claim("G10", "A, Fig 3", faithful=False, deviations=DEVIATIONS)
def continuous_outputs_compose(rows: Table) -> Finding:
    """Without label dropout GIVT, MAR and DiT compose.

    Expected: level 2 >= 0.5 and seen >= 0.7 for each; late means, paper's linear probe (mean over
    its seeds) (paper: 0.697, 0.821, 0.848)"""
    rows = with_paper_probe(rows)
    parts = tuple(at_level(rows, f, 2, low=0.5, probe=PAPER) for f in CONTINUOUS)
    return Finding((*parts, *seen(rows, *CONTINUOUS)), beside(rows, *CONTINUOUS))


@claim("G15", "beyond A", deviations=DEVIATIONS)
def whole_labels_left_out(rows: Table) -> Finding:
    """Leaving out all labels of a picture at once, as guided models are trained, destroys
    composition too.

    Expected: level 2 without - with it >= 0.3 and seen >= 0.7, for MaskGIT and DiT; late means,
    paper's linear probe (mean over its seeds)"""
    rows, families = with_paper_probe(rows), ("maskgit", "dit")
    guided = [f"{family}, guidance" for family in families]
    pairs = zip(families, guided, strict=True)
    parts = [gain_of(rows, *pair, 0.3, probe=PAPER) for pair in pairs]
    singly = [(name, f"{family}, dropout") for name, family in zip(guided, families, strict=True)]
    shown = beside(rows, *families, *guided) | gains(rows, *singly, probe=PAPER)
    return Finding((*parts, *seen(rows, *guided)), shown)


@claim("G16", "A, Figs 2 and 3d", faithful=False, deviations=BY_DDPM)
def weak_latents_lift_dit(rows: Table) -> Finding:
    """A DDPM whose latents are weak beside the noise composes as the paper's DiT does, on VQ and on
    VAE latents.

    Expected: level 2 >= 0.75 on both, on VQ >= 0.1 more than with latents of unit variance, and
    seen >= 0.7 for both; late means, paper's linear probe (mean over its seeds) (paper: 0.848, 0.834)"""
    rows = with_paper_probe(rows)
    parts = (
        *(at_level(rows, name, 2, low=0.75, probe=PAPER) for name in WEAK),
        gain_of(rows, WEAK[0], "dit, ddpm", 0.1, probe=PAPER),
    )
    shown = beside(rows, "dit", "dit, ddpm", *WEAK) | papers_of(*WEAK)
    return Finding((*parts, *seen(rows, *WEAK)), shown)


@claim("G19", "beyond A", deviations=DEVIATIONS)
def overlap_does_not_teach(rows: Table) -> Finding:
    """MaskGIT and DiT compose without the pictures whose size is nearer to that of another class.

    Expected: level 2 of each without these pictures at most 0.15 lower than with them, seen >= 0.7;
    late means, paper's linear probe (mean over its seeds)"""
    rows, families = with_paper_probe(rows), ("maskgit", "dit")
    without = [f"{family}, apart" for family in families]
    parts = [
        gain_of(rows, *pair, -0.15, probe=PAPER) for pair in zip(without, families, strict=True)
    ]
    return Finding((*parts, *seen(rows, *without)), beside(rows, *families, *without))


@claim("G21", "A, Fig 3", faithful=False, deviations=LONG)
def longer_training_tells_families_apart(rows: Table) -> Finding:
    """Trained as long as in the paper, with all labels given, MaskGIT does not compose, and GIVT, MAR
    and DiT do.

    Expected: after 24,000 updates, level 2 of MaskGIT <= 0.15, of the others >= 0.5 more, seen >=
    0.7 for all; late means, paper's linear probe (mean over its seeds) (paper: 0.006, 0.697, 0.821,
    0.848)"""
    rows = with_paper_probe(rows)
    least, *others = every = [f"{family}, longer" for family in ("maskgit", *CONTINUOUS)]
    parts = (
        at_level(rows, least, 2, high=0.15, probe=PAPER),
        *(gain_of(rows, name, least, 0.5, probe=PAPER) for name in others),
        *seen(rows, *every),
    )
    return Finding(parts, beside(rows, *every) | papers_of(*every))


@claim("G22", "A, Fig 3a", faithful=False, deviations=AT_RATE)
def maskgit_fails_at_ten_times_the_rate(rows: Table) -> Finding:
    """At a learning rate of 1e-3, at which it fits better what it has seen, MaskGIT reads as in the
    paper, with all labels given.

    Expected: level 2 <= 0.15, level 1 in 0.35 to 0.65, seen >= 0.7; late means, paper's linear
    probe (mean over its seeds) (paper: 0.006, 0.527, 0.866)"""
    rows, name = with_paper_probe(rows), FAST
    parts = (
        at_level(rows, name, 2, high=0.15, probe=PAPER),
        at_level(rows, name, 1, low=0.35, high=0.65, probe=PAPER),
        *seen(rows, name),
    )
    return Finding(parts, beside(rows, name) | {"paper_maskgit": LATE["maskgit"]})


CLAIMS = (
    gate,
    maskgit_fails,
    mixture_head_lifts,
    continuous_succeed,
    latents_alike,
    maskgit_fails_with_dropout,
    maskgit_composes_without_dropout,
    dropout_destroys_composition_in_dit,
    continuous_outputs_withstand_dropout,
    continuous_outputs_compose,
    whole_labels_left_out,
    weak_latents_lift_dit,
    overlap_does_not_teach,
    longer_training_tells_families_apart,
    maskgit_fails_at_ten_times_the_rate,
)
