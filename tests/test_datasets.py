"""Every layout in which people have labelled pictures is opened, and bad ones are one line."""

import io
import json
import math
import tarfile
import time
import tracemalloc

import numpy as np
import polars as pl
import pytest
from PIL import Image

from recombine.config import UsageError
from recombine.worlds.datasets.columns import factor_columns, label, matched
from recombine.worlds.datasets.dataset import as_rgb
from recombine.worlds.datasets.open_dataset import open_dataset
from recombine.worlds.folder import Folder

ROWS = [("red", "disc", 10), ("blue", "disc", 20), ("red", "bar", 30)]
COLOURS, SHAPES, GREYS = zip(*ROWS, strict=True)


def png(grey: int, side: int = 8) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (side, side), (grey, grey, grey)).save(buffer, "png")
    return buffer.getvalue()


def pictures(root):
    root.mkdir(exist_ok=True, parents=True)
    for grey in GREYS:
        (root / f"{grey}.png").write_bytes(png(grey))
    return [f"{grey}.png" for grey in GREYS]


def as_csv(root):
    text = "".join(
        f"{f},{c},{s}\n" for f, c, s in zip(pictures(root), COLOURS, SHAPES, strict=True)
    )
    (root / "factors.csv").write_text("file,color,shape\n" + text)


def as_tsv(root):
    text = "".join(
        f"{f}\t{c}\t{s}\n" for f, c, s in zip(pictures(root), COLOURS, SHAPES, strict=True)
    )
    (root / "labels.tsv").write_text("path\tcolor\tshape\n" + text)


def as_parquet(root):
    columns = {"file_name": pictures(root), "color": COLOURS, "shape": SHAPES}
    pl.DataFrame(columns).write_parquet(root / "metadata.parquet")


def as_jsonl(root):
    rows = zip(pictures(root), COLOURS, SHAPES, strict=True)
    lines = [json.dumps({"file_name": f, "color": c, "shape": s}) for f, c, s in rows]
    (root / "metadata.jsonl").write_text("\n".join(lines))


def as_imagefolder_in_parts(root):
    for part, some in (("train", slice(0, 2)), ("test", slice(2, 3))):
        names = pictures(root / part)[some]
        columns = {"file_name": names, "color": COLOURS[some], "shape": SHAPES[some]}
        pl.DataFrame(columns).write_csv(root / part / "metadata.csv")


def as_hub_parquet(root):
    (root / "data").mkdir(parents=True)
    images = [{"bytes": png(g), "path": f"{g}.png"} for g in GREYS]
    names = {"color": {"names": ["red", "blue"], "_type": "ClassLabel"}}
    table = pl.DataFrame({"image": images, "color": [0, 1, 0], "shape": SHAPES})
    about = {"huggingface": json.dumps({"info": {"features": names}})}
    table.write_parquet(root / "data" / "train-00000-of-00001.parquet", metadata=about)


def as_saved_to_disk(root):
    root.mkdir()
    images = [{"bytes": png(g), "path": None} for g in GREYS]
    table = pl.DataFrame({"image": images, "color": [0, 1, 0], "shape": SHAPES})
    table.write_ipc_stream(root / "data-00000-of-00001.arrow")
    info = {"features": {"color": {"names": ["red", "blue"], "_type": "ClassLabel"}}}
    (root / "dataset_info.json").write_text(json.dumps(info))


def as_class_folders(root):
    for color, shape, grey in ROWS:
        place = root / f"color={color}" / f"shape={shape}"
        place.mkdir(parents=True)
        (place / f"{grey}.png").write_bytes(png(grey))


def as_shards(root):
    root.mkdir()
    for k, some in enumerate((ROWS[:2], ROWS[2:])):
        with tarfile.open(root / f"set-{k:04}.tar", "w") as tar:
            for color, shape, grey in some:
                label = json.dumps({"color": color, "shape": shape}).encode()
                for ending, data in (("png", png(grey)), ("json", label)):
                    member = tarfile.TarInfo(f"{grey:04}.{ending}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))


def as_npz(root):
    root.mkdir()
    images = np.stack([np.full((3, 8, 8), g, np.uint8) for g in GREYS])
    np.savez_compressed(root / "set.npz", images=images, color=COLOURS, shape=SHAPES)


def as_h5(root):
    h5py = pytest.importorskip("h5py")
    root.mkdir()
    with h5py.File(root / "set.h5", "w") as file:
        file["images"] = np.stack([np.full((8, 8, 3), g, np.uint8) for g in GREYS])
        file["color"], file["shape"] = np.array(COLOURS, "S"), np.array(SHAPES, "S")


LAYOUTS = [
    as_csv, as_tsv, as_parquet, as_jsonl, as_imagefolder_in_parts, as_hub_parquet, as_saved_to_disk,
    as_class_folders, as_shards, as_npz, as_h5,
]  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_pictures_and_labels(layout, tmp_path):
    root = tmp_path / "set"
    layout(root)
    dataset = open_dataset(root)
    names, _ = factor_columns(dataset, ("color", "shape"))
    labels, _ = label(dataset, names)
    found = {
        (labels.space.describe(tuple(c)), int(p[0, 0, 0]))
        for c, p in zip(labels.index.tolist(), dataset.pictures(), strict=True)
    }
    assert found == {(f"{c} {s}", g) for c, s, g in ROWS}
    world = Folder.open(root, factors=("color", "shape"))
    assert sorted(world.space.describe(c) for c in world.present) == [
        "blue disc",
        "red bar",
        "red disc",
    ]
    assert world.image_shape == (3, 8, 8)


def test_dsprites_as_published_streams_the_rows_that_are_requested(tmp_path):
    images = np.zeros((6, 8, 8), np.uint8)
    images[:, 2:4, 2:4] = 1
    classes = np.array([[0, i % 3, i // 3, 0, 0, 0] for i in range(6)])
    path = tmp_path / "dsprites_ndarray.npz"
    meta = np.array({"latents_names": ()}, dtype=object)
    np.savez_compressed(
        path, imgs=images, latents_classes=classes, latents_values=classes * 0.5, metadata=meta
    )
    dataset = open_dataset(path)
    assert dataset.table["shape"].to_list() == ["square", "ellipse", "heart"] * 2
    assert dataset.table["scale"].to_list() == ["0"] * 3 + ["1"] * 3
    (second, last) = dataset.pictures([1, 5])
    assert second.max() == last.max() == 255


def test_shapes3d_as_published(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "3dshapes.h5", "w") as file:
        file["images"] = np.full((4, 8, 8, 3), 7, np.uint8)
        file["labels"] = np.array([[0.0, 0.1, 0.2, 0.75, i, -30.0] for i in range(4)])
    dataset = open_dataset(tmp_path)
    assert dataset.table["shape"].to_list() == ["cube", "cylinder", "sphere", "capsule"]
    assert "wall_hue" in dataset.table.columns


def test_clevr_objects_are_cropped_around_their_places(tmp_path):
    (tmp_path / "images").mkdir()
    picture = Image.new("RGB", (480, 320))
    picture.paste((200, 0, 0), (290, 90, 310, 110))
    picture.save(tmp_path / "images" / "CLEVR_0.png")
    thing = {"color": "red", "shape": "cube", "size": "large", "material": "metal"}
    objects = [
        thing | {"pixel_coords": [300, 100, 10.0]},
        thing | {"shape": "sphere", "pixel_coords": [100, 200, 10.0]},
    ]
    scenes = {"info": {}, "scenes": [{"image_filename": "CLEVR_0.png", "objects": objects}]}
    (tmp_path / "scenes").mkdir()
    (tmp_path / "scenes" / "CLEVR_val_scenes.json").write_text(json.dumps(scenes))
    dataset = open_dataset(tmp_path)
    cube, sphere = dataset.pictures()
    assert dataset.table["shape"].to_list() == ["cube", "sphere"]
    assert cube[cube.shape[0] // 2, cube.shape[1] // 2, 0] == 200
    assert sphere.max() == 0


def test_ids_are_left_out_and_spellings_merged_with_a_note(tmp_path):
    for i in range(12):
        (tmp_path / f"{i}.png").write_bytes(png(i))
    rows = [
        {"path": f"{i}.png", "uuid": f"u{i}", "color": ("Red", "red ", "blue")[i % 3], "split": "a"}
        for i in range(12)
    ]
    pl.DataFrame(rows).write_csv(tmp_path / "labels.csv")
    dataset = open_dataset(tmp_path)
    names, notes = factor_columns(dataset)
    assert names == ("color",)
    assert "'uuid' is left out: 12 values in 12 rows" in notes[0]
    assert notes[1:] == ["column 'split' is left out: it is no factor"]
    labels, merged = label(dataset, names)
    assert labels.space.factors[0].values == ("Red", "blue")
    assert "'Red', 'red' are read as the same" in merged[0]


def test_an_unknown_value_is_named(tmp_path):
    as_csv(tmp_path)
    dataset = open_dataset(tmp_path)
    space = label(dataset, ("color",))[0].space
    table = dataset.table.with_columns(color=pl.Series(["red", "purple", "red"]))
    with pytest.raises(UsageError, match="row 2 has color 'purple'; known are red/blue"):
        matched(type(dataset)(dataset.where, "", table, dataset.read), space)


@pytest.mark.parametrize("array", [
    np.full((4, 6, 3), 0.5), np.full((3, 4, 6), 0.5, np.float32), np.full((4, 6), 127, np.uint8),
    np.full((1, 4, 6), 127), np.full((4, 6, 4), 0.5), Image.new("L", (6, 4), 127),
])  # fmt: skip
def test_any_array_becomes_rgb(array):
    found = as_rgb(array)
    assert found.shape == (4, 6, 3)
    assert set(np.unique(found)) <= {127, 128}


def test_a_million_rows_are_read_in_seconds(tmp_path):
    """A fifth of them here; time and memory are linear."""
    count = 200_000
    numbers = pl.int_range(count, eager=True)
    table = pl.DataFrame({
        "file": numbers.cast(pl.String) + ".png",
        "color": (numbers % 7).cast(pl.String), "shape": (numbers % 11).cast(pl.String),
    })  # fmt: skip
    table.write_parquet(tmp_path / "metadata.parquet")
    start = time.process_time()
    tracemalloc.start()
    dataset = open_dataset(tmp_path)
    labels, _ = label(dataset, factor_columns(dataset)[0])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert labels.index.shape == (count, 2)
    assert time.process_time() - start < 4
    assert peak < 100e6


WRONG = {
    "has neither a table nor pictures": lambda root: None,
    "is not an .npz file": lambda root: (root / "a.npz").write_bytes(b"no"),
    "is not a tar shard": lambda root: (root / "a.tar").write_bytes(b"no" * 600),
    "needs a column 'file'": lambda root: (root / "labels.csv").write_text("a,b\n1,2\n"),
    "lies in 1 folders, others in 2": lambda root: [
        (root / p).parent.mkdir(parents=True, exist_ok=True) or (root / p).write_bytes(png(1))
        for p in ("a/b/1.png", "a/2.png")
    ],
    "say which one": lambda root: [
        (root / f"{name}.csv").write_text("file,a\n1.png,2\n") for name in ("one", "two")
    ],
    "is not a CLEVR scenes file": lambda root: (root / "x_scenes.json").write_text('{"scenes": 3}'),
}


@pytest.mark.parametrize("message", WRONG)
def test_a_bad_layout_is_one_line(message, tmp_path):
    WRONG[message](tmp_path)
    with pytest.raises(UsageError, match=message):
        list(open_dataset(tmp_path).pictures())


def test_the_hub_needs_its_package_and_says_so():
    with pytest.raises(
        UsageError, match=r"hf:nobody/nothing: (needs the package|cannot be loaded)"
    ):
        open_dataset("hf:nobody/nothing")


def test_numbers_a_little_outside_are_taken_for_the_nearest_and_more_are_refused():
    found = as_rgb(np.array([[-0.1, 0.0, 0.5, 1.0, 1.2]]))
    assert found.tolist() == [[[v] * 3 for v in (0, 0, 128, 255, 255)]]
    for wrong in (-0.3, 1.3, math.nan):
        with pytest.raises(ValueError, match="not in"):
            as_rgb(np.array([[0.5, wrong]]))
