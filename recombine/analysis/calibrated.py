"""What the claims of `calibrated` measure: late means by the paper's probe, the mean over its
seeds, of families that were run in one set-up."""

from statistics import fmean
from typing import Any

from recombine.analysis.claims import Finding, Measured, Part, claim
from recombine.analysis.estimates import rate
from recombine.analysis.levels import at_level, has_learned, seeds_of
from recombine.analysis.paper_probe import PAPER, seeds_of_probe, with_paper_probe
from recombine.analysis.paper_probe import beside as papers_beside
from recombine.analysis.table import Table

READS = {"000": 0.77, "100": 0.765, "010": 0.755, "001": 0.90}
"""How often the paper's probe reads its DiT's seen classes (A, Figs 2b, 4c, 4d)."""
NAMES = {
    "000": "large red circle",
    "100": "large red triangle",
    "010": "large blue circle",
    "001": "small red circle",
}
LATE = {"maskgit": 0.006, "givt": 0.697, "mar": 0.821, "dit": 0.848, "dit on vae": 0.834}
"""Late means of level 2 in the paper."""
SEEN = 0.7
"""What must be read of seen classes at least: the probe is closed-set, so without this a network
that draws noise could pass at level 2. Of real pictures it reads 0.80."""

DEVIATIONS = (
    "8,000 updates at a constant 3e-4, EMA, clipping at 1 (the paper: 28k to 55k at 1e-4)",
    "conditions enter by adaLN, 7 layers of 448 (the authors' MaskGIT: class tokens, 7 of 128)",
    "DiT by flow matching (the paper: DDPM)",
)


def family_of(variant: str) -> str:
    """The family of a variant: "givt wide, few" -> "givt", "givt sure on vae" -> "givt on vae"."""
    name = variant.partition(", ")[0]
    if not name.startswith("givt"):
        return name
    return "givt on vae" if name.endswith(" on vae") else "givt"


def side_by_side(rows: Table, *families: str) -> list[str]:
    """The variants of these families in the first set-up (what stands after the comma, nothing
    first) in which all of them were run. LookupError where there is none."""
    variants = rows.where(kind="accuracy").unique("variant")
    for setup in dict.fromkeys(["", *(v.partition(", ")[2] for v in variants)]):
        here = {family_of(v): v for v in reversed(variants) if v.partition(", ")[2] == setup}
        if set(families) <= here.keys():
            return [here[family] for family in families]
    raise LookupError(f"no set-up in which {' and '.join(families)} were run")


def beside(rows: Table, variants: list[str]) -> Measured:
    """Numbers that stand beside a claim: other levels, the oracle and other probes."""
    return papers_beside(rows, {v: LATE[family_of(v)] for v in variants})


@claim("G5", "A, Fig 2", faithful=False, deviations=DEVIATIONS)
def tokenizers_alike(rows: Table) -> Finding:
    """DiT composes on VAE and on VQ latents in the paper's setting.

    Expected: level 2 >= 0.75 and seen >= 0.7 for both; late means, paper's linear probe (mean over
    its seeds) (paper: 0.834, 0.848)"""
    rows = with_paper_probe(rows)
    variants = side_by_side(rows, "dit", "dit on vae")
    parts = [at_level(rows, v, 2, low=0.75, probe=PAPER) for v in variants]
    parts += [has_learned(rows, v, SEEN, PAPER) for v in variants]
    return Finding(tuple(parts), beside(rows, variants))


def gate_values(rows: Table) -> dict[str, tuple[list[float], list[float]]]:
    """For each seen class how often the paper's probe reads it: in real pictures, by seed of the
    probe; in DiT's at its last checkpoint, by seed of DiT, the mean over those of the probe."""
    (dit,) = side_by_side(rows, "dit")
    names, seeds = seeds_of_probe(rows), seeds_of(rows, dit)
    values = {}
    for code in READS:
        real, drawn = rows.where(kind="probe", composition=code), []
        for seed in seeds:
            mine = rows.where(kind="accuracy", variant=dit, seed=seed, composition=code)
            last = mine.where(step=max(mine.column("step")))
            drawn.append(fmean(last.one(probe=p)["joint"] for p in names))
        values[code] = [fmean(real.where(probe=p).column("joint")) for p in names], drawn
    return values


@claim("G1", "A, Figs 2b, 4c", deviations=DEVIATIONS)
def gate(rows: Table) -> Finding:
    """The paper's probe reads seen classes as often as in the paper.

    Expected: real pictures within 0.04 of 0.77, 0.765, 0.755, 0.90 (over the probe's seeds), those
    of DiT at the end within 0.08"""
    parts: dict[str, Any] = {}
    shown: dict[str, Any] = {}
    for code, (real, drawn) in gate_values(rows).items():
        reads, name = READS[code], NAMES[code]
        parts[f"real {name}"] = rate(real), round(reads - 0.04, 3), round(reads + 0.04, 3)
        parts[f"DiT's {name}"] = rate(drawn), round(reads - 0.08, 3), round(reads + 0.08, 3)
        shown |= {name: fmean(real), f"paper_{name}": reads, f"{name}, DiT": fmean(drawn)}
    ordered = sorted(parts, key=lambda name: not name.startswith("real"))
    return Finding(tuple(Part(name, *parts[name]) for name in ordered), shown)
