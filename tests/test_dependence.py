"""Condition dependence: exact values where the answer is known, and no side effects."""

import pytest
import torch
from level_rows import verdict
from tiny import QUIET

from recombine.analysis.condition_dependence import (
    Point,
    at_the_end,
    dependence_points,
    late_gain,
    predicts_composition,
    rank_correlation,
    within,
)
from recombine.analysis.frames import pl
from recombine.analysis.table import Table
from recombine.config import UsageError
from recombine.metrics.dependence import dependence
from recombine.nets.conditioning import Conditioning
from recombine.nets.dit import DiTConfig
from recombine.nets.transformer import TransformerConfig
from recombine.objectives.diffusion import Diffusion
from recombine.objectives.masked import Masked
from recombine.objectives.token_heads import Categorical, Denoising, Mixture
from recombine.overrides import override
from recombine.pipeline.job import ancestors, folder_of
from recombine.pipeline.worker import run_tasks
from recombine.plots import dependence as plots
from recombine.rng import seeded
from recombine.runs.models import ModelRun
from recombine.studies import objectives, repair
from recombine.worlds.shapes2d import Shapes2D

WORLD = Shapes2D(size=16)
INDEX = torch.tensor([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)])
NET = DiTConfig(TransformerConfig(depth=1, width=16, heads=2), patch=1)
OBJECTIVES = [
    Masked(Categorical()),
    Masked(Mixture(4)),
    Masked(Denoising(2, 8, 1)),
    Masked(Mixture(4), causal=True),
    Diffusion(),
]


def places(weights: list[list[float]], interaction: float = 0.0):
    """Three places in a row; `weights[j][place]`: the effect of factor j there. Shape and colour
    may interact at the first."""
    table = torch.tensor(weights).float()

    def expect(condition):
        given = condition.index.float()
        row = given @ table
        row[:, 0] += interaction * given[:, 0] * given[:, 1]
        return row[:, None, None, :]

    return expect


def test_one_condition_a_place_is_sparse_and_additive():
    found = dependence(places([[1, 0, 0], [0, 2, 0], [0, 0, 3]]), WORLD, INDEX)
    assert found == (1.0, 1.0)


def test_all_conditions_everywhere_alike_is_one_in_k():
    found = dependence(places([[1, 1, 1]] * 3), WORLD, INDEX)
    assert found.sparse == pytest.approx(1 / 3)
    assert found.additive == pytest.approx(1)


def test_an_interaction_is_measured_against_the_effects():
    found = dependence(places([[1, 0, 0], [0, 1, 0], [0, 0, 1]], interaction=1.0), WORLD, INDEX[:1])
    # from 000 each change has an effect of 1; shape and colour together make one more, of size 1, among 3 pairs of 2 effects
    assert found.additive == pytest.approx(1 - 1 / 6)


def test_a_model_that_ignores_its_conditions_is_not_divided_by_zero():
    assert dependence(lambda c: torch.zeros(len(c.index), 1, 2, 2), WORLD, INDEX) == (1.0, 1.0)


def test_what_has_no_places_is_refused_and_tokens_are_places():
    """Three tokens of two numbers; each depends on one factor."""
    tokens = lambda condition: condition.index.float()[:, :, None] * torch.tensor([1.0, 2.0])  # noqa: E731
    assert dependence(lambda c: tokens(c).mT[..., None], WORLD, INDEX) == (1, 1)
    for wrong in (tokens, lambda c: tokens(c).flatten(1), lambda c: tokens(c).mT[:1, ..., None]):
        with pytest.raises(UsageError, match="pictures, channels, height, width"):
            dependence(wrong, WORLD, INDEX)


def test_one_factor_is_nothing_to_compare():
    with pytest.raises(UsageError, match="one factor"):
        dependence(lambda c: torch.zeros(1), WORLD, INDEX[:, :1])


@pytest.fixture(
    params=OBJECTIVES,
    ids=lambda o: type(getattr(o, "head", o)).__name__ + str(getattr(o, "causal", "")),
)
def model(request):
    objective, codes = request.param, torch.randn(9, 4, generator=seeded("codes"))
    torch.manual_seed(0)
    net = objective.network(NET, Conditioning(), (4, 3, 3), WORLD.space, codes)
    with torch.no_grad():
        for p in net.parameters():
            p += 0.1 * torch.randn_like(p)
    return objective, net.eval(), codes


def test_an_expectation_is_a_function_of_the_condition_and_of_the_named_randomness(model):
    objective, net, _ = model
    x = torch.randn(4, 4, 3, 3, generator=seeded("x"))
    given = WORLD.describe(INDEX, WORLD.canonical(INDEX))
    with torch.no_grad():
        first, again = (objective.expect(net, x, given, 0.6, seeded("gone")) for _ in range(2))
        other = objective.expect(
            net, x, given.rows(torch.tensor([1, 0, 3, 2])), 0.6, seeded("gone")
        )
    assert first.shape == x.shape
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)


def test_what_a_masked_model_can_see_is_not_expected():
    objective, shape = Masked(Categorical()), (4, 3, 3)
    net = objective.network(
        NET, Conditioning(), shape, WORLD.space, torch.randn(9, 4, generator=seeded("codes"))
    )
    x, given = torch.randn(4, *shape), WORLD.describe(INDEX, WORLD.canonical(INDEX))
    gone = objective.expect(net, x, given, 0.5, seeded("gone")).abs().sum(1).flatten(1)
    assert ((gone > 0).sum(1) == 5).all(), "half of nine, rounded up"


def test_the_mean_of_a_head_is_the_mean_of_its_draws():
    hidden, codes = (
        torch.randn(1, 16, generator=seeded("h")).expand(20_000, 16),
        torch.randn(9, 4, generator=seeded("c")),
    )
    for head in (Categorical(), Mixture(4)):
        torch.manual_seed(1)
        net = head.net(16, 4, codes)
        with torch.no_grad():
            for p in net.parameters():
                p += 0.3 * torch.randn_like(p)
            drawn, _ = head.sample(net, hidden, seeded("draw"))
            assert torch.allclose(
                drawn.mean(0), head.mean(net, hidden[:1], seeded("m"))[0], atol=0.05
            )


def made(sparse, level2, variant="v", seed=0) -> list[dict]:
    """A run that knows the seen compositions from its second checkpoint on."""
    who = {"variant": variant, "seed": seed}
    rows = [
        {"kind": "dependence", "hidden": g, "sparse": s + g, "additive": 0.5, "step": i, **who}
        for i, s in enumerate(sparse)
        for g in (-0.1, 0.1)
    ]
    score = {"kind": "accuracy", "probe": "open-set", **who}
    rows += [score | {"level": 2, "joint": y, "step": i} for i, y in enumerate(level2)]
    return rows + [
        score | {"level": 0, "joint": 0.1 if i == 0 else 0.9, "step": i} for i in range(len(level2))
    ]


def test_points_leave_out_what_has_not_learned_and_average_over_what_is_hidden():
    some = dependence_points(Table(made([0.1, 0.4, 0.6], [0.9, 0.2, 0.3])))
    shown = [(p.step, round(p.sparse, 6), p.level2) for p in some]
    assert shown == [(1, 0.4, 0.2), (2, 0.6, 0.3)]


def over_seeds(sparse: list[float], level2: list[float], seeds: int = 5) -> list[dict]:
    return [r for s in range(seeds) for r in made(sparse, level2, seed=s)]


def test_the_rank_correlation_knows_order_and_refuses_what_does_not_vary():
    some = dependence_points(Table(over_seeds([0, 0.1, 0.2, 0.3], [0, 0.1, 0.2, 0.3], seeds=3)))
    assert rank_correlation(some, "sparse") == pytest.approx(1)
    with pytest.raises(LookupError, match="too few"):
        rank_correlation(some, "additive")


def test_the_verdict_on_dependence_and_composition_follows_from_rows():
    rows = []
    for variant, scale in (("v", 1.0), ("w", 0.5), ("u", 0.7)):
        rising = [scale * x for x in (0, 0.1, 0.2, 0.3, 0.4, 0.5)]
        rows += [r | {"variant": variant} for r in over_seeds(rising, rising)]
    both = [r | ({"additive": r["sparse"]} if "sparse" in r else {}) for r in rows]
    against = [r | ({"additive": 1 - r["sparse"]} if "sparse" in r else {}) for r in rows]
    assert verdict(objectives.STUDY, "B1", both) == "supported"
    assert verdict(objectives.STUDY, "B1", against) == "partly supported"
    assert verdict(objectives.STUDY, "B1", rows) == "not measured", "additive does not vary"


def test_where_nothing_was_learned_there_is_no_verdict():
    rows = made([0.1] * 4, [0.0] * 4)
    unlearned = [r | ({"joint": 0.1} if r.get("level") == 0 else {}) for r in rows]
    assert verdict(objectives.STUDY, "B1", unlearned) == "not measured"
    assert verdict(repair.STUDY, "B3", unlearned) == "not measured"


@pytest.mark.parametrize(
    ("lift", "expected"),
    [
        ([0.1, 0.11, 0.12, 0.1, 0.11], "supported"),
        ([0.3, -0.2, 0.1, -0.1, 0.2], "inconclusive"),
        ([-0.1, -0.11, -0.12, -0.1, -0.11], "contradicted"),
    ],
)
def test_the_verdict_on_the_auxiliary_loss_follows_from_its_seeds(lift, expected):
    rows = []
    for seed, more in enumerate(lift):
        rows += made([0.4] * 4, [0] * 4, "maskgit", seed) + made(
            [0.4 + more] * 4, [0] * 4, "jepa", seed
        )
    assert verdict(repair.STUDY, "B3", rows) == expected


@pytest.mark.slow
def test_a_run_measures_it_at_every_checkpoint_and_the_figure_is_plotted(tmp_path):
    short = ("probe_steps=2", "evaluation.samples=2", "tokenizer.steps=2", 'families=["dit"]')
    recipe = override(objectives.settings("smoke"), *short).variants()["dit"]
    task = ModelRun(recipe)
    run_tasks(list(ancestors([task])), tmp_path, QUIET, {})
    rows = [r | {"variant": "dit", "seed": 0} for r in folder_of(task, tmp_path).rows()]
    measured = [r for r in rows if r["kind"] == "dependence"]
    assert len(measured) == 3 * 3, "three checkpoints, three shares hidden"
    assert all(0 < r["sparse"] <= 1 and r["additive"] <= 1 for r in measured)
    learned = [r | ({"joint": 0.9} if r.get("level") == 0 else {}) for r in rows]
    assert [f.name for f in plots.figures(Table(learned), tmp_path)] == ["condition-dependence"]
    assert plots.figures(Table(rows), tmp_path) == [], "nothing was learned"


def test_what_cannot_be_compared_is_named():
    rows = Table(made([0.4] * 4, [0] * 4, "a", 0) + made([0.4] * 4, [0] * 4, "b", 1))
    says = r"^no seed has dependence rows of both a and b$"
    with pytest.raises(LookupError, match=says):
        late_gain(rows, "a", "b", "sparse")
    with pytest.raises(LookupError, match=r"^no dependence rows of c$"):
        late_gain(rows, "a", "c", "sparse")
    alone = [Table(made([0.1 * s] * 3, [0.1 * s] * 3, "v", s)) for s in range(5)]
    spread = alone[0] + alone[1] + alone[2] + alone[3] + alone[4]
    both = spread.with_columns(additive=pl.col("sparse"))
    says = r"^in no seed are there enough points to correlate sparse with level 2$"
    with pytest.raises(LookupError, match=says):
        predicts_composition.measure(both)


def test_four_points_can_be_correlated_and_three_cannot():
    some = [Point("v", 0, i, 0.1 * i, 0.5, 0.2 * i) for i in range(4)]
    assert rank_correlation(some, "sparse") == pytest.approx(1)
    assert within([*some, *(p._replace(variant="w") for p in some[:3])], "sparse") == {
        "v": pytest.approx(1)
    }
    for few, name in ((some[:3], "sparse"), (some, "additive")):
        says = f"^too few different points to correlate {name} with level 2$"
        with pytest.raises(LookupError, match=says):
            rank_correlation(few, name)
    assert at_the_end(some) == some[3:]
    assert at_the_end([]) == []
