"""Networks without weights: to see whether parts fit each other before any work is done."""

import math
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from recombine.limits import check_memory

INITS = (
    "normal_",
    "uniform_",
    "trunc_normal_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "xavier_normal_",
    "xavier_uniform_",
)
FILLS = (torch.Tensor.normal_, torch.Tensor.uniform_, *(getattr(nn.init, name) for name in INITS))
DRAWS = (torch.randn, torch.rand)
MADE = (torch.empty, torch.zeros, torch.ones, *DRAWS)
COPIES = 5
"""What training keeps of each weight: itself, its gradient, its average, and two of Adam's."""


class Unfilled(TorchFunctionMode):
    """`with Unfilled():` what is built has its shapes, but no random number is drawn and weights
    are left as memory was found, so it takes no time, whatever its size. (On the meta device the
    first product alone loads two seconds of PyTorch.) What does not fit into memory is refused
    before it is made; `bytes` says how large all of it is."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        named = kwargs or {}
        if func in FILLS:
            return args[0] if args else named["tensor"]
        if func in MADE:
            self.bytes += 4 * _numel(args, named)
            check_memory(COPIES * self.bytes, "training the network")
        return (torch.empty if func in DRAWS else func)(*args, **named)


def _numel(args: tuple, named: dict[str, Any]) -> int:
    """How many numbers torch.empty(*args, **named) makes."""
    given = args or (named.get("size", ()),)
    sizes = given[0] if isinstance(given[0], tuple | list | torch.Size) else given
    return math.prod(n for n in sizes if isinstance(n, int))
