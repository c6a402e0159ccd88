"""Concept space: captions are masked as set, methods of prompting reach the network as they should,
curves are read rightly, and every claim can come out either way."""

import math
from dataclasses import replace
from functools import partial

import pytest
import torch
from figure_reader import drawn
from level_rows import regions
from tiny import QUIET

from recombine.analysis.claims import assess
from recombine.analysis.concept_order import (
    by_net,
    crossing,
    log_ratio,
    predicted_lead,
    rank,
    right_orders,
    seed_leads,
    seed_ranks,
    seed_right_orders,
    shared,
)
from recombine.analysis.concepts import (
    Curves,
    Outcome,
    begins,
    dip,
    distance_descents,
    halfway,
    late_mean,
    learning_step,
    ratio,
    rise,
    smoothed,
    speed,
)
from recombine.analysis.prompted import Prompted, line
from recombine.analysis.table import Table
from recombine.config import UsageError, from_json, to_json
from recombine.overrides import override
from recombine.pipeline.job import Work, folder_of
from recombine.pipeline.worker import run_tasks
from recombine.runs.concept_model import ConceptModel, evenly
from recombine.runs.concepts import ConceptRun
from recombine.runs.recipe import spaced
from recombine.studies import concept_order_claims
from recombine.studies.concept_settings import settings
from recombine.studies.concept_space import STUDY, figures
from recombine.theory.predict import SPACES

SMOKE = settings("smoke")
STEPS = spaced(4000, 41)
CLAIMS = {claim.id: claim for claim in STUDY.claims}
FIRST: ConceptRun = SMOKE.variants()[0][0]
SEEDS = 12
"""As many as a rate of 1 needs to lie above 0.9."""


def model(root, run: ConceptRun = FIRST) -> ConceptModel:
    work = Work(run, root, QUIET)
    return ConceptModel(run.recipe, run.masked, run.prompting, run.probe, work)


# ---- what is trained


@pytest.mark.parametrize("scale", ["smoke", "laptop", "full"])
def test_variants_have_names_of_their_own_and_go_through_json(scale):
    chosen = settings(scale)
    runs = [run for run, _ in chosen.variants()]
    assert len({run.name for run in runs}) == len(runs)
    for run in runs:
        run.check()
        assert from_json(to_json(run)) == run
    assert {run.world.color_signal for run in runs if run.prompting} == set(chosen.weak)


def test_full_scale_is_large_enough_for_its_claims():
    chosen = settings("full")
    assert len(chosen.lines[0].colors) >= 5
    assert chosen.masked_color in chosen.lines[0].colors
    assert {line.size for line in chosen.lines} == {0.2, 0.4}


def test_a_line_may_be_trained_longer_with_as_many_checkpoints():
    line = replace(SMOKE.lines[0], steps=40)
    recipe = replace(SMOKE, lines=(line,)).variants()[0][0].recipe
    assert (recipe.train.steps, recipe.evaluation.checkpoints[-1]) == (40, 40)
    assert len(recipe.evaluation.checkpoints) == len(SMOKE.recipe.evaluation.checkpoints)
    assert FIRST.recipe.train == SMOKE.recipe.train
    counted = override(replace(SMOKE, lines=(line,)), "checkpoints=5")
    assert len(counted.variants()[0][0].recipe.evaluation.checkpoints) == 5


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ("weak=[0.7]", "weak"),
        ('recipe.world={"type": "world/shapes2d"}', "Circles"),
        ("recipe.world.color_signal=0.3", "the study sets signals"),
        ("conditioning.dropout=0.5", "change lines"),
        ("conditioning.embedding_scale=raw", "change lines"),
        ("recipe.net.patch=2", "change lines"),
    ],
)
def test_what_does_not_fit_or_would_have_no_effect_is_refused(changed, says):
    with pytest.raises(UsageError, match=says):
        override(SMOKE, changed)
    with pytest.raises(ValueError, match="masked"):
        replace(FIRST, masked=2.0)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_only_the_colour_of_small_red_pictures_is_masked_and_as_often_as_set(tmp_path, share):
    _, condition = model(tmp_path, replace(FIRST, masked=share)).pool
    masked = ~condition.present[:, 0]
    here = (condition.index == torch.tensor((0, 1))).all(1)
    assert not masked[~here].any()
    assert float(masked[here].float().mean()) == share
    assert condition.present[:, 1].all()


def test_what_is_masked_at_one_share_is_masked_at_every_larger_one(tmp_path):
    few, many = (
        ~model(tmp_path, replace(FIRST, masked=m)).pool[1].present[:, 0] for m in (0.3, 0.6)
    )
    assert (few <= many).all()
    assert few.sum() < many.sum()


# ---- prompting


def test_all_methods_share_their_noise_and_leave_plain_prompts_alone(tmp_path):
    it = model(tmp_path)
    with torch.no_grad():
        for p in it.net.parameters():
            noise = torch.randn(p.shape, generator=torch.Generator().manual_seed(len(p.shape)))
            p.add_(0.05 * noise)
    plain, others = it.plain(), it.by_other_methods()
    together, alone = it.sample(plain + others), it.sample(plain)
    torch.testing.assert_close(together[: len(plain)], alone, atol=1e-4, rtol=0)
    unseen = together[[p.composition for p in plain].index((1, 1))]
    assert all((images != unseen).any() for images in together[len(plain) :])
    assert {q.method for q in others} == {"overprompt", "steer"}
    assert all(q.composition == (1, 1) for q in others)
    same = others[0]._replace(condition=plain[3].condition)
    assert torch.equal(it.sample([same])[0], it.sample([plain[3]])[0])


def test_a_run_leaves_rows_of_every_kind_and_no_weights_but_its_own(tmp_path):
    run = override(FIRST, "probe_steps=2")
    run_tasks([run], tmp_path, QUIET, {})
    folder = folder_of(run, tmp_path)
    rows = Table(folder.rows())
    methods = {("prompted", m) for m in ("overprompt", "steer", "patch", "patch back")}
    assert {(r["kind"], r["method"]) for r in rows} == {
        ("train", None),
        ("accuracy", None),
    } | methods
    scored = rows.where(kind="accuracy", probe="cnn")
    assert set(scored.column("step")) == {0, 2, 4, 6, 8}
    assert len(scored.where(step=4)) == 4
    assert rows.where(kind="accuracy", probe="oracle").column("composition") == ["11"] * 5
    assert set(rows.where(method="patch").column("network_step")) == {0, 6}
    weights = sorted(p.name for p in folder.path.glob("**/*.safetensors"))
    assert weights == ["model.safetensors", "state.safetensors"]
    last = scored.one(step=8, composition="11")
    assert 0 <= last["p_joint"] <= min(last["p_color"], last["p_size"]) + 1e-3


@pytest.mark.parametrize(
    ("count", "expected"), [(1, (0,)), (2, (0, 9)), (3, (0, 4, 9)), (30, tuple(range(10)))]
)
def test_some_steps_evenly(count, expected):
    assert evenly(tuple(range(10)), count) == expected


# ---- curves


def test_a_concept_is_learned_when_it_stays_so():
    steps = torch.arange(0.0, 1000, 100)
    values = torch.tensor([0.1, 0.9, 0.1, 0.2, 0.6, 1.0, 1.0, 1.0, 1.0, 1.0])
    assert learning_step(steps, values, 0.8, stay=1) == pytest.approx(100 * 7 / 8)
    assert learning_step(steps, values, 0.8, stay=3) == pytest.approx(450)
    assert learning_step(steps, torch.full((10,), 0.5)) == math.inf
    assert learning_step(steps, torch.ones(10)) == 0


def test_the_deepest_fall_and_what_follows():
    steps = torch.arange(7.0)
    found = dip(steps, torch.tensor([0.9, 0.5, 0.6, 0.4, 0.1, 0.8, 0.7]), begin=1)
    assert (found.start, found.turn) == (2.0, 4.0)
    assert (found.high, found.low, found.after) == pytest.approx((0.6, 0.1, 0.8))
    assert dip(steps, steps).depth == 0
    assert dip(steps[:3], torch.tensor([0.9, 0.1, 0.2])).depth == pytest.approx(0.8)


def curves(joint: list[float], seen: list[float] | None = None) -> Curves:
    value = torch.tensor(joint)
    return Curves(
        torch.arange(float(len(joint))),
        {"color": value},
        value,
        value,
        {"color": torch.tensor(seen or joint)},
    )


def test_noise_is_not_counted_as_generating():
    """The unseen composition agrees by chance while the seen ones do not."""
    assert begins(curves([0.9] * 6, [0.4, 0.5, 0.6, 0.85, 0.9, 1.0])) == 3
    assert begins(curves([0.9] * 6, [0.1] * 6)) == 5


def test_a_distance_that_falls_twice_differs_from_one_that_falls_once():
    there, back = torch.linspace(0.3, 0.7, 12), torch.linspace(0.7, 0.2, 12)
    twice = curves(torch.cat((there, back, torch.linspace(0.2, 1, 12))).tolist(), [0.9] * 36)
    count, at = distance_descents(twice)
    assert count == 2
    assert [pytest.approx(t, abs=2) for t in (11, 24)] == at
    assert distance_descents(curves(torch.linspace(0.1, 1, 30).tolist(), [0.9] * 30))[0] == 1


def test_smoothing_keeps_constants_and_lines_in_the_middle():
    torch.testing.assert_close(smoothed(torch.full((9,), 0.3)), torch.full((9,), 0.3))
    line = torch.linspace(0, 1, 21)
    torch.testing.assert_close(smoothed(line)[8:13], line[8:13], atol=1e-4, rtol=0)


def test_speed_is_distance_over_steps():
    straight = curves(torch.linspace(0, 1, 21).tolist())
    torch.testing.assert_close(speed(straight)[8:13], torch.full((5,), 0.05), atol=1e-4, rtol=0)
    assert speed(straight)[0] == 0


def test_a_step_rises_faster_than_a_ramp():
    steps = torch.arange(0.0, 2000, 20)
    jump, ramp = (steps > 1000).float(), steps / 2000
    assert rise(steps, jump) > 0.95
    assert rise(steps, ramp) < 0.25
    assert halfway(steps, jump) == pytest.approx(1000, abs=25)


def test_ratios_are_taken_seed_by_seed():
    estimate = ratio({0: 8.0, 1: 2.0, 2: 1.0}, {0: 4.0, 1: 1.0})
    assert (estimate.value, estimate.n) == (pytest.approx(2), 2)
    assert 1.8 < estimate.low < 2 < estimate.high < 2.2
    low, high = ratio({0: 8.0, 1: 2.0}, {0: 4.0, 1: 2.0}).interval
    assert low < math.sqrt(2) < high
    with pytest.raises(LookupError):
        ratio({0: 1.0}, {1: 1.0})


# ---- claims, on made-up runs


def logistic(step: float, at: float, sharp: float = 6.0) -> float:
    return 1 / (1 + (at / max(step, 1)) ** sharp)


def made_up(**given) -> list[dict]:
    """Rows of one variant over all seeds. `color`, `size`: signals; `at_color`, `at_size`: when
    each is learned; `fall`: how far colour falls back before; `end`: where it ends."""
    c = {
        "net": "U-Net",
        "scale": "raw",
        "color": 0.2,
        "size": 0.4,
        "background": 0.0,
        "masked": 0.0,
        "main": 1,
        "weak": 0,
        "at_color": 1000.0,
        "at_size": 300.0,
        "fall": 0.0,
        "end": 1.0,
        "lead": 1.0,
        "rate": None,
        "by": "value",
    } | given
    names = ("net", "scale", "color", "size", "masked", "background", "by")
    variant = " ".join(str(c[name]) for name in names)
    facts = {
        "kind": "variant facts",
        "net": c["net"],
        "embedding_scale": c["scale"],
        "color_signal": c["color"],
        "size_signal": c["size"],
        "background_signal": c["background"],
        "masked": c["masked"],
        "main": c["main"],
        "weak": c["weak"],
        "conditioned_on": c["by"],
    }
    rates = c["rate"] or {"color": 1 / c["at_color"], "size": 1 / c["at_size"]}
    rows = [facts]
    for space in SPACES:
        signal = {"kind": "signal", "space": space}
        rows += [signal | {"factor": f, "mu": math.sqrt(a), "a": a} for f, a in rates.items()]
    for seed in range(SEEDS):
        for step in STEPS:
            at = checkpoint(c, step, 1 + 0.02 * seed)
            rows += [r | {"step": step, "seed": seed, "run": "0"} for r in at]
    return [r | {"variant": variant} for r in rows]


def checkpoint(c: dict, step: int, slow: float) -> list[dict]:
    size, known = (logistic(step, c[at] * slow) for at in ("at_size", "at_color"))
    blue = c["end"] * known
    if blue < 0.4:
        blue = max(blue, 0.5 - 0.5 * c["fall"] * logistic(step, 1.5 * c["at_size"]))
    far = {"color": blue, "size": size}
    near = {"color": 0.33 + 0.67 * known, "size": 0.5 + 0.5 * size}
    kind = "accuracy"
    if c["background"]:
        far["background"] = near["background"] = logistic(step, 200)
        kind = "accuracy3"
    rows = []
    for level, place in ((0, near), (len(far), far)):
        p = {f"p_{k}": v for k, v in place.items()}
        p |= {"p_joint": math.prod(place.values()), "p_mean": sum(place.values()) / len(place)}
        rows.append(
            {"kind": kind, "composition": "1" * len(far), "level": level, "probe": "cnn", **p}
        )
    if c["weak"]:
        over = size * logistic(step, c["at_color"] * c["lead"])
        methods = ("overprompt", "steer")
        rows += [{"kind": "prompted", "method": m, "level": 2, "p_joint": over} for m in methods]
    return rows


COLORS = (0.1, 0.15, 0.2, 0.4, 0.8)


def world(**changes) -> Table:
    """A study in which every claim is supported, or with `changes` to all of its lines."""
    rows: list[dict] = []
    for net, main in (("U-Net", 1), ("DiT", 0)):
        for c in COLORS:
            weak = int(main and c in (0.1, 0.15))
            base = {"net": net, "color": c, "main": main, "weak": weak, "at_color": 180 / c}
            dips = {"lead": 0.5, "fall": 0.95 if c <= 0.2 else 0.0}
            rows += made_up(**base | dips | changes)
    rows += made_up(color=0.15, main=0, scale="balanced", at_color=400.0)
    for share in (0.5, 1.0):
        later = {"at_color": 450 * (1 + share), "end": 1 - 0.6 * share}
        rows += made_up(color=0.4, main=0, masked=share, **later)
    return Table(rows + made_up(color=0.4, background=0.3, main=0, at_color=900.0, at_size=500.0))


@pytest.fixture(scope="module")
def good() -> Table:
    return world()


def verdict(id: str, rows: Table) -> str:
    return assess(CLAIMS[id], rows, "full").verdict


@pytest.mark.parametrize("id", CLAIMS)
def test_every_claim_is_supported_where_it_should_be(good, id):
    assessed = assess(CLAIMS[id], good, "full")
    assert assessed.verdict == "supported", (assessed.finding, assessed.parts)


BAD = {
    "C1": {"fall": 0.0},
    "C2": {"at_color": 1000.0},
    "C3": {"at_size": 100.0},
    "C4": {"lead": 1.3},
    "B5": {"at_color": 600.0, "fall": 0.0},
    "B2": {"rate": {"color": 2.0, "size": 1.0}},
}


@pytest.mark.parametrize("id", BAD)
def test_every_claim_can_fail(id):
    assert verdict(id, world(**BAD[id])) != "supported"


def test_emergence_and_masking_can_fail():
    never = made_up(color=0.4, background=0.3, main=0, at_color=1e9)
    assert verdict("C5", Table(never)) != "supported"
    masked = partial(made_up, color=0.4, main=0)
    same = made_up(color=0.4) + masked(masked=0.5) + masked(masked=1.0)
    assert verdict("C6", Table(same)) == "inconclusive"
    bent: list[dict] = []
    for share in (0.0, 0.5, 1.0):
        at = 450 * (1 + share)
        bent += masked(by="class", masked=share, at_color=at, end=1 - 0.6 * share)
    assert verdict("C6", Table(bent)) == "supported"
    assert verdict("C6", Table(same + bent)) == "partly supported"


def test_the_measured_flip_lies_between_the_worlds_that_differ(good):
    measured = concept_order_claims.order_flips.measure(good).measured
    assert 0.4 < measured["U-Net, size 0.4: order flips at color"] < 0.8
    assert measured["U-Net, size 0.4: by pixels"] == pytest.approx(180 / 300, rel=0.1)


def test_the_power_of_the_signal_is_measured():
    powers, rows = {"raw": 1.5, "balanced": 0.25}, []
    for scale, power in powers.items():
        for c in COLORS:
            rows += made_up(net="DiT", color=c, main=0, scale=scale, at_color=60 / c**power)
    measured = concept_order_claims.embedding_scale_decides.measure(Table(rows)).measured
    for scale, power in powers.items():
        name = f"DiT: T_color goes as the signal to the power, {scale}"
        assert measured[name] == pytest.approx(-power, rel=0.1)


def test_the_order_is_assessed_for_each_network(good):
    """Without its strongest colour, the second network never has colour first."""
    fewer = Table([r for r in good if not r["variant"].startswith("DiT raw 0.8")])
    assert verdict("C3", fewer) == "partly supported"


def test_claims_without_rows_are_not_measured():
    for id in CLAIMS:
        assert verdict(id, Table(made_up(main=0))) == "not measured"


def test_figures_are_plotted_from_rows():
    rows = made_up(color=0.2, weak=1) + made_up(color=0.5) + made_up(color=0.5, main=0, masked=0.5)
    rows += made_up(color=0.5, main=0, background=0.3) + made_up(main=0, scale="balanced")
    names = list(drawn(figures, Table(rows)))
    assert names[:4] == ["trajectories", "steps", "times", "prediction"]
    assert names[4:] == ["embedding-scale", "prompting", "emergence", "masked"]


def test_facts_and_jobs_name_the_same_variants():
    jobs = STUDY.jobs(SMOKE, 1)
    named = {dict(job.labels)["variant"] for job in jobs}
    facts = [r for r in STUDY.facts(SMOKE, 1) if r["kind"] == "variant facts"]
    assert {r["variant"] for r in facts} == named
    assert len(facts) == len(SMOKE.variants()) == len(jobs) / 2
    assert STUDY.describe(SMOKE)["levels"] == {"00": 0, "01": 0, "10": 0, "11": 1}
    extra = replace(SMOKE, extra_seeds=2)
    assert len(STUDY.jobs(extra, 1)) - len(jobs) == 2


# ---- numbers of curves and outcomes made by hand


def outcome(times: dict[str, dict[int, float]], rates: dict | None = None, **facts) -> Outcome:
    """One variant whose learning times are given."""
    about = {"net": "U-Net", "color_signal": 0.2, "size_signal": 0.4} | facts
    made = Outcome(about, {}, {("pixels", f): a for f, a in (rates or {}).items()})
    made.known.update(times)
    return made


def test_a_lead_is_a_log_ratio_and_one_who_never_learns_comes_last():
    inf = math.inf
    assert log_ratio(800.0, 200.0) == pytest.approx(math.log(4))
    assert log_ratio(0.5, 0.1) == 0.0
    assert [log_ratio(*x) for x in ((inf, inf), (inf, 3.0), (3.0, inf))] == [0.0, inf, -inf]


def test_orders_and_ranks_of_outcomes():
    def world(color, size, *at):
        times = {"color": dict(enumerate(at)), "size": {0: 100.0, 1: 100.0}}
        made = outcome(times, {"color": color, "size": size})
        line = torch.tensor([0.0, 1000.0])
        return replace(made, runs={s: Curves(line, {}, line, line, {}) for s in (0, 1)})

    some = [world(2.0, 1.0, 50.0, 400.0), world(1.0, 2.0, 200.0, 200.0)]
    assert right_orders(some, "pixels") == 0.5, "the median of the first comes after size"
    assert seed_right_orders(some, "pixels") == [1.0, 0.5]
    assert predicted_lead(some[0], "pixels") == pytest.approx(math.log(2))
    assert seed_leads(some[0]) == pytest.approx({0: math.log(2), 1: -math.log(4)})
    assert rank([some[0]], "pixels") == 0.0, "two points have no rank correlation"
    assert seed_ranks(some, "pixels") == pytest.approx([0.5**0.5, -(0.5**0.5) / 3])
    with pytest.raises(LookupError, match=r"^no seed in common$"):
        shared([{0: 1.0}, {1: 1.0}])
    assert shared([{2: 1.0, 0: 1.0}, {0: 1.0, 2: 1.0, 1: 1.0}]) == [2, 0]


def test_networks_with_three_worlds_are_enough():
    some = [outcome({}, net=net) for net in ("a", "b", "a", "a", "b")]
    assert list(by_net(some)) == ["a"]
    assert list(by_net(some, 2)) == ["a", "b"]
    with pytest.raises(LookupError, match=r"^at least 4 worlds are needed$"):
        by_net(some, 4)


def test_an_order_flips_between_two_worlds():
    line = [outcome({}, color_signal=c, lead=v) for c, v in ((0.1, -1.0), (0.2, -1.0), (0.8, 3.0))]

    def value(o):
        return o.facts["lead"]

    assert crossing(line, value) == pytest.approx(0.2 * 4**0.25)
    endless = [line[0], outcome({}, color_signal=0.4, lead=math.inf)]
    assert crossing(endless, value) == pytest.approx(0.2), "halfway in the logarithm"
    assert crossing(line[:2], value) == "size first"
    assert crossing(line[2:], value) == "color first"
    assert crossing([outcome({}, lead=0.0)], value) == "color first"


def test_a_run_without_any_step_does_not_rise_and_the_last_quarter_is_late():
    steps = torch.tensor([0.0, 10.0])
    assert rise(steps, steps, stretch=2.0) == 0.0
    assert late_mean(torch.arange(8.0)) == 6.5
    assert late_mean(torch.arange(3.0)) == 2.0
    fall = dip(torch.arange(5.0), torch.tensor([0.9, 0.2, 0.5, 0.1, 0.7]), begin=1)
    assert fall == (2.0, 0.5, 3.0, pytest.approx(0.1), pytest.approx(0.7))
    assert fall.depth == pytest.approx(0.4)


def test_regions_are_those_that_were_written_down(good):
    found = {id: regions(CLAIMS[id].measure(good)) for id in ("C1", "C2", "C4", "C5", "C6")}
    inf = math.inf
    assert found == {
        "C1": [
            ("fall, color 0.1", 0.1, 1.0, False),
            ("then, color 0.1", 0.5, 1.0, False),
            ("fall, color 0.15", 0.1, 1.0, False),
            ("then, color 0.15", 0.5, 1.0, False),
        ],
        "C2": [
            ("rank correlation of signal and T_color", -1.0, -0.8, False),
            (found["C2"][1][0], 1.0, inf, False),
        ],
        "C4": [("share of runs with overprompting >= 0.9", 0.5, 1.0, False)],
        "C5": [
            ("largest rise, joint / mean", 1.3, inf, False),
            ("halfway step, joint / mean", 1.1, inf, False),
            ("joint at the end", 0.5, 1.0, False),
        ],
        "C6": [
            ("by value: blue falls", 0.2, 1.0, False),
            ("by value: T_color, all / none masked", 1.0, inf, False),
        ],
    }
    measured = CLAIMS["C1"].measure(good).measured
    assert [measured[f"paper: {k}"] for k in ("high", "low", "after")] == [0.25, 0.05, 0.55]
    measured = CLAIMS["C2"].measure(good).measured
    assert (measured["paper at 0.2"], measured["paper at 0.8"]) == (15700, 3300)
    measured = CLAIMS["C5"].measure(good).measured
    assert (measured["paper, joint"], measured["paper, mean"]) == (0.47, 0.16)


def test_few_signals_are_a_part_that_decides_against_the_claim():
    rows = [r for c in (0.2, 0.4, 0.8) for r in made_up(color=c, at_color=180 / c)]
    *_, few = CLAIMS["C2"].measure(Table(rows)).parts
    assert (few.name, few.estimate.value, few.low) == ("colour signals", 3, 5)
    assert verdict("C2", Table(rows)) != "supported"


@pytest.mark.parametrize(
    ("id", "rows", "says"),
    [
        ("C1", {"weak": 0}, "no weak colour signal is in the settings"),
        ("C2", {}, "at least three colour signals are needed"),
        ("C4", {"weak": 0}, "no run was prompted by another method"),
        ("C4", {"weak": 1, "at_color": 1.0, "at_size": 1.0}, "the plain prompt fails in no run"),
        ("C5", {}, "no world with three factors"),
        ("C6", {}, "no masked captions, or none to compare them with"),
    ],
)
def test_what_is_missing_is_named(id, rows, says):
    assert assess(CLAIMS[id], Table(made_up(**rows)), "full").note == says


def test_what_goes_back_on_the_way_is_a_part_of_its_own():
    rows: list[dict] = []
    for share, at, end in ((0.0, 900.0, 0.9), (0.5, 600.0, 0.95), (1.0, 1500.0, 0.2)):
        rows += made_up(color=0.4, main=0, masked=share, at_color=at, end=end)
    assert regions(CLAIMS["C6"].measure(Table(rows)))[2:] == [
        ("by value: blue falls least", -0.02, math.inf, False),
        ("by value: T_color grows least", 0.95, math.inf, False),
    ]


def test_prompts_of_other_methods_are_compared_where_the_plain_one_fails():
    steps = torch.tensor([1.0, 2.0, 3.0, 4.0])
    lines = {"plain": (steps, torch.tensor([0.1, 0.4, 0.41, 0.9]))}
    lines["steer"] = (steps, torch.tensor([0.2, 0.6, 0.95, 0.99]))
    run = Prompted("v", 0, lines)
    assert run.best_while_plain_fails("steer") == pytest.approx(0.6)
    assert run.best_while_plain_fails("patch") is None
    assert run.reaches("steer") == pytest.approx(2 + 0.2 / 0.35)
    rows = [{"step": 1, "p_joint": 0.9}, {"step": 9, "network_step": 5, "p_joint": 0.25},
            {"step": 5, "p_joint": 0.5}, {"step": 4, "p_joint": 0.125}]  # fmt: skip
    at, best = line(Table(rows), 4)
    assert (at.tolist(), best.tolist()) == ([4, 5], [0.125, 0.5])
