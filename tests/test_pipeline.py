"""Plans, the executor and workers: what is missing is run once, wherever and however often it is
interrupted."""

import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

import pytest

import recombine as rc
from recombine.config import UsageError, config
from recombine.pipeline.executor import execute, is_finished, obtain
from recombine.pipeline.job import (
    Job,
    Task,
    Work,
    ancestors,
    described,
    digest_of,
    folder_of,
    seed_by_seed,
)
from recombine.pipeline.lease import LeaseLost
from recombine.pipeline.plan import (
    Command,
    StudyPlan,
    _jobs,
    first_seeds,
    make_plans,
    missing,
    ready,
    title_of,
    titles,
)
from recombine.pipeline.run import _by_workers, _suitable, _sweep_plans, collect, run_studies
from recombine.pipeline.worker import (
    Failure,
    TaskFailed,
    _failure_noted,
    costs_by_kind,
    is_expected,
    known_failures,
    raise_first,
    run_tasks,
)
from recombine.pipeline.worker import main as worker
from recombine.rng import seeded
from recombine.runtime import Pace, Runtime, in_words
from recombine.store import RunFolder
from recombine.studies import find
from recombine.train.fit import Diverged

QUIET = Runtime(quiet=True)
ROOT = Path(__file__).parents[1]
DONE: list[str] = []
"""What ran in this process, in order."""


@config("test/root")
class Root(Task):
    weights = True
    name: str = "root"
    value: float = 1.0

    def run(self, work):
        import torch

        DONE.append(self.name)
        work.folder.save_model({"value": torch.tensor([self.value])}, 0)
        return [{"kind": "root", "step": 0, "value": self.value}]

    def open(self, work):
        return float(work.folder.load_model()["value"])


@config("test/leaf")
class Leaf(Task):
    name: str
    root: Root = Root()
    cost_of: float = 1.0

    @property
    def cost(self):
        return self.cost_of

    def parents(self):
        return (self.root,)

    def run(self, work):
        DONE.append(self.name)
        return [{"kind": "leaf", "step": 0, "twice": 2 * work.open(self.root)}]


@config("test/broken")
class Broken(Task):
    name: str = "broken"

    def run(self, work):
        raise UsageError("this cannot be done")


@config("test/odd-rows")
class OddRows(Task):
    case: str

    def run(self, work):
        import torch

        whole = {"kind": "odd", "step": 0}
        return {
            "no kind": [{"step": 0}],
            "no row": [whole, 7],
            "tensor": [whole | {"loss": torch.tensor(1.0)}],
        }[self.case]


@config("test/child-of-broken")
class ChildOfBroken(Task):
    def parents(self):
        return (Broken(),)

    def run(self, work):
        raise AssertionError("its parent failed")


@config("test/ring")
class Ring(Task):
    n: int = 0

    def parents(self):
        return (Ring((self.n + 1) % 3),)

    def run(self, work):
        return []


@pytest.fixture(autouse=True)
def _nothing_done():
    DONE.clear()


def test_parents_run_first_and_once(tmp_path):
    leaves = [Leaf("a"), Leaf("b")]
    run_tasks(leaves, tmp_path, QUIET, {})
    assert DONE == ["root", "a", "b"]
    assert folder_of(leaves[0], tmp_path).rows() == [{"kind": "leaf", "step": 0, "twice": 2.0}]
    run_tasks(leaves, tmp_path, QUIET, {})
    assert DONE == ["root", "a", "b"], "nothing is missing"


def test_the_longest_ready_task_runs_first(tmp_path):
    tasks = [Leaf("short", cost_of=1.0), Leaf("long", cost_of=5.0)]
    assert ready(missing(tasks, tmp_path)) == [Root()]
    run_tasks(tasks, tmp_path, QUIET, {})
    assert DONE == ["root", "long", "short"]


def test_the_start_of_the_longest_chain_runs_first(tmp_path):
    one, other = Root("one"), Root("other")
    tasks = [Leaf("short", one, 1.0), Leaf("long", other, 5.0)]
    assert ready(missing(tasks, tmp_path)) == [other, one]
    run_tasks([one], tmp_path, QUIET, {})
    assert ready(missing(tasks, tmp_path)) == [other, Leaf("short", one, 1.0)]


def test_seeds_run_one_after_another_their_parents_included(tmp_path):
    """Whoever is cut off has whole seeds, though parents of later seeds start longer chains."""
    parents = [Root(f"root {seed}") for seed in range(2)]
    jobs = [
        Job.of(Leaf(f"{name} {seed}", parent, cost), seed=seed)
        for seed, parent in enumerate(parents)
        for name, cost in (("short", 1.0 + seed), ("long", 5.0 + seed))
    ]
    plan = StudyPlan(None, None, (*jobs[2:], *jobs[:2]))
    run_tasks(plan.tasks, tmp_path, QUIET, {}, seeds=first_seeds([plan]))
    assert DONE == ["root 0", "long 0", "short 0", "root 1", "long 1", "short 1"]


def test_what_several_seeds_need_belongs_to_the_first_of_them():
    shared = Root("shared")
    jobs = [Job.of(Leaf(str(seed), shared), seed=seed) for seed in (3, 1, 2)]
    assert first_seeds([StudyPlan(None, None, tuple(jobs))])[shared] == 1
    assert first_seeds([StudyPlan(None, None, (*jobs, Job.of(shared)))])[shared] == 0


def test_a_finished_child_needs_no_weights_of_its_parent_but_an_unfinished_one_does(tmp_path):
    run_tasks([Leaf("a")], tmp_path, QUIET, {})
    (folder_of(Root(), tmp_path).path / "model.safetensors").unlink()
    assert missing([Leaf("a"), Root()], tmp_path) == []
    assert missing([Leaf("a"), Leaf("b")], tmp_path) == [Root(), Leaf("b")]
    run_tasks([Leaf("a"), Leaf("b")], tmp_path, QUIET, {})
    assert DONE == ["root", "a", "root", "b"], "the weights came out the same, so a stands"


def test_a_child_made_with_other_weights_is_made_again(tmp_path):
    import torch

    run_tasks([Leaf("a")], tmp_path, QUIET, {})
    root = folder_of(Root(), tmp_path)
    root.save_model({"value": torch.tensor([7.0])}, 0)
    root.finish({})
    assert not is_finished(Leaf("a"), tmp_path)


def test_names_depend_on_parents():
    assert digest_of(Leaf("a", Root(value=1.0))) != digest_of(Leaf("a", Root(value=2.0)))
    assert digest_of(Leaf("a")) == digest_of(Leaf("a", Root()))


def test_a_cycle_is_one_line():
    with pytest.raises(UsageError, match="the plan has a cycle: test/ring -> test/ring") as error:
        list(ancestors([Ring()]))
    assert "\n" not in str(error.value)


def test_a_failure_leaves_the_rest_to_be_done_and_is_reported_at_the_end(tmp_path):
    with pytest.raises(UsageError, match="this cannot be done"):
        run_tasks([Broken(), ChildOfBroken(), Leaf("a")], tmp_path, QUIET, {})
    assert DONE == ["root", "a"]


@pytest.mark.parametrize(("case", "says"), [
    ("no kind", "a row without a 'kind': {'step': 0}"), ("no row", "a row without a 'kind': 7"),
    ("tensor", "Object of type Tensor is not JSON serializable in {"),
])  # fmt: skip
def test_rows_that_no_study_can_collect_are_one_line_and_leave_the_run_undone(tmp_path, case, says):
    task = OddRows(case)
    with pytest.raises(UsageError, match=re.escape(f"OddRows.run: {says}")):
        run_tasks([task], tmp_path, QUIET, {})
    assert not is_finished(task, tmp_path)


def test_rows_may_be_yielded_one_by_one(tmp_path):
    given = [{"kind": "odd", "step": i} for i in range(3)]
    with patch.object(OddRows, "run", lambda self, work: iter(given)):
        run_tasks([OddRows("yielded")], tmp_path, QUIET, {})
    assert folder_of(OddRows("yielded"), tmp_path).rows() == given


def test_who_waits_for_other_processes_says_so_once(tmp_path, monkeypatch):
    """And goes on when the others are done."""
    said, turn = [], iter(range(200))
    monkeypatch.setattr("recombine.pipeline.worker.execute", lambda *how: next(turn) == 150)
    monkeypatch.setattr("recombine.pipeline.worker.time.sleep", lambda seconds: None)
    monkeypatch.setattr(
        "recombine.pipeline.worker.missing", lambda tasks, out: tasks if next(turn) < 150 else []
    )
    monkeypatch.setattr(Runtime, "log", lambda self, text: said.append(text))
    run_tasks([Root()], tmp_path, QUIET, {})
    assert said == ["waiting for runs that other processes are working on"]


def test_a_task_in_other_hands_is_left_alone(tmp_path):
    (tmp_path / ".leases").mkdir()
    holder = {"host": "elsewhere", "boot": "x", "pid": 1, "started": "1", "token": "t"}
    (tmp_path / ".leases" / f"{digest_of(Root())}.1").write_text(json.dumps(holder))
    assert not execute(Root(), tmp_path, QUIET)
    assert DONE == []


def test_a_lease_of_a_dead_worker_is_taken_over(tmp_path):
    dead = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    from recombine.pipeline.lease import whoami

    (tmp_path / ".leases").mkdir()
    holder = {**whoami(), "pid": int(dead.stdout), "started": "5", "token": "t"}
    (tmp_path / ".leases" / f"{digest_of(Root())}.1").write_text(json.dumps(holder))
    assert execute(Root(), tmp_path, QUIET)
    assert DONE == ["root"]


def test_what_a_task_leaves_can_be_had_without_a_study(tmp_path):
    assert obtain(Root(value=3.0), tmp_path, QUIET) == 3.0
    assert obtain(Root(value=3.0), tmp_path, QUIET) == 3.0
    assert DONE == ["root"]


def test_a_config_says_what_a_run_was_made_from(tmp_path):
    run_tasks([Leaf("a")], tmp_path, QUIET, {})
    there = json.loads((folder_of(Leaf("a"), tmp_path).path / "config.json").read_text())
    assert there["config"]["type"] == "test/leaf"
    assert there["parents"] == [digest_of(Root())]
    done = folder_of(Leaf("a"), tmp_path).facts()
    assert done["parents"] == {digest_of(Root()): folder_of(Root(), tmp_path).weights}
    assert {"commit", "device", "torch", "seconds"} <= done.keys()


def test_a_run_made_before_a_field_was_there_is_still_known(tmp_path):
    run_tasks([Leaf("a")], tmp_path, QUIET, {})
    folder = folder_of(Leaf("a"), tmp_path)
    there = json.loads((folder.path / "config.json").read_text())
    del there["config"]["cost_of"]
    (folder.path / "config.json").write_text(json.dumps(there))
    folder.begin(described(Leaf("a")))
    there["config"]["name"] = "b"
    (folder.path / "config.json").write_text(json.dumps(there))
    with pytest.raises(UsageError, match="is not the config of run"):
        folder.begin(described(Leaf("a")))


# A study file of one's own, as the docs show it, on processes.


def documented() -> str:
    text = (ROOT / "docs" / "own-study.md").read_text()
    return re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]


@pytest.fixture
def study(tmp_path) -> Path:
    path = tmp_path / "ridge.py"
    path.write_text(documented())
    return path


def command(study: Path, out: Path, **changes) -> Command:
    return Command(
        **{
            "studies": (str(study),),
            "scale": "laptop",
            "seeds": 2,
            "device": "cpu",
            "out": str(out),
        }
        | changes
    )


def rows_of(out: Path) -> dict[str, bytes]:
    return {p.parent.name: p.read_bytes() for p in sorted(out.glob("runs/*/rows.jsonl"))}


def test_a_study_imports_what_lies_beside_it_and_has_a_name_of_its_own(study, tmp_path):
    (tmp_path / "lying_beside.py").write_text("NAME = 'length'\n")
    text = study.read_text()
    study.write_text(f"import lying_beside\n{text}")
    assert make_plans(command(study, tmp_path / "out"))[0].study.name == "ridge"
    other = tmp_path / "other.py"
    text = text.replace("ridge/", "other/").replace('    "ridge",', "    lying_beside.NAME,")
    other.write_text(f"import lying_beside\n{text}")
    with pytest.raises(UsageError, match="'length' is a study of recombine; choose another name"):
        make_plans(command(other, tmp_path / "out"))


@pytest.mark.slow
def test_the_documented_study_that_trains_runs(tmp_path):
    text = (ROOT / "docs" / "own-study.md").read_text()
    path = tmp_path / "batch.py"
    path.write_text(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[1])
    (folder,) = rc.run(str(path), scale="smoke", out=tmp_path / "out", device="cpu")
    (claim,) = json.loads((folder / "claims.json").read_text())
    assert claim["verdict"] == "smoke"
    assert set(rc.results(folder)["variant"].drop_nulls()) == {"4", "8"}
    assert (tmp_path / "out" / "index.html").is_file()


WITHOUT = "import sys; sys.modules['polars'] = None; from recombine.cli import main; main()"


@pytest.mark.slow
def test_the_documented_study_is_made_without_polars_and_assessed_elsewhere(study, tmp_path):
    assert len(documented().splitlines()) <= 65
    out, where = tmp_path / "out", {"env": os.environ | {"PYTHONPATH": str(ROOT)}, "text": True}
    arguments = ["run", str(study), "--seeds", "5", "--out", str(out), "--device", "cpu"]
    command = [sys.executable, "-c", WITHOUT, *arguments]
    made = subprocess.run(command, capture_output=True, check=False, **where)
    assert made.returncode == 0, made.stderr
    assert "polars is not installed" in made.stderr
    before = rows_of(out)
    assert len(before) == 10
    assert not (out / "ridge").exists()
    command = [sys.executable, "-m", "recombine", *arguments]
    assessed = subprocess.run(command, capture_output=True, check=False, **where)
    assert assessed.returncode == 0, assessed.stderr
    assert rows_of(out) == before
    claims = json.loads((out / "ridge" / "claims.json").read_text())
    assert [c["verdict"] for c in claims] == ["supported"]
    assert (out / "ridge" / "rows.parquet").is_file()


def test_workers_give_the_rows_of_one_process(study, tmp_path):
    for plan in run_studies(command(study, tmp_path / "one"), "local", False, QUIET):
        alone = collect(plan, tmp_path / "one")
    for plan in run_studies(command(study, tmp_path / "two", workers=2), "local", False, QUIET):
        spread = collect(plan, tmp_path / "two")
    assert spread == alone
    assert rows_of(tmp_path / "one") == rows_of(tmp_path / "two")
    assert not list(tmp_path.glob("t*/.*")), "neither leases nor plans are left"


def test_fresh_makes_the_runs_of_a_command_again_and_no_others(study, tmp_path):
    out = tmp_path / "out"
    list(run_studies(command(study, out), "local", False, QUIET))
    other = RunFolder(out, "0123456789abcdef")
    other.begin({})
    before = {p: p.stat().st_mtime_ns for p in out.glob("runs/*/config.json")}
    list(run_studies(command(study, out), "local", True, QUIET))
    after = {p: p.stat().st_mtime_ns for p in out.glob("runs/*/config.json")}
    assert before.keys() == after.keys()
    assert {p.parent.name for p in after if after[p] == before[p]} == {other.digest}


def test_fresh_erases_nothing_while_another_command_works_on_a_run(study, tmp_path, monkeypatch):
    monkeypatch.setattr("recombine.pipeline.run.WAIT", 0.1)
    out = tmp_path / "out"
    (plan,) = run_studies(command(study, out), "local", False, QUIET)
    before = {p: p.read_bytes() for p in out.glob("runs/*/*") if p.is_file()}
    last = digest_of(list(ancestors(plan.tasks))[-1])
    (out / ".leases").mkdir()
    holder = {"host": "elsewhere", "boot": "x", "pid": 1, "started": "1", "token": "t"}
    (out / ".leases" / f"{last}.1").write_text(json.dumps(holder))
    with pytest.raises(UsageError, match=f"another command is working on run {last}"):
        list(run_studies(command(study, out), "local", True, QUIET))
    assert {p: p.read_bytes() for p in out.glob("runs/*/*") if p.is_file()} == before


@pytest.mark.slow
def test_two_commands_at_once_share_the_work(study, tmp_path):
    out = tmp_path / "out"
    arguments = [
        sys.executable,
        "-m",
        "recombine",
        "run",
        str(study),
        "--seeds",
        "4",
        "--out",
        str(out),
    ]
    processes = [
        subprocess.Popen(
            arguments, stderr=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}
        )
        for _ in range(2)
    ]
    for process in processes:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
    assert len(rows_of(out)) == 8


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1 / 0", "line 1: ZeroDivisionError"),
        ("def broken(:", "SyntaxError"),
        ("x = 1", "defines no STUDY"),
        ("import nothing_of_this_name", "line 1: ModuleNotFoundError"),
    ],
)
def test_a_study_file_with_an_error_is_one_line(tmp_path, text, says):
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(UsageError, match=says) as error:
        make_plans(Command((str(path),)))
    assert "\n" not in str(error.value)


def test_a_misspelt_study_gets_a_suggestion():
    with pytest.raises(UsageError, match="did you mean objectives"):
        make_plans(Command(("objektives",)))
    with pytest.raises(UsageError, match="there is no such study file"):
        make_plans(Command(("nowhere.py",)))


def test_labels_are_columns_and_not_part_of_a_name():
    one, two = Job.of(Root(), variant="a", seed=1), Job.of(Root(), variant="b", seed=2)
    assert digest_of(one.task) == digest_of(two.task)
    assert (one.title, two.title) == ("a, seed 1", "b, seed 2")


class Clock:
    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr("recombine.runtime.time", made)
    return made


def test_the_time_left_is_that_of_the_whole_command(clock):
    """3 of 10 units in 30 seconds: a unit takes 10."""
    for workers, left in ((1, "70 s"), (2, "30 s")):
        pace = Pace(workers)
        pace.start("model", 2.0, {"model": 10.0})
        clock.now += 20
        pace.finish()
        pace.start("model", 2.0, {"model": 8.0})
        clock.now += 10
        assert pace.left(0.5) == f"about {left} left in all"
    assert [in_words(s) for s in (0.2, 80.0, 200.0, 7200.0)] == ["1 s", "80 s", "3 min", "2.0 h"]


def test_what_a_run_had_done_before_says_nothing_about_its_speed(clock):
    """Half was there; a quarter took 25 seconds, so a quarter is 25 seconds away."""
    pace = Pace()
    pace.start("model", 4.0, {"model": 4.0})
    pace.resumed = 0.5
    clock.now += 25
    assert pace.left(0.75) == "about 25 s left in all"


def test_a_slow_start_of_a_task_is_not_taken_for_its_speed(clock):
    """Probes took a second a unit; a model has taken 10 seconds for the first 2 of 100 units."""
    pace = Pace()
    pace.start("probe", 50.0, {"probe": 50.0, "model": 100.0})
    clock.now += 50
    pace.finish()
    pace.start("model", 100.0, {"model": 100.0})
    clock.now += 10
    assert 98 < seconds_of(pace.left(0.02)) < 2.5 * 98


def test_nothing_is_said_while_too_little_is_known(clock):
    pace = Pace()
    pace.start("model", 2.0, {"model": 10.0})
    clock.now += 60
    assert pace.left(0.0) == ""
    pace.start("model", 2.0, {"model": 10.0})
    clock.now += 4
    assert pace.left(0.5) == ""


@pytest.mark.parametrize("wrong", [0.5, 2.0])
def test_a_kind_whose_cost_is_wrong_is_measured(clock, wrong):
    """Models take `wrong` times their cost. From a tenth of the way through the first of them on,
    the time left is right to a factor of 1.5."""
    pace, tasks = Pace(), [("probe", 50.0)] * 2 + [("model", 100.0)] * 8
    seconds = [cost * (wrong if kind == "model" else 1.0) for kind, cost in tasks]
    for i, (kind, cost) in enumerate(tasks):
        pace.start(kind, cost, costs_by_kind_of(tasks[i:]))
        for share in (0.1, 0.5, 0.9):
            left = sum(seconds[i:]) - share * seconds[i]
            clock.now += share * seconds[i]
            if kind == "model":
                assert left / 1.5 < seconds_of(pace.left(share)) < left * 1.5
            clock.now -= share * seconds[i]
        clock.now += seconds[i]
        pace.finish()


def costs_by_kind_of(tasks):
    return {kind: sum(c for k, c in tasks if k == kind) for kind in {k for k, _ in tasks}}


def seconds_of(text):
    number, unit = re.match(r"about ([\d.]+) (s|min|h) left in all", text).groups()
    return float(number) * {"s": 1, "min": 60, "h": 3600}[unit]


def test_costs_of_tasks_are_in_one_unit():
    """Of the exact studies, which take about 40 and 80 seconds on one core at laptop scale, and of a
    U-Net that takes three minutes: hundredths of a second, within a factor of two."""
    for name, seconds in (("local-scores", 43), ("swing-by", 73), ("two-models", 430)):
        study = find(name)
        jobs = study.jobs(study.settings("laptop"), 1)
        cost = sum(task.cost for task in ancestors(job.task for job in jobs))
        assert 0.5 < cost / (100 * seconds) < 2, name


def test_progress_names_the_study_and_the_run_in_words(study, tmp_path):
    (plan,) = make_plans(command(study, tmp_path))
    named = titles([plan])
    assert set(ancestors(plan.tasks)) == set(named)
    assert all(title.startswith(f"{plan.study.name}: ") for title in named.values())
    assert not any(digest_of(task)[:6] in title for task, title in named.items())


def test_plans_of_this_command_and_of_dead_ones_are_swept_and_no_others(tmp_path):
    here = f"local.{socket.gethostname()}"
    with subprocess.Popen(["true"]) as ended:
        pass
    gone = [f"{here}.{os.getpid()}.1", f"{here}.{ended.pid}.1"]
    kept = [f"{here}.{os.getppid()}.1", f"local.elsewhere.{os.getpid()}.1", "slurm.1"]
    for name in (*gone, *kept):
        (tmp_path / ".plans" / name).mkdir(parents=True)
    _sweep_plans(tmp_path)
    assert sorted(p.name for p in (tmp_path / ".plans").iterdir()) == sorted(kept)


@pytest.mark.parametrize(
    ("settings", "written"),
    [({"label": "[1] "}, "[1] a line\n"), ({"rank": 1}, ""), ({"quiet": True}, "")],
)
def test_the_first_process_alone_writes_lines(capsys, settings, written):
    Runtime(**settings).log("a line")
    assert capsys.readouterr().err == written


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "1 s"),
        (1.6, "2 s"),
        (89.4, "89 s"),
        (90.0, "2 min"),
        (5399.0, "90 min"),
        (5400.0, "1.5 h"),
        (9000.0, "2.5 h"),
    ],
)
def test_a_time_is_said_as_exactly_as_a_forecast_is(seconds, words):
    assert in_words(seconds) == words


@pytest.mark.parametrize(
    ("workers", "after", "costs", "left"),
    [
        (1, 0.0, {"model": 10.0}, "90 s"),
        (1, 2.0, {"model": 10.0}, "2 min"),
        (1, 0.5, {"model": 5.0}, "45 s"),
        (1, 0.0, {"model": 2.0, "probe": 3.0}, "40 s"),
        (2, 0.0, {"model": 10.0}, "40 s"),
        (4, 0.0, {"model": 2.0}, "10 s"),
    ],
)
def test_the_time_left_counts_other_tasks_other_workers_and_what_comes_after(
    clock, workers, after, costs, left
):
    """Half of a task of cost 2 took 10 seconds, so that a unit takes 10."""
    pace = Pace(workers, after)
    pace.start("model", 2.0, costs)
    clock.now += 10
    assert pace.left(0.5) == f"about {left.replace('90 s', '2 min')} left in all"


def test_the_speed_of_a_task_that_has_just_begun_is_mixed_with_the_average(clock):
    """A unit of probes took 1 second. The model's first 2 of 100 units took 10: with 5 units at the
    average pace of 60 / 52 that is (10 + 5.77) / 7 a unit, for 98 units."""
    pace = Pace()
    pace.start("probe", 50.0, {"probe": 50.0, "model": 100.0})
    clock.now += 50
    pace.finish()
    assert pace.measured == {"probe": (50.0, 50.0)}
    pace.start("model", 100.0, {"model": 100.0})
    clock.now += 10
    expected = 98 * (10 + 5 * 60 / 52) / 7
    assert pace.left(0.02) == f"about {expected / 60:.0f} min left in all"
    clock.now += 50
    expected = 10 * (60 + 5 * 110 / 140) / 95
    assert pace.left(0.9) == f"about {expected:.0f} s left in all"


def test_five_seconds_are_enough_to_say_something(clock):
    for seconds, said in ((4.9, ""), (5.0, "about 5 s left in all")):
        pace = Pace()
        pace.start("model", 2.0, {"model": 2.0})
        clock.now += seconds
        assert pace.left(0.5) == said


def test_plain_lines_come_now_and_then_and_at_the_end(clock, capsys):
    with Runtime(label="[2] ").progress("probe", 100) as line:
        for step, after in ((1, 3.0), (2, 7.0), (3, 0.5), (4, 10.0), (50, 10.5), (100, 0.1)):
            clock.now += after
            line(step, f"loss {step}")
    said = [text.split("  ")[:3] for text in capsys.readouterr().err.splitlines()]
    assert said == [
        ["[2] probe", "3/100", "loss 3"],
        ["[2] probe", "50/100", "loss 50"],
        ["[2] probe", "100/100", "loss 100"],
    ]


def test_progress_says_how_much_was_there_before(capsys):
    for runtime in (Runtime(quiet=True), Runtime(rank=1), Runtime()):
        with runtime.progress("probe", 8, done=2) as line:
            line(3, "a")
            assert runtime.pace.resumed == 0.25
            line(8, "b")
    assert capsys.readouterr().err == "probe  8/8  b\n"
    with Runtime(quiet=True).progress("nothing", 0) as line:
        line(0, "")


def test_a_bar_shows_what_is_done_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with Runtime().progress("probe", 8, done=2) as bar:
        bar(5, "loss 0.5")
    said = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
    assert "probe" in said
    assert "5/8" in said
    assert "loss 0.5" in said
    assert terminal.getvalue().endswith("\x1b[1A\x1b[2K"), "it is gone at the end"
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with Runtime(label="[1] ").progress("probe", 8) as line:
        line(8, "")
    assert terminal.getvalue() == "[1] probe  8/8\n", "no bar where several write"


def test_tensorboard_gets_the_numbers_of_a_row_by_their_step(monkeypatch):
    written = []

    class Writer:
        def add_scalar(self, *what):
            written.append(what)

    monkeypatch.setattr("recombine.runtime._writers", {"there/abc": Writer(), "gone/abc": None})
    row = {"kind": "train", "step": 7, "loss": 0.5, "rate": 0.25}
    for folder in ("there", "gone", ""):
        Runtime(tensorboard=folder).board("abc", row)
    assert written == [("loss", 0.5, 7), ("rate", 0.25, 7)]


def test_samples_are_shared_by_processes_and_each_draws_its_own(monkeypatch):
    assert [Runtime(processes=n).share(64) for n in (1, 2, 3)] == [64, 32, 21]
    alone, first, second = (
        Runtime(rank=rank, processes=n).stream(3, "noise").initial_seed()
        for rank, n in ((0, 1), (0, 2), (1, 2))
    )
    assert len({alone, first, second}) == 3
    assert alone == seeded(3, "noise").initial_seed()
    assert second == seeded(3, "noise", "rank", 1, 2).initial_seed()
    assert [Runtime().agreed(answer) for answer in (True, False)] == [True, False]


def test_a_runtime_says_what_it_is(monkeypatch):
    monkeypatch.setenv("RECOMBINE_COMMIT", "abc")
    facts = Runtime.find("cpu", quiet=True).facts()
    assert list(facts) == ["commit", "device", "torch", "python", "processes"]
    assert facts["commit"] == "abc"
    assert facts["device"].endswith(" CPU")
    assert facts["processes"] == 1
    made = Runtime.find("cpu")
    assert (made.rank, made.compile, made.graphs, made.keep_state) == (0, "", False, True)
    assert (made.save_seconds, made.quiet, made.label, made.tensorboard) == (60.0, False, "", "")


def test_a_plan_of_another_version_is_one_line(tmp_path):
    path = tmp_path / "plan.json"
    for text in ('{"studies": [], "unknown": 1}', "[1]", "3"):
        path.write_text(text)
        with pytest.raises(UsageError, match=r"plan.json is not a plan of this version$"):
            Command.read(path)
    written = Command(("a", "b"), "smoke", 2, ("x=1",), first_seed=3)
    assert Command.read(written.write(path)) == written
    assert (written.last_seed, Command(("a",)).last_seed) == (5, 1)


def test_a_task_that_leaves_nothing_cannot_be_opened(tmp_path):
    with pytest.raises(NotImplementedError, match=r"^test/broken leaves nothing to open$"):
        Broken().open(Work(Broken(), tmp_path, QUIET))


def test_rows_of_a_run_that_is_not_finished_are_not_collected(tmp_path):
    plan = StudyPlan(None, None, (Job.of(Root(), variant="a", seed=1),))
    says = f"^run {digest_of(Root())} \\(a, seed 1\\) is not finished$"
    with pytest.raises(UsageError, match=says):
        collect(plan, tmp_path)
    execute(Root(), tmp_path, QUIET)
    about = {"variant": "a", "seed": 1, "run": digest_of(Root())}
    assert collect(plan, tmp_path) == [{"kind": "root", "step": 0, "value": 1.0, **about}]
    assert collect(plan, tmp_path, keep=lambda row: row["value"] > 1) == []


def test_an_error_of_a_study_is_passed_on_where_no_setting_was_changed(tmp_path):
    class Wrong:
        name = "wrong"

        def jobs(self, settings, seeds):
            raise ValueError("no such thing")

    with pytest.raises(UsageError, match=r"^wrong with a=1, b=2: no such thing$"):
        _jobs(Wrong(), None, 1, ("a=1", "b=2"))
    with pytest.raises(ValueError, match=r"^no such thing$"):
        _jobs(Wrong(), None, 1, ())


def test_jobs_go_seed_by_seed_and_those_without_one_come_first():
    mixed = [Job.of(Root("b"), seed=1), Job.of(Root("any")), Job.of(Root("a"), seed=0)]
    assert [job.task.name for job in seed_by_seed(mixed)] == ["any", "a", "b"]


def test_tasks_are_called_by_what_they_are_where_no_study_names_them():
    assert title_of(Root(), {Root(): "study: a"}) == "study: a"
    assert title_of(Root(), {}) == f"run {digest_of(Root())[:6]}"


def test_costs_are_summed_by_kind():
    assert costs_by_kind([Leaf("a", cost_of=2.5), Leaf("b", cost_of=4.0), Root()]) == {"run": 7.5}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (UsageError("bad"), True),
        (Diverged("nan"), True),
        (MemoryError(), True),
        (RuntimeError("cannot allocate memory"), True),
        (RuntimeError("CUDA error: out of memory"), True),
        (RuntimeError("a bug"), False),
        (ValueError("bad"), False),
    ],
)
def test_what_one_line_says_is_expected_and_a_bug_is_not(error, expected, tmp_path, capsys):
    assert is_expected(error) is expected
    failed = {}
    noting = _failure_noted(Root(), "root", Runtime(), tmp_path / "failed", failed)
    with nullcontext() if expected else pytest.raises(type(error)), noting:
        raise error
    refused = isinstance(error, UsageError)
    line = f"root: {error}"
    noted = {digest_of(Root()): Failure(line, refused)} if expected else {}
    assert failed == known_failures(tmp_path / "failed") == noted
    assert capsys.readouterr().err == (f"{line}\n" if expected else "")
    if expected:
        with pytest.raises(UsageError if refused else TaskFailed, match=f"^{line}$"):
            raise_first(failed)


def test_a_lost_lease_is_said_and_is_no_failure(tmp_path, capsys):
    failed = {}
    with _failure_noted(Root(), "root", Runtime(), tmp_path / "failed", failed):
        raise LeaseLost("another worker took over abc")
    assert (failed, known_failures(tmp_path / "failed")) == ({}, {})
    assert capsys.readouterr().err == "root: another worker took over abc\n"


def test_a_worker_ends_with_a_status_and_one_line(tmp_path, monkeypatch, capsys):
    plan = Command(("nothing",), out=str(tmp_path)).write(tmp_path / "plan.json")
    before = signal.getsignal(signal.SIGTERM)

    def outcome(error: BaseException | None):
        def work(*given):
            assert given == (str(plan), 3)
            if error:
                raise error

        monkeypatch.setattr("recombine.pipeline.worker.run_worker", work)
        return worker([str(plan), "3"])

    try:
        assert outcome(None) == 0
        assert outcome(KeyboardInterrupt()) == 130
        assert outcome(TaskFailed("it\n failed")) == 1
        assert outcome(UsageError("bad")) == 1
    finally:
        signal.signal(signal.SIGTERM, before)
    assert capsys.readouterr().err == "[3] it failed\n[3] bad\n"


def test_torchrun_and_workers_exclude_each_other(tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match=r"^workers give each run to one process, torchrun gives "):
        list(_by_workers(Command(("x",), out=str(tmp_path), workers=2), [], "local", QUIET))


def test_what_workers_leave_undone_is_counted(tmp_path, monkeypatch):
    class Idle:
        def run(self, plan, workers, log):
            started.append((Command.read(plan).workers, workers))

    started = []
    monkeypatch.setattr("recombine.pipeline.engines.find_engine", lambda name: Idle())
    jobs = (Job.of(Leaf("a")), Job.of(Leaf("b")))
    plans = [StudyPlan(None, None, jobs)]
    says = "^3 tasks were not done; the same command goes on from here$"
    for workers, used in ((2, 2), (9, 3)):
        command = Command(("x",), out=str(tmp_path), workers=workers)
        with pytest.raises(TaskFailed, match=says):
            list(_by_workers(command, plans, "local", QUIET))
        assert started.pop() == (workers, used)
    assert not list((tmp_path / ".plans").iterdir())
    for name in "ab":
        obtain_rows(Leaf(name), tmp_path)
    assert list(_by_workers(command, plans, "local", QUIET)) == plans
    assert not started, "nothing is left to do"


def obtain_rows(task: Task, out: Path) -> None:
    run_tasks([task], out, QUIET, {})


@pytest.mark.parametrize(
    ("cost", "scale", "cores", "expected"),
    [
        (5000.5, "laptop", 2, 2),
        (4999.0, "laptop", 2, 1),
        (5000.5, "laptop", 1, 1),
        (5000.5, "full", 2, 1),
    ],
)
def test_a_second_worker_is_started_for_long_work_on_two_cores(
    cost, scale, cores, expected, tmp_path, monkeypatch
):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)))
    plans = [StudyPlan(None, None, (Job.of(Leaf("a", cost_of=cost - 1)),))]
    command = Command(("x",), scale, out=str(tmp_path))
    assert _suitable(command, plans, QUIET) == expected
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert _suitable(command, plans, QUIET) == 1
