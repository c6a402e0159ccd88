import copy
import json
import os
import pickle
import re
import struct
import sys
import time
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from recombine.config import UsageError, config, digest, from_json, to_json
from recombine.overrides import override
from recombine.rng import seeded
from recombine.runs.recipe import Recipe
from recombine.worlds.factor_table import FactorTable, _agreeing, _numbers, _some, some_of
from recombine.worlds.factors import Factor, FactorSpace
from recombine.worlds.folder import Folder, check_size
from recombine.worlds.folder_check import describe
from recombine.worlds.labelled_pictures import part, room_for
from recombine.worlds.picture_files import decode
from recombine.worlds.shapes2d import Shapes2D
from recombine.worlds.world import World

DOCS = Path(__file__).parent.parent / "docs" / "own-data.md"
TABLE = """file,shape,color,color.r,color.b
a.png,disc,red,0.9,0.1
b.png,disc,red,0.7,0.3
c.png,cone,red,0.8,0.0
d.png,disc,blue,0.1,1.0
"""
GREYS = {"a.png": 10, "b.png": 20, "c.png": 30, "d.png": 40}


@pytest.fixture
def root(tmp_path) -> Path:
    for name, grey in GREYS.items():
        Image.new("RGB", (6, 4), (grey, 0, 255)).save(tmp_path / name)
    (tmp_path / "factors.csv").write_text(TABLE)
    return tmp_path


def test_the_table_becomes_the_factor_space(root):
    folder = Folder.open(root)
    assert folder.space.factors[0].values == ("disc", "cone")
    assert folder.space.factors[1].values == ("red", "blue")
    assert folder.space.dims == (0, 2)
    assert folder.image_shape == (3, 4, 6)
    assert folder.present == ((0, 0), (0, 1), (1, 0))
    assert folder.counts == {(0, 0): 2, (0, 1): 1, (1, 0): 1}
    assert isinstance(folder, World)


def report(root: Path, size: int | None = None, **options) -> list[str]:
    return list(describe(root, "factors.csv", (), size, **options))


def test_prompts_and_splits_are_no_factors_unless_they_are_chosen(root):
    header, *rows = (root / "factors.csv").read_text().splitlines()
    (root / "factors.csv").write_text(
        "\n".join([f"{header},split,Prompt", *(f"{row},train,a {i}" for i, row in enumerate(rows))])
    )
    assert Folder.open(root).space.names == ("shape", "color")
    said = list(describe(root, "factors.csv", (), None))
    assert "column 'split' is left out: it is no factor" in said
    assert "column 'Prompt' is left out: it is no factor" in said
    assert Folder.open(root, factors=("shape", "split")).space.names == ("shape", "split")


def test_spellings_that_differ_in_capitals_or_spaces_are_one_value(root):
    table = (root / "factors.csv").read_text()
    (root / "factors.csv").write_text(table.replace("c.png,cone,red", "c.png,cone, RED ", 1))
    assert "RED" in (root / "factors.csv").read_text()
    assert Folder.open(root).space.factors[1].values == ("red", "blue")
    said = "color: capitals and spaces make no difference in 'red', 'RED'"
    assert said in describe(root, "factors.csv", (), None)


def test_what_a_study_would_take_from_it_is_reported_line_by_line(root):
    assert report(root) == [
        f"{root}: shape disc/cone, color red/blue; pictures of 3 of 4 compositions, of disc blue the fewest (1)",
        "numbers: color 2",
        "seen: disc red (2), disc blue (1), cone red (1)",
        "level 1: cone blue (no pictures)",
        "size: 6 x 4; patches 1, 2 divide it, but not tokenizers, which shrink it by four",
    ]
    assert "patches 1, 2, 4, 8 divide it, and tokenizers" in report(root, size=8)[-1]


def test_render_draws_pictures_of_the_composition_with_their_own_values(root):
    images, values = Folder.open(root).render(
        torch.tensor([[0, 0]] * 50 + [[1, 0], [0, 1]]), seeded(0)
    )
    red = (images[:, 0, 0, 0] * 255).round().tolist()
    assert set(red[:50]) == {10.0, 20.0}
    assert red[50:] == [30.0, 40.0]
    assert images.dtype == torch.float32
    own = {10.0: (0.9, 0.1), 20.0: (0.7, 0.3), 30.0: (0.8, 0.0), 40.0: (0.1, 1.0)}
    torch.testing.assert_close(values, torch.tensor([own[r] for r in red]))


def test_render_is_named_by_its_stream(root):
    folder, factors = Folder.open(root), torch.zeros(40, 2, dtype=torch.long)
    assert torch.equal(
        folder.render(factors, seeded(1)).images, folder.render(factors, seeded(1)).images
    )
    assert not torch.equal(
        folder.render(factors, seeded(1)).images, folder.render(factors, seeded(2)).images
    )


def test_canonical_values_are_means_over_a_values_pictures(root):
    got = Folder.open(root).canonical(torch.tensor([[0, 0], [1, 0], [1, 1]]))
    torch.testing.assert_close(got, torch.tensor([[0.8, 0.4 / 3], [0.8, 0.4 / 3], [0.1, 1.0]]))


def test_factors_choose_columns_and_order(root):
    assert [f.name for f in Folder.open(root, factors=("color", "shape")).space.factors] == [
        "color",
        "shape",
    ]
    only = Folder.open(root, factors=("shape",))
    assert only.space.dims == (0,)
    assert only.canonical(torch.tensor([[0]])).shape == (1, 0)


def test_a_missing_composition_is_named(root):
    with pytest.raises(UsageError, match="no picture of cone blue"):
        Folder.open(root).render(torch.tensor([[0, 0], [1, 1]]), seeded(0))


def test_reading_is_refused(root):
    folder = Folder.open(root)
    assert not folder.readable
    assert Shapes2D().readable
    with pytest.raises(UsageError, match="trained probe"):
        folder.read(torch.zeros(1, 3, 4, 6))


def test_16_bits_keep_their_shades(root):
    shades = np.array([[0, 257 * 100], [257 * 200, 65535]], np.uint16)
    for name in ("deep.png", "deep.tif", "deep.ppm"):
        Image.fromarray(shades).save(root / name)
        found = decode((root / name).read_bytes(), name)
        assert found.tolist() == [[[0] * 3, [100] * 3], [[200] * 3, [255] * 3]]
    Image.fromarray(np.array([[0, 70000]], np.int32)).save(root / "deeper.tif")
    with pytest.raises(UsageError, match="is not a picture that can be read"):
        decode((root / "deeper.tif").read_bytes(), "deeper.tif")


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "1"])
def test_every_kind_of_picture_becomes_rgb(root, mode):
    Image.new("RGB", (6, 4), (255, 255, 255)).convert(mode).save(root / "d.png")
    images = Folder.open(root).render(torch.tensor([[0, 1]]), seeded(0)).images
    assert images.shape == (1, 3, 4, 6)
    assert (images == 1).all()


def test_the_digest_follows_table_and_pictures(root):
    digests = {digest(Folder.open(root))}
    assert digest(Folder.open(root)) in digests, "nothing changed"
    Image.new("RGB", (6, 4), (11, 0, 255)).save(root / "a.png")
    digests.add(digest(Folder.open(root)))
    (root / "factors.csv").write_text(TABLE.replace("0.9", "0.8"))
    digests.add(digest(Folder.open(root)))
    assert len(digests) == 3


def test_changed_content_is_noticed(root):
    folder = Folder.open(root)
    (root / "factors.csv").write_text(TABLE.replace("cone", "star"))
    with pytest.raises(UsageError, match=r"content is now .* not"):
        folder.space  # noqa: B018


def test_a_folder_is_a_plain_frozen_config(root):
    folder = Folder.open(root)
    folder.space  # noqa: B018
    for twin in (
        copy.deepcopy(folder),
        pickle.loads(pickle.dumps(folder)),
        from_json(to_json(folder), World),
    ):
        assert twin == folder
        assert hash(twin) == hash(folder)


def test_a_path_can_be_set_where_a_world_stands(root):
    @config("test/folder-setting")
    class Setting:
        world: World
        shapes: Shapes2D

    setting = override(Setting(Shapes2D(), Shapes2D()), f"world={root}")
    assert setting.world == Folder.open(root)
    with pytest.raises(UsageError, match="no such folder"):
        override(setting, "world=nowhere")
    with pytest.raises(UsageError, match="Shapes2D"):
        override(setting, f"shapes={root}")


def test_fields_of_a_folder_are_set_beside_it_in_any_order(root):
    """Pictures of other sizes are no trouble where a size is given, in whichever order."""
    Image.new("RGB", (9, 9), (50, 0, 255)).save(root / "e.png")
    (root / "other.csv").write_text(TABLE + "e.png,cone,blue,0.1,1.0\n")
    given = [
        f"world={root}",
        "world.size=4",
        "world.table=other.csv",
        'world.factors=["color","shape"]',
    ]
    found = [override(Recipe(), *order).world for order in (given, given[::-1])]
    assert found[0] == found[1] == Folder.open(root, "other.csv", ("color", "shape"), 4)
    assert found[0].content
    with pytest.raises(UsageError, match="set size to make them equal"):
        override(Recipe(), *given[:1], *given[2:])


def test_a_folder_given_as_json_is_read_like_any_other(root):
    plain = json.dumps({"type": Folder.tag, "path": str(root), "size": 4})
    assert override(Recipe(), f"world={plain}").world == Folder.open(root, size=4)


def test_size_crops_and_scales(root):
    Image.new("RGB", (40, 30), (200, 0, 255)).save(root / "a.png")
    folder = Folder.open(root, size=8)
    assert folder.image_shape == (3, 8, 8)


def test_parquet_holds_the_same_table(root):
    columns = list(zip(*[line.split(",") for line in TABLE.split()], strict=True))
    data = {name: [float(c) for c in cells] if "." in name else cells for name, *cells in columns}
    pl.DataFrame(data).write_parquet(root / "factors.parquet")
    folder, other = Folder.open(root), Folder.open(root, table="factors.parquet")
    assert other.space == folder.space
    assert torch.equal(other.loaded.values, folder.loaded.values)
    (root / "factors.parquet").write_bytes(b"nonsense")
    with pytest.raises(UsageError, match="not a readable Parquet table"):
        Folder.open(root, table="factors.parquet")


def rewrite(old: str, new: str):
    return lambda root: (root / "factors.csv").write_text(TABLE.replace(old, new))


WRONG = {
    "no table factors.csv": lambda root: (root / "factors.csv").unlink(),
    "row 3 names 'c.png', and there is no such file": lambda root: (root / "c.png").unlink(),
    "row 2 has no value for 'shape'": rewrite("b.png,disc", "b.png, "),
    "'b.png' is 5x4 but 'a.png' is 6x4": lambda root: Image.new("RGB", (5, 4)).save(root / "b.png"),
    "row 4, 'd.png', is not a picture": lambda root: (root / "d.png").write_bytes(b"not a picture"),
    "row 1, 'a.png', is not a picture": lambda root: (root / "a.png").write_bytes(
        (root / "a.png").read_bytes()[:50]
    ),
    "needs a column 'file'; it has name, shape": rewrite("file", "name"),
    "needs a column 'file'; it has none": lambda root: (root / "factors.csv").write_text(""),
    "has no rows": lambda root: (root / "factors.csv").write_text("file,shape\n"),
    "row 2 has 'much' in column 'color.r'": rewrite("0.7", "much"),
    "row 2 has 'nan' in column 'color.r'": rewrite("0.7", "nan"),
    "row 4 has 4 cells where the header has 5": rewrite("0.1,1.0", "0.1"),
    "row 3 says otherwise of a.png than row 1": rewrite("c.png,cone", "a.png,cone"),
    "two columns have the same name": rewrite("color.r", "color"),
    "column 'hue.r' describes no factor; they are shape, color": rewrite("color.r", "hue.r"),
    "no factor column beside 'file'": lambda root: (root / "factors.csv").write_text(
        "file\na.png\n"
    ),
    "not a CSV table in UTF-8": lambda root: (root / "factors.csv").write_bytes(
        b"file,shape\na.png,\xff\xfe\n"
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_is_wrong_is_said_in_one_line(root, message):
    WRONG[message](root)
    with pytest.raises(UsageError, match=re.escape(message)) as error:
        Folder.open(root)
    assert "\n" not in str(error.value)
    assert str(root) in str(error.value)


def test_wrong_arguments_are_named(root):
    with pytest.raises(UsageError, match="no such folder"):
        Folder.open(root / "elsewhere")
    with pytest.raises(UsageError, match="no factor column 'hue'; it has shape, color"):
        Folder.open(root, factors=("hue",))


def test_the_documented_example_runs(tmp_path, monkeypatch):
    """The Python blocks of docs/own-data.md, one after the other, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert len(blocks) >= 2
    for block in blocks:
        exec(block, names)
    assert isinstance(names["world"], Folder)
    assert names["world"].image_shape == (3, 32, 32)


def table_of(root: Path, header: str, rows: list[str]) -> None:
    (root / "factors.csv").write_text("\n".join([header, *rows]) + "\n")


def test_a_folder_is_checked_in_linear_time(root):
    """24 binary factors are counted, never enumerated; 200,000 rows take a second or two."""
    names = ",".join(f"f{k}" for k in range(24))
    rows = [
        f"{name}.png" + value * 24 for name, value in zip("abc", (",0", ",1", ",0"), strict=True)
    ]
    table_of(root, f"file,{names}", rows * 10_000)
    lines = report(root)
    assert "pictures of 2 of 16777216 compositions" in lines[0]
    assert "seen: 2 compositions; new: 16,777,214, too many to list" in lines
    began = time.process_time()
    table_of(root, "file,id,color", ["a.png,same,red"] * 200_000)
    assert "pictures of 1 of 1 compositions" in report(root)[0]
    assert time.process_time() - began < 5


def test_a_column_of_names_is_doubted_and_not_listed(root):
    for i in range(30):
        Image.new("RGB", (4, 4)).save(root / f"{i}.png")
    table_of(root, "file,name,color", [f"{i}.png,number{i},c{i % 2}" for i in range(30)])
    lines = report(root)
    assert "name number0/number1/" in lines[0]
    assert "number19/... (30 values)" in lines[0]
    assert "number20" not in lines[0]
    (doubt,) = (line for line in lines if line.startswith("doubtful"))
    assert doubt.startswith("doubtful: name has 30 values in 30 rows"), "and not of the colour"


def test_a_check_opens_some_pictures_and_looks_for_all_files(root):
    lines = report(root, pictures=2)
    assert lines[-1] == "opened: 2 of 4 pictures, evenly spaced; --pictures 0 opens all"
    assert report(root, pictures=0) == report(root, pictures=4) == lines[:-1]
    (root / "b.png").write_bytes(b"not a picture")
    assert report(root, pictures=2) == lines, "the first and the last are opened"
    with pytest.raises(UsageError, match=r"row 2, 'b.png', is not a picture"):
        report(root, pictures=0)
    (root / "b.png").unlink()
    with pytest.raises(UsageError, match=r"row 2 names 'b.png', and there is no such file"):
        report(root, pictures=2)


def pipe(root: Path) -> None:
    (root / "b.png").unlink()
    os.mkfifo(root / "b.png")


def link(to: str):
    def make(root: Path) -> None:
        Image.new("RGB", (6, 4)).save(root.parent / "outside.png")
        (root / "b.png").unlink()
        (root / "b.png").symlink_to(to)

    return make


def bomb(root: Path) -> None:
    Image.new("1", (13000, 13000)).save(root / "b.png")


def larger_bomb(root: Path) -> None:
    """A header alone, of so many pixels that the decoder itself refuses."""
    parts = [b"\x89PNG\r\n\x1a\n"]
    size = struct.pack(">IIBBBBB", 50_000, 50_000, 1, 0, 0, 0, 0)
    for name, held in ((b"IHDR", size), (b"IDAT", b"")):
        parts += [struct.pack(">I", len(held)), name, held]
        parts += [struct.pack(">I", zlib.crc32(name + held))]
    (root / "b.png").write_bytes(b"".join(parts))


HOSTILE = {
    "row 2, 'b.png', is not a regular file": pipe,
    "row 2, 'b.png', is a link out of the folder": link("../outside.png"),
    "row 2, 'b.png', is a link out of the folder ": link("/dev/zero"),
    "row 2 names '../outside.png', which is not inside": rewrite("b.png", "../outside.png"),
    "row 2 names '/dev/zero', which is not inside the folder": rewrite("b.png", "/dev/zero"),
    "169,000,000 pixels, more than the 50,000,000 that are allowed": bomb,
    "pixels, more than the 50,000,000 that are allowed": larger_bomb,
    "row 2 has '1e39' in column 'color.r'": rewrite("0.7", "1e39"),
    "row 2 has '-inf' in column 'color.r'": rewrite("0.7", "-inf"),
    "row 2 names 'b.png', and there is no such file": link("gone.png"),
}


@pytest.mark.parametrize("message", HOSTILE)
@pytest.mark.parametrize("read", [Folder.open, report], ids=["open", "check"])
def test_a_hostile_folder_is_refused_in_one_line(root, message, read):
    HOSTILE[message](root)
    with pytest.raises(UsageError, match=re.escape(message.strip())) as error:
        read(root)
    assert "\n" not in str(error.value)


def test_a_table_that_is_a_pipe_or_has_too_many_rows_is_refused(root, monkeypatch):
    monkeypatch.setenv("RECOMBINE_MAX_ROWS", "3")
    with pytest.raises(UsageError, match="has 4 rows, more than the 3 that are allowed"):
        Folder.open(root)
    monkeypatch.setenv("RECOMBINE_MAX_ROWS", "many")
    with pytest.raises(UsageError, match="RECOMBINE_MAX_ROWS=many: a limit is a whole number"):
        Folder.open(root)
    (root / "factors.csv").unlink()
    os.mkfifo(root / "factors.csv")
    with pytest.raises(UsageError, match="no table"):
        Folder.open(root)


@pytest.mark.parametrize(("name", "value"), [("PIXELS", "23"), ("BYTES", "10")])
def test_limits_are_settings(root, monkeypatch, name, value):
    """Pictures of 6 x 4 pixels."""
    monkeypatch.setenv(f"RECOMBINE_MAX_{name}", value)
    with pytest.raises(UsageError, match="allowed"):
        Folder.open(root)
    monkeypatch.setenv(f"RECOMBINE_MAX_{name}", "1000")
    assert Folder.open(root).image_shape == (3, 4, 6)


def test_links_inside_the_folder_and_folders_below_are_followed(root):
    (root / "below").mkdir()
    (root / "b.png").rename(root / "below" / "b.png")
    (root / "c.png").unlink()
    (root / "c.png").symlink_to("a.png")
    (root / "factors.csv").write_text(TABLE.replace("b.png", "below/b.png"))
    images = Folder.open(root).render(torch.tensor([[1, 0]]), seeded(0)).images
    assert (images[0, 0, 0, 0] * 255).round() == 10


def test_the_digest_covers_every_picture(root):
    """A fault that digests only the first picture, or only each file's name, is found here."""
    digests = {Folder.open(root).content}
    for i, name in enumerate(GREYS):
        Image.new("RGB", (6, 4), (100 + i, 0, 255)).save(root / name)
        digests.add(Folder.open(root).content)
    assert len(digests) == 1 + len(GREYS)


def test_a_file_that_several_rows_name_is_held_once(root):
    rows = TABLE.splitlines()
    table_of(root, rows[0], rows[1:] + rows[1:2] * 5)
    loaded = Folder.open(root).loaded
    assert (len(loaded.pictures), len(loaded.factors)) == (4, 9)
    assert (loaded.images(torch.arange(9))[:, 0, 0, 0] * 255).round().tolist() == [
        10.0, 20.0, *[10.0] * 5, 40.0, 30.0,
    ]  # fmt: skip


def test_a_space_too_large_to_enumerate_is_refused_with_its_size(root, monkeypatch):
    monkeypatch.setenv("RECOMBINE_MAX_COMPOSITIONS", "3")
    with pytest.raises(UsageError, match="2 factors has 4 compositions, more than the 3"):
        Folder.open(root).space.compositions  # noqa: B018
    columns = [f"f{k}" for k in range(70)]
    table_of(root, f"file,{','.join(columns)}", ["a.png" + ",0" * 70, "b.png" + ",1" * 70])
    with pytest.raises(UsageError, match=r"70 factors make 1.2e\+21 compositions; choose fewer"):
        Folder.open(root)


@pytest.mark.parametrize("kind", ["List", "Struct", "Binary"])
def test_parquet_columns_that_are_no_cells_are_refused(root, kind):
    data = {"List": [[1]], "Struct": [{"a": 1}], "Binary": [b"x"]}[kind]
    pl.DataFrame({"file": ["a.png"], "shape": data}).write_parquet(root / "factors.parquet")
    with pytest.raises(UsageError, match="column 'shape' holds neither text nor numbers"):
        Folder.open(root, table="factors.parquet")


def test_parquet_times_and_categories_are_words(root):
    when = pl.Series("day", ["2026-11-17"]).str.to_datetime(time_zone="UTC")
    some = pl.DataFrame([pl.Series("file", ["a.png"]), when, pl.Series("k", ["x"], pl.Categorical)])
    some.write_parquet(root / "factors.parquet")
    space = Folder.open(root, table="factors.parquet").space
    assert space.factors[0].values[0].startswith("2026-11-17")
    assert space.factors[1].values == ("x",)


@given(st.lists(st.integers(0, 2), min_size=1, max_size=40), st.integers(0, 6))
@settings(max_examples=60, deadline=None)
def test_some_rows_of_each_combination_are_spread_over_all_of_them(shapes, most):
    space = FactorSpace((Factor("shape", ("a", "b", "c")),))
    rows = np.arange(len(shapes))
    table = FactorTable(
        space,
        [f"{i}.png" for i in rows],
        rows,
        rows,
        np.array(shapes)[:, None],
        np.zeros((len(rows), 0)),
    )
    few = some_of(table, most)
    kept = [int(name.removesuffix(".png")) for name in few.files]
    assert kept == sorted(kept)
    assert few.factors[:, 0].tolist() == [shapes[i] for i in kept]
    for shape in set(shapes):
        every, mine = ([i for i in some if shapes[i] == shape] for some in (rows, kept))
        assert len(mine) == (min(len(every), most) if most else len(every))
        assert mine[0] == every[0]
        gaps = np.diff([*(every.index(i) for i in mine), len(every)])
        assert gaps.max() - gaps.min() <= 1, "evenly spaced"


def says(message: str, kind: type[Exception] = UsageError):
    """Refused with exactly this line."""
    return pytest.raises(kind, match=f"^{re.escape(message)}$")


def test_a_side_is_positive_and_allowed(root):
    with says("size must be positive, not 0", ValueError):
        check_size(0)
    check_size(1)
    check_size(None)
    with says("size must be positive, not -1"):
        report(root, -1)
    with says("--pictures -1: must not be negative"):
        report(root, pictures=-1)


def test_a_name_that_no_file_can_have_is_one_line(root):
    with pytest.raises(UsageError, match=rf"^'{'a' * 80}' is no path: "):
        Folder.open("a" * 90 + "\0")
    with pytest.raises(UsageError) as refused:
        Folder.open(root, table="b" * 300)
    assert str(refused.value).startswith(repr(str(root / ("b" * 300))[:200]) + ": ")


def test_factors_are_named_once_and_not_as_rows_are(root):
    with says(f"{root}/factors.csv: a factor is named twice (shape, shape)"):
        Folder.open(root, factors=("shape", "shape"))
    rewrite("shape", "seed")(root)
    with says(f"{root}/factors.csv: a factor cannot be called 'seed'; rename that column"):
        Folder.open(root)
    assert Folder.open(root, factors=("color",)).space.count == 2


def test_twenty_names_of_forty_letters_are_listed():
    assert _some([]) == "none"
    assert _some(["x" * 41]) == "x" * 40
    assert _some(map(str, range(20))) == ", ".join(map(str, range(20)))
    assert _some(map(str, range(21))) == ", ".join(map(str, range(20))) + ", ..."


def test_numbers_fit_into_floats_and_are_cut_where_they_are_named():
    largest = float(np.finfo(np.float32).max)
    assert _numbers([str(largest), "-1e38"], "c", 0, "t")[0] == np.float32(largest)
    with says(f"t: row 13 has {'9' * 40!r} in column 'c', which needs a finite number"):
        _numbers(["1", "2", "9" * 50], "c", 10, "t")


def test_the_row_that_disagrees_is_named_beside_the_first():
    file, index = np.array([0, 1, 0, 1]), np.array([[0], [1], [0], [2]])
    assert _agreeing(["a", "b"], file, np.array([[0], [1], [0], [1]]), "t").tolist() == [0, 1]
    with says("t: row 4 says otherwise of b than row 2"):
        _agreeing(["a", "b"], file, index, "t")


def test_centre_and_unit_of_numbers_are_their_mean_and_two_deviations(root):
    shape, color = Folder.open(root).space.factors
    assert (shape.dim, color.dim) == (0, 2)
    red = np.array([0.9, 0.7, 0.8, 0.1])
    assert color.centre[0] == pytest.approx(red.mean(), abs=1e-6)
    assert color.unit[0] == pytest.approx(2 * red.std(), abs=1e-6)
    rewrite(",0.1\n", ",0.1\n")(root)
    table_of(root, "file,shape,shape.x", ["a.png,disc,3", "b.png,disc,3"])
    assert Folder.open(root).space.factors[0].unit == (1.0,), "where all are equal"


def test_tables_are_read_in_parts_and_rows_are_counted_on(root):
    table_of(root, "file,shape", ["a.png,disc"] * 2000 + ["b.png"])
    with says(f"{root}/factors.csv: row 2001 has 1 cells where the header has 2"):
        Folder.open(root)
    table_of(root, "file,shape,shape.x", ["a.png,disc,1"] * 2000 + ["b.png,disc,no"])
    with pytest.raises(UsageError, match=r"row 2001 has 'no' in column 'shape\.x'"):
        Folder.open(root)
    table_of(root, "file,shape", ["a.png,disc"] * 2000 + ["b.png, "])
    with says(f"{root}/factors.csv: row 2001 has no value for 'shape'"):
        Folder.open(root)


def test_a_table_that_cannot_be_opened_or_read_is_one_line(root, monkeypatch):
    pl.DataFrame({"file": ["a.png"], "shape": ["x"]}).write_parquet(root / "factors.parquet")
    monkeypatch.setitem(sys.modules, "polars", None)
    where = f"{root}/factors.parquet"
    with says(f"{where}: reading Parquet needs polars; install it or use CSV"):
        Folder.open(root, table="factors.parquet")

    def fails(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("recombine.worlds.table_files.regular", fails)
    with says(f"{root}/factors.csv: cannot be read (Permission denied)"):
        Folder.open(root)


def test_sixty_four_compositions_are_listed_and_4096_enumerated(root):
    values = [f"v{i}" for i in range(66)]
    for rows, ending in ((64, "v63 (1)"), (65, "v63 (1), ... (65 in all)")):
        for v in values[:rows]:
            Image.new("RGB", (4, 4)).save(root / f"{v}.png")
        table_of(root, "file,k", [f"{v}.png,{v}" for v in values[:rows]])
        (seen,) = (line for line in report(root) if line.startswith("seen"))
        assert seen.endswith(ending)
    for count, shown in ((4096, "level 1: "), (4160, "a study needs fewer: ")):
        wide = count // 64
        rows = [f"v{i}.png,a{i % 64},b{i}" for i in range(wide)]
        for i in range(wide):
            Image.new("RGB", (4, 4)).save(root / f"v{i}.png")
        table_of(root, "file,a,b", rows)
        assert (
            sum(line.startswith(("level 1: ", "a study needs fewer: ")) for line in report(root))
            == 1
        )
        assert any(line.startswith(shown) for line in report(root))


def test_a_value_that_may_be_misspelled_is_doubted(root):
    def doubts(rare: str, common: str, often: int) -> list[str]:
        rows = [f"a.png,{common},x"] * often + [f"b.png,{rare},x"]
        table_of(root, "file,color,k", rows)
        return [line for line in report(root) if line.startswith("doubtful")]

    assert doubts("gren", "green", 20) == [
        "doubtful: color is 'gren' in 1 of the rows and 'green' in 20; is it misspelled?"
    ]
    for rare, common, often in (
        ("gren", "green", 9),
        ("red", "green", 20),
        ("male", "female", 20),
        ("size1", "size2", 20),
    ):
        assert not doubts(rare, common, often), rare


def test_rows_that_hardly_repeat_a_value_are_doubted_from_ten_on(root):
    def doubts(rows: int, values: int) -> bool:
        table_of(root, "file,k", [f"a{i}.png,v{i % values}" for i in range(rows)])
        for i in range(rows):
            Image.new("RGB", (4, 4)).save(root / f"a{i}.png")
        return any(line.startswith("doubtful") for line in report(root))

    assert [doubts(9, 9), doubts(10, 5), doubts(10, 6), doubts(11, 6)] == [False, False, True, True]


def test_unequal_pictures_are_named_in_a_check_with_the_size_to_set(root):
    Image.new("RGB", (9, 5)).save(root / "c.png")
    with says(
        f"{root}: 'c.png' is 9x5 but 'a.png' is 6x4 pixels; set size to make them equal (--size 4)"
    ):
        report(root)
    with says(
        f"{root}: 'c.png' is 9x5 but 'a.png' is 6x4 pixels; set size to make them equal "
        "(--set world.size=4)"
    ):
        Folder.open(root)


def test_every_fifth_row_is_held_out_and_one_of_three_or_four(root):
    counts = {"p": 2, "q": 3, "r": 4, "s": 5, "t": 10}
    names = [(k, i) for k, n in counts.items() for i in range(n)]
    for k, i in names:
        Image.new("RGB", (4, 4)).save(root / f"{k}{i}.png")
    table_of(root, "file,k", [f"{k}{i}.png,{k}" for k, i in names])
    whole = Folder.open(root).loaded
    held = part(whole, "held-out").picture.tolist()
    assert [names[i] for i in held] == [("q", 2), ("r", 2), ("s", 4), ("t", 4), ("t", 9)]
    assert sorted(part(whole, "train").picture.tolist() + held) == list(range(24))
    assert part(whole, "all") is whole


def test_pictures_that_fill_an_eighth_of_memory_are_held_and_more_are_mapped(monkeypatch):
    shape = (5, 2, 4, 3)
    monkeypatch.setattr("recombine.worlds.labelled_pictures.memory", lambda: 8 * 120)
    assert not isinstance(room_for(shape, "here"), np.memmap)
    monkeypatch.setattr("recombine.worlds.labelled_pictures.memory", lambda: 8 * 120 - 1)
    mapped = room_for(shape, "here")
    assert isinstance(mapped, np.memmap)
    assert mapped.shape == shape
    usage = SimpleNamespace(free=120)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage)
    assert isinstance(room_for(shape, "here"), np.memmap)
    usage.free = 119
    with pytest.raises(UsageError, match=r"^here: 5 pictures of 4x2 take ") as refused:
        room_for(shape, "here")
    assert "which fit neither into memory nor into" in str(refused.value)


def test_mapped_pictures_are_the_same_and_stay_on_disk(root, monkeypatch):
    held = Folder.open(root).loaded
    monkeypatch.setattr("recombine.worlds.labelled_pictures.memory", lambda: 0)
    folder = Folder.open(root)
    assert folder.loaded.on_disk
    assert not held.on_disk
    assert folder.content == Folder.open(root).content
    assert torch.equal(folder.loaded.images(torch.arange(4)), held.images(torch.arange(4)))
    moved = folder.loaded.to(torch.device("meta"))
    assert (moved.pictures.device.type, moved.factors.device.type) == ("cpu", "meta")
    assert held.to(torch.device("meta")).pictures.device.type == "meta"


def test_a_picture_of_just_so_many_pixels_is_decoded(root, monkeypatch):
    data = (root / "a.png").read_bytes()
    monkeypatch.setenv("RECOMBINE_MAX_PIXELS", "24")
    assert decode(data, "it").shape == (4, 6, 3)
    assert decode(data, "it", 2).shape == (2, 2, 3)
    monkeypatch.setenv("RECOMBINE_MAX_PIXELS", "23")
    with pytest.raises(UsageError, match="24 pixels, more than the 23"):
        decode(data, "it")
