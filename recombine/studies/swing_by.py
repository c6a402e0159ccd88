"""Why does the answer to an unseen combination get worse before it gets right?

A model trained on single concepts is tested on all of them at once. Its loss there falls, rises,
and falls again, while the training loss only falls. Concepts are learned one by one, strongest
first. Early on, correlations of the random start let the strong concept carry the weak one along,
so an unseen combination looks half right; then the strong concept suppresses that shortcut, the
answer swings towards what was memorised, and only later is the weak concept learned for itself.
Structured identity mapping (theory/sim.py): clusters on the concept axes, target = input, test
point x^ with all concepts; exact one- and two-layer dynamics, and networks trained by SGD.

Run: `recombine run swing-by` (a minute on one core); your own setting beside the reference claims:
`recombine run swing-by --set mu=[1,3] --set rho=0.95`."""

from dataclasses import field
from pathlib import Path

from recombine.analysis.table import Table
from recombine.config import config
from recombine.pipeline.job import Job
from recombine.plots import swing_by, swing_by_evidence, swing_by_phases
from recombine.plots.style import Figure
from recombine.runs.swing_by import Setting, SwingByRun
from recombine.studies.study import Scale, Study, described
from recombine.studies.swing_by_claims import CLAIMS


@config("settings/swing-by")
class SwingBy:
    """`setting`: the user's own. The others: how much is spent on the reference claims; `length` is
    the share of their longest runs."""

    setting: Setting = field(default_factory=Setting)
    flow_seeds: int = 600
    mlp_seeds: int = 64
    mlp_steps: int = 2400
    length: float = 1.0
    grid: int = 41

    def __post_init__(self) -> None:
        if min(self.flow_seeds, self.mlp_seeds, self.mlp_steps) < 1 or self.grid < 2:
            raise ValueError("flow_seeds, mlp_seeds and mlp_steps are at least 1, grid at least 2")
        if not 0.02 <= self.length <= 1:
            raise ValueError(f"length={self.length}: a share between 0.02 and 1")


def settings(scale: Scale) -> SwingBy:
    if scale == "smoke":
        return SwingBy(flow_seeds=4, mlp_seeds=2, mlp_steps=60, length=0.05, grid=5)
    return SwingBy(flow_seeds=1000, mlp_seeds=256, grid=61) if scale == "full" else SwingBy()


def runs(s: SwingBy) -> list[SwingByRun]:
    """Every experiment, each with the settings that matter to it."""
    flows, nets, steps = s.flow_seeds, s.mlp_seeds, s.mlp_steps
    return [
        SwingByRun("your setting", setting=s.setting),
        SwingByRun("second moments", seeds=8),
        SwingByRun("growth, suppression, noise", seeds=8),
        SwingByRun("one layer, exactly"),
        SwingByRun("one layer by SGD", seeds=min(4, nets), steps=int(0.75 * steps)),
        SwingByRun("order of concepts"),
        SwingByRun("terminal slowing"),
        SwingByRun("the reference swing-by"),
        SwingByRun("where it is absent", seeds=flows),
        SwingByRun("how long the weak concept waits"),
        SwingByRun("several descents", seeds=flows, length=s.length),
        SwingByRun("points near the test point removed", seeds=max(nets // 2, 1), steps=steps),
        SwingByRun("depth and dimension", seeds=nets, steps=steps),
        SwingByRun("order on the hypercube", seeds=min(8, nets), epochs=6 if steps > 100 else 1),
        SwingByRun("slips in print", seeds=min(flows, 200), length=s.length),
        SwingByRun("phase diagrams", grid=s.grid),
    ]


def jobs(settings: SwingBy, seeds: int) -> list[Job]:
    """Seeds are part of each experiment, so how many the command has does not matter."""
    return [Job.of(run) for run in runs(settings)]


def figures(rows: Table, folder: Path) -> list[Figure]:
    """From the story to the evidence."""
    rooms = (swing_by, swing_by_phases, swing_by_evidence)
    return [figure for room in rooms for figure in room.figures(rows, folder)]


STUDY = Study(
    name="swing-by",
    **described(__doc__),
    paper="C, sections 2 to 4",
    cost={
        "smoke": "10 s, one core",
        "laptop": "a minute, one core",
        "full": "5 min (estimate), one core",
    },
    settings=settings,
    jobs=jobs,
    claims=CLAIMS,
    figures=figures,
    widget="swing-by",
)
