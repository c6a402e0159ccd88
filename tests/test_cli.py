"""The command line: what it writes, what it caches, and one line with exit status 2 for what it
cannot use."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

import recombine
from recombine import bench, cli
from recombine.analysis.table import read_table
from recombine.config import UsageError, to_json
from recombine.overrides import override
from recombine.pipeline import executor
from recombine.provenance import commit
from recombine.store import RunFolder, read_json, write_json
from recombine.studies import NAMES, find

ROOT = Path(__file__).parents[1]


@pytest.fixture
def call(monkeypatch, capfd):
    """`call("run", ...)`: exit status, what was printed, what was complained."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["recombine", *map(str, arguments)])
        capfd.readouterr()
        try:
            cli.main()
            status = 0
        except SystemExit as stop:
            status = stop.code or 0
        return status, *capfd.readouterr()

    return run


def tag_values(plain) -> set[str]:
    """All config types inside a JSON form."""
    if isinstance(plain, list):
        return set().union(*map(tag_values, plain))
    if not isinstance(plain, dict):
        return set()
    return {plain["type"]}.union(*(tag_values(v) for v in plain.values()))


def smoke(out: Path, *more: str) -> tuple[str, ...]:
    return ("run", "composition", "--scale", "smoke", "--device", "cpu", "--out", str(out), *more)


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    """One smoke run, shared by the tests below; each puts back what it breaks."""
    out, before = tmp_path_factory.mktemp("cli"), sys.argv
    sys.argv = ["recombine", *smoke(out)]
    try:
        cli.main()
    finally:
        sys.argv = before
    return out


@pytest.fixture
def trained(out) -> Path:
    """The folder of the run that trained the model (not of a probe)."""
    return (
        out
        / "runs"
        / read_table(out / "composition" / "rows.parquet").where(kind="accuracy").column("run")[-1]
    )


def refused(result: tuple[int, str, str], *says: str) -> None:
    """Exit status 2 and one line that says why."""
    status, printed, complained = result
    last = complained.strip().splitlines()
    assert status == 2
    assert printed == ""
    assert "Traceback" not in complained
    assert [line for line in last if line.startswith("recombine: ")] == last[-1:]
    for text in says:
        assert text in last[-1]


WRONG = [
    (("run", "nothing"), ("no study 'nothing'", "tour, two-models")),
    (("run", "objektives"), ("did you mean objectives?",)),
    (("run", "composition", "--engine", "slrum"), ("--engine slrum", "did you mean slurm?")),
    (("run", "composition", "--set", "recipe.train.stpes=3"), ("did you mean steps?",)),
    (("run", "composition", "--scale", "huge"), ("--scale huge", "smoke, laptop, full")),
    (("run", "composition", "--seeds", "-1"), ("--seeds -1",)),
    (("run", "composition", "--seeds", "many"), ("--seeds", "integer")),
    (
        ("run", "composition", "--first-seed", "-1"),
        ("--first-seed -1: must not be negative",),
    ),
    (
        ("export", "world", "shapes2d", "--as", "zip"),
        ("--as zip: not one of imagefolder, parquet",),
    ),
    (("export", "world", "shapes2d", "--n", "0"), ("--n 0: must be positive",)),
    (
        ("compare", "nowhere"),
        ("compare: name two or more folders that `recombine evaluate` wrote",),
    ),
    (("run", "composition", "--workers", "0"), ("--workers 0: must be positive",)),
    (
        ("run", "composition", "--set", "recipe.nothing=1"),
        ("no field 'nothing' in recipe", "world"),
    ),
    (
        ("run", "composition", "--set", "recipe.train.steps=soon"),
        ("recipe.train.steps", "'soon' is not of type int"),
    ),
    (
        ("run", "composition", "--set", "recipe.train.steps=-3"),
        ("--set recipe.train: steps must be positive",),
    ),
    (
        ("run", "composition", "--set", "recipe.train.lr=NaN"),
        ("recipe.train.lr", "not a finite number"),
    ),
    (
        ("run", "composition", "--set", "recipe.net.transformer.heads=0"),
        ("heads must be positive",),
    ),
    (("run", "composition", "--set", "recipe.seed"), ("write path=value",)),
    (("run", "composition", "--device", "cuda:7"), ("--device cuda:7", "CUDA device")),
    (("run", "composition", "--device", "abacus"), ("--device abacus", "auto, cpu, cuda, cuda:N")),
    (("run", "composition", "--nonsense"), ("--nonsense",)),
    (("run",), ("STUDY", "recombine list")),
    (("dance",), ("dance", "list, run, claims")),
    (("report", "nowhere"), ("nowhere: there is no such folder", "results")),
    (("bench", "nothing"), ("no benchmark 'nothing'", "step")),
]


@pytest.mark.parametrize(("arguments", "says"), WRONG, ids=lambda v: " ".join(v)[:60])
def test_wrong_usage_is_one_line_and_writes_nothing(call, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    result = call(*arguments)
    refused(result, *says)
    assert len(result[2].splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [("claims",), ("report",)])
def test_a_folder_without_results_is_refused(call, tmp_path, command):
    for folder in (tmp_path, tmp_path / "nowhere"):
        refused(call(*command, folder), str(folder))


def test_an_output_folder_below_a_file_cannot_be_written(call, tmp_path):
    (tmp_path / "file").write_text("")
    result = call(*smoke(tmp_path / "file" / "out"))
    refused(result, "cannot write", "file/out")
    assert len(result[2].splitlines()) == 1


def test_an_output_folder_that_is_a_file_is_said_to_be_one(call, tmp_path):
    (tmp_path / "file").write_text("")
    refused(call(*smoke(tmp_path / "file")), "is a file, not a folder")


def test_an_output_folder_that_fills_up_is_one_line(call, tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    try:
        refused(call(*smoke(tmp_path)), "cannot write", ".safetensors", "too large")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


HELP = """
import sys
from recombine.cli import main
sys.argv = ["recombine", "--help"]
try:
    main()
finally:
    assert "torch" not in sys.modules
"""


def test_help_answers_quickly_and_without_torch():
    """In a second of CPU time, however busy the machine is."""
    before = os.times()
    said = subprocess.run(
        [sys.executable, "-c", HELP], cwd=ROOT, capture_output=True, text=True, check=True
    )
    after = os.times()
    used = (after.children_user, after.children_system)
    assert sum(used) - before.children_user - before.children_system < 1
    assert all(command in said.stdout for command in ("list", "run", "claims", "report", "bench"))
    assert said.stderr == ""


def test_the_version_is_said_and_nothing_else(call):
    code, out, error = call("--version")
    assert (code, error) == (0, "")
    assert re.fullmatch(rf"recombine {re.escape(recombine.__version__)} \(.+\)\n", out)


def test_a_folder_is_checked_and_nothing_is_written(call, tmp_path):
    for name in ("a", "b"):
        Image.new("RGB", (16, 16)).save(tmp_path / f"{name}.png")
    (tmp_path / "factors.csv").write_text("file,shape\na.png,disc\nb.png,cone\n")
    before = sorted(tmp_path.iterdir())
    code, out, _ = call("check", tmp_path)
    assert (code, sorted(tmp_path.iterdir())) == (0, before)
    assert "shape disc/cone; pictures of 2 of 2 compositions" in out
    assert "size: 16 x 16;" in out
    refused(call("check", tmp_path / "nowhere"), "there is no such folder")


def test_no_command_at_all_shows_the_help(call):
    status, printed, complained = call()
    assert (status, complained) == (0, "")
    assert "Every study" in printed
    assert len(printed.splitlines()) > 8


def test_the_list_names_every_study_with_question_paper_claims_and_cost(call):
    status, printed, _ = call("list", "--json")
    entries = {e["name"]: e for e in json.loads(printed)}
    assert status == 0
    assert entries.keys() == {*NAMES, "tour"}
    for name in NAMES:
        assert entries[name]["question"].endswith("?")
        assert entries[name]["claims"]
        assert entries[name]["cost"].keys() == {"smoke", "laptop", "full"}
    ids = [c["id"] for name in NAMES for c in entries[name]["claims"]]
    assert len(ids) == len(set(ids))
    plain = call("list")[1]
    assert all(name in plain for name in entries)


def test_a_run_leaves_the_contracts_files(out, trained):
    assert {p.name for p in trained.iterdir()} == {
        "config.json", "rows.jsonl", "samples", "model.safetensors", "state.safetensors", "done.json"
    }  # fmt: skip
    study = out / "composition"
    assert {"rows.parquet", "claims.json", "study.json", "figures", "samples", "index.html"} <= {
        p.name for p in study.iterdir()
    }
    assert list((study / "figures").glob("*.svg"))
    assert (out / "index.html").exists()
    assert not list(out.rglob("*.tmp"))
    accuracies = read_table(study / "rows.parquet").where(kind="accuracy")
    assert set(accuracies.unique("step")) == {0, 4, 8}
    assert all(
        r[k] is not None for r in accuracies for k in ("run", "seed", "step", "scale", "variant")
    )
    assert set(accuracies.unique("composition")) == {f"{i:03b}" for i in range(8)}
    claims = read_json(study / "claims.json")
    assert {c["verdict"] for c in claims} == {"smoke"}
    assert all(trained.name in c["provenance"]["runs"] for c in claims)


def test_claims_and_report_read_what_is_there(call, out):
    status, printed, _ = call("claims", out, "--json")
    assert status == 0
    assert json.loads(printed) == read_json(out / "composition" / "claims.json")
    assert "D5a\tsmoke\tcomposition" in call("claims", out)[1]
    assert call("claims", out / "composition") == call("claims", out), (
        "the folder of one study will do"
    )
    assert call("claims", out / "runs")[0] == 2
    status, printed, _ = call("report", out)
    assert (status, Path(printed.strip())) == (0, (out / "index.html").resolve())


def test_what_was_trained_elsewhere_and_by_other_code_says_so(call, out, trained):
    facts = read_json(trained / "done.json")
    assert facts["commit"] == commit()
    try:
        RunFolder(out, trained.name).finish(facts | {"device": "a GPU", "commit": "abc"})
        assert call(*smoke(out))[0] == 0
        said = read_json(out / "composition" / "study.json")["provenance"]
        assert ("a GPU" in said["device"], "abc" in said["trained"], said["commit"]) == (
            True,
            True,
            commit(),
        )
    finally:
        write_json(trained / "done.json", facts)


def weights(out: Path) -> dict[str, tuple[bytes, int]]:
    return {
        p.parent.name: (p.read_bytes(), p.stat().st_mtime_ns)
        for p in out.glob("runs/*/model.safetensors")
    }


@pytest.mark.slow
def test_a_second_run_trains_nothing_and_gives_the_same_rows_and_a_fresh_one_trains_all_and_does_too(
    call, out
):
    rows, before = (out / "composition" / "rows.parquet").read_bytes(), weights(out)
    assert call(*smoke(out))[0] == 0
    assert weights(out) == before
    assert (out / "composition" / "rows.parquet").read_bytes() == rows
    assert call(*smoke(out, "--fresh"))[0] == 0
    after = weights(out)
    assert {k: v[0] for k, v in after.items()} == {k: v[0] for k, v in before.items()}
    assert all(after[k][1] > before[k][1] for k in before), "probes and model are trained again"
    assert (out / "composition" / "rows.parquet").read_bytes() == rows


def test_a_truncated_checkpoint_is_refused(call, out, trained):
    """A probe's, when another seed needs it. What is finished needs no weights, its rows are
    there."""
    path = next(p for p in out.glob("runs/*/model.safetensors") if p.parent != trained)
    whole = path.read_bytes()
    try:
        for cut in (0, 100, -1):
            path.write_bytes(whole[:cut])
            executor._LOADED.clear()  # as another process would find it
            refused(call(*smoke(out), "--seeds", "2"), str(path), "was altered", "--fresh")
        assert call(*smoke(out))[0] == 0
    finally:
        path.write_bytes(whole)


def test_a_truncated_state_is_refused_when_a_run_goes_on(call, out, trained):
    path, done = trained / "state.safetensors", (trained / "done.json").read_bytes()
    whole = path.read_bytes()
    try:
        (trained / "done.json").unlink()
        path.write_bytes(whole[: len(whole) // 2])
        refused(call(*smoke(out)), str(path), "corrupt or cut off")
    finally:
        path.write_bytes(whole)
        (trained / "done.json").write_bytes(done)


@pytest.mark.parametrize(
    ("change", "says"),
    [({"config": {"type": "subprocess.Popen"}}, "was altered"), ({"parents": []}, "was altered")],
)
def test_a_run_folder_whose_config_is_a_strangers_is_refused(call, out, trained, change, says):
    path = trained / "config.json"
    whole = path.read_bytes()
    try:
        write_json(path, json.loads(whole) | change)
        refused(call(*smoke(out)), str(path), says)
    finally:
        path.write_bytes(whole)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("recipe.net.patch=5", "patch 5 does not divide a grid of 28x28"),
        ("recipe.seen=[[0,0,7]]", "[0, 0, 7] is no composition"),
        ('embedding_scales=["strong"]', "'strong' is not one of balanced, raw"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(call, out, setting, says):
    refused(call(*smoke(out, "--set", setting)), says)


def test_a_run_that_diverges_says_where_and_exits_with_one(call, out):
    status, _, complained = call(*smoke(out, "--set", "recipe.train.lr=1e30"))
    assert status == 1
    assert "not finite at step" in complained.splitlines()[-1]
    assert "Traceback" not in complained


def test_ctrl_c_says_how_to_go_on(call, monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("recombine.studies.catalogue.catalogue", interrupted)
    status, _, complained = call("list")
    assert (status, len(complained.splitlines())) == (130, 1)
    assert "the same command goes on" in complained


def test_one_study_is_printed_whole_and_every_setting_it_names_can_be_set(call):
    status, printed, _ = call("list", "objectives", "--scale", "smoke", "--json")
    facts, made = json.loads(printed), find("objectives").settings("smoke")
    assert (status, facts["name"]) == (0, "objectives")
    assert "B32" in [c["id"] for c in facts["claims"]]
    tags = tag_values(to_json(made))
    plain = {k: v for k, v in facts["settings"].items() if v not in tags}
    assert len(plain) > 30
    assert plain["recipe.world.size"] == str(made.recipe.world.size)
    assert override(made, *(f"{k}={v}" for k, v in plain.items())) == made
    words = call("list", "objectives")[1]
    assert all(word in words for word in ("recipe.train.lr", "B32", "laptop"))
    assert call("list", "nosuch")[0] == call("list", "repair", "--scale", "big")[0] == 2
    assert call("list", "--scale", "big")[0] == 2


def test_a_study_that_says_little_is_listed_without_empty_lines_for_the_rest(call, tmp_path):
    text = """from recombine import Study
from recombine.config import config

@config("test/listed")
class Settings:
    pass

STUDY = Study("mine", "Is it short?", lambda scale: Settings(), lambda settings, seeds: [], ())
"""
    (tmp_path / "mine.py").write_text(text)
    status, printed, _ = call("list", tmp_path / "mine.py")
    assert status == 0
    assert printed.startswith("mine: Is it short?\nbeyond the papers\n\nSettings at scale laptop")
    assert printed.endswith("the only one:\n")


def test_what_was_not_learned_is_said_before_the_numbers_and_below_the_claims(call, out):
    """The claims of many studies fill the screen; what is read first stays on it."""
    table, lines, report = call(*smoke(out))[1].split("\n\n")
    assert table.startswith("id\tverdict")
    assert report.startswith("Report: ")
    first, *rest = lines.splitlines()
    assert re.fullmatch(
        r"composition: .* has not learned the seen compositions \(0\.\d\d\): .*", first
    )
    assert any("late means" in line for line in rest)


def test_a_dry_run_lists_what_is_missing_and_writes_nothing(call, out, tmp_path):
    empty = tmp_path / "new"
    status, printed, _ = call(*smoke(empty, "--dry-run"))
    first, *tasks = printed.splitlines()
    assert (status, empty.exists()) == (0, False)
    assert first == f"runs to do: {len(tasks)}; there already, in {empty}: 0"
    assert tasks[-1].endswith("  composition: balanced, seed 0 (model)")
    assert {line.split()[0] for line in tasks} <= {p.name for p in (out / "runs").iterdir()}
    _, printed, _ = call(*smoke(out, "--dry-run"))
    assert printed == f"runs to do: 0; there already, in {out}: {len(tasks)}\n"
    _, printed, _ = call(*smoke(out, "--dry-run", "--fresh"))
    first, *again = printed.splitlines()
    assert (first, again) == (f"runs to do: 4; erased first, in {out}: 4", tasks)
    assert (out / "runs" / tasks[-1].split()[0] / "done.json").exists()


def test_what_is_finished_is_assessed_and_nothing_is_run(call, out, tmp_path):
    """Of two seeds one was trained: its rows alone are collected, and neither weights nor sheets are
    needed."""
    here = shutil.copytree(out, tmp_path / "here")
    for left in (*here.glob("runs/*/samples/*.png"), *here.glob("runs/*/*.safetensors")):
        left.unlink()
    before = {p: p.stat().st_mtime_ns for p in here.glob("runs/*/*")}
    status, _, said = call(*smoke(here, "--finished", "--seeds", "3"))
    assert status == 0
    without = r"[1-9] of their sheets of samples are not"
    assert re.search(rf"composition: \d+ of \d+ runs are there, {without}", said)
    facts, rows = (
        read_json(here / "composition/study.json"),
        read_table(here / "composition/rows.parquet"),
    )
    assert facts["seeds"] == rows.where(kind="accuracy").unique("seed") == [0]
    assert {p: p.stat().st_mtime_ns for p in here.glob("runs/*/*")} == before
    status, _, said = call(*smoke(tmp_path / "none", "--finished"))
    assert (status, "no run of composition" in said, len(said.splitlines())) == (2, True, 1)
    early = shutil.copytree(here, tmp_path / "early")
    for job in (j for j in facts["runs"] if j.get("variant")):
        shutil.rmtree(early / "runs" / job["digest"])
    status, _, said = call(*smoke(early, "--finished"))
    assert (status, len(said.splitlines())) == (2, 1)
    assert "no model of composition is finished" in said
    assert "only: probe check" in said
    for other in ("--fresh", "--dry-run"):
        status, _, said = call(*smoke(here, "--finished", other))
        assert (status, len(said.splitlines()), other in said) == (2, 1, True)
    with pytest.raises(UsageError, match="what --fresh erases"):
        recombine.run("composition", scale="smoke", out=here, fresh=True, finished=True)
    assert {p: p.stat().st_mtime_ns for p in here.glob("runs/*/*")} == before


def test_commands_pass_on_what_they_are_given(call, tmp_path, monkeypatch):
    given = []
    monkeypatch.setattr("recombine.bench.run_benchmarks", lambda *how: given.append(how))
    assert call("bench")[0] == call("bench", "step", "--json")[0] == 0
    assert given == [([], False), (["step"], True)]
    monkeypatch.setattr("recombine.export.models.export_run", lambda *how: given.append(how))
    assert call("export", "a/run", tmp_path / "b") == (0, f"{tmp_path / 'b'}\n", "")
    assert given[2:] == [(Path("a/run"), tmp_path / "b")]
    monkeypatch.setattr("recombine.scoring.compare.compare", lambda folders: ["one", "two"])
    assert call("compare", "a", "b")[1] == "one\ntwo\n"


def test_a_leaderboard_is_printed_with_its_page(call, tmp_path, monkeypatch):
    monkeypatch.setattr("recombine.scoring.leaderboard.leaderboard", lambda *a, **how: [a, how])
    monkeypatch.setattr("recombine.scoring.leaderboard.lines", lambda made: map(str, made))
    _, said, _ = call("leaderboard", "dir", "--out", tmp_path, "--device", "cpu")
    assert said.splitlines() == [
        str((Path("dir"), tmp_path)), "{'device': 'cpu'}", f"page: {tmp_path / 'index.html'}",
    ]  # fmt: skip


def test_rescored_samples_are_printed_by_run_probe_and_level_at_the_last_step(
    call, tmp_path, monkeypatch
):
    rows = [
        {"run": "r", "step": s, "probe": "oracle", "level": v, "joint": j}
        for s, v, j in ((1, 0, 0.0), (2, 1, 0.25), (2, 1, 0.5), (2, 0, 1.0))
    ]
    given = []
    monkeypatch.setattr(
        "recombine.runs.rescoring.rescore_all", lambda *how: given.append(how) or rows
    )
    status, said, _ = call("rescore", tmp_path, "--device", "cpu", "--seeds", "3")
    assert status == 0
    assert said.splitlines() == [
        "r  oracle     level 0 1.00, level 1 0.38", f"Rows: {tmp_path / 'rescored.parquet'}",
    ]  # fmt: skip
    assert given[0][:3] == (tmp_path, ["paper", "oracle"], 3)
    assert len(read_table(tmp_path / "rescored.parquet").column("joint")) == 4


def test_the_site_is_opened_where_called(call, tmp_path, monkeypatch):
    page, opened = tmp_path / "index.html", []
    monkeypatch.setattr("recombine.report.site.write_site", lambda folder: page)
    monkeypatch.setattr("typer.launch", opened.append)
    assert call("report", tmp_path)[1] == f"{page}\n"
    assert opened == []
    call("report", tmp_path, "--open")
    assert opened == [str(page)]


def test_claims_are_assessed_anew_where_called(call, tmp_path, monkeypatch):
    path, done = tmp_path / "composition" / "claims.json", []
    monkeypatch.setattr("recombine.report.claims.claim_files", lambda folder: [path])
    monkeypatch.setattr("recombine.report.claims.read_claims", lambda path: [{"id": 1}])
    monkeypatch.setattr("recombine.studies.summary.assess_again", lambda *how: done.append(how))
    assert json.loads(call("claims", tmp_path, "--json")[1]) == [{"id": 1}]
    assert done == []
    call("claims", tmp_path, "--json", "--again")
    assert done == [(find("composition"), path.parent, commit())]


def test_claims_are_assessed_anew_from_within_a_studys_folder(call, tmp_path, monkeypatch):
    folder, done = tmp_path / "composition", []
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr("recombine.report.claims.claim_files", lambda f: [f / "claims.json"])
    monkeypatch.setattr("recombine.report.claims.read_claims", lambda path: [])
    monkeypatch.setattr("recombine.studies.summary.assess_again", lambda *how: done.append(how[0]))
    call("claims", ".", "--json", "--again")
    assert done == [find("composition")]


def test_joining_writes_the_site_and_says_where(call, tmp_path, monkeypatch):
    done = []
    monkeypatch.setattr("recombine.studies.joining.join", lambda *how: tmp_path / "composition")
    monkeypatch.setattr("recombine.report.site.write_site", lambda out: done.append(("site", out)))
    monkeypatch.setattr(
        "recombine.report.claims.print_claims", lambda paths, brief: done.append((paths, brief))
    )
    _, said, _ = call("join", "a", "b", "--out", tmp_path)
    assert done == [("site", tmp_path), ([tmp_path / "composition" / "claims.json"], True)]
    assert said == f"\nReport: {tmp_path / 'index.html'}\n"


@pytest.mark.parametrize(("raised", "status", "said"), [
    (UsageError("a\n b"), 2, "recombine: a b\n"), (OSError("full"), 2, "recombine: full\n"),
    (KeyboardInterrupt(), 130, "recombine: stopped; the same command goes on from here\n"),
])  # fmt: skip
def test_what_stops_a_command_is_one_line_and_a_status(call, monkeypatch, raised, status, said):
    def stop(*how):
        raise raised

    monkeypatch.setattr("recombine.bench.run_benchmarks", stop)
    assert call("bench") == (status, "", said)


def test_a_defect_is_not_hidden_and_a_termination_is_an_interruption(call, monkeypatch):
    def fails(*how):
        raise ZeroDivisionError

    monkeypatch.setattr("recombine.bench.run_benchmarks", fails)
    with pytest.raises(ZeroDivisionError):
        call("bench")
    assert signal.getsignal(signal.SIGTERM) is cli._interrupted
    with pytest.raises(KeyboardInterrupt):
        cli._interrupted(15, None)


def test_benchmarks_print_their_rows_as_they_come(tmp_path, monkeypatch, capsys):
    (tmp_path / "b.py").write_text("def main():\n    yield {'n': 2, 'seconds': 0.123456}\n")
    (tmp_path / "a.py").write_text("def main():\n    return [{'n': 1}]\n")
    (tmp_path / "_shared.py").write_text("1 / 0")
    monkeypatch.setattr(bench, "folder", lambda: tmp_path)
    monkeypatch.setattr(bench, "commit", lambda: "abc")
    monkeypatch.setattr(sys, "path", list(sys.path))
    bench.run_benchmarks([], as_json=False)
    said = capsys.readouterr()
    first, second = said.out.splitlines()
    assert first.startswith("benchmark a  n 1  commit abc  date 20")
    assert second.startswith("benchmark b  n 2  seconds 0.1235  commit abc  date 20")
    bench.run_benchmarks(["b"], as_json=True)
    said = capsys.readouterr()
    (row,) = json.loads(said.out)
    assert (row["benchmark"], row["n"], row["seconds"]) == ("b", 2, 0.123456)
    assert said.err.startswith("benchmark b  n 2")
    with pytest.raises(UsageError, match=r"^no benchmark 'c'; there are a, b$"):
        bench.run_benchmarks(["a", "c"], as_json=False)


def test_bytes_that_are_no_text_in_a_field_that_nothing_reads_are_one_line(call, out, tmp_path):
    """As a string whose value is skipped, they pass where claims are checked."""
    shutil.copytree(out / "composition", tmp_path / "composition")
    path = tmp_path / "composition" / "claims.json"
    path.write_bytes(path.read_bytes().replace(b'"id"', b'"\xed\x28": "\xed\x28", "id"', 1))
    status, _, said = call("claims", str(tmp_path), "--json")
    assert (status, said) == (2, f"recombine: {path}: is not valid JSON\n")
