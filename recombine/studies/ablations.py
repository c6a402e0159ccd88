"""Which details decide whether categories or values compose?

The MaskGIT and the DiT of `objectives`, as they are there (base) and with one detail changed at a
time, the same for both. None of them is what a model is trained to output:

- classes: both are conditioned on the class of colour and size, not on the true value;
- longer: three times the updates;
- small: a transformer of half the depth (rounded down) and half the width, a ninth of the weights;
- cool: tokens are sampled at temperature 0.7; MaskGIT only, since DiT has no temperature.

The amount of within-class jitter has a study of its own, `jitter`.

Not in the papers. Paper A does not say which labels its figure 3 used. Labels were chosen because
first trials on one seed depended on them. Claims were written down before the seeds that decide
them were run, except those on `base`, which `objectives` and `jitter` sample too.

Run: `recombine run ablations --scale laptop` (on two cores), `--scale full` (on a GPU).
"""

from dataclasses import field, replace

from recombine.analysis.claims import Finding, Measured, Part, claim
from recombine.analysis.estimates import Estimate, rate_difference_of_differences
from recombine.analysis.levels import (
    PROBES,
    at_level,
    gain_of,
    late_mean,
    measured,
    per_seed,
    same_seeds,
)
from recombine.analysis.table import Table
from recombine.config import config
from recombine.nets.dit import DiTConfig
from recombine.nets.net_config import NetConfig
from recombine.plots import training
from recombine.runs.recipe import Recipe
from recombine.studies import objectives
from recombine.studies.objectives import Family, Objectives
from recombine.studies.study import Scale, Study, described, recipe_facts

FAMILIES: tuple[Family, ...] = ("maskgit", "dit")
ABLATIONS = ("base", "classes", "longer", "small", "cool")


@config("settings/ablations")
class Ablations:
    """`longer`: how many times the updates; `cool`: the temperature."""

    recipe: Recipe = field(default_factory=objectives.full)
    ablations: tuple[str, ...] = ABLATIONS
    longer: int = 3
    cool: float = 0.7

    def __post_init__(self) -> None:
        if wrong := [a for a in self.ablations if a not in ABLATIONS]:
            raise ValueError(f"ablations: {wrong[0]} is none of {', '.join(ABLATIONS)}")
        if not self.ablations or len(set(self.ablations)) < len(self.ablations):
            raise ValueError(f"ablations: one or more of {', '.join(ABLATIONS)}, each once")
        self.variants()

    def changed(self, ablation: str) -> Recipe:
        base, train, evaluation = self.recipe, self.recipe.train, self.recipe.evaluation
        match ablation:
            case "classes":
                return replace(base, conditioning=replace(base.conditioning, mode="quantised"))
            case "longer":
                return replace(base, train=replace(train, steps=self.longer * train.steps))
            case "small":
                return replace(base, net=halved(base.net))
            case "cool":
                decoding = replace(evaluation.decoding, temperature=self.cool)
                return replace(base, evaluation=replace(evaluation, decoding=decoding))
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
    return Ablations(objectives.settings(scale).recipe)


def context_numbers(rows: Table, *ablations: str, probe: str | None = None) -> Measured:
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
    return Finding(parts, context_numbers(rows, "base", "classes") | shown)


def reversal(rows: Table, probe: str | None = None) -> Estimate:
    """How much further DiT is ahead of MaskGIT at level 2 with values than with classes."""
    names = [name_of(f, a) for a in ("base", "classes") for f in ("dit", "maskgit")]
    values = [per_seed(rows, name, 2, late_mean, probe) for name in names]
    same_seeds(*values)
    return rate_difference_of_differences(*(list(v.values()) for v in values))


@claim("B20")
def rest_does_not_help(rows: Table) -> Finding:
    """Longer training, a smaller network and a lower temperature do not make MaskGIT compose.

    Expected: level 2 of MaskGIT <= 0.3 with each of them; late means, open-set probe"""
    changes = ("longer", "small", "cool")
    parts = tuple(at_level(rows, name_of("maskgit", a), 2, high=0.3) for a in changes)
    return Finding(parts, context_numbers(rows, "base", "longer", "small"))


STUDY = Study(
    name="ablations",
    **described(__doc__),
    cost={
        "smoke": "80 s, one core",
        "laptop": "60 min (estimate), two cores",
        "full": "45 min (estimate), one H200, 3 seeds, 9 runs at a time",
    },
    settings=settings,
    claims=(labels_decide, rest_does_not_help),
    figures=training.figures,
    describe=recipe_facts,
    sensitivity=True,
    run_minutes=1.0,
)
