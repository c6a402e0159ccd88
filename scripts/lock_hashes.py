"""The checksums of every locked package, so that pip installs those files and no others.
`python scripts/lock_hashes.py` writes them into requirements*.lock behind each `name==version`:
wheels for Python 3.11 to 3.13 and source archives, as the package index lists them. PyTorch, in
requirements-torch.lock, has none: which build suits, for a CPU or a kind of GPU, and what it brings
along depends on the machine."""

import re
import sys
from pathlib import Path
from urllib.request import urlopen

from pip._internal.models.index import PyPI

ROOT = Path(__file__).parents[1]
FILE = re.compile(r'<a href="[^"]*#sha256=([0-9a-f]{64})"[^>]*>([^<]+)</a>')
PYTHONS = re.compile(r"-(py3|py2\.py3|cp311|cp312|cp313|cp3\d+-abi3)-")
WITHOUT = "requirements-torch.lock"


def suits(file: str, name: str, version: str) -> bool:
    """Whether a file is this release's, for a Python that is supported."""
    stem = re.sub(r"[-_.]+", "-", name)
    plain = re.sub(r"[-_.]+", "-", file.partition(version)[0]).rstrip("-")
    rest = file.partition(version)[2]
    if plain.lower() != stem.lower() or not rest:
        return False
    if rest in (".tar.gz", ".zip"):
        return True
    return rest.startswith("-") and file.endswith(".whl") and bool(PYTHONS.search(file))


def hashes(name: str, version: str) -> list[str]:
    page = urlopen(f"{PyPI.simple_url}/{re.sub(r'[-_.]+', '-', name).lower()}/", timeout=60)
    listed = FILE.findall(page.read().decode())
    found = {digest for digest, file in listed if suits(file, name, version)}
    if not found:
        raise SystemExit(f"the index lists no file of {name}=={version}")
    return sorted(found)


def locked(text: str) -> list[tuple[str, str]]:
    """(name, version) of every line of a lock file, with or without checksums."""
    return re.findall(r"^([A-Za-z0-9._-]+)==([^\s\\]+)", text, re.MULTILINE)


def main() -> int:
    for path in sorted(ROOT.glob("requirements*.lock")):
        if path.name == WITHOUT:
            continue
        lines = []
        for name, version in locked(path.read_text()):
            all_of = (f"    --hash=sha256:{digest}" for digest in hashes(name, version))
            lines.append(" \\\n".join([f"{name}=={version}", *all_of]))
        path.write_text("\n".join(lines) + "\n")
        print(f"{path.name}: {len(lines)} packages", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
