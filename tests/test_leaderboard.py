"""Submissions are scored from their pictures, by every probe; a card is shown, never trusted."""

import json
import random

import numpy as np
import pytest
from own_pictures import KINDS, make, picture
from test_evaluate import UNSEEN, colour_probe
from tiny import QUIET

from recombine.config import UsageError
from recombine.scoring.leaderboard import leaderboard, lines
from recombine.scoring.probes import function_probe


def lenient(images: list) -> list[dict]:
    """Believes that every red bar is a green one."""
    read = colour_probe(images)
    return [one if one["shape"] == "disc" else one | {"color": "green"} for one in read]


def both(probe, reference, *rest):
    return [
        function_probe(colour_probe, reference.space),
        function_probe(lenient, reference.space),
    ]


@pytest.fixture
def board(tmp_path):
    make(tmp_path / "real", 60, lacks=(UNSEEN,))
    (tmp_path / "board.json").write_text(json.dumps({"data": "real", "title": "Who <composes>?"}))
    for name, blind in (("good", False), ("blind", True)):
        rng, rows = random.Random(name), []
        for shape, color in KINDS * 4:
            shown = "red" if blind and (shape, color) == UNSEEN else color
            rows.append((np.asarray(picture(shape, shown, rng)), shape, color))
        images, shapes, colors = zip(*rows, strict=True)
        (tmp_path / name).mkdir()
        np.savez_compressed(
            tmp_path / name / "set.npz", images=np.stack(images), shape=shapes, color=colors
        )
        card = {"name": f"the {name} one", "about": "level 1: 100 %"}
        (tmp_path / name / "card.json").write_text(json.dumps(card))
    return tmp_path


def test_every_model_is_scored_by_every_probe(board, tmp_path):
    entries = {e.folder: e for e in leaderboard(board, tmp_path / "out", runtime=QUIET, find=both)}
    assert entries["good"].mean("colour_probe", 1) == 1
    assert entries["blind"].mean("colour_probe", 1) == 0
    assert entries["blind"].mean("lenient", 1) == 1, "what changes with the probe"
    assert entries["good"].digest != entries["blind"].digest
    page = (tmp_path / "out" / "index.html").read_text()
    assert "Who &lt;composes&gt;?" in page
    assert "the blind one" in page
    assert any("the good one" in line and "1.00" in line for line in lines(list(entries.values())))


def test_a_folder_without_submissions_or_board_is_one_line(tmp_path):
    with pytest.raises(UsageError, match=r"has no board\.json"):
        leaderboard(tmp_path, runtime=QUIET)
    make(tmp_path / "real", 30, lacks=(UNSEEN,))
    (tmp_path / "board.json").write_text(json.dumps({"data": "real"}))
    with pytest.raises(UsageError, match="holds no submission"):
        leaderboard(tmp_path, runtime=QUIET, find=both)
