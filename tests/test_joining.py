"""Results of other seeds, made apart, joined: the same as made together."""

import shutil
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from digits import alike

from recombine.analysis.table import Table
from recombine.config import UsageError, from_json, to_json
from recombine.files import read_json, write_atomic, write_json
from recombine.pipeline.plan import Command, make_plans
from recombine.studies import find, small_models
from recombine.studies.joining import (
    _compared,
    _copied_sheets,
    _joined_facts,
    join,
    joined_rows,
    joined_settings,
)
from recombine.studies.small_models import SmallModels
from recombine.studies.summary import assess_again

SHIPPED = Path(__file__).parents[1] / "results" / "colours"


def only(seeds: set[int], folder: Path) -> Path:
    """The shipped results as a machine would have them that had made these seeds alone."""
    shutil.copytree(SHIPPED, folder)
    facts, rows = read_json(folder / "study.json"), pl.read_parquet(folder / "rows.parquet")
    facts["seeds"] = sorted(seeds)
    facts["runs"] = [r for r in facts["runs"] if r.get("seed", min(seeds)) in seeds]
    held = {r["digest"] for r in facts["runs"]}
    facts["sheets"] = [s for s in facts["sheets"] if s["run"] in held]
    rows.filter(pl.col("run").is_in(list(held)) | pl.col("run").is_null()).write_parquet(
        folder / "rows.parquet"
    )
    write_json(folder / "study.json", facts)
    return folder


@pytest.fixture
def apart(tmp_path) -> tuple[Path, Path]:
    seeds = set(read_json(SHIPPED / "study.json")["seeds"])
    return only({0, 1}, tmp_path / "one"), only(seeds - {0, 1}, tmp_path / "two")


def rows_of(folder: Path) -> pl.DataFrame:
    frame = pl.read_parquet(folder / "rows.parquet")
    return frame.select(sorted(frame.columns)).sort(pl.all(), nulls_last=True)


def test_joined_is_made_together(apart, tmp_path) -> None:
    assert not rows_of(apart[1]).equals(rows_of(SHIPPED))
    joined = join(list(apart), tmp_path / "out", "here")
    assert rows_of(joined).equals(rows_of(SHIPPED))
    ours, theirs = (read_json(f / "claims.json") for f in (joined, SHIPPED))
    keys = ("id", "estimate", "interval", "n", "verdict", "seeds", "measured")
    assert alike([[c[k] for k in keys] for c in ours], [[c[k] for k in keys] for c in theirs])
    facts, whole = (read_json(f / "study.json") for f in (joined, SHIPPED))
    for key in ("seeds", "settings", "scale"):
        assert facts[key] == whole[key]
    assert {r["digest"] for r in facts["runs"]} == {r["digest"] for r in whole["runs"]}
    assert {s["file"] for s in facts["sheets"]} == {p.name for p in joined.glob("samples/*")}


@pytest.mark.slow
def test_a_run_in_both_counts_once(apart, tmp_path) -> None:
    joined = join([SHIPPED, apart[1]], tmp_path / "out", "here")
    assert rows_of(joined).equals(rows_of(SHIPPED))


@pytest.mark.parametrize("key", ["settings", "scale", "name"])
def test_results_of_something_else_are_refused(key, apart, tmp_path) -> None:
    one, other = apart
    facts = read_json(other / "study.json")
    write_json(other / "study.json", facts | {key: "another"})
    with pytest.raises(UsageError, match=f': {key} is "another", but .* in {one}'):
        join([one, other], tmp_path / "out", "here")
    assert not (tmp_path / "out").exists()


def test_a_refusal_names_the_setting_and_both_its_values(apart, tmp_path) -> None:
    one, other = apart
    facts = read_json(other / "study.json")
    own = facts["settings"]["world"].get("size", 64)
    facts["settings"]["world"]["size"] = 99
    write_json(other / "study.json", facts)
    with pytest.raises(UsageError) as refusal:
        join([one, other], tmp_path / "out", "here")
    assert str(refusal.value) == f"{other}: world.size is 99, but {own} in {one}"


def test_results_of_a_study_of_ones_own_are_refused_with_what_to_do(apart, tmp_path) -> None:
    facts = read_json(apart[0] / "study.json")
    write_json(apart[0] / "study.json", facts | {"name": "ridge"})
    with pytest.raises(UsageError, match=r"no study 'ridge' .* `recombine run FILE"):
        join(list(apart), tmp_path / "out", "here")


def test_a_folder_of_several_studies_is_refused_with_their_names(tmp_path) -> None:
    for name in ("b", "a"):
        write_json(tmp_path / "all" / name / "study.json", {})
    with pytest.raises(UsageError, match=r"all holds a, b: name one, as .*all/a"):
        join([tmp_path / "all"], tmp_path / "out", "here")


def test_fields_that_are_newer_than_results_stand_at_their_defaults(apart, tmp_path) -> None:
    """As if results had been made before recipes had the field `apart`."""
    facts = read_json(SHIPPED.parent / "label-dropout" / "study.json")
    find("label-dropout")
    newer = to_json(from_json(facts["settings"]["base"]["recipe"]))
    older = {name: value for name, value in newer.items() if name != "apart"}
    assert to_json(from_json(older)) == newer != older
    facts["settings"]["base"]["recipe"] = older
    for changed, same in ((newer, True), (newer | {"pool": 7}, False)):
        other = facts["settings"] | {"base": facts["settings"]["base"] | {"recipe": changed}}
        assert (_compared(other) == _compared(facts["settings"])) is same


@pytest.mark.slow
def test_variants_that_were_run_later_are_added(apart, tmp_path) -> None:
    for folder, variants in zip(apart, (["a", "b"], ["b", "c"]), strict=True):
        facts = read_json(folder / "study.json")
        facts["settings"]["variants"] = variants
        write_json(folder / "study.json", facts)
    joined = read_json(join(list(apart), tmp_path / "out", "here") / "study.json")
    assert joined["settings"]["variants"] == ["a", "b", "c"]


def test_rows_on_later_variants_are_kept_and_others_count_once() -> None:
    def table(*variants: str) -> Table:
        facts = [{"kind": "variant", "variant": v} for v in variants]
        return Table([*facts, *({"kind": "count", "variant": v, "run": v} for v in variants)])

    joined = joined_rows([table("a", "b"), table("b", "c")])
    for kind in ("variant", "count"):
        assert joined.where(kind=kind).column("variant") == ["a", "b", "c"]


def test_an_earlier_folder_is_not_overwritten(apart, tmp_path) -> None:
    goal = tmp_path / "out" / "colours"
    goal.mkdir(parents=True)
    with pytest.raises(UsageError, match="is there already"):
        join(list(apart), tmp_path / "out", "here")
    assert not list(goal.iterdir())


@pytest.mark.parametrize(
    ("study", "scale", "own"), [("composition", "smoke", 0), ("two-models", "full", 5)]
)
def test_seeds_are_counted_from_the_first(study, scale, own) -> None:
    """Some studies begin with another seed than 0; so many are run all the same."""

    def of(first: int, count: int) -> tuple[list[int], set]:
        command = Command((study,), scale, count, first_seed=first)
        (plan,) = make_plans(command)
        return command.seeds_of(plan), {job for job in plan.jobs if "seed" in dict(job.labels)}

    assert of(0, 1)[0] == [own]
    assert of(1, 2)[0] == [own + 1, own + 2]
    assert of(1, 2)[1] == of(0, 3)[1] - of(0, 1)[1]


@pytest.mark.parametrize("facts", [[1], {"name": "colours"}])
def test_what_does_not_describe_a_study_is_refused(facts, apart, tmp_path) -> None:
    write_json(apart[0] / "study.json", facts)
    with pytest.raises(UsageError, match=r"study\.json does not describe a study$"):
        join(list(apart), tmp_path / "out", "here")
    with pytest.raises(UsageError, match=r"study\.json does not describe a study$"):
        assess_again(find("colours"), apart[0], "here")


def test_a_study_without_rows_is_not_assessed(apart) -> None:
    rows = pl.read_parquet(apart[0] / "rows.parquet")
    rows.clear().write_parquet(apart[0] / "rows.parquet")
    with pytest.raises(UsageError, match=r"rows\.parquet: no rows to assess$"):
        assess_again(find("colours"), apart[0], "here")


def test_sheets_are_copied_once_and_only_from_their_place(tmp_path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        write_atomic(folder / "samples" / "x.webp", folder.name)
    facts = [{"sheets": [{"file": "x.webp", "of": folder.name}]} for folder in folders]
    kept = _copied_sheets(folders, facts, tmp_path / "goal")
    assert kept == [{"file": "x.webp", "of": "a"}]
    assert (tmp_path / "goal" / "samples" / "x.webp").read_text() == "a"
    (tmp_path / "a" / "samples" / "link.webp").symlink_to(tmp_path / "b" / "samples" / "x.webp")
    for wrong in ("../samples/x.webp", "none.webp", "link.webp"):
        facts[0]["sheets"] = [{"file": wrong}]
        with pytest.raises(UsageError, match="is not a sheet of samples"):
            _copied_sheets(folders, facts, tmp_path / "goal")


def test_facts_of_all_are_joined() -> None:
    def facts(seed: int, **origin) -> dict:
        run = {"digest": f"d{seed}", "label": "a"}
        about = {"seeds": [seed], "runs": [run, {"digest": "same", "label": "b"}]}
        return about | {"settings": {"n": 1}, "provenance": origin}

    one = facts(2, device="B", torch="2", seconds=1.26, runs=["r", "s"], commit="x")
    two = facts(1, device="A, B", torch="2", seconds=2.0, runs=["s", "t"])
    joined = _joined_facts([one, two], "here")
    assert joined["seeds"] == [1, 2]
    assert [run["digest"] for run in joined["runs"]] == ["d2", "same", "d1"]
    assert joined["provenance"] == {
        "device": "A, B", "torch": "2", "python": "", "trained": "", "seconds": 3.3,
        "runs": ["r", "s", "t"], "assessed": "here", "commit": "x",
    }  # fmt: skip


def test_a_list_that_older_settings_lack_is_at_its_default_there_in_both_orders():
    new = to_json(replace(small_models.settings("full"), variants=("dit",)))
    old = {key: value for key, value in new.items() if key != "variants"}
    every = set(SmallModels().variants)
    for pair in ((old, new), (new, old)):
        assert set(joined_settings(list(pair))["variants"]) == every
