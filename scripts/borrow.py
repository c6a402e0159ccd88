"""Runs that a study shares with shipped results, put back as finished runs without weights, so that
nothing is trained twice. `python scripts/borrow.py receptive-field results/length out --first-seed 2
--seeds 2` writes out/runs: the runs of receptive-field at full scale that length holds and out lacks.
`recombine run receptive-field --scale full --first-seed 2 --seeds 2 --finished --out out` assesses
them beside others; a run that has to open the weights of one of them trains it again."""

import argparse
from pathlib import Path

from PIL import Image

from recombine.analysis.frames import pl
from recombine.analysis.table import read_rows_of
from recombine.files import Row, read_json
from recombine.pipeline.job import Task, described, digest_of
from recombine.pipeline.plan import Command, make_plans
from recombine.store import RunFolder

OWN = ("digest", "label", "noun")
"""What the entry of a run says of itself; the rest are labels, which every study gives anew."""


def borrow(command: Command, holding: Path) -> list[str]:
    """The runs of a command that a folder of results holds and the command's own lacks, written
    there; what they are called in the results."""
    held, out = read_json(holding / "study.json"), Path(command.out)
    table = read_rows_of(holding, held.get("rows_of") or "").frame
    entries = {run["digest"]: run for run in held["runs"]}
    origin = {key: held["provenance"][key] for key in ("device", "torch", "python")}
    made = origin | {"commit": held["provenance"]["trained"], "borrowed": holding.name}
    taken = []
    for task in dict.fromkeys(t for plan in make_plans(command) for t in plan.tasks):
        run = RunFolder(out, digest_of(task))
        if (entry := entries.get(run.digest)) and not run.done:
            rows = table.filter(pl.col("run") == run.digest)
            sheets = [s for s in held["sheets"] if s["run"] == run.digest]
            put_back(run, task, own_rows(rows, entry), sheets, holding)
            run.finish(made)
            taken.append(entry["label"])
    return taken


def own_rows(rows: pl.DataFrame, entry: Row) -> list[Row]:
    """Without labels, once each: results hold the rows of a run once for every variant it serves."""
    labels = {"run", "scale", *(key for key in entry if key not in OWN)}
    plain = rows.select(pl.exclude(labels & set(rows.columns))).unique(maintain_order=True)
    return [{k: v for k, v in row.items() if v is not None} for row in plain.to_dicts()]


def put_back(run: RunFolder, task: Task, rows: list[Row], sheets: list[Row], holding: Path) -> None:
    run.erase()  # what a training that was cut off left
    run.begin(described(task))
    run.write_rows(rows)
    for sheet in sheets:
        name = f"step_{sheet['step']:08d}" if "step" in sheet else sheet["name"]
        (run.path / "samples").mkdir(exist_ok=True)
        picture = Image.open(holding / "samples" / sheet["file"]).convert("RGB")
        red, *others = picture.split()
        is_grey = all(band.tobytes() == red.tobytes() for band in others)
        (red if is_grey else picture).save(run.path / "samples" / f"{name}.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("study", "holding", "out"):
        parser.add_argument(name)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE")
    given = parser.parse_args()
    command = Command(
        (given.study,),
        "full",
        given.seeds,
        tuple(given.set),
        out=given.out,
        first_seed=given.first_seed,
    )
    print("\n".join(borrow(command, Path(given.holding))) or "nothing to borrow")
