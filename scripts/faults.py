"""Random faults in the files of runs: a byte flipped, a file cut off or deleted, in finished and in
unfinished runs. Each must be refused in one line or change nothing: rows, weights and sheets as
without the fault. `python scripts/faults.py 200 [SEED]`."""

import random
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
import tiny  # noqa: E402

from recombine.config import UsageError  # noqa: E402
from recombine.pipeline.job import ancestors, folder_of  # noqa: E402
from recombine.pipeline.plan import Command, make_plans  # noqa: E402
from recombine.pipeline.run import collect, run_studies  # noqa: E402
from recombine.plots.sheets import keep_sheets  # noqa: E402
from recombine.runtime import Runtime  # noqa: E402
from recombine.store import RunFolder  # noqa: E402

SMALL = ("recipe.train.steps=4", "evaluation.samples=2", "evaluation.probe_steps=2", "pool=4")


def fault(path: Path, rng: random.Random) -> str:
    """Flip one bit of a file, cut it off, or delete it; what was done."""
    data, kind = bytearray(path.read_bytes()), rng.choice(("flip", "flip", "cut", "delete"))
    if kind == "delete" or not data:
        path.unlink()
        return f"delete {path.name}"
    at = rng.randrange(len(data))
    if kind == "cut":
        path.write_bytes(data[:at])
    else:
        data[at] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
    return f"{kind} {path.name} at {at}"


def seen(plan: Any, out: Path, place: Path) -> Any:
    """All that is ever read of finished runs: rows, weights, sheets, provenance."""
    folders = [folder_of(t, out) for t in ancestors(plan.tasks)]
    if not all(f.done for f in folders):
        raise UsageError("a run is not done, and would be made again")
    models = [{k: v.tolist() for k, v in f.load_model().items()} for f in folders if f.weights]
    sheets = keep_sheets([({"digest": f.digest}, f) for f in folders], place, [])
    pictures = {p.name: p.read_bytes() for p in sorted(place.iterdir())}
    return collect(plan, out), models, sheets, pictures, [f.facts() for f in folders]


def stopped(root: Path, at: int) -> RunFolder:
    """A run that was interrupted after `at` updates."""

    def batch(step: int) -> Any:
        if step == at:
            raise KeyboardInterrupt
        return tiny.batch(step)

    with suppress(KeyboardInterrupt):
        tiny.fit(root, runtime=Runtime(quiet=True, save_seconds=0.0), batch=batch)
    return tiny.folder_of(root)


def main(count: int, seed: int = 0) -> int:
    rng, noticed, harmless, silent = random.Random(seed), 0, 0, []
    with tempfile.TemporaryDirectory() as place:
        base, work = Path(place) / "base", Path(place) / "work"
        command = Command(("composition",), "smoke", 1, SMALL, "cpu", str(base))
        plan = next(run_studies(command, "local", False, Runtime(quiet=True)))
        whole = seen(plan, base, _empty(place))
        unhurt = tiny.outcome(tiny.fit(Path(place) / "tiny"))
        for i in range(count):
            shutil.rmtree(work, ignore_errors=True)
            try:
                if i % 2:
                    folder = stopped(work, rng.randrange(1, 12))
                    path = rng.choice(sorted(p for p in folder.path.rglob("*") if p.is_file()))
                    what = fault(path, rng)
                    same = tiny.outcome(tiny.fit(work)) == unhurt
                else:
                    shutil.copytree(base, work)
                    path = rng.choice(sorted(p for p in work.rglob("runs/**/*") if p.is_file()))
                    what = fault(path, rng)
                    same = seen(make_plans(command)[0], work, _empty(place)) == whole
            except UsageError:
                noticed += 1
                continue
            harmless += same
            silent += [] if same else [what]
    print(f"{count} faults, seed {seed}: {noticed} refused, {harmless} without effect, "
          f"{len(silent)} silent differences {silent}")  # fmt: skip
    return 1 if silent else 0


def _empty(place: str) -> Path:
    path = Path(place) / "sheets"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    return path


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:] or ["200"])))
