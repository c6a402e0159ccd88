"""The study `features`: its measures on a model whose answers are known, its claims on made-up
rows, and the same command on tiny pipelines."""

import json

import pytest
import torch
from level_rows import regions
from torch import nn

from recombine.analysis.features import (
    hidden_states_separate,
    pixels_are_local,
    require_learned,
    thirds,
    words_act_alike,
)
from recombine.analysis.table import Table, read_table
from recombine.api import run
from recombine.bridge.measures import Concepts, FeatureMeasure, _flat
from recombine.bridge.text import EachWord, Encoded, Segment, Tokens, texts, word_tokens
from recombine.objectives.process import Flow
from recombine.overrides import override
from recombine.pipeline.job import Work
from recombine.runtime import Runtime
from recombine.studies.features import jobs, settings

MEASURE = FeatureMeasure(
    prompt="left right both", places=((0.25, 0.5), (0.75, 0.5)), times=(0.2, 0.8), pictures=2,
    pixels=2, draws=2, steps=2,
    concepts=(Concepts("one", ("left", "left left")), Concepts("two", ("right", "right right"))),
)  # fmt: skip
SMALL = {
    "measure.times": [0.2, 0.8], "measure.pictures": 1, "measure.pixels": 1, "measure.draws": 1,
    "measure.steps": 1, "measure.side": 32, "measure.prompt": "a red circle left",
}  # fmt: skip


class TransformerBlock(nn.Module):
    def forward(self, x):
        return x


class Halves:
    """A denoiser that adds a number to the left half, the right half or both, as its words say; a
    pixel sees its neighbours to the side."""

    def __init__(self):
        self.net, self.schedule, self.device = TransformerBlock(), Flow(), torch.device("cpu")

    def encode(self, prompts):
        effect = {"left": [1.0, 0.0], "right": [0.0, 1.0], "both": [1.0, 1.0]}
        rows = [[effect[w] for w in p.split()] + [[0.0, 0.0]] * 4 for p in prompts]
        return Encoded(torch.tensor([row[:4] for row in rows]))

    def text(self, prompts):
        return texts(prompts, self.encode, (Segment(EachWord(), 0, 4),))

    def shape(self, side=0):
        return 1, 8, 8

    def decode(self, latents):
        return latents.flip(1)

    def __call__(self, x, t, condition):
        added = condition.encoded.embeds.sum(1)[:, None, None].repeat_interleave(4, -1)
        wide = torch.nn.functional.pad(x, (1, 1))
        return self.net(0.1 * (wide[..., 2:] + wide[..., :-2]) + added)


def test_measures_of_a_denoiser_whose_answers_are_known():
    rows = Table(MEASURE.rows(Halves()))
    assert rows.where(kind="pixels").column("share") == pytest.approx([1, 1])
    for how in ("word", "embedding"):
        words = rows.where(kind="word", how=how)
        for word, first, second in (("left", 1, 0), ("right", 0, 1), ("both", 1, 1)):
            mine = words.where(word=word)
            assert mine.column("first") == pytest.approx([first] * 2, abs=1e-6)
            assert mine.column("second") == pytest.approx([second] * 2, abs=1e-6)
    for name in ("pixels", "latents", ""):
        space = rows.one(kind="concepts", space_of=name)
        assert space["within"] == pytest.approx(1, abs=0.05)
        assert space["between"] < 0.2


def rows_of(share, second, gaps):
    """Rows of three seeds: shares over the noise, what words do at the second place (1 at the
    first, times the word's number), and the gaps of pixels, latents and six blocks."""
    made = []
    for seed in range(3):
        about = {"seed": seed}
        for i, s in enumerate(share):
            made.append(
                {"kind": "pixels", "t": 0.1 + i / 5, "share": s * (1 + seed / 100), "even": 0.2}
            )
            for k in range(4):
                both = {"t": 0.1 + i / 5, "first": 1.0 + k + i / 9, "second": second(k) + i / 9}
                made.append({"kind": "word", "how": "word", "word": f"w{k}", **both})
                made.append({"kind": "word", "how": "embedding", "word": f"w{k}", **both})
        for name, gap in zip(("pixels", "latents", *"abcdef"), gaps, strict=True):
            depth = {"depth": "abcdef".index(name)} if len(name) == 1 else {}
            sides = {"within": gap, "between": 0.0, "gap": gap * (1 + seed / 100)}
            made.append({"kind": "concepts", "space_of": name, **depth, **sides})
        made = [row if "seed" in row else row | about for row in made]
    return Table(made)


def verdicts(finding):
    return [part.verdict(3, True) for part in finding.parts]


def test_the_claims_hold_on_rows_that_show_them_and_not_on_others():
    arch = (0.1, 0.2, 0.3, 0.4, 0.8, 0.8, 0.4, 0.3)
    good = rows_of((0.9, 0.7, 0.5), lambda k: 2.0 + k, arch)
    bad = rows_of((0.5, 0.7, 0.9), lambda k: 5.0 - k, arch[::-1])
    for measure, parts in (
        (pixels_are_local, 2),
        (words_act_alike, 2),
        (hidden_states_separate, 3),
    ):
        assert verdicts(measure(good)) == ["supported"] * parts
        assert "supported" not in verdicts(measure(bad))[:2]


def test_words_that_act_at_their_own_place_are_seen_where_the_noise_drives_both():
    """Each word does little at the other place, and all do more at more noise."""
    rows = Table(
        {"kind": "word", "how": how, "seed": seed, "t": t, "word": f"w{i}", "position": i}
        | {"first": 100**t * (1 + i / 9), "second": 100**t * (2 - i / 9)}
        for how in ("word", "embedding")
        for seed in range(3)
        for t in (0.1, 0.5, 0.9)
        for i in range(4)
    )
    over_all, within = (part.estimate.value for part in words_act_alike(rows).parts)
    assert over_all > 0.7
    assert within == pytest.approx(-1)


def test_a_model_that_did_not_learn_its_captions_is_not_assessed():
    about = {"kind": "captions", "of": "samples", "joint": 0.5, "seed": 0}
    others = [about | {"joint": 1.0, "seed": seed} for seed in (1, 2)]
    others += [about | {"joint": 1.0, "of": of} for of in ("real", "a model without error")]
    plain = rows_of((0.9, 0.7, 0.5), float, (0.1,) * 8) + Table(others)
    blind = Table([about | {"of": "real"}])
    for measure in (pixels_are_local, words_act_alike, hidden_states_separate):
        measure(plain)
        with pytest.raises(LookupError, match=r"samples show their captions in 0\.50"):
            measure(plain + Table([about]))
        with pytest.raises(LookupError, match=r"the probe reads 0\.50 of real pictures"):
            measure(plain + blind)


@pytest.mark.slow
def test_the_study_runs_to_its_claims(tmp_path):
    (folder,) = run("features", scale="smoke", out=tmp_path)
    rows = read_table(folder / "rows.parquet")
    assert {"pixels", "word", "concepts", "captions"} <= set(rows.column("kind"))
    assert (folder / "figures" / "concepts.svg").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sdxl", "sd3", "flux", "pixart"])
def test_the_same_command_ends_with_rows_on_a_pipeline(name, tmp_path):
    """The whole command for one of them; of the others the task that it carries out."""
    pytest.importorskip("diffusers")
    from tiny_pipelines import build

    build(name, tmp_path).save_pretrained(tmp_path / name)
    changes = {"pipeline": str(tmp_path / name), **SMALL}
    if name == "sdxl":
        (folder,) = run("features", scale="smoke", out=tmp_path, changes=changes)
        rows = read_table(folder / "rows.parquet")
    else:
        given = override(settings("smoke"), *(f"{k}={json.dumps(v)}" for k, v in changes.items()))
        (job,) = jobs(given, 1)
        rows = Table(job.task.run(Work(job.task, tmp_path, Runtime())))
    assert len(rows.where(kind="pixels")) == 2
    assert len(rows.where(kind="word")) == 2 * 4 * 2
    blocks = {"sdxl": 8, "sd3": 2, "flux": 2, "pixart": 2}[name]
    assert len(rows.where(kind="concepts")) == 2 + blocks


ARCH = (0.1, 0.2, 0.3, 0.4, 0.8, 0.8, 0.4, 0.3)


def test_regions_are_those_that_were_written_down():
    rows = rows_of((0.9, 0.7, 0.5), lambda k: 2.0 + k, ARCH)
    assert regions(pixels_are_local(rows)) == [
        ("share nearby at the lowest noise - at the highest", 0.1, 1.0, False),
        ("rank correlation with less noise", 0.8, 1.0, False),
    ]
    assert regions(words_act_alike(rows)) == [
        ("rank correlation of the two places", 0.9, 1.0, False),
        ("rank correlation within a noise level", 0.9, 1.0, False),
    ]
    assert regions(hidden_states_separate(rows)) == [
        ("gap in the middle blocks - in latents", 0.05, 4.0, False),
        ("gap in the middle blocks - in pixels", 0.05, 4.0, False),
        ("gap in the middle blocks - in outer blocks", 0.0, 4.0, False),
    ]


def test_numbers_of_rows_made_by_hand():
    rows = rows_of((0.9, 0.7, 0.5), lambda k: 2.0 + k, ARCH)
    pixels, words, states = (
        measure(rows) for measure in (pixels_are_local, words_act_alike, hidden_states_separate)
    )
    values = [[p.estimate.value for p in f.parts] for f in (pixels, words, states)]
    assert values[0] == pytest.approx([0.404, 1.0])
    assert values[1] == pytest.approx([1.0, 1.0])
    assert values[2] == pytest.approx([0.606, 0.707, 0.4545])
    assert [p.estimate.n for p in states.parts] == [3, 3, 3]
    nearby = [v for k, v in pixels.measured.items() if k.startswith("share nearby")]
    assert nearby == pytest.approx([0.909, 0.707, 0.505])
    assert pixels.measured["share of the picture that is nearby"] == 0.2
    first = "influence of 'w0', first place / second"
    assert words.measured[first] == pytest.approx((1 + 1 / 9) / (2 + 1 / 9))
    assert words.measured["rank correlation, embeddings replaced"] == pytest.approx(1)
    assert states.measured["c: within, between"] == "0.80, 0.00"


def test_the_middle_third_of_the_depth_is_counted_by_the_middles_of_blocks():
    def blocks(count: int) -> Table:
        return Table({"depth": i, "gap": float(2**i)} for i in range(count))

    assert thirds(blocks(3)) == (2.0, 2.5)
    assert thirds(blocks(6)) == (6.0, (1 + 2 + 16 + 32) / 4)
    assert thirds(blocks(4)) == (3.0, 4.5)
    with pytest.raises(LookupError, match=r"^2 blocks; a shape over depth needs three or more$"):
        thirds(blocks(2))


def test_captions_just_learned_are_enough_and_rows_must_be_there():
    about = {"kind": "captions", "joint": 0.8, "seed": 0}
    best = about | {"of": "a model without error", "joint": 0.88}
    samples, real = about | {"of": "samples"}, about | {"of": "real"}
    rows = Table([samples, real, best])
    assert require_learned(rows) == {
        "samples that show their captions": 0.8,
        "samples of a model without error that do": 0.88,
    }
    with pytest.raises(LookupError, match=r"^samples show their captions in 0\.80 .* not 0\.81$"):
        require_learned(Table([samples, real, best | {"joint": 0.9}]))
    for lacking in ([samples, real], [samples, best]):
        with pytest.raises(LookupError, match=r"was not measured$"):
            require_learned(Table(lacking))
    assert require_learned(Table([about | {"of": "real", "joint": 0.1}])) == {}
    for kind, measure in (("pixels", pixels_are_local), ("word", words_act_alike)):
        with pytest.raises(LookupError, match=f"^no rows of kind '{kind}'$"):
            measure(rows)


@pytest.mark.parametrize(("settings", "message"), [
    ({"places": ((0.5, 0.5),)}, "places: two are compared, not 1"),
    ({"concepts": (Concepts("a", ("x", "y")),)},
     "concepts: two categories or more, of two prompts or more each"),
    ({"concepts": (Concepts("a", ("x", "y")), Concepts("b", ("x",)))},
     "concepts: two categories or more, of two prompts or more each"),
    ({"prompt": " "}, "prompt and times must not be empty"),
    ({"times": ()}, "prompt and times must not be empty"),
    ({"pictures": 0}, "pictures must be positive, not 0"),
    ({"pixels": 0}, "pixels must be positive, not 0"),
    ({"draws": 0}, "draws must be positive, not 0"),
    ({"steps": -1}, "steps must be positive, not -1"),
])  # fmt: skip
def test_impossible_measures_are_refused(settings, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        FeatureMeasure(**settings)
    FeatureMeasure(pictures=1, pixels=1, draws=1, steps=1)


def test_the_defaults_of_the_measure_are_the_studys():
    made = FeatureMeasure()
    assert (made.pictures, made.pixels, made.draws, made.steps) == (8, 4, 10, 25)
    assert (made.times, made.high, made.side, made.seed) == ((0.1, 0.3, 0.5, 0.7, 0.9), 0.95, 0, 0)
    assert made.places == ((0.25, 0.5), (0.75, 0.5))


def test_many_tokens_are_averaged_over_neighbours_down_to_256():
    tokens = torch.arange(512.0)[:, None].expand(512, 2)
    flat = _flat(tokens)
    assert flat.shape == (512,)
    assert flat[:2].tolist() == [0.5, 2.5]
    assert torch.equal(_flat(tokens[:256]), tokens[:256].flatten())
    assert _flat(torch.zeros(2, 300, 3)).shape == (1800,)


def test_rows_and_empty_prompts_of_texts():
    halves = Halves()
    text = halves.text(["left right", "both"])
    assert text.encoded.rows(torch.tensor([1])).embeds.tolist() == [text.encoded.embeds[1].tolist()]
    assert text.encoded.rows(torch.tensor([1])).pooled is None
    null = text.null()
    assert not null.present.any()
    assert not null.encoded.embeds.any()
    assert text.present.tolist() == [[True, True], [True, False]]
    assert text.tokens[0].tolist() == [[True, False, False, False], [False, True, False, False]]


def test_a_words_tokens_are_counted_from_the_prompt_up_to_it():
    class Letters:
        """A token opens the text, one closes it, and each letter is one."""

        def __call__(self, prompt):
            return Tokens(["<", *prompt.replace(" ", ""), ">"])

    found = word_tokens("ab c def", (Segment(Letters(), 1, 5),), 8)
    assert [row.nonzero().flatten().tolist() for row in found] == [[2, 3], [4], [5]]
