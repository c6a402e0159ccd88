"""Several commands side by side on a GPU that is lent for minutes at a time, their rows brought home.

`python scripts/side_by_side.py plan.txt out packed --minutes 9`. A line of the plan is what follows
`recombine run`, without --out. Lines run one after another; an empty line begins a queue that runs
beside those before it. The queues run on when the time is over: the same command waits for them
again, and starts them again where the machine was another one. Meanwhile and at the end the rows of
all runs, without weights, and the last sheet of each are packed: packed/rows-0.tgz and so on.
"""

import argparse
import io
import re
import shlex
import subprocess
import sys
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # a machine that is lent has no installed recombine

from recombine.files import is_gone  # noqa: E402
from recombine.pipeline.engines.mps import side_by_side  # noqa: E402

EVERY = 10.0
"""Seconds between two packings."""
LARGEST = 12 * 2**20
"""An archive that has as many bytes takes no further run."""
SHOWN = 25
"""How many lines are shown of what a command wrote before it failed."""
Command = list[str]


def queues(plan: str) -> list[list[Command]]:
    """Commands that run one after another, for each of the queues; after # stands a remark."""
    blocks = plan.strip().split("\n\n")
    made = [[shlex.split(line, comments=True) for line in b.splitlines()] for b in blocks]
    return [some for some in ([c for c in block if c] for block in made) if some]


def conduct(plan: Path, out: Path) -> None:
    """Runs all queues to their end."""
    some = queues(plan.read_text())
    with side_by_side(print), ThreadPoolExecutor(len(some)) as pool:
        list(pool.map(run, some, [out] * len(some), range(len(some))))


def run(commands: list[Command], out: Path, number: int) -> None:
    """A command that fails does not keep the next one from running."""
    with (out / f"queue-{number}.log").open("a") as log:
        for command in commands:
            log.write(f"$ recombine run {shlex.join(command)}\n")
            log.flush()
            whole = [
                sys.executable,
                "-m",
                "recombine",
                "run",
                *command,
                "--out",
                str(out.resolve()),
            ]
            code = subprocess.run(whole, stdout=log, stderr=log, cwd=ROOT).returncode
            log.write(f"status {code}\n")


def started(plan: Path, out: Path) -> subprocess.Popen | int:
    """The process that conducts the queues, in a session of its own; its number where it is running
    already."""
    note = out / "conductor.pid"
    if note.exists() and running(number := int(note.read_text())):
        return number
    out.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, str(Path(__file__).resolve()), str(plan), str(out)]
    with (out / "conductor.log").open("a") as log:
        made = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    note.write_text(str(made.pid))
    return made


def running(process: subprocess.Popen | int) -> bool:
    if isinstance(process, subprocess.Popen):
        return process.poll() is None
    return not is_gone(process)


def pack(out: Path, goal: Path) -> None:
    """Every archive is replaced at once, so that one that is taken along is whole."""
    goal.mkdir(parents=True, exist_ok=True)
    waiting = sorted((out / "runs").glob("*/"))
    for number in range(len(waiting) + 1):
        if not waiting:
            return
        path = goal / f"rows-{number}.tgz"
        part = path.with_suffix(".part")
        with part.open("wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
            while waiting and file.tell() < LARGEST:
                for some in kept(waiting.pop(0)):
                    with suppress(FileNotFoundError):
                        add(archive, some, str(some.relative_to(out)))
        part.replace(path)


def kept(run: Path) -> list[Path]:
    """done.json comes before the rows that it vouches for. Of the sheets, that of the last checkpoint
    and those of no checkpoint. Hidden files are half-written."""
    sheets = [p for p in sorted(run.rglob("*.png")) if not p.name.startswith(".")]
    steps = [p for p in sheets if p.name.startswith("step_")]
    return [*sorted(run.glob("[!.]*.json*")), *steps[-1:], *(p for p in sheets if p not in steps)]


def add(archive: tarfile.TarFile, path: Path, name: str) -> None:
    """A file as it is now: runs go on meanwhile, rows are added and progress.json is removed."""
    held = path.read_bytes()
    info = tarfile.TarInfo(name)
    info.size, info.mtime = len(held), time.time()
    archive.addfile(info, io.BytesIO(held))


def last_lines(out: Path) -> list[str]:
    """Of each queue. Progress is written over the line before, so it counts as one."""
    logs = {path.stem: path.read_text().split("\n") for path in sorted(out.glob("queue-*.log"))}
    whole = {name: [line for line in lines if line.strip()] for name, lines in logs.items()}
    return [f"{name}: {lines[-1].split(chr(13))[-1]}" for name, lines in whole.items() if lines]


def failures(out: Path) -> list[str]:
    """What the queues wrote before a command of theirs failed, without their progress."""
    made = []
    for path in sorted(out.glob("queue-*.log")):
        whole = [line.split("\r")[-1] for line in path.read_text().split("\n")]
        for number, line in enumerate(whole):
            if re.fullmatch(r"status [1-9]\d*", line):
                before = [x for x in whole[:number] if x.strip() and " left in all" not in x]
                made += [f"{path.stem}: {x[:200]}" for x in (*before[-SHOWN:], line)]
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("plan", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("packed", type=Path, nargs="?", help="without it: run all queues here")
    parser.add_argument("--minutes", type=float, default=9.0)
    given = parser.parse_args()
    if given.packed is None:
        return conduct(given.plan, given.out)
    until, packed = time.monotonic() + 60 * given.minutes, 0.0
    conductor = started(given.plan, given.out)
    while running(conductor) and (now := time.monotonic()) < until:
        if now > packed + EVERY:
            pack(given.out, given.packed)
            packed = now
        time.sleep(min(1.0, until - now))
    pack(given.out, given.packed)
    print(
        *failures(given.out),
        *last_lines(given.out),
        "running" if running(conductor) else "finished",
        sep="\n",
    )


if __name__ == "__main__":
    main()
