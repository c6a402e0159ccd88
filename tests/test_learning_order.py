"""`learning-order`: the public code's setting is what it trains, times are read off by its rule, and
every claim can come out either way."""

import math
from dataclasses import replace

import pytest
import torch
from figure_reader import drawn
from level_rows import regions
from tiny import QUIET

from recombine.analysis.claims import assess
from recombine.analysis.learning_order import T_COLOR, T_SIZE, Run, World, worlds
from recombine.analysis.table import Table
from recombine.config import UsageError, from_json, to_json
from recombine.overrides import override
from recombine.pipeline.job import folder_of
from recombine.pipeline.worker import run_tasks
from recombine.plots.learning_order import figures
from recombine.rng import seeded
from recombine.studies.learning_order import STUDY, facts, jobs, saves, settings
from recombine.studies.learning_order_claims import calibration, right_orders

FULL, SMOKE = settings("full"), settings("smoke")
STEPS = saves(500, 20_000, 60)
CLAIMS = {claim.id: claim for claim in STUDY.claims}
SEEDS = 5


# ---- what is trained


@pytest.mark.parametrize("scale", ["smoke", "laptop", "full"])
def test_runs_have_names_of_their_own_fit_together_and_go_through_json(scale):
    runs = settings(scale).runs()
    assert len({run.name for run in runs}) == len(runs)
    for run in runs:
        run.check()
        assert from_json(to_json(run)) == run


def test_checkpoints_are_those_of_the_public_code():
    assert (len(STEPS), STEPS[0], STEPS[-1]) == (60, 500, 20_000)
    roots = torch.tensor(STEPS).sqrt()
    torch.testing.assert_close(roots.diff(), torch.full((59,), 2.018), atol=0.02, rtol=0)


def test_a_world_is_trained_beyond_its_published_times_and_no_longer_than_the_recipe():
    for run in FULL.runs():
        w, steps = run.world, run.recipe.train.steps
        known = [t[w.size_signal][w.color_signal] for t in (T_COLOR, T_SIZE)]
        assert steps == min(20_000, 1.5 * max(known))
        assert run.recipe.evaluation.at(steps)[:5] == STEPS[:5]
    assert {r.recipe.train.steps for r in replace(FULL, stretch=0.0).runs()} == {20_000}


def test_pictures_spread_as_in_the_public_code():
    """Colours within an eighth of their signal, diameters within three eighths and no smaller than
    0.1, noise of 0.001 in every pixel, the latent is the picture."""
    recipe = FULL.run(0.4, 0.4).recipe
    index = torch.tensor(recipe.split.seen).repeat_interleave(400, 0)
    images, values = recipe.world.render(index, seeded("pictures"))
    off = values - recipe.world.canonical(index)
    most = torch.tensor([0.05, 0.05, 0.05, 0.15])
    torch.testing.assert_close(off.abs().amax(0), most, rtol=0.02, atol=0)
    torch.testing.assert_close(off.std(0), most / 3**0.5, rtol=0.05, atol=0)
    assert float(values[:, 3].min()) >= 0.1
    clean = replace(recipe.world, pixel_noise=0.0).render(index, seeded("pictures")).images
    assert float((images - clean).std()) == pytest.approx(1e-3, rel=0.05)
    assert torch.equal(recipe.tokenizer.encode(images), images)
    assert torch.equal(recipe.tokenizer.decode(images), images)


@pytest.mark.parametrize("bad", ["masked_at=[0.3,0.4]", "stretch=-1"])
def test_settings_that_do_not_fit_are_refused(bad):
    with pytest.raises(UsageError, match=bad.partition("=")[0]):
        override(FULL, bad)


def test_jobs_come_seed_by_seed_and_facts_name_their_variants():
    listed = jobs(SMOKE, 2)
    models = [labels for job in listed if "seed" in (labels := dict(job.labels))]
    assert [m["seed"] for m in models] == [0] * 5 + [1] * 5
    assert {m["variant"] for m in models} == {row["variant"] for row in facts(SMOKE, 2)}
    assert len(listed) == 4 + 10


def test_a_run_leaves_accuracies_and_the_schedule_that_it_learned(tmp_path):
    run = override(SMOKE.run(0.8, 0.4, 1.0), "probe_steps=2")
    run_tasks([run], tmp_path, QUIET, {})
    rows = Table(folder_of(run, tmp_path).rows())
    assert set(rows.unique("kind")) == {"train", "accuracy", "schedule"}
    low = rows.where(kind="schedule").column("low")
    assert low[0] == -5.0
    assert low[-1] == pytest.approx(-5.0 - 8 * 1e-3, abs=1e-3)
    assert min(rows.where(kind="train").column("norm")) > 1000


# ---- when a concept is learned


def test_it_is_learned_at_the_middle_of_the_first_three_checkpoints_that_stay_above():
    steps = torch.arange(0.0, 3000, 100)
    jump = (steps >= 1000).float()
    once = Run(steps, {"color": jump}, 0)
    assert once.time("color") == pytest.approx(1300, abs=100)
    assert Run(steps, {"color": jump}, 20).time("color") == 2100
    assert Run(steps, {"color": 0.85 * jump}, 0).time("color") == math.inf
    spike = (steps == 500).float()
    assert Run(steps, {"color": spike}, 0).time("color") == math.inf
    assert Run(steps[:2], {"color": jump[:2]}, 0).time("color") == math.inf


def test_what_a_probe_reads_in_noise_is_no_time():
    """Everything is small and blue to it until the network generates anything."""
    rows = made_up(0.8, 0.4, 3000.0, 4000.0, noise=True)
    (world,) = worlds(Table(rows))
    assert all(t > 2500 for t in world.times("color").values())


# ---- claims, on made-up runs


def made_up(color, size, at_color, at_size, masked=0.0, end=1.0, noise=False) -> list[dict]:
    """Rows of one world over all seeds: when each concept is learned, and where colour ends."""
    variant = f"{color} {size} {masked}"
    signals = {"color_signal": color, "size_signal": size, "masked": masked}
    rows: list[dict] = [{"kind": "variant facts", "variant": variant, **signals}]
    for seed in range(SEEDS):
        for step in STEPS:
            slow = 1 + 0.02 * seed
            known = {"color": step > at_color * slow, "size": step > at_size * slow}
            far = {"color": end * known["color"], "size": float(known["size"])}
            if noise and not any(known.values()):
                far = {"color": 1.0, "size": 1.0}
            near = {k: 0.67 + 0.33 * v for k, v in known.items()}
            for level, place in ((0, near), (1, far)):
                where = {"variant": variant, "seed": seed, "step": step, "level": level}
                rows.append({"kind": "accuracy", "probe": "cnn", **where, **place})
    return rows


def study(pace=1.0, flip=True, bend=0.6, slow=0.5) -> Table:
    """A study in which every claim is supported, or with changes: `pace` times the published steps;
    size first everywhere; no bend; no slowing."""
    rows: list[dict] = []
    for size in (0.2, 0.4):
        for color in (0.2, 0.4, 0.6, 0.8):
            at = pace * T_COLOR[size][color]
            later = T_SIZE[size][color] * pace if flip else 0.5 * at
            rows += made_up(color, size, at, later)
    for share in (0.5, 1.0):
        at = 8000 * pace * (1 + slow * share)
        rows += made_up(0.4, 0.4, at, 7350.0, masked=share, end=1 - bend * share)
    return Table(rows)


@pytest.fixture(scope="module")
def good() -> Table:
    return study()


def verdict(id: str, rows: Table) -> str:
    return assess(CLAIMS[id], rows, "full").verdict


@pytest.mark.parametrize("id", CLAIMS)
def test_every_claim_is_supported_where_it_should_be(good, id):
    assessed = assess(CLAIMS[id], good, "full")
    assert assessed.verdict == "supported", (assessed.finding, assessed.parts)


def test_times_three_times_too_short_fail_the_gate_and_leave_the_rest_open():
    fast = study(pace=1 / 3)
    assert {id: verdict(id, fast) for id in CLAIMS} == {
        "B34": "contradicted",
        "C7": "inconclusive",
        "C8": "inconclusive",
    }


def test_an_order_that_never_flips_is_not_supported():
    assert verdict("C7", study(flip=False)) == "partly supported"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"bend": 0.0, "slow": -0.3}, "inconclusive"),
        ({"bend": 0.0, "slow": 0.5}, "partly supported"),
    ],
)
def test_captions_without_effect_do_not_support_the_claim(changes, expected):
    assert verdict("C8", study(**changes)) == expected


def test_a_study_in_which_colour_is_never_learned_does_not_pass_the_gate():
    """Its times count as the last step, which may lie close to the published ones."""
    rows = made_up(0.2, 0.4, 1e9, 7000.0)
    assert verdict("B34", Table(rows)) == "inconclusive"
    measured = assess(CLAIMS["B34"], Table(rows), "full").finding.measured
    assert measured["T_color, color 0.2, size 0.4: seeds that never learn it"] == SEEDS


def test_claims_without_rows_are_not_measured():
    for id in CLAIMS:
        assert verdict(id, Table([{"kind": "train", "step": 0}])) == "not measured"
    assert verdict("C7", Table(made_up(0.4, 0.4, 8000.0, 7000.0))) == "not measured"
    assert verdict("C8", Table(made_up(0.4, 0.4, 8000.0, 7000.0))) == "not measured"


def test_figures_show_ours_and_the_published_times(good):
    pictures = drawn(figures, good)
    assert list(pictures) == ["times", "masked"]
    alone = Table(made_up(0.3, 0.3, 1e9, 3000.0))
    assert list(drawn(figures, alone)) == ["times"]


def test_regions_are_those_that_were_written_down(good):
    near = ("T_color, ours / published", 1 / 1.5, 1.5)
    found = {id: regions(claim.measure(good)) for id, claim in CLAIMS.items()}
    assert found == {
        "B34": [(*near, False), ("worlds in which colour is learned", 0.75, 1.0, True)],
        "C7": [
            ("lead of colour, color 0.2, size 0.4", -math.inf, 0.0, False),
            ("lead of colour, color 0.8, size 0.2", 0.0, math.inf, False),
            ("worlds in the published order", 0.75, 1.0, False),
            (*near, True),
        ],
        "C8": [
            ("blue falls", 0.2, 1.0, False),
            ("T_color, all / none masked", 1.0, math.inf, False),
            (*near, True),
        ],
    }


def test_numbers_of_runs_made_by_hand(good):
    gate, order, bent = (CLAIMS[id].measure(good) for id in ("B34", "C7", "C8"))
    assert [p.estimate.value for p in gate.parts] == pytest.approx([1.2672, 1.0], abs=1e-4)
    leads = [p.estimate.value for p in order.parts]
    assert leads == pytest.approx([-0.8158, 1.4757, 1.0, 1.2672], abs=1e-4)
    at = "color 0.4, size 0.4"
    assert order.measured[f"T_color, {at}"] == 9651.0
    assert order.measured[f"T_color, {at}, published"] == 8000.0
    assert order.measured[f"T_size, {at}, published"] == 7350.0
    assert bent.measured[f"T_color, {at}, 50% masked: seeds that never learn it"] == SEEDS
    assert f"T_color, {at}, 50% masked, published" not in bent.measured
    blue = [bent.measured[f"blue at {share}% masked"] for share in (0, 50, 100)]
    assert blue == pytest.approx([1.0, 0.7, 0.3947], abs=1e-4)


def test_what_goes_back_on_the_way_is_a_part_of_its_own():
    found = CLAIMS["C8"].measure(study(bend=0.0, slow=-0.3))
    assert ("T_color grows least", 0.95, math.inf, False) in regions(found)
    assert "blue falls least" not in [name for name, *_ in regions(found)]
    rows = [r for r in study() if r.get("variant") != "0.4 0.4 0.5"]
    back = made_up(0.4, 0.4, 8000.0, 7350.0, masked=0.5, end=1.0)
    lower = made_up(0.4, 0.4, 8000.0, 7350.0, masked=0.4, end=0.9)
    found = CLAIMS["C8"].measure(Table(rows + lower + back))
    assert ("blue falls least", -0.02, math.inf, False) in regions(found)


@pytest.mark.parametrize(
    ("measure", "world", "says"),
    [
        (calibration, (0.3, 0.3), "no world with published times"),
        (right_orders, (0.2, 0.2), "no world with a clear published order"),
        (right_orders, (0.3, 0.3), "no world with a clear published order"),
    ],
)
def test_worlds_that_nobody_published_say_nothing(measure, world, says):
    found = worlds(Table(made_up(*world, 3000.0, 4000.0)))
    with pytest.raises(LookupError, match=f"^{says}$"):
        measure(found)


def test_orders_are_right_where_they_are_the_published_ones():
    """At these signals size comes first by the authors' times."""
    for at_size, share in ((1000.0, 1.0), (6000.0, 0.0)):
        found = worlds(Table(made_up(0.2, 0.4, 3000.0, at_size)))
        assert right_orders(found) == [share] * SEEDS


def test_times_are_published_where_both_are():
    def published(color: float, size: float) -> dict:
        return World(color, size, 0.0, {}).published

    assert published(0.4, 0.2) == {"color": 3700.0, "size": 9000.0}
    assert published(0.3, 0.2) == published(0.4, 0.3) == {}
    assert list(T_COLOR[0.2].values()) == [9000, 7100, 3700, 3000, 2600, 1900, 1900]
    assert list(T_COLOR[0.4].values()) == [15700, 9200, 8000, 7800, 4400, 4500, 3300]
    assert list(T_SIZE[0.2].values()) == [8350, 9000, 9500, 9650]
    assert list(T_SIZE[0.4].values()) == [6600, 7350, 6500, 6100]
