"""Studies without shipped results draw and estimate what they did from rows of the smallest scale
(`smoke_rows/`, two seeds): every word, colour, symbol and point, every number of every claim. If
they should look otherwise: `python tests/test_smoke_figures.py` stores them anew."""

import json
import tempfile
import zlib
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from test_shipped_figures import NAME, NUMBER, PIXELS, words_of

from recombine.analysis.claims import assess
from recombine.analysis.table import read_table
from recombine.studies import find

ROWS = Path(__file__).with_name("smoke_rows")
STORED = Path(__file__).with_name("smoke_figures.npz")
STUDIES = sorted(path.stem for path in ROWS.glob("*.parquet"))


def drawn(name: str, folder: Path) -> dict[str, np.ndarray]:
    """Of each figure without pictures: its words, the outline of its drawing, and all numbers."""
    parts: dict[str, np.ndarray] = {}
    for figure in find(name).figures(read_table(ROWS / f"{name}.parquet"), folder):
        text = (folder / f"{figure.name}.svg").read_text()
        if figure.name == "samples" or f"Matplotlib v{matplotlib.__version__}" not in text:
            continue
        bare = PIXELS.sub("", NAME.sub("", text))
        said = "\n".join([figure.title, figure.caption, *words_of(text)])
        parts[f"{name}/{figure.name}/said"] = np.array(said)
        parts[f"{name}/{figure.name}/shape"] = np.array(zlib.crc32(NUMBER.sub("0", bare).encode()))
        parts[f"{name}/{figure.name}/numbers"] = np.array(NUMBER.findall(bare), np.float32)
    return parts


def estimated(name: str) -> dict[str, np.ndarray]:
    """Of each claim: its note, and each part's estimate with interval and region."""
    rows, parts = read_table(ROWS / f"{name}.parquet"), {}
    for claim in find(name).claims:
        found = assess(claim, rows, "full").json(name, "full", 2, {})
        parts[f"{name}/{claim.id}"] = np.array(json.dumps(found, sort_keys=True, default=str))
    return parts


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_a_figure_is_drawn_as_before(name, tmp_path):
    held = np.load(STORED)
    for key, now in drawn(name, tmp_path).items():
        if key.endswith("numbers"):
            assert np.abs(now - held[key]).max() < 0.06, f"{key}: {__doc__}"
        else:
            assert now == held[key], f"{key}: {__doc__}"


@pytest.mark.parametrize("name", STUDIES)
def test_a_claim_is_estimated_as_before(name):
    held = np.load(STORED)
    for key, now in estimated(name).items():
        same(json.loads(str(now)), json.loads(str(held[key])), key)


def same(now: object, then: object, where: str) -> None:
    """Up to the last digits, in which machines differ."""
    if isinstance(now, dict) and isinstance(then, dict):
        assert now.keys() == then.keys(), where
        for key in now:
            same(now[key], then[key], f"{where}/{key}")
    elif isinstance(now, list) and isinstance(then, list):
        assert len(now) == len(then), where
        for one, other in zip(now, then, strict=True):
            same(one, other, where)
    elif isinstance(now, float):
        assert now == pytest.approx(then, rel=1e-4, abs=1e-6), where
    else:
        assert now == then, where


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        kept = {k: v for n in STUDIES for k, v in drawn(n, Path(place) / n).items()}
    kept |= {k: v for n in STUDIES for k, v in estimated(n).items()}
    np.savez_compressed(STORED, **kept)
