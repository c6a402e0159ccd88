"""The studies of paper A's setting: `label-dropout`, `labels`, `repair`, `optimizers`."""

import math
import re
from dataclasses import replace
from itertools import product
from statistics import fmean
from unittest.mock import patch

import numpy as np
import pytest
import torch
from level_rows import accuracy_rows, regions, verdict
from PIL import Image

from recombine.analysis import single_runs
from recombine.analysis.levels import curves_at
from recombine.analysis.optimizers import held_out
from recombine.analysis.paper_curves import paper_curves
from recombine.analysis.paper_probe import with_paper_probe
from recombine.analysis.repair import repaired_pairs, spreads
from recombine.analysis.table import Table
from recombine.config import UsageError
from recombine.nets.conditioning import Conditioning
from recombine.nets.dit import DiTConfig
from recombine.nets.transformer import TransformerConfig
from recombine.objectives.diffusion import Diffusion
from recombine.objectives.solvers import Euler
from recombine.pipeline.job import Work, described, digest_of
from recombine.plots.optimizers import samples
from recombine.plots.repair import seed_by_seed
from recombine.plots.sheets import sheet_path
from recombine.rng import seeded
from recombine.runs.models import Model, ModelRun, SearchRun
from recombine.runs.recipe import Evaluation, Recipe
from recombine.runtime import Runtime
from recombine.studies import calibrated, label_dropout, labels, optimizers, repair
from recombine.tokenizers.pixels import Pixels
from recombine.train.fit import Diverged
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


USED, OTHER = "dit, 0.0001, not clipped", "dit, 0.001, not clipped"
DIVERGED = {"kind": "diverged", "seed": 1}


def searched(best_seen: float, used_loss: float = 2.0) -> list:
    """Of two settings of one family, the second has held-out loss 1."""
    rows = [*accuracy_rows({USED: 0.5}, seen=0.8), *accuracy_rows({OTHER: 0.5}, seen=best_seen)]
    for variant, loss in ((USED, used_loss), (OTHER, 1.0)):
        about = {"kind": "held-out loss", "variant": variant, "step": 1}
        rows += [about | {"seed": seed, "loss": loss} for seed in range(5)]
    return rows


WEAK = {"dit, ddpm": 0.6, "dit, weak signal": 0.85, "dit on vae, weak signal": 0.85, "dit": 0.6}
ORDER = {"values, raw": 0.98, "values, raw, dropout": 0.0, "classes": 0.6, "classes, dropout": 0.05}
BALANCED = {name.replace(", raw", ""): height for name, height in ORDER.items()}

AT_RATE = {"maskgit" + repair.FAST: 0.02, "jepa" + repair.FAST: 0.45}


@pytest.mark.parametrize(
    ("study", "id", "rows", "expected"),
    [
        (repair, "D6", rows_of({"maskgit": 0.02, "jepa": 0.45}), "supported"),
        (repair, "D6", rows_of({"maskgit": 0.02, "jepa": 0.03}), "partly supported"),
        (repair, "D6", rows_of({"maskgit": 0.02, "jepa": 0.45}, spread=1e-4), "not measured"),
        (repair, "B42", rows_of({"maskgit, longer": 0.02, "jepa, longer": 0.45}), "supported"),
        (repair, "B42", rows_of({"maskgit, longer": 0.02, "jepa, longer": 0.1}), "partly supported"),
        (repair, "B42", rows_of({"maskgit, longer": 0.5, "jepa, longer": 0.1}), "contradicted"),
        (repair, "B46", rows_of(AT_RATE), "supported"),
        (repair, "B46", rows_of(AT_RATE | {"jepa" + repair.FAST: 0.1}), "partly supported"),
        (repair, "B46", rows_of({"maskgit": 0.02, "jepa": 0.45}), "not measured"),
        (repair, "D7", rows_of({"jepa": 0.6, "jepa, one layer": 0.3}), "supported"),
        (repair, "D7", rows_of({"jepa": 0.3, "jepa, one layer": 0.6}), "inconclusive"),
        (repair, "D7", rows_of({"jepa": [0.1, 0.9, 0.5, 0.2, 0.8], "jepa, one layer": 0.3}), "inconclusive"),
        (labels, "D5", rows_of(ORDER), "supported"),
        (labels, "D5", rows_of(ORDER | {"classes": 0.99}), "partly supported"),
        (labels, "D5", rows_of(BALANCED), "not measured"),
        (labels, "G13", rows_of(BALANCED | {"values": 0.93}), "supported"),
        (labels, "G13", rows_of(BALANCED | {"values, dropout": 0.9}), "partly supported"),
        (label_dropout, "G7", rows_of({"maskgit": 0.6, "maskgit, dropout": 0.0}), "supported"),
        (label_dropout, "G16", rows_of(WEAK), "supported"),
        (label_dropout, "G16", rows_of(WEAK | {"dit, ddpm": 0.85}), "partly supported"),
        (optimizers, "G18", searched(0.82), "supported"),
        (optimizers, "G18", searched(0.98), "contradicted"),
        (optimizers, "G18", searched(0.98, used_loss=0.5), "supported"),
        (optimizers, "G18", rows_of(ORDER), "not measured"),
        (optimizers, "G18", [*searched(0.98), {**DIVERGED, "variant": OTHER}], "supported"),
        (optimizers, "G18", [*searched(0.98), {**DIVERGED, "variant": USED}], "not measured"),
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
        for row in accuracy_rows(
            {"values, raw, dropout": height}, probes=PAPER, seen=0.8, step=step
        )
        if row["level"] == 2
    ]
    assert verdict(labels.STUDY, "G14", rows) == expected


def test_two_variants_are_runs_of_label_dropout():
    ours, theirs = labels.settings("full").recipes(), label_dropout.settings("full").recipes()
    for name, other in (("classes", "dit"), ("classes, dropout", "dit, dropout")):
        assert digest_of(ModelRun(ours[name])) == digest_of(ModelRun(theirs[other]))
    assert len({digest_of(ModelRun(r)) for r in ours.values()}) == len(ours)


def test_the_lost_composition_is_the_papers_in_our_order_of_digits():
    """The legends of Figs 4b and 4c have shape, size, colour: in 4c the small circle reads highest of
    what was seen, and is 010 there."""
    curves = paper_curves()
    classes = curves[labels.claims.CURVES["classes"]]["compositions"]
    seen = {code: fmean(classes[code][-12:]) for code in ("000", "001", "010", "100")}
    assert max(seen, key=seen.get) == "010"
    dropout = curves[labels.claims.CURVES["values, dropout"]]["compositions"]
    (legend,) = [code for code, line in dropout.items() if max(line) > 0.9 and line[-1] < 0.1]
    shape, size, color = legend
    assert shape + color + size == labels.claims.LOST
    chosen = tuple(map(int, labels.claims.LOST))
    assert Shapes2D().space.describe(chosen) == "triangle blue large"


def test_dropout_stays_on_in_prompts_where_true_values_are_given():
    """The authors' development code leaves it on in the embedding of true values alone."""
    variants = labels.settings("full").recipes()
    on = {n: r for n, r in variants.items() if r.evaluation.prompt_dropout}
    assert list(on) == ["values, dropout, sampling"]
    (recipe,) = on.values()
    plain = variants["values, dropout"]
    assert recipe.evaluation.prompt_dropout == plain.conditioning.dropout == labels.DROPOUT
    assert replace(recipe, evaluation=plain.evaluation) == plain


def test_only_the_auxiliary_loss_differs():
    recipes = repair.settings("full").recipes()
    plain, several, one = (recipes[name] for name in repair.LOSSES)
    assert plain.conditioning.dropout == labels.DROPOUT
    assert plain.net.transformer.depth == 12
    for other in (several, one):
        assert other.objective.jepa
        assert (other.net, other.train, other.conditioning) == (
            plain.net,
            plain.train,
            plain.conditioning,
        )
    for name in repair.LOSSES:
        longer = recipes[name + repair.LONGER]
        assert longer.train == replace(plain.train, steps=calibrated.LONGER)
        assert replace(longer, train=plain.train, evaluation=plain.evaluation) == recipes[name]
        fast = recipes[name + repair.FAST]
        assert fast.train == replace(plain.train, lr=1e-3)
        assert fast.conditioning == replace(plain.conditioning, dropout=0.0)
        same = replace(fast, train=plain.train, conditioning=plain.conditioning)
        assert same == recipes[name]


def test_networks_of_other_seeds_share_the_tokenizer_of_one():
    chosen = replace(
        repair.settings("smoke"), variants=("jepa", "jepa, tokenizer 2", "jepa, tokenizer 4")
    )
    runs = chosen.runs(7)
    assert [s for v, s in runs if v == "jepa"] == list(range(7))
    for tokenizer in (2, 4):
        mine = {s: r for (v, s), r in runs.items() if v == f"jepa, tokenizer {tokenizer}"}
        assert list(mine) == [0, 1, 3, 5, 6], "not those by which the tokenizers were chosen"
        for seed, recipe in mine.items():
            own = runs["jepa", tokenizer].tokenizer
            assert recipe == replace(runs["jepa", seed], tokenizer=own)
    for wrong in ("dit", "jepa, tokenizer", "jepa, tokenizer x", "jepa, tokenizer "):
        with pytest.raises(
            UsageError, match=r"^variants: .* is none of maskgit, jepa, jepa, one layer"
        ):
            replace(chosen, variants=(wrong,)).runs(1)


def test_samples_are_shown_seed_by_seed_where_every_sheet_is_there(tmp_path):
    """Sheets have a row of squares for each composition, here of one colour; shown is the last."""
    rows = accuracy_rows({"maskgit": [0.1, 0.2], "jepa": [0.3, 0.4]}, probes=PAPER)
    others = ({"variant": "jepa, tokenizer 1"}, {"variant": "jepa, longer", "step": 3})
    one = [r for r in rows if r["seed"] == 0 and r["variant"] == "jepa"]
    rows += [r | other for other in others for r in one]
    codes = sorted({r["composition"] for r in rows})
    figures = tmp_path / "figures"
    figures.mkdir()
    (tmp_path / "samples").mkdir()
    step = min(r["step"] for r in rows)
    for variant, seed in product(("maskgit", "jepa"), (0, 1)):
        pixels = np.zeros((4 * len(codes), 32, 3), np.uint8)
        pixels[-4:] = (200, 40 * seed, 0)
        Image.fromarray(pixels).save(sheet_path(figures, variant, seed, step), lossless=True)
    with patch("recombine.plots.style.save") as saved:
        assert [f.name for f in seed_by_seed(with_paper_probe(Table(rows)), figures)] == ["seeds"]
    axes = saved.call_args[0][0].axes
    assert [[t.get_text() for t in axis.texts] for axis in axes] == [
        ["0.10\n0.10"],
        ["0.30\n0.30"],
        ["0.20\n0.20"],
        ["0.40\n0.40"],
    ]
    for axis, seed in zip(axes, (0, 0, 1, 1), strict=True):
        shown = axis.images[0].get_array()
        assert shown.shape == (4, 24, 3)
        assert (shown == (200, 40 * seed, 0)).all()
    sheet_path(figures, "jepa", 1, step).unlink()
    assert seed_by_seed(with_paper_probe(Table(rows)), figures) == []
    fewer = [r for r in rows if (r["variant"], r["seed"]) != ("jepa", 1)]
    with patch("recombine.plots.style.save") as saved:
        assert seed_by_seed(with_paper_probe(Table(fewer)), figures)
    assert saved.call_args[0][0].axes[3].texts[0].get_text() == "not trained"


def test_unseen_combinations_are_shown_by_seed_where_every_sheet_is_there(tmp_path):
    """Every line of a sheet has a shade of its own; seen combinations are left out, and so is the
    setting with the higher held-out loss."""
    codes = {"000": 0, "011": 1, "111": 2}
    rows = [
        {"kind": "accuracy", "probe": probe, "variant": v, "seed": s, "step": 1,
         "joint": 0.25 + s / 2, "composition": c, "level": level}
        for v in (USED, OTHER) for s in (0, 1) for c, level in codes.items() for probe in PAPER
    ]  # fmt: skip
    rows += [row for row in searched(0.82) if row["kind"] == "held-out loss"]
    figures = tmp_path / "figures"
    figures.mkdir()
    (tmp_path / "samples").mkdir()
    for seed in (0, 1):
        shades = np.uint8([[[40]], [[120]], [[200]]]) + np.uint8(seed)
        pixels = np.repeat(shades, 4, axis=0).repeat(32, 1).repeat(3, 2)
        Image.fromarray(pixels).save(sheet_path(figures, OTHER, seed, 1), lossless=True)
    with patch("recombine.plots.style.save") as saved:
        assert [f.name for f in samples(with_paper_probe(Table(rows)), figures)] == ["samples"]
    axes = saved.call_args[0][0].axes
    assert [a.get_title("left") for a in axes] == ["seed 0: 0.25", "seed 1: 0.75"]
    assert [a.get_ylabel() for a in axes] == ["DiT", ""]
    for seed, axis in enumerate(axes):
        shown = axis.images[0].get_array()
        assert shown.shape == (8, 16, 3)
        assert (shown[:4] == 120 + seed).all()
        assert (shown[4:] == 200 + seed).all()
    assert "small blue circle, small blue triangle" in saved.call_args[0][2].caption
    sheet_path(figures, OTHER, 0, 1).unlink()
    with patch("recombine.plots.style.save") as saved:
        assert len(samples(with_paper_probe(Table(rows)), figures)) == 1
    assert len(saved.call_args[0][0].axes) == 1, "the other seed alone"
    sheet_path(figures, OTHER, 1, 1).unlink()
    assert samples(with_paper_probe(Table(rows)), figures) == []


def on_tokenizers(first: float, second: float) -> list:
    """Of seeds 2 and 4, the first composes on its own tokenizer; networks of other seeds on both."""
    own = rows_of({"jepa": [0.0, 0.0, 0.4, 0.0, 0.0]})
    crossed = rows_of({"jepa, tokenizer 4": second, "jepa, tokenizer 2": first})
    return [*own, *crossed]


@pytest.mark.parametrize(
    ("heights", "expected"),
    [((0.5, 0.1), "supported"), ((0.1, 0.5), "contradicted"), ((0.3, 0.3), "contradicted")],
)
def test_the_tokenizer_decides(heights, expected):
    rows = on_tokenizers(*heights)
    assert verdict(repair.STUDY, "B41", rows) == expected
    alone = [r for r in rows if r["variant"] != "jepa, tokenizer 4"]
    assert verdict(repair.STUDY, "B41", alone) == "not measured"


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


def test_a_setting_with_which_training_diverges_is_a_result_of_the_search_alone(tmp_path):
    recipe = optimizers.settings("smoke").recipes()["maskgit, 0.001, not clipped"]
    recipe = replace(recipe, tokenizer=Pixels(), objective=Diffusion(), net=SMALL)
    recipe = replace(recipe, train=replace(recipe.train, lr=1e30))
    diverging, search = (
        Work(task, tmp_path, Runtime(torch.device("cpu")))
        for task in (ModelRun(recipe), SearchRun(recipe))
    )
    for work in (diverging, search):
        work.folder.begin(described(work.task))
    with patch.object(Model, "observe", lambda self, step: []):
        with pytest.raises(Diverged):
            diverging.task.run(diverging)
        search.task.run(search)
    assert not [row for row in diverging.folder.rows() if row["kind"] == "diverged"]
    (found,) = (row for row in search.folder.rows() if row["kind"] == "diverged")
    assert "not finite" in found["why"]


def test_held_out_pictures_are_none_of_training_and_their_loss_the_same_at_every_step(tmp_path):
    recipe = optimizers.settings("smoke").recipes()["maskgit, 0.001, clipped at 1"]
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


CLAIMS = {c.id: c for study in (repair, labels, optimizers) for c in study.STUDY.claims}
SEEN = (0.7, 1.0, True)


@pytest.mark.parametrize(
    ("id", "rows", "expected"),
    [
        (
            "D6",
            rows_of({"maskgit": 0.02, "jepa": 0.45}),
            [
                ("jepa - maskgit, level 2", 0.25, 1.0, False),
                ("maskgit, level 2", 0.0, 0.15, False),
                *((f"{v}, seen", *SEEN) for v in ("maskgit", "jepa")),
            ],
        ),
        (
            "D7",
            rows_of({"jepa": 0.6, "jepa, one layer": 0.3}),
            [("jepa - jepa, one layer, level 2", 0.1, 1.0, False)],
        ),
        (
            "D5",
            rows_of(ORDER),
            [
                ("values, raw, level 2", 0.75, 1.0, False),
                ("values, raw - classes, level 2", 0.25, 1.0, False),
                ("classes - classes, dropout, level 2", 0.25, 1.0, False),
                ("classes - values, raw, dropout, level 2", 0.25, 1.0, False),
                *((f"{v}, seen", *SEEN) for v in ORDER),
            ],
        ),
        ("G18", searched(0.82), [("dit, seen, best - used", -math.inf, 0.1, False)]),
    ],
)
def test_regions_are_those_that_were_written_down(id, rows, expected):
    assert regions(CLAIMS[id].measure(Table(rows))) == expected


def test_the_papers_numbers_stand_beside_ours():
    papers = {}
    for id, heights in (("D6", {"maskgit": 0.02, "jepa": 0.45}), ("D5", ORDER)):
        measured = CLAIMS[id].measure(Table(rows_of(heights))).measured
        papers |= {k: v for k, v in measured.items() if k.startswith("paper_")}
    both = {"jepa": 0.6, "jepa, one layer": 0.3}
    measured = CLAIMS["D7"].measure(Table(rows_of(both))).measured
    assert papers == {
        "paper_maskgit": 0.006,
        "paper_jepa": 0.45,
        "paper_values, raw": 1.0,
        "paper_values, raw, dropout": 0.0,
        "paper_classes": 0.602,
        "paper_classes, dropout": 0.0,
    }
    shown = [measured["paper_jepa"], measured["paper_jepa, one layer"]]
    assert shown == [0.563, 0.264]
    assert list(measured)[-2:] == [f"{v}, spread of what is predicted" for v in both]


def test_the_best_setting_is_shown_with_the_loss_and_the_accuracy_of_each():
    measured = CLAIMS["G18"].measure(Table(searched(0.82))).measured
    assert measured == {
        "families": "dit",
        "diverged": "none",
        "dit, best": "0.001, not clipped",
        "dit, 0.0001, not clipped, held-out loss": 2.0,
        "dit, 0.0001, not clipped, seen": pytest.approx(0.8),
        "dit, 0.001, not clipped, held-out loss": 1.0,
        "dit, 0.001, not clipped, seen": pytest.approx(0.82),
    }


APART = {"maskgit": 0.02, "givt": 0.8, "mar": 0.8, "dit": 0.8}


def searched_apart(fast: dict, slow: dict, best: float) -> list:
    """All families at two rates; `best` has the lower held-out loss."""
    named = {f"{f}, 0.001, not clipped": y for f, y in fast.items()}
    named |= {f"{f}, 0.0001, not clipped": y for f, y in slow.items()}
    rows = accuracy_rows(named, probes=PAPER, seen=0.8)
    for variant, seed in product(named, range(5)):
        loss = 1.0 if f", {best:g}," in variant else 2.0
        about = {"kind": "held-out loss", "variant": variant, "seed": seed, "step": 1}
        rows.append(about | {"loss": loss})
    return rows


@pytest.mark.parametrize(
    ("fast", "slow", "best", "at_one_rate", "each_at_its_best"),
    [
        (APART, dict.fromkeys(APART, 0.6), 1e-3, "supported", "supported"),
        (APART, dict.fromkeys(APART, 0.6), 1e-4, "supported", "inconclusive"),
        (APART | {"givt": 0.1}, APART, 1e-4, "partly supported", "supported"),
    ],
)
def test_families_differ_at_one_rate_and_each_at_its_best(
    fast, slow, best, at_one_rate, each_at_its_best
):
    rows = searched_apart(fast, slow, best)
    assert verdict(optimizers.STUDY, "G23", rows) == at_one_rate
    assert verdict(optimizers.STUDY, "G24", rows) == each_at_its_best
    without = [row for row in rows if not row["variant"].startswith("mar")]
    for name in ("G23", "G24"):
        assert verdict(optimizers.STUDY, name, without) == "not measured"
    chosen = CLAIMS["G24"].measure(Table(rows)).measured["mar, best"]
    assert chosen.startswith(f"mar, {best:g},")


def test_the_best_checkpoint_stands_beside_the_late_mean():
    rows = searched(0.82) + [
        row | {"step": step}
        for step, height in ((1, 0.2), (2, 0.9), (3, 0.1), (4, 0.1))
        for row in accuracy_rows({USED: height, OTHER: height}, probes=PAPER[:2], seen=0.8)
    ]
    measured = CLAIMS["G18"].measure(Table(rows)).measured
    shown = [measured[f"{USED}, level 2{word}"] for word in ("", ", best")]
    assert shown == pytest.approx([0.1, 0.9])


def test_settings_with_fewer_seeds_than_others_are_not_compared():
    rows = searched_apart(APART, APART, 1e-3)
    few = [row for row in rows if row["seed"] < 2 or ", 0.001," not in row["variant"]]
    found = CLAIMS["G24"].measure(Table(few)).measured
    assert found["dit, best"] == "dit, 0.0001, not clipped", "though its held-out loss is higher"


def test_single_runs_tell_families_apart_as_often_as_all_ways_to_take_one_of_each_do():
    heights = {"maskgit": (0.0, 0.1, 0.9, 0.9), "givt": (0.55, 0.65, 0.1, 0.2)}
    found = passing_share(heights, "maskgit", ("givt",))
    assert found == pytest.approx(3 / 16), "0.55 leads 0.0 by enough and 0.1 not, 0.65 both"
    assert passing_share(heights | {"dit": (0.9, 0.0, 0.0, 0.0)}, "maskgit", ("givt", "dit")) == (
        pytest.approx(3 / 64)
    )


def passing_share(heights: dict, least: str, others: tuple) -> float:
    rows = accuracy_rows(heights, probes=PAPER, seen=0.8)
    return single_runs.passing_share(with_paper_probe(Table(rows)), least, others, 0.15, 0.5)


def test_some_settings_may_be_named():
    every = optimizers.settings("smoke")
    some = replace(every, variants=("maskgit, 0.001, clipped at 1",))
    assert some.recipes() == {v: every.recipes()[v] for v in some.variants}
    assert list(every.recipes()) == list(every.names())
    with pytest.raises(ValueError, match=r"is none of maskgit, 0\.0001, not clipped"):
        replace(every, variants=("maskgit, 0.5, not clipped",))


def test_unseen_levels_stand_beside_each_setting_and_have_no_part_in_the_choice():
    rows = searched(0.82)
    for variant, height in ((USED, 0.9), (OTHER, 0.0)):
        rows += accuracy_rows({variant: height}, probes=PAPER[:2], seen=0.8)
    measured = CLAIMS["G18"].measure(Table(rows)).measured
    assert measured["dit, best"] == "0.001, not clipped"
    read = {k: v for k, v in measured.items() if k.endswith("level 2")}
    assert read == {f"{v}, level 2": pytest.approx(y) for v, y in ((USED, 0.9), (OTHER, 0.0))}


def test_the_held_out_loss_is_that_of_the_last_step():
    about = {"kind": "held-out loss", "variant": "dit, a", "seed": 3}
    rows = Table([about | {"step": s, "loss": x} for s, x in ((1, 9.0), (20, 4.0), (3, 5.0))])
    assert held_out(rows, "dit, a") == {3: 4.0}


@pytest.mark.parametrize(
    ("measure", "rows", "says"),
    [
        (held_out, (searched(0.8), "mar"), "no held-out loss of mar"),
        (
            CLAIMS["G18"].measure,
            ([r for r in searched(0.8) if "0.001," in r["variant"]],),
            "dit was not trained with 0.0001, not clipped",
        ),
        (CLAIMS["G18"].measure, (rows_of(ORDER),), "no held-out loss was measured"),
        (curves_at, (rows_of(ORDER), "values", "110", "paper"), "no rows of values at 110"),
        (spreads, (rows_of(ORDER), "jepa"), "no rows of the auxiliary loss of jepa"),
        (
            spreads,
            (rows_of({"jepa": 0.5}, spread=0.00994), "jepa"),
            "what jepa predicts has collapsed: a spread of 0.0099",
        ),
    ],
)
def test_what_is_missing_is_named(measure, rows, says):
    with pytest.raises(LookupError, match=f"^{re.escape(says)}$"):
        measure(Table(rows[0]), *rows[1:])


def test_the_spread_is_the_least_over_layers_of_the_mean_of_the_last_three_steps():
    about = {"kind": "auxiliary loss", "variant": "jepa", "seed": 0}
    heights = {1: (0.0, 0.0), 2: (0.3, 0.9), 3: (0.61234, 0.9), 4: (0.3, 0.0)}
    rows = [
        about | {"step": step, "layer": layer, "spread": x}
        for step, each in heights.items()
        for layer, x in enumerate(each)
    ]
    assert spreads(Table(rows), "jepa") == {"jepa, spread of what is predicted": 0.4041}
    exactly = [about | {"step": 1, "layer": 0, "spread": 0.01}]
    assert spreads(Table(exactly), "jepa") == {"jepa, spread of what is predicted": 0.01}


def test_what_is_learned_and_lost_is_shown_at_its_best_and_late():
    rows = [
        row | {"composition": "110"}
        for step, height in ((3, 0.1), (1, 0.95), (2, 0.5))
        for row in accuracy_rows({"values, raw, dropout": height}, probes=PAPER, step=step)
        if row["level"] == 2
    ]
    finding = CLAIMS["G14"].measure(Table(rows))
    assert regions(finding) == [("110 at its best", 0.8, 1.0, False), ("110 late", 0.0, 0.2, False)]
    assert [p.estimate.value for p in finding.parts] == pytest.approx([0.95, 0.1])
    shown = {"values, raw, dropout, best": 0.95, "values, raw, dropout, late": 0.1}
    assert finding.measured == pytest.approx(shown)


def test_pairs_of_single_runs_are_counted_by_the_rise_that_is_expected_and_by_the_papers():
    rows = with_paper_probe(
        Table(accuracy_rows({"maskgit": [0.0, 0.2], "jepa": [0.3, 0.5]}, probes=PAPER))
    )
    assert repaired_pairs(rows, "maskgit", "jepa") == {
        "share of pairs of runs that pass": 0.5,
        "share of pairs of runs with the paper's rise": 0.25,
    }
