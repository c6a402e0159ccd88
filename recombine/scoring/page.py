"""The page of an evaluation: one file beside its sheet of samples."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader

from recombine.analysis.levels import level_name
from recombine.plots.style import LEVELS
from recombine.scoring.score import by_level
from recombine.scoring.sheet import ACROSS, FRAME, SIDE
from recombine.store import Row, write_atomic


def render(template: str, **values: Any) -> str:
    """Autoescape is on: a name from somebody's folder is text, never markup."""
    loader = FileSystemLoader(Path(__file__).parent)
    made = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    made.filters |= {"share": share, "level": level_name}
    return made.get_template(template).render(**values)


def share(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def held_out(rows: list[Row], probe: str, factor: str) -> float | None:
    """How often a factor is read on real pictures that neither trained nor chose the probe."""
    real = [
        r for r in rows if (r["kind"], r["probe"]) == ("probe", probe) and r.get(factor) is not None
    ]
    count = sum(r["n"] for r in real)
    return sum(r[factor] * r["n"] for r in real) / count if count else None


def write_page(result: Any, path: Path) -> None:
    rows = {code: y for y, code in enumerate(result.facts["shown"])}
    write_atomic(
        path,
        render(
            "page.html",
            result=result,
            facts=result.facts,
            levels=result.levels(),
            groups=by_level(result.accuracy()),
            others={p: result.levels(p) for p in result.facts["probes"]},
            real={
                r["composition"]: r
                for r in result.rows
                if r["kind"] == "probe" and r["probe"] == result.primary
            },
            left_out=[
                r | {"held_out": held_out(result.rows, result.primary, r["factor"])}
                for r in result.rows
                if r["kind"] == "left out" and r["probe"] == result.primary
            ],
            place=rows,
            cell=SIDE + 2 * FRAME,
            across=ACROSS,
            colours=LEVELS,
        ),
    )
