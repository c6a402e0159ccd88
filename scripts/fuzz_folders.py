"""Hostile results folders: `claims`, `claims --json`, `report` and sometimes `claims --again` on a
damaged copy of a shipped study must end in one line or in a page, never in a traceback, and must
leave what lies outside as it was. `python scripts/fuzz_folders.py 500 [SEED]`."""

import json
import random
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from fuzz_commands import outcome

RESULTS = Path(__file__).parents[1] / "results"
STUDIES = ("swing-by", "composition", "objectives", "labels")
VALUES = (
    None, True, 0, -1, 3.5, 10**30, -(10**400), 1e308, "", "x", "\ud800", "\x1b[2J", "..\\..\\x",
    "../../x", "<script>", "a" * 10_000, [], [[]], [None], {}, {"a": {}}, {"type": "net/dit"},
    "figures/../../outside", ["figures/a.svg"], "\u202e", "NaN",
)  # fmt: skip
TEXTS = ("", "[]", "{}", "null", "[" * 100_000, '{"a": ' * 50_000, "\x00", "3", '"x"', "NaN")


def change(value: Any, rng: random.Random) -> Any:
    """The same with one entry, somewhere inside, replaced, removed or doubled."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        if rng.random() < 0.15:
            return {k: v for k, v in value.items() if k != key}
        return value | {key: change(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        i = rng.randrange(len(value))
        return [*value[:i], change(value[i], rng), *value[i + 1 :]]
    return rng.choice(VALUES)


def damage(folder: Path, outside: Path, rng: random.Random) -> str:
    """Do one thing to a study's folder; what it was."""
    paths = sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink())
    main = [p for p in paths if p.name in ("study.json", "claims.json", "rows.parquet")]
    path = rng.choice(main * 3 + paths)
    kind = rng.choice(
        ("change",) * 5 + ("text", "flip", "cut", "delete", "link", "folder", "links")
    )
    if kind == "change" and path.suffix == ".json":
        with suppress(ValueError, RecursionError):  # damaged already
            data = change(json.loads(path.read_text()), rng)
            path.write_text(json.dumps(data), errors="surrogatepass")
    elif kind == "text":
        path.write_text(rng.choice(TEXTS))
    elif kind == "cut":
        path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size + 1)])
    elif kind in ("delete", "link", "folder"):
        path.unlink()
        if kind == "link":
            path.symlink_to(rng.choice((outside / "config.json", "/dev/zero", path.name)))
        if kind == "folder":
            path.mkdir()
    elif kind == "links":
        name = rng.choice(("figures", "samples"))
        if (folder / name).is_symlink():
            (folder / name).unlink()
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).symlink_to(outside)
    else:
        data, i = bytearray(path.read_bytes()), rng.randrange(max(1, path.stat().st_size))
        data[i : i + 1] = bytes([rng.randrange(256)])
        path.write_bytes(data)
    return f"{kind} {path.relative_to(folder)}"


def main(count: int, seed: int = 0) -> int:
    rng, wrong = random.Random(seed), 0
    for i in range(count):
        if i and i % 100 == 0:
            print(f"{i} folders, {wrong} with a fault", flush=True)
        with tempfile.TemporaryDirectory() as place:
            root, outside = Path(place) / "results", Path(place) / "outside"
            outside.mkdir()
            for name in ("config.json", "a.svg", "d1.svg"):
                (outside / name).write_text('{"secret": 1}')
            study = rng.choice(STUDIES)
            shutil.copytree(RESULTS / study, root / study)
            done = [damage(root / study, outside, rng) for _ in range(rng.randint(1, 3))]
            commands = [
                ["claims", str(root)],
                ["claims", str(root), "--json"],
                ["report", str(root)],
            ]
            commands += [["claims", str(root), "--again"]] * (i % 25 == 0)
            found = [f"{c[0]} {c[2:]}: {x}" for c in commands if (x := outcome(c))]
            kept = {p.name: p.read_text() for p in outside.iterdir()}
            if len(kept) != 3 or set(kept.values()) != {'{"secret": 1}'}:
                found.append(f"what lies outside was touched: {sorted(kept)}")
            if any(b"secret" in p.read_bytes() for p in root.rglob("index.html") if p.is_file()):
                found.append("what lies outside is on a page")
            if found:
                wrong += 1
                print(f"{i}: {study}: {done}\n" + "\n".join(x[-1200:] for x in found), flush=True)
    print(f"{count} hostile folders, seed {seed}: {wrong} with a traceback or another fault")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:] or ["500"])))
