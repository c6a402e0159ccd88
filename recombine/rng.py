"""Randomness by name. A stream is named by what it is for (seed, purpose, step ...), never by what
was drawn before it, so a cached rerun, a resumed run and a run on several processes all draw the
same numbers."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def seeded(*key: str | int, device: torch.device | str = "cpu") -> torch.Generator:
    """The generator of the stream called `key`, e.g. `seeded(3, "noise", step)`. The same key gives
    the same numbers on the same kind of device."""
    name = json.dumps(key, separators=(",", ":"))
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") & (2**63 - 1)
    return torch.Generator(device=device).manual_seed(number)


@contextmanager
def initial_weights(seed: int) -> Iterator[None]:
    """The first weights of networks built inside follow from the seed. PyTorch's layers draw them
    from its global generator, which is put back as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
