"""When does a score have to be local, and when is composing scores right? Exact answers on Gaussian mixtures.

Setup     small pictures whose pixel sets M_j each belong to one condition; every law is a mixture of Gaussians, so density,
          score and denoiser are known at every noise level, and the house's solvers sample from them.
Expected  projective compositions (CPC) have local conditional scores (LCS) and only they do (L1, L2); a law near a CPC comes
          nearer with noise, by exactly the score error spent (L3); mean directions are orthogonal under a CPC, which is a
          hint, not a proof, and depends on coordinates (L4); the composition operator is as good as its background (L5), and
          in feature space it is safe for rotations alone (L6).
Cost      about 40 s a seed on one core, no GPU.
Run       recombine run local-scores --scale laptop"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from recombine.studies.base import Row, Scale, Study
from recombine.studies.local_scores.claims import CLAIMS
from recombine.studies.local_scores.figures import draw


@dataclass(frozen=True)
class LocalScores:
    """`blocks` conditions own `pixels` pixels each, `rest` pixels belong to none; each part is a mixture of `modes`. `tilt`
    sets how far the counter-example is from a CPC, `link` how strongly the other one ties two blocks."""

    blocks: int = 3
    pixels: int = 2
    rest: int = 2
    modes: int = 3
    tilt: float = 1.0
    link: float = 0.8
    sigmas: tuple[float, ...] = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
    pictures: int = 64
    draws: int = 512
    levels: int = 25
    samples: int = 2000
    steps: int = 40
    fit_steps: int = 600
    lamps: int = 8
    lit: tuple[int, ...] = (0, 2, 4, 6)
    clutter: float = 0.5
    lamp_samples: int = 200
    grid: int = 9
    skew: float = 0.8
    swirl: float = 1.5

    def __post_init__(self) -> None:
        if self.blocks < 2 or self.pixels < 1 or self.rest < 0 or self.modes < 2:
            raise ValueError("blocks >= 2, pixels >= 1, rest >= 0 and modes >= 2 are needed")
        if self.modes**self.blocks > 4096:
            raise ValueError(f"modes^blocks = {self.modes**self.blocks} components are more than the 4096 allowed")
        if self.tilt <= 0 or not 0 < abs(self.link) < 1:
            raise ValueError(f"tilt {self.tilt} must be > 0 and link {self.link} within (-1, 1) and not 0")
        if not self.sigmas or any(a >= b for a, b in zip(self.sigmas, self.sigmas[1:], strict=False)):
            raise ValueError(f"sigmas {self.sigmas} must be one or more rising noise levels")
        if self.sigmas[0] <= 0 or self.levels < 8 or min(self.draws, self.pictures, self.samples, self.steps) < 2:
            raise ValueError("sigmas must be > 0, levels >= 8, and draws, pictures, samples and steps >= 2")
        if not self.lit or len(set(self.lit)) < len(self.lit) or not set(self.lit) <= set(range(self.lamps)):
            raise ValueError(f"lit {self.lit} must be different lamps out of 0..{self.lamps - 1}")
        if not 2 <= self.lamps <= 12 or not 0 < self.clutter < 1 or self.lamp_samples < 2:
            raise ValueError("2 to 12 lamps, 0 < clutter < 1 and lamp_samples >= 2 are needed")
        if not 3 <= self.grid <= 31 or not -1 < self.skew < 1 or self.fit_steps < 1:
            raise ValueError("grid must be 3 to 31, skew within (-1, 1), fit_steps >= 1")


def settings(scale: Scale) -> LocalScores:
    if scale == "smoke":
        return LocalScores(
            pictures=8, draws=16, levels=13, samples=200, steps=10, fit_steps=60, lamp_samples=20, grid=5
        )
    if scale == "full":
        return LocalScores(
            pictures=256, draws=2048, levels=33, samples=10_000, steps=60, fit_steps=4000, lamp_samples=1000, grid=11
        )
    return LocalScores()


def compute(settings: LocalScores, lab: Any) -> Iterator[Row]:
    """Every part once a seed; rows of all parts share one stream and are told apart by `kind`."""
    from recombine.studies.local_scores.composed import lamps, maps
    from recombine.studies.local_scores.parts import angles, approximation, factorisation, locality

    for seed in range(lab.seeds):
        for part in (locality, factorisation, approximation, angles, lamps, maps):
            lab.note(f"{part.__name__}, seed {seed}")
            for row in part(settings, seed):
                yield {"seed": seed, **row}


STUDY = Study(
    name="local-scores",
    question="When does a score have to be local, and when is composing scores right?",
    paper="B, sections 2 and 5",
    about="Exact scores of Gaussian mixtures: conditional projective compositions and local conditional scores are the same "
    "thing, approximately composed laws approach it with noise, and composing scores needs the right background and the "
    "right coordinates.",
    cost={"smoke": "10 s, 1 core", "laptop": "40 s a seed, 1 core", "full": "5 min, 1 core"},
    settings=settings,
    compute=compute,
    claims=CLAIMS,
    draw=draw,
)
