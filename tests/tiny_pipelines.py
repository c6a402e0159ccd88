"""Tiny pipelines of the real classes of diffusers, built offline from configs: random weights, and
a vocabulary of a dozen words."""

import json
from pathlib import Path
from typing import Any

import torch

WORDS = ["a", "red", "blue", "circle", "triangle", "large", "small", "left", "right", "photo", "of"]
SIDE, STEPS = 64, 4


def clip_tokenizer(folder: Path) -> Any:
    """CLIP's tokenizer: letters, and the merges that make the words."""
    from transformers import CLIPTokenizer

    letters = [chr(i) for i in range(ord("a"), ord("z") + 1)]
    vocabulary = ["<|startoftext|>", "<|endoftext|>", *letters, *(f"{c}</w>" for c in letters)]
    merges: list[str] = []
    for word in WORDS:
        parts = [*word[:-1], f"{word[-1]}</w>"]
        while len(parts) > 1:
            merges.append(f"{parts[0]} {parts[1]}")
            parts = [parts[0] + parts[1], *parts[2:]]
            vocabulary.append(parts[0])
    numbers = {token: i for i, token in enumerate(dict.fromkeys(vocabulary))}
    folder.mkdir(parents=True, exist_ok=True)
    files = folder / "vocab.json", folder / "merges.txt"
    files[0].write_text(json.dumps(numbers))
    files[1].write_text("\n".join(["#version: 0.2", *dict.fromkeys(merges)]))
    return CLIPTokenizer(*map(str, files), model_max_length=16)


def word_tokenizer() -> Any:
    """One token a word, in T5's form."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    numbers = {word: i for i, word in enumerate(["<pad>", "</s>", "<unk>", *WORDS])}
    inner = Tokenizer(models.WordLevel(numbers, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    inner.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    special = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    return PreTrainedTokenizerFast(tokenizer_object=inner, model_max_length=16, **special)


def clip(projected: bool) -> Any:
    from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection

    config = CLIPTextConfig(
        vocab_size=96, hidden_size=32, intermediate_size=37, num_hidden_layers=2,
        num_attention_heads=4, max_position_embeddings=16, projection_dim=32,
        bos_token_id=0, eos_token_id=1, pad_token_id=1,
    )  # fmt: skip
    return (CLIPTextModelWithProjection if projected else CLIPTextModel)(config).eval()


def t5(width: int = 32) -> Any:
    from transformers import T5Config, T5EncoderModel

    config = T5Config(vocab_size=16, d_model=width, d_kv=8, d_ff=37, num_layers=2, num_heads=4)
    return T5EncoderModel(config).eval()


def vae() -> Any:
    from diffusers import AutoencoderKL

    return AutoencoderKL(
        block_out_channels=(16, 16), norm_num_groups=8, latent_channels=4, sample_size=SIDE,
        down_block_types=["DownEncoderBlock2D"] * 2, up_block_types=["UpDecoderBlock2D"] * 2,
        scaling_factor=0.5, shift_factor=0.1,
    ).eval()  # fmt: skip


def sdxl(folder: Path) -> Any:
    from diffusers import EulerDiscreteScheduler, StableDiffusionXLPipeline, UNet2DConditionModel

    unet = UNet2DConditionModel(
        block_out_channels=(16, 32), layers_per_block=1, sample_size=32, norm_num_groups=8,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), attention_head_dim=(2, 4),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"), use_linear_projection=True,
        addition_embed_type="text_time", addition_time_embed_dim=8, cross_attention_dim=64,
        transformer_layers_per_block=(1, 2), projection_class_embeddings_input_dim=6 * 8 + 32,
    )  # fmt: skip
    scheduler = EulerDiscreteScheduler(
        beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", steps_offset=1
    )
    tokenizer = clip_tokenizer(folder)
    return StableDiffusionXLPipeline(
        vae(), clip(False), clip(True), tokenizer, tokenizer, unet.eval(), scheduler
    )


def sd3(folder: Path) -> Any:
    from diffusers import (
        FlowMatchEulerDiscreteScheduler,
        SD3Transformer2DModel,
        StableDiffusion3Pipeline,
    )

    net = SD3Transformer2DModel(
        sample_size=32, patch_size=4, in_channels=4, num_layers=2, attention_head_dim=8,
        num_attention_heads=4, caption_projection_dim=32, joint_attention_dim=64,
        pooled_projection_dim=64, out_channels=4,
    )  # fmt: skip
    tokenizer, scheduler = clip_tokenizer(folder), FlowMatchEulerDiscreteScheduler(shift=3.0)
    texts = (clip(True), tokenizer, clip(True), tokenizer, t5(64), word_tokenizer())
    return StableDiffusion3Pipeline(net.eval(), scheduler, vae(), *texts)


def flux(folder: Path) -> Any:
    from diffusers import FlowMatchEulerDiscreteScheduler, FluxPipeline, FluxTransformer2DModel

    net = FluxTransformer2DModel(
        patch_size=1, in_channels=16, num_layers=1, num_single_layers=1, attention_head_dim=16,
        num_attention_heads=2, joint_attention_dim=32, pooled_projection_dim=32,
        axes_dims_rope=(4, 4, 8),
    )  # fmt: skip
    texts = (clip(False), clip_tokenizer(folder), t5(), word_tokenizer())
    return FluxPipeline(FlowMatchEulerDiscreteScheduler(), vae(), *texts, net.eval())


def pixart(folder: Path) -> Any:
    from diffusers import DDIMScheduler, PixArtAlphaPipeline, PixArtTransformer2DModel

    net = PixArtTransformer2DModel(
        sample_size=32, num_layers=2, patch_size=4, attention_head_dim=8, num_attention_heads=3,
        caption_channels=32, in_channels=4, cross_attention_dim=24, out_channels=8,
        norm_type="ada_norm_single", norm_elementwise_affine=False, norm_eps=1e-6,
    )  # fmt: skip
    return PixArtAlphaPipeline(word_tokenizer(), t5(), vae(), net.eval(), DDIMScheduler())


def ddpm() -> Any:
    from diffusers import DDPMPipeline, DDPMScheduler, UNet2DModel

    unet = UNet2DModel(
        sample_size=16, block_out_channels=(16, 32), layers_per_block=1, norm_num_groups=8,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
    )  # fmt: skip
    return DDPMPipeline(unet.eval(), DDPMScheduler())


def dit() -> Any:
    from diffusers import DDIMScheduler, DiTPipeline, DiTTransformer2DModel

    net = DiTTransformer2DModel(
        sample_size=8, num_layers=2, patch_size=2, attention_head_dim=8, num_attention_heads=2,
        in_channels=4, out_channels=8, num_embeds_ada_norm=1000, norm_type="ada_norm_zero",
    )  # fmt: skip
    names = {0: "red circle", 1: "blue circle", 2: "red triangle"}
    return DiTPipeline(net.eval(), vae(), DDIMScheduler(), names)


MAKERS = {"sdxl": sdxl, "sd3": sd3, "flux": flux, "pixart": pixart}


def build(name: str, folder: Path) -> Any:
    """The pipeline of this name; always the same weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        pipe = MAKERS[name](folder / "tokenizer")
    pipe.set_progress_bar_config(disable=True)
    return pipe
