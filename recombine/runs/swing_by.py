"""The swing-by experiments as runs: each computes its rows once, from the settings that matter to
it alone."""

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Literal

from recombine.config import ALWAYS, config
from recombine.limits import check_memory, check_updates
from recombine.pipeline.job import Task, Work
from recombine.store import Row
from recombine.theory import swing_by_flows as flows
from recombine.theory import swing_by_laws as laws
from recombine.theory import swing_by_own as own
from recombine.theory import swing_by_trained as trained
from recombine.theory.sim import IdentityMapping

VERSION = 1
"""Rises when a change to the code changes the rows."""
Experiment = Literal[
    "your setting",
    "second moments",
    "growth, suppression, noise",
    "one layer, exactly",
    "one layer by SGD",
    "order of concepts",
    "terminal slowing",
    "the reference swing-by",
    "where it is absent",
    "how long the weak concept waits",
    "several descents",
    "points near the test point removed",
    "depth and dimension",
    "order on the hypercube",
    "slips in print",
    "phase diagrams",
]


COSTS: dict[Experiment, float] = {
    "one layer by SGD": 100.0,
    "several descents": 2.0,
    "where it is absent": 0.3,
    "points near the test point removed": 16.0,
    "depth and dimension": 30.0,
    "order on the hypercube": 100.0,
    "slips in print": 6.0,
}
"""Of one seed at laptop scale, in the unit of `Task.cost`, where it is not about 5."""


@config("swing-by/setting")
class Setting:
    """Signals `mu`, diversities `sigma` (one, or one per concept), start W(0) of size `omega` and
    correlation `rho`, dimension `d` (None: as many as concepts)."""

    mu: tuple[float, ...] = (1.0, 2.0)
    sigma: float | tuple[float, ...] = 0.05
    omega: float = 0.01
    rho: float = 0.9
    d: int | None = None

    def __post_init__(self) -> None:
        d = self.mapping.dim
        if not 0 < self.omega <= 1:
            raise ValueError(
                f"omega={self.omega}: the size of the start must be above 0 and at most 1"
            )
        if not abs(self.rho) <= 1:
            raise ValueError(f"rho={self.rho}: a correlation lies between -1 and 1")
        if d > 1 and self.rho < -1 / (d - 1):
            least = -1 / (d - 1)
            raise ValueError(
                f"rho={self.rho}: {d} coordinates cannot all correlate below {least:.3g}"
            )
        if d > 512:
            raise ValueError(f"d={d}: at most 512")

    @property
    def mapping(self) -> IdentityMapping:
        return IdentityMapping(self.mu, self.sigma, self.d)


@config("run/swing-by")
class SwingByRun(Task):
    """One experiment. Only what it needs is given: `seeds` (random starts or networks), `steps` of
    SGD or `epochs`, `length` (the share of its longest runs), `grid` (points along each axis),
    `setting` (the user's own)."""

    experiment: Experiment
    seeds: int | None = None
    steps: int | None = None
    epochs: int | None = None
    length: float | None = None
    grid: int | None = None
    setting: Setting | None = None
    version: int = field(default=VERSION, metadata=ALWAYS)

    @property
    def noun(self) -> str:
        return self.experiment

    @property
    def cost(self) -> float:
        return COSTS.get(self.experiment, 5.0) * (self.seeds or 8)

    def check(self) -> None:
        """Lower bounds: a start is four numbers, a point of a diagram one; steps follow each
        other."""
        what, points = f"{self.experiment!r}", float(self.grid or 0) ** 2
        check_memory(int(32 * (self.seeds or 0) + 8 * points), what)
        check_updates((self.steps or 0) + (self.epochs or 0) + points, what)

    def run(self, work: Work) -> list[Row]:
        return list(rows_of(self))


def rows_of(r: SwingByRun) -> Iterable[Row]:
    """What its experiment yields."""
    own_setting = r.setting or Setting()
    makers: dict[Experiment, Callable[[], Iterable[Row]]] = {
        "your setting": lambda: own.yours(own_setting.mapping, own_setting.omega, own_setting.rho),
        "second moments": lambda: laws.second_moments(r.seeds),
        "growth, suppression, noise": lambda: laws.fields(r.seeds),
        "one layer, exactly": laws.one_layer_exact,
        "one layer by SGD": lambda: laws.one_layer_sgd(r.seeds, steps=r.steps),
        "order of concepts": laws.order_flip,
        "terminal slowing": laws.slowing,
        "the reference swing-by": flows.reference,
        "where it is absent": lambda: flows.absences(r.seeds),
        "how long the weak concept waits": laws.waiting,
        "several descents": lambda: flows.many_descents(r.seeds, r.length),
        "points near the test point removed": lambda: trained.truncation(r.seeds, r.steps),
        "depth and dimension": lambda: trained.depth_and_dimension(r.seeds, r.steps),
        "order on the hypercube": lambda: trained.hypercube(r.seeds, r.epochs),
        "slips in print": lambda: flows.in_print(r.seeds, r.length),
        "phase diagrams": lambda: flows.phases(r.grid),
    }
    return makers[r.experiment]()
