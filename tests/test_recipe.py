"""The recipe of a model: batches named by step, the share that is dropped, samples whose noise
never changes, sheets on disk."""

from dataclasses import replace

import pytest
import torch
from PIL import Image
from tiny import QUIET

from recombine.config import UsageError, digest
from recombine.metrics.probes import Oracle
from recombine.metrics.sheets import write_sheet
from recombine.nets.conditioning import Conditioning
from recombine.nets.dit import DiTConfig
from recombine.nets.transformer import TransformerConfig
from recombine.objectives.masked import Masked
from recombine.objectives.process import Guided
from recombine.objectives.token_heads import Mixture
from recombine.overrides import override
from recombine.pipeline.job import Work
from recombine.rng import seeded
from recombine.runs.models import TOGETHER, Model, ModelRun, check_jobs
from recombine.runs.recipe import COPIES, Evaluation, Recipe, spaced
from recombine.studies import composition, label_dropout, objectives
from recombine.studies.composition import smoke
from recombine.studies.labels import CONDITIONS
from recombine.tokenizers.pixels import Pixels
from recombine.train.fit import TrainConfig
from recombine.worlds.circles import Circles
from recombine.worlds.shapes2d import Shapes2D

RECIPE = smoke()


def made(root, recipe: Recipe = RECIPE) -> Model:
    return Model(recipe, Work(ModelRun(recipe), root, QUIET))


def tensors(batch) -> list[torch.Tensor]:
    x, condition, draw = batch
    return [x, *condition, *draw]


@pytest.mark.parametrize(("steps", "count"), [(600, 9), (6000, 14), (4, 9), (1, 2), (8, 2)])
def test_checkpoints_run_from_nothing_to_the_end_and_lie_dense_at_first(steps, count):
    points = spaced(steps, count)
    gaps = [b - a for a, b in zip(points, points[1:], strict=False)]
    assert (points[0], points[-1]) == (0, steps)
    assert all(g > 0 for g in gaps)
    assert len(points) <= count
    assert gaps[0] == min(gaps)
    assert gaps[-1] >= max(gaps) - 1


def test_checkpoints_are_given_as_steps_or_as_a_number_and_follow_the_length_of_training():
    assert override(RECIPE, "checkpoints=5").evaluation.at(400) == spaced(400, 5)
    assert override(RECIPE, "checkpoints=[3,7]").evaluation.at(400) == (3, 7, 400)
    with pytest.raises(UsageError, match="checkpoints must be positive"):
        override(RECIPE, "checkpoints=0")


def test_a_batch_is_a_function_of_its_step_alone(tmp_path):
    one, other = made(tmp_path), made(tmp_path)
    later = one.batch(5)
    for step in (5, 0, 3):
        other.batch(step)
    assert all(
        torch.equal(a, b)
        for a, b in zip(later, other.batch(5), strict=True)
        if isinstance(a, torch.Tensor)
    )
    assert all(
        torch.equal(a, b) for a, b in zip(tensors(later), tensors(other.batch(5)), strict=True)
    )
    assert not torch.equal(later[0], other.batch(6)[0])
    assert not torch.equal(later[0], made(tmp_path, replace(RECIPE, seed=1)).batch(5)[0])


def test_training_sees_the_seen_compositions_and_no_others(tmp_path):
    run = made(tmp_path)
    latents, condition = run.pool
    assert len(latents) == 4 * RECIPE.pool
    assert -1 <= latents.min() < latents.max() <= 1
    assert {tuple(row) for row in condition.index.tolist()} == set(RECIPE.split.seen)
    x, given, _ = run.batch(0)
    match = (latents[None] == x[:, None]).flatten(2).all(2)
    assert torch.equal(condition.index[match.float().argmax(1)], given.index), (
        "pictures keep their own conditions"
    )
    assert match.any(1).all()


@pytest.mark.parametrize("dropout", [0.0, 0.1, 0.5, 1.0])
def test_factors_are_dropped_one_by_one_as_often_as_set(tmp_path, dropout):
    big = replace(RECIPE, conditioning=Conditioning(dropout=dropout), train=TrainConfig(batch=4000))
    present = made(tmp_path, big).batch(0)[1].present.double()
    assert float(present.mean()) == pytest.approx(1 - dropout, abs=0.02)
    if 0 < dropout < 1:
        assert float(torch.corrcoef(present.T)[0, 1]) == pytest.approx(0, abs=0.05)


@pytest.mark.parametrize("name", CONDITIONS)
def test_labels_are_left_out_or_zeroed_as_a_variant_says(tmp_path, name):
    run = made(tmp_path, replace(RECIPE, conditioning=CONDITIONS[name]))
    given = [run.batch(step)[1] for step in range(40)]
    hidden = any(not one.present.all() for one in given)
    zeroed = any(not one.value.any(0).all() for one in given)
    assert hidden == ("dropout" in name or "theirs" in name)
    assert zeroed == ("zero" in name or "theirs" in name)


def test_samples_start_from_the_same_noise_at_every_step_however_many_are_drawn_at_once(tmp_path):
    run, seen = made(tmp_path), []

    def spy(x, t, condition):
        seen.append((x.clone(), condition))
        return torch.zeros_like(x)

    compositions = [(0, 0, 0), (1, 1, 1)]
    pictures = run.sample(compositions, 3, spy)
    with torch.no_grad():
        run.net.leave.bias.add_(1.0)
    run.sample(compositions, 3, spy)
    assert pictures.shape == (2, 3, 3, 28, 28)
    steps = RECIPE.evaluation.solver.steps
    (noise, given), (again, _) = seen[0], seen[steps]
    assert len(seen) == 2 * steps, "both compositions at once"
    assert torch.equal(noise, again)
    assert not torch.equal(noise[:3], noise[3:])
    assert given.index.tolist() == [[0, 0, 0]] * 3 + [[1, 1, 1]] * 3
    assert given.present.all()
    run.sample(compositions * 800, 3, spy)
    assert max(len(x) for x, _ in seen) <= TOGETHER


def test_probes_must_be_trained():
    with pytest.raises(UsageError, match="probe_steps must be positive"):
        override(RECIPE, "probe_steps=0")


@pytest.mark.parametrize(
    "changes",
    [(), ("conditioning.dropout=0.1",), ("conditioning.dropout=0.5", "conditioning.dropped=zero")],
)
def test_guidance_needs_a_model_that_was_also_trained_without_conditions(changes):
    override(RECIPE, "evaluation.guidance=3", "conditioning.dropout=0.22").check()
    with pytest.raises(UsageError, match="trained without conditions"):
        override(RECIPE, "evaluation.guidance=3", *changes).check()


def test_guidance_one_is_the_plain_denoiser_and_another_scale_is_not(tmp_path):
    plain, guided = made(tmp_path), made(tmp_path, override(RECIPE, "evaluation.guidance=3"))
    for run in (plain, guided):
        rng = seeded("weights")
        with torch.no_grad():
            for p in run.net.parameters():
                p.add_(0.1 * torch.randn(p.shape, generator=rng))
    assert not torch.equal(plain.sample([(0, 1, 1)], 2), guided.sample([(0, 1, 1)], 2))
    assert torch.equal(plain.sample([(0, 1, 1)], 2), plain.sample([(0, 1, 1)], 2, plain.denoiser()))


def test_the_network_and_its_samples_are_named_by_the_seed_not_by_history(tmp_path):
    torch.manual_seed(5)
    one = made(tmp_path).net.enter.weight
    torch.manual_seed(6)
    state = torch.get_rng_state()
    assert torch.equal(one, made(tmp_path).net.enter.weight)
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(one, made(tmp_path, replace(RECIPE, seed=1)).net.enter.weight)


def test_observing_scores_every_composition_and_writes_a_sheet(tmp_path, monkeypatch):
    probes = [Oracle(RECIPE.world)]
    monkeypatch.setattr("recombine.runs.models.open_probes", lambda *how: probes)
    run = made(tmp_path)
    rows = run.observe(4)
    scores = [r for r in rows if r["kind"] == "accuracy"]
    assert [(r["composition"], r["level"]) for r in scores] == [(c, {"111": 2}.get(c, int(c.count("1") == 2))) for c in
            ("000", "001", "010", "011", "100", "101", "110", "111")]  # fmt: skip
    assert {r["step"] for r in rows} == {4}
    sheet = Image.open(run.work.folder.path / "samples" / "step_00000004.png")
    assert sheet.size == (8 * 28, 8 * 28)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_sheet_has_a_row_per_composition_and_can_be_cut_by_arithmetic(tmp_path, channels):
    images = torch.rand(2, 5, channels, 6, 4)
    write_sheet(tmp_path / "s.png", images)
    sheet = Image.open(tmp_path / "s.png")
    assert sheet.size == (5 * 4, 2 * 6)
    cell = torch.tensor(list(sheet.crop((12, 6, 16, 12)).convert("RGB").getdata())).reshape(6, 4, 3)
    expected = (images[1, 3] * 255).round().permute(1, 2, 0).expand(6, 4, 3)
    assert torch.equal(cell.float(), expected)


@pytest.mark.parametrize("seen", ["seen=[[0,0]]", "seen=[[0,0,0],[0,0,2]]"])
def test_a_seen_composition_that_does_not_exist_is_refused(seen):
    with pytest.raises(UsageError, match="is no composition of factors with"):
        ModelRun(override(RECIPE, seen)).check()


def test_everything_that_decides_a_result_is_in_the_runs_name():
    changes = ["seed=1", "pool=17", "train.lr=0.1", "conditioning.mode=quantised", "evaluation.samples=9", "world.size=56",
               "net.patch=14", "objective.times=logit-normal", "evaluation.solver.steps=3", "seen=[[0,0,0]]"]  # fmt: skip
    assert (
        len({digest(RECIPE), *(digest(override(RECIPE, c)) for c in changes)}) == len(changes) + 1
    )


def test_pictures_with_wide_jitter_are_scored_as_all_others_are():
    made = composition.settings("full").variants()
    assert list(made) == ["balanced", "raw", "wide"]
    usual, wide = made["balanced"], made["wide"]
    assert wide.probe_world == usual.world != wide.world
    back = replace(
        wide.world, color_jitter=usual.world.color_jitter, size_jitter=usual.world.size_jitter
    )
    assert replace(wide, world=back, evaluation=usual.evaluation) == usual
    with pytest.raises(UsageError, match="Shapes2D"):
        replace(usual, world=Circles()).with_jitter(0.1, 0.1)
    with pytest.raises(UsageError, match="another size"):
        replace(
            usual, evaluation=replace(usual.evaluation, probe_world=replace(usual.world, size=35))
        ).check()


def test_checkpoints_beyond_the_end_are_left_out_and_the_end_is_always_one():
    assert Evaluation((0, 4, 9000)).at(2000) == (0, 4, 2000)
    assert Evaluation(3).at(8) == (0, 2, 8)


def test_every_seed_has_a_tokenizer_of_its_own():
    recipe = objectives.smoke()
    assert [recipe.with_seed(s).tokenizer.seed for s in (0, 1, 5)] == [0, 1, 5]
    assert [recipe.with_seed(s).seed for s in (0, 1, 5)] == [0, 1, 5]
    assert recipe.with_seed(0) == recipe
    assert Recipe().with_seed(2) == replace(Recipe(), seed=2)
    assert Pixels().with_seed(3) == Pixels()


def test_a_ceiling_is_one_run_whichever_model_needs_it():
    jobs = label_dropout.jobs(label_dropout.settings("smoke"), 1)
    ceilings = {dict(j.labels)["variant"]: j.task for j in jobs if j.task.noun == "tokenizer check"}
    assert ceilings["dit"] == ceilings["maskgit, dropout"] != ceilings["dit on vae"]
    assert ceilings["dit on vae"] == ceilings["givt on vae"] == ceilings["dit on vae, weak signal"]


def test_the_probes_of_a_world_are_checked_once():
    recipes = {("v", s): RECIPE.with_seed(s) for s in range(3)}
    assert [job.task.noun for job in check_jobs(recipes)] == ["probe check"]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"seen": ((0, 0, 5),)},
            "seen: [0, 0, 5] is no composition of factors with (2, 2, 2) values",
        ),
        (
            {"tokenizer_world": Shapes2D()},
            "tokenizer_world: only a learned tokenizer learns from pictures; set tokenizer",
        ),
        (
            {"objective": Masked(Mixture(2)), "evaluation": Evaluation(guidance=2.0)},
            "evaluation.guidance=2.0: only a diffusion is guided",
        ),
        (
            {"evaluation": Evaluation(guidance=2.0)},
            "evaluation.guidance=2.0: it needs a model that was also trained without conditions; "
            "set conditioning.dropout to 0.22 or more, with dropped=null, or to 0.01 or more, with "
            "dropped=together",
        ),
        (
            {"evaluation": Evaluation(probe_world=Circles())},
            "evaluation.probe_world: it has other factors than the pictures that are to be scored",
        ),
        (
            {"evaluation": Evaluation(probe_world=Shapes2D(size=16))},
            "evaluation.probe_world: its pictures have another size than those that are to be "
            "scored",
        ),
    ],
)
def test_parts_that_do_not_fit_each_other_are_named(changes, says):
    small = DiTConfig(TransformerConfig(depth=1, width=16, heads=1), patch=1)
    net = {"net": small} if "objective" in changes else {}
    with pytest.raises(UsageError) as error:
        replace(RECIPE, **net, **changes).check()
    assert str(error.value) == says


def test_guidance_of_one_is_none():
    replace(RECIPE, evaluation=replace(RECIPE.evaluation, guidance=1.0)).check()


def test_samples_are_kept_at_the_last_checkpoints():
    evaluation = Evaluation(checkpoints=(10, 20, 30, 50), keep=3, keep_last=2)
    assert [step for step in (10, 20, 30, 40) if evaluation.keeps(step, 40)] == [30, 40]
    assert not replace(evaluation, keep=0).keeps(40, 40)
    assert evaluation.at(40) == (10, 20, 30, 40)
    assert evaluation.at(30) == (10, 20, 30)


def test_only_a_diffusion_is_a_denoiser(tmp_path):
    net = DiTConfig(TransformerConfig(depth=1, width=16, heads=1), patch=1)
    model = made(tmp_path, replace(RECIPE, net=net, objective=Masked(Mixture(2))))
    with pytest.raises(UsageError, match=r"^Masked trains no denoiser$"):
        model.denoiser()
    guided = replace(RECIPE, evaluation=replace(RECIPE.evaluation, guidance=2.0))
    assert isinstance(made(tmp_path, guided).denoiser(), Guided)
    assert not isinstance(made(tmp_path).denoiser(), Guided)


def test_a_run_must_fit_into_memory(monkeypatch):
    """Training set, samples and a batch, with their latents, and copies of the weights."""
    needed = []
    monkeypatch.setattr("recombine.runs.recipe.check_memory", lambda n, what: needed.append(n))
    recipe = replace(RECIPE, world=Shapes2D(size=16), pool=7)
    bytes_of = 4 * 2 * 3 * 16 * 16
    for weights in (0, 100):
        recipe._check_room(weights)
    samples, batch = recipe.evaluation.samples, recipe.train.batch
    assert needed[0] == bytes_of * (len(recipe.split.seen) * 7 + 8 * samples + batch)
    assert needed[1] - needed[0] == COPIES * 100
    assert not recipe.streams


def test_only_shapes_have_jitter_to_set():
    with pytest.raises(UsageError, match=r"^recipe\.world: only Shapes2D has within-class jitter"):
        replace(RECIPE, world=Circles()).with_jitter(0.1, 0.1)
    wide = RECIPE.with_jitter(0.2, 0.1, ("circle",))
    assert (wide.world.color_jitter, wide.world.size_jitter) == (0.2, 0.1)
    assert (wide.world.varying, wide.probe_world) == (("circle",), RECIPE.world)


def test_what_a_page_needs_to_know():
    facts = replace(RECIPE, world=Shapes2D()).facts()
    assert facts["levels"] == {
        "000": 0, "001": 0, "010": 0, "100": 0, "011": 1, "101": 1, "110": 1, "111": 2,
    }  # fmt: skip
    assert facts["own"] == ""
    assert [f["name"] for f in facts["space"]["factors"]] == ["shape", "color", "size"]
