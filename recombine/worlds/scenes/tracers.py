"""Which tracer renders scenes: one kernel on a GPU, stages elsewhere."""

from collections.abc import Callable
from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor

from recombine.worlds.scenes.camera import Frame
from recombine.worlds.scenes.scene import Scene
from recombine.worlds.scenes.shot import Shot, shots
from recombine.worlds.scenes.stages import trace
from recombine.worlds.scenes.trace import Solids


def pictures(
    scene: Scene, frame: Frame, shadows: bool, reflections: bool
) -> Float[Tensor, "b 3 p"]:
    """The colours of all pixels: on a GPU by one kernel, elsewhere in stages, some pictures at a
    time."""
    if scene.xy.is_cuda and (on_gpu := kernel()):
        return on_gpu(Solids.of(scene), Shot.of(scene, frame), frame.width, shadows, reflections)
    return torch.cat([trace(*part, shadows, reflections) for part in shots(scene, frame)])


@cache
def kernel() -> Callable[..., Tensor] | None:
    """The tracer for GPUs, where Triton is installed; a torch that knows GPUs brings it along."""
    try:
        from recombine.worlds.scenes.kernel import trace as on_gpu
    except ImportError:
        return None
    return on_gpu
