"""Training on one's own pictures: settings follow from the pictures, what cannot work is refused
before, and a probe reads combinations that it was not trained on."""

from types import SimpleNamespace

import pytest
import torch
from own_pictures import make
from PIL import Image
from tiny import QUIET

from recombine.analysis.table import Table
from recombine.api import command_of
from recombine.config import UsageError, to_json
from recombine.files import read_rows
from recombine.metrics.factor_probe import CHANGES, NEVER, changed, fitted
from recombine.overrides import override
from recombine.pipeline.executor import obtain
from recombine.pipeline.job import Work
from recombine.pipeline.plan import Command, make_plans
from recombine.rng import seeded
from recombine.runs import factor_probes
from recombine.runs.factor_probes import FactorProbeRun, Pictures, Trainer, left_out
from recombine.runs.models import Model, ModelRun
from recombine.runs.own_data import fitting
from recombine.scoring.splits import as_change
from recombine.studies import find
from recombine.studies.composition import settings
from recombine.studies.summary import verdicts
from recombine.worlds.folder import Folder


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    return make(tmp_path_factory.mktemp("own") / "set", 60, lacks=(("bar", "green"),), side=48)


def chosen(own, *changes, scale="laptop"):
    return dict(a.split("=") for a in fitting(settings(scale), (f"world={own}", *changes), scale))


def test_settings_follow_from_the_pictures_and_the_user_overrules_them(own):
    found = chosen(own)
    assert found["recipe.net.patch"] == "6"
    assert int(found["recipe.net.transformer.width"]) >= 3 * 6**2
    assert "recipe.train.steps" in found
    assert "recipe.net.patch" not in chosen(own, "patch=4")
    assert "recipe.train.steps" not in chosen(own, "recipe.train.steps=7")
    assert chosen(own, scale="smoke") == {"recipe.net.patch": "6"}
    assert fitting(settings("laptop"), ("train.steps=3",), "laptop") == ()
    recipe = override(
        settings("laptop"), *(f"{k}={v}" for k, v in found.items()), f"world={own}"
    ).recipe
    recipe.check()


def recipe_of(command):
    (plan,) = make_plans(command)
    return plan.settings.recipe


def test_a_split_in_words_trains_on_what_it_leaves(own):
    changes = (f"world={own}",)
    command = command_of(("composition",), "smoke", 1, changes, "unseen: disc red; bar blue")
    recipe = recipe_of(command)
    space, seen = recipe.world.space, set(recipe.split.seen)
    left = {space.describe(c) for c in recipe.world.present if c not in seen}
    assert left == {"disc red", "bar blue"}
    assert seen < set(recipe.world.present), "nor on what the folder lacks"
    names = "; ".join(space.describe(c) for c in seen)
    assert recipe_of(command_of(("composition",), "smoke", 1, changes, f"seen: {names}")) == recipe


def test_a_split_in_words_is_of_any_world(own):
    change = as_change("Seen: circle red large; triangle red large", ["composition"], "smoke", ())
    assert change == "seen=[[0, 0, 0], [1, 0, 0]]"


@pytest.mark.parametrize(
    ("split", "study", "says"),
    [
        ("disc red", "composition", "write 'seen: a b; c d' or"),
        ("unseen: disc mauve", "composition", "'disc mauve' names no value of color"),
        ("unseen: disc red", "length", "length has no compositions that could be held out"),
    ],
)
def test_a_split_that_cannot_be_is_one_line(own, split, study, says):
    changes = (f"world={own}",) if study == "composition" else ()
    with pytest.raises(UsageError, match=says) as refused:
        command_of((study,), "smoke", 1, changes, split)
    assert "\n" not in str(refused.value)


def test_a_plan_on_own_pictures_is_complete_and_says_what_was_chosen(own):
    (plan,) = make_plans(Command(("composition",), "laptop", 1, (f"world={own}",)))
    assert plan.settings.recipe.net.patch == 6
    assert any("patch=6" in line for line in plan.fitted)


def test_more_numbers_in_a_patch_than_the_network_is_wide_are_refused(own, tmp_path):
    with pytest.raises(UsageError, match="768 numbers in a patch do not fit through a network"):
        chosen(own, "patch=16")
    Image.new("RGB", (514, 514)).save(tmp_path / "a.png")
    Image.new("RGB", (514, 514)).save(tmp_path / "b.png")
    (tmp_path / "factors.csv").write_text("file,shape\na.png,cup\nb.png,bowl\n")
    with pytest.raises(UsageError, match=r"set world\.size=64"):
        chosen(tmp_path)


def test_parts_are_apart_and_keep_every_combination_in_training(own):
    folder = Folder.open(own)
    train, held = folder.part_of("train"), folder.part_of("held-out")
    rows = [set(f.loaded.picture.tolist()) for f in (train, held)]
    assert not rows[0] & rows[1]
    assert len(rows[0]) + len(rows[1]) == 60
    assert train.present == folder.present
    assert len(rows[1]) >= 10


def test_at_most_so_many_pictures_of_each_combination_are_kept(own):
    few = Folder.open(own, most=3)
    assert set(few.counts.values()) == {3}
    assert few.content != Folder.open(own).content


def test_what_is_left_out_leaves_every_value():
    present = [(a, b) for a in range(3) for b in range(3) if (a, b) != (2, 2)]
    out = left_out(present, (3, 3))
    assert len(out) == 1
    rest = [c for c in present if c not in out]
    assert all({c[k] for c in rest} == {0, 1, 2} for k in (0, 1))
    assert left_out([(0, 0), (1, 1)], (2, 2)) == []


@pytest.mark.parametrize("change", CHANGES)
def test_changed_pictures_stay_pictures(change):
    images = torch.rand(4, 3, 12, 10, generator=seeded(0))
    made = changed(images, change, seeded(1))
    assert made.shape == images.shape
    assert 0 <= float(made.min()) <= float(made.max()) <= 1
    assert torch.equal(made, images) == (change == "none")


def test_a_probe_looks_at_small_pictures_only():
    assert fitted(torch.rand(2, 1, 20, 30)).shape == (2, 3, 20, 30)
    assert fitted(torch.rand(2, 3, 96, 192)).shape == (2, 3, 24, 48)


def test_pictures_that_do_not_fit_into_memory_stay_on_disk_and_train_alike(own, monkeypatch):
    """Memory for an eighth of the pictures: the same digest, pictures and batches."""
    small = override(settings("smoke").recipe, f"world={Folder.open(own).path}", "net.patch=6")
    run, held = Work(ModelRun(small), own.parent, QUIET), Folder.open(own)
    batch = Model(small, run).batch(3)
    assert not held.loaded.on_disk
    assert not small.streams
    for module in ("worlds.labelled_pictures", "runs.recipe"):
        monkeypatch.setattr(f"recombine.{module}.memory", lambda: 60 * 3 * 48**2)
    streamed = Folder.open(own)
    assert streamed.loaded.on_disk
    assert streamed.content == held.content
    index = torch.tensor(held.present)
    first, second = (f.render(index, seeded(0)).images for f in (held, streamed))
    assert torch.equal(first, second)
    assert first.stride() == second.stride()
    again = override(small, "seed=0")
    assert again.streams
    same = Model(again, run).batch(3)
    assert torch.equal(batch[0], same[0])
    assert torch.equal(batch[1].index, same[1].index)


def test_pictures_that_fit_nowhere_are_refused(own, monkeypatch):
    monkeypatch.setattr("recombine.worlds.labelled_pictures.memory", lambda: 1000)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=1000))
    with pytest.raises(UsageError, match=r"neither into memory nor into .* set a smaller size"):
        Folder.open(own)


def test_what_validates_a_probe_neither_trained_it_nor_chose_its_settings(own, monkeypatch):
    """Held-out pictures, and every second left-out combination, stay out of training and choice."""
    world, met, choosing = Folder.open(own), [], []
    data = Pictures.of(world.part_of("train"), torch.device("cpu"))
    monkeypatch.setattr(Trainer, "train", lambda self, net, data, *_: met.append(data) or net)
    measured = factor_probes.right
    monkeypatch.setattr(
        factor_probes, "right", lambda n, k, d: choosing.append(d) or measured(n, k, d)
    )
    trainer = Trainer(FactorProbeRun(world), Work(FactorProbeRun(world), own.parent, QUIET))
    left = [(0, 0), (1, 1)]
    _, rows = trainer.choose(data, left)
    assert all(not some.among(left).any() for some in met)
    fresh = data.where(data.among([(1, 1)]))
    assert rows[0]["n"] == len(fresh.factors)
    assert rows[0]["fresh"]
    deciding, aside = choosing[0], choosing[1]
    assert not deciding.among([(1, 1)]).any()
    known = {tuple(p.flatten().tolist()) for p in met[0].images}
    assert not known & {tuple(p.flatten().tolist()) for p in aside.images}


def test_a_probe_that_rejects_what_it_was_trained_on_rejects_nothing(own, tmp_path, monkeypatch):
    """Of 24 pictures such a network once rejected every fourth, and nothing could be evaluated."""
    for share, rejects in ((factor_probes.REFUSES, True), (0.25, False)):
        monkeypatch.setattr(factor_probes, "refused", lambda net, images, share=share: share)
        probe = obtain(FactorProbeRun(Folder.open(own), steps=2), tmp_path / str(share), QUIET)
        assert (float(probe.net.threshold) < NEVER) is rejects
        (rows,) = (tmp_path / str(share) / "runs").glob("*/rows.jsonl")
        assert {row["rejects"] for row in read_rows(rows)} == {rejects}


def test_a_probe_learns_from_a_bounded_number_of_pictures_of_each_combination(own, monkeypatch):
    monkeypatch.setattr(factor_probes, "EACH", 3)
    few = Pictures.of(Folder.open(own), torch.device("cpu"))
    assert few.count.tolist() == [3] * 5


def test_pictures_are_changed_as_before():
    images = torch.rand(2, 3, 8, 10, generator=seeded("pictures"))
    known = {
        "colour": (
            [[0.28868, 0.43811, 0.7813], [0.64149, 0.18796, 0.62148]],
            [0.0, 0.6381, 0.7176],
        ),
        "zoom": (
            [[0.46228, 0.50205, 0.48631], [0.57194, 0.48418, 0.50289]],
            [0.52536, 0.81003, 0.3895],
        ),
    }
    for change, (means, corner) in known.items():
        made = changed(images, change, seeded("change"))
        torch.testing.assert_close(made.mean((2, 3)), torch.tensor(means), rtol=0, atol=1e-4)
        torch.testing.assert_close(made[0, :, 0, 0], torch.tensor(corner), rtol=0, atol=1e-4)


@pytest.mark.parametrize(("shape", "fits"), [
    ((1, 48, 48), (48, 48)), ((3, 20, 96), (10, 48)), ((1, 4, 96), (8, 48)), ((3, 49, 49), (48, 48)),
])  # fmt: skip
def test_a_probe_looks_at_no_side_longer_than_48_nor_shorter_than_8(shape, fits):
    assert fitted(torch.rand(2, *shape, generator=seeded(0))).shape == (2, 3, *fits)


def test_claims_about_other_pictures_are_not_assessed_on_ones_own(own):
    facts = {"scale": "laptop", "seeds": [0], "provenance": {}}
    study = find("composition")
    theirs = to_json(settings("laptop"))
    mine = to_json(override(settings("laptop"), f"world={own}"))
    rows = Table([{"kind": "other", "seed": 0}])
    assert [c["id"] for c in verdicts(study, rows, facts | {"settings": theirs})] == [
        claim.id for claim in study.claims
    ]
    assert verdicts(study, rows, facts | {"settings": mine}) == []
    assert verdicts(study, rows, facts | {"settings": {"each": [mine]}}) == []
