"""Templates, and how values are written in them. Autoescape is on: a name from a results folder is
text, never markup."""

import hashlib
import json
import math
import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup, escape

from recombine.analysis.levels import PROBES, level_name
from recombine.analysis.paper_probe import PAPER
from recombine.plots.style import LEVELS, display
from recombine.report.bars import bar
from recombine.store import write_atomic

HERE = Path(__file__).parent
SCRIPTS = ("curves.js", "page.js", "claims.js")
WIDGET_NAME = re.compile(r"[a-z-]+")
HOSTILE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
PAPERS = {
    "A": "Farid et al., What Drives Compositional Generalization in Visual Generative Models? "
    "arXiv 2510.03075",
    "B": "Bradley, Local Mechanisms of Compositional Generalization in Conditional Diffusion, "
    "arXiv 2509.16447",
    "C": "Yang et al., Swing-by Dynamics in Concept Learning and Compositional Generalization, "
    "arXiv 2410.08309",
}
REFERENCE = re.compile(r"paper_(.+)|(.+)_(?:paper|law|expected)")
SYMBOLS = {
    "supported": "✓",
    "partly supported": "◐",
    "inconclusive": "?",
    "contradicted": "✕",
    "not measured": "–",
    "smoke": "·",
}


def environment(*folders: Path) -> Environment:
    """Templates of these folders, then of the report; base.html is the same for all pages."""
    loader = FileSystemLoader([*folders, HERE / "templates"])
    made = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    written = (
        number,
        short,
        display,
        percent,
        prose,
        script_json,
        pretty,
        duration,
        beside,
        kebab,
        region,
        probe_name,
        letter,
        bar,
    )
    made.filters |= {function.__name__: function for function in written} | {"level": level_name}
    script = "\n".join((HERE / name).read_text(encoding="utf-8") for name in SCRIPTS)
    nonce = hashlib.sha256(script.encode()).hexdigest()[:24]
    style = (HERE / "style.css").read_text(encoding="utf-8")
    made.globals |= {"css": Markup(style), "js": Markup(script), "nonce": nonce}
    made.globals |= {"colours": LEVELS, "symbols": SYMBOLS, "papers": PAPERS}
    return made


def number(value: Any) -> str:
    """0.7, 1.2e-10, 28,200: four digits are enough on a page; rows hold the rest."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, float):
        if value and math.isfinite(value) and not 1e-3 <= abs(value) < 1e5:
            digits, power = f"{value:.2e}".split("e")
            return f"{float(digits):g}e{int(power)}"
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(map(number, value))
    return str(value)


def short(value: float | None) -> str:
    """0.11, 5.67: two decimals where that says enough, as in the documentation."""
    if value is None or (value and not 0.005 <= abs(value) < 100):
        return number(value)
    return f"{value:.2f}"


def beside(measured: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """(name, ours, reference): a number of print or theory, called `paper_x`, `x_paper`, `x_law` or
    `x_expected`, joins `x`."""
    found: dict[str, list[Any]] = {}
    for key, value in measured.items():
        match = REFERENCE.fullmatch(key)
        name = (match.group(1) or match.group(2)) if match else key
        found.setdefault(name, [None, None])[1 if match else 0] = value
    return [(name.replace("_", " "), *values) for name, values in found.items()]


def region(expected: tuple[float | None, float | None]) -> str:
    """(0.5, None) -> "at least 0.5"."""
    low, high = expected
    if low is not None and high is not None:
        return f"{number(low)} to {number(high)}"
    if low is not None:
        return f"at least {number(low)}"
    return f"at most {number(high)}" if high is not None else "anything"


def letter(paper: str) -> str:
    """The paper of "A, Fig 3" is A; what is in no paper stays as it is."""
    return paper[:1] if paper[:1] in PAPERS and not paper[1:2].isalnum() else paper


def probe_name(probe: str) -> str:
    return PROBES.get(probe, "paper's linear probe" if probe == PAPER else probe)


def percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}\u202f%"


def duration(seconds: Any) -> str:
    if not isinstance(seconds, (int, float)):
        return str(seconds)
    for limit, unit, name in ((100, 1, "s"), (6000, 60, "min")):
        if seconds < limit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds / 3600:.1f} h"


def kebab(verdict: str) -> str:
    return verdict.replace(" ", "-")


def prose(text: Any) -> Markup:
    """Plain text with blank lines -> paragraphs; lines that all begin with "- " -> a list; `code`
    in backticks."""
    blocks = [b.strip("\n") for b in re.split(r"\n\s*\n", str(text or "").strip()) if b.strip()]
    return Markup("\n").join(_block(block) for block in blocks)


def _block(block: str) -> Markup:
    items = re.split(r"\n\s*[-*] ", "\n" + block)
    if not items[0].strip() and len(items) > 1:
        listed = [Markup("<li>{}</li>").format(_inline(item)) for item in items[1:]]
        return Markup("<ul>{}</ul>").format(Markup("").join(listed))
    return Markup("<p>{}</p>").format(_inline(block))


def _inline(text: str) -> Markup:
    escaped = str(escape(" ".join(text.split())))
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped))


def script_json(value: Any) -> Markup:
    """JSON that may stand inside a script element: nothing in it can close the element."""
    short = json.dumps(without_zeros(value), separators=(",", ":"), allow_nan=False)
    return Markup(short.translate(HOSTILE))


def without_zeros(value: Any) -> Any:
    """256.0 -> 256, wherever it stands: a tenth of a large page."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {key: without_zeros(each) for key, each in value.items()}
        case list() | tuple():
            return [without_zeros(each) for each in value]
    return value


def pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def widget(name: Any, nonce: str) -> Markup | None:
    """The interactive fragment called `name`, if the package has it; only our own files are ever
    included."""
    if not isinstance(name, str) or not WIDGET_NAME.fullmatch(name):
        return None
    path = HERE / "widgets" / f"{name}.html"
    if not path.is_file():
        return None
    return Markup(path.read_text(encoding="utf-8").replace("<script", f'<script nonce="{nonce}"'))


def write(path: Path, text: str) -> Path:
    """All or nothing: a page is never half there."""
    write_atomic(path, text)
    return path
