"""The generated parts of README.md: the studies, and the claims with the verdicts of the shipped reference results. Run by
`make readme`; a test holds the file against it. Everything comes from what is on disk in results/."""

import re
from pathlib import Path
from typing import Any

from PIL import Image

from recombine.figures import LEVELS
from recombine.store import read_json
from recombine.studies import MODULES

MARK = {
    "reproduced": "✅ reproduced",
    "partly": "🟡 partly",
    "not reproduced": "❌ not reproduced",
    "not measured": "– not measured",
}


def studies_table(results: Path) -> str:
    lines = ["| study | question | paper | claims | scale of the results |", "|---|---|---|---|---|"]
    for folder in folders(results):
        study, claims = read_json(folder / "study.json"), read_json(folder / "claims.json")
        ids = [c["id"] for c in claims]
        alike = len({i[0] for i in ids}) == 1
        span = f"{ids[0]} to {ids[-1]}" if alike and len(ids) > 3 else ", ".join(ids)
        cells = (
            f"`{study['name']}`",
            study["question"],
            study["paper"],
            span,
            f"{study['scale']}, {study['provenance']['device']}",
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def claims_table(results: Path) -> str:
    lines = ["| claim | statement | expected | measured | verdict |", "|---|---|---|---|---|"]
    for folder in folders(results):
        lines += [claim_line(c) for c in read_json(folder / "claims.json")]
    return "\n".join(lines)


def claim_line(claim: dict[str, Any]) -> str:
    some = list(claim["measured"].items())[:4]
    measured = ", ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in some)
    verdict = f"{MARK.get(claim['verdict'], claim['verdict'])}"
    cells = (claim["id"], claim["statement"], claim["expected"], measured, verdict)
    return "| " + " | ".join(str(c).replace("|", "\\|") for c in cells) + " |"


def folders(results: Path) -> list[Path]:
    """In the order of `recombine list`."""
    return [results / name for name in MODULES if (results / name / "study.json").exists()]


def filled(text: str, results: Path) -> str:
    """`text` with what stands between the markers made anew."""
    for name, table in (("studies", studies_table(results)), ("claims", claims_table(results))):
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.S)
        text = pattern.sub(lambda m, table=table: f"{m[1]}{table}\n{m[2]}", text)
    return text


def cover(results: Path, columns: int = 4, zoom: int = 3, gap: int = 6) -> Image.Image:
    """The last samples of the first trained run: a tile per composition, framed in the colour of its level."""
    study = read_json(results / "composition" / "study.json")
    sheet = Image.open(sorted((results / "runs" / study["runs"][0]["digest"] / "samples").glob("*.png"))[-1])
    codes = sorted(study["levels"])
    side = sheet.height // len(codes)
    inner = (2 * side * zoom, 2 * side * zoom)
    tile = inner[0] + 2 * gap
    page = Image.new("RGB", (columns * (tile + gap), len(codes) // columns * (tile + gap)), "white")
    for i, code in enumerate(codes):
        frame = Image.new("RGB", (tile, tile), LEVELS[study["levels"][code]])
        for j in range(4):
            cell = sheet.crop((j * side, i * side, (j + 1) * side, (i + 1) * side)).resize(
                (side * zoom, side * zoom), 0
            )
            frame.paste(cell, (gap + j % 2 * side * zoom, gap + j // 2 * side * zoom))
        page.paste(frame, (i % columns * (tile + gap), i // columns * (tile + gap)))
    return page


def main() -> None:
    root = Path(__file__).parents[2]
    path = root / "README.md"
    path.write_text(filled(path.read_text(), root / "results"))
    cover(root / "results").save(root / "docs" / "cover.png", optimize=True)


if __name__ == "__main__":
    main()
