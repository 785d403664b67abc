"""The matrix of convective inertia of an arm in link frames, from Bhangale 2004, Eqs. 10 and 12.

The paper has no steps for it. With A_{i+1,i} = [1 0; −a_i × 1 1] and W M E = [ω × I 0; −ω × (m d × 1) 0], the sum of
A_{j+1,j}ᵀ H̃_{j+1,j} and M̃'_j is [X_j 0; Y_j 0].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from screwdyn.papers.formulations.link_frames.counting import Begin, Elements
from screwdyn.papers.formulations.link_frames.routines import Matrix, Vector, added, cross, times
from screwdyn.papers.formulations.link_frames.spatial import (
    Composite,
    Link,
    Wrench,
    along,
    column,
    composites,
    element,
    moved,
    slides,
)

__all__ = ["mci"]


def velocities(
    links: Sequence[Link], at: Sequence[Composite], rates: Sequence[Any], begin: Begin
) -> Iterator[tuple[Vector, Vector]]:
    """ω_i and ȧ_i = v_{i+1} − v_i in frame i; ȧ_n, which is not needed, is 0."""
    omega: Vector = (0, 0, 0)
    for k, (link, body) in enumerate(zip(links, at, strict=True)):
        begin("ω")
        omega = links[k - 1].turn.back(omega) if k else omega
        if link.fixed is None:
            omega = (omega[0], omega[1], omega[2] + rates[k])
        begin("ȧ")
        a_dot = cross(omega, body.a) if k + 1 < len(links) else (0, 0, 0)
        if slides(links, k + 1):
            a_dot = added(a_dot, along(link.turn, rates[k + 1]))
        yield omega, a_dot


def blocks(
    links: Sequence[Link], at: Sequence[Composite], motion: Sequence[tuple[Vector, Vector]], begin: Begin
) -> list[tuple[Matrix, Matrix]]:
    """X_i and Y_i of all links.

    X_i = ω_i × I_i + X + a_i × Y − s × (ȧ_i × 1) and Y_i = −ω_i × (m_i d_i × 1) + Y − m̃ ȧ_i × 1, where X, Y and m̃ are
    those of link i + 1.
    """
    found: list[tuple[Matrix, Matrix]] = []
    for k, (link, body, (omega, a_dot)) in reversed([*enumerate(zip(links, at, motion, strict=True))]):
        begin("W M E")
        i11, i12, i22, i13, i23, i33 = body.own.I
        X = _crossed(omega, (i11, i12, i13, i12, i22, i23, i13, i23, i33))
        Y = _swapped(body.own.first, omega)
        if found:
            begin("X, Y rotation")
            X_beyond, Y_beyond = map(link.turn.matrix, found[-1])
            begin("X, Y")
            turned = added(_crossed(body.a, Y_beyond), _swapped(a_dot, body.s))
            X = added(X, added(X_beyond, turned))
            x, y, z = times(links[k + 1].carried, a_dot)
            xx, xy, xz, yx, yy, yz, zx, zy, zz = added(Y, Y_beyond)
            Y = (xx, xy + z, xz - y, yx - z, yy, yz + x, zx + y, zy - x, zz)
        found.append((X, Y))
    return found[::-1]


def _crossed(a: Vector, X: Matrix) -> Matrix:
    """a × X, column by column: 18M 9A."""
    columns = [cross(a, X[k::3]) for k in range(3)]
    return tuple(column[k] for k in range(3) for column in columns)


def _swapped(a: Vector, b: Vector) -> Matrix:
    """−b × (a × 1) = (a · b) 1 − a bᵀ: 9M 3A."""
    x, y, z = (u * v for u, v in zip(a, b, strict=True))
    return (
        *(y + z, -(a[0] * b[1]), -(a[0] * b[2])),
        *(-(a[1] * b[0]), x + z, -(a[1] * b[2])),
        *(-(a[2] * b[0]), -(a[2] * b[1]), x + y),
    )


def mci(links: Sequence[Link], rates: Sequence[Any], begin: Begin) -> Elements:
    """c_ij (Eq. 10).

    For i ≤ j, (M̃_j W_j + A_{j+1,j}ᵀ H̃_{j+1,j} + M̃'_j) p_j goes to O_i as M̃_i p_i does for the GIM. For i > j the row
    p_iᵀ of the blocks goes to O_j: with y = A_ijᵀ M̃_i p_i, and u that of X_i or Y_i and of Ȧ_ijᵀ M̃_i p_i, it is
    p_jᵀ u + y · W_j p_j.
    """
    found, at = {}, composites(links, begin)
    motion = [*velocities(links, at, rates, begin)]
    for j, (body, link, (X, Y), (omega, _)) in enumerate(
        zip(at, links, blocks(links, at, motion, begin), motion, strict=True)
    ):
        begin("columns")
        wrench = _column(body, link, X, Y, omega)
        y, u = column(body, link), (Y if link.fixed else X)[6:]
        found[j, j] = element(link, wrench)
        for i in reversed(range(j)):
            turn, a, (spin, a_dot) = links[i].turn, at[i].a, motion[i]
            begin("c_ij, i < j")
            wrench = moved(links[i], a, wrench)
            found[i, j] = element(links[i], wrench)
            begin("c_ij, i > j")
            y = moved(links[i], a, y)
            u = added(turn.vector(u), cross(a_dot, y[1]))
            n, f = y
            if links[i].fixed:
                found[j, i] = f[0] * spin[1] - f[1] * spin[0]
            else:
                found[j, i] = u[2] + (n[0] * spin[1] - n[1] * spin[0])
    return found


def _column(body: Composite, link: Link, X: Matrix, Y: Matrix, omega: Vector) -> Wrench:
    """(M̃_j W_j + A_{j+1,j}ᵀ H̃_{j+1,j} + M̃'_j) p_j; W_j p_j has ω × e = (ω_y, −ω_x, 0)."""
    x, y, z = body.first
    along, across = omega[1], -omega[0]
    crossed = (z * across, -(z * along), y * along - x * across)  # −δ × (ω × e)
    if link.fixed:
        m = link.carried
        return (-crossed[0], -crossed[1], -crossed[2]), (m * along, m * across, 0)
    i11, i12, i22, i13, i23, _ = body.I
    n = (i11 * along + i12 * across, i12 * along + i22 * across, i13 * along + i23 * across)
    return added(n, X[2::3]), added(crossed, Y[2::3])
