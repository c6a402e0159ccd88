"""Faults of generated pictures, made on purpose: what they change and what they leave."""

import pytest
import torch

from recombine.metrics.heat import bells, peaks
from recombine.metrics.worn import PIECE, WHOLE, cut, seamed, shifted, with_faults
from recombine.rng import seeded
from recombine.worlds.scenes.scenes import Scenes

WORLD = Scenes(size=32, counts=(1, 2), samples=1, shadows=False, reflections=False)
SCENE = WORLD.place(torch.tensor([1, 2] * 8), seeded("scene"))
IMAGES = WORLD.images(SCENE)


def test_cells_are_shifted_by_a_pixel_at_most():
    x = torch.arange(32.0).expand(1, 1, 32, 32)
    for image, step in ((x, 1), (x.mT, 1)):
        move = shifted(image.contiguous(), seeded("shift"), step) - image
        assert move.abs().max() <= step
        cells = move.unfold(2, 2, 2).unfold(3, 2, 2).flatten(4)
        inner = cells[:, :, 1:-1, 1:-1]
        assert (inner == inner[..., :1]).all(), "a cell moves as one"
        assert inner.unique().numel() == 3


def test_seams_change_the_brightness_of_whole_cells():
    grey = torch.full((4, 3, 32, 32), 0.5)
    off = (seamed(grey, seeded("seam")) - grey).unfold(2, 2, 2).unfold(3, 2, 2).flatten(4)
    torch.testing.assert_close(off, off[..., :1].expand_as(off))
    assert 0.03 < off.std() < 0.05


def test_of_a_cut_object_little_or_most_is_left_and_only_the_latter_is_an_object():
    pieces, left = cut(WORLD, SCENE, IMAGES, seeded("cut"))
    without = WORLD.images(SCENE.without(0))
    whole = ((IMAGES - without).abs().amax(1) > 0.02).sum((1, 2)).float()
    share = ((pieces - without).abs().amax(1) > 0.02).sum((1, 2)) / whole
    assert ((share > WHOLE - 0.1) == left[:, 0]).all()
    assert (share[~left[:, 0]] < PIECE + 0.1).all()
    assert 0 < left[:, 0].sum() < len(left)
    assert torch.equal(left[:, 1], SCENE.present[:, 1]), "other objects stay"


def test_so_many_pictures_have_faults_and_the_rest_are_renders():
    images, counted = with_faults(WORLD, SCENE, 0.5, seeded("worn"))
    same = (images == IMAGES).flatten(1).all(1)
    assert same.tolist() == [False] * 8 + [True] * 8
    assert torch.equal(counted.present[8:], SCENE.present[8:])
    assert (counted.present <= SCENE.present).all()
    assert torch.equal(with_faults(WORLD, SCENE, 0.0, seeded("worn"))[0], IMAGES)


def test_two_peaks_of_one_object_are_one_and_two_objects_stay_two():
    """A bell that a seam divides, and two bells as near as objects ever are."""
    size, there = 64, torch.ones(1, 2, dtype=torch.bool)
    at = torch.tensor([[[30.0, 32.0], [34.0, 32.0]]]) / size
    for radius, count in ((7.0, 1), (2.5, 2)):
        heat = bells(at, torch.full((1, 2), radius), there, size, size).clamp(1e-6, 0.99)
        heat[:, :, 32] *= 0.9
        assert peaks(torch.logit(heat))[0].present.sum() == count


def test_cells_are_shifted_and_seamed_as_before():
    images = torch.rand(2, 3, 32, 32, generator=seeded("im"))
    along = torch.arange(32.0)
    moved = shifted(images, seeded("s"), most=2, cells=4)
    assert moved[:, :, ::5, ::5].mean((1, 2, 3)).tolist() == pytest.approx(
        [0.49625, 0.53847], abs=1e-4
    )
    assert float((moved * along).mean()) == pytest.approx(7.70684, abs=1e-3)
    seams = seamed(images, seeded("s"), cells=4)
    assert seams.mean((1, 2, 3)).tolist() == pytest.approx([0.50085, 0.50042], abs=1e-4)
    assert float((seams * along).mean()) == pytest.approx(7.80232, abs=1e-3)
    assert float((seams * along[:, None]).mean()) == pytest.approx(7.80468, abs=1e-3)
