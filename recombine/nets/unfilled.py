"""Networks without weights: to see whether parts fit each other before any work is done."""

from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

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


class Unfilled(TorchFunctionMode):
    """`with Unfilled():` what is built has its shapes, but no random number is drawn and weights
    are left as memory was found, so it takes no time, whatever its size. (On the meta device the
    first product alone loads two seconds of PyTorch.)"""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        named = kwargs or {}
        if func in FILLS:
            return args[0] if args else named["tensor"]
        return (torch.empty if func in DRAWS else func)(*args, **named)
