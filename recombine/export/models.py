"""A trained model as a folder that diffusers opens: code, weights, card."""

from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from recombine.bridge.hub import CAPTIONS, LABELS, LAYOUTS, NOISING, TOKENS, Exported, card
from recombine.config import UsageError, from_json, to_json
from recombine.export.worlds import check_new
from recombine.nets.text_unet import TextUNet
from recombine.objectives.noising import Noising
from recombine.objectives.process import Guided
from recombine.pipeline.job import Task, Work, folder_of
from recombine.runs.captions import CaptionModel, CaptionRun
from recombine.runs.models import Model, ModelRun
from recombine.runs.scenes import SceneModel, SceneRun
from recombine.runtime import Runtime
from recombine.store import Row, read_json
from recombine.tokenizers.autoencoder import AutoencoderNet, TrainedCodec
from recombine.worlds.captions import LENGTH, VOCABULARY, Caption, tokens_of
from recombine.worlds.factors import Condition, Split
from recombine.worlds.folder import Folder
from recombine.worlds.layout import Layout
from recombine.worlds.world import World

MODELS = (ModelRun.noun, CaptionRun.noun, SceneRun.noun)
STATISTICS = ("latent_mean", "latent_std")
LEARNED_CODEC = {
    "autoencoder": "AutoencoderNet(TOKENIZER, CHANNELS)",
    "codec": "TrainedCodec(self.autoencoder, self.latent_mean, self.latent_std)",
}


def find_run(path: Path) -> Path:
    """The folder of a run: itself, or that of the only model of a study's folder."""
    if not (path / "study.json").is_file():
        return path
    runs = read_json(path / "study.json").get("runs", [])
    models = {r["digest"]: r["label"] for r in runs if r["noun"] in MODELS}
    if not models:
        raise UsageError(f"{path}: this study has trained no model that can be exported")
    if len(models) > 1:
        raise UsageError(f"{path}: has several models; say which one: {_listed(path, models)}")
    return path.parent / "runs" / next(iter(models))


def _listed(path: Path, models: dict[str, str]) -> str:
    some = [f"{path.parent / 'runs' / name} ({label})" for name, label in models.items()]
    return ", ".join(some[:4]) + (", ..." if len(some) > 4 else "")


def open_run(path: Path) -> tuple[Task, Work]:
    """The task of a finished run, given its folder, and the way to what it left."""
    if not (path / "config.json").is_file():
        raise UsageError(f"{path}: is no run; it has no config.json")
    task = from_json(read_json(path / "config.json").get("config"))
    if not isinstance(task, (ModelRun, CaptionRun, SceneRun)):
        raise UsageError(
            f"{path}: holds {to_json(task)['type']}, not a model of pictures (run/model, "
            "run/captions, run/scene); nothing else can be exported"
        )
    out = path.resolve().parents[1]
    if not folder_of(task, out).done or folder_of(task, out).path != path.resolve():
        raise UsageError(f"{path}: is not a finished run, or was renamed")
    return task, Work(task, out, Runtime(quiet=True))


def export_run(path: Path, folder: Path) -> None:
    """The model of a run, or the only one of a study's folder, as a folder that diffusers opens."""
    check_new(folder)
    task, work = open_run(find_run(path))
    model = task.open(work)
    writers = {CaptionModel: _captions, SceneModel: _layouts, Model: _labels}
    writers[type(model)](model).write(folder)


def _common(net: torch.nn.Module, codec: Any) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors of a network and its codec, and what the export says of the codec."""
    held = {**dict(net.named_buffers()), **net.state_dict()}
    tensors = {f"net.{name}": t for name, t in held.items()}
    if not isinstance(codec, TrainedCodec):
        return tensors, {"codec": "TOKENIZER"}
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
        buffers=("canonical_values", *(STATISTICS if _codec(said) else ())),
        card=_label_card(model, example), **said,
    )  # fmt: skip


def _codec(said: dict[str, Any]) -> tuple[Any, ...]:
    return (AutoencoderNet, TrainedCodec) if "autoencoder" in said else ()


def _label_card(model: Model, example: str) -> str:
    r, space = model.recipe, model.recipe.world.space
    split: Split = r.split
    seen = [f"seen in training: {space.describe(c)}" for c in split.seen]
    rows = [row for row in model.work.folder.rows() if row["kind"] == "accuracy"]
    table = accuracy_by_level(rows)
    data = f"{_pictures_of(r.world)}: {space.words}; {r.pool} pictures of each seen composition."
    use = f'images = pipe(["{example}"], generator=torch.Generator().manual_seed(0)).images'
    title = f"{type(r.objective).__name__} on {_pictures_of(r.world)}"
    return card(title.replace("`", ""), data, seen, table, use)


def _pictures_of(world: World) -> str:
    """Whose pictures they are, without the path of somebody's folder."""
    if isinstance(world, Folder):
        return f"the folder {Path(world.path).name} (digest {world.content})"
    return f"`{type(world).__name__}`, rendered by recombine"


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


def _layouts(model: SceneModel) -> Exported:
    """A model that is conditioned on locations."""
    r, net = model.recipe, model.net
    tensors, example = _common(net, None)[0], "0.25 0.5; 0.75 0.5"
    constants = {
        "SHAPE": r.world.image_shape, "OBJECTIVE": r.objective, "NET": r.net, "SLOTS": r.slots,
        "ENCODER": r.layout_encoder, "SAMPLER": r.evaluation.solver,
        "HALF": r.train.precision == "bfloat16",
    }  # fmt: skip
    rows = [row for row in model.work.folder.rows() if row["kind"] == "count"]
    last = max((row["step"] for row in rows), default=0)
    table = [
        (f"{row['locations']} locations", f"{row['recall']:.2f}")
        for row in rows
        if row["step"] == last
    ]
    counts = ", ".join(map(str, r.world.counts))
    use = f'images = pipe(["{example}"], generator=torch.Generator().manual_seed(0)).images'
    return Exported(
        run=model.work.folder.digest, title="a model of scenes", example=example,
        things=(Layout,), constants=constants, tensors=tensors, methods=LAYOUTS,
        net="NET.build(ENCODER, SHAPE)",
        card=card(
            "Scenes with objects at given locations",
            f"`{type(r.world).__name__}`, rendered by recombine: {r.pool} pictures of {counts} objects.",
            [f"seen in training: {counts} objects; more are prompted for in evaluation"], table, use,
        ),
    )  # fmt: skip
