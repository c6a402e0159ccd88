"""The report: what stands on the page is what stands on disk, and a stranger's results are inert."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import fmean

import pytest
from markupsafe import Markup
from PIL import Image
from synthetic_results import BAD, LEVELS, STEPS, accuracy, hostile, make_results, real, shown_accuracy, theory, trained

from recombine.config import UsageError
from recombine.report import render, sheets, training, write_site, write_study
from recombine.report.page import Shown
from recombine.report.read import read_claims, read_json, read_results
from recombine.report.svg import inline_svg

OUTSIDE = re.compile(r"""(src|href|action|poster)\s*=\s*["']?\s*(https?:|//)|url\(\s*["']?(https?:|//)|@import""", re.I)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    directory = make_results(tmp_path_factory.mktemp("results"))
    write_site(directory)
    return directory


def test_pages_hold_everything_they_show(site):
    pages = [site / "index.html", *site.glob("*/index.html")]
    assert len(pages) == 3
    for page in pages:
        text = page.read_text()
        assert not OUTSIDE.search(text)
        assert len(text) < 6_000_000
        local = {link for link in re.findall(r'href="([^"#]+)"', text) if not link.startswith("data:")}
        assert all((page.parent / link).exists() for link in local - {"../index.html"} if "metrics" not in link)


def test_without_scripts_the_last_step_is_there(site):
    text = (site / "objectives" / "index.html").read_text()
    for code in LEVELS:
        assert shown_accuracy(text, code) == render.percent(accuracy("dit", 0, code, STEPS[-1]))
    assert text.count('class="cells"') == len(LEVELS)
    assert "circle blue small" in text
    assert f'<td class="numeric muted">{render.percent(real("111"))}</td>' in text


def test_index_counts_verdicts_and_lists_all_claims(site):
    text = (site / "index.html").read_text()
    assert len(re.findall(r'<tr id="claim-', text)) == 8
    assert re.search(r"2 reproduced", text)
    assert 'href="objectives/index.html"' in text
    assert "3.1e-12" in text
    assert "0.93&thinsp;–&thinsp;0.98" in text


def test_curves_are_means_over_compositions_and_seeds(site):
    data = training.training(read_results(site / "objectives"))
    assert [c["code"] for c in data["compositions"]] == ["000", "001", "010", "100", "011", "101", "110", "111"]
    at = STEPS.index(1500)
    levels = {1: [c for c in LEVELS if LEVELS[c] == 1]}
    expected = [fmean(accuracy("dit", seed, c, 1500) for c in levels[1]) for seed in range(3)]
    assert [r["curves"]["oracle"]["1"][at][0] for r in data["runs"][:3]] == pytest.approx(expected, abs=1e-4)
    assert data["variants"][0]["curves"]["oracle"]["1"][at][0] == pytest.approx(fmean(expected), abs=1e-4)
    assert data["variants"][1]["paper"]["label"] == "MaskGIT"


def test_steps_that_a_seed_lacks_leave_no_mean(tmp_path):
    folder = trained(tmp_path)
    lines = (folder / "rows.jsonl").read_text().splitlines()
    kept = [s for s in lines if (r := json.loads(s))["kind"] != "accuracy" or (r["seed"], r["step"]) != (1, 400)]
    (folder / "rows.jsonl").write_text("\n".join(kept))
    variant = training.training(read_results(folder))["variants"][0]
    assert 400 not in variant["steps"]
    assert len(variant["steps"]) == len(STEPS) - 1


@pytest.location.parametrize(
    ("code", "order"), [("011", (0, 1, 1)), ("10.0.1", (10, 0, 1)), ("9", (9,)), ("x1", (10**9, ord("x"), ord("1")))]
)
def test_codes_are_read_as_numbers(code, order):
    assert training.digits(code) == order


def test_a_single_factor_may_have_more_than_ten_values():
    factors = [{"name": "grey", "values": [f"g{i}" for i in range(12)]}]
    study = {"space": {"factors": factors}, "levels": {str(i): 0 for i in (11, 2, 10, 1, 0)}}
    found = training._compositions(study, [], Path("rows.jsonl"))
    assert [c["code"] for c in found] == ["0", "1", "2", "10", "11"]
    assert found[3]["name"] == "g10"


def test_hostile_results_are_text(tmp_path):
    text = write_study(hostile(tmp_path)).read_text()
    assert "<script>document" not in text
    assert "<img src=x" not in text
    assert not OUTSIDE.search(text)
    assert "example.org" not in text
    assert not re.search(r"<(foreignObject|set)\b", text)
    assert not re.search(r"\sonload\s*=\s*\"", text)
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S).group(1)
    assert BAD in json.loads(data)["probes"]


def test_svg_keeps_drawing_and_makes_ids_unique(site):
    path = site / "swing-by" / "figures" / "late.svg"
    one, two = inline_svg(path, "a", "Loss"), inline_svg(path, "b", "Loss")
    assert set(re.findall(r'id="([^"]+)"', one)).isdisjoint(re.findall(r'id="([^"]+)"', two))
    assert 'href="#a-location"' in one
    assert 'clip-path="url(#a-clip)"' in one
    assert "currentColor" in one
    assert one.count("<path") == 4
    assert "<style" not in one
    assert 'aria-label="Loss"' in one


BREAK = {
    "no study": lambda f: (f / "study.json").unlink(),
    "no rows": lambda f: (f / "rows.jsonl").unlink(),
    "no claims": lambda f: (f / "claims.json").unlink(),
    "no figure": lambda f: (f / "figures" / "late.svg").unlink(),
    "half a row": lambda f: (f / "rows.jsonl").write_text('{"kind": "acc'),
    "not text": lambda f: (f / "claims.json").write_bytes(b"\xff\xfe\x00"),
    "a list": lambda f: (f / "study.json").write_text("[]"),
    "a verdict": lambda f: (f / "claims.json").write_text('[{"id": "A", "statement": "b", "verdict": "fine"}]'),
    "a figure outside": lambda f: change(f, figures=[{"name": "../../secret"}]),
    "a run outside": lambda f: change(f, runs=[{"digest": "../.."}]),
    "a paper curve": lambda f: change(f, paper_curve="vit"),
    "a space": lambda f: change(f, space={"factors": 3}),
    "an accuracy": lambda f: (f / "rows.jsonl").write_text(ROW.replace("0.5", '"high"')),
    "a drawing": lambda f: (f / "figures" / "late.svg").write_text("<svg"),
    "entities": lambda f: (f / "figures" / "late.svg").write_text('<!DOCTYPE svg [<!ENTITY a "b">]><svg>&a;</svg>'),
    "a sheet": lambda f: next(f.parent.glob("runs/*/samples/*.png")).write_bytes(b"GIF89a"),
    "a sheet's shape": lambda f: Image.new("RGB", (10, 13)).save(next(f.parent.glob("runs/*/samples/*.png"))),
}
ROW = '{"kind": "accuracy", "run": "aa", "probe": "oracle", "composition": "000", "level": 0, "step": 1, "joint": 0.5}'


def change(folder: Path, **new) -> None:
    study = json.loads((folder / "study.json").read_text())
    (folder / "study.json").write_text(json.dumps(study | new))


@pytest.fixture(scope="module")
def untouched(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("untouched")
    trained(directory)
    return directory


@pytest.location.parametrize("what", BREAK)
def test_broken_results_are_one_clear_line(untouched, tmp_path, what):
    folder = Path(shutil.copytree(untouched, tmp_path / "copy")) / "objectives"
    BREAK[what](folder)
    with pytest.raises(UsageError) as caught:
        write_study(folder)
    assert "\n" not in str(caught.value)
    assert not (folder / "index.html").exists()


def test_a_site_is_written_whole_or_not_at_all(tmp_path):
    make_results(tmp_path)
    (tmp_path / "swing-by" / "claims.json").write_text("{")
    with pytest.raises(UsageError, match=r"claims\.json: is not valid JSON"):
        write_site(tmp_path)
    assert not list(tmp_path.glob("**/index.html"))
    with pytest.raises(UsageError, match="holds no study"):
        write_site(tmp_path / "runs")


def test_small_results_need_no_more_than_they_have(tmp_path):
    """One run, one step, no samples, no factors, no claims: what a smoke run leaves."""
    folder = theory(tmp_path)
    (folder / "rows.jsonl").write_text(ROW)
    (folder / "claims.json").write_text("[]")
    change(folder, figures=[], about="")
    text = write_study(folder).read_text()
    assert shown_accuracy(text, "000") == render.percent(0.5)
    assert "samples" not in re.findall(r"<canvas", text)


def test_sheets_fit_the_page_however_many_there_are(tmp_path):
    picture = Image.effect_noise((8 * 32, 8 * 32), 200).convert("RGB")
    picture.save(tmp_path / "step_1.png")
    few, many = (sheets.encode([tmp_path / "step_1.png"] * count, 8) for count in (1, 45))
    assert few[0].uri.startswith("data:image/png")
    assert (few[0].columns, few[0].cell) == (8, 32)
    assert sum(len(sheet.uri) for sheet in many) <= sheets.BUDGET


def test_a_tall_sheet_shows_one_sample_of_each(tmp_path):
    Image.new("RGB", (4 * 80, 240 * 80)).save(tmp_path / "step_1.png")
    (sheet,) = sheets.encode([tmp_path / "step_1.png"], 240)
    assert sheet.columns == 1
    assert sheet.cell * 240 <= sheets.TALLEST


def test_paper_curves_are_small_and_agree_with_the_paper():
    text = training.PAPER_CURVES.read_text()
    curves = json.loads(text)
    assert len(text) < 60_000
    assert "arXiv 2510.03075" in curves["source"]
    late = {name: fmean(run["levels"]["2"][-len(run["steps"]) // 4 :]) for name, run in curves["runs"].items()}
    expected = {"maskgit": 0.006, "givt": 0.697, "mar_token_final": 0.821, "diffusion_token": 0.848}
    assert {name: late[name] for name in expected} == pytest.approx(expected, abs=0.02)
    for run in curves["runs"].values():
        seen = [run["compositions"][c] for c in ("000", "001", "010", "100")]
        assert run["levels"]["0"] == pytest.approx([fmean(v) for v in zip(*seen, strict=True)], abs=2e-3)


@pytest.location.parametrize(
    ("value", "text"),
    [(3.1e-12, "3.1e-12"), (0.71234567, "0.7123"), (True, "yes"), (28200, "28,200"), ([1.0, 2.0], "1, 2"), (None, "–")],
)
def test_numbers_are_written_for_readers(value, text):
    assert render.number(value) == text


def test_a_reference_stands_beside_what_was_measured():
    measured = {"low": 0.13, "low_expected": 0.1315, "paper_l2": 1.0, "l2": 0.96, "flip_law": 1.2, "seen": 1}
    assert render.beside(measured) == [("low", 0.13, 0.1315), ("l2", 0.96, 1.0), ("flip", None, 1.2), ("seen", 1, None)]


def test_widgets_bring_no_handlers_and_no_network():
    for path in (render.HERE / "widgets").glob("*.html"):
        text = path.read_text()
        assert not OUTSIDE.search(text), path.name
        assert not re.search(r"<[^>]*\son[a-z]+\s*=", text), (
            f"{path.name}: inline handlers are blocked by the page's policy"
        )
    assert render.widget("../templates/base", "n") is None
    assert render.widget("no-such-widget", "n") is None


def test_the_report_needs_neither_torch_nor_studies():
    heavy = ("torch", "matplotlib", "recombine.studies", "recombine.worlds")
    code = f"import sys, recombine.report; print([m for m in sys.modules if m in {heavy}])"
    root = Path(__file__).parent.parent
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root).stdout.strip() == "[]"


def test_a_probe_is_shown_at_its_worst_where_runs_are_of_several_worlds():
    from recombine.report.page import real
    from recombine.report.training import _refused

    quality = [{"probe": "linear", "composition": "111", "level": 2, "joint": j} for j in (1.0, 0.6)]
    assert real({"quality": quality}, "linear", {"code": "111", "level": 2}) == 0.6
    assert real({"quality": quality}, "cnn", {"code": "111", "level": 2}) is None
    rows = [{"kind": "refused", "probe": p, "share": s} for p, s in (("open-set", 0.99), ("open-set", 0.97), ("cnn", 0.0))]
    assert _refused(rows, Path("rows.jsonl")) == {"open-set": 0.97}


def test_the_site_shows_the_run_that_comes_furthest_and_says_that_it_is_the_best(site):
    from recombine.report.page import furthest

    def run(name: str, read: float, cnn: float, sheets: bool = True) -> dict:
        scores = {p: {"000": [[1.0]], "111": [[0.0], [y]]} for p, y in (("cnn", cnn), ("oracle", read))}
        return {"id": name, "scores": scores, "sheets": [[0, 0]] if sheets else []}

    codes = [{"code": c, "level": k, "row": k} for c, k in (("111", 2), ("000", 0))]
    runs = [
        run("kind", 0.1, 1.0),
        run("right", 0.9, 0.9),
        run("equal", 0.9, 0.9),
        run("unseen", 1.0, 1.0, sheets=False),
    ]
    assert furthest({"probes": ["cnn", "oracle"], "compositions": codes, "runs": runs})["id"] == "right"
    assert furthest({"probes": ["cnn"], "compositions": codes, "runs": runs})["id"] == "kind"
    assert "(the best of 6 runs)" in (site / "index.html").read_text()


def test_a_verdict_is_said_in_the_words_of_the_claim_unless_they_are_none(site):
    path = next(site.glob("*/claims.json"))
    claim = read_json(path)[0] | {"verdict": "reproduced"}
    for said, shown in (("holds", "holds"), ("<b>splendid</b>", "reproduced"), (None, "reproduced")):
        other = path.with_name("other.json")
        other.write_text(json.dumps([claim | {"said": said}]))
        assert read_claims(other)[0]["said"] == shown


def test_a_strip_shows_what_a_verdict_would_have_been_earlier(tmp_path):
    folder = make_results(tmp_path) / "objectives"
    first, *others = read_json(folder / "claims.json")
    told = [[100, "does not hold"], [2000, "partly"], [4000, "reproduced"]]
    known = {"cnn": "reproduced", "oracle": "not reproduced"}
    (folder / "claims.json").write_text(json.dumps([first | {"earlier": told, "otherwise": known}, *others]))
    text = write_study(folder).read_text()
    cells = re.findall(r'<i class="([\w-]+)" title="up to update ([\d,]+): ', text)
    assert cells == [(said.replace(" ", "-"), f"{step:,}") for step, said in told]
    assert text.count('class="course"') == 1
    assert re.findall(r'class="source other"><i class="([\w-]+)"></i>([\w :]+)<', text) == [
        ("reproduced", "made to choose: reproduced"),
        ("not-reproduced", "strict reader: not reproduced"),
    ]


@pytest.location.parametrize("otherwise", [["cnn"], {"cnn": "fine"}, {"<b>": "partly"}, {"cnn": "smoke"}, None])
def test_probes_that_are_none_are_refused_in_one_line(tmp_path, otherwise):
    claim = {"id": "D1", "statement": "s", "verdict": "partly", "otherwise": otherwise}
    (tmp_path / "claims.json").write_text(json.dumps([claim]))
    with pytest.raises(UsageError, match="'otherwise' of claim 'D1' must be probes"):
        read_claims(tmp_path / "claims.json")


NO_COURSES = (
    *("often", {"a": 1}, False, None),
    *([["100", "partly"]], [[100, "<b>"]], [[100]], [[True, "partly"]], [[1, "smoke"]]),
    *([[0, "partly"]], [[2, "partly"], [2, "holds"]], [[9, "partly"], [2, "holds"]]),
)


@pytest.location.parametrize("earlier", NO_COURSES)
def test_a_strip_that_is_none_is_refused_in_one_line(tmp_path, earlier):
    claim = {"id": "D1", "statement": "s", "verdict": "partly", "earlier": earlier}
    (tmp_path / "claims.json").write_text(json.dumps([claim]))
    with pytest.raises(UsageError, match="'earlier' of claim 'D1' must be a list"):
        read_claims(tmp_path / "claims.json")


@pytest.location.parametrize(("view", "wide"), [("0 0 480 100", True), ("0 0 200 100", False), ("0 0 964.8 230.4", True)])
def test_a_card_shows_the_left_part_of_a_wide_drawing(view, wide):
    assert Shown("a", "A", "", Markup('<svg viewBox="{}"></svg>').format(view)).wide is wide
    assert not Shown("a", "A", "", Markup('<img src="a.png">')).wide
