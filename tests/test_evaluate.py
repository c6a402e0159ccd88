"""Anybody's pictures, pipeline or function: a model that composes passes, one that does not is
caught, and bad input is one clear line."""

import json
import random
import re
import shutil
from pathlib import Path

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
from recombine.scoring.evaluate import evaluate
from recombine.scoring.probes import PictureProbe, fit, tensor_probe
from recombine.scoring.prompts import check_template, read_prompt, words_in
from recombine.scoring.reference import open_reference
from recombine.scoring.result import _doubts, read_result
from recombine.scoring.samplers import as_sampler, pictures_of
from recombine.scoring.score import level_estimate
from recombine.worlds.datasets.open_dataset import open_dataset
from recombine.worlds.factors import Factor, FactorSpace, Split

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
    assert result.below(0.5) == "draw: level 1 accuracy 0.00 is below 0.5"
    assert not result.below(0.0)
    page = (tmp_path / "index.html").read_text()
    assert "bar green" in page
    assert (tmp_path / "samples.webp").stat().st_size > 500
    rows = pl.read_parquet(tmp_path / "rows.parquet")
    assert {"accuracy", "probe", "confusion"} <= set(rows["kind"])
    assert len(pl.read_parquet(tmp_path / "pictures.parquet")) == 12 * len(KINDS)


def test_what_was_drawn_can_be_scored_again_by_anyone(data, tmp_path):
    first = evaluated(draw, data, tmp_path / "a", n=4)
    again = evaluated(tmp_path / "a" / "pictures", data, tmp_path / "b")
    assert again.facts["pictures"] == first.facts["pictures"]
    assert [r["joint"] for r in again.accuracy()] == [r["joint"] for r in first.accuracy()]
    lines = list(compare([tmp_path / "a", tmp_path / "b"]))
    assert len(lines) == 3
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

    with pytest.raises(UsageError, match=r"broken: failed on .* out of paint"):
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


def test_a_changed_model_is_drawn_anew_and_an_interrupted_one_goes_on(data, tmp_path):
    calls = []

    def named(color):
        def sample(label, count):
            calls.append(label)
            return [picture(label["shape"], color, random.Random(0)) for _ in range(count)]

        return sample

    for color in ("red", "blue"):
        result = evaluated(named(color), data, tmp_path, n=2)
        right = {r["words"] for r in result.accuracy() if r["joint"] == 1}
        assert right == {f"disc {color}", f"bar {color}"}
    (tmp_path / "pictures" / "metadata.csv").unlink()
    calls.clear()
    evaluated(named("red"), data, tmp_path, n=2)
    assert len(calls) == 1, "the first picture shows that it draws; the others are there"


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
