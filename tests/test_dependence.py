"""How a model listens to its conditions: exact values where the answer is known, and no side effects in expectations."""

import pytest
import torch
from tiny import QUIET

from recombine.config import UsageError, override
from recombine.evaluate.dependence import dependence
from recombine.nets.conditioning import Conditioning
from recombine.nets.dit import DiTConfig
from recombine.nets.transformer import TransformerConfig
from recombine.objectives.diffusion import Diffusion
from recombine.objectives.token_heads import Categorical, Denoising, Mixture
from recombine.objectives.masked import Masked
from recombine.rng import seeded
from recombine.studies import jepa, listening, objectives
from recombine.studies.base import Rows
from recombine.studies.lab import Lab
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


def layout(weights: list[list[float]], interaction: float = 0.0):
    """Three layout in a row; `weights[j][place]`: what factor j does there. Shape and colour may interact at the first."""
    table = torch.tensor(weights).float()

    def expect(condition):
        told = condition.index.float()
        row = told @ table
        row[:, 0] += interaction * told[:, 0] * told[:, 1]
        return row[:, None, None, :]

    return expect


def test_one_condition_a_place_is_sparse_and_additive():
    found = dependence(layout([[1, 0, 0], [0, 2, 0], [0, 0, 3]]), WORLD, INDEX)
    assert found == (1.0, 1.0)


def test_all_conditions_everywhere_alike_is_one_in_k():
    found = dependence(layout([[1, 1, 1]] * 3), WORLD, INDEX)
    assert found.sparse == pytest.approx(1 / 3)
    assert found.additive == pytest.approx(1)


def test_an_interaction_is_measured_against_the_effects():
    found = dependence(layout([[1, 0, 0], [0, 1, 0], [0, 0, 1]], interaction=1.0), WORLD, INDEX[:1])
    # from 000 each change has an effect of 1; shape and colour together make one more, of size 1, among 3 pairs of 2 effects
    assert found.additive == pytest.approx(1 - 1 / 6)


def test_a_model_that_does_not_listen_is_not_divided_by_zero():
    assert dependence(lambda c: torch.zeros(len(c.index), 1, 2, 2), WORLD, INDEX) == (1.0, 1.0)


def test_what_has_no_places_is_refused_and_tokens_are_places():
    """Three tokens of two numbers; each listens to one factor."""
    tokens = lambda condition: condition.index.float()[:, :, None] * torch.tensor([1.0, 2.0])  # noqa: E731
    assert dependence(lambda c: tokens(c).mT[..., None], WORLD, INDEX) == (1, 1)
    for wrong in (tokens, lambda c: tokens(c).flatten(1), lambda c: tokens(c).mT[:1, ..., None]):
        with pytest.raises(UsageError, match="pictures, channels, height, width"):
            dependence(wrong, WORLD, INDEX)


def test_one_factor_is_nothing_to_compare():
    with pytest.raises(UsageError, match="one factor"):
        dependence(lambda c: torch.zeros(1), WORLD, INDEX[:, :1])


@pytest.fixture(params=OBJECTIVES, ids=lambda o: type(getattr(o, "head", o)).__name__ + str(getattr(o, "causal", "")))
def model(request):
    objective, codes = request.param, torch.randn(9, 4, generator=seeded("codes"))
    torch.manual_seed(0)
    net = objective.network(NET, Conditioning(), (4, 3, 3), WORLD.space, codes)
    with torch.no_grad():
        for p in net.parameters():
            p += 0.1 * torch.randn_like(p)
    return objective, net.eval(), codes


def test_an_expectation_is_a_function_of_what_is_told_and_of_the_named_randomness(model):
    objective, net, _ = model
    x = torch.randn(4, 4, 3, 3, generator=seeded("x"))
    told = WORLD.describe(INDEX, WORLD.canonical(INDEX))
    with torch.no_grad():
        first, again = (objective.expect(net, x, told, 0.6, seeded("gone")) for _ in range(2))
        other = objective.expect(net, x, told.rows(torch.tensor([1, 0, 3, 2])), 0.6, seeded("gone"))
    assert first.shape == x.shape
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)


def test_what_a_masked_model_can_see_is_not_expected():
    objective, shape = Masked(Categorical()), (4, 3, 3)
    net = objective.network(NET, Conditioning(), shape, WORLD.space, torch.randn(9, 4, generator=seeded("codes")))
    x, told = torch.randn(4, *shape), WORLD.describe(INDEX, WORLD.canonical(INDEX))
    gone = objective.expect(net, x, told, 0.5, seeded("gone")).abs().sum(1).flatten(1)
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
            assert torch.allclose(drawn.mean(0), head.mean(net, hidden[:1], seeded("m"))[0], atol=0.05)


def made(sparse, level2, variant="v", seed=0) -> list[dict]:
    """A run that knows the seen compositions from its second look on."""
    who = {"variant": variant, "seed": seed}
    rows = [
        {"kind": "dependence", "gone": g, "sparse": s + g, "additive": 0.5, "step": i, **who}
        for i, s in enumerate(sparse)
        for g in (-0.1, 0.1)
    ]
    score = {"kind": "accuracy", "probe": "open-set", **who}
    rows += [score | {"level": 2, "joint": y, "step": i} for i, y in enumerate(level2)]
    return rows + [score | {"level": 0, "joint": 0.1 if i == 0 else 0.9, "step": i} for i in range(len(level2))]


def test_points_leave_out_what_has_not_learned_and_average_over_what_is_gone():
    found = listening.points(Rows(made([0.1, 0.4, 0.6], [0.9, 0.2, 0.3])))
    assert [(p.step, round(p.sparse, 6), p.level2) for p in found] == [(1, 0.4, 0.2), (2, 0.6, 0.3)]


def test_the_rank_correlation_knows_order_and_refuses_what_does_not_vary():
    rows = Rows([r for s in range(3) for r in made([0, 0.1, 0.2, 0.3], [0, 0.1, 0.2, 0.3], seed=s)])
    found = listening.points(rows)
    assert listening.rank_correlation(found, "sparse") == pytest.approx(1)
    with pytest.raises(LookupError, match="too few"):
        listening.rank_correlation(found, "additive")


def test_where_nothing_was_learned_there_is_nothing_to_judge():
    rows = Rows(r | ({"joint": 0.1} if r.get("level") == 0 else {}) for r in made([0.1] * 4, [0.0] * 4))
    with pytest.raises(LookupError, match="too few"):
        objectives.judge_listening(rows)


def test_jepas_verdict_follows_from_its_seeds():
    def rows(lift: list[float]) -> Rows:
        plain = [r for s in range(3) for r in made([0.4] * 4, [0] * 4, "maskgit", s)]
        return Rows(plain + [r for s in range(3) for r in made([0.4 + lift[s]] * 4, [0] * 4, "jepa", s)])

    assert jepa.judge_dependence(rows([0.1, 0.11, 0.12])).holds is True
    assert jepa.judge_dependence(rows([0.3, -0.2, 0.1])).holds is False
    assert jepa.judge_dependence(rows([0.0, 0.0, 0.0])).holds is False


def test_a_run_measures_it_at_every_look_and_the_figure_is_drawn(tmp_path):
    short = ("probe_steps=2", "evaluation.samples=2", "tokenizer.steps=2", 'families=["maskgit","dit"]')
    settings = override(objectives.settings("smoke"), *short)
    rows = Rows(objectives.run(settings, Lab(QUIET, tmp_path, "smoke", 1)))
    found = rows.where(kind="dependence")
    assert len(found) == 2 * 3 * 3, "two families, three looks, three amounts"
    assert all(0 < r["sparse"] <= 1 and r["additive"] <= 1 for r in found)
    learned = Rows(r | ({"joint": 0.9} if r.get("level") == 0 else {}) for r in rows)
    drawn = [f.name for f in objectives.draw(learned, tmp_path / "figures")]
    assert drawn == ["levels", "probes", "factors", "between", "listening"]
    assert listening.draw(rows, tmp_path / "figures") == [], "nothing was learned"
