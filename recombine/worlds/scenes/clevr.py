"""CLEVR_v1.0 as it is downloaded: pictures and scenes, with the interface of the rendered ones."""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

import torch
from jaxtyping import Int
from torch import Tensor

from recombine.config import UsageError, config
from recombine.worlds.scenes.clevr_read import LoadedScenes, read
from recombine.worlds.scenes.scene import MOST, Labelled, SceneSource


@config("world/clevr")
class Clevr(SceneSource):
    """One split of the set at `path`. `size` and `view` are those of `Scenes`; a picture from which
    the crop would cut an object's centre is left out. `counts` keeps the pictures with so many
    objects (none: all), and of these the first `limit` (None: all). Sampling is with replacement.
    `content` is the digest of scenes and pictures: make one by `open`, which checks everything and
    fills it in."""

    path: str
    split: str = "val"
    size: int = 64
    view: Literal["crop", "squeeze", "wide"] = "crop"
    counts: tuple[int, ...] = ()
    limit: int | None = None
    content: str = ""

    def __post_init__(self) -> None:
        if not 16 <= self.size <= 1024:
            raise ValueError(f"size={self.size}: must lie between 16 and 1024")
        if not set(self.counts) <= set(range(MOST + 1)):
            raise ValueError(f"counts={list(self.counts)}: numbers of objects from 0 to {MOST}")
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"limit={self.limit}: at least one picture is needed")

    @classmethod
    def open(cls, path: str | Path, split: str = "val", **settings: object) -> "Clevr":
        """The split, read through and checked from the first scene to the last."""
        _load.cache_clear()
        _resident.cache_clear()
        clevr = cls(str(Path(path).resolve()), split, **settings)
        return replace(clevr, content=clevr.loaded.content)

    @property
    def loaded(self) -> LoadedScenes:
        """Read when first needed, then kept."""
        loaded = _load(replace(self, content=""))
        if self.content and self.content != loaded.content:
            raise UsageError(
                f"{self.path}: its content is now {loaded.content}, not {self.content}; open it anew"
            )
        return loaded

    @property
    def image_shape(self) -> tuple[int, int, int]:
        return tuple(self.loaded.images.shape[1:])

    @property
    def slots(self) -> int:
        return self.loaded.present.shape[1]

    def __len__(self) -> int:
        return len(self.loaded.images)

    def take(self, rows: Int[Tensor, "b"]) -> Labelled:
        """These pictures, in the order of the scenes file."""
        loaded = _resident(self, rows.device)
        return Labelled(
            loaded.images[rows].float() / 255,
            loaded.centres[rows],
            loaded.present[rows],
            loaded.kind[rows],
        )

    def sample(self, count: int, rng: torch.Generator) -> Labelled:
        return self.take(torch.randint(len(self), (count,), generator=rng, device=rng.device))


@lru_cache(maxsize=4)
def _resident(clevr: Clevr, device: torch.device) -> LoadedScenes:
    """The pictures, kept on the device that samples from them."""
    return clevr.loaded.to(device)


@lru_cache(maxsize=4)
def _load(clevr: Clevr) -> LoadedScenes:
    return read(Path(clevr.path), clevr.split, clevr.size, clevr.view, clevr.counts, clevr.limit)
