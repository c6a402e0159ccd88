"""Strangers' folders, damaged files, samples that are no numbers, settings that cannot fit: each is
refused in one line, and nothing outside is touched."""

import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import tiny
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recombine import provenance
from recombine.__main__ import start
from recombine.analysis.table import Table
from recombine.cli import _stop
from recombine.config import UsageError
from recombine.files import read_bytes, refuse_links, sweep, write_atomic
from recombine.limits import (
    DEFAULTS,
    _cgroup,
    _meminfo,
    allow,
    amount,
    check_memory,
    check_time,
    check_updates,
    limit,
    memory,
)
from recombine.metrics.detector import Detector, DetectorNet
from recombine.metrics.probes import Oracle, PaperNet, ProbeNet, TrainedProbe, score
from recombine.pipeline.engines.local import start as start_worker
from recombine.pipeline.plan import Command, make_plans
from recombine.plots.sheets import keep_sheets
from recombine.report.claims import claim_files, print_claims
from recombine.report.sheets import size_of
from recombine.report.site import write_site
from recombine.rng import seeded
from recombine.runs.models import Model
from recombine.runtime import Runtime, find_device
from recombine.store import RunFolder
from recombine.studies import find
from recombine.studies.study import Study
from recombine.studies.summary import assess_again, publish
from recombine.train.fit import Diverged
from recombine.worlds.factors import Factor, FactorSpace, Split, at_most_one_new
from recombine.worlds.shapes2d import Shapes2D

ROOT = Path(__file__).parents[1]
SHIPPED = ROOT / "results" / "swing-by"


@pytest.fixture
def stranger(tmp_path) -> Path:
    """A results folder of others, beside a folder that is none of their business."""
    shutil.copytree(SHIPPED, tmp_path / "results" / "swing-by")
    (tmp_path / "mine").mkdir()
    for name in ("a.svg", "config.json", "index.html"):
        (tmp_path / "mine" / name).write_text('{"secret": 1}')
    return tmp_path / "results"


@pytest.mark.parametrize("name", ["", "figures", "samples"])
def test_a_linked_folder_is_refused_and_what_lies_behind_is_not_touched(stranger, name):
    folder, mine = stranger / "swing-by", stranger.parent / "mine"
    place = folder / name
    shutil.rmtree(place, ignore_errors=True)
    place.symlink_to(mine)
    for act in (write_site, lambda _: assess_again(find("swing-by"), folder, "commit")):
        with pytest.raises(UsageError, match=r"is a link|holds no study|no such file"):
            act(stranger)
    assert {p.read_text() for p in mine.iterdir()} == {'{"secret": 1}'}
    assert len(list(mine.iterdir())) == 3


@pytest.mark.parametrize("name", ["study.json", "claims.json", "rows.parquet"])
def test_a_linked_file_is_not_read(stranger, name):
    path = stranger / "swing-by" / name
    path.unlink()
    path.symlink_to(stranger.parent / "mine" / "config.json")
    with pytest.raises(UsageError, match="it is a link"):
        write_site(stranger)


def test_only_files_that_a_summary_wrote_are_removed(tmp_path):
    """Those that its study.json lists; a list that points elsewhere removes nothing."""
    study = Study("s", "?", settings=str, jobs=lambda settings, seeds: ())
    (tmp_path / "figures").mkdir()
    for name in ("listed.svg", "mine.svg"):
        (tmp_path / "figures" / name).write_text("x")
    facts = {"scale": "smoke", "seeds": [0], "provenance": {}}
    publish(study, Table(), facts, tmp_path, {"figures/listed.svg", "figures/gone.svg"})
    assert [p.name for p in (tmp_path / "figures").iterdir()] == ["mine.svg"]


def test_a_temporary_file_of_a_process_that_is_gone_is_swept_and_no_other(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    host = os.uname().nodename.replace(".", "-")
    for pid in (gone.pid, os.getpid()):
        (tmp_path / f".rows.parquet.{host}.{pid}.abc.tmp").write_text("half")
    (tmp_path / f".rows.parquet.elsewhere.{gone.pid}.abc.tmp").write_text("half")
    (tmp_path / ".mine.tmp").write_text("x")
    sweep(tmp_path)
    left = sorted(p.name for p in tmp_path.iterdir())
    assert left == sorted([".mine.tmp", f".rows.parquet.{host}.{os.getpid()}.abc.tmp",
                           f".rows.parquet.elsewhere.{gone.pid}.abc.tmp"])  # fmt: skip


@pytest.fixture
def done(tmp_path) -> RunFolder:
    folder = RunFolder(tmp_path, "0123456789abcdef")
    folder.begin({"config": {"n": 1}, "parents": []})
    folder.append([{"kind": "train", "step": 1, "loss": 0.5}, {"kind": "x", "step": 1}])
    folder.save_model({"a": torch.ones(3)}, 1)
    write_atomic(folder.path / "samples" / "step_1.png", b"picture")
    folder.finish({"seconds": 1.5, "parents": {"fedc": "ab"}})
    return folder


def test_every_file_of_a_run_is_in_its_list_and_verified(done):
    assert sorted(done.facts()["files"]) == [
        "config.json", "model.safetensors", "rows.jsonl", "samples/step_1.png",
    ]  # fmt: skip
    assert done.files("samples/*.png") == ["samples/step_1.png"]
    (done.path / "samples" / "step_1.png").write_bytes(b"Picture")
    with pytest.raises(UsageError, match=r"step_1.png was altered .* --fresh"):
        keep_sheets([({"digest": done.digest}, done)], done.root / "samples", [])
    (done.path / "samples" / "step_1.png").unlink()
    assert done.gone("samples/*.png") == ["samples/step_1.png"]
    assert keep_sheets([({"digest": done.digest}, done)], done.root / "samples", []) == []
    (done.path / "rows.jsonl").unlink()
    for name in ("rows.jsonl", "samples/step_1.png"):
        with pytest.raises(UsageError, match=f"{name} is missing; delete"):
            done.verified(name)
    (done.path / "more.txt").write_text("not listed")
    with pytest.raises(UsageError, match="altered after the run finished"):
        done.verified("more.txt")


def test_every_flipped_bit_of_done_json_is_noticed_or_changes_nothing(done):
    path, whole = done.path / "done.json", done.facts()
    data = path.read_bytes()
    for i, bit in itertools.product(range(0, len(data), 3), (0,)):
        path.write_bytes(data[:i] + bytes([data[i] ^ 1 << bit]) + data[i + 1 :])
        try:
            found = done.facts()
        except UsageError:
            continue
        assert {k: v for k, v in found.items() if k in whole and k != "seal"} == {
            k: v for k, v in whole.items() if k != "seal"
        }


@pytest.mark.parametrize(
    "hurt",
    [
        lambda p: p.write_bytes(p.read_bytes().replace(b"0.", b"1.", 1)),
        lambda p: p.write_bytes(p.read_bytes()[: len(p.read_bytes()) // 2]),
        lambda p: p.unlink(),
    ],
    ids=["altered", "halved", "deleted"],
)
def test_rows_that_change_between_a_stop_and_its_resumption_are_noticed(tmp_path, hurt):
    def batch(step):
        if step == 9:
            raise KeyboardInterrupt
        return tiny.batch(step)

    with pytest.raises(KeyboardInterrupt):
        tiny.fit(tmp_path, runtime=Runtime(quiet=True, save_seconds=0.0), batch=batch)
    hurt(tiny.folder_of(tmp_path).path / "rows.jsonl")
    with pytest.raises(UsageError, match=r"rows.jsonl was altered since the run stopped"):
        tiny.fit(tmp_path)


@pytest.mark.parametrize("what", ["rows.jsonl", "."])
def test_a_run_whose_files_vanish_at_work_is_not_done(tmp_path, what):
    def batch(step):
        if step == 8:
            path = tiny.folder_of(tmp_path).path / what
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return tiny.batch(step)

    with pytest.raises(UsageError, match=r"no measurements of step 0|was removed while"):
        tiny.fit(tmp_path, batch=batch)
    assert not (tiny.folder_of(tmp_path).path / "model.safetensors").exists()


BAD = [torch.nan, torch.inf, -torch.inf]


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("kind", ["linear", "cnn", "open-set", "paper", "oracle"])
def test_pictures_that_are_not_finite_are_never_right(kind, bad):
    world = Shapes2D()
    images = world.render(torch.zeros(4, 3, dtype=torch.long), seeded(0)).images
    images[1], images[2, 0, 3, 3] = bad, bad
    shape, space = world.image_shape, world.space
    if kind == "oracle":
        probe = Oracle(world)
    else:
        net = PaperNet(shape, space) if kind == "paper" else ProbeNet(kind, shape, space)
        for p in net.parameters():
            torch.nn.init.zeros_(p)  # equal logits: argmax is 0, which is the composition 000
        if kind == "open-set":
            net.body[-1].bias.data[-1] = -1.0  # accepts everything
        probe = TrainedProbe(kind, net)
    row = score(probe, images, (0, 0, 0), space)
    assert (row["joint"], row["not_finite"]) == (0.5, 2)
    assert all(row[f.name] == 0.5 for f in space.factors)
    assert "not_finite" not in score(probe, images[[0, 3]], (0, 0, 0), space)


def test_an_open_set_probe_refuses_by_its_last_logit():
    net = ProbeNet("open-set", (3, 8, 8), FactorSpace((Factor("a", ("x", "y")),)))
    for bias, answer in ((1.0, -1), (-1.0, 0)):
        net.body[-1].weight.data.zero_()
        net.body[-1].bias.data = torch.tensor([1.0, 0.0, bias])
        assert TrainedProbe("open-set", net)(torch.zeros(1, 3, 8, 8)).tolist() == [[answer]]
        assert TrainedProbe("cnn", net)(torch.zeros(1, 3, 8, 8)).tolist() == [[0]]


def test_logits_that_are_not_finite_are_never_right():
    net = PaperNet((3, 8, 8), FactorSpace((Factor("a", ("x", "y")),)))
    net.body.bias.data[1] = torch.nan
    assert TrainedProbe("paper", net)(torch.zeros(2, 3, 8, 8)).tolist() == [[-1], [-1]]


@pytest.mark.parametrize("bad", BAD)
def test_a_detector_counts_nothing_in_pictures_that_are_not_finite(bad):
    images = torch.zeros(3, 3, 16, 16)
    images[1, 0, 0, 0] = bad
    with pytest.raises(Diverged, match="1 of 3 samples hold NaN or infinity"):
        Detector(DetectorNet((3, 16, 16), 8))(images)


def test_samples_depend_on_the_seed():
    def sample(net, shape, condition, rng, decoding):
        return torch.rand(len(condition.index), *shape, generator=rng)

    def drawn(seed: int) -> torch.Tensor:
        recipe = SimpleNamespace(
            world=Shapes2D(), seed=seed, shape=(1, 2, 2), objective=SimpleNamespace(sample=sample),
            train=SimpleNamespace(precision="float32"), evaluation=SimpleNamespace(decoding=None, prompt_dropout=0.0),
        )  # fmt: skip
        codec = SimpleNamespace(decode=lambda latents: latents)
        model = SimpleNamespace(recipe=recipe, device=torch.device("cpu"), codec=codec, net=None)
        return Model._sample(model, [(0, 0, 0)], 3, None)

    assert torch.equal(drawn(1), drawn(1))
    assert not torch.equal(drawn(1), drawn(2))


def test_control_characters_are_shown_as_text(stranger, capsys):
    path = stranger / "swing-by" / "claims.json"
    path.write_text(path.read_text().replace('"id": "', '"id": "\\u001b[2J\\u202e', 1))
    print_claims(claim_files(stranger))
    with pytest.raises(SystemExit):
        _stop("bad\x1b[31m \ud800 name", 2)
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    assert "\\x1b[2J\\u202e" in said.out
    assert "bad\\x1b[31m \\ud800 name" in said.err


HUGE = {
    "composition with 1,000,000,000 seeds has": (10**9, ()),
    "evaluation has 10,000,000,000 checkpoints": (1, ("evaluation.checkpoints=10000000000",)),
    "this run needs at least 7.53 PB of memory": (1, ("pool=100000000000",)),
    "training the network needs at least": (1, ("recipe.net.transformer.width=1000000",)),
    "days at 1e+15 operations a second": (1, ("recipe.train.steps=1000000000000000000",)),
}


@pytest.mark.parametrize("message", HUGE)
def test_what_cannot_fit_is_refused_with_the_estimate(message):
    seeds, changes = HUGE[message]
    began = time.process_time()
    with pytest.raises(UsageError) as error:
        make_plans(Command(("composition",), "smoke", seeds, changes))
    assert message in str(error.value)
    assert time.process_time() - began < 5


HUGE_ELSEWHERE = {
    ("length", "recipe.pool=100000000000"): "this run needs at least 307 TB of memory",
    ("length", "recipe.net.net.widths=[8,100000]"): "training the network needs at least",
    ("length", "recipe.train.steps=1000000000000000000"): "this run takes at least 1.62e+04 days",
    ("length", "recipe.train.batch=100000000000"): "of memory, and",
    ("length", "recipe.detector.steps=1000000000000000"): "the detector takes at least",
    ("length", "recipe.detector.batch=100000000000"): "the detector needs at least 1.23 PB",
    ("length", "recipe.evaluation.checkpoints=10000000000"): "10,000,000,000 checkpoints",
    ("features", "recipe.pool=1000000000000"): "of memory, and",
    ("swing-by", "flow_seeds=100000000000"): "needs at least 3.2 TB of memory",
    ("swing-by", "mlp_steps=100000000000000"): "days for 7.5e+13 steps of a microsecond",
    ("swing-by", "grid=10000000"): "'phase diagrams' needs at least 800 TB",
    ("local-scores", "samples=1000000000000"): "of memory, and",
    ("local-scores", "lamp_samples=1000000000000"): "'lamps' needs at least 32 TB",
    ("local-scores", "fit_steps=1000000000000000"): "days for 1e+15 steps of a microsecond",
    ("interactions", "steps=1000000000000"): "exact model needs at least 32 TB",
}


@pytest.mark.parametrize("name", ["cuda:²", "cuda:-1", "cuda:١", "cuda:1.5", "tpu", "cuda:x"])
def test_a_device_that_is_none_is_refused(name):
    with pytest.raises(UsageError, match="not one of auto, cpu, cuda, cuda:N"):
        find_device(name)


def test_what_a_study_makes_of_changed_settings_is_refused_in_one_line():
    with pytest.raises(UsageError, match=r"repair with average=1e300: betas .* must lie in"):
        make_plans(Command(("repair",), "smoke", 1, ("average=1e300",)))


@pytest.mark.parametrize("case", HUGE_ELSEWHERE, ids=" ".join)
def test_scenes_and_theory_that_cannot_fit_are_refused_with_the_estimate(case):
    began = time.process_time()
    with pytest.raises(UsageError) as error:
        make_plans(Command(case[:1], "smoke", 1, case[1:]))
    assert HUGE_ELSEWHERE[case] in str(error.value)
    assert time.process_time() - began < 5


def test_limits(monkeypatch):
    assert all(limit(name.rpartition("_")[2]) == value for name, value in DEFAULTS.items())
    monkeypatch.setenv("RECOMBINE_MAX_MEMORY", "1000")
    check_memory(1000, "it")
    with pytest.raises(UsageError, match="it needs at least 1 kB of memory, and 1 kB are free"):
        check_memory(1001, "it")
    monkeypatch.setenv("RECOMBINE_MAX_DAYS", "2")
    check_time(2 * 86400 * 1e15, "it")
    with pytest.raises(UsageError, match=r"at least 2.01 days at 1e\+15"):
        check_time(2.01 * 86400 * 1e15, "it")
    check_updates(2 * 86400e6, "it")
    with pytest.raises(UsageError, match=r"at least 2.01 days for 1.74e\+11 steps"):
        check_updates(2.01 * 86400e6, "it")
    for text in ("²", "-1", "1e3", "9" * 30):
        monkeypatch.setenv("RECOMBINE_MAX_ROWS", text)
        with pytest.raises(UsageError, match="a limit is a whole number"):
            limit("rows")
    assert [amount(n) for n in (0, 999, 1000, 3.2e9, 1e21)] == [
        "0 bytes", "999 bytes", "1 kB", "3.2 GB", "1e+03 EB",
    ]  # fmt: skip


def test_a_sheet_that_says_it_is_huge_is_refused_from_its_first_bytes(tmp_path):
    from PIL import Image

    path = tmp_path / "a.webp"
    for options in ({"quality": 80}, {"lossless": True}):
        for size in ((7, 5), (300, 2)):
            Image.new("RGB", size).save(path, "webp", **options)
            assert size_of(path) == size
    Image.new("RGBA", (9, 4), (1, 2, 3, 4)).save(path, "webp", exif=b"Exif\0\0")
    assert size_of(path) == (9, 4)
    path.write_bytes(b"RIFF\0\0\0\0WEBPVP8X" + b"\0" * 8 + b"\xff" * 6)
    with pytest.raises(UsageError, match="more than the 50,000,000 that are allowed"):
        size_of(path)
    for data in (b"", b"RIFF" + b"\0" * 26, b"\x89PNG" + b"\0" * 40):
        path.write_bytes(data)
        with pytest.raises(UsageError, match="not a readable WebP"):
            size_of(path)


def test_only_regular_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, what in ((tmp_path / "pipe", "not a regular file"), (tmp_path, "regular|directory")):
        with pytest.raises(UsageError, match=what):
            read_bytes(path)
    with pytest.raises(UsageError, match="not a regular file"):
        read_bytes(Path("/dev/zero"))
    (tmp_path / "link").symlink_to("/dev/zero")
    with pytest.raises(UsageError, match="it is a link"):
        read_bytes(tmp_path / "link")
    with pytest.raises(UsageError, match="is a link"):
        refuse_links(tmp_path, "link")


def test_ctrl_c_while_the_command_loads_is_one_line(monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr("recombine.cli.main", interrupted)
    with pytest.raises(SystemExit) as stop:
        start()
    assert (stop.value.code, capsys.readouterr().err) == (130, "recombine: stopped\n")


STOPPED = """
import recombine.cli
from recombine.__main__ import start

def app(*arguments, **options):
    exec("raise KeyboardInterrupt")

recombine.cli.app = app
start()
"""


def test_ctrl_c_while_a_class_is_made_ends_with_the_status_that_is_promised(tmp_path):
    (tmp_path / "stopped.py").write_text(STOPPED)
    command = [sys.executable, "-m", "stopped"]
    path = os.environ | {"PYTHONPATH": str(ROOT)}
    made = subprocess.run(command, cwd=tmp_path, env=path, capture_output=True, timeout=60)
    assert (made.returncode, made.stderr.count(b"\n")) == (130, 1)


def test_a_signal_to_a_worker_that_is_loading_ends_it_without_a_traceback(tmp_path, capfd):
    """It is held back until the worker can meet it."""
    worker = start_worker(tmp_path / "no plan", 0)
    worker.send_signal(signal.SIGINT)
    assert worker.wait(120) == 130
    assert "Traceback" not in capfd.readouterr().err


def test_a_worker_of_a_command_in_the_background_can_be_interrupted(tmp_path):
    """A shell starts such commands with SIGINT ignored, and their children inherit it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        worker = start_worker(tmp_path / "no plan", 0)
    finally:
        signal.signal(signal.SIGINT, before)
    worker.send_signal(signal.SIGINT)
    assert worker.wait(120) == 130


def test_a_locale_without_utf8_is_no_obstacle(tmp_path):
    plain = {
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "PATH": os.environ["PATH"],
    }
    command = [sys.executable, "-m", "recombine", "claims"]
    made = subprocess.run(command, cwd=ROOT, env=plain, capture_output=True, timeout=120)
    assert (made.returncode, b"Traceback" in made.stderr) == (0, False)


sizes = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@settings(max_examples=15, deadline=None)
@given(sizes, st.randoms(use_true_random=False))
def test_splits_are_as_their_definition_says(counts, rng: random.Random):
    space = FactorSpace(tuple(Factor(f"f{i}", tuple("abcd"[:n])) for i, n in enumerate(counts)))
    every = list(itertools.product(*map(range, counts)))
    assert (space.count, list(space.compositions)) == (len(every), every)
    old = tuple(rng.randint(1, n) for n in counts)
    seen = [c for c in every if sum(i >= n for i, n in zip(c, old, strict=True)) <= 1]
    assert list(at_most_one_new(space, old).seen) == seen
    split = Split(tuple(rng.sample(every, rng.randint(1, len(every)))))
    levels = {c: level for level, some in split.levels(space).items() for c in some}
    assert levels == {c: split.level(c) for c in every}
    assert all(space.has(c) for c in every)
    assert not space.has((*every[0], 0))
    assert not space.has((counts[0], *every[0][1:]))


def test_memory_is_what_is_set_or_the_least_that_is_free(monkeypatch):
    for free, left, most in ((10, 20, 10), (10, 5, 5), (0, 5, 5), (7, 0, 7), (0, 0, 2**63)):
        monkeypatch.setattr("recombine.limits._meminfo", lambda count=free: count)
        monkeypatch.setattr("recombine.limits._cgroup", lambda count=left: count)
        assert memory() == most
    monkeypatch.setenv("RECOMBINE_MAX_MEMORY", "3")
    assert memory() == 3


def test_free_memory_is_read_where_the_machine_says_it(monkeypatch):
    files = {
        "/proc/meminfo": "MemTotal: 9 kB\nMemAvailable:   5 kB\n",
        "/sys/fs/cgroup/memory.max": "1000\n",
        "/sys/fs/cgroup/memory.current": "300\n",
    }
    monkeypatch.setattr(Path, "read_text", lambda self: files[str(self)])
    assert (_meminfo(), _cgroup()) == (5 * 1024, 700)
    files["/sys/fs/cgroup/memory.max"] = "max\n"
    files["/proc/meminfo"] = "MemTotal: 9 kB\nMemAvailable:\n"
    assert (_meminfo(), _cgroup()) == (0, 0)


def test_as_many_as_allowed_are_allowed(monkeypatch):
    monkeypatch.setenv("RECOMBINE_MAX_ROWS", "1000")
    allow("rows", 1000, "it")
    says = (
        "it has 1,001 rows, more than the 1,000 that are allowed; RECOMBINE_MAX_ROWS sets how many"
    )
    with pytest.raises(UsageError) as error:
        allow("rows", 1001, "it")
    assert str(error.value) == says
    monkeypatch.setenv("RECOMBINE_MAX_ROWS", "9" * 18)
    assert limit("rows") == 10**18 - 1
    monkeypatch.setenv("RECOMBINE_MAX_ROWS", "9" * 19)
    with pytest.raises(UsageError, match=r": a limit is a whole number$"):
        limit("rows")
    units = [amount(10.0 ** (3 * k)) for k in range(7)]
    assert units == ["1 bytes", "1 kB", "1 MB", "1 GB", "1 TB", "1 PB", "1 EB"]


def test_limits_are_what_the_documentation_says():
    assert DEFAULTS == {
        "RECOMBINE_MAX_PIXELS": 50_000_000,
        "RECOMBINE_MAX_BYTES": 8_000_000_000,
        "RECOMBINE_MAX_ROWS": 50_000_000,
        "RECOMBINE_MAX_COMPOSITIONS": 10_000,
        "RECOMBINE_MAX_CHECKPOINTS": 10_000,
        "RECOMBINE_MAX_RUNS": 100_000,
        "RECOMBINE_MAX_DAYS": 365,
        "RECOMBINE_MAX_MEMORY": 0,
    }


@pytest.mark.parametrize(
    ("count", "name", "says"),
    [
        (0, "cuda", "--device cuda: this machine has no CUDA devices"),
        (1, "cuda:1", "--device cuda:1: this machine has 1 CUDA device"),
        (2, "cuda:2", "--device cuda:2: this machine has 2 CUDA devices"),
    ],
)
def test_a_device_that_is_not_there_is_refused(count, name, says, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    with pytest.raises(UsageError) as error:
        find_device(name)
    assert str(error.value) == says


def test_devices_are_found_by_their_names(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    names = ("cpu", "cuda", "cuda:1")
    assert [str(find_device(n)) for n in names] == ["cpu", "cuda:0", "cuda:1"]
    for there, found in ((True, "cuda:0"), (False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        assert str(find_device("auto")) == found


def test_code_in_somebody_elses_repository_has_no_commit(monkeypatch):
    answers = {"rev-parse --show-toplevel": f"{provenance.HERE.parent}\n"}
    answers |= {"rev-parse --short=12 HEAD": "abc\n", "status --porcelain": ""}
    monkeypatch.setattr(provenance, "_git", lambda *words: answers[" ".join(words)])
    found = provenance._checked_out.__wrapped__
    assert found() == "abc"
    answers["status --porcelain"] = " M file\n"
    assert found() == "abc+"
    answers["rev-parse --show-toplevel"] = "/elsewhere\n"
    assert found() == "unknown"

    def fails(*words):
        raise subprocess.CalledProcessError(1, "git")

    monkeypatch.setattr(provenance, "_git", fails)
    assert found() == "unknown"
