"""Opening a diffusers pipeline by folder or id, and sampling from it by labels and a template."""

import string
from collections.abc import Callable
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8

from recombine.config import UsageError, install_command
from recombine.rng import seeded

AT_ONCE = 16
"""Pictures that are drawn together."""
Labels = list[dict[str, str]]
Sampler = Callable[[Labels, int, int], UInt8[np.ndarray, "n h w c"]]


def open_pipeline(source: str | Path, device: str = "cpu", trust_code: bool = False) -> Any:
    """The pipeline in a folder, or with this id on the hub or in its cache. A folder with code of
    its own is opened only where `trust_code` says so. UsageError in one line where there is
    none."""
    library, path = _diffusers(), Path(source)
    if path.is_dir() and not (path / "model_index.json").is_file():
        raise UsageError(f"{source}: is no pipeline; it has no model_index.json")
    if path.is_dir() and list(path.glob("*.py")) and not trust_code:
        raise UsageError(
            f"{source}: the pipeline has Python code of its own, which opening it would run; "
            "read it, then say that it is trusted (--trust-code, in Python trust_code=True)"
        )
    if not path.is_dir() and str(source).count("/") != 1:
        raise UsageError(f"{source}: no such folder, and no id of a pipeline (owner/name)")
    try:
        with _quiet(library):
            pipe = library.DiffusionPipeline.from_pretrained(
                str(source), trust_remote_code=trust_code, low_cpu_mem_usage=False
            )
    except Exception as error:
        if not path.is_dir():
            raise UsageError(
                f"{source}: no such folder, and no pipeline of this id is in the cache or can be "
                f"downloaded ({type(error).__name__})"
            ) from None
        raise UsageError(f"{source}: cannot be opened: {_line(error)}") from None
    pipe.set_progress_bar_config(disable=True)
    return pipe.to(device)


def _diffusers() -> Any:
    try:
        import diffusers
    except ModuleNotFoundError as error:
        raise UsageError(
            f"{error.name} is not installed; a pipeline needs {install_command('diffusers')}"
        ) from None
    return diffusers


@contextmanager
def _quiet(library: Any) -> Any:
    """Without the bars and hints that loading prints."""
    logging = library.utils.logging
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(before)
        logging.enable_progress_bar()


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def check_template(template: str, labels: Labels) -> None:
    """UsageError where a template cannot be filled with the labels, or leaves a factor out."""
    try:
        fields = {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}
    except ValueError as error:
        raise UsageError(f"template {template!r}: {error}") from None
    factors = list(dict.fromkeys(name for label in labels for name in label))
    if missing := [name for name in factors if name not in fields]:
        raise UsageError(f"template {template!r}: leaves out the factor {missing[0]!r}")
    if strange := sorted(fields - set(factors)):
        raise UsageError(
            f"template {template!r}: {{{strange[0]}}} is no factor; there are {', '.join(factors)}"
        )


def sampler(
    source: str | Path | Any,
    template: str,
    device: str = "cpu",
    trust_code: bool = False,
    **options: Any,
) -> Sampler:
    """A function (labels, n_per_item, seed) -> pictures, n_per_item of each label one after the
    other: the template, filled with a label, is the prompt. `source`: a folder, an id, or a
    pipeline that is open. `options` are the pipeline's own, e.g. num_inference_steps."""
    known = isinstance(source, (str, Path))
    pipe = open_pipeline(source, device, trust_code) if known else source

    def sample(labels: Labels, n_per_item: int, seed: int) -> UInt8[np.ndarray, "n h w c"]:
        check_template(template, labels)
        prompts = [template.format(**label) for label in labels for _ in range(n_per_item)]
        parts = [
            _pictures(pipe, prompts[i : i + AT_ONCE], range(i, i + AT_ONCE), seed, options)
            for i in range(0, len(prompts), AT_ONCE)
        ]
        return np.concatenate(parts)

    return sample


def _pictures(
    pipe: Any, prompts: list[str], number: range, seed: int, options: dict[str, Any]
) -> UInt8[np.ndarray, "n h w c"]:
    """A picture for each prompt; its noise is named by the seed and its number alone."""
    device, name = str(getattr(pipe, "device", "cpu")), type(pipe).__name__
    streams = [seeded(seed, "pipeline", i, device=device) for i in number[: len(prompts)]]
    given = {"generator": streams, "output_type": "np", **_prompted(pipe, prompts), **options}
    try:
        with torch.no_grad():
            made = pipe(**given)
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(f"{name}: fails on {prompts[0]!r}: {_line(error)}") from None
    images = getattr(made, "images", None)
    if images is None or len(images) != len(prompts):
        count = "no pictures" if images is None else f"{len(images)} pictures"
        raise UsageError(f"{name}: returns {count} for {len(prompts)} prompts")
    images = np.stack([np.asarray(image) for image in images])
    if images.dtype == np.uint8:
        return images
    if not np.isfinite(images).all():
        raise UsageError(f"{name}: returns pictures that are not finite for {prompts[0]!r}")
    return (255 * images.clip(0, 1)).round().astype(np.uint8)


def _prompted(pipe: Any, prompts: list[str]) -> dict[str, Any]:
    """The prompts as this pipeline takes them: as text, or as the names of classes."""
    takes = signature(pipe.__call__).parameters
    if "prompt" in takes:
        plain = {"clean_caption": False, "use_resolution_binning": False}
        return {"prompt": prompts, **{k: v for k, v in plain.items() if k in takes}}
    if "class_labels" in takes and getattr(pipe, "labels", None):
        if unknown := [p for p in prompts if p not in pipe.labels]:
            raise UsageError(f"{type(pipe).__name__}: no class is called {unknown[0]!r}")
        return {"class_labels": [pipe.labels[p] for p in prompts]}
    raise UsageError(f"{type(pipe).__name__} takes no prompt; labels cannot be drawn with it")
