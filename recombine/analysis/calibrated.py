"""Whether the setting reads as the paper's: what its probe says of seen classes, in real pictures
and in those of DiT; and its late means."""

from statistics import fmean
from typing import Any

from recombine.analysis.claims import Finding, Part, claim
from recombine.analysis.estimates import rate
from recombine.analysis.levels import seeds_of
from recombine.analysis.paper_probe import seeds_of_probe
from recombine.analysis.table import NotMeasured, Table

READS = {"000": 0.757, "100": 0.765, "010": 0.744, "001": 0.896}
"""How often the paper's probe reads its DiT's seen classes: mean of the late means of A, Figs 2b, 4c
and 4d."""
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

DEVIATIONS = ("DiT by flow matching, 8,000 updates (the paper: DDPM, 28,000 and more)",)


def gate_values(rows: Table) -> dict[str, tuple[list[float], list[float]]]:
    """For each seen class how often the paper's probe reads it: in real pictures, by seed of the
    probe; in DiT's at its last checkpoint, by seed of DiT, the mean over those of the probe."""
    names, seeds = seeds_of_probe(rows), seeds_of(rows, "dit")
    if not seeds:
        raise NotMeasured("no rows of dit")
    values = {}
    for code in READS:
        real, drawn = rows.where(kind="probe", composition=code), []
        for seed in seeds:
            mine = rows.where(kind="accuracy", variant="dit", seed=seed, composition=code)
            last = mine.where(step=max(mine.column("step")))
            drawn.append(fmean(last.one(probe=p)["joint"] for p in names))
        values[code] = [fmean(real.where(probe=p).column("joint")) for p in names], drawn
    return values


@claim("G1", "A, Figs 2b, 4c, 4d", deviations=DEVIATIONS)
def gate(rows: Table) -> Finding:
    """The paper's probe reads seen classes as often as in the paper.

    Expected: real pictures within 0.04 of 0.757, 0.765, 0.744, 0.896 (over the probe's seeds), those
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
