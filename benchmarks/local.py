"""What locality costs. One call of the local network, and of the literal form that runs a U-Net on
the patch around every cell, beside one call of the U-Net that sees the whole picture: 64 x 64
pixels, 16 x 16 cells, patches of 5 x 5 cells, the U-Net's widest level as wide as the tokens. A
sampler makes the same number of calls with each, so these are also the ratios of sampling. The aim:
at most 4."""

import torch
import torch.nn.functional as F
from _timing import seconds
from torch import Tensor, nn

from recombine.nets.dit import DiTConfig
from recombine.nets.layout_encoder import GlobalConfig, Grid, LayoutNetConfig
from recombine.nets.local import LocalConfig
from recombine.nets.transformer import TransformerConfig
from recombine.nets.unet import UNetConfig
from recombine.rng import seeded
from recombine.worlds.layout import Layout

SIDE, CELLS, REACH, WIDTH = 64, 16, 2, 256
UNET = GlobalConfig(UNetConfig((WIDTH // 4, WIDTH // 2, WIDTH)))
NETS: dict[str, LayoutNetConfig] = {
    "local, reach 2": LocalConfig(CELLS, REACH, WIDTH),
    "local, reach 8": LocalConfig(CELLS, 8, WIDTH),
    "local, whole picture": LocalConfig(CELLS, CELLS - 1, WIDTH),
    "DiT of the same size": GlobalConfig(DiTConfig(TransformerConfig(8, WIDTH, 4), SIDE // CELLS)),
}


def literal(net: nn.Module, x: Tensor, t: Tensor, layout: Layout) -> Tensor:
    """Patch by patch: each cell's patch, zeros beyond the border, and the locations inside it; only
    the centre cell is kept."""
    m, side, count = SIDE // CELLS, (2 * REACH + 1) * SIDE // CELLS, CELLS**2
    patches = F.unfold(F.pad(x, [REACH * m] * 4), side, stride=m).mT.reshape(
        -1, x.shape[1], side, side
    )
    index = torch.arange(CELLS, device=x.device)
    corner = torch.cartesian_prod(index, index).flip(-1) - REACH
    at = ((layout.at[:, None] * CELLS - corner[:, None]) / (2 * REACH + 1)).flatten(0, 1)
    inside = ((at >= 0) & (at < 1)).all(-1) & layout.present.repeat_interleave(count, 0)
    answer = net(patches, t.repeat_interleave(count), Layout(at, inside))
    middle = answer[..., REACH * m : (REACH + 1) * m, REACH * m : (REACH + 1) * m]
    return F.fold(middle.reshape(len(x), count, -1).mT, SIDE, m, stride=m)


@torch.no_grad()
def main() -> list[dict]:
    cuda = torch.cuda.is_available()
    device, batch = ("cuda", 64) if cuda else ("cpu", 1)
    x = torch.randn(batch, 3, SIDE, SIDE, generator=seeded("bench")).to(device)
    t, layout = (
        torch.full((batch,), 0.5, device=device),
        Layout.of(torch.rand(batch, 9, 2, generator=seeded("at"))),
    )
    layout = layout.to(device)

    def call(net: nn.Module) -> float:
        return seconds(lambda: net(x, t, layout), device, 3)

    whole = call(UNET.build(Grid(), (3, SIDE, SIDE)).to(device))
    rows = [{"name": "U-Net, whole picture", "value": 1000 * whole / batch, "ratio": 1.0}]
    for name, config in NETS.items():
        took = call(config.build(Grid(), (3, SIDE, SIDE)).to(device))
        rows.append({"name": name, "value": 1000 * took / batch, "ratio": took / whole})
    side = (2 * REACH + 1) * SIDE // CELLS
    patchwise = UNET.build(Grid(cells=2 * REACH + 1), (3, side, side)).to(device)
    took = seconds(lambda: literal(patchwise, x, t, layout), device, 1)
    rows.append(
        {
            "name": "literal, U-Net on every patch",
            "value": 1000 * took / batch,
            "ratio": took / whole,
        }
    )
    return [{**row, "unit": "ms a picture"} for row in rows]


if __name__ == "__main__":
    for row in main():
        print("{name:32} {value:10.1f} {unit}   {ratio:6.2f} x U-Net".format(**row))
