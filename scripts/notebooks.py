"""docs/notebooks/<name>.py -> <name>.ipynb, executed: `make notebooks` (minutes, on two cores). The
test runs the same at smoke scale and holds the cells of both files against each other."""

import os
import sys
import tempfile
from base64 import b64decode, b64encode
from io import BytesIO
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient
from PIL import Image

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "notebooks"


def source(path: Path) -> Any:
    """The cells of a notebook, named by their order so that it is the same every time."""
    made = jupytext.read(path)
    made.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for number, cell in enumerate(made.cells):
        cell.id, cell.metadata = f"cell-{number}", {}
    return made


def executed(path: Path, scale: str) -> Any:
    """In an empty folder; an error in a cell is an error here."""
    notebook = source(path)
    os.environ |= {"LAB_SCALE": scale, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=1800, resources={"metadata": {"path": folder}}).execute()
    for cell in notebook.cells:
        cell.metadata = {}
        if "outputs" in cell:
            cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
    return with_png(notebook)


def with_png(notebook: Any) -> Any:
    """WebP pictures among the outputs as PNG, which every viewer of notebooks shows."""
    for output in (o for cell in notebook.cells for o in cell.get("outputs", [])):
        if "image/webp" in output.get("data", {}):
            buffer = BytesIO()
            with Image.open(BytesIO(b64decode(output.data.pop("image/webp")))) as picture:
                picture.convert("RGB").save(buffer, "png", optimize=True)
            output.data["image/png"] = b64encode(buffer.getvalue()).decode()
            output.metadata = {}
    return notebook


if __name__ == "__main__":
    for path in sorted(FOLDER.glob("*.py")):
        if not sys.argv[1:] or path.stem in sys.argv[1:]:
            nbformat.write(executed(path, "laptop"), path.with_suffix(".ipynb"))
