"""What is installed: every locked package has checksums and a licence on the page, and an audit
says what it could not do."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from audit import verdict  # noqa: E402
from licences import FOR, licence, locked  # noqa: E402
from lock_hashes import WITHOUT, suits  # noqa: E402

LOCKS = sorted(p.name for p in ROOT.glob("requirements*.lock"))
HASHED = [name for name in LOCKS if name != WITHOUT]


@pytest.mark.parametrize("name", HASHED)
def test_every_locked_package_has_checksums(name):
    blocks = re.split(r"\n(?=\S)", (ROOT / name).read_text().strip())
    assert len(blocks) == len(locked(name)) > 5
    for block in blocks:
        first, *hashes = [line.strip().removesuffix(" \\") for line in block.splitlines()]
        assert re.fullmatch(r"[A-Za-z0-9._-]+==\S+", first)
        assert hashes
        assert len(set(hashes)) == len(hashes)
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", h) for h in hashes)


def test_the_page_of_licences_names_what_is_locked_and_nothing_else():
    assert sorted(FOR) == LOCKS
    assert locked(WITHOUT) == [("torch", locked(WITHOUT)[0][1])]
    page = (ROOT / "docs" / "licences.md").read_text()
    listed = set(re.findall(r"^\| (\S+) \| (\S+) \| (?!licence)\S", page, re.MULTILINE))
    assert listed == {one for name in LOCKS for one in locked(name)}
    assert licence("pytest") == "MIT"


def test_which_files_belong_to_a_release():
    mine = ("ruamel_yaml-1.2-cp311-cp311-linux_x86_64.whl", "ruamel.yaml-1.2.tar.gz",
            "ruamel.yaml-1.2-py3-none-any.whl", "ruamel_yaml-1.2-cp38-abi3-win_amd64.whl")  # fmt: skip
    others = ("ruamel_yaml-1.2-cp39-cp39-linux_x86_64.whl", "ruamel.yaml-1.2.1.tar.gz",
              "ruamel.yaml.clib-1.2.tar.gz", "ruamel_yaml-1.2rc1-py3-none-any.whl",
              "ruamel_yaml-1.2-pp311-pypy311_pp73-win_amd64.whl")  # fmt: skip
    assert all(suits(file, "ruamel.yaml", "1.2") for file in mine)
    assert not any(suits(file, "ruamel.yaml", "1.2") for file in others)


def test_an_audit_says_what_it_found_and_what_it_could_not_do():
    unknown = {"name": "a", "skip_reason": "not found and could not be audited: a (1)"}
    clean = {"name": "b", "version": "1", "vulns": []}
    bad = {"name": "c", "version": "2", "vulns": [{"id": "X-1"}]}
    assert verdict({"dependencies": [unknown]})[0] == 0
    assert "skipped" in verdict({"dependencies": [unknown]})[1]
    assert verdict({"dependencies": [clean, unknown]}) == (
        0, "no known vulnerability in 1 packages, 1 not known there",
    )  # fmt: skip
    assert verdict({"dependencies": [clean, bad, unknown]}) == (1, "c 2: X-1")
