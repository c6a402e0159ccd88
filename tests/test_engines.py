"""The same plan on every engine, with real clusters: a worker is killed on the way, and the rows
are those of one process, byte for byte. Whatever is missing is said in one line."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import pytest
from clusters import ray_cluster, ray_missing, slurm_cluster, slurm_missing

from recombine.config import UsageError
from recombine.pipeline.engines import (
    EngineError,
    Outcomes,
    find_engine,
    local,
    need,
    ray,
    settings_from,
    slurm,
)
from recombine.pipeline.engines.ray import gpu_share
from recombine.pipeline.engines.slurm import SlurmSettings
from recombine.pipeline.plan import Command
from recombine.pipeline.worker import run_tasks
from recombine.runtime import Runtime
from recombine.store import write_atomic, write_json
from recombine.studies import find

STUDY = '''
"""Six tasks of half a second, two of which need another. They note who begins what, and resume.
With "processes.txt" in the results folder they are slow, and wait for that many processes. With
"fault.txt" there, one of them fails once as with a broken GPU."""

import os
import time
from contextlib import suppress
from pathlib import Path

from recombine.config import config
from recombine.pipeline.job import Job, Task, digest_of
from recombine.store import write_atomic
from recombine.studies.study import Study


@config("test.engines.settings")
class Settings:
    steps: int = 8


@config("test.engines.steps")
class Steps(Task):
    number: int
    steps: int
    after: tuple[int, ...] = ()

    def parents(self):
        return tuple(Steps(number, self.steps) for number in self.after)

    def run(self, work):
        saved = work.folder.path / "saved.txt"
        done = saved.read_text().split() if saved.exists() else []
        wait_for_others(work.out, f"{os.getpid()} {digest_of(self)} {len(done)}")
        for step in range(len(done), self.steps):
            time.sleep(0.05 if (work.out / "processes.txt").exists() else 0.0)
            done.append(f"{self.number * 0.1 + step:.17g}")
            write_atomic(saved, " ".join(done))
            with suppress(FileNotFoundError):
                (work.out / "fault.txt").unlink()
                raise RuntimeError("CUDA error: an illegal memory access\\nmore of it")
        return [{"kind": "step", "step": i, "value": float(v)} for i, v in enumerate(done)]


def wait_for_others(out: Path, line: str) -> None:
    """Note the start, and wait until as many processes as wanted have begun something."""
    with open(out / "starts.txt", "a") as file:
        file.write(line + "\\n")
    wanted, until = out / "processes.txt", time.monotonic() + 120
    while wanted.exists() and len(processes(out)) < int(wanted.read_text()):
        if time.monotonic() > until:
            raise RuntimeError("the other workers did not come")
        time.sleep(0.02)


def processes(out: Path) -> set[str]:
    return {line.split()[0] for line in (out / "starts.txt").read_text().splitlines()}


def jobs(settings: Settings, seeds: int) -> list[Job]:
    tasks = [Steps(number, settings.steps, (0,) * (number > 3)) for number in range(6)]
    return [Job.of(task, variant=str(task.number), seed=0) for task in tasks]


STUDY = Study(
    name="steps",
    question="",
    paper="",
    about="",
    cost={},
    settings=lambda scale: Settings(),
    jobs=jobs,
    claims=(),
    figures=lambda rows, folder: [],
)
'''
WORKERS = 2
DRIVER = """
import sys
from pathlib import Path
from recombine.pipeline.engines import find_engine, slurm

name, plan, workers = sys.argv[1:]
slurm.LATE = 0.5  # this file system is fast
find_engine(name).run(Path(plan), int(workers), lambda line: print(line, flush=True))
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("study") / "steps.py"
    path.write_text(STUDY)
    return str(path)


def plan(study: str, out: Path, *changes: str) -> Path:
    """A plan as `recombine run` writes it. Its tasks wait until all workers are there."""
    want(out, WORKERS)
    command = Command((study,), "smoke", 1, changes, "cpu", str(out), WORKERS)
    return command.write(out / ".plans" / "test" / "plan.json")


def want(out: Path, processes: int) -> None:
    write_atomic(out / "processes.txt", str(processes))


def rows(out: Path) -> dict[str, bytes]:
    """The rows of every finished run, byte for byte."""
    folders = [path.parent for path in out.glob("runs/*/done.json")]
    return {folder.name: (folder / "rows.jsonl").read_bytes() for folder in folders}


def starts(out: Path) -> list[tuple[int, str, int]]:
    """Who began which run at which step: process, digest, step."""
    path = out / "starts.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(int(pid), digest, int(step)) for pid, digest, step in map(str.split, lines)]


@pytest.fixture(scope="module")
def expected(study, tmp_path_factory) -> dict[str, bytes]:
    """The rows that one process gets."""
    return in_one_process(study, tmp_path_factory.mktemp("one"))


def in_one_process(study: str, out: Path) -> dict[str, bytes]:
    """The rows after all that is missing was done here, fast."""
    (out / "processes.txt").unlink(missing_ok=True)
    chosen = find(study)
    jobs = chosen.jobs(chosen.settings("smoke"), 1)
    run_tasks([job.task for job in jobs], out, Runtime(quiet=True), {})
    return rows(out)


@pytest.fixture(scope="module")
def clusters():
    """Each cluster's variables by its name; it is started when it is first needed."""
    missing = {"slurm": slurm_missing, "ray": ray_missing}
    cluster = {"slurm": slurm_cluster, "ray": ray_cluster}
    with ExitStack() as stack:

        @cache
        def start(name: str) -> dict[str, str]:
            if why := missing[name]():
                pytest.skip(why)
            return stack.enter_context(cluster[name]())

        yield start


@pytest.fixture
def use(clusters, monkeypatch) -> Callable:
    """What starts an engine by its name, with its cluster."""

    def engine(name: str):
        for variable, value in ({} if name == "local" else clusters(name)).items():
            monkeypatch.setenv(variable, value)
        return partial(drive, name)

    return engine


def drive(engine: str, plan: Path) -> subprocess.Popen:
    """An engine at work in a process of its own, as the command line is one."""
    command = [sys.executable, "-c", DRIVER, engine, str(plan), str(WORKERS)]
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, **both)


def said_by(driver: subprocess.Popen, ends: int = 0) -> list[str]:
    """What it printed, once it has ended as it should."""
    out, errors = driver.communicate(timeout=200)
    assert driver.returncode == ends, out + errors
    return out.splitlines()


def when_both_work(out: Path, driver: subprocess.Popen) -> int:
    """Waits until both workers are there and one is in the middle of a run; its process id."""
    until = time.monotonic() + 120
    while time.monotonic() < until and driver.poll() is None:
        busy = [pid for pid, digest, _ in starts(out) if 3 <= saved(out, digest) <= 5]
        if busy and len({pid for pid, *_ in starts(out)}) == WORKERS:
            return busy[0]
        time.sleep(0.02)
    raise AssertionError(said_by(driver))


def saved(out: Path, digest: str) -> int:
    """How many of its eight steps a run has saved."""
    path = out / "runs" / digest / "saved.txt"
    return len(path.read_text().split()) if path.exists() else 0


@pytest.mark.cluster
@pytest.mark.parametrize("name", ["local", "slurm", "ray"])
def test_with_a_worker_killed_the_rows_are_the_same(name, use, study, expected, tmp_path):
    driver = use(name)(plan(study, tmp_path))
    worker = when_both_work(tmp_path, driver)
    want(tmp_path, WORKERS + 1)  # tasks wait until another process has taken its place
    os.kill(worker, signal.SIGKILL)
    said = said_by(driver)
    assert rows(tmp_path) == expected
    begun = Counter(digest for _, digest, _ in starts(tmp_path))
    assert sorted(begun.values()) == [1] * 5 + [2], "only the killed run is begun again"
    assert max(step for *_, step in starts(tmp_path)) >= 2, "it is resumed, not started over"
    assert sum("is replaced" in line for line in said) == 1, said
    assert not list(tmp_path.glob(".leases/*")), "leases are given back"


@pytest.mark.cluster
@pytest.mark.parametrize("name", ["local", "slurm", "ray"])
def test_a_worker_whose_gpu_fails_is_replaced(name, use, study, expected, tmp_path):
    (tmp_path / "fault.txt").touch()
    said = said_by(use(name)(plan(study, tmp_path)))
    assert rows(tmp_path) == expected
    begun = starts(tmp_path)
    assert sorted(Counter(digest for _, digest, _ in begun).values()) == [1] * 5 + [2]
    assert max(step for *_, step in begun) == 1, "it is resumed, not started over"
    assert sum("is replaced" in line for line in said) == 1, said
    assert not any("Traceback" in line for line in said)


@pytest.mark.parametrize("gpu", [True, False])
def test_a_worker_whose_gpu_failed_is_replaced_later_each_time(gpu, monkeypatch, tmp_path):
    """Three times, 2, 8 and 32 seconds after its end; one that was killed at once."""
    now, begun, said = [100.0], [], []

    class Ended(subprocess.Popen):
        def __init__(self, status: int):
            self.returncode = status

        def poll(self) -> int:
            return self.returncode

        def __del__(self) -> None:
            """There is no process."""

    status = local.GPU_FAILED if gpu else -signal.SIGKILL
    monkeypatch.setattr(local, "start", lambda *_: begun.append(now[0]) or Ended(status))
    monkeypatch.setattr(local.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(local.time, "sleep", lambda _: now.__setitem__(0, now[0] + 1))
    with pytest.raises(EngineError, match="worker 0 died 4 times"):
        local.LocalEngine()._watch(tmp_path / "plan.json", {0: Ended(status)}, said.append)
    gaps = [b - a for a, b in zip([100.0, *begun], begun, strict=False)]
    assert gaps == pytest.approx([2, 8, 32] if gpu else [1, 1, 1], abs=1)
    assert len(said) == 3


@pytest.mark.cluster
@pytest.mark.parametrize("name", ["slurm", "ray"])
def test_ctrl_c_stops_the_workers_and_the_runs_go_on_later(name, use, study, expected, tmp_path):
    driver = use(name)(plan(study, tmp_path))
    when_both_work(tmp_path, driver)
    driver.send_signal(signal.SIGINT)
    said_by(driver, ends=-signal.SIGINT)
    before = starts(tmp_path)
    until = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid, *_ in before):
        assert time.monotonic() < until, "workers are left"
        time.sleep(0.05)
    kept = {digest: saved(tmp_path, digest) for _, digest, _ in before}
    assert max(kept.values()) >= 1
    assert in_one_process(study, tmp_path) == expected
    assert all(step == kept.get(d, 0) for _, d, step in starts(tmp_path)[len(before) :])


@pytest.mark.cluster
def test_a_slurm_array_shares_the_work_evenly(use, study, expected, tmp_path):
    said_by(use("slurm")(plan(study, tmp_path)))
    assert rows(tmp_path) == expected
    shares = Counter(pid for pid, *_ in starts(tmp_path))
    assert sorted(shares.values()) in ([3, 3], [2, 4])


def one_line(engine: str, tmp_path: Path) -> str:
    """What an engine says that cannot run."""
    with pytest.raises(UsageError) as raised:
        find_engine(engine).run(tmp_path / "plan.json", 1, print)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_an_unknown_engine_is_refused_with_those_there_are(tmp_path):
    said = one_line("slurn", tmp_path)
    assert "not one of local, slurm, ray" in said
    assert "did you mean slurm?" in said


@pytest.mark.parametrize(("engine", "package"), [("slurm", "submitit"), ("ray", "ray")])
def test_a_missing_package_is_named_with_its_extra(engine, package, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    assert f"pip install -e '.[{engine}]'" in one_line(engine, tmp_path)


def test_engines_are_imported_only_when_chosen():
    loaded = "sorted({'ray', 'submitit', 'torch'} & set(sys.modules))"
    code = f"import sys, recombine.pipeline.engines; print({loaded})"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_without_slurm_it_says_so(tmp_path, monkeypatch):
    pytest.importorskip("submitit")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "sbatch is not on the PATH" in one_line("slurm", tmp_path)


@pytest.mark.cluster
def test_a_slurm_whose_controller_is_down_is_not_waited_for(clusters, tmp_path, monkeypatch):
    path = tmp_path / "slurm.conf"
    lines = Path(clusters("slurm")["SLURM_CONF"]).read_text().splitlines()
    down = [line if "SlurmctldPort" not in line else "SlurmctldPort=1" for line in lines]
    path.write_text("\n".join(down) + "\n")
    monkeypatch.setenv("SLURM_CONF", str(path))
    assert "controller is not reachable" in one_line("slurm", tmp_path)


@pytest.mark.cluster
def test_what_slurm_refuses_is_passed_on(use, tmp_path, monkeypatch):
    use("slurm")
    monkeypatch.setenv("RECOMBINE_SLURM_PARTITION", "nowhere")
    assert "invalid partition specified: nowhere" in one_line("slurm", tmp_path)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "nonsense", "auto"])
def test_a_ray_cluster_that_is_not_there_is_not_waited_for(address, tmp_path, monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_ADDRESS", address)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    assert f"RAY_ADDRESS={address}" in one_line("ray", tmp_path)


def test_settings_come_from_variables_of_the_environment(monkeypatch):
    monkeypatch.setenv("RECOMBINE_SLURM_GPUS", "2")
    monkeypatch.setenv("RECOMBINE_SLURM_MEMORY_GB", "1.5")
    settings = settings_from(SlurmSettings, "RECOMBINE_SLURM_")
    assert settings == SlurmSettings(gpus=2, memory_gb=1.5)
    assert settings.parameters()["gpus_per_node"] == 2


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("RECOMBINE_SLURM_CPUS", "many", "RECOMBINE_SLURM_CPUS=many: must be a whole number"),
        ("RECOMBINE_SLURM_PARTITON", "a", "did you mean RECOMBINE_SLURM_PARTITION?"),
    ],
)
def test_a_wrong_setting_is_refused(name, value, said, tmp_path, monkeypatch):
    monkeypatch.setenv(name, value)
    assert said in one_line("slurm", tmp_path)


def test_gpus_are_shared_so_that_all_workers_run_at_once():
    shares = [gpu_share(gpus, 6) for gpus in (0.0, 1.0, 4.0, 6.0, 8.0)]
    assert shares == [0.0, 0.1666, 0.5, 1.0, 1.0]


def test_a_worker_that_keeps_dying_is_given_up(tmp_path):
    outcomes = Outcomes(tmp_path / "plan.json", print)
    assert [outcomes.died(0, "signal 9") for _ in range(5)] == [True] * 3 + [False] * 2
    with pytest.raises(EngineError, match="worker 0 died 5 times, last: signal 9"):
        outcomes.check()


def test_a_worker_that_crashes_is_not_replaced_and_one_that_reports_failures_is_no_crash(tmp_path):
    outcomes = Outcomes(tmp_path / "plan.json", print)
    outcomes.raised(1, "ZeroDivisionError: division by zero")
    outcomes.returned(0)
    with pytest.raises(EngineError, match="worker 1 crashed: ZeroDivisionError"):
        outcomes.check()
    outcomes = Outcomes(tmp_path / "plan.json", print)
    write_json(tmp_path / "failed" / "abc.json", {"line": "steps: 1: diverged", "refused": False})
    outcomes.raised(1, "TaskFailed: steps: 1: diverged")
    outcomes.check()


def test_slurm_gets_what_was_set_and_nothing_else():
    assert SlurmSettings().parameters() == {
        "name": "recombine",
        "timeout_min": 240,
        "cpus_per_task": 1,
    }
    given = SlurmSettings("p", "a", "q", "c", 5, 2, 3, 1.5, "module load x")
    assert given.parameters() == {
        "name": "recombine",
        "slurm_partition": "p",
        "slurm_account": "a",
        "slurm_qos": "q",
        "slurm_constraint": "c",
        "slurm_setup": ["module load x"],
        "timeout_min": 5,
        "cpus_per_task": 2,
        "gpus_per_node": 3,
        "mem_gb": 1.5,
    }


def test_texts_of_engines():
    assert (local._reason(-9), local._reason(2)) == ("signal 9", "status 2")
    states = ["RUNNING", "PENDING", "RUNNING"]
    assert slurm._summary(states) == "Slurm workers: 2 running, 1 pending"
    assert slurm._reason("x\nsbatch: error: no node\nsbatch: error: b: error: c\n") == (
        "no node; b: error: c"
    )
    assert (slurm._reason("one\n last \n\n"), slurm._reason(" ")) == ("last", "no reason given")
    frame = "-" * 22
    report = f"Job failed\n{frame}\nTraceback\n  File x\n    y\nValueError: a\n  b\nc\n{frame}\n"
    assert slurm._raised(report) == "c"
    assert slurm._raised(f"{frame}\nKeyError: a\n b\nValueError:  d\ne{frame}") == "ValueError: d e"
    assert slurm._raised(f"{frame}\nKeyError: a\nb{frame}") == "KeyError: a b"
    assert ray._first_line(ValueError("\n one \ntwo")) == "one"
    assert ray._first_line(ValueError("")) == "ValueError"
    assert ray._named(ValueError("a\n  b")) == "ValueError: a b"


def test_a_package_that_does_not_load_is_no_missing_one(tmp_path, monkeypatch):
    (tmp_path / "half_there.py").write_text("import not_there_at_all")
    monkeypatch.syspath_prepend(tmp_path)
    need("json", "ray")
    says = r"^--engine ray: half_there does not load: No module named 'not_there_at_all'$"
    with pytest.raises(UsageError, match=says):
        need("half_there", "ray")


def test_where_nobody_listens_there_is_no_cluster():
    for address in ("nonsense", "host", "ray://host", ":7"):
        assert ray._unreachable(address) == "it must be HOST:PORT"
    assert "refused" in ray._unreachable("127.0.0.1:1")
    with socket.create_server(("127.0.0.1", 0)) as there:
        port = there.getsockname()[1]
        assert ray._unreachable(f"127.0.0.1:{port}") == ""
        assert ray._unreachable(f"ray://127.0.0.1:{port}") == ""


def test_the_cluster_is_the_one_that_is_named_else_the_one_that_runs_here(tmp_path, monkeypatch):
    said = []
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    for given in ("", "local"):
        monkeypatch.setenv("RAY_ADDRESS", given)
        assert ray.find_address(said.append) == ""
    with socket.create_server(("127.0.0.1", 0)) as there:
        here = f"127.0.0.1:{there.getsockname()[1]}"
        write_atomic(tmp_path / "ray" / "ray_current_cluster", f"{here}\n")
        for given, found in ((here, here), ("auto", here), ("", here), ("local", "")):
            monkeypatch.setenv("RAY_ADDRESS", given)
            assert ray.find_address(said.append) == found
    assert not said
    monkeypatch.setenv("RAY_ADDRESS", "")
    assert ray.find_address(said.append) == ""
    assert said == [f"the Ray cluster at {here} is gone"]


def test_how_workers_ended_is_said(tmp_path):
    said = []
    outcomes = Outcomes(tmp_path / "plan.json", said.append)
    with pytest.raises(EngineError, match=r"^no worker is left; none was started$"):
        outcomes.check()
    assert outcomes.died(2, "killed")
    assert not outcomes.died(1, "cancelled", replace=False)
    outcomes.raised(3, "KeyError: a")
    outcomes.raised(0, "KeyError: b")
    outcomes.returned(4)
    assert not outcomes.died(2, "killed"), "nothing is left to do"
    assert said == [
        "worker 2 died (killed) and is replaced",
        "worker 1 died (cancelled) and is not replaced",
        "worker 3 crashed: KeyError: a",
        "worker 0 crashed: KeyError: b",
        "worker 2 died (killed) and is not replaced",
    ]
    with pytest.raises(EngineError, match=r"^worker 0 crashed: KeyError: b$"):
        outcomes.check()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [("CPUS", "x", "must be a whole number"), ("MEMORY_GB", "x", "must be a number")],
)
def test_settings_are_numbers_of_their_kind(name, value, says, monkeypatch):
    monkeypatch.setenv(f"RECOMBINE_SLURM_{name}", value)
    with pytest.raises(UsageError, match=f"^RECOMBINE_SLURM_{name}=x: {says}$"):
        settings_from(SlurmSettings, "RECOMBINE_SLURM_")


class Paths(NamedTuple):
    result_pickle: Path
    stderr: str = "err.txt"


class Submitted:
    """A Slurm job as far as it is looked at."""

    def __init__(self, number: int, folder: Path, error: Exception | None = None):
        self.job_id, self.paths = f"7_{number}", Paths(folder / f"{number}.pkl")
        self.error = error

    def exception(self):
        return self.error


def array_of(tmp_path, said: list, count: int = 3) -> slurm.WorkerArray:
    array = slurm.WorkerArray.__new__(slurm.WorkerArray)
    array.log, array.outcomes = said.append, Outcomes(tmp_path / "plan.json", said.append)
    array.jobs = {i: Submitted(i, tmp_path) for i in range(count)}
    array.ended, array.said = {}, ""
    return array


def test_workers_of_an_array_that_left_no_result_are_lost_after_a_while(tmp_path, monkeypatch):
    now, said = [100.0], []
    monkeypatch.setattr(slurm.time, "monotonic", lambda: now[0])
    array = array_of(tmp_path, said)
    write_atomic(array.jobs[0].paths.result_pickle, "x")
    states = {"7_0": "RUNNING", "7_1": "FAILED", "7_2": "CANCELLED"}
    assert array.collect(states) == []
    assert (array.outcomes.done, list(array.jobs)) == ({0}, [1, 2])
    array.outcomes.done.clear()
    now[0] += 3.0
    assert array.collect(states) == []
    assert not array.is_lost(1, "RUNNING"), "it was queued again"
    assert array.collect(states) == []
    now[0] += 3.5
    assert array.collect(states) == [1]
    assert not array.jobs
    assert said == [
        "Slurm workers: 1 running, 1 failed, 1 cancelled",
        "Slurm workers: 1 failed, 1 cancelled",
        "worker 1 died (Slurm job 7_1 is FAILED, see err.txt) and is replaced",
        "worker 2 died (Slurm job 7_2 is CANCELLED, see err.txt) and is not replaced",
    ]


def test_a_worker_of_an_array_that_raised_has_crashed(tmp_path):
    said = []
    array = array_of(tmp_path, said)
    frame = "-" * 22
    array.jobs[1].error = ValueError(f"{frame}\nTraceback\n File x\nKeyError: a\n{frame}")
    array.settle(1)
    array.settle(2)
    assert array.outcomes.crashed == {1: "KeyError: a, see err.txt"}
    assert array.outcomes.done == {2}


def test_states_of_an_array_come_by_one_question(tmp_path, monkeypatch):
    said, questions = [], []
    array = array_of(tmp_path, said)
    answers = [
        "7_0 RUNNING\n7_1 PENDING\n",
        subprocess.CalledProcessError(1, "squeue", stderr="error: Invalid job id specified"),
        subprocess.CalledProcessError(1, "squeue", stderr="squeue: error: busy"),
        subprocess.TimeoutExpired("squeue", 60),
    ]

    def output(*command):
        questions.append(command[-1])
        answer = answers[len(questions) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(slurm, "_output", output)
    assert array.states() == {"7_0": "RUNNING", "7_1": "PENDING"}
    assert array.states() == {}
    unknown = dict.fromkeys(("7_0", "7_1", "7_2"), "UNKNOWN")
    assert array.states() == array.states() == unknown
    assert questions == ["--jobs=7"] * 4
    assert said == ["Slurm does not answer: busy", "Slurm does not answer"]
    answers += ["7_0 COMPLETED\n7_1 FAILED\n", "7_0 COMPLETING\n"]
    assert [array.is_running(), array.is_running()] == [False, True]


def test_workers_that_wait_are_cancelled_when_nothing_is_left(tmp_path, monkeypatch):
    array, done = array_of(tmp_path, []), []
    monkeypatch.setattr(slurm, "_try", lambda *command: done.append(command))
    array.cancel_pending({"7_0": "RUNNING", "7_2": "PENDING"})
    assert done == [("scancel", "7_2")]
    assert list(array.jobs) == [0, 1]


def test_an_array_that_is_stopped_may_save_first(tmp_path, monkeypatch):
    said, done, running = [], [], [True, True, False]
    array = array_of(tmp_path, said)
    monkeypatch.setattr(slurm, "_try", lambda *command: done.append(command))
    monkeypatch.setattr(array, "is_running", lambda: running.pop(0))
    monkeypatch.setattr(slurm.time, "sleep", done.append)
    with pytest.raises(KeyboardInterrupt), array.stopped_on_exit():
        raise KeyboardInterrupt
    jobs = ("7_0", "7_1", "7_2")
    signals = [("scancel", "--state=PENDING", *jobs), ("scancel", "--signal=INT", *jobs)]
    assert done == [*signals, 0.5, 0.5, ("scancel", *jobs)]
    assert said == ["stopping 3 Slurm workers"]
