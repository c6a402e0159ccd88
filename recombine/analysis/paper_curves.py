"""Accuracy over updates as paper A's figures show it."""

import json
from functools import cache
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("paper_curves.json")
OF_FAMILY = {
    "maskgit": "maskgit",
    "givt": "givt",
    "mar": "mar_token_final",
    "dit": "diffusion_token",
    "dit on vae": "diffusion_vae",
}
"""The curve of each family; DiT's on VQ-VAE latents unless its name says otherwise."""


@cache
def paper_curves() -> dict[str, dict[str, Any]]:
    """Every curve by its name: label, figure, steps, and accuracies by level and composition."""
    return json.loads(PATH.read_text())["runs"]


def paper_points(name: str, level: int) -> list[tuple[int, float]]:
    """(update, accuracy) of one curve at a level."""
    run = paper_curves()[name]
    return list(zip(run["steps"], run["levels"][str(level)], strict=True))


def family_points(family: str, level: int) -> list[tuple[int, float]]:
    """The same by family; nothing where the paper has none of it."""
    return paper_points(OF_FAMILY[family], level) if family in OF_FAMILY else []
