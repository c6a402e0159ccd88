"""The report: what stands on the page is what stands on disk, and a stranger's results are
inert."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import fmean

import polars as pl
import pytest
from PIL import Image
from synthetic_results import (
    BAD,
    LEVELS,
    STEPS,
    accuracy,
    claims,
    hostile,
    make_results,
    real,
    shown_accuracy,
    theory,
    trained,
)

from recombine.analysis import paper_curves
from recombine.analysis.paper_probe import PAPER
from recombine.analysis.table import Table, read_table, write_table
from recombine.config import UsageError
from recombine.report import claims as claims_table
from recombine.report import render, training, write_site, write_study
from recombine.report.bars import axis, bar
from recombine.report.claims import HEADER, LONG, NARROW, claim_files, print_claims, read_claims
from recombine.report.page import contrast
from recombine.report.page import real as real_accuracy
from recombine.report.read import ClaimEntry, Factor, PartEntry, Space, StudyEntry, read_results
from recombine.report.sheets import grid_of, size_of

OUTSIDE = re.compile(
    r"""(src|href|action|poster)\s*=\s*["']?\s*(https?:|//)|url\(\s*["']?(https?:|//)|@import""",
    re.I,
)
LOCAL = re.compile(r"""(?:href|src)="([^"#]+)|url\('([^']+)'""")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    directory = make_results(tmp_path_factory.mktemp("results"))
    write_site(directory)
    return directory


def test_pages_are_small_and_show_files_beside_them_and_nothing_else(site):
    pages = [site / "index.html", *site.glob("*/index.html")]
    assert len(pages) == 3
    for page in pages:
        text = page.read_text()
        assert not OUTSIDE.search(text)
        assert len(text) < 300_000
        shown = {a or b for a, b in LOCAL.findall(text)} - {"data:,"}
        assert shown
        assert all((page.parent / name).exists() for name in shown)


def test_a_page_needs_only_its_own_folder(site, tmp_path):
    alone = Path(shutil.copytree(site / "objectives", tmp_path / "alone" / "objectives"))
    there = (site / "objectives" / "index.html").read_text()
    assert write_study(alone).read_text() == re.sub(r'<a href="[^"]*" rel="next".*?</a>', "", there)


def test_without_scripts_the_last_step_is_there(site):
    text = (site / "objectives" / "index.html").read_text()
    for code in LEVELS:
        assert shown_accuracy(text, code) == render.percent(accuracy("dit", 0, code, STEPS[-1]))
    assert text.count('class="cells"') == len(LEVELS)
    assert "circle blue small" in text
    assert f'<td class="numeric muted">{render.percent(real("111"))}</td>' in text


def test_index_counts_verdicts_and_lists_all_claims(site):
    text = (site / "index.html").read_text()
    assert len(re.findall(r'<tr id="claim-', text)) == 2 * len(claims("x"))
    assert re.search(r"2 partly supported", text)
    assert "3.1e-12" in (site / "swing-by" / "index.html").read_text()
    assert "[0.93, 0.98]" in text
    assert re.findall(r'class="hero-name">(\w+)', text) == ["DiT", "MaskGIT"]


def test_a_claim_shows_parts_deviations_and_sensitivity_folded(site):
    text = (site / "objectives" / "index.html").read_text()
    assert "at least 0.75" in text
    assert "<li>another probe</li>" in text
    cells = re.findall(r'<i class="([\w-]+)" title="up to step ([\d,]+): ', text)
    assert cells == [("contradicted", "100"), ("supported", "20,000")]
    assert re.findall(r'CNN probe: <i class="tone ([\w-]+)"></i>supported', text) == ["supported"]
    assert text.count('<details class="fold">') == 4
    assert '<details class="fold">' not in (site / "index.html").read_text()


def test_curves_are_means_over_compositions_and_seeds(site):
    data = training.training(read_results(site / "objectives"))
    order = ["000", "001", "010", "100", "011", "101", "110", "111"]
    assert [c["code"] for c in data["compositions"]] == order
    at = STEPS.index(1500)
    level1 = [code for code in LEVELS if LEVELS[code] == 1]
    expected = [fmean(accuracy("dit", seed, c, 1500) for c in level1) for seed in range(3)]
    each = [run["curves"]["oracle"]["1"][at][0] for run in data["runs"][:3]]
    assert each == pytest.approx(expected, abs=1e-4)
    mean = data["variants"][0]["curves"]["oracle"]["1"][at][0]
    assert mean == pytest.approx(fmean(expected), abs=1e-4)
    assert data["variants"][1]["paper"]["label"] == "MaskGIT"


def rewrite(folder: Path, change) -> None:
    path = folder / "rows.parquet"
    write_table(path, Table(change(read_table(path).frame)))


def test_steps_that_a_seed_lacks_leave_no_mean(tmp_path):
    folder = trained(tmp_path)
    missing = (pl.col("kind") == "accuracy") & (pl.col("seed") == 1) & (pl.col("step") == 400)
    rewrite(folder, lambda rows: rows.filter(~missing))
    variant = training.training(read_results(folder))["variants"][0]
    assert variant["steps"] == [step for step in STEPS if step != 400]


@pytest.mark.parametrize(
    ("code", "order"),
    [("011", (0, 1, 1)), ("10.0.1", (10, 0, 1)), ("9", (9,)), ("x1", (10**9, ord("x"), ord("1")))],
)
def test_codes_are_read_as_numbers(code, order):
    assert training.digits(code) == order


def test_a_single_factor_may_have_more_than_ten_values():
    space = Space([Factor("grey", [f"g{i}" for i in range(12)])])
    levels = {str(i): 0 for i in (11, 2, 10, 1, 0)}
    study = StudyEntry("a", "b", space=space, levels=levels)
    codes = training.compositions_of(study, pl.DataFrame(), Path("rows.parquet"))
    assert [c["code"] for c in codes] == ["0", "1", "2", "10", "11"]
    assert codes[3]["name"] == "g10"


def test_hostile_results_are_text(tmp_path):
    text = write_study(hostile(tmp_path)).read_text()
    assert "<script>document" not in text
    assert "<img src=x" not in text
    assert not OUTSIDE.search(text)
    assert "example.org" not in text
    assert not re.search(r"<(foreignObject|set)\b", text)
    assert not re.search(r"<[^>]*\sonload\s*=", text)
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1]
    assert BAD in json.loads(data)["probes"]


def change(folder: Path, file: str = "study.json", **new) -> None:
    path = folder / file
    value = json.loads(path.read_text())
    whole = value | new if isinstance(value, dict) else [value[0] | new, *value[1:]]
    path.write_text(json.dumps(whole))


def claim(folder: Path, **new) -> None:
    change(folder, "claims.json", **new)


def sheet(folder: Path) -> Path:
    return next(folder.glob("samples/*.webp"))


BREAK = {
    "no study": lambda f: (f / "study.json").unlink(),
    "no rows": lambda f: (f / "rows.parquet").unlink(),
    "no claims": lambda f: (f / "claims.json").unlink(),
    "no figure": lambda f: (f / "figures" / "late.svg").unlink(),
    "no sheet": lambda f: sheet(f).unlink(),
    "half a table": lambda f: (f / "rows.parquet").write_bytes(b"PAR1abc"),
    "not text": lambda f: (f / "claims.json").write_bytes(b"\xff\xfe\x00"),
    "a list": lambda f: (f / "study.json").write_text("[]"),
    "a verdict": lambda f: claim(f, verdict="fine"),
    "another probe's verdict": lambda f: claim(f, sensitivity={"by_probe": {"oracle": "fine"}}),
    "an interval": lambda f: claim(f, interval=[BAD, BAD]),
    "a figure outside": lambda f: change(f, figures=[{"name": "../../secret"}]),
    "a sheet outside": lambda f: change(f, sheets=[{"run": "a", "file": "../x.webp", "step": 1}]),
    "a paper curve": lambda f: change(f, paper_curve="vit"),
    "a space": lambda f: change(f, space={"factors": 3}),
    "a factor": lambda f: change(f, space={"factors": [{"name": "step", "values": []}]}),
    "an accuracy": lambda f: rewrite(f, lambda r: r.with_columns(joint=pl.lit("high"))),
    "a probe": lambda f: rewrite(f, lambda r: r.with_columns(probe=pl.lit(1))),
    "a figure": lambda f: (f / "figures" / "late.svg").write_text("GIF89a"),
    "a sheet": lambda f: sheet(f).write_bytes(b"GIF89a"),
    "a sheet's shape": lambda f: Image.new("RGB", (10, 13)).save(sheet(f)),
}


@pytest.fixture(scope="module")
def untouched(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("untouched")
    trained(directory)
    return directory


@pytest.mark.parametrize("what", BREAK)
def test_broken_results_are_one_clear_line(untouched, tmp_path, what):
    folder = Path(shutil.copytree(untouched, tmp_path / "copy")) / "objectives"
    BREAK[what](folder)
    with pytest.raises(UsageError) as caught:
        write_study(folder)
    assert "\n" not in str(caught.value)
    assert "objectives" in str(caught.value)
    assert not (folder / "index.html").exists()


def test_what_a_page_does_not_know_is_ignored(tmp_path):
    folder = trained(tmp_path)
    change(folder, tomorrow={"a": [1]})
    claim(folder, tomorrow={"a": [1]})
    assert write_study(folder).exists()


def test_a_site_is_written_whole_or_not_at_all(tmp_path):
    make_results(tmp_path)
    (tmp_path / "swing-by" / "claims.json").write_text("[{")
    with pytest.raises(UsageError, match=r"claims\.json: is not valid JSON"):
        write_site(tmp_path)
    assert not list(tmp_path.glob("**/index.html"))
    with pytest.raises(UsageError, match="holds no study"):
        write_site(tmp_path / "swing-by")


def test_small_results_need_no_more_than_they_have(tmp_path):
    """One run, one step, no samples, no factors, no claims: what a smoke run leaves."""
    folder = theory(tmp_path)
    row = {"kind": "accuracy", "run": "aa", "probe": "oracle", "composition": "000", "level": 0}
    write_table(folder / "rows.parquet", Table([row | {"step": 1, "joint": 0.5}]))
    (folder / "claims.json").write_text("[]")
    change(folder, figures=[], about="")
    text = write_study(folder).read_text()
    assert shown_accuracy(text, "000") == render.percent(0.5)
    assert "<canvas" not in text


def test_sheets_without_a_slider_are_a_gallery(tmp_path):
    folder = theory(tmp_path)
    (folder / "samples").mkdir()
    Image.new("RGB", (30, 40)).save(folder / "samples" / "a-s0-10.webp")
    sheets = [{"run": "aa", "file": "a-s0-10.webp", "name": "step", "step": 10}]
    change(folder, sheets=sheets, runs=[{"digest": "aa", "variant": "exp1", "seed": 0}])
    text = write_study(folder).read_text()
    assert 'alt="Samples of exp1, seed 0, step 10"' in text
    assert 'src="samples/a-s0-10.webp" width="30" height="40"' in text


@pytest.mark.parametrize(("rows", "shown"), [(8, 8), (30, 4), (240, 1)])
def test_the_more_compositions_the_fewer_samples_of_each_are_shown(tmp_path, rows, shown):
    (tmp_path / "samples").mkdir()
    Image.new("RGB", (8 * 12, rows * 12)).save(tmp_path / "samples" / "a.webp")
    grid = grid_of(tmp_path, "a.webp", rows)
    assert (grid.columns, grid.shown, grid.cell) == (8, shown, 12)


def test_paper_curves_are_small_and_agree_with_the_paper():
    text = paper_curves.PATH.read_text()
    curves = json.loads(text)
    assert len(text) < 60_000
    assert "arXiv 2510.03075" in curves["source"]
    late = {
        name: fmean(run["levels"]["2"][-len(run["steps"]) // 4 :])
        for name, run in curves["runs"].items()
    }
    expected = {"maskgit": 0.006, "givt": 0.697, "mar_token_final": 0.821, "diffusion_token": 0.848}
    assert {name: late[name] for name in expected} == pytest.approx(expected, abs=0.02)
    for run in curves["runs"].values():
        seen = [run["compositions"][c] for c in ("000", "001", "010", "100")]
        means = [fmean(values) for values in zip(*seen, strict=True)]
        assert run["levels"]["0"] == pytest.approx(means, abs=2e-3)


@pytest.mark.parametrize(
    ("value", "text"),
    [(3.1e-12, "3.1e-12"), (0.71234567, "0.7123"), (True, "yes"), (28200, "28,200"), (None, "–")],
)
def test_numbers_are_written_for_readers(value, text):
    assert render.number(value) == text


@pytest.mark.parametrize(
    ("expected", "text"),
    [((0.5, None), "at least 0.5"), ((None, 1.0), "at most 1"), ((0.0, 0.15), "0 to 0.15")],
)
def test_regions_are_written_for_readers(expected, text):
    assert render.region(expected) == text


def test_a_reference_stands_beside_what_was_measured():
    measured = {"low": 0.13, "low_expected": 0.1315, "paper_l2": 1.0, "l2": 0.96, "flip_law": 1.2}
    beside = [("low", 0.13, 0.1315), ("l2", 0.96, 1.0), ("flip", None, 1.2)]
    assert render.beside(measured) == beside


def test_widgets_bring_no_handlers_and_no_network():
    for path in (render.HERE / "widgets").glob("*.html"):
        text = path.read_text()
        assert not OUTSIDE.search(text), path.name
        handler = re.search(r"<[^>]*\son[a-z]+\s*=", text)
        assert not handler, f"{path.name}: inline handlers are blocked by the page's policy"
    assert render.widget("../templates/base", "n") is None
    assert render.widget("no-such-widget", "n") is None


def test_the_report_needs_neither_torch_nor_studies():
    heavy = ("torch", "matplotlib", "recombine.studies", "recombine.worlds")
    code = f"import sys, recombine.report.claims; print([m for m in sys.modules if m in {heavy}])"
    root = Path(__file__).parent.parent
    command = [sys.executable, "-c", f"import recombine.report; {code}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root)
    assert done.stdout.strip() == "[]", done.stderr


def test_a_probe_is_shown_at_its_worst_where_runs_are_of_several_worlds():
    quality = [
        {"probe": "linear", "composition": "111", "level": 2, "joint": j} for j in (1.0, 0.6)
    ]
    at = {"code": "111", "level": 2}
    assert real_accuracy({"quality": quality}, "linear", at) == 0.6
    assert real_accuracy({"quality": quality}, "cnn", at) is None
    shares = [("open-set", 0.99), ("open-set", 0.97), ("cnn", 0.0)]
    rows = pl.DataFrame(shares, schema=["probe", "share"], orient="row")
    assert training.refused(rows, Path("rows.parquet")) == {"open-set": 0.97}


@pytest.mark.parametrize(
    ("study", "primary"), [("label-dropout", PAPER), ("objectives", "open-set")]
)
def test_a_page_opens_on_the_probe_that_its_claims_use(study, primary):
    shipped = Path(__file__).parents[1] / "results" / study
    data = training.training(read_results(shipped))
    assert data["probes"][0] == primary
    assert len(data["probes"]) > 2


def test_the_site_shows_a_run_that_composes_beside_one_that_does_not():
    def run(name: str, oracle: float, cnn: float, seen: float = 1.0, sheets: bool = True) -> dict:
        both = (("cnn", cnn), ("oracle", oracle))
        scores = {p: {"000": [[1.0]], "111": [[0.0], [y]]} for p, y in both}
        curves = {p: {"0": [[seen]]} for p, _ in both}
        shown = [[0, 0]] if sheets else []
        return {"id": name, "variant": name, "scores": scores, "curves": curves, "sheets": shown}

    codes = [{"code": c, "level": k, "row": k} for c, k in (("111", 2), ("000", 0))]
    runs = [run("kind", 0.1, 1.0), run("right", 0.9, 0.9), run("equal", 0.9, 0.9)]
    runs += [run("unseen", 1.0, 1.0, sheets=False), run("untrained", 0.0, 0.0, seen=0.2)]
    of = {"compositions": codes, "runs": runs}
    assert [r["id"] for r in contrast({"probes": ["cnn", "oracle"], **of})] == ["right", "kind"]
    assert [r["id"] for r in contrast({"probes": ["cnn"], **of})] == ["kind", "right"]
    alone = {"compositions": codes, "runs": runs[:1]}
    assert [r["id"] for r in contrast({"probes": ["cnn"], **alone})] == ["kind"]


def entry(name: str, estimate: float, interval: tuple, expected: tuple, **measured) -> ClaimEntry:
    part = PartEntry(name, "supported", estimate, interval, 5, expected)
    return ClaimEntry("X1", "s", "it holds", "supported", parts=[part], measured=measured)


def test_a_bar_has_estimate_region_and_paper_on_one_axis():
    rate = bar(entry("dit, level 2", 0.5, (0.4, 0.7), (0.75, None), paper_dit=0.85))
    assert (rate.low, rate.high, rate.zero) == (0.0, 1.0, None)
    assert (rate.estimate, rate.interval, rate.region) == (50, (40, 70), (75, 100))
    assert (rate.paper, rate.paper_value) == (85, 0.85)
    gain = bar(entry("a - b, level 2", -0.5, (-0.9, 0.1), (0.2, 1.0), paper_a=0.9, paper_b=0.5))
    assert (gain.low, gain.zero, gain.estimate) == (-1.0, 50, 25)
    assert gain.paper == pytest.approx(70)
    count = bar(entry("K_max of exp1", 6.0, (5.0, 7.0), (4.0, None), paper_exp1=9))
    assert count.high > 9
    assert count.region[1] == 100
    assert 0 < count.interval[0] < count.estimate < count.interval[1] < count.paper < 100


def test_a_bar_shows_no_number_that_the_paper_does_not_give():
    assert bar(entry("dit, seen", 0.5, (0.4, 0.7), (0.75, None), paper_dit=0.85)).paper is None
    assert bar(entry("a - b, level 2", 0.1, (0.0, 1.0), (0.2, 1.0), paper_a=0.9)).paper is None
    assert bar(ClaimEntry("X1", "s", "exact", "supported")) is None


def test_pages_lead_to_their_neighbours_and_claims_to_their_rows(site):
    first, second = (site / name / "index.html" for name in ("objectives", "swing-by"))
    assert 'rel="next" aria-label="Next study: swing-by"' in first.read_text()
    assert 'rel="prev"' not in first.read_text()
    assert 'rel="prev" aria-label="Previous study: objectives"' in second.read_text()
    for folder, name in re.findall(
        r'href="([\w-]+)/index.html#(claim-[^"]+)"', (site / "index.html").read_text()
    ):
        assert f'id="{name}"' in (site / folder / "index.html").read_text()


def test_pages_of_own_data_speak_of_it_and_show_no_claims_of_papers(tmp_path):
    make_results(tmp_path)
    change(tmp_path / "objectives", own="the folder mugs")
    write_site(tmp_path)
    text = (tmp_path / "objectives" / "index.html").read_text()
    assert "pictures of the folder mugs, which vary in shape, color, size" in text
    assert "4 of them were in training, 4 were not" in text
    for foreign in ('id="claim-', "Farid et al. 2025", "all else is"):
        assert foreign not in text
    index = (tmp_path / "index.html").read_text()
    assert "the folder mugs" in index
    assert 'data-study="objectives"' not in index


def test_claims_are_found_in_a_results_folder_or_in_that_of_one_study(site):
    both = [site / name / "claims.json" for name in ("objectives", "swing-by")]
    assert claim_files(site) == both
    assert claim_files(site / "swing-by") == both[1:]
    assert read_claims(both[0]) == claims("objectives")


def test_a_folder_without_claims_or_of_the_old_form_is_one_clear_line(tmp_path):
    with pytest.raises(UsageError, match="holds no claims"):
        claim_files(tmp_path)
    with pytest.raises(UsageError, match="no such folder"):
        claim_files(tmp_path / "nowhere")
    folder = theory(tmp_path)
    (folder / "rows.parquet").rename(folder / "rows.jsonl")
    for found in (lambda: claim_files(tmp_path), lambda: write_site(tmp_path)):
        with pytest.raises(UsageError, match=r"earlier version \(rows.jsonl"):
            found()


@pytest.mark.parametrize("brief", [True, False])
def test_piped_claims_are_a_table_with_the_verdicts_of_the_file(site, capsys, brief):
    """After a run it is brief: the long columns are those of `recombine claims`."""
    print_claims(claim_files(site), brief)
    head, *lines = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert tuple(head) == tuple(name for name in HEADER if not brief or name not in LONG)
    assert {len(line) for line in lines} == {len(head)}
    found = [(line[head.index("id")], line[head.index("verdict")]) for line in lines]
    assert found == [(c["id"], c["verdict"]) for p in claim_files(site) for c in read_claims(p)]


@pytest.mark.parametrize("width", [60, 80, 140])
@pytest.mark.parametrize("brief", [True, False])
def test_on_a_terminal_the_table_fits_and_strangers_steer_nothing(
    tmp_path, capsys, monkeypatch, width, brief
):
    folder = theory(tmp_path)
    evil = "\x1b]0;owned\x07\r\n\u202e[red]x[/red]"
    claim(folder, statement=evil, id="S1\t", note=evil, measured={evil: evil})
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    print_claims([folder / "claims.json"], *[True] * brief)
    text = capsys.readouterr().out
    assert "\u202e" not in text
    assert "owned\x07" not in text
    assert "\\x1b" in text
    plain = re.sub(r"\x1b\[[\d;]*m", "", text)
    assert "\x1b" not in plain
    assert max(map(len, plain.splitlines())) <= width
    assert ("expected" in plain.splitlines()[0]) == (width >= NARROW and not brief)


def test_a_mean_score_needs_all_scores_and_takes_an_interval_that_is_missing_for_the_score_itself():
    assert training.mean_score([[0.2, 0.1, 0.3], [0.4, None, None]]) == [0.3, 0.25, 0.35]
    for lacking in ([], [None], [[0.2, 0.1, 0.3], None], [[0.2, 0.1, 0.3], [None, None, None]]):
        assert training.mean_score(lacking) is None


@pytest.mark.parametrize(("seconds", "text"), [
    (99.94, "99.9 s"), (100, "1.7 min"), (5999, "100.0 min"), (6000, "1.7 h"), ("soon", "soon"),
    (0, "0.0 s"), (None, "None"),
])  # fmt: skip
def test_durations_are_seconds_minutes_or_hours(seconds, text):
    assert render.duration(seconds) == text


@pytest.mark.parametrize(("value", "text"), [
    (9999, "9999"), (10_000, "10,000"), (-10_000, "-10,000"), (0.001, "0.001"), (False, "no"),
    (0.00099, "9.9e-4"), (99_999.0, "1e+05"), (100_000.0, "1e5"), (0.0, "0"), ([1, 0.5], "1, 0.5"),
    (float("inf"), "inf"), ("x", "x"), (12.34567, "12.35"),
])  # fmt: skip
def test_large_and_small_numbers_have_powers(value, text):
    assert render.number(value) == text


@pytest.mark.parametrize(("value", "text"), [
    (0.005, "0.01"), (0.00499, "0.00499"), (99.999, "100.00"), (100.0, "100"), (None, "–"),
    (0.0, "0.00"), (-0.5, "-0.50"),
])  # fmt: skip
def test_short_numbers_have_two_decimals_where_that_says_enough(value, text):
    assert render.short(value) == text


def test_small_things_are_written_for_readers():
    assert [render.letter(p) for p in ("A, Fig 3", "B", "About", "D", "")] == [
        "A", "B", "About", "D", "",
    ]  # fmt: skip
    assert render.region((None, None)) == "anything"
    assert render.percent(0.1234) == "12.3\u202f%"
    assert render.percent(None) == "–"
    assert render.kebab("partly supported") == "partly-supported"
    assert render.script_json({"a": [256.0, 0.5, "1.0"]}) == '{"a":[256,0.5,"1.0"]}'
    assert render.script_json({"a": "</script>&"}) == '{"a":"\\u003c/script\\u003e\\u0026"}'
    assert render.pretty({"ä": 1}) == '{\n  "ä": 1\n}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        render.script_json(float("nan"))
    assert render.widget("../x", "") is None
    assert render.widget("nothing-here", "") is None


def test_prose_is_paragraphs_and_lists():
    assert render.prose("a `b` <c>\n d\n\n- e\n- f") == (
        "<p>a <code>b</code> &lt;c&gt; d</p>\n<ul><li>e</li><li>f</li></ul>"
    )
    assert render.prose(None) == ""


@pytest.mark.parametrize(("values", "ends"), [
    ([0.0, 1.0, None], (0.0, 1.0)), ([-0.1, 0.5], (-1.0, 1.0)), ([-1.0, 1.0], (-1.0, 1.0)),
    ([-2.0, 1.0], (-2.2, 1.0)), ([0.0, 2.0], (0.0, 2.2)), ([-2.0, 4.0], (-2.2, 4.4)),
])  # fmt: skip
def test_an_axis_fits_rates_differences_and_counts(values, ends):
    assert axis(values) == pytest.approx(ends)


def test_zero_is_marked_only_inside_an_axis():
    count = bar(entry("K", 3.0, (-1.0, 4.0), (None, 2.0)))
    assert (count.low, count.high) == pytest.approx((-1.1, 4.4))
    assert count.zero == pytest.approx(20)
    assert count.region[0] == 0
    assert count.region[1] == pytest.approx(100 * 3.1 / 5.5, abs=0.01)


def test_webp_sizes_are_read_from_the_first_bytes(tmp_path):
    for name, how in (("lossy", {}), ("lossless", {"lossless": True})):
        Image.new("RGB", (37, 21), (9, 8, 7)).save(tmp_path / name, "webp", **how)
        assert size_of(tmp_path / name) == (37, 21)
    Image.new("RGBA", (300, 2), (9, 8, 7, 100)).save(tmp_path / "extended", "webp")
    assert size_of(tmp_path / "extended") == (300, 2)
    path = tmp_path / "none"
    path.write_bytes(b"RIFF" + b"x" * 40)
    with pytest.raises(UsageError, match="is not a readable WebP picture"):
        size_of(path)
    with pytest.raises(UsageError, match="there is no such file"):
        size_of(tmp_path / "nowhere")


def test_a_sheet_has_square_cells_up_to_a_fiftieth(tmp_path):
    (tmp_path / "samples").mkdir()

    def grid(width: int, height: int, rows: int):
        Image.new("RGB", (width, height)).save(tmp_path / "samples" / "a.webp")
        return grid_of(tmp_path, "a.webp", rows)

    assert (grid(200, 400, 4).columns, grid(200, 400, 4).cell) == (2, 100)
    assert grid(202, 400, 4).columns == 2
    for width in (203, 197, 40):
        with pytest.raises(UsageError, match=f"{width}x400 pixels are no sheet of 4 rows"):
            grid(width, 400, 4)


def test_levels_must_be_whole_numbers_and_many_compositions_are_shown_from_the_most_novel_on():
    study = StudyEntry("s", "q")
    rows = pl.DataFrame({"composition": ["0", "1"], "level": [0.5, 1.0]})
    with pytest.raises(
        UsageError, match=r"^r: every accuracy row needs its level as a whole number$"
    ):
        training.compositions_of(study, rows, Path("r"))
    for count, first in ((16, 0), (17, 1)):
        codes = [f"{i}.0" for i in range(count)]
        levels = [int(i > 3) for i in range(count)]
        frame = pl.DataFrame({"composition": codes, "level": levels})
        found = training.compositions_of(study, frame, Path("r"))
        assert found[0]["level"] == first
        assert sorted(c["row"] for c in found) == list(range(count))
        assert {c["code"]: c["level"] for c in found} == dict(zip(codes, levels, strict=True))


def test_names_of_compositions_are_those_of_the_space():
    factors = [Factor("a", ["x", "y"]), Factor("b", [1, 2])]
    assert training.name_of("01", factors) == "x 2"
    assert [training.name_of(c, factors) for c in ("02", "011", "?")] == ["02", "011", "?"]
    assert training.name_of("01", []) == "01"


def test_a_folder_that_is_not_there_has_no_page(tmp_path):
    with pytest.raises(UsageError, match="nowhere: there is no such folder"):
        write_study(tmp_path / "nowhere")


def test_estimates_are_written_with_interval_and_number_of_seeds():
    claim = ClaimEntry("X1", "s", "it", "supported", estimate=0.12345, interval=(0.1, 0.98765), n=5)
    assert claims_table.estimate(claim) == "0.123 [0.1, 0.988], n = 5"
    claim.interval = None
    assert claims_table.estimate(claim) == "0.123, n = 5"
    parts = [PartEntry(str(h), "supported", holds=h) for h in (True, False, None)]
    assert (
        claims_table.estimate(ClaimEntry("X1", "s", "it", "smoke", parts=parts))
        == "1 of 2 checks hold"
    )
    many = {f"v{i}": i / 3 for i in range(5)}
    claim = ClaimEntry("X1", "s", "it", "smoke", measured=many)
    assert claims_table.estimate(claim) == "v0 0; v1 0.3333; v2 0.6667; 2 more"
    claim.measured = {"a": 1, "b": None, "c": 2}
    assert claims_table.estimate(claim) == "a 1; b -; c 2"
    assert claims_table.measured(ClaimEntry("X1", "s", "it", "smoke")) == "-"


def test_quality_of_probes_is_rounded_and_needs_no_level():
    frame = pl.DataFrame({"probe": ["cnn"], "joint": [0.123456]})
    assert training.quality(frame, Path("r")) == [
        {"probe": "cnn", "composition": None, "level": None, "joint": 0.1235}
    ]
    assert training.quality(frame.clear(), Path("r")) == []
    assert training.refused(frame.clear(), Path("r")) == {}
