"""The MCI of a planar arm in link frames, from Bhangale 2004, Eqs. 10 and 12; the paper has no steps for it.

The sum of A_{j+1,j}ᵀ H̃_{j+1,j} and M̃'_j is [X_j 0; Y_j 0] with a scalar X_j and a vector Y_j.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from screwdyn.papers.formulations.link_frames.counting import Begin, Elements
from screwdyn.papers.formulations.link_frames.planar import (
    Body,
    Link,
    Vector,
    added,
    along,
    column,
    composites,
    crossed,
    element,
    moved,
    slides,
)

__all__ = ["mci"]

At = tuple[Body, Body, Vector]


def velocities(
    links: Sequence[Link], at: Sequence[At], rates: Sequence[Any], begin: Begin
) -> Iterator[tuple[Any, Vector]]:
    """ω_i and ȧ_i in frame i; ȧ_n, which is not needed, is 0."""
    omega: Any = 0
    for k, (link, (body, _, _)) in enumerate(zip(links, at, strict=True)):
        begin("ω")
        omega = omega if link.fixed else omega + rates[k]
        begin("ȧ")
        a_dot = (-(omega * body.a[1]), omega * body.a[0]) if k + 1 < len(links) else (0, 0)
        yield omega, added(a_dot, along(links, k, rates[k + 1])) if slides(links, k + 1) else a_dot


def blocks(
    links: Sequence[Link], at: Sequence[At], motion: Sequence[tuple[Any, Vector]], begin: Begin
) -> list[tuple[Any, Vector]]:
    """X_i = X + a_i × Y + s · ȧ_i and Y_i = −ω_i m_i d_i + Y + m̃ e × ȧ_i; X, Y and m̃ are those of link i + 1."""
    found: list[tuple[Any, Vector]] = []
    for k, (link, (_, own, s), (omega, a_dot)) in reversed([*enumerate(zip(links, at, motion, strict=True))]):
        begin("W M E")
        X: Any = 0
        Y = (-(omega * own.first[0]), -(omega * own.first[1]))
        if found:
            X, beyond = found[-1]
            begin("X, Y rotation")
            beyond = link.turned(beyond)
            begin("X, Y")
            X = X + crossed(own.a, beyond) + (s[0] * a_dot[0] + s[1] * a_dot[1])
            m = links[k + 1].carried
            Y = added(Y, (beyond[0] - m * a_dot[1], beyond[1] + m * a_dot[0]))
        found.append((X, Y))
    return found[::-1]


def mci(links: Sequence[Link], rates: Sequence[Any], begin: Begin) -> Elements:
    """c_ij (Eq. 10), as in space (`convective.mci`); W p is zero for a revolute joint."""
    found, at = {}, composites(links, begin)
    motion = [*velocities(links, at, rates, begin)]
    parts = blocks(links, at, motion, begin)
    for j, (link, (body, _, _), (X, Y), (omega, _)) in enumerate(zip(links, at, parts, motion, strict=True)):
        begin("columns")
        y, u, wrench = column(link, body), X, (X, Y)
        if link.slide:
            (x, z), f = link.slide, y[1]
            u = Y[0] * x + Y[1] * z
            wrench = omega * (body.first[0] * x + body.first[1] * z), (-(omega * f[1]), omega * f[0])
        found[j, j] = element(link, *wrench)
        for i in reversed(range(j)):
            begin("c_ij, i < j")
            wrench = moved(links[i], at[i][0].a, *wrench)
            found[i, j] = element(links[i], *wrench)
            begin("c_ij, i > j")
            y = moved(links[i], at[i][0].a, *y)
            u = u + crossed(motion[i][1], y[1])
            slide = links[i].slide
            found[j, i] = motion[i][0] * crossed(slide, y[1]) if slide else u
    return found
