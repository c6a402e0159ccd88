"""How much the blocks of samples depend on each other: labels by nearest mode, and the bits they
share."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor


def labels(
    x: Float[Tensor, "b d"], groups: list[tuple[int, ...]], modes: list[Tensor]
) -> Int[Tensor, "b g"]:
    """The nearest mode of every block."""
    near = [torch.cdist(x[:, list(g)], m).argmin(1) for g, m in zip(groups, modes, strict=True)]
    return torch.stack(near, 1)


def total_correlation(label: Int[Tensor, "b g"]) -> float:
    """Bits by which the labels tie each other, less the bias of a finite sample (Miller and
    Madow)."""
    _, joint = label.unique(dim=0, return_counts=True)
    alone = [column.unique(return_counts=True)[1] for column in label.T]
    total = len(label)

    def entropy(counts: Tensor) -> float:
        share = counts.double() / total
        return -(share * share.log2()).sum().item() + (len(counts) - 1) / (2 * total * math.log(2))

    return sum(entropy(counts) for counts in alone) - entropy(joint)


def marginal_distance(a: Int[Tensor, "b"], b: Int[Tensor, "b"]) -> float:
    """Total variation between two samples of labels."""
    size = int(torch.maximum(a.max(), b.max())) + 1
    shares = [torch.bincount(v, minlength=size).double() / len(v) for v in (a, b)]
    return (shares[0] - shares[1]).abs().sum().item() / 2
