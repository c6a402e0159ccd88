"""What a claim would be called had another probe judged."""

import pytest

from recombine.studies.base import Claim, Judgement, Rows
from recombine.studies.levels import late, over_seeds
from recombine.studies.otherwise import by_others, seen_by

HEIGHTS = {"open-set": 0.2, "cnn": 0.9, "oracle": 0.0, "linear": 1.0}
"""Of level 2, by each probe."""


def rows_of(heights: dict[str, float], real: dict[str, float]) -> Rows:
    said = {"kind": "accuracy", "level": 2, "variant": "v", "step": 10}
    made = [said | {"seed": s, "probe": p, "joint": y} for s in range(3) for p, y in heights.items()]
    return Rows([*made, *({"kind": "probe", "probe": p, "joint": y} for p, y in real.items())])


ROWS = rows_of(HEIGHTS, dict.fromkeys(HEIGHTS, 1.0))


def look(rows: Rows, probe: str | None = None) -> Judgement:
    found = over_seeds(rows, "v", 2, late, probe)
    beside = over_seeds(rows, "v", 2, late, "open-set").mean
    return Judgement(found.mean >= 0.5 or ("partly" if found.mean > 0 else False), {"beside": beside}, found.interval)


def said(judging=look, rows: Rows = ROWS, scale: str = "full") -> dict[str, str]:
    return by_others((Claim("X1", "P", "s", "e", judging, trained=True),), rows, scale, 3)[0]


def test_every_probe_judges_in_turn():
    assert said() == {"cnn": "reproduced", "linear": "reproduced", "oracle": "not reproduced"}


def test_a_probe_that_misreads_real_pictures_does_not_judge():
    assert "linear" not in said(rows=rows_of(HEIGHTS, dict.fromkeys(HEIGHTS, 1.0) | {"linear": 0.9}))


def test_a_claim_on_another_probe_does_not_turn_on_the_judge():
    assert said(lambda rows: look(rows, "oracle")) == {}


def test_where_there_is_no_verdict_no_probe_has_one():
    assert said(scale="laptop") == {}


def test_what_a_probe_cannot_tell_is_left_out():
    def needy(rows: Rows) -> Judgement:
        if look(rows).holds is True:
            raise LookupError("nothing to repair")
        return look(rows)

    assert said(needy) == {"oracle": "not reproduced"}


@pytest.location.parametrize("probe", ["cnn", "oracle"])
def test_a_probe_takes_the_judges_place_and_stays_in_its_own(probe):
    some = seen_by(ROWS, probe, "open-set")
    for there in ("open-set", probe):
        assert {r["joint"] for r in some.where(kind="accuracy", probe=there)} == {HEIGHTS[probe]}
    assert len(some) == len(ROWS)
