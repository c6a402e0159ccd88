"""Properties of the shipped reference results: small, readable, in today's words, and their claims
follow from their rows."""

import json
import math
import shutil
from pathlib import Path

import polars as pl
import pytest
from digits import alike
from test_report_browser import CHROMIUM, DESK, framed

import recombine as rc
from recombine.config import to_json
from recombine.report import write_site
from recombine.report.read import read_results
from recombine.report.sheets import size_of
from recombine.store import read_json
from recombine.studies import NAMES, find
from recombine.studies.summary import verdicts, words

RESULTS = Path(__file__).parents[1] / "results"
STUDIES = sorted(path.parent.name for path in RESULTS.glob("*/study.json"))
LONG = ("jitter", "ablations", "objectives", "circuits")
"""Studies that take seconds to assess, since verdicts are computed for every checkpoint."""
FILES = [path for path in RESULTS.rglob("*") if path.is_file() and path.name != "index.html"]
OLD_COLUMNS = {"marks", "mark", "hits", "luck", "gone", "complete", "right", "told", "asked", "way"}
OLD_COLUMNS |= {"echo", "untold", "study"}
OLD_VALUES = {
    "wary",
    "read",
    "between",
    "course",
    "asked",
    "over",
    "told",
    "plain",
    "varied",
    "train",
}
AGAIN = "recombine claims results --again"
NAMED = ("kind", "probe", "variant", "world", "method", "space", "mirrors")
"""Columns that hold names."""


def test_there_are_results_and_all_belong_to_studies():
    assert len(STUDIES) >= 16
    assert set(STUDIES) <= set(NAMES)


def test_they_are_small():
    assert sum(path.stat().st_size for path in FILES) <= 30_000_000
    assert len(FILES) <= 600
    assert max(path.stat().st_size for path in FILES) <= 1_000_000


@pytest.mark.parametrize("name", STUDIES)
def test_a_folder_holds_what_it_lists_and_nothing_else(name):
    folder = RESULTS / name
    study = read_json(folder / "study.json")
    held = {str(p.relative_to(folder)) for p in FILES if p.is_relative_to(folder)}
    assert held == {"rows.parquet", "claims.json", "study.json", *study["files"]}
    figures = {f"figures/{figure['name']}.svg" for figure in study["figures"]}
    samples = {f"samples/{sheet['file']}" for sheet in study["sheets"]}
    assert figures | samples == set(study["files"])
    assert all(math.prod(size_of(folder / sheet)) <= 600_000 for sheet in samples)


@pytest.mark.parametrize(
    "name", [pytest.param(s, marks=pytest.mark.slow) if s in LONG else s for s in STUDIES]
)
def test_claims_follow_from_the_rows(name):
    """Assessed again they are the same, up to what processors add up differently; only where they
    come from is not computed."""
    study, results = find(name), read_results(RESULTS / name)
    facts, shipped = (read_json(RESULTS / name / f"{n}.json") for n in ("study", "claims"))
    again = json.loads(json.dumps(verdicts(study, results.rows, facts)))
    assert alike(again, shipped), AGAIN


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_is_described_as_its_code_describes_it(name):
    described, study = read_results(RESULTS / name).study, words(find(name))
    for key in ("question", "paper", "about"):
        assert getattr(described, key).split() == study[key].split(), AGAIN
    assert described.widget == study["widget"]


@pytest.mark.parametrize("name", STUDIES)
def test_the_seeds_it_says_are_those_of_its_rows(name):
    """Rows without seeds are exact; those of other seeds are of variants that have more."""
    rows = pl.read_parquet(RESULTS / name / "rows.parquet")
    held = set(rows["seed"].drop_nulls()) if "seed" in rows.columns else set()
    assert not held or set(read_json(RESULTS / name / "study.json")["seeds"]) <= held


@pytest.mark.parametrize("name", STUDIES)
def test_rows_are_typed_and_in_todays_words(name):
    rows = pl.read_parquet(RESULTS / name / "rows.parquet")
    assert not set(rows.columns) & OLD_COLUMNS
    for column in set(NAMED) & set(rows.columns):
        said = {word for value in rows[column].drop_nulls().unique() for word in value.split(", ")}
        assert not said & OLD_VALUES, column
    types = {"kind": pl.String, "composition": pl.String, "run": pl.String, "scale": pl.String}
    types |= {"seed": pl.Int64, "step": pl.Int64, "level": pl.Int64, "joint": pl.Float64}
    schema = rows.schema
    assert all(schema[column] == kind for column, kind in types.items() if column in schema)


PROBE = "recipe.evaluation.probe_steps recipe.evaluation.probe_version"
SINCE = {
    "ablations": "ablations",
    "colours": "variants",
    "concept-space": "lines recipe.evaluation.probe_version",
    "jitter": "amounts",
    "forgetting": "variants",
    "label-dropout": "variants",
    "labels": "variants",
    "receptive-field": "bases",
    "repair": "variants",
    "length": "experiments",
    "locality": "experiments",
    "objectives": PROBE,
    "operator": "recipe.detector.real recipe.detector.steps recipe.detector.version recipe.evaluation.early"
    " recipe.evaluation.samples recipe.net.net.widths recipe.objective.centre recipe.train.batch"
    " recipe.train.decay recipe.train.steps",
    "small-models": "variants",
    "swing-by": "flow_seeds",
}
"""Settings that were changed after the shipped run."""


def changed(now: object, then: object, place: str = "") -> set[str]:
    """Where two settings differ; fields that only one of them has are newer, or gone."""
    if isinstance(now, dict) and isinstance(then, dict):
        both = now.keys() & then.keys()
        return set().union(*(changed(now[k], then[k], f"{place}.{k}") for k in both))
    return set() if now == then else {place[1:]}


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_has_the_settings_of_its_shipped_run_but_for_what_is_named(name):
    shipped = read_json(RESULTS / name / "study.json")
    today = to_json(find(name).settings(shipped["scale"]))
    assert changed(today, shipped["settings"]) <= set(SINCE.get(name, "").split())


def test_studies_of_the_same_runs_share_their_rows():
    """`locality` measures the runs of `length`; what both need is stored once."""
    study = read_json(RESULTS / "locality" / "study.json")
    assert study["rows_of"] == "length"
    assert study["runs"] == read_json(RESULTS / "length" / "study.json")["runs"]
    rows = rc.results().filter(pl.col("study").is_in(["length", "locality"]))
    assert not rows.filter(pl.col("run").is_not_null()).drop("study").is_duplicated().any()


@pytest.mark.slow
def test_a_site_of_all_of_them_has_small_pages(tmp_path):
    copy = shutil.copytree(RESULTS, tmp_path / "results")
    write_site(copy)
    assert max(page.stat().st_size for page in copy.rglob("index.html")) < 2_000_000
    if CHROMIUM:
        height = "(f) => f.document.documentElement.scrollHeight"
        (pixels,) = framed(copy, [copy / "index.html"], height, DESK)
        assert pixels <= 4 * DESK[1], "the index is at most four screens"
