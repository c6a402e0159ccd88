"""Why does a model learn a composition that it has never seen, and lose it again?

In `label-dropout` level 2 changes from one checkpoint to the next while accuracy on seen
compositions stays, and by the paper's probe it is often higher early than late; so it is in the
paper's curves. By the oracle it falls in few runs, so a part of the fall may be the probe's. Here DiT is
trained as there, with one thing changed at a time: weights averaged over updates (`averaged`), a
rate that falls to nothing (`decayed`), three times the rate (`lr 3e-4`), clipped gradients
(`clipped`), 24,000 updates (`longer`). If single updates undo what was learned, averaging keeps it;
if training moves away from it, averaging does not.

Run: `recombine run forgetting --scale full` (on a GPU), `--scale laptop` (two cores).
"""

from recombine.analysis.forgetting import averaging_keeps_level_two
from recombine.config import config
from recombine.plots import forgetting as plots
from recombine.studies import calibrated
from recombine.studies.label_dropout import LabelDropout, describe, jobs
from recombine.studies.study import Scale, Study, described


@config("settings/forgetting")
class Forgetting(LabelDropout):
    """`variants`: families, and after a comma what differs, in the names of `calibrated`."""

    variants: tuple[str, ...] = (
        "dit", "dit, averaged", "dit, decayed", "dit, lr 3e-4", "dit, clipped", "dit, longer",
    )  # fmt: skip


def settings(scale: Scale) -> Forgetting:
    variants = Forgetting.variants if scale == "full" else ("dit", "dit, averaged")
    return Forgetting(calibrated.settings(scale), variants)


STUDY = Study(
    name="forgetting",
    **described(__doc__),
    paper="A, Figs 3 and 4",
    cost={
        "smoke": "60 s, one core",
        "laptop": "6 min (estimate), two cores",
        "full": "27 min (estimate), one H200, 5 seeds, after label-dropout, which has one of the variants",
    },
    settings=settings,
    jobs=jobs,
    claims=(averaging_keeps_level_two,),
    figures=plots.figures,
    describe=describe,
    run_minutes=2.5,
)
