"""Which rate and clipping suit a family best, by the loss on held-out pictures of what it has seen."""

from contextlib import suppress
from statistics import fmean

from recombine.analysis.claims import Finding, Measured, Part, claim
from recombine.analysis.estimates import rate_difference
from recombine.analysis.levels import per_seed, same_seeds
from recombine.analysis.paper_probe import PAPER, with_paper_probe
from recombine.analysis.table import Table

USED = "0.0001, not clipped"
"""The setting of `label-dropout`."""
LITTLE = 0.1
"""How much less of what it has seen a family may draw right there than with its best setting."""


def families_of(rows: Table) -> dict[str, dict[str, str]]:
    """Family -> setting -> variant, of those with which no seed diverged."""
    made: dict[str, dict[str, str]] = {}
    diverged = diverged_of(rows)
    for variant in rows.where(kind="held-out loss").unique("variant"):
        if variant in diverged:
            continue
        family, _, setting = variant.partition(", ")
        made.setdefault(family, {})[setting] = variant
    return made


def diverged_of(rows: Table) -> list[str]:
    """The variants with which some seed diverged."""
    return sorted(rows.where(kind="diverged").unique("variant"))


def held_out(rows: Table, variant: str) -> dict[int, float]:
    """The loss at the end, by seed. LookupError where it was not measured."""
    seeds = rows.where(kind="held-out loss", variant=variant).by("seed")
    if not seeds:
        raise LookupError(f"no held-out loss of {variant}")
    return {seed: max(some, key=lambda row: row["step"])["loss"] for seed, some in seeds.items()}


def best_setting(rows: Table, settings: dict[str, str]) -> str:
    """The setting with the lowest held-out loss on average."""
    return min(settings, key=lambda name: fmean(held_out(rows, settings[name]).values()))


@claim("G18", "beyond A")
def no_family_is_held_back(rows: Table) -> Finding:
    """With the settings of `label-dropout` every family learns what it sees nearly as well as with
    the settings that suit it best.

    Expected: seen, with the best rate and clipping by held-out loss less with those used, <= 0.1
    for every family; late means, oracle"""
    families, parts = families_of(rows), []
    if not families:
        raise LookupError("no held-out loss was measured")
    shown: Measured = {
        "families": ", ".join(families),
        "diverged": "; ".join(diverged_of(rows)) or "none",
    }
    for family, settings in families.items():
        if USED not in settings:
            raise LookupError(f"{family} was not trained with {USED}")
        best = best_setting(rows, settings)
        pair = [per_seed(rows, settings[s], 0, probe="oracle") for s in (best, USED)]
        same_seeds(*pair)
        lost = rate_difference(*(list(values.values()) for values in pair))
        parts.append(Part(f"{family}, seen, best less used", lost, high=LITTLE))
        shown |= beside(rows, family, settings, best)
    return Finding(tuple(parts), shown)


def beside(rows: Table, family: str, settings: dict[str, str], best: str) -> Measured:
    """The best setting, and both numbers of every one."""
    shown: Measured = {f"{family}, best": best}
    for variant in settings.values():
        shown[f"{variant}, held-out loss"] = fmean(held_out(rows, variant).values())
        seen = per_seed(rows, variant, 0, probe="oracle")
        shown[f"{variant}, seen"] = fmean(seen.values())
        shown |= unseen(rows, variant)
    return shown


def unseen(rows: Table, variant: str) -> Measured:
    """Late means of the levels that have no part in the choice, by the paper's probe; nothing where
    it did not read."""
    with suppress(LookupError):
        read = with_paper_probe(rows)
        return {
            f"{variant}, level {level}": fmean(per_seed(read, variant, level, probe=PAPER).values())
            for level in (1, 2)
        }
    return {}
