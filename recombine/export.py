"""What leaves the laboratory: a trained model as a diffusers pipeline, a world as a folder of
pictures or as Parquet."""

import json
from collections.abc import Iterator
from io import BytesIO, StringIO
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from recombine.bridge.hub import CAPTIONS, LABELS, NOISING, TOKENS, Exported, card
from recombine.config import UsageError, find_class, from_json, nearest, tags_in, to_json
from recombine.nets.text_unet import TextUNet
from recombine.objectives.noising import Noising
from recombine.objectives.process import Guided
from recombine.pipeline.job import Task, Work, folder_of
from recombine.rng import seeded
from recombine.runs.captions import CaptionModel, CaptionRun
from recombine.runs.models import Model, ModelRun
from recombine.runtime import Runtime
from recombine.store import Row, read_json, write_atomic
from recombine.tokenizers.autoencoder import AutoencoderNet, TrainedCodec
from recombine.worlds.captions import LENGTH, VOCABULARY, Caption, Captions, spelled, tokens_of
from recombine.worlds.factors import Condition, Split
from recombine.worlds.world import World

AT_ONCE = 512
"""Pictures of a world that are rendered together."""
STATISTICS = ("latent_mean", "latent_std")
LEARNED_CODEC = {
    "autoencoder": "AutoencoderNet(TOKENIZER, CHANNELS)",
    "codec": "TrainedCodec(self.autoencoder, self.latent_mean, self.latent_std)",
}


def open_run(path: Path) -> tuple[Task, Work]:
    """The task of a finished run, given its folder, and the way to what it left."""
    if not (path / "config.json").is_file():
        raise UsageError(f"{path}: is no run; it has no config.json")
    task = from_json(read_json(path / "config.json").get("config"))
    if not isinstance(task, (ModelRun, CaptionRun)):
        raise UsageError(
            f"{path}: holds {to_json(task)['type']}, not a model of pictures (run/model, "
            "run/captions); nothing else can be exported"
        )
    out = path.resolve().parents[1]
    if not folder_of(task, out).done or folder_of(task, out).path != path.resolve():
        raise UsageError(f"{path}: is not a finished run, or was renamed")
    return task, Work(task, out, Runtime(quiet=True))


def export_run(path: Path, folder: Path) -> None:
    """The model of a run as a folder that diffusers opens."""
    _check_new(folder)
    task, work = open_run(path)
    model = task.open(work)
    made = _captions(model) if isinstance(model, CaptionModel) else _labels(model)
    made.write(folder)


def _check_new(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder}: is there already and not empty")


def _common(net: torch.nn.Module, codec: Any) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors of a network and its codec, and what the export says of the codec."""
    held = {**dict(net.named_buffers()), **net.state_dict()}
    tensors = {f"net.{name}": t for name, t in held.items()}
    if not isinstance(codec, TrainedCodec):
        return tensors, {}
    tensors |= {f"autoencoder.{name}": t for name, t in codec.net.state_dict().items()}
    return tensors | {"latent_mean": codec.mean, "latent_std": codec.std}, LEARNED_CODEC


def _labels(model: Model) -> Exported:
    """A model that is conditioned on factors."""
    r, space = model.recipe, model.recipe.world.space
    noising, codec = isinstance(r.objective, Noising), model.codec
    tensors, said = _common(model.net, codec)
    table = torch.tensor(space.compositions, device=model.device)
    tensors["canonical_values"] = r.world.canonical(table)
    constants = {
        "SPACE": space, "SHAPE": r.shape, "OBJECTIVE": r.objective, "NET": r.net,
        "CONDITIONING": r.conditioning, "TOKENIZER": r.tokenizer, "CHANNELS": r.world.image_shape[0],
        "GUIDANCE": r.evaluation.guidance, "HALF": r.train.precision == "bfloat16",
        "SAMPLER": r.evaluation.solver if noising else r.evaluation.decoding,
    }  # fmt: skip
    codes = "None" if codec.codes is None else f"torch.zeros({tuple(codec.codes.shape)})"
    example = space.describe(space.compositions[-1])
    return Exported(
        run=model.work.folder.digest, title=f"a {r.objective.__class__.__name__} model",
        example=example, things=(Condition, *((Guided,) if noising else ()), *_codec(said)),
        constants=constants, tensors=tensors,
        net=f"OBJECTIVE.network(NET, CONDITIONING, SHAPE, SPACE, {codes})",
        methods=LABELS.replace("{sample}", NOISING if noising else TOKENS),
        buffers=("canonical_values", *(STATISTICS if said else ())),
        card=_label_card(model, example), **said,
    )  # fmt: skip


def _codec(said: dict[str, Any]) -> tuple[Any, ...]:
    return (AutoencoderNet, TrainedCodec) if said else ()


def _label_card(model: Model, example: str) -> str:
    r, space = model.recipe, model.recipe.world.space
    split: Split = r.split
    seen = [f"seen in training: {space.describe(c)}" for c in split.seen]
    rows = [row for row in model.work.folder.rows() if row["kind"] == "accuracy"]
    table = accuracy_by_level(rows)
    data = f"`{type(r.world).__name__}`: {space.words}; {r.pool} pictures of each seen composition."
    use = f'images = pipe(["{example}"], generator=torch.Generator().manual_seed(0)).images'
    return card(f"{type(r.objective).__name__} on {type(r.world).__name__}", data, seen, table, use)


def accuracy_by_level(rows: list[Row]) -> list[tuple[str, str]]:
    """Joint accuracy at the last step, by probe and level."""
    last = max((row["step"] for row in rows), default=0)
    groups: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        if row["step"] == last:
            groups.setdefault((row["probe"], row["level"]), []).append(row["joint"])
    return [
        (f"level {lv}, {probe}", f"{fmean(v):.2f}") for (probe, lv), v in sorted(groups.items())
    ]


def _captions(model: CaptionModel) -> Exported:
    """A model that is conditioned on text."""
    r, (tensors, said) = model.recipe, _common(model.net, model.codec)
    constants = {
        "SHAPE": r.shape, "OBJECTIVE": r.objective, "NET": r.net, "TOKENIZER": r.tokenizer,
        "CHANNELS": 3, "SAMPLER": r.solver,
    }  # fmt: skip
    rows = [row for row in model.work.folder.rows() if row["kind"] == "captions"]
    shown = [row for row in rows if row["of"] == "samples"][-1:]
    names = ("shape", "color", "texture", "light", "joint")
    table = [(name, f"{row[name]:.2f}") for row in shown for name in names]
    example = "a red circle on the left and a blue square on the right striped"
    use = f'images = pipe(["{example}"], generator=torch.Generator().manual_seed(0)).images'
    words = f"Words it knows: {' '.join(VOCABULARY[2:])}."
    return Exported(
        run=model.work.folder.digest, title="a text-conditioned latent diffusion model",
        example=example, things=(TextUNet, Caption, tokens_of, *_codec(said)),
        constants=constants, tensors=tensors, methods=CAPTIONS, buffers=STATISTICS,
        net=f"TextUNet(NET, SHAPE, {len(VOCABULARY)}, {LENGTH})",
        card=card(
            "Text-conditioned latent diffusion on captions",
            f"`Captions`: {r.pool} pictures of shapes in two places. {words}",
            ["nothing is held out"], table, use,
        ), **said,
    )  # fmt: skip


def find_world(name: str) -> World:
    """A world by its short name, with its usual settings."""
    known = sorted(tag.removeprefix("world/") for tag in tags_in("worlds") if "world/" in tag)
    if name not in known:
        raise UsageError(f"no world {name!r}; there are {', '.join(known)}{nearest(name, known)}")
    try:
        world = find_class(f"world/{name}", name)()
    except TypeError:
        raise UsageError(f"{name}: is no world with usual settings") from None
    if not isinstance(world, World):
        raise UsageError(f"{name}: its pictures have no factors to write beside them")
    return world


def drawn(
    world: World, count: int, seed: int
) -> Iterator[tuple[Float[Tensor, "b c h w"], list[Row]]]:
    """Pictures of a world, every composition as often as any other, with their factors."""
    table = torch.tensor(world.present)
    for first in range(0, count, AT_ONCE):
        rng, some = seeded(seed, "export", first), min(AT_ONCE, count - first)
        if isinstance(world, Captions):
            index = world.sample(some, rng)
        else:
            index = table[torch.randint(len(table), (some,), generator=rng)]
        yield world.render(index, rng).images, described(world, index)


def described(world: World, index: Int[Tensor, "b k"]) -> list[Row]:
    """The names of the values of each picture; the caption too, where the world has captions."""
    factors = world.space.factors
    rows = [{f.name: f.values[i] for f, i in zip(factors, r, strict=True)} for r in index.tolist()]
    if not isinstance(world, Captions):
        return rows
    texts = spelled(world.caption(index))
    return [row | {"text": text} for row, text in zip(rows, texts, strict=True)]


def export_world(
    name: str,
    folder: Path,
    count: int,
    seed: int = 0,
    kind: Literal["imagefolder", "parquet"] = "imagefolder",
) -> None:
    """Pictures of a world as an imagefolder with metadata.csv, or as one Parquet file."""
    if count < 1:
        raise UsageError(f"--n {count}: must be positive")
    world = find_world(name)
    _check_new(folder)
    rows: list[Row] = []
    for images, some in drawn(world, count, seed):
        for image, row in zip(images, some, strict=True):
            rows.append(_kept(folder, len(rows), _png(image), row, kind))
    if kind == "parquet":
        _write_parquet(folder / "train.parquet", rows)
    else:
        write_atomic(folder / "metadata.csv", _csv(rows))


def _png(image: Float[Tensor, "c h w"]) -> bytes:
    from PIL import Image

    buffer = BytesIO()
    pixels = (255 * image.clamp(0, 1)).round().byte().permute(1, 2, 0).squeeze(-1).numpy()
    Image.fromarray(pixels).save(buffer, "png")
    return buffer.getvalue()


def _kept(folder: Path, number: int, png: bytes, row: Row, kind: str) -> Row:
    name = f"{number:07d}.png"
    if kind == "parquet":
        return {"image": {"bytes": png, "path": name}, **row}
    path = folder / "images" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(png)
    return {"file_name": f"images/{name}", **row}


def _csv(rows: list[Row]) -> str:
    import csv

    text = StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _write_parquet(path: Path, rows: list[Row]) -> None:
    """With what the datasets library needs to see pictures in the column of bytes."""
    import polars as pl

    kinds = {name: {"dtype": "string", "_type": "Value"} for name in rows[0] if name != "image"}
    about = {"info": {"features": {"image": {"_type": "Image"}, **kinds}}}
    path.parent.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(rows).write_parquet(path, metadata={"huggingface": json.dumps(about)})
