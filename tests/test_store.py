"""Files are whole, runs are named and verified, and whatever was damaged is refused in one line."""

import json
import os
import stat

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recombine.config import UsageError
from recombine.store import RunFolder, read_json, read_rows, write_atomic, write_json, write_rows

TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(3, dtype=torch.bfloat16)}


@pytest.fixture
def run(tmp_path) -> RunFolder:
    folder = RunFolder(tmp_path, "0123456789abcdef")
    folder.begin({"config": {"n": 1}, "parents": []})
    return folder


def finished(run: RunFolder) -> RunFolder:
    run.append([{"kind": "train", "step": 1, "loss": 0.5}, {"kind": "x", "step": 1}])
    run.save_model(TENSORS, 1)
    run.finish({"seconds": 1.0})
    return run


flat = st.dictionaries(
    st.text(max_size=8),
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    max_size=4,
)


@settings(max_examples=50, deadline=None)
@given(st.lists(flat, max_size=5))
def test_rows_come_back_as_they_were(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    write_rows(path, rows)
    assert read_rows(path) == rows


def test_a_last_line_cut_off_by_a_kill_is_left_out(tmp_path):
    path = tmp_path / "rows.jsonl"
    write_rows(path, [{"a": 1}, {"a": 2}])
    path.write_bytes(path.read_bytes()[:-3])
    assert read_rows(path) == [{"a": 1}]


@pytest.mark.parametrize("text", ['{"a": 1}\nnonsense\n', "[1]\n", '"text"\n'])
def test_lines_that_are_no_objects_are_refused(tmp_path, text):
    (tmp_path / "rows.jsonl").write_text(text)
    with pytest.raises(UsageError, match="not valid JSON lines"):
        read_rows(tmp_path / "rows.jsonl")


def test_writing_is_all_or_nothing_and_leaves_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomic(path, "old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match=r"cannot write .*No space left"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_written_file_has_the_usual_rights(tmp_path):
    write_atomic(tmp_path / "ours", "x")
    (tmp_path / "plain").write_text("x")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("ours", "plain")]
    assert modes[0] == modes[1]


def test_a_link_is_replaced_and_what_lies_behind_it_is_not_written(tmp_path):
    target = tmp_path / "elsewhere"
    target.write_text("mine")
    (tmp_path / "file").symlink_to(target)
    write_atomic(tmp_path / "file", "ours")
    assert target.read_text() == "mine"


def test_tensors_come_back_with_their_step_and_types(run):
    run.save_state(TENSORS, 7, {"seconds": 3.0})
    tensors, step, spent, _ = run.load_state()
    assert (step, spent) == (7, {"seconds": 3.0})
    assert all(
        torch.equal(tensors[k], v) and tensors[k].dtype == v.dtype for k, v in TENSORS.items()
    )


def test_equal_runs_are_equal_files(tmp_path):
    made = []
    for name in ("one", "two"):
        folder = RunFolder(tmp_path / name, "abc")
        folder.begin({})
        folder.save_model(dict(TENSORS), 3)
        made.append((folder.path / "model.safetensors").read_bytes())
    assert made[0] == made[1]


def test_a_folder_of_another_config_is_refused(run):
    run.begin({"config": {"n": 1}, "parents": []})
    with pytest.raises(UsageError, match="is not the config of run"):
        run.begin({"config": {"n": 2}, "parents": []})


def test_rewinding_forgets_what_will_be_written_again(run):
    rows = [{"kind": kind, "step": step} for step in (1, 2, 3) for kind in ("train", "x")]
    run.append(rows)
    run.rewind(2)
    assert run.rows() == [rows[0], rows[1], rows[2]]


def test_a_finished_run_knows_its_weights_and_notices_when_they_are_gone(run):
    assert not run.done
    assert run.weights == ""
    finished(run)
    assert run.done
    assert len(run.weights) == 64
    assert not run.weights_missing
    (run.path / "model.safetensors").unlink()
    assert run.weights_missing
    assert len(run.rows()) == 2


@pytest.mark.parametrize("name", ["rows.jsonl", "model.safetensors"])
def test_every_flipped_byte_of_a_finished_run_is_noticed(run, name):
    finished(run)
    path = run.path / name
    whole = path.read_bytes()
    read = run.rows if name == "rows.jsonl" else run.load_model
    for i in range(0, len(whole), max(1, len(whole) // 60)):
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :])
        with pytest.raises(UsageError, match=f"{name} was altered") as error:
            read()
        assert "\n" not in str(error.value)
    path.write_bytes(whole)
    read()


def test_every_flipped_byte_of_a_saved_state_is_noticed(run):
    run.save_state(TENSORS, 7)
    path = run.path / "state.safetensors"
    whole = path.read_bytes()
    for i in range(len(whole)):
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 4]) + whole[i + 1 :])
        with pytest.raises(UsageError):
            run.load_state()


def test_every_truncation_of_a_saved_state_is_noticed(run):
    run.save_state(TENSORS, 7)
    path = run.path / "state.safetensors"
    whole = path.read_bytes()
    for n in range(len(whole)):
        path.write_bytes(whole[:n])
        with pytest.raises(UsageError, match="corrupt or cut off"):
            run.load_state()


def test_the_state_of_another_run_is_refused(run, tmp_path):
    other = RunFolder(tmp_path, "fedcba9876543210")
    other.begin({})
    other.save_state(TENSORS, 1)
    run.save_state(TENSORS, 1)
    (other.path / "state.safetensors").replace(run.path / "state.safetensors")
    with pytest.raises(UsageError, match="belongs to run fedcba9876543210"):
        run.load_state()


@pytest.mark.parametrize("text", ["[]", '{"files": 3}', "{", ""])
def test_a_damaged_done_file_is_one_line(run, text):
    finished(run)
    (run.path / "done.json").write_text(text)
    with pytest.raises(UsageError):
        run.facts()


def test_erasing_and_sweeping(run):
    stale = run.path / ".state.safetensors.x.tmp"
    stale.write_bytes(b"half")
    run.sweep()
    assert not stale.exists()
    finished(run).erase()
    assert not run.path.exists()


def test_json_that_is_none(tmp_path):
    write_json(tmp_path / "a.json", {"ü": 1})
    assert read_json(tmp_path / "a.json") == {"ü": 1}
    (tmp_path / "a.json").write_text("[" * 100_000)
    with pytest.raises(UsageError, match="not valid JSON"):
        read_json(tmp_path / "a.json")
    with pytest.raises(UsageError, match="cannot read"):
        read_json(tmp_path / "b.json")
    assert json.loads(json.dumps(1)) == 1
