"""Probes: one interface, scores with intervals, and no belief without accuracy on real pictures."""

import pytest
import torch
from tiny import QUIET

from recombine.metrics.corrupted import (
    corrupted,
    imperfect,
    others,
    pair,
    patched,
    slightly_degraded,
    strayed,
)
from recombine.metrics.intervals import wilson
from recombine.metrics.probes import Oracle, Probe, TrainedProbe, real_accuracy, refused, score
from recombine.pipeline.executor import obtain
from recombine.pipeline.job import Work
from recombine.rng import seeded
from recombine.runs.probes import ProbeCheck, ProbeRun
from recombine.train.fit import TrainConfig
from recombine.worlds.factors import at_most_one_new
from recombine.worlds.shapes2d import Shapes2D

WORLD = Shapes2D(size=16)
SPLIT = at_most_one_new(WORLD.space)
STEPS = {"linear": 60, "cnn": 40, "open-set": 80}


def run_of(kind: str) -> ProbeRun:
    train = TrainConfig(steps=STEPS[kind], batch=128, lr=5e-3, warmup=5, ema=0.9)
    return ProbeRun(WORLD, kind, train)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("probes")


@pytest.fixture(scope="module")
def probes(root) -> dict[str, Probe]:
    """`shown` is an open-set probe that also learned from pictures between compositions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Shapes2D, "interpolates", False)
        trained = {kind: obtain(run_of(kind), root, QUIET) for kind in STEPS}
    shown = obtain(run_of("open-set"), root / "shown", QUIET)
    return {"oracle": Oracle(WORLD), **trained, "shown": shown}


def pictures(count: int = 200) -> tuple[torch.Tensor, torch.Tensor]:
    rng = seeded("pictures")
    index = torch.stack([torch.randint(n, (count,), generator=rng) for n in WORLD.space.sizes], 1)
    return WORLD.render(index, rng).images, index


@pytest.mark.parametrize("name", ["oracle", "linear", "cnn", "open-set"])
def test_a_probe_answers_one_value_per_factor_and_reads_real_pictures_above_chance(probes, name):
    probe, (images, index) = probes[name], pictures()
    answer = probe(images)
    assert isinstance(probe, Probe)
    assert probe.name == name
    assert answer.shape == index.shape
    assert not answer.is_floating_point()
    least = {"oracle": 0.99, "linear": 0.6, "cnn": 0.75, "open-set": 0.75}[name]
    assert float((answer == index).float().mean()) > least, "chance is 0.5"


@pytest.mark.parametrize("name", ["linear", "cnn", "open-set"])
def test_pictures_are_read_one_by_one(probes, name):
    images, _ = pictures(12)
    whole = probes[name](images)
    assert torch.equal(whole[5:9], probes[name](images[5:9]))
    assert torch.equal(whole.flip(0), probes[name](images.flip(0)))


def test_a_trained_probe_comes_back_from_disk_the_same(root, probes):
    again = run_of("linear").open(Work(run_of("linear"), root, QUIET))
    theirs = dict(probes["linear"].net.named_parameters())
    assert isinstance(again, TrainedProbe)
    assert all(torch.equal(p, theirs[k]) for k, p in again.net.named_parameters())


def test_a_score_counts_pictures_and_factors():
    answers = torch.tensor([[0, 1, 1], [0, 1, 1], [0, 0, 1], [-1, -1, -1]])

    class Fixed:
        name = "fixed"

        def __call__(self, images):
            return answers

    row = score(Fixed(), torch.zeros(4, 3, 16, 16), (0, 1, 1), WORLD.space)
    low, high = wilson(2, 4)
    shares = {"shape": 0.75, "color": 0.5, "size": 0.75}
    assert row == {"probe": "fixed", "n": 4, "joint": 0.5, "low": low, "high": high} | shares


def test_accuracy_on_real_pictures_covers_every_composition_with_its_level(probes):
    rows = real_accuracy(probes["oracle"], WORLD, SPLIT, 16)
    assert [r["composition"] for r in rows] == [
        "000",
        "001",
        "010",
        "011",
        "100",
        "101",
        "110",
        "111",
    ]
    assert [r["level"] for r in rows] == [0, 0, 0, 1, 0, 1, 1, 2]
    assert all(r["joint"] > 0.8 and r["n"] == 16 and r["kind"] == "probe" for r in rows)
    assert rows == real_accuracy(probes["oracle"], WORLD, SPLIT, 16)


def test_noise_shows_no_composition_to_the_oracle(probes):
    noise = torch.rand(8, 3, 16, 16, generator=seeded("noise"))
    assert (probes["oracle"](noise) == -1).all()


def test_an_open_set_probe_rejects_an_empty_picture_and_a_closed_set_one_cannot(probes):
    empty = torch.full((8, *WORLD.image_shape), WORLD.background)
    open_set = probes["open-set"]
    assert (open_set(empty) == -1).all()
    assert (open_set.closed_set()(empty) >= 0).all()
    assert (probes["linear"](empty) >= 0).all()


def test_how_much_is_refused(probes):
    assert refused(probes["open-set"], WORLD, 256)["share"] > 0.7
    assert refused(probes["oracle"], WORLD, 256)["share"] > 0.95
    assert refused(probes["cnn"], WORLD, 256)["share"] == 0


def test_a_closed_set_probe_agrees_wherever_the_open_set_one_answered(probes):
    images, _ = pictures()
    free, made = probes["open-set"](images), probes["open-set"].closed_set()(images)
    assert torch.equal(free[free[:, 0] >= 0], made[free[:, 0] >= 0])
    assert probes["open-set"].closed_set().name == "cnn"


def test_others_are_other_compositions_and_all_of_them():
    index = torch.tensor(WORLD.space.compositions).repeat(50, 1)
    made = others(WORLD, index, seeded("others"))
    assert (made != index).any(1).all()
    assert len(made[(index == 0).all(1)].unique(dim=0)) == len(WORLD.space.compositions) - 1


@pytest.mark.parametrize("interpolates", [False, True])
def test_what_is_corrupted_is_unreadable_and_what_is_imperfect_is_not_far_off(
    monkeypatch, interpolates
):
    """Strayed pictures have nuisances of their own, so only the others can be compared with what
    was rendered."""
    monkeypatch.setattr(Shapes2D, "interpolates", interpolates)
    index = torch.tensor(WORLD.space.compositions).repeat(25, 1)
    broken, good = corrupted(WORLD, index, seeded(1)), imperfect(WORLD, index, seeded(1))
    plain = WORLD.render(index, seeded(1)).images
    assert broken.shape == good.shape == plain.shape
    assert (WORLD.read(broken) == -1).float().mean() > 0.95
    assert interpolates or (good - plain).abs().mean() < 0.5 * (broken - plain).abs().mean()
    assert 0 <= min(broken.min(), good.min()) <= max(broken.max(), good.max()) <= 1


def test_a_patched_picture_is_made_of_both_and_nothing_else():
    a, b = torch.zeros(6, 3, 16, 16), torch.ones(6, 3, 16, 16)
    made = patched(a, b, seeded(2))
    assert ((made == 0) | (made == 1)).all()
    assert (made.mean((1, 2, 3)) > 0.2).all()
    assert (made.mean((1, 2, 3)) < 0.8).all()


def test_what_lies_between_two_compositions_is_refused_more_often_than_what_shows_one(probes):
    index = torch.tensor(WORLD.space.compositions).repeat(60, 1)
    halfway, real = (
        strayed(WORLD, index, (0.45, 0.55), seeded(5)),
        WORLD.render(index, seeded(6)).images,
    )
    assert (WORLD.read(halfway) == -1).all(1).float().mean() > 0.9
    assert float((probes["shown"].closed_set()(real) == index).float().mean()) > 0.9
    refusals = [
        float((probes["shown"](some) == -1).all(1).float().mean()) for some in (halfway, real)
    ]
    assert refusals[0] - refusals[1] > 0.15, "after 80 steps it is not sure of anything yet"


def test_a_factor_of_one_value_cannot_stray():
    world = Shapes2D(size=16, shapes=("circle",), color_jitter=0.0, size_jitter=0.0)
    index = torch.tensor(world.space.compositions).repeat(40, 1)
    changed = world.read(strayed(world, index, (1.0, 1.0), seeded(7))) != index
    assert changed.sum(1).eq(1).float().mean() > 0.95
    assert not changed[:, 0].any()


def test_a_strayed_picture_differs_in_one_factor_and_every_factor_takes_its_turn():
    world = Shapes2D(
        size=16, shapes=("circle", "triangle", "square"), color_jitter=0.0, size_jitter=0.0
    )
    index = torch.tensor(world.space.compositions).repeat(40, 1)
    ends = world.read(strayed(world, index, (1.0, 1.0), seeded(7)))
    changed = ends != index
    assert (changed.sum(1) == 1).float().mean() > 0.95, "the oracle may miss a few"
    assert all(0.25 < share < 0.42 for share in changed.float().mean(0).tolist())
    assert {int(ends[i, 0]) for i in changed[:, 0].nonzero()[:, 0] if index[i, 0] == 0} == {1, 2}


def test_a_check_covers_real_corrupted_and_intermediate_pictures_by_every_probe(tmp_path):
    check = ProbeCheck(WORLD, 2, SPLIT.seen, 4)
    for parent in check.parents():
        obtain(parent, tmp_path, QUIET)
    rows = check.run(Work(check, tmp_path, QUIET))
    for kind in ("probe", "refused", "interpolation"):
        names = {r["probe"] for r in rows if r["kind"] == kind}
        assert names == {"open-set", "cnn", "oracle", "linear"}


def near(made: torch.Tensor, means: list[float], deviations: list[float]) -> None:
    for found, known in ((made.mean((1, 2, 3)), means), (made.std((1, 2, 3)), deviations)):
        torch.testing.assert_close(found, torch.tensor(known), rtol=0, atol=5e-4)


def test_pictures_are_corrupted_and_worn_as_before():
    index = torch.tensor(WORLD.space.compositions)
    near(
        corrupted(WORLD, index, seeded("known")),
        [0.865, 0.68728, 0.67288, 0.90004, 0.62158, 0.82488, 0.61255, 0.89574],
        [0.20162, 0.35913, 0.36033, 0.15325, 0.41169, 0.28051, 0.41843, 0.16175],
    )
    near(
        imperfect(WORLD, index, seeded("known")),
        [0.83209, 0.88555, 0.8306, 0.90736, 0.82077, 0.89766, 0.80069, 0.89593],
        [0.25081, 0.19455, 0.24813, 0.15286, 0.25535, 0.16212, 0.26072, 0.17341],
    )
    near(
        slightly_degraded(*pair(WORLD, index, seeded("known")), seeded("w")),
        [0.84672, 0.90144, 0.80432, 0.9075, 0.83504, 0.8937, 0.78314, 0.90325],
        [0.20925, 0.16661, 0.2903, 0.16092, 0.21671, 0.17423, 0.3007, 0.15864],
    )
