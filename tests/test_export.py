"""What leaves the laboratory: models that diffusers alone opens and that draw the same pictures,
and worlds as data sets."""

import os
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from PIL import Image

from recombine.bridge.bundle import Bundle, bundle
from recombine.bridge.hub import card, config_classes, written
from recombine.cli import app
from recombine.config import UsageError
from recombine.export.models import _listed, accuracy_by_level, export_run, find_run
from recombine.export.worlds import drawn, export_world, find_world
from recombine.nets.unet import UNetConfig
from recombine.pipeline.job import Work, described
from recombine.rng import seeded
from recombine.runs.captions import CaptionModel, CaptionRun
from recombine.runs.models import Model, ModelRun
from recombine.runs.probes import ProbeRun
from recombine.runs.scenes import SceneModel, SceneRun
from recombine.runs.tokenizers import TokenizerRun
from recombine.runtime import Runtime
from recombine.store import write_json
from recombine.studies.features import settings as features
from recombine.studies.objectives import settings as objectives
from recombine.studies.scene_settings import settings as scenes
from recombine.tokenizers.pixels import Pixels
from recombine.worlds.layout import Layout

ROW = {"kind": "accuracy", "probe": "oracle", "joint": 0.5}
ALONE = """
import sys
for name in ("recombine", "jaxtyping", "einops"):
    sys.modules[name] = None
import numpy as np, torch
from diffusers import DiffusionPipeline
for folder, prompts in {folders!r}:
    pipe = DiffusionPipeline.from_pretrained(folder, trust_remote_code=True)
    one = pipe(prompts, generator=torch.Generator().manual_seed(5), output_type="np").images
    stream = lambda i: torch.Generator().manual_seed(i)
    each = [stream(i) for i in range(len(prompts))]
    many = pipe(prompts, generator=each, output_type="np").images
    singly = [pipe([p], generator=[stream(i)], output_type="np").images for i, p in enumerate(prompts)]
    np.savez(folder + "/drawn.npz", one=one, many=many, singly=np.concatenate(singly))
    try:
        pipe(["a strange thing"])
    except ValueError as error:
        print(error)
"""


def left_behind(task, out):
    """The work of a task as a training leaves it, but with random weights; what it needs of other
    tasks to draw, a tokenizer, is trained."""
    for one in task.parents():
        if isinstance(one, TokenizerRun):
            work = Work(one, out, Runtime(quiet=True))
            if not work.folder.done:
                work.folder.begin(described(one))
                one.run(work)
                work.folder.finish({})
    work = Work(task, out, Runtime(quiet=True))
    work.folder.begin(described(task))
    kinds = {
        CaptionRun: lambda: CaptionModel(task, work),
        SceneRun: lambda: SceneModel(task.recipe, work),
    }
    net = kinds.get(type(task), lambda: Model(task.recipe, work))().net
    weights = {k: torch.randn(p.shape, generator=seeded(k)) / 8 for k, p in net.named_parameters()}
    work.folder.save_model(weights, 8)
    work.folder.write_rows([{**ROW, "step": 8, "level": level} for level in range(3)])
    work.folder.finish({})
    return work


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A model of several families, and its export."""
    out, made = tmp_path_factory.mktemp("out"), {}
    recipes = objectives("smoke").variants()
    unet = replace(recipes["dit"], net=UNetConfig((8, 16), 1, embedding=16), tokenizer=Pixels())
    chosen = {name: recipes[name] for name in ("maskgit", "mar")}
    tasks = {name: ModelRun(r) for name, r in {**chosen, "unet": unet}.items()}
    tasks["captions"] = CaptionRun(features("smoke").recipe)
    tasks["scenes"] = SceneRun(scenes("smoke").recipe)
    for name, task in tasks.items():
        work = left_behind(task, out)
        export_run(work.folder.path, out / name)
        made[name] = task.open(work), out / name
    return made


@pytest.mark.skipif(not find_spec("diffusers"), reason="diffusers is not installed")
@pytest.mark.slow
def test_exported_models_draw_the_same_pictures_with_diffusers_alone(models, tmp_path):
    prompts = {name: ["circle red large", "small blue triangle"] for name in models}
    prompts["captions"] = ["a red circle on the left", "striped"]
    prompts["scenes"] = ["0.25 0.5; 0.75, 0.5", ""]
    folders = [(str(folder), prompts[name]) for name, (_, folder) in models.items()]
    code = ALONE.replace("{folders!r}", repr(folders))
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd="/",
        env={**os.environ, "HF_HOME": str(tmp_path)},
    )  # fmt: skip
    assert said.returncode == 0, said.stderr[-3000:]
    assert said.stdout.count("must name one shape: circle, triangle") == len(models) - 2
    assert "must list locations: 0.25 0.5; 0.75 0.5" in said.stdout
    for name, (model, folder) in models.items():
        drawn = np.load(folder / "drawn.npz")
        one, many, singly = (
            torch.from_numpy(drawn[n]).permute(0, 3, 1, 2) for n in ("one", "many", "singly")
        )
        ours = own_pictures(model, prompts[name], [torch.Generator().manual_seed(5)])
        assert torch.equal(ours, one), name
        assert ours.std() > 0
        assert torch.equal(many, singly), name
        assert torch.equal(own_pictures(model, prompts[name], [0, 1]), singly), name


def own_pictures(model, prompts, streams):
    """The same pictures, drawn here: from one stream, or from one each."""
    if len(streams) == 1:
        return draw(model, prompts, streams[0])
    generators = [torch.Generator().manual_seed(i) for i in streams]
    parts = [draw(model, [p], g) for p, g in zip(prompts, generators, strict=True)]
    return torch.cat(parts)


@torch.no_grad()
def draw(model, prompts, rng):
    from recombine.worlds.captions import Caption, tokens_of

    r = model.recipe
    if isinstance(model, SceneModel):
        at = torch.tensor([[[0.25, 0.5], [0.75, 0.5]]] * len(prompts))
        there = torch.tensor([[bool(p)] * 2 for p in prompts])
        noise = torch.randn((len(prompts), *r.world.image_shape), generator=rng)
        return model.sample(Layout(at, there).padded(r.slots), noise)
    if not hasattr(r, "evaluation"):
        return model.sample(Caption(tokens_of(prompts)), rng)
    values = [[f.values for f in r.world.space.factors]] * len(prompts)
    pairs = zip(prompts, values, strict=True)
    index = torch.tensor(
        [[next(i for i, v in enumerate(vs) if v in p) for vs in f] for p, f in pairs]
    )
    condition = r.world.describe(index, r.world.canonical(index))
    noising = hasattr(r.objective, "schedule")
    sampler = r.evaluation.solver if noising else r.evaluation.decoding
    return model.codec.decode(r.objective.sample(model.net, r.shape, condition, rng, sampler))


@pytest.mark.slow
def test_the_card_says_data_split_and_accuracy_by_level(models):
    card = (models["maskgit"][1] / "README.md").read_text()
    for part in (
        "Shapes2D",
        "seen in training: circle red large",
        "| level 2, oracle | 0.50 |",
        "trust_remote_code",
    ):
        assert part in card
    rows = [
        {"step": 4, "probe": "oracle", "level": 0, "joint": 0.0},
        {"step": 8, "probe": "oracle", "level": 0, "joint": 1.0},
        {"step": 8, "probe": "oracle", "level": 0, "joint": 0.5},
    ]
    assert accuracy_by_level(rows) == [("level 0, oracle", "0.75")]


def test_only_finished_models_are_exported_and_nothing_is_overwritten(models, tmp_path):
    model, folder = models["maskgit"]
    work = Work(ProbeRun(model.recipe.world), tmp_path, Runtime(quiet=True))
    work.folder.begin(described(work.task))
    finished = model.work.folder.path
    renamed = tmp_path / "other" / "runs" / "renamed"
    renamed.mkdir(parents=True)
    (renamed / "config.json").write_bytes((finished / "config.json").read_bytes())
    for run, target, message in (
        (tmp_path, tmp_path / "new", "is no run"),
        (renamed, tmp_path / "new", "is not a finished run, or was renamed"),
        (work.folder.path, tmp_path / "new", "holds run/probe, not a model"),
        (model.work.folder.path, folder, "is there already and not empty"),
    ):
        with pytest.raises(UsageError, match=message):
            export_run(run, target)


def test_the_only_model_of_a_study_is_found_and_several_are_listed(tmp_path):
    runs = [{"digest": "a1", "label": "probe check", "noun": "probe check"}]
    model = {"digest": "b2", "label": "balanced, seed 0", "noun": "model"}
    other = {"digest": "c3", "label": "raw, seed 0", "noun": "model"}
    study = tmp_path / "out" / "composition"
    for more, found in (
        ([], "trained no model"),
        ([model], None),
        ([model, other], "b2 .balanced"),
    ):
        write_json(study / "study.json", {"runs": runs + more})
        if found is None:
            assert find_run(study) == tmp_path / "out" / "runs" / "b2"
        else:
            with pytest.raises(UsageError, match=found):
                find_run(study)
    assert find_run(tmp_path) == tmp_path


def test_a_bundle_keeps_names_of_two_modules_apart():
    """DiT and U-Net both have TIME_WAVES, of different values."""
    from recombine.nets.dit import DiT
    from recombine.nets.unet import UNet

    space: dict = {"__name__": "made"}
    sys.modules["made"] = type(sys)("made")
    exec(bundle([DiT, UNet]), space)
    assert (space["TIME_WAVES_nets_dit"], space["TIME_WAVES_nets_unet"]) == (256, 64)
    assert "recombine" not in bundle([DiT, UNet])


def test_a_world_becomes_an_imagefolder_or_parquet(tmp_path):
    app(
        ["export", "world", "shapes2d", "--n", "9", "--out", str(tmp_path / "a")],
        standalone_mode=False,
    )
    table = pl.read_csv(tmp_path / "a" / "metadata.csv")
    assert table.columns == ["file_name", "shape", "color", "size"]
    assert len(table) == 9
    first = np.asarray(Image.open(tmp_path / "a" / table["file_name"][0]))
    assert first.shape == (28, 28, 3)
    export_world("captions", tmp_path / "b", 5, kind="parquet")
    rows = pl.read_parquet(tmp_path / "b" / "train.parquet")
    assert set(rows["image"][0]) == {"bytes", "path"}
    assert "text" in rows.columns
    from recombine.worlds.captions import Captions, spelled

    index = Captions().sample(5, seeded(0, "export", 0))
    assert rows["text"].to_list() == spelled(Captions().caption(index))
    for name, folder, message in (
        ("shapes3", tmp_path / "c", "no world 'shapes3'; there are"),
        ("shapes2d", tmp_path / "a", "not empty"),
    ):
        with pytest.raises(UsageError, match=message):
            export_world(name, folder, 3)


@pytest.mark.parametrize("count", [2, 4, 5])
def test_several_models_are_listed_and_a_long_list_is_cut(count):
    listed = _listed(Path("out/study"), {f"m{i}": f"seed {i}" for i in range(count)})
    assert listed.count("seed") == min(count, 4)
    assert listed.endswith(", ...") == (count > 4)


def test_a_bundle_refuses_names_that_would_mean_something_else():
    made = Bundle()
    made._import("np", "numpy", None, "np")
    made._import("np", "numpy", None, "np")
    with pytest.raises(
        UsageError, match="np means two things: import numpy as np, from a import np"
    ):
        made._import("np", "a", "np", "")
    with pytest.raises(UsageError, match=r"recombine\.a\.b: imported by another name, c"):
        made._import("c", "recombine.a", "b", "c")


def test_worlds_without_usual_settings_or_factors_are_refused():
    for name, message in (
        ("folder", "folder: is no world with usual settings"),
        ("scenes", "scenes: its pictures have no factors to write beside them"),
        ("shapes2", "did you mean shapes2d?"),
    ):
        with pytest.raises(UsageError, match=message):
            find_world(name)


def test_pictures_of_a_world_are_drawn_in_parts_of_one_stream_each(monkeypatch):
    monkeypatch.setattr("recombine.export.worlds.AT_ONCE", 4)
    world = find_world("shapes2d")
    parts = list(drawn(world, 10, 3))
    assert [len(images) for images, _ in parts] == [4, 4, 2]
    assert [len(rows) for _, rows in parts] == [4, 4, 2]
    again = list(drawn(world, 5, 3))
    assert torch.equal(parts[0][0], again[0][0])
    assert not torch.equal(parts[0][0], parts[1][0])
    assert not torch.equal(parts[0][0], next(drawn(world, 4, 4))[0])


def test_values_are_written_as_expressions_that_make_them():
    pixels = Pixels()
    assert written((1, ("a", 2.5), [True])) == "(1, ('a', 2.5, ), (True, ), )"
    assert written(()) == "()"
    assert written(pixels).startswith("Pixels(")
    assert written(replace(UNetConfig((8, 16), 1, embedding=16))).startswith(
        "UNetConfig(widths=(8, 16, )"
    )
    assert config_classes([1, (pixels, [UNetConfig((8,), 1)]), pixels]) == [Pixels, UNetConfig]


def test_a_card_lists_data_split_accuracy_and_use():
    text = card(
        "A title", "some data", ["a", "b"], [("level 0", "0.75"), ("level 1", "0.50")], "pipe(1)"
    )
    assert text.startswith("---\nlibrary_name: diffusers\n")
    for part in (
        "# A title\n", "## Data\nsome data\n", "## Split\n- a\n- b\n", "\npipe(1)\n```",
        "|---|---|\n| level 0 | 0.75 |\n| level 1 | 0.50 |\n",
    ):  # fmt: skip
        assert part in text


def test_pictures_of_a_world_are_numbered_files_with_a_table(tmp_path):
    export_world("shapes2d", tmp_path / "a", 3, seed=5)
    lines = (tmp_path / "a" / "metadata.csv").read_text().splitlines()
    assert lines[0] == "file_name,shape,color,size"
    assert [line.split(",")[0] for line in lines[1:]] == [f"images/000000{i}.png" for i in range(3)]
    images, rows = next(drawn(find_world("shapes2d"), 3, 5))
    assert lines[1].split(",")[1:] == list(rows[0].values())
    first = np.asarray(Image.open(tmp_path / "a" / "images" / "0000000.png"))
    assert np.array_equal(first, (255 * images[0]).round().byte().permute(1, 2, 0).numpy())
    export_world("shapes2d", tmp_path / "b", 1)
    with pytest.raises(UsageError, match=r"^--n 0: must be positive$"):
        export_world("shapes2d", tmp_path / "c", 0)
    (tmp_path / "empty").mkdir()
    export_world("shapes2d", tmp_path / "empty", 1)
