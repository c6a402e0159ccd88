"""What happens inside a network while it denoises, seen from outside: the hidden states of every
block, and the attention maps, whatever code computes them."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

TRANSFORMER = re.compile(r"TransformerBlock$|^Block$")
OTHER = re.compile(r"Block(2D)?$")
"""Names of classes: blocks of transformers, and those of networks that have none."""


def block_names(net: nn.Module) -> list[str]:
    """The transformer blocks of a network, in the order in which they are written; where there are
    none, all innermost blocks."""
    named = {name: type(m).__name__ for name, m in net.named_modules()}
    found = [name for name, kind in named.items() if TRANSFORMER.search(kind)]
    if found:
        return found
    blocks = [name for name, kind in named.items() if name and OTHER.search(kind)]
    return [b for b in blocks if not any(o.startswith(f"{b}.") for o in blocks)]


@contextmanager
def hidden_states(
    net: nn.Module, names: list[str] | None = None
) -> Iterator[dict[str, Float[Tensor, "b ..."]]]:
    """A dictionary that holds, after each call of the network inside the block, what left every
    block of it, in the order of computation. Of blocks that hold picture and text, the picture."""
    held: dict[str, Tensor] = {}
    with ExitStack() as stack:
        for name in block_names(net) if names is None else names:
            hook = _keeper(held, name)
            stack.callback(net.get_submodule(name).register_forward_hook(hook).remove)
        yield held


def _keeper(held: dict[str, Tensor], name: str) -> Callable[..., None]:
    def keep(_module: nn.Module, _given: Any, answer: Any) -> None:
        held.pop(name, None)  # the order is that of this call
        held[name] = answer[-1] if isinstance(answer, tuple) else answer

    return keep


class _Watch(TorchFunctionMode):
    """Sees every softmax that an attention computes: inside the fused function, whose weights are
    computed a second time, and where it is written out."""

    def __init__(self, keep: Callable[[Tensor], None]) -> None:
        super().__init__()
        self.keep = keep

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        answer = func(*args, **kwargs)
        if func is F.scaled_dot_product_attention:
            self.keep(attention_weights(*args, **kwargs))
        elif func in (torch.softmax, F.softmax, Tensor.softmax) and answer.ndim >= 3:
            self.keep(answer)
        return answer


def attention_weights(
    query: Float[Tensor, "... q d"],
    key: Float[Tensor, "... k d"],
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Float[Tensor, "... q k"]:
    """The weights by which torch's scaled_dot_product_attention, so called, adds up values."""
    if enable_gqa:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, -torch.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    return scores.softmax(-1)


@contextmanager
def attention_maps(
    net: nn.Module,
) -> Iterator[dict[str, Float[Tensor, "b heads q k"]]]:
    """A dictionary that holds, after each call of the network inside the block, the weights of
    every attention by the name of its module: what is really computed, with masks and rotations,
    and the same for every attention processor."""
    held: dict[str, Tensor] = {}
    inside: list[tuple[str, int]] = []

    def keep(weights: Tensor) -> None:
        if inside:
            name, batch = inside[-1]
            shape = (batch, -1, *weights.shape[-2:])  # some keep heads in the batch
            held[name] = weights.detach().reshape(shape)

    with ExitStack() as stack:
        for name, module in net.named_modules():
            if re.search(r"Attention$", type(module).__name__):
                enter, leave = _entering(inside, name), lambda *_: inside.pop() and None
                before = module.register_forward_pre_hook(enter, with_kwargs=True)
                stack.callback(before.remove)
                stack.callback(module.register_forward_hook(leave, always_call=True).remove)
        stack.enter_context(_Watch(keep))
        yield held


def _entering(inside: list[tuple[str, int]], name: str) -> Callable[..., None]:
    def enter(_module: nn.Module, given: tuple, named: dict[str, Any]) -> None:
        first = given[0] if given else named["hidden_states"]
        inside.append((name, len(first)))

    return enter
