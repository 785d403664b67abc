"""Spatial vectors and inertias as named tuples of scalars (docs/mathematics.md §1 and §4).

With tuples, the same source runs compiled (they stay in registers), on Python floats, and on the traced scalars of a
tape. Angular parts come first. 3x3 matrices are row-major 9-tuples, symmetric ones 6-tuples (xx, xy, xz, yy, yz, zz).
"""

import math
import operator
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

Scalar = Any  # a float, a compiled float64 or a traced scalar
Vector = tuple[Scalar, Scalar, Scalar]
Matrix = tuple[Scalar, Scalar, Scalar, Scalar, Scalar, Scalar, Scalar, Scalar, Scalar]
Symmetric = tuple[Scalar, Scalar, Scalar, Scalar, Scalar, Scalar]
K = TypeVar("K", bound=tuple[Any, ...])


class Pose(NamedTuple):
    """Pose of a frame in another one: orientation R and origin p."""

    R: Matrix
    p: Vector


class Twist(NamedTuple):
    """Angular velocity w, and velocity v of the point at the frame's origin; also its derivatives, and screws."""

    w: Vector
    v: Vector


class Wrench(NamedTuple):
    """Moment n about the frame's origin, and force f; also momenta."""

    n: Vector
    f: Vector


class JointScrew(NamedTuple):
    """The screw (0, 0, turn; 0, 0, slide) in its row's frame: 1, 0 revolute, 0, 1 prismatic, 1, h helical."""

    turn: Scalar
    slide: Scalar


class RigidInertia(NamedTuple):
    """Mass m, first moment h = m c and inertia I about the frame's origin: [[I, ĥ], [−ĥ, m 1]]."""

    m: Scalar
    h: Vector
    I: Symmetric


class MassMoment(NamedTuple):
    """Mass m and first moment h = m c about the frame's origin."""

    m: Scalar
    h: Vector


class CoriolisTensor(NamedTuple):
    """B = [[K, 0], [−P̂, 0]], from which C is computed (docs/mathematics.md §4)."""

    K: Matrix
    P: Vector


class ArticulatedInertia(NamedTuple):
    """Articulated-body inertia [[A, H], [Hᵀ, L]], 6x6."""

    A: Symmetric
    H: Matrix
    L: Symmetric


class Acceleration(NamedTuple):
    """Angular velocity w, angular acceleration dw, acceleration a of the origin, and U = ω̇^ + ω^ω^.

    U r is the acceleration of the point at r relative to the origin.
    """

    w: Vector
    dw: Vector
    a: Vector
    U: Matrix


ZERO = (0.0, 0.0, 0.0)
AT_REST = Twist((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
NO_WRENCH = Wrench((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
NO_TENSOR = CoriolisTensor((0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0))


def sincos(x: Scalar) -> tuple[Scalar, Scalar]:
    """sin x and cos x, also of arrays; a traced scalar has methods for both."""
    if hasattr(x, "sin"):
        return x.sin(), x.cos()
    return (np.sin(x), np.cos(x)) if isinstance(x, np.ndarray) else (math.sin(x), math.cos(x))


def square_root(x: Scalar) -> Scalar:
    """√x for a sum of squares x, also of arrays; a traced scalar has a method for it."""
    if hasattr(x, "sqrt"):
        return x.sqrt()
    return np.sqrt(x) if isinstance(x, np.ndarray) else math.sqrt(x)


def exceeds(x: Scalar, least: Scalar) -> bool:
    """Whether x > least ≥ 0. Traced scalars return True and record the assumption; the number 0 returns False."""
    if not hasattr(x, "tape") and x <= 0:
        return False
    recorded = [scalar for scalar in (x, least) if hasattr(scalar, "tape")]
    for scalar in recorded[:1]:
        scalar.tape.assumed.append((x, least))
    return bool(recorded or x > least)


def add(a: K, b: K) -> K:
    """a + b: of two vectors, matrices, twists or wrenches."""
    return cast(K, type(a)(*map(add, a, b)) if hasattr(a, "_fields") else tuple(map(operator.add, a, b)))


def subtract(a: K, b: K) -> K:
    """a − b."""
    return cast(K, type(a)(*map(subtract, a, b)) if hasattr(a, "_fields") else tuple(map(operator.sub, a, b)))


def scale(s: Scalar, a: K) -> K:
    """s a."""
    return cast(K, type(a)(*[scale(s, x) for x in a]) if hasattr(a, "_fields") else tuple([s * x for x in a]))


def dot(a: Vector, b: Vector) -> Scalar:
    """a . b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Vector, b: Vector) -> Vector:
    """a x b."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def rotate(R: Matrix, v: Vector) -> Vector:
    """R v."""
    a0, a1, a2, b0, b1, b2, c0, c1, c2 = R
    x, y, z = v
    return (a0 * x + a1 * y + a2 * z, b0 * x + b1 * y + b2 * z, c0 * x + c1 * y + c2 * z)


def rotate_back(R: Matrix, v: Vector) -> Vector:
    """Rᵀ v."""
    return (
        R[0] * v[0] + R[3] * v[1] + R[6] * v[2],
        R[1] * v[0] + R[4] * v[1] + R[7] * v[2],
        R[2] * v[0] + R[5] * v[1] + R[8] * v[2],
    )


def transpose(A: Matrix) -> Matrix:
    """Aᵀ."""
    return (A[0], A[3], A[6], A[1], A[4], A[7], A[2], A[5], A[8])


def multiply(A: Matrix, B: Matrix) -> Matrix:
    """A B."""
    a0, a1, a2, b0, b1, b2, c0, c1, c2 = A
    x0, x1, x2, y0, y1, y2, z0, z1, z2 = B
    return (
        a0 * x0 + a1 * y0 + a2 * z0,
        a0 * x1 + a1 * y1 + a2 * z1,
        a0 * x2 + a1 * y2 + a2 * z2,
        b0 * x0 + b1 * y0 + b2 * z0,
        b0 * x1 + b1 * y1 + b2 * z1,
        b0 * x2 + b1 * y2 + b2 * z2,
        c0 * x0 + c1 * y0 + c2 * z0,
        c0 * x1 + c1 * y1 + c2 * z1,
        c0 * x2 + c1 * y2 + c2 * z2,
    )


def hat_times(a: Vector, B: Matrix) -> Matrix:
    """â B: each column of B crossed by a."""
    x = cross(a, (B[0], B[3], B[6]))
    y = cross(a, (B[1], B[4], B[7]))
    z = cross(a, (B[2], B[5], B[8]))
    return (x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2])


def hat(a: Vector) -> Matrix:
    """â, with â b = a x b."""
    return (0.0, -a[2], a[1], a[2], 0.0, -a[0], -a[1], a[0], 0.0)


def full(I: Symmetric) -> Matrix:
    """All nine entries of a symmetric matrix."""
    return (I[0], I[1], I[2], I[1], I[3], I[4], I[2], I[4], I[5])


def symmetric_times(I: Symmetric, v: Vector) -> Vector:
    """I v for a symmetric I."""
    return (
        I[0] * v[0] + I[1] * v[1] + I[2] * v[2],
        I[1] * v[0] + I[3] * v[1] + I[4] * v[2],
        I[2] * v[0] + I[4] * v[1] + I[5] * v[2],
    )


def congruence(R: Matrix, I: Symmetric) -> Symmetric:
    """R I Rᵀ for a symmetric I."""
    a0, a1, a2, b0, b1, b2, c0, c1, c2 = R
    x0, x1, x2, y0, y1, y2, z0, z1, z2 = multiply(R, full(I))
    return (
        x0 * a0 + x1 * a1 + x2 * a2,
        x0 * b0 + x1 * b1 + x2 * b2,
        x0 * c0 + x1 * c1 + x2 * c2,
        y0 * b0 + y1 * b1 + y2 * b2,
        y0 * c0 + y1 * c1 + y2 * c2,
        z0 * c0 + z1 * c1 + z2 * c2,
    )
