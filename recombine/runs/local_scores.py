"""The parts of `local-scores` as runs: each computes its rows once a seed, from the settings that
matter to it alone."""

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Literal

from recombine.config import ALWAYS, config
from recombine.limits import check_memory, check_updates
from recombine.pipeline.job import Task, Work
from recombine.runs.exact_compositions import lamps, maps
from recombine.runs.exact_laws import LocalScores, angles, approximation, factorisation, locality
from recombine.store import Row

VERSION = 1
"""Rises when a change to the code changes the rows."""
PartName = Literal["locality", "factorisation", "approximation", "angles", "lamps", "maps"]
LAW = ("blocks", "pixels", "rest", "modes")
MATTERS: dict[PartName, tuple[str, ...]] = {
    "locality": (*LAW, "tilt", "sigmas", "pictures"),
    "factorisation": (*LAW, "tilt", "sigmas", "pictures", "samples", "steps", "fit_steps"),
    "approximation": ("blocks", "pixels", "modes", "tilt", "sigmas", "levels", "sobol_points"),
    "angles": ("link", "skew", "swirl", "sigmas", "pictures", "sobol_points"),
    "lamps": ("lamps", "lit", "clutter", "lamp_samples", "steps"),
    "maps": (*LAW, "pictures", "grid", "samples", "steps", "skew", "swirl"),
}
"""The settings that each part depends on; the others stay at their default and out of its
digest."""
MEASURE: dict[PartName, Callable[[LocalScores, int], Iterable[Row]]] = {
    "locality": locality,
    "factorisation": factorisation,
    "approximation": approximation,
    "angles": angles,
    "lamps": lamps,
    "maps": maps,
}


COSTS: dict[PartName, float] = {
    "locality": 200.0,
    "factorisation": 1600.0,
    "approximation": 300.0,
    "angles": 20.0,
    "lamps": 300.0,
    "maps": 2000.0,
}
"""At laptop scale, in the unit of `Task.cost`."""


@config("run/local-scores")
class LocalScoresRun(Task):
    """One part with one seed."""

    part: PartName
    settings: LocalScores
    seed: int
    version: int = field(default=VERSION, metadata=ALWAYS)

    @staticmethod
    def of(part: PartName, settings: LocalScores, seed: int) -> "LocalScoresRun":
        """With the settings that matter to it."""
        kept = {name: getattr(settings, name) for name in MATTERS[part]}
        return LocalScoresRun(part, LocalScores(**kept), seed)

    @property
    def noun(self) -> str:
        return self.part

    @property
    def cost(self) -> float:
        return COSTS[self.part]

    def check(self) -> None:
        """Lower bounds: pictures, samples and points as numbers; steps follow each other."""
        s, what = self.settings, f"{self.part!r}"
        pixels = s.blocks * s.pixels + s.rest
        drawn = s.pictures + s.samples + s.modes * s.sobol_points
        check_memory(4 * (pixels * drawn + s.lamps * s.lamp_samples), what)
        check_updates(s.steps + s.fit_steps + s.levels, what)

    def run(self, work: Work) -> list[Row]:
        return list(MEASURE[self.part](self.settings, self.seed))
