"""Opening networks: hooks that leave no trace, heads and units whose role is known by hand,
overlaps and their bounds, and the claims of the study on rows made by hand."""

from itertools import product
from typing import ClassVar

import pytest
import torch
import torch.nn.functional as F
from figure_reader import drawn
from level_rows import verdict
from tiny import QUIET
from torch import nn

from recombine.analysis.circuits import (
    THRESHOLDS,
    agreement,
    circuit_size,
    least_rise,
    overlap_table,
    pairs_of,
    paper_mean,
    papers,
    sweep,
    tidy,
)
from recombine.analysis.estimates import correlation
from recombine.analysis.table import Table
from recombine.config import UsageError, config
from recombine.metrics.attention_heads import (
    Heads,
    breadth,
    changed,
    heads_of,
    polysemantic,
    sensitivity,
    threshold_for,
    without_each,
)
from recombine.metrics.capture import Place, captured, cut, edited, precisely, watched
from recombine.metrics.circuits import (
    ablation,
    attribution,
    chance,
    circuit,
    influence,
    jaccard,
    overlaps,
    resting,
    units_of,
)
from recombine.metrics.probes import Oracle
from recombine.nets.conditioning import Conditioning
from recombine.nets.dit import DiTConfig
from recombine.nets.transformer import TransformerConfig
from recombine.objectives.diffusion import Diffusion
from recombine.objectives.jepa import Jepa
from recombine.objectives.masked import Decoding, Masked
from recombine.objectives.objective import Objective
from recombine.objectives.solvers import Euler
from recombine.objectives.token_heads import Categorical, Denoising, Mixture
from recombine.pipeline.job import Work
from recombine.pipeline.plan import StudyPlan
from recombine.pipeline.run import collect
from recombine.pipeline.worker import run_tasks
from recombine.plots.circuits import figures
from recombine.plots.heads import polysemantic_layers
from recombine.rng import seeded
from recombine.runs.circuits import CircuitRun, Opening, accuracies, in_turn, open_model
from recombine.runs.models import Model, ModelRun
from recombine.runs.recipe import Evaluation, Recipe
from recombine.studies import circuits, repair
from recombine.studies.calibrated import Calibrated
from recombine.studies.circuits import (
    STUDY,
    Circuits,
    before_and_after,
    circuits_separate,
    fewer_polysemantic,
)
from recombine.studies.repair import Repair
from recombine.tokenizers.autoencoder import Autoencoder
from recombine.tokenizers.bottlenecks import VQ
from recombine.tokenizers.tokenizer import Tokenizer, look_up, nearest
from recombine.train.fit import TrainConfig
from recombine.worlds.factors import code
from recombine.worlds.shapes2d import Shapes2D

WORLD = Shapes2D()
SHAPE = (4, 3, 5)
CODES = torch.randn(11, 4, generator=seeded("codes"))
NET = DiTConfig(TransformerConfig(depth=2, width=32, heads=2), patch=1)
FAMILIES = {
    "maskgit": Masked(Categorical()),
    "givt": Masked(Mixture(4)),
    "mar": Masked(Denoising(3, 16, 1, 2)),
}
FAMILIES |= {"dit": Diffusion(), "causal": Masked(causal=True)}
each_family = pytest.mark.parametrize("objective", FAMILIES.values(), ids=FAMILIES)


def made(objective: Objective) -> nn.Module:
    torch.manual_seed(0)
    net = objective.network(NET, Conditioning(), SHAPE, WORLD.space, CODES)
    with torch.no_grad():
        for p in net.parameters():
            p.add_(0.2 * torch.randn(p.shape))
    return net


def fixed(objective: Objective, net: nn.Module, composition=(0, 1, 1), count: int = 6):
    """A loss with all its inputs fixed."""
    pick = torch.randint(len(CODES), (count, 3, 5), generator=seeded("pick"))
    x, draw = (
        CODES[pick].movedim(-1, 1),
        objective.draw(torch.Size((count, *SHAPE)), seeded("draw")),
    )
    condition = WORLD.condition(composition, count)
    return lambda: objective.loss(net, x, condition, draw)


def hooks(net: nn.Module) -> int:
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in net.modules())


@each_family
def test_watching_and_cutting_nothing_change_nothing_bit_for_bit(objective):
    net = made(objective)
    loss, heads, units = fixed(objective, net), heads_of(net), units_of(net)
    plain = loss().detach()
    with captured(net, [*heads.places, *units]) as held:
        assert torch.equal(loss().detach(), plain)
    assert [held[p].shape for p in heads.places] == [(6, 15, 32)] * 2
    assert [held[p].shape for p in units] == [(6, 15, 128)] * 2
    with watched(net, units):
        assert torch.equal(loss().detach(), plain)
    with (
        cut(net, heads.places[0], slice(0, 0)),
        cut(net, units[1], torch.tensor([], dtype=torch.long)),
    ):
        assert torch.equal(loss().detach(), plain)
    with cut(net, heads.places[0], heads.channels(1)):
        assert not torch.equal(loss().detach(), plain)
    assert torch.equal(loss().detach(), plain)
    assert hooks(net) == 0


def test_hooks_are_gone_after_an_exception_or_a_wrong_name():
    net = made(FAMILIES["maskgit"])
    for place in (
        Place("trunk.blocks.0.mlp.1", "out"),
        Place("trunk.blocks.1.attention.out", "in"),
    ):
        for hook in (captured(net, [place]), watched(net, [place]), cut(net, place, slice(0, 3))):
            with pytest.raises(RuntimeError, match="inside"), hook:
                raise RuntimeError("inside")
    with pytest.raises(AttributeError), captured(net, [place, Place("trunk.nowhere", "in")]):
        pass
    assert hooks(net) == 0
    before = torch.get_float32_matmul_precision()
    with precisely():
        assert torch.get_float32_matmul_precision() == "highest"
    with pytest.raises(RuntimeError, match="inside"), precisely():
        raise RuntimeError("inside")
    assert torch.get_float32_matmul_precision() == before


def test_an_edit_sees_what_is_there_and_its_answer_takes_the_place():
    net = nn.Sequential(nn.Linear(3, 3, bias=False), nn.ReLU())
    x = torch.randn(4, 3, generator=seeded(0))
    with edited(net, {Place("0", "in"): lambda a: 2 * a}):
        assert torch.equal(net(x), net[1](net[0].weight.new_zeros(()) + 2 * x @ net[0].weight.T))
    with edited(net, {Place("1", "out"): lambda a: a + 1}):
        assert torch.equal(net(x), (x @ net[0].weight.T).relu() + 1)


class TwoLayers(nn.Module):
    """Two layers of two heads of two channels. What each head says turns by a right angle with the
    factors it reads: with shape; with shape and colour; with none; with size."""

    READS = ((0,), (0, 1)), ((), (2,))

    def __init__(self):
        super().__init__()
        self.out = nn.ModuleList([nn.Identity(), nn.Identity()])

    def forward(self, index):
        said = []
        for out, layer in zip(self.out, self.READS, strict=True):
            angle = torch.stack(
                [sum((index[:, k] for k in reads), torch.zeros(len(index))) for reads in layer], 1
            )
            angle = torch.pi / 2 * angle
            said.append(out(torch.stack([angle.cos(), angle.sin()], -1).flatten(1)))
        return torch.stack(said).sum(0)


HANDS = Heads((Place("out.0", "out"), Place("out.1", "out")), 2, 2)


def test_sensitivities_of_heads_made_by_hand_are_exact():
    net, index = TwoLayers(), torch.tensor(WORLD.space.compositions)
    found = []
    for k in range(3):
        other = changed(index, k, 2)
        assert ((index != other).sum(1) == 1).all()
        assert (index != other)[:, k].all()
        found.append(sensitivity(net, HANDS, lambda: net(index), lambda other=other: net(other)))
    s = torch.stack(found)
    assert torch.allclose(
        s.round(decimals=5),
        torch.tensor([[[1, 1], [0, 0]], [[0, 1], [0, 0]], [[0, 0], [0, 1]]]) * 1.0,
    )
    assert polysemantic(s, 0.5).tolist() == [[False, True], [False, False]]
    assert not polysemantic(s, 1.5).any()
    assert breadth(s)[0].tolist() == pytest.approx([1, 2])
    assert breadth(7 * s)[1, 1] == pytest.approx(1)
    assert hooks(net) == 0


def test_the_threshold_for_a_share_gives_that_share():
    s = torch.rand(3, 5, 10, generator=seeded(0))
    for share in (0.1, 0.5, 0.64, 0.9):
        assert float(polysemantic(s, threshold_for(s, share)).float().mean()) == pytest.approx(
            share, abs=0.02
        )


def test_other_values_of_a_factor_are_all_reached_and_a_single_one_is_refused():
    index = torch.zeros(8, 2, dtype=torch.long)
    assert set(changed(index, 1, 4)[:, 1].tolist()) == {1, 2, 3}
    assert not changed(index, 1, 4)[:, 0].any()
    with pytest.raises(ValueError, match="cannot be changed"):
        changed(index, 0, 1)


@each_family
def test_heads_of_every_family_notice_the_condition_and_equal_conditions_exactly_not(objective):
    net = made(objective)
    heads = heads_of(net)
    one, other = fixed(objective, net, (0, 1, 1)), fixed(objective, net, (0, 0, 1))
    assert not sensitivity(net, heads, one, one).any()
    assert (sensitivity(net, heads, one, other) > 0).all()


@pytest.mark.parametrize("name", ["maskgit", "dit"])
def test_cutting_a_head_is_zeroing_its_columns_of_the_last_matrix(name):
    objective = FAMILIES[name]
    net, sampler = made(objective), Decoding(3) if name == "maskgit" else Euler(2)
    heads, condition = heads_of(net), WORLD.condition((0, 1, 1), 3)
    draw = lambda: objective.sample(net, SHAPE, condition, seeded(1), sampler).detach()  # noqa: E731
    found = without_each(net, heads, lambda: draw().flatten())
    assert found.shape[:2] == (2, 2)
    with torch.no_grad():
        net.trunk.blocks[1].attention.out.weight[:, heads.channels(0)] = 0
    assert torch.allclose(draw().flatten(), found[1, 0], atol=1e-5)
    assert not torch.allclose(found[1, 0], found[1, 1], atol=1e-3)


class Linear(nn.Module):
    """A loss that is linear in its hidden units."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.units, self.read = nn.Tanh(), nn.Parameter(torch.randn(5))

    def forward(self, x):
        return (self.units(x) @ self.read).sum(1)


@pytest.mark.parametrize("frozen", [False, True])
def test_attribution_is_ablation_where_the_loss_is_linear(frozen):
    net, place = Linear().requires_grad_(not frozen), Place("units", "out")
    x = torch.randn(7, 3, 5, generator=seeded(0))
    loss, units = lambda: net(x), [(place, i) for i in range(5)]
    rest = resting(net, [place], [loss])
    assert torch.allclose(rest[0], x.tanh().mean((0, 1)))
    for whole, each in ((None, None), (rest, list(rest[0]))):
        guess, truth = attribution(net, [place], loss, whole), ablation(net, loss, units, each)
        assert torch.allclose(guess, truth, atol=1e-5)
        assert guess.abs().mean() > 0.1
    assert torch.allclose(influence(guess), guess.abs().mean(0))
    assert net.read.grad is None


@each_family
def test_attribution_points_at_the_units_whose_removal_matters(objective):
    """Not the same, but nearly in the same order; and units that nobody reads matter by neither."""
    net = made(objective)
    with torch.no_grad():
        net.trunk.blocks[0].mlp[2].weight[:, :20] = 0
    places, loss = units_of(net), fixed(objective, net)
    guess = influence(attribution(net, places, loss))
    truth = influence(ablation(net, loss, [(p, i) for p in places for i in range(0, 128, 8)]))
    assert guess.shape == (256,)
    assert not guess[:20].any()
    assert not truth[:3].any()
    assert (guess[20:128] > 0).all()
    assert correlation(guess[::8].tolist(), truth.tolist()) > 0.8
    assert hooks(net) == 0


def test_circuits_hold_the_share_that_is_set_and_the_largest():
    each = torch.rand(3, 200, generator=seeded(0))
    for share, count in ((0.05, 10), (0.001, 1), (0.5, 100)):
        found = circuit(each, share)
        assert found.sum(1).tolist() == [count] * 3
        assert all(
            row[mine].min() > row[~mine].max() for row, mine in zip(each, found, strict=True)
        )


def test_jaccard_is_symmetric_bounded_one_with_itself_and_zero_without_a_common_unit():
    a = torch.rand(6, 50, generator=seeded(0)) < 0.3
    table = jaccard(a, a)
    assert torch.equal(table, table.T)
    assert torch.equal(table.diagonal(), torch.ones(6))
    assert 0 <= table.min() <= table.max() <= 1
    assert not jaccard(a, ~a).diagonal().any()
    left, right = torch.tensor([[1, 1, 1, 0]]).bool(), torch.tensor([[0, 1, 1, 1]]).bool()
    assert jaccard(left, right).item() == 0.5
    assert jaccard(left & ~left, right & ~right).item() == 1


def test_overlaps_of_random_circuits_are_chance_and_of_the_same_one():
    random = torch.rand(2, 8, 20_000, generator=seeded(0))
    table = overlaps(random, 0.05)
    assert torch.equal(table, table.T)
    assert float(table.mean()) == pytest.approx(chance(0.05), abs=0.003)
    assert torch.equal(overlaps(random[:1].expand(2, -1, -1), 0.05).diagonal(), torch.ones(8))


def rows_by_hand(fall: float = 0.1, seeds: int = 5, noise: float = 0.0) -> list[dict]:
    """Four layers of five heads, eight compositions. The auxiliary loss lowers everything by
    `fall`."""
    rng, rows = seeded("by hand"), []
    chance = lambda: noise * float(torch.randn((), generator=rng))  # noqa: E731
    every = WORLD.space.compositions
    for variant, seed in product(("maskgit", "jepa"), range(seeds)):
        about, less = {"variant": variant, "seed": seed}, fall if variant == "jepa" else 0.0
        for layer, head, (k, name) in product(
            range(4), range(5), enumerate(("shape", "color", "size"))
        ):
            turned = max(0.0, (head + 1) / 5 * (0.9, 0.5, 0.1)[k] - less + chance())
            said = {
                "kind": "head",
                "layer": layer,
                "head": head,
                "factor": name,
                "sensitivity": turned,
            }
            rows.append(said | {"before": 0.9, "after": 0.9 - turned / 2} | about)
        for i, a in enumerate(every):
            for b in every[: i + 1]:
                shared = sum(x == y for x, y in zip(a, b, strict=True))
                value = 0.3 + 0.2 * shared - less + chance()
                said = {
                    "kind": "overlap",
                    "first": code(a),
                    "second": code(b),
                    "shared": shared,
                    "share": 0.05,
                }
                levels = {"first_level": max(0, sum(a) - 1), "second_level": max(0, sum(b) - 1)}
                rows.append(said | levels | {"jaccard": value, "jaccard_mean": value / 2} | about)
        for unit in range(20):
            said = {
                "kind": "unit",
                "layer": unit % 4,
                "unit": unit,
                "attribution": unit + 1.0,
                "ablation": unit + 2.0,
            }
            rows.append(said | {"attribution_mean": 1.0, "ablation_mean": 1.0 + unit} | about)
    return rows


def test_heads_are_compared_at_the_threshold_that_gives_the_papers_share():
    finding = fewer_polysemantic.measure(Table(rows_by_hand()))
    fall, layers = (part.estimate for part in finding.parts)
    assert 0.2 <= finding.measured["threshold"] < 0.3
    assert finding.measured["maskgit"] == pytest.approx(0.6)
    assert finding.measured["jepa"] == pytest.approx(0.4)
    assert (fall.value, layers.value) == (pytest.approx(0.2), 1)
    assert finding.measured["layers lower"] == "4 of 4"
    assert finding.measured["sensitivity against cutting, jepa"] == pytest.approx(1)


YES, PARTLY, OPEN = "supported", "partly supported", "inconclusive"


@pytest.mark.parametrize(
    ("how", "expected"),
    [({}, YES), ({"fall": 0.0}, OPEN), ({"fall": -0.1}, OPEN), ({"seeds": 1}, OPEN)],
)
def test_the_verdict_on_heads_follows_from_rows(how, expected):
    assert verdict(STUDY, "D8", rows_by_hand(**how)) == expected


def test_circuits_are_compared_pair_by_pair():
    finding = circuits_separate.measure(Table(rows_by_hand()))
    assert [part.estimate.value for part in finding.parts] == pytest.approx([0.1, 0.1, 0.2, 0.2])
    assert finding.measured["of 6 pairs lower"] == 6
    assert finding.measured["of 28 pairs lower"] == 28
    groups = [finding.measured[f"maskgit, {k} shared"] for k in (1, 2)]
    assert groups == pytest.approx([0.5, 0.7]), "the size is shared by all"
    assert finding.measured["maskgit, one composition twice"] == pytest.approx(0.9)
    assert finding.measured["maskgit, relative to that"] == pytest.approx(
        (2 * 0.5 + 4 * 0.7) / 6 / 0.9
    )
    assert finding.measured["attribution against ablation, maskgit"] == pytest.approx(1)


@pytest.mark.parametrize(("fall", "expected"), [(0.1, YES), (0.0, PARTLY), (-0.1, PARTLY)])
def test_the_verdict_on_circuits_follows_from_rows(fall, expected):
    """Overlap rises with shared factors in all of them; only in the first it falls by the loss."""
    rows = rows_by_hand(fall, noise=0.005)
    assert verdict(STUDY, "D9", rows) == expected
    one, other = (
        [r for r in rows if r.get("first") == first and r.get("second") == second]
        for first, second in (("110", "000"), ("111", "000"))
    )
    for r in other:
        r["jaccard"] = 0.9
    assert verdict(STUDY, "D9", rows) == expected, "not one of the paper's pairs"
    for r in one:
        r["jaccard"] = 0.51
    assert verdict(STUDY, "D9", rows) == PARTLY


def test_the_size_of_circuits_is_set_without_a_look_at_the_auxiliary_loss():
    """A second share, with which overlaps without the loss are the paper's mean."""
    rows, more = rows_by_hand(fall=0.0), []
    for r in rows:
        if r["kind"] == "overlap":
            value = 0.62 if r["variant"] == "maskgit" else 0.1
            more.append(r | {"share": 0.2, "jaccard": value})
    far = rows_by_hand(fall=0.5)
    assert circuit_size(Table(rows)) == circuit_size(Table(far)) == 0.05
    for r in rows:
        if r["kind"] == "overlap":
            r["jaccard"] -= 0.2
    assert circuit_size(Table(rows + more)) == 0.2
    finding = circuits_separate.measure(Table(rows + more))
    assert finding.parts[0].estimate.value == pytest.approx(0.52)
    assert finding.measured["fall, circuits of 5%"] == pytest.approx(0.0)


def test_the_papers_pairs_differ_in_shape_or_colour_alone():
    pairs = papers(pairs_of(Table(rows_by_hand())))
    assert sorted((p.second, p.first) for p in pairs) == [
        ("000", "010"), ("000", "100"), ("000", "110"), ("010", "100"), ("010", "110"), ("100", "110"),
    ]  # fmt: skip


def test_deviations_are_those_of_the_models_that_were_opened():
    assert all(set(repair.claims.DEVIATIONS) < set(c.deviations) for c in STUDY.claims)


def test_rows_that_lack_a_variant_or_overlaps_give_no_verdict():
    rows = rows_by_hand()
    alone = [r for r in rows if r["variant"] == "jepa"]
    without = [r for r in rows if r["kind"] != "overlap"]
    assert verdict(STUDY, "D8", alone) == verdict(STUDY, "D9", without) == "not measured"


def test_every_figure_is_plotted_from_rows_alone():
    names = ["polysemantic", "thresholds", "heads", "overlap", "pairs", "attribution"]
    assert list(drawn(figures, Table(rows_by_hand(seeds=2, noise=0.02)))) == names
    (alone,) = drawn(polysemantic_layers, Table(rows_by_hand(seeds=1))).values()
    assert not alone.axes[0].lines, "no dots on the bars of one seed"


def test_the_models_that_are_opened_are_those_of_the_study_repair():
    opened = circuits.settings("full").variants()
    assert opened.items() <= repair.settings("full").recipes().items()
    assert list(opened) == ["maskgit", "jepa"]


@pytest.mark.parametrize(
    "wrong", [{"pictures": 1}, {"units": 0}, {"samples": 0}, {"shares": ()}, {"shares": (0.0,)}]
)
def test_an_opening_refuses_nonsense(wrong):
    with pytest.raises(ValueError, match=r"must|numbers"):
        Opening(**wrong)


@config("test/blocks")
class Blocks(Tokenizer):
    """Pictures of blocks of colour, a code per block."""

    name: ClassVar[str] = "blocks"

    codes: ClassVar[torch.Tensor] = torch.rand(16, 3, generator=seeded("colours"))

    def latent_shape(self, image_shape):
        return 3, image_shape[1] // 4, image_shape[2] // 4

    def encode(self, images):
        small = F.avg_pool2d(images, 4)
        return look_up(nearest(small, self.codes), self.codes)

    def decode(self, latents):
        return F.interpolate(latents, scale_factor=4)


def test_opening_a_model_gives_the_same_rows_twice_and_leaves_it_as_it_was(tmp_path, monkeypatch):
    world = Shapes2D(size=16)
    monkeypatch.setattr("recombine.runs.circuits.open_probes", lambda *how: [Oracle(world)])
    objective = Masked(jepa=Jepa(layers=(0, 1)))
    recipe = Recipe(world=world, tokenizer=Blocks(), net=NET, objective=objective)
    model = Model(recipe, Work(ModelRun(recipe), tmp_path, QUIET))
    with torch.no_grad():
        for i, p in enumerate(model.net.parameters()):
            p.add_(0.2 * torch.randn(p.shape, generator=seeded("shake", i)))
    before = {k: v.clone() for k, v in model.net.state_dict().items()}
    how = Opening(pictures=4, units=6, samples=2, shares=(0.05, 0.2))
    rows = open_model(model, how)
    assert rows == open_model(model, how)
    counts = {kind: sum(r["kind"] == kind for r in rows) for kind in ("head", "overlap", "unit")}
    assert counts == {"head": 2 * 2 * 3, "overlap": 36 * 2, "unit": 6}
    assert all(r["sensitivity"] > 0 for r in rows if r["kind"] == "head")
    known = in_turn(model, 16)
    for given, share in ((known, 1), (1 - known, 0)):
        monkeypatch.setattr(Oracle, "__call__", lambda self, images, said=given: said)
        assert accuracies(model, 2).tolist() == [share] * 3
    assert all(torch.equal(v, before[k]) for k, v in model.net.state_dict().items())
    assert all(p.grad is None for p in model.net.parameters())
    assert hooks(model.net) == 0


def small(world: Shapes2D) -> Circuits:
    tokenizer = Autoencoder(VQ(size=16, dim=4), width=8, steps=2, batch=4)
    evaluation = Evaluation((0,), 2, probe_steps=2, decoding=Decoding(2), real=4)
    train = TrainConfig(steps=2, batch=4, warmup=1)
    recipe = Recipe(world, (), 4, tokenizer, net=NET, train=train, evaluation=evaluation)
    how = Opening(pictures=2, units=2, samples=2, shares=(0.05,))
    losses = Jepa(layers=(0, 1)), Jepa(layers=(1,))
    base = Calibrated(recipe, NET.transformer)
    return Circuits(Repair(base, *losses, depth=2), how)


@pytest.mark.slow
def test_the_study_opens_every_model_that_it_trains(tmp_path):
    """Two factors that vary and one that does not."""
    settings = small(Shapes2D(size=16, sizes=("large",)))
    jobs = tuple(circuits.jobs(settings, 1))
    plan = StudyPlan(STUDY, settings, jobs)
    run_tasks(plan.tasks, tmp_path, QUIET, {})
    rows = Table(collect(plan, tmp_path))
    for kind, count in (("head", 2 * 2 * 2), ("overlap", 10), ("unit", 2)):
        for variant in ("maskgit", "jepa"):
            assert len(rows.where(kind=kind, variant=variant, seed=0, step=2)) == count
    weights = sorted(tmp_path.glob("runs/*/model.safetensors"))
    opened = [job.task for job in jobs if isinstance(job.task, CircuitRun)]
    needed = {parent for task in opened for parent in task.parents()}
    assert len(weights) == len(needed), "tokenizer, probes and models are all parents"


def test_one_factor_that_varies_is_refused():
    settings = small(Shapes2D(size=16, shapes=("circle",), colors=("red",)))
    opened = [j.task for j in circuits.jobs(settings, 1) if isinstance(j.task, CircuitRun)]
    with pytest.raises(UsageError, match="at least two must vary"):
        opened[0].check()


def test_nothing_to_compare_is_named():
    rows = Table(rows_by_hand(seeds=1))
    pairs = pairs_of(rows)
    one = [p for p in pairs if p.shared == 1]
    with pytest.raises(LookupError, match=r"^all pairs share as many factors$"):
        least_rise(one, overlap_table(rows, "jepa", one))
    assert [p.shared for p in pairs] == [0] * 4 + [1] * 12 + [2] * 12
    assert least_rise(pairs, overlap_table(rows, "jepa", pairs)) == [0.2]
    assert agreement(rows, "jepa", "_mean") == [0.0], "attribution does not vary"
    assert agreement(rows, "jepa") == [pytest.approx(1.0)]
    assert tidy(0.12345678949) == 0.123456789


def test_thresholds_go_from_a_thousandth_to_one():
    assert (THRESHOLDS[0], THRESHOLDS[-1], len(THRESHOLDS)) == (0.001, 1.0, 31)
    assert THRESHOLDS[10] == pytest.approx(0.01)
    rows = Table(rows_by_hand(seeds=2))
    assert sweep(rows, "maskgit").shape == (2, 31)
    assert sweep(rows, "maskgit")[:, 0].tolist() == [1.0, 1.0]
    assert paper_mean("maskgit") == pytest.approx(7.7 / 12)
    assert paper_mean("jepa") == pytest.approx(6.28 / 12)


def test_a_network_without_attention_has_no_heads():
    with pytest.raises(LookupError, match="Sequential has no attention"):
        heads_of(nn.Sequential(nn.Linear(2, 2)))


def test_seeds_that_were_known_and_those_trained_later_are_estimated_apart():
    def rows_of(seeds):
        return Table(
            {"kind": "head", "variant": v, "seed": s} for v in ("maskgit", "jepa") for s in seeds
        )

    said = before_and_after(
        rows_of(range(3, 7)), "fall", lambda x: round(sum(x), 1), [0.1, 0.2, 0.4, 0.5]
    )
    assert said == {"fall, seeds before 5": "0.3", "fall, seeds from 5 on": "0.9"}
    assert before_and_after(rows_of(range(5)), "fall", sum, [0.1] * 5) == {}
