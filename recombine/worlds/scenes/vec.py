"""Vectors in space as three tensors of one shape. Component by component, every step of the tracer
is an element-wise operation on tensors of the same shape, which a compiler can fuse."""

from typing import NamedTuple

from torch import Tensor


class Vec(NamedTuple):
    x: Tensor
    y: Tensor
    z: Tensor

    def plus(self, other: "Vec") -> "Vec":
        return Vec(self.x + other.x, self.y + other.y, self.z + other.z)

    def minus(self, other: "Vec") -> "Vec":
        return Vec(self.x - other.x, self.y - other.y, self.z - other.z)

    def times(self, factor: Tensor | float) -> "Vec":
        return Vec(self.x * factor, self.y * factor, self.z * factor)

    def dot(self, other: "Vec") -> Tensor:
        return self.x * other.x + self.y * other.y + self.z * other.z

    def unit(self) -> "Vec":
        return self.times(self.dot(self).rsqrt())

    def turn(self, cos: Tensor, sin: Tensor) -> "Vec":
        """As seen in the frame that is turned about the upright axis by the angle with this cosine
        and sine."""
        return Vec(cos * self.x + sin * self.y, cos * self.y - sin * self.x, self.z)


def split(points: Tensor) -> Vec:
    """The last axis of `points` as a vector."""
    return Vec(*points.unbind(-1))
