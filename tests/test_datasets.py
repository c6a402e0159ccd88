"""Every layout in which people have labelled pictures is opened, and bad ones are one line."""

import importlib.util
import io
import json
import math
import re
import sys
import tarfile
import time
import tracemalloc
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from PIL import Image

from recombine.config import UsageError
from recombine.worlds.datasets.arrays import _skip
from recombine.worlds.datasets.columns import factor_columns, label, matched
from recombine.worlds.datasets.dataset import Dataset, as_rgb, natural, picture_digest, resized
from recombine.worlds.datasets.listing import list_dataset
from recombine.worlds.datasets.open_dataset import open_dataset
from recombine.worlds.factors import Factor, FactorSpace
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
    assert merged[0].endswith("capitals and spaces make no difference in 'Red', 'red'")


def test_an_unknown_value_is_named(tmp_path):
    as_csv(tmp_path)
    dataset = open_dataset(tmp_path)
    space = label(dataset, ("color",))[0].space
    table = dataset.table.with_columns(color=pl.Series(["red", "purple", "red"]))
    with pytest.raises(UsageError, match="row 2 has color 'purple'; known are red/blue"):
        matched(type(dataset)(dataset.where, "", table, dataset.read), space)


@pytest.mark.parametrize("array", [
    np.full((4, 6, 3), 0.5), np.full((3, 4, 6), 0.5, np.float32), np.full((4, 6), 127, np.uint8),
    np.full((1, 4, 6), 127), np.full((4, 6, 4), (127, 127, 127, 255)), Image.new("L", (6, 4), 127),
])  # fmt: skip
def test_any_array_becomes_rgb(array):
    found = as_rgb(array)
    assert found.shape == (4, 6, 3)
    assert set(np.unique(found)) <= {127, 128}


def test_what_is_transparent_lies_on_white():
    """In every form: array, picture with alpha, palette with a transparent colour, file."""
    red, clear = (255, 0, 0, 255), (0, 0, 0, 0)
    array = np.array([[red, clear]], np.uint8)
    picture = Image.fromarray(array)
    palette = Image.new("P", (2, 1))
    palette.putpalette([255, 0, 0, 0, 0, 0])
    palette.putdata([0, 1])
    file = io.BytesIO()
    palette.save(file, "png", transparency=1)
    shown = [[[255, 0, 0], [255, 255, 255]]]
    for one in (array, array / 255, picture, Image.open(file), file.getvalue()):
        assert as_rgb(one).tolist() == shown
    half = np.full((1, 1, 4), (0, 0, 0, 128), np.uint8)
    assert as_rgb(half).tolist() == [[[127, 127, 127]]]


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


def says(message: str):
    """Refused with exactly this line."""
    return pytest.raises(UsageError, match=f"^{re.escape(message)}$")


def test_arrays_without_pictures_or_labels_are_one_line(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, images=np.zeros((2, 8)), b=np.zeros(2))
    with says(f"{path}: needs an array 'images' of pictures; it has b, images"):
        open_dataset(path)
    np.savez(path, images=np.zeros((0, 8, 8)))
    with says(f"{path}: has no pictures"):
        open_dataset(path)
    np.savez(path, images=np.zeros((2, 8, 8)), b=np.zeros(3))
    with says(f"{path}: has pictures but no array of 2 labels"):
        open_dataset(path)
    np.savez(path, images=np.asfortranarray(np.zeros((2, 8, 8))), b=np.zeros(2))
    reason = "an array in Fortran order cannot be streamed"
    with says(f"{path}: is not an .npz file that can be read ({reason})"):
        open_dataset(path)


def test_hdf5_needs_its_package_and_a_file_that_can_be_read(tmp_path, monkeypatch):
    path = tmp_path / "a.h5"
    path.write_bytes(b"no")
    if importlib.util.find_spec("h5py"):
        import h5py

        odd = tmp_path / "odd.h5"
        with h5py.File(odd, "w") as file:
            file["b"] = np.zeros(2)
        with says(f"{odd}: needs an array 'images' of pictures; it has b"):
            open_dataset(odd)
        with pytest.raises(UsageError, match="is not an HDF5 file that can be read") as refused:
            open_dataset(path)
        assert (
            len(str(refused.value)) <= len(f"{path}: is not an HDF5 file that can be read ()") + 80
        )
    monkeypatch.setitem(sys.modules, "h5py", None)
    with says(f"{path}: reading HDF5 needs h5py; pip install -e '.[h5]' (in the clone)"):
        open_dataset(path)


@pytest.mark.parametrize(("kind", "shown"), [
    (np.float32, [0, 128, 255]), (np.int16, [0, 1, 2]), (np.uint8, [0, 1, 2]),
])  # fmt: skip
def test_arrays_of_any_kind_keep_their_brightness(tmp_path, kind, shown):
    values = np.array([0, 0.5, 1] if kind == np.float32 else [0, 1, 2]).astype(kind)
    path = tmp_path / "a.npz"
    np.savez(path, images=np.ones((3, 4, 4), kind) * values[:, None, None], y=np.arange(3))
    dataset = open_dataset(path)
    assert [int(p.max()) for p in dataset.pictures()] == shown
    assert [int(p.max()) for p in dataset.pictures([2, 0])] == [shown[0], shown[2]]
    assert (dataset.layout, dataset.table.columns) == ("npz", ["file", "y"])
    assert dataset.table["file"].to_list() == ["0", "1", "2"]


def test_a_wide_array_of_labels_is_a_factor_a_column(tmp_path):
    path = tmp_path / "a.npz"
    labels = np.array([[0.0, 1.5], [1.0, 2.5]])
    np.savez(path, images=np.zeros((2, 4, 4), np.uint8), labels=labels, extra=np.arange(2))
    table = open_dataset(path).table
    assert table.columns == ["file", "factor1", "factor2"]
    assert table["factor1"].to_list() == ["0", "1"], "whole numbers have no point"
    assert table["factor2"].to_list() == ["1.5", "2.5"]


def test_what_is_skipped_in_a_stream_ends_with_it():
    file = io.BytesIO(b"x" * 10)
    _skip(file, 4)
    assert file.tell() == 4
    _skip(file, 0)
    _skip(file, -3)
    assert file.tell() == 4
    _skip(file, 100)
    assert file.tell() == 10


def clevr(root, coords, objects: int = 1, picture: bool = True):
    thing = {"color": "red", "shape": "cube", "size": "large", "material": "metal"}
    things = [thing | {"pixel_coords": coords}] * objects
    if picture:
        Image.new("RGB", (480, 320), (9, 9, 9)).save(root / "a.png")
    scenes = {"scenes": [{"image_filename": "a.png", "objects": things}]}
    path = root / "x_scenes.json"
    path.write_text(json.dumps(scenes))
    return path


@pytest.mark.parametrize("coords", [[1, 2, 1e6], [1, -1e6, 2], [float("inf"), 1, 2]])
def test_places_that_are_no_pixels_are_refused(tmp_path, coords):
    path = clevr(tmp_path, coords)
    with pytest.raises(UsageError, match=r"is not a CLEVR scenes file \(ValueError\('pixel_coords"):
        open_dataset(path)
    assert len(open_dataset(clevr(tmp_path, [1, 2, 999_999.0]))) == 1


def test_clevr_crops_follow_the_depth_and_lonely_objects_are_whole(tmp_path):
    (whole,) = open_dataset(clevr(tmp_path, [300, 100, 10.0])).pictures()
    assert whole.shape == (320, 480, 3)
    assert open_dataset(clevr(tmp_path, [300, 100, 10.0])).notes == ()
    dataset = open_dataset(clevr(tmp_path, [300, 100, 10.0], 2))
    assert dataset.table["file"].to_list() == ["a.png#0", "a.png#1"]
    assert dataset.notes == ("2 objects of scenes with several are cropped around their places",)
    assert next(dataset.pictures()).shape == (88, 88, 3)
    near = open_dataset(clevr(tmp_path, [300, 100, 0.5], 2))
    assert next(near.pictures()).shape == (888, 888, 3), "a depth below one counts as one"
    (tmp_path / "a.png").unlink()
    path = clevr(tmp_path, [300, 100, 10.0], picture=False)
    with says(f"{path}: names 'a.png', and there is no such file under {tmp_path}"):
        list(open_dataset(path).pictures())
    path.write_text(json.dumps({"scenes": []}))
    with says(f"{path}: its scenes hold no objects"):
        open_dataset(path)


def table_of(**columns) -> Dataset:
    count = len(next(iter(columns.values())))
    return Dataset("here", "table", pl.DataFrame({"file": ["x"] * count, **columns}), iter)


def test_columns_that_are_no_factors_are_named():
    dataset = table_of(color=["a", "b"], seed=["1", "2"])
    with says("here: has no column 'colour'; it has color, seed; did you mean color?"):
        factor_columns(dataset, ("colour",))
    with says("here: a factor cannot be called 'seed'; rename that column"):
        factor_columns(dataset, ("seed",))
    with says("here: row 2 has no value for 'color'"):
        label(table_of(color=["a", " "]), ("color",))
    space = FactorSpace((Factor("size", ("big",)),))
    with says("here: has no column 'size'; it has color, seed"):
        matched(dataset, space)
    assert factor_columns(dataset, ("color",)) == (("color",), [])
    assert factor_columns(dataset) == (("color",), ["column 'seed' is left out: it is no factor"])
    with says("here: has no column 'a'; it has none"):
        factor_columns(Dataset("here", "table", pl.DataFrame({"file": ["x"]}), iter), ("a",))


@pytest.mark.parametrize(("rows", "values", "is_id"), [
    (9, 9, False), (10, 6, True), (10, 5, False), (11, 6, True), (11, 5, False),
])  # fmt: skip
def test_an_id_has_a_value_for_more_than_every_second_row_of_ten_or_more(rows, values, is_id):
    names, notes = factor_columns(
        table_of(a=[str(i % values) for i in range(rows)], b=["x"] * rows)
    )
    assert names == (("b",) if is_id else ("a", "b"))
    line = f"column 'a' is left out: {values} values in {rows} rows, an id"
    assert notes == ([line] if is_id else [])


def test_six_spellings_that_were_merged_are_named():
    spelled = ["red", "Red", "RED", "rED", "reD", "ReD", "rEd"]
    labels, notes = label(table_of(a=spelled), ("a",))
    assert labels.index.tolist() == [[0]] * 7
    said = "a: capitals and spaces make no difference in "
    assert notes == [said + ", ".join(map(repr, spelled[:6]))]
    assert label(table_of(a=["dark  red", "dark red "]), ("a",))[0].space.count == 1


@pytest.mark.parametrize(("array", "message"), [
    (np.full((4, 4), 256), "int64 from 256 to 256, not in 0..255"),
    (np.full((4, 4), -1), "int64 from -1 to -1, not in 0..255"),
    (np.full((4, 4), 1.2512), "numbers from 1.25 to 1.25, not in [0, 1]"),
    (np.full((4, 4), -0.2512), "numbers from -0.251 to -0.251, not in [0, 1]"),
    (np.zeros((5, 6, 2)), "an array of shape (5, 6, 2) is no picture"),
    (np.zeros(4), "an array of shape (4,) is no picture"),
    (np.zeros((0, 4, 3)), "an array of shape (0, 4, 3) is no picture"),
])  # fmt: skip
def test_an_array_that_is_no_picture_is_refused(array, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        as_rgb(array)


def test_arrays_at_the_limits_are_pictures():
    assert as_rgb(np.array([[True, False]])).tolist() == [[[255] * 3, [0] * 3]]
    assert as_rgb(np.array([[255, 0]])).tolist() == [[[255] * 3, [0] * 3]]
    assert as_rgb(np.array([[1.25, -0.25]])).tolist() == [[[255] * 3, [0] * 3]]
    assert as_rgb(np.zeros((3, 5, 4))).shape == (3, 5, 3), "colours stand last where they can"
    assert as_rgb(np.zeros((4, 5, 6), np.uint8)).shape == (5, 6, 3)


def test_what_cannot_be_read_is_named_by_its_row(tmp_path):
    as_csv(tmp_path)
    (tmp_path / "20.png").write_bytes(b"no")
    dataset = open_dataset(tmp_path)
    assert len(list(dataset.pictures([2, 0]))) == 2
    with pytest.raises(UsageError, match="is not a picture that can be read"):
        list(dataset.pictures())
    bad = Dataset("here", "x", dataset.table, lambda rows: iter([np.zeros(3) for _ in rows]))
    with says("here: row 2, '20.png', is not a picture that can be read"):
        list(bad.pictures([1]))
    short = Dataset("here", "x", dataset.table, lambda rows: iter(()))
    with pytest.raises(ValueError, match="shorter"):
        list(short.pictures())


def test_names_sort_by_their_numbers_and_pictures_are_cropped_at_the_centre():
    assert sorted(["a10.png", "a2.png"], key=natural) == ["a2.png", "a10.png"]
    assert natural("a10b2") == ["a", 10, "b", 2, ""]
    wide = np.zeros((4, 8, 3), np.uint8)
    wide[:, 2:6] = 200
    assert (resized(wide, 4) == 200).all()
    assert resized(wide, 2).shape == (2, 2, 3)
    square = np.zeros((4, 4, 3), np.uint8)
    assert resized(square, 4) is square
    assert picture_digest(square) != picture_digest(np.zeros((2, 8, 3), np.uint8))


def fake_hub(monkeypatch, features, rows):
    class Columns:
        def __init__(self, rows, without):
            self.rows = [{k: v for k, v in r.items() if k not in without} for r in rows]
            self.column_names = list(self.rows[0])

        def __getitem__(self, name):
            return [row[name] for row in self.rows]

    class Data(list):
        def remove_columns(self, names):
            return Columns(self, names)

    def load_dataset(title, split):
        calls.append((title, split))
        found = Data(rows)
        found.features = features
        return found

    calls: list = []
    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    return calls


def test_a_dataset_of_the_hub_is_its_columns_as_text(monkeypatch):
    class Names:
        def int2str(self, value):
            return ("cup", "bowl")[value]

    shown = [np.full((4, 4, 3), g, np.uint8) for g in (10, 20)]
    rows = [{"file": "odd", "image": p, "kind": k, "n": 7} for k, p in enumerate(shown)]
    features = {"file": None, "image": type("Image", (), {})(), "kind": Names(), "n": None}
    calls = fake_hub(monkeypatch, features, rows)
    dataset = open_dataset("hf:me/mine")
    assert open_dataset("hf:me/mine:test").where == "hf:me/mine:test"
    assert calls == [("me/mine", "train"), ("me/mine", "test")]
    assert dataset.table.to_dict(as_series=False) == {
        "file": ["0", "1"], "kind": ["cup", "bowl"], "n": ["7", "7"],
    }  # fmt: skip
    assert [int(p.max()) for p in dataset.pictures()] == [10, 20]
    assert [int(p.max()) for p in dataset.pictures([1])] == [20]
    assert dataset.layout == "Hugging Face"
    fake_hub(monkeypatch, {"a": None, "b": None}, rows)
    with says("hf:me/mine: has no column of pictures, only a, b"):
        open_dataset("hf:me/mine")


def test_the_hub_is_one_line_where_it_fails_or_is_not_there(monkeypatch):
    def fails(title, split):
        raise OSError("gone\n" + "x" * 200)

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=fails))
    with says(f"hf:me/mine: cannot be loaded (gone {'x' * 95})"):
        open_dataset("hf:me/mine")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with says("hf:me/mine: needs the package datasets; pip install -e '.[hf]' (in the clone)"):
        open_dataset("hf:me/mine")


def test_parts_are_read_in_their_order_and_give_the_split(tmp_path):
    root = tmp_path / "set"
    as_imagefolder_in_parts(root)
    dataset = open_dataset(root)
    assert dataset.table["split"].to_list() == ["test", "train", "train"]
    assert [int(p.max()) for p in dataset.pictures()] == [30, 10, 20]
    assert [int(p.max()) for p in dataset.pictures([2])] == [20]
    assert dataset.notes == ("column 'file_name' names the pictures",)
    table = root / "test" / "metadata.csv"
    table.write_text("file_name,color,split,more\n30.png,red,mine,1\n")
    mixed = open_dataset(root).table
    assert mixed["split"].to_list() == ["mine", "train", "train"]
    assert mixed["more"].to_list() == ["1", "", ""]


def test_levels_of_folders_are_named_as_wanted_or_there_is_no_factor(tmp_path):
    for place in ("red/disc", "blue/disc"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "1.png").write_bytes(png(3))
    assert [f.name for f in list_dataset(tmp_path)[0].factors] == ["level1", "level2"]
    space, files, first, file, index, values, notes, _ = list_dataset(tmp_path, ("color", "shape"))
    assert space.words == "color blue/red, shape disc"
    assert files == ["blue/disc/1.png", "red/disc/1.png"]
    assert index.tolist() == [[0, 0], [1, 0]]
    assert (first.tolist(), file.tolist(), values.shape) == ([0, 1], [0, 1], (2, 0))
    assert notes == ("folders give the factors: color, shape",)
    swapped = list_dataset(tmp_path, ("level2", "level1"))[0]
    assert swapped.words == "level2 disc, level1 blue/red"
    assert [f.name for f in list_dataset(tmp_path, ("level2",))[0].factors] == ["level2"]
    with pytest.raises(UsageError, match="has no column 'color'"):
        list_dataset(tmp_path, ("color",))
    (tmp_path / "labels.csv").write_text("file,id\na.png,1\n")
    with says(
        f"{tmp_path}: has no column that is a factor; column 'id' is left out: it is no factor"
    ):
        list_dataset(tmp_path)
    (tmp_path / "labels.csv").write_text("file\na.png\n")
    with says(f"{tmp_path}: has no column that is a factor; no others"):
        list_dataset(tmp_path)


def test_folders_called_train_and_test_are_a_split(tmp_path):
    for place in ("train/cup", "test/cup", ".hidden/cup"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "1.png").write_bytes(png(3))
    assert open_dataset(tmp_path).table.columns == ["file", "split", "level2"]
    lone = tmp_path / "train" / "cup"
    with says(f"{lone}: has pictures but no table factors.csv that says what they show"):
        open_dataset(lone)


def test_a_table_of_a_folder_can_be_named(tmp_path):
    as_csv(tmp_path)
    (tmp_path / "other.csv").write_text("file,kind\n10.png,cup\n")
    assert open_dataset(tmp_path).table.columns == ["file", "color", "shape"]
    assert open_dataset(tmp_path, "other.csv").table.columns == ["file", "kind"]
    with says(f"{tmp_path}: there is no table none.csv in this folder"):
        open_dataset(tmp_path, "none.csv")
    (tmp_path / "a.xyz").write_text("")
    known = ".csv, .tsv, .parquet, .jsonl, .ndjson, .json, .arrow, .npz, .h5, .tar"
    with says(f"{tmp_path / 'a.xyz'}: is none of {known}"):
        open_dataset(tmp_path / "a.xyz")
    (tmp_path / "factors.csv").unlink()
    assert open_dataset(tmp_path).table.columns == ["file", "kind"], "one table of any name"
    for name in "abcde":
        (tmp_path / f"{name}.npz").write_bytes(b"")
    with says(
        f"{tmp_path}: holds a.npz, b.npz, c.npz, d.npz; say which one, as a path or with --table"
    ):
        open_dataset(tmp_path)


def shard(path, *members: tuple[str, bytes]) -> None:
    with tarfile.open(path, "w") as tar:
        for name, data in members:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


def test_samples_of_a_shard_are_files_of_one_name_and_those_without_a_picture_are_left_out(
    tmp_path,
):
    path = tmp_path / "a.tar"
    shard(
        path, ("d/1.png", png(5)), ("d/1.cls", b"cup"), ("d/1.txt", b" a cup "), ("d/1.odd", b"?"),
        ("2.json", b'{"class": "bowl"}'), ("3.big.png", png(6)),
        ("3.json", b'{"class": "pot", "list": [1], "n": 4}'),
    )  # fmt: skip
    dataset = open_dataset(path)
    assert dataset.table.to_dicts() == [
        {"file": "a.tar/d/1", "class": "cup", "prompt": "a cup", "n": ""},
        {"file": "a.tar/3", "class": "pot", "prompt": "", "n": "4"},
    ]
    assert [int(p.max()) for p in dataset.pictures()] == [5, 6]
    shard(path, ("1.png", png(5)), ("1.cls", b"x" * 1_000_001))
    assert open_dataset(path).table.columns == ["file"], "labels of more than a million bytes"
    shard(path, ("1.png", png(5)), ("1.cls", b"x" * 1_000_000))
    assert open_dataset(path).table.columns == ["file", "class"]
    shard(path, ("1.cls", b"cup"))
    with says(f"{path}: its shards hold no pictures"):
        open_dataset(path)


def test_tables_that_cannot_be_used_are_one_line(tmp_path):
    path = tmp_path / "factors.csv"
    path.write_text("file,a\n")
    with says(f"{path}: has no rows"):
        open_dataset(path)
    path.write_text("name,a\n1,2\n")
    with says(f"{path}: needs a column 'file', 'file_name', 'filename', 'path'; it has name, a"):
        open_dataset(path)
    bad = tmp_path / "a.parquet"
    bad.write_bytes(b"no" * 100)
    with pytest.raises(UsageError, match="is not a table that can be read") as refused:
        open_dataset(bad)
    assert len(str(refused.value)) <= len(f"{bad}: is not a table that can be read ()") + 80
    pl.DataFrame({"image": [{"path": "a", "hash": 3}]}).write_parquet(bad)
    with says(f"{bad}: column 'image' holds hash, path, no bytes"):
        open_dataset(bad)


def test_pictures_inside_a_table_are_named_by_path_or_number(tmp_path):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"image": [{"bytes": png(1)}, {"bytes": png(2)}], "k": [1, None]}).write_parquet(
        path
    )
    dataset = open_dataset(path)
    assert dataset.table.to_dict(as_series=False) == {"k": ["1", ""], "file": ["0", "1"]}
    assert [int(p.max()) for p in dataset.pictures()] == [1, 2]
    assert dataset.layout == "table with pictures"
    pl.DataFrame({"image": [{"bytes": None, "path": "a.png"}], "k": [1]}).write_parquet(path)
    assert open_dataset(path).table["file"].to_list() == ["a.png"]
    with pytest.raises(UsageError, match="is not a picture that can be read"):
        list(open_dataset(path).pictures())


def test_names_of_classes_apply_to_numbers_alone(tmp_path):
    path, names = tmp_path / "a.parquet", {"names": ["cup", "bowl"]}
    features = {"k": names, "t": names, "gone": names, "odd": [1]}
    about = {"huggingface": json.dumps({"info": {"features": features}})}
    pl.DataFrame({"file": ["a", "b"], "k": [1, 5], "t": ["x", "y"]}).write_parquet(
        path, metadata=about
    )
    table = open_dataset(path).table
    assert table["k"].to_list() == ["bowl", ""]
    assert table["t"].to_list() == ["x", "y"]
    for text in ("no json", "[]", '{"info": {"features": [1]}}'):
        pl.DataFrame({"file": ["a"], "k": [1]}).write_parquet(path, metadata={"huggingface": text})
        assert open_dataset(path).table["k"].to_list() == ["1"]


def test_spaces_around_columns_are_dropped_and_lists_left_out(tmp_path):
    (tmp_path / "factors.csv").write_text("file , color\na.png,red\n")
    dataset = open_dataset(tmp_path)
    assert (dataset.table.columns, dataset.notes) == (["file", "color"], ())
    rows = [{"path": "a.png", "n": 1, "l": [1, 2]}]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    dataset = open_dataset(tmp_path / "rows.json")
    assert dataset.table.to_dicts() == [{"file": "a.png", "n": "1"}]
    assert dataset.notes == ("column 'path' names the pictures",)


def test_a_file_that_is_missing_is_named_by_its_row_and_known_values_are_matched(tmp_path):
    as_csv(tmp_path)
    (tmp_path / "20.png").unlink()
    dataset = open_dataset(tmp_path)
    with says(f"{tmp_path}: row 2 names '20.png', and there is no such file"):
        list(dataset.pictures())
    space = label(dataset, ("shape", "color"))[0].space
    assert matched(dataset, space).tolist() == [[0, 0], [0, 1], [1, 0]]
