"""The steps of the recursions for one link, with the vectors and inertias on which they compute.

Spatial vectors and inertias are named tuples of scalars (docs/mathematics.md §1 and §4). With tuples, the same source
runs compiled (they stay in registers), on Python floats, and on the traced scalars of a tape. Angular parts come first.
3x3 matrices are row-major 9-tuples, symmetric ones 6-tuples (xx, xy, xz, yy, yz, zz).

Every step takes and returns such tuples and concerns one link only. Frames: the z axis of each row's frame is the axis
of its joint's screw, so that S = (0, 0, turn; 0, 0, slide), with turn 1 and slide 0 for a revolute joint, 0 and 1 for a
prismatic one, 1 and the pitch for a helical one. ``T`` is the pose of the child's frame in its parent's.
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
# Relative rounding of the inertia along a joint, and the square of the radius of gyration that counts as zero.
ROUNDING, PICOMETRE_SQUARED = 4 * 2.0**-52, 1e-24
# Component of a normal, at which tangents jump.
ASIDE = 1.1e-12
# Squared sine, below which segments meet in the middle of their overlap, and do not cross.
PARALLEL, CROSSING = 1e-13, 1e-11


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


class Reference(NamedTuple):
    """Angular velocity w; that of a reference motion, w_r, and what an :class:`Acceleration` has for its rates.

    dw and a are those of J q̈_r + J̇ q̇_r, and U = ω̇^ + ω_r^ω^, with J̇ of the actual motion. Where both motions are equal
    they are the acceleration.
    """

    w: Vector
    w_r: Vector
    dw: Vector
    a: Vector
    U: Matrix


class Acceleration(NamedTuple):
    """Angular velocity w, angular acceleration dw, acceleration a of the origin, and U = ω̇^ + ω^ω^.

    U r is the acceleration of the point at r relative to the origin.
    """

    w: Vector
    dw: Vector
    a: Vector
    U: Matrix


class Core(NamedTuple):
    """A body that points may touch: all points within a radius of a box, or of the half-space z <= 0 if half < 0."""

    pose: Pose  # of the middle and the axes of the box
    half: Vector  # of its edges
    radius: Scalar


class Nearest(NamedTuple):
    """Of a point beside a core, in the core's frame: the normal n, the distance, and what ∂n/∂c is made of."""

    n: Vector
    distance: Scalar
    slopes: Vector  # the diagonal of 1 − ∂b/∂c; zero where the normal does not turn
    divisor: Scalar  # zero where there is no normal


ZERO, ZERO_MATRIX = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
AT_REST, NO_WRENCH, NO_TENSOR = Twist(ZERO, ZERO), Wrench(ZERO, ZERO), CoriolisTensor(ZERO_MATRIX, ZERO)


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


def beyond(x: Scalar, half: Scalar) -> tuple[Scalar, Scalar]:
    """How far x is outside of ±half, with its sign, and the derivative of that; also of traced scalars."""
    if hasattr(x, "tape") and half > 0:  # which have no branches
        upper, lower = x + half, x - half
        above, below = square_root(upper * upper), square_root(lower * lower)
        return x - 0.5 * (above - below), 1.0 - 0.5 * (upper / above - lower / below)
    if half == 0:
        return x, 1.0
    return (x - half * sign(x), 1.0) if abs(x) > half else (0.0, 0.0)


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
    """A B: A times each column of B."""
    x = rotate(A, (B[0], B[3], B[6]))
    y = rotate(A, (B[1], B[4], B[7]))
    z = rotate(A, (B[2], B[5], B[8]))
    return (x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2])


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


def upper(A: Matrix) -> Symmetric:
    """The upper half of a symmetric matrix."""
    return (A[0], A[1], A[2], A[4], A[5], A[8])


def symmetric_times(I: Symmetric, v: Vector) -> Vector:
    """I v for a symmetric I."""
    return rotate(full(I), v)


def congruence(R: Matrix, I: Symmetric) -> Symmetric:
    """R I Rᵀ for a symmetric I."""
    return upper(multiply(multiply(R, full(I)), transpose(R)))


# Poses and twists


def joint_pose(home: Pose, S: JointScrew, q: Scalar) -> Pose:
    """Pose home · exp(Ŝ q) of a row's frame in its parent's."""
    (s, c), (R, p) = sincos(S.turn * q), home
    x0, y0, z = (R[0], R[3], R[6]), (R[1], R[4], R[7]), (R[2], R[5], R[8])
    x, y = add(scale(c, x0), scale(s, y0)), subtract(scale(c, y0), scale(s, x0))
    return Pose((x[0], y[0], z[0], x[1], y[1], z[1], x[2], y[2], z[2]), add(p, scale(S.slide * q, z)))


def compose(T: Pose, X: Pose) -> Pose:
    """The pose T X."""
    return Pose(multiply(T.R, X.R), add(T.p, rotate(T.R, X.p)))


def is_identity(T: Pose) -> bool:
    """Whether a pose is the identity; the entries of R that are not looked at follow from the others."""
    R, p = T
    unturned = R[0] == 1.0 and R[4] == 1.0 and R[1] == 0.0 and R[2] == 0.0 and R[5] == 0.0
    return bool(unturned and p[0] == 0.0 and p[1] == 0.0 and p[2] == 0.0)  # not, if these are symbols


def twist_to_child(T: Pose, V: Twist) -> Twist:
    """Change the frame of a twist from the parent's to the child's: Ad(T)⁻¹ V."""
    return Twist(rotate_back(T.R, V.w), rotate_back(T.R, add(V.v, cross(V.w, T.p))))


def twist_to_parent(T: Pose, V: Twist) -> Twist:
    """Change the frame of a twist from the child's to the parent's: Ad(T) V."""
    w = rotate(T.R, V.w)
    return Twist(w, add(rotate(T.R, V.v), cross(T.p, w)))


def unit_twist(S: JointScrew) -> Twist:
    """A joint's screw in the frame of its row."""
    return Twist((0.0, 0.0, S.turn), (0.0, 0.0, S.slide))


def screw_in_base(T: Pose, S: JointScrew) -> Twist:
    """A joint's screw in the base frame, with T the pose of the row's frame in the base: Ad(T) S."""
    axis = (T.R[2], T.R[5], T.R[8])
    w = scale(S.turn, axis)
    return Twist(w, add(scale(S.slide, axis), cross(T.p, w)))


def link_twist(T: Pose, V: Twist, S: JointScrew, qd: Scalar) -> Twist:
    """Twist of a link from its parent's: Ad(T)⁻¹ V_p + S q̇."""
    return add_rate(twist_to_child(T, V), S, qd)


def add_rate(V: Twist, S: JointScrew, qd: Scalar) -> Twist:
    """V + S q̇."""
    w, v = V
    return Twist((w[0], w[1], w[2] + S.turn * qd), (v[0], v[1], v[2] + S.slide * qd))


def bracket(V: Twist, W: Twist) -> Twist:
    """ad_V W: the rate of a screw W that is fixed in a body with twist V."""
    return Twist(cross(V.w, W.w), add(cross(V.v, W.w), cross(V.w, W.v)))


def screw_rate(V: Twist, S: JointScrew) -> Twist:
    """S̊ = ad_V S, the absolute rate of the joint's screw."""
    w, v = V
    return Twist(
        (w[1] * S.turn, -w[0] * S.turn, 0.0),
        (v[1] * S.turn + w[1] * S.slide, -v[0] * S.turn - w[0] * S.slide, 0.0),
    )


# Newton-Euler


def link_acceleration(T: Pose, parent: Acceleration, S: JointScrew, qd: Scalar, qdd: Scalar) -> Acceleration:
    """Acceleration of a link from its parent's; a is the acceleration of the origin of the row's frame."""
    a = rotate_back(T.R, add(parent.a, rotate(parent.U, T.p)))
    w = rotate_back(T.R, parent.w)
    dw = rotate_back(T.R, parent.dw)
    t, s = S.turn * qd, S.slide * qd
    a = (a[0] + 2 * w[1] * s, a[1] - 2 * w[0] * s, a[2] + S.slide * qdd)
    dw = (dw[0] + w[1] * t, dw[1] - w[0] * t, dw[2] + S.turn * qdd)
    w = (w[0], w[1], w[2] + t)
    xx, yy, zz = w[0] * w[0], w[1] * w[1], w[2] * w[2]
    xy, xz, yz = w[0] * w[1], w[0] * w[2], w[1] * w[2]
    U = (-(yy + zz), xy - dw[2], xz + dw[1], xy + dw[2], -(xx + zz), yz - dw[0], xz - dw[1], yz + dw[0], -(xx + yy))
    return Acceleration(w, dw, a, U)


def newton_euler(inertia: RigidInertia, acceleration: Acceleration) -> Wrench:
    """Wrench about the frame's origin that causes the acceleration of a body; the acceleration includes −gravity.

    f = m a + U h and n = h×a + I ω̇ + ω×I ω; terms with products of inertia use entries of U.
    """
    m, h, I = inertia
    w, dw, a, U = acceleration
    xx, yy, zz = w[0] * w[0], w[1] * w[1], w[2] * w[2]
    n = (
        I[0] * dw[0] + (I[5] - I[3]) * (w[1] * w[2]) + I[4] * (yy - zz) + I[2] * U[3] - I[1] * U[6],
        I[3] * dw[1] + (I[0] - I[5]) * (w[0] * w[2]) + I[2] * (zz - xx) + I[1] * U[7] - I[4] * U[1],
        I[5] * dw[2] + (I[3] - I[0]) * (w[0] * w[1]) + I[1] * (xx - yy) + I[4] * U[2] - I[2] * U[5],
    )
    return Wrench(add(n, cross(h, a)), add(scale(m, a), rotate(U, h)))


def link_reference(T: Pose, parent: Reference, S: JointScrew, qd: Scalar, qd_r: Scalar, qdd_r: Scalar) -> Reference:
    """The motion of a link along reference rates, from its parent's: :func:`link_acceleration` with two rates."""
    a = rotate_back(T.R, add(parent.a, rotate(parent.U, T.p)))
    w, u, dw = rotate_back(T.R, parent.w), rotate_back(T.R, parent.w_r), rotate_back(T.R, parent.dw)
    t, t_r, s, s_r = S.turn * qd, S.turn * qd_r, S.slide * qd, S.slide * qd_r
    a = (a[0] + w[1] * s_r + u[1] * s, a[1] - w[0] * s_r - u[0] * s, a[2] + S.slide * qdd_r)
    dw = (dw[0] + w[1] * t_r, dw[1] - w[0] * t_r, dw[2] + S.turn * qdd_r)
    w, u = (w[0], w[1], w[2] + t), (u[0], u[1], u[2] + t_r)
    return reference_of(w, u, dw, a)


def reference_of(w: Vector, u: Vector, dw: Vector, a: Vector) -> Reference:
    """A reference motion from all but its U, with u = ω_r."""
    xx, yy, zz = u[0] * w[0], u[1] * w[1], u[2] * w[2]
    x = (-(yy + zz), w[0] * u[1] - dw[2], w[0] * u[2] + dw[1])
    y = (w[1] * u[0] + dw[2], -(xx + zz), w[1] * u[2] - dw[0])
    z = (w[2] * u[0] - dw[1], w[2] * u[1] + dw[0], -(xx + yy))
    return Reference(w, u, dw, a, (x[0], x[1], x[2], y[0], y[1], y[2], z[0], z[1], z[2]))


def reference_wrench(inertia: RigidInertia, motion: Reference) -> Wrench:
    """M (J q̈_r + J̇ q̇_r) + B J q̇_r, about the frame's origin; the acceleration includes −gravity.

    f = m a + U h and n = h×a + I ω̇ + ω×(I − ½ tr(I) 1) ω_r.
    """
    m, h, I = inertia
    t = 0.5 * (I[0] + I[3] + I[5])
    turning = (I[0] - t, I[1], I[2], I[3] - t, I[4], I[5] - t)
    n = add(symmetric_times(I, motion.dw), cross(motion.w, symmetric_times(turning, motion.w_r)))
    return Wrench(add(n, cross(h, motion.a)), add(scale(m, motion.a), rotate(motion.U, h)))


def unit_inertia(k: int) -> RigidInertia:
    """The inertia whose parameter k is 1 and the others 0, of the ten [m, h, Ixx, Ixy, Ixz, Iyy, Iyz, Izz]."""
    m, x, y, z = 1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0, 1.0 if k == 3 else 0.0
    xx, xy, xz = 1.0 if k == 4 else 0.0, 1.0 if k == 5 else 0.0, 1.0 if k == 6 else 0.0
    yy, yz, zz = 1.0 if k == 7 else 0.0, 1.0 if k == 8 else 0.0, 1.0 if k == 9 else 0.0
    return RigidInertia(m, (x, y, z), (xx, xy, xz, yy, yz, zz))


def weight(inertia: RigidInertia, a: Vector) -> Wrench:
    """Wrench about the origin that holds a body at rest in the gravity field −a."""
    return Wrench(cross(inertia.h, a), scale(inertia.m, a))


def wrench_to_parent(T: Pose, F: Wrench) -> Wrench:
    """Change the frame of a wrench from the child's to the parent's: Ad(T)⁻ᵀ F."""
    f = rotate(T.R, F.f)
    return Wrench(add(rotate(T.R, F.n), cross(T.p, f)), f)


def wrench_about(c: Vector, F: Wrench) -> Wrench:
    """The same wrench about the point c instead of the origin."""
    return Wrench(subtract(F.n, cross(c, F.f)), F.f)


def joint_component(F: Wrench, S: JointScrew) -> Scalar:
    """Sᵀ F: the component of a wrench along the joint's screw, which is the joint force."""
    return S.turn * F.n[2] + S.slide * F.f[2]


def power(V: Twist, F: Wrench) -> Scalar:
    """Vᵀ F."""
    return dot(V.w, F.n) + dot(V.v, F.f)


# Rigid inertias


def inertia_to_parent(T: Pose, inertia: RigidInertia) -> RigidInertia:
    """Change the frame of a rigid inertia from the child's to the parent's: XᵀIX."""
    m, h, I = inertia.m, rotate(T.R, inertia.h), congruence(T.R, inertia.I)
    # About the new origin: I + 2(h·p)1 − h pᵀ − p hᵀ + m(p·p 1 − p pᵀ), gathered in k = h + m p and d = (h + k) p.
    k = add(h, scale(m, T.p))
    (hx, hy, hz), (kx, ky, kz), (x, y, z) = h, k, T.p
    dx, dy, dz = (hx + kx) * x, (hy + ky) * y, (hz + kz) * z
    shift = (dy + dz, -(hx * y + x * ky), -(hx * z + x * kz), dx + dz, -(hy * z + y * kz), dx + dy)
    return RigidInertia(m, k, add(I, shift))


def moment_to_parent(T: Pose, moment: MassMoment) -> MassMoment:
    """Change the frame of a first moment from the child's to the parent's: R h + m p."""
    return MassMoment(moment.m, add(rotate(T.R, moment.h), scale(moment.m, T.p)))


def momentum(inertia: RigidInertia, V: Twist) -> Wrench:
    """I V: angular momentum about the origin, and linear momentum."""
    m, h, I = inertia
    return Wrench(add(symmetric_times(I, V.w), cross(h, V.v)), add(scale(m, V.v), cross(V.w, h)))


def momentum_of_joint(inertia: RigidInertia, S: JointScrew) -> Wrench:
    """I S: the momentum of a body at unit rate of the joint."""
    m, h, I = inertia
    return Wrench(
        (I[2] * S.turn + h[1] * S.slide, I[4] * S.turn - h[0] * S.slide, I[5] * S.turn),
        (-h[1] * S.turn, h[0] * S.turn, m * S.slide),
    )


def inertia_rate(inertia: RigidInertia, V: Twist) -> RigidInertia:
    """−ad_Vᵀ I − I ad_V: the rate, in a fixed frame, of the inertia of a body with twist V; its mass is constant."""
    m, h, I = inertia
    w, v = V
    A = hat_times(w, full(I))
    d = 2 * dot(v, h)
    turning = upper(add(A, transpose(A)))
    moving = (
        d - 2 * (h[0] * v[0]),
        -(h[0] * v[1] + v[0] * h[1]),
        -(h[0] * v[2] + v[0] * h[2]),
        d - 2 * (h[1] * v[1]),
        -(h[1] * v[2] + v[1] * h[2]),
        d - 2 * (h[2] * v[2]),
    )
    return RigidInertia(0.0, add(scale(m, v), cross(w, h)), add(turning, moving))


# The Coriolis matrix


def coriolis_tensor(inertia: RigidInertia, V: Twist) -> CoriolisTensor:
    """B = [[K, 0], [−P̂, 0]] of a body, with K = −ω̂Σ − ĥv̂, P = m v + ω×h, Σ = ½ tr(I) 1 − I."""
    m, h, I = inertia
    w, v = V
    t = (I[0] + I[3] + I[5]) / 2
    sigma = (t - I[0], -I[1], -I[2], t - I[3], -I[4], t - I[5])
    K = subtract(hat_times(scale(-1.0, w), full(sigma)), hat_times(h, hat(v)))
    return CoriolisTensor(K, add(scale(m, v), cross(w, h)))


def coriolis_to_parent(T: Pose, B: CoriolisTensor) -> CoriolisTensor:
    """Change the frame of B from the child's to the parent's: XᵀBX."""
    P = rotate(T.R, B.P)
    K = multiply(multiply(T.R, B.K), transpose(T.R))
    return CoriolisTensor(subtract(K, hat_times(T.p, hat(P))), P)


def coriolis_columns(
    inertia: RigidInertia, B: CoriolisTensor, V: Twist, S: JointScrew
) -> tuple[Wrench, Wrench, Vector]:
    """I S̊ + B S, I S, and the angular part of Bᵀ S (its linear part is 0), for composite I and B."""
    K, P = B
    turn, slide = S
    n, f = momentum(inertia, screw_rate(V, S))
    F1 = Wrench(
        (n[0] + K[2] * turn, n[1] + K[5] * turn, n[2] + K[8] * turn),
        (f[0] - P[1] * turn, f[1] + P[0] * turn, f[2]),
    )
    F3 = (K[6] * turn + P[1] * slide, K[7] * turn - P[0] * slide, K[8] * turn)
    return F1, momentum_of_joint(inertia, S), F3


# Articulated bodies


def bias_wrench(inertia: RigidInertia, V: Twist) -> Wrench:
    """−ad_Vᵀ I V: the wrench under which the components of a body's twist in its own frame are constant.

    n = ω×I ω + h×a and f = m a + ω×(ω×h) with a = ω×v. Without v×m v = 0, whose rounding would exceed the moments of a
    small body that moves fast.
    """
    m, h, I = inertia
    a = cross(V.w, V.v)
    return Wrench(add(cross(V.w, symmetric_times(I, V.w)), cross(h, a)), add(scale(m, a), cross(V.w, cross(V.w, h))))


def rigid_as_articulated(inertia: RigidInertia) -> ArticulatedInertia:
    """A rigid body's 6x6 inertia as blocks."""
    m = inertia.m
    return ArticulatedInertia(inertia.I, hat(inertia.h), (m, 0.0, 0.0, m, 0.0, m))


def articulated_column(inertia: ArticulatedInertia, S: JointScrew) -> Wrench:
    """U = Iᴬ S."""
    A, H, L = inertia
    return Wrench(
        (A[2] * S.turn + H[2] * S.slide, A[4] * S.turn + H[5] * S.slide, A[5] * S.turn + H[8] * S.slide),
        (H[6] * S.turn + L[2] * S.slide, H[7] * S.turn + L[4] * S.slide, H[8] * S.turn + L[5] * S.slide),
    )


def pivot_rounding(felt: Scalar, mass: Scalar, S: JointScrew) -> Scalar:
    """Bound of the rounding error of D = Sᵀ Iᴬ S; a D below it counts as zero (docs/mathematics.md §4)."""
    about, along = S.turn * S.turn, S.slide * S.slide
    return ROUNDING * (about * felt + along * mass) + PICOMETRE_SQUARED * (about * mass)


def spread_to_parent(T: Pose, spread: Scalar, felt: Scalar, mass: Scalar) -> Vector:
    """Estimates of ∫ 2 r² dm about the origin of the parent's frame, of what acts about the parent's axis; the mass.

    Mixed terms, such as 4 p · ∫ r dm, are omitted (docs/mathematics.md §4).
    """
    (x, y, z), c = T.p, T.R[8]
    square = x * x + y * y
    tilt = T.R[2] * T.R[2] + T.R[5] * T.R[5]
    return (spread + 2 * (square + z * z) * mass, c * c * felt + tilt * spread + 2 * square * mass, mass)


def project_out_joint(inertia: ArticulatedInertia, U: Wrench, D: Scalar, S: JointScrew) -> ArticulatedInertia:
    """Iᵃ = Iᴬ − U Uᵀ / D: the inertia that the parent feels while the joint moves freely.

    Without armature Iᵃ S = 0, and no rounding remains where S has only a turn or a slide: with U_z / D = 1 the entries
    along z cancel. A free joint then transmits no inertia at all, whatever its distance.
    """
    A, H, L = inertia
    n, f = U
    k, l = n[2] / D, f[2] / D
    x, y = scale(1 / D, n), scale(1 / D, f)
    corner = S.turn * (k * f[2]) + (1.0 - S.turn) * (l * n[2])
    return ArticulatedInertia(
        (A[0] - x[0] * n[0], A[1] - x[0] * n[1], A[2] - k * n[0], A[3] - x[1] * n[1], A[4] - k * n[1], A[5] - k * n[2]),
        (
            H[0] - x[0] * f[0],
            H[1] - x[0] * f[1],
            H[2] - l * n[0],
            H[3] - x[1] * f[0],
            H[4] - x[1] * f[1],
            H[5] - l * n[1],
            H[6] - k * f[0],
            H[7] - k * f[1],
            H[8] - corner,
        ),
        (L[0] - y[0] * f[0], L[1] - y[0] * f[1], L[2] - l * f[0], L[3] - y[1] * f[1], L[4] - l * f[1], L[5] - l * f[2]),
    )


def transmitted(F: Wrench, U: Wrench, D: Scalar, u: Scalar, tau: Scalar, S: JointScrew) -> Wrench:
    """F + U u / D: the bias wrench that the parent feels while the joint moves freely, with u = τ − Sᵀ F.

    Without armature its component along S is τ, without rounding where S has only a turn or a slide.
    """
    a, t = u / D, S.turn
    n, f = add(F.n, scale(a, U.n)), add(F.f, scale(a, U.f))
    about, along = tau - (1.0 - U.n[2] / D) * u - S.slide * F.f[2], tau - (1.0 - U.f[2] / D) * u
    return Wrench((n[0], n[1], t * about + (1.0 - t) * n[2]), (f[0], f[1], t * f[2] + (1.0 - t) * along))


def articulated_times(inertia: ArticulatedInertia, V: Twist) -> Wrench:
    """Iᴬ V."""
    A, H, L = inertia
    return Wrench(add(symmetric_times(A, V.w), rotate(H, V.v)), add(rotate_back(H, V.w), symmetric_times(L, V.v)))


def articulated_to_parent(T: Pose, inertia: ArticulatedInertia) -> ArticulatedInertia:
    """Change the frame of an articulated inertia from the child's to the parent's: XᵀIᴬX."""
    R, p = T
    A = congruence(R, inertia.A)
    L = congruence(R, inertia.L)
    H = multiply(multiply(R, inertia.H), transpose(R))
    # H' = H + p̂L and A' = A + p̂Hᵀ − Hp̂ − p̂Lp̂ = A + p̂Hᵀ + (p̂H'ᵀ)ᵀ.
    shifted = add(H, hat_times(p, full(L)))
    U = hat_times(p, transpose(H))
    V = transpose(hat_times(p, transpose(shifted)))
    A = add(add(A, upper(U)), upper(V))
    return ArticulatedInertia(A, shifted, L)


# One link's contribution, at its centre of mass (docs/mathematics.md §2)


def com_momentum(m: Scalar, I: Symmetric, V: Twist) -> Wrench:
    """M̄ V with M̄ = blkdiag(Ī, m 1)."""
    return Wrench(symmetric_times(I, V.w), scale(m, V.v))


def com_coriolis(m: Scalar, I: Symmetric, w: Vector, V: Twist) -> Wrench:
    """B V with B = blkdiag((Σω)^, m ω̂), Σ = ½ tr(Ī) 1 − Ī."""
    t = (I[0] + I[3] + I[5]) / 2
    sigma = subtract(scale(t, w), symmetric_times(I, w))
    return Wrench(cross(sigma, V.w), scale(m, cross(w, V.v)))


# Contacts (docs/mathematics.md §14)


def nearest(half: Vector, c: Vector) -> Nearest:
    """The nearest point of a core to a point c, both in its frame."""
    if half[2] < 0:
        return Nearest((0.0, 0.0, 1.0), c[2], ZERO, 1.0)
    (x, a), (y, b), (z, e) = beyond(c[0], half[0]), beyond(c[1], half[1]), beyond(c[2], half[2])
    distance = square_root(x * x + y * y + z * z)
    if exceeds(distance, 0.0):
        return Nearest(scale(1.0 / distance, (x, y, z)), distance, (a, b, e), distance)
    # Inside of a box the nearest face counts.
    x, y, z = abs(c[0]) - half[0], abs(c[1]) - half[1], abs(c[2]) - half[2]
    if x >= y and x >= z:
        return Nearest((sign(c[0]), 0.0, 0.0), x, ZERO, abs(sign(c[0])))
    if y >= z:
        return Nearest((0.0, sign(c[1]), 0.0), y, ZERO, abs(sign(c[1])))
    return Nearest((0.0, 0.0, sign(c[2])), z, ZERO, abs(sign(c[2])))


def sign(x: Scalar) -> Scalar:
    """1, 0 or −1."""
    return 1.0 if x > 0 else -1.0 if x < 0 else 0.0


def clip(x: Scalar, half: Scalar) -> Scalar:
    """x, or the nearer one of ±half."""
    return x - beyond(x, half)[0]


def along(half: Vector, c: Vector, d: Vector) -> Scalar:
    """The s of the point c + s d of a line, |s| <= 1 of a segment, nearest to a core that is a segment of its z axis.

    Beyond ±1, the nearest one of the segment is its end.
    """
    a, size = d[0] * d[0] + d[1] * d[1], dot(d, d)
    overlap = 0.5 * (clip(c[2] + d[2], half[2]) + clip(c[2] - d[2], half[2]))
    middle = clip((overlap * d[2] - dot(c, d)) / size, 1.0)
    few = PARALLEL * size
    s = clip((few * middle - d[0] * c[0] - d[1] * c[1]) / (a + few), 1.0)
    return (clip(c[2] + s * d[2], half[2]) * d[2] - dot(c, d)) / size


def room(half: Vector, c: Vector, d: Vector, s: Scalar) -> Scalar:
    """How far inside of both segments they cross, relative: the least of three numbers; negative if they do not."""
    t, size = c[2] + s * d[2], dot(d, d)
    inner = least(1.0 - s * s, 1.0 - t * t / (half[2] * half[2]))
    return least(inner, (d[0] * d[0] + d[1] * d[1]) / size - CROSSING)


def least(a: Scalar, b: Scalar) -> Scalar:
    """The smaller one, also of traced scalars."""
    return 0.5 * (a + b - square_root((a - b) * (a - b)))


def along_rate(near: Nearest, d: Vector, d_dot: Vector, rate: Vector) -> Scalar:
    """The rate of that s, from those of d and of the point; all relative to the core, in its frame."""
    k = near.slopes
    across = (k[0] * d[0], k[1] * d[1], k[2] * d[2])
    a = dot(across, d)
    least = a + PARALLEL * dot(d, d)
    return -a * (near.divisor * dot(near.n, d_dot) + dot(across, rate)) / (least * least)


def solid(near: Nearest, thickness: Scalar, room: Scalar) -> Nearest:
    """What is nearest where a solid's edge crosses another one: the distance is negative inside, up to its thickness.

    Its faces have the normals x and y.
    """
    x, y, z = near.n[0] - ASIDE, near.n[1] - ASIDE, least(thickness - near.distance, room)
    x, y, z = (1.0 - x / square_root(x * x)), (1.0 - y / square_root(y * y)), (1.0 + z / square_root(z * z))
    side = 1.0 - 0.25 * x * y * z
    return Nearest(scale(side, near.n), side * near.distance, near.slopes, side * near.divisor)


def normal_rate(near: Nearest, rate: Vector) -> Vector:
    """∂n/∂c times the rate of the point, in the frame of the core."""
    a, n = near.slopes, near.n
    moved = (a[0] * rate[0], a[1] * rate[1], a[2] * rate[2])
    return scale(1.0 / near.divisor, subtract(moved, scale(dot(n, moved), n)))


def tangent(n: Vector, second: Scalar) -> Vector:
    """One of two unit vectors across a unit vector n, right-handed: the first one, or the ``second`` one, 0 or 1.

    Duff et al., "Building an orthonormal basis, revisited", JCGT 6(1), 2017. They jump beside n_z = 0, not at it, where
    the normals of sides are.
    """
    y = n[2] + ASIDE
    s = y / square_root(y * y)
    a = -1.0 / (s + n[2])
    b = n[0] * n[1] * a
    if second > 0:
        return (b, s + n[1] * n[1] * a, -n[1])
    return (1.0 + s * n[0] * n[0] * a, s * b, -s * n[0])


def force_at(x: Vector, e: Vector) -> Wrench:
    """A unit force along e at a point x."""
    return Wrench(cross(x, e), e)


def contact_drift(F: Wrench, V: Twist, A: Twist, x: Vector, x_dot: Vector, e_dot: Vector) -> Scalar:
    """The rate of Fᵀ V without accelerations, for a force F along e at x that move so relative to the body.

    V and A are the relative twist and its rate.
    """
    return power(A, F) + dot(F.f, cross(V.w, x_dot)) + dot(e_dot, add(V.v, cross(V.w, x)))
