import json
import math
import os
import random
import re
from pathlib import Path

import pytest
import torch
from PIL import Image

from recombine.config import UsageError, digest, from_json, to_json
from recombine.rng import seeded
from recombine.worlds.datasets.clevr_objects import open_clevr
from recombine.worlds.scenes.clevr import Clevr
from recombine.worlds.scenes.scene import COLORS, MATERIALS, MOST, SHAPES, SIZES, SceneSource
from recombine.worlds.scenes.scenes import Scenes

SPOT = (255, 0, 0)


def thing(
    x: int,
    y: int,
    shape: str = "cube",
    color: str = "red",
    material: str = "metal",
    size: str = "small",
) -> dict:
    return {"shape": shape, "color": color, "material": material, "size": size, "rotation": 12.5,
            "3d_coords": [0.1, 0.2, 0.35], "pixel_coords": [x, y, 11.0]}  # fmt: skip


SCENES = [
    [thing(24, 16), thing(40, 8, "sphere", "cyan", "rubber", "large")],
    [thing(20, 20), thing(30, 10, "cylinder"), thing(15, 25, color="gray")],
    [thing(2, 16)],
    [],
]


@pytest.fixture
def root(tmp_path) -> Path:
    """Four scenes in CLEVR's format, 48 x 32 pixels, with a red spot at every centre."""
    (tmp_path / "images" / "val").mkdir(parents=True)
    (tmp_path / "scenes").mkdir()
    scenes = []
    for i, objects in enumerate(SCENES):
        name, image = f"CLEVR_val_{i:06}.png", Image.new("RGBA", (48, 32), (120 + i, 120, 120, 255))
        for part in objects:
            x, y, _ = part["pixel_coords"]
            image.paste((*SPOT, 255), (x - 1, y - 1, x + 1, y + 1))
        image.save(tmp_path / "images" / "val" / name)
        about = {"image_index": i, "image_filename": name, "split": "val"}
        scenes.append({**about, "objects": objects, "relationships": {}, "directions": {}})
    write(tmp_path, {"info": {"split": "val"}, "scenes": scenes})
    return tmp_path


def scenes_file(root: Path) -> Path:
    return root / "scenes" / "CLEVR_val_scenes.json"


def write(root: Path, data: object) -> None:
    scenes_file(root).write_text(json.dumps(data))


@pytest.mark.parametrize(
    ("view", "shape", "kept"),
    [("crop", (32, 32), 3), ("squeeze", (32, 32), 4), ("wide", (32, 48), 4)],
)
def test_centres_lie_on_the_spots_of_the_pictures(root, view, shape, kept):
    clevr = Clevr.open(root, size=32, view=view)
    assert clevr.image_shape == (3, *shape)
    assert len(clevr) == kept, "the crop would cut off one object"
    images, centres, present, _ = clevr.take(torch.arange(kept))
    redness = images[:, 0] - images[:, 1]
    for row, slot in present.nonzero().tolist():
        x, y = centres[row, slot].tolist()
        column, line = round(x * shape[1]), round(y * shape[0])
        assert redness[row, line - 1 : line + 1, column - 1 : column + 1].mean() > 0.5
    assert not centres[~present].any()


def test_kinds_counts_and_pictures_are_those_of_the_file(root):
    clevr = Clevr.open(root, size=32, view="wide")
    images, _, present, kind = clevr.take(torch.arange(4))
    assert present.sum(1).tolist() == [2, 3, 1, 0]
    assert clevr.slots == 3
    names = (SHAPES, tuple(COLORS), MATERIALS, tuple(SIZES))
    assert [n[i] for n, i in zip(names, kind[0, 1].tolist(), strict=True)] == [
        "sphere",
        "cyan",
        "rubber",
        "large",
    ]
    assert (images[:, 0, 0, 0] * 255).round().tolist() == [120, 121, 122, 123]


def test_counts_and_limit_choose_pictures(root):
    assert len(Clevr.open(root, size=32, counts=(2, 3))) == 2
    assert len(Clevr.open(root, size=32, limit=1)) == 1
    only = Clevr.open(root, size=32, counts=(0,))
    assert only.slots == 1
    assert not only.take(torch.tensor([0])).present.any()


def test_it_is_a_source_like_the_drawn_one(root):
    clevr, drawn = Clevr.open(root, size=16), Scenes(size=16)
    for source in (clevr, drawn):
        assert isinstance(source, SceneSource)
        one, same = (source.sample(9, seeded(3)) for _ in range(2))
        assert one.images.shape == (9, *source.image_shape)
        assert one.centres.shape == (9, source.slots, 2)
        assert one.images.dtype == torch.float32
        assert one.images.max() <= 1
        assert all(torch.equal(a, b) for a, b in zip(one, same, strict=True))


def test_a_drawn_scene_survives_the_format(root):
    """Pictures of the renderer, written as CLEVR writes them, come back with the same labels."""
    world = Scenes(size=32, view="wide")
    images, centres, present, kind = world.sample(3, seeded("format"))
    names, scenes = (SHAPES, tuple(COLORS), MATERIALS, tuple(SIZES)), []
    for i, image in enumerate(images):
        name = f"drawn_{i}.png"
        Image.fromarray((image * 255).round().byte().permute(1, 2, 0).numpy()).save(
            root / "images" / "val" / name
        )
        h, w = image.shape[1:]
        found = zip(centres[i][present[i]].tolist(), kind[i][present[i]].tolist(), strict=True)
        objects = [
            thing(x * w, y * h, *(n[j] for n, j in zip(names, k, strict=True)))
            for (x, y), k in found
        ]
        scenes.append({"image_filename": name, "objects": objects})
    write(root, {"scenes": scenes})
    back = Clevr.open(root, size=32, view="wide").take(torch.arange(3))
    slots = back.present.shape[1]
    assert torch.equal(back.present, present[:, :slots])
    assert torch.equal(back.kind, kind[:, :slots])
    torch.testing.assert_close(back.centres, centres[:, :slots], rtol=0, atol=1e-4)
    assert (back.images - images).abs().max() <= 0.5 / 255 + 1e-6


def test_content_names_the_data(root):
    clevr = Clevr.open(root, size=32)
    assert from_json(to_json(clevr), SceneSource) == clevr
    assert digest(Clevr.open(root, size=32)) == digest(clevr)
    Image.new("RGB", (48, 32)).save(root / "images" / "val" / "CLEVR_val_000000.png")
    assert digest(Clevr.open(root, size=32)) != digest(clevr)
    with pytest.raises(UsageError, match=r"content is now .* not"):
        clevr.loaded  # noqa: B018


def rewrite(change):
    def apply(root: Path) -> None:
        data = json.loads(scenes_file(root).read_text())
        change(data["scenes"])
        write(root, data)

    return apply


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


PICTURE = Path("images") / "val" / "CLEVR_val_000001.png"
WRONG = {
    "CLEVR_val_scenes.json: cannot be read; CLEVR has images/<split>": lambda root: scenes_file(
        root
    ).unlink(),
    "scenes.json is not valid JSON": lambda root: scenes_file(root).write_text(
        '{"scenes": [{"image_fi'
    ),
    "is not valid JSON": lambda root: scenes_file(root).write_bytes(b'{"scenes": "\x81"}'),
    "_scenes.json is not valid JSON": lambda root: scenes_file(root).write_text("[" * 100_000),
    "_scenes.json: is not a regular file": lambda root: pipe(scenes_file(root)),
    "CLEVR_val_scenes.json: it is a link": lambda root: link(scenes_file(root)),
    "'image_filename' is ''": rewrite(lambda s: s[0].update(image_filename="")),
    "names 'a\\x00b', which is not inside": rewrite(lambda s: s[1].update(image_filename="a\0b")),
    "names '\\ud800', and there is no such file": rewrite(
        lambda s: s[1].update(image_filename="\ud800")
    ),
    "'pixel_coords' is [nan, 3]": rewrite(
        lambda s: s[0]["objects"][0].update(pixel_coords=[math.nan, 3])
    ),
    "'pixel_coords' is [1000": rewrite(
        lambda s: s[0]["objects"][0].update(pixel_coords=[10**400, 3])
    ),
    "'pixel_coords' is [True, 3]": rewrite(
        lambda s: s[0]["objects"][0].update(pixel_coords=[True, 3])
    ),
    "more than the 50,000,000 that are allowed": lambda root: Image.new("L", (8000, 8000)).save(
        root / PICTURE
    ),
    "at 32 rows, has": lambda root: Image.new("L", (3_000_000, 1)).save(root / PICTURE),
    "is a link out of the folder": lambda root: link(root / PICTURE),
    "is not a regular file": lambda root: pipe(root / PICTURE),
    "holds no list of 'scenes'": lambda root: write(root, [1, 2]),
    "scene 2: 'image_filename' is None": rewrite(lambda s: s[1].pop("image_filename")),
    "scene 1: 'image_filename' is '../../x.png', not the name": rewrite(
        lambda s: s[0].update(image_filename="../../x.png")
    ),
    "scene 3: 'objects' is no list": rewrite(lambda s: s[2].pop("objects")),
    "scene 1: 'objects' holds 13; at most 12": rewrite(
        lambda s: s[0].update(objects=[thing(9, 9)] * 13)
    ),
    "scene 2, object 3: 'color' is 'pink', not one of gray, red": rewrite(
        lambda s: s[1]["objects"][2].update(color="pink")
    ),
    "scene 2, object 1: 'shape' is None": rewrite(lambda s: s[1]["objects"].insert(0, 7)),
    "scene 1, object 2: 'pixel_coords' is 'left'": rewrite(
        lambda s: s[0]["objects"][1].update(pixel_coords="left")
    ),
    "the scenes file names 'CLEVR_val_000001.png', and there is no such file": lambda root: (
        root / PICTURE
    ).unlink(),
    "'CLEVR_val_000001.png' has another shape": lambda root: Image.new("RGB", (40, 32)).save(
        root / PICTURE
    ),
    "'CLEVR_val_000001.png', is not a picture": lambda root: (root / PICTURE).write_bytes(
        b"no picture"
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_wrong_is_said_in_one_line(root, message):
    WRONG[message](root)
    with pytest.raises(UsageError, match=re.escape(message)) as error:
        Clevr.open(root, size=32, view="wide")
    assert "\n" not in str(error.value)
    assert str(root) in str(error.value)


ODD = (None, True, -1, 3.5, 10**400, math.nan, "", "x", "\ud800", [], [[]], {}, "../x", "a" * 999)


def changed(value, rng: random.Random):
    """The same with one entry, somewhere inside, replaced by something odd or left out."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        left_out = rng.random() < 0.2
        rest = {k: v for k, v in value.items() if k != key}
        return rest if left_out else {**value, key: changed(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        i = rng.randrange(len(value))
        return [*value[:i], changed(value[i], rng), *value[i + 1 :]]
    return rng.choice(ODD)


def test_scenes_that_anybody_may_have_written_are_read_or_refused(root):
    """200 changes of a good file, for both readers; a picture is never opened elsewhere."""
    good, refused = json.loads(scenes_file(root).read_text()), 0
    for seed in range(200):
        write(root, changed(good, random.Random(seed)))
        try:
            Clevr.open(root, size=16, view="wide").sample(2, seeded(seed))
        except UsageError:
            refused += 1
        try:
            data = open_clevr(scenes_file(root))
            list(data.pictures(range(min(2, len(data)))))
        except UsageError:
            refused += 1
    assert 100 < refused < 390


def test_wrong_arguments_are_named(root):
    with pytest.raises(UsageError, match="must be the name of a folder"):
        Clevr.open(root, split="../val")
    with pytest.raises(UsageError, match="no such folder"):
        Clevr.open(root / "elsewhere")
    with pytest.raises(UsageError, match="CLEVR_train_scenes"):
        Clevr.open(root, split="train")
    with pytest.raises(UsageError, match="no picture with 5, 6 objects"):
        Clevr.open(root, counts=(5, 6))
    with pytest.raises(ValueError, match="between 16 and 1024"):
        Clevr.open(root, size=4)


@pytest.mark.parametrize(("settings", "message"), [
    ({"size": 15}, "size=15: must lie between 16 and 1024"),
    ({"size": 1025}, "size=1025: must lie between 16 and 1024"),
    ({"counts": (3, MOST + 1)}, f"counts=[3, {MOST + 1}]: numbers of objects from 0 to {MOST}"),
    ({"counts": (-1,)}, f"counts=[-1]: numbers of objects from 0 to {MOST}"),
    ({"limit": 0}, "limit=0: at least one picture is needed"),
])  # fmt: skip
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Clevr("nowhere", **settings)
    assert Clevr("nowhere", size=16, counts=(0, MOST), limit=1).limit == 1
    assert Clevr("nowhere", size=1024).view == "crop"
