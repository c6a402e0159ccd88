"""Summaries at the head of pages in docs/, with their numbers from results/, in the notation of
`findings.py`: `<!-- summary pictures -->`, and `<!-- decides A -->`: for each trained claim of a
paper its verdict and which experiment shows what decides it."""

from typing import Any

from findings import filled

Claims = dict[str, dict[str, Any]]
SUMMARIES = {
    "pictures": (
        "**At a learning rate of 1e-4 label dropout lowers level 2**: in MaskGIT by [G7: maskgit - maskgit, dropout, level 2] "
        "([G7]), in DiT by [G8: dit - dit, dropout, level 2] ([G8]), in MAR by [G9: mar - mar, "
        "dropout], in GIVT by [G9: givt - givt, dropout].",
        "**At 1e-4 with all labels MaskGIT reaches [D1: maskgit, level 2], DiT [G10: dit, level 2]**; the "
        "paper [G6: paper_maskgit] and [G10: paper_dit] ([D1], [D2], [D3]).",
        "**With the learning rate falling to nothing** MAR reaches [G28: mar, decayed, level 2], DiT [G28: dit, "
        "decayed, level 2], GIVT [G28: givt, decayed], MaskGIT [G28: maskgit, decayed] ([G28]). Averaged over three "
        "kinds of training at 1e-4 (constant rate, falling rate, no overlapping sizes; the same five seeds) DiT is "
        "above MaskGIT by [G28: dit - maskgit, mean over kinds].",
        "**At 1e-3 no difference between outputs is shown in networks of 7 layers.** There, where "
        "held-out loss is lower than at 1e-4 in all four families, MaskGIT reaches [G24: maskgit, 0.001, not "
        "clipped, level 2], GIVT [G24: givt, 0.001, not clipped], MAR [G24: mar, 0.001, not clipped], DiT "
        "[G24: dit, 0.001, not clipped] after 3,000 updates ([G23], [G24]). MaskGIT by seed: [G24: maskgit, "
        "0.001, not clipped, by seed] after 3,000 updates, [G22: maskgit, lr 1e-3, by seed] after 8,000 ([G22]).",
        "**In small networks DiT leads MaskGIT** (three layers, at 1e-3, on two CPU cores): by [G29: dit - maskgit, "
        "level 2] in seeds that were new to the claim, MAR by [G29: mar - maskgit, level 2] ([G29]). Where MaskGIT gets "
        "its labels as DiT does, DiT leads by [G31: dit - maskgit, adaln, level 2] by the linear probe and by [G31: dit - "
        "maskgit, adaln, level 2, open-set probe] by the open-set probe ([G31]); where DiT gets them as MaskGIT does, by "
        "[G34: dit, tokens - maskgit, level 2] ([G34]). In all seeds "
        "MaskGIT reaches [G25: maskgit], GIVT [G25: givt], MAR [G25: mar], DiT [G25: dit]; DiT leads by [G25: dit - "
        "maskgit, level 2] ([G25]), by the open-set probe, which refuses fragments, by [G25: dit - maskgit, open-set "
        "probe].",
        "**Which factor is wrong.** With all labels at 1e-4 MaskGIT gets the shape right in [D1: maskgit, "
        "level 2, shape] of samples, the colour in [D1: maskgit, level 2, colour], the size in [D1: maskgit, "
        "level 2, size]; DiT in [G8: dit, level 2, shape], [G8: dit, level 2, colour] and [G8: dit, level 2, "
        "size]. With dropout MaskGIT's are [G6: maskgit, dropout, level 2, shape], [G6: maskgit, dropout, "
        "level 2, colour], [G6: maskgit, dropout, level 2, size], DiT's [G8: dit, dropout, level 2, shape], "
        "[G8: dit, dropout, level 2, colour], [G8: dit, dropout, level 2, size].",
        "**All labels of a picture left out at once do DiT less harm than single ones**, by [G15: dit, "
        "guidance - dit, dropout]; in MaskGIT that is open, [G15: maskgit, guidance - maskgit, dropout] "
        "([G15]).",
        "**With true values their units matter**: raw values reach [D5: values, raw, level 2] and with "
        "dropout [D5: values, raw, dropout] ([D5]), balanced ones [D5: values] and [D5: values, dropout] "
        "(three seeds, [G13]).",
        "**With the auxiliary loss large circuits (20 % of units) overlap less**, by [D9: mean fall of the overlap] "
        "([D9], by a size chosen after five seeds); small ones (1 %) overlap more. The share of heads that respond to "
        "several factors falls by [D8: share of polysemantic heads, fall] (paper: 0.12; [D8]).",
        "**That it makes MaskGIT compose is not shown**: level 2 rises by [D6: jepa - maskgit, level 2] where "
        "labels are dropped ([D6]; paper: 0.44), by [B46: jepa, all labels, lr 1e-3 - maskgit, all labels, lr 1e-3, "
        "level 2] with all labels at 1e-3 ([B46]) and by [G26: jepa, averaged - maskgit, averaged, level 2] in small "
        "networks ([G26]).",
        "**Tokenizers trained on the seen combinations alone**: a VAE reconstructs level 2 in [D10:"
        " vae, seen, level 2] of pictures, FSQ in [D10: fsq, seen, level 2], VQ in [D10: vq, seen, "
        "level 2] (oracle; [D10]).",
    ),
    "jitter": (
        "**With true values and wide jitter a small U-Net composes, without jitter it does not**: [B30: wide "
        "jitter, level 2] against [B30: no jitter, level 2] ([B30]).",
        "**Of four families with wide jitter** MAR reaches [B18: mar, wide, level 2], DiT [B18: dit, wide, level "
        "2], MaskGIT [B18: maskgit, wide, level 2], GIVT [B18: givt, wide, level 2], and none anything without "
        "jitter ([B18]).",
        "**With classes one seed shows no common direction** ([B40]).",
        "**With the usual jitter and true values little of level 2 is accepted by the oracle**: [B31: dit, "
        "oracle] in DiT to [B33: mar, oracle] in MAR ([B31], [B33]).",
        "**With values in balanced units the oracle accepts more of level 1** by [B4: balanced - raw, level 1] "
        "([B4]).",
    ),
    "scenes": (
        "Exp 1, all locations as a grid: [S1: K_max of exp1] ([S1]; paper B: 7).",
        "Exp 2, one location as a grid: [S2: K_max of exp2] ([S2]; paper B: 2).",
        "Exp 3, all locations as a list: [S3: K_max of exp3] ([S3]; paper B: 3).",
        "Exp 2L, one location and a local network: [S4: K_max of exp2L] with tokens, [S4: K_max of "
        "exp2L, patches, longer] with U-Nets on patches ([S4]; paper B: 9).",
        "Exp 3L, a list and a local network: [S5: K_max of exp3L] with tokens, [S5: K_max of exp3L, "
        "patches] with U-Nets on patches ([S5]; paper B: 9).",
    ),
}
PAPER_A = {
    "D1": (
        "Label dropout does what the paper sees: at 1e-4 level 2 is [G7: maskgit] with all labels and [G6: "
        "maskgit, dropout] with dropout (five seeds; G6, G7). With all labels single runs fail as well: level 2 "
        "by seed is [G22: maskgit, lr 1e-3, by seed] at 1e-3 (G22), [G28: maskgit, decayed, by seed] at 1e-4 with a "
        "rate that falls to nothing (G28) and [G19: maskgit, apart, by seed] without overlapping sizes (G19). Small "
        "MaskGITs with all labels reach [G25: maskgit], by a probe that refuses fragments [G25: maskgit, open-set probe] (G25)."
    ),
    "D2": (
        "GIVT leads MaskGIT by [D2: givt - maskgit, level 2] at 1e-4 and by [G24: givt, 0.001, not clipped - "
        "maskgit, 0.001, not clipped, level 2] at 1e-3 (G24), where the paper's lead is 0.69. Label dropout "
        "has the larger effect: without it the four families lie between [G7: maskgit] and [G10: givt], with "
        "it between [G6: maskgit, dropout] and [G9: givt, dropout] (G6 to G10). In small models GIVT leads by "
        "[G25: givt - maskgit, level 2] (G25)."
    ),
    "D3": (
        "With all labels DiT misses the size most (shape, colour and size are right in [G8: dit, level 2, "
        "shape], [G8: dit, level 2, colour] and [G8: dit, level 2, size]), MAR colour and size ([G10: mar, "
        "level 2, shape], [G10: mar, level 2, colour], [G10: mar, level 2, size]). With the "
        "learning rate falling to nothing MAR has [G28: mar, decayed, by seed] by seed and DiT [G28: dit, decayed, by "
        "seed]; that this raises them is not shown (MAR [G28: mar, decayed - mar, level 2], DiT [G28: dit, decayed - "
        "dit, level 2]; G28). Without overlapping sizes DiT has [G19: dit, apart] as well (G19). Dropout lowers MAR to "
        "[G9: mar, dropout] and DiT to [G9: dit, dropout]. In small networks DiT leads MaskGIT by [G29: dit - maskgit, "
        "level 2] in new seeds, MAR by [G29: mar - maskgit, level 2] (G29). With labels by adaLN, as DiT has them, MAR "
        "gets the colour right in [G33: mar, adaln, level 2, colour], the size in [G33: mar, adaln, level 2, size] and all "
        "three in [G33: mar, adaln]; by seed these vary widely (G33)."
    ),
    "D4": (
        "Between VQ and VAE latents no difference is seen ([D4: dit on vae, weak signal - dit, weak signal, "
        "level 2]). Seeds differ: on VQ latents from [D4: dit, weak signal, lowest seed] to [D4: dit, weak "
        "signal, highest seed]. The colour is right in [D4: dit, weak signal, level 2, colour], the shape in "
        "[D4: dit, weak signal, level 2, shape], the size in [D4: dit, weak signal, level 2, size]."
    ),
    "D5": (
        "Dropout lowers level 2 with classes and with raw values. The units of true values matter: balanced "
        "values reach [D5: values], raw ones [D5: values, raw] (G13, G14)."
    ),
    "D6": (
        "In ten seeds the mean rise is [D6: jepa - maskgit, level 2], which excludes a mean rise of 0.25 after 8,000 "
        "updates. Single runs differ: level 2 by seed is [D6: maskgit, by seed] without the loss and [D6: jepa, by "
        "seed] with it. Of all pairs of one run each a share of [D6: share of pairs of runs that pass] passes (0.15 or "
        "less without, 0.25 more with it), [D6: share of pairs of runs with the paper's rise] with the paper's rise. "
        "With all labels at 1e-3 the rise is [B46: jepa, all labels, lr 1e-3 - maskgit, all labels, lr 1e-3, level 2] "
        "(B46), in small models [G26: jepa, averaged - maskgit, averaged, level 2] (G26). Why runs differ is open: "
        "new networks on two tokenizers differ by [B41: jepa, tokenizer 2 - jepa, tokenizer 4, level 2] (B41), three "
        "of 24,000 updates reach [B42: jepa, longer, level 2] (B42); without the loss the start of the network "
        "explains no more than chance (B45)."
    ),
    "D7": (
        "Several layers lead one by [D7: jepa - jepa, one layer, level 2]: the interval holds 0 and the 0.1 that was "
        "expected. Neither is shown to make MaskGIT compose (D6)."
    ),
    "D8": (
        "Two halves of the seeds disagree: the share of heads falls by [D8: fall, seeds before 5] in those before 5 "
        "and by [D8: fall, seeds from 5 on] in the others. With the loss it is [D8: jepa, share by seed] by seed, "
        "without it [D8: maskgit, share by seed]. It falls in [D8: share of layers in which it falls] of layers, "
        "where more than half was expected. Why is not known."
    ),
    "D9": (
        "The size of circuits: it holds for large ones in every seed, and not for small ones. The size was chosen "
        "after five seeds; in five trained later the mean overlap falls by [D9: mean fall, seeds from 5 on]."
    ),
    "D10": (
        "The kind of bottleneck: trained on seen combinations alone a VAE keeps [D10: vae, seen, level 2] of "
        "level 2, VQ [D10: vq, seen, level 2]."
    ),
}
PAPER_B = {
    "S1": (
        "Not known yet. Exp 1 has [S1: exp1, seeds] by seed, one less than the paper in most. After half of the "
        "updates the mean is nearly the same. A larger network was not run."
    ),
    "S2": "Holds in every seed; it fails at two objects, within the numbers of training.",
    "S3": "Holds in every seed.",
    "S4": (
        "Holds in both forms. U-Nets on patches need longer training: [S4: exp2L, patches] after 16,000 updates, [S4: "
        "K_max of exp2L, patches, longer] after 32,000. Three of their eight seeds were added because five gave "
        "[S4: exp2L, patches, longer, seeds before 5]. "
        "3 x 3 cells place about as many, 7 x 7 and more fewer (two seeds, 16,000 updates, B13)."
    ),
    "S5": "Holds in every seed, in both forms of the local network.",
    "S6": (
        "Holds for the U-Net on patches, which has a quarter of the updates. In U-Nets with all updates K_max falls from "
        "[B13: exp2L, patches, reach 1] at 3 x 3 cells to [B13: exp2L, patches, reach 4] at 9 x 9, in tokens from [B13: "
        "exp2L, reach 1] to [B13: exp2L, reach 4] (two seeds, B13). Tokens that see the whole picture have [S6: exp2L, "
        "whole, seeds] (two seeds), above the limit. That locality is the cause is not shown."
    ),
    "S7": (
        "The noise level: the lead of Exp 1 over Exp 3 in pixel locality grows from [S7: pixel, exp1 - exp3, "
        "lowest noise] at the lowest to [S7: pixel, exp1 - exp3, highest noise] at the highest; a mean of 0.05 "
        "or more was expected. Conditional locality differs by [S7: condition locality, exp1 - exp3]."
    ),
    "S8": (
        "Holds in every seed: [S8: rank correlation within a seed]; over the networks whose locality is learned "
        "[S8: rank correlation, locality learned, not built in]."
    ),
    "S9": (
        "Seeds: three runs in earlier settings are in the paper's order. Going beyond the five objects of "
        "training is not shown: K_max with a cluttered background is [S9: cluttered, seeds]."
    ),
    "S10": (
        "The colours are in the paper's order ([S10: cross pairs in the paper's order] of the cross pairs); its two "
        "groups differ by [S10: exact match with yellow, composing - failing], where 0.2 was expected. Most "
        "samples of colours that do not compose hold one object. Given locations as well, a local model composes all "
        "pairs, [B47: exact match at locations, local]; a global one matches in [B47: global, mean over pairs] (B47)."
    ),
}
PAPER_C = {
    "C3": (
        "The network: in the U-Net size is first in every world, in the DiT the order flips (three seeds for "
        "most parts). The public code's settings were not run."
    ),
    "C6": "Not known: three seeds, wide intervals. The public code's settings were not run.",
}
DECIDES = {"A": PAPER_A, "B": PAPER_B, "C": PAPER_C}


def summary(claims: Claims, page: str) -> str:
    return "\n".join(f"- {filled(text, claims)}" for text in SUMMARIES[page])


def deciding(claims: Claims, paper: str) -> list[list[str]]:
    """A line for each claim: what it says, its verdict, what decides it."""
    lines = [["claim", "says", "verdict", "what the runs show"]]
    for name, text in DECIDES[paper].items():
        claim = claims[name]
        lines.append([name, claim["statement"], claim["verdict"], filled(text, claims)])
    return lines
