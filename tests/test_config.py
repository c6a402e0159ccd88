"""Configs survive JSON, have a name that depends on content alone, and refuse what they cannot
use."""

import dataclasses
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from recombine.config import ALWAYS, UsageError, config, digest, from_json, to_json
from recombine.nets.conditioning import Conditioning
from recombine.nets.dit import DiTConfig
from recombine.nets.transformer import TransformerConfig
from recombine.objectives.diffusion import Diffusion
from recombine.objectives.process import Flow, Linear
from recombine.objectives.solvers import Ancestral, Euler, Heun
from recombine.overrides import override
from recombine.runs.probes import ProbeRun
from recombine.runs.recipe import Evaluation, Recipe
from recombine.studies import NAMES, find
from recombine.studies.study import SCALES
from recombine.tokenizers.pixels import Pixels
from recombine.train.fit import TrainConfig
from recombine.worlds.shapes2d import Shapes2D

ROOT = Path(__file__).parents[1]
CONFIGS = [
    TransformerConfig(depth=2, width=32, heads=4, qk_norm=True),
    DiTConfig(patch=7),
    Conditioning("quantised", 0.25),
    Flow(),
    Linear(),
    Diffusion(Linear(), "noise", "logit-normal"),
    Euler(3),
    Heun(),
    Ancestral(),
    TrainConfig(betas=(0.8, 0.95), decay="linear"),
    Evaluation((0, 5), 4, Ancestral(7), 1.5),
    Pixels(),
    Shapes2D(size=32, shapes=("square", "circle")),
    Recipe(seen=((0, 0, 0), (1, 0, 1))),
    ProbeRun(Shapes2D(), "cnn"),
    *(find(name).settings(scale) for name in NAMES for scale in SCALES),
]
CASES = pytest.mark.parametrize("case", CONFIGS, ids=lambda c: type(c).__name__)


def shuffled(plain):
    """The same JSON with every object's keys the other way round."""
    if isinstance(plain, dict):
        return {k: shuffled(plain[k]) for k in reversed(plain)}
    return [shuffled(v) for v in plain] if isinstance(plain, list) else plain


@CASES
def test_a_config_survives_json_and_keeps_its_digest(case):
    again = from_json(json.loads(json.dumps(to_json(case))))
    assert again == case
    assert type(again) is type(case)
    assert digest(again) == digest(case)


@CASES
def test_the_order_of_json_keys_does_not_matter(case):
    again = from_json(shuffled(to_json(case)))
    assert again == case
    assert digest(again) == digest(case)


def renamed(name: str, module: str) -> type:
    """The same config class under another name, in another module."""
    fields = {"__annotations__": {"n": int, "rate": float}, "rate": 0.5, "__module__": module}
    return type(name, (), fields)


def test_a_class_that_is_moved_and_renamed_keeps_the_digest_of_its_configs(monkeypatch):
    monkeypatch.setattr("recombine.config._TAGS", {})
    old = config("test/moved")(renamed("Old", "here"))
    name, plain = digest(old(3)), to_json(old(3))
    monkeypatch.setattr("recombine.config._TAGS", {})
    new = config("test/moved")(renamed("New", "there.and.elsewhere"))
    assert digest(new(3)) == name
    assert from_json(plain) == new(3)


def test_two_classes_cannot_share_a_tag():
    config("test/taken")(renamed("First", "here"))
    with pytest.raises(TypeError, match="'test/taken' is taken by First"):
        config("test/taken")(renamed("Second", "here"))


def test_other_parents_make_another_name():
    assert len({digest(Pixels(), p) for p in ([], ["a"], ["b"], ["a", "b"])}) == 4
    assert digest(Pixels(), ["a", "b"]) == digest(Pixels(), ["b", "a"])


def test_the_digest_does_not_depend_on_the_hash_seed():
    code = """
from recombine.config import config, digest
@config("test/seed/inner")
class Inner:
    pair: tuple[float, ...] = (1.0,)
@config("test/seed/outer")
class Outer:
    first: Inner
    name: str = "a"
    many: tuple[Inner, ...] = ()
made = (Outer(Inner((2.0, 3.0)), "b", (Inner(), Inner((0.5,)))), Outer(Inner()), Inner())
print(*(digest(m, parents) for m in made for parents in ((), ("c", "a", "b"))))
"""
    said = [
        subprocess.check_output(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed}, cwd=ROOT
        )
        for seed in ("1", "123")
    ]
    assert said[0] == said[1]
    assert len(set(said[0].split())) == 6


def test_different_configs_have_different_digests():
    assert len({digest(c) for c in CONFIGS}) == len(set(CONFIGS))
    assert digest(TrainConfig(lr=1e-3)) != digest(TrainConfig(lr=1.0000001e-3))


@config("test/mine")
class Mine:
    n: int = 1
    x: float = 1.0
    pair: tuple[float, float] = (0.0, 0.5)
    many: float | tuple[float, ...] = 2.0
    maybe: float | None = None


@pytest.mark.parametrize(
    ("whole", "real"),
    [
        (Mine(x=2), Mine(x=2.0)),
        (Mine(pair=(0, 1)), Mine(pair=(0.0, 1.0))),
        (Mine(many=3), Mine(many=3.0)),
        (Mine(many=(1, 2)), Mine(many=(1.0, 2.0))),
        (Mine(maybe=4), Mine(maybe=4.0)),
    ],
)
def test_one_and_one_point_zero_are_the_same_setting(whole, real):
    assert whole == real
    assert digest(whole) == digest(real)
    again = from_json(to_json(whole))
    assert (again, digest(again)) == (real, digest(real))


def test_a_new_option_leaves_the_names_of_older_runs_alone(monkeypatch):
    monkeypatch.setattr("recombine.config._TAGS", {})
    old = config("test/twin")(type("Twin", (), {"__annotations__": {"n": int}, "n": 1}))
    name = digest(old(3))
    monkeypatch.setattr("recombine.config._TAGS", {})
    more = {"__annotations__": {"n": int, "x": float}, "n": 1, "x": 1.5}
    new = config("test/twin")(type("Twin", (), more))
    assert digest(new(3)) == name
    assert digest(new(3, 1.5)) != digest(new(3, 2.0))


@config("test/versioned")
class Versioned:
    version: int = dataclasses.field(default=2, metadata=ALWAYS)


@config("test/outer")
class Outer:
    inner: Versioned = dataclasses.field(default_factory=Versioned)
    others: tuple[Versioned, ...] = (Versioned(),)
    n: int = 1


def test_a_version_enters_the_name_also_where_nothing_else_is_set():
    first = Versioned(1)
    four = (Outer(), Outer(first), Outer(first, (first,)), Outer(others=(first,)))
    assert len({digest(o) for o in four}) == 4


def test_a_path_may_leave_out_its_beginning_where_only_one_field_fits():
    recipe = Recipe()
    assert override(recipe, "mode=quantised") == override(recipe, "conditioning.mode=quantised")
    assert override(recipe, "transformer.width=40", "heads=5").net.transformer.width == 40
    with pytest.raises(
        UsageError,
        match=r"steps: which one\? train.steps, evaluation.solver.steps, evaluation.decoding.steps",
    ):
        override(recipe, "steps=3")


BAD = {
    "type": "train",
    "steps": 5,
}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"stepz": 5}, "config.stepz: no such field; train has steps, batch"),
        ({"steps": "many"}, "config.steps: 'many' is not of type int"),
        ({"steps": 2.5}, "config.steps: 2.5 is not of type int"),
        ({"steps": True}, "config.steps: True is not of type int"),
        ({"lr": None}, "config.lr: None is not of type float"),
        ({"lr": float("nan")}, "config.lr: nan is not a finite number"),
        ({"decay": "slow"}, "config.decay: 'slow' is not one of none, linear, cosine"),
        ({"betas": [0.9]}, "config.betas: a list of 2 is needed, not of 1"),
        ({"betas": 0.9}, "config.betas: 0.9 is not a list"),
        ({"steps": 0}, "config: steps must be positive, not 0"),
        ({"type": "trian"}, "there is no config type 'trian'; did you mean train?"),
        ({"type": 5}, "there is no config type 5"),
        ({"type": "os.path"}, "there is no config type 'os.path'"),
        ({"type": "recombine.train.fit.Fit"}, "there is no config type"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(change, says):
    with pytest.raises(UsageError) as error:
        from_json(BAD | change)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_class_of_the_wrong_kind_is_refused():
    plain = to_json(Recipe())
    plain["net"] = to_json(Conditioning())
    with pytest.raises(UsageError, match=r"config\.net: conditioning is not a NetConfig"):
        from_json(plain)


def test_a_class_of_the_wrong_kind_is_refused_where_there_may_be_none():
    plain = to_json(Recipe())
    plain["evaluation"]["probe_world"] = to_json(Conditioning())
    with pytest.raises(
        UsageError, match=r"probe_world: conditioning is none of World, null"
    ) as error:
        from_json(plain)
    assert "\n" not in str(error.value)


def test_what_json_names_is_not_imported(tmp_path, monkeypatch):
    (tmp_path / "stranger.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Trap: pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    plain = to_json(Recipe())
    plain["world"] = {"type": "stranger.Trap"}
    for data in (plain, {"type": "stranger.Trap"}):
        with pytest.raises(UsageError, match=r"there is no config type 'stranger\.Trap'"):
            from_json(data)
    assert "stranger" not in sys.modules
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("assignment", "says"),
    [
        ("train.stepz=5", "no field 'stepz' in train; it has steps, batch"),
        ("trian.steps=5", "no field 'trian' in recipe; it has world"),
        ("train.steps.more=5", "more lies below a plain value"),
        ("train.steps=soon", "--set train.steps: 'soon' is not of type int"),
        ("net=net/unet", """is not of type NetConfig; write {"type": "net/unet"}, or set its"""),
        ("train=5", """5 is not of type TrainConfig; write {"type": "..."}, or set its fields"""),
        ("train.lr=NaN", "--set train.lr: nan is not a finite number"),
        ("train.lr=1e999", "--set train.lr: inf is not a finite number"),
        ("train.steps", "write path=value"),
        ("=5", "write path=value"),
        ("train.steps=0", "steps must be positive, not 0"),
        ("train.betas=[1,1]", "must lie in [0, 1)"),
        ("train.warmup=-1", "warmup must not be negative"),
        ("net.transformer.heads=0", "heads must be positive, not 0"),
        ("net.transformer.width=30", "width 30 is not a multiple of heads 7"),
        ("net.patch=0", "patch must be positive, not 0"),
        ("conditioning.mode=vague", "'vague' is not one of continuous, quantised"),
        ("conditioning.dropout=2", "dropout 2.0 is not between 0 and 1"),
        ("evaluation.solver.steps=0", "steps must be positive, not 0"),
        ("evaluation.samples=0", "samples must be positive, not 0"),
        ("objective.target=noise", "noise says nothing"),
        ("pool=0", "pool must be positive, not 0"),
        ("seen=[[0,0,0.5]]", "seen[0][2]: 0.5 is not of type int"),
        ("world.size=9", "at least 16 pixels"),
        ("seed=null", "None is not of type int"),
    ],
)
def test_an_override_that_cannot_be_used_says_why_in_one_line(assignment, says):
    with pytest.raises(UsageError) as error:
        override(Recipe(), assignment)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_overrides_change_what_they_name_and_nothing_else():
    changed = override(
        Recipe(), "train.steps=7", "seen=[[0,0,0],[0,1,1]]", "net.transformer.qk_norm=true"
    )
    net = DiTConfig(TransformerConfig(qk_norm=True))
    assert changed == Recipe(train=TrainConfig(steps=7), seen=((0, 0, 0), (0, 1, 1)), net=net)
    assert override(Recipe()) == Recipe()


def test_overrides_are_checked_together_so_that_their_order_does_not_matter():
    steps = ("net.transformer.width=40", "net.transformer.heads=5")
    assert override(Recipe(), *steps) == override(Recipe(), *reversed(steps))
    expected = replace(Recipe(), net=DiTConfig(TransformerConfig(width=40, heads=5)))
    assert override(Recipe(), *steps) == expected


def test_a_config_may_be_replaced_by_another_of_its_kind():
    solver = json.dumps(to_json(Ancestral(9)))
    assert override(Recipe(), f"evaluation.solver={solver}").evaluation.solver == Ancestral(9)
