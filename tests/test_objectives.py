"""The picture studies: one thing changes at a time, verdicts follow from rows, own pictures go
in."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from level_rows import accuracy_rows, verdict
from PIL import Image
from tiny import QUIET

from recombine.analysis.table import Table, read_table
from recombine.config import UsageError, digest
from recombine.nets.conditioning import Conditioning
from recombine.overrides import override
from recombine.pipeline.job import ancestors
from recombine.pipeline.plan import Command, StudyPlan, make_plans
from recombine.pipeline.run import collect, run_studies
from recombine.pipeline.worker import run_tasks
from recombine.rng import seeded
from recombine.runs.models import ModelRun, model_jobs
from recombine.runs.probes import ProbeCheck, ProbeRun
from recombine.runs.tokenizers import TokenizerRun
from recombine.store import read_json
from recombine.studies import (
    NAMES,
    ablations,
    composition,
    find,
    jitter,
    jitter_by_shape,
    objectives,
)
from recombine.studies.summary import summarise
from recombine.tokenizers.pixels import Pixels
from recombine.worlds.circles import Circles
from recombine.worlds.factors import code
from recombine.worlds.folder import Folder
from recombine.worlds.shapes2d import Shapes2D

SCALES = ("smoke", "laptop", "full")


@pytest.mark.parametrize("scale", SCALES)
def test_variants_differ_in_their_objective_alone(scale):
    settings = objectives.settings(scale)
    made = settings.variants()
    own = settings.recipe.objective
    shared = {digest(replace(r, objective=own)) for r in made.values()}
    assert len(shared) == len({r.world for r in made.values()}) == 1
    assert len({digest(r) for r in made.values()}) == len(made)
    for recipe in made.values() if scale != "full" else ():
        recipe.check()


@pytest.mark.parametrize("scale", SCALES)
def test_studies_share_the_runs_that_are_the_same(scale):
    four = objectives.settings(scale).variants()
    amounts = jitter.settings(scale).variants()
    assert digest(four["maskgit"]) == digest(ablations.settings(scale).variants()["maskgit"])
    assert digest(four["dit"]) == digest(amounts["dit, usual"])


def test_two_of_the_four_worlds_of_jitter_by_shape_are_those_of_composition():
    four = jitter_by_shape.settings("full").variants()
    three = composition.settings("full").variants()
    assert digest(four["nowhere"]) == digest(three["balanced"])
    assert digest(four["everywhere"]) == digest(three["wide"])
    assert len({digest(r) for r in four.values()}) == 4


def test_all_amounts_of_jitter_of_a_seed_come_before_the_next():
    settings = jitter.settings("full")
    listed = [dict(job.labels) for job in jitter.STUDY.jobs(settings, 3)]
    seeds = [labels["seed"] for labels in listed if "seed" in labels]
    assert seeds == sorted(seeds)
    assert {(v, s) for v in settings.variants() for s in range(3)} == {
        (labels["variant"], labels["seed"]) for labels in listed if "seed" in labels
    }


def test_the_amounts_of_jitter_lie_in_order_and_all_are_scored_alike():
    made = jitter.settings("full").variants()
    worlds = [made[f"mar, {a}"].world for a in jitter.AMOUNTS]
    jitters = [(w.color_jitter, w.size_jitter) for w in worlds]
    assert jitters == sorted(jitters)
    assert {made[f"mar, {a}"].probe_world for a in jitter.AMOUNTS} == {worlds[1]}


def test_values_and_classes_differ_in_the_labels_alone():
    made = jitter.settings("full").variants()
    assert len(made) == 24
    for name in (n for n in made if not n.endswith("classes")):
        value, given = made[name], made[f"{name}, classes"]
        assert (value.conditioning.mode, given.conditioning.mode) == ("continuous", "quantised")
        assert replace(given, conditioning=value.conditioning) == value


def of(family: str, **heights: float) -> dict[str, float]:
    """base=0.1, far=0.9 -> the names of a family's ablations or amounts."""
    return {family if a == "base" else f"{family}, {a}": y for a, y in heights.items()}


def amounts(*wide: float, none: float = 0.0) -> dict[str, float]:
    """Level 2 of the four families with wide jitter, and with less."""
    named = zip(jitter.FAMILIES, wide, strict=True)
    return {k: y for f, w in named for k, y in of(f, none=none, usual=none, wide=w).items()}


def by_class(*wide: float) -> dict[str, float]:
    return {f"{name}, classes": y for name, y in amounts(*wide).items()}


VALUES = of("maskgit", base=0.0) | of("dit", base=0.9)
LABELS = of("maskgit", base=0.0, classes=0.9) | of("dit", base=0.9, classes=0.1)
LASTING = of("maskgit", base=0.0, small=0.0) | of("dit", base=0.9, longer=0.9, small=0.9)
SHAPES = {"nowhere": 0.0, "everywhere": 1.0}
YES, PARTLY, NO, OPEN = "supported", "partly supported", "contradicted", "inconclusive"


@pytest.mark.parametrize(
    ("study", "id", "heights", "expected"),
    [
        (objectives, "B32", {"maskgit": 0.1, "givt": 0.75}, YES),
        (objectives, "B32", {"maskgit": 0.9, "givt": 0.7}, NO),
        (objectives, "B33", {"mar": 0.85, "dit": 0.9}, YES),
        (objectives, "B33", {"mar": 0.2, "dit": 0.9}, PARTLY),
        (ablations, "B6", LABELS, YES),
        (ablations, "B6", VALUES | {"maskgit, classes": 0.9, "dit, classes": 0.9}, PARTLY),
        (ablations, "B6", {k: 0.5 for k in LABELS}, NO),
        (ablations, "B20", LASTING | of("maskgit", longer=0.1, cool=0.2), YES),
        (ablations, "B20", LASTING | of("maskgit", longer=0.9, cool=0.2), PARTLY),
        (jitter, "B10", of("dit", none=0.1, usual=0.5, wide=0.9), YES),
        (jitter, "B10", of("dit", none=0.1, usual=0.9, wide=0.6), PARTLY),
        (jitter, "B10", of("dit", none=0.9, usual=0.9, wide=0.1), NO),
        (jitter, "B18", amounts(0.7, 0.7, 0.8, 0.9), YES),
        (jitter, "B18", amounts(0.6, 0.1, 0.1, 0.9), PARTLY),
        (jitter, "B18", amounts(0.1, 0.1, 0.1, 0.1), NO),
        (jitter, "B19", amounts(0.5, 0.75, 0.8, 0.9), YES),
        (jitter, "B19", amounts(0.6, 0.1, 0.8, 0.9), PARTLY),
        (jitter, "B19", amounts(0.9, 0.7, 0.7, 0.7), NO),
        (jitter, "B40", by_class(0.5, 0.75, 0.8, 0.9), YES),
        (jitter, "B40", by_class(0.6, 0.1, 0.8, 0.9), PARTLY),
        (jitter, "B40", amounts(0.5, 0.75, 0.8, 0.9), "not measured"),
        (composition, "D5a", {"balanced": 0.98}, YES),
        (composition, "D5a", {"balanced": 0.8}, OPEN),
        (composition, "B4", {"balanced": 0.9, "raw": 0.2}, YES),
        (composition, "B4", {"balanced": 0.5, "raw": 0.5}, NO),
        (composition, "B16", {"wide": 0.98, "balanced": 0.5}, YES),
        (composition, "B16", {"wide": 0.8, "balanced": 0.1}, PARTLY),
        (composition, "B16", {"wide": 0.3, "balanced": 0.3}, NO),
        (jitter_by_shape, "B21", SHAPES | {"triangles": 0.9, "circles": 0.3}, YES),
        (jitter_by_shape, "B21", SHAPES | {"triangles": 1.0, "circles": 0.6}, PARTLY),
        (jitter_by_shape, "B21", SHAPES | {"triangles": 0.1, "circles": 0.9}, NO),
    ],
)  # fmt: skip
def test_verdicts_follow_from_rows(study, id, heights, expected):
    assert verdict(study.STUDY, id, accuracy_rows(heights)) == expected


def test_maskgit_fails_by_itself_or_not_at_all():
    def given(maskgit: float, dit: float, ceiling: float = 0.98) -> str:
        about = {"kind": "ceiling", "variant": "maskgit", "probe": "open-set", "level": 2}
        limits = [about | {"seed": s, "joint": ceiling} for s in range(5)]
        rows = accuracy_rows({"maskgit": maskgit, "dit": dit})
        return verdict(objectives.STUDY, "B31", [*rows, *limits])

    assert given(0.05, 0.9) == YES
    assert given(0.05, 0.02) == given(0.6, 0.9) == PARTLY
    assert given(0.05, 0.9, ceiling=0.5) == OPEN


def test_rows_that_lack_a_level_give_no_verdict():
    rows = [r for r in accuracy_rows({"maskgit": 0.0, "givt": 1.0}) if r["level"] < 2]
    assert verdict(objectives.STUDY, "B32", rows) == "not measured"


def test_claims_of_the_paper_list_what_differs_and_are_never_called_contradicted():
    papers = [c for n in NAMES for c in find(n).claims if c.paper.startswith("A, ")]
    gate = {"G1"}  # the set-up itself
    own = [c for c in papers if not c.paper.endswith("left open") and c.id not in gate]
    assert own
    assert not [c.id for c in own if not c.deviations or c.faithful]


SHORT = (
    "world.size=16",
    "evaluation.samples=2",
    "probe_steps=2",
    "evaluation.real=4",
    "recipe.train.steps=2",
    "tokenizer.steps=2",
    "checkpoints=[0]",
)


def test_each_world_is_scored_by_probes_of_its_own_unless_it_must_be_compared():
    made = override(objectives.settings("smoke"), *SHORT, "wander=0.3").variants()
    pair = {f: made[f] for f in ("maskgit", "dit")}
    none = {f"{f}, none": r.with_jitter(0.0, 0.0) for f, r in pair.items()}
    far = {f"{f}, far": replace(r, world=replace(r.world, wander=1.0)) for f, r in pair.items()}
    jobs = model_jobs(none | far, 1)
    tasks = list(ancestors(job.task for job in jobs))
    counts = [
        sum(isinstance(t, kind) for t in tasks) for kind in (ProbeRun, TokenizerRun, ModelRun)
    ]
    assert counts == [4, 2, 4], "two probes and a tokenizer in each of two worlds"
    checks = [dict(j.labels).get("variant") for j in jobs if isinstance(j.task, ProbeCheck)]
    assert checks == [None, "maskgit, far"]


def test_a_tokenizer_may_learn_from_other_pictures_than_the_model():
    usual = objectives.settings("smoke").variants()["dit"]
    wide = usual.with_jitter(0.25, 0.2).world
    other = replace(usual, tokenizer_world=wide)
    assert (other.world, other.tokenizer_pictures) == (usual.world, wide)
    tasks = ancestors(j.task for j in model_jobs({"usual": usual, "other": other}, 1))
    assert {t.world for t in tasks if isinstance(t, TokenizerRun)} == {usual.world, wide}
    with pytest.raises(UsageError, match="only a learned tokenizer"):
        replace(other, tokenizer=Pixels()).check()
    with pytest.raises(UsageError, match="another size"):
        replace(other, tokenizer_world=Shapes2D(size=20)).check()
    with pytest.raises(UsageError, match="tokenizer_world: it has other factors"):
        replace(other, tokenizer_world=Shapes2D(size=28, colors=("red", "green"))).check()


def test_labels_are_dropped_each_by_itself_or_all_together():
    world, index = Shapes2D(), torch.zeros(4000, 3, dtype=torch.long)
    condition = world.describe(index, world.canonical(index))
    apart, together = (
        Conditioning("quantised", 0.2, dropped=how).drop(condition, world.space, seeded(1)).present
        for how in ("null", "together")
    )
    assert set(together.sum(1).tolist()) == {0, 3}
    assert {0, 1, 2, 3} >= set(apart.sum(1).tolist()) > {1, 2, 3}
    for present in (apart, together):
        assert present.float().mean() == pytest.approx(0.8, abs=0.02)


def test_dropping_to_zero_gives_a_whole_batch_the_first_class():
    world, how = Shapes2D(), Conditioning("quantised", 0.5, dropped="zero")
    index = torch.ones(64, 3, dtype=torch.long)
    given = world.describe(index, world.canonical(index))
    batches = [how.drop(given, world.space, seeded(step)) for step in range(40)]
    assert all(c.present.all() for c in batches)
    assert all(len(c.index.unique(dim=0)) == 1 for c in batches)
    share = torch.stack([c.index[0] for c in batches]).float().mean(0)
    assert ((share > 0.2) & (share < 0.8)).all()
    for c in batches:
        dropped = c.index[0] == 0
        assert torch.equal(c.value[0, :3] == 0, dropped[1].expand(3))
        assert torch.equal(c.value[0, 3] == 0, dropped[2])


@pytest.fixture
def folder(tmp_path) -> Path:
    """Pictures of all eight compositions and their table."""
    root, world = tmp_path / "mine", Shapes2D(size=16)
    root.mkdir()
    index = torch.tensor(world.space.compositions).repeat(4, 1)
    images = world.render(index, seeded("folder")).images
    with open(root / "factors.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["file", "form", "paint", "extent"])
        for i, (row, image) in enumerate(zip(index.tolist(), images, strict=True)):
            pixels = (image * 255).byte().permute(1, 2, 0).numpy()
            Image.fromarray(pixels).save(root / f"{i}.png")
            named = (f.values[v] for f, v in zip(world.space.factors, row, strict=True))
            table.writerow([f"{i}.png", *named])
    return root


@pytest.mark.slow
def test_ones_own_pictures_go_through_without_touching_code(folder, tmp_path):
    changes = (f"world={folder}", 'families=["maskgit","dit"]', "samples=2", "probe_steps=2")
    out = tmp_path / "out"
    command = Command(("objectives",), "smoke", 1, changes, "cpu", str(out))
    for plan in run_studies(command, "local", False, QUIET):
        done = summarise(plan, out, "smoke", range(1), {})
    rows = read_table(done / "rows.parquet")
    assert set(rows.where(kind="accuracy").unique("variant")) == {"maskgit", "dit"}
    assert {"form", "paint", "extent"} <= set(rows.where(kind="ceiling").frame.columns)
    assert read_json(done / "claims.json") == []  # they are about other pictures


@pytest.mark.slow
def test_a_folder_without_pictures_of_what_is_new_is_prompted_for_it(folder, tmp_path):
    """The pictures of one form in one paint are left out: these compositions are new."""
    rows = list(csv.DictReader((folder / "factors.csv").read_text().splitlines()))
    new = (rows[-1]["form"], rows[-1]["paint"])
    with open(folder / "few.csv", "w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(r for r in rows if (r["form"], r["paint"]) != new)
    world = Folder.open(folder, "few.csv")
    absent = [code(c) for c in world.space.compositions if c not in world.present]
    small = ('families=["dit"]', "samples=2", "probe_steps=2", "evaluation.real=4")
    settings = override(objectives.settings("smoke"), *small)
    recipe = replace(settings.recipe, world=world)
    assert recipe.split.seen == world.present
    jobs = tuple(objectives.STUDY.jobs(replace(settings, recipe=recipe), 1))
    run_tasks([job.task for job in jobs], tmp_path, QUIET, {})
    made = Table(collect(StudyPlan(objectives.STUDY, settings, jobs), tmp_path))
    scored = made.where(kind="accuracy")
    assert set(scored.unique("composition")) == {code(c) for c in world.space.compositions}
    assert {r["level"] for r in scored if r["composition"] in absent} == {1}
    real = set(made.where(kind="probe").unique("composition"))
    assert real == {code(c) for c in world.present}
    with pytest.raises(UsageError, match="there is no picture of"):
        replace(recipe, seen=(tuple(map(int, absent[0])),)).check()


@pytest.mark.parametrize(
    ("study", "change", "message"),
    [
        ("objectives", "tokenizer=vae", "needs a codebook"),
        ("objectives", "recipe.net.patch=7", "patch=1, not 7"),
        ("repair", "several.layers=[9]", "the network has 3 blocks"),
        ("composition", "seen=[[0,0,0],[0,0,2]]", "is no composition of factors with"),
    ],
)
def test_what_does_not_fit_is_refused_when_planning(study, change, message):
    with pytest.raises(UsageError, match=message):
        make_plans(Command((study,), "smoke", 1, (change,)))


@pytest.mark.parametrize(
    ("study", "change", "says"),
    [
        (ablations, "longer=0", "steps must be positive"),
        (ablations, 'ablations=["smaller"]', "smaller is none of base, classes"),
        (ablations, "ablations=[]", "one or more of base"),
        (jitter, "amounts=[]", "one or more of none"),
        (jitter, 'amounts=["none","none"]', "each once"),
        (jitter, "wide=[0.5,0.2]", "between 0 and 0.25"),
        (jitter, 'amounts=["much"]', "'much' is not one of none"),
        (jitter_by_shape, "wide=[0.2,0.9]", "between 0 and 0.2"),
        (composition, 'embedding_scales=["raw","raw"]', "each once"),
        (composition, "wide=[0.5,0.2]", "between 0 and 0.25"),
        (composition, "wide=[0.1]", "that of size"),
    ],
)
def test_settings_of_which_no_variant_can_be_made_are_refused_at_once(study, change, says):
    with pytest.raises(UsageError, match=says) as error:
        override(study.settings("smoke"), change)
    assert "\n" not in str(error.value)


def test_an_ablation_that_is_left_out_demands_nothing_of_the_network():
    odd = ("transformer.width=36", "transformer.heads=2")
    base = override(ablations.settings("smoke"), 'ablations=["base"]', *odd)
    assert base.variants().keys() == {"maskgit", "dit"}
    wrong = ('ablations=["small"]', "transformer.width=36", "transformer.heads=4")
    with pytest.raises(UsageError, match="width 18"):
        override(ablations.settings("smoke"), *wrong)


def test_a_world_without_jitter_gets_no_wide_variant():
    other = replace(composition.settings("full").recipe, world=Circles())
    made = replace(composition.settings("full"), recipe=other).variants()
    assert list(made) == ["balanced", "raw"]
