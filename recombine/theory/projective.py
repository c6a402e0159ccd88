"""Conditional projective compositions (CPC): every condition j owns a set of pixels M_j, which are
disjoint, and given the active conditions J

    p(x | c_J) = p(x outside all M_j, j in J | no condition) * prod_{j in J} p(x in M_j | c_j).

A CPC knows its blocks, so its score costs one small mixture a block. `Joint` forgets them: one
mixture over all pixels with every product of components. That form can be tilted into a law that is
no CPC, still with an exact score, and it lets a test show, rather than assume, that the blocks do
not depend on each other."""

from dataclasses import dataclass
from itertools import pairwise, product

import torch
from jaxtyping import Float
from torch import Tensor

from recombine.rng import seeded
from recombine.theory.mixtures import Block, Law, Mixture, Prompt, mixture

Sets = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class Projective:
    """The CPC with pixel sets `sets`: `parts[j][v]` is the law of set j when condition j has value
    v, `background` the law of all pixels without a condition. The background may tie its pixels to
    each other."""

    sets: Sets
    parts: tuple[tuple[Mixture, ...], ...]
    background: Mixture

    def __post_init__(self) -> None:
        owned = [i for pixels in self.sets for i in pixels]
        if len(set(owned)) < len(owned) or not set(owned) <= set(range(self.background.dim)):
            last = self.background.dim - 1
            raise ValueError(f"pixel sets must be disjoint and within 0..{last}, not {self.sets}")
        for pixels, laws in zip(self.sets, self.parts, strict=True):
            if any(law.dim != len(pixels) for law in laws):
                raise ValueError(
                    f"the parts of pixel set {pixels} must be laws of {len(pixels)} pixels"
                )

    def __call__(self, prompt: Prompt) -> tuple[Block, ...]:
        active = [
            Block(self.sets[j], self.parts[j][v]) for j, v in enumerate(prompt) if v is not None
        ]
        taken = {i for block in active for i in block.pixels}
        rest = tuple(i for i in range(self.background.dim) if i not in taken)
        return (*active, Block(rest, self.background.marginal(rest))) if rest else tuple(active)


@dataclass(frozen=True, eq=False)
class Joint:
    """The same law as one mixture over all pixels, blind to its blocks."""

    law: Law

    def __call__(self, prompt: Prompt) -> tuple[Block, ...]:
        whole = joined(self.law(prompt))
        return (Block(tuple(range(whole.dim)), whole),)


@dataclass(frozen=True, eq=False)
class Tilted:
    """The joint law with every component's weight multiplied by a random factor exp(strength *
    normal): the further from 0, the further from any CPC."""

    law: Law
    strength: float
    seed: int = 0

    def __call__(self, prompt: Prompt) -> tuple[Block, ...]:
        ((pixels, whole),) = Joint(self.law)(prompt)
        rng = seeded(self.seed, "tilt", str(prompt))
        tilt = torch.randn(len(whole.log_weight), generator=rng, dtype=whole.mean.dtype)
        return (Block(pixels, whole.reweighted(whole.log_weight + self.strength * tilt)),)


@dataclass(frozen=True, eq=False)
class Localised:
    """The best local denoiser of any law: the sets of active conditions, and the rest, each keep
    their marginal and lose what ties them. No denoiser that looks at each set alone has a smaller
    denoising loss, because the least-squares guess of x_M from the noisy x_M is its expectation
    under the marginal of M."""

    law: Law
    sets: Sets

    def __call__(self, prompt: Prompt) -> tuple[Block, ...]:
        whole = joined(self.law(prompt))
        kept = [pixels for pixels, v in zip(self.sets, prompt, strict=True) if v is not None]
        taken = {i for pixels in kept for i in pixels}
        rest = tuple(i for i in range(whole.dim) if i not in taken)
        return tuple(
            Block(pixels, whole.marginal(pixels).merged()) for pixels in (*kept, rest) if pixels
        )


@dataclass(frozen=True, eq=False)
class Linked:
    """A law that is no CPC though every block keeps its own law, for blocks of two equally likely
    modes: the first two active blocks prefer the same mode (link > 0) or opposite ones. Ties pairs,
    moves no mean."""

    law: Law
    link: float

    def __call__(self, prompt: Prompt) -> tuple[Block, ...]:
        blocks = self.law(prompt)
        whole = joined(blocks)
        modes = torch.cartesian_prod(
            *(torch.arange(len(b.law.log_weight)) for b in blocks)
        ).reshape(len(whole.mean), -1)
        if sum(v is not None for v in prompt) < 2:
            return (Block(tuple(range(whole.dim)), whole),)
        alike = (1 - 2 * modes[:, 0]) * (1 - 2 * modes[:, 1])
        return (
            Block(
                tuple(range(whole.dim)),
                whole.reweighted(whole.log_weight + (1 + self.link * alike).log()),
            ),
        )


def joined(blocks: tuple[Block, ...]) -> Mixture:
    """Independent blocks as one mixture: a component for every choice of one component a block."""
    if len(blocks) == 1:
        return blocks[0].law
    order = torch.tensor([i for block in blocks for i in block.pixels]).argsort()
    chosen = torch.cartesian_prod(*(torch.arange(len(block.law.log_weight)) for block in blocks))
    log_weight = sum(block.law.log_weight[c] for block, c in zip(blocks, chosen.T, strict=True))
    mean = torch.cat([block.law.mean[c] for block, c in zip(blocks, chosen.T, strict=True)], 1)
    edges = [0, *torch.tensor([block.law.dim for block in blocks]).cumsum(0).tolist()]
    covariance = mean.new_zeros(len(mean), mean.shape[1], mean.shape[1])
    for block, c, (low, high) in zip(blocks, chosen.T, pairwise(edges), strict=True):
        covariance[:, low:high, low:high] = block.law.covariance[c]
    return mixture(log_weight, mean[:, order], covariance[:, order][:, :, order])


def random_mixture(
    modes: int, dim: int, rng: torch.Generator, reach: float = 1.5, width: float = 0.4
) -> Mixture:
    """Modes at distances of about `reach`, each stretched and turned at random around `width`."""
    mean = reach * torch.randn(modes, dim, generator=rng, dtype=torch.float64)
    shape = torch.eye(dim, dtype=torch.float64) + 0.3 * torch.randn(
        modes, dim, dim, generator=rng, dtype=torch.float64
    )
    log_weight = 0.3 * torch.randn(modes, generator=rng, dtype=torch.float64)
    return mixture(log_weight, mean, width**2 * shape @ shape.mT)


def random_projective(
    blocks: int, pixels: int, rest: int, values: int, modes: int, rng: torch.Generator
) -> Projective:
    """A CPC with random parts, and a background that does not tie its blocks (so that turning one
    condition on or off can be seen in its own pixels only)."""
    sets = tuple(tuple(range(j * pixels, (j + 1) * pixels)) for j in range(blocks))
    parts = tuple(tuple(random_mixture(modes, pixels, rng) for _ in range(values)) for _ in sets)
    outside = tuple(range(blocks * pixels, blocks * pixels + rest))
    idle = [Block(s, random_mixture(1, pixels, rng, 0.3, 1.0)) for s in sets]
    if rest:
        idle.append(Block(outside, random_mixture(2, rest, rng)))
    return Projective(sets, parts, joined(tuple(idle)))


def compositions(values: int, blocks: int) -> tuple[Prompt, ...]:
    """Every prompt: one value of each condition, or none."""
    return tuple(product((None, *range(values)), repeat=blocks))


def mean_of(blocks: tuple[Block, ...]) -> Float[Tensor, "d"]:
    """The expected picture."""
    order = torch.tensor([i for block in blocks for i in block.pixels]).argsort()
    return torch.cat([block.law.moments()[0] for block in blocks])[order]
