"""Values of configs: typed, named for ever, refused in one line; each test noticed a fault that was
put into the source and that no other test saw."""

import dataclasses
import hashlib
import importlib
import math
from typing import Any, Literal

import pytest

from recombine.config import (
    ALWAYS,
    ROOMS,
    UsageError,
    config,
    digest,
    from_json,
    import_all,
    nearest,
    tag_of,
    tags_in,
    to_json,
)
from recombine.overrides import leaves, override


@config("test/values")
class Mine:
    n: int = 1
    x: float = 1.0
    pair: tuple[float, float] = (0.0, 0.5)
    many: float | tuple[float, ...] = 2.0
    maybe: float | None = None


def test_a_name_is_for_ever():
    text = b'{"config":{"many":[1.0,2.0],"n":3,"type":"test/values"},"parents":["a","b"]}'
    name = hashlib.sha256(text).hexdigest()[:16]
    assert digest(Mine(n=3, many=(1, 2)), ["b", "a"]) == name
    assert digest(Mine()) != digest(Mine(), ["a"])
    assert digest(Mine(), ["a", "b"]) == digest(Mine(), ["b", "a"])
    with pytest.raises(ValueError, match="JSON compliant"):
        digest(math.nan)


def test_a_class_may_be_declared_again_by_its_own_file_and_keeps_its_own_repr():
    def declare(name: str, **more):
        made = type(name, (), {"__annotations__": {"n": int}, "n": 1, **more})
        made.__qualname__ = name
        return config("test/declared")(made)

    first = declare("Again")
    assert declare("Again") is not first, "the newer one counts"
    with pytest.raises(
        TypeError, match="tag 'test/declared' is taken by Again; Other needs another"
    ):
        declare("Other")
    assert repr(declare("Again", __repr__=lambda self: "mine")(2)) == "mine"
    assert repr(first(2)) == repr(declare("Again")(2)) != "mine"
    with pytest.raises(dataclasses.FrozenInstanceError):
        first(2).n = 3


def test_what_is_no_config_has_no_tag_and_no_json():
    with pytest.raises(TypeError, match="int is not a config; declare it with"):
        tag_of(int)
    for value in (object(), Mine, {1: 2}, b"x"):
        with pytest.raises(TypeError, match="a config holds plain values and configs, not"):
            to_json(value)
    assert to_json((1, [2.5, None], "x", True)) == [1, [2.5, None], "x", True]


def test_a_suggestion_is_one_close_word_or_nothing():
    assert nearest("tran", ["train", "trains", "x"]) == "; did you mean train?"
    assert nearest("tran", ["x", "y"]) == ""


@pytest.mark.parametrize("name", ["recombine.nets.gone", None, "triton"])
def test_modules_may_lack_their_own_requirements_but_not_the_packages_modules(monkeypatch, name):
    real = importlib.import_module

    def found(module):
        if module == "recombine.nets.dit":
            raise ModuleNotFoundError(name=name)
        return real(module)

    monkeypatch.setattr("recombine.config.importlib.import_module", found)
    if name == "triton":
        assert "net/dit" in tags_in("nets")
    else:
        with pytest.raises(ModuleNotFoundError):
            tags_in("nets")


@config("test/kinds")
class Kinds:
    whole: int = 1
    real: float = 1.0
    yes: bool = False
    word: Literal["1", "null", "x"] = "x"
    pair: tuple[int, int] = (1, 2)
    some: tuple[int, ...] = ()
    anything: Any = None
    either: int | str | None = None
    inner: Mine = Mine()


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"whole": 2.0}, "whole", 2),
        ({"real": 3}, "real", 3.0),
        ({"anything": [1, [2]]}, "anything", (1, (2,))),
        ({"anything": {"a": 1}}, "anything", {"a": 1}),
        ({"some": []}, "some", ()),
        ({"some": [3]}, "some", (3,)),
        ({"pair": [3, 4]}, "pair", (3, 4)),
        ({"either": "x"}, "either", "x"),
        ({"either": 3.0}, "either", 3),
        ({"inner": {"type": "test/values", "n": 5}}, "inner", Mine(n=5)),
    ],
)
def test_values_take_the_type_of_their_field(given, field, value):
    found = getattr(from_json({"type": "test/kinds", **given}), field)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"real": True}, "config.real: True is not of type float"),
        ({"whole": math.inf}, "config.whole: inf is not a finite number"),
        ({"real": -math.inf}, "config.real: -inf is not a finite number"),
        ({"yes": 1}, "config.yes: 1 is not of type bool"),
        ({"pair": [1, 2, 3]}, "config.pair: a list of 2 is needed, not of 3"),
        ({"pair": [1, "x"]}, "config.pair[1]: 'x' is not of type int"),
        ({"some": [1, 2, "x"]}, "config.some[2]: 'x' is not of type int"),
        ({"some": "12"}, "config.some: '12' is not a list"),
        ({"word": "nul"}, "config.word: 'nul' is not one of 1, null, x; did you mean null?"),
        ({"either": [1]}, "config.either: [1] is none of int, str, null"),
        ({"either": {"type": "test/values"}}, "config.either: test/values is none of int, str"),
        ({"inner": 3}, "config.inner: 3 is not of type Mine"),
        ({"inner": {"type": "test/kinds"}}, "config.inner: test/kinds is not a Mine"),
        ({"inner": {"n": 1}}, "config.inner: {'n': 1} is not of type Mine"),
        ({"reel": 1}, "did you mean real?"),
    ],
)
def test_values_of_another_type_are_refused(given, says):
    with pytest.raises(UsageError) as error:
        from_json({"type": "test/kinds", **given})
    assert says in str(error.value)


def test_words_of_a_field_are_words_and_the_rest_is_json():
    made = override(Kinds(), "word=1", "either=null", "anything=[1,2]", "yes=true", "inner.n=7")
    assert made == Kinds(word="1", anything=(1, 2), yes=True, inner=Mine(n=7))
    assert override(Kinds(), "word=null").word == "null"
    assert override(Kinds(), "either=some text").either == "some text"
    assert override(Kinds(), "either=" + "[" * 5000 + "x").either.startswith("[[[")
    assert override(Kinds(), "maybe=2").inner.maybe == 2.0


def test_what_is_outside_is_replaced_before_what_is_inside():
    for order in (1, -1):
        given = ("inner.n=7", 'inner={"type":"test/values","x":5}')[::order]
        assert override(Kinds(), *given).inner == Mine(n=7, x=5.0)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("whole", "--set whole: write path=value"),
        ("=3", "--set =3: write path=value"),
        ("whole.deep=3", "--set whole.deep: deep lies below a plain value"),
        ("inner.m=3", "--set inner.m: no field 'm' in test/values; it has n, x, pair, many, maybe"),
        ("wohle=3", "no field 'wohle' in test/kinds"),
        ("wohle=3", "did you mean whole?"),
        ("pair=[1]", "--set pair: a list of 2 is needed"),
        ("inner.n=x", "--set inner.n: 'x' is not of type int"),
    ],
)
def test_a_change_that_does_not_fit_names_the_path(given, says):
    with pytest.raises(UsageError) as error:
        override(Kinds(), given)
    assert says in str(error.value)


def test_every_setting_is_listed_as_it_can_be_set():
    listed = dict(leaves(Kinds(either="a", some=(1, 2))))
    assert listed["inner"] == "test/values"
    assert (listed["some"], listed["either"], listed["inner.maybe"]) == ("[1, 2]", "a", "null")
    assert list(listed)[-6:] == ["inner", "inner.n", "inner.x", "inner.pair", "inner.many",
                                 "inner.maybe"]  # fmt: skip
    again = override(Kinds(), *(f"{k}={v}" for k, v in listed.items() if k != "inner"))
    assert again == Kinds(either="a", some=(1, 2))


@config("test/on-disk")
class OnDisk:
    path: str = ""
    content: str = ""

    def settled(self):
        return dataclasses.replace(self, content=f"of {self.path}")


@config("test/holder")
class Holder:
    one: OnDisk = OnDisk()
    many: tuple[OnDisk, ...] = (OnDisk(),)
    n: int = 1


def test_what_looks_at_the_disk_does_so_last_and_only_where_something_is_set():
    assert override(Holder()).one.content == ""
    made = override(Holder(), "one.path=a")
    assert made.one == OnDisk("a", "of a")
    assert made.many == (OnDisk("", "of "),)


class Shape:
    """What two configs have in common."""


@config("test/round")
class Round(Shape):
    radius: float = 1.0


@config("test/square")
class Square(Shape):
    side: float = 1.0


@config("test/drawn")
class Drawn:
    shape: Shape = Round()
    n: int = 1


def test_a_field_of_a_config_that_was_just_put_in_can_be_set():
    made = override(Drawn(), 'shape={"type":"test/square"}', "shape.side=3")
    assert made == Drawn(Square(3.0))
    assert override(Drawn(), "radius=2", "n=4") == Drawn(Round(2.0), 4)
    with pytest.raises(UsageError, match="no field 'radius' in test/square; it has side"):
        override(Drawn(), 'shape={"type":"test/square"}', "shape.radius=3")


@config("test/picky")
class Picky:
    n: int = 1

    def __post_init__(self):
        if self.n > 1:
            raise ValueError("--set.n=1 is all that is allowed")


@config("test/around")
class Around:
    picky: Picky = Picky()
    m: int = 1


def test_a_complaint_names_the_path_once_and_leaves_its_text_alone():
    with pytest.raises(UsageError) as error:
        override(Around(), "picky.n=2", "m=2")
    assert str(error.value) == "--set picky: --set.n=1 is all that is allowed"


def test_a_word_may_stand_in_quotes():
    assert override(Kinds(), 'word="null"').word == "null"
    assert override(Kinds(), 'either="7"').either == "7"


@config("test/twice")
class Twice:
    one: Picky = Picky()
    two: Picky = Picky()


def test_two_fields_of_the_same_name_are_not_guessed_between():
    with pytest.raises(UsageError, match=r"--set n: which one\? one.n, two.n"):
        override(Twice(), "n=1")
    assert override(Twice(), "two.n=0") == Twice(two=Picky(0))


@config("test/version")
class Version:
    version: int = dataclasses.field(default=2, metadata=ALWAYS)
    n: int = 1


@config("test/of-version")
class OfVersion:
    inner: Version = Version()
    n: int = 1


def test_a_version_inside_is_part_of_the_name_though_it_is_the_default():
    text = (b'{"config":{"inner":{"type":"test/version","version":2},"type":"test/of-version"},'
            b'"parents":[]}')  # fmt: skip
    assert digest(OfVersion()) == hashlib.sha256(text).hexdigest()[:16]


def test_a_tag_that_is_not_known_yet_is_looked_for_in_all_rooms(monkeypatch):
    rooms = []
    monkeypatch.setattr("recombine.config.tags_in", rooms.append)
    import_all.cache_clear()
    try:
        with pytest.raises(UsageError, match="there is no config type 'test/no-such'"):
            from_json({"type": "test/no-such"})
    finally:
        import_all.cache_clear()
    assert tuple(rooms) == ROOMS
