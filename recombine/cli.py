"""The command line: parsing and printing only. torch is imported when a command needs it, not
before."""

import json
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from recombine.api import SEEDS
from recombine.config import RunFailed, UsageError, nearest
from recombine.export.command import export
from recombine.files import printable
from recombine.scoring.commands import add_commands

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

Names = Annotated[
    list[str],
    typer.Argument(
        metavar="STUDY...",
        help="Studies to run, 'tour' for every pillar once, or a file of your own.",
    ),
]
ScaleOption = Annotated[str, typer.Option(help="smoke, laptop or full.")]
SeedsOption = Annotated[int, typer.Option(help="Number of seeds; 0 = the scale's own (1, 1, 5).")]
FirstOption = Annotated[
    int, typer.Option("--first-seed", help="Seeds are counted from here; 'join' adds the others.")
]
DryOption = Annotated[
    bool,
    typer.Option("--dry-run", help="List what would run, with what is there already, and stop."),
]
FinishedOption = Annotated[
    bool, typer.Option("--finished", help="Run nothing: assess the runs that are there.")
]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]
OutOption = Annotated[Path, typer.Option(help="Where results go.")]
SetOption = Annotated[
    list[str],
    typer.Option(
        "--set", metavar="PATH=VALUE", help="Change one setting, e.g. recipe.train.steps=500."
    ),
]
SplitOption = Annotated[
    str,
    typer.Option(help="What is trained on, in words: 'unseen: bowl blue; cup red' or 'seen: ...'."),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        help="How many runs are trained at the same time; by itself two on a CPU for long work at "
        "laptop scale, else one.",
        show_default=False,
    ),
]
EngineOption = Annotated[str, typer.Option(help="Where workers run: local, slurm or ray.")]
FreshOption = Annotated[
    bool, typer.Option("--fresh", help="Train again even where a run is on disk.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
DirArgument = Annotated[
    Path | None,
    typer.Argument(metavar="[DIR]", help="A results folder; default: the shipped results."),
]


def _version(wanted: bool | None) -> None:
    if wanted:
        from recombine import __version__
        from recombine.provenance import commit

        print(f"recombine {__version__} ({commit()})")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool | None,
        typer.Option("--version", callback=_version, is_eager=True, help="Version and commit."),
    ] = None,
) -> None:
    """Can a generative model draw what it has never seen? Studies that are run and assessed."""


@app.command("list")
def list_(
    name: Annotated[str, typer.Argument(metavar="[STUDY]", show_default=False)] = "",
    scale: ScaleOption = "laptop",
    json_: JsonOption = False,
) -> None:
    """Every study: its question, paper, claims and cost. Of one study also its settings, all that
    --set can change."""
    from recombine.studies import TOUR
    from recombine.studies.catalogue import catalogue

    scale = _known(scale)
    if name:
        return _print_study(name, scale, json_)
    entries = catalogue()
    if json_:
        print(
            json.dumps(
                [*entries, {"name": "tour", "question": "Every pillar once.", "parts": list(TOUR)}],
                indent=1,
            )
        )
        return None
    for e in entries:
        costs = "; ".join(f"{k}: {v}" for k, v in e["cost"].items())
        ids = ", ".join(c["id"] for c in e["claims"])
        print(
            f"{e['name']:<17}{e['question']}\n{'':<17}{_source(e)} · claims {ids}\n{'':<17}{costs}\n"
        )
    print(f"{'tour':<17}Every pillar once: {', '.join(TOUR)}.")
    return None


def _known(scale: str) -> Any:
    if scale not in SEEDS:
        raise UsageError(f"--scale {scale}: not one of {', '.join(SEEDS)}{nearest(scale, SEEDS)}")
    return scale


def _print_study(name: str, scale: Any, as_json: bool) -> None:
    from recombine.overrides import leaves
    from recombine.studies import find
    from recombine.studies.catalogue import entry

    study = find(name)
    e, settings = entry(study), dict(leaves(study.settings(scale)))
    if as_json:
        print(
            json.dumps(e | {"about": study.about, "scale": scale, "settings": settings}, indent=1)
        )
        return
    width = max(map(len, settings), default=0)
    parts = (
        [f"{study.name}: {study.question}", _source(e)],
        [study.about] if study.about else [],
        [f"{c.id:<5}{c.statement}\n{'':<5}expected: {c.expected}" for c in study.claims],
        [f"{k:<7}{v}" for k, v in study.cost.items()],
        [
            f"Settings at scale {scale}, for --set path=value; the end of a path will do where it "
            "is the only one:"
        ],
        [f"  {path:<{width}}  {value}" for path, value in settings.items()],
    )
    print("\n\n".join("\n".join(lines) for lines in parts if lines))


def _source(entry: dict[str, Any]) -> str:
    paper = entry["paper"]
    return paper if paper.startswith("beyond") else f"paper {paper}"


@app.command()
def run(
    names: Names,
    scale: ScaleOption = "laptop",
    seeds: SeedsOption = 0,
    device: DeviceOption = "auto",
    out: OutOption = Path("out"),
    set_: SetOption = [],  # noqa: B006
    fresh: FreshOption = False,
    workers: WorkersOption = None,
    engine: EngineOption = "local",
    first_seed: FirstOption = 0,
    dry_run: DryOption = False,
    finished: FinishedOption = False,
    split: SplitOption = "",
) -> None:
    """Train or compute what is missing, measure, assess, and write the report."""
    scale = _known(scale)
    if workers == 0:
        raise UsageError("--workers 0: must be positive")
    if finished and dry_run:
        raise UsageError("--finished runs nothing: leave out --dry-run")
    from recombine.api import command_of, run_command
    from recombine.pipeline.plan import outline

    places = {"device": device, "out": str(out), "workers": workers or 0, "first_seed": first_seed}
    command = command_of(names, scale, seeds, tuple(set_), split, **places)
    if dry_run:
        print(*map(printable, outline(command, fresh)), sep="\n")
    elif folders := run_command(command, engine, fresh, finished):
        _print_summary(folders)
        print(f"\nReport: {(out / 'index.html').resolve()}")


def _print_summary(folders: list[Path]) -> None:
    """The claims, which may be many; below them, where the screen ends, whether what was seen was
    learned, then doubts and numbers."""
    from recombine.analysis.levels import summary
    from recombine.analysis.table import read_table
    from recombine.report.claims import print_claims

    print_claims([f / "claims.json" for f in folders], brief=True)
    each = [(f.name, *summary(read_table(f / "rows.parquet"))) for f in folders]
    lines = [f"{name}: {line}" for name, doubts, _ in each for line in doubts]
    lines += [f"{name}: {line}" for name, _, numbers in each for line in numbers]
    print(end="\n" * bool(lines))
    for line in lines:
        print(printable(line))


@app.command()
def claims(
    directory: DirArgument = None,
    json_: JsonOption = False,
    again: Annotated[
        bool, typer.Option("--again", help="Assess and plot the rows anew first.")
    ] = False,
) -> None:
    """The table of all claims: expected, measured, verdict. DIR may also be the folder of one
    study."""
    from recombine.report.claims import claim_files, print_claims, read_claims

    paths = claim_files(directory)
    if again:
        from recombine.provenance import commit
        from recombine.studies import find_assessed
        from recombine.studies.summary import assess_again

        assessed_by = commit()  # before the results, which may be part of the checkout, change
        for path in paths:
            name = path.resolve().parent.name
            assess_again(find_assessed(name), path.parent, assessed_by)
    if json_:
        print(json.dumps([c for path in paths for c in read_claims(path)], indent=1))
    else:
        print_claims(paths)


@app.command()
def report(
    directory: Annotated[Path, typer.Argument(metavar="[DIR]", help="A results folder.")] = Path(
        "out"
    ),
    open_: Annotated[bool, typer.Option("--open")] = False,
) -> None:
    """One site over everything in DIR."""
    from recombine.report.site import write_site

    page = write_site(directory)
    print(page.resolve())
    if open_:
        typer.launch(str(page.resolve()))


@app.command()
def join(
    folders: Annotated[
        list[Path], typer.Argument(metavar="FOLDER...", help="Folders of one study (DIR/STUDY).")
    ],
    out: OutOption = Path("joined"),
) -> None:
    """Results of one study with the same settings and other seeds, from several machines or days,
    as one: plotted and assessed together."""
    from recombine.provenance import commit
    from recombine.report.claims import print_claims
    from recombine.report.site import write_site
    from recombine.studies.joining import join as join_all

    folder = join_all(folders, out, commit())
    write_site(out)
    print_claims([folder / "claims.json"], brief=True)
    print(f"\nReport: {(out / 'index.html').resolve()}")


@app.command()
def bench(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME...]")] = None,
    json_: JsonOption = False,
) -> None:
    """The benchmarks: ratios, side by side in one run."""
    from recombine.bench import run_benchmarks

    run_benchmarks(names or [], json_)


add_commands(app)
app.command()(export)


def main() -> None:
    """Exit status: 0 done, 1 a run failed, 2 wrong usage or bad input (one line, no traceback), 130
    interrupted."""
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        status = app(sys.argv[1:] or ["--help"], standalone_mode=False)
        if status == 130:  # typer's status for Ctrl-C
            raise KeyboardInterrupt
        if status:
            sys.exit(status)
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


def _interrupted(number: int, frame: Any) -> None:
    """SIGTERM, by which schedulers preempt, is met as Ctrl-C is."""
    raise KeyboardInterrupt


def _stop_other(error: Exception) -> None:
    """Click's usage errors are one line and exit 2; a run that failed says so and exits 1."""
    if hasattr(error, "format_message"):
        said = error.format_message()
        _stop(f"{said} {_allowed(said)}", 2)
    if isinstance(error, RunFailed):
        _stop(str(error), 1)
    raise error


def _allowed(said: str) -> str:
    """What may stand there, where the parser does not say it."""
    if "'STUDY...'" in said:
        return "`recombine list` shows all studies"
    if not said.startswith("No such command"):
        return ""
    known = [c.name or getattr(c.callback, "__name__", "") for c in app.registered_commands]
    return f"There are {', '.join(known)}"


def _stop(text: str, status: int) -> None:
    line = printable(" ".join(text.split()))
    print(f"recombine: {line}".encode(errors="backslashreplace").decode(), file=sys.stderr)
    sys.exit(status)
