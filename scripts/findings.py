"""The findings in README.md, with their numbers from results/: [B18: mar, wide, level 2] stands for
the estimate, interval and n of that part of claim B18, [B18] for the claim's verdict;
a value among those measured is given alone."""

import re
import textwrap
from typing import Any

from claim_tables import number, shown

TEXTS = (
    "**Within-class jitter decides composition.** Of two small U-Nets trained alike on the same "
    "four combinations, the one whose pictures vary within each class reaches level-2 accuracy "
    "[B30: wide jitter, level 2], the other [B30: no jitter, level 2] ([B30]; this is what `make "
    "run` shows). With 3-4x the usual jitter, DiT reaches [B18: dit, wide, level 2] (without "
    "jitter [B10: dit, none]), MAR [B18: mar, wide, level 2], MaskGIT [B18: maskgit, wide, level "
    "2], GIVT [B18: givt, wide, level 2] ([B18]). An exactly solvable model shows why ([B26], "
    "[B27]). [More](docs/pictures.md)",
    "**Accuracy on an unseen combination falls before it rises**, by [C1: fall, color 0.1] where "
    "the two colours are close ([C1]). Prompting for *more* than blue works while the plain prompt "
    "still fails, in a share of runs of [C4: share of runs with overprompting >= 0.9] ([C4]). "
    "[More](docs/concept-space.md)",
    "**The scale of the condition embedding, not pixel contrast, limits how fast a DiT learns a "
    "factor.** With the same pictures and an embedding that gives all factors the same scale, it "
    "learns colour in a share of the steps of [B5: T_color, balanced / raw, DiT, color 0.1] "
    "([B5]). [More](docs/concept-space.md)",
    "**Length generalization needs local conditioning.** Trained on scenes of 1 to 3 objects, a "
    "U-Net that is given a grid of all locations places up to [S1: K_max of exp1] objects "
    "([S1]), given one location [S2: K_max of exp2] ([S2]), given a list [S3: K_max of exp3] "
    "([S3]). Given one location, a network that sees only a neighbourhood of each pixel places "
    "[S4: K_max of exp2L] ([S4]). [More](docs/scenes.md)",
    "**Published figures of swing-by dynamics in two-layer networks integrate the square of the "
    "data's second moment in place of the moment itself**, and one published failure to learn is "
    "an artefact of the update rule ([T14], exact). [More](docs/swing-by.md)",
)
CITED = re.compile(r"\[([A-Z]\d+a?)(?:: ([^\]]+))?\](?!\()")


def findings(claims: dict[str, dict[str, Any]]) -> str:
    """A numbered list, wrapped."""
    lines = []
    for index, text in enumerate(TEXTS, 1):
        filled = CITED.sub(lambda match: cited(claims[match[1]], match[2]), text)
        wrap = {"initial_indent": f"{index}. ", "subsequent_indent": "   "}
        lines += textwrap.wrap(filled, 150, break_on_hyphens=False, **wrap)
    return "\n".join(lines)


def cited(claim: dict[str, Any], part: str | None) -> str:
    if part is None:
        return f"{claim['id']}: {claim['verdict']}"
    if part in claim["measured"]:
        return number(claim["measured"][part])
    (found,) = (p for p in claim["parts"] if p["name"].lower() == part.lower())
    return f"{shown(found)}, n = {found['n']}"
