"""The lab: a study in, the contract's files out; claims on disk read back into a table."""

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from tiny import QUIET

from recombine.config import UsageError
from recombine.plots.style import Figure, canvas
from recombine.runtime import commit
from recombine.store import read_json, read_rows, write_json
from recombine.studies.base import Claim, Judgement, Rows, Study
from recombine.studies.claims import grid, measured, read_all, table
from recombine.studies.lab import Lab, judge_again, run_study
from recombine.train.fit import TrainConfig


def draw(rows: Rows, folder: Path) -> list[Figure]:
    with canvas(folder, figure := Figure("dots", "Dots", "Two dots.")) as axes:
        axes.plot(rows.column("x"), "o")
    return [figure]


def largest(rows: Rows) -> Judgement:
    return Judgement(max(rows.column("x")) > 1, {"largest": max(rows.column("x"))})


STUDY = Study(
    name="dots",
    question="Is a dot above one?",
    paper="none",
    about="",
    cost={},
    settings=lambda scale: TrainConfig(),
    compute=lambda settings, lab: [{"x": 0.5}, {"x": settings.lr, "seed": lab.seeds}],
    claims=(Claim("T1", "none", "One is.", "x > 1", largest), Claim("T2", "none", "?", "y", lambda r: r.one(y=1))),
    draw=draw,
    describe=lambda settings: {"levels": {"0": 0}},
)


def ran(root: Path, scale: str = "laptop", lr: float = 2.0) -> Path:
    return run_study(STUDY, TrainConfig(lr=lr), Lab(QUIET, root, scale, 2))


def test_a_name_with_dollar_signs_is_drawn_as_it_is(tmp_path):
    with canvas(tmp_path, Figure("odd", "Odd", "")) as axes:
        axes.set_title("size $x^$")
    assert "size $x^$" in (tmp_path / "odd.svg").read_text()
    assert (tmp_path / "odd.png").exists()


def test_a_study_leaves_rows_claims_figures_and_facts(tmp_path):
    folder = ran(tmp_path)
    assert folder == tmp_path / "dots"
    assert read_rows(folder / "rows.jsonl") == [{"x": 0.5, "scale": "laptop"}, {"x": 2.0, "seed": 2, "scale": "laptop"}]
    assert {p.name for p in (folder / "figures").iterdir()} == {"dots.svg", "dots.png"}
    facts = read_json(folder / "study.json")
    assert facts["settings"]["lr"] == 2.0
    assert facts["levels"] == {"0": 0}
    assert facts["seeds"] == [0, 1]


def test_who_replaces_the_report_of_other_settings_is_told(tmp_path):
    said = []
    lab = Lab(QUIET, tmp_path, "laptop", 2)
    lab.note = said.append
    for lr in (2.0, 2.0, 3.0):
        run_study(STUDY, TrainConfig(lr=lr), lab)
        assert ("is replaced; --out keeps both" in " ".join(said)) == (lr == 3.0)
    (tmp_path / "dots" / "study.json").write_text("{")
    run_study(STUDY, TrainConfig(), lab)
    assert len(said) == 2, "what cannot be read stands in nobody's way"


def test_verdicts_come_from_the_rows(tmp_path):
    words = lambda **how: [c["verdict"] for c in read_json(ran(tmp_path, **how) / "claims.json")]  # noqa: E731
    assert words() == ["reproduced", "not measured"]
    assert words(lr=1.0) == ["not reproduced", "not measured"]
    assert words(scale="smoke") == ["smoke", "smoke"]


def test_provenance_says_where_a_number_comes_from(tmp_path, monkeypatch):
    monkeypatch.setenv("RECOMBINE_COMMIT", "abc123")
    claim = read_json(ran(tmp_path) / "claims.json")[0]
    said = claim["provenance"]
    assert said["commit"] == commit() == "abc123"
    assert said["device"].endswith("CPU")
    assert said["runs"] == []
    assert {"torch", "seconds", "date"} <= said.keys()


def test_the_same_study_writes_the_same_figures_and_rows_twice(tmp_path):
    one, two = ran(tmp_path / "a"), ran(tmp_path / "b")
    for name in ("rows.jsonl", "figures/dots.svg", "figures/dots.png"):
        assert (one / name).read_bytes() == (two / name).read_bytes()


def test_a_figure_that_is_drawn_no_more_goes(tmp_path):
    (ran(tmp_path) / "figures" / "old.svg").touch()
    assert {p.name for p in (ran(tmp_path) / "figures").iterdir()} == {"dots.svg", "dots.png"}


def test_other_processes_write_nothing(tmp_path):
    other = Lab(type(QUIET)(rank=1, processes=2, quiet=True), tmp_path, "smoke", 1)
    folder = run_study(STUDY, TrainConfig(), other)
    assert list(folder.iterdir()) == []


def test_claims_are_printed_one_a_line_with_their_numbers(tmp_path, capsys):
    path = ran(tmp_path) / "claims.json"
    table([path])
    first, second = capsys.readouterr().out.splitlines()
    assert first.split("\t") == ["T1", "reproduced", "dots", "laptop", "2 seeds", "x > 1", "largest 2"]
    assert second.split("\t")[-2:] == ["-", "0 rows match {'y': 1}, not one"]
    assert measured({"measured": {"a": 0.123456, "b": 3}}) == "a 0.1235; b 3"
    assert measured({"measured": {"a": 0.123456, "b": 3}}, 1) == "a 0.1235; 1 more"


def test_the_grid_of_claims_is_brief_or_whole_and_takes_no_text_for_markup(tmp_path):
    claims = read_json(ran(tmp_path) / "claims.json")
    claims[0] |= {"statement": "[bold]not bold", "note": "mind [this]"}
    console = Console(file=StringIO(), width=160)
    for brief in (True, False):
        console.print(grid(claims, brief))
        said = console.file.getvalue()
        assert "[bold]not bold" in said
        assert "mind [this]" in said
        assert ("x > 1" in said) != brief


@pytest.mark.parametrize("content", ["{}", "nonsense", '"text"'])
def test_a_claims_file_that_is_none_is_refused(tmp_path, content):
    (tmp_path / "claims.json").write_text(content)
    with pytest.raises(UsageError, match=r"claims\.json"):
        read_all([tmp_path / "claims.json"])
    write_json(tmp_path / "claims.json", [])
    assert read_all([tmp_path / "claims.json"]) == json.loads("[]")


def test_rows_are_judged_and_drawn_again_by_todays_rules_and_keep_their_provenance(tmp_path, monkeypatch):
    folder = ran(tmp_path)
    facts, claims = read_json(folder / "study.json"), read_json(folder / "claims.json")
    stricter = replace(STUDY, claims=(replace(STUDY.claims[0], judge=lambda rows: Judgement(False, {})),), question="?")
    monkeypatch.setattr("recombine.studies.lab.find", lambda name: {"dots": stricter}[name])
    (folder / "figures" / "dots.svg").unlink()
    judge_again(folder, "abc")
    assert [c["verdict"] for c in read_json(folder / "claims.json")] == ["not reproduced"]
    judged = claims[0]["provenance"] | {"judged": "abc"}
    assert read_json(folder / "claims.json")[0]["provenance"] == judged
    assert (folder / "figures" / "dots.svg").exists()
    assert read_json(folder / "study.json") == facts | {"question": "?", "provenance": judged}


def test_without_rows_nothing_is_judged_again_and_nothing_is_lost(tmp_path):
    folder = ran(tmp_path)
    claims = (folder / "claims.json").read_bytes()
    (folder / "rows.jsonl").unlink()
    with pytest.raises(UsageError, match="no rows to judge"):
        judge_again(folder, "abc")
    assert (folder / "claims.json").read_bytes() == claims
    write_json(folder / "study.json", {"name": "dots"})
    with pytest.raises(UsageError, match="does not describe a study"):
        judge_again(folder, "abc")
