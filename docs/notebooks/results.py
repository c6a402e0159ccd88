# ---
# jupyter:
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # The results as data frames
#
# Everything that was measured ships with the project: `rc.results()` has a row per measurement, `rc.claims()` a row per claim. Both are polars data frames;
# `.to_pandas()` gives pandas.

# %%
import matplotlib.pyplot as plt
import polars as pl

import recombine as rc

pl.Config.set_fmt_str_lengths(90)
pl.Config.set_tbl_rows(12);
# %% [markdown]
# ## Claims

# %%
claims = rc.claims()
claims.group_by("verdict").len().sort("len", descending=True)

# %%
claims.filter(verdict="supported").select("id", "study", "n", "statement")

# %% [markdown]
# Estimates with their intervals over seeds, of the claims on trained models that have one.

# %%
trained = claims.filter(pl.col("low").is_not_null(), pl.col("estimate").abs() <= 1).head(24)
fig, axis = plt.subplots(figsize=(7, 5.5), layout="constrained")
for y, row in enumerate(trained.iter_rows(named=True)):
    axis.plot((row["low"], row["high"]), (y, y), color="#1b1d22", lw=1.5)
    axis.plot(row["estimate"], y, "o", color="#3B7DD8")
axis.set_yticks(
    range(len(trained)), [f"{r['id']} (n = {r['n']})" for r in trained.iter_rows(named=True)]
)
axis.invert_yaxis()
axis.grid(alpha=0.3)
axis.set_xlabel("first estimate of the claim, 95 % interval over seeds");
# %% [markdown]
# ## Rows
#
# `kind` says what a row is; columns that a kind does not use are null.

# %%
rows = rc.results()
print(f"{len(rows):,} rows, {rows['study'].n_unique()} studies")
rows.group_by("kind").agg(pl.len(), pl.col("study").n_unique().alias("studies")).sort(
    "len", descending=True
).head(8)

# %% [markdown]
# ### Accuracy over training
#
# Level 2 of four families without jitter and with wide jitter; the mean over seeds.

# %%
jitter = rows.filter(study="jitter", kind="accuracy", probe="open-set", level=2)
parts = jitter.with_columns(
    pl.col("variant").str.split(", ").list.to_struct(fields=["family", "jitter"])
).unnest("variant")
curves = parts.group_by("family", "jitter", "step").agg(pl.col("joint").mean()).sort("step")
fig, axes = plt.subplots(1, 3, figsize=(9, 3), sharey=True, layout="constrained")
for axis, amount in zip(axes, ("none", "usual", "wide"), strict=True):
    for family in ("maskgit", "givt", "mar", "dit"):
        mine = curves.filter(family=family, jitter=amount)
        axis.plot(
            mine["step"],
            mine["joint"],
            lw=2,
            label={"maskgit": "MaskGIT", "dit": "DiT"}.get(family, family.upper()),
        )
    axis.set(title=f"jitter: {amount}", xlabel="updates", ylim=(-0.03, 1.03))
axes[0].set_ylabel("level-2 accuracy")
axes[2].legend(frameon=False, fontsize=8);
# %% [markdown]
# ### A claim computed again, by hand
#
# Claim B10 takes the *late mean* (the last quarter of the checkpoints) of DiT's level-2 accuracy, per seed. The interval then comes from the seeds.

# %%
from recombine.analysis.estimates import rate_difference

dit = parts.filter(family="dit")
steps = sorted(dit["step"].unique())
late = dit.filter(pl.col("step") >= steps[-max(1, len(steps) // 4)])
by_seed = late.group_by("jitter", "seed").agg(pl.col("joint").mean()).sort("jitter", "seed")
wide, none = (by_seed.filter(jitter=j)["joint"].to_list() for j in ("wide", "none"))
print("by hand: ", rate_difference(wide, none))
print("shipped: ", *claims.filter(id="B10").select("estimate", "low", "high", "n").row(0))

# %% [markdown]
# ### The probe decides
#
# The same samples at the end of training, level 2, read by four probes.

# %%
last = rows.filter(study="objectives", kind="accuracy", level=2).filter(
    pl.col("step") == pl.col("step").max()
)
last.group_by("variant", "probe").agg(pl.col("joint").mean().round(2)).pivot(
    "probe", index="variant", values="joint"
).sort("variant")

# %% [markdown]
# ## Out of here
#
# ```python
# rows.filter(study="jitter").write_csv("jitter.csv")
# claims.to_pandas()
# ```
