"""The setting of `label-dropout` beside the paper's: deviations, the paper's numbers, and what else is
read of its variants."""

from contextlib import suppress
from statistics import fmean

from recombine.analysis.by_factor import by_factor
from recombine.analysis.calibrated import LATE, NAMES, SEEN
from recombine.analysis.claims import Measured
from recombine.analysis.levels import (
    curve,
    curves_at,
    has_learned,
    late_mean,
    seeds_of,
)
from recombine.analysis.paper_probe import PAPER, paper_numbers
from recombine.analysis.table import NotMeasured, Table

DEVIATIONS = (
    "what we have of the paper (abstract, captions, figures, project page) does not say whether its "
    "MaskGIT was trained with label dropout, nor of which kind; dropout of each factor was tried "
    "here after about a dozen other set-ups of MaskGIT, none of which fell to the paper's level 2",
    "learning rate 1e-4 for all families, as in a co-author's code of DiT (the paper's are not known); "
    "at 1e-3 two MaskGITs of five fall to the paper's level 2 with all labels (G22, G23)",
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
FALLING = (
    *DEVIATIONS,
    "the rate falls to nothing over 8,000 updates (a co-author's code of DiT: over about 115,000)",
    "the region is D3's; when the runs were planned one seed of DiT was known",
)
"""Of the variants called decayed."""
NEW_SEEDS = (
    *FALLING[:-1],
    "the region was written when seeds 0 to 4 were known, in whose mean DiT and MAR are higher; seeds from "
    "5 on count",
)
"""Of the same in seeds that were trained later."""
FAST = "maskgit, lr 1e-3"
"""Ten times the learning rate."""
AT_RATE = (
    *DEVIATIONS[2:],
    "learning rate 1e-3, at which MaskGIT's loss on held-out pictures of what it has seen is lower than at 1e-4 "
    "and 3e-4 (the paper's is not known; a co-author's DiT: 1e-4)",
    "the region was written when one seed at that rate was known after 3,000 updates (`optimizers`)",
)
SMALL = ("maskgit, small, lr 1e-3", "dit, small, lr 1e-3")
"""The networks of `small-models`, at their learning rate."""
OF_SMALL = (
    *(said for said in AT_RATE[:-1] if not said.startswith("7 layers")),
    "three layers of 96 (7 or 12 in the paper)",
    "the region was written when five seeds of such networks on smaller pictures were known (`small-models`)",
)
MASKGIT_ADALN, MAR_ADALN = "maskgit, adaln", "mar, adaln"
"""Masked families that get their labels as DiT does."""
AS_DIT = (
    *DEVIATIONS,
    "labels by adaLN in MaskGIT and MAR (a co-author's code of MaskGIT: as tokens), which adds 31 % to the "
    "parameters of MaskGIT and 20 % to those of MAR",
    "DiT is 448 wide, MaskGIT and MAR 128: 26 million parameters in place of 3.1 and 4.3",
    "the region was written when all was known but these two",
)
CONTINUOUS = ("givt", "mar", "dit")
WEAK = ("dit, weak signal", "dit on vae, weak signal")
"""DiT by a DDPM as the authors', on VQ and on VAE latents."""


def context_numbers(rows: Table, *variants: str) -> Measured:
    return paper_numbers(rows, {v: LATE.get(v) for v in variants}) | by_factor(rows, *variants)


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
                late_mean(curve(rows, v, seed, 0, column, "oracle")) for seed in seeds_of(rows, v)
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
            with suppress(NotMeasured):
                shown[f"{v}, {name}"] = fmean(map(late_mean, curves_at(rows, v, code, PAPER)))
    return shown
