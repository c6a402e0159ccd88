"""The table of docs/pictures.md that has every curve of the paper's Figs 2 to 4 beside the model
here that comes nearest to it."""

from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from recombine.analysis.levels import late_mean, per_seed
from recombine.analysis.paper_curves import paper_curves, paper_points
from recombine.analysis.paper_probe import PAPER, with_paper_probe
from recombine.analysis.table import NotMeasured, Table, read_table
from recombine.plots.style import display

HEADS = ["figure", "model of the paper", "paper: seen, level 1, level 2"]
HEADS += ["model here", "ours: seen, level 1, level 2", "n", "setting"]
PROBABLE, EARLIER = "probable", "earlier: true values, little jitter"


class Line(NamedTuple):
    figure: str
    curve: str
    study: str
    variant: str


LINES = (
    Line("2a", "diffusion_vae", "label-dropout", "dit on vae, weak signal"),
    Line("2b, 3d", "diffusion_token", "label-dropout", "dit"),
    Line("2b, 3d", "diffusion_token", "label-dropout", "dit, ddpm"),
    Line("2b, 3d", "diffusion_token", "label-dropout", "dit, weak signal"),
    Line("3a", "maskgit", "label-dropout", "maskgit"),
    Line("3a", "maskgit", "label-dropout", "maskgit, dropout"),
    Line("3b", "givt", "label-dropout", "givt"),
    Line("3c", "mar_token_final", "label-dropout", "mar"),
    Line("4a", "DiT_cont_label_sec_run", "labels", "values"),
    Line("4a", "DiT_cont_label_sec_run", "labels", "values, raw"),
    Line("4b", "diff_cont_dropout", "labels", "values, dropout"),
    Line("4b", "diff_cont_dropout", "labels", "values, raw, dropout"),
    Line("4c", "discrete_DiT_XAI3", "label-dropout", "dit"),
    Line("4d", "diffusion_real_dropout_avg_3seeds", "label-dropout", "dit, dropout"),
)


def curves_table(results: Path) -> list[list[str]]:
    """Late means by level: the last quarter of the checkpoints, by the paper's probe, or by one
    linear probe where that was not trained."""
    tables = {line.study: rows_of(results, line.study) for line in LINES}
    return [HEADS, *(cells(line, *tables[line.study]) for line in LINES)]


def rows_of(results: Path, study: str) -> tuple[Table, str]:
    rows = read_table(results / study / "rows.parquet")
    try:
        return with_paper_probe(rows), PAPER
    except NotMeasured:
        return rows, "linear"


def cells(line: Line, rows: Table, probe: str) -> list[str]:
    paper = [late_mean(paper_points(line.curve, level)) for level in range(3)]
    ours = [list(per_seed(rows, line.variant, level, probe=probe).values()) for level in range(3)]
    setting = PROBABLE if probe == PAPER else EARLIER
    label = paper_curves()[line.curve]["label"]
    n, means = len(ours[0]), map(fmean, ours)
    return [line.figure, label, three(paper), display(line.variant), three(means), str(n), setting]


def three(values) -> str:
    return ", ".join(f"{value:.2f}" for value in values)
