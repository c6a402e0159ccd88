"""The page of an evaluation: one file beside its sheet of samples."""

from pathlib import Path
from typing import Any

from markupsafe import Markup

from recombine.plots.style import LEVELS
from recombine.report.render import environment
from recombine.scoring.score import by_level
from recombine.scoring.sheet import ACROSS, FRAME, SIDE
from recombine.store import Row, write_atomic

HERE = Path(__file__).parent


def render(template: str, **values: Any) -> str:
    """Autoescape is on: a name from somebody's folder is text, never markup."""
    made = environment(HERE)
    made.filters |= {"share": share}
    own = (HERE / "page.css").read_text(encoding="utf-8")
    made.globals |= {"css": made.globals["css"] + Markup(own), "js": ""}
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
