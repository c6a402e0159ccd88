"""Runs that a study shares with shipped results, put back as finished runs without weights, so that
nothing is trained twice. `python scripts/borrow.py receptive-field results/length out` writes
out/runs: those of the runs of receptive-field at full scale, with three seeds from 2 on, that length
holds and out lacks (`--first-seed 2 --seeds 3`). `recombine run receptive-field --finished --out
out` assesses them."""

import argparse
from pathlib import Path

from PIL import Image

from recombine.analysis.frames import pl
from recombine.analysis.table import read_rows_of
from recombine.files import read_json
from recombine.pipeline.job import Job, described, digest_of
from recombine.store import RunFolder
from recombine.studies import find

OWN = ("digest", "label", "noun")
"""What the entry of a run says of itself; the rest are labels, which every study gives anew."""


def borrow(jobs: list[Job], holding: Path, out: Path) -> list[str]:
    """The runs of some jobs that a folder of results holds and `out` lacks, written there; their
    titles."""
    held = read_json(holding / "study.json")
    rows = read_rows_of(holding, held.get("rows_of") or "").frame
    entries = {run["digest"]: run for run in held["runs"]}
    made = {"commit": held["provenance"]["trained"], "borrowed": holding.name}
    made |= {key: held["provenance"][key] for key in ("device", "torch", "python")}
    taken = []
    for job in {digest_of(job.task): job for job in jobs}.values():
        digest = digest_of(job.task)
        run = RunFolder(out, digest)
        if digest not in entries or run.done:
            continue
        run.path.mkdir(parents=True)
        run.begin(described(job.task))
        labels = {"run", "scale", *(key for key in entries[digest] if key not in OWN)}
        own = rows.filter(pl.col("run") == digest).to_dicts()
        run.write_rows(
            {k: v for k, v in row.items() if v is not None and k not in labels} for row in own
        )
        for sheet in (s for s in held["sheets"] if s["run"] == digest):
            name = f"step_{sheet['step']:08d}" if "step" in sheet else sheet["name"]
            (run.path / "samples").mkdir(exist_ok=True)
            picture = Image.open(holding / "samples" / sheet["file"])
            picture.save(run.path / "samples" / f"{name}.png")
        run.finish(made)
        taken.append(job.title)
    return taken


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("study", "holding", "out"):
        parser.add_argument(name)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=0)
    given = parser.parse_args()
    study = find(given.study)
    last = given.first_seed + given.seeds
    jobs = study.jobs(study.settings("full"), last)
    wanted = [j for j in jobs if dict(j.labels).get("seed", last) >= given.first_seed]
    print("\n".join(borrow(wanted, Path(given.holding), Path(given.out))) or "nothing to borrow")
