"""Probes: one interface, scores with intervals, and no belief without accuracy on real pictures."""

import pytest
import torch
from tiny import QUIET

from recombine.measure.intervals import wilson
from recombine.measure.probes import Probe, ProbeConfig, Reader, TrainedProbe, real_accuracy, score, train_probe
from recombine.rng import seeded
from recombine.train.fit import TrainConfig
from recombine.worlds.factors import at_most_one_new
from recombine.worlds.shapes2d import Shapes2D

WORLD = Shapes2D(size=16)
SPLIT = at_most_one_new(WORLD.space)
STEPS = {"linear": 60, "cnn": 40}


def config(kind: str) -> ProbeConfig:
    return ProbeConfig(WORLD, kind, TrainConfig(steps=STEPS[kind], batch=128, lr=5e-3, warmup=5, ema=0.9))


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("probes")


@pytest.fixture(scope="module")
def probes(root) -> dict[str, Probe]:
    trained = {kind: train_probe(config(kind), root, QUIET) for kind in STEPS}
    return {"read": Reader(WORLD), **trained}


def pictures(count: int = 200) -> tuple[torch.Tensor, torch.Tensor]:
    rng = seeded("pictures")
    index = torch.stack([torch.randint(n, (count,), generator=rng) for n in WORLD.space.sizes], 1)
    return WORLD.render(index, rng).images, index


@pytest.mark.parametrize("name", ["read", "linear", "cnn"])
def test_a_probe_answers_one_value_per_factor_and_reads_real_pictures_above_chance(probes, name):
    probe, (images, index) = probes[name], pictures()
    answer = probe(images)
    assert isinstance(probe, Probe)
    assert probe.name == name
    assert answer.shape == index.shape
    assert not answer.is_floating_point()
    least = {"read": 0.99, "linear": 0.6, "cnn": 0.75}[name]
    assert float((answer == index).float().mean()) > least, "chance is 0.5"


@pytest.mark.parametrize("name", ["linear", "cnn"])
def test_pictures_are_judged_one_by_one(probes, name):
    images, _ = pictures(12)
    whole = probes[name](images)
    assert torch.equal(whole[5:9], probes[name](images[5:9]))
    assert torch.equal(whole.flip(0), probes[name](images.flip(0)))


def test_a_trained_probe_comes_back_from_disk_the_same(root, probes):
    again = train_probe(config("linear"), root, QUIET)
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
    rows = real_accuracy(probes["read"], WORLD, SPLIT, 16)
    assert [r["composition"] for r in rows] == ["000", "001", "010", "011", "100", "101", "110", "111"]
    assert [r["level"] for r in rows] == [0, 0, 0, 1, 0, 1, 1, 2]
    assert all(r["joint"] > 0.8 and r["n"] == 16 and r["kind"] == "probe" for r in rows)
    assert rows == real_accuracy(probes["read"], WORLD, SPLIT, 16)


def test_noise_shows_no_composition_to_the_reader(probes):
    noise = torch.rand(8, 3, 16, 16, generator=seeded("noise"))
    assert (probes["read"](noise) == -1).all()
