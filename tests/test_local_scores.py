"""Exact scores: settings, rows from the settings that matter alone, claims that can fail,
figures."""

import dataclasses
import json
from pathlib import Path

import pytest
import torch
from tiny import QUIET

from recombine.analysis.claims import assess
from recombine.analysis.frames import pl
from recombine.analysis.table import Table, read_table
from recombine.config import UsageError, from_json, to_json
from recombine.metrics.ties import marginal_distance, total_correlation
from recombine.overrides import override
from recombine.pipeline.job import Work, digest_of
from recombine.rng import seeded
from recombine.runs.exact_laws import LocalScores
from recombine.runs.local_scores import MATTERS, MEASURE, LocalScoresRun
from recombine.studies.local_scores import STUDY, settings
from recombine.theory.block_net import BlockNet

SMALL = dataclasses.replace(
    settings("smoke"), sobol_points=64, levels=17, sigmas=(0.3, 1.0, 10.0), fit_steps=20
)


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    tasks = [job.task for job in STUDY.jobs(SMALL, 1)]
    return [{"seed": t.seed, **row} for t in tasks for row in t.run(Work(t, Path(), QUIET))]


def test_rows_are_flat_and_bear_on_every_claim(rows):
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    verdicts = {claim.id: assess(claim, Table(rows), "laptop") for claim in STUDY.claims}
    assert list(verdicts) == ["L1", "L2", "L3", "L4", "L5", "L6"]
    assert all(v.finding for v in verdicts.values())
    assert {verdicts[i].verdict for i in ("L1", "L4", "L5")} == {"supported"}


def test_claims_can_fail(rows):
    wrong = {"worst_pixel": 1e-3, "cosine": 0.2, "ratio": 1.5, "all_lit": 0.5, "off": 0.1}
    table = Table([row | {k: v for k, v in wrong.items() if k in row} for row in rows])
    verdicts = {claim.id: assess(claim, table, "laptop").verdict for claim in STUDY.claims}
    assert "supported" not in [verdicts[i] for i in ("L1", "L3", "L4", "L5", "L6")]
    assert {assess(c, Table(), "laptop").verdict for c in STUDY.claims} == {"not measured"}


@pytest.mark.slow
@pytest.mark.parametrize("part", MEASURE)
def test_a_part_depends_on_its_own_settings_alone(part):
    odd = LocalScores(
        4, 1, 1, 2, 0.7, 0.5, (0.4, 2.0), 4, 8, 9, 20, 4, 5, 4, (1, 2), 0.4, 6, 4, 0.3, 0.9
    )
    assert all(getattr(odd, f.name) != f.default for f in dataclasses.fields(odd)), "none is usual"
    kept = LocalScoresRun.of(part, odd, 1)
    assert list(MEASURE[part](odd, 1)) == kept.run(Work(kept, Path(), QUIET))
    for name in MATTERS[part]:
        assert getattr(kept.settings, name) == getattr(odd, name)
    others = {f.name: f.default for f in dataclasses.fields(odd) if f.name not in MATTERS[part]}
    assert digest_of(LocalScoresRun.of(part, dataclasses.replace(odd, **others), 1)) == digest_of(
        kept
    )


@pytest.mark.slow
def test_every_figure_is_plotted(rows, tmp_path):
    for figure in STUDY.figures(Table(rows), tmp_path):
        assert (tmp_path / f"{figure.name}.svg").stat().st_size > 1000
        assert figure.caption


@pytest.mark.parametrize(
    "wrong",
    [
        "blocks=1",
        "tilt=0",
        "link=1",
        "sigmas=[1,0.5]",
        "lit=[0,8]",
        "clutter=1",
        "modes=20",
        "grid=2",
    ],
)
def test_nonsense_settings_get_one_clear_line(wrong):
    with pytest.raises(UsageError) as error:
        override(LocalScores(), wrong)
    assert "\n" not in str(error.value)


def test_settings_survive_json():
    for scale in ("smoke", "laptop", "full"):
        assert from_json(to_json(settings(scale))) == settings(scale)


def test_a_block_network_does_not_see_other_blocks():
    net = BlockNet([(0, 3), (1,), (2,)], 8, seeded(0, "net"))
    x = torch.randn(5, 4, generator=seeded(0, "x"), dtype=torch.float64)
    t = torch.rand(5, generator=seeded(0, "t")).double()
    other = x.clone()
    other[:, 3] += 1
    moved = (net(x, t) - net(other, t)).abs().max(0).values > 0
    assert moved.tolist() == [True, False, False, True]


def test_total_correlation_of_equal_and_of_independent_labels():
    coin = torch.randint(0, 2, (20_000, 2), generator=seeded(0, "coin"))
    assert total_correlation(coin) == pytest.approx(0, abs=1e-3)
    assert total_correlation(coin[:, [0, 0]]) == pytest.approx(1, abs=1e-3)


LEAST = {"blocks": 2, "pixels": 1, "rest": 0, "modes": 2, "levels": 8, "sobol_points": 2}
LEAST |= {"pictures": 2, "samples": 2, "steps": 2, "lamp_samples": 2, "fit_steps": 1, "grid": 3}
LEAST |= {"lamps": 2}
MOST = {"grid": 31, "lamps": 12}


@pytest.mark.parametrize(
    ("name", "edge", "beyond"),
    [(n, v, v - 1) for n, v in LEAST.items()] + [(n, v, v + 1) for n, v in MOST.items()],
)
def test_settings_are_taken_up_to_the_edge_that_is_named_and_not_beyond(name, edge, beyond):
    LocalScores(lit=(0, 1), **{name: edge})
    with pytest.raises(ValueError, match=f"{name}|{edge}"):
        LocalScores(lit=(0, 1), **{name: beyond})


def test_the_distance_of_marginals_is_their_total_variation():
    a, b = torch.tensor([0, 0, 1, 2]), torch.tensor([0, 0, 1, 1])
    assert marginal_distance(a, b) == marginal_distance(b, a) == pytest.approx(0.25)
    assert marginal_distance(a, a.flip(0)) == 0
    assert marginal_distance(torch.zeros(3).int(), torch.full((3,), 4).int()) == 1


SHIPPED = read_table(Path(__file__).parents[1] / "results" / "local-scores" / "rows.parquet")
CLAIMS = {c.id: c for c in STUDY.claims}


def changed(where: dict, column: str, value: float) -> Table:
    """The shipped rows with another value in some of them."""
    some = pl.all_horizontal(pl.col(name) == v for name, v in where.items())
    return SHIPPED.with_columns(pl.when(some).then(value).otherwise(pl.col(column)).alias(column))


CPC, NO_CPC = ({"kind": "locality", "law": law} for law in ("CPC", "no CPC"))


def ties(source: str) -> dict:
    return {"kind": "ties", "source": source}


def lamp(background: str) -> dict:
    return {"kind": "lamps", "background": background}


@pytest.mark.parametrize(
    ("id", "check", "where", "column", "inside", "outside"),
    [
        ("L1", 0, CPC, "worst_pixel", 1e-9, 1.1e-9),
        ("L1", 1, CPC, "worst_condition", 1e-9, 1.1e-9),
        ("L2", 0, NO_CPC, "worst_pixel", 1.1e-6, 1e-6),
        ("L2", 0, NO_CPC, "pixel_share", 0.051, 0.05),
        ("L2", 0, {"kind": "interaction", "law": "no CPC"}, "size", 1.1e-3, 1e-3),
        ("L2", 1, {"kind": "interaction", "law": "its best LCS"}, "size", 1e-9, 1.1e-9),
        ("L3", 1, {"kind": "kl"}, "ratio", 1.0199, 1.021),
        ("L3", 1, {"kind": "kl"}, "ratio", 0.9801, 0.979),
        ("L4", 0, {"kind": "cosine", "case": "CPC"}, "cosine", -1e-9, -1.1e-9),
        ("L4", 0, {"kind": "cosine", "case": "CPC, rotated"}, "cosine", 1e-9, 1.1e-9),
        ("L4", 1, {"kind": "cosine", "case": "linked, no CPC"}, "cosine", 1e-9, 1.1e-9),
        ("L4", 1, {"kind": "linked"}, "bits", 0.011, 0.01),
        ("L4", 1, {"kind": "linked"}, "pixel_share", 0.011, 0.01),
        ("L4", 2, {"kind": "cosine", "case": "CPC, skewed"}, "cosine", 0.11, 0.1),
        ("L5", 0, lamp("empty"), "all_lit", 0.95, 0.949),
        ("L5", 1, lamp("empty, cluttered"), "all_lit", 0.95, 0.949),
        ("L5", 2, lamp("average, cluttered"), "all_lit", 0.95, 0.949),
        ("L5", 3, lamp("average"), "all_lit", 0.05, 0.051),
        ("L6", 0, {"kind": "exact"}, "off", 1e-9, 1.1e-9),
        ("L6", 0, {"kind": "mismatch", "map": "identity"}, "off", 1e-6, 1.1e-6),
        ("L6", 0, {"kind": "mismatch", "map": "rotation"}, "off", 1e-6, 1.1e-6),
        ("L6", 1, {"kind": "mismatch", "map": "skew"}, "off", 1.1e-2, 1e-2),
        ("L6", 1, {"kind": "mismatch", "map": "swirl"}, "off", 1.1e-2, 1e-2),
        ("L6", 1, {"kind": "map", "map": "swirl"}, "exact", 0.0, 1.0),
        ("L6", 1, {"kind": "map", "map": "skew"}, "composed", 1.0, 0.0),
    ],
)
def test_a_check_holds_up_to_its_edge_and_not_beyond(id, check, where, column, inside, outside):
    def holds(value: float) -> list[bool]:
        return [c.holds for c in CLAIMS[id].measure(changed(where, column, value)).parts]

    assert all(holds(inside))
    assert [i for i, held in enumerate(holds(outside)) if not held] == [check]


def test_local_samples_share_less_than_a_tenth_of_the_bits_and_joint_ones_most():
    data = min(SHIPPED.where(**ties("data")).column("bits"))
    for source, inside, outside in (
        ("best LCS", 0.099, 0.101),
        ("best LCS", -0.099, -0.101),
        ("block net", 0.099, 0.101),
        ("joint", 0.71, 0.69),
    ):
        held = [
            CLAIMS["L2"].measure(changed(ties(source), "bits", share * data)).parts[1].holds
            for share in (inside, outside)
        ]
        assert held == [True, False], source


def test_a_kl_that_does_not_fall_is_noticed():
    rows = changed({"kind": "kl"}, "kl", 0.1)
    falls, within = CLAIMS["L3"].measure(rows).parts
    assert (falls.holds, within.holds) == (False, True)
    levels = SHIPPED.where(kind="kl")
    seeds = len(levels.unique("seed"))
    assert CLAIMS["L3"].measure(rows).measured["rises of KL with noise"] == len(levels) - seeds
    measured = CLAIMS["L3"].measure(SHIPPED).measured
    assert measured["reference (another mixture, sigma .3): KL"] == 0.1009
    assert measured["reference: half the score error above it"] == 0.1002


def test_rows_that_are_missing_are_named():
    with pytest.raises(LookupError, match=r"^no rows with worst_pixel$"):
        CLAIMS["L1"].measure(Table([{"kind": "kl"}]))


def test_ties_of_known_labels():
    a, b = torch.tensor([0, 0, 1, 2, 2]), torch.tensor([0, 1, 1, 3, 3])
    assert marginal_distance(a, b) == pytest.approx(0.6)
    assert marginal_distance(a, a) == 0
    tied = torch.tensor([[0, 0], [0, 0], [1, 1], [1, 1], [0, 1]])
    assert total_correlation(tied) == pytest.approx(0.419973, abs=1e-6)
