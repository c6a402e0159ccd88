"""README.md and docs/ hold what their generator makes of results/; what the README links to is
there."""

import re
import sys
from pathlib import Path

import pytest
from PIL import Image, ImageChops, ImageColor, ImageStat

from recombine.plots.style import LEVELS
from recombine.store import read_json

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from claim_tables import all_claims, filled_tables  # noqa: E402
from detector_tables import agreement, read_counts  # noqa: E402
from numbers_as_text import called, number, region, verdict  # noqa: E402
from prose_numbers import filled_numbers, uncited  # noqa: E402
from readme import PICTURES, claims_page, filled, spans  # noqa: E402
from seed_tables import seeds_table  # noqa: E402

TEXT = (ROOT / "README.md").read_text()
PAGES = sorted((ROOT / "docs").glob("*.md"))
FRAMED = {"cover": (0, 1, 2), "objectives": (0, 1, 2)}
FRAMED |= {"composition": (0, 1, 2), "jitter": (2,), "ablations": (2,)}
"""The levels whose compositions a picture shows."""


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
    claims = [
        claim for path in (ROOT / "results").glob("*/claims.json") for claim in read_json(path)
    ]
    assert page.count("\n| ") == 1 + len(claims)


@pytest.mark.parametrize(
    ("interval", "expected", "said"),
    [
        ((0.3, 0.7), (None, 0.15), "inconclusive (outside)"),
        ((0.1, 0.7), (None, 0.15), "inconclusive"),
        ((0.1, 0.2), (0.3, 1.0), "inconclusive (outside)"),
        ((0.1, 0.3), (0.3, 1.0), "inconclusive"),
        (None, (0.3, 1.0), "inconclusive"),
    ],
)
def test_a_table_says_where_an_interval_lies_outside_its_region(interval, expected, said):
    part = {"verdict": "inconclusive", "interval": interval, "expected": expected}
    assert verdict(part) == said
    assert verdict(part | {"verdict": "contradicted"}) == "contradicted"


def test_one_rate_has_one_name_in_tables():
    assert called("maskgit, 0.001, not clipped, level 2") == "MaskGIT, 1e-3, 3,000 updates, level 2"
    assert called("maskgit, lr 1e-3") == "MaskGIT, 1e-3, 8,000 updates"
    assert called("jepa, all labels, lr 1e-3") == "MaskGIT + JEPA, 12 layers, 1e-3"


def test_filling_replaces_only_what_stands_between_the_markers():
    worn = re.sub(r"(<!-- studies -->\n).*?(<!-- /studies -->)", r"\1stale\n\2", TEXT, flags=re.S)
    assert worn != TEXT
    assert filled(worn, ROOT / "results") == TEXT


ESTIMATE = re.compile(r"(-?\d+\.\d\d) \[(-?\d+\.\d\d), (-?\d+\.\d\d)\]")
VERDICT = re.compile(r"\b([A-Z]\d+a?):\s+(supported|partly\s+supported|inconclusive|contradicted)")


def test_the_readme_cites_estimates_and_verdicts_as_they_are():
    """`0.56 [0.49, 0.63], n = 5 ... (C1: supported)`: a part of C1 has this estimate and n, or it
    stands beside some claim; or in a table of docs/data."""
    claims = all_claims(ROOT / "results")
    cited = list(ESTIMATE.finditer(TEXT))
    beside = {v for c in claims.values() for v in c["measured"].values() if isinstance(v, str)}
    assert len(cited) >= 5
    tables = "".join(path.read_text() for path in (ROOT / "docs" / "data").glob("*.csv"))
    for match in cited:
        if f'"{" ".join(match[0].split())}"' in tables:
            continue
        rest = TEXT[match.end() :]
        claim = claims[VERDICT.search(rest)[1]]
        seeds = int(re.search(r"n\s=\s(\d+)", rest)[1])
        if f"{' '.join(match[0].split())}, n = {seeds}" in beside:
            continue
        parts = [p for p in claim["parts"] if p.get("interval") and p["n"] == seeds]
        found = [tuple(map(number, (p["estimate"], *p["interval"]))) for p in parts]
        assert match.groups() in found, f"{claim['id']}: {match[0]}"
    for name, words in VERDICT.findall(TEXT):
        assert claims[name]["verdict"] == " ".join(words.split()), name


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_tables_of_a_page_are_those_of_the_shipped_results(path):
    text = path.read_text()
    assert filled_tables(text, ROOT / "results") == text, "make readme"


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ((0.95, 1.0), ">= 0.95"),
        ((0.0, 0.15), "<= 0.15"),
        ((None, 2.0), "<= 2"),
        ((-0.15, 0.15), "-0.15 to 0.15"),
    ],
)
def test_a_region_is_said_without_its_natural_bound(expected, said):
    assert region({"expected": expected}) == said


@pytest.mark.parametrize("path", [ROOT / "README.md", *PAGES], ids=lambda path: path.name)
def test_every_link_leads_somewhere(path):
    for target in re.findall(r"\]\((?!http)([^)#]+)", path.read_text()):
        assert (path.parent / target).exists(), target


def test_every_picture_is_shown_or_linked():
    text = TEXT + "".join(path.read_text() for path in PAGES)
    assert not [p.name for p in (ROOT / "docs").glob("*.png") if p.name not in text]


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_those_in_docs_and_frame_compositions_in_the_colours_of_their_levels(name):
    picture = PICTURES[name](ROOT / "results")
    with Image.open(ROOT / "docs" / f"{name}.png") as image:
        shipped = image.convert("RGB")
    colors = {color for _, color in picture.getcolors(1 << 20)}
    assert {ImageColor.getrgb(LEVELS[level]) for level in FRAMED.get(name, ())} <= colors
    assert shipped.size == picture.size
    assert max(ImageStat.Stat(ImageChops.difference(picture, shipped)).mean) < 0.5, "make readme"
    size = (picture.width // 12, picture.height // 12)
    coarse = [p.resize(size, Image.Resampling.BOX) for p in (picture, shipped)]
    worst = max(high for _, high in ImageChops.difference(*coarse).getextrema())
    assert worst < 40, "make readme"


CHOSEN = {
    "swing-by.md": set(),
    "interactions.md": set(),
    "missing-labels.md": {"0.05"},
    "local-scores.md": set(),
    "concept-space.md": {"0.4", "0.8", "0.9"},
    "pictures.md": set(),
    "jitter.md": {"-0.06", "-0.25"},
}
"""Pages, and the numbers in their sentences that no claim measures: thresholds, the jitter of
worlds."""


@pytest.mark.parametrize("name", CHOSEN)
def test_numbers_in_the_sentences_of_a_page_cite_their_source(name):
    text = (ROOT / "docs" / name).read_text()
    assert uncited(text) == CHOSEN[name]


def test_a_number_that_cites_a_claim_follows_it_and_others_stay():
    claims = {"T1": {"measured": {"error, worst": -0.01239}}}
    text = "0.0<!-- T1: error, worst --> and 0.020<!-- T1: error, worst -->, not 0.5"
    made = filled_numbers(text, claims, ROOT)
    assert made == "0.0<!-- T1: error, worst --> and -0.012<!-- T1: error, worst -->, not 0.5"
    assert uncited(made) == {"0.5"}


def test_counts_by_eye_are_of_240_different_pictures():
    counts = read_counts()
    keys = ("variant", "seed", "locations", "picture")
    assert len({tuple(c[k] for k in keys) for c in counts}) == len(counts) == 240
    assert agreement(counts)[0] == "240"
    off = [c | {"by_eye": str(int(c["by_detector"]) + 2)} for c in counts]
    assert agreement(off)[1:] == ["0.00", "0.00", "-2.00"]


def test_a_table_of_seeds_puts_every_number_under_its_own_seed():
    measured = {
        "dit": 0.6,
        "dit, by seed": "0.50 0.70",
        "mar, by seed": "0.10 0.30",
        "mar, seeds run": "1 5",
    }
    assert seeds_table([{"measured": measured}]).splitlines()[::2] == [
        "| level 2 by seed | 0 | 1 | 5 | mean |",
        "| DiT | 0.50 | 0.70 | | 0.60 |",
    ]
    assert seeds_table([{"measured": measured}]).splitlines()[3] == "| MAR | | 0.10 | 0.30 | 0.20 |"
