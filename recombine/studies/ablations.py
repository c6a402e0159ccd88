"""Which details decide whether categories or values compose?

The MaskGIT and the DiT of `objectives`, as they are there (base) and with one detail changed at a
time, the same for both. None of them is what a model is trained to output:

- classes: both are conditioned on the class of colour and size, not on the true value;
- centres: the same, but as numbers: the centre of the class goes through the MLP of a true value;
- far: objects go anywhere in the picture; position is no condition and is not scored;
- few: the training set holds 1,500 pictures of each composition, seen often, and not 60,000;
- longer: three times the updates;
- small: a transformer of half the depth (rounded down) and half the width, a ninth of the weights;
- cool: tokens are sampled at temperature 0.7; MaskGIT only, since DiT has no temperature;
- codes: the tokenizer alone is trained with wide within-class jitter;
- pictures: the model alone is, and its tokenizer is not.

The amount of within-class jitter has a study of its own, `jitter`. Tokenizers change there with the
pictures; the last two ablations separate them.

Not in the papers. Paper A does not say which labels its figure 3 used. Labels, positions and few
pictures were chosen because first trials on one seed depended on them; centres then ask why labels
matter. Claims were written down before the seeds that decide them were run, except those on `base`,
which `objectives` and `jitter` sample too.

Run: `recombine run ablations --scale laptop` (on two cores), `--scale full` (on a GPU).
"""

from collections.abc import Callable
from dataclasses import field, replace
from functools import partial
from math import copysign
from statistics import fmean

from recombine.analysis.claims import Claim, Finding, Measured, Part, claim
from recombine.analysis.estimates import Estimate, mean, rate_difference_of_differences
from recombine.analysis.levels import (
    PROBES,
    at_level,
    gain_of,
    late,
    measured,
    per_seed,
    same_seeds,
)
from recombine.analysis.table import Table
from recombine.config import config
from recombine.nets.dit import DiTConfig
from recombine.nets.net_config import NetConfig
from recombine.plots import training
from recombine.runs.recipe import WIDE, Recipe
from recombine.studies import objectives
from recombine.studies.objectives import Family, Objectives
from recombine.studies.study import Scale, Study, described, recipe_facts
from recombine.worlds.shapes2d import Shapes2D

FAMILIES: tuple[Family, ...] = ("maskgit", "dit")
ABLATIONS = (
    "base", "classes", "centres", "far", "few", "longer", "small", "cool", "codes", "pictures",
)  # fmt: skip


@config("settings/ablations")
class Ablations:
    """`far`: the share of the free room that positions use; `few`: pictures of each composition;
    `longer`: how many times the updates; `cool`: the temperature; `wide`: the jitter of colour and
    of size."""

    recipe: Recipe = field(default_factory=objectives.full)
    ablations: tuple[str, ...] = ABLATIONS
    far: float = 1.0
    few: int = 1500
    longer: int = 3
    cool: float = 0.7
    wide: tuple[float, float] = WIDE

    def __post_init__(self) -> None:
        if not isinstance(self.recipe.world, Shapes2D):
            raise ValueError("recipe.world: this study moves the objects of Shapes2D")
        if wrong := [a for a in self.ablations if a not in ABLATIONS]:
            raise ValueError(f"ablations: {wrong[0]} is none of {', '.join(ABLATIONS)}")
        if not self.ablations or len(set(self.ablations)) < len(self.ablations):
            raise ValueError(f"ablations: one or more of {', '.join(ABLATIONS)}, each once")
        self.variants()

    def changed(self, ablation: str) -> Recipe:
        base, train, evaluation = self.recipe, self.recipe.train, self.recipe.evaluation
        match ablation:
            case "classes" | "centres":
                mode = "quantised" if ablation == "classes" else "centres"
                return replace(base, conditioning=replace(base.conditioning, mode=mode))
            case "far":
                return replace(base, world=replace(base.world, wander=self.far))
            case "few":
                return replace(base, pool=self.few)
            case "longer":
                return replace(base, train=replace(train, steps=self.longer * train.steps))
            case "small":
                return replace(base, net=halved(base.net))
            case "cool":
                decoding = replace(evaluation.decoding, temperature=self.cool)
                return replace(base, evaluation=replace(evaluation, decoding=decoding))
            case "codes":
                return replace(base, tokenizer_world=base.with_jitter(*self.wide).world)
            case "pictures":
                return replace(base.with_jitter(*self.wide), tokenizer_world=base.world)
        return base

    def variants(self) -> dict[str, Recipe]:
        made = {a: Objectives(self.changed(a), FAMILIES).variants() for a in self.ablations}
        pairs = [(f, a) for f in FAMILIES for a in self.ablations if (f, a) != ("dit", "cool")]
        return {name_of(f, a): made[a][f] for f, a in pairs}


def halved(net: NetConfig) -> NetConfig:
    """Half as deep and half as wide; as many heads, each narrower."""
    if not isinstance(net, DiTConfig):
        raise ValueError("recipe.net: only a transformer can be halved; leave out `small`")
    inner = net.transformer
    smaller = replace(inner, depth=max(1, inner.depth // 2), width=inner.width // 2)
    return replace(net, transformer=smaller)


def name_of(family: str, ablation: str) -> str:
    return family if ablation == "base" else f"{family}, {ablation}"


def settings(scale: Scale) -> Ablations:
    recipe = objectives.settings(scale).recipe
    few = 1500 if scale == "full" else max(1, recipe.pool // 10)
    return Ablations(recipe, few=few)


def beside(rows: Table, *ablations: str, probe: str | None = None) -> Measured:
    """Both families at level 2, with what stands beside a claim."""
    return measured(rows, {name_of(f, a): None for a in ablations for f in FAMILIES}, probe)


@claim("B6")
def labels_decide(rows: Table) -> Finding:
    """Labels decide which family composes: conditioned on true values, DiT does and MaskGIT does
    not; conditioned on classes, it is the other way round.

    Expected: level 2, late means, open-set probe: DiT - MaskGIT >= 0.2 with values and <= -0.2
    with classes, at least 0.5 apart"""
    parts = (
        Part("(dit - maskgit with values) - (the same with classes)", reversal(rows), 0.5, 2.0),
        gain_of(rows, "dit", "maskgit", 0.2),
        gain_of(rows, name_of("maskgit", "classes"), name_of("dit", "classes"), 0.2),
    )
    known = rows.where(kind="accuracy").unique("probe")
    probes = [p for p in ("oracle", "cnn") if p in known]
    shown = {f"reversal, {PROBES[p]}": reversal(rows, p).value for p in probes}
    return Finding(parts, beside(rows, "base", "classes") | shown)


def reversal(rows: Table, probe: str | None = None) -> Estimate:
    """How much further DiT is ahead of MaskGIT at level 2 with values than with classes."""
    names = [name_of(f, a) for a in ("base", "classes") for f in ("dit", "maskgit")]
    values = [per_seed(rows, name, 2, late, probe) for name in names]
    same_seeds(*values)
    return rate_difference_of_differences(*(list(v.values()) for v in values))


@claim("B9")
def centres_act_like_classes(rows: Table) -> Finding:
    """What labels leave open decides, not how they enter: conditioned on the centres of classes as
    numbers, both families do as with classes.

    Expected: level 2, late means, open-set probe: centres make at least 0.7 of the difference that
    classes make, in both families"""
    # LookupError where labels make no difference: there is nothing to explain.
    shown = beside(rows, "base", "classes", "centres")
    parts = []
    for family in FAMILIES:
        base, classes, centres = (
            per_seed(rows, name_of(family, a), 2) for a in ("base", "classes", "centres")
        )
        same_seeds(base, classes, centres)
        total = fmean(classes[s] - base[s] for s in base)
        if abs(total) < 0.2:
            raise LookupError("labels make no difference here: there is nothing to explain")
        excess = [copysign(1, total) * beyond(base[s], classes[s], centres[s]) for s in base]
        parts.append(Part(f"{family}: beyond 0.7 of the difference", mean(excess, -2, 2), 0.0))
        share = fmean(centres[s] - base[s] for s in base) / total
        shown[f"{family}, share of the difference"] = share
    return Finding(tuple(parts), shown)


def beyond(base: float, classes: float, centres: float) -> float:
    """How far centres go from base beyond 0.7 of the difference that classes make."""
    return (centres - base) - 0.7 * (classes - base)


def gains(rows: Table, more: str, less: str, ablations: tuple[str, ...]) -> Finding:
    """One variant is 0.3 above another at level 2."""
    return Finding((gain_of(rows, more, less, 0.3),), beside(rows, *ablations))


@claim("B20")
def rest_does_not_help(rows: Table) -> Finding:
    """Longer training, a smaller network and a lower temperature do not make MaskGIT compose.

    Expected: level 2 of MaskGIT <= 0.3 with each of them; late means, open-set probe"""
    changes = ("longer", "small", "cool")
    parts = tuple(at_level(rows, name_of("maskgit", a), 2, high=0.3) for a in changes)
    return Finding(parts, beside(rows, "base", "longer", "small"))


@claim("B23")
def pictures_not_codes(rows: Table) -> Finding:
    """The pictures that a model sees decide, not its tokens: both families compose where the model
    alone is trained with wide within-class jitter, and not where its tokenizer alone is.

    Expected: level 2, late means, oracle, in both families: codes <= 0.3, pictures 0.3 above it"""
    parts = []
    for family in FAMILIES:
        codes, pictures = (name_of(family, a) for a in ("codes", "pictures"))
        parts.append(gain_of(rows, pictures, codes, 0.3, probe="oracle"))
        parts.append(at_level(rows, codes, 2, high=0.3, probe="oracle"))
    return Finding(tuple(parts), beside(rows, "base", "codes", "pictures", probe="oracle"))


def own_claim(id: str, statement: str, expected: str, measure: Callable[[Table], Finding]) -> Claim:
    return Claim(id, "beyond the papers", statement, expected, measure, trained=True)


STUDY = Study(
    name="ablations",
    **described(__doc__),
    cost={
        "smoke": "80 s, one core",
        "laptop": "60 min (estimate), two cores",
        "full": "45 min (estimate), one H200, 3 seeds, 9 runs at a time",
    },
    settings=settings,
    claims=(
        labels_decide,
        centres_act_like_classes,
        own_claim(
            "B7",
            "A nuisance that moves helps: MaskGIT composes better where objects go anywhere than "
            "near the middle.",
            "level 2 of MaskGIT, far - base >= 0.3, late means, open-set probe",
            partial(gains, more="maskgit, far", less="maskgit", ablations=("base", "far")),
        ),
        own_claim(
            "B8",
            "Few pictures, seen often, undo composition: DiT loses level 2 with 1,500 pictures of "
            "each composition.",
            "level 2 of DiT with 60,000 pictures of each composition - with 1,500 >= 0.3, late "
            "means, open-set probe",
            partial(gains, more="dit", less="dit, few", ablations=("base", "few")),
        ),
        rest_does_not_help,
        pictures_not_codes,
    ),
    figures=training.figures,
    describe=recipe_facts,
    sensitivity=True,
    run_minutes=1.0,
)
