"""The studies `length` and `locality`: prompts, what differs between experiments, claims."""

from dataclasses import fields, replace
from functools import partial
from pathlib import Path

import polars as pl
import pytest
import torch
from figure_reader import drawn
from PIL import Image
from scene_rows import carried_out, detector_rows, note, verdict
from tiny import QUIET

from recombine.analysis import scenes
from recombine.analysis.scenes import PAPER, Point, able, locality_points, mean_locality, reached
from recombine.analysis.table import Table, read_table
from recombine.config import UsageError, from_json, to_json
from recombine.metrics.counting import k_max
from recombine.metrics.scene_sheets import crossed, read_heat, write_heat
from recombine.metrics.sheets import write_sheet
from recombine.nets.local import LocalConfig
from recombine.overrides import override
from recombine.pipeline.job import Work, digest_of
from recombine.pipeline.plan import Command, make_plans
from recombine.plots.scene_pictures import cut, strips, title
from recombine.plots.style import Figure
from recombine.rng import seeded
from recombine.runs.detectors import DetectorRun
from recombine.runs.scene_prompts import Prompts, locations_of, placed
from recombine.runs.scene_recipe import SceneEvaluation
from recombine.runs.scenes import SceneModel, SceneRun
from recombine.store import read_json
from recombine.studies import length, locality
from recombine.studies.scene_settings import EXPERIMENTS, settings
from recombine.worlds.layout import Layout
from recombine.worlds.scenes.scenes import Scenes

SMOKE = settings("smoke")
CPU = torch.device("cpu")


def model(name: str = "exp1") -> SceneModel:
    recipe = SMOKE.variants()[name]
    return SceneModel(recipe, Work(SceneRun(recipe), Path(), QUIET))


# ---- the experiments


@pytest.mark.parametrize("scale", ["smoke", "laptop", "full"])
def test_recipes_fit_and_go_through_json(scale):
    chosen = settings(scale)
    recipes = chosen.variants()
    assert len({digest_of(SceneRun(r)) for r in recipes.values()}) == len(recipes)
    assert from_json(to_json(chosen)) == chosen
    for recipe in recipes.values():
        recipe.check()
    assert len({DetectorRun.of(r) for r in recipes.values()}) == 1, "one detector for all"


LOCAL_PARTS = {"layout_encoder", "net", "objective"}
DIFFER = {
    "exp1": set(),
    "exp2": {"layout_encoder"},
    "exp3": {"layout_encoder"},
    "exp2L": LOCAL_PARTS,
    "exp3L": LOCAL_PARTS,
    "exp2L, whole": LOCAL_PARTS,
    "exp1, wide": {"net", "train"},
    "exp2, 1 object": {"layout_encoder", "world"},
    "exp2L, 1-5 objects": LOCAL_PARTS | {"world"},
}


def test_longer_is_the_same_with_twice_the_updates_at_a_rate_that_falls():
    some = replace(settings("full"), experiments=("exp2L, patches", "exp2L, patches, longer"))
    usual, longer = some.variants().values()
    assert replace(longer, train=usual.train) == usual
    assert longer.train == replace(usual.train, steps=2 * usual.train.steps, decay="cosine")


@pytest.mark.parametrize("name", DIFFER)
@pytest.mark.parametrize("scale", ["smoke", "full"])
def test_an_experiment_differs_from_the_first_in_what_it_names_alone(scale, name):
    chosen = settings(scale)
    first, other = chosen.recipe, replace(chosen, experiments=(name,)).variants()[name]
    differ = {f.name for f in fields(first) if getattr(first, f.name) != getattr(other, f.name)}
    assert differ == DIFFER[name]
    assert replace(other.objective, balance=None) == first.objective
    assert replace(other.world, counts=first.world.counts) == first.world


def test_neighbours_share_everything_but_the_network_or_the_encoder():
    v = settings("full").variants()
    assert replace(v["exp2"].layout_encoder, labelled="all") == v["exp1"].layout_encoder
    assert v["exp3"].layout_encoder.labelled == "all"
    assert v["exp2L"].layout_encoder == v["exp2"].layout_encoder
    assert v["exp3L"].layout_encoder == v["exp3"].layout_encoder
    assert replace(v["exp2L, whole"], net=v["exp2L"].net) == v["exp2L"]
    whole = v["exp2L, whole"].net
    assert isinstance(whole, LocalConfig)
    assert whole.layout_scope == "patch"
    assert 2 * whole.reach + 1 >= whole.cells, "its patch is as large as the picture"


WRONG = {
    "recipe.evaluation.locations=[1,13]": "of 1 to 12",
    "recipe.evaluation.locations=[3,2]": "smallest first",
    "recipe.evaluation.early=9": "no more than the 2 samples",
    "recipe.evaluation.checkpoints=[0]": "must be positive",
    "recipe.evaluation.locality.locations=1": "2 to 12",
    "recipe.evaluation.locality.times=[0.5,2]": "up to 1",
    "recipe.detector.width=9": "multiple of 8",
    "recipe.detector.most=13": "between 0 and 12",
    "recipe.pool=0": "pool must be positive",
    "recipe.layout_encoder.labelled=one": "that of Exp 1",
    "recipe.objective.balance=0.5": "that of Exp 1",
    "control=16": "reach must lie between 0 and 15",
    'experiments=["exp4"]': "exp4",
    'experiments=["exp1","exp1"]': "each once",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_setting_is_one_line(wrong):
    with pytest.raises(UsageError, match=WRONG[wrong]) as error:
        override(SMOKE, wrong)
    assert "\n" not in str(error.value)


UNFIT = {
    "world.size=44": "divisible by 8",
    "world.size=40": "16 cells do not divide a picture of 40x40",
    "recipe.evaluation.checkpoints=[99]": "beyond the last of 4 steps",
    "world.apart=2.0": "objects: found no room",
    "evaluation.locations=[1,12]": "12 objects: found no room",
    "evaluation.spacing=0.5": "3 objects: found no room .* 0.5 apart in the picture",
    "locality.locations=12": "12 objects: found no room",
}


@pytest.mark.parametrize("wrong", UNFIT)
def test_parts_that_do_not_fit_are_refused_before_anything_runs(monkeypatch, wrong):
    monkeypatch.setattr("recombine.worlds.scenes.place.ROUNDS", 3)
    changes = (wrong, 'world.sizes=["large"]', "world.margin=0.7")
    with pytest.raises(UsageError, match=UNFIT[wrong]):
        make_plans(Command(("length",), "smoke", 1, changes))


def test_a_list_with_too_few_slots_is_refused_and_the_studies_choose_enough():
    recipe = SMOKE.variants()["exp3"]
    short = replace(recipe, layout_encoder=replace(recipe.layout_encoder, slots=2))
    with pytest.raises(UsageError, match=r"slots=2: too few for layouts of up to 3 locations"):
        short.check()
    more = override(SMOKE, "recipe.detector.most=9").variants()["exp3"]
    assert more.layout_encoder.slots == more.slots == 9
    layout = Prompts.of(more).layout(CPU, 1)
    assert more.layout_encoder.code(layout).shape == (3, 27)


@pytest.mark.parametrize(
    "changes",
    [
        ("recipe.evaluation.locations=[1,2]", "recipe.detector.most=4"),
        ("recipe.evaluation.locations=[1,4]", "recipe.detector.most=2"),
        ("recipe.evaluation.locality.locations=4",),
        ("recipe.world.counts=[1,5]",),
    ],
    ids=lambda changes: changes[0].partition(".")[2],
)
def test_whatever_is_prompted_fits_into_the_slots_of_a_list(changes):
    """Training, prompts and locality of every experiment with a list: what would not fit is refused
    before anything runs, and nothing stops later."""
    chosen = override(SMOKE, *changes)
    assert len({DetectorRun.of(r) for r in chosen.variants().values()}) == 1
    for name in ("exp3", "exp3L", "exp3L, patches"):
        recipe = chosen.variants()[name]
        recipe.check()
        trained = replace(recipe, train=replace(recipe.train, batch=2))
        one = SceneModel(trained, Work(SceneRun(trained), Path(), QUIET))
        world, given = recipe.detector_world, recipe.evaluation.locality.locations
        layouts = (
            one.batch(0)[1],
            Prompts.of(recipe).layout(CPU, 1),
            locations_of(world, placed(world, given, 1, "locality", CPU)),
        )
        for layout in layouts:
            assert recipe.layout_encoder.code(layout).shape[1] == recipe.layout_encoder.size


def test_a_network_on_patches_needs_an_objective_for_patches_and_the_other_way_round():
    for name, wrong, needed in (("exp2L, patches", 0, 64), ("exp1", 64, 0)):
        recipe = SMOKE.variants()[name]
        short = replace(recipe, objective=replace(recipe.objective, patches=wrong))
        with pytest.raises(UsageError, match=rf"patches={wrong}: the network .* needs {needed}$"):
            short.check()


def test_checkpoints_are_spread_and_end_at_the_end():
    assert SceneEvaluation().at(5000) == (625, 1250, 2500, 5000)
    assert SceneEvaluation(checkpoints=9).at(4) == (1, 2, 4)
    assert SceneEvaluation(checkpoints=(3,)).at(8) == (3, 8)


# ---- conditions and prompts


def test_pictures_and_locations_belong_together():
    one = model()
    images, layout = one.pool
    assert len(images) == one.recipe.pool
    assert set(layout.present.sum(1).tolist()) == {1, 2}
    again = one.recipe.world.sample(one.recipe.pool, seeded(0, "pool", 0))
    assert torch.equal(layout.at, again.centres)
    assert (images / 255 - again.images).abs().amax() <= 0.5 / 255 + 1e-6
    assert model("exp3").pool is one.pool, "runs of one world share their pictures"


def test_exp1_is_conditioned_on_all_objects_and_exp2_on_one_of_them():
    for step in range(3):
        x1, given1, noise1 = model().batch(step)
        x2, given2, noise2 = model("exp2").batch(step)
        assert torch.equal(x1, x2)
        assert torch.equal(noise1.noise, noise2.noise), "the same pictures under the same noise"
        assert torch.equal(given1.at, given2.at)
        assert (given2.present.sum(1) == 1).all()
        assert (given2.present <= given1.present).all()
        assert set(given1.present.sum(1).tolist()) == {1, 2}
    assert not torch.equal(model().batch(0)[0], model().batch(1)[0])


def test_prompts_are_the_same_for_all_variants_and_seeds():
    recipes = SMOKE.variants()
    prompts = Prompts.of(recipes["exp1"])
    layout = prompts.layout(CPU)
    assert layout.present.sum(1).tolist() == [1, 1, 2, 2, 3, 3]
    for name in ("exp2", "exp2L, 1-5 objects"):
        assert Prompts.of(recipes[name].with_seed(5)) == prompts
    assert torch.equal(prompts.layout(CPU, 1).at, layout.at[::2])


def test_locations_keep_their_spacing_and_crowded_ones_are_those_of_real_scenes():
    prompts = replace(Prompts.of(SMOKE.recipe), samples=24)
    wide, real = replace(prompts, spacing=0.25), replace(prompts, spacing=0.0)
    nearest = {p: min(torch.pdist(at).min() for at in p.layout(CPU).at[48:]) for p in (wide, real)}
    assert nearest[real] < 0.25 <= nearest[wide] + 1e-6
    assert (wide.crowded, real.crowded) == (real, None)


def test_real_scenes_are_as_crowded_as_the_study_says():
    assert "with nine, three of four have another one within two cells" in " ".join(
        length.__doc__.split()
    )
    world = Scenes()
    cell = locations_of(world, placed(world, 9, 64, "crowded", CPU)).cell(16)
    rows, columns = ((p[:, :, None] - p[:, None]).abs() for p in (cell // 16, cell % 16))
    others = (torch.maximum(rows, columns) <= 2).sum(2) - 1
    assert 0.7 <= (others > 0).float().mean() <= 0.8


def test_early_checkpoints_use_the_noise_of_the_last():
    assert torch.equal(model().noise(1), model().noise(2)[::2])


def test_a_sampled_picture_does_not_depend_on_its_company():
    one = model("exp3L")
    with torch.no_grad():
        for p in one.net.parameters():
            p.add_(0.05 * torch.randn(p.shape, generator=seeded("weights")))
    locations, noise = Prompts.of(one.recipe).layout(CPU, 2), one.noise(2)
    together = one.sample(locations, noise)
    alone = one.sample(locations.rows(slice(3, 4)), noise[3:4])
    torch.testing.assert_close(together[3:4], alone, atol=1e-4, rtol=0)


# ---- pictures


def test_crosses_stand_at_the_locations_and_say_whether_they_were_located(tmp_path):
    at = torch.tensor([[[0.25, 0.5], [0.75, 0.5], [0.5, 0.1]]])
    locations = Layout(at, torch.tensor([[True, True, False]]))
    grey, located = torch.full((1, 3, 32, 32), 0.5), torch.tensor([[True, False, True]])
    picture = crossed(grey, locations, located, side=64)[0]
    assert picture.shape == (3, 64, 64)
    green, red = picture[:, 32, 16], picture[:, 32, 48]
    assert green[1] > 0.9 > green[0]
    assert red[0] > 0.9 > red[1]
    assert (picture[:, :20] == 0.5).all(), "no cross where no location is"
    write_sheet(tmp_path / "sheet.png", picture.expand(3, 2, 3, 64, 64))
    cells = [cut(tmp_path / "sheet.png", 3, *where) for where in ((2, 1), (0, 0))]
    assert (cells[0] == cells[1]).all()


def test_a_sheet_with_fewer_numbers_of_locations_stands_in_the_same_columns(tmp_path):
    shades = torch.linspace(0, 1, 4)[:, None, None, None, None].expand(4, 1, 3, 8, 8)
    write_sheet(tmp_path / "all.png", shades)
    write_sheet(tmp_path / "few.png", shades[1:3])
    sheets = {"all": (tmp_path / "all.png", [1, 2, 3, 4]), "few": (tmp_path / "few.png", [2, 3])}
    make = partial(strips, figure=Figure("samples", "", ""), sheets=sheets, shown=(1, 2, 3, 4, 5))
    axes = drawn(lambda folder: make(folder))["samples"].axes
    level = [axis.images[0].get_array().mean() if axis.images else None for axis in axes]
    assert level[:4] == sorted(level[:4])
    assert level[4:] == [None, level[1], level[2], None]


def test_heat_survives_as_a_picture(tmp_path):
    heat = 10 ** (-5 * torch.rand(3, 8, 8, generator=seeded("heat")))
    write_heat(tmp_path / "heat.png", heat)
    back = read_heat(tmp_path / "heat.png", 3)
    torch.testing.assert_close(back.log10(), heat.clamp(min=1e-4).log10(), atol=4 / 255, rtol=0)


# ---- a run of seconds


@pytest.fixture(scope="module")
def ran(tmp_path_factory) -> Path:
    """Two experiments at smoke scale, both studies."""
    root = tmp_path_factory.mktemp("scenes")
    for study in (length.STUDY, locality.STUDY):
        carried_out(study, replace(SMOKE, experiments=("exp1", "exp2L")), root)
    return root


KINDS = {
    "detector",
    "worn",
    "real",
    "real, crowded",
    "variant",
    "count",
    "crowded",
    "near",
    "shown",
    "locality",
    "map",
}


def test_a_run_leaves_counts_locality_maps_and_sheets(ran):
    rows = read_table(ran / "length" / "rows.parquet")
    assert set(rows.unique("kind")) == KINDS
    assert rows.where(kind="detector").column("objects") == [0, 1, 2, 3]
    for name, strict in (("exp1", 1), ("exp2L", 0)):
        mine = rows.where(variant=name)
        assert mine.one(kind="variant")["strict"] == strict
        assert mine.where(kind="count").column("locations") == [1, 2, 3, 1, 2, 3]
        assert mine.where(kind="crowded").column("locations") == [1, 2, 3], "at the end alone"
        assert mine.where(kind="locality").column("step") == [2, 2, 4, 4]
        assert mine.where(kind="map").column("location") == [0, 1]
        samples = ran / "runs" / mine.where(kind="count").column("run")[0] / "samples"
        names = {"step_00000002.png", "step_00000004.png", "crowded.png", "maps.png"}
        assert {p.name for p in samples.iterdir()} == names
        with Image.open(samples / "step_00000004.png") as sheet:
            each = (sheet.width / SMOKE.recipe.evaluation.samples, sheet.height / 3)
            assert each[0] == each[1], "a row of pictures for each number of locations"
            assert sheet.mode == "RGB"
    near = rows.where(kind="near", variant="exp1").column("n")
    assert sum(near) == 2 * (1 + 2 + 3), "every location is in one of the rows"
    figures = {s: read_json(ran / s / "study.json")["figures"] for s in ("length", "locality")}
    assert [f["name"] for f in figures["length"]] == ["curves", "k-max", "near", "samples"]
    assert [f["name"] for f in figures["locality"]] == ["scatter", "levels", "maps"]


def test_a_local_network_is_local_and_a_global_one_is_not(ran):
    """Even after four steps: the patch network has no effects beyond its patch."""
    rows = read_table(ran / "locality" / "rows.parquet").where(kind="locality")
    assert min(rows.where(variant="exp2L").column("condition")) > 0.9999
    assert max(rows.where(variant="exp1").column("condition")) < 0.9


def test_locality_uses_the_runs_of_length(ran):
    first, second = (read_json(ran / s / "study.json")["runs"] for s in ("length", "locality"))
    assert first == second
    assert len(list((ran / "runs").iterdir())) == 2 + 2, "two runs, the detector, its check"
    tables = [read_table(ran / s / "rows.parquet").frame for s in ("length", "locality")]
    assert tables[0].equals(tables[1])


# ---- claims, on made-up rows

GOOD = {"exp1": 8, "exp2": 1, "exp3": 2, "exp2L": 10, "exp3L": 10, "exp2L, whole": 2,
        "exp2, 1 object": 1, "exp2, 1-5 objects": 3, "exp2L, 1 object": 5,
        "exp2L, 1-5 objects": 10, "exp2L, patches": 9, "exp3L, patches": 9,
        "exp2L, patches, whole": 2}  # fmt: skip
LOCAL = {"exp1": (0.95, 0.9), "exp2": (0.94, 0.5), "exp3": (0.7, 0.4), "exp2L": (1.0, 1.0),
         "exp3L": (1.0, 1.0), "exp2L, whole": (0.8, 0.6), "exp2L, patches, whole": (0.8, 0.6)}  # fmt: skip


def count_rows(k: int, strict: bool, most: int = 12) -> list[dict]:
    """A curve whose criterion falls below a half after `k` locations."""
    rows = []
    for n in range(1, most + 1):
        share = 1 / (1 + 2.0 ** (n - k - 0.5))
        match = share if strict else 0.1 * share
        rows.append({"kind": "count", "locations": n, "n": 128, "exact_match": match,
                     "full_recall": share, "exact_count": match, "recall": share ** (1 / 3),
                     "matched": share, "total": n * share})  # fmt: skip
    return rows


def near_rows(many: float, most: int) -> list[dict]:
    """Recall one half where crowded; far from others nearly one at few locations, `many` at
    many."""
    rows = []
    for n in range(2, most + 1):
        for low in (0.0, 0.16, 0.25):
            recall = 0.5 if not low else 0.97 if n < 4 else many
            rows.append(
                {"kind": "near", "locations": n, "from": low, "n": 9, "recall": recall, "step": 4}
            )
    return rows


def run_rows(name: str, seed: int, k: int, strict: bool, at: tuple, most: int = 12) -> list[dict]:
    """Three checkpoints, at which both K_max and locality grow."""
    rows = near_rows(0.95 if name in ("exp2L", "exp3L") else 0.4, most)
    for step, part in ((1, 0.4), (2, 0.7), (4, 1.0)):
        rows += [r | {"step": step} for r in count_rows(round(k * part), strict, most)]
        for t, sigma in ((0.3, 0.3), (0.5, 2.5)):
            both = (0.3 + (v - 0.3) * part - 0.002 * seed * int(name[3]) for v in at)
            pixel, condition = both
            rows.append({"kind": "locality", "step": step, "t": t, "sigma": sigma, "own": condition,
                         "pixel": pixel, "condition": condition})  # fmt: skip
    return [r | {"variant": name, "seed": seed, "run": f"{name}{seed}"} for r in rows]


def study_rows(
    exact: dict | None = None, most: int = 12, shift: dict | None = None, k: dict | None = None
) -> Table:
    """All experiments over three seeds. `k` gives other K_max for some, one for all seeds or one
    each; `shift` other localities."""
    rows = detector_rows(exact or {}, most)
    for name, reaches in (GOOD | (k or {})).items():
        base = name if name in LOCAL else name.partition(", ")[0]
        strict = not base.startswith("exp2")
        trained = {"1 object": 1, "1-5 objects": 5}.get(name.partition(", ")[2], 3)
        about = {"variant": name, "trained": trained, "strict": int(strict)}
        rows.append({"kind": "variant", **about})
        for seed, mine in enumerate(reaches if isinstance(reaches, tuple) else (reaches,) * 3):
            rows += run_rows(name, seed, mine, strict, (shift or {}).get(name, LOCAL[base]), most)
    return Table(rows)


CLAIMS = {c.id: c for s in (length.STUDY, locality.STUDY) for c in s.claims}


@pytest.mark.parametrize("name", CLAIMS)
def test_every_claim_is_supported_where_it_should_be(name):
    assert verdict(CLAIMS[name], study_rows()) == "supported"
    assert CLAIMS[name].trained
    assert CLAIMS[name].faithful == (name == "B14")


def test_k_max_follows_the_criterion_of_the_experiment():
    rows = study_rows()
    assert {v: set(reached(rows, v).values()) for v in GOOD} == {v: {k} for v, k in GOOD.items()}
    mine = rows.where(kind="count", variant="exp2L", seed=0, step=4)
    assert k_max(mine, "exact_match") == 0, "its pictures hold more objects than locations"


BOUNDARY = [
    ("S1", {"exp1": 5}, "inconclusive"),
    ("S1", {"exp1": (5, 7, 9)}, "inconclusive"),
    ("S1", {"exp1, wide": 7}, "supported"),
    ("S1", {"exp1, wide": 5}, "partly supported"),
    ("S4", {"exp2L, patches": 7, "exp2L, patches, longer": 9}, "supported"),
    ("S4", {"exp2L, patches": 9, "exp2L, patches, longer": 7}, "partly supported"),
    ("S2", {"exp2": 3}, "inconclusive"),
    ("S2", {"exp2": 0}, "not measured"),
    ("S3", {"exp3": 5}, "inconclusive"),
    ("S4", {"exp2L": 7}, "partly supported"),
    (
        "S4",
        {"exp2L": 7, "exp2L, patches": 7, "exp2L, 1 object": 3, "exp2L, 1-5 objects": 6},
        "inconclusive",
    ),
    ("S5", {"exp3L": 7}, "partly supported"),
    ("S5", {"exp3L": 7, "exp3L, patches": 7}, "inconclusive"),
    ("S6", {"exp2L, patches, whole": 5}, "inconclusive"),
]


@pytest.mark.parametrize(("name", "change", "word"), BOUNDARY)
def test_a_claim_is_not_supported_outside_its_region(name, change, word):
    assert verdict(CLAIMS[name], study_rows(k=change)) == word


def test_recall_lost_to_numbers_is_separated_from_recall_lost_to_crowds():
    rows, far = study_rows(), pl.col("from") >= 0.16
    late = (pl.col("kind") == "near") & far & (pl.col("locations") > 3)
    for variant, many in (("exp2L", 0.5), ("exp1", 0.97)):
        changed = (
            pl.when(late & (pl.col("variant") == variant)).then(many).otherwise(pl.col("recall"))
        )
        assert verdict(CLAIMS["B14"], rows.with_columns(recall=changed)) == "partly supported"
    crowded = rows.filter((pl.col("kind") != "near") | ~far)
    assert "exp2L: no locations of 2 to 3 that are far" in note(CLAIMS["B14"], crowded)


def test_the_papers_numbers_stand_beside_ours():
    shown = CLAIMS["S4"].measure(study_rows()).measured
    for name in ("exp2L", "exp2L, 1 object", "exp2L, 1-5 objects"):
        assert (shown[name], shown[f"paper_{name}"]) == (GOOD[name], PAPER[name])
    rows = study_rows(k={"exp1": (6, 7, 8)})
    assert CLAIMS["S1"].measure(rows).measured["exp1, seeds"] == "6, 7, 8"


@pytest.mark.parametrize("name", ["S1", "S2", "S3", "S4", "S5", "S6", "S8", "B14"])
def test_counts_of_an_unreliable_detector_are_not_used(name):
    rows = study_rows(exact={4: 0.96})
    assert "it counts 96.0% of real pictures with 4 objects" in note(CLAIMS[name], rows)
    assert verdict(CLAIMS[name], rows) == "not measured"


def test_models_with_too_few_prompts_are_not_measured():
    assert "5 objects at most" in note(CLAIMS["S1"], study_rows(most=5))
    without = study_rows().filter(pl.col("variant").is_null() | (pl.col("variant") != "exp3"))
    assert note(CLAIMS["S3"], without) == "exp3 was not run"
    other = study_rows().with_columns(trained=pl.col("trained").replace(3, 2))
    assert "not trained on one to three" in note(CLAIMS["S1"], other)


def test_a_control_that_was_prompted_for_fewer_is_shown_and_bounded_by_what_it_was_prompted_for():
    control = "exp2L, patches, whole"
    fewer = (pl.col("variant") == control) & (pl.col("locations") > 5)
    rows = study_rows(k={control: (5, 5, 5)}).filter(~fewer.fill_null(False))
    found = CLAIMS["S6"].measure(rows)
    assert found.parts[0].estimate.high == 5
    assert f"{control}, recall at 5" in found.measured
    assert "curves" in drawn(length.STUDY.figures, rows)
    assert "prompted for 3 objects at most" in note(
        CLAIMS["S6"], rows.filter(~fewer.fill_null(False) & (pl.col("locations").fill_null(0) < 4))
    )


def test_the_order_of_locality_can_fail_in_part_or_whole():
    same = {"exp2": (0.94, 0.9)}
    assert verdict(CLAIMS["S7"], study_rows(shift=same)) == "partly supported"
    alike = {v: (0.9, 0.9) for v in ("exp1", "exp2", "exp3")}
    assert verdict(CLAIMS["S7"], study_rows(shift=alike)) == "inconclusive"


def test_pixel_locality_at_the_lowest_and_at_the_highest_noise():
    about = {"kind": "locality", "step": 9}
    rows = Table(
        [
            about | {"variant": v, "seed": seed, "sigma": sigma, "pixel": pixel + seed / 100}
            for v, values in {"exp1": (0.5, 0.1, 0.8), "exp3": (0.6, 0.9, 0.6)}.items()
            for sigma, pixel in zip((0.1, 1.0, 10.0), values, strict=True)
            for seed in (0, 1)
        ]
    )
    leads = locality.at_the_ends(rows, "exp1", "exp3")
    assert list(leads.values()) == pytest.approx([-0.1, 0.2])
    assert [name.rpartition(", ")[2] for name in leads] == ["lowest noise", "highest noise"]


def test_the_correlation_takes_every_run_and_checkpoint():
    rows = study_rows()
    some = locality_points(rows)
    assert len(some) == 13 * 3 * 3
    ends = {p.gain for p in some if p.variant == "exp2L, 1-5 objects" and p.step == 4}
    assert ends == {5}
    usual = [p for p in some if "object" not in p.variant]
    shown = CLAIMS["S8"].measure(rows).measured
    assert (len(usual), shown["points"]) == (9 * 9, len(able(usual)))
    far = {v: (1 - a, 1 - b) for v, (a, b) in LOCAL.items()}
    assert verdict(CLAIMS["S8"], study_rows(shift=far)) == "inconclusive"
    few = rows.filter(pl.col("variant").is_null() | (pl.col("variant") == "exp1"))
    assert "9 points; 12" in note(CLAIMS["S8"], few)


def test_points_count_from_the_first_checkpoint_that_places_one_object():
    grown = ((1, 0), (2, 1), (3, 0), (4, 2))
    made = [Point("a", 0, step, k, k - 3, 0.5, 0.5) for step, k in grown]
    never = [Point("b", 0, step, 0, -3, 0.5, 0.5) for step in (1, 2)]
    assert [p.step for p in able(made + never)] == [2, 3, 4]


def test_mean_locality_is_over_high_noise_and_leaves_out_what_was_not_measured():
    rows = [{"t": t, "pixel": p} for t, p in ((0.2, 0.0), (0.4, 0.5), (0.6, 0.7), (0.7, None))]
    assert mean_locality(Table(rows), "pixel") == pytest.approx(0.6)
    assert mean_locality(Table(rows[:1]), "pixel") == 0.0, "no such level: all"
    with pytest.raises(LookupError, match="could not be measured"):
        mean_locality(Table(rows[3:]), "pixel")


def test_a_missing_run_or_measurement_leaves_claims_unmeasured():
    rows, mine = study_rows(), pl.col("variant") == "exp1"
    lost = (pl.col("variant") == "exp3") & (pl.col("seed") == 2)
    assert "some runs are missing" in note(CLAIMS["S7"], rows.filter(~lost.fill_null(False)))
    blind = mine & (pl.col("kind") == "locality")
    none = rows.with_columns(pixel=pl.when(blind).then(None).otherwise(pl.col("pixel")))
    assert "could not be measured" in note(CLAIMS["S7"], none)
    counts = [CLAIMS["S8"].measure(some).measured["points"] for some in (none, rows)]
    assert counts[0] < counts[1]


def test_figures_are_plotted_from_rows_without_any_run_folder():
    some = pl.col("variant").is_null() | pl.col("variant").is_in(["exp1", "exp2", "exp2, 1 object"])
    rows = study_rows().filter(some)
    made = [name for s in (length, locality) for name in drawn(s.STUDY.figures, rows)]
    assert made == ["curves", "k-max", "near", "scatter", "levels"]
    assert len({title(v) for v in EXPERIMENTS}) == len(EXPERIMENTS)


def test_figures_are_plotted_from_other_training_sets_alone():
    """As where they are run later than the others, and joined afterwards."""
    some = pl.col("variant").is_null() | pl.col("variant").str.contains("object")
    assert "k-max" in drawn(length.STUDY.figures, study_rows().filter(some))


# ---- numbers of rows and points made by hand


def test_what_was_not_run_or_prompted_is_named():
    rows = study_rows()
    for what, says in (
        (partial(scenes.variant_facts_of, rows, "exp9"), "exp9 was not run"),
        (partial(scenes.last, rows, "exp9"), "no rows of exp9"),
        (partial(length.forms, rows, "exp9L"), "exp9L was not run"),
        (
            partial(scenes.require_prompts, rows, 13, "exp1"),
            "exp1 was prompted for 12 objects at most, not for 13",
        ),
        (
            partial(scenes.require_prompts, rows, 3, "exp2, 1 object"),
            "exp2, 1 object was not trained on one to three objects",
        ),
        (
            partial(scenes.recall_apart, rows, "exp1", range(4, 13), 0.3),
            "exp1: no locations of 4 to 12 that are far from each other",
        ),
        (
            partial(scenes.difference, {0: 1.0, 1: 2.0}, {0: 1.0}),
            "seeds [0, 1] beside [0]: some runs are missing",
        ),
    ):
        with pytest.raises(LookupError) as error:
            what()
        assert str(error.value) == says
    scenes.require_prompts(rows, 12, "exp1")
    assert length.forms(rows, "exp2L") == ["exp2L, patches", "exp2L"]
    assert length.forms(rows, "exp2") == ["exp2"]
    more = study_rows(k={"exp1, wide": 7, "exp2L, patches, longer": 9})
    assert length.forms(more, "exp1") == ["exp1, wide", "exp1"]
    assert length.forms(more, "exp2L") == ["exp2L, patches, longer", "exp2L"]
    assert CLAIMS["S4"].measure(more).measured["exp2L, patches"] == 9, (
        "shown, though it does not count"
    )


def test_a_model_that_places_no_single_object_says_nothing():
    def require(share: float) -> None:
        about = {"variant": "v", "trained": 3, "strict": 1}
        count = {"kind": "count", "variant": "v", "seed": 0, "step": 1, "locations": 1}
        rows = Table([{"kind": "variant", **about}, count | {"exact_match": share}])
        scenes.require_one_object(rows, "v")

    require(0.5)
    with pytest.raises(LookupError, match=r"^v places a single object in 49% of pictures only$"):
        require(0.49)


def test_recall_of_locations_apart_is_weighted_by_their_number():
    about = {"kind": "near", "variant": "v"}
    rows = [
        about | {"seed": seed, "locations": k, "from": far, "n": n, "recall": recall}
        for seed, k, far, n, recall in (
            (1, 2, 0.16, 1, 1.0), (1, 3, 0.2, 3, 0.0), (1, 4, 0.2, 9, 0.0),
            (1, 2, 0.15, 9, 0.0), (0, 3, 0.16, 2, 0.5),
        )
    ]  # fmt: skip
    assert scenes.recall_apart(Table(rows), "v", range(2, 4), 0.16) == {0: 0.5, 1: 0.25}


def point(step: int, gain: int, condition: float, seed: int = 0) -> Point:
    return Point("v", seed, step, gain + 3, gain, 0.5, condition)


def test_runs_rise_together_if_neither_falls():
    grows = [point(1, 0, 0.1), point(2, 0, 0.3), point(3, 2, 0.2)]
    falls = [point(1, 0, 0.1, 1), point(2, 2, 0.3, 1), point(3, 1, 0.2, 1)]
    flat = [point(1, 1, 0.1, 2), point(2, 1, 0.3, 2)]
    lost = [point(1, 1, 0.3, 3), point(2, 2, 0.3, 3)]
    assert scenes.rising_together(grows + falls + flat + lost) == 1


def test_points_are_correlated_within_a_seed_that_has_three():
    rising = [point(i, i, 0.1 * i) for i in range(3)]
    assert scenes.correlation(rising) == pytest.approx(1)
    two, same = (
        [point(i, i, 0.1 * i, 1) for i in range(2)],
        [point(i, 1, 0.1 * i, 2) for i in (1, 2, 3)],
    )
    still = [point(i, i, 0.1, 3) for i in range(3)]
    for few in (two, same, still):
        with pytest.raises(LookupError, match=r"^nothing to correlate: all points are the same$"):
            scenes.correlation(few)
    assert scenes.correlation_by_seed(rising + two + same + still) == [pytest.approx(1)]


def test_the_papers_numbers():
    assert PAPER == {
        "exp1": 7, "exp1, wide": 7, "exp2": 2, "exp3": 3, "exp2L": 9, "exp3L": 9,
        "exp2L, patches, longer": 9,
        "exp2, 1 object": 1, "exp2, 1-5 objects": 3, "exp2L, 1 object": 5,
        "exp2L, 1-5 objects": 10, "exp2L, patches": 9, "exp3L, patches": 9,
    }  # fmt: skip
    assert scenes.listed({0: 2.0, 1: 2.5}) == "2, 2.5"
    bounded = scenes.k_estimate({0: 3.0, 1: 3.0}, 3)
    assert bounded.high <= 3 <= scenes.k_estimate({0: 3.0, 1: 3.0}).high


def test_scene_claims_have_the_regions_that_were_written_down():
    rows = study_rows()
    found = {
        id: [(p.name, p.low, p.high) for p in CLAIMS[id].measure(rows).parts if hasattr(p, "low")]
        for id in ("S7", "S8")
    }
    assert found["S8"] == [("rank correlation within a seed", 0.7, 1.0)]
    assert {(low, high) for _, low, high in found["S7"]} == {(locality.MARGIN, 1.0)}


def test_within_a_seed_there_may_be_nothing_to_correlate():
    every = {name: (0.5, 0.5) for name in LOCAL}
    flat = study_rows(shift=every).with_columns(condition=pl.lit(0.5))
    assert note(CLAIMS["S8"], flat) == "nothing to correlate within a seed"
