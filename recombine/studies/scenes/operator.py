"""What must scores be added to, so that many objects can be drawn by a model that is told of one at a time?

Scores of models that are told one place each are added: the background's, and for every place what it adds to that. Three
models differ only in what they learned to draw when nothing is told. Empty: trained on pictures with one object or none, so
nothing told means an empty scene. Unconditional: one object always, its place sometimes unconditional, so nothing told means one
object anywhere; this is Bayes' rule for independent conditions. Cluttered: one to five objects, one of them told, so nothing
told means one to five anywhere, and a told object is one among others. Projective composition, Fig 3: the first works for a few
objects, the second fails from two on, the third goes beyond what it was trained on.

Three comparisons need no more training. Swapped: the parts of the unconditional model over the background of the empty one.
Mismatched: parts and background of two empty models that differ in their seed alone; what is lost here is lost because the
errors of two networks do not cancel, whatever the background. At once: every model told all layout in one call.

Why a sum works or not can be known beforehand. Each part is asked about a picture that holds the other objects, too; how much
of them it shows beyond what the background shows is its leakage, and every further part adds it to every object. It is measured
on real pictures, with nothing drawn.

Run: `recombine run operator --scale laptop` (on two cores), `--scale full` (3 seeds, on a GPU).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from recombine.nets.layout_encoder import Null
from recombine.studies.base import Claim, Row, Scale, Study, about
from recombine.studies.lab import Lab
from recombine.studies.scenes import operator_figures
from recombine.studies.scenes.adding import Adding, Addition
from recombine.studies.scenes.echoing import Echoed
from recombine.studies.scenes.judge import Judge
from recombine.studies.scenes.operator_outcomes import MISMATCHED, SWAPPED, judge_echo, judge_operator
from recombine.studies.scenes.recipe import SceneRecipe
from recombine.studies.scenes.runs import grounds, runs
from recombine.studies.scenes.settings import settings as scenes

SPACED, MOST = 0.2, 8
"""At full scale no two locations are nearer than this share of the picture, since sets of pixels that overlap are not what the sum
is about (large objects are 0.16 to 0.28 wide); that leaves room for so many."""


@dataclass(frozen=True)
class Operator:
    """`recipe` tells of all objects; of it each model changes how many objects it sees and what it is told of them. `clutter`:
    how many objects the cluttered model sees. `dropout`: how often nothing is told where the background is learned so: as
    often as the empty model sees an empty scene, since errors of the background count K - 1 times."""

    recipe: SceneRecipe = field(default_factory=SceneRecipe)
    clutter: tuple[int, ...] = (1, 2, 3, 4, 5)
    dropout: float = 0.5

    def __post_init__(self) -> None:
        layout_encoder = self.recipe.layout_encoder
        if layout_encoder.labelled != "all" or layout_encoder.dropout or isinstance(layout_encoder, Null):
            raise ValueError("recipe.layout_encoder must tell of all objects, always; what each model changes follows from it")
        if not self.clutter or min(self.clutter) < 1 or max(self.clutter) < 2:
            raise ValueError(f"clutter={list(self.clutter)}: one object or more in every picture, in some at least two")
        if not 0 < self.dropout < 1:
            raise ValueError(f"dropout={self.dropout}: between 0 and 1, or no background is learned")

    def models(self) -> dict[str, SceneRecipe]:
        told = {
            "empty": ((0, 1), {}),
            "unconditional": ((1,), {"dropout": self.dropout}),
            "cluttered": (self.clutter, {"labelled": "one", "dropout": self.dropout}),
        }
        r = self.recipe
        return {
            name: replace(r, world=replace(r.world, counts=counts), layout_encoder=replace(r.layout_encoder, **change))
            for name, (counts, change) in told.items()
        }

    def additions(self, seed: int) -> dict[str, Adding]:
        """Whose parts are added to whose background, at a seed."""
        made = self.models()
        ways = {name: (name, name) for name in made} | {SWAPPED: ("unconditional", "empty")}
        found = {name: Adding(made[parts], made[base]).at(seed) for name, (parts, base) in ways.items()}
        if seed:
            own = found["empty"].parts
            found[MISMATCHED] = Adding(own, replace(own, seed=own.seed - 1))
        return found


def settings(scale: Scale) -> Operator:
    """Where fewer locations are asked for than `length` does, the detector is still its: sums may draw more than they are asked."""
    recipe = scenes(scale).recipe
    evaluation, detector = replace(recipe.evaluation, checkpoints=1), recipe.detector
    if scale == "full":
        detector = replace(detector, most=evaluation.most)
        evaluation = replace(evaluation, locations=tuple(range(1, MOST + 1)), spaced=SPACED)
    changed = replace(recipe, evaluation=evaluation, detector=detector)
    return Operator(changed, (1, 2) if scale == "smoke" else (1, 2, 3, 4, 5))


def run(settings: Operator, lab: Lab) -> Iterator[Row]:
    """Seed by seed: train what is not on disk, then add. Who is stopped has the sums of the seeds that are done."""
    models = settings.models()
    judge = Judge(next(iter(models.values())), lab)
    yield from grounds(models, lab, judge)
    for name in (SWAPPED, *([MISMATCHED] if lab.seeds > 1 else [])):
        yield {"kind": "variant", "variant": name, "trained": 1, "strict": 1}
    for seed in range(lab.seeds):
        yield from runs(models, seed, lab, judge)
        for name, adding in settings.additions(seed).items():
            sum_of = Addition(adding, lab, judge)
            lab.note(f"{name}, seed {seed}: scores added, run {sum_of.folder.digest}")
            lab.record(sum_of.folder, f"{name}, added", seed)
            about = {"variant": name, "seed": seed, "run": sum_of.folder.digest}
            yield from (r | about for r in [*sum_of.rows(), *Echoed(sum_of).rows()])


STUDY = Study(
    name="operator",
    question="What must scores be added to, so that a model told of one object at a time draws many?",
    paper="Bradley et al., Mechanisms of Projective Composition (before B), arXiv 2502.04549, Fig 3",
    about=about(__doc__),
    cost={
        "smoke": "10 s, one core",
        "laptop": "9 min, two cores",
        "full": "17 min, three at a time on one H200, 3 seeds",
    },
    settings=settings,
    compute=run,
    claims=(
        Claim(
            id="S9",
            paper="Bradley et al. (2502.04549), Fig 3",
            statement="Adding scores over an empty background works for a few objects, over the unconditional one it fails "
            "from two on, and over a cluttered one it goes beyond the number of objects seen in training.",
            expected="K_max in every seed: unconditional 1 < empty < cluttered, cluttered more than the 5 it was trained on; "
            "the same order where objects that no location names are forgiven to all (paper, by eye: 1, about 4, about 8)",
            judge=judge_operator,
            trained=True,
        ),
        Claim(
            id="B17",
            paper="beyond the papers",
            statement="One number, known before anything is drawn, says what adding will do: how much more of an object a part "
            "shows that is told of another one than the background does. Below zero objects vanish, above it they grow ever "
            "louder, near zero they stay.",
            expected="the leakage at the noise level where it is largest, in every seed: unconditional <= -0.15, empty >= 0.05, "
            "cluttered at most half as far from zero as empty, swapped above empty",
            judge=judge_echo,
            trained=True,
        ),
    ),
    draw=operator_figures.draw,
)
