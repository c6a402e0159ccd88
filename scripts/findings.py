"""The findings in README.md, with their numbers from results/: [B18: mar, wide, level 2] stands for
the estimate, interval and n of that part of claim B18, [B18] for the claim's verdict;
a value among those measured is given alone."""

import re
import textwrap
from typing import Any

from claim_tables import number, shown

TEXTS = (
    "**Label dropout destroys composition whatever a model outputs** (in paper A's setting; a lead, "
    "with four seeds). With a tenth of the labels left out in training, level-2 accuracy falls in "
    "all four families: MaskGIT from [G7: maskgit] to [G6: maskgit, dropout], by [G7: maskgit - "
    "maskgit, dropout, level 2] ([G7]); DiT from [G8: dit] to [G8: dit, dropout], by [G8: dit - dit, "
    "dropout, level 2] ([G8]); MAR from [G10: mar] to [G9: mar, dropout]; GIVT from [G10: givt] to "
    "[G9: givt, dropout]. [More](docs/pictures.md)",
    "**Within-class jitter decides composition.** With 3-4x the usual jitter of colour and size, "
    "level-2 accuracy rises (DiT from [B10: dit, none] without jitter) to: DiT [B18: dit, wide, level 2], MAR "
    "[B18: mar, wide, level 2], MaskGIT [B18: maskgit, wide, level 2], GIVT [B18: givt, wide, "
    "level 2] ([B18]). An exactly solvable model shows why ([B26], [B27]). [More](docs/pictures.md)",
    "**Accuracy on an unseen combination falls before it rises**, by [C1: fall, color 0.1] at "
    "colour signal 0.1 ([C1]). Prompting for *more* than blue works while the plain prompt still "
    "fails, in a share of runs of [C4: share of runs with overprompting >= 0.9] ([C4]). "
    "[More](docs/concept-space.md)",
    "**Length generalization needs local conditioning.** Trained on 1 to 3 objects, a U-Net places "
    "up to [S1: K_max of exp1] conditioned on a grid of all objects ([S1]), [S2: K_max of exp2] on "
    "one of them ([S2]), [S3: K_max of exp3] on a list ([S3]); a local network [S4: K_max of "
    "exp2L] ([S4]). [More](docs/scenes.md)",
    '**Published two-layer swing-by figures integrate A^2 in place of A**, and one "failure to '
    'learn" is an artefact of how W is updated ([T14], exact). [More](docs/swing-by.md)',
)
CITED = re.compile(r"\[([A-Z]\d+a?)(?:: ([^\]]+))?\](?!\()")


def findings(claims: dict[str, dict[str, Any]]) -> str:
    """A numbered list, wrapped."""
    lines = []
    for index, text in enumerate(TEXTS, 1):
        filled = CITED.sub(lambda match: cited(claims[match[1]], match[2]), text)
        wrap = {"initial_indent": f"{index}. ", "subsequent_indent": "   "}
        lines += textwrap.wrap(filled, 130, break_on_hyphens=False, **wrap)
    return "\n".join(lines)


def cited(claim: dict[str, Any], part: str | None) -> str:
    if part is None:
        return f"{claim['id']}: {claim['verdict']}"
    if part in claim["measured"]:
        return number(claim["measured"][part])
    (found,) = (p for p in claim["parts"] if p["name"].lower() == part.lower())
    return f"{shown(found)}, n = {found['n']}"
