"""Which rate and clipping suit a family best, by the loss on held-out pictures of what it has seen,
and whether it composes there. The regions of G23 and G24 were written when of full-size networks
MaskGIT was known with all settings and GIVT with four, one seed each, and of small ones (three
layers, learning rate 1e-3) two seeds of MaskGIT and DiT and one of GIVT."""

from contextlib import suppress
from itertools import product
from statistics import fmean

from recombine.analysis.by_factor import by_factor
from recombine.analysis.calibrated import LATE, SEEN
from recombine.analysis.claims import Finding, Measured, Part, claim
from recombine.analysis.estimates import rate_difference
from recombine.analysis.levels import (
    at_level,
    best,
    fluctuation,
    gain_of,
    has_learned,
    late_mean,
    over_updates,
    per_seed,
    same_seeds,
)
from recombine.analysis.paper_probe import PAPER, paper_numbers, with_paper_probe
from recombine.analysis.single_runs import by_seed, passing_share
from recombine.analysis.table import NotMeasured, Table

USED = "0.0001, not clipped"
"""The setting of `label-dropout`."""
FAST = "0.001, not clipped"
FAMILIES = ("maskgit", "givt", "mar", "dit")
FAILS, LEAD = 0.15, 0.5
"""Level 2 of a MaskGIT that fails, at most, and how much more the others have, at least."""
LITTLE = 0.1
"""How much less of what it has seen a family may draw right there than with its best setting."""

DEVIATIONS = (
    "3,000 updates (the paper's curves: 28,000 to 55,000)",
    "GIVT: floored scales, samples snapped to codes, decoded by confidence; MAR decodes at random",
    "one tokenizer of 256 codes of 8 numbers (a co-author's code: a VQGAN with codes of 128)",
    "7 layers, no dropout inside the network (12 in the paper's Fig 6)",
    "DiT by flow matching (a co-author's code: DDPM at 1e-4); the learning rates of the paper's other "
    "models are not known",
    "the regions of G23 and G24 were written after seeing MaskGIT with all settings and GIVT with four, "
    "one seed each, and the first of the small models",
)


def families_of(rows: Table) -> dict[str, dict[str, str]]:
    """Family -> setting -> variant, of those with which no seed diverged and which have as many seeds
    as any of the family: means over other seeds cannot be compared."""
    made: dict[str, dict[str, str]] = {}
    diverged, losses = diverged_of(rows), rows.where(kind="held-out loss")
    seeds = {v: len(some.unique("seed")) for v, some in losses.by("variant").items()}
    for variant in losses.unique("variant"):
        family, _, setting = variant.partition(", ")
        most = max(n for v, n in seeds.items() if v.partition(", ")[0] == family)
        if variant not in diverged and seeds[variant] == most:
            made.setdefault(family, {})[setting] = variant
    return made


def diverged_of(rows: Table) -> list[str]:
    """The variants with which some seed diverged."""
    return sorted(rows.where(kind="diverged").unique("variant"))


def held_out(rows: Table, variant: str) -> dict[int, float]:
    """The loss at the end, by seed. NotMeasured where it was not measured."""
    seeds = rows.where(kind="held-out loss", variant=variant).by("seed")
    if not seeds:
        raise NotMeasured(f"no held-out loss of {variant}")
    return {seed: max(some, key=lambda row: row["step"])["loss"] for seed, some in seeds.items()}


def best_setting(rows: Table, settings: dict[str, str]) -> str:
    """The setting with the lowest held-out loss on average."""
    return min(settings, key=lambda name: fmean(held_out(rows, settings[name]).values()))


@claim("G18", "beyond A")
def no_family_is_held_back(rows: Table) -> Finding:
    """With the settings of `label-dropout` every family learns what it sees nearly as well as with
    the settings that suit it best.

    Expected: seen accuracy with the lowest held-out loss, less that at 1e-4 without clipping, <= 0.1
    for every family; late means, oracle"""
    families, parts = families_of(rows), []
    if not families:
        raise NotMeasured("no held-out loss was measured")
    shown: Measured = {
        "families": ", ".join(families),
        "diverged": "; ".join(diverged_of(rows)) or "none",
    }
    for family, settings in families.items():
        if USED not in settings:
            raise NotMeasured(f"{family} was not trained with {USED}")
        chosen = best_setting(rows, settings)
        pair = [per_seed(rows, settings[s], 0, probe="oracle") for s in (chosen, USED)]
        same_seeds(*pair)
        lost = rate_difference(*(list(values.values()) for values in pair))
        parts.append(Part(f"{family}, seen, best - used", lost, high=LITTLE))
        shown |= context_numbers(rows, family, settings, chosen)
    return Finding(tuple(parts), shown)


def context_numbers(rows: Table, family: str, settings: dict[str, str], chosen: str) -> Measured:
    """The best setting, and both numbers of every one."""
    shown: Measured = {f"{family}, best": chosen}
    for variant in settings.values():
        shown[f"{variant}, held-out loss"] = fmean(held_out(rows, variant).values())
        seen = per_seed(rows, variant, 0, probe="oracle")
        shown[f"{variant}, seen"] = fmean(seen.values())
        shown |= unseen(rows, variant)
    return shown


def unseen(rows: Table, variant: str) -> Measured:
    """Late means and best checkpoints of the levels that have no part in the choice, by the paper's
    probe; nothing where it did not read."""
    with suppress(NotMeasured):
        read = with_paper_probe(rows)
        shown: Measured = {}
        for level, (word, summary) in product((1, 2), (("", late_mean), (", best", best))):
            each = per_seed(read, variant, level, summary, PAPER)
            shown[f"{variant}, level {level}{word}"] = fmean(each.values())
        return shown
    return {}


@claim("G23", "A, Fig 3", faithful=False, deviations=DEVIATIONS)
def categories_fail_at_a_high_rate(rows: Table) -> Finding:
    """At a learning rate of 1e-3 (`label-dropout`: 1e-4), with all labels given, MaskGIT fails at level
    2, and GIVT, MAR and DiT compose.

    Expected: at 1e-3, not clipped: level 2 of MaskGIT <= 0.15, of each other family >= 0.5 more,
    seen >= 0.7 for all; late means, paper's linear probe (mean over its seeds) (paper: 0.006, 0.697,
    0.821, 0.848)"""
    return only_maskgit_fails(rows, {family: f"{family}, {FAST}" for family in FAMILIES})


@claim("G24", "A, Fig 3", faithful=False, deviations=DEVIATIONS)
def categories_fail_at_their_best(rows: Table) -> Finding:
    """Each family trained with the learning rate and clipping that fit best what it has seen, with all
    labels given, MaskGIT fails at level 2, and GIVT, MAR and DiT compose.

    Expected: with the lowest held-out loss: level 2 of MaskGIT <= 0.15, of each other family >= 0.5
    more, seen >= 0.7 for all; late means, paper's linear probe (mean over its seeds) (paper: 0.006,
    0.697, 0.821, 0.848)"""
    families = families_of(rows)
    if missing := [family for family in FAMILIES if family not in families]:
        raise NotMeasured(f"no held-out loss of {missing[0]} was measured")
    chosen = {f: families[f][best_setting(rows, families[f])] for f in FAMILIES}
    found = only_maskgit_fails(rows, chosen)
    shown: Measured = {f"{f}, best": v for f, v in chosen.items()}
    return Finding(found.parts, shown | found.measured)


def only_maskgit_fails(rows: Table, variants: dict[str, str]) -> Finding:
    """Whether MaskGIT fails where the other families compose; a variant for each family."""
    rows = with_paper_probe(rows)
    least = variants["maskgit"]
    others = tuple(v for v in variants.values() if v != least)
    parts = (
        at_level(rows, least, 2, high=FAILS, probe=PAPER),
        *(gain_of(rows, v, least, LEAD, probe=PAPER) for v in others),
        *(has_learned(rows, v, SEEN, PAPER) for v in variants.values()),
    )
    shown = paper_numbers(rows, {v: LATE[f] for f, v in variants.items()})
    shown |= by_seed(rows, *variants.values()) | by_factor(rows, *variants.values())
    for v in variants.values():
        shown |= over_updates(rows, v, 2, fluctuation, PAPER, f"{v}, between checkpoints")
    shown["share of single runs that pass"] = passing_share(rows, least, others, FAILS, LEAD)
    return Finding(parts, shown)


CLAIMS = (no_family_is_held_back, categories_fail_at_a_high_rate, categories_fail_at_their_best)
