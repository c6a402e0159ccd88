"""Tokenizers crossed with seeds: which runs it takes, how much of the variance is whose, and how often chance does as much."""

from statistics import fmean

import pytest

from recombine.config import UsageError, digest, override
from recombine.studies import dice, objectives
from recombine.studies.base import Rows


def rows_of(tables: dict[str, list[list[float]]]) -> Rows:
    kept = {"kind": "accuracy", "probe": "open-set", "level": 2, "step": 1, "composition": "111"}
    return Rows(
        {**kept, "variant": dice.name_of(family, t), "seed": s, "joint": y}
        for family, lines in tables.items()
        for t, line in enumerate(lines)
        for s, y in enumerate(line)
    )


NINE = [float(i) for i in range(9)]
LINES = [[0.9, 0.95, 1.0], [0.0, 0.05, 0.1], [0.4, 0.5, 0.45]]
MIXED = [[0.9, 0.0, 0.4], [0.1, 0.95, 0.5], [1.0, 0.05, 0.45]]


@pytest.mark.parametrize("scale", ["smoke", "laptop", "full"])
def test_every_seed_meets_every_tokenizer_and_the_diagonal_is_what_objectives_trains(scale):
    settings = dice.settings(scale)
    made, known = settings.crossed(3), objectives.settings(scale).variants()
    assert len({digest(r) for r in made.values()}) == len(made) == 2 * 3 * settings.tokenizers
    for family in dice.FAMILIES:
        for t in range(settings.tokenizers):
            assert digest(made[dice.name_of(family, t), t]) == digest(known[family].with_seed(t))
            used = {made[dice.name_of(family, t), s].tokenizer for s in range(3)}
            assert used == {settings.recipe.tokenizer.with_seed(t)}


def test_all_regroupings_are_looked_at_once():
    made = {frozenset(frozenset(line) for line in lines) for lines in dice.regrouped(NINE, 3)}
    assert len(made) == len(list(dice.regrouped(NINE, 3))) == 280
    assert all(len(line) == 3 for lines in made for line in lines)


def test_the_share_between_lines_and_how_often_chance_does_as_much():
    assert dice.between([[1.0, 1.0], [0.0, 0.0]]) == 1
    assert dice.between([[1.0, 0.0], [0.0, 1.0]]) == 0
    assert dice.between([[0.5, 0.5], [0.5, 0.5]]) == 0
    assert dice.by_chance([[1.0, 1.0], [0.0, 0.0]]) == pytest.approx(1 / 3)
    assert dice.by_chance(LINES) == pytest.approx(1 / 280)
    assert dice.by_chance(MIXED) > 0.5
    assert dice.by_chance([[0.0] * 4] * 4) is None
    shares = [dice.between(lines) for lines in dice.regrouped([0.1, 0.7, 0.2, 0.9, 0.4, 0.3, 0.8, 0.0, 0.6], 3)]
    assert fmean(shares) == pytest.approx(2 / 8), "what lines take of pure chance"


@pytest.mark.parametrize(
    ("maskgit", "dit", "verdict"), [(LINES, LINES, True), (LINES, MIXED, "partly"), (MIXED, MIXED, False)]
)
def test_the_verdict_follows_from_rows(maskgit, dit, verdict):
    rows = rows_of({"maskgit": maskgit, "dit": dit})
    assert dice.judge_tokenizer(rows).holds == verdict


def test_the_table_is_drawn(tmp_path):
    figure = dice.crossed({"maskgit": LINES, "dit": MIXED}, tmp_path)
    drawn = (tmp_path / f"{figure.name}.svg").read_text()
    assert all(f">{y:.2f}<" in drawn for lines in (LINES, MIXED) for line in lines for y in line)


def test_without_a_second_level_there_is_no_table_and_no_traceback():
    rows = rows_of({"maskgit": LINES, "dit": LINES})
    with pytest.raises(LookupError, match="no such level"):
        dice.judge_tokenizer(Rows({**r, "level": 1} if r.get("level") == 2 else r for r in rows))


def test_one_tokenizer_or_none_to_learn_is_no_question():
    with pytest.raises(LookupError, match="two tokenizers"):
        dice.judge_tokenizer(rows_of({"maskgit": LINES[:1], "dit": LINES}))
    with pytest.raises(UsageError, match="needs a learned one"):
        override(dice.settings("smoke"), "tokenizer=pixels")
