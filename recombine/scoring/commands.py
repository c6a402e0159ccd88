"""The commands on pictures that are there: check, evaluate, compare, leaderboard, rescore. Parsing
and printing; torch is imported when one of them is called, not before."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from recombine.config import UsageError
from recombine.files import printable

OutOption = Annotated[Path, typer.Option(help="Where the page goes, and probes.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]


def evaluate(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="Generated pictures with labels or prompts, a diffusers pipeline, or module:function.",
        ),
    ],
    data: Annotated[str, typer.Option(help="Real pictures, in any layout.")] = "",
    template: Annotated[str, typer.Option(help="A prompt: 'a {size} {color} {shape}'.")] = "",
    probe: Annotated[
        str, typer.Option(help="module:function, zero-shot:ID or classifier:ID; default: trained.")
    ] = "",
    split: Annotated[
        str,
        typer.Option(
            help="A column, 'seen: a b; c d' or 'unseen: ...'; default: what the data lacks."
        ),
    ] = "",
    factors: Annotated[str, typer.Option(help="Columns that are factors: shape,color.")] = "",
    n: Annotated[int, typer.Option(help="Pictures to draw of each composition.")] = 32,
    seed: Annotated[int, typer.Option(help="Of what is drawn.")] = 0,
    fail_under: Annotated[
        float,
        typer.Option(
            help="Exit status 1 where a level's accuracy is below this, or nothing unseen was drawn."
        ),
    ] = 0.0,
    out: Annotated[
        Path | None, typer.Option(help="Where files go; default: out/evaluate/NAME.")
    ] = None,
    device: DeviceOption = "auto",
    trust_code: Annotated[
        bool,
        typer.Option("--trust-code", help="Run the Python code that a pipeline's folder holds."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Does this model compose? Seen and per-level accuracy with intervals, a page, rows."""
    if not 0 <= fail_under <= 1:
        raise UsageError(f"--fail-under {fail_under}: must be between 0 and 1")
    from recombine.scoring.evaluate import evaluate as score

    chosen = tuple(filter(None, map(str.strip, factors.split(","))))
    options = {"trust_code": True} if trust_code else {}
    result = score(
        source, data, template=template, probe=probe, split=split, factors=chosen, n=n, seed=seed,
        out=out, device=device, **options,
    )  # fmt: skip
    print(json.dumps(result.summary(), indent=1) if as_json else result)
    if failed := result.below(fail_under):
        print(f"recombine: {failed}", file=sys.stderr)
        raise typer.Exit(1)


def compare(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="What evaluate wrote.")],
    as_json: JsonOption = False,
) -> None:
    """Evaluations of several models in one table."""
    from recombine.scoring.compare import alike
    from recombine.scoring.compare import compare as lines

    if as_json:
        print(json.dumps([result.summary() for result in alike(folders)], indent=1))
    else:
        print("\n".join(lines(folders)))


def leaderboard(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="board.json, and a folder per submission.")
    ],
    out: OutOption = Path("out/leaderboard"),
    device: DeviceOption = "auto",
) -> None:
    """Every submission under every probe, computed from its pictures; a page."""
    from recombine.scoring.leaderboard import leaderboard as score
    from recombine.scoring.leaderboard import lines

    print("\n".join(lines(score(directory, out, device=device))))
    print(f"page: {(out / 'index.html').resolve()}")


def check(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Pictures and a table of their factors.")
    ],
    table: Annotated[str, typer.Option(help="The table's name.")] = "factors.csv",
    factors: Annotated[
        str, typer.Option(help="Columns, with commas between; all by default.")
    ] = "",
    size: Annotated[
        int, typer.Option(help="Crop and scale to a square of this side; 0 = leave as they are.")
    ] = 0,
    pictures: Annotated[
        int, typer.Option(help="How many pictures are opened, evenly spaced; 0 = all.")
    ] = 2000,
) -> None:
    """What a folder of your own pictures holds, and what a study would make of it; nothing is
    trained."""
    from recombine.worlds.folder_check import describe

    wanted = tuple(name.strip() for name in factors.split(",") if name.strip())
    for line in describe(folder, table, wanted, size or None, pictures):
        print(printable(line))


def rescore(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A folder with runs/ in it.")],
    probe: Annotated[
        list[str],
        typer.Option(help="paper, linear, cnn, open-set, oracle or module:function; repeatable."),
    ] = ["paper", "oracle"],  # noqa: B006
    seeds: Annotated[int, typer.Option(help="Seeds of the paper's probe.")] = 5,
    device: DeviceOption = "auto",
) -> None:
    """Score samples that runs have kept (evaluation.keep) by other probes; nothing is trained but
    probes."""
    from recombine.analysis.table import Table, write_table
    from recombine.runs.rescoring import rescore_all
    from recombine.runtime import Runtime

    rows = Table(rescore_all(directory, probe, seeds, Runtime.find(device)))
    for run, table in rows.by("run").items():
        last = table.where(step=max(table.unique("step")))
        for name, by in last.by("probe").items():
            levels = {v: by.where(level=v).column("joint") for v in sorted(by.unique("level"))}
            means = ", ".join(f"level {v} {sum(x) / len(x):.2f}" for v, x in levels.items())
            print(f"{run}  {name:<10} {means}")
    write_table(directory / "rescored.parquet", rows)
    print(f"Rows: {directory / 'rescored.parquet'}")


def add_commands(app: typer.Typer) -> None:
    for command in (check, evaluate, compare, leaderboard, rescore):
        app.command()(command)
