"""Run folders: all or nothing on disk, named by content, and nothing of a stranger's is believed or executed."""

import errno
import json
import os
import resource
from dataclasses import dataclass, replace

import pytest
import torch

from recombine.config import UsageError, digest
from recombine.evaluate.detector import DetectorConfig
from recombine.evaluate.probes import ProbeConfig
from recombine.store import RunFolder, read_config, read_json, read_rows, write_atomic, write_json, write_rows
from recombine.studies.recipe import Recipe
from recombine.studies.tokens import TokenizerRun
from recombine.tokenizers.autoencoder import Autoencoder
from recombine.tokenizers.bottlenecks import VQ
from recombine.train.fit import TrainConfig
from recombine.worlds.shapes2d import Shapes2D

CONFIG = TrainConfig(steps=3)
TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "b.c": torch.ones(1000)}


@pytest.fixture
def folder(tmp_path):
    folder = RunFolder(tmp_path, CONFIG)
    folder.open()
    return folder


def one_line(error) -> str:
    assert "\n" not in str(error.value)
    return str(error.value)


def names(path) -> list[str]:
    return sorted(p.name for p in path.iterdir())


@pytest.location.parametrize("culprit", ["replace", "fsync"])
def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, culprit):
    path = tmp_path / "rows.jsonl"
    write_rows(path, [{"a": 1}])

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, culprit, fail)
    with pytest.raises(UsageError) as error:
        write_rows(path, [{"a": 2}] * 100)
    assert one_line(error) == f"cannot write {path}: No space left on device"
    assert read_rows(path) == [{"a": 1}]
    assert names(tmp_path) == ["rows.jsonl"]


def test_a_run_of_ones_own_class_can_be_opened_again(tmp_path):
    @dataclass(frozen=True)
    class Mine:
        size: int = 3

    for _ in range(2):
        RunFolder(tmp_path, Mine()).open()
    path = RunFolder(tmp_path, Mine()).path
    write_json(path / "config.json", read_json(path / "config.json") | {"size": 4})
    with pytest.raises(UsageError, match="outside the trusted packages"):
        RunFolder(tmp_path, Mine()).open()


def test_a_disk_that_fills_up_in_the_middle_leaves_the_old_state(folder):
    folder.save_state(TENSORS, 1)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, hard))
    try:
        with pytest.raises(UsageError, match=r"cannot write .*state\.safetensors"):
            folder.save_state(TENSORS, 2)
        with pytest.raises(UsageError, match=r"cannot write .*metrics\.jsonl"):
            folder.append([{"step": i} for i in range(1000)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert folder.load_state()[1] == 1
    assert not [n for n in names(folder.path) if n.endswith(".tmp")]
    assert folder.rows() == [{"step": i} for i in range(len(folder.rows()))]


def test_a_path_below_a_regular_file_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError) as error:
        write_atomic(tmp_path / "file" / "deep" / "x.json", "{}")
    assert "cannot write" in one_line(error)


def test_a_row_cut_off_by_a_kill_is_dropped_and_a_broken_file_is_refused(tmp_path):
    path = tmp_path / "rows.jsonl"
    assert read_rows(path) == []
    write_rows(path, [{"a": 1, "é": "ü"}, {"a": 2}])
    whole = path.read_bytes()
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        assert read_rows(path) == [{"a": 1, "é": "ü"}, {"a": 2}][: whole[:cut].count(b"\n")]
    path.write_bytes(b"\xff\xfe{\n" + whole)
    with pytest.raises(UsageError, match="not valid JSON lines"):
        read_rows(path)


def test_json_that_is_missing_or_broken_is_refused_in_one_line(tmp_path):
    with pytest.raises(UsageError, match="cannot read"):
        read_json(tmp_path / "nothing.json")
    (tmp_path / "broken.json").write_text('{"a": ')
    with pytest.raises(UsageError) as error:
        read_json(tmp_path / "broken.json")
    assert one_line(error) == f"{tmp_path / 'broken.json'} is not valid JSON"


def test_a_folder_is_named_by_the_digest_of_its_config(tmp_path, folder):
    assert folder.path == tmp_path / "runs" / digest(CONFIG)
    other = RunFolder(tmp_path, replace(CONFIG, lr=1.0))
    assert other.path != folder.path
    assert read_config(folder.path) == CONFIG


def test_tensors_come_back_bit_for_bit_with_their_step(folder):
    assert folder.load_state() is None
    folder.save_state(TENSORS, 41)
    tensors, step = folder.load_state()
    assert step == 41
    assert tensors.keys() == TENSORS.keys()
    assert all(torch.equal(tensors[k], v) for k, v in TENSORS.items())


def test_a_checkpoint_cut_off_anywhere_is_refused_in_one_line(folder):
    folder.save_model(TENSORS, 3)
    path = folder.path / "model.safetensors"
    whole = path.read_bytes()
    for cut in (0, 1, 7, 8, 9, 50, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(UsageError) as error:
            folder.load_model()
        assert f"{path} is corrupt or cut off" in one_line(error)
    path.write_bytes(b"\x00" * len(whole))
    with pytest.raises(UsageError):
        folder.load_model()
    path.unlink()
    with pytest.raises(UsageError):
        folder.load_model()


def test_the_checkpoint_of_another_run_is_refused(tmp_path, folder):
    other = RunFolder(tmp_path, replace(CONFIG, lr=1.0))
    other.save_model(TENSORS, 3)
    (folder.path / "model.safetensors").write_bytes((other.path / "model.safetensors").read_bytes())
    with pytest.raises(UsageError) as error:
        folder.load_model()
    assert f"belongs to run {other.digest}, not to {folder.digest}" in one_line(error)


def test_an_altered_config_is_refused(folder):
    path = folder.path / "config.json"
    folder.open()
    write_json(path, json.loads(path.read_text()) | {"lr": 5.0})
    with pytest.raises(UsageError) as error:
        folder.open()
    assert f"{path} is not the config of run {folder.digest}" in one_line(error)


def test_a_strangers_folder_that_names_a_foreign_class_is_refused(folder):
    path = folder.path / "config.json"
    write_json(path, json.loads(path.read_text()) | {"class": "subprocess.Popen"})
    for look in (folder.open, lambda: read_config(folder.path)):
        with pytest.raises(UsageError) as error:
            look()
        assert "'subprocess.Popen' lies outside the trusted packages" in one_line(error)


def test_done_is_what_finish_writes_and_erase_takes_back(folder):
    assert not folder.done
    folder.save_model(TENSORS, 3)
    folder.append([{"kind": "train", "step": 1}])
    folder.finish({"step": 3})
    assert folder.done
    folder.erase()
    assert not folder.done
    assert names(folder.path) == []
    folder.erase()


def test_rewinding_keeps_exactly_what_a_resumed_run_will_not_write_again(folder):
    rows = [{"kind": kind, "step": step} for step in range(4) for kind in ("train", "accuracy")]
    folder.append(rows)
    folder.rewind(2)
    assert folder.rows() == [*rows[:4], {"kind": "train", "step": 2}]


def test_whoever_watches_is_told_what_is_trained(tmp_path):
    """By the names of classes, which may change: here they are."""
    world = Shapes2D()
    tokenizer = TokenizerRun(world, Autoencoder(VQ()), world.present)
    for config, word in (
        (ProbeConfig(world), "probe"),
        (tokenizer, "tokenizer"),
        (DetectorConfig(), "detector"),
        (Recipe(), "run"),
    ):
        assert RunFolder(tmp_path, config).title == f"{word} {digest(config)}"
