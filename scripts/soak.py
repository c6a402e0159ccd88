"""Long runs under attack: a small plan is run over and over by two workers that are killed,
terminated, stopped and continued at random, on a disk that fills up and is freed again. Every
round must end with the files of an undisturbed run, byte for byte, and with nothing else.
`python scripts/soak.py [MINUTES] [SEED]`, 30 minutes by default.

Workers are forked from a process that has torch loaded, so that most of the time goes into runs;
of ten rounds one has a worker with --fresh, two are verdicts and report alone, and one is the real
command with `--workers 2`. One process beside them runs and assesses the plan again and again without
a restart: its memory must stay flat. The disk is a tmpfs of its own, which only root can mount;
without it no disk fills up."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from recombine.api import run_command
from recombine.config import UsageError
from recombine.pipeline import lease
from recombine.pipeline.plan import Command, make_plans
from recombine.pipeline.run import run_studies
from recombine.pipeline.worker import TaskFailed
from recombine.runtime import Runtime
from recombine.store import RunFolder, read_json

SMALL = ("recipe.train.steps=12", "evaluation.samples=2", "evaluation.probe_steps=6", "pool=8")
DISK = 48_000_000
ATTACKS = ("kill",) * 12 + ("term",) * 3 + ("stop",) * 3 + ("full",) * 2
EXPECTED = {0, 2, 130}
"""Done, refused (a full disk), interrupted."""


def command(out: Path) -> Command:
    return Command(("composition",), "smoke", 1, SMALL, "cpu", str(out), 1)


def forked(act: Callable[[], Any], log: Path) -> int:
    """A child process that does one thing and leaves as the command would; its id."""
    if pid := os.fork():
        return pid
    status = 70
    try:
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        act()
        status = 0
    except KeyboardInterrupt:
        status = 130
    except (UsageError, TaskFailed) as error:
        print(f"refused: {error}", flush=True)
        status = 2
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def work(out: Path, fresh: bool = False) -> None:
    """What one worker does: the whole command, saving after every update."""
    for _ in run_studies(command(out), "local", fresh, Runtime(quiet=True, save_seconds=0.0)):
        pass


def work_fresh(out: Path) -> None:
    """The same with --fresh: all runs are erased first, unless others are working on one."""
    work(out, fresh=True)


def assess(out: Path) -> None:
    """The command where runs are there already: verdicts, figures, pages."""
    run_command(command(out))


def steady(out: Path, record: Path) -> None:
    """The command with its report, again and again in one process, and how much memory it holds."""
    while True:
        run_command(command(out), fresh=True)
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        with open(record, "a") as file:
            file.write(f"{pages * os.sysconf('SC_PAGE_SIZE')}\n")
        time.sleep(5)


def contents(out: Path) -> dict[str, Any]:
    """All that a round left: every path, and of runs and rows what is in them."""
    found: dict[str, Any] = {str(p.relative_to(out)): "" for p in out.rglob("*")}
    for path in (out / "runs").glob("*"):
        folder = RunFolder(out, path.name)
        facts = folder.facts()
        for name in facts["files"]:
            folder.verified(name)
        found[f"runs/{path.name}/done.json"] = (facts["files"], facts["parents"])
    for path in out.glob("*/rows.parquet"):
        found[str(path.relative_to(out))] = path.read_bytes()
    for path in out.glob("*/claims.json"):
        claims = [{k: v for k, v in c.items() if k != "provenance"} for c in read_json(path)]
        found[str(path.relative_to(out))] = json.dumps(claims)
    return found


def differences(found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """Paths that are missing, too many, or hold something else."""
    return sorted(p for p in found.keys() | expected.keys() if found.get(p) != expected.get(p))


class Soak:
    """What was done to the workers so far, and what came of it."""

    def __init__(self, place: Path, disk: Path, filling: bool, rng: random.Random) -> None:
        self.place, self.disk, self.filling, self.rng = place, disk, filling, rng
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self.log = place / "log"

    def note(self, fault: str) -> None:
        self.faults.append(fault)
        print(f"FAULT: {fault}", flush=True)

    def ended(self, pid: int, status: int) -> bool:
        """Whether a worker is done; one that was killed is counted, one that failed noted."""
        if os.WIFSIGNALED(status):
            self.counts[signal.Signals(os.WTERMSIG(status)).name] += 1
            return False
        code = os.WEXITSTATUS(status)
        self.counts[f"status {code}"] += 1
        if code not in EXPECTED:
            lines = self.log.read_text(errors="replace").splitlines()[-12:]
            self.note(f"status {code}: " + "\n".join(lines))
        return code == 0

    def attack(self, pid: int) -> None:
        kind = self.rng.choice(ATTACKS)
        if kind == "kill":
            os.kill(pid, signal.SIGKILL)
        elif kind == "term":
            os.kill(pid, signal.SIGTERM)
            self.counts["SIGTERM"] += 1
        elif kind == "stop":
            os.kill(pid, signal.SIGSTOP)
            time.sleep(self.rng.uniform(0.01, 3.0))
            os.kill(pid, signal.SIGCONT)
            self.counts["SIGSTOP"] += 1
        elif self.filling:
            self.fill()

    def fill(self) -> None:
        """Leave a few bytes, or a few files' worth, free on the disk; after a while, free it."""
        ballast, free = self.disk / "ballast", shutil.disk_usage(self.disk).free
        left = self.rng.choice((0, 4096, 65536, 400_000))
        with open(ballast, "wb") as file, suppress(OSError):  # others write meanwhile
            os.posix_fallocate(file.fileno(), 0, max(1, free - left))
        time.sleep(self.rng.uniform(0.1, 1.5))
        ballast.unlink()
        self.counts["full disk"] += 1

    def round(self, out: Path, most: int, *acts: Callable[[Path], None]) -> None:
        """Some workers, attacked up to `most` times, until each says that all is done."""
        workers = {forked(lambda act=act: act(out), self.log): act for act in acts}
        done, attacks = 0, 0
        while done < len(acts):
            time.sleep(self.rng.choice((0.003, 0.03, 0.3, 1.5)) * self.rng.random())
            if attacks < most and workers:
                attacks += 1
                self.attack(self.rng.choice(sorted(workers)))
            for pid in sorted(workers):
                gone, status = os.waitpid(pid, 0 if attacks >= most else os.WNOHANG)
                if gone:
                    act = workers.pop(pid)
                    if self.ended(pid, status):
                        done += 1
                    else:
                        workers[forked(lambda act=act: act(out), self.log)] = act

    def command_round(self, out: Path, most: int) -> None:
        """The same with the real command: it, or a worker of it, is attacked, and it is started
        again until it ends well."""
        line = [sys.executable, "-m", "recombine", "run", "composition", "--scale", "smoke"]
        line += ["--device", "cpu", "--workers", "2", "--out", str(out)]
        line += [word for change in SMALL for word in ("--set", change)]
        for attempt in range(100):
            with open(self.log, "ab") as log:
                process = subprocess.Popen(line, stdout=log, stderr=log)
            if attempt < most:
                time.sleep(self.rng.uniform(0.0, 12.0))
                family = [process.pid, *_children(process.pid)]
                if process.poll() is None:
                    self.attack(self.rng.choice(family))
            code = process.wait()
            self.counts[f"command's status {code}"] += 1
            if code == 0:
                return
            if code not in (*EXPECTED, 1, -signal.SIGKILL, -signal.SIGTERM):
                self.note(f"the command's status was {code}")
            if code == -signal.SIGKILL:
                self.counts["SIGKILL"] += 1
                time.sleep(1.0)  # its workers notice that it is gone
        self.note("the command never ended")

    def compare(self, out: Path, expected: dict[str, Any]) -> None:
        try:
            differing = differences(contents(out), expected)
        except UsageError as error:
            differing = [str(error)]
        if differing:
            kept = self.place / f"fault{len(self.faults)}"
            shutil.copytree(out, kept)
            self.note(f"differs from an undisturbed run ({kept}): {differing[:8]}")
        if b"Traceback" in self.log.read_bytes():
            text = self.log.read_text(errors="replace")
            self.note(text[text.index("Traceback") :][:3000])
        self.log.write_bytes(b"")
        self.counts["rounds"] += 1


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def reference(place: Path, log: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What an undisturbed run leaves: the runs alone, and the whole command's folder."""
    for name, act in (("runs", work), ("whole", assess)):
        _, status = os.waitpid(forked(lambda a=act, o=place / name: a(o), log), 0)
        if status:
            sys.exit(f"an undisturbed run fails: {log.read_text()[-2000:]}")
    return contents(place / "runs"), contents(place / "whole")


def memory(record: Path) -> str:
    """How much the steady process holds: after a quarter of its rounds and at the end."""
    held = [int(line) / 1e6 for line in record.read_text().split()] if record.exists() else []
    if len(held) < 8:
        return f"memory: only {len(held)} rounds, too few to say"
    early, late = held[len(held) // 4], sum(held[-3:]) / 3
    return f"memory over {len(held)} rounds: {held[0]:.0f} MB, {early:.0f} MB, {late:.0f} MB"


def main(minutes: float = 30.0, seed: int = 0) -> int:
    torch.set_num_threads(1)
    lease.BEAT, lease.TIMEOUT = 0.1, 1.0  # so that stopped workers are really replaced
    place = Path(tempfile.mkdtemp(prefix="soak"))
    disk = place / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(disk)]
    filling = subprocess.run(mount, capture_output=True).returncode == 0
    soak, began = Soak(place, disk, filling, random.Random(seed)), time.monotonic()
    make_plans(command(place))  # loads what a worker would load
    runs, whole = reference(place, soak.log)
    beside = forked(lambda: steady(place / "steady", place / "memory"), place / "steady.log")
    try:
        while time.monotonic() - began < 60 * minutes:
            out, kind = disk / "out", soak.counts["rounds"] % 10
            shutil.rmtree(out, ignore_errors=True)
            if kind == 9:
                soak.command_round(out, 6)
            elif kind in (3, 6):
                shutil.copytree(place / "runs", out)
                soak.round(out, 12, assess)
            elif kind == 1:
                soak.round(out, 8, work, work_fresh)
            else:
                soak.round(out, 12, work, work)
            soak.compare(out, whole if kind in (3, 6, 9) else runs)
            if kind == 9:
                print(f"{(time.monotonic() - began) / 60:.1f} min {dict(soak.counts)}", flush=True)
    finally:
        alive = os.waitpid(beside, os.WNOHANG)[0] == 0
        if alive:
            os.kill(beside, signal.SIGKILL)
            os.waitpid(beside, 0)
        else:
            soak.note(f"the steady process ended: {(place / 'steady.log').read_text()[-2000:]}")
        if filling:
            subprocess.run(["umount", str(disk)], check=False)
    spent = (time.monotonic() - began) / 60
    print(f"{spent:.1f} minutes, seed {seed}: {dict(sorted(soak.counts.items()))}")
    print(f"{len(soak.faults)} faults; {memory(place / 'memory')}"
          f"{'' if filling else '; no disk of its own, so none filled up'}")  # fmt: skip
    if not soak.faults:
        shutil.rmtree(place, ignore_errors=True)
    return 1 if soak.faults else 0


if __name__ == "__main__":
    sys.exit(main(*(kind(x) for kind, x in zip((float, int), sys.argv[1:], strict=False))))
