"""README.md is what its generator makes of results/; what it links to is there."""

import re
from pathlib import Path

import pytest
from PIL import Image, ImageChops, ImageColor, ImageStat

from recombine.plots.style import LEVELS
from recombine.report.courses import courses
from recombine.report.pictures import amounts, asked, cover, on_tokens, needs_teacher, told, tried, unseen, varied
from recombine.report.readme import claims_page, filled, spans
from recombine.store import read_json

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text()


def test_the_tables_are_those_of_the_shipped_results():
    assert filled(TEXT, ROOT / "results") == TEXT


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (["B22", "B10", "B19", "B18"], "B10, B18, B19, B22"),
        (["S2", "S1", "S3", "B14", "S4"], "B14, S1 to S4"),
        (["T9", "T10", "T11", "T12", "T14"], "T9 to T12, T14"),
        (["D5a", "B4"], "B4, D5a"),
    ],
)
def test_claims_in_a_row_are_one_span_and_others_are_not(ids, said):
    assert spans(ids) == said


def test_the_page_of_all_claims_is_that_of_the_shipped_results():
    page = (ROOT / "docs" / "claims.md").read_text()
    assert claims_page(ROOT / "results") == page
    assert page.count("\n| ") == 1 + sum(len(read_json(p)) for p in (ROOT / "results").glob("*/claims.json"))


def test_filling_replaces_only_what_stands_between_the_markers():
    worn = re.sub(r"(<!-- claims -->\n).*?(<!-- /claims -->)", r"\1stale\n\2", TEXT, flags=re.S)
    assert worn != TEXT
    assert filled(worn, ROOT / "results") == TEXT


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\((?!http)([^)#]+)", TEXT))))
def test_every_link_leads_somewhere(target):
    assert (ROOT / target).exists()


@pytest.mark.parametrize(
    ("made", "levels"),
    [
        (cover, (0, 1, 2)),
        (amounts, (2,)),
        (tried, (2,)),
        (unseen, (2,)),
        (on_tokens, (2,)),
        (told, (1, 2)),
        (varied, (1, 2)),
        (needs_teacher, (1, 2)),
        (asked, ()),
        (courses, ()),
    ],
)
def test_pictures_frame_compositions_in_the_colours_of_their_levels_and_are_those_in_docs(made, levels):
    picture, shipped = made(ROOT / "results"), Image.open(ROOT / "docs" / f"{made.__name__}.png").convert("RGB")
    assert picture.width > picture.height > 100
    colors = {c for _, c in picture.getcolors(1 << 20)}
    assert {ImageColor.getrgb(LEVELS[k]) for k in levels} <= colors
    assert shipped.size == picture.size
    assert max(ImageStat.Stat(ImageChops.difference(picture, shipped)).mean) < 0.5, "make readme"
    coarse = [p.resize((p.width // 12, p.height // 12), Image.Resampling.BOX) for p in (picture, shipped)]
    assert max(high for _, high in ImageChops.difference(*coarse).getextrema()) < 40, "make readme"
