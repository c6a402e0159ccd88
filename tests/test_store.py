"""Files are whole, runs are named and verified, and whatever was damaged is refused in one line."""

import hashlib
import json
import os
import stat
from dataclasses import FrozenInstanceError, replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recombine.config import UsageError, to_json
from recombine.files import printable, read_bytes, readable_parquet, temporary_path
from recombine.store import RunFolder, read_json, read_rows, write_atomic, write_json, write_rows
from recombine.train.fit import TrainConfig

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


def test_who_has_lost_a_run_writes_nothing_into_it(run):
    def lost():
        raise RuntimeError("lost")

    run.append([{"kind": "x", "step": 1}])
    before = {p.name: p.read_bytes() for p in run.path.iterdir()}
    late = replace(run, check=lost)
    for act in (
        lambda: late.append([{"kind": "x", "step": 2}]),
        lambda: late.write_rows([]),
        lambda: late.rewind(0),
        lambda: late.save_state(TENSORS, 2),
        lambda: late.save_model(TENSORS, 2),
        lambda: late.finish({}),
    ):
        with pytest.raises(RuntimeError, match="lost"):
            act()
    assert {p.name: p.read_bytes() for p in run.path.iterdir()} == before


def test_the_files_of_a_finished_run_are_those_of_its_own_list(run):
    for name in ("b.png", "a.png"):
        write_atomic(run.path / "samples" / name, name)
    assert run.files("samples/*.png") == ["samples/a.png", "samples/b.png"]
    finished(run)
    write_atomic(run.path / "samples" / "c.png", "not its own")
    assert run.files("samples/*.png") == ["samples/a.png", "samples/b.png"]
    assert run.files("*.jsonl") == ["rows.jsonl"]


@pytest.mark.parametrize("inside", ["", "samples"])
def test_a_run_that_is_a_link_is_neither_begun_nor_erased(run, tmp_path, inside):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "done.json").write_text("mine")
    other = RunFolder(tmp_path, "fedcba9876543210")
    (other.path / inside).parent.mkdir(exist_ok=True, parents=True)
    (other.path / inside).symlink_to(mine)
    with pytest.raises(UsageError, match="is a link"):
        other.begin({})
    if not inside:
        with pytest.raises(UsageError, match="is a link"):
            other.erase()
    assert [p.name for p in mine.iterdir()] == ["done.json"]


def test_a_kill_while_a_run_is_erased_leaves_none_that_seems_done(run, monkeypatch):
    finished(run)
    monkeypatch.setattr("recombine.store.rmtree", lambda *_, **__: None)
    run.erase()
    assert not run.done
    assert run.facts() == {}
    assert (run.path / "model.safetensors").exists()


def test_the_time_spent_is_kept_until_a_run_is_finished(run):
    assert run.spent() == {}
    run.save_state(TENSORS, 3, {"seconds": 2.5, "measuring": 1.0})
    assert run.spent() == {"seconds": 2.5, "measuring": 1.0}
    assert run.load_state().spent == run.spent()
    for text in ("[1]", '{"seconds": "long", "more": 3}'):
        (run.path / "progress.json").write_text(text)
        assert run.spent() == {}
    finished(run)
    assert "progress.json" not in {p.name for p in run.path.iterdir()} | set(run.facts()["files"])


def test_a_config_of_before_a_field_was_added_is_the_same_and_another_value_is_not(run, tmp_path):
    whole = {"config": to_json(TrainConfig(steps=7)), "parents": []}
    older = {**whole, "config": {k: v for k, v in whole["config"].items() if k != "clip"}}
    assert older != whole
    for stored, fits in (
        (older, True),
        (whole, True),
        ({**older, "parents": ["x"]}, False),
        ({**older, "config": {**older["config"], "steps": 8}}, False),
        ({**older, "config": {**older["config"], "clip": 0.25}}, False),
        ({"parents": []}, False),
        ({**older, "config": 3}, False),
        ([], False),
    ):
        write_json(run.path / "config.json", stored)
        if fits:
            run.begin(whole)
        else:
            with pytest.raises(UsageError, match="is not the config of run"):
                run.begin(whole)


def test_measured_steps_are_those_of_rows_that_are_not_of_training(run):
    run.append([{"kind": "train", "step": 1}, {"kind": "x", "step": 4}, {"kind": "y"}])
    run.append([{"kind": "x", "step": 2}])
    assert run.steps_measured() == {2, 4}


def test_a_run_goes_on_from_the_rows_that_its_state_was_saved_with(run):
    assert run.load_state() is None
    early = [{"kind": "train", "step": 1}, {"kind": "x", "step": 2}]
    run.append(early)
    run.save_state(TENSORS, 3)
    saved = run.load_state()
    assert saved.step == 3
    run.append([{"kind": "x", "step": 3}])
    run.rewind(saved.step, saved.rows)
    assert run.rows() == early
    run.write_rows(early[:1])
    with pytest.raises(UsageError, match=r"rows.jsonl was altered since the run stopped"):
        run.rewind(saved.step, saved.rows)
    run.write_rows([{"kind": "x"}])
    with pytest.raises(UsageError, match="has a row without a step"):
        run.rewind(0)
    (run.path / "rows.jsonl").unlink()
    run.rewind(0)
    assert run.rows() == []


def test_what_is_written_into_a_folder_that_is_gone_is_refused(run):
    finished(run).erase()
    for act in (
        lambda: run.append([]),
        lambda: run.save_model(TENSORS, 1),
        lambda: run.write_rows([]),
    ):
        with pytest.raises(UsageError, match="was removed while the run was at work"):
            act()
    assert not run.path.exists()


def test_rows_that_cannot_be_written_are_one_line(run):
    (run.path / "rows.jsonl").mkdir()
    with pytest.raises(UsageError, match=r"cannot write .*rows.jsonl: Is a directory"):
        run.append([{"kind": "x", "step": 1}])


@pytest.mark.parametrize("facts", [{"files": {"a": 3}}, {"parents": {"a": 3}}, {"parents": []}])
def test_a_done_file_whose_lists_are_no_texts_is_refused(run, facts):
    run.finish({})
    made = json.loads((run.path / "done.json").read_text())
    write_json(run.path / "done.json", {k: v for k, v in made.items() if k != "seal"} | facts)
    with pytest.raises(UsageError, match=r"done.json is damaged; delete"):
        run.facts()


def test_a_run_older_than_checksums_is_read_and_its_listed_files_are_verified(run):
    run.append([{"kind": "x", "step": 1}])
    write_json(run.path / "done.json", {"seconds": 1.0})
    assert run.facts() == {"seconds": 1.0}
    assert run.rows() == [{"kind": "x", "step": 1}]
    assert (run.weights, run.weights_missing) == ("", True)
    write_json(run.path / "done.json", {"files": {"rows.jsonl": "0" * 64}})
    with pytest.raises(UsageError, match="was altered after the run finished"):
        run.rows()


def test_erasing_and_sweeping(run):
    (run.path / "samples").mkdir()
    stale = [run.path / ".state.safetensors.x.tmp", run.path / "samples" / ".a.png.x.tmp"]
    for path in stale:
        path.write_bytes(b"half")
    run.sweep()
    assert not any(path.exists() for path in stale)
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


def test_a_run_is_its_place_and_its_name(run):
    assert run == replace(run, check=print)
    assert "check" not in repr(run)
    with pytest.raises(FrozenInstanceError):
        run.digest = "x"


def test_checksums_stay_as_they_are_so_that_older_runs_can_be_read(run):
    finished(run)
    made = json.loads((run.path / "done.json").read_text())
    said = json.dumps({k: v for k, v in made.items() if k != "seal"}, sort_keys=True)
    assert made["seal"] == hashlib.sha256(said.encode()).hexdigest()[:16]
    rows = (run.path / "rows.jsonl").read_bytes()
    assert made["files"]["rows.jsonl"] == hashlib.sha256(rows).hexdigest()
    run.save_state(TENSORS, 2)
    known = f"{len(rows)}:{hashlib.sha256(rows).hexdigest()[:16]}"
    assert run.load_state().rows == known


def test_the_checksum_of_tensors_is_that_of_names_shapes_owner_and_numbers(run):
    run.save_model({"b": torch.ones(2), "a": torch.zeros(3, 2)}, 4)
    data = (run.path / "model.safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    owner, _, known = header.pop("__metadata__")["run"].partition(" sha256 ")
    assert owner == f"{run.digest} step 4"
    named = json.dumps([owner, header], sort_keys=True).encode()
    assert known == hashlib.sha256(named + data[8 + size :]).hexdigest()


def test_removing_what_is_not_there_is_no_fault(run, monkeypatch):
    run.erase()
    run.erase()
    assert not run.path.exists()
    gone = run.path / ".rows.jsonl.x.tmp"  # another process has just removed it
    monkeypatch.setattr(type(run.path), "glob", lambda *_: [gone])
    run.sweep()


def test_names_of_temporary_files_say_whose_they_are(tmp_path):
    path = tmp_path / ("x" * 90)
    name = temporary_path(path).name
    host = os.uname().nodename.replace(".", "-")
    assert name.startswith(f".{'x' * 80}.{host}.{os.getpid()}.")
    assert name.endswith(".tmp")
    assert len(name.split(".")[-2]) == 8
    assert temporary_path(path) != temporary_path(path)


def test_a_part_of_a_file_can_be_read(tmp_path):
    write_atomic(tmp_path / "file", "abcdef")
    assert read_bytes(tmp_path / "file") == b"abcdef"
    assert read_bytes(tmp_path / "file", 2) == b"ab"
    with pytest.raises(UsageError, match=r"^cannot read .*none: No such file or directory$"):
        read_bytes(tmp_path / "none")


def test_json_is_written_as_people_read_it(tmp_path):
    write_json(tmp_path / "a", {"b": ["ä", 1]})
    assert (tmp_path / "a").read_text() == '{\n "b": [\n  "ä",\n  1\n ]\n}\n'
    write_rows(tmp_path / "c", [{"d": "ä"}, {}])
    assert (tmp_path / "c").read_text() == '{"d": "ä"}\n{}\n'
    assert read_rows(tmp_path / "none") == []


def test_what_a_library_says_of_a_damaged_table_is_cut_to_one_short_line():
    with pytest.raises(UsageError) as error, readable_parquet("here"):
        raise BaseException(" a\n b " + 100 * "x")
    said = "a b " + 76 * "x"
    assert str(error.value) == f"here: is not a readable Parquet table ({said})"
    for passed_on in (UsageError("as it is"), KeyboardInterrupt(), SystemExit(3)):
        with pytest.raises(type(passed_on)) as error, readable_parquet("here"):
            raise passed_on
        assert error.value is passed_on


def test_control_characters_are_shown_as_text():
    assert printable("a ä\x1b\n\u202e") == "a ä\\x1b\\n\\u202e"
