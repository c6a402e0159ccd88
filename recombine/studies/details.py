"""Which details decide whether categories or values compose?

The MaskGIT and the DiT of `objectives`, as they are there (base) and with one detail changed at a time, the same for both. None
of them is what a model is trained to output:

- classes: both are told the class of colour and size, not the true value;
- centres: the same, but told as numbers: the centre of the class goes through the same MLP as a true value does;
- far: objects go anywhere in the picture; position is told to no model and asked of none;
- few: the training set holds 1,500 pictures a composition, seen hundreds of times, and not 60,000;
- longer: three times the updates;
- small: a transformer of half the depth (rounded down) and half the width, a ninth of the weights;
- cool: tokens are drawn at temperature 0.7; of MaskGIT alone, since DiT has none;
- codes: the tokenizer, and nothing else, learns from pictures that vary more;
- pictures: the model, and not its tokenizer, does.

How much varies inside a class is a study of its own, `variation`. Tokenizers change there with the pictures; the last two
tell them apart.

Not in the papers. Paper A does not say which labels its figure 3 used. Labels, positions and few pictures came up here because
first trials on one seed turned on them; centres then ask why labels do. Claims were written down before the seeds that judge
them were run, except those of `base`, of which `objectives` and `variation` have draws of their own.

Run: `recombine run details --scale laptop` (on two cores), `--scale full` (3 seeds, on a GPU).
"""

from dataclasses import dataclass, field, replace
from typing import Any

from recombine.nets.net_config import NetConfig
from recombine.nets.dit import DiTConfig
from recombine.studies import objectives, training_figures
from recombine.studies.base import Claim, Judgement, Row, Rows, Scale, Study, about
from recombine.studies.lab import Lab
from recombine.studies.levels import Found, best, clear, gain, late, over_seeds, probe_of
from recombine.studies.objectives import Family, Objectives
from recombine.studies.recipe import VARIED, Recipe
from recombine.studies.runs import compute
from recombine.worlds.shapes2d import Shapes2D

FAMILIES: tuple[Family, ...] = ("maskgit", "dit")
DETAILS = ("base", "classes", "centres", "far", "few", "longer", "small", "cool", "codes", "pictures")


@dataclass(frozen=True)
class Details:
    """`far`: the share of the free room that positions use; `few`: pictures a composition; `longer`: how many times the
    updates; `cool`: the temperature; `varied`: the jitter of colour and of size of pictures that vary more."""

    recipe: Recipe = field(default_factory=objectives.full)
    details: tuple[str, ...] = DETAILS
    far: float = 1.0
    few: int = 1500
    longer: int = 3
    cool: float = 0.7
    varied: tuple[float, float] = VARIED

    def __post_init__(self) -> None:
        if not isinstance(self.recipe.world, Shapes2D):
            raise ValueError("recipe.world: this study moves the objects of Shapes2D")
        if wrong := [d for d in self.details if d not in DETAILS]:
            raise ValueError(f"details: {wrong[0]} is none of {', '.join(DETAILS)}")
        if not self.details or len(set(self.details)) < len(self.details):
            raise ValueError(f"details: one or more of {', '.join(DETAILS)}, each once")
        self.variants()

    def changed(self, detail: str) -> Recipe:
        base, train, looks = self.recipe, self.recipe.train, self.recipe.evaluation
        match detail:
            case "classes" | "centres":
                mode = "quantised" if detail == "classes" else "centres"
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
                decoding = replace(looks.decoding, temperature=self.cool)
                return replace(base, evaluation=replace(looks, decoding=decoding))
            case "codes":
                return replace(base, tokenizer_world=base.varying(*self.varied).world)
            case "pictures":
                return replace(base.varying(*self.varied), tokenizer_world=base.world)
        return base

    def variants(self) -> dict[str, Recipe]:
        made = {d: Objectives(self.changed(d), FAMILIES).variants() for d in self.details}
        return {name_of(f, d): made[d][f] for f in FAMILIES for d in self.details if (f, d) != ("dit", "cool")}


def halved(net: NetConfig) -> NetConfig:
    """As deep and as wide by half; heads are as many, and narrower."""
    if not isinstance(net, DiTConfig):
        raise ValueError("recipe.net: only a transformer can be halved; leave out `small`")
    inner = net.transformer
    return replace(net, transformer=replace(inner, depth=max(1, inner.depth // 2), width=inner.width // 2))


def name_of(family: str, detail: str) -> str:
    return family if detail == "base" else f"{family}, {detail}"


def settings(scale: Scale) -> Details:
    recipe = objectives.settings(scale).recipe
    return Details(recipe) if scale == "full" else Details(recipe, few=max(1, recipe.pool // 10))


def run(settings: Details, lab: Lab) -> list[Row]:
    return compute(settings.variants(), lab)


def level2(rows: Rows, *details: str) -> tuple[dict[tuple[str, str], Found], dict[str, float | str]]:
    """Late means at level 2 of both families, and what a claim says it measured: these and the best checkpoint."""
    found = {(f, d): over_seeds(rows, name_of(f, d), 2, late) for d in details for f in FAMILIES}
    measured = {name_of(f, d): value.mean for (f, d), value in found.items()}
    tops = {f"{name_of(f, d)}, best": over_seeds(rows, name_of(f, d), 2, best).mean for f, d in found}
    return found, measured | {"judge": probe_of(rows)} | tops


def leads(rows: Rows, probe: str | None = None) -> tuple[Found, Found]:
    """How far DiT is ahead of MaskGIT at level 2, told values and told classes."""
    found = {(f, d): over_seeds(rows, name_of(f, d), 2, late, probe) for f in FAMILIES for d in ("base", "classes")}
    return gain(found["dit", "base"], found["maskgit", "base"]), gain(
        found["dit", "classes"], found["maskgit", "classes"]
    )


def judge_labels(rows: Rows) -> Judgement:
    """Other probes stand beside the one that judges."""
    measured = level2(rows, "base", "classes")[1]
    values, classes = leads(rows)
    turn = gain(values, classes)
    known = {r["probe"] for r in rows.where(kind="accuracy")}
    beside = {word: p for word, p in (("strict reader", "oracle"), ("made to choose", "cnn")) if p in known}
    measured |= {"turn": turn.mean} | {f"turn, {word}": gain(*leads(rows, p)).mean for word, p in beside.items()}
    reverses = values.mean >= 0.2 and classes.mean <= -0.2
    return Judgement(
        (clear(turn, 0.5) and reverses) or ("partly" if turn.mean >= 0.3 else False), measured, turn.interval
    )


def judge_centres(rows: Rows) -> Judgement:
    """Per family: how far the centres take it from values to classes, as a share of that way."""
    found, measured = level2(rows, "base", "classes", "centres")
    ways = {f: gain(found[f, "classes"], found[f, "base"]) for f in FAMILIES}
    if min(abs(way.mean) for way in ways.values()) < 0.2:
        raise LookupError("labels make no difference here: there is nothing to explain")
    went = {f: gain(found[f, "centres"], found[f, "base"]) for f in FAMILIES}
    share = {f: went[f].mean / ways[f].mean for f in FAMILIES}
    measured |= {f"{f}, share of the way": s for f, s in share.items()}
    passed = [s >= 0.7 for s in share.values()]
    return Judgement(all(passed) or ("partly" if any(passed) else False), measured, went["maskgit"].interval)


def judge_wander(rows: Rows) -> Judgement:
    found, measured = level2(rows, "base", "far")
    lift = gain(found["maskgit", "far"], found["maskgit", "base"])
    return Judgement(clear(lift, 0.3) or ("partly" if lift.mean >= 0.1 else False), measured, lift.interval)


def judge_few(rows: Rows) -> Judgement:
    found, measured = level2(rows, "base", "few")
    loss = gain(found["dit", "base"], found["dit", "few"])
    return Judgement(clear(loss, 0.3) or ("partly" if loss.mean >= 0.1 else False), measured, loss.interval)


def judge_rest(rows: Rows) -> Judgement:
    """MaskGIT is judged; DiT stands beside it."""
    found, measured = level2(rows, "base", "longer", "small")
    cool = over_seeds(rows, name_of("maskgit", "cool"), 2, late)
    measured[name_of("maskgit", "cool")] = cool.mean
    tried = {d: found["maskgit", d].mean for d in ("longer", "small")} | {"cool": cool.mean}
    low = [mean < 0.3 for mean in tried.values()]
    return Judgement(all(low) or ("partly" if sum(low) == 2 else False), measured, found["maskgit", "longer"].interval)


def judge_codes(rows: Rows) -> Judgement:
    """Partly: in one family."""
    names = {(f, d): name_of(f, d) for f in FAMILIES for d in ("base", "codes", "pictures")}
    found = {key: over_seeds(rows, name, 2, late, "oracle") for key, name in names.items()}
    ahead = {f: gain(found[f, "pictures"], found[f, "codes"]) for f in FAMILIES}
    passed = [found[f, "codes"].mean < 0.3 and ahead[f].mean >= 0.3 for f in FAMILIES]
    measured = {f"{names[key]}, strict reader": value.mean for key, value in found.items()}
    measured |= {f"{name}, judge": over_seeds(rows, name, 2, late).mean for name in names.values()}
    return Judgement(all(passed) or ("partly" if any(passed) else False), measured, ahead["maskgit"].interval)


def describe(settings: Details) -> dict[str, Any]:
    return settings.recipe.facts()


STUDY = Study(
    name="details",
    question="Which details decide whether categories or values compose?",
    paper="beyond the papers",
    about=about(__doc__),
    cost={
        "smoke": "80 s, one core",
        "laptop": "60 min (estimate), two cores",
        "full": "26 min for base, classes, cool, small, longer, 45 min (estimate) for all, one H200, 3 seeds, 9 runs at a time",
    },
    settings=settings,
    compute=run,
    claims=(
        Claim(
            id="B6",
            paper="beyond the papers",
            statement="Labels decide which family composes: told true values, DiT does and MaskGIT does not; told classes, it "
            "is the other way round.",
            expected="level 2 of DiT - MaskGIT >= 0.2 with values and <= -0.2 with classes, at least 0.5 apart; late means by "
            "the judge",
            judge=judge_labels,
            trained=True,
            interval_of="how far DiT - MaskGIT turns",
        ),
        Claim(
            id="B9",
            paper="beyond the papers",
            statement="It is what labels leave open that decides, not how they enter: told the centres of classes as numbers, "
            "both families do as when told classes.",
            expected="centres go at least 0.7 of the way from values to classes at level 2, in both families; late means by "
            "the judge",
            judge=judge_centres,
            trained=True,
            interval_of="of MaskGIT, centres - base",
        ),
        Claim(
            id="B7",
            paper="beyond the papers",
            statement="A nuisance that moves helps: MaskGIT composes better where objects go anywhere than near the middle.",
            expected="level 2 of MaskGIT, far - near >= 0.3, late means by the judge",
            judge=judge_wander,
            trained=True,
            interval_of="of MaskGIT, far - base",
        ),
        Claim(
            id="B8",
            paper="beyond the papers",
            statement="Few pictures, seen often, undo composition: DiT loses level 2 with 1,500 pictures a composition.",
            expected="level 2 of DiT with 60,000 - with 1,500 pictures a composition >= 0.3, late means by the judge",
            judge=judge_few,
            trained=True,
            interval_of="of DiT, base - few",
        ),
        Claim(
            id="B20",
            paper="beyond the papers",
            statement="Longer training, a smaller network and a lower temperature do not make MaskGIT compose.",
            expected="level 2 of MaskGIT < 0.3 with each of them; late means by the judge",
            judge=judge_rest,
            trained=True,
            interval_of="of MaskGIT, longer",
        ),
        Claim(
            id="B23",
            paper="beyond the papers",
            statement="It is the pictures that a model sees, not its tokens: both families compose where it alone learns from "
            "pictures that vary, and not where its tokenizer alone does.",
            expected="level 2 by the strict reader, late means, in both families: codes < 0.3, pictures 0.3 above it",
            judge=judge_codes,
            trained=True,
            interval_of="of MaskGIT, pictures - codes",
        ),
    ),
    draw=training_figures.draw,
    describe=describe,
    stops=True,
)
