"""What figures show: every curve, band, bar and dot of rows made by hand, where it is drawn, and
what it is called. Expected numbers are worked out by hand; keys that a case leaves out are not
compared. The larger figures of the theory studies: `test_shipped_figures`."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from figure_reader import drawn, looks_right, read

from recombine.analysis.condition_dependence import Point
from recombine.analysis.paper_curves import PATH
from recombine.analysis.paper_probe import with_paper_probe
from recombine.analysis.table import Table
from recombine.plots import (
    calibrated,
    dependence,
    features,
    interactions,
    label_dropout,
    labels,
    local_scores,
    operator,
    optimizers,
    receptive_field,
    reconstruction,
    repair,
    training,
    two_models,
)
from recombine.plots.style import LEVELS, Figure

HIGH = {"dit": 0.6, "maskgit": 0.1}


def of_paper(name: str) -> tuple[list[float], list[float]]:
    """Updates and level 2 of one of the paper's curves."""
    run = json.loads(PATH.read_text())["runs"][name]
    return run["steps"], run["levels"]["2"]


def score(variant: str, level: int, seed: int, step: int) -> float:
    """Seen 0.9 always. Level 2: nothing at step 10; at 100 each variant's height, seed 1 higher by
    0.2; so the means are 0.7 and 0.2."""
    return 0.9 if level == 0 else (HIGH.get(variant, 0.3) + 0.2 * seed) * (step == 100)


def scored(variants: Any = HIGH, probes: Any = ("open-set", "cnn", "oracle"), **more: Any) -> Table:
    """Accuracy rows, of two seeds at two checkpoints; the colour is right a little more often."""
    rows = []
    for v, p, seed, step, level in product(variants, probes, (0, 1), (10, 100), (0, 2)):
        joint = round(score(v, level, seed, step), 3)
        row = {"kind": "accuracy", "variant": v, "probe": p, "seed": seed, "step": step}
        rows.append(row | {"level": level, "composition": "110" if level else "000"})
        rows[-1] |= {"joint": joint, "color": joint + 0.05, "run": f"{v}{seed}"} | more
    return Table(rows)


def over(level: int, variant: str, label: str, plus: float = 0.0, at: Any = (10, 100)) -> list:
    """The curves of two seeds and their mean, as `score` says."""
    each = [[score(variant, level, s, t) + plus for t in (10, 100)] for s in (0, 1)]
    each.append([sum(values) / 2 for values in zip(*each, strict=True)])
    names = ("", "", label)
    return [(n, list(at), [round(y, 3) for y in ys]) for n, ys in zip(names, each, strict=True)]


STEPS = {"limits": (0, 115, -0.03, 1.03), "scales": ("symlog", "linear")}
STEPS |= {"xticks": {"0": 0, "10": 10, "30": 30, "100": 100}}
MANY = ("a", "b", "dit", "maskgit", "mar", "givt")
PAPERS = ("paper 0", "paper 1", "oracle")


def over_ticks(rows: Table, folder: Path) -> Figure:
    lines = {"dit": {"none": "dit", "wide": "dit, wide"}, "maskgit": {"none": "maskgit"}}
    return training.ends(rows, folder, Figure("ends", "", ""), lines)


def paper_rows(variants: Any) -> Table:
    """Of a probe with two seeds, the second of which reads 0.1 less of everything."""
    some = scored(variants, PAPERS)
    rows = [r | {"joint": max(0.0, r["joint"] - 0.1 * (r["probe"] == "paper 1"))} for r in some]
    classes = ("100", "010", "001")
    seen = [r | {"composition": c} for r in rows if r["composition"] == "000" for c in classes]
    real = [{"kind": "probe", "probe": p, "composition": c, "joint": 0.8 - 0.1 * int(p[-1])}
            for p in PAPERS[:2] for c in ("000", *classes)]  # fmt: skip
    near = [r | {"level": 1, "composition": "111"} for r in rows if r["level"] == 0]
    return Table([*rows, *near, *seen, *real])


def interpolated() -> Table:
    rows = [
        {"kind": "interpolation", "probe": "oracle", "factor": f, "share": x, "joint": 1 - x * z}
        for f, x, z in product(("shape", "size"), (0.0, 0.5, 1.0), (0.6, 0.8))
    ]
    return scored() + Table(rows)


def answers() -> Table:
    """Of the exact model: two worlds, agreement = time for the first and its negative for the
    second; the composition one factor away a tenth of it."""
    rows = [
        {"kind": "answer", "mirrors": "jitter", "prior": p, "world": w, "composition": c,
         "time": t, "agreement": t * (1 if w == "none" else -1) * (1 if c == "111" else 0.1)}
        for p, w, c, t in product(interactions.TITLES, ("none", "wide"), ("111", "101"), (0.5, 1.0))
    ]  # fmt: skip
    rows += [
        {"kind": "end", "mirrors": "jitter-by-factor", "prior": p, "world": w, "composition": c,
         "agreement": round(0.1 * i + 0.01 * j - 0.2 * k, 3)}
        for k, p in enumerate(interactions.TITLES)
        for i, c in enumerate(interactions.COMPOSITIONS)
        for j, w in enumerate(("none", "all"))
    ]  # fmt: skip
    rows += [
        {"kind": "pace", "prior": p, "composition": c, "spread": s, "time": 1 / s}
        for p, c, s in product(interactions.TITLES, ("101", "111"), (0.4, 0.1))
    ]
    return Table(rows)


def added() -> Table:
    """Sums of parts over three backgrounds: two seeds, share 1 and then 0.2 or 0.4; conditioned at
    once, half of it. Two objects of three locations."""
    real = [{"kind": "real", "locations": k, "full_recall": 1 - k / 10} for k in (1, 3)]
    rows = [*real, *({"kind": "variant", "variant": v, "trained": 1, "strict": 1} for v in BACK)]
    for v, kind, seed, k in product(BACK, ("added", "count"), (0, 1), (1, 3)):
        share = (1.0 if k == 1 else 0.2 + 0.2 * seed) * (1 if kind == "added" else 0.5)
        rows.append({"kind": kind, "variant": v, "seed": seed, "step": 9, "locations": k,
                     "matched": share, "recall": share / 2, "total": 2.0})  # fmt: skip
    for v, seed, sigma in product(BACK, (0, 1), (10.0, 0.5)):
        rows.append({"kind": "leakage", "variant": v, "seed": seed, "sigma": sigma,
                     "own": 2.0, "leakage": 0.1 + 0.2 * seed})  # fmt: skip
    return Table(rows)


BACK = operator.MODELS
SUMS = [("", [1, 3], [1, 0.2]), ("", [1, 3], [1, 0.4]), ("empty", [1, 3], [1, 0.3])]
HALF = [("", [1, 3], [0.5, 0.1]), ("", [1, 3], [0.5, 0.2]), ("at once", [1, 3], [0.5, 0.15])]
NAMED = ["empty", "unconditional (Bayes)", "cluttered"]


def reaches() -> Table:
    """Exp 3L at reaches 1 and 2, of two seeds: K_max 1 and 2, then 3 and 3 of 4 locations; one
    object too many where there are four. Of objects 0.6 fit, then all; patches too full: 0.1 and
    0.3. Of four locations so many are located as K_max says."""
    rows = [{"kind": "detector", "objects": k, "exact_count": 1.0} for k in range(5)]
    for reach, seeds in ((1, (1, 2)), (2, (3, 3))):
        same = {"variant": f"exp3L, reach {reach}", "base": "exp3L", "reach": reach}
        rows.append({"kind": "variant", "variant": same["variant"], "trained": 2, "strict": 1})
        rows.append({"kind": "fit", **same, "inside": (0.6, 1.0)[reach - 1]})
        rows += [{"kind": "overfull", **same, "locations": 4, "share": (0.1, 0.3)[reach - 1]}]
        for (seed, far), k in product(enumerate(seeds), range(1, 5)):
            row = {"kind": "count", "variant": same["variant"], "seed": seed, "step": 1, "n": 4}
            row |= {"locations": k, "matched": float(k <= far), "total": k + float(k == 4)}
            rows.append(row | {"recall": min(1.0, far / k)})
    return Table(rows)


def searched() -> Table:
    """A family with two rates and two seeds; the second rate has the lower held-out loss, reads
    higher on what was seen, lower at level 1 and not at all at level 2."""
    rows = []
    for (rate, seen, loss), seed in product(((0.0001, 0.7, 0.5), (0.001, 0.9, 0.2)), (0, 1)):
        about = {"variant": f"dit, {rate:g}, not clipped", "seed": seed, "step": 1}
        rows.append({"kind": "held-out loss", "loss": loss + 0.1 * seed, **about})
        levels = (
            ("oracle", 0, seen),
            ("paper", 1, 1 - seen),
            ("paper", 2, 0.8 if rate < 1e-3 else 0),
        )
        for probe, level, joint in levels:
            read = {"probe": probe, "level": level, "joint": round(joint, 3)}
            rows.append({"kind": "accuracy", **read, **about})
    return Table(rows)


def ceilings() -> Table:
    """Two tokenizers at three levels: 0.9 less 0.2 a level; seed 1 of the second 0.1 less. Real
    pictures 0.95 less 0.1 a level, by the second seed of the paper's probe 0.1 less."""
    probes, levels = ("oracle", "paper 0", "paper 1"), (0, 1, 2)
    rows = [
        {"variant": v, "probe": p, "level": k, "seed": s,
         "joint": round(0.9 - 0.2 * k - 0.1 * s * (v == "vq, seen"), 3)}
        for v, p, k, s in product(("vae, all", "vq, seen"), probes, levels, (0, 1))
    ]  # fmt: skip
    rows += [{"variant": "real pictures", "probe": p, "level": k,
              "joint": round(0.95 - 0.1 * k - 0.1 * (p == "paper 1"), 3)}
             for p, k in product(probes, levels)]  # fmt: skip
    return Table([{"kind": "ceiling", "composition": str(row["level"]), **row} for row in rows])


def feature_rows() -> Table:
    rows = [{"kind": "pixels", "seed": s, "t": t, "share": t / 2 + s / 10, "even": 0.14}
            for s, t in product((0, 1), (0.2, 0.8))]  # fmt: skip
    rows += [{"kind": "word", "how": "word", "position": i, "word": w, "seed": s, "t": t,
              "first": t + i + s / 5, "second": t}
             for (i, w), s, t in product(enumerate(("a", "dog")), (0, 1), (0.2, 0.8))]  # fmt: skip
    rows += [{"kind": "concepts", "seed": s, "space_of": n, "within": 0.5 + s / 10, "between": -0.1}
             for s, n in product((0, 1), ("pixels", "up.1.transformer"))]  # fmt: skip
    return Table(rows)


def losses() -> Table:
    parts = {"output_loss": 1.0, "error": 0.5, "spread": 0.25}
    return Table([
        {"kind": "auxiliary loss", "variant": v, "seed": s, "step": t, "layer": k}
        | {name: x * (1 + k) / t + s for name, x in parts.items()}
        for v, s, t, k in product(("jepa", "repaired"), (0, 1), (2, 1), (0, 1))
    ])  # fmt: skip


def noised() -> Table:
    each = ((0.1, 1.01, 0.1), (1.0, 0.98, 0.5), (10.0, 1.0, 0.2))
    return Table([{"kind": "kl", "sigma": s, "kl": 1 / s, "integral": 2 / s, "ratio": r,
                   "error": 3 / s, "relative": z} for s, r, z in each])  # fmt: skip


SIGMA = [0.1, 1, 10]
CASES: dict[str, tuple[Any, tuple, list[dict[str, Any]]]] = {
    "levels": (training.levels, (scored(),), [
        STEPS | {"title": "DiT", "labels": ("updates", "joint accuracy"), "legend": [],
                 "lines": over(0, "dit", "seen") + over(2, "dit", "level 2"),
                 "inks": ["#56c1ff"] * 3 + ["#ed220d"] * 3},
        STEPS | {"title": "MaskGIT", "legend": ["seen", "level 2"], "labels": ("updates", ""),
                 "lines": over(0, "maskgit", "seen") + over(2, "maskgit", "level 2")},
    ]),
    "other probes": (training.others, (scored(),), [
        {"title": "DiT: CNN probe", "labels": ("", "joint accuracy")},
        {"title": "MaskGIT: CNN probe", "legend": ["seen", "level 2"]},
        {"title": "DiT: oracle", "labels": ("updates", "joint accuracy")},
        STEPS | {"title": "MaskGIT: oracle", "labels": ("updates", ""), "legend": [],
                 "lines": over(0, "maskgit", "seen") + over(2, "maskgit", "level 2")},
    ]),
    "late means of many": (training.others, (scored(MANY),), [
        {"labels": ("accuracy at level 2, late mean", ""), "limits": (-0.03, 1.03, 5.5, -0.5),
         "yticks": {"a": 0, "b": 1, "DiT": 2, "MaskGIT": 3, "MAR": 4, "GIVT": 5},
         "legend": ["open-set probe", "CNN probe", "oracle"],
         "points": [p for shift in (-0.233, 0, 0.233) for y, (low, high) in enumerate(
             ((0.3, 0.5), (0.3, 0.5), (0.6, 0.8), (0.1, 0.3), (0.3, 0.5), (0.3, 0.5)))
             for p in ([(low, round(y + shift, 3)), (high, round(y + shift, 3))],
                       [(round((low + high) / 2, 3), round(y + shift, 3))])],
         "lines": [("", [0, 1], [y + 0.5] * 2) for y in range(5)]},
    ]),
    "factor by factor": (training.factors, (scored(),), [
        STEPS | {"title": "DiT", "labels": ("updates", "accuracy"), "legend": [],
                 "lines": over(2, "dit", "color", 0.05) + over(2, "dit", "joint"),
                 "inks": ["#0072b2"] * 3 + ["#7a7f87"] * 3},
        STEPS | {"title": "MaskGIT", "legend": ["color", "joint"]},
    ]),
    "factors of many": (training.factors, (scored(MANY),), [
        {"legend": ["color", "joint"], "labels": ("accuracy at level 2, late mean", "")},
    ]),
    "tolerances": (training.tolerances, (interpolated(),), [
        {"title": "oracle", "labels": ("distance from it", "read as the first composition"),
         "limits": (0, 1, -0.03, 1.03), "legend": ["shape", "size"], "lines": [
             ("shape", [0, 0.5, 1], [1, 0.65, 0.3]), ("size", [0, 0.5, 1], [1, 0.65, 0.3]),
             ("", [0, 1], [0.5, 0.5])]},
    ]),
    "late means over ticks": (over_ticks, (scored(("dit", "maskgit", "dit, wide")),), [
        {"title": "open-set probe", "labels": ("", "accuracy at level 2"),
         "xticks": {"none": 0, "wide": 1},
         "lines": [("", [-0.015, 0.985], [0.7, 0.4]), ("", [0.015], [0.2])],
         "points": [[(-0.015, 0.6), (-0.015, 0.8)], [(0.985, 0.3), (0.985, 0.5)],
                    [(0.015, 0.1), (0.015, 0.3)]],
         "texts": [("MaskGIT", 1, 0.2), ("DiT", 1, 0.4)]},
        {"title": "oracle", "limits": (-0.065, 1.035, -0.03, 1.03), "labels": ("", "")},
    ]),
    "level 2 by the paper's probe": (calibrated.level_two, (paper_rows(("dit", "givt, wide")),), [
        {"title": "GIVT", "labels": ("", "level 2, paper's probe"), "lines": [
            ("wide", [10, 100], [0, 0.35]), ("the paper", *of_paper("givt"))]},
        {"title": "DiT", "labels": ("", ""), "limits": (1.25, 32775, -0.03, 1.03),
         "bands": [([10, 100], [0, 0.6], [0, 0.7])], "xticks": {
             "10": 10, "100": 100, "1k": 1000, "10k": 10000},
         "lines": [("base", [10, 100], [0, 0.65]), ("the paper", *of_paper("diffusion_token"))]},
        {"labels": ("updates", "level 2, oracle"), "legend": ["wide", "the paper"]},
        {"lines": [("", [10, 100], [0, 0.7])], "legend": ["base", "the paper"],
         "title": "", "scales": ("symlog", "linear")},
    ]),
    "gate": (calibrated.gate, (paper_rows(("dit",)),), [
        {"labels": ("", "read as labelled"),
         "legend": ["in the paper", "real pictures", "DiT here"],
         "xticks": {"large red circle": 0, "large red triangle": 1, "large blue circle": 2,
                    "small red circle": 3},
         "bars": [(round(k + 0.27 * i - 0.122, 3), round(k + 0.27 * i + 0.121, 3), 0, y)
                  for i, ys in ((-1, (0.757, 0.765, 0.744, 0.896)), (0, [0.75] * 4), (1, [0.85] * 4))
                  for k, y in enumerate(ys)],
         "points": [[(round(k + 0.27 * i, 3), y) for y in some] for i, each in
                    ((-1, ([0.757], [0.765], [0.744], [0.896])), (0, [[0.8, 0.7]] * 4),
                     (1, [[0.85, 0.85]] * 4)) for k, some in enumerate(each)]},
    ]),
    "what dropout costs": (label_dropout.what_it_costs, (with_paper_probe(paper_rows(("dit", "dit, dropout"))),), [
        {"title": "seen", "labels": ("", "share of samples read as prompted"), "xticks": {"DiT": 0},
         "limits": (-0.349, 0.349, -0.03, 1.03), "lines": [
             ("", [-0.188] * 2, [0.85, 0.85]), ("all labels given", [-0.318, -0.058], [0.85] * 2),
             ("", [0.188] * 2, [0.85, 0.85]),
             ("each label left out in 10 %", [0.058, 0.318], [0.85] * 2)]},
        {"title": "one factor away (level 1)"},
        {"title": "two factors away (level 2)", "lines": [
            ("", [-0.188] * 2, [0.55, 0.75]), ("all labels given", [-0.318, -0.058], [0.65] * 2),
            ("", [0.188] * 2, [0.25, 0.45]),
            ("each label left out in 10 %", [0.058, 0.318], [0.35] * 2), ("the paper", [-0.45], [0.848])]},
        {"title": "level 2 by the oracle", "inks": ["#0072b2"] * 2 + ["#d55e00"] * 2},
    ]),
    "all levels beside the paper": (label_dropout.beside_paper, (with_paper_probe(paper_rows(("dit", "dit, dropout"))),), [
        {"title": "seen", "labels": ("updates", "DiT"), "scales": ("symlog", "linear")},
        {"title": "one factor away (level 1)", "labels": ("updates", "")},
        {"title": "two factors away (level 2)", "limits": (1.25, 32775, -0.03, 1.03), "lines": [
            ("", [10, 100], [0, 0.55]), ("", [10, 100], [0, 0.75]),
            ("all labels given", [10, 100], [0, 0.65]),
            ("", [10, 100], [0, 0.25]), ("", [10, 100], [0, 0.45]),
            ("each label left out in 10 %", [10, 100], [0, 0.35]),
            ("the paper", *of_paper("diffusion_token"))]},
    ]),
    "levels beside the paper's": (labels.beside_the_paper, (
        with_paper_probe(paper_rows(("classes", "zero"))), ["classes", "zero"]), [
        {"title": "classes", "labels": ("updates", "accuracy"), "legend": [],
         "limits": (1.25, 104880, -0.03, 1.03), "scales": ("symlog", "linear"),
         "xticks": {"10": 10, "100": 100, "1k": 1000, "10k": 10000}},
        {"title": "zero", "labels": ("updates", ""), "legend": [], "limits": (1.25, 115, -0.03, 1.03)},
    ]),
    "learned and lost": (labels.figures, (paper_rows(("classes", "values")),), [
        {"title": "balanced values", "labels": ("updates", "share"), "lines": [
            ("", [10, 100], [0, 0.25]), ("", [10, 100], [0, 0.45]), ("", [10, 100], [0, 0.35])]},
        {"title": "classes", "limits": (5.5, 104.5, -0.03, 1.03), "inks": ["#0072b2"] * 3},
    ]),
    "parts of the loss": (repair.parts_of_the_loss, (losses(),), [
        {"title": "loss on the output", "labels": ("updates", ""), "lines": [
            ("MaskGIT + JEPA", [1, 2], [2, 1.25]), ("repaired", [1, 2], [2, 1.25])]},
        {"title": "error of the prediction", "lines": [
            ("MaskGIT + JEPA", [1, 2], [1.25, 0.875]), ("repaired", [1, 2], [1.25, 0.875])]},
        {"title": "spread of what is predicted", "legend": ["MaskGIT + JEPA", "repaired"],
         "inks": ["#0072b2", "#d55e00"], "limits": (0.95, 2.05, 0, 0.884)},
    ]),
    "ceilings": (reconstruction.figures, (ceilings(),), [
        {"title": "oracle", "xticks": {"VAE\ntrained\non all": 0, "VQ\ntrained\non seen": 1},
         "labels": ("", "share read as labelled"),
         "bars": [(-0.38, -0.14, 0, 0.9), (0.62, 0.86, 0, 0.85), (-0.12, 0.12, 0, 0.7),
                  (0.88, 1.12, 0, 0.65), (0.14, 0.38, 0, 0.5), (1.14, 1.38, 0, 0.45)],
         "lines": [("", [-0.26] * 2, [0.9, 0.9]), ("", [-0.39, -0.13], [0.95] * 2),
                   ("", [0.74] * 2, [0.9, 0.8]), ("", [0.61, 0.87], [0.95] * 2),
                   ("", [0, 0], [0.7, 0.7]), ("", [-0.13, 0.13], [0.85] * 2),
                   ("", [1, 1], [0.7, 0.6]), ("", [0.87, 1.13], [0.85] * 2),
                   ("", [0.26] * 2, [0.5, 0.5]), ("", [0.13, 0.39], [0.75] * 2),
                   ("", [1.26] * 2, [0.5, 0.4]), ("", [1.13, 1.39], [0.75] * 2),
                   ("real pictures", [], [])]},
        {"title": "paper's linear probe, mean over its seeds",
         "legend": ["real pictures", "seen", "level 1", "level 2"]},
    ]),
    "beside theory": (two_models.beside_theory,
                      (scored(("none", "wide")) + answers().where(kind="answer", prior="apart"),), [
        {"title": "trained U-Nets", "labels": ("updates", "accuracy"),
         "lines": [("", [10, 100], ys) for _ in range(2) for ys in
                   ([0.9, 0.9], [0, 0.3], [0.9, 0.9], [0, 0.5])],
         "texts": [("none", 100, 0.5), ("wide", 100, 0.5)]},
        {"title": "exact model", "labels": ("time", "agreement with the prompt"),
         "scales": ("log", "linear"), "texts": [("none", 1, 1), ("wide", 1, -1)],
         "lines": [("", [0.5, 1], [0.5, 1]), ("", [0.5, 1], [-0.5, -1]), ("", [0, 1], [0, 0])]},
    ]),
    "condition dependence": (dependence.scatter, ([
        Point("dit", 0, 1, 0.3, 0.5, 0.7), Point("dit", 0, 2, 0.4, 0.6, 0.8),
        Point("givt", 0, 2, 0.1, 0.2, 0.3)],), [
        {"labels": ("sparse: share of the strongest condition at each place",
                    "level 2, joint accuracy"),
         "points": [[(0.3, 0.7), (0.4, 0.8)], [(0.1, 0.3)]], "legend": []},
        {"labels": ("additive: 1 - interactions / effects", ""), "legend": ["DiT", "GIVT"],
         "points": [[(0.5, 0.7), (0.6, 0.8)], [(0.2, 0.3)]]},
    ]),
    "by jitter": (interactions.by_amount, (answers(),), [
        {"title": title, "limits": (0.483, 1.035, -1.03, 1.06), "scales": ("log", "linear"),
         "legend": ["none", "wide"] if i == 2 else [],
         "labels": ("time", "" if i else "agreement with the prompt"),
         "lines": [("", [0.5, 1], [0.05, 0.1]), ("none", [0.5, 1], [0.5, 1]),
                   ("", [0.5, 1], [-0.05, -0.1]), ("wide", [0.5, 1], [-0.5, -1]),
                   ("", [0, 1], [0.5, 0.5])]}
        for i, title in enumerate(interactions.TITLES.values())
    ]),
    "by factor": (interactions.by_factor, (answers(),), [
        {"title": title, "xticks": {"none": 0, "all": 1},
         "image": [[[round(0.1 * i + 0.01 * j - 0.2 * k, 3) for j in (0, 1)] for i in range(4)]],
         "texts": [(f"{0.1 * i + 0.01 * j - 0.2 * k:.2f}".replace("-0.00", "0.00"), j, i)
                   for i in range(4) for j in (0, 1)]}
        for k, title in enumerate(interactions.TITLES.values())
    ]),
    "pace": (interactions.pace, (answers(),), [
        {"scales": ("log", "log"), "xticks": {"0.05": 0.05, "0.1": 0.1, "0.2": 0.2, "0.5": 0.5},
         "lines": [(name, [0.4, 0.1], [2.5, 10]) for t in interactions.TITLES.values()
                   for name in (t, "")] + [("", [0.4, 0.025], [1.5, 384]),
                                           ("", [0.4, 0.025], [1.5, 98304])]},
    ]),
    "backgrounds": (operator.backgrounds, (added(),), [
        {"title": "pictures as prompted", "labels": ("locations", "share of pictures"),
         "lines": [line for name in NAMED for line in (*SUMS[:2], (name, *SUMS[2][1:]))]
         + [("real pictures", [1, 3], [0.9, 0.7]), ("", [0, 1], [0.5, 0.5])]},
        {"title": "recall", "lines": [(n, x, [y / 2 for y in ys]) for name in NAMED for n, x, ys in
                                      (*SUMS[:2], (name, *SUMS[2][1:]))]},
        {"title": "objects in the picture", "labels": ("locations", "mean number"),
         "legend": [*NAMED, "real pictures"], "xticks": {"1": 1, "3": 3},
         "lines": [(n, [1, 3], [2, 2]) for name in NAMED for n in ("", "", name)]
         + [("", [1, 3], [1, 3])]},
    ]),
    "at once": (operator.at_once, (added(),), [
        {"title": name, "legend": ["added", "at once"], "limits": (0.9, 3.1, -0.03, 1.03),
         "lines": [*SUMS[:2], ("added", *SUMS[2][1:]), *HALF, ("", [0, 1], [0.5, 0.5])]}
        for name in NAMED
    ]),
    "leakage": (operator.leakage, (added(),), [
        {"title": "leakage of one part", "labels": ("noise (sigma)", "other object - no condition"),
         "lines": [(n, [0.5, 10], [0.2, 0.2]) for n in NAMED] + [("", [0, 1], [0, 0])],
         "scales": ("log", "linear"), "xticks": {"0.5": 0.5, "10": 10}},
        {"legend": NAMED, "lines": [("", [0.5, 10], [y, y]) for _ in NAMED for y in (1.1, 1.3)]
         + [("", [0, 1], [1, 1])]},
    ]),
    "reach": (receptive_field.reach, (reaches(),), [
        {"labels": ("reach of a patch, in cells", "K_max"), "limits": (0.876, 2.054, -0.2, 4.7),
         "lines": [
            ("", [0.93, 0.93], [1, 2]), ("", [1.93, 1.93], [3, 3]),
            ("Exp 3L, tokens", [1, 2], [1.5, 3]), ("", [0, 1], [2, 2])]},
        {"labels": ("reach of a patch, in cells", "share"), "xticks": {"1": 1, "2": 2}, "lines": [
            ("objects cut", [1, 2], [0.4, 0]), ("patches too full, Exp 3L", [1, 2], [0.1, 0.3])]},
        {"labels": ("patches too full", "of 4 locations missed"),
         "texts": [("1", 0.1, 0.625), ("2", 0.3, 0.25)], "lines": [
             ("", [0.1] * 2, [0.75, 0.5]), ("", [0.3] * 2, [0.25, 0.25]),
             ("Exp 3L, tokens", [0.1, 0.3], [0.625, 0.25])]},
    ]),
    "rates": (optimizers.by_rate, (searched(),), [
        {"title": "DiT", "legend": ["seed 0", "seed 1", "not clipped", "clipped", "mean"],
         "lines": [
            ("", [1e-4, 1e-3], [0.5, 0.2]), ("", [1e-4, 1e-3], [0.6, 0.3]),
            ("", [1e-4, 1e-3], [0.55, 0.25]), ("", [1e-3], [0.25]), ("", [1e-4], [0.55])]},
        *({"labels": (x, name), "scales": ("log", "linear"), "lines": [
            *[("", [1e-4, 1e-3], [low, high])] * 3, ("", [1e-3], [high]), ("", [1e-4], [low])]}
          for x, name, low, high in (
              ("", "seen", 0.7, 0.9), ("", "level 1", 0.3, 0.1),
              ("learning rate", "level 2", 0.8, 0.0))),
    ]),
    "pixels": (features.locality, (feature_rows(),), [
        {"limits": (0.17, 0.83, 0, 1.02), "labels": ("noise level t", "share nearby"), "lines": [
            ("seed 0", [0.2, 0.8], [0.1, 0.4]), ("seed 1", [0.2, 0.8], [0.2, 0.5]),
            ("", [0, 1], [0.14, 0.14])], "legend": ["seed 0", "seed 1"]},
    ]),
    "words": (features.words, (feature_rows(),), [
        {"title": "word left out", "labels": ("change of the output", ""),
         "legend": ["first place", "second place"], "lines": [
            ("", [0.5, 0.7], [-0.2, -0.2]), ("", [1.5, 1.7], [0.8, 0.8]),
            ("", [0.5, 0.5], [0.2, 0.2]), ("", [0.5, 0.5], [1.2, 1.2])]},
        {"title": "all words", "legend": ["t = 0.2", "t = 0.8"], "scales": ("log", "log"),
         "labels": ("change at the first place", "change at the second place"), "lines": [
            ("t = 0.2", [0.2, 0.4, 1.2, 1.4], [0.2] * 4),
            ("t = 0.8", [0.8, 1.0, 1.8, 2.0], [0.8] * 4), ("", [0.2, 2], [0.2, 2])]},
    ]),
    "concepts": (features.concepts, (feature_rows(),), [
        {"xticks": {"pixels": 0, "up.1": 1}, "limits": (-0.05, 1.05, -0.3, 1.02), "lines": [
            ("", [0, 1], [0.5, 0.5]), ("", [0, 1], [0.6, 0.6]), ("within", [0, 1], [0.55, 0.55]),
            *[("", [0, 1], [-0.1, -0.1])] * 2, ("between", [0, 1], [-0.1, -0.1]),
            ("", [0, 1], [0, 0])], "legend": ["within", "between"]},
    ]),
    "noise and its account": (local_scores.kl, (noised(),), [
        {"title": "KL that is left (nats)", "scales": ("log", "log"), "labels": ("noise σ", ""),
         "lines": [("KL(p, q) at noise σ", SIGMA, [10, 1, 0.1]),
                   ("½ score error above σ", SIGMA, [20, 2, 0.2])],
         "texts": [("largest difference 2.0 %", 0.04, 0.08)]},
        {"title": "score error", "texts": [("peak at σ = 1", 1, 0.5)], "lines": [
            ("$E\\,|s_p - s_q|^2$", SIGMA, [30, 3, 0.3]),
            ("the same over $E\\,|s_p|^2$", SIGMA, [0.1, 0.5, 0.2]), ("", [1], [0.5])]},
    ]),
}  # fmt: skip


def same(found: Any, wanted: Any) -> bool:
    """The same words, and numbers to a few thousandths."""
    if isinstance(wanted, list | tuple):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    if isinstance(wanted, dict):
        return same(list(found.items()), list(wanted.items()))
    return found == wanted if isinstance(wanted, str) else abs(found - wanted) <= 2e-3


@pytest.mark.parametrize("name", CASES)
def test_a_figure_shows_its_rows(name):
    make, given, expected = CASES[name]
    drawing = list(drawn(make, *given).values())[-1]
    looks_right(drawing)
    panels = [read(axis) for axis in drawing.axes]
    assert len(panels) == len(expected)
    for panel, wanted in zip(panels, expected, strict=True):
        for key, value in wanted.items():
            assert same(panel[key], value), (key, panel[key], value)


def test_the_papers_curves_are_dashed_in_the_colours_of_their_levels():
    rows = with_paper_probe(paper_rows(("values, raw", "values, zero")))
    drawing = drawn(labels.beside_the_paper, rows, ["values, raw", "values, zero"])["levels"]
    paper, none = ([x for x in axis.lines if x.get_linestyle() == "--"] for axis in drawing.axes)
    run = json.loads(PATH.read_text())["runs"]["DiT_cont_label_sec_run"]
    assert [list(line.get_ydata()) for line in paper] == [run["levels"][str(k)] for k in range(3)]
    assert [line.get_color() for line in paper] == list(LEVELS[:3])
    assert none == []
    named = [text.get_text() for text in drawing.legends[0].get_texts()]
    assert named == ["seen", "level 1", "level 2", "the paper"]
    titles = [axis.get_title(loc="left") for axis in drawing.axes]
    assert titles == ["raw values", "balanced values, zeros"]
