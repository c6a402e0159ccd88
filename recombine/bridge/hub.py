"""A model as a folder that diffusers alone opens: code, weights, model card.

The folder holds two files of code, `pipeline_<run>.py` and `model/recombine_<run>.py`, named by the
run, since diffusers keeps the code of all local folders in one place."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import save
from torch import Tensor

from recombine.bridge.bundle import bundle
from recombine.store import write_atomic, write_json

MODEL = '''
class RecombineModel(ModelMixin, ConfigMixin):
    """A model with its sampler; `draw` gives pictures in [0, 1]."""

    config_name = "config.json"

    @register_to_config
    def __init__(self, run=""):
        super().__init__()
        self.net = {net}
        self.autoencoder = {autoencoder}
        for name, shape in {buffers}.items():
            self.register_buffer(name, torch.zeros(shape))
        for part in self.modules():
            part._non_persistent_buffers_set.clear()  # all of them are in the file

    @property
    def codec(self):
        return {codec}

{methods}
'''

PIPELINE = '''"""Draws with {title}. Opened by
DiffusionPipeline.from_pretrained(folder, trust_remote_code=True)."""

import numpy as np
import torch
from diffusers import DiffusionPipeline, ImagePipelineOutput


class RecombinePipeline(DiffusionPipeline):
    """pipe(["{example}"], generator=torch.Generator().manual_seed(0)).images"""

    def __init__(self, model):
        super().__init__()
        self.register_modules(model=model)

    @torch.no_grad()
    def __call__(
        self,
        prompt,
        num_images_per_prompt=1,
        generator=None,
        output_type="pil",
        return_dict=True,
    ):
        """`generator`: one for all pictures, or a list with one for each."""
        prompts = [prompt] if isinstance(prompt, str) else list(prompt)
        prompts = [p for p in prompts for _ in range(num_images_per_prompt)]
        given = self.model.read_prompts(prompts)
        if isinstance(generator, list):
            pairs = zip(given.split(1), generator, strict=True)
            images = torch.cat([self.model.draw(one, g) for one, g in pairs])
        else:
            generator = generator or torch.Generator(given.device).manual_seed(torch.seed())
            images = self.model.draw(given, generator)
        if output_type != "pt":
            images = images.permute(0, 2, 3, 1).float().cpu().numpy()
        if output_type == "pil":
            images = self.numpy_to_pil(images)
        return ImagePipelineOutput(images=images) if return_dict else (images,)
'''

LABELS = '''
    def read_prompts(self, prompts):
        """The value of every factor that each prompt names; ValueError where it does not name one
        value of each."""
        rows = []
        for prompt in prompts:
            text, row = " " + " ".join(prompt.replace(",", " ").split()) + " ", []
            for factor in SPACE.factors:
                values = [f" {value} " for value in factor.values]
                named = [i for i, value in enumerate(values) if value in text]
                longer = [v for v in values if v in text]  # "dark red" names no "red"
                named = [i for i in named if not any(values[i] in v != values[i] for v in longer)]
                if len(named) != 1:
                    raise ValueError(
                        f"{prompt!r} must name one {factor.name}: {', '.join(factor.values)}"
                    )
                row += named
            rows.append(row)
        return torch.tensor(rows, device=self.device)

    def draw(self, index, generator):
        """A picture for each row of values."""
        where = torch.zeros_like(index[:, 0])
        for i, size in enumerate(SPACE.sizes):
            where = where * size + index[:, i]
        condition = Condition(index, self.canonical_values[where], torch.ones_like(index, dtype=torch.bool))
        with torch.autocast(index.device.type, torch.bfloat16, enabled=HALF):
            latents = {sample}
        return self.codec.decode(latents.float())
'''
NOISING = """OBJECTIVE.follow(
                Guided(OBJECTIVE.denoiser(self.net), GUIDANCE) if GUIDANCE != 1 else OBJECTIVE.denoiser(self.net),
                SHAPE, condition, generator, SAMPLER, OBJECTIVE.schedule_of(self.net),
            )"""
TOKENS = "OBJECTIVE.sample(self.net, SHAPE, condition, generator, SAMPLER)"
CAPTIONS = '''
    @property
    def objective(self):
        return OBJECTIVE

    @property
    def latent_shape(self):
        return SHAPE

    def read_prompts(self, prompts):
        """The words of each prompt as numbers."""
        return tokens_of(prompts, self.device)

    def draw(self, tokens, generator):
        """A picture for each caption."""
        noise = torch.randn((len(tokens), *SHAPE), generator=generator, device=generator.device)
        denoiser = OBJECTIVE.denoiser(self.net)
        latents = SAMPLER.sample(denoiser, OBJECTIVE.schedule, noise, Caption(tokens), generator)
        return self.codec.decode(latents)
'''

LAYOUTS = '''
    def read_prompts(self, prompts):
        """The locations that each prompt lists, "0.25 0.5; 0.75 0.5" (x right, y down): x, y and
        whether there is one. ValueError where a prompt is no such list."""
        table = torch.zeros(len(prompts), SLOTS, 3)
        for row, prompt in zip(table, prompts):
            named = [part.replace(",", " ").split() for part in prompt.split(";") if part.strip()]
            try:
                found = torch.tensor([[float(x) for x in pair] for pair in named]).reshape(-1, 2)
            except (ValueError, RuntimeError):
                raise ValueError(f"{prompt!r} must list locations: 0.25 0.5; 0.75 0.5") from None
            if len(found) != len(named) or len(found) > SLOTS:
                raise ValueError(f"{prompt!r} must list at most {SLOTS} locations: 0.25 0.5; 0.75 0.5")
            if not ((found >= 0) & (found <= 1)).all():
                raise ValueError(f"{prompt!r}: locations must lie between 0 and 1")
            row[: len(found), :2], row[: len(found), 2] = found, 1
        return table.to(self.device)

    def draw(self, locations, generator):
        """A picture for each list of locations."""
        layout = Layout(locations[..., :2], locations[..., 2] > 0)
        noise = torch.randn((len(locations), *SHAPE), generator=generator, device=generator.device)
        denoiser = OBJECTIVE.denoiser(self.net)
        with torch.autocast(locations.device.type, torch.bfloat16, enabled=HALF):
            images = SAMPLER.sample(denoiser, OBJECTIVE.schedule, noise, layout, generator)
        return ((images.float() + 1) / 2).clamp(0, 1)
'''


@dataclass(frozen=True)
class Exported:
    """What a folder is made of. `things`: classes and functions that the code uses; `constants`:
    values that it is given, configs as they are written; `tensors`: the model's by name."""

    run: str
    title: str
    example: str
    things: tuple[Any, ...]
    constants: dict[str, Any]
    net: str
    methods: str
    tensors: dict[str, Tensor]
    autoencoder: str = "None"
    codec: str = "None"
    buffers: tuple[str, ...] = ()
    card: str = ""

    def write(self, folder: Path) -> None:
        model, code = f"recombine_{self.run}", f"pipeline_{self.run}"
        write_atomic(folder / "model" / f"{model}.py", self.code())
        held = {name: t.detach().cpu().contiguous() for name, t in self.tensors.items()}
        data = save(held, metadata={"format": "pt"})
        write_atomic(folder / "model" / "diffusion_pytorch_model.safetensors", data)
        about = {"_class_name": "RecombineModel", "_diffusers_version": "0.36.0", "run": self.run}
        write_json(folder / "model" / "config.json", about)
        pipeline = PIPELINE.format(title=self.title, example=self.example)
        write_atomic(folder / f"{code}.py", pipeline)
        index = {"_class_name": [code, "RecombinePipeline"], "_diffusers_version": "0.36.0"}
        write_json(folder / "model_index.json", {**index, "model": [model, "RecombineModel"]})
        write_atomic(folder / "README.md", self.card)

    def code(self) -> str:
        """The file of the model: all of the package's code that it needs, and its class."""
        source = bundle([*self.things, *config_classes(self.constants.values())])
        values = [f"{name} = {written(value)}" for name, value in self.constants.items()]
        shapes = {name: tuple(self.tensors[name].shape) for name in self.buffers}
        made = MODEL.format(
            net=self.net, autoencoder=self.autoencoder, codec=self.codec, buffers=repr(shapes),
            methods=self.methods.strip("\n"),
        )  # fmt: skip
        needed = (
            "import torch",
            "from diffusers import ConfigMixin, ModelMixin",
            "from diffusers.configuration_utils import register_to_config",
        )
        head, future, body = source.partition("from __future__ import annotations\n")
        return "\n".join([head + future, *needed, body, *values, made])


def written(value: Any) -> str:
    """A value as an expression that makes it."""
    if isinstance(value, (tuple, list)):
        return f"({''.join(f'{written(v)}, ' for v in value)})"
    if not is_dataclass(value):
        return repr(value)
    inner = ", ".join(f"{f.name}={written(getattr(value, f.name))}" for f in fields(value))
    return f"{type(value).__name__}({inner})"


def config_classes(values: Iterable[Any]) -> list[type]:
    """The classes of all dataclasses in some values."""
    found: dict[type, None] = {}
    for value in values:
        if isinstance(value, (tuple, list)):
            found |= dict.fromkeys(config_classes(value))
        elif is_dataclass(value):
            inner = [getattr(value, f.name) for f in fields(value)]
            found |= dict.fromkeys([*config_classes(inner), type(value)])
    return list(found)


def card(title: str, data: str, split: list[str], table: list[tuple[str, str]], use: str) -> str:
    """A model card: data, split, accuracy by level, how to open it."""
    rows = "\n".join(f"| {name} | {value} |" for name, value in table)
    seen = "\n".join(f"- {line}" for line in split)
    tags = json.dumps(["recombine", "compositional-generalization"])
    return f"""---
library_name: diffusers
license: apache-2.0
tags: {tags}
---
# {title}

Trained with recombine; a model for studying composition.

## Data
{data}

## Split
{seen}

## Accuracy
| what | share of samples that show it |
|---|---|
{rows}

## Use
```python
import torch
from diffusers import DiffusionPipeline

pipe = DiffusionPipeline.from_pretrained("FOLDER", trust_remote_code=True)
{use}
```
Opening it runs the two files of code in this folder, which need torch and diffusers alone.
"""
