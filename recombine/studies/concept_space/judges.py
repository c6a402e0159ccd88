"""How the claims of concept-space are judged from the rows. All accuracies are mean class probabilities; a concept is learned
when its coordinate reaches 0.8 and stays there, for the seen compositions and the unseen one (see `curves`)."""

import math
from statistics import fmean, median

from recombine.evaluate.intervals import student
from recombine.evaluate.ranks import spearman
from recombine.studies.base import Judgement, Rows
from recombine.studies.concept_space.asked import Asked, asked_otherwise
from recombine.studies.concept_space.curves import (
    Dip,
    Outcome,
    begins,
    dip,
    falls,
    halfway,
    outcomes,
    rise,
    smoothed,
)


def main_line(found: list[Outcome]) -> list[Outcome]:
    """The courses of the main line, weakest colour first. LookupError where there are none."""
    line = sorted((o for o in found if o.facts["main"]), key=lambda o: o.facts["color_signal"])
    if not line:
        raise LookupError("no courses of the main line")
    return line


def dips(outcome: Outcome) -> list[Dip]:
    """The fall of the unseen composition in each seed, from where the model draws anything as told."""
    return [dip(c.steps, smoothed(c.joint), begins(c)) for c in outcome.runs.values()]


def judge_dip(rows: Rows) -> Judgement:
    weak = [o for o in main_line(outcomes(rows)) if o.facts["weak"]]
    if not weak:
        raise LookupError("no weak colour signal was asked for")
    measured, holds, deepest = {}, [], []
    for o in weak:
        found, at = dips(o), f"color {o.facts['color_signal']:g}"
        depths = [d.depth for d in found]
        measured |= {f"{at}: high": fmean(d.high for d in found), f"{at}: low": fmean(d.low for d in found)}
        measured |= {
            f"{at}: after": fmean(d.after for d in found),
            f"{at}: turn at step": median(d.turn for d in found),
        }
        measured[f"{at}: seeds with a dip"] = f"{sum(d.depth >= 0.1 and d.after > 0.5 for d in found)} of {len(found)}"
        twice = [falls(c)[0] for c in o.runs.values()]
        measured[f"{at}: seeds whose distance falls twice"] = f"{sum(n >= 2 for n in twice)} of {len(twice)}"
        holds.append(fmean(depths) >= 0.1 and fmean(d.after for d in found) > 0.5)
        deepest = max(deepest, depths, key=lambda d: fmean(d) if d else 0.0)
    measured |= {"paper: high": 0.25, "paper: low": 0.05, "paper: after": 0.55}
    return Judgement(all(holds) or ("partly" if any(holds) else False), measured, student(deepest))


def judge_speed(rows: Rows) -> Judgement:
    line = main_line(outcomes(rows))
    times = {o.facts["color_signal"]: o.time("color") for o in line}
    if len(line) < 3:
        raise LookupError("at least three colour signals are needed")
    measured = {f"T_color at {c:g}": t for c, t in times.items()} | {"paper at 0.2": 15700, "paper at 0.8": 3300}
    values = list(times.values())
    falling = all(a > b for a, b in zip(values, values[1:], strict=False))
    rho = correlation(list(times), values)
    holds = falling and len(values) >= 5
    return Judgement(
        holds or ("partly" if falling or rho <= -0.8 else False), shown(measured | {"rank correlation": rho})
    )


def correlation(x: list[float], y: list[float]) -> float:
    """Spearman's; a concept that was never learned comes last."""
    return spearman(x, y) if len(x) > 2 and len(set(y)) > 1 else 0.0


def shown(measured: dict) -> dict:
    """A concept that was never learned, in words."""
    never = lambda v: "never" if isinstance(v, float) and not math.isfinite(v) else v  # noqa: E731
    return {k: never(v) for k, v in measured.items()}


def judge_hidden(rows: Rows) -> Judgement:
    found = asked_otherwise(rows)
    if not found:
        raise LookupError("no run was asked otherwise than plainly")
    gap = best(found, "over")
    if not gap:
        raise LookupError("no run fails when it is asked plainly")
    measured: dict = {"seeds and worlds": len(found), "of these fail when asked plainly": len(gap)}
    measured["overprompting while plain <= 0.4"] = fmean(gap)
    measured["runs with overprompting >= 0.9 while plain <= 0.4"] = sum(g >= 0.9 for g in gap)
    measured["steering while plain <= 0.4"] = fmean(best(found, "steer"))
    measured |= reached(found, "plain") | reached(found, "over") | reached(found, "steer")
    if patches := best(found, "patch"):
        measured["early network, late embedding, while plain <= 0.4"] = fmean(patches)
        measured["runs with such a patch"] = len(patches)
    share = fmean(g >= 0.9 for g in gap)
    return Judgement(
        share > 0.5 or ("partly" if share > 0 or fmean(gap) >= 0.7 else False), shown(measured), student(gap)
    )


def best(found: list[Asked], way: str) -> list[float]:
    """The most that a way of asking reaches while asking plainly fails, of all runs in which that can be said."""
    return [v for a in found if (v := a.best_while_quiet(way)) is not None]


def reached(found: list[Asked], way: str) -> dict[str, float]:
    return {f"step at which {way} reaches 0.8": median(a.reaches(way) for a in found)}


def judge_emergence(rows: Rows) -> Judgement:
    three = [o for o in outcomes(rows) if o.facts["background_signal"]]
    if not three:
        raise LookupError("no world with three factors")
    runs = [c for o in three for c in o.runs.values()]
    gain = {"joint": [rise(c.steps, c.joint) for c in runs], "mean": [rise(c.steps, c.mean) for c in runs]}
    half = {
        "joint": median(halfway(c.steps, c.joint) for c in runs),
        "mean": median(halfway(c.steps, c.mean) for c in runs),
    }
    measured = {f"largest rise of {k} while steps grow by a quarter": fmean(v) for k, v in gain.items()}
    measured |= {f"halfway step of {k}": v for k, v in half.items()} | {
        "end of joint": fmean(float(c.joint[-1]) for c in runs)
    }
    measured |= {"paper, joint": 0.47, "paper, mean": 0.16}
    sharper = fmean(gain["joint"]) >= 1.3 * fmean(gain["mean"])
    later = half["joint"] >= 1.1 * half["mean"]
    interval = student([a - b for a, b in zip(gain["joint"], gain["mean"], strict=True)])
    learned = measured["end of joint"] >= 0.5
    holds = (sharper and later) or ("partly" if sharper or later else False)
    return Judgement(holds if learned else False, shown(measured), interval)


def silenced(found: list[Outcome]) -> dict[str, list[Outcome]]:
    """For each way of telling: the courses in which more and more captions are silent, from none on."""
    hidden = [o for o in found if o.facts["masked"]]
    lines = {}
    for by in dict.fromkeys(o.by for o in hidden):
        some = sorted((o for o in hidden if o.by == by), key=lambda o: o.facts["masked"])
        same = {k: some[0].facts[k] for k in ("net", "told", "color_signal", "size_signal", "background_signal")}
        whole = [o for o in found if o.is_(masked=0.0, **same) and o.by == by]
        if whole:
            lines[by] = [*whole, *some]
    return lines


def judge_masked(rows: Rows) -> Judgement:
    lines = silenced(outcomes(rows))
    if not lines:
        raise LookupError("no masked captions, or none to compare them with")
    ends_of, times_of, holds, partly, last = {}, {}, [], [], []
    for by, line in lines.items():
        ends = [[late(c.factors["color"]) for c in o.runs.values()] for o in line]
        blue, times = [fmean(e) for e in ends], [o.time("color") for o in line]
        named = [f"{o.facts['masked']:.0%}" for o in line]
        ends_of |= {f"told by {by}: blue at {n} masked": b for n, b in zip(named, blue, strict=True)}
        times_of |= {f"told by {by}: T_color at {n}": t for n, t in zip(named, times, strict=True)}
        bends = blue[0] - blue[-1] >= 0.2 and all(a >= b - 0.02 for a, b in zip(blue, blue[1:], strict=False))
        slows = all(b >= 0.95 * a for a, b in zip(times, times[1:], strict=False)) and times[-1] > times[0]
        holds, partly, last = [*holds, bends and slows], [*partly, bends or slows], ends[-1]
    return Judgement(all(holds) or ("partly" if any(partly) else False), shown(ends_of | times_of), student(last))


def late(values) -> float:
    """The mean over the last quarter of the checkpoints."""
    return float(values[-max(1, len(values) // 4) :].mean())
