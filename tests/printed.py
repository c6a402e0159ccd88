"""What the pages print for a shell, carried out small and in this process."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import recombine.api
from recombine.cli import app
from recombine.overrides import leaves, override
from recombine.pipeline.engines import find_engine
from recombine.pipeline.plan import Command
from recombine.scoring import evaluate as scoring
from recombine.studies import find

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)


def blocks(path: Path, *languages: str) -> list[str]:
    return [text for language, text in BLOCK.findall(path.read_text()) if language in languages]


def lines(text: str) -> list[list[str]]:
    """The words of each line of a block, without prompts and comments."""
    calls = [shlex.split(line, comments=True) for line in text.replace("\\\n", " ").splitlines()]
    return [call[1:] if call[0] == "$" else call for call in calls if call]


LITTLE = {
    "train.steps": 2,
    "train.warmup": 1,
    "tokenizer.steps": 1,
    "detector.steps": 1,
    "evaluation.samples": 2,
    "evaluation.real": 4,
    "evaluation.probe_steps": 1,
    "evaluation.paper_probes": 1,
    "evaluation.crowded": False,
    "decoding.steps": 1,
    "solver.steps": 1,
    "locality.times": [0.5],
    "mlp_steps": 20,
    "flow_seeds": 2,
    "fit_steps": 10,
    "sigmas": [0.3, 1.0, 10.0],
    "lamp_samples": 5,
}
"""What is cut below smoke scale, where a study has it."""


FEW = ("families", "variants", "amounts", "ablations", "experiments", "bases")
"""Lists of models, of which the first two are trained."""


def little(study: str) -> list[str]:
    """Flags that make a study smaller still: ends of paths that it has once."""
    known = {f".{path}": value for path, value in leaves(find(study).settings("smoke"))}
    changes = []
    for end in (*LITTLE, *FEW):
        fits = [path for path in known if path.endswith(f".{end}")]
        if len(fits) == 1:
            value = LITTLE[end] if end in LITTLE else json.loads(known[fits[0]])[:2]
            changes.append(f"{end}={json.dumps(value)}")
    return [word for change in changes for word in ("--set", change)]


class Small:
    """The lines of a block, one by one. Studies, which take from seconds to hours, are planned as
    printed: options, settings and engines are known, and the jobs of one seed are made;
    test_printed_runs.py carries them out, smaller. All other commands are carried out; probes of
    one's own pictures are trained for one update."""

    def __init__(self, monkeypatch: Any) -> None:
        monkeypatch.setattr(recombine.api, "run_command", self.run)
        trained = scoring.trained_probes
        monkeypatch.setattr(scoring, "trained_probes", lambda world, _, *a: trained(world, 1, *a))
        monkeypatch.setattr("recombine.scoring.score.TRUST", 0.0)  # of one update nothing is read

    def run(self, command: Command, engine: str, *_: bool) -> list[Path]:
        find_engine(engine)
        for study in command.studies:
            known = command.find(study)
            assert known.jobs(override(known.settings(command.scale), *command.changes), 1)
        return []

    def __call__(self, call: list[str]) -> None:
        """A call of recombine."""
        call = [*call, "--n", "1"] if call[0] == "evaluate" else call
        allowed = (None, 0, 1) if "--fail-under" in call else (None, 0)
        assert app(call, standalone_mode=False) in allowed, call
