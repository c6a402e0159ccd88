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
from typing import Any

from recombine.studies.base import Row, Study
from recombine.studies.local_scores.claims import CLAIMS
from recombine.studies.local_scores.composed import lamps, maps
from recombine.studies.local_scores.figures import draw
from recombine.studies.local_scores.parts import angles, approximation, factorisation, locality
from recombine.studies.local_scores.settings import LocalScores, settings


def compute(settings: LocalScores, lab: Any) -> Iterator[Row]:
    """Every part once a seed; rows of all parts share one stream and are told apart by `kind`."""
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
    cost={"smoke": "10 s, 1 core", "laptop": "40 s a seed, 1 core", "full": "5 min (estimate), 1 core"},
    settings=settings,
    compute=compute,
    claims=CLAIMS,
    draw=draw,
)
