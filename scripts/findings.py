"""The findings in README.md, with their numbers from results/: [B18: mar, wide, level 2] stands for
the estimate, interval and n of that part of claim B18, [B18] for the claim's verdict;
a value among those measured is given alone."""

import re
import textwrap
from typing import Any

from claim_tables import number, shown

TEXTS = (
    "**In the mean over five seeds, label dropout lowers composition in all four families.** In our best "
    "guess of paper A's setting, hiding each factor's label in a tenth of the training pictures lowers "
    "level-2 accuracy by the paper's linear probe: MaskGIT from [G7: maskgit] to [G6: maskgit, dropout], by "
    "[G7: maskgit - maskgit, dropout, level 2] ([G7]); DiT from [G8: dit] to [G8: dit, dropout], by [G8: dit "
    "- dit, dropout, level 2] ([G8]); MAR from [G10: mar] to [G9: mar, dropout]; GIVT from [G10: givt] to "
    "[G9: givt, dropout]. Given true sizes and colours, not classes, DiT reaches [D5: values, raw, level 2], "
    "with dropout [D5: values, raw, dropout] ([D5]; paper: 1 and 0); in units of the distance between classes "
    "[D5: values] and [D5: values, dropout], n = 3. With all labels MaskGIT composes about as well as DiT: "
    "the paper's gap ([G6: paper_maskgit], [G10: paper_dit]) does not appear. [More](docs/pictures.md)",
    "**An exact model that composes with all labels says why, and that it takes single ones.** A picture "
    "labelled without its shape teaches that blue means circle, as in training it does; that enters the "
    "answer where the shape is given. So level 2 is learned and lost, the later the rarer labels are left out "
    "([B36], [B37], exact). Leaving out all labels at once hardly harms ([B38], exact). Small trained models "
    "agree in the mean: level 2 with all labels, without single ones, without any is [B43: maskgit], [B43: "
    "maskgit, dropout], [B43: maskgit, guidance] (MaskGIT), [B43: dit], [B43: dit, dropout], [B43: dit, "
    "guidance] (DiT; [B43]). [More](docs/missing-labels.md)",
    "**Paper A's auxiliary loss changes MaskGIT's heads and circuits in the paper's direction; whether the "
    "model then composes depends on the seed.** With the loss fewer attention heads respond to more than one "
    "factor: their share falls by [D8: share of polysemantic heads, fall] ([D8]). The fifth of all units that "
    "matters most for a combination overlaps less with another's, by [D9: mean fall of the overlap] ([D9]; "
    "this size was chosen after the run; by that written before, 5 %, it would be inconclusive, and with 1 or "
    "2 % the effect reverses). Where label dropout keeps MaskGIT from composing, level 2 rises by [D6: jepa - "
    "maskgit, level 2] ([D6]; paper: from [D6: paper_maskgit] to [D6: paper_jepa]): in one of five seeds to "
    "the paper's height by its probe, in another it falls, in three nothing composes with or without it. "
    "[More](docs/pictures.md)",
    "**U-Nets compose where pictures of one class vary.** Of two small U-Nets trained alike, one whose "
    "pictures vary in colour and size within each class reaches level-2 accuracy [B30: wide jitter, level 2], "
    "one whose pictures do not [B30: no jitter, level 2] ([B30]: the first interval is too wide). Four "
    "families, given true values, point the same way (DiT [B18: dit, wide, level 2] against [B10: dit, none], "
    "[B18]); given classes, variation did not decide (one seed). A model that can be solved exactly shows the "
    "same and suggests why ([B26], [B27], exact). [More](docs/pictures.md)",
    "**By the CNN probe, accuracy on an unseen combination falls before it rises**, by [C1: fall, color 0.1] "
    "where the two colours are close ([C1]; by the oracle, which rejects blurred samples, it only rises, "
    "late). Prompting for a colour beyond blue works while the plain prompt still fails, in a share of runs "
    "of [C4: share of runs with overprompting >= 0.9] ([C4]). [More](docs/concept-space.md)",
    "**As in paper B: models that place more objects than in training are local, by condition or network.** "
    "Trained on 1 to 3 objects, a model is prompted for up to nine. K_max is the largest number of locations "
    "up to which at least half of the samples have an object at each and no further ones (two where training "
    "gives one of several). Given a grid with one location a U-Net reaches K_max [S2: K_max of exp2] ([S2]; "
    "paper: 2), a list of all [S3: K_max of exp3] ([S3]; paper: 3), a grid of all [S1: K_max of exp1] ([S1]; "
    "paper: 7). Where pixels see only their surroundings, a grid with one reaches [S4: K_max of exp2L] ([S4]; "
    "paper: 9), a list [S5: K_max of exp3L] ([S5]; paper: 9). In the paper's own form, a U-Net on patches, "
    "they reach [S4: K_max of exp2L, patches, longer] ([S4]) and [S5: K_max of exp3L, patches] ([S5]). Seeing "
    "the whole picture, it fails after a quarter of the training ([S6: K_max of exp2L, patches, whole], "
    "[S6]); our token form learns locality and reaches [S6: exp2L, whole] (two seeds). Over models and "
    "checkpoints locality and K_max correlate by rank: [S8: rank correlation within a seed] ([S8]; [S8: rank "
    "correlation, locality learned, not built in] where locality is not built in). [More](docs/scenes.md)",
    "**Two published figures of swing-by do not follow from the equations beside them** (paper C, Figs 5 and "
    "10). The first needs the square of the data's second moments; the failure to learn in the second "
    "vanishes when layers are updated, not their product ([T14], exact). [More](docs/swing-by.md)",
)
CITED = re.compile(r"\[([A-Z]\d+a?)(?:: ([^\]]+))?\](?!\()")


def findings(claims: dict[str, dict[str, Any]]) -> str:
    """A numbered list, wrapped."""
    lines = []
    for index, text in enumerate(TEXTS, 1):
        filled = CITED.sub(lambda match: cited(claims[match[1]], match[2]), text)
        wrap = {"initial_indent": f"{index}. ", "subsequent_indent": "   "}
        lines += textwrap.wrap(filled, 160, break_on_hyphens=False, **wrap)
    return "\n".join(lines)


def cited(claim: dict[str, Any], part: str | None) -> str:
    if part is None:
        return f"{claim['id']}: {claim['verdict']}"
    if part in claim["measured"]:
        return number(claim["measured"][part])
    (found,) = (p for p in claim["parts"] if p["name"].lower() == part.lower())
    return f"{shown(found)}, n = {found['n']}"
