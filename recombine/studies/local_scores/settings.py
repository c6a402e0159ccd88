"""What can be set, and its size at each scale."""

from dataclasses import dataclass

from recombine.studies.base import Scale


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
