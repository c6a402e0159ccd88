"""Anybody's pictures, pipeline or function: a model that composes passes, one that does not is
caught, and bad input is one clear line."""

import dataclasses
import functools
import hashlib
import io
import json
import random
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
import torch
from own_pictures import KINDS, SHAPES, make, picture, write
from PIL import Image
from tiny import QUIET

from recombine.cli import main
from recombine.config import UsageError
from recombine.metrics.intervals import wilson
from recombine.metrics.probes import Oracle
from recombine.scoring.compare import compare
from recombine.scoring.evaluate import _slug, evaluate, find_probes, order_free, validated
from recombine.scoring.hub_probes import hub_probe
from recombine.scoring.page import held_out, share
from recombine.scoring.probes import PictureProbe, answers, fit, function_probe, tensor_probe
from recombine.scoring.prompts import (
    check_template,
    labels_of,
    read_prompt,
    read_prompts,
    words_in,
)
from recombine.scoring.reference import evenly, open_reference
from recombine.scoring.result import Result, _doubts, read_result
from recombine.scoring.samplers import as_sampler, drawn, find_function, pictures_of, sample_into
from recombine.scoring.score import (
    accuracy_table,
    confusion,
    level_estimate,
    read_all,
    stream,
    validate,
)
from recombine.scoring.sheet import Collector
from recombine.scoring.source import check_source, find_source, wanted
from recombine.scoring.splits import find_split
from recombine.worlds.datasets.columns import Labels
from recombine.worlds.datasets.dataset import Dataset
from recombine.worlds.datasets.open_dataset import open_dataset
from recombine.worlds.factors import Factor, FactorSpace, Split
from recombine.worlds.shapes2d import Shapes2D

DOCS = Path(__file__).parents[1] / "docs" / "own-model.md"
UNSEEN = ("bar", "green")
SPACE = FactorSpace(
    (Factor("shape", ("disc", "bar")), Factor("color", ("red", "dark red", "blue")))
)


def colour_probe(images: list) -> list[dict]:
    """Reads own pictures exactly, by counting pixels."""
    found = []
    for image in images:
        pixels = np.asarray(image.resize((20, 20), Image.Resampling.NEAREST)).astype(int)
        ink = (pixels.max(2) - pixels.min(2)) > 70
        color = ("red", "green", "blue")[int(pixels[ink].mean(0).argmax())] if ink.any() else None
        tall = int(ink.any(1).sum())
        found.append(color and {"shape": "disc" if tall > 7 else "bar", "color": color})
    return found


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    return make(tmp_path_factory.mktemp("data") / "real", 90, lacks=(UNSEEN,))


def draw(label: dict, count: int) -> list:
    """Draws green bars red; everything else as it should be."""
    color = "red" if (label["shape"], label["color"]) == UNSEEN else label["color"]
    rng = random.Random(str(label))
    return [picture(label["shape"], color, rng, 30) for _ in range(count)]


def evaluated(source, data, out, **how):
    return evaluate(
        source, data, probe=how.pop("probe", colour_probe), out=out, runtime=QUIET, **how
    )


def test_a_function_is_scored_by_level_with_intervals_and_what_was_drawn_instead(data, tmp_path):
    result = evaluated(draw, data, tmp_path, n=12)
    assert result.level(0) == 1
    assert result.level(1) == 0
    assert result.levels()[1]["high"] < 0.3
    lines = str(result).splitlines()
    assert lines[0].startswith("Seen compositions are drawn correctly: 1.00")
    assert any("bar green" in line and "bar red 1.00" in line for line in lines)
    summary = result.summary()
    assert (summary["name"], summary["probe"], summary["learned"]) == ("draw", result.primary, True)
    assert list(summary["levels"]) == ["seen", "level 1"]
    assert summary["levels"]["level 1"] == {
        "accuracy": 0,
        "low": 0,
        "high": pytest.approx(result.levels()[1]["high"]),
        "pictures": 12,
    }
    assert result.below(0.5) == "draw: level 1 accuracy 0 is below 0.5"
    assert not result.below(0.0)
    page = (tmp_path / "index.html").read_text()
    assert "bar green" in page
    assert (tmp_path / "samples.webp").stat().st_size > 500
    rows = pl.read_parquet(tmp_path / "rows.parquet")
    assert {"accuracy", "probe", "confusion"} <= set(rows["kind"])
    assert len(pl.read_parquet(tmp_path / "pictures.parquet")) == 12 * len(KINDS)


def test_what_was_drawn_can_be_scored_again_by_anyone(data, tmp_path, monkeypatch, capsys):
    first = evaluated(draw, data, tmp_path / "a", n=4)
    again = evaluated(tmp_path / "a" / "pictures", data, tmp_path / "b")
    assert again.facts["pictures"] == first.facts["pictures"]
    assert [r["joint"] for r in again.accuracy()] == [r["joint"] for r in first.accuracy()]
    lines = list(compare([tmp_path / "a", tmp_path / "b"]))
    assert len(lines) == 3
    status, said, _ = command(
        monkeypatch, capsys, "compare", str(tmp_path / "a"), str(tmp_path / "b"), "--json"
    )
    assert status == 0
    assert json.loads(said) == [first.summary(), again.summary()]
    assert first.facts["pictures"]["digest"] in lines[1]
    assert read_result(tmp_path / "a").levels() == first.levels()


def test_uneven_counts_missing_compositions_and_prompts_are_welcome(data, tmp_path):
    root, rng, rows = tmp_path / "made", random.Random(1), []
    root.mkdir()
    for kind, count in zip(KINDS[1:], (3, 1, 7, 2, 5), strict=True):
        for i in range(count):
            name = f"{'-'.join(kind)}{i}.png"
            picture(*kind, rng, 40).save(root / name)
            rows.append({"file_name": name, "prompt": f"A {kind[1].upper()} {kind[0]} on a wall"})
    write(root / "metadata.csv", rows)
    result = evaluated(root, data, tmp_path / "out", template="a {color} {shape}")
    counts = {r["words"]: r["n"] for r in result.accuracy()}
    assert counts == dict(zip(map(" ".join, KINDS), (0, 3, 1, 7, 2, 5), strict=True))
    assert result.levels()[0]["compositions"] == 4
    assert "4 of 5 compositions" in str(result)
    assert result.level(0) == 1


@pytest.mark.slow
def test_a_probe_is_trained_on_real_pictures_and_its_reading_of_unseen_ones_is_measured(
    data, tmp_path
):
    result = evaluated(draw, data, tmp_path, probe="", probe_steps=50, n=12)
    assert set(result.facts["probes"]) == {"open-set", "cnn"}
    assert result.level(0, "cnn") > 0.9
    assert result.level(1, "cnn") < 0.2
    out = [r for r in result.rows if r["kind"] == "left out" and r["probe"] == "cnn"]
    assert [r["factor"] for r in out] == ["shape", "color"]
    assert "colour" not in out[1]["change"], "a colour that is changed at random cannot be read"


def test_a_probe_that_cannot_read_real_pictures_is_refused(data, tmp_path):
    def blind(images):
        return [{"shape": "disc", "color": "red"} for _ in images]

    with pytest.raises(UsageError, match=r"probe blind cannot read shape .* accuracy 0\.\d\d"):
        evaluated(draw, data, tmp_path, probe=blind)
    assert not (tmp_path / "pictures").exists()


def test_the_split_is_a_column_a_list_or_what_the_data_lacks(data, tmp_path):
    every = make(tmp_path / "every", 60)
    with pytest.raises(UsageError, match="nothing says which of them") as refused:
        evaluated(draw, every, tmp_path / "o")
    suggested = re.search(r"--split '(.*?)'", str(refused.value))[1]
    tried = evaluated(draw, every, tmp_path / "o", split=suggested, n=1)
    assert [r["words"] for r in tried.accuracy() if r["level"]] == ["bar green"]
    listed = evaluated(draw, every, tmp_path / "o", split="unseen: green bar; blue bar", n=2)
    assert [r["words"] for r in listed.accuracy() if r["level"]] == ["bar blue", "bar green"]
    table = pl.read_csv(every / "factors.csv")
    held = (pl.col("shape") == "bar") & (pl.col("color") == "green")
    table.with_columns(
        part=pl.when(held).then(pl.lit("test")).otherwise(pl.lit("train"))
    ).write_csv(every / "factors.csv")
    column = evaluated(draw, every, tmp_path / "o", split="part", factors=("shape", "color"), n=2)
    assert [r["words"] for r in column.accuracy() if r["level"]] == ["bar green"]
    given = evaluated(
        draw, every, tmp_path / "o", split=Split(((0, 0),)), factors=("shape", "color"), n=2
    )
    assert max(given.levels()) == 2
    with pytest.raises(UsageError, match="'green ring' names no value of shape"):
        evaluated(draw, every, tmp_path / "o", split="seen: green ring")
    with pytest.raises(UsageError, match="has no such column"):
        evaluated(draw, every, tmp_path / "o", split="prt")


@pytest.fixture
def exact(monkeypatch) -> None:
    """In place of trained probes, which other tests are about."""
    monkeypatch.setattr(
        "recombine.scoring.evaluate.world_probes",
        lambda world, *how: [
            PictureProbe("oracle", tensor_probe(Oracle(world), (20, 20), torch.device("cpu")), "0")
        ],
    )


def test_the_documented_programs_run(exact, monkeypatch, tmp_path, capsys):
    """A world takes the place of real pictures; a model that renders blue triangles red fails."""
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL):
        exec(block, names)
    assert names["result"].level(0) > 0.9
    assert names["result"].level(2) == 0
    assert (names["world"].read(names["images"]) == torch.tensor([1, 1, 1])).all()
    assert "additive" in capsys.readouterr().out


@pytest.mark.parametrize("made", [
    torch.rand(2, 3, 8, 8), np.zeros((2, 8, 8, 3), np.uint8), [Image.new("L", (8, 8))] * 2,
    list(torch.rand(2, 3, 8, 8).bfloat16()),
    np.zeros((2, 8, 8)), [torch.rand(3, 8, 8), np.zeros((8, 8))], type("Out", (), {"images": torch.rand(2, 1, 8, 8)})(),
])  # fmt: skip
def test_pictures_of_any_kind_are_understood(made):
    found = pictures_of(made, 2, "f")
    assert [p.shape for p in found] == [(8, 8, 3)] * 2


@pytest.mark.parametrize(("made", "message"), [
    (None, "returned nothing, not 2 pictures"), ([], "returned 0 pictures, not 2"),
    (7, "returned int, not pictures"), (torch.rand(2, 3, 8, 8) * 2 - 1, r"not in \[0, 1\]"),
    (torch.full((2, 3, 8, 8), torch.nan), r"not in \[0, 1\]"), (np.zeros((2, 5, 5, 7)), "is no picture"),
])  # fmt: skip
def test_what_is_no_picture_is_one_line(made, message):
    with pytest.raises(UsageError, match=message):
        pictures_of(made, 2, "f")


def test_a_function_that_fails_or_takes_other_arguments_is_named(data, tmp_path):
    def broken(label, count):
        raise RuntimeError("out of paint")

    with pytest.raises(
        UsageError, match=r"failed on .* out of paint \(test_evaluate.py, line \d+\)"
    ):
        evaluated(broken, data, tmp_path)
    with pytest.raises(UsageError, match="takes 1 argument"):
        as_sampler(lambda one: one, "f")


def test_prompts_are_read_by_whole_words_the_longest_first():
    assert words_in("a Dark-Red disc", ("red", "dark red")) == ["dark red"]
    assert read_prompt("the redness of a blue bar", SPACE) == (1, 2)
    assert read_prompt("two discs in red", SPACE) == "names no value of shape (disc/bar)"
    assert read_prompt("a red or blue bar", SPACE) == "names 2 values of color (red/dark red/blue)"
    assert read_prompt("a dark red disc!", SPACE, "a {color} {shape}") == (0, 1)


@pytest.mark.parametrize(("template", "message"), [
    ("a {colour} {shape}", "{colour} is no factor"), ("a {shape}", "does not name {color}"),
    ("a {shape", "expected '}'"),
])  # fmt: skip
def test_a_template_names_every_factor(template, message):
    with pytest.raises(UsageError, match=message):
        check_template(template, SPACE)


def test_level_intervals_cover_the_mean_and_narrow_with_pictures():
    rows = [{"joint": 0.5, "n": 10}, {"joint": 1.0, "n": 40}, {"n": 0}]
    e = level_estimate(rows)
    assert e["mean"] == 0.75
    assert e["low"] < 0.75 < e["high"]
    assert (e["compositions"], e["of"], e["n"]) == (2, 3, 50)
    many = level_estimate([{"joint": 0.5, "n": 1000}, {"joint": 1.0, "n": 4000}])
    assert many["high"] - many["low"] < (e["high"] - e["low"]) / 5
    assert level_estimate([{"joint": 1.0, "n": 30}])["high"] == 1
    one = level_estimate([{"joint": 0.5, "n": 30}])
    assert (one["low"], one["high"]) == pytest.approx(wilson(15, 30), abs=1e-3)
    few = level_estimate([{"joint": 0.9, "n": 10}] * 15)
    assert few["low"] < 0.9 < few["high"]


def test_level_intervals_cover_the_mean_of_the_true_rates():
    """15 compositions of one to three pictures each, the hardest case of scripts/level_coverage.py;
    variances of each alone covered 0.75."""
    rng, counts, held = np.random.default_rng(0), np.array((1, 2, 3) * 5), 0
    for successes in rng.binomial(counts, 0.3, size=(300, 15)):
        rows = [{"joint": h / n, "n": n} for h, n in zip(successes, counts, strict=True)]
        e = level_estimate(rows)
        held += e["low"] <= 0.3 <= e["high"]
    assert 0.88 <= held / 300 <= 0.99


def test_a_model_that_may_have_changed_is_drawn_anew(data, tmp_path):
    """Of a function in memory nothing is kept, not even of an interrupted evaluation: another one may
    have its name."""

    def named(color):
        def sample(label, count):
            return [picture(label["shape"], color, random.Random(0)) for _ in range(count)]

        return sample

    for color in ("red", "blue", "red"):
        result = evaluated(named(color), data, tmp_path, n=2)
        right = {r["words"] for r in result.accuracy() if r["joint"] == 1}
        assert right == {f"disc {color}", f"bar {color}"}
        (tmp_path / "pictures" / "metadata.csv").unlink()


def test_an_interrupted_evaluation_goes_on_while_the_code_is_the_same(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = "import numpy as np\ndef sample(label, count):\n    return np.full((count, 8, 8, 3), {}, np.uint8)\n"

    def values(shade: int) -> list[int]:
        Path("model.py").write_text(code.format(shade))
        evaluated("model.py:sample", data, tmp_path / "of", n=2)
        (tmp_path / "of" / "pictures" / "metadata.csv").unlink()
        some = sorted((tmp_path / "of" / "pictures").glob("*.png"))
        return [int(np.asarray(Image.open(path)).max()) for path in some]

    assert set(values(9)) == {9}
    first = min((tmp_path / "of" / "pictures").glob("*.png"))
    Image.fromarray(np.full((8, 8, 3), 77, np.uint8)).save(first)
    assert values(9)[0] == 77, "what is there is kept"
    assert set(values(88)) == {88}, "another code draws everything anew"


MODULE = """
import random
from own_pictures import picture
def sample(labels, n_per_item, seed):
    rng = random.Random(seed)
    return [picture(x["shape"], x["color"], rng) for x in labels for _ in range(n_per_item)]
def probe(images):
    from test_evaluate import colour_probe
    return colour_probe(images)
def nothing(labels, n_per_item, seed):
    return None
"""


def command(monkeypatch, capsys, *words: str) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.argv", ["recombine", *words])
    try:
        main()
        status = 0
    except SystemExit as stop:
        status = stop.code
    return status, *capsys.readouterr()


def test_the_command_scores_a_function_and_fails_under(data, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "paint.py").write_text(MODULE)
    words = (
        "evaluate",
        "paint.py:sample",
        "--data",
        str(data),
        "--probe",
        "paint.py:probe",
        "--n",
        "3",
    )
    status, said, _ = command(monkeypatch, capsys, *words, "--fail-under", "0.9")
    assert status == 0, said
    assert said.startswith("Seen compositions are drawn correctly")
    (facts,) = tmp_path.glob("out/evaluate/*/evaluation.json")
    assert json.loads(facts.read_text())["pictures"]["n"] == 18
    for path in (facts.parent / "pictures").glob("*.png"):
        Image.new("RGB", (20, 20), (200, 40, 40)).save(path)
    status, said, error = command(
        monkeypatch,
        capsys,
        *words[:1],
        str(facts.parent / "pictures"),
        *words[2:6],
        "--fail-under",
        "0.9",
    )
    assert status == 1
    assert said.startswith("Seen compositions are NOT drawn correctly")
    assert "is below 0.9" in error


BAD = {
    "returned nothing": ("paint.py:nothing", "--data", "DATA", "--probe", "paint.py:probe"),
    "no such folder": (
        "owner/nothing-here",
        "--data",
        "DATA",
        "--template",
        "a {color} {shape}",
        "--probe",
        "paint.py:probe",
    ),
    "needs a template": ("owner/nothing-here", "--data", "DATA"),
    "has no function 'smple'": ("paint.py:smple", "--data", "DATA"),
    "cannot be imported": ("no_such_module:f", "--data", "DATA"),
    "there is no such file or folder": ("paint.py:sample", "--data", "nowhere"),
    "needs real pictures to say": ("paint.py:sample",),
    "no such folder or file; a source is": ("nothing", "--data", "DATA"),
    "--probe cnnn: not one of": ("paint.py:sample", "--data", "DATA", "--probe", "cnnn"),
    "must be between 0 and 1": ("paint.py:sample", "--data", "DATA", "--fail-under", "3"),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_one_line_and_status_two(data, tmp_path, monkeypatch, capsys, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "paint.py").write_text(MODULE)
    monkeypatch.setattr("recombine.scoring.evaluate.trained_probes", lambda *how: [])
    words = [str(data) if w == "DATA" else w for w in BAD[message]]
    status, _, error = command(monkeypatch, capsys, "evaluate", *words)
    assert status == 2
    assert message in error or "is not installed" in error
    assert len(error.strip().splitlines()) == 1


def test_labels_of_unknown_values_and_prompts_without_a_factor_are_named(data, tmp_path):
    root = make(tmp_path / "made", 6)
    table = pl.read_csv(root / "factors.csv")
    table.with_columns(color=pl.lit("mauve")).write_csv(root / "factors.csv")
    with pytest.raises(UsageError, match="row 1 has color 'mauve'; known are red/blue/green"):
        evaluated(root, data, tmp_path / "o")
    table.select("file", prompt=pl.lit("a red thing")).write_csv(root / "factors.csv")
    with pytest.raises(
        UsageError, match=r"prompt 'a red thing' names no value of shape \(disc/bar\)"
    ):
        evaluated(root, data, tmp_path / "o")
    assert set(SHAPES) == {"disc", "bar"}
    assert len(open_dataset(root)) == 6


def class_folders(table: Path, root: Path) -> Path:
    """The pictures of a table as `red/disc/000.png`."""
    for row in pl.read_csv(table / "factors.csv").to_dicts():
        place = root / row["color"] / row["shape"]
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(table / row["file"], place)
    return root


def test_class_folders_are_named_by_the_factors_in_their_order(data, tmp_path):
    real = class_folders(data, tmp_path / "real")
    made = class_folders(make(tmp_path / "table", 30), tmp_path / "made")
    how = {"factors": ("color", "shape"), "split": "unseen: bar green"}
    expected = evaluated(tmp_path / "table", data, tmp_path / "a", **how).levels()
    for given in (real, data):
        result = evaluated(made, given, tmp_path / "b", **how)
        assert result.levels() == expected
        assert "folders give the factors: color, shape" in result.facts["notes"]
    with pytest.raises(UsageError, match="row 1 has shape 'blue'; known are"):
        evaluated(made, data, tmp_path / "c", factors=("shape", "color"))


def test_capitals_and_spaces_in_labels_make_no_difference(tmp_path):
    real, made = make(tmp_path / "real", 60), make(tmp_path / "made", 30)
    table = pl.read_csv(real / "factors.csv")
    expected = evaluated(made, real, tmp_path / "a", split="unseen: bar green")
    shouted = [f" {c.upper()}" if i % 2 else c for i, c in enumerate(table["color"])]
    table.with_columns(color=pl.Series(shouted)).write_csv(real / "factors.csv")
    result = evaluated(made, real, tmp_path / "b", split="unseen: bar green")
    assert len(result.facts["seen"]) == len(expected.facts["seen"]) == 5
    assert result.levels() == expected.levels()
    assert any("capitals and spaces" in note for note in result.facts["notes"])


def test_two_folders_of_one_name_do_not_share_an_evaluation(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for model in "ab":
        make(tmp_path / model / "samples", 12)
    evaluated("a/samples", data, None)
    evaluated(str(tmp_path / "a" / "samples"), data, None)
    with says(
        "out/evaluate/samples: holds the evaluation of "
        f"{tmp_path}/a/samples/factors.csv; give --out for that of b/samples/factors.csv"
    ):
        evaluated("b/samples", data, None)
    assert evaluated("b/samples", data, "b/out").folder == Path("b/out")
    other = make(tmp_path / "other", 60, lacks=(UNSEEN,))
    with says(
        f"out/evaluate/samples: holds the evaluation by {data}; give --out for that by {other}"
    ):
        evaluated("a/samples", other, None)
    with says(
        "out/evaluate/samples: holds the evaluation with another split; give --out for that with "
        "4 seen combinations"
    ):
        evaluated("a/samples", data, None, split="unseen: bar green; disc red")


def test_a_probe_is_kept_for_the_next_model(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    places = []

    def find(probe, reference, steps, template, out, runtime):
        places.append(out)
        return [function_probe(colour_probe, reference.space)]

    monkeypatch.setattr("recombine.scoring.evaluate.find_probes", find)
    evaluated(draw, data, None, n=2)
    evaluated(draw, data, "mine", n=2)
    assert places == [Path("out"), Path("mine")]


def test_a_place_that_cannot_be_written_is_named_before_a_probe_is_trained(data, tmp_path):
    (tmp_path / "file").touch()
    with says(f"--out {tmp_path}/file: is a file, not a folder"):
        evaluated(draw, data, tmp_path / "file", probe="")


def test_nothing_is_written_into_a_folder_of_pictures(data, tmp_path):
    made = make(tmp_path / "made", 12)
    for place in (made, data):
        with says(f"--out {place}: holds the pictures; choose another folder"):
            evaluated(made, data, place)


def test_real_pictures_in_place_of_a_models_are_doubted(data, tmp_path):
    result = evaluated(data, data, tmp_path / "a")
    assert any("the real pictures themselves" in doubt for doubt in result.facts["doubts"])
    assert not evaluated(draw, data, tmp_path / "b", n=2).facts["doubts"][1:]


def test_without_real_pictures_factors_are_those_of_the_source(data, tmp_path):
    source = open_dataset(data)
    reference = open_reference(None, (), "unseen: bar green", source)
    assert [f.name for f in reference.space.factors] == ["shape", "color"]
    assert reference.world is None
    bare = shutil.copytree(data, tmp_path / "bare")
    pl.read_csv(data / "factors.csv").select("file").write_csv(bare / "factors.csv")
    with pytest.raises(UsageError, match="has no column that is a factor; give --data"):
        open_reference("", (), "", open_dataset(bare))
    with pytest.raises(UsageError, match="needs real pictures"):
        open_reference(None, (), "", None)
    with pytest.raises(
        UsageError, match=r"without --data nothing says which .* 'unseen: bar green'"
    ):
        open_reference(None, (), "", source)


def test_a_probe_that_rejects_nothing_is_named(data):
    reference = open_reference(data, (), "", None)
    about = {"kind": "left out", "probe": "open-set", "factor": "shape", "left_out": 1.0}
    for rejects in (True, False):
        doubts = _doubts([about | {"rejects": rejects}], {"primary": "open-set"}, reference)
        assert any("rejects nothing" in line for line in doubts) is not rejects


@pytest.mark.parametrize("side", [(8, 8), (8, 16), (16, 8)])
@pytest.mark.parametrize("shape", [(8, 8), (8, 16), (30, 20)])
def test_pictures_are_brought_to_the_size_of_the_probe_and_left_alone_where_they_have_it(
    shape, side
):
    picture = np.full((*shape, 3), 7, np.uint8)
    assert fit(picture, side).shape == (*side, 3)
    assert (fit(picture, side) == 7).all()
    assert (fit(picture, side) is picture) == (shape == side)


def says(message: str):
    """Refused with exactly this line."""
    return pytest.raises(UsageError, match=f"^{re.escape(message)}$")


def stub_pipeline(monkeypatch, pipe) -> list:
    """In place of a model of transformers; what was requested."""
    transformers = pytest.importorskip("transformers")
    requested = []

    def pipeline(task, model):
        requested.append((task, model))
        return pipe

    monkeypatch.setattr(transformers, "pipeline", pipeline)
    return requested


def blank(count: int) -> list[np.ndarray]:
    return [np.full((6, 6, 3), 40 * i, np.uint8) for i in range(count)]


def test_a_zero_shot_model_chooses_among_the_prompts_of_all_compositions(monkeypatch):
    def pipe(images, **how):
        calls.append(how)
        labels = how["candidate_labels"]
        best = [len(labels) - 1, 2]
        return [
            [{"label": c, "score": 0.9 if i == best[k] else 0.1} for i, c in enumerate(labels)]
            for k in range(len(images))
        ]

    calls: list[dict] = []
    requested = stub_pipeline(monkeypatch, pipe)
    probe = hub_probe("zero-shot:some/clip", SPACE, "")
    assert requested == [("zero-shot-image-classification", "some/clip")]
    assert probe.read(blank(2)).tolist() == [[1, 2], [0, 2]]
    assert probe.name == "zero-shot:some/clip"
    assert probe.digest == "zero-shot:some/clip|a photo of a {shape} {color}"
    assert calls[0]["candidate_labels"][1] == "a photo of a disc dark red"
    assert (calls[0]["hypothesis_template"], calls[0]["batch_size"]) == ("{}", 64)
    named = hub_probe("zero-shot:some/clip", SPACE, "{color} {shape}")
    assert named.digest.endswith("|{color} {shape}")
    with says("--template '{shape}': does not name {color}"):
        hub_probe("zero-shot:some/clip", SPACE, "{shape}")


def test_a_classifier_answers_with_labels_that_name_every_factor(monkeypatch):
    class Pipe:
        def __init__(self, *labels):
            about = SimpleNamespace(id2label=dict(enumerate(labels)))
            self.model = SimpleNamespace(config=about)

        def __call__(self, images, top_k, batch_size):
            assert (top_k, batch_size) == (1, 64)
            return [[{"label": "bar_dark_red"}] for _ in images]

    requested = stub_pipeline(monkeypatch, Pipe("disc_red", "bar_dark_red"))
    probe = hub_probe("classifier:me/mine", SPACE, "")
    assert requested == [("image-classification", "me/mine")]
    assert probe.read(blank(2)).tolist() == [[1, 1], [1, 1]]
    assert (probe.name, probe.digest) == ("classifier:me/mine", "classifier:me/mine")
    stub_pipeline(monkeypatch, Pipe("disc_red", "LABEL_1"))
    with says("--probe classifier:me/mine: its label 'LABEL_1' names no value of shape (disc/bar)"):
        hub_probe("classifier:me/mine", SPACE, "")


def test_a_model_that_cannot_be_loaded_or_a_package_that_is_not_there_is_one_line(monkeypatch):
    transformers = pytest.importorskip("transformers")

    def fails(task, model):
        raise OSError("not\n found " + "x" * 200)

    monkeypatch.setattr(transformers, "pipeline", fails)
    with says(f"--probe a/b: no such model here or on the hub (not found {'x' * 90})"):
        hub_probe("zero-shot:a/b", SPACE, "")
    monkeypatch.setitem(sys.modules, "transformers", None)
    with says("--probe a/b: needs transformers; pip install -e '.[diffusers]' (in the clone)"):
        hub_probe("classifier:a/b", SPACE, "")


def test_a_probe_of_transformers_is_found_by_its_prefix(data, tmp_path, monkeypatch):
    reference = open_reference(data, (), "", None)
    given = []

    def stub(*how):
        given.append(how)
        return reads()

    monkeypatch.setattr("recombine.scoring.hub_probes.hub_probe", stub)
    for text in ("zero-shot:a/b", "classifier:a/b"):
        find_probes(text, reference, 1, "a {shape} {color}", tmp_path, QUIET)
        assert given.pop() == (text, reference.space, "a {shape} {color}")


def test_a_trained_probe_is_chosen_by_name_and_stands_first(data, tmp_path, monkeypatch):
    reference = open_reference(data, (), "", None)
    made = [PictureProbe(name, lambda some: np.zeros((0, 2), np.int64), "0") for name in "abc"]
    monkeypatch.setattr("recombine.scoring.evaluate.trained_probes", lambda *how: made)

    def names(probe):
        return [r.name for r in find_probes(probe, reference, 1, "", tmp_path, QUIET)]

    assert names("") == ["a", "b", "c"]
    assert names("c") == ["c", "a", "b"]
    with says("--probe d: not one of a, b, c, module:function, zero-shot:ID, classifier:ID"):
        names("d")
    bare = dataclasses.replace(reference, world=None)
    with says("--data: real pictures are needed to train a probe; or give --probe"):
        find_probes("", bare, 1, "", tmp_path, QUIET)
    assert validated(made[0], bare, True) == []


@pytest.mark.parametrize(("found", "message"), [
    (None, "gave nothing for 2 pictures"), ([{}], "gave 1 answers for 2 pictures"),
    ([3, 3], "answers with int, not with labels"),
    (["a red ring", "a red bar"], "its answer 'a red ring' names no value of shape (disc/bar)"),
    (["x" * 70] * 2, f"its answer '{'x' * 60}' names no value of shape (disc/bar)"),
    ([{"shape": "bar", "hue": 1}] * 2, "its answer has no color, only ['shape', 'hue']"),
])  # fmt: skip
def test_what_is_no_answer_of_a_probe_is_one_line(found, message):
    with says(f"--probe p: {message}"):
        answers(found, 2, SPACE, "p")


def test_answers_are_labels_texts_columns_or_none():
    assert answers([None, "a Dark red bar"], 2, SPACE, "p").tolist() == [[-1, -1], [1, 1]]
    columns = {"shape": ["Disc ", "ring"], "color": ["blue", "RED"]}
    assert answers(columns, 2, SPACE, "p").tolist() == [[0, 2], [-1, 0]]
    with says("--probe p: its lists are not equally long"):
        answers({"shape": ["disc"], "color": ["blue", "red"]}, 2, SPACE, "p")


def test_a_probe_function_that_fails_is_named_with_its_reason():
    def broken(images):
        raise RuntimeError("no\nlight " + "x" * 300)

    probe = function_probe(broken, SPACE)
    assert probe.name == "broken"
    assert len(probe.digest) == 16
    line = broken.__code__.co_firstlineno + 1
    at = f"(test_evaluate.py, line {line})"
    with says(f"--probe broken: failed: RuntimeError: no light {'x' * 137} {at}"):
        probe.read(blank(1))
    nameless = function_probe(functools.partial(broken, 1), SPACE)
    assert nameless.name == "function"
    assert nameless.digest == hashlib.sha256(b"function").hexdigest()[:16]
    assert not probe.trained
    assert probe.rows == ()


ALL = FactorSpace((Factor("shape", ("disc", "bar")), Factor("color", ("red", "blue"))))
EVERY = tuple(ALL.compositions)


def table_split(cells: list[str], given="part"):
    table = pl.DataFrame({"file": ["a", "b", "c", "d"], "part": cells})
    data = Dataset("here", "table", table, iter)
    return find_split(given, ALL, (data, Labels(ALL, np.array(EVERY))), EVERY)


@pytest.mark.parametrize(("given", "message"), [
    (Split(((0, 5),)), "split: [0, 5] is no composition of factors with (2, 2) values"),
    ("part", "--split part: there is no table with such a column; give --data"),
    ("unseen: disc red; disc blue; bar red; bar blue",
     "--split unseen: disc red; disc blue; bar red; bar blue: leaves no composition that was seen"),
    ("seen: disc red;disc blue; bar red\nbar blue",
     "--split seen: disc red;disc blue; bar red\nbar blue: leaves no composition that was not seen"),
    ("seen: " + "; ".join(["disc red", "disc blue", "bar red", "bar blue"] * 2),
     "--split seen: disc red; disc blue; bar red; bar blue; disc red; disc blue;: leaves no "
     "composition that was not seen"),
    ("seen: ring", "--split seen: 'ring' names no value of shape (disc/bar)"),
    ("", "--split: there are real pictures of all 4 compositions, so nothing says which of them the "
     "model was not trained on; list those, as in --split 'unseen: bar blue', or name a column that "
     "says train or test"),
])  # fmt: skip
def test_a_split_that_cannot_be_is_one_line(given, message):
    with says(message):
        find_split(given, ALL, None, EVERY)


def test_a_list_names_values_in_the_order_of_the_factors_where_factors_share_them():
    digits = ("0", "1", "2")
    space = FactorSpace((Factor("left", digits), Factor("right", digits)))
    split = find_split("unseen: 2 1; 0 0", space, None, ())
    assert set(space.compositions) - set(split.seen) == {(2, 1), (0, 0)}


def test_a_split_can_be_a_mapping_of_texts_tuples_or_labels():
    seen = ((0, 0), (0, 1))
    listed = [{"shape": "disc", "color": "red"}, ("disc", "blue")]
    for value in ("disc red; disc blue", ["red disc", "blue disc"], listed):
        assert find_split({"seen": value}, ALL, None, EVERY).seen == seen
        assert find_split({"unseen": value}, ALL, None, EVERY).seen == ((1, 0), (1, 1))
    assert find_split(Split(seen), ALL, None, EVERY) == Split(seen)
    assert find_split("SEEN :red disc", ALL, None, EVERY).seen == ((0, 0),)
    assert find_split("", ALL, None, [(1, 1), (0, 0)]).seen == ((0, 0), (1, 1))


def test_a_column_says_train_test_or_validation():
    assert table_split(["train", "Test", "val", "seen "]).seen == ((0, 0), (1, 1))
    assert table_split(["0", "yes", "dev", "held out"]).seen == ((0, 1),)
    with says("--split part: 'both' is none of train, seen, test, unseen, validation"):
        table_split(["train", "test", "both", "test"])
    with says("--split part: leaves no composition that was seen"):
        table_split(["test", "val", "out", "unseen"])
    with says("--split part: leaves no composition that was not seen"):
        table_split(["train", "in", "true", "1"])
    with says(
        "--split prt: here has no such column; it has file, part; did you mean part?; "
        "a list of compositions begins with seen: or unseen:"
    ):
        table_split(["train"] * 4, "prt")


def test_a_column_called_split_is_used_where_there_are_pictures_of_all():
    table = pl.DataFrame({"file": list("abcd"), "split": ["train", "test", "train", "test"]})
    data = Dataset("here", "table", table, iter), Labels(ALL, np.array(EVERY))
    assert find_split("", ALL, data, EVERY).seen == ((0, 0), (1, 0))
    assert find_split("", ALL, data, EVERY[:3]).seen == EVERY[:3], "what it lacks comes first"


def test_files_and_modules_that_hold_no_function_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with says("nowhere.py: there is no such file"):
        find_function("nowhere.py:f", "SOURCE")
    (tmp_path / "odd.py").write_text("raise ValueError('a\\n' + 'x' * 200)\n")
    with says(f"SOURCE odd.py:f: cannot be imported (ValueError: a {'x' * 106})"):
        find_function("odd.py:f", "SOURCE")
    (tmp_path / "fine_module.py").write_text("f, g = len, 3\n")
    monkeypatch.setattr("sys.path", [p for p in sys.path if p not in ("", str(tmp_path))])
    assert find_function("fine_module:f", "SOURCE") is len
    assert sys.path[0] == str(tmp_path)
    find_function("fine_module:f", "SOURCE")
    assert sys.path.count(str(tmp_path)) == 1
    with says("SOURCE fine_module:g: fine_module has no function 'g'"):
        find_function("fine_module:g", "SOURCE")


def test_a_sampler_takes_three_arguments_or_two_and_its_own_complaint_stands():
    def three(labels, n_per_item, seed, extra=1):
        return labels, n_per_item, seed

    def two(label, count):
        return np.full((count, 6, 6, 3), len(label), np.uint8)

    def with_default(labels, n_per_item, seed=0):
        return labels, n_per_item, seed

    assert as_sampler(three, "f") is three
    assert as_sampler(with_default, "f") is with_default
    made = as_sampler(two, "f")([{"a": "x"}, {"a": "x", "b": "y"}], 2, 0)
    assert [int(p[0, 0, 0]) for p in made] == [1, 1, 2, 2]
    assert as_sampler(min, "f") is min, "what has no signature is taken as it is"

    def refuses(labels, n_per_item, seed):
        raise UsageError("my own line")

    with says("my own line"):
        drawn(refuses, "f", {}, 1, 0)

    def fails(labels, n_per_item, seed):
        raise KeyError("x" * 300)

    line = fails.__code__.co_firstlineno + 1
    with says(f"f: failed on {{'a': 'b'}}: KeyError: '{'x' * 149} (test_evaluate.py, line {line})"):
        drawn(fails, "f", {"a": "b"}, 1, 0)


def test_one_picture_or_a_stack_of_grey_ones_is_known_by_its_shape():
    grey = np.arange(3, dtype=np.uint8)[:, None, None] * np.ones((3, 8, 8), np.uint8)
    assert [int(p[0, 0, 0]) for p in pictures_of(grey, 3, "f")] == [0, 1, 2]
    assert pictures_of(np.zeros((8, 8, 3), np.uint8), 1, "f")[0].shape == (8, 8, 3)
    assert pictures_of(np.zeros((8, 8), np.uint8), 1, "f")[0].shape == (8, 8, 3)
    assert pictures_of(Image.new("L", (4, 6), 9), 1, "f")[0].shape == (6, 4, 3)
    whole = torch.full((1, 3, 5, 5), 7, dtype=torch.uint8)
    assert pictures_of(whole, 1, "f")[0].max() == 7
    with says("f: returned 1 pictures, not 4"):
        pictures_of(np.zeros((4, 4, 3), np.uint8), 4, "f")


def test_what_is_drawn_goes_to_files_that_name_composition_and_number(tmp_path):
    seeds, said = [], []

    def sample(labels, n_per_item, seed):
        seeds.append((labels[0]["color"], seed))
        return np.full((n_per_item, 4, 4, 3), seed, np.uint8)

    some = ((0, 0), (0, 1))
    sample_into(tmp_path, sample, "me", ALL, some, 2, 5, said.append, "same")
    assert seeds == [("red", 5), ("blue", 6)]
    assert said == ["me: disc red (1 of 2)", "me: disc blue (2 of 2)"]
    assert (tmp_path / "metadata.csv").read_text() == (
        "file,shape,color\n0-0-0000.png,disc,red\n0-0-0001.png,disc,red\n"
        "0-1-0000.png,disc,blue\n0-1-0001.png,disc,blue\n"
    )
    assert np.asarray(Image.open(tmp_path / "0-1-0001.png")).max() == 6
    (tmp_path / "metadata.csv").unlink()
    (tmp_path / "0-1-0000.png").unlink()
    sample_into(tmp_path, sample, "me", ALL, some, 2, 5, said.append, "same")
    assert seeds[2:] == [("blue", 6)], "the other composition is there"
    (tmp_path / "metadata.csv").unlink()
    sample_into(tmp_path, sample, "me", ALL, some, 2, 7, said.append, "same")
    assert seeds[3:] == [("red", 7), ("blue", 8)], "another seed is another evaluation"


def reads(*rows: tuple[int, int]) -> PictureProbe:
    stream = iter(rows)
    return PictureProbe("p", lambda some: np.array([next(stream) for _ in some]), "0")


def test_a_probe_reads_so_many_pictures_at_a_time():
    sizes = []

    def read(some):
        sizes.append(len(some))
        return np.zeros((len(some), 2), np.int64)

    picture = np.zeros((2, 2, 3), np.uint8)
    found, wanted, digests = read_all(PictureProbe("p", read, "0"), [(picture, (0, 1))] * 300)
    assert sizes == [256, 44]
    assert (found.shape, wanted.tolist(), len(digests)) == ((300, 2), [[0, 1]] * 300, 300)
    nothing = read_all(PictureProbe("p", read, "0"), [])
    assert [len(part) for part in nothing] == [0, 0, 0]


def test_accuracy_rows_count_what_was_read_right():
    wanted = np.array([(0, 0)] * 4 + [(1, 1)] * 2)
    read = np.array([(0, 0), (0, 0), (0, 1), (1, 0), (1, 1), (1, 1)])
    rows = accuracy_table("accuracy", "p", read, wanted, ALL, Split(((0, 0),)), EVERY)
    assert [r["words"] for r in rows] == ["disc red", "disc blue", "bar red", "bar blue"]
    assert [r["n"] for r in rows] == [4, 0, 0, 2]
    assert [r["level"] for r in rows] == [0, 1, 1, 2]
    assert (rows[0]["joint"], rows[0]["shape"], rows[0]["color"]) == (0.5, 0.75, 0.75)
    assert (rows[0]["low"], rows[0]["high"]) == wilson(2, 4)
    assert "joint" not in rows[1]
    assert (rows[1]["low"], rows[1]["high"]) == (0.0, 1.0)
    empty = accuracy_table("accuracy", "p", read[:0], wanted[:0], ALL, None, EVERY)
    assert [r["n"] for r in empty] == [0] * 4
    assert "level" not in empty[0]


def test_what_was_drawn_instead_is_listed_the_most_frequent_first():
    wrong = [(0, 1)] * 3 + [(1, 0)] * 2 + [(1, 1)] + [(-1, 0)] * 4
    rows = confusion("p", np.array([*wrong, (0, 0)] * 2), np.zeros((22, 2), np.int64), ALL)
    assert [(r["instead"], r["n"]) for r in rows] == [
        ("no composition", 8), ("disc blue", 6), ("bar red", 4), ("bar blue", 2),
    ]  # fmt: skip
    assert rows[0]["share"] == 8 / 22
    assert (rows[0]["kind"], rows[0]["composition"], rows[0]["words"]) == (
        "confusion", "00", "disc red",
    )  # fmt: skip
    wide = FactorSpace((Factor("color", tuple("abcdefg")),))
    many = confusion("p", np.arange(7)[:, None], np.zeros((7, 1), np.int64), wide)
    assert len(many) == 4


def test_a_primary_probe_needs_nine_tenths_of_real_pictures_of_each_factor():
    picture, split = np.zeros((2, 2, 3), np.uint8), Split(((0, 0),))
    real = [(picture, (0, 0))] * 10

    def check(wrong: int, primary: bool = True):
        probe = reads(*[(0, 1)] * wrong, *[(0, 0)] * (10 - wrong))
        return validate(probe, real, ALL, split, "here", primary)

    assert check(1)[0]["color"] == 0.9
    assert check(1)[0]["kind"] == "probe"
    with says(
        "the probe p cannot read color on real pictures of here: accuracy 0.80 on 10, needed 0.9; "
        "its scores would mean nothing"
    ):
        check(2)
    assert check(2, False)[0]["color"] == 0.8
    with says(
        "here: no real pictures are left to validate the probe on; it needs three of a composition"
    ):
        validate(reads(), [], ALL, split, "here", True)


def test_a_level_without_pictures_is_unknown_and_known_intervals_stay():
    assert level_estimate([{"n": 0}, {"n": 0}]) == {
        "mean": None, "low": 0.0, "high": 1.0, "n": 0, "compositions": 0, "of": 2,
    }  # fmt: skip
    e = level_estimate([{"joint": 0.5, "n": 10}, {"joint": 1.0, "n": 40}])
    assert (e["low"], e["high"]) == pytest.approx((0.572829, 0.870323), abs=1e-6)
    sure = level_estimate([{"joint": 1.0, "n": 10}, {"joint": 1.0, "n": 40}])
    assert (sure["low"], sure["high"]) == pytest.approx(wilson(32, 32))


def test_pictures_and_labels_must_be_equally_many():
    with pytest.raises(ValueError, match="longer"):
        list(stream(iter(blank(1)), np.zeros((2, 2), np.int64)))
    with pytest.raises(ValueError, match="longer"):
        order_free([b"a"], ["x", "y"])


def test_a_set_of_pictures_has_one_digest_in_any_order():
    first = order_free([b"a", b"b"], ["x", "y"])
    assert first == order_free([b"b", b"a"], ["y", "x"])
    assert first != order_free([b"a", b"b"], ["y", "x"])
    assert first == hashlib.sha256(b"axby").hexdigest()[:16]


def plain_result(*rows: dict, name: str = "me", **facts) -> Result:
    about = {
        "name": name, "primary": "p", "probes": {"p": "abc"}, "doubts": [], "notes": [],
        "pictures": {"n": 7, "digest": "d1"}, "factors": {}, "seen": [],
    }  # fmt: skip
    return Result(list(rows), about | facts, pl.DataFrame())


def row_of(level: int, joint: float | None, n: int = 10, words: str = "disc red", **more) -> dict:
    known = {} if joint is None else {"joint": joint}
    about = {"kind": "accuracy", "composition": f"0{level}", "words": words, "probe": "p"}
    return about | known | {"n": n, "level": level, "low": 0.25, "high": 0.75} | more


def test_a_result_says_what_it_lacks():
    result = plain_result(row_of(1, None, 0))
    with says("no probe q; there are p"):
        result.accuracy("q")
    for level in (0, 1):
        with says(f"no pictures of level {level}; there are [1]"):
            result.level(level)
    assert result.verdict() == (
        "No pictures of seen compositions: whether the model has learned them is not known."
    )
    assert result.answer() == (
        "No pictures of unseen compositions: whether the model composes is not known."
    )
    assert result.below(1.0) == "me: no pictures of unseen compositions, so 1 is not reached"
    assert result.below(0.0) == ""


@pytest.mark.parametrize(("share", "learned"), [(0.8, True), (0.7, False)])
def test_seen_compositions_are_learned_from_four_fifths_on(share, learned):
    verdict = plain_result(row_of(0, share)).verdict()
    assert verdict.startswith(f"Seen compositions are {'' if learned else 'NOT '}drawn correctly: ")
    assert f"{share:.2f} (" in verdict
    assert ", 10 pictures)." in verdict


def test_the_worst_level_below_the_limit_is_named():
    result = plain_result(row_of(0, 0.5), row_of(1, 0.2), row_of(2, 0.4))
    assert result.below(0.45) == "me: level 1 accuracy 0.2 is below 0.45"
    assert (
        plain_result(row_of(1, 0.796, 1000)).below(0.8) == "me: level 1 accuracy 0.796 is below 0.8"
    )
    assert result.below(0.2) == ""
    assert "level 1 accuracy" in result.below(0.6)


def test_a_result_is_printed_line_by_line():
    instead = [
        {"kind": "confusion", "composition": "01", "probe": "p", "instead": w, "share": s}
        for w, s in (("bar red", 0.5), ("bar blue", 0.25), ("disc red", 0.125))
    ]
    real = {"kind": "probe", "composition": "00", "probe": "p", "joint": 0.987}
    result = plain_result(
        row_of(0, 1.0), row_of(1, 0.2, words="disc blue"), row_of(1, None, 0, composition="02"),
        *instead, real, doubts=["who knows"], notes=["a column"],
    )  # fmt: skip
    lines = list(result.lines())
    assert lines[1] == "Accuracy on unseen compositions, level 1: 0.20 (0.06 to 0.51, 10 pictures)."
    assert lines[2] == ""
    assert lines[3] == (
        " " * 13 + "accuracy        95 % interval   pictures        real pictures   instead"
    )
    assert lines[4] == "seen         1.00            0.72 to 1.00    10"
    assert lines[5] == "  disc red   1.00            0.25 to 0.75    10              0.99"
    assert lines[6].startswith("level 1      0.20  ")
    assert lines[6].endswith("  10, 1 of 2 compositions")
    assert lines[7] == (
        "  disc blue  0.20            0.25 to 0.75    10              none            "
        "bar red 0.50, bar blue 0.25"
    )
    assert lines[8] == "  disc red   –               0.25 to 0.75    0               none"
    assert lines[9:] == ["doubtful: who knows", "note: a column"]


def test_doubts_are_about_what_no_real_picture_shows(data):
    reference = open_reference(data, (), "", None)
    primary = {"primary": "p"}
    bare = dataclasses.replace(reference, world=None)
    assert _doubts([], primary, bare) == [
        "there are no real pictures, so nobody knows how well the probe reads them"
    ]
    unknown = "there are no real pictures of bar green: it is unknown how well the probe reads them"
    assert _doubts([], primary, reference) == [unknown]
    out = {"kind": "left out", "probe": "p", "factor": "shape"}
    said = "there are no real pictures of bar green, and on combinations left out of its training"
    for left, known in ((0.89, "0.89"), (0.9, "")):
        found = _doubts([out | {"left_out": left}, out | {"left_out": 1.0}], primary, reference)
        assert found == ([f"{said} the probe reads shape with accuracy {known}"] if known else [])
    (found,) = _doubts([out | {"left_out": None}], primary, reference)
    assert found == f"{said} the probe reads shape with accuracy unknown"
    weak = {"kind": "probe", "probe": "p", "joint": 0.5, "words": "disc red"}
    assert _doubts([weak | {"high": 0.9}], primary, reference) == [unknown]
    assert _doubts([weak | {"high": 0.89}], primary, reference) == [
        unknown, "the probe reads 0.50 of real disc red pictures",
    ]  # fmt: skip


def test_a_folder_that_holds_no_evaluation_is_one_line(tmp_path):
    with says(f"{tmp_path}: holds no evaluation; `recombine evaluate` writes one"):
        read_result(tmp_path)
    for odd in ([], {"name": "a", "primary": "p", "probes": {}}):
        (tmp_path / "evaluation.json").write_text(json.dumps(odd))
        with says(f"{tmp_path / 'evaluation.json'}: does not describe an evaluation"):
            read_result(tmp_path)


def test_evaluations_are_compared_where_factors_and_seen_are_the_same(tmp_path, monkeypatch):
    made = {
        "a": plain_result(row_of(0, 1.0), row_of(1, 0.5)),
        "b": plain_result(row_of(0, 0.1), name="other", probes={"p": "xyz"}),
        "c": plain_result(row_of(0, 1.0), seen=["disc red"]),
        "d": plain_result(row_of(0, 1.0), row_of(1, None, 0)),
    }
    monkeypatch.setattr("recombine.scoring.compare.read_result", lambda p: made[p.name])
    with says("compare: name two or more folders that `recombine evaluate` wrote"):
        list(compare([Path("a")]))
    with says("c: has other seen than a; they cannot be compared"):
        list(compare([Path("a"), Path("c")]))
    lines = list(compare([Path("a"), Path("b")]))
    assert (
        lines[0]
        == "model  seen" + " " * 18 + "level 1" + " " * 15 + "probe" + " " * 29 + "pictures"
    )
    assert lines[1] == (
        "me     1.00 (0.72 to 1.00)   0.50 (0.24 to 0.76)   abc" + " " * 31 + "7 (d1)"
    )
    assert lines[2].startswith("other  0.10 (0.02 to 0.40)   –  ")
    assert lines[3:] == [
        "doubtful: other does not draw its seen compositions",
        "doubtful: these were read by different probes; `recombine leaderboard` scores all by each",
    ]
    _, first, second, *rest = compare([Path("a"), Path("d")])
    assert (first.split()[:2], second.split()[:2]) == (["me", "(a)"], ["me", "(d)"])
    assert rest == [
        "doubtful: me (d) has pictures of 0 of 1 level 1 compositions; its mean is over those"
    ]


@pytest.mark.parametrize("how", [{"n": 0}, {"probe_steps": 0}])
def test_numbers_of_pictures_and_steps_must_be_positive(data, tmp_path, how):
    given = {"n": 32, "probe_steps": 200} | how
    with says(f"n={given['n']}, probe_steps={given['probe_steps']}: both must be positive"):
        evaluated(draw, data, tmp_path, **how)


@pytest.mark.parametrize(("name", "folder"), [
    ("runwayml/sd:v1", "runwayml-sd-v1"), ("a_b.c-d", "a_b.c-d"), ("../..", "model"), ("-x-", "x"),
])  # fmt: skip
def test_a_source_is_a_folder_name(name, folder):
    assert _slug(name) == folder


def test_real_pictures_are_taken_evenly_and_at_most_so_many():
    index = np.array([[0]] * 7 + [[1]] * 2)
    assert evenly(index, 3) == [0, 2, 4, 7, 8]
    assert evenly(index, 7) == list(range(9))
    assert evenly(np.array([[1], [0], [1], [0]]), 1) == [0, 1]


def test_data_without_a_factor_is_one_line(data, tmp_path):
    bare = shutil.copytree(data, tmp_path / "bare")
    pl.read_csv(data / "factors.csv").select("file").write_csv(bare / "factors.csv")
    with says(f"{bare}: has no column that is a factor; it has file"):
        open_reference(bare, (), "", None)


def test_real_pictures_of_a_world_are_drawn_by_composition():
    world = Shapes2D(size=16)
    reference = open_reference(world, (), "", None)
    assert (reference.where, reference.split) == ("Shapes2D", world.usual)
    real = list(reference.real(False))
    assert [tuple(c) for _, c in real[:41]] == [world.present[0]] * 40 + [world.present[1]]
    assert len(real) == 40 * len(world.present)
    assert real[0][0].shape == (16, 16, 3)
    assert real[0][0].dtype == np.uint8
    assert real[0][0].max() > 200
    chosen = open_reference(world, (), "unseen: circle red large", None)
    assert len(chosen.split.seen) == world.space.count - 1


def test_validation_takes_pictures_that_a_trained_probe_has_not_met(data):
    reference = open_reference(data, (), "", None)
    held = reference.world.part_of("held-out").loaded
    some = list(reference.real(True))
    assert len(some) == len(held.picture) < 90
    assert [tuple(c) for _, c in some] == [tuple(c) for c in held.factors.tolist()]
    assert some[0][0].shape == (20, 20, 3)
    assert len(list(reference.real(False))) == 90


def test_the_first_pictures_of_each_composition_are_shown_framed_by_what_was_read():
    index = np.array([(0, 0)] * 12 + [(1, 1)])
    sheet = Collector(ALL, index)
    picture = np.full((30, 30, 3), 128, np.uint8)
    assert len(list(sheet.watch((picture, c) for c in index.tolist()))) == 13
    assert sheet.compositions == [(0, 0), (1, 1)]
    assert [row for row, _ in sheet.kept[0, 0]] == list(range(10))
    assert sheet.kept[0, 0][0][1].shape == (64, 64, 3)
    sheet.answers = np.array([(0, 0)] + [(0, 1)] * 12)
    made = np.asarray(Image.open(io.BytesIO(sheet.webp())).convert("RGB")).astype(int)
    assert made.shape == (140, 700, 3)

    def near(y, x, colour):
        return np.abs(made[y, x] - colour).max() < 40

    assert near(30, 1, (18, 130, 80))
    assert near(30, 71, (200, 40, 30))
    assert near(100, 1, (200, 40, 30))
    assert near(30, 32, (128, 128, 128))
    assert near(100, 100, (255, 255, 255)), "one picture of the second composition"


def test_a_share_is_two_digits_and_held_out_accuracy_counts_pictures():
    assert (share(0.456), share(None)) == ("0.46", "–")
    rows = [
        {"kind": "probe", "probe": "p", "n": 1, "shape": 0.0},
        {"kind": "probe", "probe": "p", "n": 3, "shape": 1.0},
        {"kind": "probe", "probe": "q", "n": 9, "shape": 0.0},
        {"kind": "accuracy", "probe": "p", "n": 9, "shape": 0.0},
        {"kind": "probe", "probe": "p", "n": 5},
    ]
    assert held_out(rows, "p", "shape") == 0.75
    assert held_out(rows, "p", "color") is None


def prompted(*prompts: str, **columns) -> Dataset:
    table = pl.DataFrame({"file": ["x"] * len(prompts), "Prompt": list(prompts), **columns})
    return Dataset("here", "table", table, iter)


def test_the_row_of_a_prompt_that_cannot_be_read_is_named_and_the_prompt_cut():
    dataset = prompted("red disc", "blue bar", "red disc", "dark-red BAR")
    assert read_prompts(dataset, "Prompt", SPACE).tolist() == [[0, 0], [1, 2], [0, 0], [1, 1]]
    long = "x" * 90
    line = f"here: row 3: the prompt {'x' * 80!r} names no value of shape (disc/bar)"
    with says(line):
        read_prompts(prompted("red disc", "red disc", long, long), "Prompt", SPACE)
    with says(
        "here: row 2: the prompt 'red or blue bar' names 2 values of color (red/dark red/blue); "
        "--template says where each factor stands"
    ):
        read_prompts(prompted("red disc", "red or blue bar"), "Prompt", SPACE)
    assert labels_of(SPACE, (1, 1)) == {"shape": "bar", "color": "dark red"}
    with says(
        "--template '{shap} {color}': {shap} is no factor; they are shape, color; did you mean shape?"
    ):
        check_template("{shap} {color}", SPACE)


def test_a_template_reads_what_stands_where_a_factor_does():
    place = "a {color} {shape}"
    assert read_prompt("on a red wall, a  BLUE bar", SPACE, place) == (1, 2)
    assert read_prompt("red or blue bar", SPACE, place).startswith("names 2 values of color")
    assert read_prompt("a blue bar on a red wall", SPACE, place) == (1, 2)
    assert read_prompt("A Dark Red Disc", SPACE, place) == (0, 1)


def test_a_word_stands_for_one_factor_where_factors_share_values():
    space = FactorSpace((Factor("car", ("red", "blue")), Factor("road", ("red", "Blue"))))
    assert read_prompt("a red car on a red road", space) == (0, 0)
    assert read_prompt("a blue car", space) == "names 'blue' too seldom for car and road"
    assert read_prompt("a red car", space, "a {car} car on a {road} road").startswith("names 'red'")
    assert read_prompt("a red car on a blue road", space, "a {car} car on a {road} road") == (0, 1)


def test_labels_come_before_prompts():
    dataset = prompted("red disc", shape=["bar"], color=["blue"])
    assert wanted(dataset, SPACE, "").tolist() == [[1, 2]]
    assert wanted(prompted("red disc", shape=["bar"]), SPACE, "").tolist() == [[0, 0]]


def test_sources_are_known_by_what_is_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "made", 3)
    (tmp_path / "pipe").mkdir()
    (tmp_path / "pipe" / "model_index.json").write_text("{}")
    found = {text: find_source(text, "", "cpu", {}) for text in ("made", "pipe", "a/b", "m:f")}
    assert [s.name for s in found.values()] == ["made", "pipe", "a/b", "m:f"]
    assert [s.is_pipeline for s in found.values()] == [False, True, True, False]
    assert [s.dataset is not None for s in found.values()] == [True, False, False, False]
    assert check_source(found["made"], "", ALL, 0) is None
    with says("a/b: a pipeline needs a template such as --template 'a {shape} {color}'"):
        check_source(found["a/b"], "", ALL, 0)
    for text in ("./x", "a/b/c", "x"):
        with pytest.raises(UsageError, match="no such folder or file; a source is"):
            find_source(text, "", "cpu", {})
    monkeypatch.setattr("recombine.scoring.source._pipeline", lambda *given: given)
    assert found["pipe"].draws() == ("pipe", "", "cpu", {})


def test_two_pictures_are_drawn_to_see_that_a_source_draws():
    calls = []

    def sample(labels, n_per_item, seed):
        calls.append((labels, n_per_item, seed))
        return np.zeros((n_per_item, 4, 4, 3), np.uint8)

    check_source(find_source(sample, "", "cpu", {}), "{shape} {color}", ALL, 9)
    assert calls == [([{"shape": "disc", "color": "red"}], 2, 9)]
    with says("--template '{shape}': does not name {color}"):
        check_source(find_source(sample, "", "cpu", {}), "{shape}", ALL, 9)


def test_a_table_of_pictures_says_what_was_prompted_and_what_was_read(data, tmp_path):
    result = evaluated(draw, data, tmp_path, n=1)
    rows = {r["file"]: r for r in result.pictures.to_dicts()}
    assert rows["1-2-0000.png"] == {
        "file": "1-2-0000.png", "composition": "12", "shape": "bar", "color": "green",
        "read shape": "bar", "read color": "red",
    }  # fmt: skip
    assert result.facts["shown"] == ["00", "01", "02", "10", "11", "12"]
    assert result.facts["primary"] == "colour_probe"
    assert [r["probe"] for r in result.rows if r["kind"] == "probe"] == ["colour_probe"] * 5
