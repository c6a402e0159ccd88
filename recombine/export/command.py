"""The command export: parsing and printing. torch is imported when it is called, not before."""

from pathlib import Path
from typing import Annotated

import typer

from recombine.config import UsageError


def export(
    what: Annotated[
        str,
        typer.Argument(metavar="RUN", help="A run's folder, a study's with one model, or 'world'."),
    ],
    target: Annotated[
        str, typer.Argument(metavar="DIR", help="A new folder; after 'world', a world's name.")
    ],
    n: Annotated[int, typer.Option("--n", help="Of a world: how many pictures.")] = 1000,
    out: Annotated[
        Path | None, typer.Option(help="Of a world: a new folder; default: its name.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of a world: another one, other pictures.")] = 0,
    as_: Annotated[str, typer.Option("--as", help="Of a world: imagefolder or parquet.")] = (
        "imagefolder"
    ),
) -> None:
    """A trained model as a pipeline that diffusers opens, or pictures of a world as a data set."""
    from recombine.export.models import export_run
    from recombine.export.worlds import export_world

    if as_ not in ("imagefolder", "parquet"):
        raise UsageError(f"--as {as_}: not one of imagefolder, parquet")
    if what == "world":
        folder = out or Path(target)
        export_world(target, folder, n, seed, as_)
    else:
        folder = Path(target)
        export_run(Path(what), folder)
    print(folder.resolve())
