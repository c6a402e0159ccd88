"""Claims C1-C6 and B2; how each is judged stands in `judges` and `foresight`."""

from recombine.studies.base import Claim
from recombine.studies.concept_space.foresight import judge_order, judge_prediction, judge_told
from recombine.studies.concept_space.judges import (
    judge_dip,
    judge_emergence,
    judge_hidden,
    judge_masked,
    judge_speed,
)

CLAIMS = (
    Claim(
        "C1",
        "C, Fig 6; concept-space papers",
        "Where the colour signal is weak, accuracy on the unseen composition falls before it rises.",
        "a fall of at least 0.1, then above 0.5, at every weak signal, 5 seeds (paper: 0.25 to below 0.1, then 0.55)",
        judge_dip,
        trained=True,
        interval_of="of the deepest fall",
    ),
    Claim(
        "C2",
        "C, section 5; concept-space papers",
        "The stronger the colour signal, the sooner colour is learned.",
        "steps to learn colour fall at every step of the line, over at least 5 signals (paper: 15.7k to 3.3k)",
        judge_speed,
        trained=True,
    ),
    Claim(
        "C3",
        "C, section 5; concept-space papers",
        "Which concept comes first flips with the ratio of the signals, where the rates a of the theory meet.",
        "both orders with each network, and a from pixels right in at least 90 % of worlds (paper: flip at 0.4 to 0.5)",
        judge_order,
        trained=True,
    ),
    Claim(
        "C4",
        "concept-space papers",
        "The ability is there before it shows: asking for more than blue succeeds while asking for blue still fails.",
        "overprompting >= 0.9 at a checkpoint where plain prompting is <= 0.4, in most runs that fail when asked plainly",
        judge_hidden,
        trained=True,
        interval_of="of overprompting while plain asking fails",
    ),
    Claim(
        "C5",
        "Okawa et al., Fig 6",
        "Compositional ability emerges multiplicatively: with three concepts the joint accuracy jumps late, while the mean "
        "over concepts grows smoothly.",
        "largest rise of joint >= 1.3 times that of the mean, and halfway at least 10 % later (paper: 0.47 against 0.16)",
        judge_emergence,
        trained=True,
        interval_of="largest rise of joint - of mean",
    ),
    Claim(
        "C6",
        "concept-space papers",
        "Captions that leave out a colour bend the unseen composition back to the colour seen, and slow learning.",
        "blue falls with the share of silent captions, by 0.2 or more, and is learned no sooner, in each way of telling run",
        judge_masked,
        trained=True,
        interval_of="of blue where all are silent",
    ),
    Claim(
        "B2",
        "beyond the papers",
        "The rates of structured identity mapping, computed from a world's own pixels, predict the order in which a "
        "transformer learns its factors.",
        "rank correlation of predicted and measured times >= 0.7, and the order right in >= 90 % of worlds (transformer)",
        judge_prediction,
        trained=True,
    ),
    Claim(
        "B5",
        "beyond the papers",
        "What makes a concept weak is how quietly it is told, not how faintly it shows: the same pictures, with conditions in "
        "units of the distance between classes, are learned sooner and without the fall.",
        "weakest colour learned in half the steps or fewer, and the fall below 0.1 or halved in every world told both ways",
        judge_told,
        trained=True,
    ),
)
