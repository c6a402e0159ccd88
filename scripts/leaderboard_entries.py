"""Submissions for results/leaderboard from the kept samples of runs: `python
scripts/leaderboard_entries.py RUNS results/leaderboard`, where RUNS was made by `recombine run
objectives --set evaluation.keep=64`."""

import sys
from pathlib import Path

import numpy as np

from recombine.config import to_json
from recombine.metrics.kept_samples import read_kept
from recombine.runs.rescoring import kept_runs, recipe_of
from recombine.scoring.prompts import labels_of
from recombine.store import read_json, write_json

KEPT = 32
"""Pictures of each composition."""
NAMES = {
    "head/categorical": ("maskgit", "MaskGIT: a category for every masked token"),
    "head/mixture": ("givt", "GIVT: a mixture of Gaussians for every masked token"),
    "head/denoising": ("mar", "MAR: a small denoiser for every masked token"),
    "objective/diffusion": ("dit", "DiT: all tokens denoised at once"),
}


def main(runs: Path, board: Path) -> None:
    for folder in kept_runs(runs):
        recipe = recipe_of(folder)
        objective = to_json(recipe.objective)
        kind = objective.get("head", {}).get("type", objective["type"])
        name, about = NAMES[kind]
        images = read_kept(sorted((folder / "samples").glob("step_*.npz"))[-1])[:, :KEPT]
        labels = [labels_of(recipe.world.space, c) for c in recipe.world.space.compositions]
        arrays = {k: np.repeat([one[k] for one in labels], images.shape[1]) for k in labels[0]}
        pixels = (images.flatten(0, 1) * 255).round().byte().numpy()
        target = board / name
        target.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(target / "pictures.npz", images=pixels, **arrays)
        done = read_json(folder / "done.json")
        facts = {"run": folder.name, "steps": recipe.train.steps, "seed": recipe.seed}
        commit = str(done.get("commit", done.get("provenance", {}).get("commit", "")))
        card = {"name": name, "about": about, "trained_on": "4 of 8 compositions of Shapes2D"}
        write_json(target / "card.json", card | facts | {"commit": commit})
        title = "Families of models on Shapes2D, laptop scale: which compose?"
        about_board = {"title": title, "world": to_json(recipe.world), "probe_steps": 800}
        write_json(board / "board.json", about_board)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
