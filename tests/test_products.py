"""The exact model of composition: closed forms, brute force, symmetries; and that its claims can
fail."""

import json
import math
import re
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from tiny import QUIET

from recombine.analysis.claims import assess
from recombine.analysis.table import Table, read_table
from recombine.overrides import override
from recombine.pipeline.job import Work
from recombine.runs.interactions import SEEN, corners
from recombine.studies import interactions
from recombine.studies.interactions import PRIORS, Interactions
from recombine.theory.products import NARROW, Corner, Products

WIDGET = Path(__file__).parents[1] / "recombine/report/widgets/interactions.html"
TIMES = (0.1, 1.0, 10.0, 1e3, math.inf)


def seen(spread: float) -> tuple[Corner, ...]:
    return corners((spread, spread), (spread, spread))


@pytest.mark.parametrize("prior", [0.1, 0.5, 1.0])
def test_one_picture_of_one_factor_by_hand(prior):
    """The kernel of x and x' is 1 + prior x x'; the picture at -1 is learned at rate 1 + prior."""
    model = Products((Corner((0,), (0.0,)),), (prior,))
    grown = torch.tensor([-(1 - math.exp(-(1 + prior) * t)) for t in TIMES], dtype=torch.float64)
    assert torch.allclose(model.answers((0,), TIMES)[:, 0], grown, atol=1e-12)
    assert torch.allclose(
        model.answers((1,), TIMES)[:, 0], grown * (1 - prior) / (1 + prior), atol=1e-12
    )


def test_it_is_what_gradient_descent_on_pictures_comes_to():
    """Many small steps of a model written down anew, on a fine grid of pictures in place of their
    exact moments."""
    prior, spread, rate, steps = (0.9, 0.3, 0.6), (0.0, 0.5, 0.7), 1e-3, 3000
    nodes, weights = np.polynomial.legendre.leggauss(3)
    offsets = torch.tensor([[0.0, spread[1] * a, spread[2] * b] for a in nodes for b in nodes])
    mass = torch.tensor([a * b / 4 for a in weights for b in weights]).repeat(len(SEEN)) / len(SEEN)
    x = torch.cat([2.0 * torch.tensor(c) - 1 + offsets for c in SEEN]).double()

    def features(x):
        s, c, z = x.unbind(-1)
        one, (a, b, d) = torch.ones_like(s), (p**0.5 for p in prior)
        return torch.stack(
            [
                one,
                a * s,
                b * c,
                d * z,
                a * b * s * c,
                a * d * s * z,
                b * d * c * z,
                a * b * d * s * c * z,
            ],
            -1,
        )

    phi, w = features(x), torch.zeros(8, 3, dtype=torch.float64)
    for _ in range(steps):
        w = w - rate * phi.T @ (mass[:, None] * (phi @ w - x))
    model = Products(tuple(Corner(c, spread) for c in SEEN), prior)
    found = model.answers((1, 1, 1), (rate * steps,))[0]
    assert torch.allclose(features(torch.ones(3, dtype=torch.float64)) @ w, found, atol=2e-3)


@pytest.mark.parametrize("spread", [NARROW, 0.2, 0.9])
@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
def test_with_any_spread_the_end_is_right_and_what_was_seen_always_is(prior, spread):
    for prompted in ((0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1, 1), *SEEN):
        wanted = 2.0 * torch.tensor(prompted).double() - 1
        assert torch.allclose(
            Products(seen(spread), prior).answers(prompted, (math.inf,))[0], wanted, atol=1e-3
        )
    for prompted in SEEN:
        wanted = 2.0 * torch.tensor(prompted).double() - 1
        assert torch.allclose(
            Products(seen(0.0), prior).answers(prompted, (math.inf,))[0], wanted, atol=1e-9
        )


def test_where_all_factors_share_nothing_nothing_is_said_of_what_was_not_seen():
    model = Products(seen(0.0), (1.0, 1.0, 1.0))
    assert model.answers((1, 1, 1), TIMES).abs().max() < 1e-12
    assert model.answers((1, 0, 0), (math.inf,))[0].tolist() == pytest.approx([1, -1, -1])


@pytest.mark.parametrize("price", [0.05, 0.2, 0.6])
def test_with_shapes_apart_level_two_waits_where_the_prior_says(price):
    """One triangle, g = (1 - q) / (1 + q): without spread -g^2; with little, once slopes are known
    and the curvature is not, +g^2."""
    prior, height = (1.0, price, price), ((1 - price) / (1 + price)) ** 2
    plain, little = (
        Products(seen(s), prior).answers((1, 1, 1), (math.inf, 3e6))[:, 1:] for s in (0.0, 0.02)
    )
    assert plain[0].tolist() == pytest.approx([-height] * 2, abs=1e-9)
    assert little[1].tolist() == pytest.approx([height] * 2, abs=0.02)


def test_where_shapes_share_nothing_circles_say_nothing_of_triangles():
    still, moved = (((c, c), (0.4, 0.4)) for c in (0.0, 0.9))
    one, other = (
        Products(corners(*s), (1.0, 0.3, 0.4)).answers((1, 1, 1), TIMES) for s in (still, moved)
    )
    assert torch.allclose(one, other, atol=1e-9)
    one, other = (
        Products(corners(*s), (0.9, 0.3, 0.4)).answers((1, 1, 1), TIMES) for s in (still, moved)
    )
    assert (one - other).abs().max() > 0.01


def test_colour_and_size_may_be_exchanged():
    one = Products(corners((0.2, 0.6), (0.5, 0.1)), (0.8, 0.2, 0.7)).answers((1, 0, 1), TIMES)
    other = Products(corners((0.6, 0.2), (0.1, 0.5)), (0.8, 0.7, 0.2)).answers((1, 1, 0), TIMES)
    assert torch.allclose(one[:, [0, 2, 1]], other, atol=1e-9)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: Corner((0, 2), (0.0, 0.0)), "a class, 0 or 1"),
        (lambda: Corner((0, 1), (0.0,)), "a width for each"),
        (lambda: Corner((0,), (-0.1,)), "0 or at least"),
        (lambda: Corner((0,), (0.001,)), "0 or at least"),
        (lambda: Products((), (0.5,)), "one or more"),
        (lambda: Products((Corner((0,), (0.0,)),), (0.5, 0.5)), "with 2 factors"),
        (lambda: Products((Corner((0,), (0.0,)),), (0.0,)), "above 0"),
        (lambda: override(Interactions(), "spreads=[0,0.3,0.2,0.6]"), "upwards"),
        (lambda: override(Interactions(), "steps=1"), "two times or more"),
        (lambda: override(Interactions(), "spreads=[0,0.005,0.2,0.6]"), "0 or at least"),
    ],
)
def test_what_cannot_be_is_refused(wrong, said):
    with pytest.raises(Exception, match=said):
        wrong()


def rows_of(settings: Interactions) -> list[dict]:
    rows = []
    for job in interactions.jobs(settings, 1):
        made = job.task.run(Work(job.task, Path(), QUIET))
        rows += [row | dict(job.labels) for row in made]
    return rows


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return rows_of(interactions.settings("smoke"))


SWAPPED = {"none": "both", "wide": "usual", "usual": "wide", "circles": "triangles"}
SWAPPED |= {"both": "none", "triangles": "circles"}


@pytest.mark.parametrize("claim", interactions.STUDY.claims, ids=lambda c: c.id)
def test_claims_hold_of_the_model_and_fail_where_its_answers_are_others(rows, claim):
    def verdict(some: list[dict]) -> str:
        return assess(claim, Table(some), "full").verdict

    assert verdict(rows) == "supported"
    others = []
    for r in rows:
        world = {"world": SWAPPED.get(r["world"], r["world"])} if "world" in r else {"time": 1.0}
        others.append(r | world | {"prior": "sums" if r["prior"] == "alike" else r["prior"]})
    assert verdict(others) != "supported"
    assert verdict([]) == "not measured"


def test_an_answer_falls_before_it_rises(rows):
    """The swing-by of paper C, with shapes apart and wide jitter: first to what was seen, then
    away."""
    some = Table(rows).where(kind="answer", prior="apart", mirrors="jitter", world="wide")
    path = some.where(composition="111").column("agreement")
    low = path.index(min(path))
    assert path[low] < -0.3
    assert min(path[0], path[-1] - 1) > path[low] + 0.2


@pytest.mark.slow
def test_spreads_that_are_too_narrow_for_the_pace_are_left_out():
    settings = override(interactions.settings("smoke"), "spreads=[0,0.02,0.05,0.1]")
    spreads = Table(rows_of(settings)).where(kind="pace").column("spread")
    assert NARROW <= min(spreads) < 2 * NARROW


def test_settings_change_the_worlds():
    changes = ("steps=9", "spreads=[0,0.1,0.2,0.9]")
    usual, wider = (override(Interactions(), c).worlds()["jitter"]["wide"] for c in changes)
    assert (usual, wider) == (((0.625, 0.625),) * 2, ((0.9, 0.9),) * 2)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("prior", [*PRIORS.values(), (0.02, 1.0, 1.0)])
@pytest.mark.parametrize(
    "spread", [((0.0, 0.0), (0.0, 0.0)), ((0.0, 0.0), (0.6, 0.1)), ((0.9, 0.3), (0.15, 0.15))]
)
def test_the_widget_computes_the_same(prior, spread):
    pure = re.search(r"// pure: begin(.*)// pure: end", WIDGET.read_text(), re.S)[1]
    seen, times = corners(*spread), [0.1, 3.0, 200.0, 1e5]
    given = f"{json.dumps([asdict(c) for c in seen])}, {json.dumps(prior)}"
    answers = f"{json.dumps(times)}.map(function (t) {{ return answerTo([1, 0, 1], t).concat(answerTo([1, 1, 1], t)); }})"
    script = f"{pure}; var answerTo = products({given}); console.log(JSON.stringify({answers}))"
    found = json.loads(
        subprocess.run(["node", "-e", script], capture_output=True, text=True, check=True).stdout
    )
    model = Products(seen, prior)
    wanted = torch.cat([model.answers((1, 0, 1), times), model.answers((1, 1, 1), times)], 1)
    assert torch.allclose(torch.tensor(found).double(), wanted, atol=1e-6)


# ---- the claims on shipped rows, at their edges

SHIPPED = read_table(Path(__file__).parents[1] / "results" / "interactions" / "rows.parquet")
CLAIMS = {c.id: c for c in interactions.STUDY.claims}


def changed(where: dict, column: str, value: float) -> Table:
    """The shipped rows with another value in some of them."""
    some = pl.all_horizontal(pl.col(name) == v for name, v in where.items())
    return SHIPPED.with_columns(pl.when(some).then(value).otherwise(pl.col(column)).alias(column))


def at_end(prior: str, world: str, composition: str = "111", mirrors: str = "jitter") -> dict:
    return {"kind": "end", "prior": prior, "mirrors": mirrors, "world": world,
            "composition": composition}  # fmt: skip


@pytest.mark.parametrize(
    ("id", "where", "inside", "outside"),
    [
        ("B26", at_end("apart", "none"), 0.499, 0.5),
        ("B26", at_end("alike", "none"), 0.499, 0.5),
        ("B26", at_end("sums", "none"), 0.5, 0.499),
        ("B26", at_end("sums", "usual"), 0.99, 0.989),
        ("B26", at_end("alike", "wide"), 0.99, 0.989),
        ("B26", at_end("apart", "half"), 0.99, 0.989),
        ("B29", at_end("apart", "none", "111", "jitter-by-factor"), 0.499, 0.5),
        ("B29", at_end("apart", "both", "111", "jitter-by-factor"), 0.5, 0.499),
        ("B29", at_end("apart", "both", "101", "jitter-by-factor"), 0.5, 0.499),
    ],
)
def test_a_check_holds_up_to_its_edge_and_not_beyond(id, where, inside, outside):
    def holds(value: float) -> list[bool]:
        return [c.holds for c in CLAIMS[id].measure(changed(where, "agreement", value)).parts]

    assert SHIPPED.one(**where)
    assert all(holds(inside))
    assert holds(outside).count(False) == 1


def test_powers_of_the_spread_are_within_a_tenth():
    def holds(level: str, power: float) -> list[bool]:
        some = (pl.col("kind") == "pace") & (pl.col("prior") == "apart")
        some &= pl.col("composition") == level
        time = pl.when(some).then(pl.col("spread") ** power).otherwise(pl.col("time"))
        rows = SHIPPED.with_columns(time.alias("time"))
        return [c.holds for c in CLAIMS["B27"].measure(rows).parts]

    for level, power, which in (("101", -2, 0), ("111", -4, 1)):
        for off, expected in ((-0.09, True), (0.09, True), (-0.11, False), (0.11, False)):
            assert holds(level, power + off)[which] is expected
            assert holds(level, power + off)[1 - which]


def test_answers_on_triangles_differ_by_no_more_than_a_millionth():
    def measured(by: float) -> list[bool]:
        some = (pl.col("kind") == "answer") & (pl.col("prior") == "apart")
        some &= (pl.col("mirrors") == "jitter-by-shape") & (pl.col("world") == "circles")
        moved = pl.when(some).then(pl.col("agreement") + by).otherwise(pl.col("agreement"))
        rows = SHIPPED.with_columns(moved.alias("agreement"))
        return [c.holds for c in CLAIMS["B28"].measure(rows).parts]

    assert measured(0.9e-6) == [True, True]
    assert measured(1.1e-6) == [True, False]
    few = Table([r for r in SHIPPED if r["kind"] != "answer" or r["world"] != "circles"])
    for rows in (few, Table([])):
        with pytest.raises(LookupError, match=r"^no answers of apart in the worlds "):
            interactions.gap(rows, "apart", "circles", "nowhere")
    with pytest.raises(LookupError, match=r"^too few spreads at which the answer is correct"):
        interactions.exponent(SHIPPED.filter(pl.col("spread") < 0), "apart", "111")
