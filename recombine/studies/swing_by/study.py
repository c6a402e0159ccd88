"""Swing-by: why does the answer to an unseen combination get worse before it gets right?

Question. A model trained on single concepts is asked for all of them at once. Its loss on that question falls, rises, and
falls again, while the training loss only falls. When does this happen, and why?
Setup.    Structured identity mapping (theory/sim.py): clusters on the concept axes, target = input, test point x^ with all
          concepts. Exact one- and two-layer dynamics, and networks trained by SGD.
Expected. Claims T1-T14: which concept is learned first, the swing-by and its digits, where it is absent, how it depends on
          depth and dimension, and two slips in print that change published figures.
Cost.     About a minute on one core. Nothing here needs a GPU.

    recombine run swing-by --set mu=[1,3] --set rho=0.95     your own setting, beside the reference claims"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from recombine.studies.base import Row, Scale, Study
from recombine.studies.swing_by import parts, trained
from recombine.studies.swing_by.claims import CLAIMS
from recombine.studies.swing_by.figures import draw
from recombine.theory.sim import Task


@dataclass(frozen=True)
class SwingBy:
    """The user's own setting: signals `mu`, diversities `sigma` (one, or one per concept), start W(0) of size `omega` and
    correlation `rho`, dimension `d` (None: as many as concepts). Below: how much is spent on the reference claims;
    `length` is the share of their longest runs."""

    mu: tuple[float, ...] = (1.0, 2.0)
    sigma: float | tuple[float, ...] = 0.05
    omega: float = 0.01
    rho: float = 0.9
    d: int | None = None
    flow_seeds: int = 300
    mlp_seeds: int = 64
    mlp_steps: int = 2400
    length: float = 1.0
    grid: int = 41

    def __post_init__(self) -> None:
        d = self.task.dim
        if not 0 < self.omega <= 1:
            raise ValueError(f"omega={self.omega}: the size of the start lies above 0 and at most at 1")
        if not abs(self.rho) <= 1:
            raise ValueError(f"rho={self.rho}: a correlation lies between -1 and 1")
        if d > 1 and self.rho < -1 / (d - 1):
            raise ValueError(f"rho={self.rho}: {d} coordinates cannot all correlate below {-1 / (d - 1):.3g}")
        if d > 512:
            raise ValueError(f"d={d}: at most 512")
        if min(self.flow_seeds, self.mlp_seeds, self.mlp_steps) < 1 or self.grid < 2:
            raise ValueError("flow_seeds, mlp_seeds and mlp_steps are at least 1, grid at least 2")
        if not 0.02 <= self.length <= 1:
            raise ValueError(f"length={self.length}: a share between 0.02 and 1")

    @property
    def task(self) -> Task:
        return Task(self.mu, self.sigma, self.d)


def settings(scale: Scale) -> SwingBy:
    sizes = {
        "smoke": {"flow_seeds": 4, "mlp_seeds": 2, "mlp_steps": 60, "length": 0.05, "grid": 5},
        "laptop": {},
        "full": {"flow_seeds": 1000, "mlp_seeds": 256, "grid": 61},
    }
    return SwingBy(**sizes[scale])


def compute(settings: SwingBy, lab: Any) -> Iterator[Row]:
    """Every experiment in turn; `lab` is told which."""
    flows, nets, steps = settings.flow_seeds, settings.mlp_seeds, settings.mlp_steps
    experiments = (
        ("your setting", trained.yours(settings.task, settings.omega, settings.rho)),
        ("second moments", parts.second_moments(8)),
        ("growth, suppression, noise", parts.fields(8)),
        ("one layer, exactly", parts.one_layer_exact()),
        ("one layer by SGD", parts.one_layer_sgd(min(4, nets), steps=int(0.75 * steps))),
        ("order of concepts", parts.order_flip()),
        ("terminal slowing", parts.slowing()),
        ("the reference swing-by", parts.reference()),
        ("where it is absent", parts.absences(flows)),
        ("how long the weak concept waits", parts.waiting()),
        ("many descents", parts.many_descents(flows, settings.length)),
        ("points near the test point removed", trained.truncation(max(nets // 2, 1), steps)),
        ("depth and dimension", trained.depth_and_dimension(nets, steps)),
        ("order on the hypercube", trained.hypercube(min(8, nets), 6 if steps > 100 else 1)),
        ("what went wrong in print", trained.in_print(min(flows, 200), settings.length)),
        ("phase diagrams", trained.phases(settings.grid)),
    )
    for name, rows in experiments:
        lab.note(f"swing-by: {name}")
        yield from rows


STUDY = Study(
    name="swing-by",
    question="Why does the answer to an unseen combination get worse before it gets right?",
    paper="C, sections 2 to 4",
    about=(
        "Concepts are learned one by one, strongest first. Early on, correlations of the random start let the strong concept "
        "carry the weak one along, so an unseen combination looks half right; then the strong concept suppresses that "
        "shortcut, the answer swings towards what was memorised, and only later is the weak concept learned for itself."
    ),
    cost={
        "smoke": "about 10 s on one core",
        "laptop": "about a minute on one core",
        "full": "5 minutes (estimate) on one core",
    },
    settings=settings,
    compute=compute,
    claims=CLAIMS,
    draw=draw,
    widget="swing-by",
)
