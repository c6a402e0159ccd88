import io
import itertools
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from recombine.config import UsageError, digest, from_json, to_json
from recombine.overrides import override
from recombine.rng import seeded
from recombine.worlds.scenes import fuse, gallery, trace
from recombine.worlds.scenes import place as placement
from recombine.worlds.scenes import shot as shooting
from recombine.worlds.scenes.camera import Camera
from recombine.worlds.scenes.gallery import anatomy, sheet
from recombine.worlds.scenes.masks import areas
from recombine.worlds.scenes.scene import COLORS, MOST, SHAPES, Scene, SceneSource
from recombine.worlds.scenes.scenes import Scenes
from recombine.worlds.scenes.shot import Shot
from recombine.worlds.scenes.trace import Solids
from recombine.worlds.scenes.vec import Vec, split

DOCS = Path(__file__).parent.parent / "docs" / "scenes.md"
BARE = Scenes(size=32, shadows=False, reflections=False)
FULL = Scenes(size=32)


def placed(world: Scenes, counts, *key) -> Scene:
    return world.place(torch.tensor(counts), seeded("test", *key))


def alone(world: Scenes, xy, **attributes) -> Scene:
    """One object per picture at exact layout, without jitter."""
    b = len(xy)
    zero = torch.zeros(b, 1, dtype=torch.long)
    parts = {
        "shape": zero + SHAPES.index("sphere"),
        "color": zero,
        "material": zero,
        "size": zero,
    } | attributes
    parts |= {"angle": torch.zeros(b, 1), "present": torch.ones(b, 1, dtype=torch.bool)}
    return Scene(
        torch.tensor(xy)[:, None], **parts, camera=torch.zeros(b, 3), lamps=torch.zeros(b, 3, 3)
    )


def test_the_camera_is_clevrs():
    """The corners of the square in which objects stand, at the height of small and of large ones,
    at 320 x 240 pixels."""
    corners = torch.tensor([list(itertools.product((-3.0, 3.0), (-3.0, 3.0), (0.35, 0.7)))])
    wide = Scenes(size=240, view="wide")
    x, y, depth = wide.project(alone(wide, [[0.0, 0.0]]), corners)[0].unbind(-1)
    assert [(320 * x).min().round(), (320 * x).max().round()] == [28, 299]
    assert [(240 * y).min().round(), (240 * y).max().round()] == [57, 201]
    assert [depth.min().item(), depth.max().item()] == pytest.approx([7.2, 14.8], abs=0.05)


@pytest.mark.parametrize("view", ["crop", "squeeze", "wide"])
def test_an_objects_centre_lies_in_its_mask(view):
    world = Scenes(size=48, view=view, shadows=False, reflections=False)
    scene = placed(world, [3] * 20, "centres", view)
    seen = world.render(scene)
    h, w = seen.depth.shape[1:]
    for b, k in itertools.product(range(20), range(3)):
        x, y = seen.centres[b, k].tolist()
        assert seen.whole[b, k, int(y * h), int(x * w)] > 0
    assert seen.images.shape == (20, *world.image_shape)


def test_a_single_object_is_wholly_visible():
    seen = BARE.render(placed(BARE, [1] * 20, "single"))
    assert torch.equal(seen.visible, seen.whole)
    assert not seen.visible[:, 1:].any(), "empty slots show nothing"
    assert not seen.centres[:, 1:].any()


def test_the_nearer_object_wins():
    two = [[2.0, -1.0], [-1.0, 1.0]]
    scene = alone(BARE, two)
    both = Scene(
        *(
            torch.cat((part[:1], part[1:]), 1) if part.shape[1:2] == (1,) else part[:1]
            for part in scene
        )
    )
    seen = BARE.render(both)
    line = BARE.move(both, seen.centres[:, [0, 0]])
    assert torch.allclose(line.xy[:, 0], line.xy[:, 1], atol=1e-4), (
        "one line of sight, one height, one place"
    )
    behind = both._replace(xy=both.xy.clone())
    away = Camera.aimed(both.camera).place[0, :2]
    behind.xy[0, 1] = both.xy[0, 0] - 2.2 * (away - both.xy[0, 0]) / (away - both.xy[0, 0]).norm()
    seen, front, back = (BARE.render(s) for s in (behind, behind.without(1), behind.without(0)))
    overlap = (seen.whole[0, 0] == 1) & (seen.whole[0, 1] > 0)
    assert overlap.any()
    assert not seen.visible[0, 1][overlap].any()
    assert torch.equal(seen.visible[0, 0], front.visible[0, 0])
    assert torch.equal(seen.depth, torch.minimum(front.depth, back.depth))
    centre = BARE.project(behind, behind.middle)[0, 0]
    nearest = seen.depth[0][seen.visible[0, 0] > 0].min()
    assert nearest.item() == pytest.approx(centre[2].item() - 0.7, abs=0.05)


def test_drawing_depends_on_the_scene_alone(monkeypatch):
    scene = placed(FULL, [3, 2, 1, 3, 3, 1], "pure")
    images = FULL.images(scene)
    assert torch.equal(images, FULL.images(scene))
    assert torch.equal(images[4:5], FULL.images(scene.take(slice(4, 5))))
    monkeypatch.setattr(shooting, "CPU_CHUNK", 1)
    assert torch.equal(images, FULL.images(scene)), "one picture at a time"
    assert images.dtype == torch.float32
    assert images.min() >= 0
    assert images.max() <= 1


KERNEL = """
import torch
from recombine.rng import seeded
from recombine.worlds.scenes import kernel
from recombine.worlds.scenes.stages import trace
from recombine.worlds.scenes.shot import Shot
from recombine.worlds.scenes.trace import Solids
from recombine.worlds.scenes.scenes import Scenes

for counts, samples, view, *how in (
    ([5, 0], 4, "crop", True, True), ([9], 2, "crop", True, False), ([7], 3, "wide", False, True)
):
    world = Scenes(size=16 if view == "crop" else 18, samples=samples, view=view)
    scene = world.place(torch.tensor(counts), seeded("kernel"))
    parts = Solids.of(scene), Shot.of(scene, world.frame)
    apart = (kernel.trace(*parts, world.frame.width, *how) - trace(*parts, *how)).abs()
    assert (apart > 1e-4).float().mean() < 5e-3, "but for a pixel at the edge of a shadow"
    assert apart.max() < 3e-3, "less than the step from one of 256 greys to the next"
"""


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("triton") is None, reason="needs Triton, which comes with a torch for GPUs"
)
def test_the_kernel_renders_what_the_stages_render():
    """Triton's interpreter runs it on a CPU. In a process of its own: whether it does is settled
    when it is imported."""
    env = os.environ | {"TRITON_INTERPRET": "1"}
    said = subprocess.run(
        [sys.executable, "-c", KERNEL], capture_output=True, text=True, timeout=300, env=env
    )
    assert said.returncode == 0, said.stderr


def test_without_shadows_and_reflections_an_object_changes_its_own_pixels_only():
    scene = placed(BARE, [4] * 6, "own")
    seen = BARE.render(scene)
    touched = BARE.touched(scene)
    assert not touched[seen.whole == 0].any(), "exactly nothing elsewhere"
    assert (touched == (seen.visible > 0)).float().mean() > 0.999
    moved = scene._replace(
        xy=scene.xy + torch.tensor([0.05, 0.0]) * (torch.arange(4) == 2)[:, None]
    )
    outside = (seen.whole[:, 2] == 0) & (BARE.render(moved).whole[:, 2] == 0)
    same = (BARE.images(moved) == seen.images).all(1)
    assert same[outside].all()
    assert not same.all()


def test_shadows_and_reflections_reach_further():
    scene = placed(FULL, [3] * 6, "reach")
    whole = FULL.render(scene).whole > 0
    touched = FULL.touched(scene)
    assert ((touched & ~whole).sum((2, 3)) > 10).float().mean() > 0.8
    assert touched.float().mean() < 0.3, "but not everywhere"


def test_shadows_only_darken():
    lit, shaded = (Scenes(size=32, reflections=False, shadows=on) for on in (False, True))
    scene = placed(lit, [3] * 8, "darken")
    gain = shaded.images(scene) - lit.images(scene)
    assert gain.max() <= 1e-6
    assert (gain < -0.02).float().mean() > 0.02


def test_an_empty_scene_is_a_grey_floor():
    world = Scenes(size=32, counts=(0,))
    images = world.sample(4, seeded(0)).images
    assert (images.amax(1) - images.amin(1)).max() < 0.15
    assert images.mean() > 0.4
    assert images[:, :, 20, 16].mean() > images[:, :, 0].mean() + 0.03, "darker far away"
    assert not world.render(world.place(torch.tensor([0]), seeded(0))).visible.any()
    assert world.sample(0, seeded(0)).images.shape == (0, 3, 32, 32)
    assert world.render(world.place(torch.zeros(0, dtype=torch.long), seeded(0))).whole.shape == (
        0,
        1,
        32,
        32,
    )


def test_colours_look_as_published():
    b = len(COLORS)
    scene = alone(FULL, [[1.0, -1.0]] * b, color=torch.arange(b)[:, None])
    seen = FULL.render(scene)
    shown = (seen.images * seen.visible).sum((2, 3)) / seen.visible.sum((2, 3))
    published = torch.tensor(list(COLORS.values())) / 255
    shape, wanted = (part - part.mean(1, keepdim=True) for part in (shown, published))
    assert (shape[0].abs() < 0.05).all(), "gray"
    closest = torch.nn.functional.cosine_similarity(
        shape[1:, None], wanted[None, 1:], dim=-1
    ).argmax(1)
    assert closest.tolist() == list(range(b - 1))
    assert (shown - published).abs().mean() < 0.12


def test_masks_count_samples():
    seen = BARE.render(placed(BARE, [2] * 4, "samples"))
    share = torch.cat((seen.visible.unique(), seen.whole.unique())).unique()
    assert set(share.tolist()) == {0, 0.25, 0.5, 0.75, 1}


@pytest.mark.parametrize("shape", SHAPES)
def test_rays_cross_solids_where_they_should(shape):
    """Points along random rays, tested one by one whether they are inside."""
    rng = seeded("rays", shape)
    scene = placed(BARE, [1] * 20, "rays")._replace(shape=torch.full((20, 3), SHAPES.index(shape)))
    solid = Solids(*(part[:, 0, None] for part in Solids.of(scene)))
    start = split(torch.randn(20, 30, 3, generator=rng) * 2)
    ray = split(torch.stack(solid.middle, -1) + 0.5 * torch.randn(20, 30, 3, generator=rng)).minus(
        start
    )
    enter, leave = trace.span(solid, start, ray)
    steps = torch.linspace(-0.5, 2.5, 1501)[:, None, None]
    at = (
        start.plus(ray.times(steps))
        .minus(solid.middle)
        .times(1 / solid.radius)
        .turn(solid.cos, solid.sin)
    )
    flat = (at.x.square() + at.y.square()).sqrt()
    inside = {
        "cube": torch.stack(at).abs().amax(0) < 1,
        "sphere": torch.stack(at).norm(dim=0) < 1,
        "cylinder": (flat < 1) & (at.z.abs() < 1),
    }[shape]
    share = ((leave.clamp(-0.5, 2.5) - enter.clamp(-0.5, 2.5)).clamp_min(0)) / 3
    assert (inside.float().mean(0) - share).abs().max() < 2e-3
    assert 0.2 < (leave > enter).float().mean() < 0.95


def test_surfaces_face_outwards():
    scene = placed(BARE, [3] * 10, "normals")
    solids, shot = Solids.of(scene), Shot.of(scene, BARE.frame)
    rays = shot.rays()
    reach, who = trace.nearest(solids, shot.eye, rays)
    point = shot.eye.plus(rays.times(reach))
    facing = trace.normal(solids.pick(who), point)
    hit = reach < trace.FAR
    torch.testing.assert_close(facing.dot(facing)[hit], torch.ones_like(reach[hit]))
    assert (facing.dot(rays.unit())[hit] < 0).float().mean() > 0.97, (
        "towards the camera, but for the bend at edges"
    )
    middle = Vec(
        *(part[..., 0] for part in split(torch.stack(solids.pick(who).middle, -1)[..., None, :]))
    )
    assert (facing.dot(point.minus(middle))[hit] > 0).all()


@pytest.mark.parametrize(("count", "spacing"), [(3, 0.0), (9, 0.0), (MOST, 0.0), (6, 0.15)])
def test_objects_keep_their_distance(count, spacing):
    world = Scenes(spacing=spacing)
    scene = placed(world, [count] * 8, "distance")
    assert (scene.present.sum(1) == count).all()
    assert scene.xy.abs().max() <= 3
    camera = Camera.aimed(scene.camera)
    for i, j in itertools.combinations(range(count), 2):
        apart = scene.xy[:, i] - scene.xy[:, j]
        assert (apart.norm(dim=1) - scene.radius[:, i] - scene.radius[:, j] >= 0.25 - 1e-5).all()
        for axis in (camera.right[:, :2], camera.forward[:, :2]):
            assert ((apart * axis).sum(1).abs() / axis.norm(dim=1) >= 0.4 - 1e-5).all()
    frame = world.frame._replace(height=240, width=240, samples=1)
    pixels = 240**2 * areas(Solids.of(scene), Shot.of(scene, frame))
    assert pixels.min() > 170, "about 200 pixels of CLEVR's picture"
    centres = world.centres(scene)
    assert centres.min() >= 0.08
    assert centres.max() <= 0.92
    assert min(torch.pdist(some).min() for some in centres) >= spacing - 1e-6


def test_places_between_others_are_uniform():
    taken, share = torch.tensor([[1.0, -2.0, 1.5]]), torch.linspace(0.0005, 0.9995, 1000)[None]
    place, some = placement.between(taken, 0.4, share)
    assert some.all()
    assert (place[..., None] - taken[:, None]).abs().min() >= 0.4 - 1e-5
    assert place.abs().max() <= 3 * 2**0.5
    left, middle, right = (
        ((place > a) & (place < b)).float().mean() for a, b in ((-5, -2), (-2, 1), (1.5, 5))
    )
    lengths = torch.tensor([3 * 2**0.5 - 2.4, 2.2, 3 * 2**0.5 - 1.9])
    torch.testing.assert_close(
        torch.stack((left, middle, right)), lengths / lengths.sum(), rtol=0, atol=2e-3
    )
    assert not placement.between(taken, 5.0, share)[1].any()


def test_kinds_are_drawn_from_what_is_allowed():
    world = Scenes(
        shapes=("cylinder",),
        colors=("red", "cyan"),
        materials=("metal",),
        sizes=("small",),
        size=16,
        samples=1,
    )
    kind, present = world.sample(100, seeded(1))[:1:-1]
    assert {tuple(k) for k in kind[present].tolist()} == {(2, 1, 1, 1), (2, 6, 1, 1)}
    assert not kind[~present].any()
    count = present.sum(1)
    assert [(count == n).float().mean().item() for n in (1, 2, 3)] == pytest.approx(
        [1 / 3] * 3, abs=0.15
    )


def test_samples_are_named_by_their_stream():
    world = Scenes(size=16)
    assert isinstance(world, SceneSource)
    one, same, other = (world.sample(6, seeded("stream", key)) for key in (1, 1, 2))
    for a, b in zip(one, same, strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(one.images, other.images)
    assert one.centres.shape == (6, 3, 2)


def test_objects_can_be_moved_to_locations():
    world = Scenes()
    scene = placed(world, [3] * 5, "locations")
    torch.testing.assert_close(
        world.move(scene, world.centres(scene)).xy, scene.xy, rtol=0, atol=1e-4
    )
    locations = torch.full((5, 3, 2), 0.3)
    torch.testing.assert_close(world.centres(world.move(scene, locations)), locations)
    with pytest.raises(UsageError, match=r"centre \(0.3, 1.2\) lies outside the picture"):
        world.move(scene, locations + torch.tensor([0.0, 0.9]))


def test_drawing_never_looks_at_the_numbers():
    """Tensors without numbers stand in for a GPU: whatever would wait for one fails on them."""
    scene = Scene(*(part.to("meta") for part in placed(FULL, [3, 1], "meta")))
    assert FULL.images(scene).shape == (2, 3, 32, 32)
    assert FULL.render(scene).whole.shape == (2, 3, 32, 32)


ON_GPU = """
import torch
from recombine.rng import seeded
from recombine.worlds.scenes.scene import Scene
from recombine.worlds.scenes.scenes import Scenes

world = Scenes(size=32)
for objects, count in ((3, 16), (3, 5), (7, 4)):
    scene = world.place(torch.full((count,), objects), seeded("gpu"))
    there = world.render(Scene(*(part.cuda() for part in scene)))
    for one, other in zip(world.render(scene), there, strict=True):
        assert ((one - other.cpu()).abs() > 1e-2).float().mean() < 1e-3
assert world.sample(64, seeded(0, device="cuda")).images.device.type == "cuda"
"""


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_gpu_draws_the_same_picture():
    """In a process of its own: the checks of shapes that the tests add to every function cannot be
    compiled."""
    said = subprocess.run(
        [sys.executable, "-c", ON_GPU], capture_output=True, text=True, timeout=600
    )
    assert said.returncode == 0, said.stderr


@pytest.mark.parametrize(
    ("world", "counts", "message"),
    [
        (Scenes(), [2, 13], "13 objects: a scene holds 0 to 12"),
        (Scenes(), [-1], "-1 objects: a scene holds 0 to 12"),
        (Scenes(margin=2.0), [6], "6 objects: found no room for so many at a distance of 0.25"),
    ],
)
def test_too_many_objects_are_refused(world, counts, message, monkeypatch):
    monkeypatch.setattr(placement, "ROUNDS", 5)
    with pytest.raises(UsageError, match=re.escape(message)) as error:
        world.place(torch.tensor(counts), seeded(0))
    assert "\n" not in str(error.value)


def test_config_round_trip_and_digest():
    world = Scenes(size=32, counts=(1, 5), colors=("red",))
    assert from_json(to_json(world), SceneSource) == world
    assert digest(world) != digest(Scenes())


@pytest.mark.parametrize(
    ("assignment", "word"),
    [
        ("size=8", "between 16 and 1024"),
        ("counts=[13]", "0 to 12"),
        ("counts=[]", "one or more"),
        ('shapes=["cone"]', "cube"),
        ('colors=["red","red"]', "each once"),
        ("samples=0", "between 1 and 64"),
        ("lamp_jitter=3", "between 0 and 1"),
        ('view="round"', "crop"),
    ],
)
def test_a_wrong_setting_is_named(assignment, word):
    with pytest.raises(UsageError, match=word) as error:
        override(Scenes(), assignment)
    assert "\n" not in str(error.value)


def test_the_gallery_is_drawn(monkeypatch):
    monkeypatch.setattr("recombine.worlds.scenes.gallery.SIZE", 32)
    assert sheet(anatomy())[1:4] == b"PNG"


def test_the_documented_example_runs(tmp_path, monkeypatch):
    """The Python blocks of docs/scenes.md, one after the other, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(block, names)


def test_stages_are_compiled_only_while_fusing(monkeypatch):
    monkeypatch.setattr(fuse, "compiled", lambda function: lambda *given: ("fused", *given))
    stage = fuse.fused(lambda solids, rays: (solids, rays))
    assert stage(1, 2) == (1, 2)
    assert not fuse.is_fusing()
    with fuse.fusing():
        assert fuse.is_fusing()
        assert stage(1, 2) == ("fused", 1, 2)
    assert stage(1, 2) == (1, 2)
    with pytest.raises(ZeroDivisionError), fuse.fusing():
        raise ZeroDivisionError
    assert not fuse.is_fusing()


def test_the_gallery_has_rows_of_more_and_more_objects(monkeypatch):
    calls = []

    def images(world, scene):
        calls.append((world.size, world.samples, scene.present.sum(1).tolist()))
        return torch.zeros(len(scene.xy), 3, 4, 4)

    monkeypatch.setattr(Scenes, "images", images)
    assert gallery.crowds().shape == (2, 5, 3, 4, 4)
    assert calls == [(160, 9, [1, 2, 3, 3, 5]), (160, 9, [6, 7, 9, 10, 12])]
    made = np.asarray(Image.open(io.BytesIO(sheet(torch.zeros(2, 5, 3, 4, 4)))))
    assert made.shape == (16, 40, 3)
    assert (made[2:6, 2:6] == 0).all()
    assert (made[:2] == 255).all()
    assert (made[6:10] == 255).all()
