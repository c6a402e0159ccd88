"""Pictures of README and docs that are laid out from the sample sheets of the shipped results."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from PIL import Image, ImageDraw, ImageFont

from recombine.analysis.levels import PROBES, late_mean, means
from recombine.analysis.scenes import PAPER, reached
from recombine.plots.scene_pictures import run_sheet
from recombine.plots.sheets import sheet_path
from recombine.plots.style import INK, LEVELS, display
from recombine.report.read import Results, read_results

SIDE, LINE, GAP, HEAD, FOOT = 118, 26, 10, 34, 30
"""Of a board, in pixels: a tile, the words below it, the room between tiles, words above and below
all."""


class Tile(NamedTuple):
    """Four samples of one composition by one variant."""

    variant: str
    code: str


class Samples:
    """The sheets and accuracies of one study: the first seed of every variant, at the end of
    training."""

    def __init__(self, results: Path, name: str, probes: Sequence[str] = ("open-set", "oracle")):
        self.read: Results = read_results(results / name)
        self.levels = self.read.study.levels or {}
        self.codes = sorted(self.levels)
        self.probes = probes
        self.rows = self.read.rows.where(kind="accuracy")
        self.furthest = max(self.codes, key=self.levels.__getitem__)

    @property
    def variants(self) -> list[str]:
        return self.rows.unique("variant")

    def tile(self, tile: Tile, zoom: int = 2, gap: int = 3) -> Image.Image:
        """Two by two samples in a frame of the colour of the level."""
        with Image.open(self.sheet(tile.variant), formats=["WEBP"]) as picture:
            sheet = picture.convert("RGB")
        side, row = sheet.height // len(self.codes), self.codes.index(tile.code)
        large = side * zoom
        made = Image.new("RGB", (2 * large + 2 * gap,) * 2, LEVELS[self.levels[tile.code]])
        for j in range(4):
            cell = sheet.crop((j * side, row * side, (j + 1) * side, (row + 1) * side))
            made.paste(cell.resize((large,) * 2, 0), (gap + j % 2 * large, gap + j // 2 * large))
        return made

    def sheet(self, variant: str) -> Path:
        rows = self.rows.where(variant=variant)
        seed = min(rows.unique("seed"))
        step = max(rows.where(seed=seed).unique("step"))
        return sheet_path(self.read.folder / "figures", variant, seed, step)

    def score(self, tile: Tile) -> str:
        """Its late accuracy by each probe, the mean over seeds."""
        rows = self.rows.where(variant=tile.variant, composition=tile.code)
        return " / ".join(f"{late_mean(means(rows.where(probe=p))):.2f}" for p in self.probes)

    def board(self, lines: dict[str, list[Tile]], titles: Sequence[str]) -> Image.Image:
        """A line of tiles under each title."""
        left = 24 + max(int(font(17).getlength(line)) for line in lines)
        width = max(left + len(titles) * (SIDE + GAP), 24 + int(font(15).getlength(self.legend())))
        page = Image.new("RGB", (width, HEAD + len(lines) * (SIDE + LINE) + FOOT), "white")
        pen = ImageDraw.Draw(page)
        for j, title in enumerate(titles):
            middle = left + j * (SIDE + GAP) + SIDE / 2
            pen.text((middle, HEAD / 2), title, INK, font(15), "mm")
        for i, (line, tiles) in enumerate(lines.items()):
            y = HEAD + i * (SIDE + LINE)
            pen.text((left - 12, y + SIDE / 2), line, INK, font(17), "rm")
            for j, tile in enumerate(tiles):
                x = left + j * (SIDE + GAP)
                page.paste(self.tile(tile).resize((SIDE, SIDE)), (x, y))
                pen.text((x + SIDE / 2, y + SIDE + 12), self.score(tile), INK, font(15), "mm")
        pen.text((12, page.height - FOOT / 2), self.legend(), INK, font(15), "lm")
        return page

    def legend(self) -> str:
        seeds = len(self.rows.unique("seed"))
        names = " / ".join(PROBES[p] for p in self.probes)
        return f"Late means over {seeds} seeds: {names}. Samples: first seed, end of training."

    def compositions(self) -> Image.Image:
        """A line per variant, a tile per composition, the seen ones first."""
        codes = sorted(self.codes, key=lambda code: (self.levels[code], code))
        values = [[str(value) for value in factor.values] for factor in self.read.study.factors]
        titles = [" ".join(v[int(d)] for v, d in zip(values, code, strict=True)) for code in codes]
        lines = {display(v): [Tile(v, code) for code in codes] for v in self.variants}
        return self.board(lines, [short(title) for title in titles])


def short(title: str) -> str:
    """The name of a composition, so that it fits above a tile."""
    return title.replace("triangle", "tri.").replace("circle", "circ.")


def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def cover(results: Path) -> Image.Image:
    """A model that composes: `composition` with wide jitter, a large tile per composition."""
    samples = Samples(results, "composition")
    tiles = [samples.tile(Tile("wide", code), zoom=3, gap=6) for code in samples.codes]
    step, columns = tiles[0].width + 6, 4
    rows = len(tiles) // columns
    page = Image.new("RGB", (columns * step - 6, rows * step - 6), "white")
    for i, tile in enumerate(tiles):
        page.paste(tile, (i % columns * step, i // columns * step))
    return page


def objectives(results: Path) -> Image.Image:
    return Samples(results, "objectives").compositions()


def composition(results: Path) -> Image.Image:
    return Samples(results, "composition").compositions()


def jitter(results: Path) -> Image.Image:
    """The unseen composition furthest away, by family and within-class jitter."""
    samples = Samples(results, "jitter")
    amounts = ("none", "usual", "wide")
    families = {"maskgit": "MaskGIT", "givt": "GIVT", "mar": "MAR", "dit": "DiT"}
    lines = {
        title: [Tile(f"{family}, {amount}", samples.furthest) for amount in amounts]
        for family, title in families.items()
    }
    return samples.board(lines, [f"jitter: {amount}" for amount in amounts])


CHANGES = {
    "": "as in objectives",
    ", classes": "class labels",
    ", longer": "3 x the updates",
    ", small": "1/9 of the weights",
    ", cool": "temperature 0.7",
}


def ablations(results: Path) -> Image.Image:
    """The unseen composition furthest away, with one thing changed at a time."""
    samples = Samples(results, "ablations")
    lines = {}
    for family, title in (("maskgit", "MaskGIT"), ("dit", "DiT")):
        tiles = [Tile(f"{family}{ending}", samples.furthest) for ending in CHANGES]
        lines[title] = [tile for tile in tiles if tile.variant in samples.variants]
    return samples.board(lines, list(CHANGES.values()))


EXPERIMENTS = {
    "exp1": "all, on a grid",
    "exp2": "one, on a grid",
    "exp3": "all, as a list",
    "exp2L": "one; local, tokens",
    "exp2L, patches, longer": "one; local, U-Net",
    "exp3L": "list; local, tokens",
    "exp3L, patches": "list; local, U-Net",
    "exp2L, whole": "one; whole picture,\ntokens",
    "exp2L, patches, whole": "one; whole picture,\nU-Net",
}
"""The experiments of `length`, and what each is conditioned on."""
LOCATIONS, EACH = (1, 3, 6, 9), 2
"""Numbers of locations that are shown, and pictures of each."""


def length(results: Path) -> Image.Image:
    """Pictures for 1, 3, 6 and 9 locations by models trained on one to three objects, and K_max
    beside the paper's."""
    study = read_results(results / "length")
    count = study.rows.where(kind="count")
    run = {v: words for v, words in EXPERIMENTS.items() if count.where(variant=v)}
    left, wide = 196, EACH * (SIDE + 2) + 2 * GAP
    right = left + len(LOCATIONS) * wide + 45
    page = Image.new("RGB", (right + 65, 40 + len(run) * (SIDE + GAP)), "white")
    pen = ImageDraw.Draw(page)
    for k, number in enumerate(LOCATIONS):
        title = f"{number} location{'s' if number > 1 else ''}"
        pen.text((left + k * wide + wide / 2 - GAP, 20), title, INK, font(17), "mm")
    pen.text((right, 20), "K_max (paper)", INK, font(15), "mm")
    for i, (variant, condition) in enumerate(run.items()):
        y = 40 + i * (SIDE + GAP)
        name = variant.partition(",")[0].replace("exp", "Exp ")
        pen.text((left - 14, y + SIDE / 2 - 22), name, INK, font(17), "rm")
        at = (left - 14, y + SIDE / 2 + 10)
        pen.multiline_text(at, condition, INK, font(15), "rm", align="right")
        k, paper = fmean(reached(study.rows, variant).values()), PAPER.get(variant, "fails")
        pen.text((right, y + SIDE / 2), f"{k:.3g} ({paper})", INK, font(17), "mm")
        numbers = sorted(count.where(variant=variant).unique("locations"))
        with Image.open(run_sheet(study.rows, variant, study.folder / "figures")) as sheet:
            for k, number in enumerate(LOCATIONS):
                for j in range(EACH if number in numbers else 0):
                    picture = cell(sheet, numbers.index(number), j, len(numbers))
                    page.paste(picture, (left + k * wide + j * (SIDE + 2), y))
    return page


def cell(sheet: Image.Image, row: int, column: int, rows: int) -> Image.Image:
    """One square of a sheet, as large as a tile."""
    side = sheet.height // rows
    box = (column * side, row * side, (column + 1) * side, (row + 1) * side)
    return sheet.crop(box).convert("RGB").resize((SIDE, SIDE), Image.Resampling.LANCZOS)
