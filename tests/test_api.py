"""The public names: importing is instant, every name is there, and results come as data frames."""

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from synthetic_results import make_results

import recombine as rc
from recombine.display import html_table
from recombine.studies import find

ROOT = Path(__file__).parents[1]


def test_importing_is_instant_and_brings_neither_torch_nor_polars():
    heavy = ("torch", "polars", "numpy", "matplotlib", "msgspec")
    code = f"import sys, recombine; dir(recombine); print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("name", sorted(rc.HOME))
def test_every_public_name_is_there_and_hidden_by_no_module(name):
    assert getattr(rc, name).__name__ == name
    assert name in dir(rc)
    package = ROOT / "recombine"
    assert not (package / f"{name}.py").exists()
    assert not (package / name).exists()


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'reslts'"):
        rc.reslts  # noqa: B018


def test_results_are_one_frame_with_a_column_study(tmp_path):
    make_results(tmp_path)
    rows = rc.results(tmp_path)
    assert set(rows["study"]) == {"objectives", "swing-by"}
    assert len(rc.results(tmp_path / "swing-by")) == 1
    late = rows.filter(pl.col("kind") == "accuracy", pl.col("step") == 20000)
    assert late["joint"].mean() > 0.5


def test_claims_are_one_frame(tmp_path):
    make_results(tmp_path)
    claims = rc.claims(tmp_path)
    first = claims.row(0, named=True)
    assert (first["id"], first["verdict"], first["n"]) == ("O1", "supported", 3)
    assert (first["estimate"], first["low"], first["high"]) == (0.9612, 0.93, 0.98)
    assert len(claims) == 10


def test_reprs_are_short_and_say_what_differs_from_the_defaults():
    world = rc.Shapes2D(size=20)
    assert repr(world) == "Shapes2D(size=20)"
    assert (
        repr(world.space) == "FactorSpace(shape circle/triangle, color red/blue, size large/small)"
    )
    assert repr(world.usual) == "Split(seen: 000 001 010 100)"
    assert eval(repr(world), {"Shapes2D": rc.Shapes2D}) == world
    study = find("jitter")
    assert max(map(len, map(repr, (study, rc.Recipe(), *study.claims)))) < 400


def test_a_notebook_shows_every_composition_in_the_frame_of_its_level():
    html = rc.Shapes2D(size=20)._repr_html_()
    assert html.count("<img") == 8
    assert [html.count(said) for said in ("<br>seen", "<br>level 1", "<br>level 2")] == [4, 3, 1]
    assert find("jitter")._repr_html_().count("<tr>") == 1 + len(find("jitter").claims)


def test_names_in_html_are_escaped():
    assert "<script>" not in html_table(("a",), [("<script>",)], "<script>")
