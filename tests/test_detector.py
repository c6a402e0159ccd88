"""The detector: peaks of heat maps made by hand, and a training of seconds that already counts."""

import pytest
import torch
from tiny import QUIET

from recombine.config import UsageError, from_json, to_json
from recombine.metrics.counting import real_counts, tally
from recombine.metrics.detector import (
    Detector,
    DetectorNet,
    apparent,
    check_detector,
    noisy,
    target,
)
from recombine.metrics.heat import NEAR, ROOM, bells, heat_loss, peaks
from recombine.overrides import override
from recombine.pipeline.executor import obtain
from recombine.pipeline.job import Work
from recombine.rng import seeded
from recombine.runs.detectors import DetectorRun
from recombine.train.fit import TrainConfig
from recombine.worlds.layout import Layout
from recombine.worlds.scenes.scenes import Scenes

WORLD = Scenes(
    size=32,
    counts=(0, 1, 2),
    sizes=("large",),
    margin=0.0,
    samples=1,
    shadows=False,
    reflections=False,
)
RUN = DetectorRun(
    WORLD, 8, 0.02, 0.5, TrainConfig(steps=32, batch=16, lr=1e-2, warmup=5, ema=0.9, log_every=15)
)


def logits(
    at: torch.Tensor, radius: float = 4.0, size: int = 64, height: float = 1.0
) -> torch.Tensor:
    """The heat map of these locations, as logits."""
    present = torch.ones(at.shape[:2], dtype=torch.bool)
    return torch.logit(
        (height * bells(at, torch.full(at.shape[:2], radius), present, size, size)).clamp(
            1e-30, 1 - 1e-7
        )
    )


@pytest.mark.parametrize("radius", [1.0, 4.0, 8.0])
def test_peaks_lie_between_the_pixels(radius):
    at = 0.1 + 0.8 * torch.rand(200, 1, 2, generator=seeded("peaks"))
    detected, height = peaks(logits(at, radius))
    assert (detected.present.sum(1) == 1).all()
    assert (64 * (detected.at[:, :1] - at)).abs().amax() < 0.02, (
        "pixels; the nearest pixel is up to 0.5 away"
    )
    assert (height[:, 0] - 1).abs().amax() < 0.01, "as high as the bell, wherever the pixels lie"


@pytest.mark.parametrize("shift", [0.0, 0.5, 0.25])
def test_a_peak_between_equal_pixels_is_found_once(shift):
    at = ((torch.tensor([[[20.0, 30.0]]]) + shift) / 64).expand(1, 1, 2)
    detected, _ = peaks(logits(at))
    assert detected.present.sum() == 1
    assert (detected.at[0, 0] - at[0, 0]).abs().amax() < 1e-3


def test_neighbours_stay_apart_and_are_all_found():
    """Twelve small objects, 4 pixels from each other: the least distance of real ones at 64 x
    64."""
    steps = torch.tensor([20.3, 24.3, 28.3, 32.3])
    at = torch.cartesian_prod(steps, steps[:3])[None] / 64
    detected, _ = peaks(logits(at, radius=2.5))
    counts = tally(detected, Layout.of(at), radius=1 / 64)
    assert (counts.located.item(), counts.total.item()) == (12, 12)


@pytest.mark.parametrize(("pixels", "count"), [(2, 1), (6, 2)])
def test_of_two_maxima_too_near_the_higher_counts(pixels, count):
    assert 2 <= NEAR * 128 < 3
    low, high = torch.tensor([[[64.5, 64.5]]]) / 128, torch.tensor([[[64.5 + pixels, 64.5]]]) / 128
    detected, _ = peaks(torch.maximum(logits(low, 1.0, 128, height=0.8), logits(high, 1.0, 128)))
    assert detected.present.sum() == count
    assert (detected.at[0, 0] - high[0, 0]).abs().amax() < 0.2 / 128


def test_the_threshold_is_on_the_height_and_an_empty_map_holds_nothing():
    at = torch.tensor([[[0.3, 0.3]], [[0.301, 0.307]]])
    for height in (0.45, 0.55):
        assert (
            peaks(logits(at, height=height), 0.5)[0].present.sum(1).tolist() == [height > 0.5] * 2
        )
    for flat in (-20.0, -4.0):
        assert not peaks(torch.full((1, 32, 32), flat))[0].present.any()


def test_the_answer_has_the_same_slots_whatever_is_found():
    at = torch.cartesian_prod(torch.linspace(0.1, 0.9, 7), torch.linspace(0.1, 0.9, 7))[None]
    detected, height = peaks(logits(at, 2.0))
    assert detected.at.shape == (1, ROOM, 2)
    assert detected.present.all()
    assert (height.diff(dim=1) <= 0).all()


def test_bells_are_as_wide_as_objects_look_and_ignore_empty_slots():
    scene = WORLD.place(torch.tensor([1, 2]), seeded("bells"))
    at, radius = apparent(WORLD, scene)
    whole = WORLD.render(scene).whole.sum((2, 3))[scene.present]
    area = torch.pi * radius[scene.present].square()
    assert ((whole / area > 0.8) & (whole / area < 2.2)).all(), (
        "a ball covers about its disc, a cube more"
    )
    empty, heat = ~scene.present, target(WORLD, scene)
    assert torch.equal(
        heat, bells(at + 0.1 * empty[..., None], radius + 9 * empty, scene.present, 32, 32)
    )
    assert heat.amax() <= 1
    assert not bells(at, radius, torch.zeros_like(scene.present), 32, 32).any()


@pytest.mark.parametrize("size", [64, 128])
def test_the_ideal_heat_maps_of_crowded_scenes_are_read_exactly(size):
    """What a perfect network could reach, which is no less than all: neighbours do not merge."""
    world = Scenes(size=size, counts=(12,), sizes=("small",), margin=0.3)
    scene = world.place(torch.full((32,), 12), seeded("crowded"))
    detected, _ = peaks(torch.logit(target(world, scene).clamp(1e-9, 1 - 1e-6)))
    counts = tally(detected, Layout(world.centres(scene), scene.present), radius=0.5 / 64)
    assert (counts.located == 12).all()
    assert (counts.total == 12).all()


def test_the_loss_is_least_at_the_heat_map_and_one_number_per_picture():
    exact = logits(torch.tensor([[[0.4, 0.6]], [[0.2, 0.2]]]))
    given = exact.clone().requires_grad_()
    loss = heat_loss(given, exact.sigmoid())
    assert loss.shape == (2,)
    loss.sum().backward()
    assert not given.grad.any(), "exactly zero"
    assert (loss == 0).all()
    assert (heat_loss(exact + 1, exact.sigmoid()) > 0).all()
    assert (heat_loss(torch.full_like(exact, -9.0), exact.sigmoid()) > 1).all(), (
        "an object that is not seen costs"
    )


def test_pictures_of_the_wrong_size_are_refused():
    with pytest.raises(UsageError, match="divisible by 8, not 48x44"):
        DetectorNet((3, 48, 44), 8)
    for wrong, word in (("width=12", "multiple of 8"), ("noise=2", "between 0 and 1")):
        with pytest.raises(UsageError, match=word):
            override(RUN, wrong)
    assert from_json(to_json(RUN), DetectorRun) == RUN


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("detector")


@pytest.fixture(scope="module")
def detector(root) -> Detector:
    return obtain(RUN, root, QUIET)


@pytest.mark.slow
def test_a_short_training_already_counts(detector):
    """Three numbers are equally likely: chance is a third. Before training nothing is detected."""
    rows = real_counts(Detector(detector.net, 0.3), WORLD, (0, 1, 2), 24)
    assert sum(r["exact_count"] for r in rows) / 3 > 0.5
    assert rows[1]["recall"] > 0.7
    fresh = Detector(DetectorNet(WORLD.image_shape, 8), 0.3)
    assert [r["recall"] for r in real_counts(fresh, WORLD, (1, 2), 4)] == [0.0, 0.0]


def test_pictures_are_read_one_by_one(detector):
    images = WORLD.sample(10, seeded("one by one")).images
    whole = detector(images)
    for part in (
        detector(images[3:7]),
        detector(images.flip(0)).rows(torch.arange(9, -1, -1)).rows(slice(3, 7)),
    ):
        assert torch.equal(part.present, whole.present[3:7])
        assert torch.allclose(part.at[part.present], whole.at[3:7][part.present], atol=1e-4)


def test_a_trained_detector_comes_back_from_disk_the_same(root, detector):
    again = dict(RUN.open(Work(RUN, root, QUIET)).net.named_parameters())
    assert all(torch.equal(p, again[k]) for k, p in detector.net.named_parameters())


@pytest.mark.parametrize(("width", "noise", "worn", "message"), [
    (8, 0.1, -0.1, "worn=-0.1: the share of pictures with faults, between 0 and 1"),
    (8, 0.1, 1.1, "worn=1.1: the share of pictures with faults, between 0 and 1"),
    (0, 0.1, 0.5, "width 0 must be a positive multiple of 8"),
    (12, 0.1, 0.5, "width 12 must be a positive multiple of 8"),
    (8, 1.1, 0.5, "noise 1.1 must lie between 0 and 1"),
    (8, -0.1, 0.5, "noise -0.1 must lie between 0 and 1"),
])  # fmt: skip
def test_impossible_detectors_are_refused(width, noise, worn, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        check_detector(width, noise, worn)
    for end in (0.0, 1.0):
        check_detector(8, end, end)


def test_noise_has_its_own_strength_in_each_picture():
    images = torch.full((200, 1, 16, 16), 0.5)
    spread = (noisy(images, 0.1, seeded("noise")) - 0.5).flatten(1).std(1)
    assert 0.095 < spread.max() < 0.115
    assert spread.min() < 0.005
    assert abs(float(spread.mean()) - 0.05) < 0.005
    assert torch.equal(noisy(images, 0.0, seeded(0)), images)
