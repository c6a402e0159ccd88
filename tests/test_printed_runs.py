"""The lines of the README and of docs/ that train: each is carried out as printed, but smaller."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from printed import blocks, lines, little
from test_docs import PAGES

from recombine.analysis.table import read_table
from recombine.store import read_json
from recombine.studies import TOUR

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
ELSEWHERE = {
    "slurm": "a cluster: test_engines.py runs a study on a Slurm of its own",
    "ray": "a cluster: test_engines.py runs a study on a Ray of its own",
    "torchrun": "several GPUs: test_ddp.py trains a study in two processes",
}
"""What a line needs that is planned only (test_docs.py), and where its like is carried out."""
SMALLER = ("--scale", "--seeds", "--first-seed", "--out")


def runs() -> dict[str, tuple[str, list[str]]]:
    """Every study with the options that some page prints for it, once, but for scale, seeds and
    folder."""
    found = {f"{name} of make run": (name, []) for name in TOUR}
    for path in PAGES:
        for text in blocks(path, "sh", "console"):
            for line in lines(text):
                if line[:2] == ["recombine", "run"] and not ELSEWHERE.keys() & set(line):
                    found |= {f"{path.name}: {n} {r}": (n, r) for n, r in parts(line[2:])}
    once = {(name, *rest): (where, name, rest) for where, (name, rest) in found.items()}
    return {where: (name, rest) for where, name, rest in once.values()}


def parts(words: list[str]) -> list[tuple[str, list[str]]]:
    """["a", "b", "--set", "x=1", "--scale", "full"] -> a and b, each with --set x=1."""
    first = next((i for i, word in enumerate(words) if word.startswith("--")), len(words))
    pairs = zip(words[first::2], words[first + 1 :: 2], strict=True)
    rest = [word for pair in pairs if pair[0] not in SMALLER for word in pair]
    return [(name, rest) for name in words[:first]]


RUNS = runs()
CHILD = """
import json, sys, traceback
import torch
torch.set_num_threads(1)
from recombine.cli import app
for where, call in json.loads(sys.argv[1]).items():
    try:
        status = app(call, standalone_mode=False)
        print("\\nended:", json.dumps([where, status]), flush=True)
    except BaseException:
        print("\\nended:", json.dumps([where, traceback.format_exc()]), flush=True)
"""


def test_words_before_the_options_are_studies():
    assert parts(["a", "b", "--set", "x=1", "--scale", "full"]) == [
        ("a", ["--set", "x=1"]),
        ("b", ["--set", "x=1"]),
    ]
    names = [name for name, _ in RUNS.values()]
    assert {path.stem for path in (DOCS / "studies").glob("*.md")} == set(names)
    assert len(names) > len(set(names)), "some study is printed with settings of its own, too"


@pytest.fixture(scope="module")
def desk(tmp_path_factory) -> Path:
    """A folder with the pictures that the pages train on."""
    folder = tmp_path_factory.mktemp("desk")
    make = blocks(DOCS / "own-data.md", "python")[0]
    subprocess.run([sys.executable, "-c", make], cwd=folder, check=True)
    example = [sys.executable, str(ROOT / "scripts" / "example_pictures.py"), "crockery"]
    subprocess.run(example, cwd=folder, check=True)
    (folder / "runs").mkdir()
    return folder


@pytest.mark.slow
def test_lines_that_train_leave_rows_claims_figures_and_a_page(desk):
    """In one process, and with one folder of runs: studies share probes and tokenizers."""
    calls, folders = {}, {}
    for i, (where, (name, rest)) in enumerate(RUNS.items()):
        out = desk / str(i)
        out.mkdir()
        (out / "runs").symlink_to(desk / "runs")
        small = ["--scale", "smoke", "--seeds", "1", "--out", str(out)]
        calls[where] = ["run", name, *little(name), *rest, *small]
        folders[where] = out / name
    child = [sys.executable, "-c", CHILD, json.dumps(calls)]
    paths = os.environ | {"PYTHONPATH": str(ROOT)}
    said = subprocess.run(child, cwd=desk, capture_output=True, text=True, env=paths)
    ended = [line[7:] for line in said.stdout.splitlines() if line.startswith("ended: ")]
    assert dict(map(json.loads, ended)) == dict.fromkeys(calls), said.stderr[-2000:]
    for where, folder in folders.items():
        assert len(read_table(folder / "rows.parquet").frame), where
        verdicts = {c["verdict"] for c in read_json(folder / "claims.json")}
        assert verdicts <= {"smoke", "not measured"}, where
        assert list((folder / "figures").glob("*.svg")), where
        assert folder.name in (folder / "index.html").read_text(), where
