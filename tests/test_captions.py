"""Captioned pictures, and the text-conditioned model that is trained on them."""

import re
from dataclasses import replace

import pytest
import torch

from recombine.bridge.features import block_names
from recombine.config import UsageError
from recombine.nets.text_unet import TextUNet, TextUNetConfig
from recombine.rng import seeded
from recombine.runs.captions import CaptionRecipe, agreement
from recombine.worlds.captions import (
    LENGTH,
    VOCABULARY,
    Captions,
    _to_the_left,
    numbered,
    spelled,
    tokens_of,
)

WORLD = Captions(size=32)


def picture(*factors, seed="one"):
    return WORLD.render(torch.tensor([factors]), seeded(seed)).images[0]


def test_captions_name_what_is_there_and_leave_out_what_is_not_said():
    index = torch.tensor([[1, 0, 3, 2, 1, 2], [0, 1, 2, 1, 0, 0], [0, 0, 0, 0, 0, 0]])
    assert spelled(WORLD.caption(index)) == [
        "a red circle on the left and a green square on the right striped cool",
        "a blue triangle on the right",
        "",
    ]
    said = torch.tensor([[False, True, False, False, True, False]]).expand(3, -1)
    assert spelled(WORLD.caption(index, said)) == ["a red thing on the left striped", "", ""]


def test_prompts_become_the_tokens_of_the_captions_that_say_the_same():
    index = WORLD.sample(64, seeded("captions"))
    caption = WORLD.caption(index)
    assert torch.equal(tokens_of(spelled(caption)), caption.tokens)
    assert caption.tokens.shape == (64, LENGTH)
    assert VOCABULARY[tokens_of(["zebra"])[0, 0]] == "?"


@pytest.mark.parametrize(("world", "changes"), [
    (WORLD, {}),
    (replace(WORLD, places=("left",), share=0.7), {"unsaid": 0.5, "unconditional": 0.3}),
])  # fmt: skip
def test_what_a_model_without_error_reaches_is_what_draws_from_the_law_reach(world, changes):
    """Captions that leave things out, each with what was there, are the law; a full caption is
    answered by what was there with the same words."""
    recipe, rng = CaptionRecipe(world, **changes), seeded("law")
    index = world.sample(200_000, rng)
    said = torch.rand(index.shape, generator=rng) >= recipe.unsaid
    empty = torch.rand(len(index), generator=rng) < recipe.unconditional
    tokens = world.caption(index, said & ~empty[:, None]).tokens
    wanted = world.sample(20_000, rng)
    both = torch.cat([tokens, world.caption(wanted).tokens])
    _, group = both.unique(dim=0, return_inverse=True)
    given, named = group[: len(tokens)], group[len(tokens) :]
    order = given.argsort()
    start = torch.searchsorted(given[order], named)
    count = torch.searchsorted(given[order], named, right=True) - start
    pick = (start + (torch.rand(len(named), generator=rng) * count).long()).clamp(
        max=len(order) - 1
    )
    drawn = index[order[pick]]
    same = drawn == wanted
    for place in range(len(world.places)):
        same[:, 2 * place + 1] |= wanted[:, 2 * place] == 0
    found = same.all(1)[count > 0].float()
    assert (count > 0).float().mean() > 0.9
    assert found.mean().item() == pytest.approx(recipe.best, abs=0.015)


def test_each_factor_changes_its_own_part_of_the_picture():
    base = picture(1, 0, 1, 0, 0, 0)
    assert base.min() >= 0
    assert base.max() <= 1
    for factors, left, right in (
        ((2, 0, 1, 0, 0, 0), True, False),
        ((1, 0, 1, 1, 0, 0), False, True),
        ((1, 0, 0, 0, 0, 0), False, True),
        ((1, 0, 1, 0, 2, 0), True, True),
        ((1, 0, 1, 0, 0, 3), True, True),
    ):
        changed = (picture(*factors) != base).any(0)
        assert changed[:, :16].any() == left
        assert changed[:, 16:].any() == right


def test_every_object_lies_wholly_in_its_own_half():
    low, high = (32 * r for r in WORLD.radius)
    for place in (0, 1):
        index = torch.zeros(256, 6, dtype=torch.int64)
        index[:, 2 * place] = 1
        images, empty = (WORLD.render(i, seeded("many")).images for i in (index, 0 * index))
        painted = (images != empty).any(1)
        assert not painted[:, :, slice(16, 32) if place == 0 else slice(0, 16)].any()
        area = painted.sum((1, 2))
        assert area.min() >= 0.9 * torch.pi * low**2
        assert area.max() <= torch.pi * (high + 1.5) ** 2
        columns = (painted.any(1) * torch.arange(32)).amax(1)
        assert len(columns.unique()) >= 3


def test_agreement_counts_what_both_places_show():
    index = torch.tensor([[1, 0, 3, 2, 1, 2], [0, 1, 2, 1, 0, 0]])
    images = WORLD.render(index, seeded("x")).images

    def probe(half):
        """Right everywhere but in the second picture's right half."""
        left = torch.equal(half, images[..., :16])
        seen = index[:, [0, 1, 4, 5]] if left else index[:, [2, 3, 4, 5]].clone()
        if not left:
            seen[1, 0] = 3
        return seen

    right = agreement(probe, images, index, WORLD)
    assert right == {"shape": 0.5, "color": 1.0, "texture": 1.0, "light": 1.0, "joint": 0.5}


def test_the_text_unet_starts_at_zero_and_depends_on_every_word_once_it_does_not():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = TextUNet(TextUNetConfig((32, 32), 1, text=16, layers=1), (4, 8, 8), 22, LENGTH)
        x, t, caption = (
            torch.randn(2, 4, 8, 8),
            torch.rand(2),
            WORLD.caption(torch.ones(2, 6).long()),
        )
        assert not net(x, t, caption).any()
        torch.nn.init.normal_(net.leave.weight, std=0.1)
    assert len(block_names(net)) == 5
    base = net(x, t, caption)
    for k in range(int((caption.tokens[0] > 0).sum())):
        tokens = caption.tokens.clone()
        tokens[0, k] = 1
        change = (net(x, t, caption._replace(tokens=tokens)) - base).abs().amax((1, 2, 3))
        assert change[0] > 0
        assert change[1] == 0


@pytest.mark.parametrize(("settings", "message"), [
    ({"size": 8}, "size=8: a multiple of 8, at least 16"),
    ({"size": 20}, "size=20: a multiple of 8, at least 16"),
    ({"places": ()}, "places=[]: one or more, each once"),
    ({"places": ("left", "left")}, "places=['left', 'left']: one or more, each once"),
    ({"radius": (0.0, 0.1)}, "radius=[0.0, 0.1]: from more than 0 to at most 0.2"),
    ({"radius": (0.1, 0.21)}, "radius=[0.1, 0.21]: from more than 0 to at most 0.2"),
    ({"radius": (0.15, 0.1)}, "radius=[0.15, 0.1]: from more than 0 to at most 0.2"),
    ({"share": 1.1}, "share=1.1: must lie between 0 and 1"),
    ({"background": -0.1}, "background=-0.1: must lie between 0 and 1"),
])  # fmt: skip
def test_impossible_worlds_are_refused_in_a_line(settings, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Captions(**settings)


def test_settings_at_their_limits_are_worlds():
    world = Captions(size=16, places=("right",), radius=(0.2, 0.2), share=1.0, background=0.0)
    assert world.image_shape == (3, 16, 8)
    assert Captions(share=0.0, background=1.0, radius=(0.01, 0.01)).image_shape == (3, 48, 48)


def test_what_is_optional_is_there_as_often_as_the_share_says():
    index = Captions(share=0.6).sample(4000, seeded("often"))
    for column in (0, 2, 4, 5):
        there = (index[:, column] > 0).float().mean()
        assert abs(float(there) - 0.6) < 0.03
        assert index[:, column].unique().tolist() == [0, 1, 2, 3]
    assert abs(float((index[:, 1] == 0).float().mean()) - 1 / 3) < 0.03, "a colour always is"
    assert (Captions(share=0.0).sample(50, seeded(0))[:, 0] == 0).all()


def test_words_are_moved_to_the_left_and_cut_or_filled_up():
    words = torch.tensor([[0, 3, 0, 5], [1, 2, 3, 4]])
    assert _to_the_left(words, 3).tolist() == [[3, 5, 0], [1, 2, 3]]
    assert _to_the_left(words, 6).tolist() == [[3, 5, 0, 0, 0, 0], [1, 2, 3, 4, 0, 0]]
    assert numbered("A, red.") == (VOCABULARY.index("a"), VOCABULARY.index("red"))
    assert tokens_of(["a " * 20]).tolist() == [[2] * LENGTH]
    assert LENGTH == 16


def test_a_captions_world_has_neither_numbers_nor_an_oracle():
    index = torch.zeros(2, 6, dtype=torch.long)
    assert WORLD.canonical(index).shape == (2, 0)
    assert WORLD.read(torch.zeros(2, 3, 32, 32)).tolist() == [[-1] * 6] * 2
    assert not WORLD.readable


def test_a_network_that_does_not_fit_is_refused():
    for given, says in (
        ({"blocks": 0}, "blocks must be positive, not 0"),
        ({"layers": -1}, "layers must be positive, not -1"),
        ({"text": 6}, "text 6 is not a multiple of heads 4"),
        ({"widths": (96, 100)}, "widths [96, 100]: one or more multiples of 32"),
        ({"widths": ()}, "widths []: one or more multiples of 32"),
    ):
        with pytest.raises(ValueError, match=re.escape(says)):
            TextUNetConfig(**given)
    config = TextUNetConfig(widths=(96, 96, 96))
    config.check((3, 8, 12))
    for shape in ((3, 6, 8), (3, 8, 6)):
        with pytest.raises(UsageError, match=r"^3 levels need sides divisible by 4$"):
            config.check(shape)
