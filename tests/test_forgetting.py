"""The study `forgetting`: what is lost between checkpoints, and whether averaging keeps it."""

from dataclasses import replace

import pytest
from level_rows import regions, verdict

from recombine.analysis.forgetting import averaging_keeps_level_two
from recombine.analysis.levels import early, fluctuation
from recombine.analysis.paper_probe import with_paper_probe
from recombine.analysis.table import Table
from recombine.plots.forgetting import over_updates
from recombine.studies import forgetting, label_dropout

STEPS = (1, 2, 3, 4, 5, 6, 7, 8)
FALLS = (0.1, 0.8, 0.9, 0.7, 0.6, 0.4, 0.6, 0.4)
STAYS = (0.1, 0.8, 0.9, 0.7, 0.8, 0.8, 0.8, 0.8)


def rows_of(curves: dict[str, tuple[float, ...]], seeds: int = 5, seen: float = 0.8) -> Table:
    return Table(
        [
            {"kind": "accuracy", "variant": variant, "seed": seed, "step": step, "probe": probe,
             "level": level, "composition": str(level), "joint": joint}
            for variant, values in curves.items()
            for seed in range(seeds)
            for step, value in zip(STEPS, values, strict=True)
            for level, joint in ((0, seen), (2, value))
            for probe in ("paper 0", "paper 1", "oracle")
        ]
    )  # fmt: skip


def test_early_is_before_the_fall_and_fluctuation_is_of_the_second_half():
    points = list(zip(STEPS, FALLS, strict=True))
    assert early(points) == pytest.approx(0.8)
    assert fluctuation(points) == pytest.approx((0.1 + 0.2 + 0.2 + 0.2) / 4)
    assert fluctuation([(step, 0.3) for step in STEPS]) == 0
    with pytest.raises(LookupError, match="fewer than 4 checkpoints"):
        fluctuation(points[:3])


@pytest.mark.parametrize(
    ("averaged", "seen", "expected"),
    [
        (STAYS, 0.8, "supported"),
        (FALLS, 0.8, "contradicted"),
        (tuple(y - 0.3 for y in STAYS), 0.8, "partly supported"),
        (STAYS, 0.5, "inconclusive"),
    ],
)
def test_averaging_keeps_level_2_or_not(averaged, seen, expected):
    rows = rows_of({"dit": FALLS, "dit, averaged": averaged}, seen=seen)
    assert verdict(forgetting.STUDY, "G20", list(rows)) == expected


def test_what_stands_beside_it_for_every_variant():
    rows = rows_of({"dit": FALLS, "dit, averaged": STAYS, "dit, lr 3e-4": FALLS}, seeds=2)
    found = averaging_keeps_level_two.measure(rows)
    assert [(name, low) for name, low, *_ in regions(found)] == [
        ("dit, averaged - dit, level 2", 0.1),
        ("difference between checkpoints, without - with averaging", 0.02),
        ("dit, seen", 0.7),
        ("dit, averaged, seen", 0.7),
    ]
    assert found.measured["dit, lr 3e-4, early"] == pytest.approx(0.8)
    assert found.measured["dit, averaged, late, oracle"] == pytest.approx(0.8)
    lost = rows_of({"dit": FALLS, "dit, averaged": STAYS})
    fewer = Table([r for r in lost if r["variant"] == "dit" or r["seed"] < 4])
    assert verdict(forgetting.STUDY, "G20", list(fewer)) == "not measured"


def test_one_thing_differs_at_a_time_and_the_first_is_a_run_of_label_dropout():
    made = forgetting.settings("full").recipes()
    base = made["dit"]
    assert label_dropout.settings("full").recipes()["dit"] == base
    changed = {
        name.partition(", ")[2]: {
            field for field in vars(base.train) if getattr(r.train, field) != getattr(base.train, field)
        }
        for name, r in made.items()
    }  # fmt: skip
    assert changed == {
        "": set(), "averaged": {"ema"}, "decayed": {"decay"}, "lr 3e-4": {"lr"},
        "clipped": {"clip"}, "longer": {"steps"},
    }  # fmt: skip
    for recipe in made.values():
        kept = replace(recipe, train=base.train, evaluation=base.evaluation)
        assert kept == base


def test_every_variant_has_a_panel_beside_the_first(tmp_path):
    some = {"maskgit, fsq": STAYS, "dit, longer": STAYS, "dit": FALLS}
    over_updates(with_paper_probe(rows_of(some, seeds=2)), tmp_path)
    drawn = (tmp_path / "level-2.svg").read_text()
    titles = ("as in label-dropout", "24,000 updates", "maskgit, fsq")
    places = [drawn.index(words) for words in (*titles, "level 2, oracle")]
    assert places[:3] == sorted(places[:3]), "the first panel is what the others are compared with"
