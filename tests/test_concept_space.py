"""Concept space: captions are hidden as told, ways of asking meet the network as they should, curves are read rightly, and
every claim can come out either way."""

import math
from dataclasses import replace

import pytest
import torch
from tiny import QUIET

from recombine.config import UsageError, from_json, override, to_json
from recombine.evaluate.probes import ProbeNet, TrainedProbe
from recombine.studies.base import Rows
from recombine.studies.concept_space import foresight, judges
from recombine.studies.concept_space.claims import CLAIMS
from recombine.studies.concept_space.curves import Curves, begins, dip, falls, halfway, learned, rise, smoothed, speed
from recombine.studies.concept_space.figures import draw
from recombine.studies.concept_space.settings import Course, settings
from recombine.studies.concept_space.study import STUDY, compute
from recombine.studies.concept_space.trial import Trial, every_so_often
from recombine.studies.lab import Lab
from recombine.studies.recipe import spaced
from recombine.theory.predict import SPACES

SMOKE = settings("smoke")
STEPS = spaced(4000, 41)


def trial(root, course: Course | None = None) -> Trial:
    course = course or SMOKE.courses()[0][0]
    net = ProbeNet("cnn", course.world.image_shape, course.world.space)
    return Trial(course, Lab(QUIET, root, "smoke", 1), TrainedProbe("cnn", net))


# ---- what is trained


@pytest.mark.parametrize("scale", ["smoke", "laptop", "full"])
def test_courses_have_names_of_their_own_and_go_through_json(scale):
    chosen = settings(scale)
    courses = [course for course, _ in chosen.courses()]
    assert len({c.name for c in courses}) == len(courses)
    for course in courses:
        course.check()
        assert from_json(to_json(course)) == course
    weak = {c.world.color_signal for c in courses if c.asking}
    assert weak == set(chosen.weak)


def test_full_scale_is_large_enough_for_its_claims():
    chosen = settings("full")
    assert len(chosen.lines[0].colors) >= 5
    assert 3 + chosen.extra_seeds >= 5
    assert chosen.masked_color in chosen.lines[0].colors
    assert {line.size for line in chosen.lines} == {0.2, 0.4}


def test_a_line_may_be_trained_longer_and_is_looked_at_as_often():
    line = replace(SMOKE.lines[0], steps=40)
    course = replace(SMOKE, lines=(line,)).courses()[0][0]
    recipe = course.recipe
    assert (recipe.train.steps, recipe.evaluation.checkpoints[-1]) == (40, 40)
    assert len(recipe.evaluation.checkpoints) == len(SMOKE.recipe.evaluation.checkpoints)
    assert SMOKE.courses()[0][0].recipe.train == SMOKE.recipe.train
    counted = replace(SMOKE.recipe, evaluation=replace(SMOKE.recipe.evaluation, checkpoints=5))
    assert len(replace(SMOKE, recipe=counted, lines=(line,)).courses()[0][0].recipe.evaluation.checkpoints) == 5


def test_settings_that_do_not_fit_are_refused():
    with pytest.raises(UsageError, match="weak"):
        override(SMOKE, "weak=[0.7]")
    with pytest.raises(ValueError, match="masked"):
        replace(SMOKE.courses()[0][0], masked=2.0)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ('recipe.world={"class": "recombine.worlds.shapes2d.Shapes2D"}', "circles"),
        ("recipe.world.color_signal=0.3", "signals are set by the study"),
        ("conditioning.dropout=0.5", "change lines"),
        ("conditioning.signal=raw", "change lines"),
        ("recipe.net.patch=2", "change lines"),
    ],
)
def test_what_would_have_no_effect_is_refused(changed, says):
    with pytest.raises(UsageError, match=says):
        override(SMOKE, changed)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_only_the_colour_of_red_small_pictures_is_hidden_and_as_often_as_told(tmp_path, share):
    course = replace(SMOKE.courses()[0][0], masked=share)
    _, condition = trial(tmp_path, course).pool
    hidden = ~condition.present[:, 0]
    here = (condition.index == torch.tensor((0, 1))).all(1)
    assert not hidden[~here].any()
    assert float(hidden[here].float().mean()) == share
    assert condition.present[:, 1].all()


def test_what_is_hidden_at_one_share_is_hidden_at_every_larger_one(tmp_path):
    course = replace(SMOKE.courses()[0][0], asking=None)
    hidden = [~trial(tmp_path, replace(course, masked=m)).pool[1].present[:, 0] for m in (0.3, 0.6)]
    assert (hidden[0] <= hidden[1]).all()
    assert hidden[0].sum() < hidden[1].sum()


# ---- asking


def test_all_ways_of_asking_share_their_noise_and_plain_ones_are_not_disturbed(tmp_path):
    it = trial(tmp_path)
    with torch.no_grad():
        for p in it.run.net.parameters():
            p.add_(0.05 * torch.randn(p.shape, generator=torch.Generator().manual_seed(len(p.shape))))
    plain, ways = it.plain(), it.otherwise()
    together, alone = it.draw(plain + ways), it.draw(plain)
    torch.testing.assert_close(together[: len(plain)], alone, atol=1e-4, rtol=0)
    unseen = together[[p.composition for p in plain].index((1, 1))]
    assert all((drawn != unseen).any() for drawn in together[len(plain) :])
    assert {a.way for a in ways} == {"over", "steer"}
    assert all(a.composition == (1, 1) for a in ways)
    assert torch.equal(it.draw([ways[0]._replace(condition=plain[3].condition)])[0], it.draw([plain[3]])[0])


def test_a_run_leaves_rows_of_every_kind_and_no_weights_but_its_own(tmp_path):
    it = trial(tmp_path)
    it.train()
    rows = Rows(it.folder.rows())
    assert {(r["kind"], r.get("way")) for r in rows} == {
        ("train", None), ("accuracy", None), ("asked", "over"), ("asked", "steer"), ("asked", "patch"),
        ("asked", "patch back")}  # fmt: skip
    assert set(rows.where(kind="accuracy", probe="cnn").column("step")) == {0, 2, 4, 6, 8}
    assert len(rows.where(kind="accuracy", probe="cnn", step=4)) == 4
    assert rows.where(kind="accuracy", probe="oracle").column("composition") == ["11"] * 5
    assert set(rows.where(way="patch").column("of")) == {0, 6}
    assert sorted(p.name for p in it.folder.path.glob("**/*.safetensors")) == ["model.safetensors", "state.safetensors"]
    last = rows.where(kind="accuracy", probe="cnn", step=8, composition="11")[0]
    assert 0 <= last["p_joint"] <= min(last["p_color"], last["p_size"]) + 1e-3


@pytest.mark.parametrize(("count", "expected"), [(1, (0,)), (2, (0, 9)), (3, (0, 4, 9)), (30, tuple(range(10)))])
def test_every_so_often(count, expected):
    assert every_so_often(tuple(range(10)), count) == expected


# ---- curves


def test_a_concept_is_learned_when_it_stays_so():
    steps = torch.arange(0.0, 1000, 100)
    values = torch.tensor([0.1, 0.9, 0.1, 0.2, 0.6, 1.0, 1.0, 1.0, 1.0, 1.0])
    assert learned(steps, values, 0.8, stay=1) == pytest.approx(100 * 7 / 8)
    assert learned(steps, values, 0.8, stay=3) == pytest.approx(450)
    assert learned(steps, torch.full((10,), 0.5)) == math.inf
    assert learned(steps, torch.ones(10)) == 0


def test_the_deepest_fall_is_found_with_what_follows():
    steps = torch.arange(7.0)
    found = dip(steps, torch.tensor([0.9, 0.5, 0.6, 0.4, 0.1, 0.8, 0.7]), begin=1)
    assert (found.start, found.turn) == (2.0, 4.0)
    assert (found.high, found.low, found.after) == pytest.approx((0.6, 0.1, 0.8))
    assert dip(steps, steps).depth == 0


def curves(joint: list[float], seen: list[float] | None = None) -> Curves:
    value = torch.tensor(joint)
    return Curves(
        torch.arange(float(len(joint))), {"color": value}, value, value, {"color": torch.tensor(seen or joint)}
    )


def test_noise_is_not_counted_as_drawing():
    """The unseen composition agrees by chance while the seen ones do not."""
    assert begins(curves([0.9] * 6, [0.4, 0.5, 0.6, 0.85, 0.9, 1.0])) == 3
    assert begins(curves([0.9] * 6, [0.1] * 6)) == 5


def test_a_distance_that_falls_twice_is_told_from_one_that_falls_once():
    there, back = torch.linspace(0.3, 0.7, 12), torch.linspace(0.7, 0.2, 12)
    twice = curves(torch.cat((there, back, torch.linspace(0.2, 1, 12))).tolist(), [0.9] * 36)
    count, at = falls(twice)
    assert count == 2
    assert [pytest.approx(t, abs=2) for t in (11, 24)] == at
    assert falls(curves(torch.linspace(0.1, 1, 30).tolist(), [0.9] * 30))[0] == 1


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


# ---- claims, on made-up runs


def logistic(step: float, at: float, sharp: float = 6.0) -> float:
    return 1 / (1 + (at / max(step, 1)) ** sharp)


def made_up(**course) -> list[dict]:
    """Rows of one course over two seeds. `color`, `size`: signals; `at_color`, `at_size`: when each is learned; `fall`: how
    far colour falls back before; `end`: where it ends."""
    c = {"net": "U-Net", "told": "raw", "color": 0.2, "size": 0.4, "background": 0.0, "masked": 0.0, "main": 1, "weak": 0,
         "at_color": 1000.0, "at_size": 300.0, "fall": 0.0, "end": 1.0, "lead": 1.0, "rate": None,
         "by": "value"} | course  # fmt: skip
    variant = f"{c['net']} {c['told']} {c['color']} {c['size']} {c['masked']} {c['background']} {c['by']}"
    facts = {"kind": "course", "variant": variant, "net": c["net"], "told": c["told"], "color_signal": c["color"],
             "size_signal": c["size"], "background_signal": c["background"], "masked": c["masked"], "main": c["main"],
             "weak": c["weak"], "by": c["by"]}  # fmt: skip
    rates = c["rate"] or {"color": 1 / c["at_color"], "size": 1 / c["at_size"]}
    rows = [facts] + [
        {"kind": "signal", "variant": variant, "space": s, "factor": f, "mu": math.sqrt(a), "a": a}
        for s in SPACES for f, a in rates.items()]  # fmt: skip
    for seed in range(2):
        for step in STEPS:
            rows += [r | {"variant": variant, "seed": seed, "run": "0"} for r in checkpoint(c, step, 1 + 0.05 * seed)]
    return rows


def checkpoint(c: dict, step: int, slow: float) -> list[dict]:
    size, blue = logistic(step, c["at_size"] * slow), c["end"] * logistic(step, c["at_color"] * slow)
    blue = max(blue, 0.5 - (0.5 - 0.5 * (1 - c["fall"])) * logistic(step, 1.5 * c["at_size"]) if blue < 0.4 else 0)
    far = {"color": blue, "size": size}
    near = {"color": 0.33 + 0.67 * logistic(step, c["at_color"] * slow), "size": 0.5 + 0.5 * size}
    kind = "accuracy"
    if c["background"]:
        far["background"], near["background"], kind = logistic(step, 200), logistic(step, 200), "accuracy3"
    rows = [{"kind": "train", "step": step, "loss": 1 / (1 + step)}]
    for level, place in ((0, near), (len(far), far)):
        p = {f"p_{k}": v for k, v in place.items()}
        p |= {"p_joint": math.prod(place.values()), "p_mean": sum(place.values()) / len(place)}
        rows.append({"kind": kind, "step": step, "composition": "1" * len(far), "level": level, "probe": "cnn", **p})
    if c["weak"]:
        over = logistic(step, c["at_color"] * c["lead"])
        rows += [{"kind": "asked", "step": step, "way": w, "strength": 1.0, "level": 2, "p_joint": size * over}
                 for w in ("over", "steer")]  # fmt: skip
    return rows


COLORS = (0.1, 0.15, 0.2, 0.4, 0.8)


def world(**changes) -> Rows:
    """A study in which every claim holds, or with `changes` to all of its courses."""
    rows: list[dict] = []
    for net, main in (("U-Net", 1), ("DiT", 0)):
        for c in COLORS:
            weak = main and c in (0.15, 0.2)
            base = {"net": net, "color": c, "main": main, "weak": int(weak), "at_color": 180 / c, "lead": 0.5}
            rows += made_up(**base | {"fall": 0.95 if c <= 0.2 else 0.0} | changes)
    rows += made_up(color=0.15, main=0, told="balanced", at_color=400.0)
    for share in (0.5, 1.0):
        rows += made_up(color=0.4, main=0, masked=share, at_color=450 * (1 + share), end=1 - 0.6 * share)
    return Rows(rows + made_up(color=0.4, background=0.3, main=0, at_color=900.0, at_size=500.0))


@pytest.fixture(scope="module")
def good() -> Rows:
    return world()


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda c: c.id)
def test_every_claim_holds_where_it_should(good, claim):
    found = claim.judge(good)
    assert found.holds is True, found.measured


BAD = {
    "C1": {"fall": 0.0},
    "C2": {"at_color": 1000.0},
    "C3": {"at_size": 100.0},
    "C4": {"lead": 1.3},
    "B5": {"at_color": 600.0, "fall": 0.0},
    "B2": {"rate": {"color": 2.0, "size": 1.0}},
}


@pytest.mark.parametrize("name", BAD)
def test_every_claim_can_fail(name):
    claim = next(c for c in CLAIMS if c.id == name)
    assert claim.judge(world(**BAD[name])).holds is not True


def test_emergence_and_masking_can_fail():
    rows = Rows(made_up(color=0.4, background=0.3, main=0, at_color=1e9))
    assert judges.judge_emergence(rows).holds is False
    same = made_up(color=0.4) + made_up(color=0.4, main=0, masked=0.5) + made_up(color=0.4, main=0, masked=1.0)
    assert judges.judge_masked(Rows(same)).holds is False
    bent = [r for share in (0.0, 0.5, 1.0) for r in made_up(color=0.4, main=0, by="class", masked=share,
            at_color=450 * (1 + share), end=1 - 0.6 * share)]  # fmt: skip
    assert judges.judge_masked(Rows(bent)).holds is True
    assert judges.judge_masked(Rows(same + bent)).holds == "partly"


def test_the_measured_flip_lies_between_the_worlds_that_differ(good):
    found = foresight.judge_order(good).measured
    assert 0.4 < found["U-Net, size 0.4: order flips at color"] < 0.8
    assert found["U-Net, size 0.4: by pixels"] == pytest.approx(180 / 300, rel=0.1)


def test_the_power_of_the_signal_is_found():
    rows: list[dict] = []
    for told, power in (("raw", 1.5), ("balanced", 0.25)):
        rows += [r for c in COLORS for r in made_up(net="DiT", color=c, main=0, told=told, at_color=60 / c**power)]
    found = foresight.judge_told(Rows(rows)).measured
    for told, power in (("raw", 1.5), ("balanced", 0.25)):
        assert found[f"DiT: T_color goes as the signal to the power, {told}"] == pytest.approx(-power, rel=0.1)


def test_the_order_is_judged_for_each_network(good):
    flat = [r for r in good if not ("DiT" in str(r["variant"]) and r.get("color_signal", 0.8) == 0.8)]
    assert foresight.judge_order(good).holds is True
    kept = {r["variant"] for r in flat if r["kind"] == "course"}
    assert foresight.judge_order(Rows(r for r in good if r["variant"] in kept)).holds == "partly"


def test_claims_without_rows_are_not_judged():
    for claim in CLAIMS:
        with pytest.raises(LookupError):
            claim.judge(Rows(made_up(main=0)))


def test_figures_are_drawn_from_rows(tmp_path):
    rows = made_up(color=0.2, weak=1) + made_up(color=0.5) + made_up(color=0.5, main=0, masked=0.5)
    rows = Rows(rows + made_up(color=0.5, main=0, background=0.3) + made_up(main=0, told="balanced"))
    names = [f.name for f in draw(rows, tmp_path / "study" / "figures")]
    assert names == ["trajectories", "steps", "times", "prediction", "told", "hidden", "emergence", "masked"]
    assert all((tmp_path / "study" / "figures" / f"{n}.svg").exists() for n in names)


def test_the_study_says_what_it_is():
    assert [c.id for c in STUDY.claims] == ["C1", "C2", "C3", "C4", "C5", "C6", "B2", "B5"]
    assert STUDY.describe(SMOKE)["levels"] == {"00": 0, "01": 0, "10": 0, "11": 1}


def test_the_whole_study_runs_with_a_third_factor_too(tmp_path):
    """As the command does it, short: every course is trained, and what it leaves is found again."""
    short = override(
        settings("smoke"), "recipe.train.steps=2", "checkpoints=[0]", "evaluation.samples=2", "probe_steps=2"
    )
    lab = Lab(QUIET, tmp_path, "smoke", 1)
    rows = Rows(compute(short, lab))
    assert len(lab.runs) == len(short.courses())
    assert {"course", "signal", "accuracy", "accuracy3", "asked"} <= set(rows.column("kind"))
    assert Rows(compute(short, lab)) == rows
