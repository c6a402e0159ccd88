"""The paper's probable setting: its probe, kept samples that are scored again, and what the gate and
the central comparison say."""

from dataclasses import replace
from pathlib import Path
from statistics import fmean
from unittest.mock import patch

import numpy as np
import pytest
import torch
from level_rows import regions, verdict

from recombine.analysis import calibrated as claims
from recombine.analysis import label_dropout
from recombine.analysis import label_dropout_variants as variants
from recombine.analysis.levels import late_mean
from recombine.analysis.paper_curves import paper_curves
from recombine.analysis.paper_probe import PAPER, with_paper_probe
from recombine.analysis.table import Table, read_table
from recombine.config import UsageError, digest, to_json
from recombine.metrics.kept_samples import read_kept, write_kept
from recombine.metrics.probes import Oracle
from recombine.nets.dit import DiTConfig
from recombine.nets.transformer import TransformerConfig
from recombine.objectives.solvers import Euler
from recombine.pipeline.executor import execute, obtain
from recombine.pipeline.job import digest_of
from recombine.plots import calibrated as plots
from recombine.plots import label_dropout as dropout_plots
from recombine.rng import seeded
from recombine.runs.models import ModelRun
from recombine.runs.probes import PaperProbeRun, probe_runs
from recombine.runs.recipe import Evaluation, Recipe
from recombine.runs.rescoring import kept_runs, recipe_of, rescore, rescore_all
from recombine.runtime import Runtime
from recombine.store import write_json
from recombine.studies import calibrated
from recombine.studies import label_dropout as dropout
from recombine.tokenizers.pixels import Pixels
from recombine.train.fit import TrainConfig
from recombine.worlds.shapes2d import Shapes2D

QUIET = Runtime(torch.device("cpu"))
WORLD = Shapes2D().calibrated()


@pytest.mark.slow
def test_the_papers_probe_reads_real_pictures_as_often_as_in_the_paper(tmp_path):
    probe = obtain(PaperProbeRun(WORLD, 1, epochs=24), tmp_path, QUIET)
    assert probe.name == "paper 1"
    for code, reads in claims.READS.items():
        index = torch.tensor([tuple(map(int, code))] * 400)
        images = WORLD.render(index, seeded("gate", code)).images
        assert float((probe(images) == index).all(1).float().mean()) == pytest.approx(
            reads, abs=0.12
        )


def test_what_the_paper_reads_is_decoded_from_its_figures():
    """Legends have shape, size, colour in Figs 2b and 4c, shape, colour, size in 4d: there, too, small
    circles read highest."""
    for code, reads in claims.READS.items():
        shape, color, size = code
        named = {"diffusion_token": shape + size + color, "discrete_DiT_XAI3": shape + size + color}
        named["diffusion_real_dropout_avg_3seeds"] = code
        runs = [(paper_curves()[run], legend) for run, legend in named.items()]
        each = [zip(run["steps"], run["compositions"][c], strict=True) for run, c in runs]
        assert fmean(late_mean(list(points)) for points in each) == pytest.approx(reads, abs=0.001)


def test_no_paper_probe_is_trained_where_none_is_needed():
    assert len(probe_runs(WORLD, 20)) == 2
    papers = probe_runs(WORLD, 20, 3)[2:]
    assert [(p.seed, p.epochs) for p in papers] == [(0, 20), (1, 20), (2, 20)]
    with_probe = replace(Evaluation(), paper_probes=1)
    assert digest(Evaluation(paper_probes=0, keep=0)) == digest(Evaluation()) != digest(with_probe)
    assert set(papers) <= set(
        ModelRun(
            Recipe(WORLD, evaluation=replace(with_probe, paper_probes=3, probe_steps=20))
        ).parents()
    )


def test_kept_samples_come_back_and_equal_ones_are_equal_files(tmp_path):
    images = torch.rand(2, 3, 3, 4, 5, generator=seeded("kept"))
    for name in "ab":
        write_kept(tmp_path / f"{name}.npz", images)
    assert (read_kept(tmp_path / "a.npz") - images).abs().max() <= 0.5 / 255 + 1e-6
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(b"PK")
    with pytest.raises(UsageError, match="no kept samples"):
        read_kept(tmp_path / "a.npz")


@pytest.mark.slow
def test_a_run_keeps_samples_of_its_last_checkpoints_and_they_are_scored_again(
    tmp_path, monkeypatch
):
    net = DiTConfig(TransformerConfig(depth=1, width=16, heads=2), patch=7)
    evaluation = Evaluation(
        (0, 1, 2), 3, Euler(2), probe_steps=2, paper_probes=1, keep=2, keep_last=2
    )
    recipe = Recipe(WORLD, pool=4, net=net, train=TrainConfig(3, 4), evaluation=evaluation)
    task = ModelRun(recipe)
    for parent in task.parents():
        execute(parent, tmp_path, QUIET)
    execute(task, tmp_path, QUIET)
    (folder,) = kept_runs(tmp_path)
    assert folder.name == digest_of(task)
    rows = rescore([folder], [Oracle(WORLD)])
    assert {(r["step"], r["n"]) for r in rows} == {(2, 2), (3, 2)}
    assert len(rows) == 2 * 8
    (tmp_path / "mine.py").write_text(
        "def zeros(images):\n    return images.new_zeros(len(images), 3)\n"
        "def flat(images):\n    return images.new_zeros(len(images))\n"
    )
    monkeypatch.chdir(tmp_path)
    again = rescore_all(tmp_path, ["oracle", "paper", "mine:zeros"], 1, QUIET)
    assert [r for r in again if r["probe"] == "oracle"] == rows
    assert {r["probe"] for r in again} == {"oracle", "paper 0", "mine:zeros"}
    own = {r["composition"]: r["joint"] for r in again if r["probe"] == "mine:zeros"}
    assert own == {c: float(c == "000") for c in own}
    for name, says in (("mine:flat", "one row each"), ("mine:no", "mine"), ("papr", "paper")):
        with pytest.raises(UsageError, match=says):
            rescore_all(tmp_path, [name], 1, QUIET)
    with pytest.raises(UsageError, match="kept samples"):
        rescore_all(tmp_path / "samples", ["oracle"], 1, QUIET)


def rows_of(late: dict[str, tuple[float, ...]], seen: float = 0.8, level_1: float = 0.8) -> Table:
    """Two seeds of the probe, 0.1 apart, and the oracle; one checkpoint."""
    rows = []
    for variant, values in late.items():
        for seed, value in enumerate(values):
            for level, joint in ((0, seen), (1, level_1), (2, value)):
                about = {
                    "kind": "accuracy",
                    "variant": variant,
                    "seed": seed,
                    "step": 9,
                    "level": level,
                }
                for probe, more in (("paper 0", -0.05), ("paper 1", 0.05), ("oracle", 0.0)):
                    read = {"joint": joint + more, "shape": joint + more + 0.1}
                    rows.append(about | {"composition": str(level), "probe": probe} | read)
    return Table(rows)


def test_the_papers_probe_is_the_mean_over_its_seeds():
    rows = with_paper_probe(rows_of({"maskgit": (0.4, 0.6)}))
    assert rows.where(probe=PAPER, level=2).column("joint") == [
        pytest.approx(0.4),
        pytest.approx(0.6),
    ]
    with pytest.raises(LookupError):
        with_paper_probe(rows.where(probe="oracle"))


def test_the_papers_comparison_follows_from_rows():
    papers = {"maskgit": 0.01, "givt": 0.7, "mar": 0.82, "dit": 0.85}
    five = {name: (level,) * 5 for name, level in papers.items()}
    for claim in label_dropout.CLAIMS[1:4]:
        assert {p.verdict(5, True) for p in claim.measure(rows_of(five)).parts} == {"supported"}
    alike = dict.fromkeys(five, (0.5,) * 5)
    for claim in label_dropout.CLAIMS[1:4]:
        headline, *_ = claim.measure(rows_of(alike)).parts
        assert headline.verdict(5, True) == "contradicted"
    rows = rows_of({"maskgit": (0.3, 0.2), "givt": (0.9, 0.8)})
    lift, *_ = label_dropout.mixture_head_lifts.measure(rows).parts
    assert (lift.estimate.value, lift.estimate.n) == (pytest.approx(0.6), 2)


WEAK = ("dit, weak signal", "dit on vae, weak signal")


@pytest.mark.parametrize(
    ("vq", "vae", "seen", "expected"),
    [
        (0.88, 0.9, 0.8, "supported"),
        (0.9, 0.4, 0.8, "partly supported"),
        (0.5, 0.2, 0.8, "inconclusive"),
        (0.88, 0.9, 0.5, "inconclusive"),
    ],
)
def test_dit_reaches_level_2_on_both_latents_alike_or_not(vq, vae, seen, expected):
    rows = rows_of(dict(zip(WEAK, ((vq,) * 5, (vae,) * 5), strict=True)), seen)
    assert verdict(dropout.STUDY, "D4", list(rows)) == expected


def test_what_stands_beside_the_two_latents_and_where_they_are_expected():
    rows = rows_of({WEAK[0]: (0.9, 0.8), WEAK[1]: (0.7, 0.6)})
    found = label_dropout.latents_alike.measure(rows)
    assert regions(found) == [
        ("dit, weak signal, level 2", 0.8, 1.0, False),
        ("dit on vae, weak signal, level 2", 0.8, 1.0, False),
        ("dit on vae, weak signal - dit, weak signal, level 2", -0.15, 0.15, False),
        ("dit, weak signal, seen", 0.7, 1.0, True),
        ("dit on vae, weak signal, seen", 0.7, 1.0, True),
    ]
    assert [p.estimate.value for p in found.parts[:3]] == pytest.approx([0.85, 0.65, -0.2])
    papers = {k: v for k, v in found.measured.items() if k.startswith("paper_")}
    other = pytest.approx(0.602, abs=0.001)
    assert papers == {
        f"paper_{WEAK[0]}": 0.848, f"paper_{WEAK[1]}": 0.834, "paper_dit, Fig 4c": other,
        "paper_dit, Fig 4c, same updates": pytest.approx(0.8945, abs=0.0001),
    }  # fmt: skip
    ends = [found.measured[f"{WEAK[0]}, {end} seed"] for end in ("lowest", "highest")]
    assert ends == pytest.approx([0.8, 0.9])
    for less in ({WEAK[0]: (0.9,) * 5}, {"dit": (0.9,) * 5, "dit on vae": (0.9,) * 5}):
        assert verdict(dropout.STUDY, "D4", list(rows_of(less))) == "not measured"


def test_cool_changes_nothing_but_the_temperature_of_samples():
    made = dropout.settings("full").recipes()
    plain, cool = made["givt"], made["givt, cool"]
    assert cool.objective.head.temperature == 0 < plain.objective.head.temperature
    assert replace(cool, objective=plain.objective) == plain
    assert replace(cool.objective.head, temperature=1.0) == plain.objective.head


def test_givt_on_the_latents_of_a_vae_is_the_same_form_without_codes():
    made = dropout.settings("full").recipes()
    on_codes, on_vae = made["givt"], made["givt on vae"]
    assert on_vae.tokenizer == made["dit on vae"].tokenizer
    head = replace(on_vae.objective.head, snap=True)
    same = replace(on_vae.objective, head=head)
    assert replace(on_vae, tokenizer=on_codes.tokenizer, objective=same) == on_codes
    for recipe in dropout.settings("smoke").recipes().values():
        recipe.check()


def test_givts_accuracy_on_what_it_saw_stands_beside_its_claim_for_both_tokenizers():
    five = {"maskgit": (0.01,), "givt": (0.7,)}
    shown = label_dropout.mixture_head_lifts.measure(rows_of(five, seen=0.75)).measured
    assert shown["givt, seen, oracle"] == 0.75
    assert "givt on vae, seen, oracle" not in shown
    both = rows_of(five, seen=0.75) + rows_of({"givt on vae": (0.1,)}, seen=0.5)
    shown = label_dropout.mixture_head_lifts.measure(both).measured
    assert (shown["givt, seen, oracle"], shown["givt on vae, seen, oracle"]) == (0.75, 0.5)
    assert shown["givt on vae, seen, shape alone, oracle"] == pytest.approx(0.6)


def test_the_verdict_needs_what_is_seen():
    five = {"maskgit": (0.06,) * 5, "dit": (0.9,) * 5}
    headline, *others = label_dropout.maskgit_fails.measure(rows_of(five)).parts
    assert headline.verdict(5, False) == "supported"
    assert {p.verdict(5, False) for p in others} == {"supported"}
    unlearned = label_dropout.maskgit_fails.measure(rows_of(five, seen=0.3)).parts
    assert [p.verdict(5, True) for p in unlearned] == ["supported", "contradicted"]


def test_families_differ_in_their_heads_and_dit_in_its_network():
    made = calibrated.settings("full")
    known = made.known()
    for name in ("givt", "mar"):
        objective, evaluation = known[name].objective, known[name].evaluation
        assert replace(known["maskgit"], objective=objective, evaluation=evaluation) == known[name]
    assert {known[n].net.transformer for n in ("maskgit", "givt", "mar")} == {calibrated.SMALL}
    assert {r.conditioning.enters for n, r in known.items() if "dit" not in n} == {"tokens"}
    assert {(r.pool, r.train) for r in known.values()} == {(calibrated.FEW, known["dit"].train)}
    longer, dit = made.variant("dit, longer"), known["dit"]
    assert longer.train == replace(dit.train, steps=calibrated.LONGER)
    assert longer.evaluation.at(calibrated.LONGER)[:3] == dit.evaluation.at(8000)[:3]


@pytest.mark.parametrize("change", calibrated.CHANGES)
def test_every_change_gives_a_recipe_that_can_run(change):
    settings = calibrated.settings("full")
    others = {"ddpm": "dit", "weak signal": "dit", "tokens": "dit", "cool": "givt"}
    family = others.get(change, "maskgit")
    made = settings.variant(f"{family}, {change}")
    made.check()
    assert made != settings.variant(family)
    points = made.evaluation.checkpoints
    if isinstance(points, tuple):
        assert 0 <= min(points) <= max(points) == made.train.steps


def test_kept_samples_are_bytes_of_one_array_and_anything_else_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    images = torch.tensor([-1.0, 0.0, 0.5, 1.0, 2.0]).reshape(1, 1, 1, 1, 5)
    write_kept(path, images)
    assert (read_kept(path) * 255).flatten().tolist() == pytest.approx([0, 0, 128, 255, 255])
    first = path.read_bytes()
    write_kept(path, images)
    assert path.read_bytes() == first, "equal samples are equal files"
    path.write_bytes(b"no")
    with pytest.raises(UsageError, match="holds no kept samples"):
        read_kept(path)
    for odd in (
        {"images": np.zeros((1, 1, 1, 5), np.uint8)},
        {"images": np.zeros((1,) * 5)},
        {"x": [1]},
    ):
        np.savez(path, **odd)
        with pytest.raises(UsageError, match="holds no kept samples"):
            read_kept(path)


def test_variants_that_are_none_are_refused():
    chosen = calibrated.settings("smoke")
    for made, says in (
        (lambda: chosen.variant("dit, wilder"), "variants: 'dit, wilder' is none of "),
        (lambda: calibrated.ddpm(chosen.variant("mar")), "ddpm: DiT alone denoises all tokens "),
        (lambda: chosen.variant("maskgit, cool"), "cool: GIVT alone draws from a mixture"),
        (
            lambda: replace(dropout.settings("smoke"), variants=("dit, few",)).recipes(),
            "variants: 'dit, few' is none of maskgit, givt, mar, dit, dit on vae, givt on vae, with ",
        ),
    ):
        with pytest.raises(UsageError, match=f"^{says}"):
            made()


def test_each_variant_has_its_familys_curve_in_the_paper():
    curves = calibrated.curves_of(("dit, apart", "givt", "givt on vae"))
    assert curves == {"dit, apart": "diffusion_token", "givt": "givt"}


def test_only_runs_of_models_can_be_scored_again(tmp_path):
    write_json(tmp_path / "config.json", {"config": to_json(PaperProbeRun(WORLD, 0, 2))})
    with pytest.raises(UsageError, match=r" is not the run of a model$"):
        recipe_of(tmp_path)
    task = ModelRun(Recipe(WORLD, seed=7))
    write_json(tmp_path / "config.json", {"config": to_json(task)})
    assert recipe_of(tmp_path) == task.recipe
    write_kept(tmp_path / "samples" / "step_3.npz", torch.zeros(2, 1, 3, 4, 4))
    with pytest.raises(UsageError, match=r"step_3\.npz: holds samples of 2 compositions$"):
        rescore([tmp_path], [])


def test_regions_of_the_gate():
    shipped = read_table(Path(__file__).parents[1] / "results" / "label-dropout" / "rows.parquet")
    parts = claims.gate.measure(shipped).parts
    regions = [(p.name, p.low, p.high) for p in parts]
    assert regions[0] == ("real large red circle", 0.717, 0.797)
    assert regions[4] == ("DiT's large red circle", 0.677, 0.837)
    assert regions[7] == ("DiT's small red circle", 0.816, 0.976)
    assert {p.estimate.n for p in parts} == {5}


def test_nothing_is_said_of_a_gate_without_dit(tmp_path):
    rows = rows_of({"maskgit": (0.5,) * 5})
    assert verdict(dropout.STUDY, "G1", list(rows)) == "not measured"
    assert plots.gate(rows, tmp_path) == []


def test_what_is_left_without_overlapping_pictures():
    families = ("maskgit", "dit")
    both = {name: (0.6,) * 5 for f in families for name in (f, f"{f}, apart")}
    assert verdict(dropout.STUDY, "G19", list(rows_of(both))) == "supported"
    for family in families:
        less = both | {f"{family}, apart": (0.2,) * 5}
        assert verdict(dropout.STUDY, "G19", list(rows_of(less))) == "partly supported"
    assert verdict(dropout.STUDY, "G19", list(rows_of(both, seen=0.4))) != "supported"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "supported"),
        ({"mar, decayed": (0.4,) * 5}, "partly supported"),
        ({"dit, decayed": (0.5,) * 5, "mar, decayed": (0.5,) * 5}, "inconclusive"),
    ],
)
def test_a_falling_rate_lifts_mar_and_dit_to_the_paper_or_not(changed, said):
    heights = {f: (0.5,) * 5 for f in ("mar", "dit", "maskgit")}
    heights |= {f"{f}, decayed": (0.95,) * 5 for f in ("mar", "dit", "maskgit")}
    assert verdict(dropout.STUDY, "G28", list(rows_of(heights | changed))) == said


NEW = {"maskgit, decayed": 0.3, "mar, decayed": 0.8, "dit, decayed": 0.9}


@pytest.mark.parametrize(
    ("changed", "probe", "said"),
    [
        ({}, "open-set", "supported"),
        ({"mar, decayed": 0.2}, "open-set", "partly supported"),
        ({"mar, decayed": 0.2, "dit, decayed": 0.2}, "open-set", "partly supported"),
        (dict.fromkeys(NEW, 0.5), "all", "inconclusive"),
    ],
)
def test_only_seeds_from_five_on_say_whether_dit_and_mar_lead(changed, probe, said):
    known = rows_by(NEW, {}, "all")
    assert verdict(dropout.STUDY, "G30", known) == "not measured"
    later = [row | {"seed": row["seed"] + 5} for row in rows_by(NEW, changed, probe)]
    assert verdict(dropout.STUDY, "G30", [*known, *later]) == said


ALIKE = {"dit": 0.8, "maskgit, adaln": 0.5, "maskgit": 0.8, "mar, adaln": 0.9, "mar": 0.8}


@pytest.mark.parametrize(
    ("claim", "changed", "probe", "said"),
    [
        ("G32", {}, "all", "supported"),
        ("G32", {"maskgit, adaln": 0.9}, "open-set", "partly supported"),
        ("G32", {"maskgit, adaln": 0.8}, "all", "inconclusive"),
        ("G33", {}, "all", "supported"),
        ("G33", {"mar": 0.95}, "all", "partly supported"),
        ("G33", {"mar, adaln": 0.6}, "all", "inconclusive"),
    ],
)
def test_what_is_left_where_labels_enter_as_in_dit(claim, changed, probe, said):
    assert verdict(dropout.STUDY, claim, rows_by(ALIKE, changed, probe)) == said


def rows_by(heights: dict[str, float], changed: dict[str, float], probe: str) -> list:
    """Five seeds of each variant; other heights by one probe, or by all."""
    some = list(rows_of({name: (y,) * 5 for name, y in (heights | changed).items()}))
    rest = some if probe == "all" else list(rows_of({n: (y,) * 5 for n, y in heights.items()}))
    papers = [row for row in rest if row["probe"] != "oracle"]
    return [*papers, *(r | {"probe": "open-set"} for r in some if r["probe"] == "oracle")]


def test_the_mean_over_kinds_of_training_is_over_the_seeds_that_all_have():
    """Kinds go alike, so the interval is that of one kind; a kind that one family lacks is left out."""
    seeds = (0.1, 0.3, 0.2, 0.4, 0.5)
    one = {"maskgit": seeds, "dit": (0.9,) * 5}
    both = one | {f"{name}, decayed": values for name, values in one.items()}
    fewer = both | {"maskgit, decayed": seeds[:4]}
    said = [
        variants.means_over_kinds(with_paper_probe(rows_of(heights)))
        for heights in (one, both | {"dit, apart": seeds}, fewer)
    ]
    name = "dit - maskgit, mean over kinds"
    assert [found["kinds of training"] for found in said] == [1, 2, 2]
    assert said[0][name] == said[1][name]
    assert said[2][name].endswith("n = 4")
    assert (
        variants.means_over_kinds(with_paper_probe(rows_of({"dit": seeds})))["kinds of training"]
        == 0
    )


def test_the_figure_of_kinds_shows_families_that_had_several_and_each_probe_that_read(tmp_path):
    one = with_paper_probe(rows_of({"maskgit": (0.2,) * 2, "dit": (0.6,) * 2}))
    assert dropout_plots.kinds_of_training(one, tmp_path) == []
    heights = {"maskgit": (0.2, 0.4), "maskgit, decayed": (0.1, 0.3), "dit on vae": (0.9,) * 2}
    with patch("recombine.plots.style.save") as saved:
        made = dropout_plots.kinds_of_training(with_paper_probe(rows_of(heights)), tmp_path)
    assert [figure.name for figure in made] == ["kinds"]
    axes = saved.call_args[0][0].axes
    assert [axis.get_title(loc="left") for axis in axes] == ["paper's linear probe", "oracle"]
    assert [t.get_text() for t in axes[0].get_xticklabels()] == ["MaskGIT"]
    dots = [list(line.get_ydata()) for line in axes[1].lines if line.get_marker() == "o"]
    assert dots == [[0.2, 0.4], [0.1, 0.3]]


APART = {"maskgit": 0.02, "givt": 0.95, "mar": 0.95, "dit": 0.95}


def test_longer_training_tells_families_apart_or_not():
    heights = {f"{family}, longer": (y,) * 5 for family, y in APART.items()}
    for changed, expected in (
        ({}, "supported"),
        ({"givt, longer": (0.2,) * 5}, "partly supported"),
    ):
        assert verdict(dropout.STUDY, "G21", list(rows_of(heights | changed))) == expected
    alike = dict.fromkeys(heights, (0.5,) * 5)
    assert verdict(dropout.STUDY, "G21", list(rows_of(alike))) == "inconclusive"
    less = {name: y for name, y in heights.items() if name != "mar, longer"}
    assert verdict(dropout.STUDY, "G21", list(rows_of(less))) == "not measured"


def test_maskgit_reads_as_in_the_paper_at_ten_times_the_rate_or_not():
    for level_1, level_2, expected in (
        (0.5, 0.02, "supported"),
        (0.8, 0.02, "partly supported"),
        (0.8, 0.60, "inconclusive"),
    ):
        rows = list(rows_of({"maskgit, lr 1e-3": (level_2,) * 5}, level_1=level_1))
        assert verdict(dropout.STUDY, "G22", rows) == expected


def test_pictures_as_they_are_have_neither_vae_latents_nor_codes():
    base = calibrated.settings("smoke")
    pixels = replace(base, recipe=replace(base.recipe, tokenizer=Pixels()))
    assert pixels.variant("dit").tokenizer == Pixels()
    for name, says in (("dit on vae", "'dit on vae' is none of"), ("dit, fsq", "has no codes")):
        with pytest.raises(UsageError, match=says):
            pixels.variant(name)
