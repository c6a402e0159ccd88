"""Networks that are built to be looked at: their shapes are true, and building them draws no random
number."""

import pytest
import torch

from recombine.nets.unfilled import Unfilled
from recombine.studies import objectives
from recombine.studies.scene_settings import settings as scenes

FAMILIES = objectives.settings("smoke").variants()


@pytest.mark.parametrize("family", FAMILIES)
def test_checking_a_recipe_draws_nothing_from_anybodys_stream(family):
    before = torch.random.get_rng_state()
    FAMILIES[family].check()
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("variant", ["exp1", "exp3", "exp2L"])
def test_shapes_are_those_of_the_real_network_and_outside_everything_is_as_ever(variant):
    recipe, before = scenes("smoke").variants()[variant], torch.random.get_rng_state()
    build = lambda: recipe.net.build(recipe.layout_encoder, recipe.world.image_shape).state_dict()  # noqa: E731
    with Unfilled():
        blank = build()
    assert torch.equal(torch.random.get_rng_state(), before)
    true = build()
    assert {k: v.shape for k, v in blank.items()} == {k: v.shape for k, v in true.items()}
    assert not torch.equal(torch.random.get_rng_state(), before)
