"""Probes from transformers: a zero-shot classifier such as CLIP, or an image classifier."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

from recombine.config import UsageError, install_command
from recombine.scoring.probes import Answers, PictureProbe
from recombine.scoring.prompts import check_template, labels_of, read_prompt
from recombine.worlds.datasets.dataset import Picture
from recombine.worlds.factors import Composition, FactorSpace

TASKS = {"zero-shot": "zero-shot-image-classification", "classifier": "image-classification"}
AT_ONCE = 64


def hub_probe(text: str, space: FactorSpace, template: str) -> PictureProbe:
    """`zero-shot:ID` chooses among the prompts of all compositions; `classifier:ID` must answer
    with labels that name a value of every factor."""
    kind, _, name = text.partition(":")
    pipe = _open(TASKS[kind], name)
    if kind == "zero-shot":
        words = template or "a photo of a " + " ".join(f"{{{f.name}}}" for f in space.factors)
        check_template(words, space)
        prompts = {words.format(**labels_of(space, c)): c for c in space.compositions}
        return PictureProbe(text, _zero_shot(pipe, prompts), f"{text}|{words}")
    return PictureProbe(text, _classifier(pipe, space, text), text)


def _open(task: str, name: str) -> Any:
    try:
        from transformers import pipeline
    except ModuleNotFoundError:
        raise UsageError(
            f"--probe {name}: needs transformers; {install_command('diffusers')}"
        ) from None
    try:
        return pipeline(task, model=name)
    except Exception as error:
        reason = " ".join(str(error).split())[:100]
        raise UsageError(f"--probe {name}: no such model here or on the hub ({reason})") from None


def _zero_shot(pipe: Any, prompts: dict[str, Composition]) -> Any:
    def read(pictures: Sequence[Picture]) -> Answers:
        images = [Image.fromarray(p) for p in pictures]
        found = pipe(
            images, candidate_labels=list(prompts), hypothesis_template="{}", batch_size=AT_ONCE
        )
        best = [max(one, key=lambda answer: answer["score"])["label"] for one in found]
        return np.array([prompts[label] for label in best], np.int64)

    return read


def _classifier(pipe: Any, space: FactorSpace, name: str) -> Any:
    known = {
        label: read_prompt(label.replace("_", " "), space)
        for label in pipe.model.config.id2label.values()
    }
    if wrong := next((label for label, c in known.items() if isinstance(c, str)), None):
        raise UsageError(f"--probe {name}: its label {wrong!r} {known[wrong]}")

    def read(pictures: Sequence[Picture]) -> Answers:
        found = pipe([Image.fromarray(p) for p in pictures], top_k=1, batch_size=AT_ONCE)
        return np.array([known[one[0]["label"]] for one in found], np.int64)

    return read
