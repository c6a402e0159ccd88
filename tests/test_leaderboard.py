"""Submissions are scored from their pictures, by every probe; a card is shown, never trusted."""

import json
import random

import numpy as np
import pytest
from own_pictures import KINDS, make, picture
from test_evaluate import UNSEEN, colour_probe
from tiny import QUIET

from recombine.config import UsageError
from recombine.scoring.leaderboard import Entry, changes_of_rank, leaderboard, lines
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


def test_a_board_needs_a_world_or_data(tmp_path):
    for odd in ([], {"title": "x"}):
        (tmp_path / "board.json").write_text(json.dumps(odd))
        with pytest.raises(UsageError, match=r"board\.json: needs 'world' or 'data'$"):
            leaderboard(tmp_path, runtime=QUIET)


def test_a_key_that_no_board_has_is_named(tmp_path):
    (tmp_path / "board.json").write_text(json.dumps({"data": "real", "splt": "unseen: bar green"}))
    with pytest.raises(UsageError, match=r"'splt' is none of world, .*; did you mean split\?"):
        leaderboard(tmp_path, runtime=QUIET)


def test_submissions_of_one_name_are_named_with_their_folders(board, tmp_path):
    for folder in ("good", "blind"):
        (board / folder / "card.json").write_text(json.dumps({"name": "mine"}))
    entries = leaderboard(board, tmp_path / "out", runtime=QUIET, find=both)
    assert [e.name for e in entries] == ["mine (blind)", "mine (good)"]


def placed(name: str, **means: float | None) -> Entry:
    def level(mean):
        n = 0 if mean is None else 10
        there = {"compositions": n // 10, "of": 1}
        return {"mean": mean, "low": 0.25, "high": 0.75, "n": n, **there}

    return Entry(name, {}, 10, "d", {p: {0: level(1.0), 1: level(m)} for p, m in means.items()})


def test_changes_of_rank_count_beyond_a_twentieth():
    moved = [placed("a", p=0.9, q=0.1), placed("b", p=0.5, q=0.5)]
    assert changes_of_rank(moved, ["p", "q"]) == ["by the probe q instead of p: a from 1 to 2"]
    near = [placed("a", p=0.52, q=0.50), placed("b", p=0.5, q=0.52)]
    assert changes_of_rank(near, ["p", "q"]) == []
    both = [placed("a", p=0.9, q=0.5), placed("b", p=0.5, q=0.9)]
    assert changes_of_rank(both, ["p", "q"]) == [
        "by the probe q instead of p: a from 1 to 2, b from 2 to 1"
    ]


def test_the_table_is_ranked_by_the_furthest_level_of_each_probe():
    made = lines([placed("a", p=0.2), placed("bee", p=0.9), placed("c", p=None)])
    assert made[0] == "p probe  seen" + " " * 18 + "level 1" + " " * 15
    assert [line.split()[0] for line in made[1:4]] == ["bee", "a", "c"]
    assert made[4:] == [
        "doubtful: c has pictures of 0 of 1 level 1 compositions; its mean is over those"
    ]
    assert made[1] == "bee      1.00 (0.25 to 0.75)   0.90 (0.25 to 0.75)   "
    assert made[3] == "c        1.00 (0.25 to 0.75)   –" + " " * 21
    assert placed("a", p=None).mean("p", 1) == placed("a", p=0.2).mean("p", 7) == -1.0
    assert placed("a", p=0.2).name == "a"


def test_a_leaderboard_leaves_rows_digests_and_says_which_it_scores(board, tmp_path, capsys):
    (board / "board.json").write_text(json.dumps({"data": "real", "probe_steps": 7}))
    calls = []

    def find(probe, reference, steps, *rest):
        calls.append((probe, steps))
        return both(probe, reference)

    entries = leaderboard(board, tmp_path / "out", device="cpu", find=find)
    assert capsys.readouterr().err.splitlines() == ["leaderboard: blind", "leaderboard: good"]
    assert calls == [("", 7)]
    facts = json.loads((tmp_path / "out" / "leaderboard.json").read_text())
    assert list(facts["entries"]) == ["blind", "good"]
    assert facts["entries"]["good"]["pictures"] == entries[1].pictures == 24
    assert len(facts["seen"]) == 5
    page = (tmp_path / "out" / "index.html").read_text()
    assert "Which models compose?" in page
    assert page.index("the good one") < page.index("the blind one")
