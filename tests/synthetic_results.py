"""A small results folder, as a study would leave it (eight compositions, three seeds, twelve
checkpoints, rendered shapes), and one as a stranger might send it."""

import itertools
import json
import math
import random
import re
from pathlib import Path

from PIL import Image, ImageDraw

from recombine.analysis.table import Table, read_table, write_table

FACTORS = [
    {"name": "shape", "values": ["circle", "triangle"]},
    {"name": "color", "values": ["red", "blue"]},
    {"name": "size", "values": ["large", "small"]},
]
CODES = ["".join(c) for c in itertools.product("01", repeat=3)]
LEVELS = {code: max(0, code.count("1") - 1) for code in CODES}
STEPS = [0, 50, 100, 200, 400, 800, 1500, 3000, 6000, 9000, 12000, 20000]
VARIANTS = {"dit": 0.97, "maskgit": 0.02}
CELL, COLUMNS = 28, 8


def make_results(directory: Path) -> Path:
    """Two studies: one trained (with samples), one of theory alone."""
    trained(directory)
    theory(directory)
    return directory


def trained(directory: Path) -> Path:
    runs = [
        {"digest": digest(v, s), "label": f"{v}, seed {s}", "variant": v, "seed": s}
        for v in VARIANTS
        for s in range(3)
    ]
    rows = [row for run in runs for row in accuracy_rows(run)]
    for probe, code in itertools.product(("oracle", "linear"), CODES):
        about = {"kind": "probe", "probe": probe, "composition": code, "level": LEVELS[code]}
        rows.append(about | {"joint": real(code), "n": 4096})
    study = {
        "name": "objectives",
        "question": "Does the output distribution decide whether a model composes?",
        "paper": "Farid et al. 2025, What Drives Compositional Generalization? Fig 3",
        "about": "One transformer, two heads; all else is `fixed`.\n\n"
        "What changes, one at a time:\n\n- the head\n- the loss",
        "figures": [
            {
                "name": "late",
                "title": "Late accuracy",
                "caption": "Mean over the last quarter of training.",
            }
        ],
        "settings": {"steps": 20000, "net": {"width": 384, "depth": 7}},
        "scale": "full",
        "seeds": [0, 1, 2],
        "runs": runs,
        "space": {"factors": FACTORS},
        "levels": LEVELS,
        "paper_curve": {"dit": "diffusion_token", "maskgit": "maskgit"},
        "widget": None,
        "provenance": {
            "commit": "0" * 12,
            "torch": "2.11",
            "device": "NVIDIA H200",
            "date": "2026-01-01",
            "seconds": 412,
        },
    }
    folder = directory / "objectives"
    study["sheets"] = [entry for run in runs for entry in save_sheets(folder / "samples", run)]
    return save(folder, study, rows, claims("objectives"))


def theory(directory: Path) -> Path:
    study = {
        "name": "swing-by",
        "question": "Why does an unseen composition get worse before it gets better?",
        "paper": "Yang et al. 2025, Swing-by Dynamics",
        "about": "Exact dynamics of a two-layer model.",
        "figures": [
            {"name": "late", "title": "Loss", "caption": "It falls, rises, and falls again."}
        ],
        "settings": {"mu": [1.0, 2.0]},
        "scale": "laptop",
        "seeds": [0],
        "runs": [],
        "widget": "swing-by",
        "provenance": {"seconds": 3.2},
    }
    return save(
        directory / "swing-by",
        study,
        [{"kind": "order", "seed": 0, "value": 1e-11}],
        claims("swing-by"),
    )


def claims(study: str) -> list[dict]:
    """One claim for each verdict that a reader may meet."""
    common = {"study": study, "paper": "A, Fig 3", "scale": "full", "seeds": 3}
    common |= {"expected": "L2 >= 0.75 (0.848)", "estimate": None, "interval": None, "n": None}
    high = {"name": "dit, level 2", "estimate": 0.9612, "interval": [0.93, 0.98], "n": 3}
    high |= {"expected": [0.75, None], "verdict": "supported"}
    check = {"name": "order", "holds": False, "verdict": "contradicted"}
    sensitivity = {"by_probe": {"CNN probe": "supported", "oracle": "inconclusive"}}
    sensitivity |= {"by_checkpoint": [[100, "contradicted"], [20000, "supported"]]}
    each = [
        {
            "statement": "The diffusion model is right two factors away",
            "verdict": "supported",
            "measured": {"l2": 0.9612, "l2_paper": 0.848},
            "estimate": 0.9612,
            "interval": [0.93, 0.98],
            "n": 3,
            "parts": [high, high | {"name": "dit, seen"}],
            "deviations": ["another probe"],
            "sensitivity": sensitivity,
        },
        {
            "statement": "The masked model fails there",
            "verdict": "contradicted",
            "measured": {"maskgit_l2": 0.3, "maskgit_train": 0.99},
            "parts": [check],
        },
        {
            "statement": "Growth minus suppression equals the field",
            "verdict": "partly supported",
            "measured": {"largest_difference": 3.1e-12},
            "parts": [high, check],
        },
        {"statement": "It straddles", "verdict": "inconclusive", "measured": {}, "note": "3 seeds"},
        {"statement": "Not yet assessed", "verdict": "not measured", "measured": {}},
    ]
    return [common | {"id": f"{study[0].upper()}{i}"} | one for i, one in enumerate(each, 1)]


def save(folder: Path, study: dict, rows: list[dict], found: list[dict]) -> Path:
    (folder / "figures").mkdir(parents=True)
    (folder / "study.json").write_text(json.dumps(study))
    write_table(folder / "rows.parquet", Table(rows))
    (folder / "claims.json").write_text(json.dumps(found))
    (folder / "figures" / "late.svg").write_text(FIGURE)
    return folder


def save_sheets(folder: Path, run: dict) -> list[dict]:
    """The sheets of one run, and their entries in study.json."""
    folder.mkdir(parents=True, exist_ok=True)
    steps = STEPS if run["variant"] == "dit" else (100, 6000)
    names = {step: f"{run['variant']}-s{run['seed']}-{step}.webp" for step in steps}
    for step, name in names.items():
        sheet(run, step).save(folder / name, lossless=True)
    return [{"run": run["digest"], "file": f, "name": "step", "step": s} for s, f in names.items()]


def digest(variant: str, seed: int) -> str:
    return f"{len(variant):x}{seed:x}".rjust(16, "a")


def real(code: str) -> float:
    """The probes' accuracy on real pictures."""
    return 1 - 0.004 * LEVELS[code]


def accuracy(variant: str, seed: int, code: str, step: int, harder: float = 0.0) -> float:
    """A rise that comes later at higher levels; the level-2 ceiling belongs to the variant."""
    level = LEVELS[code]
    ceiling = (0.995, 0.95, VARIANTS[variant])[level] - harder
    middle = math.log(150 * (3.2**level) * (1 + 0.25 * seed))
    return round(ceiling / (1 + math.exp(-2.2 * (math.log(step + 1) - middle))), 4)


def accuracy_rows(run: dict) -> list[dict]:
    found = []
    for step, code, probe in itertools.product(STEPS, CODES, ("oracle", "linear")):
        joint = accuracy(run["variant"], run["seed"], code, step, 0.02 * (probe == "linear"))
        spread = 1.96 * math.sqrt(joint * (1 - joint) / 256 + 1e-5)
        row = {
            "kind": "accuracy",
            "run": run["digest"],
            "variant": run["variant"],
            "seed": run["seed"],
            "step": step,
        }
        row |= {
            "scale": "full",
            "probe": probe,
            "composition": code,
            "level": LEVELS[code],
            "n": 256,
            "joint": joint,
        }
        row |= {"low": max(0.0, joint - spread), "high": min(1.0, joint + spread)}
        found.append(row | {"shape": joint**0.3, "color": joint**0.5, "size": joint**0.2})
    return found


def sheet(run: dict, step: int) -> Image.Image:
    """Rows of shapes; a sample that the accuracy says is wrong shows the all-zero composition in
    noise."""
    rng = random.Random(f"{run['digest']}/{step}")
    picture = Image.new("RGB", (CELL * COLUMNS, CELL * len(CODES)))
    for (row, code), column in itertools.product(enumerate(CODES), range(COLUMNS)):
        right = rng.random() < accuracy(run["variant"], run["seed"], code, step)
        cell = render("000" if not right else code, rng, 0 if right else 90)
        picture.paste(cell, (column * CELL, row * CELL))
    return picture


def render(code: str, rng: random.Random, noise: int) -> Image.Image:
    shape, colour, size = map(int, code)
    cell = Image.new("RGB", (CELL, CELL), (236, 234, 228))
    r = (8.0, 4.6)[size] + rng.uniform(-0.5, 0.5)
    x, y = rng.uniform(r + 1, CELL - r - 1), rng.uniform(r + 1, CELL - r - 1)
    ink = ((225, 35, 35), (35, 45, 225))[colour]
    pen = ImageDraw.Draw(cell)
    if shape:
        pen.polygon([(x, y - r), (x - r, y + r), (x + r, y + r)], fill=ink)
    else:
        pen.ellipse([x - r, y - r, x + r, y + r], fill=ink)
    if noise:
        static = Image.frombytes("RGB", (7, 7), rng.randbytes(3 * 49)).resize(
            (CELL, CELL), Image.Resampling.NEAREST
        )
        cell = Image.blend(cell, static, noise / 255)
    return cell


FIGURE = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN"
 "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
 width="504pt" height="200pt" viewBox="0 0 504 200">
<defs><path id="tip" d="M0 -4L4 4L-4 4Z" style="fill: #3B7DD8"/></defs>
<path d="M40 170H490M40 170V10" style="stroke: #1b1d22; stroke-width: 0.8"/>
<path d="M40 20C120 180 180 40 260 90S380 168 490 168" style="fill: none; stroke: #E4572E"/>
<use xlink:href="#tip" x="260" y="90"/>
<text x="45" y="190" style="font: 10px sans-serif; fill: #1b1d22">training time</text></svg>
"""


PWN = "document.documentElement.dataset.pwned=1"
BAD = f"<script>{PWN}</script>\"'><img src=x onerror={PWN}>"


def hostile(directory: Path) -> Path:
    """The trained study with a script in every text that a stranger could write, and in a
    figure."""
    folder = trained(directory)
    study = json.loads((folder / "study.json").read_text())
    study |= {
        "name": BAD,
        "question": BAD,
        "paper": BAD,
        "about": f"{BAD}\n\n- `{BAD}`",
        "settings": {BAD: BAD},
        "scale": BAD,
    }
    study["space"]["factors"][0] = {"name": BAD, "values": [BAD, BAD]}
    study["provenance"] = {BAD: BAD}
    study["figures"][0] |= {"title": BAD, "caption": BAD}
    study["runs"][0] |= {"label": BAD, "variant": BAD}
    study["widget"] = "../templates/base"
    (folder / "study.json").write_text(json.dumps(study))
    rows = list(read_table(folder / "rows.parquet"))
    rows = [
        {**r, "probe": BAD if r["probe"] == "oracle" else r["probe"], "note": BAD} for r in rows
    ]
    write_table(folder / "rows.parquet", Table(rows))
    claims = json.loads((folder / "claims.json").read_text())
    claims[0] |= {"id": BAD, "statement": BAD, "expected": BAD, "paper": BAD, "note": BAD}
    claims[0] |= {"measured": {BAD: BAD}, "deviations": [BAD], "scale": BAD, "study": BAD}
    claims[0]["parts"][0]["name"] = BAD
    claims[0]["sensitivity"]["by_probe"] = {BAD: "supported"}
    (folder / "claims.json").write_text(json.dumps(claims))
    figure = folder / "figures" / "late.svg"
    figure.write_text(figure.read_text().replace("</svg>", EVIL + "</svg>"))
    return folder


EVIL = """<script>document.documentElement.dataset.pwned=1</script><foreignObject><p xmlns="http://www.w3.org/1999/xhtml">x</p></foreignObject>
<rect onload="document.documentElement.dataset.pwned=1" x="1" style="fill: url(https://example.org/a)"/>
<image href="https://example.org/b.png"/><use xlink:href="https://example.org/c#d"/>
<a href="javascript:alert(1)"><text>y</text></a>
<set attributeName="onmouseover" to="alert(1)"/><style>@import url(//example.org/e)</style>"""


def shown_accuracy(document: str, code: str) -> str:
    return re.search(
        rf'<article[^>]*data-code="{code}".*?class="accuracy">([^<]*)<', document, re.S
    ).group(1)
