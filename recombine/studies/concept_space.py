"""What does a diffusion model learn first, and what can it generate before it shows it?

A model is trained on red and blue circles, large and small, but never on small blue ones, and
prompted for them all along. Its answer first swings towards the small red circles it knows, because
size is the stronger signal, and turns only when colour is learned for itself. Well before that,
prompting for something bluer than blue already gets it. Circles (worlds/circles.py) with colour and
size signals that can be set; a U-Net and a transformer, conditioned on the true values; about 60
checkpoints, at each of which a CNN probe trained on real pictures of the same world says where the
samples lie in concept space. Three concepts, captions that leave out the colour, and the theory of
swing-by, given the world's own pixels, stand beside it.

Run: `recombine run concept-space --scale laptop` (a dip, a turn and a hidden ability, 5 min on two
cores); `--scale full`: 81 short runs, 16 min on one GPU."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from recombine.analysis.concepts import outcomes
from recombine.analysis.table import Table
from recombine.pipeline.job import Job, seed_by_seed
from recombine.plots import concept_curves, concept_order, prompting
from recombine.plots.style import Figure
from recombine.runs.concepts import ConceptProbeCheck, ConceptRun, net_name
from recombine.store import Row
from recombine.studies.concept_claims import CLAIMS
from recombine.studies.concept_settings import ConceptSpace, settings
from recombine.studies.study import Study, described
from recombine.theory.predict import SPACES, signals
from recombine.worlds.circles import Circles


def jobs(settings: ConceptSpace, seeds: int) -> list[Job]:
    """Every variant over its seeds, and the check of its probe."""
    checks, runs = [], []
    for run, more in settings.variants():
        checks.append(Job.of(probe_check(run), variant=run.name))
        for seed in range(seeds + more):
            seeded_run = replace(run, recipe=run.recipe.with_seed(seed))
            runs.append(Job.of(seeded_run, variant=run.name, seed=seed))
    return seed_by_seed(checks + runs)


def probe_check(run: ConceptRun) -> ConceptProbeCheck:
    e = run.recipe.evaluation
    return ConceptProbeCheck(run.world, e.probe_steps, run.recipe.split.seen, e.real)


def facts(settings: ConceptSpace, seeds: int) -> Iterator[Row]:
    """The facts of every variant, and what the theory makes of its world before any training."""
    for run, _ in settings.variants():
        yield variant_facts(settings, run)
        if run.recipe.conditioning.mode == "continuous":
            yield from signal_rows(run)


def variant_facts(settings: ConceptSpace, run: ConceptRun) -> Row:
    world, conditioning = run.world, run.recipe.conditioning
    return {
        "kind": "variant facts",
        "variant": run.name,
        "net": net_name(run.recipe.net),
        "embedding_scale": conditioning.embedding_scale,
        "color_signal": world.color_signal,
        "size_signal": world.size_signal,
        "background_signal": world.background_signal,
        "masked": run.masked,
        "conditioned_on": "value" if conditioning.mode == "continuous" else "class",
        "main": int(settings.is_main(run)),
        "weak": int(run.prompting is not None),
    }


def signal_rows(run: ConceptRun) -> Iterator[Row]:
    """The signal and the rate of every factor, in every space."""
    for space in SPACES:
        measured = signals(run.world, space, run.recipe.conditioning.embedding_scale)
        for name, mu, a in zip(measured.names, measured.mu, measured.a.values(), strict=True):
            where = {"kind": "signal", "variant": run.name, "space": space, "factor": name}
            yield {**where, "mu": mu, "a": a}


def figures(rows: Table, folder: Path) -> list[Figure]:
    variants = outcomes(rows)
    made = concept_curves.figures(rows, variants, folder)
    made += concept_order.figures(variants, folder)
    return made + prompting.figures(rows, variants, folder)


def describe(settings: ConceptSpace) -> dict[str, Any]:
    return replace(settings.recipe, world=Circles()).facts()


STUDY = Study(
    name="concept-space",
    **described(__doc__),
    paper="C, section 5, and the concept-space papers it builds on",
    cost={
        "smoke": "20 s, one core",
        "laptop": "5.5 min, two cores",
        "full": "16 min, one H200, 3 to 5 seeds, 10 at a time",
    },
    settings=settings,
    jobs=jobs,
    claims=CLAIMS,
    figures=figures,
    facts=facts,
    describe=describe,
    run_minutes=0.5,
)
