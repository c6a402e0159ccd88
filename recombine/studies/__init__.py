"""One question = one readable file. The list of studies, in the order in which a newcomer should read them."""

from importlib import import_module
from typing import TYPE_CHECKING

from recombine.config import UsageError

if TYPE_CHECKING:
    from recombine.studies.base import Study

MODULES = {
    "composition": "composition",
    "conditioning": "conditioning",
    "objectives": "objectives",
    "variation": "variation",
    "where": "where",
    "which": "which",
    "interactions": "interactions",
    "details": "details",
    "dice": "dice",
    "tokenizers": "tokenizers",
    "jepa": "jepa",
    "circuits": "circuits",
    "concept-space": "concept_space.study",
    "swing-by": "swing_by.study",
    "local-scores": "local_scores.study",
    "length": "scenes.length",
    "locality": "scenes.locality",
    "reach": "scenes.reach",
    "operator": "scenes.operator",
}
"""Study name -> module; torch is imported only when one is loaded."""
TOUR = ("composition", "swing-by", "local-scores")
"""Every pillar once."""


def find(name: str) -> "Study":
    if name not in MODULES:
        raise UsageError(f"no study {name!r}; there are {', '.join(['tour', *MODULES])}")
    return import_module(f"recombine.studies.{MODULES[name]}").STUDY
