"""The physics of one link: what passes between it and its parent.

Every function takes and returns tuples of scalars, belongs to one link, and never loops over the tree. Frames: each
link's working frame has its joint's screw along z through the origin, so that S = (0, 0, turn; 0, 0, slide): turn 1,
slide 0 for a revolute joint, 0, 1 for a prismatic one, 1, pitch for a helical one. R, p are the pose of the link in
its parent. Twists and wrenches are pairs of 3-vectors, angular first. Equations: docs/mathematics.md §1 and §4.
"""

from numba.extending import register_jitable

from screwdyn.physics.vectors import (
    Matrix,
    Scalar,
    Symmetric,
    Vector,
    add,
    apply,
    cross,
    exceeds,
    full,
    hat,
    hat_times,
    minus,
    multiply,
    plus,
    rotate,
    rotate_back,
    scale,
    sincos,
    transpose,
    turned,
)

Twist = tuple[Vector, Vector]

# Inertia along a joint that counts as none: relative to the articulated inertia, and as a radius of gyration.
NO_INERTIA, PICOMETRE_SQUARED = 1e-14, 1e-24


@register_jitable
def joint_pose(R0: Matrix, p0: Vector, turn: Scalar, slide: Scalar, q: Scalar) -> tuple[Matrix, Vector]:
    """Pose home · exp(Ŝ q) of a link in its parent."""
    s, c = sincos(turn * q)
    R = (
        R0[0] * c + R0[1] * s,
        R0[1] * c - R0[0] * s,
        R0[2],
        R0[3] * c + R0[4] * s,
        R0[4] * c - R0[3] * s,
        R0[5],
        R0[6] * c + R0[7] * s,
        R0[7] * c - R0[6] * s,
        R0[8],
    )
    d = slide * q
    return R, (p0[0] + R0[2] * d, p0[1] + R0[5] * d, p0[2] + R0[8] * d)


@register_jitable
def twist_inward(R: Matrix, p: Vector, w: Vector, v: Vector) -> Twist:
    """The same motion seen in the link's frame: Ad(T)⁻¹ (w, v)."""
    return rotate_back(R, w), rotate_back(R, add(v, cross(w, p)))


@register_jitable
def wrench_inward(R: Matrix, p: Vector, n: Vector, f: Vector) -> Twist:
    """The same wrench seen in the parent's frame: Ad(T)⁻ᵀ (n, f)."""
    f = rotate(R, f)
    return add(rotate(R, n), cross(p, f)), f


@register_jitable
def outward_twist(R: Matrix, p: Vector, w: Vector, v: Vector, turn: Scalar, slide: Scalar, qd: Scalar) -> Twist:
    """Twist of a link from its parent's (w, v): V = Ad(T)⁻¹ V_p + S q̇."""
    w, v = twist_inward(R, p, w, v)
    return (w[0], w[1], w[2] + turn * qd), (v[0], v[1], v[2] + slide * qd)


@register_jitable
def screw_rate(w: Vector, v: Vector, turn: Scalar, slide: Scalar) -> Twist:
    """S̊ = ad_V S, how the joint's screw moves with its link."""
    return (w[1] * turn, -w[0] * turn, 0), (v[1] * turn + w[1] * slide, -v[0] * turn - w[0] * slide, 0)


@register_jitable
def spin(w: Vector, dw: Vector) -> Matrix:
    """U = ω̇^ + ω^ω^: U r is the acceleration that turning gives a point at r."""
    xx, yy, zz = w[0] * w[0], w[1] * w[1], w[2] * w[2]
    xy, xz, yz = w[0] * w[1], w[0] * w[2], w[1] * w[2]
    return -(yy + zz), xy - dw[2], xz + dw[1], xy + dw[2], -(xx + zz), yz - dw[0], xz - dw[1], yz + dw[0], -(xx + yy)


@register_jitable
def outward_acceleration(
    R: Matrix,
    p: Vector,
    w: Vector,
    dw: Vector,
    U: Matrix,
    a: Vector,
    turn: Scalar,
    slide: Scalar,
    qd: Scalar,
    qdd: Scalar,
) -> tuple[Vector, Vector, Vector]:
    """Angular velocity, angular acceleration and acceleration of the origin of a link, from its parent's."""
    a = rotate_back(R, add(a, rotate(U, p)))
    w = rotate_back(R, w)
    dw = rotate_back(R, dw)
    t, s = turn * qd, slide * qd
    a = (a[0] + 2 * w[1] * s, a[1] - 2 * w[0] * s, a[2] + slide * qdd)
    dw = (dw[0] + w[1] * t, dw[1] - w[0] * t, dw[2] + turn * qdd)
    return (w[0], w[1], w[2] + t), dw, a


@register_jitable
def newton_euler(m: Scalar, h: Vector, I: Symmetric, w: Vector, dw: Vector, U: Matrix, a: Vector) -> Twist:
    """Wrench about the frame's origin that gives a body its acceleration; a already holds −gravity.

    f = m a + U h and n = h×a + I ω̇ + ω×I ω, whose products of inertia meet entries of U.
    """
    xx, yy, zz = w[0] * w[0], w[1] * w[1], w[2] * w[2]
    n = (
        I[0] * dw[0] + (I[5] - I[3]) * (w[1] * w[2]) + I[4] * (yy - zz) + I[2] * U[3] - I[1] * U[6],
        I[3] * dw[1] + (I[0] - I[5]) * (w[0] * w[2]) + I[2] * (zz - xx) + I[1] * U[7] - I[4] * U[1],
        I[5] * dw[2] + (I[3] - I[0]) * (w[0] * w[1]) + I[1] * (xx - yy) + I[4] * U[2] - I[2] * U[5],
    )
    return add(n, cross(h, a)), add(scale(m, a), rotate(U, h))


@register_jitable
def along_joint(n: Vector, f: Vector, turn: Scalar, slide: Scalar) -> Scalar:
    """Sᵀ F: the joint's share of a wrench."""
    return turn * n[2] + slide * f[2]


@register_jitable
def inertia_inward(R: Matrix, p: Vector, m: Scalar, h: Vector, I: Symmetric) -> tuple[Scalar, Vector, Symmetric]:
    """Mass, first moment and inertia about the origin of the same body in the parent's frame: XᵀIX."""
    h = rotate(R, h)
    I = turned(R, I)
    # About the new origin: I + 2(h·p)1 − h pᵀ − p hᵀ + m(p·p 1 − p pᵀ), gathered in k = h + m p and d = (h + k) p.
    k = add(h, scale(m, p))
    d = ((h[0] + k[0]) * p[0], (h[1] + k[1]) * p[1], (h[2] + k[2]) * p[2])
    shift = (
        d[1] + d[2],
        -(h[0] * p[1] + p[0] * k[1]),
        -(h[0] * p[2] + p[0] * k[2]),
        d[0] + d[2],
        -(h[1] * p[2] + p[1] * k[2]),
        d[0] + d[1],
    )
    return m, k, plus(I, shift)


@register_jitable
def momentum(m: Scalar, h: Vector, I: Symmetric, w: Vector, v: Vector) -> Twist:
    """I V: angular momentum about the origin, and momentum."""
    return add(apply(I, w), cross(h, v)), add(scale(m, v), cross(w, h))


@register_jitable
def rigid_column(m: Scalar, h: Vector, I: Symmetric, turn: Scalar, slide: Scalar) -> Twist:
    """I S: the momentum that a unit rate of the joint gives a body."""
    return (
        (I[2] * turn + h[1] * slide, I[4] * turn - h[0] * slide, I[5] * turn),
        (-h[1] * turn, h[0] * turn, m * slide),
    )


@register_jitable
def coriolis_body(m: Scalar, h: Vector, I: Symmetric, w: Vector, v: Vector) -> tuple[Matrix, Vector]:
    """The body's B = [[K, 0], [−P̂, 0]] with K = −ω̂Σ − ĥv̂, P = m v + ω×h, Σ = ½ tr(I) 1 − I."""
    t = (I[0] + I[3] + I[5]) / 2
    sigma = (t - I[0], -I[1], -I[2], t - I[3], -I[4], t - I[5])
    K = minus(hat_times(scale(-1, w), full(sigma)), hat_times(h, hat(v)))
    return K, add(scale(m, v), cross(w, h))


@register_jitable
def coriolis_inward(R: Matrix, p: Vector, K: Matrix, P: Vector) -> tuple[Matrix, Vector]:
    """The same B in the parent's frame: XᵀBX."""
    P = rotate(R, P)
    K = multiply(multiply(R, K), transpose(R))
    return minus(K, hat_times(p, hat(P))), P


@register_jitable
def coriolis_columns(
    m: Scalar,
    h: Vector,
    I: Symmetric,
    K: Matrix,
    P: Vector,
    w: Vector,
    v: Vector,
    turn: Scalar,
    slide: Scalar,
) -> tuple[Twist, Twist, Vector]:
    """What joint S feels of all that lies beyond it: I S̊ + B S, I S, and the angular part of Bᵀ S (its force is 0)."""
    a, b = screw_rate(w, v, turn, slide)
    n, f = momentum(m, h, I, a, b)
    F1 = (
        (n[0] + K[2] * turn, n[1] + K[5] * turn, n[2] + K[8] * turn),
        (f[0] - P[1] * turn, f[1] + P[0] * turn, f[2]),
    )
    F2 = rigid_column(m, h, I, turn, slide)
    F3 = (K[6] * turn + P[1] * slide, K[7] * turn - P[0] * slide, K[8] * turn)
    return F1, F2, F3


@register_jitable
def bias_wrench(m: Scalar, h: Vector, I: Symmetric, w: Vector, v: Vector) -> Twist:
    """−ad_Vᵀ I V: what a body needs to keep its twist in a frame that moves along."""
    L, P = momentum(m, h, I, w, v)
    return add(cross(w, L), cross(v, P)), cross(w, P)


@register_jitable
def rigid_blocks(m: Scalar, h: Vector, I: Symmetric) -> tuple[Symmetric, Matrix, Symmetric]:
    """A rigid body's 6x6 inertia [[A, H], [Hᵀ, L]] as its blocks."""
    return I, hat(h), (m, 0, 0, m, 0, m)


@register_jitable
def articulated_column(A: Symmetric, H: Matrix, L: Symmetric, turn: Scalar, slide: Scalar) -> Twist:
    """U = Iᴬ S."""
    return (
        (A[2] * turn + H[2] * slide, A[4] * turn + H[5] * slide, A[5] * turn + H[8] * slide),
        (H[6] * turn + L[2] * slide, H[7] * turn + L[4] * slide, H[8] * turn + L[5] * slide),
    )


@register_jitable
def carries_inertia(A: Symmetric, L: Symmetric, D: Scalar, turn: Scalar, slide: Scalar) -> bool:
    """Whether D = Sᵀ Iᴬ S is more than rounding, so that the joint's acceleration is determined."""
    about, along = A[0] + A[3] + A[5], L[0] + L[3] + L[5]
    floor = NO_INERTIA * (turn * turn * about + slide * slide * along)
    return exceeds(D, floor + PICOMETRE_SQUARED * (turn * turn * along))


@register_jitable
def freed(
    A: Symmetric, H: Matrix, L: Symmetric, Un: Vector, Uf: Vector, D: Scalar
) -> tuple[Symmetric, Matrix, Symmetric]:
    """Iᵃ = Iᴬ − U Uᵀ / D: what the parent feels when the joint is free to give way."""
    x, y = scale(1 / D, Un), scale(1 / D, Uf)
    A = (
        A[0] - x[0] * Un[0],
        A[1] - x[0] * Un[1],
        A[2] - x[0] * Un[2],
        A[3] - x[1] * Un[1],
        A[4] - x[1] * Un[2],
        A[5] - x[2] * Un[2],
    )
    H = (
        H[0] - x[0] * Uf[0],
        H[1] - x[0] * Uf[1],
        H[2] - x[0] * Uf[2],
        H[3] - x[1] * Uf[0],
        H[4] - x[1] * Uf[1],
        H[5] - x[1] * Uf[2],
        H[6] - x[2] * Uf[0],
        H[7] - x[2] * Uf[1],
        H[8] - x[2] * Uf[2],
    )
    L = (
        L[0] - y[0] * Uf[0],
        L[1] - y[0] * Uf[1],
        L[2] - y[0] * Uf[2],
        L[3] - y[1] * Uf[1],
        L[4] - y[1] * Uf[2],
        L[5] - y[2] * Uf[2],
    )
    return A, H, L


@register_jitable
def articulated_apply(A: Symmetric, H: Matrix, L: Symmetric, w: Vector, v: Vector) -> Twist:
    """Iᴬ (w, v)."""
    return add(apply(A, w), rotate(H, v)), add(rotate_back(H, w), apply(L, v))


@register_jitable
def articulated_inward(
    R: Matrix, p: Vector, A: Symmetric, H: Matrix, L: Symmetric
) -> tuple[Symmetric, Matrix, Symmetric]:
    """The same articulated inertia in the parent's frame: XᵀIᴬX."""
    A = turned(R, A)
    L = turned(R, L)
    H = multiply(multiply(R, H), transpose(R))
    # H' = H + p̂L and A' = A + p̂Hᵀ − Hp̂ − p̂Lp̂ = A + p̂Hᵀ + (p̂H'ᵀ)ᵀ.
    G = hat_times(p, full(L))
    shifted = (
        H[0] + G[0],
        H[1] + G[1],
        H[2] + G[2],
        H[3] + G[3],
        H[4] + G[4],
        H[5] + G[5],
        H[6] + G[6],
        H[7] + G[7],
        H[8] + G[8],
    )
    U = hat_times(p, transpose(H))
    V = transpose(hat_times(p, transpose(shifted)))
    turned_sum = (
        A[0] + U[0] + V[0],
        A[1] + U[1] + V[1],
        A[2] + U[2] + V[2],
        A[3] + U[4] + V[4],
        A[4] + U[5] + V[5],
        A[5] + U[8] + V[8],
    )
    return turned_sum, shifted, L


@register_jitable
def seen_from(R: Matrix, p: Vector, turn: Scalar, slide: Scalar) -> Twist:
    """A joint's screw in the frame of a link beyond it, whose pose in the joint's frame is R, p: Ad(T)⁻¹ S."""
    return twist_inward(R, p, (0, 0, turn), (0, 0, slide))


@register_jitable
def bracket(w: Vector, v: Vector, a: Vector, b: Vector) -> Twist:
    """ad_V (a, b): the screw (a, b) carried along by the twist (w, v)."""
    return cross(w, a), add(cross(v, a), cross(w, b))


@register_jitable
def composed(R: Matrix, p: Vector, Q: Matrix, r: Vector) -> tuple[Matrix, Vector]:
    """The pose (R, p)(Q, r)."""
    return multiply(R, Q), add(p, rotate(R, r))


@register_jitable
def weight(m: Scalar, h: Vector, a: Vector) -> Twist:
    """Wrench about the origin that holds a body up in the field −a."""
    return cross(h, a), scale(m, a)
