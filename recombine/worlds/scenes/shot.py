"""All that a picture is made from, as tensors on one device: solids, camera, rays and lamps. What
needs small tables is prepared here, so that the tracer proper is pure arithmetic."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from recombine.worlds.scenes.camera import Camera, Frame, grid
from recombine.worlds.scenes.fuse import is_fusing
from recombine.worlds.scenes.lights import spots
from recombine.worlds.scenes.scene import Scene
from recombine.worlds.scenes.trace import Solids
from recombine.worlds.scenes.vec import Vec, split

CPU_CHUNK, GPU_CHUNK = 2**18, 2**25
"""Rays times solids that are traced at once: on a CPU, so that they fit in its cache, and on a GPU,
in its memory."""
FUSED = 2**21
"""Rays that are traced at once where the stages are fused: no more than a few numbers per ray are
written."""


class Shot(NamedTuple):
    """`x` and `y` are where each sample of each pixel meets the plane one unit ahead of the camera;
    `lamps` are the points of the three lamps that a sample looks at (b, 1, s)."""

    eye: Vec
    right: Vec
    up: Vec
    forward: Vec
    x: Float[Tensor, "p s"]
    y: Float[Tensor, "p s"]
    lamps: tuple[Vec, ...]

    @staticmethod
    def of(scene: Scene, frame: Frame) -> "Shot":
        axes = (split(axis[:, None, None]) for axis in Camera.aimed(scene.camera))
        lamps = spots(scene.lamps, frame.samples)
        return Shot(
            *axes,
            *grid(frame, scene.xy.device),
            tuple(split(lamp[:, None]) for lamp in lamps.unbind(1)),
        )

    def rays(self) -> Vec:
        """One unit ahead of the camera, so that lengths along a ray are depths."""
        return self.forward.plus(self.right.times(self.x)).plus(self.up.times(self.y))


def shots(scene: Scene, frame: Frame) -> list[tuple[Solids, Shot]]:
    """The batch in parts that are traced at once."""
    rays = frame.height * frame.width * frame.samples
    chunk = GPU_CHUNK if scene.xy.is_cuda else CPU_CHUNK
    room = FUSED // rays if is_fusing() else chunk // (rays * scene.xy.shape[1])
    return [(Solids.of(part), Shot.of(part, frame)) for part in scene.split(max(1, room))]
