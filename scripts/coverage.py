"""How often 95 % intervals over seeds hold the true rate, and how wide they are, by simulation.

Prints the tables of docs/statistics.md: `python scripts/coverage.py [repeats]`, about a minute
on one core with 1,000 repeats. Seeds have rates ~ Beta(mu nu, (1 - mu) nu), each measured on
1,024 samples: nu = 0.3 is all-or-nothing, nu = 300 hardly any spread.
"""

import sys
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from recombine.analysis.estimates import RateModel, rate_difference, rate_intervals

MU = (0.02, 0.1, 0.3, 0.5, 0.8, 0.95, 0.99)
NU = (0.3, 3, 30, 300)
SEEDS = (3, 5, 9)
SAMPLES = 1024
BOOTSTRAPS = 1000
PAIRS = ((0.95, 0.02), (0.8, 0.3), (0.5, 0.5), (0.02, 0.02), (0.99, 0.95))

Method = Callable[[np.ndarray], np.ndarray]
"""(repeats, seeds) -> (repeats, 2): low and high."""


def seed_rates(
    rng: np.random.Generator, mu: float, nu: float, seeds: int, repeats: int
) -> np.ndarray:
    """What `repeats` experiments of `seeds` runs measure."""
    rates = rng.beta(mu * nu, (1 - mu) * nu, size=(repeats, seeds))
    return rng.binomial(SAMPLES, rates) / SAMPLES


def student(x: np.ndarray) -> np.ndarray:
    """Student's interval of the mean."""
    seeds = x.shape[1]
    half = stdtrit(seeds - 1, 0.975) * x.std(axis=1, ddof=1) / np.sqrt(seeds)
    return x.mean(axis=1)[:, None] + half[:, None] * np.array([-1, 1])


def student_clipped(x: np.ndarray) -> np.ndarray:
    """Student's interval, cut at 0 and 1."""
    return student(x).clip(0, 1)


def student_arcsine(x: np.ndarray) -> np.ndarray:
    """Student's interval of arcsin(sqrt(x)), with Anscombe's correction at the ends."""
    angle = np.arcsin(np.sqrt((x * SAMPLES + 0.375) / (SAMPLES + 0.75)))
    return np.sin(student(angle).clip(0, np.pi / 2)) ** 2


def student_logit(x: np.ndarray) -> np.ndarray:
    """Student's interval of the log odds, half a sample added to both sides."""
    share = (x * SAMPLES + 0.5) / (SAMPLES + 1)
    return 1 / (1 + np.exp(-student(np.log(share / (1 - share)))))


def bootstrap(x: np.ndarray) -> np.ndarray:
    """The bias-corrected and accelerated bootstrap over seeds (BCa)."""
    repeats, seeds = x.shape
    weights = np.random.default_rng(1).multinomial(seeds, [1 / seeds] * seeds, BOOTSTRAPS) / seeds
    means, centre = np.sort(x @ weights.T, axis=1), x.mean(axis=1)[:, None]
    below = ((means < centre).mean(axis=1) + (means <= centre).mean(axis=1)) / 2
    bias = ndtri(below.clip(0.001, 0.999))
    square = ((x - centre) ** 2).sum(axis=1).clip(1e-12)
    skew = ((x - centre) ** 3).sum(axis=1) / (6 * square**1.5)
    ends = []
    for z in (-1.96, 1.96):
        part = ndtr(bias + (bias + z) / (1 - skew * (bias + z)))
        index = (part * BOOTSTRAPS).astype(int).clip(0, BOOTSTRAPS - 1)
        ends.append(means[np.arange(repeats), index])
    return np.stack(ends, axis=1)


def hierarchical(model: RateModel) -> Method:
    """The interval of `recombine.analysis.estimates.rate` with other settings."""

    def intervals(x: np.ndarray) -> np.ndarray:
        return rate_intervals(x, model)

    return intervals


METHODS: dict[str, Method] = {
    "**hierarchical beta (`rate`)**": hierarchical(RateModel()),
    "same, 100 samples a seed": hierarchical(RateModel(samples=100)),
    "same, Beta(0.75, 0.75) prior": hierarchical(RateModel(prior=0.75)),
    "same, nu from 0.3": hierarchical(RateModel(least=0.3)),
    "Student, clipped": student_clipped,
    "Student, arcsine scale": student_arcsine,
    "Student, logit scale": student_logit,
    "BCa bootstrap": bootstrap,
}


def measured(repeats: int) -> tuple[np.ndarray, np.ndarray]:
    """(coverage, mean width), each (methods, seeds, nu, mu): all methods see the same seeds."""
    rng = np.random.default_rng(2026)
    shape = (len(SEEDS), len(NU), len(MU))
    coverage, width = np.zeros((2, len(METHODS), *shape))
    for at in np.ndindex(*shape):
        mu = MU[at[2]]
        x = seed_rates(rng, mu, NU[at[1]], SEEDS[at[0]], repeats)
        for i, method in enumerate(METHODS.values()):
            low, high = method(x).T
            coverage[i, *at] = ((low <= mu) & (mu <= high)).mean()
            width[i, *at] = (high - low).mean()
    return coverage, width


def comparison(coverage: np.ndarray, width: np.ndarray) -> Iterator[str]:
    """Lines of the table that compares methods."""
    yield "| method | " + " | ".join(f"nu {nu}" for nu in NU) + " | all | < .90 | > .99 | width |"
    yield "|---|" + "---|" * (len(NU) + 4)
    for name, c, w in zip(METHODS, coverage, width, strict=True):
        by_nu = [f"{c[:, j].mean():.2f} ({c[:, j].min():.2f})" for j in range(len(NU))]
        counts = f"{(c < 0.9).sum()} | {(c > 0.99).sum()}"
        yield f"| {name} | {' | '.join(by_nu)} | {c.mean():.3f} | {counts} | {w.mean():.2f} |"


def situations(coverage: np.ndarray, width: np.ndarray) -> Iterator[str]:
    """Lines of the table of one method: every situation, coverage and mean width."""
    yield "| seeds, nu | " + " | ".join(f"mu {mu}" for mu in MU) + " |"
    yield "|---|" + "---|" * len(MU)
    for i, j in product(range(len(SEEDS)), range(len(NU))):
        cells = (f"{c:.2f} ({w:.2f})" for c, w in zip(coverage[i, j], width[i, j], strict=True))
        yield f"| {SEEDS[i]}, {NU[j]} | {' | '.join(cells)} |"


def differences(repeats: int) -> Iterator[str]:
    """Lines of the table of `rate_difference`: coverage (mean width)."""
    rng = np.random.default_rng(2027)
    yield "| seeds, nu | " + " | ".join(f"{a} - {b}" for a, b in PAIRS) + " |"
    yield "|---|" + "---|" * len(PAIRS)
    for seeds, nu in product((3, 5), NU):
        cells = []
        for mu_a, mu_b in PAIRS:
            a, b = (seed_rates(rng, mu, nu, seeds, repeats) for mu in (mu_a, mu_b))
            found = [rate_difference(x, y) for x, y in zip(a, b, strict=True)]
            covered = np.mean([e.low <= mu_a - mu_b <= e.high for e in found])
            cells.append(f"{covered:.2f} ({np.mean([e.high - e.low for e in found]):.2f})")
        yield f"| {seeds}, {nu} | {' | '.join(cells)} |"


def main(repeats: int = 1000) -> None:
    """Print the three tables."""
    coverage, width = measured(repeats)
    print("\nMean coverage over mu and seeds (the least):", *comparison(coverage, width), sep="\n")
    print("\n`rate`, coverage (mean width):", *situations(coverage[0], width[0]), sep="\n")
    print("\n`rate_difference`, coverage (mean width):", *differences(repeats // 2), sep="\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
