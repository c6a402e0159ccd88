"""Adversarial command lines: each must end with status 0, 1, 2 or 130 and at most one line of
complaint, never with a traceback. `python scripts/fuzz_commands.py 1000 [SEED]`.

They are called in this process: work that a line would start is cut off before it trains, since
what is tried is how settings are read, checked and refused."""

import contextlib
import io
import random
import sys
import tempfile
import traceback
from pathlib import Path
from types import SimpleNamespace

from recombine import bench, cli
from recombine.overrides import leaves
from recombine.pipeline import run as pipeline_run
from recombine.studies import NAMES, find

WORDS = (
    "", " ", "0", "-1", "1", "9" * 5000, "1e300", "-1e300", "1e-320", "NaN", "Infinity", "null",
    "true", "[" * 3000, "{" * 3000, '{"type": 3}', '{"type": "net/dit"}', '{"type": "world/folder"}',
    "[1,2]", "[[0,0,0]]", "[]", "{}", '""', '"a"', "\x1b[31m", "\u202e", "\ud800", "é" * 300, "²",
    "99999999999999999999", str(2**63), str(-(2**63) - 1), "1e200", "/dev/zero", "/dev/stdin", ".",
    "..", "\n", "a=b", "=", "1_000", "0x10", "١٢", "10000000000", "1000000000000", "3.5", "--",
)  # fmt: skip
OPTIONS = ("--scale", "--seeds", "--device", "--out", "--workers", "--engine", "--set", "--nothing")
GIVEN = {
    "--scale": ("smoke", "full", "huge"),
    "--device": ("cpu", "cuda:²", "cuda:99999999999999999999", "cuda:-1", "tpu", "cuda:"),
    "--engine": ("local", "slurm ", "Ray"),
    "--seeds": ("1000000000", "9" * 30, "2", "²"),
    "--workers": ("1000000000000", "2"),
}


class Stopped(Exception):
    """Where the work would begin."""


def line(rng: random.Random, paths: dict[str, list[str]]) -> list[str]:
    """One command line: a study with settings and options, some of them hostile."""
    command = rng.choice(["run"] * 8 + ["list", "claims", "report", "check", "bench", "\x00"])
    if command != "run":
        words = rng.choices(WORDS, k=rng.randint(0, 3))
        return [command, *(w[:200] for w in words), *rng.choices(["--json", "--scale", "-x"], k=1)]
    name = rng.choice([*NAMES] * 5 + ["tour", "no", "x.py", *WORDS])
    made = [command, name, "--scale", "smoke"]
    for _ in range(rng.randint(1, 3)):
        if name in paths and rng.random() < 0.75:
            path = rng.choice(paths[name])
            made += ["--set", f"{path}={rng.choice(WORDS)}"]
        else:
            option = rng.choice(OPTIONS)
            made += [option, rng.choice(GIVEN.get(option, ()) + WORDS)]
    return made


def outcome(arguments: list[str]) -> str:
    """What is wrong with how a command line ended; empty where nothing is."""
    said, complained, status = io.StringIO(), io.StringIO(), 0
    sys.argv = ["recombine", *arguments]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
        try:
            cli.main()
        except SystemExit as stop:
            status = stop.code or 0
        except Stopped:
            return ""
        except BaseException:
            return traceback.format_exc()
    lines = [x for x in complained.getvalue().splitlines() if x.startswith("recombine: ")]
    if status not in (0, 1, 2) or (status == 2 and len(lines) != 1):
        return f"status {status}, {len(lines)} lines: {complained.getvalue()[-300:]!r}"
    text = complained.getvalue() + said.getvalue()
    return "control characters reach the terminal" if "\x1b" in text else ""


def main(count: int, seed: int = 0) -> int:
    rng, wrong = random.Random(seed), 0

    def stopped(*_: object, **__: object) -> None:
        raise Stopped

    pipeline_run.run = stopped
    bench.runpy = SimpleNamespace(run_path=stopped)
    paths = {name: [path for path, _ in leaves(find(name).settings("smoke"))] for name in NAMES}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("x.py").write_text("study = 3\n")
        for i in range(count):
            arguments = line(rng, paths)
            if i and i % 250 == 0:
                print(f"{i} command lines, {wrong} with a fault", flush=True)
            if found := outcome(arguments):
                wrong += 1
                print(f"{i}: {[a[:80] for a in arguments]}\n{found[-1500:]}", flush=True)
    print(f"{count} command lines, seed {seed}: {wrong} with a traceback or another fault")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:] or ["1000"])))
