"""The studies of discrete against continuous: one thing changes at a time, verdicts follow from rows, own pictures go in."""

import csv
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from tiny import QUIET

from recombine import cli
from recombine.config import UsageError, digest, override
from recombine.nets.conditioning import Conditioning
from recombine.rng import seeded
from recombine.store import read_config, read_json, read_rows
from recombine.studies import composition, conditioning, details, jepa, objectives, tokenizers, variation, where, which
from recombine.studies.base import Rows
from recombine.studies.lab import Lab
from recombine.studies.runs import compute
from recombine.studies.tokens import TokenizerRun
from recombine.tokenizers.pixels import Pixels
from recombine.worlds.circles import Circles
from recombine.worlds.factors import code
from recombine.worlds.folder import Folder
from recombine.worlds.shapes2d import Shapes2D

SCALES = ("smoke", "laptop", "full")


def accuracies(**means: float) -> Rows:
    """Rows of three seeds: `name=level2`, seen 0.95, level 1 halfway; a perfect tokenizer."""
    rows = [{"kind": "ceiling", "variant": n, "probe": "cnn", "level": 2, "joint": 1.0} for n in means]
    for name, level2 in means.items():
        variant = name.replace("_", "+").replace("0", ", ")
        for level, joint in ((0, 0.95), (1, (0.95 + level2) / 2), (2, level2)):
            for seed in range(3):
                row = {"kind": "accuracy", "variant": variant, "seed": seed, "level": level, "step": 1, "joint": joint}
                rows += [row | {"probe": p, "composition": "x"} for p in ("cnn", "oracle")]
    return Rows(rows)


@pytest.location.parametrize("scale", SCALES)
@pytest.location.parametrize("study", [objectives, jepa])
def test_variants_differ_in_their_objective_alone(study, scale):
    settings = study.settings(scale)
    made = settings.variants()
    shared = {digest(replace(r, objective=settings.recipe.objective)) for r in made.values()}
    assert len(shared) == len({r.world for r in made.values()}) == (2 if study is jepa and scale == "full" else 1)
    assert len({digest(r) for r in made.values()}) == len(made)
    for recipe in made.values() if scale != "full" else ():
        recipe.check()
        recipe.objective.network(
            recipe.net, recipe.conditioning, recipe.shape, recipe.world.space, torch.randn(9, recipe.shape[0])
        )


def test_two_of_the_four_worlds_of_where_are_those_of_composition():
    four, three = where.settings("full").variants(), composition.settings("full").variants()
    shared = {"nowhere": "balanced", "everywhere": "varied"}
    assert [digest(four[a]) for a in shared] == [digest(three[b]) for b in shared.values()]
    assert len({digest(r) for r in four.values()}) == 4


def test_what_varies_in_which_is_one_thing_at_a_time():
    made = which.settings("full").variants()
    assert digest(made["both"]) == digest(where.settings("full").variants()["everywhere"])
    jitters = {w: (made[w].world.color_jitter > 0, made[w].world.size_jitter > 0) for w in made}
    assert jitters == {"none": (False, False), "colour": (True, False), "size": (False, True), "both": (True, True)}
    assert {r.probe_world for r in made.values()} == {which.settings("full").recipe.world}


@pytest.location.parametrize("scale", SCALES)
def test_studies_share_runs_where_they_ask_the_same(scale):
    four, repair, both = (
        objectives.settings(scale).variants(),
        jepa.settings(scale).variants(),
        tokenizers.settings(scale),
    )
    assert digest(four["maskgit"]) == digest(repair["maskgit"])
    varied = variation.settings(scale).variants()["maskgit, varied"]
    assert digest(repair.get("maskgit, varied", varied)) == digest(varied)
    assert digest(four["dit"]) == digest(both.variants()["vq"])
    assert digest(four["maskgit"]) == digest(details.settings(scale).variants()["maskgit"])
    assert digest(four["dit"]) == digest(variation.settings(scale).variants()["dit, usual"])


def varying(*varied: float, plain: float = 0.0) -> dict[str, float]:
    """Level 2 of the four families in the varied world, and in the others."""
    worlds = zip(variation.FAMILIES, varied, strict=True)
    return {f"{f}0{a}": y if a == "varied" else plain for f, y in worlds for a in variation.JUDGED}


def repaired(maskgit: float, several: float) -> dict[str, float]:
    """Level 2 where classes vary, without and with the auxiliary loss."""
    return {"maskgit0varied": maskgit, "jepa0varied": several, "jepa0one layer0varied": 0.7}


def coded(codes: float, pictures: float, dit: float = 0.1) -> dict[str, float]:
    """Level 2 of MaskGIT where its tokenizer or it alone learns from pictures that vary; a DiT that does as it should, where
    `dit` is low."""
    base = {"maskgit": 0.0, "dit": 0.1, "dit0codes": dit, "dit0pictures": 0.9}
    return base | {"maskgit0codes": codes, "maskgit0pictures": pictures}


def halfway(maskgit: float, mar: float, dit: float) -> dict[str, float]:
    """Level 2 with half of the variation, and GIVT's, which is not judged."""
    return {"maskgit0half": maskgit, "givt0half": 0.4, "mar0half": mar, "dit0half": dit}


LASTING = {"maskgit": 0.0, "maskgit0small": 0.0, "dit": 0.9, "dit0longer": 0.9, "dit0small": 0.9}
LABELS = {"maskgit": 0.0, "dit": 0.9, "maskgit0classes": 0.9, "dit0classes": 0.1}


@pytest.location.parametrize(
    ("judge", "means", "verdict"),
    [
        (objectives.judge_maskgit, {"maskgit": 0.01, "dit": 0.9}, True),
        (objectives.judge_maskgit, {"maskgit": 0.01, "dit": 0.02}, "partly"),
        (objectives.judge_maskgit, {"maskgit": 0.6, "dit": 0.9}, False),
        (objectives.judge_head, {"maskgit": 0.1, "givt": 0.7}, True),
        (objectives.judge_head, {"maskgit": 0.4, "givt": 0.7}, "partly"),
        (objectives.judge_head, {"maskgit": 0.9, "givt": 0.7}, False),
        (objectives.judge_continuous, {"mar": 0.8, "dit": 0.9}, True),
        (objectives.judge_continuous, {"mar": 0.2, "dit": 0.9}, "partly"),
        (jepa.judge_repair, {"maskgit": 0.0, "jepa": 0.3}, True),
        (jepa.judge_repair, {"maskgit": 0.5, "jepa": 0.3}, False),
        (jepa.judge_where_classes_vary, repaired(0.6, 0.85), True),
        (jepa.judge_where_classes_vary, repaired(0.6, 0.75), "partly"),
        (jepa.judge_where_classes_vary, repaired(0.6, 0.6), False),
        (jepa.judge_layers, {"jepa": 0.5, "jepa0one layer": 0.3}, True),
        (jepa.judge_layers, {"jepa": 0.3, "jepa0one layer": 0.3}, False),
        (details.judge_labels, {"maskgit": 0.0, "dit": 0.9, "maskgit0classes": 0.9, "dit0classes": 0.3}, True),
        (details.judge_labels, {"maskgit": 0.0, "dit": 0.9, "maskgit0classes": 0.9, "dit0classes": 0.9}, "partly"),
        (details.judge_labels, {"maskgit": 0.0, "dit": 0.9, "maskgit0classes": 0.0, "dit0classes": 0.9}, False),
        (details.judge_centres, LABELS | {"maskgit0centres": 0.8, "dit0centres": 0.2}, True),
        (details.judge_centres, LABELS | {"maskgit0centres": 0.8, "dit0centres": 0.9}, "partly"),
        (details.judge_centres, LABELS | {"maskgit0centres": 0.0, "dit0centres": 0.9}, False),
        (details.judge_wander, {"maskgit": 0.0, "maskgit0far": 0.9, "dit": 0.9, "dit0far": 0.9}, True),
        (details.judge_wander, {"maskgit": 0.9, "maskgit0far": 0.9, "dit": 0.9, "dit0far": 0.9}, False),
        (details.judge_few, {"maskgit": 0.0, "maskgit0few": 0.0, "dit": 0.9, "dit0few": 0.1}, True),
        (details.judge_few, {"maskgit": 0.0, "maskgit0few": 0.0, "dit": 0.9, "dit0few": 0.9}, False),
        (details.judge_rest, LASTING | {"maskgit0longer": 0.1, "maskgit0cool": 0.2}, True),
        (details.judge_rest, LASTING | {"maskgit0longer": 0.9, "maskgit0cool": 0.2}, "partly"),
        (details.judge_rest, LASTING | {"maskgit0longer": 0.9, "maskgit0cool": 0.9}, False),
        (variation.judge_more, {"dit0usual": 0.5, "dit0plain": 0.1, "dit0varied": 0.9}, True),
        (variation.judge_more, {"dit0usual": 0.9, "dit0plain": 0.1, "dit0varied": 0.5}, "partly"),
        (variation.judge_more, {"dit0usual": 0.9, "dit0plain": 0.9, "dit0varied": 0.9}, False),
        (variation.judge_all, varying(0.6, 0.7, 0.8, 0.9), True),
        (variation.judge_all, varying(0.6, 0.1, 0.1, 0.9), "partly"),
        (variation.judge_all, varying(0.6, 0.1, 0.1, 0.2), False),
        (variation.judge_all, varying(0.1, 0.9, 0.9, 0.9), False),
        (variation.judge_all, varying(0.6, 0.7, 0.8, 0.9, plain=0.5), False),
        (variation.judge_order, varying(0.6, 0.75, 0.8, 0.9), True),
        (variation.judge_order, varying(0.6, 0.1, 0.8, 0.9), "partly"),
        (variation.judge_order, varying(0.9, 0.8, 0.8, 0.95), False),
        (variation.judge_between, halfway(0.1, 0.8, 0.9), True),
        (variation.judge_between, halfway(0.2, 0.8, 0.9), "partly"),
        (variation.judge_between, halfway(0.1, 0.5, 0.9), "partly"),
        (variation.judge_between, halfway(0.6, 0.8, 0.9), False),
        (variation.judge_between, halfway(0.0, 0.2, 0.9), False),
        (details.judge_codes, coded(0.1, 0.6), True),
        (details.judge_codes, coded(0.1, 0.3), "partly"),
        (details.judge_codes, coded(0.4, 0.8), "partly"),
        (details.judge_codes, coded(0.1, 0.2, dit=0.9), False),
        (tokenizers.judge_masked, {"givt on vae": 0.8, "mar on vae": 0.9, "vae": 0.9}, True),
        (tokenizers.judge_masked, {"givt on vae": 0.1, "mar on vae": 0.9, "vae": 0.9}, "partly"),
        (tokenizers.judge_latents, {"vae": 0.9, "vq": 0.85}, True),
        (tokenizers.judge_latents, {"vae": 0.99, "vq": 0.81}, "partly"),
        (tokenizers.judge_latents, {"vae": 0.3, "vq": 0.4}, False),
    ],
)
def test_verdicts_follow_from_rows(judge, means, verdict):
    assert judge(accuracies(**means)).holds == verdict


def test_where_labels_make_no_difference_there_is_nothing_to_explain():
    same = LABELS | {"maskgit0classes": 0.1, "maskgit0centres": 0.9, "dit0centres": 0.1}
    with pytest.raises(LookupError, match="nothing to explain"):
        details.judge_centres(accuracies(**same))


def test_the_linear_probe_speaks_only_where_it_is_right_on_real_pictures():
    linear = Rows(r | {"probe": "linear"} for r in accuracies(maskgit=0.5, dit=0.5) if r["probe"] == "cnn")

    def said(joint: float) -> dict:
        real = Rows([{"kind": "probe", "probe": "linear", "joint": j} for j in (1.0, joint)])
        return objectives.judge_maskgit(Rows([*accuracies(maskgit=0.0, dit=0.9), *linear, *real])).measured

    assert said(0.96)["maskgit, linear probe"] == 0.5
    assert "maskgit, linear probe" not in said(0.6)


def test_a_gain_must_stand_clear_of_its_seeds():
    rows = accuracies(jepa=0.5, jepa0one_layer=0.3)
    rows = Rows(r | {"variant": r["variant"].replace("+", " ")} for r in rows)
    noisy = Rows(
        r | {"joint": r["joint"] + (0.4 * (r.get("seed", 1) - 1) if r["variant"] == "jepa" else 0)} for r in rows
    )
    assert jepa.judge_layers(rows).holds is True
    assert jepa.judge_layers(noisy).holds == "partly"
    with pytest.raises(LookupError, match="nothing to repair"):
        jepa.judge_repair(accuracies(maskgit=0.9, jepa=0.95))


def test_a_level_that_was_not_measured_gives_no_verdict():
    rows = Rows(r for r in accuracies(maskgit=0.0, givt=1.0) if r["level"] < 2)
    with pytest.raises(LookupError):
        objectives.judge_head(rows)


def test_conditioning_is_judged_by_its_order():
    rows = lambda full, quantised, dropped: accuracies(  # noqa: E731
        continuous=full, continuous_dropout=dropped, quantised=quantised, quantised_dropout=dropped, quantised_zero=0.0
    )
    assert conditioning.judge_order(rows(1.0, 0.6, 0.1)).holds is True
    assert conditioning.judge_order(rows(1.0, 0.95, 0.1)).holds == "partly"
    assert conditioning.judge_order(rows(0.5, 0.9, 0.9)).holds is False


def test_a_ceiling_is_judged_by_all_against_seen():
    def rows(seen_only: float) -> Rows:
        made = lambda kind, data, level, joint: [  # noqa: E731
            {
                "kind": "ceiling",
                "variant": f"{kind}, {data}",
                "seed": s,
                "level": level,
                "probe": "oracle",
                "joint": joint,
            }
            for s in range(3)
        ]
        parts = [made(k, d, n, seen_only if (d, n) == ("seen", 2) else 1.0)
                 for k in tokenizers.KINDS for d in ("all", "seen") for n in (0, 1, 2)]  # fmt: skip
        return Rows(r for p in parts for r in p)

    assert tokenizers.judge_ceiling(rows(0.3)).holds is True
    assert tokenizers.judge_ceiling(rows(0.95)).holds is False


def test_worlds_that_differ_are_judged_by_probes_of_their_own_unless_they_must_be_compared(tmp_path):
    settings = override(
        details.settings("smoke"), "world.size=16", "wander=0.3", "evaluation.samples=2", "probe_steps=2",
        "recipe.train.steps=2", "tokenizer.steps=2", "checkpoints=[0]",
    )  # fmt: skip
    lab = Lab(QUIET, tmp_path, "smoke", 1)
    made = settings.variants()
    plain = {f"{f}, plain": made[f].varying(0.0, 0.0) for f in ("maskgit", "dit")}
    rows = Rows(compute(plain | {n: made[n] for n in ("maskgit, far", "dit, far")}, lab))
    first, second = rows.where(kind="probe", variant=None), rows.where(kind="probe", variant="maskgit, far")
    assert len(first) == len(second) == 32
    assert {r.get("variant") for r in rows.where(kind="probe")} == {None, "maskgit, far"}
    models = {f"{f}, {d}" for f in ("maskgit", "dit") for d in ("far", "plain")}
    assert {r["variant"] for r in rows.where(kind="accuracy")} == models
    weights = list(tmp_path.glob("runs/*/model.safetensors"))
    assert len(weights) == 2 * 2 + 2 * (1 + 2), "two trained probes, a tokenizer and two models in each of two worlds"


def test_what_varies_more_or_less_is_judged_in_the_usual_world():
    made = override(variation.settings("smoke"), "wander=0.3").variants()
    usual = made["dit, usual"]
    assert {made[f"dit, {a}"].probe_world for a in ("plain", "varied")} == {usual.world}
    assert len({made[f"dit, {a}"].world for a in variation.JUDGED}) == 3
    other = replace(usual, evaluation=replace(usual.evaluation, probe_world=Shapes2D(colors=("red", "green"))))
    with pytest.raises(UsageError, match="other factors"):
        other.check()


def test_the_amounts_of_variation_lie_in_order_and_half_is_half():
    made = variation.settings("full").variants()
    jitters = [(w.color_jitter, w.size_jitter) for w in (made[f"mar, {a}"].world for a in variation.AMOUNTS)]
    assert jitters == sorted(jitters)
    assert jitters[2] == tuple(x / 2 for x in jitters[3])


def test_a_tokenizer_may_learn_from_other_pictures_than_the_model(tmp_path):
    settings = override(
        details.settings("smoke"), 'details=["base","codes","pictures"]', "world.size=16", "evaluation.samples=2",
        "probe_steps=2", "recipe.train.steps=2", "tokenizer.steps=2", "checkpoints=[0]",
    )  # fmt: skip
    made = settings.variants()
    usual, other = made["dit"], made["dit, codes"]
    assert replace(other, tokenizer_world=None) == usual
    assert made["dit, pictures"].coded == usual.world
    assert made["dit, pictures"].world == other.coded
    rows = Rows(compute({n: made[n] for n in ("dit", "dit, codes")}, Lab(QUIET, tmp_path, "smoke", 1)))
    learned = [c for p in tmp_path.glob("runs/*") if type(c := read_config(p)) is TokenizerRun]
    assert {c.world for c in learned} == {usual.world, usual.varying(*settings.varied).world}
    assert {r["variant"] for r in rows.where(kind="ceiling")} == {"dit", "dit, codes"}
    with pytest.raises(UsageError, match="only a learned tokenizer"):
        replace(other, tokenizer=Pixels()).check()
    with pytest.raises(UsageError, match="another size"):
        replace(other, tokenizer_world=Shapes2D(size=20)).check()
    with pytest.raises(UsageError, match="tokenizer_world: it has other factors"):
        replace(other, tokenizer_world=Shapes2D(size=16, colors=("red", "green"))).check()


def test_dropping_to_zero_tells_a_whole_batch_the_first_class():
    world, told = Shapes2D(), Conditioning("quantised", 0.5, dropped="zero")
    index = torch.ones(64, 3, dtype=torch.long)
    given = world.describe(index, world.canonical(index))
    seen = [told.drop(given, world.space, seeded(step)) for step in range(40)]
    assert all(c.present.all() for c in seen)
    assert all(len(c.index.unique(dim=0)) == 1 for c in seen)
    share = torch.stack([c.index[0] for c in seen]).float().mean(0)
    assert ((share > 0.2) & (share < 0.8)).all()
    for c in seen:
        gone = c.index[0] == 0
        assert torch.equal(c.value[0, :3] == 0, gone[1].expand(3))
        assert torch.equal(c.value[0, 3] == 0, gone[2])


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
            Image.fromarray((image * 255).byte().permute(1, 2, 0).numpy()).save(root / f"{i}.png")
            table.writerow([f"{i}.png", *(f.values[v] for f, v in zip(world.space.factors, row, strict=True))])
    return root


def test_ones_own_pictures_go_through_without_touching_code(folder, tmp_path, monkeypatch):
    words = ["run", "objectives", "--scale", "smoke", "--device", "cpu", "--out", str(tmp_path / "out")]
    sets = [f"world={folder}", 'families=["maskgit","dit"]', "samples=2", "probe_steps=2"]
    monkeypatch.setattr(sys, "argv", ["recombine", *words, *(w for s in sets for w in ("--set", s))])
    cli.main()
    done = tmp_path / "out" / "objectives"
    rows = Rows(read_rows(done / "rows.jsonl"))
    assert {r["variant"] for r in rows.where(kind="accuracy")} == {"maskgit", "dit"}
    assert {"form", "paint", "extent"} <= set(rows.where(kind="ceiling")[0])
    assert [c["verdict"] for c in read_json(done / "claims.json")] == ["smoke"] * 4
    assert (done / "index.html").exists()


def test_a_folder_without_pictures_of_what_is_new_is_asked_for_it(folder, tmp_path):
    """Only the pictures of `seen` remain; the others are the novel compositions."""
    rows = list(csv.DictReader((folder / "factors.csv").read_text().splitlines()))
    few = [r for r in rows if (r["form"], r["paint"]) != (rows[-1]["form"], rows[-1]["paint"])]
    with open(folder / "few.csv", "w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(few)
    world = Folder.open(folder, "few.csv")
    gone = [c for c in world.space.compositions if c not in world.present]
    settings = override(objectives.settings("smoke"), 'families=["dit"]', "samples=2", "probe_steps=2")
    recipe = replace(settings.recipe, world=world)
    assert recipe.split.seen == world.present
    assert gone
    found = Rows(objectives.run(replace(settings, recipe=recipe), Lab(QUIET, tmp_path, "smoke", 1)))
    assert {r["composition"] for r in found.where(kind="accuracy")} == {code(c) for c in world.space.compositions}
    assert {r["level"] for r in found.where(kind="accuracy") if r["composition"] in map(code, gone)} == {1}
    assert {r["composition"] for r in found.where(kind="probe")} == {code(c) for c in world.present}
    with pytest.raises(UsageError, match="there is no picture of"):
        replace(recipe, seen=(gone[0],)).check()


@pytest.location.parametrize(
    ("study", "change", "message"),
    [
        (objectives, "tokenizer=vae", "needs a codebook"),
        (objectives, "recipe.net.patch=7", "patch=1, not 7"),
        (jepa, "several.layers=[9]", "the network has 2 blocks"),
    ],
)
def test_what_does_not_fit_is_told_before_any_work(study, change, message, tmp_path):
    settings = override(study.settings("smoke"), change)
    with pytest.raises(UsageError, match=message):
        study.run(settings, Lab(QUIET, tmp_path, "smoke", 1))
    assert not (tmp_path / "runs").exists(), "nothing was trained"


@pytest.location.parametrize(
    ("settings", "change", "says"),
    [
        (details, "longer=0", "steps must be positive"),
        (details, 'details=["smaller"]', "smaller is none of base, classes"),
        (details, "details=[]", "one or more of base"),
        (variation, "amounts=[]", "one or more of plain"),
        (variation, 'amounts=["plain","plain"]', "each once"),
        (composition, 'signals=["raw","raw"]', "each once"),
        (variation, "varied=[0.5,0.2]", "between 0 and 0.25"),
        (variation, 'amounts=["much"]', "much is none of plain"),
        (where, "varied=[0.2,0.9]", "between 0 and 0.2"),
        (composition, "varied=[0.5,0.2]", "between 0 and 0.25"),
    ],
)
def test_settings_that_no_variant_can_be_made_of_are_refused_at_once(settings, change, says):
    with pytest.raises(UsageError, match=says) as error:
        override(settings.settings("smoke"), change)
    assert "\n" not in str(error.value)


def test_a_detail_that_is_left_out_asks_nothing_of_the_network():
    odd = ("transformer.width=36", "transformer.heads=2")
    assert override(details.settings("smoke"), 'details=["base"]', *odd).variants().keys() == {"maskgit", "dit"}
    with pytest.raises(UsageError, match="width 18"):
        override(details.settings("smoke"), 'details=["small"]', "transformer.width=36", "transformer.heads=4")


def test_another_world_is_not_asked_to_vary():
    other = replace(composition.settings("full").recipe, world=Circles())
    assert list(replace(composition.settings("full"), recipe=other).variants()) == ["balanced", "raw"]
