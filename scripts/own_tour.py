"""The tour of docs/own-data.md as printed there, in a folder of its own: `python scripts/own_tour.py
DIR`. Fails where the seen compositions were not learned (accuracy 0.9 or less) by the study's probe
or by that of `recombine evaluate`."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from recombine.scoring.result import read_result
from recombine.store import read_json

ROOT = Path(__file__).parents[1]
NEEDED = 0.9


def commands() -> list[str]:
    """The lines of the tour."""
    text = (ROOT / "docs" / "own-data.md").read_text().partition("## A tour")[2]
    return re.search(r"```sh\n(.*?)```", text, re.DOTALL)[1].strip().splitlines()


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tools = Path(sys.executable).parent
    where = os.environ | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    for line in commands():
        began = time.perf_counter()
        print(f"$ {line}", flush=True)
        command = line.replace("scripts/", f"{ROOT}/scripts/")
        subprocess.run(command, shell=True, cwd=folder, env=where, check=True)
        print(f"({time.perf_counter() - began:.0f} s)", flush=True)
    facts = read_json(folder / "out" / "composition" / "study.json")
    result = read_result(folder / "out" / "evaluate" / "crockery-model")
    seen = result.level(0)
    print(f"seen compositions: {seen:.2f} on {facts['settings']['recipe']['world']['path']}")
    if seen <= NEEDED:
        sys.exit(f"seen accuracy {seen:.2f} is not above {NEEDED}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "own-tour"))
