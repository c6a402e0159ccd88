"""The command line: parsing and printing only. torch is imported when a command needs it, not before."""

import json
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from recombine.config import UsageError

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

Names = Annotated[
    list[str], typer.Argument(metavar="STUDY...", help="Studies to run, or 'tour' for every pillar once.")
]
ScaleOption = Annotated[str, typer.Option(help="smoke, laptop or full.")]
SeedsOption = Annotated[int, typer.Option(help="Number of seeds; 0 = the scale's own (1, 1, 3).")]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]
OutOption = Annotated[Path, typer.Option(help="Where results go.")]
SetOption = Annotated[
    list[str], typer.Option("--set", metavar="PATH=VALUE", help="Change one setting, e.g. recipe.train.steps=500.")
]
WorkersOption = Annotated[int, typer.Option(help="Processes that train at the same time, over all GPUs.")]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Train again even where a run is on disk.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
DirArgument = Annotated[
    Path | None, typer.Argument(metavar="[DIR]", help="A results folder; default: the shipped results.")
]
SEEDS = {"smoke": 1, "laptop": 1, "full": 3}


@app.command("list")
def list_(
    name: Annotated[str, typer.Argument(metavar="[STUDY]", show_default=False)] = "",
    scale: ScaleOption = "laptop",
    json_: JsonOption = False,
) -> None:
    """Every study: its question, paper, claims and cost. Of one study also what it is about, and all that --set can change."""
    from recombine.studies import MODULES, TOUR, find

    if name:
        return _tell(find(name), _known(scale), json_)
    studies = [find(name) for name in MODULES]
    if json_:
        entries = [_entry(s) for s in studies]
        print(json.dumps([*entries, {"name": "tour", "question": "Every pillar once.", "parts": list(TOUR)}], indent=1))
        return
    for s in studies:
        costs = "; ".join(f"{k}: {v}" for k, v in s.cost.items())
        print(
            f"{s.name:<14}{s.question}\n{'':<14}{_source(s)} · claims {', '.join(c.id for c in s.claims)}\n{'':<14}{costs}\n"
        )
    print(f"{'tour':<14}Every pillar once: {', '.join(TOUR)}.")


def _known(scale: str) -> Any:
    if scale not in SEEDS:
        raise UsageError(f"--scale {scale}: not one of {', '.join(SEEDS)}")
    return scale


def _tell(study: Any, scale: Any, as_json: bool) -> None:
    from recombine.config import leaves

    settings = dict(leaves(study.settings(scale)))
    if as_json:
        print(json.dumps(_entry(study) | {"about": study.about, "scale": scale, "settings": settings}, indent=1))
        return
    print(f"{study.name}: {study.question}\n{_source(study)}\n\n{study.about}\n")
    for claim in study.claims:
        print(f"{claim.id:<5}{claim.statement}\n{'':<5}expected: {claim.expected}")
    print("\n" + "\n".join(f"{k:<7}{v}" for k, v in study.cost.items()))
    print(f"\nSettings at scale {scale}, for --set path=value; the end of a path will do where it is the only one:\n")
    wide = max(map(len, settings))
    print("\n".join(f"  {path:<{wide}}  {value}" for path, value in settings.items()))


def _source(study: Any) -> str:
    return study.paper if study.paper.startswith("beyond") else f"paper {study.paper}"


def _entry(study: Any) -> dict[str, Any]:
    claims = [{"id": c.id, "statement": c.statement, "expected": c.expected, "paper": c.paper} for c in study.claims]
    return {"name": study.name, "question": study.question, "paper": study.paper, "claims": claims, "cost": study.cost}


@app.command()
def run(
    names: Names,
    scale: ScaleOption = "laptop",
    seeds: SeedsOption = 0,
    device: DeviceOption = "auto",
    out: OutOption = Path("out"),
    set_: SetOption = [],  # noqa: B006
    fresh: FreshOption = False,
    workers: WorkersOption = 1,
) -> None:
    """Train or compute what is missing, measure, judge, and write the report."""
    scale = _known(scale)
    if seeds < 0:
        raise UsageError(f"--seeds {seeds}: must be positive")
    if workers < 1:
        raise UsageError(f"--workers {workers}: must be positive")
    from recombine.config import override
    from recombine.studies import TOUR, find

    studies = [find(n) for name in names for n in (TOUR if name == "tour" else (name,))]
    settings = [override(s.settings(scale), *set_) for s in studies]
    from recombine.machine import Machine
    from recombine.report.site import write_site
    from recombine.studies.lab import Lab, run_study
    from recombine.studies.workers import Plan, spread

    machine = Machine.find(device, tensorboard=str(out / "tensorboard"))
    lab = Lab(machine, out, scale, seeds or SEEDS[scale], fresh)
    _writable(out)
    taken = tuple(s.name for s in studies)
    plan = Plan(taken, tuple(set_), lab.scale, lab.seeds, device, out, fresh, lab.began, workers)
    with spread(plan, lab.note) if workers > 1 else nullcontext(iter(taken)) as through:
        for study, chosen, _ in zip(studies, settings, through, strict=True):
            lab.note(f"== {study.name}: {study.question}")
            run_study(study, chosen, lab)
    if lab.machine.rank == 0:
        page = write_site(out)
        _print_claims([out / s.name for s in studies])
        print(f"\nReport: {page.resolve()}")


def _writable(out: Path) -> None:
    """Fail before the work, not after it."""
    from recombine.store import write_atomic

    if out.is_file():
        raise UsageError(f"--out {out}: is a file, not a folder")
    trial = out / f".writable.{os.getpid()}"
    write_atomic(trial, "")
    trial.unlink(missing_ok=True)


def _print_claims(folders: list[Path]) -> None:
    from recombine.store import read_rows
    from recombine.studies.base import Rows
    from recombine.studies.claims import table
    from recombine.studies.levels import summary

    for folder in folders:
        for line in summary(Rows(read_rows(folder / "rows.jsonl"))):
            print(f"{folder.name}: {line}")
    table([f / "claims.json" for f in folders], brief=True)


@app.command()
def claims(
    directory: DirArgument = None,
    json_: JsonOption = False,
    again: Annotated[bool, typer.Option("--again", help="Judge and draw the rows anew first.")] = False,
) -> None:
    """The table of all claims: expected, measured, verdict. DIR may also be the folder of one study."""
    from recombine.studies.claims import read_all, shipped, table

    root = directory or shipped()
    here = "" if (root / "study.json").exists() else "*/"
    if again:
        from recombine.machine import commit
        from recombine.studies.lab import judge_again

        rules = commit()  # before the results, which may be part of it, change
        for path in sorted(root.glob(f"{here}study.json")):
            judge_again(path.parent, rules)
    paths = sorted(root.glob(f"{here}claims.json"))
    if not paths:
        raise UsageError(f"{root}: no claims there (looked for <study>/claims.json)")
    if json_:
        print(json.dumps(read_all(paths), indent=1))
    else:
        table(paths)


@app.command()
def report(
    directory: Annotated[Path, typer.Argument(metavar="[DIR]", help="A results folder.")] = Path("out"),
    open_: Annotated[bool, typer.Option("--open")] = False,
) -> None:
    """One site over everything in DIR."""
    from recombine.report.site import write_site

    page = write_site(directory)
    print(page.resolve())
    if open_:
        typer.launch(str(page.resolve()))


@app.command()
def check(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Pictures and a table of their factors.")],
    table: Annotated[str, typer.Option(help="The table's name.")] = "factors.csv",
    size: Annotated[int, typer.Option(help="Crop and scale to a square of this side; 0 = leave as they are.")] = 0,
) -> None:
    """What a folder of your own pictures holds, and what a study would make of it; nothing is trained."""
    from recombine.worlds.folder import Folder

    print("\n".join(Folder.open(folder, table, size=size or None).told()))


@app.command()
def bench(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME...]")] = None, json_: JsonOption = False
) -> None:
    """The benchmarks: ratios, side by side in one run."""
    from recombine.bench import run_benchmarks

    run_benchmarks(names or [], json_)


def main() -> None:
    """Exit status: 0 done, 1 a run failed, 2 wrong usage or bad input (one line, no traceback)."""
    try:
        if app(sys.argv[1:] or ["--help"], standalone_mode=False) == 130:  # how typer tells of Ctrl-C
            raise KeyboardInterrupt
    except UsageError as error:
        _stop(str(error), 2)
    except typer.Exit as stop:
        sys.exit(stop.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        without = " without --fresh" if "--fresh" in sys.argv else ""
        _stop(f"stopped; the same command{without} goes on from here", 130)
    except OSError as error:
        _stop(str(error), 2)
    except Exception as error:
        _stop_other(error)


def _stop_other(error: Exception) -> None:
    """Click's usage errors are one line and exit 2; a run that failed says so and exits 1."""
    if hasattr(error, "format_message"):
        _stop(error.format_message(), 2)
    if type(error).__name__ == "Diverged":
        _stop(str(error), 1)
    raise error


def _stop(text: str, status: int) -> None:
    print(f"recombine: {' '.join(text.split())}", file=sys.stderr)
    sys.exit(status)
