"""Tables of what stands beside claims: level 2 by seed, and which factor is right. Each model once, as
the first claim that measured it says."""

from typing import Any

from numbers_as_text import called, number, table_line

SEEDS, FACTORS = ", by seed", ("shape", "colour", "size")
Claims = list[dict[str, Any]]


def seeds_table(claims: Claims) -> str:
    """A line for each model: level 2 of every seed and their mean. Seeds that a model does not have
    are empty."""
    lines: dict[str, tuple[dict[int, str], str]] = {}
    for claim in claims:
        measured = claim["measured"]
        for name in (n.removesuffix(SEEDS) for n in measured if n.endswith(SEEDS)):
            values = measured[name + SEEDS].split()
            seeds = measured.get(f"{name}, seeds run", " ".join(map(str, range(len(values)))))
            each = dict(zip(map(int, seeds.split()), values, strict=True))
            lines.setdefault(name, (each, mean_of(claim, name)))
    every = sorted(set().union(*(each for each, _ in lines.values())))
    made = [
        [called(name), *(each.get(seed, "") for seed in every), mean]
        for name, (each, mean) in lines.items()
    ]
    return table_of(("level 2 by seed", *map(str, every), "mean"), made)


def mean_of(claim: dict[str, Any], name: str) -> str:
    """As the claim states it; of the rounded seeds where it does not."""
    each = claim["measured"][name + SEEDS].split()
    mean = claim["measured"].get(name, sum(map(float, each)) / len(each))
    return number(mean)


def factors_table(claims: Claims) -> str:
    """A line for each model: how often each factor is right at level 2, and all of them at once."""
    lines: dict[str, list[str]] = {}
    for measured in (claim["measured"] for claim in claims):
        for name in (n.removesuffix(key("", "size")) for n in measured if n.endswith(", size")):
            values = [measured[key(name, factor)] for factor in FACTORS]
            if name in measured:
                lines.setdefault(name, [number(v) for v in (*values, measured[name])])
    heads = ("level 2, share of samples that are right in", *FACTORS, "all three")
    return table_of(heads, [[called(name), *cells] for name, cells in lines.items()])


def key(variant: str, factor: str) -> str:
    return f"{variant}, level 2, {factor}"


def table_of(heads: tuple[str, ...], lines: list[list[str]]) -> str:
    return "\n".join([table_line(heads), "|---" * len(heads) + "|", *map(table_line, lines)])
