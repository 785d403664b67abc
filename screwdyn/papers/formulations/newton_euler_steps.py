"""The steps of the Newton-Euler recursions, link by link: Fu, Gonzalez, Lee 1987, Tables 3.2 and 3.3.

The equations are those of Table 3.3. In axes of the base, with R = 1, they are those of Table 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from screwdyn.core.types import Array
from screwdyn.papers.formulations.rows import Row, cross

__all__ = ["Forward", "Step", "Vectors", "backward", "forward"]


class Vectors(NamedTuple):
    """Vectors of link i: R is ^iR_{i−1}; z_{i−1} and p, a point of joint i's axis, are in axes of link i − 1.

    p_i* leads from that point to the origin of frame i, s̄_i from there to the centre of mass. They, the tensor I_i
    about the centre of mass and the wrench on the link about the origin of frame i are in axes of link i.
    """

    R: Array
    z: Array
    p: Array
    p_star: Array
    s_bar: Array
    I: Array
    wrench: Array


class Forward(NamedTuple):
    """Motion of link i, (3,): ω_i, ω̇_i, v̇_i of the origin of frame i, and ā_i of the centre of mass.

    Both accelerations contain −g, the upward acceleration of the base that stands for gravity (Eq. 3.3-46).
    """

    omega: Array
    omegad: Array
    vd: Array
    a: Array


class Step(NamedTuple):
    """Motion and forces of link i, (3,), rad/s, rad/s², m/s², N and N m.

    F_i and N_i are the sums of all forces and moments on the link at its centre of mass, with −m g in F_i; f_i and n_i
    are those that link i − 1 exerts on it, n_i at the axis of joint i.
    """

    omega: Array
    omegad: Array
    vd: Array
    a: Array
    F: Array
    N: Array
    f: Array
    n: Array


def forward(rows: Sequence[Row], links: Sequence[Vectors], qd: Array, qdd: Array, gravity: Array) -> list[Forward]:
    """Eqs. 3.3-50 to 3.3-53, from the base to the tips. Fu's two kinds of joints are one with sigma and h."""
    found: list[Forward] = []
    base = Forward(np.zeros(3), np.zeros(3), -gravity, -gravity)
    for row, at, rate, rate_dot in zip(rows, links, qd, qdd, strict=True):
        before = found[row.parent] if row.parent >= 0 else base
        turn, slide = row.sigma * at.z, row.h * at.z
        omega = at.R @ (before.omega + turn * rate)
        omegad = at.R @ (before.omegad + turn * rate_dot + cross(before.omega, turn * rate))
        vd = _acceleration(before.vd, before, at.p) if row.parent >= 0 else before.vd
        vd = at.R @ (vd + slide * rate_dot) + 2 * cross(omega, at.R @ (slide * rate))
        moved = Forward(omega, omegad, vd, vd)
        vd = _acceleration(vd, moved, at.p_star)
        found.append(Forward(omega, omegad, vd, _acceleration(vd, moved, at.s_bar)))
    return found


def backward(rows: Sequence[Row], links: Sequence[Vectors], motion: Sequence[Forward]) -> list[Step]:
    """Eqs. 3.3-54 to 3.3-57, from the tips to the base.

    A wrench on link i takes the place of −f_{i+1} and −n_{i+1}, which the hand exerts on an object.
    """
    found: list[Any] = [None] * len(links)
    f, n = [-at.wrench[3:] for at in links], [-at.wrench[:3] for at in links]
    for i, (row, at, moved) in reversed([*enumerate(zip(rows, links, motion, strict=True))]):
        F = row.m * moved.a
        N = at.I @ moved.omegad + cross(moved.omega, at.I @ moved.omega)
        # Here f[i] and n[i] are the sums over all links that link i carries, n[i] at the origin of frame i.
        n_i = n[i] + cross(at.p_star, f[i]) + cross(at.p_star + at.s_bar, F) + N
        found[i] = Step(moved.omega, moved.omegad, moved.vd, moved.a, F, N, F + f[i], n_i)
        if (k := row.parent) >= 0:
            f_i = at.R.T @ found[i].f
            f[k] = f[k] + f_i
            n[k] = n[k] + at.R.T @ n_i + cross(at.p, f_i)
    return found


def _acceleration(vd: Array, of: Forward, r: Array) -> Array:
    """Acceleration of the point r from one of acceleration v̇ on the same link: Eqs. 3.3-35 and 3.3-39."""
    there: Array = cross(of.omegad, r) + cross(of.omega, cross(of.omega, r)) + vd
    return there
