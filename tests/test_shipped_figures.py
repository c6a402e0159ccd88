"""The figures in `results/` are what today's code draws of the rows beside them: every word, colour
and symbol, and every point of every curve."""

import re
from base64 import b64decode
from io import BytesIO
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from PIL import Image

from recombine.analysis.table import read_rows_of
from recombine.files import read_json
from recombine.plots import style
from recombine.studies import find

RESULTS = Path(__file__).parents[1] / "results"
STUDIES = sorted(path.parent.name for path in RESULTS.glob("*/figures"))
QUICK = ("colours", "operator")
"""All others are not among `make test`, but in CI; what most of them share: `test_figures`."""
NUMBER = re.compile(r"(?<![#\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?")
NAME = re.compile(r"(?<=[#\"])[mpC][0-9a-f]{9,}(?:_[0-9a-f_]+)?")
"""Names that matplotlib makes of what they stand for."""
PIXELS = re.compile(r"data:image/(?:png|jpeg);base64,\s*([A-Za-z0-9+/=\s]+)")
AGAIN = "if it should look so: recombine claims results --again"


def words_of(text: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)<", text)


def pictures_of(text: str) -> list[np.ndarray]:
    found = (Image.open(BytesIO(b64decode(m))) for m in PIXELS.findall(text))
    return [np.asarray(picture.convert("RGB"), float) for picture in found]


def same(made: str, shipped: str) -> None:
    """Up to the last digits, in which machines differ."""
    assert words_of(made) == words_of(shipped), AGAIN
    bare = [PIXELS.sub("", NAME.sub("", text)) for text in (made, shipped)]
    shape = [NUMBER.sub("0", text) for text in bare]
    assert shape[0] == shape[1], AGAIN
    numbers = [np.array(NUMBER.findall(text), float) for text in bare]
    assert np.abs(numbers[0] - numbers[1]).max() < 0.06, AGAIN
    for a, b in zip(pictures_of(made), pictures_of(shipped), strict=True):
        assert a.shape == b.shape
        assert np.abs(a - b).mean() < 1, AGAIN


@pytest.mark.parametrize("name", QUICK)
def test_a_shipped_figure_is_drawn_again_from_its_rows(name, tmp_path, monkeypatch):
    drawn_again(name, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(STUDIES) - set(QUICK)))
def test_a_shipped_figure_that_takes_long_is_drawn_again(name, tmp_path, monkeypatch):
    drawn_again(name, tmp_path, monkeypatch)


def drawn_again(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, study = RESULTS / name, read_json(RESULTS / name / "study.json")
    listed = study["figures"]
    wanted = [f["name"] for f in listed]
    version = f"Matplotlib v{matplotlib.__version__}"
    if version not in (folder / "figures" / f"{wanted[0]}.svg").read_text():
        pytest.skip("shipped figures are by another version of matplotlib")
    save = style.save
    monkeypatch.setattr(
        style, "save", lambda drawing, to, f: save(drawing, to, f) if f.name in wanted else None
    )
    if (folder / "samples").exists():
        (tmp_path / "samples").symlink_to(folder / "samples")
    rows = read_rows_of(folder, study.get("rows_of") or "")
    made = find(name).figures(rows, tmp_path / "figures")
    shown = [{"name": f.name, "title": f.title, "caption": f.caption} for f in made]
    assert [f for f in shown if f["name"] in wanted] == listed, AGAIN
    for figure in wanted:
        path = Path("figures") / f"{figure}.svg"
        same((tmp_path / path).read_text(), (folder / path).read_text())
