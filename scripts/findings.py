"""The findings in README.md, with their numbers from results/: [B18: mar, wide, level 2] stands for
the estimate, interval and n of that part of claim B18, [B18] for the claim's verdict;
a value among those measured is given alone."""

import re
import textwrap
from typing import Any

from numbers_as_text import number, shown

TEXTS = (
    "**At a learning rate of 1e-4 label dropout lowers composition, in models of categories and of "
    "continuous values.** In our best guess of paper A's setting, each label left out of a tenth of the "
    "training pictures lowers level-2 accuracy by the paper's linear probe in MaskGIT by [G7: maskgit - "
    "maskgit, dropout, level 2], in DiT by [G8: dit - dit, dropout, level 2], in MAR by [G9: mar - mar, "
    "dropout], in GIVT by [G9: givt - givt, dropout]; that it is 0.3 or more is not established ([G7], "
    "[G8]). In an exact model, made afterwards, "
    "a picture labelled without its shape teaches that blue means circle ([B36], [B38], exact). "
    "[More](docs/pictures.md), [theory](docs/missing-labels.md)",
    "**With all labels DiT leads MaskGIT in small networks, by less than half of the paper's lead; in larger ones, or "
    "where labels enter alike, the paper's probe does not establish a lead.** In networks small enough for two cores DiT "
    "leads at level 2 by [G29: dit - maskgit, level 2] in seeds new to the claim, MAR by [G29: mar - maskgit, level 2] "
    "([G29]; paper: 0.84, 0.82, one run each); where labels enter both as in DiT by [G31: dit - maskgit, adaln, level 2] "
    "(by the oracle [G31: dit - maskgit, adaln, oracle]; "
    "[G31]), as in MaskGIT by [G34: dit, tokens - maskgit, level 2] "
    "([G34]). In networks of 7 layers the lead is [G32: dit - maskgit] with labels as usual. [More](docs/pictures.md)",
    "**With paper A's auxiliary loss MaskGIT's large circuits overlap less; that it composes better is not shown.**"
    " The overlap falls by [D9: mean fall of the overlap] ([D9], by a size of circuits chosen after five seeds), "
    "the share of attention heads that respond to several factors by [D8: share of polysemantic heads, fall] ([D8]:"
    " [D8: fall, seeds before 5] and [D8: fall, seeds from 5 on] in two halves). Where label dropout keeps MaskGIT "
    "from composing, level 2 rises by [D6: jepa - maskgit, level 2], which excludes a mean rise of 0.25 ([D6]; "
    "paper: from [D6: paper_maskgit] to [D6: paper_jepa], one run each). [More](docs/pictures.md)",
    "**Conditioned on true values, a small U-Net composes where colours and sizes vary widely within a "
    "class, and not where they do not**: [B30: wide jitter, level 2] and [B30: no jitter, level 2] "
    "([B30]: the first interval is too wide). With wide jitter DiT reaches [B18: "
    "dit, wide, level 2], MAR [B18: mar, wide], MaskGIT [B18: maskgit, wide], GIVT [B18: givt, wide], and"
    " none composes without ([B18]). Conditioned on classes probes disagree (one seed, [B40]). In an "
    "exact model two of three priors need it ([B26], [B27], exact). [More](docs/jitter.md)",
    "**By the CNN probe a U-Net's accuracy on an unseen combination falls before it rises**, by [C1: "
    "fall, color 0.1] where the two colours are close ([C1]). No ability is lost: where the fall begins, "
    "the probe reads blue as often for red prompts. By the oracle it does not fall. Prompting for a "
    "colour beyond blue works while the plain prompt still fails, in a share of runs of [C4: share of "
    "runs with overprompting >= 0.9] ([C4]). [More](docs/concept-space.md)",
    "**The more locally a model depends on its conditions, the more objects it places**: over models and "
    "checkpoints locality and K_max, the number of objects placed reliably, correlate by rank, [S8: rank "
    "correlation within a seed] ([S8]), [S8: rank correlation, locality learned, not built in] without local "
    "networks. Trained on 1 to 3 objects, a U-Net reaches [S2: K_max "
    "of exp2] given one location ([S2]; paper: 2), [S3: K_max of exp3] given a list of all "
    "([S3]; paper: 3), [S1: K_max of exp1] given a grid of all ([S1]; paper: 7). Local"
    " U-Nets on patches reach [S5: K_max of exp3L, patches] given the list ([S5]; paper: 9) and [S4: "
    "K_max of exp2L, patches, longer] given one location ([S4]; paper: 9; trained longer, three seeds "
    "added, as it fell short). Seeing 9 x 9 of 16 x 16 cells they reach [B13: exp2L, patches, reach 4], tokens [B13: "
    "exp2L, reach 4] (two seeds), the whole picture [S6: K_max of exp2L, patches, whole] ([S6], a "
    "quarter of the updates). [More](docs/scenes.md)",
    "**Of two colours, added at two locations far apart, a local network shows both, a global one seldom**: exact "
    "matches are [B47: exact match at locations, local] and [B47: global, mean over pairs] ([B47], by limits set when the "
    "latter was known). [More](docs/scenes.md)",
    "**Two published figures of swing-by do not follow from gradient descent on the equations beside "
    "them** (paper C). The code of the first squares the second moments; what the second does not learn is "
    "learned slowly if layers, not their product, are updated ([T14], exact). [More](docs/swing-by.md)",
)
CITED = re.compile(r"\[([A-Z]\d+a?)(?:: ([^\]]+))?\](?!\()")


def findings(claims: dict[str, dict[str, Any]]) -> str:
    """A numbered list, wrapped."""
    lines = []
    for index, text in enumerate(TEXTS, 1):
        wrap = {"initial_indent": f"{index}. ", "subsequent_indent": "   "}
        lines += textwrap.wrap(filled(text, claims), 160, break_on_hyphens=False, **wrap)
    return "\n".join(lines)


def filled(text: str, claims: dict[str, dict[str, Any]]) -> str:
    """A text with its numbers."""
    return CITED.sub(lambda match: cited(claims[match[1]], match[2]), text)


def cited(claim: dict[str, Any], part: str | None) -> str:
    if part is None:
        return f"{claim['id']}: {claim['verdict']}"
    if part in claim["measured"]:
        value = claim["measured"][part]
        return value if isinstance(value, str) else number(value)
    (found,) = (p for p in claim["parts"] if p["name"].lower() == part.lower())
    return f"{shown(found)}, n = {found['n']}"
