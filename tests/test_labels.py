"""The studies of paper A's setting: `label-dropout`, `labels`, `repair`, `optimizers`."""

from dataclasses import replace
from unittest.mock import patch

import pytest
import torch
from level_rows import accuracy_rows, verdict

from recombine.nets.conditioning import Conditioning
from recombine.nets.dit import DiTConfig
from recombine.nets.transformer import TransformerConfig
from recombine.objectives.diffusion import Diffusion
from recombine.objectives.solvers import Euler
from recombine.pipeline.job import Work, digest_of
from recombine.rng import seeded
from recombine.runs.models import Model, ModelRun
from recombine.runs.recipe import Evaluation, Recipe
from recombine.runtime import Runtime
from recombine.studies import circuits, label_dropout, labels, optimizers, repair
from recombine.tokenizers.pixels import Pixels
from recombine.worlds.shapes2d import Shapes2D

SMALL = DiTConfig(TransformerConfig(depth=1, width=16, heads=2), patch=7)
PAPER = ("paper 0", "paper 1", "oracle")


def rows_of(heights: dict, seen: float = 0.8, spread: float = 0.5) -> list:
    """Level 2 of each variant, by two seeds of the paper's probe; and an auxiliary loss."""
    rows = accuracy_rows(heights, probes=PAPER, seen=seen)
    for variant in heights:
        about = {"kind": "auxiliary loss", "variant": variant, "seed": 0, "step": 1, "layer": 7}
        rows.append(about | {"error": 0.5, "spread": spread, "output_loss": 1.0})
    return rows


def searched(best_seen: float, used_loss: float = 2.0) -> list:
    """Of two settings of one family, the second has held-out loss 1."""
    used, other = "dit, 0.0001, not clipped", "dit, 0.001, not clipped"
    rows = [*accuracy_rows({used: 0.5}, seen=0.8), *accuracy_rows({other: 0.5}, seen=best_seen)]
    for variant, loss in ((used, used_loss), (other, 1.0)):
        about = {"kind": "held-out loss", "variant": variant, "step": 1}
        rows += [about | {"seed": seed, "loss": loss} for seed in range(5)]
    return rows


WEAK = {"dit, ddpm": 0.6, "dit, weak signal": 0.85, "dit on vae, weak signal": 0.85, "dit": 0.6}
ORDER = {"values": 0.98, "values, dropout": 0.0, "classes": 0.6, "classes, dropout": 0.05}


@pytest.mark.parametrize(
    ("study", "id", "rows", "expected"),
    [
        (repair, "G11", rows_of({"maskgit": 0.02, "jepa": 0.45}), "supported"),
        (repair, "G11", rows_of({"maskgit": 0.02, "jepa": 0.03}), "partly supported"),
        (repair, "G11", rows_of({"maskgit": 0.02, "jepa": 0.45}, spread=1e-4), "not measured"),
        (repair, "G12", rows_of({"jepa": 0.6, "jepa, one layer": 0.3}), "supported"),
        (repair, "G12", rows_of({"jepa": 0.3, "jepa, one layer": 0.6}), "inconclusive"),
        (labels, "G13", rows_of(ORDER), "supported"),
        (labels, "G13", rows_of(ORDER | {"classes": 0.99}), "partly supported"),
        (label_dropout, "G7", rows_of({"maskgit": 0.6, "maskgit, dropout": 0.0}), "supported"),
        (label_dropout, "G16", rows_of(WEAK), "supported"),
        (label_dropout, "G16", rows_of(WEAK | {"dit, ddpm": 0.85}), "partly supported"),
        (optimizers, "G18", searched(0.82), "supported"),
        (optimizers, "G18", searched(0.98), "contradicted"),
        (optimizers, "G18", searched(0.98, used_loss=0.5), "supported"),
        (optimizers, "G18", rows_of(ORDER), "not measured"),
        (label_dropout, "G7", rows_of({"maskgit": 0.6, "maskgit, dropout": 0.6}), "partly supported"),
    ],
)  # fmt: skip
def test_verdicts(study, id, rows, expected):
    assert verdict(study.STUDY, id, rows) == expected


@pytest.mark.parametrize(
    ("curve", "expected"),
    [((0.95, 0.9, 0.1), "supported"), ((0.95, 0.9, 0.9), "partly supported")],
)
def test_a_composition_is_learned_and_lost(curve, expected):
    rows = [
        row | {"composition": labels.claims.LOST}
        for step, height in enumerate(curve, 1)
        for row in accuracy_rows({"values, dropout": height}, probes=PAPER, seen=0.8, step=step)
        if row["level"] == 2
    ]
    assert verdict(labels.STUDY, "G14", rows) == expected


def test_two_variants_are_runs_of_label_dropout():
    ours, theirs = labels.settings("full").variants(), label_dropout.settings("full").recipes()
    for name, other in (("classes", "dit"), ("classes, dropout", "dit, dropout")):
        assert digest_of(ModelRun(ours[name])) == digest_of(ModelRun(theirs[other]))
    assert len({digest_of(ModelRun(r)) for r in ours.values()}) == len(ours)


def test_only_the_auxiliary_loss_differs():
    plain, several, one = repair.settings("full").variants().values()
    assert plain.conditioning.dropout == labels.DROPOUT
    assert plain.net.transformer.depth == 12
    for other in (several, one):
        assert other.objective.jepa
        assert (other.net, other.train, other.conditioning) == (
            plain.net,
            plain.train,
            plain.conditioning,
        )


def test_the_models_of_repair_can_be_opened_in_place_of_those_of_jepa():
    chosen, theirs = circuits.settings("full"), repair.settings("full").variants()
    opened = replace(chosen, models="repair").variants()
    assert opened == {name: theirs[name] for name in ("maskgit", "jepa")}
    assert not {digest_of(ModelRun(r)) for r in opened.values()} & {
        digest_of(ModelRun(r)) for r in chosen.variants().values()
    }


def test_labels_left_out_of_prompts_change_the_samples(tmp_path):
    evaluation = Evaluation(solver=Euler(2))
    recipe = Recipe(net=SMALL, conditioning=Conditioning("quantised", 0.1), evaluation=evaluation)

    def samples(dropout: float, factor: float) -> torch.Tensor:
        """All weights are drawn at random; `factor` scales the embeddings of given labels."""
        one = replace(recipe, evaluation=replace(evaluation, prompt_dropout=dropout))
        model = Model(one, Work(ModelRun(one), tmp_path, Runtime(torch.device("cpu"))))
        with torch.no_grad():
            for parameter in model.net.parameters():
                parameter.normal_(std=0.2, generator=seeded("weights", parameter.numel()))
            for embed in model.net.condition.factors:
                embed.table.weight.mul_(factor)
        return model.sample([(0, 0, 0), (1, 1, 1)], 3)

    assert not torch.equal(samples(0.0, 1.0), samples(0.0, 3.0))
    assert torch.equal(samples(1.0, 1.0), samples(1.0, 3.0)), "no label reaches the network"


def test_pictures_that_lie_in_another_class_are_left_out(tmp_path):
    """In the calibrated world sizes overlap, colours do not."""
    world = Shapes2D().calibrated()

    def strangers(apart: bool) -> torch.Tensor:
        recipe = Recipe(world, net=SMALL, pool=500, apart=apart)
        model = Model(recipe, Work(ModelRun(recipe), tmp_path, Runtime(torch.device("cpu"))))
        given = model.pool[1]
        return (world.nearest(given.index, given.value) != given.index).float().mean(0)

    shape, color, size = strangers(apart=False).tolist()
    assert (shape, color) == (0, 0)
    assert size == pytest.approx(0.2, abs=0.05)
    assert not strangers(apart=True).any()


def test_held_out_pictures_are_none_of_training_and_their_loss_the_same_at_every_step(tmp_path):
    recipe = optimizers.settings("smoke").variants()["maskgit, 0.001, clipped at 1"]
    recipe = replace(recipe, tokenizer=Pixels(), objective=Diffusion(), net=SMALL)
    model = Model(recipe, Work(ModelRun(recipe), tmp_path, Runtime(torch.device("cpu"))))
    (first,), (again,) = model.held_out_loss(), model.held_out_loss()
    assert first == again
    assert first["n"] == 4 * 4
    given = []

    def record(_, net, x, *rest):
        given.append(x)
        return x.mean((1, 2, 3))

    with patch.object(Diffusion, "loss", record):
        model.held_out_loss()
    trained = model.pool[0].flatten(1)
    assert torch.cdist(given[0].flatten(1), trained).min() > 1e-3
    with torch.no_grad():
        for parameter in model.net.parameters():
            parameter.add_(0.1)
    assert model.held_out_loss() != [first]
    quiet = replace(recipe, evaluation=replace(recipe.evaluation, held_out=0))
    assert Model(quiet, model.work).held_out_loss() == []
