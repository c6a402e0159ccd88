"""Known vulnerabilities of the locked packages, by pip-audit. Where pip-audit or its data cannot be
reached, that is said and nothing fails; a package with a known fault is status 1."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
UNREACHED = "could not be audited"


def verdict(report: dict) -> tuple[int, str]:
    """Exit status and one line from what pip-audit found."""
    packages = report["dependencies"]
    skipped = [p["name"] for p in packages if UNREACHED in p.get("skip_reason", "")]
    bad = [f"{p['name']} {p['version']}: {v['id']}" for p in packages for v in p.get("vulns", [])]
    if bad:
        return 1, "; ".join(bad)
    if len(skipped) == len(packages):
        return 0, "audit skipped: the data of known vulnerabilities cannot be reached from here"
    left_out = f", {len(skipped)} not known there" if skipped else ""
    return 0, f"no known vulnerability in {len(packages) - len(skipped)} packages{left_out}"


def audit(place: str) -> tuple[int, str]:
    """Install pip-audit aside, so that the project's environment stays as it is locked."""
    python = str(Path(place) / "bin" / "python")
    try:
        subprocess.run([sys.executable, "-m", "venv", place], check=True, timeout=120)
        install = [python, "-m", "pip", "install", "--quiet", "pip-audit"]
        subprocess.run(install, check=True, timeout=300, capture_output=True)
        locks = [w for p in sorted(ROOT.glob("requirements*.lock")) for w in ("-r", str(p))]
        command = [python, "-m", "pip_audit", "--disable-pip", "--no-deps", "-f", "json", *locks]
        made = subprocess.run(command, timeout=300, capture_output=True, text=True)
        return verdict(json.loads(made.stdout))
    except (subprocess.SubprocessError, OSError, ValueError) as error:
        return 0, f"audit skipped: {type(error).__name__} while pip-audit was at work"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        status, line = audit(place)
    print(line)
    sys.exit(status)
