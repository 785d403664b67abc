"""The GIM of an arm in link frames: Bhangale 2004, section 3.2, whose steps are the rows.

Vectors of link i are in axes of frame i, whose z is the axis of joint i. A wrench is [n; f], and A_{i+1,i} is
[1 0; −a_i × 1 1].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from screwdyn.papers.formulations.link_frames.counting import Begin, Elements
from screwdyn.papers.formulations.link_frames.routines import (
    Q,
    Tensor,
    Vector,
    added,
    cross,
    shift,
    times,
    twice_crossed,
)

__all__ = ["Body", "Composite", "Link", "Wrench", "along", "column", "composites", "element", "gim", "moved", "slides"]

Wrench = tuple[Vector, Vector]


class Body(NamedTuple):
    """Tensor and first moment about O_i, a point of link i on its joint, and a_i from O_i to O_{i+1}."""

    I: Tensor
    first: Vector
    a: Vector


class Link(NamedTuple):
    """Link i at a configuration.

    ``turn`` is Q_i, ``carried`` the mass of M̃_i. The lengths a and b, r_i from the centre of mass to O_{i+1} and I_i^c,
    both in frame i + 1, are those of a revolute joint. With a prismatic joint, whose coordinate is b, M_i and a_i are
    constant in frame i: they are ``fixed``.
    """

    turn: Q
    a: Any
    b: Any
    r: Vector
    I: Tensor
    m: Any
    carried: Any
    fixed: Body | None


class Composite(NamedTuple):
    """M̃_i about O_i, the M_i in it, and s = δ̃_{i+1} + m̃_{i+1} a_i, the first moment about O_i of the links beyond."""

    I: Tensor
    first: Vector
    own: Body
    s: Vector

    @property
    def a(self) -> Vector:
        """a_i."""
        return self.own.a


def bodies(links: Sequence[Link], begin: Begin) -> Iterator[Body]:
    """M_i of all links: steps 1 to 5(a)."""
    for k, link in enumerate(links):
        body = link.fixed
        if body is None:
            begin("1")
            a = (link.a * link.turn.c, link.a * link.turn.s, link.b)
            begin("2")
            r = link.turn.vector(link.r)
            begin("3")
            d = (a[0] - r[0], a[1] - r[1], a[2] - r[2])
            begin("4")
            first = times(link.m, d)
            begin("5(a)")
            body = Body(added(link.turn.tensor(link.I), twice_crossed(d, first)), first, a)
        if slides(links, k + 1):
            begin("1")
            body = body._replace(a=added(body.a, along(link.turn, links[k + 1].b)))
        yield body


def slides(links: Sequence[Link], k: int) -> bool:
    """Whether there is a link k and its joint is prismatic."""
    return k < len(links) and links[k].fixed is not None


def along(turn: Q, b: Any) -> Vector:
    """b e_{i+1} in frame i: 4M."""
    x = b * turn.sa
    return x * turn.s, -(x * turn.c), b * turn.ca


def composites(links: Sequence[Link], begin: Begin) -> list[Composite]:
    """M̃_i of all links: steps 1 to 5. The row "5(b)" has the 18M 18A of the paper."""
    found: list[Composite] = []
    for k, own in reversed([*enumerate(bodies(links, begin))]):
        I, first, s = own.I, own.first, (0, 0, 0)
        if found:
            turn, beyond = links[k].turn, found[-1]
            begin("5(b) rotation")
            I, first = turn.tensor(beyond.I), turn.vector(beyond.first)
            begin("5(b) first moment")
            s = added(first, times(links[k + 1].carried, own.a))
            begin("5(b)")
            I = shift(I, first, own.a, s)
            begin("5(b) sum")
            I, first = added(own.I, I), added(own.first, s)
        found.append(Composite(I, first, own, s))
    return found[::-1]


def column(body: Composite, link: Link) -> Wrench:
    """M̃_i p_i = [n; f]: nil."""
    x, y, _ = body.first
    return ((y, -x, 0), (0, 0, link.carried)) if link.fixed else (body.I[3:], (-y, x, 0))


def moved(link: Link, a: Vector, wrench: Wrench) -> Wrench:
    """A_{i+1,i}ᵀ [n; f] in frame i: 22M 14A."""
    n, f = map(link.turn.vector, wrench)
    return added(n, cross(a, f)), f


def element(link: Link, wrench: Wrench) -> Any:
    """p_iᵀ [n; f]: nil."""
    return wrench[1][2] if link.fixed else wrench[0][2]


def gim(links: Sequence[Link], begin: Begin) -> Elements:
    """i_ij for j ≤ i: steps 1 to 6."""
    found, at = {}, composites(links, begin)
    begin("6")
    for i, (body, link) in enumerate(zip(at, links, strict=True)):
        wrench = column(body, link)
        found[i, i] = element(link, wrench)
        for j in reversed(range(i)):
            wrench = moved(links[j], at[j].a, wrench)
            found[i, j] = element(links[j], wrench)
    return found
