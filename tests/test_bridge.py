"""Tiny pipelines of diffusers through the bridge: as denoisers, samplers and named features."""

import re
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_pipelines import MAKERS, SIDE, STEPS, build, ddpm, dit

from recombine.bridge.adapters import adapter
from recombine.bridge.features import (
    attention_maps,
    attention_weights,
    block_names,
    hidden_states,
)
from recombine.bridge.pipelines import open_pipeline, sampler
from recombine.config import UsageError
from recombine.metrics.locality import condition_influence, pixel_influence
from recombine.objectives.process import Denoiser, spread
from recombine.rng import seeded

pytestmark = pytest.mark.skipif(not find_spec("diffusers"), reason="diffusers is not installed")
TEMPLATE = "a {size} {color} {shape}"
LABELS = [
    {"shape": "circle", "color": "red", "size": "large"},
    {"shape": "triangle", "color": "blue", "size": "small"},
]
PROMPTS = ["a large red circle left", "a small blue triangle right"]
BLOCKS = {"sdxl": 8, "sd3": 2, "flux": 2, "pixart": 2}


@pytest.fixture(scope="module")
def pipes(tmp_path_factory):
    return {name: build(name, tmp_path_factory.mktemp(name)) for name in MAKERS}


def noise(shape, count=2, seed=0):
    return torch.randn(count, *shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", MAKERS)
def test_a_pipeline_draws_by_labels_and_reloads_identically(pipes, name, tmp_path):
    options = {"num_inference_steps": STEPS, "height": SIDE, "width": SIDE}
    images = sampler(pipes[name], TEMPLATE, **options)(LABELS, 2, seed=3)
    assert images.shape == (4, SIDE, SIDE, 3)
    assert images.dtype == np.uint8
    assert not np.array_equal(images[0], images[1])
    pipes[name].save_pretrained(tmp_path / name)
    again = sampler(tmp_path / name, TEMPLATE, **options)(LABELS, 2, seed=3)
    assert np.array_equal(images, again)


@pytest.mark.parametrize("name", MAKERS)
def test_the_denoiser_takes_the_step_that_the_pipelines_scheduler_takes(pipes, name):
    """One step of the pipeline's own scheduler to the clean end, from what its network says, gives
    what the denoiser says."""
    bridge = adapter(pipes[name])
    assert isinstance(bridge, Denoiser)
    text, x = bridge.text(PROMPTS), noise(bridge.shape(SIDE))
    scheduler = type(pipes[name].scheduler).from_config(pipes[name].scheduler.config)
    scheduler.set_timesteps(3 if hasattr(scheduler, "alphas_cumprod") else 1)
    step = scheduler.timesteps[0]
    scheduler.is_scale_input_called = True
    with torch.no_grad():
        t = (step / bridge.last_step).expand(2).float()
        time = spread(t, x)
        alpha, sigma = bridge.schedule.alpha(time), bridge.schedule.sigma(time)
        raw = bridge.call(x, step.expand(2).float(), text)[:, : x.shape[1]]
        scaled = x / alpha if name == "sdxl" else x  # Euler's scheduler counts in sigma / alpha
        made = scheduler.step(raw, step, scaled)
        clean = bridge(x, t, text)
    expected = getattr(made, "pred_original_sample", None)
    expected = made.prev_sample if expected is None else expected
    if name == "pixart":
        clean, expected = clean.clamp(-1, 1), expected.clamp(-1, 1)
    torch.testing.assert_close(clean, expected, atol=2e-4, rtol=2e-4)
    assert (sigma > 0.5).all()


def test_locality_of_sdxl_through_the_bridge_is_that_of_its_unet(pipes):
    pipe, bridge = pipes["sdxl"], adapter(pipes["sdxl"])
    text, x, pixel = bridge.text(PROMPTS[:1]), noise((4, 8, 8), 1), (3, 5)
    t = torch.tensor([0.4])
    influence = pixel_influence(bridge, x, t, text, torch.tensor([[pixel]]))
    embeds, _, pooled, _ = pipe.encode_prompt(PROMPTS[:1], do_classifier_free_guidance=False)
    step = 0.4 * 999
    table = pipe.scheduler.alphas_cumprod.double().log()
    squared = torch.lerp(table[399], table[400], torch.tensor(step - 399).double()).exp().float()
    more = {"text_embeds": pooled, "time_ids": torch.tensor([[16.0, 16, 0, 0, 16, 16]])}

    def direct(y):
        said = pipe.unet(y, torch.tensor([step]), embeds, added_cond_kwargs=more).sample
        return ((y - (1 - squared).sqrt() * said) / squared.sqrt())[0, :, *pixel]

    energy = torch.func.jacrev(direct)(x)[:, 0].square().sum((0, 1))
    energy[pixel] = 0
    torch.testing.assert_close(influence.energy[0, 0], energy, rtol=1e-4, atol=1e-9)
    assert 0 < influence.share(squared=False) < 1


@pytest.mark.parametrize("name", MAKERS)
def test_removing_a_word_changes_its_tokens_and_the_pooled_embedding_alone(pipes, name):
    bridge = adapter(pipes[name])
    text = bridge.text(PROMPTS)
    assert text.present.all()
    assert text.tokens.any(2).all()
    assert (text.tokens.sum(1) <= 1).all()
    keep = torch.ones_like(text.present)
    keep[0, 2] = False  # "red" of the first prompt
    less = text.keep(keep)
    changed = (less.encoded.embeds != text.encoded.embeds).any(2)
    assert torch.equal(changed, text.tokens[:, 2] & torch.tensor([[True], [False]]))
    if text.encoded.pooled is not None:
        moved = (less.encoded.pooled - text.encoded.pooled).abs().amax(1)
        assert moved[0] > 1e-4 > moved[1]
    with torch.no_grad():
        x, t = noise(bridge.shape(32)), torch.full((2,), 0.7)
        change = (bridge(x, t, less) - bridge(x, t, text)).abs().amax((1, 2, 3))
    assert change[0] > 1e-7
    assert change[1] < 1e-5


def test_words_are_the_conditions_of_conditional_locality(pipes):
    bridge = adapter(pipes["pixart"])
    text, x = bridge.text(PROMPTS[:1]), noise(bridge.shape(32), 1)
    at = torch.rand(1, 5, 2)
    influence = condition_influence(bridge, x, torch.tensor([0.5]), text, at)
    assert influence.energy.shape == (1, 5, *x.shape[2:])
    assert (influence.energy.sum((2, 3)) > 0).all()


@pytest.mark.parametrize("name", MAKERS)
def test_every_block_gives_its_hidden_states(pipes, name):
    bridge = adapter(pipes[name])
    net, text, x = bridge.net, bridge.text(PROMPTS), noise(bridge.shape(32))
    with torch.no_grad(), hidden_states(net) as held:
        bridge(x, torch.full((2,), 0.5), text)
    assert len(held) == BLOCKS[name]
    assert set(held) == set(block_names(net))
    assert all(state.ndim == 3 and len(state) == 2 for state in held.values())
    assert not any(m._forward_hooks for m in net.modules())


@pytest.mark.parametrize("name", MAKERS)
def test_attention_maps_are_the_weights_that_are_used(pipes, name):
    bridge = adapter(pipes[name])
    text, x = bridge.text(PROMPTS), noise(bridge.shape(32))
    with torch.no_grad(), attention_maps(bridge.net) as held:
        bridge(x, torch.full((2,), 0.5), text)
    assert len(held) >= BLOCKS[name]
    for weights in held.values():
        assert weights.shape[0] == 2
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))


def test_attention_maps_do_not_depend_on_the_processor(pipes):
    from diffusers.models.attention_processor import AttnProcessor, AttnProcessor2_0

    bridge, held = adapter(pipes["sdxl"]), {}
    text, x = bridge.text(PROMPTS), noise(bridge.shape(32))
    for kind in (AttnProcessor2_0, AttnProcessor):
        bridge.net.set_attn_processor(kind())
        with torch.no_grad(), attention_maps(bridge.net) as maps:
            bridge(x, torch.full((2,), 0.5), text)
        held[kind] = maps
    ours, theirs = held.values()
    assert ours.keys() == theirs.keys()
    for key in ours:
        torch.testing.assert_close(ours[key], theirs[key], rtol=1e-4, atol=1e-6)


def test_networks_without_text_are_denoisers_too():
    for pipe, condition in ((ddpm(), None), (dit(), torch.tensor([0, 2]))):
        bridge = adapter(pipe)
        x = noise(bridge.shape())
        with torch.no_grad(), hidden_states(bridge.net) as held:
            clean = bridge(x, torch.full((2,), 1e-4), condition)
        assert clean.shape == x.shape
        torch.testing.assert_close(clean, x, atol=0.2, rtol=0.2)  # hardly any noise is left
        assert held
        with pytest.raises(UsageError, match="takes no prompt"):
            bridge.encode(["a circle"])


def test_a_pipeline_of_classes_draws_by_their_names():
    pipe = dit()
    pipe.set_progress_bar_config(disable=True)
    draw = sampler(pipe, "{color} {shape}", num_inference_steps=2)
    images = draw([{"color": "red", "shape": "circle"}], 2, seed=0)
    assert images.shape == (2, 16, 16, 3)
    with pytest.raises(UsageError, match="no class is called 'blue triangle'"):
        draw([{"color": "blue", "shape": "triangle"}], 1, seed=0)
    with pytest.raises(UsageError, match="DDPMPipeline takes no prompt"):
        sampler(ddpm(), TEMPLATE)(LABELS, 1, seed=0)


class Nothing:
    """A pipeline that returns what it is given."""

    def __init__(self, images):
        self.images = images

    def __call__(self, prompt, generator, output_type):
        return self


@pytest.mark.parametrize(
    ("source", "template", "message"),
    [
        ("nobody/nothing", TEMPLATE, "no such folder, and no pipeline of this id"),
        ("no/such/folder", TEMPLATE, "no such folder, and no id of a pipeline"),
        (".", TEMPLATE, "no model_index.json"),
        (Nothing(None), TEMPLATE, "returns no pictures for 2 prompts"),
        (Nothing([]), TEMPLATE, "returns 0 pictures for 2 prompts"),
        (Nothing(np.full((2, 8, 8, 3), np.nan)), TEMPLATE, "not finite"),
        (Nothing(None), "a {color} {shape}", "leaves out the factor 'size'"),
        (Nothing(None), TEMPLATE + " {place}", "{place} is no factor; there are shape, color"),
        (Nothing(None), "a {size", "template 'a {size'"),
    ],
)
def test_bad_input_is_one_clear_line(source, template, message, monkeypatch, capsys):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UsageError) as caught:
        sampler(source, template)(LABELS, 1, seed=0)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_code_in_a_folder_runs_only_where_it_is_trusted(tmp_path):
    (tmp_path / "model_index.json").write_text('{"_class_name": ["own", "Own"]}')
    (tmp_path / "own.py").write_text("raise SystemExit('it ran')")
    with pytest.raises(UsageError, match="has Python code of its own"):
        open_pipeline(tmp_path)


def test_without_diffusers_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "diffusers", None)
    with pytest.raises(UsageError, match=r"pip install -e '\.\[diffusers\]'"):
        sampler("nobody/nothing", TEMPLATE)


def test_the_docs_program_runs_on_a_tiny_pipeline(pipes, tmp_path, monkeypatch):
    name = next(iter(MAKERS))
    pipes[name].save_pretrained(tmp_path / "path" / "to" / "folder")
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).parents[1] / "docs" / "bridge.md").read_text()
    program = re.search(r"```python\n(.*?)```", text, re.S)[1]
    fast = program.replace(
        "num_inference_steps=20", f"num_inference_steps=2, height={SIDE}, width={SIDE}"
    )
    names: dict = {}
    exec(fast.replace("shape(64)", f"shape({SIDE})"), names)
    assert len(names["images"]) == 4
    assert names["states"]
    assert names["maps"]


def test_an_exported_text_model_through_the_bridge_is_the_model_itself(tmp_path):
    from test_export import left_behind

    from recombine.export.models import export_run
    from recombine.runs.captions import CaptionRun
    from recombine.studies.features import settings

    task = CaptionRun(settings("smoke").recipe)
    work = left_behind(task, tmp_path)
    export_run(work.folder.path, tmp_path / "exported")
    model, bridge = task.open(work), adapter(open_pipeline(tmp_path / "exported", trust_code=True))
    x, t = noise(bridge.shape()), torch.tensor([0.3, 0.8])
    ours, theirs = (one.text(["a red circle on the left", "striped"]) for one in (model, bridge))
    assert torch.equal(ours.tokens, theirs.tokens)
    with torch.no_grad():
        assert torch.equal(model(x, t, ours), bridge(x, t, theirs))
        assert torch.equal(model.decode(x), bridge.decode(x))
    assert block_names(model.net) == block_names(bridge.net)


ATTENTION = {
    "plain": {},
    "causal": {"is_causal": True},
    "scaled": {"scale": 0.3},
    "masked": {"attn_mask": torch.eye(5, dtype=torch.bool)},
    "biased": {"attn_mask": torch.arange(25.0).view(5, 5) / 10},
    "grouped": {"enable_gqa": True},
}


@pytest.mark.parametrize("options", ATTENTION.values(), ids=ATTENTION)
def test_attention_weights_are_those_that_torch_adds_values_with(options):
    rng, heads = seeded("attention"), 2 if options.get("enable_gqa") else 4
    query = torch.randn(3, 4, 5, 8, generator=rng)
    key, value = torch.randn(2, 3, heads, 5, 8, generator=rng)
    weights = attention_weights(query, key, value, **options)
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value, **options)
    torch.testing.assert_close(weights @ value.repeat_interleave(4 // heads, 1), expected)


class Fails:
    """A pipeline that raises."""

    def __init__(self, error):
        self.error = error

    def __call__(self, prompt, generator, output_type):
        raise self.error


def test_what_a_pipeline_raises_is_one_line_and_a_line_of_ours_stays():
    with pytest.raises(UsageError) as caught:
        sampler(Fails(RuntimeError("no\n" + "x" * 300)), TEMPLATE)(LABELS, 1, seed=0)
    line = f"Fails: fails on 'a large red circle': RuntimeError: no {'x' * 197}"
    assert str(caught.value) == line
    with pytest.raises(UsageError, match=r"^ours$"):
        sampler(Fails(UsageError("ours")), TEMPLATE)(LABELS, 1, seed=0)


class Paints:
    """A pipeline that notes how it was called and paints numbers outside [0, 1], too."""

    def __init__(self):
        self.calls = []

    def __call__(self, prompt, generator, output_type, clean_caption=True):
        noise = [float(torch.rand((), generator=g)) for g in generator]
        self.calls.append((prompt, noise, output_type, clean_caption))
        self.images = [np.array([[[-1.0, 0.5, 2.0]]])] * len(prompt)
        return self


def test_pictures_are_drawn_sixteen_at_a_time_each_from_its_own_stream():
    pipe = Paints()
    images = sampler(pipe, "{a}")([{"a": "x"}, {"a": "y"}], 9, seed=3)
    assert images.shape == (18, 1, 1, 3)
    assert images[0, 0, 0].tolist() == [0, 128, 255]
    assert [len(prompts) for prompts, *_ in pipe.calls] == [16, 2]
    assert pipe.calls[0][0] == ["x"] * 9 + ["y"] * 7
    assert pipe.calls[0][2:] == ("np", False)
    noise = [n for _, some, *_ in pipe.calls for n in some]
    assert noise == [float(torch.rand((), generator=seeded(3, "pipeline", i))) for i in range(18)]
