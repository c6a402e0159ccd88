# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Does it compose?
#
# A lab of about ten minutes on two CPU cores. You train two small diffusion models that differ in one thing, find that one of them generates combinations that it
# never saw and the other does not, and find out why.
#
# **You need** to know roughly what a conditional diffusion model is. No data is downloaded. In a clone of the repository, after `make run`:
# `.venv/bin/pip install jupyterlab`, then `.venv/bin/jupyter lab docs/notebooks`.

# %%
import os

import matplotlib.pyplot as plt
import polars as pl
from IPython.display import Image, display

import recombine as rc

SCALE = os.environ.get("LAB_SCALE", "laptop")  # "smoke": seconds, and the numbers mean nothing
WORKERS = 1 if SCALE == "smoke" else 2

# %% [markdown]
# ## 1. The world
#
# Pictures have three factors: shape, colour, size. Models are trained on the four compositions in blue frames only. *Level 1*: one factor away from everything
# seen. *Level 2*: two factors away; that is the small blue triangle.

# %%
world = rc.Shapes2D(size=20, wander=0.3)
world

# %% [markdown]
# **Exercise 1.** Before you train: which of the seen compositions are triangles, and what could a model learn about *blue* from them? Write down your
# guess: which of the four unseen compositions will a model generate?

# %% [markdown]
# ## 2. Two models
#
# The study `two-models` trains the same U-Net twice. Once every class has one colour and one size (*no jitter*), once colours and sizes vary within a class
# (*wide jitter*). Everything else is equal. This is the cell that takes minutes.

# %%
(folder,) = rc.run("two-models", scale=SCALE, out="lab", workers=WORKERS)

# %% [markdown]
# ## 3. Which one composes?
#
# Every measurement is a row. Accuracy is the share of samples that show all three factors as prompted, here by the *open-set probe*, a CNN that can reject a
# picture. We take the end of training.

# %%
rows = rc.results(folder)
accuracy = rows.filter(kind="accuracy", probe="open-set")
end = accuracy.filter(pl.col("step") == pl.col("step").max().over("variant"))
table = end.group_by("variant", "level").agg(pl.col("joint").mean().round(2).alias("accuracy"))
table.pivot("level", index="variant", values="accuracy", sort_columns=True)

# %%
fig, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True, layout="constrained")
colors = {0: "#56C1FF", 1: "#FF95CA", 2: "#ED220D"}
for axis, variant in zip(axes, ("wide jitter", "no jitter"), strict=True):
    mine = accuracy.filter(variant=variant).group_by("level", "step").agg(pl.col("joint").mean())
    for level in sorted(mine["level"].unique()):
        x, y = mine.filter(level=level).sort("step").select("step", "joint").get_columns()
        axis.plot(x, y, color=colors[level], lw=2, label=f"level {level}" if level else "seen")
    axis.set(title=variant, xlabel="updates", ylim=(-0.03, 1.03))
axes[0].set_ylabel("accuracy")
axes[1].legend(frameon=False);
# %% [markdown]
# The samples themselves: a row per composition, from `000` (large red circle) to `111` (small blue triangle).

# %%
last_step = rows["step"].max()
for variant in ("wide-jitter", "no-jitter"):
    print(variant)
    (sheet,) = (folder / "samples").glob(f"{variant}-s0-{last_step}.webp")
    display(Image(sheet.read_bytes(), format="webp", width=560))

# %% [markdown]
# **Exercise 2.** Look at the last row of each sheet. What does the model that fails generate for "small blue triangle"? Is it noise, a seen composition, or
# something between two?
#
# **Exercise 3.** Probes disagree. Compare the closed-set CNN probe, the linear probe and the oracle at level 2. Which model would you call compositional by
# the linear probe alone?

# %%
by_probe = rows.filter(
    pl.col("step") == pl.col("step").max().over("variant"), kind="accuracy", level=2
)
by_probe.group_by("variant", "probe").agg(pl.col("joint").mean().round(2)).sort("variant", "probe")

# %% [markdown]
# ## 4. Why?
#
# Without jitter the model meets four conditions and four pictures. It can learn *which picture is meant* and never *what colour does*. An exactly solvable
# model shows the same: linear in all products of its inputs, trained by gradient flow on the same four compositions. 1 is the answer that was prompted for,
# -1 the opposite.

# %%
import numpy as np

from recombine.theory.products import Corner, Products

seen = ((0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0))
times = np.geomspace(1, 1e6, 60)
fig, axis = plt.subplots(figsize=(5, 3), layout="constrained")
for spread in (0.0, 0.1, 0.3, 0.6):
    model = Products(tuple(Corner(c, (0.0, spread, spread)) for c in seen), prior=(1.0, 0.2, 0.2))
    answers = model.answers((1, 1, 1), times=tuple(times))  # shape, colour, size over time
    axis.plot(times, answers[:, 1:].min(1).values, lw=2, label=f"jitter {spread:g}")
axis.axhline(0, color="grey", lw=0.8)
axis.set(xscale="log", xlabel="time", ylabel="small blue triangle", ylim=(-1.1, 1.1))
axis.legend(frameon=False);
# %% [markdown]
# **Exercise 4.** The time to get it right grows with the inverse fourth power of the jitter at level 2, and the inverse square at level 1. Read two curves off
# and check. Why a *fourth* power? (What must be learned about colour and size together, and how often do both differ?)
#
# **Exercise 5.** Is it jitter as such, or jitter *in triangles*? Train with wide jitter among circles only and look at level 2. Change `"circle"` to
# `"triangle"` and compare. Set `TRAIN = True` first: each takes about three minutes.

# %%
changes = {"recipe.world.varying": ["circle"], "recipe.evaluation.checkpoints": 2}
TRAIN = SCALE == "smoke"
if TRAIN:
    (circles,) = rc.run(
        "two-models", scale=SCALE, out="lab-circles", changes=changes, workers=WORKERS
    )
    last = rc.results(circles).filter(kind="accuracy", probe="open-set", variant="wide jitter")
    display(last.group_by("step", "level").agg(pl.col("joint").mean()).sort("step", "level"))

# %% [markdown]
# ## 5. What the reference results say
#
# Two models and one seed are an anecdote. The reference results have several seeds, four families of models and exact theory; each claim has an interval and a
# verdict.

# %%
wanted = ["B10", "B18", "B26", "B27"]
pl.Config.set_fmt_str_lengths(110)
rc.claims().filter(pl.col("id").is_in(wanted)).select(
    "id", "verdict", "estimate", "low", "high", "n", "statement"
)

# %% [markdown]
# The page of this run, with all figures, is `lab/index.html`. More: [the concepts](../concepts.md), [your own data](../own-data.md), [your own
# model](../own-model.md).
