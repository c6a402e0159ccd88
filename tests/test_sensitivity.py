"""What the verdict on a claim would be under another probe, or at an earlier checkpoint."""

import pytest
from level_rows import accuracy_rows

from recombine.analysis.claims import Claim, Finding, Part, assess
from recombine.analysis.levels import accuracy, at_level
from recombine.analysis.paper_probe import averaged, seeds_of_probe, with_paper_probe
from recombine.analysis.sensitivity import by_checkpoint, by_probe
from recombine.analysis.table import NotMeasured, Table

BY_PROBE = {"open-set": 0.3, "cnn": 0.9, "oracle": 0.05, "linear": 1.0}
"""Level 2 of the variant v, as each probe reads it."""
BY_STEP = {0: 0.9, 10: 0.1, 20: 0.9, 40: 0.5, 80: 0.1}
"""Level 2 over training: it comes and goes."""


def probed(real: dict[str, float]) -> Table:
    rows = [r for p, y in BY_PROBE.items() for r in accuracy_rows({"v": y}, probes=(p,))]
    return Table([*rows, *({"kind": "probe", "probe": p, "joint": y} for p, y in real.items())])


def checkpoints(variant: str, heights: dict[int, float], seen: float = 0.95) -> list[dict]:
    steps = heights.items()
    rows = [accuracy_rows({variant: y}, step=t, seen=seen, probes=("open-set",)) for t, y in steps]
    return [r for some in rows for r in some]


PROBED = probed(dict.fromkeys(BY_PROBE, 1.0))


def reaches_half(rows: Table, probe: str | None = None) -> Finding:
    shown = {"beside": accuracy(rows, "v", 2, probe="open-set").value}
    return Finding((Part("v", accuracy(rows, "v", 2, probe=probe), 0.5, 1.0),), shown)


def claim(measure=reaches_half) -> Claim:
    return Claim("X1", "beyond the papers", "s", "e", measure, trained=True)


def by_other_probes(measure=reaches_half, rows: Table = PROBED, scale: str = "full") -> dict:
    return by_probe((claim(measure),), rows, scale, 1.0)[0]


def earlier(rows: list[dict], measure=reaches_half, scale: str = "full") -> list:
    return by_checkpoint((claim(measure),), Table(rows), scale, 1.0)[0]


def test_every_other_probe_gives_its_verdict():
    expected = {"CNN probe": "supported", "linear probe": "supported", "oracle": "contradicted"}
    assert by_other_probes() == expected


def test_a_probe_that_misreads_real_pictures_gives_none():
    rows = probed(dict.fromkeys(BY_PROBE, 1.0) | {"linear": 0.9})
    assert "linear probe" not in by_other_probes(rows=rows)


def test_a_claim_that_names_its_probe_does_not_depend_on_the_primary_one():
    assert by_other_probes(lambda rows: reaches_half(rows, "oracle")) == {}


def test_without_a_verdict_there_is_no_other():
    assert by_other_probes(scale="laptop") == {}
    assert earlier(checkpoints("v", BY_STEP), scale="laptop") == []


def test_what_a_probe_cannot_decide_is_left_out():
    def needy(rows: Table) -> Finding:
        if accuracy(rows, "v", 2).value > 0.5:
            raise NotMeasured("nothing to repair")
        return reaches_half(rows)

    assert by_other_probes(needy) == {"oracle": "contradicted"}


def test_a_claim_is_assessed_on_the_checkpoints_up_to_each_and_the_last_is_the_verdict():
    rows = checkpoints("v", BY_STEP)
    verdicts = earlier(rows)
    low, high, middle = "contradicted", "supported", "inconclusive"
    assert verdicts == [(10, low), (20, high), (40, middle), (80, low)]
    assert verdicts[-1][1] == assess(claim(), Table(rows), "full", 1.0).verdict


def test_checkpoints_of_models_that_a_claim_is_not_about_are_left_out():
    rows = checkpoints("v", BY_STEP)
    assert earlier([*rows, *checkpoints("w", {15: 1.0, 160: 1.0})]) == earlier(rows)


def test_the_checkpoints_begin_where_all_that_learn_what_they_saw_have_done_so():
    """v learns at step 20, w never does, u learns at 80 and is no part of the claim."""

    def both(rows: Table) -> Finding:
        return Finding(tuple(at_level(rows, name, 2, low=0.5) for name in "vw"))

    late = [
        r for t, y in BY_STEP.items() for r in checkpoints("v", {t: y}, 0.9 if t >= 20 else 0.5)
    ]
    never = checkpoints("w", BY_STEP, seen=0.1)
    slow = [
        r for t, y in BY_STEP.items() for r in checkpoints("u", {t: y}, 0.9 if t >= 80 else 0.1)
    ]
    assert [step for step, _ in earlier([*late, *never, *slow], both)] == [20, 40, 80]


def test_what_comes_from_no_checkpoint_is_not_assessed_by_checkpoint():
    def ceiling(rows: Table) -> Finding:
        some = accuracy_rows({"v": rows.one(kind="ceiling")["joint"]})
        return Finding((Part("ceiling", accuracy(Table(some), "v", 2), 0.5, 1.0),))

    rows = [*checkpoints("v", BY_STEP), {"kind": "ceiling", "joint": 0.9}]
    assert assess(claim(ceiling), Table(rows), "full", 1.0).verdict == "supported"
    assert earlier(rows, ceiling) == []


@pytest.mark.parametrize("seeds", [2, 4])
def test_too_few_seeds_are_inconclusive_by_every_probe(seeds):
    rows = [r for p, y in BY_PROBE.items() for r in accuracy_rows({"v": y}, seeds, (p,))]
    real = [{"kind": "probe", "probe": p, "joint": 1.0} for p in BY_PROBE]
    assert set(by_other_probes(rows=Table([*rows, *real])).values()) == {"inconclusive"}


def test_seeds_of_the_papers_probe_are_averaged_into_one():
    about = {"kind": "accuracy", "variant": "v", "seed": 0, "step": 1, "composition": "0"}
    rows = [about | {"probe": p, "level": 0, "joint": x, "n": n} for p, x, n in
            (("paper 1", 0.5, 2), ("cnn", 0.9, 3), ("paper 0", 1.0, 4))]  # fmt: skip
    made = averaged(Table(rows).frame)
    assert made["probe"].to_list() == ["cnn", "paper"]
    assert made["joint"].to_list() == [0.9, 0.75]
    assert made["n"].to_list() == [3.0, 3.0]
    assert seeds_of_probe(Table(rows)) == ["paper 0", "paper 1"]
    alone = Table(rows[1:2])
    assert averaged(alone.frame).equals(alone.frame)
    with pytest.raises(NotMeasured, match=r"^no rows of the paper's probe$"):
        with_paper_probe(alone)
    paper = with_paper_probe(Table(rows)).where(probe="paper")
    assert paper.column("joint") == [0.75]
