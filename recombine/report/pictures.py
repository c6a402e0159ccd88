"""The pictures of README and docs that are laid out from the samples of the shipped results."""

from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from PIL import Image, ImageDraw, ImageFont

from recombine.plots.style import INK, LEVELS
from recombine.report.read import run_of
from recombine.store import read_json, read_rows
from recombine.studies.base import Rows


def tile(sheet: Path, row: int, rows: int, frame: str, zoom: int = 3, gap: int = 6) -> Image.Image:
    """Four samples of the composition that stands in a row of a sheet, framed."""
    image = Image.open(sheet)
    side = image.height // rows
    made = Image.new("RGB", (2 * side * zoom + 2 * gap,) * 2, frame)
    for j in range(4):
        cell = image.crop((j * side, row * side, (j + 1) * side, (row + 1) * side)).resize((side * zoom,) * 2, 0)
        made.paste(cell, (gap + j % 2 * side * zoom, gap + j // 2 * side * zoom))
    return made


def samples(results: Path, run: str) -> list[Path]:
    return sorted((results / "runs" / run / "samples").glob("*.png"))


def cover(results: Path) -> Image.Image:
    """What the first run of `composition` whose classes vary draws at the end: a tile per composition, in the colour of its
    level."""
    study = read_json(results / "composition" / "study.json")
    run = next(r["digest"] for r in study["runs"] if r["variant"] == "varied")
    codes, sheet = sorted(study["levels"]), samples(results, run)[-1]
    tiles = [tile(sheet, i, len(codes), LEVELS[study["levels"][c]]) for i, c in enumerate(codes)]
    step, columns = tiles[0].width + 6, 4
    page = Image.new("RGB", (columns * step - 6, len(tiles) // columns * step - 6), "white")
    for i, one in enumerate(tiles):
        page.paste(one, (i % columns * step, i // columns * step))
    return page


SIDE, LINE, GAP, APART, HEAD, FOOT = 118, 30, 8, 22, 62, 28
"""Of a board, in pixels: a tile, the words below it, the room between tiles and between blocks, words above and below all."""
NAMED = {"wary": "the judge", "read": "by the strict reader"}


class Block(NamedTuple):
    """Some columns of a board, one per seed: what runs draw of one composition, at one checkpoint or at the end of each.
    `lines`: of these variants alone, each in the line that is named; without it all, as they are called."""

    title: str
    step: int | None
    code: str
    lines: dict[str, str] | None = None


class Board:
    """What the runs of a study draw: a line per variant, blocks side by side, below each tile what probes say of it."""

    def __init__(self, results: Path, name: str, probes: tuple[str, ...] = ("wary",)) -> None:
        self.folder, self.probes = results / name, probes
        self.study: dict[str, Any] = read_json(self.folder / "study.json")
        self.levels: dict[str, int] = self.study["levels"]
        self.rows = Rows(r for r in read_rows(self.folder / "rows.jsonl") if r["kind"] == "accuracy")
        self.steps = sorted({r["step"] for r in self.rows})
        self.furthest = max(sorted(self.levels), key=lambda code: self.levels[code])

    def peak(self) -> int:
        """Where all runs together are best at the composition furthest from all they saw, by the judge."""
        some = self.rows.where(probe="wary", composition=self.furthest)
        return max(self.steps, key=lambda step: fmean(some.where(step=step).column("joint")))

    def then_and_now(self) -> Image.Image:
        """The furthest composition where all are best, and at the end."""
        return self.page(
            [Block(f"after {step:,} updates", step, self.furthest) for step in (self.peak(), self.steps[-1])]
        )

    def page(self, blocks: list[Block]) -> Image.Image:
        shown = [(b, self.runs(b)) for b in blocks]
        lines, seeds = list(dict.fromkeys(line for _, some in shown for line, _ in some)), self.study["seeds"]
        left = max(92, 24 + max(int(font(17).getlength(line)) for line in lines))
        wide = len(seeds) * (SIDE + GAP)
        high = HEAD + len(lines) * (SIDE + LINE)
        page = Image.new("RGB", (left + len(blocks) * (wide + APART) - APART, high + FOOT), "white")
        pen = ImageDraw.Draw(page)
        words = " / ".join(NAMED[p] for p in self.probes)
        pen.text((left, high + FOOT / 2), f"below each: the share accepted by {words}", INK, font(15), "lm")
        for i, line in enumerate(lines):
            pen.text((left - 12, HEAD + i * (SIDE + LINE) + SIDE / 2), line, INK, font(17), "rm")
        for k, (block, runs) in enumerate(shown):
            x = left + k * (wide + APART)
            pen.text((x + (wide - GAP) / 2, 14), block.title, INK, font(17), "mm")
            for seed in seeds:
                pen.text((x + seed * (SIDE + GAP) + SIDE / 2, 44), f"seed {seed}", INK, font(15), "mm")
            for line, run in runs:
                at = (x + run["seed"] * (SIDE + GAP), HEAD + lines.index(line) * (SIDE + LINE))
                page.paste(self.tile(run["digest"], block), at)
                pen.text((at[0] + SIDE / 2, at[1] + SIDE + 12), self.said(run["digest"], block), INK, font(15), "mm")
        return page

    def runs(self, block: Block) -> list[tuple[str, dict[str, Any]]]:
        """The runs of a block, each with the line it stands in."""
        runs = self.study["runs"]
        lines = block.lines or {r["variant"]: r["variant"] for r in runs}
        return [(line, r) for variant, line in lines.items() for r in runs if r["variant"] == variant]

    def step(self, run: str, block: Block) -> int:
        return max(self.rows.where(run=run).column("step")) if block.step is None else block.step

    def tile(self, run: str, block: Block) -> Image.Image:
        sheet = run_of(self.folder, run) / "samples" / f"step_{self.step(run, block):08d}.png"
        codes = sorted(self.levels)
        made = tile(sheet, codes.index(block.code), len(codes), LEVELS[self.levels[block.code]], zoom=2, gap=3)
        return made.resize((SIDE, SIDE))

    def said(self, run: str, block: Block) -> str:
        some = self.rows.where(run=run, step=self.step(run, block), composition=block.code)
        return " / ".join(f"{some.where(probe=p)[0]['joint']:.2f}" for p in self.probes)


def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def unseen(results: Path) -> Image.Image:
    """Small blue triangles by the families of paper A."""
    return Board(results, "objectives").then_and_now()


def on_tokens(results: Path) -> Image.Image:
    """The same on two kinds of tokens."""
    return Board(results, "tokenizers").then_and_now()


def told(results: Path) -> Image.Image:
    """DiTs that are told more or less."""
    return blue(Board(results, "conditioning", ("wary", "read")))


def varied(results: Path) -> Image.Image:
    """DiTs that are told loudly or quietly, and one whose classes vary."""
    return blue(Board(results, "composition", ("wary", "read")))


def amounts(results: Path) -> Image.Image:
    """Small blue triangles by the families of paper A, where pictures of a class differ not at all, as usual, and more."""
    board = Board(results, "variation", ("wary", "read"))
    worlds = {"plain": "classes do not vary", "usual": "vary as usual", "varied": "vary more"}
    families = ("maskgit", "givt", "mar", "dit")
    lines = {world: {f"{family}, {world}": family for family in families} for world in worlds}
    return board.page([Block(title, None, board.furthest, lines[world]) for world, title in worlds.items()])


def tried(results: Path) -> Image.Image:
    """Small blue triangles by MaskGIT and DiT, with one detail changed at a time."""
    board = Board(results, "details", ("wary", "read"))
    changes = {
        "": "as usual",
        ", classes": "told classes",
        ", longer": "3 x the updates",
        ", small": "a ninth of the weights",
        ", cool": "temperature 0.7",
    }
    families = {"maskgit": "MaskGIT", "dit": "DiT"}
    lines = {family: {f"{family}{ending}": line for ending, line in changes.items()} for family in families}
    return board.page([Block(title, None, board.furthest, lines[family]) for family, title in families.items()])


def taught(results: Path) -> Image.Image:
    """Unseen triangles of the lead on `which`, by what varies inside classes."""
    board = Board(results / "leads" / "which", "which", ("wary", "read"))
    named = {"101": "small red triangle", "110": "large blue triangle", "111": "small blue triangle"}
    return board.page([Block(title, board.steps[-1], code) for code, title in named.items()])


def blue(board: Board) -> Image.Image:
    """Blue triangles, large and small; by the judge and by the strict reader."""
    named = {"110": "large blue triangle (level 1)", "111": "small blue triangle (level 2)"}
    return board.page([Block(title, board.steps[-1], code) for code, title in named.items()])


TOLD = {
    "exp1": "all, on a grid",
    "exp2": "one, on a grid",
    "exp3": "all, as a list",
    "exp2L": "one; local",
    "exp3L": "list; local",
    "exp2L, whole": "one; patch as\nlarge as the picture",
}
"""The experiments of `length`, and what each is told."""
MARKS, EACH = (1, 3, 6, 9), 2
"""Numbers of marks that are shown, and pictures of each."""


def asked(results: Path) -> Image.Image:
    """What models that saw one to three objects draw for 1, 3, 6 and 9 marks, and K_max, ours and the paper's."""
    study, claims = (read_json(results / "length" / f"{part}.json") for part in ("study", "claims"))
    measured = {k: v for claim in claims for k, v in claim["measured"].items()}
    first = {r["variant"]: r["digest"] for r in reversed(study["runs"])}
    numbers = study["settings"]["recipe"]["evaluation"]["marks"]
    left, wide = 196, EACH * (SIDE + 2) + APART
    page = Image.new("RGB", (left + len(MARKS) * wide + 110, 40 + len(TOLD) * (SIDE + GAP)), "white")
    pen = ImageDraw.Draw(page)
    for k, marks in enumerate(MARKS):
        title = f"{marks} mark{'s' if marks > 1 else ''}"
        pen.text((left + k * wide + (wide - APART) / 2, 20), title, INK, font(17), "mm")
    pen.text((left + len(MARKS) * wide + 45, 20), "K_max (paper)", INK, font(15), "mm")
    for i, (variant, told) in enumerate(TOLD.items()):
        y = 40 + i * (SIDE + GAP)
        pen.text((left - 14, y + SIDE / 2 - 22), variant.partition(",")[0].replace("exp", "Exp "), INK, font(17), "rm")
        pen.multiline_text((left - 14, y + SIDE / 2 + 10), told, INK, font(15), "rm", align="right")
        paper = measured.get(f"paper_{variant}", "fails")
        pen.text(
            (left + len(MARKS) * wide + 45, y + SIDE / 2), f"{measured[variant]:.3g} ({paper})", INK, font(17), "mm"
        )
        sheet = Image.open(samples(results, first[variant])[-1])
        for k, marks in enumerate(MARKS):
            for j in range(EACH):
                page.paste(cell(sheet, numbers.index(marks), j, len(numbers)), (left + k * wide + j * (SIDE + 2), y))
    return page


def cell(sheet: Image.Image, row: int, column: int, rows: int) -> Image.Image:
    """One square of a sheet, as large as a tile."""
    side = sheet.height // rows
    box = (column * side, row * side, (column + 1) * side, (row + 1) * side)
    return sheet.crop(box).resize((SIDE, SIDE), Image.Resampling.LANCZOS)
