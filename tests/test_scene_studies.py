"""The studies `length` and `locality`: what is told and asked, what differs between experiments, how rows are judged."""

from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch
from tiny import QUIET

from recombine.config import UsageError, digest, from_json, override, to_json
from recombine.evaluate.counting import k_max, may_judge
from recombine.nets.local import LocalConfig
from recombine.rng import seeded
from recombine.store import RunFolder, read_json, read_rows
from recombine.studies import find
from recombine.studies.base import Rows, judge
from recombine.studies.lab import Lab, run_study
from recombine.studies.scenes import length, length_figures, locality, locality_figures
from recombine.studies.scenes.judge import Judge, doubt
from recombine.studies.scenes.outcomes import PAPER, Point, able, mean_local, points, reached, title
from recombine.studies.scenes.pictures import crossed, cut, read_heat, write_heat
from recombine.studies.scenes.recipe import SceneEvaluation
from recombine.studies.scenes.runs import SceneRun
from recombine.studies.scenes.settings import EXPERIMENTS, SceneSettings, settings
from recombine.studies.sheets import write_sheet
from recombine.worlds.layout import Layout
from recombine.worlds.scenes.scenes import Scenes

DOCS = Path(__file__).parent.parent / "docs" / "length.md"
SMOKE = settings("smoke")


def scene_run(root: Path, name: str = "exp1", chosen: SceneSettings = SMOKE) -> SceneRun:
    recipe, lab = chosen.variants()[name], Lab(QUIET, root, "smoke", 1)
    return SceneRun(recipe, lab, Judge(recipe, lab))


# ---- the experiments


@pytest.mark.parametrize("scale", ["smoke", "laptop", "full"])
def test_recipes_fit_and_go_through_json(scale):
    chosen = settings(scale)
    recipes = chosen.variants()
    assert len({digest(r) for r in recipes.values()}) == len(recipes)
    assert from_json(to_json(chosen)) == chosen
    for recipe in recipes.values():
        recipe.check()
    assert len({digest(r.crowd) for r in recipes.values()}) == 1, "one judge for all"


DIFFER = {
    "exp1": set(),
    "exp2": {"layout_encoder"},
    "exp3": {"layout_encoder"},
    "exp2L": {"layout_encoder", "net", "objective"},
    "exp3L": {"layout_encoder", "net", "objective"},
    "exp2L, whole": {"layout_encoder", "net", "objective"},
    "exp2, 1 object": {"layout_encoder", "world"},
    "exp2L, 1-5 objects": {"layout_encoder", "net", "objective", "world"},
}


@pytest.mark.parametrize("name", DIFFER)
@pytest.mark.parametrize("scale", ["smoke", "full"])
def test_an_experiment_differs_from_the_first_in_what_it_names_alone(scale, name):
    chosen = settings(scale)
    first, other = chosen.recipe, replace(chosen, experiments=(name,)).variants()[name]
    assert {f.name for f in fields(first) if getattr(first, f.name) != getattr(other, f.name)} == DIFFER[name]
    if "objective" in DIFFER[name]:
        assert replace(other.objective, balance=None) == first.objective
    if "world" in DIFFER[name]:
        assert replace(other.world, counts=first.world.counts) == first.world


def test_the_network_or_the_conditioner_is_all_that_neighbours_do_not_share():
    v = settings("full").variants()
    assert replace(v["exp2"].layout_encoder, labelled="all") == v["exp1"].layout_encoder
    assert v["exp3"].layout_encoder.labelled == "all"
    assert v["exp2L"].layout_encoder == v["exp2"].layout_encoder
    assert v["exp3L"].layout_encoder == v["exp3"].layout_encoder
    assert replace(v["exp2L, whole"], net=v["exp2L"].net) == v["exp2L"]
    whole = v["exp2L, whole"].net
    assert isinstance(whole, LocalConfig)
    assert (whole.reach, whole.told) == (8, "patch")
    assert 2 * whole.reach + 1 >= whole.cells, "its patch is as large as the picture"


WRONG = {
    "recipe.evaluation.locations=[1,13]": "of 1 to 12",
    "recipe.evaluation.locations=[3,2]": "smallest first",
    "recipe.evaluation.early=9": "no more than the 2 samples",
    "recipe.evaluation.checkpoints=[0]": "must be positive",
    "recipe.evaluation.locality.locations=1": "2 to 12",
    "recipe.evaluation.locality.times=[0.5,2]": "up to 1",
    "recipe.detector.width=9": "multiple of 8",
    "recipe.pool=0": "pool must be positive",
    "recipe.layout_encoder.labelled=one": "that of Exp 1",
    "recipe.objective.balance=0.5": "that of Exp 1",
    "control=16": "reach must lie between 0 and 15",
    'experiments=["exp4"]': "exp4",
    'experiments=["exp1","exp1"]': "each once",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_setting_is_one_line(wrong):
    with pytest.raises(UsageError, match=WRONG[wrong]) as told:
        override(SMOKE, wrong)
    assert "\n" not in str(told.value)


UNFIT = {
    "world.size=44": "divisible by 8",
    "world.size=40": "16 cells do not divide a picture of 40x40",
    "recipe.evaluation.checkpoints=[99]": "beyond the last of 4 steps",
    "world.apart=2.0": "5 objects: found no room",
    "evaluation.locations=[1,12]": "12 objects: found no room",
}


@pytest.mark.parametrize("wrong", UNFIT)
def test_parts_that_do_not_fit_are_refused_before_the_work(tmp_path, monkeypatch, wrong):
    monkeypatch.setattr("recombine.worlds.scenes.place.PATIENCE", 3)
    chosen = override(SMOKE, wrong, 'world.sizes=["large"]', "world.margin=0.7")
    with pytest.raises(UsageError, match=UNFIT[wrong]):
        list(length.run(chosen, Lab(QUIET, tmp_path, "smoke", 1)))
    assert not (tmp_path / "runs").exists()


def test_a_list_too_short_for_the_marks_is_refused():
    recipe = SMOKE.variants()["exp3"]
    with pytest.raises(UsageError, match=r"layout_encoder.slots=2: too few for the 3 layout"):
        replace(recipe, layout_encoder=replace(recipe.layout_encoder, slots=2)).check()


def test_checkpoints_are_spread_and_end_at_the_end():
    assert SceneEvaluation().at(5000) == (625, 1250, 2500, 5000)
    assert SceneEvaluation(checkpoints=9).at(4) == (1, 2, 4)
    assert SceneEvaluation(checkpoints=(3,)).at(8) == (3, 8)


def test_larger_pictures_are_one_setting_away():
    for recipe in override(settings("full"), "recipe.world.size=128").variants().values():
        recipe.check()
        assert recipe.crowd.size == 128


# ---- what is told and asked


def test_pictures_and_places_belong_together(tmp_path):
    run = scene_run(tmp_path)
    images, layout = run.pool
    assert images.dtype == torch.uint8
    assert len(images) == run.recipe.pool
    assert set(layout.present.sum(1).tolist()) == {1, 2}
    again = run.recipe.world.sample(run.recipe.pool, seeded(0, "pool", 0))
    assert torch.equal(layout.at, again.centres)
    assert (images / 255 - again.images).abs().amax() <= 0.5 / 255 + 1e-6


def test_exp1_tells_of_all_objects_and_exp2_of_one_of_them(tmp_path):
    all_, one = scene_run(tmp_path), scene_run(tmp_path, "exp2")
    for step in range(3):
        (x1, told1, draw1), (x2, told2, draw2) = all_.batch(step), one.batch(step)
        assert torch.equal(x1, x2)
        assert torch.equal(draw1.noise, draw2.noise), "the same pictures under the same noise"
        assert torch.equal(told1.at, told2.at)
        assert (told2.present.sum(1) == 1).all()
        assert (told2.present <= told1.present).all()
        assert set(told1.present.sum(1).tolist()) == {1, 2}
    assert not torch.equal(all_.batch(0)[0], all_.batch(1)[0])


def test_marks_are_real_places_and_the_same_for_all_variants_and_seeds(tmp_path):
    recipes = SMOKE.variants()
    lab = Lab(QUIET, tmp_path, "smoke", 1)
    asked = Judge(recipes["exp1"], lab).asked(2)
    assert asked.present.sum(1).tolist() == [1, 1, 2, 2, 3, 3]
    for name in ("exp2", "exp2L, 1-5 objects"):
        other = Judge(replace(recipes[name], seed=5), lab).asked(2)
        assert torch.equal(asked.at, other.at)
        assert torch.equal(asked.present, other.present)
    fewer = Judge(recipes["exp1"], lab).asked(1)
    assert torch.equal(fewer.at, asked.at[::2])


def test_marks_are_spaced_and_those_of_real_scenes_are_asked_for_too(tmp_path):
    recipe, lab = SMOKE.variants()["exp1"], Lab(QUIET, tmp_path, "smoke", 1)
    asks = lambda spaced: replace(recipe, evaluation=replace(recipe.evaluation, spaced=spaced, samples=24))  # noqa: E731
    wide, plain = Judge(asks(0.25), lab), Judge(asks(0.0), lab)
    least = lambda locations: min(torch.pdist(at).min().item() for at in locations.at[48:])  # noqa: E731
    assert least(wide.asked(24)) >= 0.25 - 1e-6
    assert least(plain.asked(24)) < 0.25
    assert plain.crowded == {}
    assert torch.equal(wide.asked(24, crowded=True).at, plain.asked(24).at)


def test_real_scenes_are_as_crowded_as_the_page_says():
    assert "of nine objects, about three of four have another one within two cells" in DOCS.read_text()
    world = Scenes()
    scene = world.place(torch.full((128,), 9), seeded("crowded"))
    cell = Layout.of(world.centres(scene)).cell(16)
    rows, columns = ((part[:, :, None] - part[:, None]).abs() for part in (cell // 16, cell % 16))
    others = (torch.maximum(rows, columns) <= 2).sum(2) - 1
    assert 0.7 <= (others > 0).float().mean() <= 0.8


def test_early_looks_use_the_noise_of_the_last(tmp_path):
    run = scene_run(tmp_path)
    assert torch.equal(run.noise(1), run.noise(2)[::2])


def test_a_sampled_picture_does_not_depend_on_its_company(tmp_path):
    run = scene_run(tmp_path, "exp3L")
    with torch.no_grad():
        for p in run.net.parameters():
            p.add_(0.05 * torch.randn(p.shape, generator=seeded("weights")))
    locations, noise = run.judge.asked(2), run.noise(2)
    together, alone = run.sample(locations, noise), run.sample(locations.rows(slice(3, 4)), noise[3:4])
    torch.testing.assert_close(together[3:4], alone, atol=1e-4, rtol=0)


# ---- pictures


def test_crosses_stand_at_the_marks_and_say_whether_they_were_hit(tmp_path):
    locations = Layout(torch.tensor([[[0.25, 0.5], [0.75, 0.5], [0.5, 0.1]]]), torch.tensor([[True, True, False]]))
    drawn = crossed(torch.full((1, 3, 32, 32), 0.5), locations, torch.tensor([[True, False, True]]), side=64)[0]
    assert drawn.shape == (3, 64, 64)
    green, red = drawn[:, 32, 16], drawn[:, 32, 48]
    assert green[1] > 0.9 > green[0]
    assert red[0] > 0.9 > red[1]
    assert (drawn[:, :20] == 0.5).all(), "no cross where no location is"
    write_sheet(tmp_path / "sheet.png", drawn.expand(3, 2, 3, 64, 64))
    assert (cut(tmp_path / "sheet.png", 3, 2, 1) == cut(tmp_path / "sheet.png", 3, 0, 0)).all()


def test_heat_survives_as_a_picture(tmp_path):
    heat = 10 ** (-5 * torch.rand(3, 8, 8, generator=seeded("heat")))
    write_heat(tmp_path / "heat.png", heat)
    back = read_heat(tmp_path / "heat.png", 3)
    torch.testing.assert_close(back.log10(), heat.clamp(min=1e-4).log10(), atol=4 / 255, rtol=0)


# ---- a run of seconds, twice


@pytest.fixture(scope="module")
def ran(tmp_path_factory) -> Path:
    """Two experiments at smoke scale, both studies."""
    root = tmp_path_factory.mktemp("scenes")
    chosen = replace(SMOKE, experiments=("exp1", "exp2L"))
    for study in (length.STUDY, locality.STUDY):
        run_study(study, chosen, Lab(QUIET, root, "smoke", 1))
    return root


def test_a_run_leaves_counts_locality_maps_and_sheets(ran):
    rows = Rows(read_rows(ran / "length" / "rows.jsonl"))
    seen = {"detector", "real", "real, crowded", "variant", "train", "count", "crowded", "near", "locality", "map"}
    assert {r["kind"] for r in rows} == seen
    assert rows.where(kind="detector").column("objects") == [0, 1, 2, 3]
    for name, strict in (("exp1", 1), ("exp2L", 0)):
        mine = rows.where(variant=name)
        assert mine.where(kind="variant").one()["strict"] == strict
        assert mine.where(kind="count").column("locations") == [1, 2, 3, 1, 2, 3]
        assert mine.where(kind="crowded").column("locations") == [1, 2, 3], "at the end alone"
        assert mine.where(kind="locality").column("step") == [2, 2, 4, 4]
        assert mine.where(kind="map").column("location") == [0, 1]
        samples = ran / "runs" / mine.where(kind="count")[0]["run"] / "samples"
        names = {"step_00000002.png", "step_00000004.png", "crowded.png", "maps.png"}
        assert {p.name for p in samples.iterdir()} == names
    figures = [f["name"] for f in read_json(ran / "length" / "study.json")["figures"]]
    assert figures == ["curves", "k-max", "near", "samples"]
    asked = rows.where(kind="near", variant="exp1")
    assert sum(r["n"] for r in asked) == 2 * (1 + 2 + 3), "every location is in one of the rows"
    assert [f["name"] for f in read_json(ran / "locality" / "study.json")["figures"]] == ["scatter", "levels", "maps"]


def test_a_local_network_is_local_and_a_whole_one_is_not(ran):
    """Even after four steps: the patch network has no effects beyond its patch."""
    rows = Rows(read_rows(ran / "locality" / "rows.jsonl")).where(kind="locality")
    assert min(rows.where(variant="exp2L").column("condition")) > 0.9999
    assert max(rows.where(variant="exp1").column("condition")) < 0.9


def test_locality_uses_the_runs_of_length(ran):
    first, second = (read_json(ran / name / "study.json")["runs"] for name in ("length", "locality"))
    assert first == second
    assert len(list((ran / "runs").iterdir())) == 2 + 2, "two runs, the detector, its exam"
    assert read_rows(ran / "length" / "rows.jsonl") == read_rows(ran / "locality" / "rows.jsonl")


def test_the_same_again_elsewhere_and_nothing_is_trained_twice(ran, tmp_path):
    chosen = replace(SMOKE, experiments=("exp1",))
    go = lambda: Rows(length.run(chosen, Lab(QUIET, tmp_path, "smoke", 1)))  # noqa: E731
    fresh, before = go(), Rows(read_rows(ran / "length" / "rows.jsonl"))
    for kind in {"variant": "exp1"}, {"kind": "detector"}, {"kind": "real"}:
        assert [r | {"scale": "smoke"} for r in fresh.where(**kind)] == before.where(**kind)
    for weights in tmp_path.glob("runs/*/*.safetensors"):
        weights.unlink()
    times = {p: p.stat().st_mtime_ns for p in tmp_path.glob("runs/*/*")}
    assert go() == fresh, "rows are enough, weights may be gone"
    assert {p: p.stat().st_mtime_ns for p in tmp_path.glob("runs/*/*")} == times


def test_a_detector_whose_weights_are_gone_is_trained_again_when_it_is_needed(tmp_path):
    lab = Lab(QUIET, tmp_path, "smoke", 1)
    judge = Judge(SMOKE.recipe, lab)
    rows = judge.rows()
    weights = RunFolder(tmp_path, judge.config).path / "model.safetensors"
    weights.unlink()
    again = Judge(SMOKE.recipe, lab)
    assert again.rows() == rows
    assert not weights.exists()
    again.detector  # noqa: B018
    assert weights.exists()


# ---- claims, on made-up rows

GOOD = {"exp1": 7, "exp2": 2, "exp3": 3, "exp2L": 9, "exp3L": 9, "exp2L, whole": 2, "exp2, 1 object": 1,
        "exp2, 1-5 objects": 3, "exp2L, 1 object": 5, "exp2L, 1-5 objects": 10}  # fmt: skip
LOCAL = {"exp1": (0.95, 0.9), "exp2": (0.94, 0.5), "exp3": (0.7, 0.4), "exp2L": (1.0, 1.0), "exp3L": (1.0, 1.0),
         "exp2L, whole": (0.8, 0.6)}  # fmt: skip


def detector_rows(exact: dict[int, float], most: int = 12) -> list[dict]:
    share = lambda k: {n: exact.get(k, 1.0) for n in ("exact", "right", "complete", "recall")}  # noqa: E731
    rows = [{"kind": "detector", "objects": k, **share(k)} for k in range(most + 1)]
    return rows + [{"kind": "real", "locations": k, "n": 128, **share(k)} for k in range(1, most + 1)]


def count_rows(k: int, strict: bool, most: int = 12) -> list[dict]:
    """A curve whose judged share falls below a half after `k` locations."""
    rows = []
    for locations in range(1, most + 1):
        share = 1 / (1 + 2.0 ** (locations - k - 0.5))
        right, complete = (share, share) if strict else (0.1 * share, share)
        rows.append({"kind": "count", "locations": locations, "n": 128, "right": right, "complete": complete, "exact": right,
                     "recall": share ** (1 / 3), "total": locations * share})  # fmt: skip
    return rows


def near_rows(many: float, most: int) -> list[dict]:
    """Half of the crowded locations are located; of those far from others nearly all at few locations, and `many` of them at many."""
    far = lambda locations: 0.97 if locations < 4 else many  # noqa: E731
    each = [(locations, low) for locations in range(2, most + 1) for low in (0.0, 0.16, 0.25)]
    return [{"kind": "near", "locations": m, "from": d, "n": 9, "recall": far(m) if d else 0.5, "step": 4} for m, d in each]


def run_rows(name: str, seed: int, k: int, strict: bool, at: tuple[float, float], most: int = 12) -> list[dict]:
    """Three checkpoints, at which both K_max and locality grow."""
    rows = near_rows(0.9 if name in ("exp2L", "exp3L") else 0.7, most)
    for step, part in ((1, 0.4), (2, 0.7), (4, 1.0)):
        rows += [r | {"step": step} for r in count_rows(round(k * part), strict, most)]
        for t, sigma in ((0.3, 0.3), (0.5, 2.5)):
            pixel, condition = (0.3 + (v - 0.3) * part for v in at)
            rows.append({"kind": "locality", "step": step, "t": t, "sigma": sigma, "pixel": pixel,
                         "condition": condition - 0.02 * seed, "own": condition})  # fmt: skip
    return [r | {"variant": name, "seed": seed, "run": f"{name}{seed}"} for r in rows]


def study_rows(
    exact: dict[int, float] | None = None, most: int = 12, shift: dict[str, tuple] | None = None, **k
) -> Rows:
    """All experiments over three seeds. `k` gives other K_max for some, one for all seeds or one each."""
    rows = detector_rows(exact or {}, most)
    for name, reaches in (GOOD | {n.replace("_", ", ").replace("-", " "): v for n, v in k.items()}).items():
        base = name if name in LOCAL else name.partition(", ")[0]
        strict, trained = not base.startswith("exp2"), {"1 object": 1, "1-5 objects": 5}.get(name.partition(", ")[2], 3)
        rows.append({"kind": "variant", "variant": name, "trained": trained, "strict": int(strict)})
        each = reaches if isinstance(reaches, tuple) else (reaches,) * 3
        for seed, mine in enumerate(each):
            rows += run_rows(name, seed, mine, strict, (shift or {}).get(name, LOCAL[base]), most)
    return Rows(rows)


CLAIMS = {c.id: c for s in (length.STUDY, locality.STUDY) for c in s.claims}


@pytest.mark.parametrize("name", CLAIMS)
def test_every_claim_holds_where_it_should(name):
    found = CLAIMS[name].judge(study_rows())
    assert found.holds is True, found.measured
    assert CLAIMS[name].trained


def test_k_max_is_read_with_the_criterion_of_the_experiment():
    rows = study_rows()
    assert reached(rows, "exp2").values == [2, 2, 2]
    mine = rows.where(kind="count", variant="exp2", seed=0, step=4)
    assert k_max(mine, total=True) == 0, "its pictures hold more objects than locations"
    assert {v: reached(rows, v).mean for v in GOOD} == GOOD


BOUNDARY = [
    ("S1", {"exp1": (6, 6, 6)}, True),
    ("S1", {"exp1": (5, 7, 7)}, "partly"),
    ("S1", {"exp1": (5, 6, 6)}, False),
    ("S2", {"exp2": (1, 2, 2)}, True),
    ("S2", {"exp2": (1, 2, 3)}, "partly"),
    ("S2", {"exp2": (0, 1, 2)}, "partly"),
    ("S2", {"exp2": 3}, False),
    ("S3", {"exp3": (3, 3, 3)}, True),
    ("S3", {"exp3": 4}, False),
    ("S4", {"exp2L": 8}, True),
    ("S4", {"exp2L": (7, 9, 9)}, "partly"),
    ("S4", {"exp2L": 7}, "partly"),
    ("S4", {"exp2L": 7, "exp2L_1 object": 3}, False),
    ("S4", {"exp2L_1 object": 3}, "partly"),
    ("S5", {"exp3L": 7}, False),
    ("S6", {"exp2L_whole": 3}, True),
    ("S6", {"exp2L_whole": 4}, False),
]


@pytest.mark.parametrize(("name", "change", "holds"), BOUNDARY)
def test_verdicts_at_their_boundaries(name, change, holds):
    assert CLAIMS[name].judge(study_rows(**change)).holds is holds


@pytest.mark.parametrize(
    ("variant", "many", "holds"), [("exp2L", 0.86, "partly"), ("exp1", 0.78, "partly"), ("exp1", 0.76, True)]
)
def test_crowds_and_numbers_are_told_apart_in_every_seed(variant, many, holds):
    def moved(row: dict) -> dict:
        mine = (
            row["kind"] == "near" and (row["variant"], row["seed"]) == (variant, 2) and row["locations"] > 3 and row["from"]
        )
        return {**row, "recall": many} if mine else row

    found = CLAIMS["B14"].judge(Rows(map(moved, study_rows())))
    assert found.holds == holds
    assert found.measured["exp2, 2-3 locations"] == pytest.approx(0.97)
    crowded = Rows(r for r in study_rows() if r["kind"] != "near" or r["from"] < 0.16)
    with pytest.raises(LookupError, match="exp2L: no locations of 2 to 3 that are far"):
        CLAIMS["B14"].judge(crowded)


def test_the_papers_numbers_stand_beside_ours():
    found = CLAIMS["S4"].judge(study_rows()).measured
    for name in ("exp2L", "exp2L, 1 object", "exp2L, 1-5 objects"):
        assert (found[name], found[f"paper_{name}"]) == (GOOD[name], PAPER[name])
    assert CLAIMS["S1"].judge(study_rows(exp1=(6, 7, 8))).measured["exp1, seeds"] == "6, 7, 8"


def test_a_detector_that_cannot_count_judges_nothing():
    assert may_judge(study_rows().where(kind="detector"))
    for bad in ({4: 0.96}, {10: 0.89}):
        rows = study_rows(exact=bad)
        assert not may_judge(rows.where(kind="detector"))
        for name in ("S1", "S2", "S3", "S4", "S5", "S6", "S8"):
            with pytest.raises(
                LookupError, match=f"it counts {max(bad.values()):.1%} of real pictures with {max(bad)}"
            ):
                CLAIMS[name].judge(rows)
    assert judge(CLAIMS["S1"], rows, "full", 3, {}).word == "not measured"
    assert not doubt(study_rows(exact={11: 0.5}))
    assert not doubt(Rows(detector_rows({6: 0.5}, most=5))), "what is never asked for need not be counted"
    assert doubt(Rows()) == "no detector was tested on real pictures"


def test_models_that_were_asked_for_too_few_are_not_judged():
    with pytest.raises(LookupError, match="5 objects at most"):
        CLAIMS["S1"].judge(study_rows(most=5))
    with pytest.raises(LookupError, match=r"0 rows match"):
        CLAIMS["S3"].judge(Rows(r for r in study_rows() if r.get("variant") != "exp3"))
    other = Rows(r | {"trained": 2} if r["kind"] == "variant" else r for r in study_rows())
    with pytest.raises(LookupError, match="not trained on one to three"):
        CLAIMS["S1"].judge(other)


def test_the_order_of_locality_can_fail_in_part_or_whole():
    same = {"exp2": (0.94, 0.9)}
    assert CLAIMS["S7"].judge(study_rows(shift=same)).holds == "partly"
    alike = {v: (0.9, 0.9) for v in ("exp1", "exp2", "exp3")}
    assert CLAIMS["S7"].judge(study_rows(shift=alike)).holds is False


def test_the_scatter_counts_every_run_and_checkpoint():
    rows = study_rows()
    found = points(rows)
    assert len(found) == 10 * 3 * 3
    assert {p.gain for p in found if p.variant == "exp2L, 1-5 objects" and p.step == 4} == {5}
    judged, usual = locality.judge_scatter(rows), [p for p in found if "object" not in p.variant]
    assert (len(usual), judged.measured["points"]) == (54, len(able(usual)))
    assert judged.measured["rank correlation"] > 0.7
    far = {v: (1 - a, 1 - b) for v, (a, b) in LOCAL.items()}
    assert locality.judge_scatter(study_rows(shift=far)).holds is False
    few = Rows(r for r in rows if r.get("variant") in (None, "exp1"))
    with pytest.raises(LookupError, match="9 points; 12"):
        locality.judge_scatter(few)


def test_points_count_from_the_first_look_at_which_one_object_is_drawn():
    made = [Point("a", 0, step, k, k - 3, 0.5, 0.5) for step, k in ((1, 0), (2, 1), (3, 0), (4, 2))]
    never = [Point("b", 0, step, 0, -3, 0.5, 0.5) for step in (1, 2)]
    assert [p.step for p in able(made + never)] == [2, 3, 4]


def test_locality_is_judged_where_it_is_decided_what_is_drawn_and_what_was_not_measured_is_left_out():
    rows = Rows({"t": t, "pixel": p} for t, p in ((0.2, 0.0), (0.4, 0.5), (0.6, 0.7), (0.7, None)))
    assert mean_local(rows, "pixel") == pytest.approx(0.6)
    assert mean_local(Rows(rows[:1]), "pixel") == 0.0, "no such level: all"
    with pytest.raises(LookupError, match="could not be measured"):
        mean_local(Rows(rows[3:]), "pixel")


def test_a_missing_run_or_measurement_leaves_claims_unjudged():
    rows = study_rows()
    for gone in (
        lambda r: r.get("variant") == "exp3" and r.get("seed") == 2,
        lambda r: r.get("variant") == "exp1" and r["kind"] == "locality",
    ):
        with pytest.raises(LookupError):
            locality.judge_order(Rows(r for r in rows if not gone(r)))
    none = Rows(r | ({"pixel": None} if r["kind"] == "locality" and r["variant"] == "exp1" else {}) for r in rows)
    with pytest.raises(LookupError, match="could not be measured"):
        locality.judge_order(none)
    assert locality.judge_scatter(none).measured["points"] < locality.judge_scatter(rows).measured["points"]


def test_figures_are_drawn_from_rows_without_any_run_folder(tmp_path):
    some = (None, "exp1", "exp2", "exp2, 1 object")
    rows = Rows(r for r in study_rows() if r.get("variant") in some)
    names = [f.name for f in length_figures.draw(rows, tmp_path / "length" / "figures")]
    names += [f.name for f in locality_figures.draw(rows, tmp_path / "locality" / "figures")]
    assert names == ["curves", "k-max", "near", "scatter", "levels"]


def test_the_studies_say_what_they_are():
    assert [c.id for c in find("length").claims] == ["S1", "S2", "S3", "S4", "S5", "S6", "B14"]
    assert [c.id for c in find("locality").claims] == ["S7", "S8"]
    assert len({title(v) for v in EXPERIMENTS}) == len(EXPERIMENTS)
