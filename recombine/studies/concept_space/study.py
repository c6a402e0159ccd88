"""What does a diffusion model learn first, and what can it already draw that it does not show?

Question. A model is trained on red and blue circles, large and small, but never on small blue ones. Asked for them all along,
          how does its answer move, which concept comes first, and is the ability there before it shows?
Setup.    Circles (worlds/circles.py) with colour and size signals to be dialled; a U-Net and a transformer, told the true
          values; about 60 checkpoints, at each of which a classifier trained on real pictures says where the samples lie in
          concept space. Seen: red large, red small, blue large.
Expected. Claims C1-C6: the answer first swings towards red small, the training class along the stronger concept, and only then
          turns; colour is learned sooner the stronger its signal; asking for more than blue finds the ability earlier; three
          concepts emerge together only with the last one; hidden captions bend the answer back. B2: does the theory of
          swing-by, fed with the world's own pixels, predict all this?
Cost.     Laptop: a dip, a turn and a hidden capability in a few minutes on two cores. Full: 81 short runs, 16 min on one GPU.

    recombine run concept-space --scale laptop"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from recombine.evaluate.composing import train_small
from recombine.evaluate.probes import ProbeConfig, Oracle, TrainedProbe, real_accuracy
from recombine.store import RunFolder
from recombine.studies.base import Row, Study
from recombine.studies.concept_space.claims import CLAIMS
from recombine.studies.concept_space.figures import draw
from recombine.studies.concept_space.settings import ConceptSpace, Course, settings, word
from recombine.studies.concept_space.trial import Trial
from recombine.studies.lab import Lab
from recombine.theory.predict import SPACES, signals
from recombine.worlds.circles import Circles


def compute(settings: ConceptSpace, lab: Lab) -> Iterator[Row]:
    """Every course over its seeds. Courses in the same world share a classifier."""
    courses, probes = settings.courses(), {}
    for course, _ in courses:
        course.check()
    lab.prepare((RunFolder(lab.out, probe_config(c)), partial(classifier, c, lab)) for c, _ in courses)
    for course, more in courses:
        world = course.world
        if world not in probes:
            probes[world] = classifier(course, lab)
        if not lab.ahead:
            yield from about(settings, course)
            yield from (r | {"variant": course.name} for r in real(probes[world], course, lab))
        for seed in range(lab.seeds + more):
            yield from one(replace(course, recipe=course.recipe.with_seed(seed)), seed, probes[world], lab)


def probe_config(course: Course) -> ProbeConfig:
    return ProbeConfig.of(course.world, "cnn", course.recipe.evaluation.probe_steps)


def classifier(course: Course, lab: Lab) -> TrainedProbe:
    config = probe_config(course)
    lab.renew(RunFolder(lab.out, config))
    return train_small(config, lab.out, lab.runtime)


def real(probe: TrainedProbe, course: Course, lab: Lab) -> list[Row]:
    """What the classifier and the reader are worth on real pictures."""
    count, world, split = 64 if lab.scale == "smoke" else 512, course.world, course.recipe.split
    each = [real_accuracy(judge, world, split, count, lab.runtime.device) for judge in (probe, Oracle(world))]
    return [r | ({"kind": "probe3"} if world.background_signal else {}) for rows in each for r in rows]


def about(settings: ConceptSpace, course: Course) -> Iterator[Row]:
    """The facts of a course, and what the theory makes of its world before any training."""
    world, told = course.world, course.recipe.conditioning.signal
    by_value = course.recipe.conditioning.mode == "continuous"
    yield {
        "kind": "course",
        "variant": course.name,
        "net": word(course.recipe.net),
        "told": told,
        "color_signal": world.color_signal,
        "size_signal": world.size_signal,
        "background_signal": world.background_signal,
        "masked": course.masked,
        "by": "value" if by_value else "class",
        "main": int(is_main(settings, course)),
        "weak": int(course.asking is not None),
    }
    for space in SPACES if by_value else ():
        found = signals(world, space, raw=told == "raw")
        for name, mu, a in zip(found.names, found.mu, found.a.values(), strict=True):
            yield {"kind": "signal", "variant": course.name, "space": space, "factor": name, "mu": mu, "a": a}


def is_main(settings: ConceptSpace, course: Course) -> bool:
    main = settings.lines[0]
    return not course.masked and course.name in {settings.course(main, c).name for c in main.colors}


def one(course: Course, seed: int, probe: TrainedProbe, lab: Lab) -> list[Row]:
    trial = Trial(course, lab, probe)
    return lab.rows_of(trial.folder, trial.train, course.name, seed, trial.kind)


def describe(settings: ConceptSpace) -> dict[str, Any]:
    return replace(settings.recipe, world=Circles()).facts()


STUDY = Study(
    name="concept-space",
    question="What does a diffusion model learn first, and what can it draw before it shows it?",
    paper="C, section 5, and the concept-space papers it builds on",
    about=(
        "A model that never saw a small blue circle is asked for one throughout training. Its answer first swings towards the "
        "small red circles it knows, because size is the stronger signal, and turns only when colour is learned for itself. "
        "Well before that, asking for something bluer than blue already gets it. Every picture is placed in concept space by a "
        "classifier trained on real pictures of the same world."
    ),
    cost={
        "smoke": "20 s, one core",
        "laptop": "5.5 min, two cores",
        "full": "16 min, one H200, 3 to 5 seeds, 10 at a time",
    },
    settings=settings,
    compute=compute,
    claims=CLAIMS,
    draw=draw,
    describe=describe,
)
