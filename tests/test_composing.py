"""Anybody's model, scored: an honest one passes, one that repeats what it has seen does not, and
bad pictures are refused."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from tiny import QUIET

from recombine.config import UsageError
from recombine.metrics.probes import Oracle
from recombine.rng import seeded
from recombine.runs.composing import Composing, composing, drawn, obtain_probes
from recombine.worlds.factors import Split
from recombine.worlds.folder import Folder
from recombine.worlds.shapes2d import Shapes2D

DOCS = Path(__file__).parents[1] / "docs" / "own-model.md"
WORLD = Shapes2D(size=20, wander=0.3)


def painter(blind: bool = False):
    """Draws what it is prompted for; a blind one never blue triangles."""

    def draw(composition, count):
        shape, color, size = composition
        shown = (shape, 0 if blind and shape == 1 else color, size)
        return WORLD.render(torch.tensor([shown] * count), seeded("painter", *composition)).images

    return draw


@pytest.fixture(autouse=True)
def exact(monkeypatch) -> None:
    """In place of trained probes, which other tests are about."""
    probes = [Oracle(WORLD, "open-set"), Oracle(WORLD)]
    monkeypatch.setattr("recombine.runs.composing.obtain_probes", lambda *how: probes)


def scored(draw, **how) -> Composing:
    return composing(draw, WORLD, count=48, runtime=QUIET, **how)


def test_an_honest_model_composes_and_one_that_repeats_what_it_saw_does_not():
    honest, blind = scored(painter()), scored(painter(blind=True))
    assert min(honest.level(k) for k in (0, 1, 2)) > 0.9
    assert blind.level(0) > 0.9
    assert blind.accuracy((1, 1, 0)) == 0
    assert blind.level(2) == blind.level(2, "oracle") == 0


def test_pictures_may_be_arrays():
    draw = painter()
    result = scored(lambda composition, count: draw(composition, count).numpy())
    assert result.rows == scored(draw).rows


def test_a_wrong_split_or_probe_is_named_before_anything_is_trained(monkeypatch):
    monkeypatch.setattr(
        "recombine.runs.composing.obtain_probes", lambda *how: pytest.fail("trained")
    )
    with pytest.raises(UsageError, match=r"split: \[0, 5\] is no composition"):
        scored(painter(), split=Split(((0, 5),)))
    with pytest.raises(UsageError, match="shape"):
        scored(lambda composition, count: torch.rand(1))
    with pytest.raises(UsageError, match="steps=0: both must be positive"):
        scored(painter(), steps=0)


def test_the_split_says_what_was_seen():
    all_seen = Split(WORLD.space.compositions)
    result = scored(painter(blind=True), split=all_seen)
    assert result.level(0) == pytest.approx(0.75, abs=0.05)
    with pytest.raises(UsageError, match=r"no composition is of level 2; there are \[0\]"):
        result.level(2)
    with pytest.raises(UsageError, match="no probe eye; there are open-set, oracle"):
        result.level(0, "eye")


class ByShade:
    """Reads the pictures of `lacking`."""

    name = "open-set"

    def __call__(self, images):
        shade = (images[:, 0, 0, 0] * 25.5).round().long() % 3
        return torch.tensor([[0, 0], [0, 1], [1, 0]])[shade]


@pytest.fixture
def lacking(tmp_path) -> Folder:
    """Three pictures of every cup and bowl, but of no red bowl."""
    rows = ["file,what,color"]
    for i, (what, color) in enumerate([("cup", "blue"), ("cup", "red"), ("bowl", "blue")] * 3):
        Image.new("RGB", (20, 20), (10 * i, 0, 0)).save(tmp_path / f"{i}.png")
        rows.append(f"{i}.png,{what},{color}")
    (tmp_path / "factors.csv").write_text("\n".join(rows) + "\n")
    return Folder.open(tmp_path)


def test_what_has_no_real_pictures_was_not_seen_and_is_doubted(lacking, monkeypatch):
    monkeypatch.setattr("recombine.runs.composing.obtain_probes", lambda *how: [ByShade()])
    result = composing(lambda c, n: torch.zeros(n, 3, 20, 20), lacking, count=2, runtime=QUIET)
    levels = {r["composition"]: r["level"] for r in result.rows if r["kind"] == "accuracy"}
    assert levels == {"00": 0, "01": 0, "10": 0, "11": 1}
    assert (
        result.doubt
        == "there are no real pictures of bowl red: it is unknown how well the primary probe reads them"
    )
    assert result.doubt in str(result)


def test_pictures_drawn_earlier_are_found_by_the_names_of_factors_and_values(lacking, tmp_path):
    world = replace(lacking, factors=("color", "what"), content="").settled()
    draw = drawn(lacking, world)
    assert (draw((1, 0), 2)[:, 0, 0, 0] * 255).tolist() == [10, 40], "red cups"
    with pytest.raises(
        UsageError,
        match="has 0 pictures of red bowl, not 1; its values are what cup/bowl, color blue/red",
    ):
        draw((1, 1), 1)
    with pytest.raises(UsageError, match="has 3 pictures of red cup, not 4; take a smaller count"):
        draw((1, 0), 4)
    with pytest.raises(UsageError, match="its table has no column shape"):
        drawn(lacking, WORLD)


def test_the_table_names_every_composition_and_doubts_a_bad_probe():
    result = scored(painter())
    text = str(result)
    assert all(WORLD.space.describe(c) in text for c in WORLD.space.compositions)
    bad = [
        r | ({"joint": 0.6} if r["kind"] == "probe" and r["composition"] == "011" else {})
        for r in result.rows
    ]
    assert "60% of real circle blue small" in replace(result, rows=bad).doubt
    assert "doubtful" in str(replace(result, rows=bad))


@pytest.mark.parametrize(
    ("images", "why"),
    [
        (torch.rand(48, 3, 20, 21), r"shape \(48, 3, 20, 20\), not shape"),
        (torch.rand(7, 3, 20, 20), "not shape"),
        ([1, 2], "not list"),
        (2 * torch.rand(48, 3, 20, 20) - 1, r"in \[0, 1\]; these go from -"),
        (255 * torch.rand(48, 3, 20, 20), r"in \[0, 1\]"),
        (torch.full((48, 3, 20, 20), torch.nan), r"in \[0, 1\]"),
    ],
)
def test_bad_pictures_are_refused_in_one_line(images, why):
    with pytest.raises(UsageError, match=why):
        scored(lambda composition, count: images)


def test_the_documented_example_runs(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL):
        exec(block, names)
    assert names["result"].level(2) == 0
    assert (WORLD.read(names["images"]) == torch.tensor([1, 1, 1])).all()
    assert "additive" in capsys.readouterr().out


def test_probes_are_trained_once_and_the_open_set_one_comes_first(tmp_path):
    trained = obtain_probes(WORLD, 3, tmp_path, QUIET)
    assert [p.name for p in trained] == ["open-set", "cnn", "oracle", "linear"]
    again = obtain_probes(WORLD, 3, tmp_path, QUIET)
    pictures = painter()((1, 1, 0), 8)
    assert all(
        torch.equal(a(pictures), b(pictures)) for a, b in zip(trained, again, strict=True)
    ), "found on disk"
