"""The training loop: exact schedules, exact averages, exact resume, and a stop that says why."""

import copy
import math
import signal
import time
from dataclasses import replace
from typing import NamedTuple

import pytest
import torch
from tiny import CONFIG, QUIET, batch, fit, folder_of, loss, net, outcome

from recombine.config import UsageError, to_json
from recombine.runtime import Pace, Runtime
from recombine.store import RunFolder, write_json
from recombine.train.fit import Diverged, Fit, TrainConfig
from recombine.train.flat import FlatParams, StepScalars, adamw, flat_params, learner, products
from recombine.train.graph import DDP_WARM, WARM, GraphedUpdate, _clone, _copy
from recombine.train.loop import Clock, train


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> RunFolder:
    """One run from beginning to end without a break."""
    return fit(tmp_path_factory.mktemp("whole"))


def interrupting(step: int, times: int = 1, number: int = signal.SIGINT):
    """A batch function that presses Ctrl-C at `step`, or sends another signal."""

    def make(at: int):
        if at == step:
            for _ in range(times):
                signal.raise_signal(number)
        return batch(at)

    return make


def exploding(step: int, error: Exception):
    def make(at: int):
        if at == step:
            raise error
        return batch(at)

    return make


@pytest.mark.parametrize(
    ("decay", "expected"),
    [
        ("none", {0: 0.25, 1: 0.5, 3: 1, 4: 1, 9: 1, 14: 1}),
        ("linear", {0: 0.25, 3: 1, 4: 1, 9: 0.5, 13: 0.1, 14: 0}),
        ("cosine", {0: 0.25, 3: 1, 4: 1, 9: 0.5, 13: (1 + math.cos(0.9 * math.pi)) / 2, 14: 0}),
    ],
)
def test_the_rate_warms_up_over_four_steps_and_falls_over_ten(decay, expected):
    config = TrainConfig(steps=14, warmup=4, lr=2.0, decay=decay)
    assert {s: config.rate(s) for s in expected} == pytest.approx(
        {s: 2 * v for s, v in expected.items()}
    )
    assert TrainConfig(warmup=0, lr=2.0).rate(0) == 2


def test_the_average_keeps_little_at_first_and_what_is_set_later():
    config = TrainConfig(ema=0.5)
    assert [config.average(s) for s in (0, 2, 8, 100)] == [0.1, 0.25, 0.5, 0.5]


def test_weights_and_their_average_are_what_adam_and_arithmetic_say():
    """One weight, loss = 3 w: Adam moves it by the rate each step, whatever the gradient's size."""
    one = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(one.weight, 2.0)
    state = Fit(
        one,
        lambda n, x: 3 * n(x)[:, 0],
        TrainConfig(lr=0.5, warmup=1, decay="none", ema=0.5),
        QUIET,
    )
    weight, average = 2.0, 2.0
    for step in range(12):
        state.advance((torch.ones(4, 1),))
        weight -= 0.5
        keep = min(0.5, (1 + step) / (10 + step))
        average = keep * average + (1 - keep) * weight
        assert float(one.weight.detach()) == pytest.approx(weight, abs=1e-5)
        assert float(state.ema["weight"]) == pytest.approx(average, abs=1e-5)
    with state.averaged():
        assert float(one.weight.detach()) == pytest.approx(average, abs=1e-5)
    assert float(one.weight.detach()) == pytest.approx(weight, abs=1e-5)


def test_the_gradient_is_clipped_and_its_true_norm_reported():
    one = torch.nn.Linear(2, 1, bias=False)
    state = Fit(one, lambda n, x: n(x)[:, 0], TrainConfig(clip=1.0), QUIET)
    _, norm = state.advance((torch.tensor([[30.0, 40.0]]),))
    assert float(norm) == pytest.approx(50)
    clipped = state.state()["first.weight"] / (1 - state.config.betas[0])
    assert clipped.tolist() == [pytest.approx([0.6, 0.8], rel=1e-5)]


def test_without_clipping_the_gradient_is_taken_as_it_is():
    one = torch.nn.Linear(2, 1, bias=False)
    state = Fit(one, lambda n, x: n(x)[:, 0], TrainConfig(clip=0.0), QUIET)
    state.advance((torch.tensor([[30.0, 40.0]]),))
    taken = state.state()["first.weight"] / (1 - state.config.betas[0])
    assert taken.tolist() == [pytest.approx([30, 40], rel=1e-5)]


def test_the_run_ends_with_its_averaged_weights_on_disk_and_the_loss_falls(whole):
    rows = whole.rows()
    assert [r["step"] for r in rows if r["kind"] == "train"] == [2, 4, 6, 8, 10, 12]
    assert [r["step"] for r in rows if r["kind"] == "sum"] == [0, 5, 12]
    last = sum(float(v.sum()) for v in whole.load_model().values())
    assert rows[-1] == {"kind": "sum", "step": 12, "value": pytest.approx(last, abs=1e-5)}
    state, step, *_ = whole.load_state()
    assert step == 12
    assert all(torch.equal(state[f"ema.{k}"], v) for k, v in whole.load_model().items())


def test_running_statistics_which_would_be_lost_are_refused():
    with pytest.raises(UsageError, match="1: running statistics"):
        Fit(
            torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)), loss, CONFIG, QUIET
        )
    Fit(
        torch.nn.Sequential(
            torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2, track_running_stats=False)
        ),
        loss,
        CONFIG,
        QUIET,
    )


def test_training_learns(tmp_path):
    rows = fit(
        tmp_path, replace(CONFIG, steps=300, log_every=1, decay="none"), observe_at=()
    ).rows()
    mean = lambda some: sum(r["loss"] for r in some) / len(some)  # noqa: E731
    assert mean(rows[-20:]) < 0.5 * mean(rows[:20])


@pytest.mark.parametrize("stops", [(0,), (1,), (5,), (6,), (11,), (0, 3, 4, 5, 10)])
def test_interrupted_and_resumed_equals_uninterrupted_bit_for_bit(tmp_path, whole, stops):
    for stop in stops:
        with pytest.raises(KeyboardInterrupt):
            fit(tmp_path, batch=interrupting(stop))
        assert folder_of(tmp_path).load_state()[1] == stop + 1
    assert outcome(fit(tmp_path)) == outcome(whole)


def test_ctrl_c_in_the_middle_of_an_update_saves_a_whole_step(tmp_path, whole, monkeypatch):
    plain = FlatParams.gather

    def gather(self):
        signal.raise_signal(signal.SIGINT)
        return plain(self)

    monkeypatch.setattr(FlatParams, "gather", gather)
    for i in range(4):
        with pytest.raises(KeyboardInterrupt):
            fit(tmp_path)
        assert folder_of(tmp_path).load_state()[1] == i + 1
    monkeypatch.undo()
    assert outcome(fit(tmp_path)) == outcome(whole)


def test_ctrl_c_twice_stops_at_once_and_the_last_save_stands(tmp_path, whole):
    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path, batch=interrupting(4))
    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path, batch=interrupting(8, times=2))
    assert folder_of(tmp_path).load_state()[1] == 5
    assert outcome(fit(tmp_path)) == outcome(whole)


@pytest.mark.parametrize(("step", "times"), [(0, 1), (5, 1), (12, 1), (5, 2)])
def test_ctrl_c_while_observing_does_not_wait_for_it_and_resumes_exactly(
    tmp_path, whole, step, times
):
    folder, model = folder_of(tmp_path), net()
    folder.begin(to_json(CONFIG))

    def observe(at: int) -> list[dict]:
        try:
            for _ in range(times if at == step else 0):
                signal.raise_signal(signal.SIGINT)
        finally:
            if times == 2:
                signal.raise_signal(signal.SIGINT)
        assert at < step, "it should have stopped"
        return [
            {
                "kind": "sum",
                "step": at,
                "value": float(sum(p.detach().sum() for p in model.parameters())),
            }
        ]

    with pytest.raises(KeyboardInterrupt):
        train(
            model, loss, batch, CONFIG, folder, QUIET, observe, (0, 5, 12) if times == 1 else (5,)
        )
    assert (folder.load_state() is None) == (times == 2), (
        "a second Ctrl-C does not wait for a save either"
    )
    assert times == 2 or folder.load_state()[1] == step
    assert outcome(fit(tmp_path)) == outcome(whole)


def test_a_resumed_run_has_taken_the_time_before_it_too(tmp_path):
    def slowly(make):
        return lambda step: time.sleep(0.02) or make(step)

    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path, batch=slowly(interrupting(4)))
    folder = folder_of(tmp_path)
    assert 0.05 < folder.spent()["seconds"] < 60
    write_json(folder.path / "progress.json", {"seconds": 1000.0, "measuring": 100.0})
    fit(tmp_path, batch=slowly(batch))
    assert 1000.05 < folder.spent()["seconds"] < 1060
    assert 100 <= folder.spent()["measuring"] < 160


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_old_answer_to_a_signal_is_put_back(tmp_path, number):
    before = signal.getsignal(number)
    fit(tmp_path)
    assert signal.getsignal(number) is before


def test_sigterm_saves_a_whole_step_as_ctrl_c_does(tmp_path, whole):
    with pytest.raises(KeyboardInterrupt):
        fit(tmp_path, batch=interrupting(4, number=signal.SIGTERM))
    assert folder_of(tmp_path).load_state()[1] == 5
    assert outcome(fit(tmp_path)) == outcome(whole)


@pytest.mark.parametrize("stop", [0, 5, 7, 11])
def test_a_run_that_fails_goes_on_from_its_last_save_without_duplicate_rows(tmp_path, whole, stop):
    often = replace(QUIET, save_seconds=0.0)
    with pytest.raises(RuntimeError, match="the lights went out"):
        fit(tmp_path, runtime=often, batch=exploding(stop, RuntimeError("the lights went out")))
    folder = fit(tmp_path, runtime=often)
    assert outcome(folder) == outcome(whole)
    keys = [(r["kind"], r["step"]) for r in folder.rows()]
    assert len(keys) == len(set(keys))


def test_how_often_a_run_saves_or_whether_it_keeps_its_state_changes_nothing(tmp_path, whole):
    assert outcome(fit(tmp_path / "a", runtime=replace(QUIET, save_seconds=0.0))) == outcome(whole)
    folder = fit(tmp_path / "b", runtime=replace(QUIET, keep_state=False))
    assert outcome(folder) == outcome(whole)
    assert folder.load_state() is None


def test_observing_changes_nothing(tmp_path, whole):
    assert outcome(fit(tmp_path, observe_at=()))[0] == outcome(whole)[0]
    assert outcome(fit(tmp_path / "often", observe_at=tuple(range(13))))[0] == outcome(whole)[0]


@pytest.mark.parametrize(
    ("value", "step"), [(float("nan"), 0), (float("nan"), 7), (float("inf"), 3)]
)
def test_a_number_that_is_not_finite_stops_the_run_and_names_the_step(tmp_path, value, step):
    def poisoned(at: int):
        x, y = batch(at)
        return x, y.index_fill(0, torch.tensor([3]), value) if at == step else y

    with pytest.raises(Diverged, match=rf"not finite at step {step};") as error:
        fit(tmp_path, batch=poisoned)
    assert "\n" not in str(error.value)
    assert folder_of(tmp_path).load_state() is None


def test_what_is_not_finite_is_never_saved(tmp_path):
    poisoned = lambda at: (batch(at)[0], batch(at)[1] * (float("nan") if at >= 5 else 1))  # noqa: E731
    with pytest.raises(Diverged, match="step 5"):
        fit(tmp_path, runtime=replace(QUIET, save_seconds=0.0), batch=poisoned)
    state, step, *_ = folder_of(tmp_path).load_state()
    assert step == 5
    assert all(torch.isfinite(v).all() for v in state.values())


def test_a_batch_that_cannot_be_shared_is_refused():
    with pytest.raises(UsageError, match="batch 8 cannot be shared by 3 processes"):
        Fit(net(), loss, CONFIG, replace(QUIET, processes=3))


@pytest.mark.slow
def test_networks_of_one_kind_share_their_compiled_code_and_there_may_be_many_kinds(monkeypatch):
    """Traced, not compiled to machine code: that is enough to count."""
    plain = torch.compile
    monkeypatch.setattr(
        torch, "compile", lambda f, mode=None, **how: plain(f, backend="eager", **how)
    )
    torch._dynamo.reset()
    graphs = torch._dynamo.utils.counters["stats"]

    def traced(width: int) -> int:
        before, model = graphs["unique_graphs"], torch.nn.Linear(width, 1)
        fit = Fit(
            model, lambda net, x: net(x).square().mean(1), CONFIG, replace(QUIET, compile="default")
        )
        start = model.weight.detach().clone()
        fit.advance((torch.ones(4, width),))
        assert not torch.equal(model.weight, start), "it is this network that learns"
        return graphs["unique_graphs"] - before

    assert [traced(3), traced(3)] == [2, 0], "the step and the update"
    assert [traced(width) for width in range(4, 14)] == [1] * 10, (
        "vectors are as long, the update is the same"
    )
    torch._dynamo.reset()


def test_what_a_probe_finds_not_finite_says_at_which_step(tmp_path):
    def observe(step: int) -> list:
        raise Diverged("samples are not finite")

    folder = folder_of(tmp_path)
    folder.begin(to_json(CONFIG))
    says = r"^samples are not finite at step 5; is the guidance or rate too high\?$"
    with pytest.raises(Diverged, match=says):
        train(net(), loss, batch, CONFIG, folder, QUIET, observe, (5,))


def test_rows_of_training_come_every_so_often_and_at_the_end(whole):
    rows = [r for r in whole.rows() if r["kind"] == "train"]
    assert [r["step"] for r in rows] == [2, 4, 6, 8, 10, 12]
    assert [r["lr"] for r in rows] == [CONFIG.rate(r["step"] - 1) for r in rows]
    assert list(rows[0]) == ["kind", "step", "loss", "norm", "lr"]


def test_lines_of_training_are_written(tmp_path, capsys):
    fit(tmp_path, runtime=replace(QUIET, quiet=False, pace=Pace()))
    said = capsys.readouterr().err.splitlines()
    loss_at_end = folder_of(tmp_path).rows()[-2]["loss"]
    assert said[-1] == f"{folder_of(tmp_path).digest}  12/12  loss {loss_at_end:.4f}"


def test_a_clock_counts_what_was_spent_before(monkeypatch):
    now = [50.0]
    monkeypatch.setattr("recombine.train.loop.time.perf_counter", lambda: now[0])
    clock = Clock({"seconds": 3.0, "measuring": 1.0})
    now[0] += 2.345
    clock.measuring += 0.126
    assert clock.spent() == {"seconds": 5.34, "measuring": 1.13}
    assert Clock({}).spent() == {"seconds": 0.0, "measuring": 0.0}


def test_a_run_saves_after_as_many_seconds_as_are_set(tmp_path, monkeypatch):
    saved, now = [], [0.0]

    def later(step: int):
        now[0] += 1.0
        return batch(step)

    monkeypatch.setattr("recombine.train.loop.time.perf_counter", lambda: now[0])
    monkeypatch.setattr(
        RunFolder, "save_state", lambda self, state, step, spent: saved.append(step)
    )
    runtime = replace(QUIET, save_seconds=4.5, keep_state=False)
    fit(tmp_path, runtime=runtime, batch=later, observe_at=())
    assert saved == [5, 10]


def test_a_batch_is_cloned_and_copied_with_its_shape():
    class Pair(NamedTuple):
        a: torch.Tensor
        b: torch.Tensor

    given = (torch.zeros(2), Pair(torch.zeros(1), torch.zeros(3)))
    held = _clone(given)
    assert type(held[1]) is Pair
    _copy(held, (torch.ones(2), Pair(torch.ones(1), torch.ones(3))))
    assert [float(t.sum()) for t in (held[0], *held[1])] == [2, 1, 3]
    assert [float(t.sum()) for t in (given[0], *given[1])] == [0, 0, 0]
    with pytest.raises(ValueError, match="shorter"):
        _copy(held, (torch.ones(2),))


def test_updates_run_plainly_before_one_is_captured():
    assert (WARM, DDP_WARM) == (3, 11)
    plain, captured = ((torch.tensor(x), torch.tensor(x)) for x in (0.0, 1.0))
    update = GraphedUpdate(lambda batch: plain, 2)
    update._aside, update._capture = lambda: plain, lambda: captured
    assert [update((plain,)) is plain for _ in range(3)] == [True, True, False]


def test_plain_and_captured_updates_see_one_held_batch():
    """A column of a table has gaps in memory and its copy has none: code compiled for one would be
    compiled anew for the other, and nothing can be compiled while an update is captured."""
    update, seen, values = GraphedUpdate(lambda batch: batch, 2), [], []

    def noted():
        seen.append(tuple((t.data_ptr(), t.stride()) for t in update.held))
        values.append([t.tolist() for t in update.held])
        return update.held

    update._aside = update._capture = noted
    tables = [torch.arange(8).view(4, 2) + 10 * i for i in range(4)]
    for table in tables:
        update((table[:, 0], table.double()))
    assert len(set(seen)) == 1
    assert values == [[t[:, 0].tolist(), t.double().tolist()] for t in tables]


def test_a_teacher_is_handed_to_the_loss_that_needs_one():
    seen = []

    def noting(net, x, y, teacher=None):
        seen.append(teacher)
        return loss(net, x, y)

    for needed in (True, False):
        state = Fit(net(), noting, CONFIG, QUIET, needs_teacher=needed)
        state.advance(batch(0))
        assert seen.pop() is (state.average if needed else None)
    assert not any(p.requires_grad for p in state.average.parameters())


def test_weights_saved_by_another_version_are_refused():
    state = Fit(net(), loss, CONFIG, QUIET)
    held = {k: v.clone() for k, v in state.state().items()}
    held.pop(next(iter(held)))
    says = r"^what is saved of this run is of another version; --fresh trains it anew$"
    with pytest.raises(UsageError, match=says):
        state.load(held, 3)


def test_weight_decay_shrinks_weights_before_the_update():
    """The first update of AdamW goes by the rate in the gradient's sign."""
    tensors = [torch.full((2,), x) for x in (2.0, 2.0, 0.0, 0.0)]
    scalars = StepScalars.on(torch.device("cpu"))
    scalars.set(0, 0.5, 0.75, (0.9, 0.99))
    adamw(*tensors, None, torch.tensor([3.0, -3.0]), torch.tensor(1.0), scalars, (0.9, 0.99), 0.1)
    weight, ema, first, second = tensors
    assert weight.tolist() == pytest.approx([2 * 0.95 - 0.5, 2 * 0.95 + 0.5])
    assert ema.tolist() == pytest.approx([2 + 0.25 * -0.6, 2 + 0.25 * 0.4])
    assert first.tolist() == pytest.approx([0.3, -0.3])
    assert second.tolist() == pytest.approx([0.09, 0.09])


def test_only_weights_that_enter_products_are_rounded():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Linear(2, 3), torch.nn.Linear(3, 2)
            self.norm, self.still = torch.nn.LayerNorm(3), torch.nn.Linear(2, 2)
            self.table = torch.nn.Embedding(2, 3)
            self.b.weight = torch.nn.Parameter(torch.ones(2, 3))
            self.table.weight = self.b.weight
            self.still.requires_grad_(False)

    made = Net()
    assert products(made) == {"a.weight"}
    parts = flat_params(made, copy.deepcopy(made), rounded=True)
    assert [list(p.shapes) for p in parts] == [
        ["a.weight"],
        ["a.bias", "b.weight", "b.bias", "norm.weight", "norm.bias"],
        ["still.weight", "still.bias"],
    ]
    assert [p.learns for p in parts] == [True, True, False]
    assert [p.copy is not None for p in parts] == [True, False, False]
    assert parts[1].sizes == [64] * 5
    assert learner(made, parts).a.weight is parts[0].leaves["a.weight"]
    assert learner(made, parts).a.bias is made.a.bias
    assert learner(made, parts[1:]) is made


def test_rows_of_training_are_shown_on_the_board(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr(Runtime, "board", lambda self, run, row: shown.append((run, row)))
    folder = fit(tmp_path)
    rows = [r for r in folder.rows() if r["kind"] == "train"]
    assert shown == [(folder.digest, row) for row in rows]


def test_a_check_between_updates_may_stop_a_run(tmp_path):
    calls = []

    def check() -> None:
        calls.append(1)
        if len(calls) == 4:
            raise UsageError("enough")

    folder = folder_of(tmp_path)
    folder.begin(to_json(CONFIG))
    with pytest.raises(UsageError, match="enough"):
        train(net(), loss, batch, CONFIG, folder, QUIET, check=check)
    assert [r["step"] for r in folder.rows()] == [2]
