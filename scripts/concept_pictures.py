"""The pictures of docs/concepts.md, docs/pictures/<name>.svg, rendered from the worlds and the exact
theory: nothing is trained. `python scripts/concept_pictures.py` writes them."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import recombine as rc
from recombine.analysis.estimates import rate
from recombine.plots.style import INK, LEVELS, Figure, canvas
from recombine.rng import seeded
from recombine.theory import flow, sim
from recombine.worlds.layout import Layout

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
SIZE = 56
ACCENT, SOFT = "#3B7DD8", "#c9ced6"


def show(axis: Any, image: Tensor, title: str = "", frame: str = "", below: str = "") -> None:
    """A picture (3 or 1 channels) without ticks, in a frame of a colour."""
    pixels = (image.clamp(0, 1) * 255).round().byte().permute(1, 2, 0).expand(-1, -1, 3)
    axis.imshow(pixels.numpy(), interpolation="nearest")
    axis.set(xticks=[], yticks=[])
    axis.grid(False)
    axis.set_title(title, fontsize=9, loc="center")
    axis.set_xlabel(below, fontsize=9)
    for spine in axis.spines.values():
        spine.set(visible=bool(frame), color=frame or INK, linewidth=3)


def pictures_of(world: rc.Shapes2D, compositions: Iterable[tuple[int, ...]], name: str) -> Tensor:
    return world.render(torch.tensor(list(compositions)), seeded("concepts", name)).images


def levels(folder: Path) -> None:
    """The eight compositions in frames of their level."""
    world = rc.Shapes2D(size=SIZE, wander=0.0)
    compositions = world.space.compositions
    images = pictures_of(world, compositions, "levels")
    with canvas(folder, FIGURES["levels"], 2, 4, (7.0, 4.2)) as axes:
        for axis, image, c in zip(axes.flat, images, compositions, strict=True):
            level = world.usual.level(c)
            said = "seen" if level == 0 else f"level {level}"
            show(axis, image, f"{world.space.describe(c)}\n{said}", LEVELS[level])


def jitter(folder: Path) -> None:
    """Pictures of one composition in three worlds."""
    amounts = {"none": (0.0, 0.0), "usual": (0.06, 0.06), "wide": (0.25, 0.2)}
    with canvas(folder, FIGURES["jitter"], 3, 7, (7.0, 3.4)) as axes:
        for row, (name, (color, size)) in zip(axes, amounts.items(), strict=True):
            world = rc.Shapes2D(size=SIZE, color_jitter=color, size_jitter=size, wander=0.3)
            for axis, image in zip(row, pictures_of(world, [(1, 1, 0)] * 7, name), strict=True):
                show(axis, image)
            row[0].set_ylabel(name, fontsize=10, rotation=0, ha="right", va="center")


def oracle(folder: Path) -> None:
    """Pictures between two compositions, and what the oracle reads in each."""
    world, here = rc.Shapes2D(size=SIZE, wander=0.0), (1, 1, 1)
    shares = torch.linspace(0, 1, 7)
    ends = {"shape": (0, 1, 1), "colour": (1, 0, 1), "size": (1, 1, 0)}
    with canvas(folder, FIGURES["oracle"], 3, 7, (8.0, 4.2)) as axes:
        for row, (name, there) in zip(axes, ends.items(), strict=True):
            pairs = (torch.tensor([c] * len(shares)) for c in (here, there))
            images = world.interpolate(*pairs, shares, seeded("concepts", "oracle"))
            for axis, image, read in zip(row, images, world.read(images).tolist(), strict=True):
                said = world.space.describe(tuple(read)) if read[0] >= 0 else "rejected"
                show(axis, image, below=said.replace(" ", "\n", 1))
                axis.xaxis.label.set_fontsize(7)
            row[0].set_ylabel(name, fontsize=10, rotation=0, ha="right", va="center")


def tokenizers(folder: Path) -> None:
    """A picture, its patches, and a token per patch: a vector, or the nearest of eight entries of a
    codebook. Here the vector is the patch's mean colour."""
    world, cells = rc.Shapes2D(size=SIZE, wander=0.3), 7
    image = pictures_of(world, [(1, 1, 0)], "tokenizers")[0]
    means = torch.nn.functional.avg_pool2d(image[None], SIZE // cells)[0]
    chosen = means.flatten(1).T
    book = chosen[[0, 17, 23, 24, 25, 30, 31, 33]]
    index = torch.cdist(chosen, book).argmin(1)
    coded = book[index].T.unflatten(1, (cells, cells))
    with canvas(folder, FIGURES["tokenizers"], 1, 4, (8.0, 2.4)) as axes:
        show(axes[0], image, "picture")
        show(axes[1], image, "patches (pixels)")
        for at in range(1, cells):
            axes[1].axhline(at * SIZE / cells - 0.5, color=SOFT, lw=0.8)
            axes[1].axvline(at * SIZE / cells - 0.5, color=SOFT, lw=0.8)
        show(axes[2], means, "continuous tokens")
        show(axes[3], coded, "categorical tokens")
        for k, number in enumerate(index.tolist()):
            dark = float(book[number].mean()) < 0.6
            text = {"color": "white" if dark else INK, "fontsize": 6, "ha": "center"}
            axes[3].text(k % cells, k // cells, str(number), va="center", **text)


def corruption(folder: Path) -> None:
    """What a diffusion model and a masked model are given in training."""
    world, cells = rc.Shapes2D(size=SIZE, wander=0.3), 7
    image = pictures_of(world, [(0, 0, 0)], "corruption")[0]
    noise = torch.randn(image.shape, generator=seeded("concepts", "noise"))
    order = torch.rand(cells * cells, generator=seeded("concepts", "mask")).argsort().argsort()
    shares = (0.0, 0.3, 0.6, 0.9)
    with canvas(folder, FIGURES["corruption"], 2, 4, (7.0, 3.8)) as axes:
        for column, share in zip(axes.T, shares, strict=True):
            show(column[0], (1 - share) * image + share * (0.5 + 0.5 * noise), f"noise {share:g}")
            hidden = (order < share * cells**2).float().unflatten(0, (cells, cells))
            wide = torch.kron(hidden, torch.ones(SIZE // cells, SIZE // cells))
            show(column[1], image * (1 - wide) + 0.6 * wide, f"masked {share:g}")


def layout(folder: Path) -> None:
    """A scene, its locations as a list and as a grid, and the pixels that one object affects."""
    world, cells = rc.Scenes(size=96, samples=9), 16
    scene = world.place(torch.tensor([3]), seeded("concepts", "scene"))
    image, centres, *_ = world.render(scene)
    touched = world.touched(scene)[0, 0].float()
    grid = Layout.of(centres).counts(cells)[0, None]
    with canvas(folder, FIGURES["layout"], 1, 4, (8.6, 2.5)) as axes:
        show(axes[0], image[0], "scene")
        axes[0].plot(*(centres[0].T * 96), "+", color="white", ms=9, mew=2)
        axes[1].axis("off")
        axes[1].set_title("layout as a list", fontsize=9, loc="center")
        lines = [f"({x:.2f}, {y:.2f})" for x, y in centres[0].tolist()]
        axes[1].text(0.5, 0.5, "\n".join(lines), ha="center", va="center", fontsize=10)
        show(axes[2], 1 - grid.clamp(0, 1), "layout as a grid", SOFT)
        inside = 0.25 * image[0] + 0.7
        show(axes[3], torch.where(touched > 0, image[0], inside), "pixels of one object")


def swing_by(folder: Path) -> None:
    """Losses of the exact two-layer model: the unseen combination falls, rises and falls again."""
    task = sim.IdentityMapping(mu=(1.0, 2.0), sigma=0.05)
    start = flow.root(flow.correlated(0.01, 0.9, 2))
    path = flow.flow(start[None], task.a[None], dt=0.01, steps=1000)
    unseen = sim.probe_loss(path.output(task.probe), task.probe)[0]
    seen = sim.train_loss(path.w, task.a[None])[0]
    with canvas(folder, FIGURES["swing-by"], 1, 2, (7.6, 2.9)) as (left, right):
        left.plot(path.t, unseen / unseen[0], color=LEVELS[2])
        left.plot(path.t, seen / seen[0], color=INK, ls="--")
        left.text(1.9, 0.105, "unseen", color=LEVELS[2], fontsize=9)
        left.text(2.3, 0.215, "training", color=INK, fontsize=9)
        left.set(xlabel="time", ylabel="loss / loss at the start", ylim=(0, 0.4))
        x, y = path.output(task.probe)[0].T
        right.plot(x, y, color=LEVELS[2])
        for (a, b), said in {(1, 0): "seen", (0, 2): "seen", (1, 2): "unseen"}.items():
            right.plot(a, b, "o", color=LEVELS[0] if said == "seen" else LEVELS[2])
            right.annotate(
                said, (a, b), (6, -12 if b else 6), textcoords="offset points", fontsize=9
            )
        right.set(xlabel="concept 1", ylabel="concept 2", xlim=(-0.1, 1.35))


def verdicts(folder: Path) -> None:
    """Intervals of five seeds beside an expected region of 0.75 or more."""
    seeds = {
        "supported": (0.97, 0.96, 0.98, 0.97, 0.99),
        "inconclusive": (0.9, 0.6, 0.95, 0.8, 0.7),
        "contradicted": (0.3, 0.2, 0.25, 0.35, 0.3),
    }
    with canvas(folder, FIGURES["verdicts"], 1, 1, (7.0, 2.0)) as axis:
        axis.axvspan(0.75, 1, color="#dcebfb", lw=0)
        axis.text(0.875, 2.62, "expected region", ha="center", fontsize=9, color=ACCENT)
        for y, (verdict, values) in enumerate(reversed(seeds.items())):
            found = rate(values)
            axis.plot(found.interval, (y, y), color=INK, lw=2)
            axis.plot(values, [y] * len(values), "o", color=INK, mfc="white", ms=5)
            axis.plot(found.value, y, "D", color=INK, ms=6)
            axis.text(-0.02, y, verdict, ha="right", va="center", fontsize=10)
        axis.set(xlim=(0, 1), ylim=(-0.5, 2.9), yticks=[], xlabel="accuracy at level 2")


PICTURES: dict[str, Callable[[Path], None]] = {
    "levels": levels,
    "jitter": jitter,
    "oracle": oracle,
    "tokenizers": tokenizers,
    "corruption": corruption,
    "layout": layout,
    "swing-by": swing_by,
    "verdicts": verdicts,
}
FIGURES = {
    name: Figure(name, (make.__doc__ or "").split("\n")[0], "") for name, make in PICTURES.items()
}


if __name__ == "__main__":
    for make in PICTURES.values():
        make(FOLDER)
