"""A denoiser that is local by construction and learned from data: one small network for every block
of pixels, all of them evaluated side by side."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from recombine.objectives.process import Flow, noised
from recombine.rng import seeded
from recombine.theory.mixtures import Mixture


class BlockNet(nn.Module):
    """Each block's guess of its clean pixels, from its own noisy pixels and t alone. `place[g]`
    lists the pixels of block g, filled up with one pixel too many, which is cut off again."""

    def __init__(self, groups: list[tuple[int, ...]], width: int, rng: torch.Generator) -> None:
        super().__init__()
        most, beyond = max(map(len, groups)), sum(map(len, groups))
        self.place = torch.tensor([[*g, *[beyond] * (most - len(g))] for g in groups])
        sizes = [most + 3, width, width, width, most]
        shapes = [(len(groups), i, o) for i, o in zip(sizes[:-1], sizes[1:], strict=True)]
        self.weights = nn.ParameterList(
            torch.randn(s, generator=rng) * (2 / s[1]) ** 0.5 for s in shapes
        )
        self.biases = nn.ParameterList(torch.zeros(g, 1, o) for g, _, o in shapes)

    def forward(
        self, x: Float[Tensor, "b d"], t: Float[Tensor, "b"], condition: object = None
    ) -> Float[Tensor, "b d"]:
        padded = torch.cat([x, torch.zeros_like(x[:, :1])], 1)
        time = torch.stack([t, t.clamp(min=1e-3).log(), torch.ones_like(t)], 1)[:, None].expand(
            -1, len(self.place), -1
        )
        hidden = torch.cat([padded[:, self.place], time], 2).transpose(0, 1).float()
        for depth, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            hidden = torch.baddbmm(bias, nn.functional.silu(hidden) if depth else hidden, weight)
        clean = torch.zeros_like(padded)
        clean[:, self.place.flatten()] = hidden.transpose(0, 1).flatten(1).to(x.dtype)
        return clean[:, :-1]


def fitted(
    law: Mixture, groups: list[tuple[int, ...]], steps: int, seed: int, batch: int = 256
) -> BlockNet:
    """Trained on samples of `law` by the plain denoising loss."""
    rng = seeded(seed, "block-net")
    net = BlockNet(groups, 64, rng)
    optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        x = law.sample(batch, rng)
        t = torch.rand(batch, generator=rng, dtype=x.dtype)
        x_t = noised(Flow(), x, t, torch.randn(x.shape, generator=rng, dtype=x.dtype))
        loss = (net(x_t, t) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        decay.step()
    return net.requires_grad_(False)
