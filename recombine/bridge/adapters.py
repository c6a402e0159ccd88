"""How the networks of diffusers are called: one adapter a family. All of them become the same
thing, a denoiser E[x | x_t] of latents on a schedule, with prompts as conditions."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from recombine.bridge.text import EachWord, Encoded, Segment, Text, texts
from recombine.config import UsageError
from recombine.objectives.process import Flow, Schedule, spread

LONGEST = 256
"""Tokens of a prompt that are encoded where a tokenizer has no limit of its own."""


@dataclass(frozen=True, eq=False)
class Tabled(Schedule):
    """A scheduler's table of alpha^2 over its training steps, as a process in continuous time:
    t = 0 is the first step, t = 1 the last, log alpha^2 is linear in between."""

    squared: Float[Tensor, "n"]

    def _log(self, t: Tensor) -> Tensor:
        table = self.squared.double().log().to(t.device)
        at = t.double().clamp(0, 1) * (len(table) - 1)
        low = at.floor().long().clamp(max=len(table) - 2)
        return torch.lerp(table[low], table[low + 1], at - low)

    def alpha(self, t: Tensor) -> Tensor:
        return (self._log(t) / 2).exp().to(t.dtype)

    def sigma(self, t: Tensor) -> Tensor:
        return (-torch.expm1(self._log(t))).sqrt().to(t.dtype)


@dataclass(frozen=True, eq=False)
class Adapter:
    """A pipeline, its network as a denoiser. `call(x, step, text)` gives what the network says;
    subclasses know how it wants to be called."""

    pipe: Any
    part: ClassVar[str] = "transformer"

    @property
    def net(self) -> nn.Module:
        return getattr(self.pipe, self.part)

    @property
    def device(self) -> torch.device:
        return next(self.net.parameters()).device

    @cached_property
    def schedule(self) -> Schedule:
        table = getattr(self.pipe.scheduler, "alphas_cumprod", None)
        return Flow() if table is None else Tabled(table)

    @property
    def prediction(self) -> str:
        """What the network is trained to say: epsilon, v_prediction, sample or flow."""
        if isinstance(self.schedule, Flow):
            return "flow"
        return self.pipe.scheduler.config.prediction_type

    @property
    def last_step(self) -> int:
        """What the network calls the time t = 1."""
        steps = self.pipe.scheduler.config.num_train_timesteps
        return steps if isinstance(self.schedule, Flow) else steps - 1

    @property
    def channels(self) -> int:
        return self.net.config.in_channels

    @property
    def factor(self) -> int:
        """Pixels to a cell of the latent, along each side."""
        vae = getattr(self.pipe, "vae", None)
        return 1 if vae is None else 2 ** (len(vae.config.block_out_channels) - 1)

    def shape(self, side: int = 0) -> tuple[int, int, int]:
        """Of the latents of square pictures; 0 = the side that the network was made for."""
        cells = side // self.factor if side else self.net.config.sample_size
        return self.channels, cells, cells

    def call(self, x: Tensor, step: Tensor, text: Any) -> Tensor:
        raise NotImplementedError

    def __call__(
        self, x: Float[Tensor, "b c h w"], t: Float[Tensor, "b"], condition: Any
    ) -> Float[Tensor, "b c h w"]:
        """The network's output, read as E[x | x_t]."""
        out, time = self.call(x, self.last_step * t, condition), spread(t, x)
        if out.shape[1] == 2 * x.shape[1]:  # the other half is a variance
            out = out.chunk(2, 1)[0]
        alpha, sigma = self.schedule.alpha(time), self.schedule.sigma(time)
        return {
            "flow": lambda: x - time * out,
            "epsilon": lambda: (x - sigma * out) / alpha,
            "v_prediction": lambda: alpha * x - sigma * out,
            "sample": lambda: out,
        }[self.prediction]()

    def encode(self, prompts: list[str]) -> Encoded:
        raise UsageError(f"{type(self.pipe).__name__} takes no prompt")

    def segments(self) -> tuple[Segment, ...]:
        return (Segment(self.pipe.tokenizer, 0, _limit(self.pipe.tokenizer)),)

    @torch.no_grad()
    def text(self, prompts: list[str]) -> Text:
        """Prompts as conditions of the denoiser."""
        return texts(prompts, torch.no_grad()(self.encode), self.segments())

    @torch.no_grad()
    def decode(self, latents: Float[Tensor, "b c h w"]) -> Float[Tensor, "b 3 H W"]:
        """Pictures in [0, 1]."""
        vae = getattr(self.pipe, "vae", None)
        if vae is not None:
            shift = getattr(vae.config, "shift_factor", None) or 0.0
            latents = vae.decode(latents / vae.config.scaling_factor + shift).sample
        return (latents / 2 + 0.5).clamp(0, 1)


def _limit(tokenizer: Any) -> int:
    return min(tokenizer.model_max_length, LONGEST)


class StableDiffusion(Adapter):
    """A U-Net with cross-attention: Stable Diffusion 1, 2 and XL."""

    part = "unet"

    @property
    def large(self) -> bool:
        return getattr(self.net.config, "addition_embed_type", None) == "text_time"

    def encode(self, prompts: list[str]) -> Encoded:
        made = self.pipe.encode_prompt(
            prompts, device=self.device, num_images_per_prompt=1, do_classifier_free_guidance=False
        )
        return Encoded(made[0], made[2] if self.large else None)

    def call(self, x: Tensor, step: Tensor, text: Any) -> Tensor:
        given, more = text.encoded, {}
        if self.large:
            side = [n * self.factor for n in x.shape[2:]]
            ids = torch.tensor([*side, 0, 0, *side], dtype=x.dtype, device=x.device)
            more = {"text_embeds": given.pooled, "time_ids": ids.expand(len(x), -1)}
        return self.net(x, step, given.embeds, added_cond_kwargs=more).sample


class PixArt(Adapter):
    """A transformer with cross-attention to T5's tokens: PixArt-alpha and -sigma."""

    def encode(self, prompts: list[str]) -> Encoded:
        made = self.pipe.encode_prompt(
            prompts,
            device=self.device,
            do_classifier_free_guidance=False,
            max_sequence_length=_limit(self.pipe.tokenizer),
        )
        return Encoded(made[0], None, made[1])

    def call(self, x: Tensor, step: Tensor, text: Any) -> Tensor:
        more = {"resolution": None, "aspect_ratio": None}
        if self.net.config.sample_size == 128:
            side = [float(n * self.factor) for n in x.shape[2:]]
            sizes = torch.tensor(side, dtype=x.dtype, device=x.device).expand(len(x), -1)
            more = {"resolution": sizes, "aspect_ratio": sizes[:, :1] / sizes[:, 1:]}
        return self.net(
            x,
            encoder_hidden_states=text.encoded.embeds,
            encoder_attention_mask=text.encoded.mask,
            timestep=step,
            added_cond_kwargs=more,
        ).sample


class StableDiffusion3(Adapter):
    """Joint attention over picture and text, flow matching: Stable Diffusion 3."""

    def encode(self, prompts: list[str]) -> Encoded:
        longest = _limit(self.pipe.tokenizer_3) if self.pipe.tokenizer_3 else LONGEST
        made = self.pipe.encode_prompt(
            prompts, None, None, device=self.device, do_classifier_free_guidance=False,
            max_sequence_length=longest,
        )  # fmt: skip
        return Encoded(made[0], made[2])

    def segments(self) -> tuple[Segment, ...]:
        first = Segment(self.pipe.tokenizer, 0, _limit(self.pipe.tokenizer))
        if self.pipe.tokenizer_3 is None:
            return (first,)
        last = self.pipe.tokenizer_3
        return first, Segment(last, first.length, _limit(last))

    def call(self, x: Tensor, step: Tensor, text: Any) -> Tensor:
        given = text.encoded
        return self.net(
            x, timestep=step, encoder_hidden_states=given.embeds, pooled_projections=given.pooled
        ).sample


class Flux(Adapter):
    """Joint attention over patches of two by two latents and T5's tokens, with CLIP's pooled
    embedding: Flux."""

    @property
    def channels(self) -> int:
        return self.net.config.in_channels // 4

    def shape(self, side: int = 0) -> tuple[int, int, int]:
        cells = (side or self.pipe.default_sample_size * self.factor) // self.factor
        return self.channels, cells, cells

    def encode(self, prompts: list[str]) -> Encoded:
        embeds, pooled, _ids = self.pipe.encode_prompt(
            prompts, None, device=self.device, max_sequence_length=_limit(self.pipe.tokenizer_2)
        )
        return Encoded(embeds, pooled)

    def segments(self) -> tuple[Segment, ...]:
        return (Segment(self.pipe.tokenizer_2, 0, _limit(self.pipe.tokenizer_2)),)

    def call(self, x: Tensor, step: Tensor, text: Any) -> Tensor:
        given, (rows, cols) = text.encoded, (n // 2 for n in x.shape[2:])
        ids = self.pipe._prepare_latent_image_ids(len(x), rows, cols, x.device, x.dtype)
        guided = getattr(self.net.config, "guidance_embeds", False)
        out = self.net(
            rearrange(x, "b c (h p) (w q) -> b (h w) (c p q)", p=2, q=2),
            timestep=step / self.last_step,
            guidance=x.new_full((len(x),), 3.5) if guided else None,
            pooled_projections=given.pooled,
            encoder_hidden_states=given.embeds,
            txt_ids=x.new_zeros(given.embeds.shape[1], 3),
            img_ids=ids,
        ).sample
        return rearrange(out, "b (h w) (c p q) -> b c (h p) (w q)", h=rows, p=2, q=2)


class PlainUNet(Adapter):
    """A U-Net without text: DDPM, DDIM and the like. The condition is None, or class labels."""

    part = "unet"

    def call(self, x: Tensor, step: Tensor, text: Any) -> Tensor:
        return self.net(x, step, class_labels=text).sample


class PlainDiT(Adapter):
    """A DiT conditioned on class labels."""

    def call(self, x: Tensor, step: Tensor, text: Any) -> Tensor:
        return self.net(x, timestep=step, class_labels=text).sample


class OwnCaptions(Adapter):
    """A text-conditioned model of ours, exported (`recombine export`)."""

    part = "model"

    @property
    def net(self) -> nn.Module:
        return self.pipe.model.net

    @cached_property
    def schedule(self) -> Schedule:
        theirs = self.pipe.model.objective.schedule
        return Flow() if type(theirs).__name__ == "Flow" else theirs

    def shape(self, side: int = 0) -> tuple[int, int, int]:
        return self.pipe.model.latent_shape

    def __call__(
        self, x: Float[Tensor, "b c h w"], t: Float[Tensor, "b"], condition: Any
    ) -> Float[Tensor, "b c h w"]:
        return self.pipe.model.objective.denoiser(self.net)(x, t, condition)

    def encode(self, prompts: list[str]) -> Encoded:
        return Encoded(self.net.encode(self.pipe.model.read_prompts(prompts)))

    def segments(self) -> tuple[Segment, ...]:
        return (Segment(EachWord(), 0, self.net.text.position.shape[0]),)

    @torch.no_grad()
    def decode(self, latents: Float[Tensor, "b c h w"]) -> Float[Tensor, "b 3 H W"]:
        return self.pipe.model.codec.decode(latents)


FAMILIES: dict[str, Callable[[Any], Adapter]] = {
    "UNet2DConditionModel": StableDiffusion,
    "PixArtTransformer2DModel": PixArt,
    "SD3Transformer2DModel": StableDiffusion3,
    "FluxTransformer2DModel": Flux,
    "UNet2DModel": PlainUNet,
    "DiTTransformer2DModel": PlainDiT,
}
"""By the class of the network."""


def adapter(pipe: Any) -> Adapter:
    """The adapter of a pipeline; UsageError where its network is of no family that is known."""
    if hasattr(getattr(getattr(pipe, "model", None), "net", None), "text"):
        return OwnCaptions(pipe)
    for part in ("transformer", "unet"):
        name = type(getattr(pipe, part, None)).__name__
        if name in FAMILIES:
            return FAMILIES[name](pipe)
    raise UsageError(
        f"{type(pipe).__name__}: its network is none of {', '.join(FAMILIES)}; pictures can be "
        "drawn with it, but its denoiser is not known"
    )
