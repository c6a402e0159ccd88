"""The example folder of docs/own-data.md, and what is made of it: a model, its export, a page. The
training itself, to seen accuracy > 0.9, is `make tour-own`: it takes minutes."""

import csv
import sys
from collections import Counter
from pathlib import Path

import pytest
from test_evaluate import command
from test_export import left_behind

from recombine.export.models import export_run
from recombine.overrides import override
from recombine.runs.models import ModelRun
from recombine.studies.composition import settings
from recombine.worlds.folder import Folder

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from example_pictures import COLORS, SHAPES, SIZES, UNSEEN, make  # noqa: E402

PROBE = """
from pathlib import Path
def known(images):
    return [dict(zip(("shape", "color", "size"), ("cup", "red", "small"))) for _ in images]
"""


@pytest.fixture(scope="module")
def cups(tmp_path_factory):
    return make(tmp_path_factory.mktemp("own") / "cups", 60, 16, 3)


def test_the_example_has_uneven_counts_and_lacks_three_combinations(cups):
    with open(cups / "factors.csv") as file:
        rows = list(csv.DictReader(file))
    counts = Counter((r["shape"], r["color"], r["size"]) for r in rows)
    assert len(rows) == 60
    assert len(counts) == len(SHAPES) * len(COLORS) * len(SIZES) - len(UNSEEN) == 15
    assert not counts.keys() & set(UNSEEN)
    assert min(counts.values()) >= 3
    assert max(counts.values()) > min(counts.values())
    assert Folder.open(cups).image_shape == (3, 16, 16)


def test_a_model_of_own_pictures_is_exported_and_evaluated_as_a_pipeline(
    cups, tmp_path, monkeypatch, capsys
):
    pytest.importorskip("diffusers")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    recipe = override(settings("smoke").recipe, f"world={cups}", "net.patch=4")
    work = left_behind(ModelRun(recipe), tmp_path / "out")
    export_run(work.folder.path, tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text()
    assert "the folder cups" in card
    assert str(tmp_path) not in card
    (tmp_path / "mine.py").write_text(PROBE)
    words = (
        "evaluate",
        "model",
        "--data",
        str(cups),
        "--n",
        "1",
        "--template",
        "{size} {color} {shape}",
    )
    status, _, error = command(monkeypatch, capsys, *words)
    assert status == 2
    assert "--trust-code" in error
    assert len(error.splitlines()) == 1
    monkeypatch.setattr("recombine.scoring.score.TRUST", 0.0)  # of random weights nothing is read
    status, said, error = command(
        monkeypatch, capsys, *words, "--trust-code", "--probe", "mine.py:known"
    )
    assert status == 0, error
    assert said.startswith("Seen compositions are NOT drawn correctly")
    assert "level 1" in said
    page = (tmp_path / "out" / "evaluate" / "model" / "index.html").read_text()
    assert all(" ".join(c) in page for c in UNSEEN)
    assert len(list((tmp_path / "out" / "evaluate" / "model" / "pictures").glob("*.png"))) == 18
