"""Tokenizers crossed with seeds: which runs it takes, and how much of the variance is whose."""

from statistics import fmean

import numpy as np
import pytest
from level_rows import accuracy_rows, verdict

from recombine.config import UsageError, digest
from recombine.overrides import override
from recombine.studies import objectives, seed_variance
from recombine.studies.seed_variance import (
    FAMILIES,
    STUDY,
    chance_of_share,
    name_of,
    plot_crossed,
    regroupings,
    share_between,
    shares_between,
)

LINES = [[0.9, 0.95, 0.92, 0.97, 0.94], [0.05, 0.1, 0.07, 0.02, 0.06], [0.4, 0.5, 0.45, 0.42, 0.47]]
MIXED = np.array(LINES).T.reshape(3, 5).tolist()


def rows_of(tables: dict[str, list[list[float]]]) -> list[dict]:
    named = {name_of(f, t): line for f, lines in tables.items() for t, line in enumerate(lines)}
    return accuracy_rows(named)


@pytest.mark.parametrize("scale", ["smoke", "laptop", "full"])
def test_every_seed_is_trained_on_every_tokenizer_and_the_diagonal_is_shared(scale):
    settings = seed_variance.settings(scale)
    made, known = settings.crossed(3), objectives.settings(scale).variants()
    assert len({digest(r) for r in made.values()}) == len(made) == 2 * 3 * settings.tokenizers
    for family in FAMILIES:
        for t in range(settings.tokenizers):
            name = name_of(family, t)
            assert digest(made[name, t]) == digest(known[family].with_seed(t))
            used = {made[name, s].tokenizer for s in range(3)}
            assert used == {settings.recipe.tokenizer.with_seed(t)}


def test_all_regroupings_are_made_once():
    made = list(regroupings(9, 3))
    lines = {frozenset(frozenset(one[i : i + 3]) for i in (0, 3, 6)) for one in made}
    assert len(lines) == len(made) == 280
    assert all(sorted(one) == list(range(9)) for one in made)


def test_the_share_between_lines_is_that_of_the_analysis_of_variance():
    tables = np.array([[[1.0, 1.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [[0.5] * 2] * 2])
    assert shares_between(tables).tolist() == [1, 0, 0]
    cells = np.array([0.1, 0.7, 0.2, 0.9, 0.4, 0.3, 0.8, 0.0, 0.6])
    shares = [float(shares_between(cells[one].reshape(3, 3))) for one in regroupings(9, 3)]
    assert fmean(shares) == pytest.approx(2 / 8), "what lines take of pure chance"


def test_how_often_chance_does_as_much():
    assert chance_of_share(np.array([[1.0, 1.0], [0.0, 0.0]])) == pytest.approx(1 / 3)
    assert chance_of_share(np.array(LINES)[:, :3]) == pytest.approx(1 / 280)
    assert chance_of_share(np.array(LINES)) < 0.01, "a large table, by random regroupings"
    assert chance_of_share(np.array(MIXED)) > 0.05


@pytest.mark.parametrize("lines", [LINES, MIXED])
def test_the_interval_holds_the_share_and_is_the_same_each_time(lines):
    estimate = share_between(np.array(lines))
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
    assert estimate.n == 5
    assert estimate == share_between(np.array(lines))


@pytest.mark.parametrize(
    ("maskgit", "dit", "expected"),
    [
        (LINES, LINES, "supported"),
        (LINES, MIXED, "partly supported"),
        (MIXED, MIXED, "contradicted"),
    ],
)
def test_the_verdict_follows_from_rows(maskgit, dit, expected):
    assert verdict(STUDY, "B11", rows_of({"maskgit": maskgit, "dit": dit})) == expected


def test_the_table_is_plotted(tmp_path):
    figure = plot_crossed({"maskgit": np.array(LINES), "dit": np.array(MIXED)}, tmp_path)
    drawn = (tmp_path / f"{figure.name}.svg").read_text()
    assert all(f">{y:.2f}<" in drawn for lines in (LINES, MIXED) for line in lines for y in line)


def test_missing_runs_or_levels_give_no_verdict():
    both = rows_of({"maskgit": LINES, "dit": LINES})
    short = rows_of({"maskgit": [LINES[0][:3], *LINES[1:]], "dit": LINES})
    one = rows_of({"maskgit": LINES[:1], "dit": LINES})
    for rows in ([r for r in both if r["level"] < 2], short, one):
        assert verdict(STUDY, "B11", rows) == "not measured"


def test_the_tokenizer_must_be_learned():
    with pytest.raises(UsageError, match="needs a learned one"):
        override(seed_variance.settings("smoke"), "tokenizer=pixels")
