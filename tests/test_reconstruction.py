"""The study `reconstruction`: its tokenizers are those of `label-dropout`, real pictures are read
beside their reconstructions, and its claim follows from rows."""

from itertools import product

import pytest
import torch
from level_rows import regions, verdict

from recombine.analysis import reconstruction as claims
from recombine.analysis.table import Table
from recombine.metrics.probes import score
from recombine.pipeline.executor import execute, obtain
from recombine.pipeline.job import ancestors, digest_of, folder_of
from recombine.rng import seeded
from recombine.runs.models import ModelRun
from recombine.runs.probes import ProbeCheck
from recombine.runs.tokenizers import CeilingRun, TokenizerRun
from recombine.runtime import Runtime
from recombine.store import Row
from recombine.studies import label_dropout, reconstruction
from recombine.worlds.shapes2d import Shapes2D

QUIET = Runtime(torch.device("cpu"))
SCALES = ("smoke", "laptop", "full")


def tasks(study, kind, scale="full", seeds=5) -> dict[tuple, object]:
    """The tasks of a kind by variant and seed."""
    jobs = study.jobs(study.settings(scale), seeds)
    found = [(dict(j.labels), j.task) for j in jobs if isinstance(j.task, kind)]
    return {(labels.get("variant"), labels.get("seed")): task for labels, task in found}


@pytest.mark.parametrize("scale", ["smoke", "full"])
def test_tokenizers_are_the_runs_of_label_dropout(scale):
    mine = tasks(reconstruction, CeilingRun, scale)
    theirs, models = (tasks(label_dropout, kind, scale) for kind in (CeilingRun, ModelRun))
    pairs = product((("vq, all", "dit"), ("vae, all", "dit on vae")), range(5))
    for (kind, model), seed in pairs:
        task = mine[kind, seed]
        assert digest_of(task) == digest_of(theirs[model, seed]), "the check, too, is one run"
        trained = {digest_of(p) for p in models[model, seed].parents()}
        assert digest_of(task.tokenizer) in trained


def test_what_is_trained_at_full_scale():
    jobs = reconstruction.jobs(reconstruction.settings("full"), 5)
    trained = [t for t in ancestors(j.task for j in jobs) if isinstance(t, TokenizerRun)]
    assert len({digest_of(t) for t in trained}) == 3 * 2 * 5
    assert not [t for t in ancestors(j.task for j in jobs) if isinstance(t, ModelRun)]
    assert {t.world for t in trained} == {Shapes2D(wander=0.3).calibrated()}
    other = label_dropout.jobs(label_dropout.settings("full"), 5)
    shared = {digest_of(t) for t in ancestors(j.task for j in other)}
    assert len([t for t in trained if digest_of(t) not in shared]) == 20
    checks = [j for j in jobs if isinstance(j.task, ProbeCheck)]
    assert [digest_of(j.task) in shared for j in checks] == [True]


@pytest.mark.parametrize("scale", SCALES)
def test_tokenizers_differ_in_bottleneck_and_data_alone(scale):
    made = reconstruction.settings(scale).variants()
    assert tuple(made) == claims.VARIANTS
    kinds = {name: (r.tokenizer.name, r.tokenizer.data) for name, r in made.items()}
    assert kinds == {name: tuple(name.split(", ")) for name in made}
    for name, seed in product(made, range(2)):
        task = tasks(reconstruction, CeilingRun, scale, 2)[name, seed].tokenizer
        assert len(task.compositions) == (8 if name.endswith("all") else 4)
        assert task.tokenizer.seed == seed


def test_whole_seeds_come_first():
    jobs = reconstruction.jobs(reconstruction.settings("smoke"), 3)
    seeds = [dict(j.labels)["seed"] for j in jobs if "seed" in dict(j.labels)]
    assert seeds == sorted(seeds)
    assert len(jobs) == 2 + 3 * 6


@pytest.mark.slow
def test_real_pictures_are_those_that_are_encoded(tmp_path):
    task = tasks(reconstruction, CeilingRun, "smoke", 1)[claims.REAL, None]
    assert task.tokenizer is None
    for parent in task.parents():
        execute(parent, tmp_path, QUIET)
    execute(task, tmp_path, QUIET)
    rows = Table(folder_of(task, tmp_path).rows()).where(kind="ceiling")
    assert set(rows.column("mse")) == {0.0}
    probe = obtain(task.parents()[-1], tmp_path, QUIET)
    index = torch.tensor([(1, 1, 1)] * task.count)
    images = task.probe_world.render(index, seeded("ceiling", "111")).images
    read = score(probe, images, (1, 1, 1), task.probe_world.space)["joint"]
    assert rows.one(probe=probe.name, composition="111")["joint"] == read


def read_rows(
    on_all: float, on_seen: float, real: float | None = 0.9, seeds: int = 5, **kinds: float
) -> list[Row]:
    """Level 2 by the oracle; the paper's probe reads 0.1 less, its two seeds 0.1 apart. `kinds`:
    those whose tokenizers, trained on the seen alone, are read otherwise."""
    heights = {(f"{k}, all", s): on_all for k in claims.KINDS for s in range(seeds)}
    heights |= {
        (f"{k}, seen", s): kinds.get(k, on_seen) for k in claims.KINDS for s in range(seeds)
    }
    heights |= {} if real is None else {(claims.REAL, None): real}
    probes = {"oracle": 0.0, "paper 0": -0.15, "paper 1": -0.05, "open-set": -0.9}
    return [
        {"kind": "ceiling", "variant": v, "seed": s, "probe": p, "level": level}
        | {"composition": str(level), "joint": max(0.0, y + more - 0.01 * (2 - level))}
        for (v, s), y in heights.items()
        for p, more in probes.items()
        for level in range(3)
    ]


def given(rows: list[Row]) -> str:
    return verdict(reconstruction.STUDY, "D10", rows)


def test_the_verdict_compares_with_real_pictures():
    assert given(read_rows(0.88, 0.1)) == "supported"
    assert given(read_rows(0.88, 0.1, real=1.0)) == "partly supported", "0.12 below real pictures"
    assert given(read_rows(0.5, 0.1, real=0.5)) == "supported"


def test_the_verdict_needs_every_kind_and_five_seeds():
    assert given(read_rows(0.88, 0.1, vae=0.8)) == "partly supported"
    assert given(read_rows(0.4, 0.4)) == "contradicted"
    assert given(read_rows(0.88, 0.1, seeds=3)) == "inconclusive"
    assert given(read_rows(0.8, 0.6)) == "inconclusive", "intervals over both borders"


def test_nothing_is_said_of_what_was_not_run():
    assert given(read_rows(0.88, 0.1, real=None)) == "not measured"
    whole = read_rows(0.88, 0.1)
    assert given([r for r in whole if r["variant"] != "fsq, seen"]) == "not measured"
    assert given([r for r in whole if r["probe"] != "oracle"]) == "not measured"
    other = [r for r in whole if r["variant"] != "vq, seen" or r["seed"] != 4]
    assert given(other) == "not measured", "a seed is missing"
    assert given([]) == "not measured"


def test_regions_and_what_stands_beside():
    found = claims.seen_alone_caps.measure(Table(read_rows(0.85, 0.25)))
    each = [regions(found)[i : i + 2] for i in (0, 2, 4)]
    assert each == [
        [
            (f"{kind}, all - seen, level 2", 0.2, 1.0, False),
            (f"{kind}, all - real pictures, level 2", -0.1, 1.0, False),
        ]
        for kind in ("vae", "vq", "fsq")
    ]
    assert [p.estimate.value for p in found.parts[:2]] == pytest.approx([0.6, -0.05])
    assert found.parts[1].estimate.inside(-0.9, 0.1), "no further than rates go"
    shown = found.measured
    assert shown["primary probe"] == "oracle"
    assert shown["real pictures, level 2"] == pytest.approx(0.9)
    assert shown["real pictures, level 0"] == pytest.approx(0.88)
    assert shown["fsq, seen, level 1"] == pytest.approx(0.24)
    assert shown["real pictures, level 2, paper's probe"] == pytest.approx(0.8)
    assert shown["vq, all, level 2, paper's probe"] == pytest.approx(0.75)
    assert len(shown) == 1 + 4 * 7


def test_readings_that_are_missing_are_named():
    rows = Table([{"variant": "vq, all", "seed": s, "level": 2, "joint": x} for s, x in
                  ((1, 0.5), (0, 0.25), (1, 1.0))])  # fmt: skip
    assert claims.per_seed(rows, "vq, all", 2) == {0: 0.25, 1: 0.75}
    with pytest.raises(LookupError, match=r"^no readings of fsq$"):
        claims.per_seed(rows, "fsq", 2)
    with pytest.raises(LookupError, match=r"^no rows at level 1$"):
        claims.mean_of(rows, "vq, all", 1)
