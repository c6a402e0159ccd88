"""The public names: importing is instant, every name is there, and results come as data frames."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from synthetic_results import make_results

import recombine as rc
from recombine import api
from recombine.config import UsageError
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


def test_an_unknown_scale_is_one_line():
    with pytest.raises(UsageError, match=r"^scale 'huge': not one of smoke, laptop, full$"):
        rc.run("composition", scale="huge")


def test_a_run_passes_its_settings_on(monkeypatch):
    given = []
    monkeypatch.setattr(api, "run_command", lambda *how: given.append(how) or [])
    rc.run("composition", scale="full", changes={"a.b": [1, 2], "c": "x"}, engine="e", fresh=True)
    rc.run(
        "composition", "two-models", seeds=3, first_seed=4, workers=2, out="there", finished=True
    )
    command, engine, fresh, _ = given[0]
    assert (command.studies, command.scale, command.seeds) == (("composition",), "full", 5)
    assert (command.changes, engine, fresh) == (("a.b=[1, 2]", "c=x"), "e", True)
    command, engine, fresh, finished = given[1]
    assert (command.scale, command.seeds, command.first_seed) == ("laptop", 3, 4)
    assert (command.workers, command.out, engine) == (2, "there", "local")
    assert (fresh, finished) == (False, True)


def test_without_polars_runs_are_left_for_another_machine(monkeypatch):
    said = []

    def none(name):
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(api, "import_module", none)
    assert api._summariser(SimpleNamespace(log=said.append)) is None
    assert said == ["polars is not installed: runs are made here and assessed where it is"]


def test_what_was_chosen_for_pictures_is_said(monkeypatch, tmp_path):
    study, said = SimpleNamespace(name="mine"), []
    plans = [SimpleNamespace(study=study, fitted=fitted) for fitted in (("a=1", "b=2"), ())]
    monkeypatch.setattr("recombine.pipeline.plan.make_plans", lambda command: plans)
    monkeypatch.setattr("recombine.pipeline.run.run_studies", lambda *how: [])
    monkeypatch.setattr("recombine.runtime.Runtime.log", lambda self, text: said.append(text))
    monkeypatch.setattr("recombine.report.site.write_site", None)
    command = SimpleNamespace(out=str(tmp_path / "new"), device="cpu")
    assert api.run_command(command) == []
    assert said == ["mine: chosen for these pictures: a=1, b=2"]
    assert list((tmp_path / "new").iterdir()) == [], "nothing is left of the trial"
