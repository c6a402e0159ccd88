"""Tokenizers: bottlenecks against closed forms, codecs that give codes and nothing else, runs of
their own, ceilings."""

from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch
from tiny import QUIET

from recombine.analysis.table import Table
from recombine.config import UsageError, config, digest
from recombine.metrics.probes import Oracle
from recombine.nets.dit import DiTConfig
from recombine.nets.transformer import TransformerConfig
from recombine.nets.unet import UNetConfig
from recombine.overrides import override
from recombine.pipeline.executor import obtain
from recombine.pipeline.job import Work
from recombine.rng import seeded
from recombine.runs.tokenizers import CeilingRun, TokenizerRun, ceiling, codebook, open_codec
from recombine.studies.ablations import halved
from recombine.tokenizers.autoencoder import Autoencoder, AutoencoderNet, codec_of
from recombine.tokenizers.bottlenecks import FSQ, KL, VQ
from recombine.tokenizers.pixels import Pixels
from recombine.tokenizers.tokenizer import Codec, Tokenizer, look_up, nearest
from recombine.worlds.factors import at_most_one_new, code
from recombine.worlds.shapes2d import Shapes2D

WORLD = Shapes2D(size=20)
SPLIT = at_most_one_new(WORLD.space)
BOTTLENECKS = {"vae": KL(dim=4), "vq": VQ(size=32, dim=4), "fsq": FSQ((5, 4, 3))}
each = pytest.mark.parametrize("bottleneck", BOTTLENECKS.values(), ids=BOTTLENECKS)
discrete = pytest.mark.parametrize(
    "bottleneck", [BOTTLENECKS["vq"], BOTTLENECKS["fsq"]], ids=["vq", "fsq"]
)


def small(bottleneck, **more) -> Autoencoder:
    return Autoencoder(bottleneck, **({"width": 8, "steps": 6, "batch": 8} | more))


def pictures(count: int = 64, key: str = "some"):
    index = torch.tensor(WORLD.space.compositions).repeat(count // 8, 1)
    return WORLD.render(index, seeded(key)).images


def codec_for(bottleneck) -> Codec:
    torch.manual_seed(0)
    return codec_of(AutoencoderNet(small(bottleneck), 3), pictures())


@each
def test_latents_have_the_promised_shape_and_are_standardised(bottleneck):
    codec, images = codec_for(bottleneck), pictures()
    latents = codec.encode(images)
    assert latents.shape[1:] == small(bottleneck).latent_shape(WORLD.image_shape)
    assert codec.decode(latents).shape == images.shape
    assert 0 <= float(codec.decode(latents).min()) <= float(codec.decode(latents).max()) <= 1
    assert torch.allclose(latents.mean((0, 2, 3)), torch.zeros(latents.shape[1]), atol=1e-4)
    spread = latents.std((0, 2, 3))
    assert torch.allclose(spread[spread > 0], torch.ones_like(spread[spread > 0]), atol=1e-3)


@discrete
def test_a_discrete_codec_gives_rows_of_its_codes_bit_for_bit(bottleneck):
    codec = codec_for(bottleneck)
    latents = codec.encode(pictures())
    index = nearest(latents, codec.codes)
    assert torch.equal(look_up(index, codec.codes), latents)
    assert torch.equal(nearest(look_up(index, codec.codes), codec.codes), index)


def test_pixels_are_their_own_codec():
    images = pictures()
    assert torch.allclose(Pixels().decode(Pixels().encode(images)), images)
    assert isinstance(Pixels(), Codec)
    assert Pixels().codes is None


def test_the_divergence_is_that_of_two_gaussians():
    mean, log_var = torch.randn(2, 3, 2, 2), torch.randn(2, 3, 2, 2)
    bottleneck = KL(dim=3, weight=2.0)
    normal = torch.distributions.Normal
    exact = torch.distributions.kl_divergence(
        normal(mean, (log_var / 2).exp()), normal(0.0, 1.0)
    ).mean((1, 2, 3))
    noise = torch.randn(2, 3, 2, 2)
    latents, penalty = bottleneck.squeeze(torch.cat([mean, log_var], 1), None, noise)
    assert torch.allclose(penalty, 2 * exact, atol=1e-5)
    assert torch.allclose(latents, mean + noise * (log_var / 2).exp())
    assert torch.equal(bottleneck.settle(torch.cat([mean, log_var], 1)), mean)


@discrete
def test_the_way_back_is_straight_through(bottleneck):
    codes = bottleneck.codes()
    features = torch.randn(2, bottleneck.features, 3, 3, requires_grad=True)
    draw = bottleneck.draw(2, (3, 3), seeded(0))
    latents, _ = bottleneck.squeeze(features, codes, draw)
    (grad,) = torch.autograd.grad(latents.sum(), features)
    settled = bottleneck.settle(features)
    (expected,) = torch.autograd.grad(settled.sum(), features)
    assert torch.allclose(grad, expected)
    assert torch.allclose(latents, look_up(nearest(settled, codes), codes), atol=1e-6)


def test_the_grid_of_codes_is_all_that_rounding_can_give():
    bottleneck = FSQ((5, 4, 3))
    codes = bottleneck.codes()
    assert len(codes) == 60 == len(torch.unique(codes, dim=0))
    latents, _ = bottleneck.squeeze(6 * torch.randn(400, 3, 5, 5), codes, torch.empty(400, 0))
    points = latents.movedim(1, -1).flatten(0, 2)
    found = torch.cdist(points, codes, compute_mode="donot_use_mm_for_euclid_dist")
    assert float(found.amin(1).max()) < 1e-5
    assert len(found.argmin(1).unique()) == 60


def test_codes_follow_those_who_chose_them_and_dead_ones_the_needy():
    bottleneck = VQ(size=3, dim=2, commitment=0.0, revival=1.0)
    codes = torch.tensor([[0.0, 0.0], [10.0, 10.0], [-10.0, -10.0]], requires_grad=True)
    features = torch.tensor([1.0, 2.0])[None, :, None, None].expand(4, 2, 1, 1)
    _, penalty = bottleneck.squeeze(features, codes, torch.full((4, 1, 1), 0.5))
    (pull,) = torch.autograd.grad(penalty.mean(), codes)
    assert (-pull[0] > 0).all(), "the chosen code moves up to (1, 2)"
    assert (-pull[1] < 0).all(), "dead codes come towards the feature"
    assert (-pull[2] > 0).all()
    calm = replace(bottleneck, revival=0.0)
    (rest,) = torch.autograd.grad(
        calm.squeeze(features, codes, torch.full((4, 1, 1), 0.5))[1].mean(), codes
    )
    assert not rest[1:].any()


@pytest.mark.slow
@each
def test_a_little_training_makes_reconstructions_better(bottleneck, tmp_path):
    def error(steps: int) -> float:
        tokenizer = small(bottleneck, steps=steps, batch=16, fine=0, lr=4e-3)
        codec = obtain(TokenizerRun.of(tokenizer, WORLD, SPLIT), tmp_path, QUIET)
        return float((codec.decode(codec.encode(pictures())) - pictures()).square().mean())

    assert error(50) < 0.6 * error(1)


def trained(tokenizer: Autoencoder, root: Path) -> Codec:
    return obtain(TokenizerRun.of(tokenizer, WORLD, SPLIT), root, QUIET)


def test_a_tokenizer_is_found_again_and_its_seed_and_data_matter(tmp_path):
    tokenizer = small(BOTTLENECKS["vq"])
    first = trained(tokenizer, tmp_path).encode(pictures())
    run = TokenizerRun.of(tokenizer, WORLD, SPLIT)
    again = run.open(Work(run, tmp_path, QUIET)).encode(pictures())
    assert torch.equal(first, again)
    assert len(list((tmp_path / "runs").iterdir())) == 1
    for other in (replace(tokenizer, seed=1), replace(tokenizer, data="seen")):
        assert not torch.equal(trained(other, tmp_path).encode(pictures()), first)


def test_seen_only_means_seen_only():
    run = TokenizerRun.of(small(KL(), data="seen"), WORLD, SPLIT)
    shown = {tuple(r) for r in WORLD.read(run.sample(200, seeded(0))).tolist()}
    assert shown == set(run.compositions) == set(SPLIT.seen)


def test_every_setting_of_a_tokenizer_is_in_its_name():
    config = small(VQ())
    changed = {
        "bottleneck": KL(),
        "width": 16,
        "fine": 0,
        "coarse": 1,
        "steps": 7,
        "batch": 9,
        "lr": 1.0,
        "data": "seen",
        "seed": 3,
    }
    assert set(changed) == {f.name for f in fields(Autoencoder)}
    others = {digest(replace(config, **{k: v})) for k, v in changed.items()}
    assert len(others | {digest(config)}) == len(changed) + 1


def test_ceilings_say_what_is_left_and_which_codes_are_new(tmp_path):
    codec = trained(small(VQ(size=8, dim=2)), tmp_path)
    rows = ceiling(codec, [Oracle(WORLD)], WORLD, SPLIT, 4, QUIET.device)
    scored = [r["composition"] for r in rows if r["kind"] == "ceiling"]
    assert scored == [code(c) for c in WORLD.space.compositions]
    assert 0 < next(r for r in rows if r["kind"] == "codebook")["used"] <= 1
    perfect = Table(ceiling(Pixels(), [Oracle(WORLD)], WORLD, SPLIT, 64, QUIET.device))
    assert all(r["joint"] == 1 and r["mse"] < 1e-12 for r in perfect.where(kind="ceiling"))
    moves = {(r["factor"], r["composition"], r["to"]) for r in perfect.where(kind="slope")}
    assert len(moves) == 8
    assert ("color", "100", "110") in moves
    assert not any(f == "shape" for f, _, _ in moves)
    assert all(SPLIT.level(tuple(map(int, here))) == 0 for _, here, _ in moves)


def test_novel_codes_are_those_that_no_seen_composition_uses():
    count = lambda *n: torch.tensor(n)  # noqa: E731
    counts = {c: count(6, 2, 0, 0) for c in WORLD.space.compositions} | {
        (1, 1, 1): count(4, 0, 4, 0)
    }
    whole, *rows = codebook(counts, SPLIT)
    assert (whole["used"], whole["size"]) == (0.75, 4)
    assert {r["composition"]: r["novel"] for r in rows if r["novel"]} == {"111": 0.5}
    even = codebook({c: count(5, 5, 5, 5) for c in WORLD.space.compositions}, SPLIT)[0]
    assert even["perplexity"] == pytest.approx(4)


def test_tokenizers_are_given_by_name_and_wrong_names_and_sizes_refused():
    for name in ("pixels", "vae", "vq", "fsq"):
        assert Tokenizer.from_text(name).name == name
    with pytest.raises(UsageError, match="'gan' is not one of pixels, vae, vq, fsq"):
        Tokenizer.from_text("gan")
    with pytest.raises(UsageError, match="multiples of 4, not 30x28"):
        Autoencoder().latent_shape((3, 30, 28))
    with pytest.raises(UsageError, match="width 12 is not a multiple of 8"):
        override(Autoencoder(), "width=12")


def test_training_leaves_the_global_random_state_alone(tmp_path):
    state = torch.get_rng_state()
    trained(small(KL(), steps=1), tmp_path)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_ceiling_is_measured_by_every_probe_on_as_many_pictures_as_given(tmp_path):
    made = TokenizerRun.of(small(KL(), steps=1), WORLD, SPLIT)
    check = CeilingRun(made, WORLD, 2, SPLIT.seen, 3)
    for parent in check.parents():
        obtain(parent, tmp_path, QUIET)
    rows = [r for r in check.run(Work(check, tmp_path, QUIET)) if r["kind"] == "ceiling"]
    assert {r["probe"] for r in rows} == {"open-set", "cnn", "oracle", "linear"}
    assert {r["n"] for r in rows} == {3}


@config("test/bare-tokenizer")
class Bare(Tokenizer):
    """A tokenizer of one's own that promises a shape and does no more."""

    name = "bare"

    def latent_shape(self, image_shape):
        return image_shape


@config("test/complete-tokenizer")
class Complete(Bare):
    codes = None

    def encode(self, images):
        return images

    def decode(self, latents):
        return latents


def test_a_tokenizer_of_ones_own_is_used_as_it_is_if_it_can_do_all(tmp_path):
    work = Work(TokenizerRun.of(small(KL()), WORLD, SPLIT), tmp_path, QUIET)
    assert isinstance(open_codec(Complete(), WORLD, SPLIT, work), Complete)
    with pytest.raises(UsageError, match="Bare needs encode, decode and codes"):
        open_codec(Bare(), WORLD, SPLIT, work)


def test_only_a_transformer_can_be_halved():
    half = halved(DiTConfig(TransformerConfig(depth=7, width=64, heads=4)))
    assert (half.transformer.depth, half.transformer.width, half.transformer.heads) == (3, 32, 4)
    says = r"^recipe\.net: only a transformer can be halved; leave out `small`$"
    with pytest.raises(ValueError, match=says):
        halved(UNetConfig((8,)))
