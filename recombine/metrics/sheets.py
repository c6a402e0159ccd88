"""Contact sheets: a row of pictures per composition, as one PNG."""

from io import BytesIO
from pathlib import Path

from einops import rearrange
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from recombine.store import write_atomic


def write_sheet(path: Path, images: Float[Tensor, "n b c h w"]) -> None:
    """n rows of b pictures, edge to edge, so that cells can be cut out by arithmetic."""
    grid = rearrange(images, "n b c h w -> (n h) (b w) c")
    data = (grid.clamp(0, 1) * 255).round().byte().cpu().numpy()
    buffer = BytesIO()
    Image.fromarray(data.squeeze(-1) if data.shape[-1] == 1 else data).save(
        buffer, "png", optimize=True
    )
    write_atomic(path, buffer.getvalue())
